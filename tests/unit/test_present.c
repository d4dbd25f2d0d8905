/* SPDX-License-Identifier: Apache-2.0
 * One result in every form: numbers to the digit, hostile names, widths. */
#include "base/text/number.h"
#include "model/columns.h"
#include "present/present.h"
#include "present/width.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Returns a sink's contents as a string that the caller frees. */
static char *taken(struct sink *s) {
    sink_putc(s, '\0');
    char *text = strdup(s->buf);
    sink_free(s);
    return text;
}

static char *as_json(const struct result *r) {
    struct sink s;
    sink_memory(&s);
    presenter_json.put(r, NULL, &s);
    return taken(&s);
}

static char *as_csv(const struct result *r) {
    struct sink s;
    sink_memory(&s);
    presenter_csv.put(r, NULL, &s);
    return taken(&s);
}

static char *as_text(const struct result *r, struct text_style st) {
    struct sink s;
    sink_memory(&s);
    presenter_text.put(r, &st, &s);
    return taken(&s);
}

static void cols(struct result *r) {
    static const struct column v[] = {
        {"name", NULL, NULL, "Its name.", COL_TEXT, COL_KEY | COL_SYMBOL},
        {"calls", NULL, NULL, NULL, COL_INT, 0},
        {"total_us", "total", "us", NULL, COL_TIME, COL_MAIN},
        {"mean_us", NULL, "us", NULL, COL_TIME, COL_MEAN},
        {"bytes", NULL, "bytes", NULL, COL_BYTES, COL_SIZE},
        {"share_pct", "share", "%", NULL, COL_PERCENT, COL_BAR},
        {"tensor_core", NULL, NULL, NULL, COL_BOOL, COL_DETAIL},
    };
    result_init(r, "ops", "Operations");
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) result_col(r, v[i]);
}

static void row(struct result *r, const char *name, int64_t calls, int64_t ps,
                int64_t bytes, double share) {
    result_row(r);
    cell_text(r, "name", name);
    cell_int(r, "calls", calls);
    cell_int(r, "total_us", ps);
    if (calls > 0) cell_int(r, "mean_us", ps / calls);
    if (bytes >= 0) cell_int(r, "bytes", bytes);
    cell_float(r, "share_pct", share);
    cell_bool(r, "tensor_core", calls > 1);
}

static void microseconds_are_printed_by_integers(void **state) {
    (void)state;
    char b[NUMBER_MAX];
    assert_string_equal(number_us(318402000, 3, b), "318.402");
    assert_string_equal(number_us(1, 6, b), "0.000001");
    assert_string_equal(number_us(-1500000, 3, b), "-1.500");
    assert_string_equal(number_us(1999999, 0, b), "2");
    assert_string_equal(number_us(-1, 3, b), "0.000");
    /* 2^53 us and a bit: a double would lose the last digits */
    assert_string_equal(number_us(INT64_C(9007199254740993123), 6, b),
                        "9007199254740.993123");
    assert_string_equal(number_us(INT64_MIN, 6, b), "-9223372036854.775808");
}

static void floats_read_back_the_same(void **state) {
    (void)state;
    static const double v[] = {0.1, 1.0 / 3, 1e300, 5e-324, 12, -2.5};
    char b[NUMBER_MAX];
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        assert_true(strtod(number_float(v[i], b), NULL) == v[i]);
    assert_string_equal(number_float(0.1, b), "0.1");
    assert_string_equal(number_float(12, b), "12");
}

static void people_get_units(void **state) {
    (void)state;
    char b[48];
    assert_string_equal(human_time(1234567890, b, sizeof b), "1.23 ms");
    assert_string_equal(human_time(0, b, sizeof b), "0");
    assert_string_equal(human_time(999, b, sizeof b), "999 ps");
    assert_string_equal(human_time(INT64_C(123456789000000), b, sizeof b),
                        "123.5 s");
    assert_string_equal(human_times(INT64_C(1210000000), INT64_C(2100000000), b,
                                    sizeof b),
                        "1.21 to 2.10 ms");
    assert_string_equal(human_times(40000000, INT64_C(2100000000), b, sizeof b),
                        "0.04 to 2.10 ms");
    assert_string_equal(human_times(1000000, 1000000, b, sizeof b), "1.00 µs");
    assert_string_equal(human_times(0, 0, b, sizeof b), "0");
    assert_string_equal(human_time(-2000000, b, sizeof b), "-2.00 µs");
    assert_string_equal(human_bytes(1610612736, b, sizeof b), "1.50 GiB");
    assert_string_equal(human_bytes(1023, b, sizeof b), "1023 B");
}

static void what_is_not_zero_never_looks_like_zero(void **state) {
    (void)state;
    char b[NUMBER_MAX];
    struct scale ms = scale_time(UINT64_C(20000000000), "us");
    assert_string_equal(ms.name, "ms");
    assert_string_equal(number_scaled(400000, ms, b), "<0.001");
    assert_string_equal(number_scaled(0, ms, b), "0.000");
    assert_string_equal(number_scaled(600000, ms, b), "0.001");
}

static void json_has_the_shape_of_the_interface(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    row(&r, "aten::mm", 12, 318402000, INT64_C(1) << 60, 12.5);
    result_missing(&r, "device memory", "off", "turn on");
    result_remark(&r, "one \"remark\"");
    result_top(&r, 1);
    char *s = as_json(&r);
    /* clang-format off */
    static const char *const keys[] = {
        "{\"opscope\": \"", "\"analysis\": \"ops\"", "\"sources\": [",
        "\"columns\": [", "{\"name\": \"total_us\", \"type\": \"time\", "
        "\"unit\": \"us\", \"help\": null}", "\"rows\": [",
        "[\"aten::mm\", 12, 318.402, 26.533500, \"1152921504606846976\", "
        "12.5, true]", "\"total_rows\": 1", "\"remarks\": [",
        "\"one \\\"remark\\\"\"", "\"missing\": [", "{\"what\": \"device "
        "memory\", \"why\": \"off\", \"fix\": \"turn on\"}", "\"notes\": [",
    };
    /* clang-format on */
    const char *at = s;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        at = strstr(at, keys[i]);
        if (at == NULL) fail_msg("missing or out of order: %s\n%s", keys[i], s);
    }
    free(s);
    result_free(&r);
}

static void json_escapes_hostile_names(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    row(&r,
        "a\"\\\n\x01\x1b[31m\xff"
        "é",
        0, 0, -1, 0);
    char *s = as_json(&r);
    assert_non_null(strstr(s, "\"a\\\"\\\\\\n\\u0001\\u001b[31m\ufffdé\""));
    assert_non_null(strstr(s, "0.000, null, null, 0, false]"));
    free(s);
    result_free(&r);
}

static void csv_follows_the_rfc(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    row(&r, "a,\"b\"\nc", 2, 3000000, -1, 1);
    row(&r, "", 1, 1000000, 5, 0);
    char *s = as_csv(&r);
    assert_string_equal(
        s, "name,calls,total_us,mean_us,bytes,share_pct,tensor_core\r\n"
           "\"a,\"\"b\"\"\nc\",2,3.000,1.500000,,1,true\r\n"
           "\"\",1,1.000,1.000000,5,0,false\r\n");
    free(s);
    result_free(&r);
}

/* Returns one cell of a text as CSV, without the line's end. */
static char *csv_cell(const char *text) {
    struct result r;
    result_init(&r, "x", "X");
    result_col(&r, (struct column){"name", NULL, NULL, NULL, COL_TEXT, 0});
    result_row(&r);
    cell_text(&r, "name", text);
    char *s = as_csv(&r);
    size_t n = strlen(s);
    assert_memory_equal(s + n - 2, "\r\n", 2);
    s[n - 2] = '\0';
    memmove(s, s + 6, n - 7); /* name CR LF */
    result_free(&r);
    return s;
}

static void csv_is_no_formula_and_steers_nothing(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const cases[][2] = {
        {"aten::mm", "aten::mm"},
        {"=1+1", "'=1+1"},
        {"-[NSString x]", "'-[NSString x]"},
        {"@x", "'@x"},
        {"+1", "'+1"},
        {"＝1", "'＝1"},
        {"'=1", "''=1"},
        {"'quoted'", "'quoted'"},
        {" =1", "' =1"},
        {"a=1", "a=1"},
        {"main;=1+1;-f", "main;'=1+1;'-f"},
        {"\tx", "\"\\u0009x\""},
        {"a\tb\nc", "\"a\tb\nc\""},
        {"\r=1", "\\u000d=1"},
        {"\033[31m\a", "\\u001b[31m\\u0007"},
        {"\xc2\x9b" "2J", "\\u009b2J"},
        {"\xe2\x80\xae", "\\u202e"},
        {"\xf3\xa0\x81\x81", "\\udb40\\udc41"},
        {"\xff" "é", "\xef\xbf\xbd" "é"},
        {"C:\\users", "C:\\users"},
        {"C:\\u001b", "C:\\u005cu001b"},
        {"a,\"=1", "\"a,\"\"=1\""},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *s = csv_cell(cases[i][0]);
        assert_string_equal(s, cases[i][1]);
        free(s);
    }
}

static void json_escapes_what_deceives(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    row(&r, "\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\xef\xbf\xbe\x7f", 0, 0, -1,
        0);
    char *s = as_json(&r);
    assert_non_null(
        strstr(s, "\"\\u009b\\u202e\\udb40\\udc41\\ufffe\\u007f\""));
    free(s);
    result_free(&r);
}

/* One long name pads no other row, and none is cut. */
static void a_wide_cell_stands_out(void **state) {
    (void)state;
    struct result r;
    char *name = malloc(300001);
    memset(name, 'x', 300000);
    name[300000] = '\0';
    cols(&r);
    row(&r, name, 1, 1000000, 1, 1);
    for (int i = 0; i < 50; i++) row(&r, "short", 1, 1000000, 1, 1);
    char *s = as_text(&r, (struct text_style){.width = 0});
    assert_non_null(strstr(s, name));
    assert_true(strlen(s) < 400000);
    free(s);
    free(name);
    result_free(&r);
}

static void text_aligns_and_names_its_units(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    row(&r, "aten::mm", 12, 318402000, 2048, 75);
    row(&r, "日本", 3, 1200000, -1, 25);
    struct text_style st = {.unicode = true, .quiet = true};
    char *s = as_text(&r, st);
    assert_string_equal(
        s, "name      calls  total µs  mean µs  size B  share %\n"
           "aten::mm     12   318.402   26.534    2048     75.0 ███████▌\n"
           "日本          3     1.200    0.400       -     25.0 ██▌\n");
    free(s);
    st = (struct text_style){.quiet = true};
    s = as_text(&r, st);
    assert_non_null(strstr(s, "75.0 ########"));
    assert_non_null(strstr(s, "total us"));
    free(s);
    result_free(&r);
}

static void text_says_what_was_cut_and_what_is_missing(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    for (int i = 0; i < 3; i++) row(&r, "x", i + 1, 5000000, 10, 1);
    result_top(&r, 2);
    result_remark(&r, "read me");
    result_missing(&r, "memory", "it was off", "switch it on");
    char *s = as_text(&r, (struct text_style){.width = 100});
    assert_true(strncmp(s, "Operations\n", 11) == 0);
    assert_non_null(strstr(s, "2 of 3 rows; --top 0 shows all\n"));
    assert_non_null(strstr(s, "read me\n"));
    assert_non_null(
        strstr(s, "not recorded: memory: it was off; switch it on\n"));
    assert_null(strstr(s, "\033["));
    assert_null(strstr(s, "tensor"));
    free(s);
    s = as_text(&r, (struct text_style){.color = true, .detail = true});
    assert_non_null(strstr(s, "\033[1m"));
    assert_non_null(strstr(s, "tensor core"));
    free(s);
    result_free(&r);
}

/* Returns the width of the widest line of a text. */
static size_t widest(const char *s) {
    size_t most = 0;
    while (*s != '\0') {
        char line[1024];
        size_t n = strcspn(s, "\n");
        assert_true(n < sizeof line);
        memcpy(line, s, n);
        line[n] = '\0';
        if (text_width(line) > most) most = text_width(line);
        s += n + (s[n] == '\n');
    }
    return most;
}

static void text_fits_any_width(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    row(&r,
        "void at::native::vectorized_elementwise_kernel<4, at::native::"
        "FillFunctor<int>, std::array<char*, 1ul> >(int, "
        "at::native::FillFunctor<int>, std::array<char*, 1ul>)",
        12, 318402000, 2048, 75);
    row(&r, "a name of some length that is not C++ at all, only long", 3,
        INT64_C(1200000000000), 7, 25);
    for (int w = 40; w <= 220; w++) {
        for (int unicode = 0; unicode < 2; unicode++) {
            struct text_style st = {.width = w, .unicode = unicode};
            char *s = as_text(&r, st);
            if (widest(s) > (size_t)w) fail_msg("width %d:\n%s", w, s);
            assert_non_null(strstr(s, "name"));
            assert_non_null(strstr(s, "total"));
            free(s);
        }
    }
    result_free(&r);
}

/* Returns the depth that a line of a tree shows, of a tree whose level is that
 * many blanks: by its number, else by its blanks. */
static size_t depth_shown(const char *line, size_t level) {
    size_t blanks = strspn(line, " ");
    return line[blanks] == '[' ? (size_t)atoi(line + blanks + 1)
                               : blanks / level;
}

static void every_depth_of_a_tree_is_told(void **state) {
    (void)state;
    static const size_t deepest[] = {3, 12, 25, 70};
    static const int widths[] = {0, 30, 40, 60, 80, 100, 120, 200};
    for (size_t k = 0; k < 4; k++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            struct result r;
            result_init(&r, "tree", "Tree");
            result_col(&r, (struct column){"name", "scope", NULL, "", COL_TEXT,
                                           COL_KEY | COL_INDENT});
            result_col(&r, (struct column){"depth", NULL, NULL, "", COL_INT,
                                           COL_DETAIL});
            result_col(&r, (struct column){"total_us", "total", "us", "",
                                           COL_TIME, COL_MAIN});
            r.in_order = true;
            for (size_t i = 0; i <= deepest[k]; i++) {
                result_row(&r);
                cell_text(&r, "name",
                          i % 3 ? "torch/nn/modules/module.py(1782): _call_impl"
                                : "short");
                cell_int(&r, "depth", (int64_t)i);
                cell_int(&r, "total_us", (int64_t)(1000 - i) * 1000000);
            }
            struct ops_err e;
            assert_int_equal(result_done(&r, &e), 0);
            struct text_style st = {.width = widths[w], .unicode = true};
            char *s = as_text(&r, st);
            if (widths[w] > 0 && widest(s) > (size_t)widths[w])
                fail_msg("width %d:\n%s", widths[w], s);
            const char *line = strstr(s, "\nshort");
            assert_non_null(line);
            line++;
            const char *second = strchr(line, '\n') + 1;
            size_t level = strspn(second, " ");
            if (level == 0) level = 1;
            for (size_t i = 0; i <= deepest[k]; i++) {
                if (depth_shown(line, level) != i)
                    fail_msg("width %d, depth %zu:\n%s", widths[w], i, s);
                line = strchr(line, '\n') + 1;
            }
            free(s);
            result_free(&r);
        }
}

static char *fitted(const char *name, size_t width) {
    struct sink s;
    sink_memory(&s);
    symbol_put_fit(&s, name, width, "…");
    return taken(&s);
}

/* A column in which nothing is was never counted in nanoseconds. */
static void zeros_are_microseconds(void **state) {
    (void)state;
    assert_string_equal(scale_time(0, "us").name, "us");
    assert_string_equal(scale_time(1, "us").name, "ns");
}

/* Names of functions of C all begin alike: the name itself is kept. */
static void builtins_keep_their_name(void **state) {
    (void)state;
    static const char name[] =
        "<built-in method run_backward of torch._C._EngineBase object>";
    static const struct {
        size_t width;
        const char *want;
    } cases[] = {
        {28, "<…run_backward of…se object>"},
        {20, "<…run_backwar…bject>"},
        {100, name},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sink s;
        sink_memory(&s);
        text_put_fit(&s, name, cases[i].width, "…");
        char *got = taken(&s);
        assert_string_equal(got, cases[i].want);
        free(got);
    }
}

static void symbols_lose_what_tells_least_first(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t width;
        const char *want;
    } cases[] = {
        {"f<a, g<b, c>>(int)", 18, "f<a, g<b, c>>(int)"},
        {"f<a, g<b, c>>(int)", 17, "f<a, g<b, c>>"},
        {"f<a, g<b, cc>>(int)", 10, "f<a, g<…>>"},
        {"void ns::f<x::a, y::g<b>>(int)", 18, "ns::f<a, g<b>>"},
        {"void ns::f<x::a, y::g<b>>(int)", 11, "f<a, g<b>>"},
        {"x::operator<<(ostream, thing)", 20, "x::operator<<"},
        {"k<(anonymous namespace)::functor>", 16, "k<functor>"},
        {"kernel_of_length<4, Fill<int>, Array<char*, 1>>", 40,
         "kernel_of_length<4, Fill<…>, Array<…>>"},
        {"kernel_of_length<4, Fill<int>, Array<char*, 1>>", 34,
         "kernel_of_length<4, …>, Array<…>>"},
        {"unbalanced<<<", 8, "unbal…<<"},
        {"g()", 2, "g"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *s = fitted(cases[i].name, cases[i].width);
        assert_string_equal(s, cases[i].want);
        assert_true(text_width(s) <= cases[i].width);
        free(s);
    }
}

static void names_cannot_steer_the_terminal(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    row(&r, "evil\033[2J\r\n\x9b\xe2\x80\xae", 1, 1000000, 1, 1);
    char *s = as_text(&r, (struct text_style){.unicode = true});
    assert_null(strchr(s, '\033'));
    assert_null(strchr(s, '\r'));
    assert_null(strstr(s, "\xe2\x80\xae"));
    assert_non_null(strstr(s, "evil?[2J??\ufffd?"));
    free(s);
    result_free(&r);
}

static void an_empty_result_has_every_form(void **state) {
    (void)state;
    struct result r;
    cols(&r);
    char *s = as_text(&r, (struct text_style){0});
    assert_non_null(strstr(s, "(no rows)"));
    free(s);
    s = as_json(&r);
    assert_non_null(strstr(s, "\"rows\": [], \"total_rows\": 0"));
    free(s);
    s = as_csv(&r);
    assert_string_equal(
        s, "name,calls,total_us,mean_us,bytes,share_pct,tensor_core\r\n");
    free(s);
    result_free(&r);
}

/* Long texts go on under their first line, or stand below their row. */
static void texts_wrap(void **state) {
    (void)state;
    struct result r;
    result_init(&r, "facts", "Facts");
    result_col(&r, (struct column){"id", NULL, NULL, NULL, COL_TEXT, COL_KEY});
    result_col(&r, (struct column){"text", "", NULL, NULL, COL_TEXT, COL_WRAP});
    result_col(&r,
               (struct column){"why", NULL, NULL, NULL, COL_TEXT, COL_BELOW});
    result_row(&r);
    cell_text(&r, "id", "a");
    cell_text(&r, "text", "one two three four five six seven eight nine ten");
    cell_text(&r, "why", "because it is so and not otherwise, as all agree");
    char *got = as_text(&r, (struct text_style){.width = 40});
    assert_non_null(strstr(got, "a   one two three four five six seven\n"
                                "    eight nine ten\n"
                                "    why      because it is so and not\n"
                                "             otherwise, as all agree\n"));
    free(got);
    char *json = as_json(&r);
    assert_non_null(strstr(json, "seven eight nine ten"));
    free(json);
    result_free(&r);
}

/* Returns the CPU time that a word of n letters takes, each of two bytes; every
 * one of them is shown. */
static double wrap_cost(size_t n) {
    struct result r;
    char *word = malloc(2 * n + 1);
    for (size_t i = 0; i < n; i++) memcpy(word + 2 * i, "\xc3\xa9", 2);
    word[2 * n] = '\0';
    result_init(&r, "facts", "Facts");
    result_col(&r, (struct column){"text", "", NULL, NULL, COL_TEXT, COL_WRAP});
    result_row(&r);
    cell_text(&r, "text", word);
    clock_t start = clock();
    char *got = as_text(&r, (struct text_style){.width = 80});
    clock_t end = clock();
    size_t shown = 0;
    for (const char *p = got; *p != '\0'; p++)
        shown += memcmp(p, "\xc3\xa9", 2) == 0;
    assert_int_equal(shown, n);
    free(got);
    free(word);
    result_free(&r);
    return (double)(end - start) / CLOCKS_PER_SEC;
}

/* A word of a megabyte is not measured again for each of its lines: 16 times as
 * long takes 16 times as long, not 256 times. */
static void long_words_wrap_in_proportion(void **state) {
    (void)state;
    double ratio = 1e9;
    for (int i = 0; i < 5 && ratio > 64; i++)
        ratio = wrap_cost(160000) / (wrap_cost(10000) + 0.001);
    assert_true(ratio <= 64);
}

/* Parts of a whole have its unit. */
static void parts_in_one_unit(void **state) {
    (void)state;
    struct result r;
    result_init(&r, "steps", "Steps");
    r.one_unit = true;
    result_col(&r, (struct column){"dur_us", NULL, "us", NULL, COL_TIME, 0});
    result_col(&r, (struct column){"host_us", NULL, "us", NULL, COL_TIME, 0});
    result_row(&r);
    cell_int(&r, "dur_us", INT64_C(20000000000));
    cell_int(&r, "host_us", INT64_C(15000000));
    char *got = as_text(&r, (struct text_style){.width = 0});
    assert_non_null(strstr(got, "dur ms  host ms"));
    assert_non_null(strstr(got, "0.015"));
    free(got);
    result_free(&r);
}

/* Is no line of the text wider than the screen? */
static void assert_fits(const char *s, size_t width) {
    for (size_t n; *s != '\0'; s += n + (s[n] == '\n')) {
        n = strcspn(s, "\n");
        if (text_width_n(s, n) > width)
            fail_msg("over %zu columns: %.*s", width, (int)n, s);
    }
}

/* A table as `steps` is: parts of a whole, an answer, what is less. */
static void parts(struct result *r) {
    static const struct column v[] = {
        {"step", NULL, NULL, NULL, COL_INT, COL_ANSWER},
        {"start_us", "start", "us", NULL, COL_TIME, COL_LESS},
        {"dur_us", "step time", "us", NULL, COL_TIME, COL_MAIN},
        {"compute_us", "compute", "us", NULL, COL_TIME, COL_PART},
        {"copy_us", "copy", "us", NULL, COL_TIME, COL_PART},
        {"host_us", "host", "us", NULL, COL_TIME, COL_PART},
        {"device", NULL, NULL, NULL, COL_TEXT, 0},
        {"extra", NULL, NULL, NULL, COL_INT, 0},
        {"straggler", NULL, NULL, NULL, COL_BOOL, COL_ANSWER},
        {"none", NULL, NULL, NULL, COL_INT, COL_DETAIL},
    };
    result_init(r, "steps", "Steps: how long each took, and where it went");
    result_cols(r, v, sizeof v / sizeof *v);
    for (int64_t i = 0; i < 2; i++) {
        result_row(r);
        cell_int(r, "step", i);
        cell_int(r, "start_us", 1000000 * i);
        cell_int(r, "dur_us", 7000000 + i);
        cell_int(r, "compute_us", 3000000);
        cell_int(r, "copy_us", 1000 + i);
        cell_int(r, "host_us", 4000000 + i);
        cell_text(r, "device", "GPU 0");
        cell_int(r, "extra", 123456 + i);
        cell_bool(r, "straggler", i == 1);
    }
}

static void what_says_least_goes_first(void **state) {
    (void)state;
    struct result r;
    parts(&r);
    struct text_style st = {.width = 100};
    char *s = as_text(&r, st);
    assert_null(strstr(s, "not shown"));
    assert_non_null(strstr(s, "device"));
    free(s);
    st.width = 70; /* the same everywhere: said once */
    s = as_text(&r, st);
    assert_fits(s, 70);
    assert_non_null(strstr(s, "in every row: compute 3 us, device GPU 0\n"));
    assert_null(strstr(s, "not shown"));
    assert_non_null(strstr(s, "step time us"));
    free(s);
    st.width = 50; /* headings take two lines, then what is less goes */
    s = as_text(&r, st);
    assert_fits(s, 50);
    assert_non_null(strstr(s, "time us"));
    assert_null(strstr(s, "step time us"));
    assert_non_null(strstr(s, "not shown: start_us (-v"));
    free(s);
    st.width = 42; /* then the small part, and the answer stays */
    s = as_text(&r, st);
    assert_fits(s, 42);
    assert_non_null(strstr(s, "not shown: start_us, copy_us"));
    assert_non_null(strstr(s, "straggler"));
    assert_non_null(strstr(s, "host"));
    free(s);
    result_free(&r);
}

static void verbose_shows_every_column(void **state) {
    (void)state;
    struct result r;
    parts(&r);
    for (int width = 24; width < 120; width += 7) {
        char *s = as_text(&r,
                          (struct text_style){.width = width, .detail = true});
        assert_fits(s, (size_t)width);
        assert_null(strstr(s, "not shown"));
        for (size_t c = 0; c + 1 < r.ncols; c++) {
            char name[48];
            column_heading(&r.cols[c], name, sizeof name);
            name[strcspn(name, " ")] = '\0'; /* it may stand in two lines */
            if (strstr(s, name) == NULL)
                fail_msg("%d: no %s\n%s", width, name, s);
        }
        assert_true(strstr(s, "none") != NULL);
        assert_true(strstr(s, "123457") != NULL);
        free(s);
    }
    result_free(&r);
}

static void what_was_asked_for_stands_under_its_row(void **state) {
    (void)state;
    struct result r;
    struct ops_err e;
    parts(&r);
    assert_int_equal(result_choose(&r, "extra,none,dur_us,host,start", &e), 0);
    char *s = as_text(&r, (struct text_style){.width = 24});
    assert_fits(s, 24);
    assert_non_null(strstr(s, " extra "));
    assert_non_null(strstr(s, "no value in any row:\n  none"));
    assert_non_null(strstr(s, "\n    start 1 us\n"));
    free(s);
    s = as_text(&r, (struct text_style){.width = 0});
    assert_non_null(strstr(s, " extra  none  step time us  host us  start"));
    free(s);
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(microseconds_are_printed_by_integers),
        cmocka_unit_test(floats_read_back_the_same),
        cmocka_unit_test(people_get_units),
        cmocka_unit_test(what_is_not_zero_never_looks_like_zero),
        cmocka_unit_test(json_has_the_shape_of_the_interface),
        cmocka_unit_test(json_escapes_hostile_names),
        cmocka_unit_test(csv_follows_the_rfc),
        cmocka_unit_test(csv_is_no_formula_and_steers_nothing),
        cmocka_unit_test(json_escapes_what_deceives),
        cmocka_unit_test(a_wide_cell_stands_out),
        cmocka_unit_test(text_aligns_and_names_its_units),
        cmocka_unit_test(text_says_what_was_cut_and_what_is_missing),
        cmocka_unit_test(text_fits_any_width),
        cmocka_unit_test(every_depth_of_a_tree_is_told),
        cmocka_unit_test(zeros_are_microseconds),
        cmocka_unit_test(builtins_keep_their_name),
        cmocka_unit_test(symbols_lose_what_tells_least_first),
        cmocka_unit_test(names_cannot_steer_the_terminal),
        cmocka_unit_test(an_empty_result_has_every_form),
        cmocka_unit_test(texts_wrap),
        cmocka_unit_test(long_words_wrap_in_proportion),
        cmocka_unit_test(parts_in_one_unit),
        cmocka_unit_test(what_says_least_goes_first),
        cmocka_unit_test(verbose_shows_every_column),
        cmocka_unit_test(what_was_asked_for_stands_under_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
