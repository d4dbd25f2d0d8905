/* SPDX-License-Identifier: Apache-2.0
 * CRC32C against the vectors of RFC 3720 and against a division done bit by
 * bit, by the instruction and by the tables. */
#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* The definition: polynomial division, the reflected way. */
static uint32_t by_division(uint32_t c, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    }
    return c;
}

/* Appendix B.4 of RFC 3720, and the usual check value. */
static void published_vectors_hold(void **state) {
    (void)state;
    uint8_t b[48];
    memset(b, 0, 32);
    assert_int_equal(crc32c(b, 32), 0x8a9136aau);
    memset(b, 0xff, 32);
    assert_int_equal(crc32c(b, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++) b[i] = (uint8_t)i;
    assert_int_equal(crc32c(b, 32), 0x46dd794eu);
    for (int i = 0; i < 32; i++) b[i] = (uint8_t)(31 - i);
    assert_int_equal(crc32c(b, 32), 0x113fdb5cu);
    static const uint8_t read10[48] = {
        0x01, 0xc0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
        0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
        0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0,
    };
    assert_int_equal(crc32c(read10, 48), 0xd9963a56u);
    assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(crc32c(NULL, 0), 0);
}

enum { LONG = 3 * 3 * CRC32C_LANE + 777 };

static uint8_t *random_bytes(void) {
    uint8_t *b = malloc(LONG);
    assert_non_null(b);
    uint32_t seed = 7;
    for (size_t i = 0; i < LONG; i++) {
        seed = seed * 1664525u + 1013904223u;
        b[i] = (uint8_t)(seed >> 24);
    }
    return b;
}

static void all_ways_agree_at_all_lengths_and_places(void **state) {
    (void)state;
    uint8_t *b = random_bytes();
    for (size_t at = 0; at < 9; at++)
        for (size_t n = 0; n < 70; n++) {
            uint32_t want = by_division(~0u, b + at, n);
            assert_int_equal(crc32c_by_table(~0u, b + at, n), want);
            if (crc32c_has_hw())
                assert_int_equal(crc32c_by_hw(~0u, b + at, n), want);
        }
    /* around the length at which three chains run side by side */
    for (size_t k = 1; k <= 3; k++)
        for (int d = -2; d <= 2; d++) {
            size_t n = (size_t)((int)(k * 3 * CRC32C_LANE) + d);
            uint32_t want = by_division(0x12345678, b + 1, n);
            assert_int_equal(crc32c_by_table(0x12345678, b + 1, n), want);
            if (crc32c_has_hw())
                assert_int_equal(crc32c_by_hw(0x12345678, b + 1, n), want);
        }
    free(b);
}

static void pieces_give_the_same_as_the_whole(void **state) {
    (void)state;
    uint8_t *b = random_bytes();
    uint32_t whole = crc32c(b, LONG);
    for (size_t cut = 0; cut <= LONG; cut += 1009)
        assert_int_equal(crc32c_more(crc32c(b, cut), b + cut, LONG - cut),
                         whole);
    free(b);
}

/* The length 24 of the first record of every event file that TensorFlow
 * writes, as those files have it: bytes 8 to 11. */
static void the_mask_is_tfrecords(void **state) {
    (void)state;
    const uint8_t length[8] = {24};
    const uint8_t stored[4] = {0xa3, 0x7f, 0x4b, 0x22};
    uint32_t want;
    memcpy(&want, stored, 4);
    assert_int_equal(crc32c_mask(crc32c(length, 8)), want);
    assert_int_equal(crc32c_unmask(want), crc32c(length, 8));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors_hold),
        cmocka_unit_test(all_ways_agree_at_all_lengths_and_places),
        cmocka_unit_test(pieces_give_the_same_as_the_whole),
        cmocka_unit_test(the_mask_is_tfrecords),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
