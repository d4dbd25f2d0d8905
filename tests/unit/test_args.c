/* SPDX-License-Identifier: Apache-2.0
 * Arguments of JSON events, read when asked for. */
#include "feed.h"

#include "model/args.h"

static struct feed with_args(const char *args) {
    char text[1024];
    snprintf(text, sizeof text,
             "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,"
             "\"tid\":1,\"args\":%s},{\"ph\":\"X\",\"name\":\"b\",\"ts\":5,"
             "\"dur\":1,\"pid\":1,\"tid\":1}]",
             args);
    return feed_text(text);
}

static void every_type_is_told(void **state) {
    (void)state;
    struct feed f = with_args(
        "{\"i\":-5,\"f\":2.5,\"e\":1e3,\"s\":\"te\\\"xt\",\"t\":true,"
        "\"l\":[1,{\"x\":2}],\"n\":null,\"big\":18446744073709551615}");
    row_id a = feed_row(&f, "a");
    assert_int_equal(args_get(f.t, a, "i").i, -5);
    assert_int_equal(args_get(f.t, a, "i").type, ARG_INT);
    assert_true(args_get(f.t, a, "f").f == 2.5);
    assert_int_equal(args_get(f.t, a, "e").type, ARG_FLOAT);
    struct arg s = args_get(f.t, a, "s");
    assert_int_equal(s.type, ARG_TEXT);
    assert_true(s.escaped);
    assert_int_equal(args_get(f.t, a, "t").type, ARG_BOOL);
    struct arg l = args_get(f.t, a, "l");
    assert_int_equal(l.type, ARG_JSON);
    assert_memory_equal(l.text.p, "[1,{\"x\":2}]", l.text.n);
    assert_int_equal(args_get(f.t, a, "n").type, ARG_NONE);
    struct arg big = args_get(f.t, a, "big"); /* a double would round it */
    assert_int_equal(big.type, ARG_UINT);
    assert_true(big.u == UINT64_MAX);
    assert_int_equal(args_get(f.t, a, "x").type, ARG_NONE); /* inner key */
    assert_int_equal(args_get(f.t, feed_row(&f, "b"), "i").type, ARG_NONE);
    feed_free(&f);
}

static void integers_come_from_any_spelling(void **state) {
    (void)state;
    struct feed f = with_args("{\"i\":7,\"s\":\"42\",\"f\":3.9,\"w\":\"no\","
                              "\"t\":true,\"h\":1e30,\"l\":[]}");
    row_id a = feed_row(&f, "a");
    assert_int_equal(args_int(f.t, a, "i", -1), 7);
    assert_int_equal(args_int(f.t, a, "s", -1), 42);
    assert_int_equal(args_int(f.t, a, "f", -1), 3);
    assert_int_equal(args_int(f.t, a, "t", -1), 1);
    assert_int_equal(args_int(f.t, a, "w", -1), -1);
    assert_int_equal(args_int(f.t, a, "h", -1), -1);
    assert_int_equal(args_int(f.t, a, "l", -1), -1);
    assert_int_equal(args_int(f.t, a, "none", -1), -1);
    feed_free(&f);
}

static bool count(void *ctx, struct bytes key, const struct arg *a) {
    (void)key;
    (void)a;
    return ++*(int *)ctx < 3;
}

static void walking_stops_when_told(void **state) {
    (void)state;
    struct feed f = with_args("{\"a\":1,\"b\":2,\"c\":3,\"d\":4}");
    int n = 0;
    args_each(f.t, feed_row(&f, "a"), count, &n);
    assert_int_equal(n, 3);
    feed_free(&f);
}

static void damaged_arguments_end_the_walk(void **state) {
    (void)state;
    static const char *const v[] = {
        "{\"a\":1,\"b\"}",    "{\"a\":1,\"b\":}", "{\"a\":1 b}", "{\"a\":1,[]}",
        "{\"a\":1,\"b\"::2}", "{\"a\":1,,}",      "{}",          "{\"a\":[}",
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct feed f = with_args(v[i]);
        int n = 0;
        args_each(f.t, feed_row(&f, "a"), count, &n);
        assert_true(n <= 2);
        assert_int_equal(args_get(f.t, feed_row(&f, "a"), "z").type, ARG_NONE);
        feed_free(&f);
    }
}

static void arguments_that_are_no_object_are_none(void **state) {
    (void)state;
    static const char *const v[] = {"[1]", "5", "\"x\"", "null"};
    for (size_t i = 0; i < 4; i++) {
        struct feed f = with_args(v[i]);
        int n = 0;
        args_each(f.t, feed_row(&f, "a"), count, &n);
        assert_int_equal(n, 0);
        feed_free(&f);
    }
}

struct object {
    struct sink s;
    bool json;
};

static bool put_one(void *ctx, struct bytes key, const struct arg *a) {
    struct object *o = ctx;
    sink_write(&o->s, key.p, key.n);
    sink_putc(&o->s, '=');
    args_put_json(&o->s, a, o->json);
    sink_putc(&o->s, '\n');
    return true;
}

/* What is not JSON by the letter goes out as a string; no raw byte passes. */
static void arguments_go_out_as_json(void **state) {
    (void)state;
    struct feed f = with_args(
        "{\"i\":-5,\"big\":18446744073709551615,\"f\":2.50,\"h\":1e999,"
        "\"t\":true,\"n\":null,\"l\":[1,{\"x\":2}],\"odd\":[01,\"\x1b\xff\"],"
        "\"o\":{x:1},\"s\":\"q\\\"\\q\x9b\"}");
    row_id a = feed_row(&f, "a");
    struct object o = {.json = args_are_json(f.t, a)};
    sink_memory(&o.s);
    args_each(f.t, a, put_one, &o);
    sink_putc(&o.s, '\0');
    assert_true(o.json);
    assert_string_equal(o.s.buf,
                        "i=-5\nbig=18446744073709551615\nf=2.5\nh=null\n"
                        "t=true\nn=null\nl=[1,{\"x\":2}]\n"
                        "odd=\"[01,\\\"\\u001b\\ufffd\\\"]\"\n"
                        "o=\"{x:1}\"\ns=\"q\\\"\\\\q\\ufffd\"\n");
    sink_free(&o.s);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_told),
        cmocka_unit_test(integers_come_from_any_spelling),
        cmocka_unit_test(walking_stops_when_told),
        cmocka_unit_test(damaged_arguments_end_the_walk),
        cmocka_unit_test(arguments_that_are_no_object_are_none),
        cmocka_unit_test(arguments_go_out_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
