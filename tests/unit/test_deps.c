/* SPDX-License-Identifier: Apache-2.0
 * The line of a step, its graph, and running it again. */
#include "unit/feed.h"
#include "unit/tiny.h"

#include "analyze/steps/overhead.h"
#include "analyze/steps/replay.h"
#include <stdio.h>
#include <stdlib.h>

struct studied {
    struct trace *t;
    struct host_side h;
    struct deps d;
    struct plan p;
    struct overhead cost;
};

static void study(struct studied *s, struct trace *t, int64_t per_event) {
    struct ops_err e;
    s->t = t;
    tiny_seal(t);
    assert_int_equal(host_side_init(&s->h, t, 0, NULL, &e), 0);
    s->cost = (struct overhead){.known = true};
    for (int k = 0; k < SPAN_KINDS; k++) s->cost.event[k] = per_event;
    s->h.overhead = &s->cost;
    assert_int_equal(deps_build(&s->d, &s->h, 0, &e), 0);
    assert_int_equal(plan_init(&s->p, &s->d, t, 1, &e), 0);
}

static void done(struct studied *s) {
    plan_free(&s->p);
    deps_free(&s->d);
    host_side_free(&s->h);
    trace_free(s->t);
}

static uint32_t step(struct trace *t, int64_t ts, int64_t dur) {
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_ANNOTATION, "ProfilerStep#1", ts, dur);
    return th;
}

/* The line covers the step without a hole and names the innermost span. */
static void line_covers_the_step(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 100, 100);
    tiny_span(t, th, SPAN_OP, "outer", 110, 50);
    tiny_span(t, th, SPAN_OP, "inner", 120, 10);
    struct studied s;
    study(&s, t, 0);
    const struct timeline *l = &s.d.line;
    const char *names[] = {"ProfilerStep#1", "outer", "inner", "outer",
                           "ProfilerStep#1"};
    assert_int_equal(l->n, 5);
    int64_t now = 100 * US;
    for (size_t i = 0; i < l->n; i++) {
        assert_int_equal(l->v[i].ts, now);
        assert_string_equal(span_name(t, l->v[i].row), names[i]);
        now += l->v[i].dur;
    }
    assert_int_equal(now, 200 * US);
    assert_int_equal(replay(&s.p), 100 * US);
    done(&s);
}

/* While the step's thread sits in a region, the thread that runs ops leads;
 * an op of its own is not taken from it. */
static void other_threads_take_over(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 100), bw = tiny_thread(t, 2);
    tiny_span(t, th, SPAN_OP, "forward", 0, 40);
    tiny_span(t, th, SPAN_ANNOTATION, "backward", 40, 60);
    tiny_span(t, bw, SPAN_OP, "MulBackward0", 30, 50);
    struct studied s;
    study(&s, t, 0);
    const struct timeline *l = &s.d.line;
    assert_int_equal(l->n, 3);
    assert_string_equal(span_name(t, l->v[0].row), "forward");
    assert_int_equal(l->v[0].dur, 40 * US);
    assert_string_equal(span_name(t, l->v[1].row), "MulBackward0");
    assert_int_equal(l->v[1].dur, 40 * US);
    assert_string_equal(span_name(t, l->v[2].row), "backward");
    done(&s);
}

/* Device work outlasts the program; replayed from an idle device the step is
 * launch, then work back to back. */
static void device_bound(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 20), gpu = tiny_stream(t, 0, 7);
    for (int i = 0; i < 3; i++) {
        trace_link_host(t, 0, (uint64_t)i + 1,
                        tiny_span(t, th, SPAN_API, "cudaLaunchKernel", i * 2,
                                  1));
        trace_link_device(t, 0, (uint64_t)i + 1,
                          tiny_span(t, gpu, SPAN_KERNEL, "k", 10 + 100 * i,
                                    99));
    }
    struct studied s;
    study(&s, t, 0);
    assert_int_equal(s.d.nworks, 3);
    assert_int_equal(s.d.nlanes, 1);
    assert_int_equal(s.d.works[1].prev, 0);
    /* 1 us until the first is launched, 3 x 99, two gaps of 1.2 */
    assert_int_equal(replay(&s.p), (1 + 297) * US + 2400000);
    s.p.work[1] = WORK_GONE;
    assert_int_equal(replay(&s.p), (1 + 198) * US + 1200000);
    s.p.ahead[2] = true; /* beside the step: only the first is left */
    assert_int_equal(replay(&s.p), 100 * US);
    done(&s);
}

/* Kernels of one graph launch follow at once without a profiler, which takes
 * its time for each of them; the first has the gap of any kernel. */
static void graphs_are_launched_at_once(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 400), gpu = tiny_stream(t, 0, 7);
    tiny_launch(t, th, gpu, "alone", 5, 50);
    row_id call = tiny_span(t, th, SPAN_API, "cudaGraphLaunch", 20, 5);
    trace_link_host(t, 0, 9, call);
    for (int i = 0; i < 3; i++)
        trace_link_device(t, 0, 9,
                          tiny_span(t, gpu, SPAN_KERNEL, "k", 60 + 101 * i,
                                    100));
    struct studied s;
    study(&s, t, 0);
    assert_int_equal(s.d.nworks, 4);
    assert_false(s.d.works[1].in_graph);
    assert_true(s.d.works[2].in_graph && s.d.works[3].in_graph);
    /* launched at 6; 50, a gap of 1.2, 3 x 100; the host ends at 400 */
    for (size_t i = 0; i < s.d.nworks; i++) s.p.work[i] *= 10;
    int64_t all = (6 + 500 + 3000) * US + 1200000;
    assert_int_equal(replay(&s.p), all + 2 * 300000);
    plan_as_traced(&s.p);
    for (size_t i = 0; i < s.d.nworks; i++) s.p.work[i] *= 10;
    assert_int_equal(replay(&s.p), all + 2 * 1000000);
    done(&s);
}

/* Kernels of two streams that ran one after the other are not promised to run at
 * the same time, however quickly they are launched. */
static void kernels_overlap_no_more(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 400);
    for (int i = 0; i < 2; i++) {
        uint32_t gpu = tiny_stream(t, 0, 7 + i);
        uint64_t id = (uint64_t)i + 1;
        trace_link_host(t, 0, id,
                        tiny_span(t, th, SPAN_API, "cudaLaunchKernel", 150 * i,
                                  1));
        trace_link_device(t, 0, id,
                          tiny_span(t, gpu, SPAN_KERNEL, "k", 10 + 90 * i,
                                    100));
    }
    struct studied s;
    study(&s, t, 0);
    assert_int_equal(s.d.kernels, 200 * US);
    assert_int_equal(s.d.busy, 190 * US); /* 10 of it were at the same time */
    for (size_t i = 0; i < s.d.line.n; i++) s.p.host[i] = 0;
    assert_int_equal(replay(&s.p), 190 * US);
    s.p.work[0] = 20 * US;
    assert_int_equal(replay(&s.p), 114 * US);
    done(&s);
}

/* A call that waits ends after the work; let go, it does not. */
static void waiting_calls(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 200), gpu = tiny_stream(t, 0, 7);
    tiny_launch(t, th, gpu, "k", 10, 80);
    tiny_span(t, th, SPAN_API, "cudaStreamSynchronize", 20, 75);
    tiny_span(t, th, SPAN_OP, "after", 100, 90);
    struct studied s;
    study(&s, t, 0);
    size_t wait = timeline_at(&s.d.line, 50 * US);
    assert_int_equal(s.d.stops[wait].wait, 0);
    assert_int_equal(s.d.stops[wait].tail, (95 - 91) * US);
    assert_int_equal(replay(&s.p), 200 * US);
    s.p.go[wait] = true;
    s.p.host[wait] = 0;
    assert_int_equal(replay(&s.p), (200 - 75) * US);
    done(&s);
}

/* The last of two kernels is left out: who waited for it waits for the first. */
static void waits_for_what_is_left(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 200), gpu = tiny_stream(t, 0, 7);
    tiny_launch(t, th, gpu, "a", 10, 40);
    trace_link_host(t, 0, 9,
                    tiny_span(t, th, SPAN_API, "cudaLaunchKernel", 12, 1));
    trace_link_device(t, 0, 9, tiny_span(t, gpu, SPAN_KERNEL, "b", 53, 40));
    tiny_span(t, th, SPAN_API, "cudaStreamSynchronize", 13, 85);
    tiny_span(t, th, SPAN_OP, "after", 98, 102);
    struct studied s;
    study(&s, t, 0);
    /* launched at 11; a gap of 1.2; 5 of the call after the work */
    assert_int_equal(replay(&s.p), (11 + 40 + 40 + 5 + 102) * US + 1200000);
    s.p.work[1] = WORK_GONE;
    assert_int_equal(replay(&s.p), (11 + 40 + 5 + 102) * US);
    done(&s);
}

/* Clocks differ: work launched right after a wait may seem to end with it. It
 * is not what was waited for. */
static void waits_for_what_was_launched(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 200), gpu = tiny_stream(t, 0, 7);
    tiny_launch(t, th, gpu, "k", 10, 60);
    tiny_span(t, th, SPAN_API, "cudaStreamSynchronize", 20, 55);
    trace_link_host(t, 0, 9,
                    tiny_span(t, th, SPAN_API, "cudaLaunchKernel", 75, 5));
    trace_link_device(t, 0, 9, tiny_span(t, gpu, SPAN_KERNEL, "late", 76, 1));
    struct studied s;
    study(&s, t, 0);
    size_t wait = timeline_at(&s.d.line, 50 * US);
    assert_int_equal(s.d.nworks, 2);
    assert_int_equal(s.d.stops[wait].wait, 0);
    assert_int_equal(s.d.stops[wait].tail, (75 - 71) * US);
    done(&s);
}

/* Work of another stream that ended just before is what was waited for. */
static void streams_wait_for_each_other(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 20);
    uint32_t a = tiny_stream(t, 0, 7), b = tiny_stream(t, 0, 8);
    trace_link_host(t, 0, 1,
                    tiny_span(t, th, SPAN_API, "cudaLaunchKernel", 0, 1));
    trace_link_device(t, 0, 1, tiny_span(t, a, SPAN_KERNEL, "a", 5, 100));
    trace_link_host(t, 0, 2,
                    tiny_span(t, th, SPAN_API, "cudaLaunchKernel", 2, 1));
    trace_link_device(t, 0, 2, tiny_span(t, b, SPAN_KERNEL, "b", 106, 10));
    struct studied s;
    study(&s, t, 0);
    assert_int_equal(s.d.works[1].after, 0);
    s.p.work[0] = 50 * US;
    assert_int_equal(replay(&s.p), (1 + 50 + 10) * US);
    done(&s);
}

/* Recording costs go where they arose, never more than a piece is long. */
static void recording_is_taken_off(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 100);
    tiny_span(t, th, SPAN_OP, "op", 10, 40);
    struct studied s;
    study(&s, t, 4 * US);
    /* two halves of 4 us, the op's begin and end, and the marker's begin; its
     * end is the next step's */
    assert_int_equal(replay(&s.p), 94 * US);
    done(&s);
}

static void input_is_told_apart(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 0, 100), gpu = tiny_stream(t, 0, 7);
    tiny_span(t, th, SPAN_ANNOTATION, "load", 5, 40);
    tiny_launch(t, th, gpu, "k", 60, 5);
    tiny_span(t, th, SPAN_ANNOTATION, "metrics", 70, 20);
    struct studied s;
    study(&s, t, 0);
    assert_true(s.d.line.v[timeline_at(&s.d.line, 20 * US)].input);
    assert_false(s.d.line.v[timeline_at(&s.d.line, 80 * US)].input);
    done(&s);
}

/* The second quarter stands for all; asked for all, all come. */
static void typical_steps(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    const int64_t durs[] = {900, 100, 110, 105};
    int64_t ts = 0;
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, ts, durs[i]);
        ts += durs[i];
    }
    tiny_seal(t);
    uint32_t out[8];
    size_t n;
    struct ops_err e;
    assert_int_equal(deps_choose(t,
                                 &(struct step_choice){.all = false, .max = 8},
                                 out, &n, &e),
                     0);
    assert_int_equal(n, 1);
    assert_int_equal(out[0], 3);
    assert_int_equal(deps_choose(t,
                                 &(struct step_choice){.all = true, .max = 8},
                                 out, &n, &e),
                     0);
    assert_int_equal(n, 4);
    assert_int_equal(deps_choose(t,
                                 &(struct step_choice){.all = true, .max = 3},
                                 out, &n, &e),
                     0);
    assert_int_equal(n, 3);
    trace_free(t);
}

/* Two kernels on streams 7 and 9, launched at 20 and 200. A record says that
 * stream `waiting` waited, from `at` on, for the event that a call at 300
 * recorded on stream `on`. */
static struct feed recorded_wait(int at, int waiting, int on) {
    char text[2000];
    snprintf(text, sizeof text,
             "{\"schemaVersion\":1,\"traceEvents\":["
#define CALL(name, ts, id)                                                     \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name                  \
    "\",\"pid\":1,\"tid\":1,\"ts\":" #ts                                       \
    ",\"dur\":5,\"args\":{\"correlation\":" #id "}},"
#define WORK(stream, ts, id)                                                   \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,"               \
    "\"tid\":" #stream ",\"ts\":" #ts                                          \
    ",\"dur\":50,\"args\":{\"device\":0,\"stream\":" #stream                   \
    ",\"correlation\":" #id "}},"
             CALL("cudaLaunchKernel", 20, 1) WORK(7, 30, 1) /* */
             CALL("cudaLaunchKernel", 200,
                  2) WORK(9, 210, 2) CALL("cudaEventRecord", 300, 3)
#undef CALL
#undef WORK
                 "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"w\",\"pid\":0,"
                 "\"tid\":%d,\"ts\":%d,\"dur\":1,\"args\":{\"device\":0,"
                 "\"stream\":%d,\"cuda_sync_kind\":\"Stream Wait Event\","
                 "\"wait_on_stream\":%d,"
                 "\"wait_on_cuda_event_record_corr_id\":3}},"
                 "{\"ph\":\"X\",\"cat\":\"user_annotation\","
                 "\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":0,"
                 "\"dur\":1000}]}",
             waiting, at, waiting, on);
    return feed_text(text);
}

/* A file may say that work waited for what was launched only later: that
 * cannot be, and running it again would never come to an end. */
static void nothing_waits_for_what_is_launched_later(void **state) {
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct feed f = backwards ? recorded_wait(10, 7, 9)
                                  : recorded_wait(100, 9, 7);
        struct host_side h;
        struct deps d;
        assert_int_equal(host_side_init(&h, f.t, 0, NULL, &f.e), 0);
        assert_int_equal(deps_build(&d, &h, 0, &f.e), 0);
        assert_int_equal(d.nworks, 2);
        assert_int_equal(d.works[0].after, DEP_NONE);
        assert_int_equal(d.works[1].after, backwards ? DEP_NONE : 0);
        deps_free(&d);
        host_side_free(&h);
        feed_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_covers_the_step),
        cmocka_unit_test(other_threads_take_over),
        cmocka_unit_test(device_bound),
        cmocka_unit_test(graphs_are_launched_at_once),
        cmocka_unit_test(kernels_overlap_no_more),
        cmocka_unit_test(waiting_calls),
        cmocka_unit_test(waits_for_what_is_left),
        cmocka_unit_test(waits_for_what_was_launched),
        cmocka_unit_test(streams_wait_for_each_other),
        cmocka_unit_test(nothing_waits_for_what_is_launched_later),
        cmocka_unit_test(recording_is_taken_off),
        cmocka_unit_test(input_is_told_apart),
        cmocka_unit_test(typical_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
