/* SPDX-License-Identifier: Apache-2.0
 * The step without its profiler: one figure, measured or estimated, within its
 * bounds, the same in every command. */
#include "tiny.h"

#include "analyze/steps/bare.h"
#include "analyze/steps/overhead.h"
#include "base/facts.h"
#include "base/sum.h"
#include <stdio.h>

/* Steps of 1 ms, each with so many ops of 1 us inside of another, 2 us
 * apart. */
static struct trace *steps(bool device, int n, int ops) {
    struct trace *t = tiny_new(device, false);
    uint32_t th = tiny_thread(t, 1);
    for (int i = 0; i < n; i++) {
        char name[32];
        int64_t at = 1000 * i;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, at, 1000);
        for (int k = 0; k < ops; k++) {
            tiny_span(t, th, SPAN_OP, "aten::detach", at + 10 + 3 * k, 2);
            tiny_span(t, th, SPAN_OP, "detach", at + 10 + 3 * k, 1);
        }
    }
    return t;
}

static const struct bare_step *of_step(const struct trace *t, size_t i) {
    const struct bare *b;
    struct ops_err e;
    assert_int_equal(bare_get(&b, t, &e), 0);
    return &b->steps[i];
}

static void in_order(const struct bare_step *s) {
    assert_true(s->busy <= s->low && s->low <= s->bare && s->bare <= s->high &&
                s->high <= s->dur);
}

/* The more is recorded the more is taken off, and never what ops do. */
static void events_cost(void **state) {
    (void)state;
    int64_t before = INT64_MAX;
    for (int ops = 20; ops <= 320; ops *= 4) {
        struct trace *t = steps(false, 3, ops);
        tiny_seal(t);
        const struct bare_step *s = of_step(t, 1);
        in_order(s);
        assert_int_equal(s->how, BARE_ESTIMATED);
        assert_int_equal(s->events, 2 * ops + 1);
        assert_true(s->bare < before && s->bare < s->dur);
        assert_true(s->low < s->bare && s->bare < s->high);
        before = s->bare;
        trace_free(t);
    }
}

/* A host that takes longer for the same spans records more slowly. */
static void slow_hosts_pay_more(void **state) {
    (void)state;
    int64_t bare[2];
    for (int i = 0; i < 2; i++) {
        struct trace *t = tiny_new(false, false);
        uint32_t th = tiny_thread(t, 1);
        tiny_span(t, th, SPAN_ANNOTATION, "ProfilerStep#1", 0, 10000);
        for (int k = 0; k < 100; k++) {
            tiny_span(t, th, SPAN_OP, "aten::detach", 10 + 50 * k, 11 + i);
            tiny_span(t, th, SPAN_OP, "detach", 10 + 50 * k, 10);
        }
        tiny_seal(t);
        bare[i] = of_step(t, 0)->bare;
        trace_free(t);
    }
    assert_true(bare[1] < bare[0]);
}

/* Beside a device a view costs little to record, and launching a graph more the
 * more kernels it has; not so on a CPU. */
static void what_is_recorded_tells_the_cost(void **state) {
    (void)state;
    for (int device = 0; device < 2; device++) {
        struct trace *t = tiny_new(device, false);
        uint32_t th = tiny_thread(t, 1), gpu = tiny_stream(t, 0, 7);
        tiny_span(t, th, SPAN_ANNOTATION, "ProfilerStep#1", 0, 1000);
        tiny_span(t, th, SPAN_OP, "aten::mm", 10, 5);
        tiny_span(t, th, SPAN_OP, "aten::view", 20, 5);
        for (int k = 1; k <= 2; k++) {
            row_id call = tiny_span(t, th, SPAN_API, "cudaGraphLaunch",
                                    20 + 10 * k, 5);
            trace_link_host(t, 0, (uint64_t)k, call);
            for (int i = 0; i < k; i++)
                trace_link_device(t, 0, (uint64_t)k,
                                  tiny_span(t, gpu, SPAN_KERNEL, "k",
                                            100 * k + 10 * i, 5));
        }
        tiny_seal(t);
        struct overhead o;
        struct ops_err e;
        assert_int_equal(overhead_read(&o, t, 0, &e), 0);
        int64_t cost[5];
        for (row_id r = 0; r < 5; r++) cost[r] = overhead_cost(&o, t, r);
        assert_string_equal(span_name(t, 2), "aten::view");
        if (device) {
            assert_true(cost[2] * 3 < cost[1]);
            assert_true(cost[3] > o.event[SPAN_API]);
            assert_int_equal(cost[4] - o.event[SPAN_API],
                             2 * (cost[3] - o.event[SPAN_API]));
        } else {
            assert_int_equal(cost[1], cost[2]);
            assert_int_equal(cost[3], cost[4]);
        }
        trace_free(t);
    }
}

/* A device that is busy all the time is not quicker without the profiler. */
static void a_busy_device_stays(void **state) {
    (void)state;
    struct trace *t = steps(true, 2, 100);
    uint32_t gpu = tiny_stream(t, 0, 7);
    for (int i = 0; i < 2; i++)
        tiny_launch(t, tiny_thread(t, 1), gpu, "k", 1000 * i + 1, 980);
    tiny_seal(t);
    for (size_t i = 0; i < 2; i++) {
        in_order(of_step(t, i));
        assert_true(of_step(t, i)->bare >= 980 * US);
    }
    trace_free(t);
}

static void measured(struct trace *t, const char *us) {
    trace_meta(t, 0, FACT_BARE_STEP_US, bytes_of(us));
    tiny_seal(t);
}

/* Returns the overview's line about it; NULL if there is none. */
static const char *told(const struct trace *t, char *buf, size_t n) {
    struct result r = tiny_run(t, "overview", NULL, NULL);
    const char *text = NULL;
    for (size_t i = 0; i < r.nrows; i++)
        if (strcmp(tiny_cell(&r, i, "metric")->s, "without the profiler") ==
            0) {
            snprintf(buf, n, "%s", tiny_cell(&r, i, "text")->s);
            text = buf;
        }
    result_free(&r);
    return text;
}

/* What somebody measured wins over any estimate. */
static void a_measured_one_wins(void **state) {
    (void)state;
    struct trace *t = steps(false, 3, 100);
    char text[200];
    measured(t, "612.5");
    assert_int_equal(of_step(t, 0)->how, BARE_MEASURED);
    assert_int_equal(of_step(t, 0)->bare, 612500 * PS_PER_NS);
    struct result r = tiny_run(t, "steps", NULL, NULL);
    assert_int_equal(tiny_cell(&r, 1, "bare_us")->i, 612500 * PS_PER_NS);
    assert_string_equal(tiny_cell(&r, 1, "bare_is")->s, "measured");
    assert_true(tiny_cell(&r, 1, "bare_low_us")->null);
    assert_true(tiny_cell(&r, 1, "bare_high_us")->null);
    result_free(&r);
    assert_string_equal(told(t, text, sizeof text), "612.5 µs, measured");
    trace_free(t);
}

/* One that is longer than the step is not called the step's. */
static void a_longer_one_is_told_beside(void **state) {
    (void)state;
    struct trace *t = steps(false, 3, 100);
    char text[200];
    measured(t, "2100");
    in_order(of_step(t, 0));
    assert_int_equal(of_step(t, 0)->how, BARE_RECORDED);
    assert_int_equal(of_step(t, 0)->bare, 1000 * US);
    assert_string_equal(told(t, text, sizeof text),
                        "measured bare 2.10 ms, recorded 1.00 ms: profiled "
                        "steps were not slower");
    trace_free(t);
}

/* What is no time is nobody's measurement. */
static void odd_measurements(void **state) {
    (void)state;
    const char *odd[] = {"", "0", "-1", "x", "1 ms", "nan", "inf", "1e300"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct trace *t = steps(false, 2, 10);
        measured(t, odd[i]);
        assert_int_not_equal(of_step(t, 0)->how, BARE_MEASURED);
        trace_free(t);
    }
}

/* steps, overview and hints show one figure. */
static void one_figure(void **state) {
    (void)state;
    struct trace *t = steps(false, 5, 200);
    tiny_seal(t);
    struct bare_step usual;
    struct ops_err e;
    const struct bare *b;
    assert_int_equal(bare_get(&b, t, &e), 0);
    assert_true(bare_typical(b, t, 0, NULL, &usual, &e));
    const bool none[5] = {0};
    assert_false(bare_typical(b, t, 0, none, &usual, &e));
    assert_true(bare_typical(b, t, 0, NULL, &usual, &e));
    struct result r = tiny_run(t, "overview", NULL, NULL);
    bool seen = false;
    for (size_t i = 0; i < r.nrows; i++) {
        if (strcmp(tiny_cell(&r, i, "metric")->s, "without the profiler") != 0)
            continue;
        seen = true;
        assert_float_equal(tiny_cell(&r, i, "value")->f,
                           (double)usual.bare / PS_PER_US, 0.001);
        assert_non_null(strstr(tiny_cell(&r, i, "text")->s, " to "));
    }
    assert_true(seen);
    result_free(&r);
    trace_free(t);
}

/* Far more steps than are run again: all have a figure within its bounds. */
static void many_steps(void **state) {
    (void)state;
    struct trace *t = steps(false, 2000, 4);
    tiny_seal(t);
    for (size_t i = 0; i < t->nsteps; i++) {
        in_order(of_step(t, i));
        assert_true(of_step(t, i)->bare < of_step(t, i)->dur);
    }
    trace_free(t);
}

/* Nobody knows what an unknown recorder costs. */
static void unknown_recorders(void **state) {
    (void)state;
    struct trace *t = steps(false, 2, 10);
    t->sources[0].format = format_named("chrome");
    tiny_seal(t);
    assert_int_equal(of_step(t, 0)->how, BARE_UNKNOWN);
    struct result r = tiny_run(t, "steps", NULL, NULL);
    assert_true(tiny_cell(&r, 0, "bare_us")->null);
    assert_true(tiny_cell(&r, 0, "bare_is")->null);
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_cost),
        cmocka_unit_test(slow_hosts_pay_more),
        cmocka_unit_test(what_is_recorded_tells_the_cost),
        cmocka_unit_test(a_busy_device_stays),
        cmocka_unit_test(a_measured_one_wins),
        cmocka_unit_test(a_longer_one_is_told_beside),
        cmocka_unit_test(odd_measurements),
        cmocka_unit_test(one_figure),
        cmocka_unit_test(many_steps),
        cmocka_unit_test(unknown_recorders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
