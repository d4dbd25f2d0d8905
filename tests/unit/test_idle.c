/* SPDX-License-Identifier: Apache-2.0
 * idle: one trace for each cause; the parts sum to the idle time whatever the
 * streams, steps and devices are. Times in microseconds. */
#include "tiny.h"

#include "analyze/shared/phases.h"
#include "analyze/steps/gaps.h"
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

static void marker(struct rig *g, int number, int64_t ts, int64_t dur) {
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    tiny_span(g->t, g->main, SPAN_ANNOTATION, name, ts, dur);
}

/* Adds work of that kind and name in [from, to) by a call in [ts, ts + dur). */
static void work_by(struct rig *g, uint32_t thread, const char *call,
                    int64_t ts, int64_t dur, enum span_kind kind,
                    const char *name, int64_t from, int64_t to) {
    uint64_t id = ++g->id;
    trace_link_host(g->t, 0, id,
                    tiny_span(g->t, thread, SPAN_API, call, ts, dur));
    trace_link_device(g->t, 0, id,
                      tiny_span(g->t, g->stream, kind, name, from, to - from));
}

static void kernel(struct rig *g, int64_t ts, int64_t from, int64_t to) {
    work_by(g, g->main, "cudaLaunchKernel", ts, 5, SPAN_KERNEL, "k", from, to);
}

/* Returns the row of that device and cause, or -1. */
static int find(const struct result *r, const char *device, const char *cause) {
    for (size_t i = 0; i < r->nrows; i++)
        if (strcmp(tiny_cell(r, i, "device")->s, device) == 0 &&
            strcmp(tiny_cell(r, i, "cause")->s, cause) == 0)
            return (int)i;
    return -1;
}

static int64_t us(const struct result *r, const char *cause) {
    int i = find(r, "GPU 0", cause);
    return i < 0 ? 0 : tiny_cell(r, (size_t)i, "total_us")->i / US;
}

static int64_t total(const struct result *r) {
    int64_t sum = 0;
    for (size_t i = 0; i < r->nrows; i++) sum += tiny_cell(r, i, "total_us")->i;
    return sum / US;
}

/* Seals, runs, and frees the trace. */
static struct result done(struct rig *g) {
    tiny_seal(g->t);
    struct result r = tiny_run(g->t, "idle", NULL, NULL);
    trace_free(g->t);
    return r;
}

/* The gap is 30..500 unless said otherwise; before it a kernel runs 10..30,
 * launched at 2, and the step's head 0..10 is a gap of its own. */
static struct rig two_kernels(int64_t call, int64_t start) {
    struct rig g = rig_new();
    marker(&g, 1, 0, 1000);
    kernel(&g, 2, 10, 30);
    kernel(&g, call, start, 1000);
    return g;
}

static void empty_trace_and_no_device(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "idle", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    trace_free(t);
    t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "aten::mm", 0, 10);
    tiny_seal(t);
    r = tiny_run(t, "idle", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "device"));
    result_free(&r);
    trace_free(t);
}

static void one_kernel_has_no_gap(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_span(t, tiny_stream(t, 0, 7), SPAN_KERNEL, "k", 5, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "idle", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    trace_free(t);
}

static void device_alone_is_unknown(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t s = tiny_stream(t, 0, 7);
    tiny_span(t, s, SPAN_KERNEL, "k", 0, 10);
    tiny_span(t, s, SPAN_KERNEL, "k", 100, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "idle", NULL, NULL);
    assert_int_equal(us(&r, "unknown"), 90);
    result_free(&r);
    trace_free(t);
}

static void ops_that_run_late_are_host(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    tiny_span(g.t, g.main, SPAN_OP, "aten::mm", 100, 390);
    struct result r = done(&g);
    assert_int_equal(us(&r, "host"), 470);
    assert_int_equal(us(&r, "launch"), 10); /* the head: a call from 2 on */
    assert_int_equal(total(&r), 480);
    size_t row = (size_t)find(&r, "GPU 0", "host");
    assert_int_equal(tiny_cell(&r, row, "worst_us")->i, 470 * US);
    assert_int_equal(tiny_cell(&r, row, "worst_at_us")->i, 30 * US);
    assert_int_equal(tiny_cell(&r, row, "gaps")->i, 1);
    assert_string_equal(tiny_cell(&r, row, "op_after")->s, "aten::mm");
    /* that launch is in no op: what ran is named */
    assert_string_equal(tiny_cell(&r, row, "op_before")->s, "k");
    result_free(&r);
}

static void python_between_ops_is_host_too(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    struct result r = done(&g);
    assert_int_equal(us(&r, "host"), 470);
    result_free(&r);
}

static void waiting_for_data_is_input(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    tiny_span(g.t, g.main, SPAN_ANNOTATION,
              "enumerate(DataLoader)#_SingleProcess.__next__", 40, 400);
    struct result r = done(&g);
    assert_int_equal(us(&r, "input"), 470);
    result_free(&r);
}

static void a_long_call_is_launch(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    tiny_span(g.t, g.main, SPAN_OP, "aten::empty", 100, 370);
    tiny_span(g.t, g.main, SPAN_API, "cudaMalloc", 110, 350);
    struct result r = done(&g);
    assert_int_equal(us(&r, "launch"), 480);
    result_free(&r);
}

/* The wait returns soon, but the gap began in it: with the way back to the
 * next op, 20..300, it is most of the gap. If that op begins at 100 it is not,
 * and the host was late anyway. */
static void a_gap_that_begins_in_a_wait_is_sync(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rig g = two_kernels(480, 500);
        tiny_span(g.t, g.main, SPAN_OP, "aten::item", 20, 20);
        tiny_span(g.t, g.main, SPAN_API, "cudaStreamSynchronize", 22, 16);
        tiny_span(g.t, g.main, SPAN_OP, "aten::mm", k ? 100 : 300,
                  k ? 390 : 190);
        struct result r = done(&g);
        assert_int_equal(us(&r, k ? "host" : "sync"), 470);
        result_free(&r);
    }
}

/* The device worked for long while the host waited: without the wait its next
 * work would have been there. */
static void a_long_wait_explains_the_whole_gap(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 9000);
    kernel(&g, 2, 10, 5000);
    tiny_span(g.t, g.main, SPAN_API, "cudaStreamSynchronize", 22, 4990);
    tiny_span(g.t, g.main, SPAN_OP, "aten::mm", 5020, 1990);
    kernel(&g, 7000, 7010, 9000);
    struct result r = done(&g);
    assert_int_equal(us(&r, "sync"), 2010);
    result_free(&r);
}

/* XLA's span around a wait is no driver call, but says as much. */
static void a_wait_of_the_runtime_is_sync(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    tiny_span(g.t, g.main, SPAN_RUNTIME, "BlockHostUntilDone", 22, 16);
    struct result r = done(&g);
    assert_int_equal(us(&r, "sync"), 470);
    result_free(&r);
}

static void a_wait_that_is_over_is_no_cause(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    tiny_span(g.t, g.main, SPAN_API, "cudaStreamSynchronize", 12, 8);
    struct result r = done(&g);
    assert_int_equal(us(&r, "sync"), 0);
    assert_int_equal(us(&r, "host"), 470);
    result_free(&r);
}

/* After a wait of 16 us the host works for 20 ms: that is its own. */
static void long_work_after_a_short_wait_is_host(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 21000);
    kernel(&g, 2, 10, 30);
    tiny_span(g.t, g.main, SPAN_API, "cudaStreamSynchronize", 22, 16);
    kernel(&g, 20480, 20500, 21000);
    struct result r = done(&g);
    assert_int_equal(us(&r, "host"), 20470);
    result_free(&r);
}

static void data_after_a_wait_is_input(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    tiny_span(g.t, g.main, SPAN_API, "cudaStreamSynchronize", 22, 16);
    tiny_span(g.t, g.main, SPAN_ANNOTATION,
              "enumerate(DataLoader)#_SingleProcess.__next__", 40, 400);
    struct result r = done(&g);
    assert_int_equal(us(&r, "input"), 470);
    result_free(&r);
}

/* The wait is for a copy to the device: a blocking copy. */
static void a_blocking_copy_is_copy_wait(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 1000);
    work_by(&g, g.main, "cudaMemcpyAsync", 2, 5, SPAN_COPY,
            "Memcpy HtoD (Pinned -> Device)", 10, 30);
    tiny_span(g.t, g.main, SPAN_API, "cudaStreamSynchronize", 8, 30);
    kernel(&g, 480, 500, 1000);
    struct result r = done(&g);
    assert_int_equal(us(&r, "copy-wait"), 470);
    result_free(&r);
}

static void reading_a_result_back_is_sync(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 1000);
    work_by(&g, g.main, "cudaMemcpyAsync", 2, 5, SPAN_COPY,
            "Memcpy DtoH (Device -> Pinned)", 10, 30);
    tiny_span(g.t, g.main, SPAN_API, "cudaStreamSynchronize", 8, 30);
    kernel(&g, 480, 500, 1000);
    struct result r = done(&g);
    assert_int_equal(us(&r, "sync"), 470);
    result_free(&r);
}

/* cudaMemcpy waits by itself; an asynchronous copy's call, still running when
 * other work ends, does not. */
static void only_its_own_copy_makes_a_call_wait(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 1000);
    work_by(&g, g.main, "cudaMemcpy", 2, 40, SPAN_COPY,
            "Memcpy HtoD (Pinned -> Device)", 10, 30);
    kernel(&g, 480, 500, 1000);
    struct result r = done(&g);
    assert_int_equal(us(&r, "copy-wait"), 470);
    result_free(&r);
    g = rig_new();
    marker(&g, 1, 0, 1000);
    kernel(&g, 2, 10, 30);
    work_by(&g, g.main, "cudaMemcpyAsync", 28, 5, SPAN_COPY,
            "Memcpy HtoD (Pinned -> Device)", 400, 1000);
    r = done(&g);
    assert_int_equal(us(&r, "copy-wait"), 0);
    result_free(&r);
    g = rig_new(); /* and one that reads a result back */
    marker(&g, 1, 0, 1000);
    work_by(&g, g.main, "hipMemcpyWithStream", 2, 40, SPAN_COPY,
            "CopyDeviceToHost", 10, 30);
    kernel(&g, 480, 500, 1000);
    r = done(&g);
    assert_int_equal(us(&r, "sync"), 470);
    result_free(&r);
}

/* Staging a pageable copy takes the time from the call to the copy. */
static void a_pageable_copy_is_waited_for(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 1000);
    kernel(&g, 2, 10, 30);
    work_by(&g, g.main, "cudaMemcpyAsync", 40, 900, SPAN_COPY,
            "Memcpy HtoD (Pageable -> Device)", 500, 1000);
    struct result r = done(&g);
    assert_int_equal(us(&r, "copy-wait"), 470);
    result_free(&r);
}

/* A gloo collective on a thread of its own, while nothing else runs. */
static void a_cpu_collective_is_comm_wait(void **state) {
    (void)state;
    struct rig g = two_kernels(480, 500);
    uint32_t other = tiny_thread(g.t, 2);
    tiny_span(g.t, other, SPAN_ANNOTATION, "gloo:all_reduce", 40, 430);
    struct result r = done(&g);
    assert_int_equal(us(&r, "comm-wait"), 470);
    result_free(&r);
}

/* The same beside the ops of a backward thread that launches: hidden. */
static void a_collective_beside_the_launching_thread_is_not(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t gloo = tiny_thread(g.t, 2), backward = tiny_thread(g.t, 3);
    marker(&g, 1, 0, 1000);
    kernel(&g, 2, 10, 30);
    tiny_span(g.t, gloo, SPAN_ANNOTATION, "gloo:all_reduce", 0, 1000);
    tiny_span(g.t, backward, SPAN_OP, "MmBackward0", 20, 480);
    work_by(&g, backward, "cudaLaunchKernel", 480, 5, SPAN_KERNEL, "k", 500,
            1000);
    struct result r = done(&g);
    assert_int_equal(us(&r, "host"), 470);
    result_free(&r);
}

/* Both were launched long before: the device's own pause. */
static void back_to_back_work_is_launch(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 100);
    kernel(&g, 0, 10, 30);
    kernel(&g, 5, 33, 100);
    tiny_span(g.t, g.main, SPAN_OP, "aten::mm", 12, 80);
    struct result r = done(&g);
    assert_int_equal(us(&r, "launch"), 13);
    result_free(&r);
}

static void ready_and_not_started_is_unknown(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 500);
    kernel(&g, 0, 10, 30);
    kernel(&g, 5, 300, 500);
    struct result r = done(&g);
    assert_int_equal(us(&r, "unknown"), 270);
    result_free(&r);
}

/* What ended on another stream does not hold it up any more. */
static void ready_behind_another_stream(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t own = g.stream;
    marker(&g, 1, 0, 500);
    g.stream = tiny_stream(g.t, 0, 20);
    work_by(&g, g.main, "cudaLaunchKernel", 0, 3, SPAN_KERNEL,
            "ncclDevKernel_AllReduce", 10, 30);
    g.stream = own;
    kernel(&g, 5, 300, 500);
    struct result r = done(&g);
    assert_int_equal(us(&r, "unknown"), 270);
    result_free(&r);
}

static void a_silent_head_is_start(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 400);
    kernel(&g, 200, 210, 400);
    struct result r = done(&g);
    assert_int_equal(us(&r, "start"), 210);
    result_free(&r);
    g = rig_new();
    marker(&g, 1, 0, 400);
    tiny_span(g.t, g.main, SPAN_OP, "aten::mm", 10, 195);
    kernel(&g, 200, 210, 400);
    r = done(&g);
    assert_int_equal(us(&r, "host"), 210);
    result_free(&r);
}

/* 30..60 in step 1, 60..80 in step 2; after the last kernel the program still
 * is in its marker. */
static void a_gap_over_a_border_is_one_in_each_step(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 1, 0, 58);
    marker(&g, 2, 60, 90);
    kernel(&g, 0, 0, 30);
    kernel(&g, 75, 80, 100);
    tiny_span(g.t, g.main, SPAN_OP, "aten::mm", 31, 48);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "idle", NULL, NULL);
    assert_int_equal(us(&r, "host"), 30 + 20 + 50);
    size_t row = (size_t)find(&r, "GPU 0", "host");
    assert_int_equal(tiny_cell(&r, row, "gaps")->i, 3);
    assert_true(tiny_cell(&r, row, "op_after")->null); /* of the worst */
    result_free(&r);
    r = tiny_run(g.t, "idle", "steps", "2");
    assert_int_equal(total(&r), 20 + 50);
    result_free(&r);
    trace_free(g.t);
}

static void two_devices_and_streams_that_overlap(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t more = tiny_stream(g.t, 0, 8), other = tiny_stream(g.t, 1, 7);
    marker(&g, 1, 0, 100);
    tiny_span(g.t, g.stream, SPAN_KERNEL, "a", 0, 40);
    tiny_span(g.t, more, SPAN_KERNEL, "b", 20, 40);
    tiny_span(g.t, more, SPAN_KERNEL, "c", 70, 0); /* no time: ends no gap */
    tiny_span(g.t, g.stream, SPAN_KERNEL, "d", 90, 10);
    tiny_span(g.t, other, SPAN_KERNEL, "e", 50, 50);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "idle", NULL, NULL);
    int a = find(&r, "GPU 0", "unknown"), b = find(&r, "GPU 1", "start");
    assert_true(a >= 0 && b >= 0);
    assert_int_equal(tiny_cell(&r, (size_t)a, "total_us")->i, 30 * US);
    assert_int_equal(tiny_cell(&r, (size_t)a, "gaps")->i, 1);
    assert_int_equal(tiny_cell(&r, (size_t)b, "total_us")->i, 50 * US);
    assert_int_equal(r.nrows, 2);
    result_free(&r);
    trace_free(g.t);
}

/* What phases call idle is what gaps sum to, step by step. */
static void gaps_sum_to_what_phases_say(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int i = 0; i < 50; i++) {
        int64_t at = 1000 * i;
        marker(&g, i, at, 900);
        kernel(&g, at + 10, at + 20 + i, at + 60 + 2 * i);
        kernel(&g, at + 700, at + 720, at + 950 + 3 * i);
    }
    tiny_seal(g.t);
    struct phases ph;
    struct gaps gaps;
    struct ops_err e;
    assert_int_equal(phases_get(&ph, g.t, &e), 0);
    assert_int_equal(ph.nviews, 1);
    assert_int_equal(gaps_find(&gaps, g.t, &ph.views[0], NULL, &e), 0);
    for (size_t i = 0, k = 0; i < g.t->nsteps; i++) {
        const struct step *st = &g.t->steps[i];
        int64_t parts[PHASES], sum = 0;
        phases_split(&ph.views[0], st->ts, st->ts + st->dur, parts);
        for (; k < gaps.n && gaps.v[k].step == i; k++)
            sum += gaps.v[k].end - gaps.v[k].start;
        assert_int_equal(sum, st->dur - parts[PHASE_COMPUTE] -
                                  parts[PHASE_COMM] - parts[PHASE_COPY]);
    }
    gaps_free(&gaps);
    trace_free(g.t);
}

/* Later, and on threads and streams of other numbers: the same. */
static void time_and_names_do_not_matter(void **state) {
    (void)state;
    struct result r[2];
    for (int k = 0; k < 2; k++) {
        struct trace *t = tiny_new(true, false);
        int64_t shift = k * 777000;
        struct rig g = {.t = t};
        g.main = tiny_thread(t, k ? 99 : 1);
        uint32_t other = tiny_stream(t, 0, k ? 3 : 40);
        g.stream = tiny_stream(t, 0, k ? 50 : 7);
        marker(&g, 1, shift, 1000);
        kernel(&g, shift + 2, shift + 10, shift + 30);
        tiny_span(t, g.main, SPAN_API, "cudaStreamSynchronize", shift + 22, 16);
        /* two start at once: the one that was launched first counts */
        kernel(&g, shift + 480, shift + 500, shift + 600);
        g.stream = other;
        kernel(&g, shift + 490, shift + 500, shift + 600);
        kernel(&g, shift + 800, shift + 900, shift + 1000);
        r[k] = done(&g);
    }
    assert_int_equal(r[0].nrows, r[1].nrows);
    for (size_t i = 0; i < r[0].nrows; i++) {
        assert_string_equal(tiny_cell(&r[0], i, "cause")->s,
                            tiny_cell(&r[1], i, "cause")->s);
        assert_int_equal(tiny_cell(&r[0], i, "total_us")->i,
                         tiny_cell(&r[1], i, "total_us")->i);
        assert_int_equal(tiny_cell(&r[0], i, "worst_at_us")->i + 777000 * US,
                         tiny_cell(&r[1], i, "worst_at_us")->i);
    }
    result_free(&r[0]);
    result_free(&r[1]);
}

static void a_hundred_thousand_steps(void **state) {
    (void)state;
    struct rig g = rig_new();
    enum { N = 100000 };
    for (int i = 0; i < N; i++) {
        marker(&g, i, 100 * (int64_t)i, 99);
        kernel(&g, 100 * (int64_t)i + 10, 100 * (int64_t)i + 20,
               100 * (int64_t)i + 60);
    }
    tiny_seal(g.t);
    clock_t from = clock();
    struct result r = tiny_run(g.t, "idle", NULL, NULL);
    double took = (double)(clock() - from) / CLOCKS_PER_SEC;
    assert_int_equal(total(&r), 60 * (int64_t)N - 1);
    assert_true(took < 5); /* 0.1 s; sanitizers and slow machines: more */
    result_free(&r);
    trace_free(g.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace_and_no_device),
        cmocka_unit_test(one_kernel_has_no_gap),
        cmocka_unit_test(device_alone_is_unknown),
        cmocka_unit_test(ops_that_run_late_are_host),
        cmocka_unit_test(python_between_ops_is_host_too),
        cmocka_unit_test(waiting_for_data_is_input),
        cmocka_unit_test(a_long_call_is_launch),
        cmocka_unit_test(a_gap_that_begins_in_a_wait_is_sync),
        cmocka_unit_test(a_long_wait_explains_the_whole_gap),
        cmocka_unit_test(a_wait_of_the_runtime_is_sync),
        cmocka_unit_test(a_wait_that_is_over_is_no_cause),
        cmocka_unit_test(long_work_after_a_short_wait_is_host),
        cmocka_unit_test(data_after_a_wait_is_input),
        cmocka_unit_test(a_blocking_copy_is_copy_wait),
        cmocka_unit_test(reading_a_result_back_is_sync),
        cmocka_unit_test(only_its_own_copy_makes_a_call_wait),
        cmocka_unit_test(a_pageable_copy_is_waited_for),
        cmocka_unit_test(a_cpu_collective_is_comm_wait),
        cmocka_unit_test(a_collective_beside_the_launching_thread_is_not),
        cmocka_unit_test(back_to_back_work_is_launch),
        cmocka_unit_test(ready_and_not_started_is_unknown),
        cmocka_unit_test(ready_behind_another_stream),
        cmocka_unit_test(a_silent_head_is_start),
        cmocka_unit_test(a_gap_over_a_border_is_one_in_each_step),
        cmocka_unit_test(two_devices_and_streams_that_overlap),
        cmocka_unit_test(gaps_sum_to_what_phases_say),
        cmocka_unit_test(time_and_names_do_not_matter),
        cmocka_unit_test(a_hundred_thousand_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
