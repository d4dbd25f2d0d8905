/* SPDX-License-Identifier: Apache-2.0
 * launch: delays, queues and graphs of traces built by hand, in microseconds. */
#include "tiny.h"

#include <stdio.h>
#include <time.h>

struct rig {
    struct trace *t;
    uint32_t main, stream;
    uint64_t id;
};

static struct rig rig_new(void) {
    struct rig g = {.t = tiny_new(true, false)};
    g.main = tiny_thread(g.t, 1);
    g.stream = tiny_stream(g.t, 0, 7);
    return g;
}

/* Adds a call of dur at ts; its kernel runs [from, to). */
static void launch(struct rig *g, int64_t ts, int64_t dur, int64_t from,
                   int64_t to) {
    uint64_t id = ++g->id;
    trace_link_host(g->t, 0, id,
                    tiny_span(g->t, g->main, SPAN_API, "cudaLaunchKernel", ts,
                              dur));
    trace_link_device(g->t, 0, id,
                      tiny_span(g->t, g->stream, SPAN_KERNEL, "k", from,
                                to - from));
}

static struct result done(struct rig *g, const char *by) {
    tiny_seal(g->t);
    struct result r = tiny_run(g->t, "launch", by ? "by" : NULL, by);
    trace_free(g->t);
    return r;
}

static void empty_no_device_and_no_link(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "launch", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    trace_free(t);
    t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "aten::mm", 0, 10);
    tiny_seal(t);
    r = tiny_run(t, "launch", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "device"));
    result_free(&r);
    trace_free(t);
    t = tiny_new(true, false);
    tiny_span(t, tiny_stream(t, 0, 7), SPAN_KERNEL, "k", 0, 10);
    tiny_seal(t);
    r = tiny_run(t, "launch", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "launches"));
    result_free(&r);
    trace_free(t);
}

/* Launched at 0, 10, 20, 200; they start at 5, 105, 150 and 207. At 20 the
 * second waits; at 200 all have ended. */
static void delay_and_queue(void **state) {
    (void)state;
    struct rig g = rig_new();
    launch(&g, 0, 4, 5, 100);
    launch(&g, 10, 4, 105, 140);
    launch(&g, 20, 6, 150, 160);
    launch(&g, 200, 4, 207, 208);
    struct result r = done(&g, "call");
    const char *row = "cudaLaunchKernel";
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_int(&r, row, "launches"), 4);
    assert_int_equal(tiny_us(&r, row, "launch_us"), 18);
    assert_int_equal(tiny_us(&r, row, "delay_p50_us"), 7); /* 5 7 95 130 */
    assert_int_equal(tiny_us(&r, row, "delay_p95_us"), 130);
    assert_int_equal(tiny_int(&r, row, "queue_p50"), 0); /* 0 0 1 0 */
    assert_int_equal(tiny_int(&r, row, "queue_min"), 0);
    assert_int_equal(tiny_int(&r, row, "starved"), 2); /* first and last */
    assert_int_equal(tiny_int(&r, row, "kernels"), 4);
    assert_int_equal(tiny_int(&r, row, "short_kernels"), 1);
    assert_int_equal(tiny_int(&r, row, "graph_kernels"), 0);
    result_free(&r);
}

/* A deep queue: 10 launches, 1 us apart, before the first starts. */
static void a_deep_queue(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int64_t i = 0; i < 10; i++)
        launch(&g, i, 1, 100 + 10 * i, 110 + 10 * i);
    struct result r = done(&g, "call");
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "queue_p50"), 4);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "queue_min"), 0);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "starved"), 1);
    result_free(&r);
}

/* What waits on another stream is no queue of this one. */
static void a_stream_has_its_own_queue(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t other = tiny_stream(g.t, 0, 8);
    launch(&g, 0, 1, 100, 110);
    launch(&g, 2, 1, 110, 120);
    g.stream = other;
    launch(&g, 4, 1, 90, 95);
    struct result r = done(&g, "call");
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "queue_p50"), 0);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "starved"), 2);
    result_free(&r);
}

/* One launch of three kernels; 12 us of call are 4 for each. */
static void a_graph_is_one_launch(void **state) {
    (void)state;
    struct rig g = rig_new();
    trace_link_host(g.t, 0, 1,
                    tiny_span(g.t, g.main, SPAN_API, "cudaGraphLaunch", 0, 12));
    static const int64_t at[] = {30, 20, 40}; /* not by start */
    for (int i = 0; i < 3; i++)
        trace_link_device(g.t, 0, 1,
                          tiny_span(g.t, g.stream, SPAN_KERNEL, "k", at[i],
                                    i == 2 ? 5 : 3));
    g.id = 1;
    launch(&g, 15, 2, 50, 60);
    struct result r = done(&g, "call");
    const char *row = "cudaGraphLaunch";
    assert_int_equal(tiny_int(&r, row, "launches"), 1);
    assert_int_equal(tiny_us(&r, row, "launch_us"), 12);
    assert_int_equal(tiny_us(&r, row, "delay_p50_us"), 20);
    assert_int_equal(tiny_int(&r, row, "kernels"), 3);
    assert_int_equal(tiny_int(&r, row, "graph_kernels"), 3);
    assert_int_equal(tiny_int(&r, row, "short_kernels"), 2);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "queue_p50"), 1);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "graph_kernels"), 0);
    result_free(&r);
}

static void rows_are_ops_then_regions_then_calls(void **state) {
    (void)state;
    struct rig g = rig_new();
    tiny_span(g.t, g.main, SPAN_ANNOTATION, "ProfilerStep#1", 0, 400);
    tiny_span(g.t, g.main, SPAN_OP, "aten::linear", 10, 20);
    tiny_span(g.t, g.main, SPAN_OP, "aten::addmm", 11, 15);
    launch(&g, 12, 2, 15, 18);
    launch(&g, 20, 2, 25, 28);
    tiny_span(g.t, g.main, SPAN_ANNOTATION, "forward", 100, 50);
    launch(&g, 110, 2, 115, 118);
    launch(&g, 200, 2, 205, 208); /* in the step alone */
    struct result r = done(&g, NULL);
    assert_int_equal(r.nrows, 3);
    assert_int_equal(tiny_int(&r, "aten::addmm", "launches"), 2);
    assert_int_equal(tiny_int(&r, "forward", "launches"), 1);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "launches"), 1);
    result_free(&r);
}

/* --steps leaves launches out of the rows, not out of the queue. */
static void steps_pick_launches(void **state) {
    (void)state;
    struct rig g = rig_new();
    tiny_span(g.t, g.main, SPAN_ANNOTATION, "ProfilerStep#1", 0, 10);
    tiny_span(g.t, g.main, SPAN_ANNOTATION, "ProfilerStep#2", 10, 10);
    launch(&g, 1, 1, 100, 200);
    launch(&g, 2, 1, 200, 300);
    launch(&g, 12, 1, 300, 400);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "launch", "steps", "2");
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "launches"), 1);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "queue_min"), 2);
    assert_true(tiny_int(&r, "cudaLaunchKernel", "queue_max") >= 2);
    result_free(&r);
    trace_free(g.t);
}

static void clocks_that_differ_are_said(void **state) {
    (void)state;
    struct rig g = rig_new();
    launch(&g, 10, 2, 8, 20);
    struct result r = done(&g, NULL);
    assert_int_equal(tiny_us(&r, "cudaLaunchKernel", "delay_p50_us"), -2);
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "queue_min"), 0);
    assert_int_equal(r.nremarks, 2);
    assert_non_null(strstr(r.remarks[1], "clocks"));
    result_free(&r);
}

static void many_launches_grow_linearly(void **state) {
    (void)state;
    struct rig g = rig_new();
    enum { N = 100000 };
    for (int64_t i = 0; i < N; i++)
        launch(&g, 10 * i, 2, 10 * i + 3 + i, 10 * i + 10 + i);
    tiny_seal(g.t);
    clock_t from = clock();
    struct result r = tiny_run(g.t, "launch", NULL, NULL);
    double took = (double)(clock() - from) / CLOCKS_PER_SEC;
    assert_int_equal(tiny_int(&r, "cudaLaunchKernel", "launches"), N);
    assert_true(took < 5); /* 0.05 s; sanitizers and slow machines: more */
    result_free(&r);
    trace_free(g.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_no_device_and_no_link),
        cmocka_unit_test(delay_and_queue),
        cmocka_unit_test(a_deep_queue),
        cmocka_unit_test(a_stream_has_its_own_queue),
        cmocka_unit_test(a_graph_is_one_launch),
        cmocka_unit_test(rows_are_ops_then_regions_then_calls),
        cmocka_unit_test(steps_pick_launches),
        cmocka_unit_test(clocks_that_differ_are_said),
        cmocka_unit_test(many_launches_grow_linearly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
