/* SPDX-License-Identifier: Apache-2.0
 * A child of fork() has the descriptors that the program has, not one more (the
 * recorder's) and not one less. */
#include <opscope/record.h>

#include "rec/temp.h"
#include "ring/sanitized.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { FDS = 256 };

static int remove_one(const char *path, const struct stat *st, int flag,
                      struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

/* Which descriptors are open: a mark for each. */
static void mark(char *open_fds) {
    for (int i = 0; i < FDS; i++) open_fds[i] = fcntl(i, F_GETFD) != -1;
}

/* 0, or the number (from 1) of the first descriptor that differs. */
static int differs(const char *before) {
    char now[FDS];
    mark(now);
    for (int i = 0; i < FDS; i++)
        if (now[i] != before[i]) return i + 1;
    return 0;
}

static int in_child(const char *before, int records) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        int d = differs(before);
        if (d == 0 && records) {
            ops_begin("in the child");
            ops_end();
            ops_scalar("loss", 1, 0.5);
            ops_stop();
            d = differs(before);
        }
        _exit(d);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void children_have_the_programs_descriptors(void **state) {
    (void)state;
    char dir[TEMP_MAX], before[FDS];
    /* its allocator may be locked in a child of a threaded program */
    if (SANITIZED_ADDRESS || SANITIZED_THREAD)
        skip_because("under sanitizers: forks of a threaded program");
    assert_non_null(mkdtemp(temp_name(dir, "fork")));
    if (fcntl(0, F_GETFD) == -1) assert_int_equal(open("/dev/null", 0), 0);
    mark(before);
    assert_int_equal(ops_start(dir, NULL), 0);
    ops_begin("parent");
    ops_end();
    ops_flush(); /* the flusher runs, and has opened its files */
    assert_int_equal(in_child(before, 0), 0);
    assert_int_equal(in_child(before, 1), 0);
    ops_scalar("loss", 1, 0.5); /* now with a file of scalars, too */
    ops_flush();
    assert_int_equal(in_child(before, 0), 0);
    assert_int_equal(in_child(before, 1), 0);
    ops_stop();
    assert_int_equal(differs(before), 0);
    assert_int_equal(in_child(before, 0), 0);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_have_the_programs_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
