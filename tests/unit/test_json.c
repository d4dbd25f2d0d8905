/* SPDX-License-Identifier: Apache-2.0
 * The JSON pull reader: what it reads exactly, what it mends, where it stops.
 * Text always has 64 zero bytes behind it, as files have. */
#include "base/text/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct text {
    char *buf;
    struct json j;
};

/* Returns a reader over a copy of n bytes, zeros behind it. */
static struct text open_bytes(const void *p, size_t n) {
    struct text t = {.buf = calloc(1, n + 64)};
    assert_non_null(t.buf);
    memcpy(t.buf, p, n);
    t.j = json_reader((struct bytes){(const uint8_t *)t.buf, n});
    return t;
}

static struct text open_text(const char *s) { return open_bytes(s, strlen(s)); }

static struct json_num number(const char *s, uint64_t *mended) {
    struct text t = open_text(s);
    struct json_num n = json_number(&t.j);
    if (mended) *mended = t.j.mended;
    free(t.buf);
    return n;
}

static void check_exact(const char *s, int64_t digits, int scale) {
    struct json_num n = number(s, NULL);
    assert_int_equal(n.kind, JSON_EXACT);
    assert_int_equal(n.digits, digits);
    assert_int_equal(n.scale, scale);
}

static void decimals_are_kept_exactly(void **state) {
    (void)state;
    check_exact("0", 0, 0);
    check_exact("-0.0", 0, 1);
    check_exact("12.345", 12345, 3);
    check_exact("-12.345", -12345, 3);
    check_exact("1712345678901234.567", INT64_C(1712345678901234567), 3);
    check_exact("9223372036854775807", INT64_MAX, 0);
    check_exact("-9223372036854775807", -INT64_MAX, 0);
    check_exact(" \t\r\n7", 7, 0);
    check_exact("\"42.5\"", 425, 1);
    assert_true(number("\"42.5\"", NULL).quoted);
    assert_false(number("42.5", NULL).quoted);
}

static void long_and_exponent_numbers_become_floats(void **state) {
    (void)state;
    static const struct {
        const char *s;
        double f;
    } v[] = {
        {"9223372036854775808", 9223372036854775808.0},
        {"-9223372036854775808", -9223372036854775808.0},
        {"-9999999999999999999", -9999999999999999999.0},
        {"12345678901234567890123", 12345678901234567890123.0},
        {"1e3", 1000},
        {"1.5E-3", 0.0015},
        {"-2e+2", -200},
        {"0.12345678901234567890123", 0.12345678901234567890123},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct json_num n = number(v[i].s, NULL);
        assert_int_equal(n.kind, JSON_FLOAT);
        assert_true(fabs(n.f - v[i].f) <= fabs(v[i].f) * 1e-15);
    }
}

static void what_is_no_number_is_none(void **state) {
    (void)state;
    static const char *const v[] = {
        "NaN",    "nan",  "inf",  "-inf", "Infinity", "-Infinity", "1e400",
        "-1e400", "null", "true", "N/A",  "\"abc\"",  "\"\"",      "\"1x\"",
        "{}",     "[1]",  "-",    "+",    ".",        "",          "\"1e400\"",
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct json_num n = number(v[i], NULL);
        int64_t x;
        assert_int_equal(n.kind, JSON_NAN);
        assert_false(json_to_int(&n, &x));
        assert_true(isnan(json_to_double(&n)));
    }
    uint64_t mended;
    number("NaN", &mended);
    assert_int_equal(mended, 1);
    number("-Infinity", &mended);
    assert_int_equal(mended, 1);
    number("null", &mended);
    assert_int_equal(mended, 0);
}

static void a_number_as_integer_is_cut_not_rounded(void **state) {
    (void)state;
    static const struct {
        const char *s;
        int64_t v;
    } v[] = {
        {"12.999", 12}, {"-12.999", -12}, {"1e3", 1000},
        {"0.9", 0},     {"\"77\"", 77},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct json_num n = number(v[i].s, NULL);
        int64_t x;
        assert_true(json_to_int(&n, &x));
        assert_int_equal(x, v[i].v);
    }
    struct json_num n = number("1e19", NULL);
    int64_t x;
    assert_false(json_to_int(&n, &x));
}

static void an_object_is_walked_key_by_key(void **state) {
    (void)state;
    struct text t = open_text(" {\"a\" : 1 , \"b\":[1,{\"x\":\"}\"}], "
                              "\"c\":\"\\\"\"}tail");
    struct json_str key, s;
    assert_true(json_enter(&t.j, '{'));
    assert_true(json_key(&t.j, &key));
    assert_true(BYTES_IS(key.raw, "a"));
    assert_int_equal(json_number(&t.j).digits, 1);
    assert_true(json_key(&t.j, &key));
    assert_true(BYTES_IS(key.raw, "b"));
    json_skip(&t.j);
    assert_true(json_key(&t.j, &key));
    assert_true(json_string(&t.j, &s));
    assert_true(s.escaped);
    assert_int_equal(s.raw.n, 2);
    assert_false(json_key(&t.j, &key));
    assert_false(t.j.bad);
    assert_int_equal(t.j.mended, 0);
    assert_memory_equal(t.j.p, "tail", 4);
    free(t.buf);
}

/* Walks a list of numbers. Returns their sum, and what the reader says of
 * it. */
static int64_t sum_list(const char *s, bool *bad, uint64_t *mended) {
    struct text t = open_text(s);
    int64_t sum = 0, v;
    assert_true(json_enter(&t.j, '['));
    while (json_item(&t.j)) {
        struct json_num n = json_number(&t.j);
        if (json_to_int(&n, &v)) sum += v;
    }
    *bad = t.j.bad;
    *mended = t.j.mended;
    free(t.buf);
    return sum;
}

static void commas_too_many_are_counted(void **state) {
    (void)state;
    bool bad;
    uint64_t mended;
    assert_int_equal(sum_list("[1,2,3]", &bad, &mended), 6);
    assert_false(bad);
    assert_int_equal(mended, 0);
    assert_int_equal(sum_list("[1,2,]", &bad, &mended), 3);
    assert_false(bad);
    assert_int_equal(mended, 1);
    assert_int_equal(sum_list("[1,,2]", &bad, &mended), 3);
    assert_int_equal(mended, 1);
    assert_int_equal(sum_list("[]", &bad, &mended), 0);
    assert_false(bad);
    struct text t = open_text("{\"a\":1,}");
    struct json_str key;
    json_enter(&t.j, '{');
    assert_true(json_key(&t.j, &key));
    json_skip(&t.j);
    assert_false(json_key(&t.j, &key));
    assert_false(t.j.bad);
    assert_int_equal(t.j.mended, 1);
    free(t.buf);
}

static void a_cut_is_bad_and_stops_at_the_end(void **state) {
    (void)state;
    static const char whole[] =
        "{\"a\":[1,{\"b\":\"x\\\\\"}],\"c\":{\"d\":null},\"e\":\"\\u12\"}";
    for (size_t n = 1; n < sizeof whole - 1; n++) {
        struct text t = open_bytes(whole, n);
        json_skip(&t.j);
        assert_true(t.j.bad);
        assert_ptr_equal(t.j.p, t.j.end);
        free(t.buf);
    }
    struct text t = open_text(whole);
    json_skip(&t.j);
    assert_false(t.j.bad);
    assert_ptr_equal(t.j.p, t.j.end);
    free(t.buf);
}

/* Skips an object, one byte at a time, to compare the quick one with. Lists
 * inside it need not be looked at. */
static const uint8_t *skip_plainly(const uint8_t *p, const uint8_t *end) {
    size_t depth = 0;
    bool in = false;
    for (; p < end; p++) {
        if (in) {
            if (*p == '\\') p++;
            else if (*p == '"') in = false;
        } else if (*p == '"') {
            in = true;
        } else if (*p == '{') {
            depth++;
        } else if (*p == '}' && --depth == 0) {
            return p + 1;
        }
    }
    return NULL;
}

static void skipping_equals_a_plain_walk(void **state) {
    (void)state;
    static const char letters[] = "{}[]\"\"\\ax,: ";
    uint32_t seed = 7;
    for (int round = 0; round < 4000; round++) {
        uint8_t buf[400] = "{";
        size_t n = 1 + (size_t)round % 300;
        for (size_t i = 1; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            /* mostly letters, so that blocks without a backslash occur */
            uint32_t k = seed >> 16;
            buf[i] = k % 4 ? 'a' : (uint8_t)letters[(k >> 4) % 13];
        }
        struct text t = open_bytes(buf, n);
        const uint8_t *want = skip_plainly(t.j.p, t.j.end);
        json_skip(&t.j);
        assert_int_equal(t.j.bad, want == NULL);
        assert_ptr_equal(t.j.p, want ? want : t.j.end);
        free(t.buf);
    }
}

static void nesting_of_any_depth_is_skipped(void **state) {
    (void)state;
    enum { DEEP = 50000 };
    char *s = malloc(2 * DEEP);
    assert_non_null(s);
    memset(s, '[', DEEP);
    memset(s + DEEP, ']', DEEP);
    struct text t = open_bytes(s, 2 * DEEP);
    json_skip(&t.j);
    assert_false(t.j.bad);
    assert_ptr_equal(t.j.p, t.j.end);
    free(t.buf);
    t = open_bytes(s, 2 * DEEP - 1);
    json_skip(&t.j);
    assert_true(t.j.bad);
    free(t.buf);
    free(s);
}

static void check_unescape(const char *raw, const char *want, uint64_t mended) {
    size_t n = strlen(raw);
    uint8_t *out = malloc(n + 1); /* exactly the room that is promised */
    uint64_t count = 0;
    size_t k = json_unescape((struct bytes){(const uint8_t *)raw, n}, out,
                             &count);
    assert_int_equal(k, strlen(want));
    assert_memory_equal(out, want, k);
    assert_int_equal(count, mended);
    free(out);
}

static void escapes_are_undone(void **state) {
    (void)state;
    check_unescape("plain", "plain", 0);
    check_unescape("a\\n\\t\\\"\\\\\\/b", "a\n\t\"\\/b", 0);
    check_unescape("\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac", 0);
    check_unescape("\\ud83d\\ude00", "\xf0\x9f\x98\x80", 0);
}

static void bad_escapes_are_mended_and_counted(void **state) {
    (void)state;
    check_unescape("\\ud83d", "\xef\xbf\xbd", 1);
    check_unescape("\\ude00x", "\xef\xbf\xbdx", 1);
    check_unescape("\\ud83d\\u0041",
                   "\xef\xbf\xbd"
                   "A",
                   1);
    check_unescape("C:\\Users\\q", "C:Usersq", 2);
    check_unescape("\\u12", "?12", 1);
    check_unescape("end\\", "end\\", 0);
}

static void strings_end_at_their_quote_wherever_it_stands(void **state) {
    (void)state;
    for (size_t n = 0; n < 70; n++) {
        char buf[100];
        buf[0] = '"';
        memset(buf + 1, 'x', n);
        buf[n + 1] = '"';
        struct text t = open_bytes(buf, n + 2);
        struct json_str s;
        assert_true(json_string(&t.j, &s));
        assert_int_equal(s.raw.n, n);
        assert_false(s.escaped);
        assert_ptr_equal(t.j.p, t.j.end);
        free(t.buf);
        t = open_bytes(buf, n + 1); /* the quote is missing */
        assert_false(json_string(&t.j, &s));
        assert_true(t.j.bad);
        free(t.buf);
    }
}

static void raw_control_characters_are_text(void **state) {
    (void)state;
    struct text t = open_bytes("\"a\n\x01\tb\"", 7);
    struct json_str s;
    assert_true(json_string(&t.j, &s));
    assert_int_equal(s.raw.n, 5);
    free(t.buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals_are_kept_exactly),
        cmocka_unit_test(long_and_exponent_numbers_become_floats),
        cmocka_unit_test(what_is_no_number_is_none),
        cmocka_unit_test(a_number_as_integer_is_cut_not_rounded),
        cmocka_unit_test(an_object_is_walked_key_by_key),
        cmocka_unit_test(commas_too_many_are_counted),
        cmocka_unit_test(a_cut_is_bad_and_stops_at_the_end),
        cmocka_unit_test(skipping_equals_a_plain_walk),
        cmocka_unit_test(nesting_of_any_depth_is_skipped),
        cmocka_unit_test(escapes_are_undone),
        cmocka_unit_test(bad_escapes_are_mended_and_counted),
        cmocka_unit_test(strings_end_at_their_quote_wherever_it_stands),
        cmocka_unit_test(raw_control_characters_are_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
