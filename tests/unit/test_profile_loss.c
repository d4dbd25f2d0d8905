/* SPDX-License-Identifier: Apache-2.0
 * How many points of curves a profile says were lost: also where its messages
 * lack parts, or are something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "rec/temp.h"
#include "scalars/profile_loss.h"

/* Writes the bytes to a file. Returns what is said to be lost there. */
static uint64_t lost(const char *bytes, size_t n) {
    char path[TEMP_MAX];
    int fd = mkstemp(temp_name(path, "loss"));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
    uint64_t k = profile_scalars_lost(path);
    unlink(path);
    return k;
}
#define LOST(text) lost(text, sizeof text - 1)

/* Plane (1) { stat_metadata (5) { key (1) 7, value (2) { name (2) } },
 * stats (6) { metadata_id (1) 7, int64 (4) 300 } } */
#define NAME "scalars_lost"
#define META "\x2a\x12\x08\x07\x12\x0e\x12\x0c" NAME
#define STAT "\x32\x05\x08\x07\x20\xac\x02"

static void the_fact_is_found(void **state) {
    (void)state;
    assert_int_equal(LOST("\x0a\x1b" META STAT), 300);
    assert_int_equal(LOST("\x0a\x14" META), 0);
    assert_int_equal(LOST("\x0a\x07" STAT), 0);
}

static void messages_may_lack_anything(void **state) {
    (void)state;
    assert_int_equal(LOST("\x0a\x00"), 0);
    assert_int_equal(LOST("\x0a\x02\x2a\x00"), 0);         /* an empty entry */
    assert_int_equal(LOST("\x0a\x04\x2a\x02\x08\x07"), 0); /* a key alone */
    assert_int_equal(LOST("\x0a\x04\x2a\x02\x10\x07"), 0); /* value: a number */
    assert_int_equal(LOST("\x0a\x02\x28\x07"), 0);     /* the entry: a number */
    assert_int_equal(LOST("\x0a\x7f\x2a\x12\x08"), 0); /* cut */
    assert_int_equal(LOST("\x08\x01"), 0);
    assert_int_equal(LOST(""), 0);
    assert_int_equal(profile_scalars_lost("/nonexistent"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fact_is_found),
        cmocka_unit_test(messages_may_lack_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
