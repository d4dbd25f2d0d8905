/* SPDX-License-Identifier: Apache-2.0
 * input: stages, their parents, whose time is whose, and what is exposed. */
#include "feed.h"
#include "tiny.h"

#include "names/input_names.h"
#include <stdio.h>

/* Exposed over all stages is the input phase of the steps. */
static void check_sum(const struct trace *t, const char *opt,
                      const char *value) {
    struct result in = tiny_run(t, "input", opt, value);
    struct result steps = tiny_run(t, "steps", opt, value);
    int64_t exposed = 0, phase = 0;
    for (size_t i = 0; i < in.nrows; i++)
        exposed += tiny_cell(&in, i, "exposed_us")->i;
    for (size_t i = 0; i < steps.nrows; i++)
        phase += tiny_cell(&steps, i, "input_us")->i;
    assert_int_equal(exposed, phase);
    result_free(&in);
    result_free(&steps);
}

static bool says(const struct result *r, const char *part) {
    for (size_t i = 0; i < r->nremarks; i++)
        if (strstr(r->remarks[i], part)) return true;
    return false;
}

static const char *parent_of(const struct result *r, const char *stage) {
    struct cell *c = tiny_cell(r, tiny_row(r, stage), "parent");
    return c->null ? "" : c->s;
}

static row_id mark(struct trace *t, uint32_t track, const char *name,
                   int64_t ts, int64_t dur) {
    row_id r = tiny_span(t, track, SPAN_ANNOTATION, name, ts, dur);
    t->spans.flags[r] |= SPAN_STEPMARK;
    trace_step_hint(t, r, ts / 100);
    return r;
}

static void empty_trace_and_one_span_say_so(void **state) {
    (void)state;
    for (int spans = 0; spans < 2; spans++) {
        struct trace *t = tiny_new(false, false);
        if (spans) tiny_span(t, tiny_thread(t, 1), SPAN_OP, "aten::mm", 0, 5);
        tiny_seal(t);
        struct result r = tiny_run(t, "input", NULL, NULL);
        assert_int_equal(r.nrows, 0);
        assert_true(says(&r, "No input pipeline"));
        result_free(&r);
        check_sum(t, NULL, NULL);
        trace_free(t);
    }
}

static void device_alone_has_copies_only(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t s = tiny_stream(t, 0, 7);
    tiny_span(t, s, SPAN_KERNEL, "k", 0, 10);
    tiny_span(t, s, SPAN_COPY, "Memcpy HtoD (Pageable -> Device)", 10, 4);
    tiny_span(t, s, SPAN_COPY, "Memcpy DtoH (Device -> Pinned)", 20, 4);
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_us(&r, "copy to device (pageable)", "total_us"), 4);
    assert_int_equal(tiny_us(&r, "copy to device (pageable)", "exposed_us"), 0);
    assert_string_equal(tiny_cell(&r, 0, "advice")->s, "pin_memory");
    assert_true(says(&r, "No input pipeline"));
    result_free(&r);
    check_sum(t, NULL, NULL);
    trace_free(t);
}

/* A sequential map on the step's thread: 10..60 waits, of which the map runs
 * 20..50 itself but for its batch, 20..25. */
static void sequential_map_owns_its_wait(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    mark(t, th, "train", 0, 100);
    tiny_span(t, th, SPAN_RUNTIME, "IteratorGetNextOp::DoCompute", 10, 50);
    tiny_span(t, th, SPAN_OP, "Iterator::Root", 15, 40);
    tiny_span(t, th, SPAN_OP, "Iterator::Root::Map", 20, 30);
    tiny_span(t, th, SPAN_OP, "Iterator::Root::Map::BatchV2", 20, 5);
    tiny_span(t, th, SPAN_RUNTIME, "InstantiatedCapturedFunction::Run", 26, 20);
    tiny_span(t, th, SPAN_OP, "aten::mm", 60, 40);
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_int_equal(r.nrows, 4);
    assert_int_equal(tiny_row(&r, "Iterator::Root::Map::BatchV2"), 3);
    assert_int_equal(tiny_us(&r, "Iterator::Root::Map", "total_us"), 30);
    assert_int_equal(tiny_us(&r, "Iterator::Root::Map", "self_us"), 25);
    assert_int_equal(tiny_us(&r, "Iterator::Root::Map", "exposed_us"), 25);
    assert_int_equal(tiny_us(&r, "Iterator::Root::Map", "function_us"), 20);
    assert_int_equal(tiny_us(&r, "IteratorGetNextOp::DoCompute", "exposed_us"),
                     10);
    assert_string_equal(parent_of(&r, "Iterator::Root"),
                        "IteratorGetNextOp::DoCompute");
    assert_string_equal(
        tiny_cell(&r, tiny_row(&r, "Iterator::Root::Map"), "advice")->s,
        "num_parallel_calls");
    assert_true(says(&r, "Input is the bottleneck"));
    result_free(&r);
    check_sum(t, NULL, NULL);
    trace_free(t);
}

/* As TensorFlow writes it: the map's runner fetches an element and starts the
 * function; the pool's threads run it. The step's thread waits for nothing. */
/* clang-format off */
static const char parallel[] =
    "{\"traceEvents\":["
#define X(tid, name, ts, dur, args)                                            \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":" #tid ",\"name\":\"" name "\",\"ts\":"   \
    #ts ",\"dur\":" #dur ",\"args\":" args "}"
    X(1, "train", 0, 100, "{\"step_num\":0}") ","
    X(1, "IteratorGetNextOp::DoCompute", 2, 4, "{}") ","
    X(1, "Iterator::Root", 3, 2, "{}") ","
    X(1, "Iterator::Root::Prefetch", 3, 1, "{}") ","
    X(2, "Iterator::Root::Prefetch::ParallelMapV2", 10, 8, "{}") ","
    X(3, "Iterator::Root::Prefetch::ParallelMapV2::Range", 10, 1, "{}") ","
    X(3, "InstantiatedCapturedFunction::RunAsync", 12, 1, "{\"id\":-77}") ","
    X(3, "Iterator::Root::Prefetch::ParallelMapV2::Range", 20, 1, "{}") ","
    X(3, "InstantiatedCapturedFunction::RunAsync", 22, 1, "{\"id\":78}") ","
    X(4, "ExecutorState::Process", 13, 30, "{\"id\":-77}") ","
    X(4, "ExecutorState::Process", 14, 5, "{\"id\":-77}") ","
    X(4, "ExecutorState::Process", 50, 9, "{\"id\":5}") ","
    X(5, "ExecutorState::Process", 23, 20, "{\"id\":78}") "]}";
#undef X
/* clang-format on */

static void parallel_map_gets_its_function(void **state) {
    (void)state;
    struct feed f = feed_text(parallel);
    struct result r = tiny_run(f.t, "input", NULL, NULL);
    const char *map = "Iterator::Root::Prefetch::ParallelMapV2";
    const char *range = "Iterator::Root::Prefetch::ParallelMapV2::Range";
    assert_int_equal(tiny_us(&r, map, "call_us"), 8);
    assert_int_equal(tiny_us(&r, map, "function_us"), 50);
    /* in 13..18 the caller waits for the function: once, not twice */
    assert_int_equal(tiny_us(&r, map, "total_us"), 53);
    assert_int_equal(tiny_us(&r, map, "self_us"), 53);
    assert_int_equal(tiny_us(&r, map, "busy_us"), 30);
    assert_int_equal(tiny_int(&r, map, "threads"), 2);
    assert_int_equal(tiny_us(&r, map, "exposed_us"), 0);
    assert_int_equal(tiny_us(&r, range, "self_us"), 2);
    assert_string_equal(parent_of(&r, range), map);
    assert_string_equal(parent_of(&r, map), "Iterator::Root::Prefetch");
    assert_int_equal(tiny_us(&r, "Iterator::Root::Prefetch", "exposed_us"), 1);
    assert_true(says(&r, "not the bottleneck"));
    assert_true(says(&r, "and keeps up"));
    result_free(&r);
    check_sum(f.t, NULL, NULL);
    feed_free(&f);
}

/* The workers of an interleave never rest; its caller waits for them. */
static void the_slowest_stage_works_and_does_not_wait(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1), a = tiny_thread(t, 2);
    uint32_t b = tiny_thread(t, 3);
    mark(t, th, "train", 0, 100);
    tiny_span(t, th, SPAN_RUNTIME, "IteratorGetNextOp::DoCompute", 0, 90);
    tiny_span(t, th, SPAN_OP, "Iterator::Interleave", 0, 90);
    tiny_span(t, a, SPAN_OP, "Iterator::Interleave[0]::Map", 0, 60);
    tiny_span(t, a, SPAN_OP, "Iterator::Interleave[0]::Map::Range", 5, 5);
    tiny_span(t, b, SPAN_OP, "Iterator::Interleave[0]::Map", 30, 65);
    tiny_span(t, b, SPAN_OP, "Iterator::Interleave[0]::Map::Range", 97, 2);
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    const char *map = "Iterator::Interleave[0]::Map";
    assert_int_equal(tiny_us(&r, map, "self_us"), 60 - 5 + 65);
    assert_int_equal(tiny_us(&r, map, "busy_us"), 95 - 5);
    size_t up = tiny_row(&r, "Iterator::Interleave");
    assert_true(tiny_cell(&r, up, "busy_us")->null);
    assert_true(says(&r, "The slowest stage is Iterator::Interleave[0]::Map: "
                         "at work 0.090 ms per step (90.0 %) on 2 threads, so "
                         "it limits the step"));
    result_free(&r);
    check_sum(t, NULL, NULL);
    trace_free(t);
}

/* model.fit: the executor's thread asks, the step's thread waits for all. */
static void waits_of_others_are_told_apart(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1), get = tiny_thread(t, 2);
    uint32_t pool = tiny_thread(t, 3);
    mark(t, th, "Profiled batch", 0, 100);
    tiny_span(t, th, SPAN_RUNTIME, "FunctionRun", 1, 98);
    tiny_span(t, get, SPAN_RUNTIME, "IteratorGetNextOp::DoCompute", 10, 50);
    tiny_span(t, pool, SPAN_OP, "conv:Conv2D", 50, 40);
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_int_equal(tiny_us(&r, "IteratorGetNextOp::DoCompute", "exposed_us"),
                     0);
    assert_true(says(&r, "0.040 ms of each step of 0.100 ms (40.0 %)"));
    assert_true(says(&r, "not in exposed_us"));
    assert_int_equal(tiny_us(&r, "IteratorGetNextOp::DoCompute", "waited_us"),
                     40);
    assert_float_equal(tiny_cell(&r, 0, "waited_pct")->f, 40, 1e-9);
    result_free(&r);
    /* what `input` calls the bottleneck is it in `overview`, too */
    r = tiny_run(t, "overview", NULL, NULL);
    bool told = false;
    for (size_t i = 0; i < r.nrows; i++) {
        const char *text = tiny_cell(&r, i, "text")->s;
        told |= text != NULL &&
                strstr(text, "waits for its input, in another thread") != NULL;
    }
    assert_true(told);
    result_free(&r);
    check_sum(t, NULL, NULL);
    trace_free(t);
}

/* The wait 10..40 in __next__, of which aten::stack takes 20..30; the device
 * works 15..25 and 50..60. Its first launch is at 45. */
static struct trace *loader(const char *name, int devices) {
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1), pin = tiny_thread(t, 9);
    mark(t, th, "ProfilerStep#0", 0, 100);
    tiny_span(t, th, SPAN_ANNOTATION, name, 10, 30);
    tiny_span(t, th, SPAN_OP, "aten::stack", 20, 10);
    tiny_span(t, th, SPAN_OP, "aten::cat", 21, 2);
    tiny_span(t, pin, SPAN_API, "cudaHostAlloc", 3, 4);
    tiny_span(t, pin, SPAN_API, "cudaEventQuery", 8, 1);
    uint32_t s = tiny_stream(t, 0, 7);
    tiny_span(t, s, SPAN_KERNEL, "of before", 15, 10);
    tiny_span(t, s, SPAN_COPY, "Memcpy HtoD (Pinned -> Device)", 42, 2);
    tiny_launch(t, th, s, "k", 45, 10);
    for (int d = 1; d < devices; d++)
        tiny_span(t, tiny_stream(t, d, 7), SPAN_KERNEL, "k", 30 - d, 7);
    tiny_seal(t);
    return t;
}

static void loader_waits_are_exposed_where_the_device_idles(void **state) {
    (void)state;
    const char *next = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter."
                       "__next__";
    struct trace *t = loader(next, 1);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_int_equal(tiny_us(&r, next, "self_us"), 20);
    assert_int_equal(tiny_us(&r, next, "exposed_us"), 5 + 10);
    assert_int_equal(tiny_us(&r, "aten::stack", "exposed_us"), 5);
    assert_int_equal(tiny_us(&r, "aten::stack", "hidden_us"), 5);
    assert_false(tiny_has_row(&r, "aten::cat"));
    assert_int_equal(tiny_us(&r, "DataLoader pin_memory thread", "total_us"),
                     5);
    assert_int_equal(tiny_int(&r, "copy to device (pinned)", "calls"), 1);
    assert_true(tiny_misses(&r, "the loader's workers"));
    result_free(&r);
    check_sum(t, NULL, NULL);
    trace_free(t);
}

static void two_and_three_devices_are_their_mean(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) {
        struct trace *t = loader("enumerate(DataLoader)#_SingleProcess"
                                 "DataLoaderIter.__next__",
                                 n);
        check_sum(t, NULL, NULL);
        struct result r = tiny_run(t, "input", NULL, NULL);
        assert_false(tiny_misses(&r, "the loader's workers"));
        result_free(&r);
        trace_free(t);
    }
}

/* Regions before the first launch; a wait that lies across two steps. */
static void loops_and_steps(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1), s = tiny_stream(t, 0, 7);
    for (int i = 0; i < 4; i++) {
        mark(t, th, "train", 100 * i, 90);
        tiny_span(t, th, SPAN_ANNOTATION, "load_batch", 100 * i + 5, 20 + i);
        tiny_span(t, th, SPAN_ANNOTATION, "decode", 100 * i + 10, 7);
        tiny_launch(t, th, s, "k", 100 * i + 40, 20);
        tiny_span(t, th, SPAN_ANNOTATION, "log", 100 * i + 70, 9);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_us(&r, "load_batch", "total_us"), 86);
    assert_int_equal(tiny_us(&r, "load_batch", "self_us"), 58);
    assert_int_equal(tiny_us(&r, "decode", "exposed_us"), 28);
    assert_string_equal(parent_of(&r, "decode"), "load_batch");
    result_free(&r);
    check_sum(t, NULL, NULL);
    check_sum(t, "steps", "1..2");
    r = tiny_run(t, "input", "steps", "2..2");
    assert_int_equal(tiny_us(&r, "load_batch", "total_us"), 22);
    result_free(&r);
    trace_free(t);
}

/* Spans that cross, a stage inside itself, parents in a circle. */
static void damaged_nesting_still_sums(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1), other = tiny_thread(t, 2);
    mark(t, th, "train", 0, 100);
    tiny_span(t, th, SPAN_OP, "Iterator::B", 0, 30);
    tiny_span(t, th, SPAN_OP, "Iterator::A", 5, 20);
    tiny_span(t, th, SPAN_OP, "Iterator::A", 6, 10);
    tiny_span(t, th, SPAN_OP, "Iterator::C", 20, 50);
    tiny_span(t, th, SPAN_OP, "Iterator::D", 60, 0);
    tiny_span(t, other, SPAN_OP, "Iterator::A", 0, 50);
    tiny_span(t, other, SPAN_OP, "Iterator::B", 10, 20);
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_int_equal(r.nrows, 4);
    assert_int_equal(tiny_int(&r, "Iterator::A", "calls"), 3);
    assert_int_equal(tiny_us(&r, "Iterator::A", "total_us"), 20 + 50);
    assert_int_equal(tiny_int(&r, "Iterator::D", "calls"), 1);
    int64_t exposed = 0;
    for (size_t i = 0; i < r.nrows; i++)
        exposed += tiny_cell(&r, i, "exposed_us")->i;
    assert_int_equal(exposed, 70 * US);
    result_free(&r);
    check_sum(t, NULL, NULL);
    trace_free(t);
}

/* FlatMap makes an iterator for each element: many are one stage. */
/* Two waits of which the second begins inside the first and outlives it. */
static void a_wait_that_outlives_its_wait_goes_on(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    mark(t, th, "train", 0, 100);
    tiny_span(t, th, SPAN_RUNTIME, "IteratorGetNextOp::DoCompute", 10, 20);
    tiny_span(t, th, SPAN_RUNTIME, "IteratorGetNextOp::DoCompute", 20, 40);
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_us(&r, "IteratorGetNextOp::DoCompute", "total_us"),
                     50);
    assert_int_equal(tiny_us(&r, "IteratorGetNextOp::DoCompute", "exposed_us"),
                     50);
    result_free(&r);
    check_sum(t, NULL, NULL);
    trace_free(t);
}

static void many_indices_are_one_stage(void **state) {
    (void)state;
    for (int n = 16; n <= 17; n++) {
        struct trace *t = tiny_new(false, false);
        uint32_t th = tiny_thread(t, 1);
        mark(t, th, "train", 0, 1000);
        for (int i = 0; i < n; i++) {
            char name[64];
            snprintf(name, sizeof name, "Iterator::Root::FlatMap[%d]::Range",
                     i);
            tiny_span(t, th, SPAN_OP, "Iterator::Root::FlatMap", 10 * i, 9);
            tiny_span(t, th, SPAN_OP, name, 10 * i + 1, 3);
        }
        tiny_seal(t);
        struct result r = tiny_run(t, "input", NULL, NULL);
        assert_int_equal(r.nrows, n == 16 ? 17 : 2);
        if (n == 17)
            assert_int_equal(tiny_int(&r, "Iterator::Root::FlatMap[*]::Range",
                                      "calls"),
                             17);
        result_free(&r);
        check_sum(t, NULL, NULL);
        trace_free(t);
    }
}

static void kind_is(const char *name, enum stage_kind k, const char *up) {
    struct bytes p = stage_name_parent(bytes_of(name));
    assert_int_equal(stage_kind_of(bytes_of(name)), k);
    assert_int_equal(p.n, strlen(up));
    assert_memory_equal(p.p, up, p.n);
}

static void names_say_kind_and_parent(void **state) {
    (void)state;
    kind_is("Iterator::Root::Prefetch", STAGE_PREFETCH, "Iterator::Root");
    kind_is("Iterator::Root::Zip[1]::ParallelMapV2", STAGE_MAP,
            "Iterator::Root::Zip");
    kind_is("Iterator::Batch[0]::TFRecord", STAGE_SOURCE, "Iterator::Batch");
    kind_is("Iterator::Map::BatchV2", STAGE_BATCH, "Iterator::Map");
    kind_is("Iterator::Root::FlatMap", STAGE_FLOW, "Iterator::Root");
    kind_is("Iterator::MemoryCacheImpl", STAGE_CACHE, "Iterator");
    kind_is("]", STAGE_FLOW, "");
    kind_is("a]::b", STAGE_FLOW, "");
    kind_is("", STAGE_FLOW, "");
}

/* A gap before the first event of each step could be input in plain Python. */
static void unseen_time_is_told(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1), s = tiny_stream(t, 0, 7);
    for (int i = 0; i < 3; i++) {
        mark(t, th, "train", 100 * i, 95);
        tiny_launch(t, th, s, "k", 100 * i + 50, 20);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "input", NULL, NULL);
    assert_true(says(&r, "nothing at all was recorded"));
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace_and_one_span_say_so),
        cmocka_unit_test(device_alone_has_copies_only),
        cmocka_unit_test(sequential_map_owns_its_wait),
        cmocka_unit_test(parallel_map_gets_its_function),
        cmocka_unit_test(the_slowest_stage_works_and_does_not_wait),
        cmocka_unit_test(waits_of_others_are_told_apart),
        cmocka_unit_test(loader_waits_are_exposed_where_the_device_idles),
        cmocka_unit_test(two_and_three_devices_are_their_mean),
        cmocka_unit_test(loops_and_steps),
        cmocka_unit_test(damaged_nesting_still_sums),
        cmocka_unit_test(a_wait_that_outlives_its_wait_goes_on),
        cmocka_unit_test(many_indices_are_one_stage),
        cmocka_unit_test(names_say_kind_and_parent),
        cmocka_unit_test(unseen_time_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
