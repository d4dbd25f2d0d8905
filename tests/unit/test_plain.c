/* SPDX-License-Identifier: Apache-2.0
 * Which characters may be shown as they are, and screens, through which no
 * other gets. */
#include "base/text/plain.h"

#include "base/err.h"
#include "base/io/sink.h"
#include "base/text/utf8.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void what_steers_or_hides_is_not_plain(void **state) {
    (void)state;
    static const uint32_t bad[] = {
        0,        0x1b,    '\n',    '\t',      '\r',   0x7f,    0x80,
        0x9b,     0x9f,    0xad,    0x34f,     0x61c,  0x180e,  0x200b,
        0x200d,   0x200f,  0x2028,  0x2029,    0x202a, 0x202e,  0x2060,
        0x2066,   0x2069,  0x206f,  0xd800,    0xdfff, 0xfdd0,  0xfdef,
        0xfe0f,   0xfeff,  0xfff9,  0xfffe,    0xffff, 0x1fffe, 0x10ffff,
        0x110000, 0xe0001, 0xe0041, PLAIN_BAD,
    };
    static const uint32_t good[] = {
        ' ',    '~',    0xa0,   0xac,   0xae,    0xe9,     0x301,
        0x65e5, 0x2027, 0x202f, 0x205f, 0x2070,  0xd7ff,   0xe000,
        0xfdcf, 0xfdf0, 0xfe10, 0xfffd, 0x1f600, 0x10fffd, 0xe1000,
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (plain_char(bad[i])) fail_msg("U+%04X is plain", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!plain_char(good[i])) fail_msg("U+%04X is not plain", good[i]);
}

/* Each byte alone and in every place of a long text: the quick look at eight
 * bytes says the same as the slow one. */
static void every_byte_in_every_place(void **state) {
    (void)state;
    for (unsigned c = 0; c < 256; c++)
        for (size_t at = 0; at < 19; at++) {
            char s[20] = "abcdefghijklmnopqrs";
            bool stays = c >= 0x20 && c < 0x7f;
            s[at] = (char)c;
            assert_int_equal(plain_clean(s, 19, PLAIN_LINE), 19);
            assert_int_equal((unsigned char)s[at], stays ? c : '?');
            for (size_t i = 0; i < 19; i++)
                if (i != at) assert_int_equal(s[i], "abcdefghijklmnopqrs"[i]);
        }
}

static void check_clean(const char *in, enum plain_kind kind,
                        const char *want) {
    char s[64];
    snprintf(s, sizeof s, "%s", in);
    s[plain_clean(s, strlen(s), kind)] = '\0';
    assert_string_equal(s, want);
}

static void one_mark_for_each_character(void **state) {
    (void)state;
    check_clean("a\xe2\x80\xae"
                "b\xc2\x9b"
                "1\xff\xfe",
                PLAIN_LINE, "a?b?1??");
    check_clean("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80", PLAIN_LINE,
                "?????????");
    check_clean("é日本😀", PLAIN_LINE, "é日本😀");
    check_clean("a\nb\tc\r\nd\re\r", PLAIN_LINE, "a?b?c??d?e?");
    check_clean("a\nb\tc\r\nd\re\r", PLAIN_PAGE, "a\nb\tc\r\nd?e?");
    check_clean("a\né\tÛ\xc2\x9b\r\n", PLAIN_ASCII, "a\n?\t??\r\n");
    check_clean("", PLAIN_LINE, "");
}

/* Returns what a screen makes of a text that comes in pieces of n bytes. */
static char *through_screen(const char *s, size_t n, size_t piece) {
    struct sink out;
    sink_screen(&out, -1);
    for (size_t i = 0; i < n; i += piece)
        sink_write(&out, s + i, n - i < piece ? n - i : piece);
    assert_int_equal(sink_flush(&out, NULL), 0);
    sink_putc(&out, '\0');
    return out.buf;
}

static void a_screen_sees_through_pieces(void **state) {
    (void)state;
    static const char in[] = "é\x1b[2J\r\n日\xe2\x80\xae.\xe2\x82";
    for (size_t piece = 1; piece < sizeof in; piece++) {
        char *s = through_screen(in, sizeof in - 1, piece);
        assert_string_equal(s, "é?[2J\r\n日?.??");
        free(s);
    }
}

static void only_control_gets_through(void **state) {
    (void)state;
    struct sink out;
    sink_screen(&out, -1);
    sink_puts(&out, "\xe2\x80"); /* half a character must not join ours */
    sink_control(&out, "\033[1m");
    sink_puts(&out, "\033[2Jx");
    sink_control(&out, "\033[0m");
    sink_printf(&out, "%s", "\xc2\x9b");
    assert_int_equal(sink_flush(&out, NULL), 0);
    sink_putc(&out, '\0');
    assert_string_equal(out.buf, "??\033[1m?[2Jx\033[0m?");
    sink_free(&out);
}

/* Far more than the buffer holds, with characters across its border. */
static void a_screen_over_a_descriptor(void **state) {
    (void)state;
    FILE *f = tmpfile();
    struct sink out;
    enum { TIMES = 60000 };
    sink_screen(&out, fileno(f));
    sink_puts(&out, "x");
    for (int i = 0; i < TIMES; i++) sink_puts(&out, "日\xe2\x80\xae");
    assert_int_equal(sink_flush(&out, NULL), 0);
    sink_free(&out);
    assert_int_equal(lseek(fileno(f), 0, SEEK_END), 1 + TIMES * 4);
    char *all = malloc(1 + TIMES * 4);
    assert_int_equal(pread(fileno(f), all, 1 + TIMES * 4, 0), 1 + TIMES * 4);
    for (int i = 0; i < TIMES; i++)
        assert_memory_equal(all + 1 + i * 4, "日?", 4);
    free(all);
    fclose(f);
}

static void a_line_is_one_line(void **state) {
    (void)state;
    FILE *f = tmpfile();
    char line[32] = "a\033[2J\nb\xc2\x9b"
                    "é",
         have[33] = "";
    sink_line(fileno(f), line, strlen(line));
    assert_true(pread(fileno(f), have, 32, 0) > 0);
    assert_string_equal(have, "a?[2J?b?é\n");
    fclose(f);
}

static void errors_quote_nothing_raw(void **state) {
    (void)state;
    struct ops_err e;
    (fail)(&e, OPS_EIO, "%s: no such file", "a\x1b[2J\xc2\x9b\xff\n");
    assert_string_equal(e.text, "a?[2J???: no such file");
    fail_in(&e, "p\xe2\x80\xae\r");
    assert_string_equal(e.text, "p??: a?[2J???: no such file");
    /* a long path is cut, be it inside of a character */
    char path[1200] = "";
    for (size_t i = 0; i + 3 < sizeof path; i += 3) strcat(path, "日");
    (fail)(&e, OPS_EIO, "%s", path);
    assert_true(utf8_clean(bytes_of(e.text)));
    (fail)(&e, OPS_EIO, "gone");
    fail_in(&e, path);
    assert_true(utf8_clean(bytes_of(e.text)));
}

static void a_long_path_leaves_room_for_the_reason(void **state) {
    (void)state;
    static const char *const reasons[] = {"gone", "cannot be opened: no"};
    for (size_t n = 450; n < 560; n++)
        for (size_t i = 0; i < 2; i++) {
            char path[600];
            struct ops_err e;
            memset(path, 'x', n);
            strcpy(path + n, "/end.pb");
            memcpy(path, "/日/本/", strlen("/日/本/"));
            (fail)(&e, OPS_EIO, "%s", reasons[i]);
            assert_int_equal(fail_in(&e, path), OPS_EIO);
            assert_true(utf8_clean(bytes_of(e.text)));
            assert_memory_equal(e.text, "/日/本/x", strlen("/日/本/x"));
            const char *end = strstr(e.text, "/end.pb: ");
            assert_non_null(end);
            assert_string_equal(end + strlen("/end.pb: "), reasons[i]);
            bool fits = strlen(path) + 2 + strlen(reasons[i]) < sizeof e.text;
            assert_int_equal(strstr(e.text, "...") == NULL, fits);
        }
    /* both too long: some of each */
    struct ops_err e;
    char path[1200] = "", long_reason[1200];
    for (size_t i = 0; i + 3 < sizeof path; i += 3) strcat(path, "日");
    memset(long_reason, 'r', sizeof long_reason - 1);
    long_reason[sizeof long_reason - 1] = '\0';
    (fail)(&e, OPS_EIO, "%s", long_reason);
    fail_in(&e, path);
    assert_true(utf8_clean(bytes_of(e.text)));
    assert_true(strlen(e.text) > 500);
    assert_non_null(strstr(e.text, "日...日"));
    assert_non_null(strstr(e.text, "日: rrr"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_steers_or_hides_is_not_plain),
        cmocka_unit_test(every_byte_in_every_place),
        cmocka_unit_test(one_mark_for_each_character),
        cmocka_unit_test(a_screen_sees_through_pieces),
        cmocka_unit_test(only_control_gets_through),
        cmocka_unit_test(a_screen_over_a_descriptor),
        cmocka_unit_test(a_line_is_one_line),
        cmocka_unit_test(errors_quote_nothing_raw),
        cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
    };
    return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
