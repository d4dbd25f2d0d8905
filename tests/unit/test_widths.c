/* SPDX-License-Identifier: Apache-2.0
 * Every analysis on every profile of tests/data fits the screen, whatever its
 * width, with and without -v; and names that are not the same do not look the
 * same. A profile is read once, and an analysis run once for all widths. */
#include "analyze/analyze.h"
#include "api/run.h"
#include "import/import.h"
#include "load/profiles.h"
#include "present/present.h"
#include "present/width.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns how many lines of the text are wider than the screen, and shows the
 * first. */
static int too_wide(const char *s, const char *end, size_t width,
                    const char *what) {
    int wrong = 0;
    for (size_t n; s < end; s += n + 1) {
        const char *feed = memchr(s, '\n', (size_t)(end - s));
        n = (size_t)((feed != NULL ? feed : end) - s);
        if (text_width_n(s, n) <= width) continue;
        if (wrong++ == 0)
            print_error("%s: over %zu: %.*s\n", what, width, (int)n, s);
    }
    return wrong;
}

static int check_result(const struct result *r, const char *what) {
    static const int widths[] = {60, 80, 100, 200};
    int wrong = 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int detail = 0; detail < 2; detail++) {
            struct sink s;
            struct text_style st = {.width = widths[i],
                                    .unicode = true,
                                    .detail = detail};
            sink_memory(&s);
            presenter_text.put(r, &st, &s);
            assert_int_equal(s.broken, 0);
            wrong += too_wide(s.buf, s.buf + s.n, (size_t)widths[i], what);
            sink_free(&s);
        }
    return wrong;
}

/* Runs an analysis with one option (NULL: none). */
static int check_analysis(const struct profiles *p, const struct analysis *a,
                          const char *option, const char *value,
                          const char *path) {
    struct opts o;
    struct result r;
    struct ops_err e;
    char what[600];
    snprintf(what, sizeof what, "%s %s %s %s", a->name, path,
             option ? option : "", value ? value : "");
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    if (option != NULL) assert_int_equal(opts_set(&o, option, value, &e), 0);
    if (profiles_run(p, a, &o, 20, &r, &e) != 0) {
        /* what cannot be asked of this profile is said in a sentence */
        assert_int_equal(e.code, OPS_EUSAGE);
        return 0;
    }
    int wrong = check_result(&r, what);
    result_free(&r);
    return wrong;
}

static int check_profile(const char *path) {
    struct profiles p;
    struct ops_err e;
    struct import_opts io = {.threads = 1};
    char *paths[] = {(char *)path};
    int wrong = 0;
    if (profiles_open(paths, 1, NULL, &io, &p, &e) != 0) return 0;
    for (size_t i = 0; analyses[i] != NULL; i++)
        wrong += check_analysis(&p, analyses[i], NULL, NULL, path);
    wrong += check_analysis(&p, analysis_find("kernels"), "group", "shape",
                            path);
    wrong += check_analysis(&p, analysis_find("ops"), "group",
                            "shapes,stack,module", path);
    wrong += check_analysis(&p, analysis_find("memory"), "by", "stack", path);
    profiles_free(&p);
    return wrong;
}

static void nothing_is_printed_beyond_the_screen(void **state) {
    (void)state;
    glob_t found = {0};
    int wrong = 0;
    static const char *const where[] = {"tests/data/*/*.gz",
                                        "tests/data/*/*.pb",
                                        "tests/data/*/events.*",
                                        "tests/data/torch_ddp",
                                        "tests/data/torch_gloo4"};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++)
        glob(where[i], i > 0 ? GLOB_APPEND : 0, NULL, &found);
    assert_true(found.gl_pathc > 20);
    for (size_t i = 0; i < found.gl_pathc; i++)
        wrong += check_profile(found.gl_pathv[i]);
    globfree(&found);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_printed_beyond_the_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
