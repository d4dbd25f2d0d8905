/* SPDX-License-Identifier: Apache-2.0
 * Texts that are cut: between letters, at every length. */
#include "base/text/cut.h"

#include "base/text/utf8.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Letters of one to four bytes. */
static const char text[] = "aé日😀b日é😀";

static void a_cut_falls_between_letters(void **state) {
    (void)state;
    for (size_t most = 0; most < sizeof text + 4; most++) {
        char room[64];
        size_t n = cut_at(text, most);
        assert_true(n <= most);
        assert_true(most - n < 4 || n == sizeof text - 1);
        assert_true(utf8_clean((struct bytes){(const uint8_t *)text, n}));
        struct bytes all = {(const uint8_t *)text, sizeof text - 1};
        assert_int_equal(cut_bytes_at(all, most), n);
        assert_int_equal(cut_fmt(room, sizeof room, "<%.*s>", CUT(most, text)),
                         n + 2);
        assert_memory_equal(room + 1, text, n);
        if (most == 0) continue;
        size_t k = cut_fmt(room, most, "%s", text);
        assert_int_equal(k, cut_at(text, most - 1));
        assert_int_equal(strlen(room), k);
    }
}

static void bytes_that_are_no_letters_are_cut_somewhere(void **state) {
    (void)state;
    static const char bad[] = "\xff\xff\x80\x80\x80\x80\x80\xe6\xe6\xe6\xf0";
    for (size_t most = 0; most < sizeof bad; most++) {
        size_t n = cut_at(bad, most);
        assert_true(n <= most && most - n < 4);
    }
}

static void a_middle_is_cut_out(void **state) {
    (void)state;
    char room[64];
    assert_int_equal(cut_middle(room, 11, "0123456789"), 10);
    assert_string_equal(room, "0123456789");
    assert_int_equal(cut_middle(room, 10, "0123456789"), 9);
    assert_string_equal(room, "01...6789");
    for (size_t cap = 9; cap < sizeof text + 2; cap++) {
        memset(room, 'x', sizeof room);
        size_t n = cut_middle(room, cap, text);
        assert_true(n < cap && strlen(room) == n);
        assert_true(utf8_clean(bytes_of(room)));
        assert_int_equal(room[cap], 'x');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_falls_between_letters),
        cmocka_unit_test(bytes_that_are_no_letters_are_cut_somewhere),
        cmocka_unit_test(a_middle_is_cut_out),
    };
    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
