/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 against the rule itself: every code point, every short byte string. */
#include "base/text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_code_point_goes_there_and_back(void **state) {
    (void)state;
    for (uint32_t c = 1; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000) continue;
        uint8_t out[4];
        size_t n = utf8_put(c, out);
        assert_int_equal(n, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        assert_int_equal(utf8_len(out, n), n);
        assert_int_equal(utf8_len(out, n - 1), 0); /* cut */
    }
}

static void what_is_no_code_point_becomes_the_replacement(void **state) {
    (void)state;
    static const uint32_t bad[] = {0xd800, 0xdfff, 0x110000, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        uint8_t out[4];
        assert_int_equal(utf8_put(bad[i], out), 3);
        assert_memory_equal(out, "\xef\xbf\xbd", 3);
    }
}

/* Decodes by the bit patterns alone; -1 where RFC 3629 forbids it. */
static long decode(const uint8_t *p, size_t n, size_t *used) {
    *used = p[0] < 0x80       ? 1
            : p[0] >> 5 == 6  ? 2
            : p[0] >> 4 == 14 ? 3
            : p[0] >> 3 == 30 ? 4
                              : 0;
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (*used == 0 || *used > n) return -1;
    long c = *used == 1 ? p[0] : p[0] & (0xff >> (*used + 1));
    for (size_t i = 1; i < *used; i++) {
        if (p[i] >> 6 != 2) return -1;
        c = c << 6 | (p[i] & 63);
    }
    if (c < least[*used] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return -1;
    return c;
}

static void every_two_bytes_and_many_fours_are_judged_right(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (uint32_t i = 0; i < 65536 * 4; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint8_t p[4] = {(uint8_t)(i >> 8), (uint8_t)i, (uint8_t)(seed >> 24),
                        (uint8_t)(seed >> 16)};
        if (i & 0x10000) p[2] = 0x80 | (p[2] & 63);
        if (i & 0x20000) p[3] = 0x80 | (p[3] & 63);
        size_t used;
        long c = decode(p, 4, &used);
        assert_int_equal(utf8_len(p, 4), c < 0 ? 0 : used);
    }
}

static void clean_text_is_told_from_unclean(void **state) {
    (void)state;
    assert_true(utf8_clean((struct bytes){NULL, 0}));
    assert_true(utf8_clean(bytes_of("gr\xc3\xbc\xc3\x9f")));
    assert_false(utf8_clean(bytes_of("a\xff")));
    assert_false(utf8_clean(bytes_of("cut\xc3")));
    assert_false(utf8_clean((struct bytes){(const uint8_t *)"a\0b", 3}));
}

static void check_mend(const char *in, size_t n, const char *want,
                       size_t mended) {
    uint8_t out[64];
    size_t count = 0;
    size_t k = utf8_mend((struct bytes){(const uint8_t *)in, n}, out, &count);
    assert_int_equal(k, strlen(want));
    assert_memory_equal(out, want, k);
    assert_int_equal(count, mended);
}

static void each_bad_byte_is_mended_and_counted(void **state) {
    (void)state;
    check_mend("ok", 2, "ok", 0);
    check_mend("a\xff"
               "b",
               3,
               "a\xef\xbf\xbd"
               "b",
               1);
    check_mend("a\0b", 3, "a b", 1);
    check_mend("\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd", 2);
    check_mend("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 3);
    check_mend("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_goes_there_and_back),
        cmocka_unit_test(what_is_no_code_point_becomes_the_replacement),
        cmocka_unit_test(every_two_bytes_and_many_fours_are_judged_right),
        cmocka_unit_test(clean_text_is_told_from_unclean),
        cmocka_unit_test(each_bad_byte_is_mended_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
