/* SPDX-License-Identifier: Apache-2.0
 * Where tests put what they need for a moment, and why a case is skipped. */
#ifndef TESTS_REC_TEMP_H
#define TESTS_REC_TEMP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEMP_MAX = 160 };

/* A name for mkdtemp or mkstemp, in $TMPDIR or else in /tmp. A folder with a
 * name that is too long ends the test. */
static inline char *temp_name(char to[TEMP_MAX], const char *what) {
    const char *t = getenv("TMPDIR");
    if (t == NULL || t[0] == '\0') t = "/tmp";
    if (strlen(t) + strlen(what) + sizeof "/opscope--XXXXXX" > TEMP_MAX)
        abort();
    /* not snprintf: compilers guess that it might not fit */
    strcat(strcat(strcpy(to, t), "/opscope-"), what);
    return strcat(to, "-XXXXXX");
}

/* Skips the case that runs, in the test's own process. cmocka has no word for
 * why; tests/run reads this line. */
#define skip_because(why)                                                      \
    do {                                                                       \
        printf("# because %s\n", why);                                         \
        skip();                                                                \
    } while (0)

#endif
