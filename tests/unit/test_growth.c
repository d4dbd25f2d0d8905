/* SPDX-License-Identifier: Apache-2.0
 * Time grows as the profile does, whatever it has many of: devices, streams,
 * threads, steps, ranks, allocators. A file may say any number of each, and
 * what costs a look at all of one for each of another costs their product.
 * Steps alone are in test_every_analysis.c. */
#include "tiny.h"

#include "analyze/shared/phases.h"
#include "base/facts.h"
#include "load/runs_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* 8 times as many may take 8 times as long; caches and a busy machine make it
 * more, the square would make it 64. */
enum { FEW = 700, MANY = 8 * FEW, BOUND = 28, TRIES = 4 };

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void put_marker(struct trace *t, uint32_t thread, int64_t number,
                       int64_t ts, int64_t dur) {
    char name[48];
    snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)number);
    row_id m = tiny_span(t, thread, SPAN_ANNOTATION, name, ts, dur);
    t->spans.flags[m] |= SPAN_STEPMARK;
    trace_step_hint(t, m, number);
}

/* A call on a thread and its kernel on a stream; every fifth a collective. */
static void put_work(struct trace *t, uint32_t thread, uint32_t stream,
                     int64_t i) {
    tiny_launch(t, thread, stream,
                i % 5 ? "gemm" : "ncclDevKernel_AllReduce_Sum_f32", 10 * i, 7);
    tiny_span(t, thread, SPAN_OP, "aten::mm", 10 * i + 4, 3);
}

static struct trace *many_devices(int64_t n) {
    struct trace *t = tiny_new(true, false);
    uint32_t thread = tiny_thread(t, 1);
    for (int64_t i = 0; i < 3; i++)
        put_marker(t, thread, i, 10 * n * i / 3, 10 * n / 3);
    for (int64_t i = 0; i < n; i++)
        put_work(t, thread, tiny_stream(t, i, 7), i);
    return t;
}

static struct trace *many_devices_and_steps(int64_t n) {
    struct trace *t = tiny_new(true, false);
    uint32_t thread = tiny_thread(t, 1);
    for (int64_t i = 0; i < n; i++) {
        put_marker(t, thread, i, 10 * i, 9);
        put_work(t, thread, tiny_stream(t, i, 7), i);
    }
    /* and one that runs all the time on each of some: in every step */
    for (int64_t i = 0; i < n / 4; i++)
        tiny_span(t, tiny_stream(t, i, 8), SPAN_KERNEL, "spin", 0, 10 * n);
    return t;
}

static struct trace *many_threads_and_steps(int64_t n) {
    struct trace *t = tiny_new(true, false);
    uint32_t main = tiny_thread(t, 1), stream = tiny_stream(t, 0, 7);
    for (int64_t i = 0; i < n; i++) {
        put_marker(t, main, i, 10 * i, 9);
        put_work(t, tiny_thread(t, 2 + i), stream, i);
    }
    return t;
}

static struct trace *many_streams_and_threads(int64_t n) {
    struct trace *t = tiny_new(true, false);
    uint32_t main = tiny_thread(t, 1);
    for (int64_t i = 0; i < 3; i++)
        put_marker(t, main, i, 10 * n * i / 3, 10 * n / 3);
    for (int64_t i = 0; i < n; i++)
        put_work(t, tiny_thread(t, 2 + i), tiny_stream(t, 0, 7 + i), i);
    return t;
}

static struct trace *many_allocators(int64_t n) {
    struct trace *t = tiny_new(true, true);
    uint32_t thread = tiny_thread(t, 1);
    char name[32];
    for (int64_t i = 0; i < 5; i++) put_marker(t, thread, i, 2 * n * i, 2 * n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t d = trace_device(t, 0, DEVICE_GPU, i);
        t->devices[d].memory_bytes = 1 << 20;
        snprintf(name, sizeof name, "GPU %lld", (long long)i);
        uint32_t a = trace_allocator(t, 0, bytes_of(name), d);
        for (int64_t k = 0; k < 5; k++)
            tiny_mem(t, a, thread, 2 * n * k + i, (uint64_t)(5 * i + k + 1),
                     512, 512 * (k + 1));
    }
    return t;
}

/* A rank each, with its steps; of the recorder every other one. */
static struct trace *many_ranks(int64_t n) {
    struct trace *t = trace_new();
    assert_non_null(t);
    for (int64_t i = 0; i < n; i++) {
        char path[32];
        snprintf(path, sizeof path, "rank%lld", (long long)i);
        uint32_t s = trace_source(t, path, format_named("kineto"), NULL,
                                  (struct bytes){0});
        t->sources[s].rank = i;
        t->sources[s].world_size = n;
        t->sources[s].has_device = t->sources[s].has_memory = true;
        trace_meta(t, s, "process_group", bytes_of("0"));
        trace_meta(t, s, path, bytes_of(path));
        uint32_t thread = trace_track(t, s, TRACK_THREAD, 1, 1);
        uint32_t stream = trace_track(t, s, TRACK_STREAM, 0, 7);
        t->tracks[stream].device = trace_device(t, s, DEVICE_GPU, 0);
        put_marker(t, thread, 0, 0, 40);
        put_marker(t, thread, 1, 50, 40);
        for (int64_t k = 0; k < 5; k++) {
            uint64_t id = (uint64_t)k;
            trace_link_host(t, s, id,
                            tiny_span(t, thread, SPAN_API, "cudaLaunchKernel",
                                      20 * k, 2));
            trace_link_device(t, s, id,
                              tiny_span(t, stream, SPAN_KERNEL,
                                        k % 2 ? "gemm"
                                              : "ncclDevKernel_AllRe"
                                                "duce_Sum_f32",
                                        20 * k + 3, 5));
        }
    }
    return t;
}

/* Threads, and a device of which nothing was recorded. */
static struct trace *many_threads_alone(int64_t n) {
    struct trace *t = tiny_new(false, false);
    put_marker(t, tiny_thread(t, 1), 0, 0, 10 * n);
    put_marker(t, tiny_thread(t, 1), 1, 10 * n, 10 * n);
    for (int64_t i = 0; i < 16 * n; i++)
        tiny_span(t, tiny_thread(t, 2 + i), SPAN_OP, "aten::mm", i, 3);
    return t;
}

/* Instances of one region, each on a thread of its own, all at the same
 * time. */
static struct trace *many_instances_at_once(int64_t n) {
    struct trace *t = tiny_new(false, false);
    n /= 16;
    for (int64_t i = 0; i < n; i++) {
        uint32_t thread = tiny_thread(t, 1 + i);
        tiny_span(t, thread, SPAN_ANNOTATION, "work", i, 100 * n);
        for (int64_t k = 0; k < 40; k++)
            tiny_span(t, thread, SPAN_OP, "aten::mm", n + 2 * k * n, n);
    }
    return t;
}

struct kind {
    const char *name;
    struct trace *(*make)(int64_t n);
};

static double seal_cost(const struct kind *k, int64_t n, struct trace **out) {
    *out = k->make(n);
    double start = cpu_now();
    tiny_seal(*out);
    return cpu_now() - start;
}

static double run_cost(const struct analysis *a, const struct trace *t) {
    double start = cpu_now();
    struct result r = tiny_run(t, a->name, NULL, NULL);
    double took = cpu_now() - start;
    result_free(&r);
    return took;
}

/* Every analysis, and sealing. */
static void check(const struct kind *k) {
    const double noise = 0.002;
    struct trace *few, *many;
    double one = seal_cost(k, FEW, &few) + noise;
    double eight = seal_cost(k, MANY, &many);
    for (int i = 1; i < TRIES && eight / one > BOUND; i++) {
        trace_free(few);
        trace_free(many);
        one = seal_cost(k, FEW, &few) + noise;
        eight = seal_cost(k, MANY, &many);
    }
    if (eight / one > BOUND)
        fail_msg("%s: sealing 8 times as many takes %.0f times as long",
                 k->name, eight / one);
    for (size_t i = 0; analyses[i] != NULL; i++) {
        double best = 1e9;
        for (int m = 0; m < TRIES && best > BOUND; m++) {
            one = run_cost(analyses[i], few) + noise;
            eight = run_cost(analyses[i], many);
            if (eight / one < best) best = eight / one;
        }
        if (best > BOUND)
            fail_msg("%s: %s of 8 times as many takes %.0f times as long",
                     k->name, analyses[i]->name, best);
    }
    trace_free(few);
    trace_free(many);
}

#define GROWS(of)                                                              \
    static void grows_as_##of(void **state) {                                  \
        (void)state;                                                           \
        check(&(struct kind){#of, of});                                        \
    }
GROWS(many_devices)
GROWS(many_devices_and_steps)
GROWS(many_threads_and_steps)
GROWS(many_streams_and_threads)
GROWS(many_allocators)
GROWS(many_ranks)
GROWS(many_threads_alone)

/* What the first look at a window by name costs: a view keeps what was worked
 * out. */
static double region_cost(int64_t n) {
    struct trace *t = many_instances_at_once(n);
    tiny_seal(t);
    double start = cpu_now();
    struct result r = tiny_run(t, "steps", "region", "work");
    double took = cpu_now() - start;
    result_free(&r);
    trace_free(t);
    return took;
}

static void grows_as_many_instances_at_once(void **state) {
    (void)state;
    const double noise = 0.002;
    double best = 1e9;
    for (int i = 0; i < TRIES && best > BOUND; i++) {
        double one = region_cost(FEW) + noise, eight = region_cost(MANY);
        if (eight / one < best) best = eight / one;
    }
    if (best > BOUND)
        fail_msg("steps of 8 times as many instances take %.0f times as long",
                 best);
}

/* Counters of n launches that all begin at once, among as many ops. */
static double counters_cost(int64_t n) {
    struct trace *t = tiny_new(true, false);
    uint32_t c = trace_counter(t, 0, bytes_of("sm"), bytes_of(""), ROW_NONE);
    t->counters[c].ranges = t->counters[c].launched = true;
    for (int64_t i = 0; i < n; i++) {
        uint32_t thread = tiny_thread(t, 1);
        tiny_span(t, thread, SPAN_OP, "aten::mm", 5, 20);
        tiny_span(t, thread, SPAN_API, "cudaLaunchKernel", 5, 1);
        trace_sample(t, c, 5 * US, 1);
    }
    tiny_seal(t);
    double start = cpu_now();
    struct result r = tiny_run(t, "counters", "by", "op");
    double took = cpu_now() - start;
    assert_int_equal(r.nrows, 1);
    assert_string_equal(tiny_cell(&r, 0, "op")->s, "aten::mm");
    assert_int_equal(tiny_cell(&r, 0, "samples")->i, n);
    result_free(&r);
    trace_free(t);
    return took;
}

static void grows_as_counted_launches(void **state) {
    (void)state;
    double best = 1e9;
    for (int i = 0; i < TRIES && best > BOUND; i++) {
        double one = counters_cost(4 * FEW) + 0.002;
        double eight = counters_cost(4 * MANY);
        if (eight / one < best) best = eight / one;
    }
    if (best > BOUND)
        fail_msg("counters of 8 times as many takes %.0f times as long", best);
}

/* Scopes of a program of which a framework traced n short pieces. */
static double captures_cost(int64_t n) {
    size_t files = (size_t)n + 1;
    struct loaded_file *v = calloc(files, sizeof *v);
    char(*paths)[40] = calloc(files, sizeof *paths);
    struct ops_err e;
    assert_non_null(v);
    assert_non_null(paths);
    for (size_t i = 0; i < files; i++) {
        v[i] = (struct loaded_file){.t = tiny_new(false, false),
                                    .path = paths[i],
                                    .lo = 300 * (int64_t)i * US,
                                    .hi = (300 * (int64_t)i + 5) * US};
        trace_epoch(v[i].t, 0, 1000, true);
        v[i].t->sources[0].pid = 1;
        snprintf(paths[i], sizeof *paths, "h_1.step%zu.pt.trace.json.gz", i);
    }
    snprintf(paths[0], sizeof *paths, "h_1.xplane.pb");
    v[0].t->sources[0].by_opscope = true;
    uint32_t thread = tiny_thread(v[0].t, 1);
    for (int64_t i = 0; i < 300 * n; i++)
        tiny_span(v[0].t, thread, SPAN_OP, "scope", i, 1);
    double start = cpu_now();
    assert_int_equal(join_all_traced(v, files, &e), 0);
    double took = cpu_now() - start;
    assert_null(v[0].t); /* it went into that of the first capture */
    trace_free(v[1].t);
    free(paths);
    free(v);
    return took;
}

static void grows_as_captures_of_a_recording(void **state) {
    (void)state;
    double best = 1e9;
    for (int i = 0; i < TRIES && best > BOUND; i++) {
        double one = captures_cost(FEW / 8) + 0.002;
        double eight = captures_cost(FEW);
        if (eight / one < best) best = eight / one;
    }
    if (best > BOUND)
        fail_msg("8 times as many captures take %.0f times as long", best);
}

/* Steps that were told of, and markers of a capture: one of them lasts over all
 * others, and what began behind the last step is none. */
static double told_cost(int64_t n) {
    struct loaded_file own = {.t = tiny_new(false, false)};
    struct loaded_file capture = {.t = tiny_new(false, false)};
    struct loaded_file *captures[] = {&capture};
    trace_epoch(own.t, 0, 1000, true);
    trace_epoch(capture.t, 0, 1000, true);
    capture.hi = 30 * n * US;
    uint32_t thread = tiny_thread(own.t, 1), steps = tiny_thread(capture.t, 1);
    put_marker(capture.t, steps, 0, 0, 30 * n);
    for (int64_t i = 0; i < n; i++) {
        put_marker(own.t, thread, i, 10 * i, 30 * n - 10 * i);
        tiny_span(own.t, thread, SPAN_OP, SPAN_STEP_OVER "0", 10 * i + 8, 0);
        put_marker(capture.t, steps, i, 10 * i + 1, 7);
        tiny_span(capture.t, steps, SPAN_OP, SPAN_NO_STEP, 10 * (n + i), 0);
    }
    double start = cpu_now();
    assert_true(mend_told_steps(&own, captures, 1));
    double took = cpu_now() - start;
    trace_free(own.t);
    trace_free(capture.t);
    return took;
}

static void grows_as_steps_that_were_told_of(void **state) {
    (void)state;
    double best = 1e9;
    for (int i = 0; i < TRIES && best > BOUND; i++) {
        double one = told_cost(4 * FEW) + 0.002, eight = told_cost(4 * MANY);
        if (eight / one < best) best = eight / one;
    }
    if (best > BOUND)
        fail_msg("8 times as many told steps take %.0f times as long", best);
}

/* The mean over many devices is asked of their levels, that over a few of each
 * in turn: the answers are the same, to the picosecond. */
static void sums_of_many_are_those_of_each(void **state) {
    (void)state;
    struct trace *t = many_devices_and_steps(60);
    struct ops_err e;
    struct phases p;
    struct phase_sums many, each;
    tiny_seal(t);
    assert_int_equal(phases_get(&p, t, &e), 0);
    assert_int_equal(phase_sums_init(&many, &p, 0, &e), 0);
    assert_int_equal(many.n, 60);
    assert_true(many.by_levels);
    each = (struct phase_sums){.views = many.views, .n = many.n};
    for (int64_t a = -20; a < 620; a += 7)
        for (int64_t b = a; b < 620; b += 31) {
            int64_t x[PHASES], y[PHASES], bx, by, sum = 0;
            phase_sums_mean(&many, a * US, b * US, x, &bx);
            phase_sums_mean(&each, a * US, b * US, y, &by);
            for (int i = 0; i < PHASES; i++) {
                assert_int_equal(x[i], y[i]);
                sum += x[i];
            }
            assert_int_equal(bx, by);
            assert_int_equal(sum, (b - a) * US);
        }
    phase_sums_free(&many);
    trace_free(t);
}

/* All steps at once, and one after the other. */
static void a_window_is_the_sum_of_its_steps(void **state) {
    (void)state;
    struct trace *t = many_devices_and_steps(40);
    struct ops_err e;
    struct phases p;
    tiny_seal(t);
    assert_int_equal(phases_get(&p, t, &e), 0);
    struct intervals times = {0};
    for (size_t i = 0; i < t->nsteps; i += 2)
        assert_true(intervals_add(&times, t->steps[i].ts,
                                  t->steps[i].ts + t->steps[i].dur));
    intervals_union(&times);
    struct phase_window w;
    assert_true(phase_window_init(&w, &p, 0, &times));
    for (size_t k = 0; k < p.nviews; k++) {
        int64_t all[PHASES], sum[PHASES] = {0}, one[PHASES], busy;
        phases_split_window(&p.views[k], &w, all, &busy);
        for (size_t i = 0; i < t->nsteps; i += 2) {
            phases_split(&p.views[k], t->steps[i].ts,
                         t->steps[i].ts + t->steps[i].dur, one);
            for (int m = 0; m < PHASES; m++) sum[m] += one[m];
        }
        for (int m = 0; m < PHASES; m++) assert_int_equal(all[m], sum[m]);
    }
    phase_window_free(&w);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_as_many_devices),
        cmocka_unit_test(grows_as_many_devices_and_steps),
        cmocka_unit_test(grows_as_many_threads_and_steps),
        cmocka_unit_test(grows_as_many_streams_and_threads),
        cmocka_unit_test(grows_as_many_allocators),
        cmocka_unit_test(grows_as_many_ranks),
        cmocka_unit_test(grows_as_counted_launches),
        cmocka_unit_test(grows_as_captures_of_a_recording),
        cmocka_unit_test(grows_as_steps_that_were_told_of),
        cmocka_unit_test(grows_as_many_threads_alone),
        cmocka_unit_test(grows_as_many_instances_at_once),
        cmocka_unit_test(sums_of_many_are_those_of_each),
        cmocka_unit_test(a_window_is_the_sum_of_its_steps),
    };
    return cmocka_run_group_tests_name("growth", tests, NULL, NULL);
}
