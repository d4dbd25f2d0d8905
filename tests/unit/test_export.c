/* SPDX-License-Identifier: Apache-2.0
 * Writing other formats: the text of a small trace, names and arguments that
 * nobody should write, numbers for tracks, the choice of an exporter, gzip. */
#include "export/export.h"

#include "base/io/file.h"
#include "base/io/inflate.h"
#include "base/text/json_text.h"
#include "export/places.h"
#include "import/import.h"
#include "model/args.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/trace_fill.h"
#include "rec/temp.h"
#include "unit/tiny.h"

/* Returns the text of a trace, terminated; the caller frees. */
static char *text_of(const struct trace *t) {
    struct export_form f;
    struct sink s;
    struct ops_err e;
    assert_int_equal(export_form("-", "chrome", &f, &e), 0);
    sink_memory(&s);
    assert_int_equal(f.exporter->write(t, &s, &e), 0);
    assert_int_equal(s.broken, 0);
    assert_true(json_is_strict((struct bytes){(uint8_t *)s.buf, s.n}));
    sink_putc(&s, '\0');
    return s.buf;
}

/* Returns a sealed trace of JSON text, which must live on with 64 zeros behind
 * it. */
static struct trace *trace_of(const char *json) {
    struct trace *t = trace_new();
    struct import_opts o = {.threads = 1};
    struct ops_err e;
    assert_int_equal(import_bytes(bytes_of(json), "in.json", t, &o, &e), 0);
    assert_int_equal(trace_seal(t, &e), 0);
    return t;
}

/* Returns a copy of the text with zeros behind it; the caller frees. */
static char *padded(const char *text) {
    char *p = calloc(1, strlen(text) + 64);
    assert_non_null(p);
    return strcpy(p, text);
}

static void has(const char *text, const char *part) {
    if (strstr(text, part) == NULL) print_error("%s\nnot in:\n%s", part, text);
    assert_non_null(strstr(text, part));
}

static void chrome_writes_the_whole_of_a_small_trace(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    t->sources[0].decimals = 3;
    t->sources[0].rounding_ps = 1000;
    t->sources[0].has_clock = true;
    t->epoch_ns = INT64_C(1790857026000000001);
    uint32_t th = tiny_thread(t, 7), st = tiny_stream(t, 0, 20);
    trace_track_name(t, th, bytes_of("main"));
    row_id mark = tiny_span(t, th, SPAN_ANNOTATION, "train", 0, 90);
    trace_step_hint(t, mark, 41);
    tiny_launch(t, th, st, "gemm", 10, 5);
    tiny_seal(t);
    char *s = text_of(t);
    assert_string_equal(
        s,
        "{\"opscope\": {\"version\": \"" OPS_VERSION "\", \"decimals\":3, "
        "\"slack_ps\":1000},\n"
        "\"displayTimeUnit\": \"ms\",\n"
        "\"baseTimeNanoseconds\": 1790857026000000001,\n"
        "\"deviceProperties\": [{\"id\":0}],\n"
        "\"traceEvents\": [\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":"
        "\"process 1\"}},\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":"
        "\"/device:GPU:0\"}},\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":7,\"args\":"
        "{\"name\":\"main\"}},\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":20,\"args\":"
        "{\"name\":\"GPU 0 stream 20\",\"kind\":\"stream\"}},\n"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"train\",\"pid\":"
        "1,"
        "\"ts\":0,\"tid\":7,\"dur\":90,\"kind\":\"annotation step\",\"args\":"
        "{\"step_num\":41}},\n"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
        "\"pid\":1,\"ts\":10,\"tid\":7,\"dur\":1,\"kind\":\"api\",\"args\":"
        "{\"correlation_id\":2}},\n"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"ts\":"
        "11,"
        "\"tid\":20,\"dur\":5,\"kind\":\"kernel\",\"args\":"
        "{\"correlation_id\":2}},\n"
        "{\"ph\":\"s\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":0,\"pid\":"
        "1,"
        "\"ts\":10,\"tid\":7},\n"
        "{\"ph\":\"f\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":0,\"pid\":"
        "0,"
        "\"ts\":11,\"tid\":20,\"bp\":\"e\"}\n"
        "]}\n");
    free(s);
    trace_free(t);
}

static void chrome_times_are_exact_to_the_picosecond(void **state) {
    (void)state;
    static const struct {
        int64_t ps;
        const char *us;
    } v[] = {
        {0, "\"ts\":0,"},
        {1, "\"ts\":0.000001,"},
        {-1, "\"ts\":-0.000001,"},
        {1500000, "\"ts\":1.5,"},
        {INT64_C(7899999999999999999), "\"ts\":7899999999999.999999,"},
        {10 * PS_PER_US, "\"ts\":10,"},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct trace *t = tiny_new(false, false);
        struct span_in in = {.ts = v[i].ps,
                             .dur = 1,
                             .track = tiny_thread(t, 1)};
        trace_span(t, &in);
        tiny_seal(t);
        char *s = text_of(t);
        has(s, v[i].us);
        free(s);
        trace_free(t);
    }
}

static void chrome_mends_hostile_names_and_arguments(void **state) {
    (void)state;
    char *in = padded(
        "{\"traceEvents\": [{\"ph\":\"X\",\"name\":\"a\\\"b\\u0007\x01\x7f\","
        "\"cat\":\"c\\\\\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1,\"args\":{"
        "\"esc\":\"t\\tq\\\"\",\"bad\":\"x\\y\",\"raw\":\"l\ne\","
        "\"latin\":\"\xe9\",\"null\":null,\"t\":true,"
        "\"big\":18446744073709551615,\"neg\":-9223372036854775807,"
        "\"f\":0.1,\"digits\":1.00000000000000000001,\"nan\":NaN,"
        "\"list\":[1, {\"a\": null}],\"broken\":[1,NaN,],"
        "\"k\\n\":1}}]}");
    struct trace *t = trace_of(in);
    assert_int_equal(t->spans.n, 1);
    char *s = text_of(t);
    has(s, "\"name\":\"a\\\"b\\u0007\\u0001\\u007f\"");
    has(s, "\"cat\":\"c\\\\");
    has(s, "\"esc\":\"t\\tq\\\"\",\"bad\":\"x\\\\y\",\"raw\":\"l\\ne\"");
    has(s, "\"latin\":\"\\ufffd\",\"null\":null,\"t\":true");
    has(s, "\"big\":18446744073709551615,\"neg\":-9223372036854775807");
    has(s, "\"f\":0.1,\"digits\":1.00000000000000000001");
    has(s, "\"list\":[1, {\"a\": null}],\"broken\":\"[1,NaN,]\"");
    has(s, "\"k\\n\":1");
    free(s);
    trace_free(t);
    free(in);
}

/* One name of 2 MiB for 40 spans: 31 of them fill the 64 MiB that long texts
 * have (the thread's is one, too), the others have its beginning. */
static void chrome_cuts_long_texts_that_many_share(void **state) {
    (void)state;
    enum { LONG = 1 << 21, SPANS = 40, SHORT = 1024 };
    char *name = malloc(LONG + 1), want[SHORT + 16];
    assert_non_null(name);
    name[0] = 'a'; /* so that the limit is inside a character */
    for (size_t i = 1; i + 1 < LONG; i += 2) memcpy(name + i, "\u00fc", 2);
    name[LONG - 1] = 'z';
    name[LONG] = '\0';
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    trace_track_name(t, th, bytes_of(name));
    for (int i = 0; i < SPANS; i++) tiny_span(t, th, SPAN_OP, name, 10 * i, 5);
    tiny_seal(t);
    char *s = text_of(t);
    size_t whole = 0, cut = 0;
    for (const char *p = s; (p = strstr(p, "z\"")) != NULL; p++) whole++;
    snprintf(want, sizeof want, "\"%.*s\u2026\"", SHORT - 1, name);
    for (const char *p = s; (p = strstr(p, want)) != NULL; p++) cut++;
    assert_int_equal(whole, 32);
    assert_int_equal(cut, SPANS + 1 - 32);
    free(s);
    trace_free(t);
    free(name);
}

static void chrome_comes_back_with_kinds_and_flags(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 7);
    uint32_t py = trace_track(t, 0, TRACK_PYTHON, 1, 7);
    uint32_t other = trace_track(t, 0, TRACK_OTHER, 1, 7);
    uint32_t async = trace_track(t, 0, TRACK_ASYNC, 1, 9);
    for (uint8_t k = 0; k < SPAN_KINDS; k++) {
        struct span_in in = {.ts = k * US,
                             .dur = US / 2,
                             .kind = k,
                             .track = k == SPAN_PYTHON ? py : th,
                             .flags = k == SPAN_OP ? SPAN_EAGER : 0,
                             .name = trace_str(t, bytes_of("n"))};
        trace_span(t, &in);
    }
    struct span_in in = {.ts = US,
                         .dur = 3 * US,
                         .kind = SPAN_SYNC,
                         .track = async,
                         .flags = SPAN_ASYNC};
    trace_span(t, &in);
    in.ts = 2 * US; /* overlaps, nests in nothing */
    trace_span(t, &in);
    in = (struct span_in){.ts = 5, .track = other, .flags = SPAN_INSTANT};
    trace_span(t, &in);
    uint32_t gpu = trace_device(t, 0, DEVICE_GPU, 3);
    uint32_t a = trace_allocator(t, 0, bytes_of("bfc \"3\""), gpu);
    tiny_mem(t, a, th, 1, UINT64_C(0xfedcba9876543210), 512, 4096);
    tiny_mem(t, a, ROW_NONE, 2, 0, -512, -1);
    uint32_t c = trace_counter(t, 0, bytes_of("load: cpu"), bytes_of(""),
                               ROW_NONE);
    trace_sample(t, c, US, 0.5);
    tiny_seal(t);
    char *s = text_of(t), *copy = padded(s);
    struct trace *u = trace_of(copy);
    size_t want[SPAN_KINDS][64] = {0}, got[SPAN_KINDS][64] = {0};
    for (size_t i = 0; i < t->spans.n; i++)
        want[t->spans.kind[i]][t->spans.flags[i] & 63]++;
    for (size_t i = 0; i < u->spans.n; i++)
        got[u->spans.kind[i]][u->spans.flags[i] & 63]++;
    assert_memory_equal(want, got, sizeof want);
    for (size_t i = 0; i < t->spans.n; i++) {
        const struct track *x = &t->tracks[t->spans.track[i]];
        if (x->kind == TRACK_ASYNC) continue; /* they go by category */
        size_t k = 0;
        while (k < u->ntracks && u->tracks[k].kind != x->kind) k++;
        assert_true(k < u->ntracks);
        assert_int_equal(u->tracks[k].end - u->tracks[k].first,
                         x->end - x->first);
    }
    assert_int_equal(u->mem.n, 2);
    assert_true(u->mem.addr[0] == UINT64_C(0xfedcba9876543210));
    assert_int_equal(u->mem.allocated[0], 4096);
    assert_int_equal(u->mem.allocated[1], -1);
    assert_int_equal(u->mem.bytes[1], -512);
    assert_int_equal(u->mem.track[1], ROW_NONE);
    assert_string_equal(strs_text(&u->strs, u->allocators[0].name),
                        "bfc \"3\"");
    assert_int_equal(u->devices[u->allocators[0].device].ordinal, 3);
    assert_int_equal(u->ncounters, 1); /* the memory curve is none */
    assert_string_equal(strs_text(&u->strs, u->counters[0].name), "load: cpu");
    assert_true(u->sources[0].has_memory);
    trace_free(u);
    trace_free(t);
    free(copy);
    free(s);
}

/* One has a thread, two have counters alone. */
static void counters_of_two_processes_stay_two(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "a", 0, 9); /* process 1 */
    for (int pid = 1; pid <= 3; pid++)
        for (int i = 0; i < pid; i++)
            trace_sample(t,
                         trace_counter_of(t, 0, pid, bytes_of("load"),
                                          bytes_of(""), ROW_NONE),
                         i * US, pid);
    tiny_seal(t);
    char *s = text_of(t), *copy = padded(s);
    struct trace *u = trace_of(copy);
    assert_int_equal(u->ncounters, 3);
    assert_int_equal(u->samples.n, 6);
    for (size_t i = 0; i < 6; i++) /* each has its own values alone */
        assert_true(u->samples.value[i] == u->samples.counter[i] + 1);
    trace_free(u);
    trace_free(t);
    free(copy);
    free(s);
}

/* Two ranks whose devices have the same name of their own. */
static void devices_of_two_ranks_stay_two(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    trace_source(t, "other", format_named("xspace"), NULL, (struct bytes){0});
    for (uint32_t s = 0; s < 2; s++) {
        t->sources[s].rank = s;
        uint32_t d = trace_device(t, s, DEVICE_OTHER, 0);
        t->devices[d].label = trace_str(t, bytes_of("npu 0"));
        t->devices[d].labelled = true;
        uint32_t track = trace_track(t, s, TRACK_STREAM, s, 1);
        t->tracks[track].device = d;
        tiny_span(t, track, SPAN_KERNEL, "k", 10, 5);
    }
    tiny_seal(t);
    char *s = text_of(t), *again = padded(s);
    struct trace *back = trace_of(again);
    assert_int_equal(back->ndevices, 2);
    for (uint32_t d = 0; d < 2; d++) {
        char label[32];
        snprintf(label, sizeof label, "rank %u npu 0", d);
        assert_string_equal(strs_text(&back->strs, back->devices[d].label),
                            label);
    }
    trace_free(back);
    trace_free(t);
    free(again);
    free(s);
}

static void an_empty_trace_is_a_valid_file(void **state) {
    (void)state;
    struct trace *t = trace_new();
    tiny_seal(t);
    char *s = text_of(t);
    has(s, "\"traceEvents\": [\n]}");
    free(s);
    trace_free(t);
}

static void places_do_not_clash(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    assert_int_equal(trace_source(t, "b", format_named("kineto"), NULL,
                                  (struct bytes){0}),
                     1);
    uint32_t a = trace_track(t, 0, TRACK_THREAD, 5, 1);
    uint32_t b = trace_track(t, 1, TRACK_THREAD, 5, 1);
    uint32_t g0 = trace_track(t, 0, TRACK_STREAM, 0, 7);
    uint32_t g1 = trace_track(t, 1, TRACK_STREAM, 0, 7);
    uint32_t d = trace_track(t, 0, TRACK_DERIVED, 0, 7);
    uint32_t py = trace_track(t, 0, TRACK_PYTHON, 5, 1);
    t->tracks[g0].device = t->tracks[d].device = trace_device(t, 0, DEVICE_GPU,
                                                              0);
    t->tracks[g1].device = trace_device(t, 1, DEVICE_GPU, 0);
    tiny_seal(t);
    struct places p;
    assert_true(places_init(&p, t));
    assert_int_equal(p.n, 4);
    assert_int_equal(places_pid(&p, a), 5);
    assert_int_equal(places_pid(&p, b), 6);
    assert_int_equal(places_pid(&p, g0), 0);
    assert_int_equal(places_pid(&p, g1), 7);
    assert_int_equal(places_pid(&p, d), 0);
    assert_int_equal(p.tracks[g0].tid, 7);
    assert_int_equal(p.tracks[d].tid, 8);
    assert_int_equal(p.tracks[py].tid, 1);
    assert_int_equal(places_pid_of(&p, 1, t->tracks[g1].device), 7);
    assert_int_equal(places_pid_of(&p, 1, ROW_NONE), 6);
    places_free(&p);
    trace_free(t);
}

static char *valued(const char *raw) {
    struct sink s;
    sink_memory(&s);
    json_put_value(&s, bytes_of(raw));
    assert_true(json_is_strict((struct bytes){(uint8_t *)s.buf, s.n}));
    sink_putc(&s, '\0');
    return s.buf;
}

/* Values of other files go on as they are, but for what a terminal or a strict
 * reader must not see. */
static void foreign_values_are_made_harmless(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"[1.50, {\"a\\n\": null}]", "[1.50, {\"a\\n\": null}]"},
        {"[\"\xc2\x9b\xe2\x80\xae\x7f\"]", "[\"\\u009b\\u202e\\u007f\"]"},
        {"[\r\n\t1]", "[ \n 1]"},
        {"\"\\ud83d\\ude00 \\ud800 \\udc00\"",
         "\"\\ud83d\\ude00 \\ufffd \\ufffd\""},
        {"[1,", "\"[1,\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *s = valued(cases[i][0]);
        assert_string_equal(s, cases[i][1]);
        free(s);
    }
}

static void json_is_strict_by_the_letter(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const good[] = {
        "0", "-1.5e+3", "\"\\u00e9\\n\"", "true", " [ ] ", "{}", "[[],{}]",
        "{\"a\": [1, 2, {\"b\": null}], \"c\": \"\"}",
    };
    /* clang-format on */
    /* clang-format off */
    static const char *const bad[] = {
        "", "01", "1.", ".5", "+1", "NaN", "[1,]", "{\"a\":1,}", "{a:1}",
        "\"\\x\"", "\"\x01\"", "\"a", "[1 2]", "1 2", "{\"a\"}", "[", "]",
        "{]", "\"\xff\"", "tru", "[,1]", "{\"a\":1 \"b\":2}",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(json_is_strict(bytes_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (json_is_strict(bytes_of(bad[i]))) print_error("%s\n", bad[i]);
        assert_false(json_is_strict(bytes_of(bad[i])));
    }
    char deep[2 * 65 + 1];
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    assert_false(json_is_strict((struct bytes){(uint8_t *)deep, 130}));
    assert_true(json_is_strict((struct bytes){(uint8_t *)deep + 1, 128}));
}

static void kinds_are_words(void **state) {
    (void)state;
    uint8_t kind, flags;
    for (uint8_t k = 0; k < SPAN_KINDS; k++) {
        assert_true(kind_parse(bytes_of(kind_name(k)), &kind, &flags));
        assert_int_equal(kind, k);
        assert_int_equal(flags, 0);
    }
    assert_true(
        kind_parse(bytes_of(" op  eager nonsense derived"), &kind, &flags));
    assert_int_equal(flags, SPAN_EAGER | SPAN_DERIVED);
    assert_false(kind_parse(bytes_of(""), &kind, &flags));
    assert_false(kind_parse(bytes_of("eager"), &kind, &flags));
}

static void the_longest_suffix_picks(void **state) {
    (void)state;
    struct export_form f;
    struct ops_err e;
    assert_int_equal(export_form("a/b.json", NULL, &f, &e), 0);
    assert_string_equal(f.exporter->name, "chrome");
    assert_false(f.gzip);
    assert_int_equal(export_form("b.x.json.gz", NULL, &f, &e), 0);
    assert_true(f.gzip);
    assert_int_equal(export_form("what.gz", "chrome", &f, &e), 0);
    assert_true(f.gzip);
    assert_int_equal(export_form(".json", NULL, &f, &e), OPS_EUSAGE);
    assert_int_equal(export_form("b.pb", NULL, &f, &e), OPS_EUSAGE);
    has(e.text, ".json.gz");
    assert_int_equal(export_form("b", "no", &f, &e), OPS_EUSAGE);
}

/* Many pieces, of sizes that do not divide the buffers. */
static void gzip_holds_what_was_written(void **state) {
    (void)state;
    char path[TEMP_MAX];
    int fd = mkstemp(temp_name(path, "export"));
    assert_true(fd >= 0);
    struct sink file, s, plain;
    struct ops_err e;
    sink_fd(&file, fd);
    sink_memory(&plain);
    struct gzip *g = gzip_begin(&file, &s);
    assert_non_null(g);
    uint32_t x = 1;
    for (int i = 0; i < 60000; i++) {
        x = x * 1664525 + 1013904223;
        sink_write(&s, &x, 1 + x % 4);
        sink_write(&plain, &x, 1 + x % 4);
    }
    assert_int_equal(gzip_end(g, &s, &e), 0);
    assert_int_equal(sink_flush(&file, &e), 0);
    sink_free(&file);
    close(fd);
    struct file *f;
    assert_int_equal(file_open(path, &f, &e), 0);
    unlink(path);
    struct bytes b = f->bytes;
    assert_int_equal(b.n, plain.n);
    assert_memory_equal(b.p, plain.buf, plain.n);
    file_close(f);
    sink_free(&plain);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) skip_because("there is no /dev/full");
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "op", 0, 1);
    tiny_seal(t);
    for (int gz = 0; gz < 2; gz++) {
        struct export_form f;
        struct ops_err e;
        assert_int_equal(export_form(gz ? "a.json.gz" : "a.json", NULL, &f, &e),
                         0);
        assert_int_equal(export_write(t, f, fileno(full), &e), OPS_EIO);
        has(e.text, "cannot write");
    }
    trace_free(t);
    fclose(full);
}

/* A key may stand in a buffer that is another's by the time of the next: a stat
 * without a name goes by its number. */
static void a_key_that_is_gone_is_still_known(void **state) {
    (void)state;
    struct sink s;
    struct json_keys k = {0};
    char buf[24];
    sink_memory(&s);
    for (int i = 0; i < 3; i++) {
        snprintf(buf, sizeof buf, "%d", i % 2);
        json_put_key(&s, &k, bytes_of(buf), false);
        memset(buf, 'x', sizeof buf);
    }
    sink_putc(&s, 0);
    assert_string_equal(s.buf, "\"0\"\"1\"\"0 (2)\"");
    sink_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_is_gone_is_still_known),
        cmocka_unit_test(chrome_writes_the_whole_of_a_small_trace),
        cmocka_unit_test(chrome_times_are_exact_to_the_picosecond),
        cmocka_unit_test(chrome_mends_hostile_names_and_arguments),
        cmocka_unit_test(chrome_cuts_long_texts_that_many_share),
        cmocka_unit_test(chrome_comes_back_with_kinds_and_flags),
        cmocka_unit_test(counters_of_two_processes_stay_two),
        cmocka_unit_test(devices_of_two_ranks_stay_two),
        cmocka_unit_test(an_empty_trace_is_a_valid_file),
        cmocka_unit_test(places_do_not_clash),
        cmocka_unit_test(json_is_strict_by_the_letter),
        cmocka_unit_test(foreign_values_are_made_harmless),
        cmocka_unit_test(kinds_are_words),
        cmocka_unit_test(the_longest_suffix_picks),
        cmocka_unit_test(gzip_holds_what_was_written),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
