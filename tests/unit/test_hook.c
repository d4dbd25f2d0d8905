/* SPDX-License-Identifier: Apache-2.0
 * Notes that processes of a program left: a sentence for programs of which
 * nothing was traced is shown where that is so. */
#include "capture/hook.h"
#include "rec/temp.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[TEMP_MAX];

static int unlink_one(const char *p, const struct stat *st, int type,
                      struct FTW *w) {
    (void)st, (void)type, (void)w;
    return remove(p);
}

static int make_root(void **state) {
    (void)state;
    return mkdtemp(temp_name(root, "hook")) ? 0 : -1;
}

static int drop_root(void **state) {
    (void)state;
    return nftw(root, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text) {
    char path[TEMP_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void count(void *ctx, const char *text) {
    assert_string_equal(text, "nothing was traced");
    ++*(int *)ctx;
}

/* Is the sentence shown beside a file of that name? */
static bool is_shown_beside(const char *name) {
    int n = 0;
    put("12.notes", "~nothing was traced\n");
    put(name, "");
    hook_take_notes(root, count, &n);
    char path[TEMP_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", root, name);
    remove(path);
    return n == 1;
}

static void nothing_was_traced_beside_no_capture(void **state) {
    (void)state;
    assert_true(is_shown_beside("host_12.xplane.pb"));
    assert_true(is_shown_beside("a.step1_12.xplane.pb"));
    assert_true(is_shown_beside("a_b.step1_12.xplane.pb"));
    assert_true(is_shown_beside("_.step1.xplane.pb"));
}

static void a_capture_is_told_by_its_name(void **state) {
    (void)state;
    assert_false(is_shown_beside("host_12.step3.pt.trace.json.gz"));
    assert_false(is_shown_beside("host_12.step3-2.xplane.pb"));
    assert_false(is_shown_beside("a.step1_12.step3.run_metadata.pb"));
    assert_false(is_shown_beside("host_12.step3.pickle"));
}

static void an_export_that_was_killed_is_no_capture(void **state) {
    (void)state;
    assert_true(is_shown_beside("host_12.step3.pt.trace.json.part"));
    assert_true(is_shown_beside("host_12.step3.pt.trace.json.gz.part"));
    assert_true(is_shown_beside("host_12.step3.xplane.pb.tmp"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_was_traced_beside_no_capture),
        cmocka_unit_test(a_capture_is_told_by_its_name),
        cmocka_unit_test(an_export_that_was_killed_is_no_capture),
    };
    return cmocka_run_group_tests_name("hook", tests, make_root, drop_root);
}
