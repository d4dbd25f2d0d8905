/* SPDX-License-Identifier: Apache-2.0
 * PyTorch profiles: what each category becomes, all three generations of
 * times, old spellings, keys on either side of the events, and cuts. */
#include "feed.h"

#define HEAD "{\"schemaVersion\":1,\"traceEvents\":["
#define OP(name, ts, dur)                                                      \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name                        \
    "\",\"pid\":9,\"tid\":1,\"ts\":" ts ",\"dur\":" dur "}"
#define LAUNCH(ts, corr)                                                       \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","    \
    "\"pid\":9,\"tid\":1,\"ts\":" ts ",\"dur\":1,"                             \
    "\"args\":{\"cbid\":211,\"correlation\":" corr "}}"
#define KERNEL(name, ts, dur, corr)                                            \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name                        \
    "\",\"pid\":0,\"tid\":7,\"ts\":" ts ",\"dur\":" dur                        \
    ",\"args\":{\"device\":0,\"stream\":7,\"correlation\":" corr "}}"

static void categories_become_kinds_and_tracks(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD OP("aten::mm", "1.5", "2.25") "," LAUNCH("2", "5") "," KERNEL(
            "gemm", "3.001", "4",
            "5") ","
                 "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"m.py(1):"
                 " f\","
                 "\"pid\":9,\"tid\":1,\"ts\":0,\"dur\":9},"
                 "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":"
                 "\"region\","
                 "\"pid\":0,\"tid\":7,\"ts\":3,\"dur\":4},"
                 "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy\","
                 "\"pid\":0,"
                 "\"tid\":7,\"ts\":8,\"dur\":1,\"args\":{\"device\":0,"
                 "\"stream\":7}},"
                 "{\"ph\":\"X\",\"cat\":\"novel\",\"name\":\"what\",\"pid\":9,"
                 "\"tid\":1,\"ts\":20,\"dur\":1}]}");
    const struct spans *s = &f.t->spans;
    assert_string_equal(f.t->sources[0].format->name, "kineto");
    feed_check(&f, "aten::mm", 1500000, 2250000);
    feed_check(&f, "gemm", 3001000, 4000000);
    assert_int_equal(s->kind[feed_row(&f, "aten::mm")], SPAN_OP);
    assert_int_equal(s->kind[feed_row(&f, "gemm")], SPAN_KERNEL);
    assert_int_equal(s->kind[feed_row(&f, "what")], SPAN_OTHER);
    assert_int_equal(feed_track(&f, "m.py(1): f")->kind, TRACK_PYTHON);
    assert_int_equal(feed_track(&f, "gemm")->kind, TRACK_STREAM);
    assert_int_equal(feed_track(&f, "region")->kind, TRACK_DERIVED);
    assert_int_equal(f.t->notes[NOTE_DERIVED_LINES], 1);
    assert_int_equal(f.t->notes[NOTE_KERNEL_WITHOUT_LAUNCH], 1);
    assert_int_equal(trace_launch_of(f.t, feed_row(&f, "gemm")),
                     feed_row(&f, "cudaLaunchKernel"));
    assert_int_equal(f.t->sources[0].events, 7);
    feed_free(&f);
}

/* Older files have no header that tells what was recorded; the events do. */
static void shapes_are_told_by_the_events(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\","
             "\"pid\":9,\"tid\":1,\"ts\":1,\"dur\":2,"
             "\"args\":{\"Input Dims\":[[2,3],[3,4]]}}]}");
    assert_true(f.t->sources[0].has_shapes);
    feed_free(&f);
    f = feed_text(HEAD OP("aten::mm", "1", "2") "]}");
    assert_false(f.t->sources[0].has_shapes);
    feed_free(&f);
}

/* torch has what still runs end when it is done with stopping. */
static void what_outlasts_the_profiler_ends_with_the_last_event(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"open\","
             "\"pid\":9,\"tid\":1,\"ts\":1,\"dur\":2000,"
             "\"args\":{\"External id\":3,\"finished\":false}},"
             "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"whole\","
             "\"pid\":9,\"tid\":1,\"ts\":0,\"dur\":8}," OP("aten::mm", "2",
                                                           "3") "]}");
    feed_check(&f, "open", 1000000, 7000000);
    feed_check(&f, "whole", 0, 8000000);
    assert_int_equal(f.t->notes[NOTE_REGION_CUT], 1);
    feed_free(&f);
}

/* The marks of 2021 have the category of ops. */
static void regions_of_2021_are_no_ops(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":"
             "\"ProfilerStep#16\",\"pid\":9,\"tid\":1,\"ts\":1,\"dur\":9},"
             "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\","
             "\"pid\":9,\"tid\":1,\"ts\":2,\"dur\":3}]}");
    const struct spans *s = &f.t->spans;
    assert_int_equal(s->kind[feed_row(&f, "ProfilerStep#16")], SPAN_ANNOTATION);
    assert_int_equal(s->kind[feed_row(&f, "aten::mm")], SPAN_OP);
    assert_int_equal(f.t->sources[0].step_rule, STEPS_BY_MARKER);
    assert_int_equal(f.t->steps[0].number, 16);
    feed_free(&f);
}

static void times_are_shown_as_fine_as_the_file_gives_them(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int decimals;
    } files[] = {
        {HEAD OP("a", "1", "2") "]}", 3},
        {HEAD OP("a", "1.5", "2.125") "]}", 3},
        {HEAD OP("a", "1.5000", "2") "]}", 3}, /* zeros tell nothing */
        {HEAD OP("a", "1.5", "2.1234") "]}", 4},
        {HEAD OP("a", "1.0000001", "2") "]}", 3}, /* below a picosecond */
        {HEAD OP("a", "1", "5e-5") "]}", 5},
        {"{\"opscope\": {\"decimals\": 0}, \"traceEvents\": ["
         "{\"ph\": \"X\", \"kind\": \"op\", \"name\": \"a\", \"ts\": 1.5, "
         "\"dur\": 1, \"pid\": 1, \"tid\": 1}]}",
         1},
        {"{\"opscope\": {\"decimals\": 0}, \"traceEvents\": ["
         "{\"ph\": \"X\", \"kind\": \"op\", \"name\": \"a\", \"ts\": 7, "
         "\"dur\": 1, \"pid\": 1, \"tid\": 1}]}",
         0},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct feed f = feed_text(files[i].text);
        assert_int_equal(f.t->sources[0].decimals, files[i].decimals);
        feed_free(&f);
    }
}

static void keys_behind_the_events_count_as_those_before(void **state) {
    (void)state;
    static const char keys[] =
        "\"baseTimeNanoseconds\":1790857026000000000,"
        "\"deviceProperties\":[{\"id\":0,\"name\":\"H200\",\"numSms\":132,"
        "\"totalGlobalMem\":150000000000}],"
        "\"distributedInfo\":{\"rank\":3,\"world_size\":\"8\"},"
        "\"profile_memory\":1,\"record_shapes\":1,\"with_stack\":0,"
        "\"host_name\":\"node7\"";
    char text[2048];
    for (int after = 0; after < 2; after++) {
        snprintf(text, sizeof text, "{%s%s\"traceEvents\":[%s]%s%s}",
                 after ? "" : keys, after ? "" : ",",
                 KERNEL("gemm", "3", "4", "5"), after ? "," : "",
                 after ? keys : "");
        struct feed f = feed_text(text);
        const struct source *s = &f.t->sources[0];
        assert_true(f.t->epoch_ns == INT64_C(1790857026000000000));
        assert_true(s->has_clock);
        assert_int_equal(s->rank, 3);
        assert_int_equal(s->world_size, 8);
        assert_true(s->has_memory);
        assert_true(s->has_shapes);
        assert_false(s->has_stacks);
        assert_string_equal(strs_text(&f.t->strs, s->host), "node7");
        assert_int_equal(f.t->ndevices, 1);
        assert_int_equal(f.t->devices[0].units, 132);
        assert_string_equal(strs_text(&f.t->strs, f.t->devices[0].model),
                            "H200");
        feed_free(&f);
    }
}

static void profile_memory_off_does_not_deny_the_events(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"cat\":\"cpu_instant_event\""
        ",\"pid\":9,\"tid\":1,\"ts\":1,\"args\":{\"Device Type\":0,"
        "\"Device Id\":-1,\"Addr\":4096,\"Bytes\":64}}],\"profile_memory\":0}");
    assert_int_equal(f.t->mem.n, 1);
    assert_true(f.t->sources[0].has_memory);
    feed_free(&f);
}

static void memory_events_keep_what_was_recorded(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":9,\"tid\":1,\"ts\":1,"
        "\"args\":{\"Device Type\":1,\"Device Id\":0,\"Addr\":140000000000000,"
        "\"Bytes\":512,\"Total Allocated\":1024,\"Total Reserved\":4096}},"
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":9,\"tid\":1,\"ts\":2,"
        "\"args\":{\"Device Type\":1,\"Device Id\":0,\"Bytes\":-512,"
        "\"Total Allocated\":null,\"Total Reserved\":\"x\"}},"
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":9,\"tid\":1,\"ts\":3}]}");
    assert_int_equal(f.t->mem.n, 2);
    assert_int_equal(f.t->mem.allocated[0], 1024);
    assert_int_equal(f.t->mem.reserved[0], 4096);
    assert_int_equal(f.t->mem.addr[0], INT64_C(140000000000000));
    assert_int_equal(f.t->mem.allocated[1], -1); /* not recorded, not 0 */
    assert_int_equal(f.t->mem.reserved[1], -1);
    assert_int_equal(f.t->notes[NOTE_BAD_EVENT], 1); /* the one with no args */
    feed_free(&f);
}

static void a_failed_allocation_is_no_allocation(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD "{\"ph\":\"i\",\"name\":\"[OutOfMemory]\",\"pid\":9,\"tid\":1,"
             "\"ts\":5,\"args\":{\"Device Type\":1,\"Device Id\":0,"
             "\"Bytes\":1000,\"Total Allocated\":10,\"Total Reserved\":20}}]}");
    assert_int_equal(f.t->mem.n, 0);
    assert_int_equal(f.t->nooms, 1);
    assert_int_equal(f.t->ooms[0].bytes, 1000);
    assert_int_equal(f.t->ooms[0].allocated, 10);
    assert_int_equal(f.t->ooms[0].reserved, 20);
    assert_int_equal(f.t->ooms[0].device_free, -1);
    assert_int_equal(f.t->ooms[0].stack, ROW_NONE);
    assert_int_not_equal(f.t->ooms[0].track, ROW_NONE);
    feed_free(&f);
}

static void a_call_with_other_ids_first_is_still_linked(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"hipLaunchKernel"
        "\",\"pid\":9,\"tid\":1,\"ts\":1,\"dur\":1,\"args\":{\"device\":0,"
        "\"stream\":7,\"correlation\":5}}," KERNEL("gemm", "3", "4", "5") "]}");
    assert_int_equal(f.t->links.n, 1);
    feed_free(&f);
}

static void times_since_1970_are_kept_to_the_nanosecond(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD OP("a", "1623143089861234",
                "10") "," OP("b", "1623143089861300.125", "0.5") "]}");
    row_id a = feed_row(&f, "a"), b = feed_row(&f, "b");
    assert_int_equal(f.t->spans.ts[b] - f.t->spans.ts[a], 66125000);
    assert_true(f.t->sources[0].has_clock);
    assert_int_equal(f.t->epoch_ns % 1000000000, 0);
    assert_int_equal(f.t->epoch_ns / 1000000000, 1623143089);
    assert_int_equal(f.t->sources[0].rounding_ps, PS_PER_US);
    feed_free(&f);
}

static void one_broken_time_does_not_move_the_others(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD OP("a", "10", "1") "," OP("bad", "1e17", "1") "," OP(
            "worse", "9000000000000000000",
            "1") "," OP("b", "20", "1") "," OP("c", "30",
                                               "1") "," OP("d", "40",
                                                           "1") "]}");
    feed_check(&f, "a", 10 * PS_PER_US, PS_PER_US);
    feed_check(&f, "d", 40 * PS_PER_US, PS_PER_US);
    assert_int_equal(f.t->spans.n, 4);
    assert_int_equal(f.t->notes[NOTE_TIME_OUT_OF_RANGE] +
                         f.t->notes[NOTE_TIME_MISSING],
                     2);
    feed_free(&f);
    f = feed_text(HEAD OP("a", "1623143089861234", "1") "," OP(
        "b", "1623143089861235", "1") "," OP("old", "9000000000000", "1") "]}");
    assert_int_equal(f.t->spans.n, 2);
    assert_int_not_equal(feed_find(&f, "b"), ROW_NONE);
    feed_free(&f);
    f = feed_text(HEAD OP("only", "9223372036854775807", "1") "]}");
    assert_int_equal(f.t->spans.n, 0);
    assert_true(feed_notes(&f) > 0);
    feed_free(&f);
}

static void spellings_of_2021_are_understood(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"schemaVersion\":1,\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\",\"pid\":9,"
        "\"tid\":\"1\",\"ts\":1,\"dur\":2},"
        "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaLaunchKernel\","
        "\"pid\":9,\"tid\":\"1\",\"ts\":1,\"dur\":1,"
        "\"args\":{\"correlation\":7}},"
        "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"gemm\",\"pid\":0,"
        "\"tid\":\"stream 20\",\"ts\":3,\"dur\":1,"
        "\"args\":{\"correlation\":7}}]}");
    assert_int_equal(f.t->spans.kind[feed_row(&f, "aten::mm")], SPAN_OP);
    assert_int_equal(feed_track(&f, "gemm")->tid, 20);
    assert_int_equal(feed_track(&f, "aten::mm")->tid, 1);
    assert_int_equal(f.t->links.n, 1);
    feed_free(&f);
}

static void mangled_kernels_are_shown_in_words(void **state) {
    (void)state;
    struct feed f = feed_text(
        HEAD KERNEL("_Z3addPfS_i", "1", "1", "1") "," KERNEL("_Znope", "3", "1",
                                                             "2") "]}");
    assert_int_not_equal(feed_find(&f, "add(float*, float*, int)"), ROW_NONE);
    assert_int_not_equal(feed_find(&f, "_Znope"), ROW_NONE);
    feed_free(&f);
}

/* std::pair of two of the one before, 36 times: 2^36 letters in words. */
static void a_symbol_that_explodes_is_shown_as_it_is(void **state) {
    (void)state;
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char name[512] = "_Z1fSt4pairIiiE", text[1024];
    for (int i = 0; i < 36; i++)
        snprintf(name + strlen(name), 32, "S_IS%c_S%c_E", digits[i], digits[i]);
    snprintf(text, sizeof text,
             HEAD "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\","
                  "\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":1}]}",
             name);
    struct feed f = feed_text(text);
    assert_int_not_equal(feed_find(&f, name), ROW_NONE);
    feed_free(&f);
}

#define SPAN(cat, name, tid, ts, dur)                                          \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name                       \
    "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts ",\"dur\":" dur "}"

/* The track of the first span called a is that of b? */
static bool together(const struct feed *f, const char *a, const char *b) {
    const uint32_t *track = f->t->spans.track;
    return track[feed_row(f, a)] == track[feed_row(f, b)];
}

static void overheads_go_to_the_innermost_span_around_them(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"schemaVersion\":1,\"traceEvents\":[" SPAN("overhead", "in both", "9", "12", "3") "," SPAN(
            "overhead", "outlives", "9", "18",
            "10") "," SPAN("overhead", "at the end", "9", "100",
                           "0") "," SPAN("overhead", "alone", "9", "200",
                                         "1") "," SPAN("cpu_op", "outer", "1",
                                                       "0",
                                                       "100") "," SPAN("cuda_"
                                                                       "runtim"
                                                                       "e",
                                                                       "call",
                                                                       "2",
                                                                       "10",
                                                                       "10") "]"
                                                                             "}");
    assert_true(together(&f, "in both", "call"));
    assert_true(together(&f, "outlives", "outer"));
    assert_false(together(&f, "at the end", "outer"));
    assert_true(together(&f, "at the end", "alone"));
    assert_int_equal(f.t->tracks[f.t->spans.track[feed_row(&f, "alone")]].kind,
                     TRACK_OTHER);
    feed_free(&f);
}

static void a_cut_anywhere_keeps_what_came_before(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const parts[] = {
        HEAD, OP("aten::mm", "1.5", "2.25"), ",", LAUNCH("2", "5"), ",",
        KERNEL("gemm \\u00e9 {\\\"ph\\\"", "3", "4", "5"), ",\n",
        OP("last", "9", "1"), "],\"traceName\":\"x\"}"};
    /* clang-format on */
    char text[2048] = "";
    size_t ends[4], n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        strcat(text, parts[i]);
        if (parts[i][1] == '"' && parts[i][2] == 'p') ends[n++] = strlen(text);
    }
    assert_int_equal(n, 4);
    feed_cuts(text, ends, n, false);
}

#define FLOW(ph, cat, id, tid, ts)                                             \
    "{\"ph\":\"" ph "\",\"id\":" id ",\"pid\":9,\"tid\":" tid ",\"ts\":" ts    \
    ",\"cat\":\"" cat "\",\"name\":\"" cat "\",\"bp\":\"e\"}"

static void arrows_to_the_backward_are_read(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const text[] = {
        HEAD OP("aten::mm", "1", "2") "," FLOW("s", "fwdbwd", "1", "1", "1")
        "," FLOW("s", "ac2g", "5", "1", "2") ","
        OP("MmBackward0", "10", "2") "," FLOW("f", "fwdbwd", "1", "1", "10")
        "," FLOW("f", "ac2g", "5", "1", "10") "]}",
        HEAD OP("aten::mm", "1", "2") ","
        FLOW("s", "forward_backward", "1", "1", "1") ","
        OP("MmBackward0", "10", "2") ","
        FLOW("f", "forward_backward", "1", "1", "10") "]}",
    };
    /* clang-format on */
    for (int i = 0; i < 2; i++) {
        struct feed f = feed_text(text[i]);
        assert_int_equal(f.t->flows.n, 1);
        assert_int_equal(f.t->flows.from[0], feed_row(&f, "aten::mm"));
        assert_int_equal(f.t->flows.to[0], feed_row(&f, "MmBackward0"));
        assert_int_equal(f.t->notes[NOTE_FLOW_DANGLING], 0);
        feed_free(&f);
    }
}

/* What a device's queue does is told by names where the category is one for
 * all: waits are no work, transfers have a direction and a size. */
static void queues_of_other_devices_are_understood(void **state) {
    (void)state;
#define QUEUE(name, ts, more)                                                  \
    "{\"ph\":\"X\",\"cat\":\"mtia_ccp_events\",\"name\":\"" name               \
    "\",\"pid\":9,\"tid\":31,\"ts\":" ts                                       \
    ",\"dur\":5,\"args\":{\"stream\":3" more "}}"
    struct feed f = feed_text(
        HEAD
        "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":9,"
        "\"tid\":0,\"args\":{\"labels\":\"MTIA 9\"}}," QUEUE(
            "event_wait", "0",
            ",\"wait_on_stream\":4") "," QUEUE("merge", "5",
                                               "") "," QUEUE("event_record",
                                                             "10",
                                                             "") "," QUEUE("dma"
                                                                           "_re"
                                                                           "que"
                                                                           "st",
                                                                           "15",
                                                                           ",\""
                                                                           "dir"
                                                                           "ect"
                                                                           "ion"
                                                                           "\":"
                                                                           "\"H"
                                                                           "OST"
                                                                           "_TO"
                                                                           "_DE"
                                                                           "VIC"
                                                                           "E\""
                                                                           ",\""
                                                                           "siz"
                                                                           "e\""
                                                                           ":40"
                                                                           "96") "]}");
    const struct spans *s = &f.t->spans;
    assert_int_equal(s->kind[feed_row(&f, "event_wait")], SPAN_SYNC);
    assert_int_equal(s->kind[feed_row(&f, "event_record")], SPAN_SYNC);
    assert_int_equal(s->kind[feed_row(&f, "merge")], SPAN_KERNEL);
    row_id copy = feed_row(&f, "dma_request");
    assert_int_equal(s->kind[copy], SPAN_COPY);
    assert_int_equal(f.t->ndevices, 1);
    assert_string_equal(strs_text(&f.t->strs, f.t->devices[0].label), "MTIA 9");
    assert_true(f.t->devices[0].labelled);
    feed_free(&f);
}

/* Devices by their name and keys of 2021; what the profiler logged of its own
 * doings is no fact about the program, what went wrong is. */
static void keys_of_2021_and_logs(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"schemaVersion\":1,\"computeProperties\":[{\"id\":1,\"name\":"
        "\"Tesla V100\",\"totalGlobalMem\":34084028416,\"major\":7,"
        "\"minor\":2,\"maxThreadsPerMultiProcessor\":2048,"
        "\"multiProcessorCount\":80}],\"INFO\":[\"Tracing starting\"],"
        "\"ERROR\":[\"it failed\"],\"traceEvents\":[" OP("aten::mm", "1",
                                                         "2") "]}");
    assert_int_equal(f.t->ndevices, 1);
    const struct device *d = &f.t->devices[0];
    assert_int_equal(d->ordinal, 1);
    assert_string_equal(strs_text(&f.t->strs, d->model), "Tesla V100");
    assert_int_equal(d->units, 80);
    assert_int_equal(d->cc_major, 7);
    assert_int_equal(d->cc_minor, 2);
    assert_int_equal(d->threads_per_unit, 2048);
    assert_null(trace_meta_get(f.t, 0, "INFO"));
    assert_non_null(trace_meta_get(f.t, 0, "ERROR"));
    feed_free(&f);
}

/* Sizes and totals that the model keeps for words of its own, as a file may
 * have them: the size cannot be, the total is none. */
static void numbers_that_are_no_words(void **state) {
    (void)state;
#define MEMORY(ts, bytes, total)                                               \
    "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\","                 \
    "\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":" ts                     \
    ",\"args\":{\"Bytes\":" bytes ",\"Addr\":5,\"Total Allocated\":" total     \
    ",\"Device Type\":0,\"Device Id\":-1}}"
    struct feed f = feed_text("{\"schemaVersion\":1,\"traceEvents\":[" /* */
                              MEMORY("5", "-9223372036854775807",
                                     "0") "," MEMORY("6", "64", "-2") "]}");
#undef MEMORY
    assert_int_equal(f.t->mem.n, 1);
    assert_int_equal(f.t->mem.bytes[0], 64);
    assert_int_equal(f.t->mem.allocated[0], -1);
    assert_int_equal(f.t->notes[NOTE_SIZE_OUT_OF_RANGE], 1);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_of_other_devices_are_understood),
        cmocka_unit_test(keys_of_2021_and_logs),
        cmocka_unit_test(arrows_to_the_backward_are_read),
        cmocka_unit_test(categories_become_kinds_and_tracks),
        cmocka_unit_test(times_are_shown_as_fine_as_the_file_gives_them),
        cmocka_unit_test(keys_behind_the_events_count_as_those_before),
        cmocka_unit_test(profile_memory_off_does_not_deny_the_events),
        cmocka_unit_test(memory_events_keep_what_was_recorded),
        cmocka_unit_test(a_failed_allocation_is_no_allocation),
        cmocka_unit_test(a_call_with_other_ids_first_is_still_linked),
        cmocka_unit_test(times_since_1970_are_kept_to_the_nanosecond),
        cmocka_unit_test(one_broken_time_does_not_move_the_others),
        cmocka_unit_test(spellings_of_2021_are_understood),
        cmocka_unit_test(mangled_kernels_are_shown_in_words),
        cmocka_unit_test(a_symbol_that_explodes_is_shown_as_it_is),
        cmocka_unit_test(overheads_go_to_the_innermost_span_around_them),
        cmocka_unit_test(shapes_are_told_by_the_events),
        cmocka_unit_test(regions_of_2021_are_no_ops),
        cmocka_unit_test(what_outlasts_the_profiler_ends_with_the_last_event),
        cmocka_unit_test(a_cut_anywhere_keeps_what_came_before),
        cmocka_unit_test(numbers_that_are_no_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
