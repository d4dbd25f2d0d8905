/* SPDX-License-Identifier: Apache-2.0
 * ops on traces small enough to add up by hand. */
#include "tiny.h"

#include "analyze/cost/op_cost.h"
#include "analyze/shared/op_inputs.h"

static void empty_trace(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "device"));
    assert_true(tiny_misses(&r, "memory"));
    result_free(&r);
    trace_free(t);
}

static void one_span(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "aten::mm", 5, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_int(&r, "aten::mm", "calls"), 1);
    assert_int_equal(tiny_us(&r, "aten::mm", "host_us"), 10);
    assert_int_equal(tiny_us(&r, "aten::mm", "host_self_us"), 10);
    assert_true(tiny_null(&r, "aten::mm", "device_us"));
    assert_true(tiny_null(&r, "aten::mm", "host_bytes"));
    assert_true(tiny_null(&r, "aten::mm", "flops"));
    double share = tiny_cell(&r, 0, "share_pct")->f;
    assert_true(share > 99.9999 && share < 100.0001);
    result_free(&r);
    trace_free(t);
}

/* a(0..100) { b(10..40) { api(20..25) } b(50..60) } */
static void self_time_leaves_out_children(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_ANNOTATION, "a", 0, 100);
    tiny_span(t, th, SPAN_OP, "b", 10, 30);
    tiny_span(t, th, SPAN_API, "cudaLaunchKernel", 20, 5);
    tiny_span(t, th, SPAN_OP, "b", 50, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_us(&r, "a", "host_self_us"), 60);
    assert_int_equal(tiny_us(&r, "b", "host_us"), 40);
    assert_int_equal(tiny_us(&r, "b", "host_self_us"), 35);
    assert_int_equal(tiny_us(&r, "cudaLaunchKernel", "host_self_us"), 5);
    assert_string_equal(tiny_cell(&r, tiny_row(&r, "a"), "kind")->s,
                        "annotation");
    result_free(&r);
    trace_free(t);
}

/* An only child of its parent's name is the same call: x { x { x { y } } } */
static void only_child_of_same_name_merges(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1), st = tiny_stream(t, 0, 7);
    tiny_span(t, th, SPAN_OP, "x", 0, 100);
    tiny_span(t, th, SPAN_OP, "x", 10, 80);
    tiny_span(t, th, SPAN_OP, "x", 20, 60);
    tiny_launch(t, th, st, "kernel", 30, 9);
    /* two children of that name are two calls */
    tiny_span(t, th, SPAN_OP, "z", 200, 50);
    tiny_span(t, th, SPAN_OP, "z", 210, 10);
    tiny_span(t, th, SPAN_OP, "z", 230, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_int(&r, "x", "calls"), 1);
    assert_int_equal(tiny_us(&r, "x", "host_us"), 100);
    assert_int_equal(tiny_us(&r, "x", "host_self_us"), 99);
    assert_int_equal(tiny_us(&r, "x", "device_us"), 9);
    assert_int_equal(tiny_us(&r, "x", "device_self_us"), 9);
    assert_int_equal(tiny_int(&r, "z", "calls"), 3);
    assert_int_equal(tiny_us(&r, "z", "host_us"), 70);
    assert_int_equal(tiny_us(&r, "z", "host_self_us"), 50);
    result_free(&r);
    trace_free(t);
}

/* Marks of the profiler vanish; what they contain goes to the span around. */
static void bookkeeping_names_are_no_rows(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_OP, "outer", 0, 100);
    tiny_span(t, th, SPAN_OP, "profiler::_record_function_enter_new", 10, 50);
    tiny_span(t, th, SPAN_OP, "inner", 20, 10);
    tiny_span(t, th, SPAN_OP, "aten::_version", 70, 10);
    tiny_span(t, th, SPAN_RUNTIME, "Executor", 80, 15);
    tiny_span(t, th, SPAN_OP, "inner", 82, 5);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_us(&r, "outer", "host_self_us"), 85);
    assert_int_equal(tiny_us(&r, "inner", "host_us"), 15);
    result_free(&r);
    trace_free(t);
}

static void step_markers_are_one_row(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_ANNOTATION, "ProfilerStep#7", 0, 10);
    tiny_span(t, th, SPAN_ANNOTATION, "ProfilerStep#8", 10, 20);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_int(&r, "ProfilerStep*", "calls"), 2);
    assert_int_equal(tiny_us(&r, "ProfilerStep*", "host_us"), 30);
    result_free(&r);
    trace_free(t);
}

/* p(0..10) and q(5..15) cross: neither is a child of the other, and of the time
 * that both have the later one has it. */
static void crossing_spans_count_no_instant_twice(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_OP, "p", 0, 10);
    tiny_span(t, th, SPAN_OP, "q", 5, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_us(&r, "p", "host_us"), 10);
    assert_int_equal(tiny_us(&r, "p", "host_self_us"), 5);
    assert_int_equal(tiny_us(&r, "q", "host_self_us"), 10);
    result_free(&r);
    trace_free(t);
}

/* Two children of p overlap: p has nothing left, not less than nothing; and
 * what a name has in `ops` it has in `stacks` and in `tree`. */
static void children_that_overlap_are_taken_off_once(void **state) {
    (void)state;
    static const struct {
        const char *analysis, *key, *value, *column;
    } asks[] = {
        {"ops", NULL, NULL, "host_self_us"},
        {"stacks", "by", "host", "self_us"},
        {"tree", "by", "op", "host_self_us"},
    };
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_OP, "p", 0, 100);
    tiny_span(t, th, SPAN_OP, "a", 0, 80);
    tiny_span(t, th, SPAN_OP, "b", 20, 80);
    tiny_seal(t);
    for (size_t i = 0; i < 3; i++) {
        struct result r = tiny_run(t, asks[i].analysis, asks[i].key,
                                   asks[i].value);
        const char *a = i == 1 ? "p;a" : i == 2 ? "p/a" : "a";
        const char *b = i == 1 ? "p;b" : i == 2 ? "p/b" : "b";
        if (i != 1) assert_int_equal(tiny_us(&r, "p", asks[i].column), 0);
        assert_int_equal(tiny_us(&r, a, asks[i].column), 20);
        assert_int_equal(tiny_us(&r, b, asks[i].column), 80);
        result_free(&r);
    }
    trace_free(t);
}

/* f() calls itself 50 times: 51 calls, as long as the outermost took, and each
 * has its own time. Only torch's files have one call twice. */
static void recursion_is_as_many_calls(void **state) {
    (void)state;
    static const char *const formats[] = {"xspace", "chrome", "kineto"};
    for (size_t k = 0; k < 3; k++) {
        struct trace *t = tiny_new(true, true);
        uint32_t th = tiny_thread(t, 1), st = tiny_stream(t, 0, 7);
        uint32_t cpu = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
        t->sources[0].format = format_named(formats[k]);
        for (int i = 0; i <= 50; i++)
            tiny_span(t, th, SPAN_OP, "f", i, 1000 - 2 * i);
        tiny_launch(t, th, st, "kernel", 60, 9);
        tiny_mem(t, cpu, th, 65, 512, 4096, -1);
        tiny_span(t, th, SPAN_OP, "f", 2000, 10); /* and once more, alone */
        tiny_seal(t);
        struct result r = tiny_run(t, "ops", NULL, NULL);
        bool torch = k == 2;
        assert_int_equal(tiny_int(&r, "f", "calls"), torch ? 2 : 52);
        assert_int_equal(tiny_us(&r, "f", "host_us"), 1010);
        assert_int_equal(tiny_us(&r, "f", "host_self_us"), 1009);
        assert_int_equal(tiny_us(&r, "f", "device_us"), 9);
        assert_int_equal(tiny_us(&r, "f", "device_self_us"), 9);
        assert_int_equal(tiny_int(&r, "f", "host_bytes"), 4096);
        assert_int_equal(tiny_int(&r, "f", "host_self_bytes"), 4096);
        result_free(&r);
        r = tiny_run(t, "tree", "by", "op");
        assert_int_equal(r.nrows, torch ? 1 : 51);
        assert_int_equal(tiny_int(&r, "f", "calls"), 2);
        assert_int_equal(tiny_us(&r, "f", "host_us"), 1010);
        result_free(&r);
        trace_free(t);
    }
}

/* f { g { f } f }: a call inside of another one, but not right under it. */
static void calls_of_one_name_inside_each_other_count_once(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1), other = tiny_thread(t, 2);
    t->sources[0].format = format_named("chrome");
    tiny_span(t, th, SPAN_OTHER, "f", 0, 100);
    tiny_span(t, th, SPAN_OTHER, "g", 10, 50);
    tiny_span(t, th, SPAN_OTHER, "f", 20, 30);
    tiny_span(t, th, SPAN_OTHER, "f", 70, 20);
    tiny_span(t, other, SPAN_OTHER, "f", 50, 100); /* threads add up */
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_int(&r, "f", "calls"), 4);
    assert_int_equal(tiny_us(&r, "f", "host_us"), 200);
    assert_int_equal(tiny_us(&r, "f", "host_self_us"), 180);
    assert_int_equal(tiny_us(&r, "g", "host_us"), 50);
    assert_int_equal(tiny_us(&r, "g", "host_self_us"), 20);
    result_free(&r);
    trace_free(t);
}

/* Device time: self of the innermost op around the launch, total of all. */
static void device_time_belongs_to_the_launcher(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1), st = tiny_stream(t, 0, 7);
    tiny_span(t, th, SPAN_ANNOTATION, "step", 0, 100);
    tiny_span(t, th, SPAN_OP, "outer", 10, 50);
    tiny_span(t, th, SPAN_OP, "inner", 20, 20);
    tiny_launch(t, th, st, "k1", 25, 7);
    tiny_launch(t, th, st, "k2", 45, 11);
    /* the annotation in between launched nothing: the op did */
    tiny_span(t, th, SPAN_ANNOTATION, "region", 50, 8);
    tiny_launch(t, th, st, "k4", 52, 5);
    tiny_launch(t, th, st, "k3", 150, 13);          /* outside every op */
    tiny_launch(t, th, st, "k5", 70, 19);           /* in an annotation only */
    tiny_span(t, st, SPAN_COPY, "Memcpy", 300, 17); /* no launch at all */
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_us(&r, "inner", "device_self_us"), 7);
    assert_int_equal(tiny_us(&r, "outer", "device_self_us"), 16);
    assert_int_equal(tiny_us(&r, "outer", "device_us"), 23);
    assert_int_equal(tiny_us(&r, "step", "device_self_us"), 0);
    assert_int_equal(tiny_us(&r, "step", "device_us"), 23);
    assert_int_equal(tiny_us(&r, "cudaLaunchKernel", "device_us"), 0);
    assert_int_equal(tiny_us(&r, "region", "device_us"), 0);
    assert_int_equal(r.nremarks, 1);
    assert_non_null(strstr(r.remarks[0], "3 device spans, 49.000 us"));
    result_free(&r);
    trace_free(t);
}

/* Both ends of a span count, and every thread's events do. */
static void memory_follows_torchs_rule(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t a = tiny_thread(t, 1), b = tiny_thread(t, 2);
    uint32_t host = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    uint32_t gpu = trace_allocator(t, 0, bytes_of("GPU 0"),
                                   trace_device(t, 0, DEVICE_GPU, 0));
    tiny_span(t, a, SPAN_OP, "outer", 10, 40);
    tiny_span(t, a, SPAN_OP, "inner", 20, 10);
    tiny_mem(t, host, a, 10, 1, 100, -1);
    tiny_mem(t, host, b, 30, 2, 1000, -1);
    tiny_mem(t, gpu, b, 25, 3, 512, -1);
    tiny_mem(t, gpu, a, 50, 3, -512, -1);
    tiny_mem(t, gpu, a, 51, 4, 64, -1);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_int(&r, "outer", "host_bytes"), 1100);
    assert_int_equal(tiny_int(&r, "outer", "host_self_bytes"), 100);
    assert_int_equal(tiny_int(&r, "outer", "device_bytes"), 0);
    assert_int_equal(tiny_int(&r, "outer", "device_self_bytes"), -512);
    assert_int_equal(tiny_int(&r, "inner", "host_bytes"), 1000);
    assert_int_equal(tiny_int(&r, "inner", "device_bytes"), 512);
    /* the last event lies in no span */
    assert_int_equal(tiny_int(&r, "[memory]", "device_bytes"), 64);
    assert_int_equal(tiny_int(&r, "[memory]", "host_bytes"), 0);
    assert_true(tiny_null(&r, "[memory]", "host_us"));
    result_free(&r);
    trace_free(t);
}

static void instants_and_async_spans_are_no_calls(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_OP, "op", 0, 10);
    struct span_in s = {.ts = 2 * US,
                        .track = th,
                        .name = trace_str(t, bytes_of("mark")),
                        .kind = SPAN_ANNOTATION,
                        .flags = SPAN_INSTANT};
    trace_span(t, &s);
    s.flags = SPAN_ASYNC;
    s.dur = 100 * US;
    trace_span(t, &s);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_us(&r, "op", "host_self_us"), 10);
    result_free(&r);
    trace_free(t);
}

/* What one thread begins and another one ends has calls and a time, but no
 * self time: it is on no thread, and those of one name overlap. */
static void spans_of_no_thread_have_a_row(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t apart = trace_track(t, 0, TRACK_ASYNC, 1, 7);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "op", 0, 10);
    for (int i = 0; i < 3; i++) {
        struct span_in s = {.ts = 5 * i * US,
                            .dur = 8 * US,
                            .track = apart,
                            .name = trace_str(t, bytes_of("io")),
                            .kind = SPAN_OP,
                            .flags = SPAN_ASYNC};
        trace_span(t, &s);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_int(&r, "io", "calls"), 3);
    assert_int_equal(tiny_us(&r, "io", "host_us"), 24);
    assert_int_equal(tiny_us(&r, "io", "host_mean_us"), 8);
    assert_true(tiny_null(&r, "io", "host_self_us"));
    assert_true(tiny_null(&r, "io", "share_pct"));
    assert_string_equal(tiny_cell(&r, 1, "kind")->s, "async");
    result_free(&r);
    trace_free(t);
}

/* A region that calls a graph waits in the framework's machinery while ops run
 * on other threads: that time is theirs. */
static void waiting_for_other_threads_ops_is_no_work(void **state) {
    (void)state;
    struct trace *t = trace_new();
    trace_source(t, "tiny", format_named("xspace"), NULL, (struct bytes){0});
    uint32_t a = tiny_thread(t, 1), b = tiny_thread(t, 2);
    tiny_span(t, a, SPAN_ANNOTATION, "step_fn", 0, 100);
    tiny_span(t, a, SPAN_RUNTIME, "FunctionRun", 10, 80);
    tiny_span(t, b, SPAN_OP, "mm:MatMul", 20, 50);
    /* machinery inside of an op carries the op out */
    tiny_span(t, a, SPAN_OP, "Conv2D", 200, 100);
    tiny_span(t, a, SPAN_RUNTIME, "KernelAndDeviceFunc::Run", 210, 80);
    tiny_span(t, b, SPAN_OP, "map:Cast", 220, 50);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_us(&r, "step_fn", "host_self_us"), 100);
    assert_int_equal(tiny_us(&r, "step_fn", "host_work_us"), 50);
    assert_int_equal(tiny_us(&r, "mm", "host_work_us"), 50);
    assert_int_equal(tiny_us(&r, "Conv2D", "host_work_us"), 100);
    double sum = 0;
    for (size_t i = 0; i < r.nrows; i++)
        sum += tiny_cell(&r, i, "share_pct")->f;
    assert_true(sum > 99.999 && sum < 100.001);
    result_free(&r);
    trace_free(t);
}

/* A plain Chrome trace knows regions only: they are its ops. */
static void regions_are_rows_where_nothing_better_is(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OTHER, "work", 0, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_us(&r, "work", "host_us"), 10);
    result_free(&r);
    trace_free(t);
}

/* Two files: one recorded memory, one did not; rows of the second are null. */
static void sources_differ_in_what_they_have(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    uint32_t s = trace_source(t, "other", format_named("kineto"), NULL,
                              (struct bytes){0});
    uint32_t a = tiny_thread(t, 1);
    uint32_t b = trace_track(t, s, TRACK_THREAD, 1, 1);
    uint32_t host = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    tiny_span(t, a, SPAN_OP, "both", 0, 10);
    tiny_span(t, b, SPAN_OP, "both", 0, 30);
    tiny_span(t, b, SPAN_OP, "second", 50, 10);
    tiny_mem(t, host, a, 5, 1, 100, -1);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_us(&r, "both", "host_us"), 40);
    assert_int_equal(tiny_int(&r, "both", "host_bytes"), 100);
    assert_true(tiny_null(&r, "second", "host_bytes"));
    assert_true(tiny_misses(&r, "memory"));
    result_free(&r);
    trace_free(t);
}

/* A loop of 100 with two rounds of 30 inside, on an XLA device. */
static void ops_of_a_tpu_nest(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t d = trace_device(t, 0, DEVICE_TPU, 0);
    uint32_t st = trace_track(t, 0, TRACK_STREAM, 0, 1);
    t->tracks[st].device = d;
    tiny_span(t, st, SPAN_KERNEL, "while", 0, 100);
    tiny_span(t, st, SPAN_KERNEL, "fusion", 10, 30);
    tiny_span(t, st, SPAN_KERNEL, "fusion", 50, 30);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(tiny_us(&r, "while", "device_us"), 100);
    assert_int_equal(tiny_us(&r, "while", "device_self_us"), 40);
    assert_int_equal(tiny_us(&r, "fusion", "device_self_us"), 60);
    assert_int_equal(tiny_int(&r, "fusion", "calls"), 2);
    assert_true(tiny_null(&r, "fusion", "host_us"));
    assert_int_equal(r.nremarks, 0);
    result_free(&r);
    r = tiny_run(t, "kernels", NULL, NULL);
    double share = tiny_cell(&r, tiny_row(&r, "fusion"), "share_pct")->f;
    assert_true(share > 59.99 && share < 60.01);
    assert_int_equal(tiny_us(&r, "while", "total_us"), 100);
    assert_int_equal(tiny_us(&r, "while", "self_us"), 40);
    share = tiny_cell(&r, tiny_row(&r, "while"), "share_pct")->f;
    assert_true(share > 39.99 && share < 40.01);
    result_free(&r);
    trace_free(t);
}

/* Kernels of one stream contain and cross each other: on a device that nests
 * each instant counts once in own times, shares sum to 100, and kernels, ops
 * and stacks say the same. */
static void kernels_that_overlap_share_one_stream(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t d = trace_device(t, 0, DEVICE_TPU, 0);
    uint32_t st = trace_track(t, 0, TRACK_STREAM, 0, 1);
    t->tracks[st].device = d;
    tiny_span(t, st, SPAN_KERNEL, "loop", 0, 100);
    tiny_span(t, st, SPAN_KERNEL, "loop", 10, 80); /* inside of itself */
    tiny_span(t, st, SPAN_KERNEL, "a", 20, 40);
    tiny_span(t, st, SPAN_KERNEL, "b", 40, 40);
    tiny_seal(t);
    struct result k = tiny_run(t, "kernels", NULL, NULL);
    struct result o = tiny_run(t, "ops", NULL, NULL);
    struct result s = tiny_run(t, "stacks", "by", "device");
    int64_t sum = 0;
    double shares = 0;
    for (size_t i = 0; i < k.nrows; i++) {
        const char *name = tiny_cell(&k, i, "name")->s;
        sum += tiny_us(&k, name, "self_us");
        shares += tiny_cell(&k, i, "share_pct")->f;
        assert_int_equal(tiny_us(&o, name, "device_self_us"),
                         tiny_us(&k, name, "self_us"));
    }
    assert_int_equal(sum, 100);
    assert_true(shares > 99.999 && shares < 100.001);
    assert_int_equal(tiny_us(&k, "loop", "total_us"), 180);
    assert_int_equal(tiny_us(&o, "loop", "device_us"), 100);
    for (size_t i = 0; i < s.nrows; i++)
        sum -= tiny_cell(&s, i, "self_us")->i / US;
    assert_int_equal(sum, 0);
    result_free(&k);
    result_free(&o);
    result_free(&s);
    trace_free(t);
}

/* Forty of the longest spans that are let in overflow 64 bits. */
static void absurd_times_do_not_overflow(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1), st = tiny_stream(t, 0, 7);
    uint32_t gpu = trace_allocator(t, 0, bytes_of("GPU 0"),
                                   trace_device(t, 0, DEVICE_GPU, 0));
    struct span_in s = {.dur = DUR_LIMIT, .name = trace_str(t, bytes_of("x"))};
    for (int i = 0; i < 40; i++) {
        s.ts = (i % 20 - 1) * (DUR_LIMIT / 2);
        s.track = i < 20 ? th : st;
        s.kind = i < 20 ? SPAN_OP : SPAN_KERNEL;
        row_id r = trace_span(t, &s);
        if (i < 20) trace_link_host(t, 0, (uint64_t)i, r);
        else trace_link_device(t, 0, (uint64_t)(i - 20), r);
        tiny_mem(t, gpu, th, i, (uint64_t)i + 1, i % 3 ? INT64_MAX : INT64_MIN,
                 -1);
    }
    tiny_seal(t);
    const char *const all[] = {"ops", "kernels", "copies", "memory", "allocs"};
    for (size_t i = 0; i < 5; i++) {
        struct result r = tiny_run(t, all[i], NULL, NULL);
        if (i == 0) assert_true(tiny_int(&r, "x", "host_us") == INT64_MAX);
        result_free(&r);
    }
    trace_free(t);
}

static void groups_by_stack_and_module(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    uint32_t py = trace_track(t, 0, TRACK_PYTHON, 1, 1);
    t->tracks[py].thread = th;
    tiny_span(t, py, SPAN_PYTHON, "main.py(1): main", 0, 100);
    tiny_span(t, py, SPAN_PYTHON, "nn.Module: Linear_3", 10, 20);
    tiny_span(t, py, SPAN_PYTHON, "linear.py(9): forward", 12, 10);
    tiny_span(t, th, SPAN_OP, "aten::mm", 15, 2);
    tiny_span(t, th, SPAN_OP, "aten::mm", 25, 3);
    tiny_span(t, th, SPAN_OP, "aten::mm", 50, 4);
    tiny_seal(t);
    struct result r = tiny_run(t, "ops", "group", "module");
    assert_int_equal(r.nrows, 2);
    size_t in = tiny_cell(&r, 0, "module")->null ? 1 : 0;
    assert_string_equal(tiny_cell(&r, in, "module")->s, "Linear_3");
    assert_int_equal(tiny_cell(&r, in, "calls")->i, 2);
    assert_int_equal(tiny_cell(&r, 1 - in, "host_us")->i, 4 * US);
    result_free(&r);
    r = tiny_run(t, "ops", "group", "stack,module");
    assert_int_equal(r.nrows, 3);
    assert_string_equal(tiny_cell(&r, 0, "stack")->s, "main.py(1): main");
    assert_string_equal(tiny_cell(&r, 2, "stack")->s,
                        "linear.py(9): forward < nn.Module: Linear_3 < "
                        "main.py(1): main");
    result_free(&r);
    struct ops_err e;
    assert_int_equal(tiny_try(t, "ops", "group", "colour", &r, &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "colour"));
    trace_free(t);
}

static int64_t flops(const char *op, const char *dims, const char *types,
                     const char *concrete) {
    struct op_inputs in;
    op_inputs_from(bytes_of(dims), bytes_of(types), bytes_of(concrete), &in);
    return torch_flops_from(&in, torch_flops_rule(bytes_of(op)));
}

/* Expected values: torch 2.13's own, and by hand. */
static void flops_by_torchs_formulas(void **state) {
    (void)state;
    const char *conv = "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\","
                       " \"1\"]";
    const char *strided = "[\"\", \"\", \"\", \"[2, 2]\", \"[0, 0]\","
                          " \"[1, 1]\", \"2\"]";
    assert_int_equal(flops("aten::conv2d",
                           "[[32, 1, 28, 28], [8, 1, 3, 3], [8], [], [], []]",
                           "", conv),
                     3612672);
    assert_int_equal(flops("aten::conv2d", "[[1, 4, 9, 9], [6, 2, 3, 3], []]",
                           "", strided),
                     2 * 4 * 4 * 3 * 3 * 4 * 6 / 2);
    assert_int_equal(flops("aten::addmm", "[[10], [32, 256], [256, 10], []]",
                           "", ""),
                     163840);
    assert_int_equal(flops("aten::mm", "[[2,3],[3,4]]", "", ""), 48);
    assert_int_equal(flops("aten::bmm", "[[5, 2, 3], [5, 3, 4]]", "", ""), 240);
    assert_int_equal(flops("aten::add", "[[7, 8], []]", "", ""), 56);
    /* a tensor of no dimension is one element, a number is no tensor */
    assert_int_equal(flops("aten::add", "[[], []]", "[\"float\", \"Scalar\"]",
                           ""),
                     1);
    assert_int_equal(flops("aten::add", "[[], []]", "[\"Scalar\", \"Scalar\"]",
                           ""),
                     -1);
}

static void flops_of_nonsense_are_none(void **state) {
    (void)state;
    assert_int_equal(flops("aten::mm", "", "", ""), -1);
    assert_int_equal(flops("aten::mm", "[", "", ""), -1);
    assert_int_equal(flops("aten::mm", "[[2,3],[3", "", ""), -1);
    assert_int_equal(flops("aten::mm", "[[[2,3]],[3,4]]", "", ""), -1);
    assert_int_equal(flops("aten::mm", "[[-2,3],[3,4]]", "", ""), -1);
    assert_int_equal(flops("aten::mm",
                           "[[999999999999999999,999999999999999999],[3,4]]",
                           "", ""),
                     -1);
    assert_int_equal(flops("aten::conv2d", "[[1,1,3,3],[1,1,3,3]]", "",
                           "[\"\", \"\", \"\", \"[0, 0]\", \"[0, 0]\","
                           " \"[1, 1]\", \"1\"]"),
                     -1);
    assert_int_equal(flops("aten::conv2d", "[[1,1,3,3],[1,1,3,3]]", "",
                           "[\"\\"),
                     -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace),
        cmocka_unit_test(one_span),
        cmocka_unit_test(self_time_leaves_out_children),
        cmocka_unit_test(only_child_of_same_name_merges),
        cmocka_unit_test(bookkeeping_names_are_no_rows),
        cmocka_unit_test(step_markers_are_one_row),
        cmocka_unit_test(crossing_spans_count_no_instant_twice),
        cmocka_unit_test(children_that_overlap_are_taken_off_once),
        cmocka_unit_test(recursion_is_as_many_calls),
        cmocka_unit_test(calls_of_one_name_inside_each_other_count_once),
        cmocka_unit_test(device_time_belongs_to_the_launcher),
        cmocka_unit_test(memory_follows_torchs_rule),
        cmocka_unit_test(instants_and_async_spans_are_no_calls),
        cmocka_unit_test(spans_of_no_thread_have_a_row),
        cmocka_unit_test(waiting_for_other_threads_ops_is_no_work),
        cmocka_unit_test(regions_are_rows_where_nothing_better_is),
        cmocka_unit_test(sources_differ_in_what_they_have),
        cmocka_unit_test(ops_of_a_tpu_nest),
        cmocka_unit_test(kernels_that_overlap_share_one_stream),
        cmocka_unit_test(absurd_times_do_not_overflow),
        cmocka_unit_test(groups_by_stack_and_module),
        cmocka_unit_test(flops_by_torchs_formulas),
        cmocka_unit_test(flops_of_nonsense_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
