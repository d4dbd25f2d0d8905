/* SPDX-License-Identifier: Apache-2.0
 * Chrome traces: every phase, everything that writers break, and the same
 * result whether one thread reads the file or several. */
#include "feed.h"

#include "ring/sanitized.h"

#include <time.h>

#define X(name, ts, dur)                                                       \
    "{\"name\":\"" name "\",\"ph\":\"X\",\"ts\":" ts ",\"dur\":" dur           \
    ",\"pid\":1,\"tid\":1}"
#define B(name, ts, tid)                                                       \
    "{\"name\":\"" name "\",\"ph\":\"B\",\"ts\":" ts ",\"pid\":1,\"tid\":" tid \
    "}"
#define E(ts, tid) "{\"ph\":\"E\",\"ts\":" ts ",\"pid\":1,\"tid\":" tid "}"

static void an_object_or_a_bare_list_will_do(void **state) {
    (void)state;
    static const char *const v[] = {
        "{\"traceEvents\":[" X("a", "1", "2") "]}",
        "[" X("a", "1", "2") "]",
        "\xef\xbb\xbf[" X("a", "1", "2") "]",
        "\r\n[\r\n" X("a", "1", "2") "\r\n]\r\n",
        "[" X("a", "1", "2") ",]",
        "[" X("a", "1", "2") ",{}]",
        "{\"other\":{\"traceEvents\":[]},\"traceEvents\":[" X("a", "1",
                                                              "2") "],}",
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" X("a", "1", "2") "]}",
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct feed f = feed_text(v[i]);
        assert_int_equal(f.t->spans.n, 1);
        feed_check(&f, "a", PS_PER_US, 2 * PS_PER_US);
        assert_int_equal(f.t->notes[NOTE_FILE_CUT], 0);
        assert_int_equal(f.t->notes[NOTE_BAD_EVENT], 0);
        feed_free(&f);
    }
}

static void lists_given_twice_are_both_read(void **state) {
    (void)state;
    struct feed f = feed_text("{\"traceEvents\":[" X(
        "a", "1", "2") "],\"x\":1,\"traceEvents\":[" X("b", "5", "1") "]}");
    assert_int_equal(f.t->spans.n, 2);
    feed_free(&f);
}

static void what_is_no_trace_is_refused_in_words(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const v[] = {
        "", "hello\n", "{}", "[]", "{\"a\":1}", "[1,2,3]",
        "{\"traceEvents\":1}", "{\"traceEvents\":null}", "null", "\"ph\"",
        "{\"traceEvents", "{\"x\":\"traceEvents\"}",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct feed f = feed_bytes(v[i], strlen(v[i]), 1);
        assert_int_equal(f.rc, OPS_EFORMAT);
        assert_true(strlen(f.e.text) > 10);
        feed_free(&f);
    }
}

static void begin_and_end_pair_on_each_thread(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[" B("outer", "0", "1") "," B("other", "1", "2") "," B(
            "inner", "2", "1") "," E("5", "1") "," E("6", "2") "," E("9",
                                                                     "1") "]");
    feed_check(&f, "outer", 0, 9 * PS_PER_US);
    feed_check(&f, "inner", 2 * PS_PER_US, 3 * PS_PER_US);
    feed_check(&f, "other", PS_PER_US, 5 * PS_PER_US);
    assert_int_equal(f.t->spans.parent[feed_row(&f, "inner")],
                     feed_row(&f, "outer"));
    assert_int_equal(f.t->ntracks, 2);
    feed_free(&f);
}

static void an_end_closes_what_began_last_frames_included(void **state) {
    (void)state;
    struct feed f = feed_text("[" B("region", "0", "1") "," B(
        "$m.py:3 f", "1", "1") "," E("4", "1") "," E("9", "1") "]");
    feed_check(&f, "$m.py:3 f", PS_PER_US, 3 * PS_PER_US);
    feed_check(&f, "region", 0, 9 * PS_PER_US);
    feed_free(&f);
}

static void begins_and_ends_alone_are_counted(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[" E("1", "1") "," B("open", "2", "1") "," X("last", "5",
                                                      "5") "," E("3", "7") "]");
    assert_int_equal(f.t->notes[NOTE_UNMATCHED_END], 2);
    assert_int_equal(f.t->notes[NOTE_UNMATCHED_BEGIN], 1);
    feed_check(&f, "open", 2 * PS_PER_US, 8 * PS_PER_US);
    assert_true(f.t->spans.flags[feed_row(&f, "open")] & SPAN_OPEN);
    feed_free(&f);
}

static void an_end_beyond_all_time_leaves_its_span_open(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[" B("open", "-500000000000", "1") "," E("8990000000000", "1") "," X(
            "a", "1", "1") "," X("b", "2", "1") "," X("last", "5", "5") "]");
    assert_int_equal(f.t->notes[NOTE_TIME_OUT_OF_RANGE], 1);
    assert_int_equal(f.t->notes[NOTE_UNMATCHED_BEGIN], 1);
    feed_check(&f, "open", -INT64_C(500000000000) * PS_PER_US,
               INT64_C(500000000010) * PS_PER_US);
    feed_free(&f);
}

static void async_spans_may_have_ids_of_two_parts(void **state) {
    (void)state;
#define A(name, ph, ts, id)                                                    \
    "{\"ph\": \"" ph "\", \"cat\": \"c\", \"name\": \"" name "\", \"ts\": " ts \
    ", \"pid\": 1, \"id2\": {\"local\": \"" id "\"}}"
    struct feed f = feed_text(
        "[" A("one", "b", "0", "0x1") "," A("two", "b", "1", "0x2") "," A(
            "one", "e", "10", "0x1") "," A("two", "e", "30", "0x2") "]");
#undef A
    feed_check(&f, "one", 0, 10 * PS_PER_US);
    feed_check(&f, "two", 1 * PS_PER_US, 29 * PS_PER_US);
    feed_free(&f);
}

static void async_spans_pair_by_category_and_id(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[{\"ph\":\"b\",\"cat\":\"c\",\"id\":1,\"name\":\"one\",\"pid\":1,"
        "\"tid\":1,\"ts\":0},"
        "{\"ph\":\"b\",\"cat\":\"c\",\"id\":2,\"name\":\"two\",\"pid\":1,"
        "\"tid\":2,\"ts\":1},"
        "{\"ph\":\"n\",\"cat\":\"c\",\"id\":1,\"name\":\"point\",\"pid\":1,"
        "\"tid\":1,\"ts\":2},"
        "{\"ph\":\"e\",\"cat\":\"c\",\"id\":1,\"pid\":1,\"tid\":9,\"ts\":5},"
        "{\"ph\":\"e\",\"cat\":\"c\",\"id\":2,\"pid\":1,\"tid\":9,\"ts\":7}]");
    feed_check(&f, "one", 0, 5 * PS_PER_US);
    feed_check(&f, "two", PS_PER_US, 6 * PS_PER_US);
    feed_check(&f, "point", 2 * PS_PER_US, 0);
    assert_int_equal(feed_track(&f, "one")->kind, TRACK_ASYNC);
    assert_int_equal(f.t->notes[NOTE_UNMATCHED_BEGIN], 0);
    feed_free(&f);
}

static void counters_and_instants_and_arrows(void **state) {
    (void)state;
    struct feed f = feed_text("[" X(
        "a", "0",
        "9") ","
             "{\"ph\":\"C\",\"name\":\"mem\",\"pid\":1,\"ts\":3,"
             "\"args\":{\"used\":5.5,\"free\":\"7\",\"why\":\"x\"}},"
             "{\"ph\":\"C\",\"name\":\"none\",\"pid\":1,\"ts\":3,\"args\":{}},"
             "{\"ph\":\"i\",\"name\":\"now\",\"pid\":1,\"tid\":1,\"ts\":4},"
             "{\"ph\":\"s\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":2},"
             "{\"ph\":\"f\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":8},"
             "{\"ph\":\"O\",\"name\":\"snap\",\"pid\":1,\"ts\":1},"
             "{\"ph\":\"?\",\"name\":\"huh\",\"pid\":1,\"ts\":1}]");
    assert_int_equal(f.t->ncounters, 2);
    assert_int_equal(f.t->samples.n, 2);
    assert_true(f.t->samples.value[0] == 5.5);
    assert_true(f.t->spans.flags[feed_row(&f, "now")] & SPAN_INSTANT);
    assert_int_equal(f.t->flows.n, 1);
    assert_int_equal(f.t->notes[NOTE_PHASE_SKIPPED], 1);
    assert_int_equal(f.t->notes[NOTE_BAD_EVENT], 2);
    feed_free(&f);
}

static void a_span_without_duration_is_kept_and_counted(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[{\"name\":\"a\",\"ph\":\"X\",\"ts\":1,\"pid\":1,\"tid\":1}," X(
            "b", "2", "null") "," X("c", "3", "1e400") "," X("d", "4",
                                                             "NaN") "]");
    assert_int_equal(f.t->spans.n, 4);
    assert_int_equal(f.t->notes[NOTE_DURATION_MISSING], 4);
    feed_free(&f);
}

static void times_in_every_spelling(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[" X("quoted", "\"1.5\"", "\"2\"") "," X("exponent", "1e3", "2.5e-1") "," X(
            "zero", "0",
            "0") "," X("negative", "-5",
                       "3") "," X("backwards", "9",
                                  "-4") "," X("fine", "1.000001",
                                              "0.0000005") "," X("plus", "+2",
                                                                 "1") "]");
    feed_check(&f, "quoted", 1500000, 2000000);
    feed_check(&f, "exponent", 1000 * PS_PER_US, 250000);
    feed_check(&f, "zero", 0, 0);
    feed_check(&f, "negative", -5 * PS_PER_US, 3 * PS_PER_US);
    feed_check(&f, "backwards", 9 * PS_PER_US, 0);
    feed_check(&f, "fine", 1000001, 0); /* below a picosecond */
    assert_int_equal(f.t->notes[NOTE_NUMBER_AS_STRING], 2);
    assert_int_equal(f.t->notes[NOTE_NEGATIVE_DURATION], 1);
    feed_free(&f);
}

static void times_that_are_none_are_left_out_and_counted(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[" X("ok", "1", "1") "," X("a", "NaN", "1") "," X("b", "inf", "1") "," X(
            "c", "1e400",
            "1") "," X("d", "-inf",
                       "1") "," X("e", "\"soon\"",
                                  "1") "," X("f", "{}",
                                             "1") "," X("g",
                                                        "9223372036854775807",
                                                        "1") "," X("h",
                                                                   "-9223372036"
                                                                   "854775808",
                                                                   "1") "," X("i",
                                                                              "87000000000"
                                                                              "00",
                                                                              "1") "," X("j",
                                                                                         "1",
                                                                                         "9000000000000") ","
                                                                                                          "{\"name\":\"k\",\"ph\":\"X\",\"dur\":1,\"pid\":1,\"tid\":1}]");
    assert_int_equal(f.t->spans.n, 1);
    assert_int_equal(f.t->notes[NOTE_TIME_MISSING] +
                         f.t->notes[NOTE_TIME_OUT_OF_RANGE],
                     11);
    feed_free(&f);
}

static void ids_may_be_text(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[{\"name\":\"a\",\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":\"p\","
        "\"tid\":\"main\"},"
        "{\"name\":\"b\",\"ph\":\"X\",\"ts\":3,\"dur\":1,\"pid\":\"p\","
        "\"tid\":\"main\"},"
        "{\"name\":\"c\",\"ph\":\"X\",\"ts\":3,\"dur\":1,\"pid\":\"p\","
        "\"tid\":\"other\"},"
        "{\"name\":\"d\",\"ph\":\"X\",\"ts\":5,\"dur\":1,\"pid\":\"12\","
        "\"tid\":12}]");
    assert_ptr_equal(feed_track(&f, "a"), feed_track(&f, "b"));
    assert_ptr_not_equal(feed_track(&f, "a"), feed_track(&f, "c"));
    assert_int_equal(feed_track(&f, "d")->pid, 12);
    feed_free(&f);
}

static void threads_get_the_more_telling_name(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[" X("a", "1",
              "1") ","
                   "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,"
                   "\"args\":{\"name\":\"python3\"}},"
                   "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,"
                   "\"args\":{\"name\":\"stream reader\"}}]");
    assert_string_equal(strs_text(&f.t->strs, feed_track(&f, "a")->name),
                        "stream reader");
    assert_int_equal(f.t->notes[NOTE_DUPLICATE_TRACK_NAME], 1);
    feed_free(&f);
}

static void names_of_any_bytes_are_kept(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[" X("tab\there", "1", "1") "," X("line\nbreak", "3", "1") "," X(
            "bad \\q esc", "5",
            "1") "," X("half \\ud800", "7",
                       "1") "," X("byte \xff", "9",
                                  "1") "," X("bell \x07", "11",
                                             "1") "," X("", "13",
                                                        "1") "," X("\\u0000",
                                                                   "15",
                                                                   "1") "]");
    assert_int_equal(f.t->spans.n, 8);
    assert_int_not_equal(feed_find(&f, "tab\there"), ROW_NONE);
    assert_int_not_equal(feed_find(&f, "line\nbreak"), ROW_NONE);
    assert_int_not_equal(feed_find(&f, "bad q esc"), ROW_NONE);
    assert_int_not_equal(feed_find(&f, "half \xef\xbf\xbd"), ROW_NONE);
    assert_int_not_equal(feed_find(&f, "byte \xef\xbf\xbd"), ROW_NONE);
    /* two escapes, and three names with raw control characters */
    assert_int_equal(f.t->notes[NOTE_JSON_MENDED], 5);
    assert_int_equal(f.t->notes[NOTE_UTF8_MENDED], 2);
    feed_free(&f);
}

/* Some writers escape what need not be: every slash, or all that is not a
 * letter. */
static void escapes_do_not_change_what_a_name_means(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,"
        "\"args\":{\"name\":\"\\/device:GPU:0\"}},"
        "{\"ph\":\"X\",\"name\":\"Memcpy\\u0044toH\",\"ts\":1,\"dur\":1,"
        "\"pid\":2,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"\\u004fp\",\"name\":\"add\",\"ts\":1,"
        "\"dur\":1,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_\\u0065vent\",\"name\":"
        "\"\\u005bmemory]\",\"ts\":1,\"pid\":1,\"tid\":1,\"s\":\"t\","
        "\"args\":{\"Bytes\":64,\"Addr\":1,\"Device Type\":0}}]");
    assert_int_equal(f.t->ndevices, 1);
    assert_int_equal(f.t->spans.kind[feed_row(&f, "MemcpyDtoH")], SPAN_COPY);
    assert_int_equal(f.t->spans.kind[feed_row(&f, "add")], SPAN_OP);
    assert_int_equal(f.t->mem.n, 1);
    feed_free(&f);
}

static void missing_commas_are_counted(void **state) {
    (void)state;
    struct feed f = feed_text("[" X("a", "1", "1") " " X(
        "b", "3",
        "1") ","
             "{\"ph\":\"X\" "
             "\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1}]");
    assert_int_equal(f.t->spans.n, 3);
    assert_int_equal(f.t->notes[NOTE_JSON_MENDED], 2);
    feed_free(&f);
}

static void of_duplicate_keys_the_last_wins(void **state) {
    (void)state;
    struct feed f = feed_text("[{\"name\":\"a\",\"name\":\"b\",\"ph\":\"X\","
                              "\"ts\":1,\"ts\":2,\"dur\":9,\"dur\":3,"
                              "\"pid\":1,\"tid\":1}]");
    feed_check(&f, "b", 2 * PS_PER_US, 3 * PS_PER_US);
    feed_free(&f);
}

/* Returns a list of before, n times open, n times close, after. */
static char *deep(const char *before, const char *open, const char *close,
                  const char *after, size_t n) {
    char *s = malloc(strlen(before) + strlen(after) +
                     n * (strlen(open) + strlen(close)) + 1),
         *p = s;
    assert_non_null(s);
    p = stpcpy(p, before);
    for (size_t i = 0; i < n; i++) p = stpcpy(p, open);
    for (size_t i = 0; i < n; i++) p = stpcpy(p, close);
    stpcpy(p, after);
    return s;
}

static void nesting_ten_thousand_deep_is_passed(void **state) {
    (void)state;
    char *s = deep("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,"
                   "\"tid\":1,\"args\":",
                   "{\"x\":", "}", "}," X("b", "2", "1") "]", 10000);
    /* the innermost value is missing: "x":} */
    struct feed f = feed_text(s);
    assert_int_not_equal(feed_find(&f, "b"), ROW_NONE);
    feed_free(&f);
    free(s);
    s = deep("[", "[", "]", "," X("b", "2", "1") "]", 10000);
    f = feed_text(s);
    assert_int_equal(f.t->spans.n, 1);
    assert_int_equal(f.t->notes[NOTE_BAD_EVENT], 1);
    feed_free(&f);
    free(s);
}

static void a_name_of_a_megabyte_before_the_first_phase(void **state) {
    (void)state;
    char *s = deep("[{\"name\":\"", "k", "",
                   "\",\"ph\":\"X\",\"ts\":1,"
                   "\"dur\":1,\"pid\":1,\"tid\":1}]",
                   1 << 20);
    struct feed f = feed_text(s);
    assert_int_equal(f.t->spans.n, 1);
    assert_int_equal(strs_bytes(&f.t->strs, f.t->spans.name[0]).n, 1 << 20);
    feed_free(&f);
    free(s);
}

static void damage_costs_one_event(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const bad[] = {
        "{\"ph\":\"X\",\"name\":\"x\" 5}", "{\"ph\":\"X\",,}",
        "{\"ph\":\"X\",\"name\":x:y}", "{ph:1}", "}", ":", "{\"ph\"}",
        "garbage", "{\"ph\":\"X\",\"ts\":0x10}",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[512];
        snprintf(text, sizeof text, "[%s,%s,%s,%s]", X("a", "1", "1"), bad[i],
                 X("b", "3", "1"), X("c", "5", "1"));
        struct feed f = feed_text(text);
        assert_int_not_equal(feed_find(&f, "a"), ROW_NONE);
        assert_int_not_equal(feed_find(&f, "b"), ROW_NONE);
        assert_int_not_equal(feed_find(&f, "c"), ROW_NONE);
        assert_true(f.t->notes[NOTE_BAD_EVENT] > 0);
        feed_free(&f);
    }
}

static void text_behind_the_end_is_noted(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"traceEvents\":[" X("a", "1", "1") "]}"
                                              "{\"traceEvents\":[" X("b", "1",
                                                                     "1") "]}");
    assert_int_equal(f.t->spans.n, 1);
    assert_int_equal(f.t->notes[NOTE_TEXT_BEHIND], 1);
    feed_free(&f);
}

static void a_cut_anywhere_keeps_what_came_before(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const parts[] = {
        "[", "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,"
        "\"args\":{\"name\":\"main\"}}", ",", X("a \\\" {", "1", "1"), ",\r\n",
        X("b", "3.25", "1"), ",", B("c", "5", "1"), ",", E("6", "1"), ",",
        X("d", "1e1", "1"), "]"};
    /* clang-format on */
    char text[2048] = "";
    size_t ends[4], n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        strcat(text, parts[i]);
        if (strncmp(parts[i], "{\"name\"", 7) == 0) ends[n++] = strlen(text);
    }
    assert_int_equal(n, 4);
    feed_cuts(text, ends, n, true);
}

/* --- one thread or several --- */

struct grown {
    char *s;
    size_t n, cap;
};

static void add(struct grown *g, const char *text) {
    size_t n = strlen(text);
    if (g->n + n + 1 > g->cap) {
        g->cap = 2 * (g->n + n + 1);
        g->s = realloc(g->s, g->cap);
        assert_non_null(g->s);
    }
    memcpy(g->s + g->n, text, n + 1);
    g->n += n;
}

enum grow {
    PLAIN,
    WHOLE_US,
    BEGIN_END,
    DAMAGED,
    LOOKALIKE,
    BAD_CAT,
    SHORT_LIST
};

/* Makes a list of a bit more than `bytes`, with trouble of that kind in it. */
static struct grown grow(enum grow kind, size_t bytes) {
    struct grown g = {0};
    char ev[512];
    add(&g, kind == WHOLE_US ? "{\"opscope\":{\"decimals\":0},"
                               "\"traceEvents\":[\n"
                             : "{\"traceEvents\":[\n");
    for (int i = 0; g.n < bytes; i++) {
        const char *cat = kind == BAD_CAT ? "c\xff" : "c";
        snprintf(ev, sizeof ev,
                 "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"op %d\",\"pid\":%d,"
                 "\"tid\":%d,\"ts\":%d.%03d,\"dur\":%d,\"args\":{\"n\":%d}}",
                 i ? ",\n" : "", cat, i % 1000, i % 3, i % 7, i,
                 kind == WHOLE_US ? 0 : i % 1000, i % 50, i);
        add(&g, ev);
        if (kind == BEGIN_END && i % 1000 == 0)
            add(&g, i % 2000 ? "," E("999999999", "1") : "," B("b", "5", "1"));
        if (kind == DAMAGED && i % 997 == 500)
            add(&g, i % 2 ? ",{\"ph\":\"X\",\"name\":{{\"" : ",{\"ph\":oops}}");
        if (kind == LOOKALIKE)
            add(&g, ",{\"ph\":\"X\",\"name\":\"s\",\"ts\":1,\"dur\":1,"
                    "\"pid\":1,"
                    "\"tid\":1,\"args\":{\"text\":\"{\\\"ph\\\":\\\"X\\\"},"
                    "{\\\"ph\\\"\",\"in\":[{\"ph\":\"X\",\"ts\":3}]}}");
    }
    add(&g, "]");
    if (kind == SHORT_LIST) { /* much behind the list that looks like it */
        add(&g, ",\"more\":{\"list\":[1");
        while (g.n < 3 * bytes) add(&g, ",{\"ph\":\"X\",\"ts\":1,\"dur\":1}");
        add(&g, "]}");
    }
    add(&g, ",\"z\":1}");
    return g;
}

static void assert_same(const struct trace *a, const struct trace *b) {
    const struct spans *s = &a->spans, *o = &b->spans;
    assert_int_equal(s->n, o->n);
    assert_int_equal(a->ntracks, b->ntracks);
    assert_int_equal(a->nmeta, b->nmeta);
    assert_int_equal(a->sources[0].events, b->sources[0].events);
    assert_int_equal(a->sources[0].decimals, b->sources[0].decimals);
    assert_memory_equal(a->notes, b->notes, sizeof a->notes);
    assert_memory_equal(s->ts, o->ts, s->n * sizeof *s->ts);
    assert_memory_equal(s->dur, o->dur, s->n * sizeof *s->dur);
    assert_memory_equal(s->track, o->track, s->n * sizeof *s->track);
    assert_memory_equal(s->args_lo, o->args_lo, s->n * sizeof *s->args_lo);
    for (row_id r = 0; r < s->n; r++)
        assert_string_equal(span_name(a, r), span_name(b, r));
}

static void threads_never_change_the_result(void **state) {
    (void)state;
    /* as many pieces of 8 MiB as threads, and a rest */
    const int most = SANITIZED_ADDRESS || SANITIZED_THREAD ? 2 : 3;
    for (enum grow kind = PLAIN; kind <= SHORT_LIST; kind++) {
        struct grown g = grow(kind, (kind == SHORT_LIST ? 9 : most * 8 + 1)
                                        << 20);
        struct feed one = feed_bytes(g.s, g.n, 1);
        assert_int_equal(one.rc, 0);
        for (int threads = 2; threads <= most; threads++) {
            struct feed two = feed_bytes(g.s, g.n, threads);
            assert_int_equal(two.rc, 0);
            assert_same(one.t, two.t);
            feed_free(&two);
        }
        feed_free(&one);
        free(g.s);
    }
}

/* Returns the processor's seconds so far, as they were without a sanitizer. */
static double seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC /
           (SANITIZED_THREAD    ? 50
            : SANITIZED_ADDRESS ? 5
                                : 1);
}

static void events_that_swallow_the_rest_take_bounded_time(void **state) {
    (void)state;
    struct grown g = {0};
    add(&g, "[");
    for (int i = 0; i < 50000; i++)
        add(&g, "{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"a\":[{\"b\":1,");
    for (int i = 0; i < 150000; i++) add(&g, "}");
    add(&g, "?");
    double start = seconds();
    struct feed f = feed_bytes(g.s, g.n, 1);
    assert_true(seconds() - start < 10); /* the square of it: an hour */
    assert_int_equal(f.rc, 0);
    assert_true(f.t->notes[NOTE_BAD_EVENT] > 0);
    assert_int_equal(f.t->notes[NOTE_FILE_CUT], 1);
    feed_free(&f);
    free(g.s);
}

static void lists_never_closed_in_arguments_take_linear_time(void **state) {
    (void)state;
    struct grown g = {0};
    add(&g, "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,"
            "\"args\":{\"name\":\"/device:GPU:0\"}}");
    for (int i = 0; i < 100000; i++)
        add(&g, ",{\"ph\":\"X\",\"name\":\"k\",\"ts\":1,\"dur\":1,"
                "\"pid\":1,\"tid\":1,\"args\":{\"a\":[}}");
    add(&g, "]");
    double start = seconds();
    struct feed f = feed_bytes(g.s, g.n, 1);
    assert_true(seconds() - start < 5);
    assert_int_equal(f.t->spans.n, 100000);
    feed_free(&f);
    free(g.s);
}

static void many_devices_take_linear_time(void **state) {
    (void)state;
    struct grown g = {0};
    char ev[256];
    add(&g, "[");
    for (int i = 0; i < 20000; i++) {
        snprintf(ev, sizeof ev,
                 "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,"
                 "\"args\":{\"name\":\"/device:GPU:%d\"}},{\"ph\":\"X\","
                 "\"name\":\"k\",\"ts\":%d,\"dur\":1,\"pid\":%d,\"tid\":1}",
                 i ? "," : "", i, i, i, i);
        add(&g, ev);
    }
    add(&g, "]");
    double start = seconds();
    struct feed f = feed_bytes(g.s, g.n, 1);
    assert_true(seconds() - start < 5);
    assert_int_equal(f.t->ndevices, 20000);
    assert_int_equal(feed_track(&f, "k")->kind, TRACK_STREAM);
    feed_free(&f);
    free(g.s);
}

/* The line "Steps" that XProf draws for a device marks the steps, unless the
 * host does. */
static void a_line_of_steps_marks_them(void **state) {
    (void)state;
#define DEVICE_LINES                                                           \
    "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{"            \
    "\"name\":\"/device:GPU:0\"}},{\"ph\":\"M\",\"name\":\"thread_name\","     \
    "\"pid\":1,\"tid\":2,\"args\":{\"name\":\"Steps\"}},"                      \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":0,\"dur\":9,\"name\":\"41\"},"   \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":10,\"dur\":9,\"name\":\"42\"},"  \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":3,\"ts\":1,\"dur\":5,\"name\":\"k\"}"
    struct feed f = feed_text(DEVICE_LINES "]");
    assert_int_equal(f.t->nsteps, 2);
    assert_int_equal(f.t->steps[1].number, 42);
    feed_free(&f);
    f = feed_text(DEVICE_LINES ",{\"ph\":\"X\",\"pid\":9,\"tid\":9,\"ts\":0,"
                               "\"dur\":20,\"name\":\"train\",\"args\":{"
                               "\"step_num\":\"5\"}}]");
    assert_int_equal(f.t->nsteps, 1);
    assert_int_equal(f.t->steps[0].number, 5);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_steps_marks_them),
        cmocka_unit_test(an_object_or_a_bare_list_will_do),
        cmocka_unit_test(lists_given_twice_are_both_read),
        cmocka_unit_test(what_is_no_trace_is_refused_in_words),
        cmocka_unit_test(begin_and_end_pair_on_each_thread),
        cmocka_unit_test(an_end_closes_what_began_last_frames_included),
        cmocka_unit_test(begins_and_ends_alone_are_counted),
        cmocka_unit_test(an_end_beyond_all_time_leaves_its_span_open),
        cmocka_unit_test(async_spans_may_have_ids_of_two_parts),
        cmocka_unit_test(async_spans_pair_by_category_and_id),
        cmocka_unit_test(counters_and_instants_and_arrows),
        cmocka_unit_test(a_span_without_duration_is_kept_and_counted),
        cmocka_unit_test(times_in_every_spelling),
        cmocka_unit_test(times_that_are_none_are_left_out_and_counted),
        cmocka_unit_test(ids_may_be_text),
        cmocka_unit_test(threads_get_the_more_telling_name),
        cmocka_unit_test(names_of_any_bytes_are_kept),
        cmocka_unit_test(escapes_do_not_change_what_a_name_means),
        cmocka_unit_test(missing_commas_are_counted),
        cmocka_unit_test(of_duplicate_keys_the_last_wins),
        cmocka_unit_test(nesting_ten_thousand_deep_is_passed),
        cmocka_unit_test(a_name_of_a_megabyte_before_the_first_phase),
        cmocka_unit_test(damage_costs_one_event),
        cmocka_unit_test(text_behind_the_end_is_noted),
        cmocka_unit_test(a_cut_anywhere_keeps_what_came_before),
        cmocka_unit_test(threads_never_change_the_result),
        cmocka_unit_test(events_that_swallow_the_rest_take_bounded_time),
        cmocka_unit_test(lists_never_closed_in_arguments_take_linear_time),
        cmocka_unit_test(many_devices_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
