/* SPDX-License-Identifier: Apache-2.0
 * Runs of compiled programs that the host executes beside its callers (XLA on a
 * CPU): a step is over when what was called in it is, as with a device. */
#include "tiny.h"

#include <stdio.h>

enum { FIRST_RUN = 1188708133 };

struct rig {
    struct trace *t;
    uint32_t caller, worker;
    int64_t run;
};

static struct rig rig_new(void) {
    struct rig g = {.t = tiny_new(false, false), .run = FIRST_RUN};
    g.caller = tiny_thread(g.t, 1);
    g.worker = tiny_thread(g.t, 2);
    return g;
}

static row_id call(struct rig *g, const char *name, int64_t ts, int64_t dur) {
    return tiny_span(g->t, g->caller, SPAN_RUNTIME, name, ts, dur);
}

/* Adds a run of two ops, [from, to) together. */
static void run_of(struct rig *g, int64_t run, int64_t from, int64_t to) {
    int64_t half = (to - from) / 2;
    for (int i = 0; i < 2; i++)
        trace_run_hint(g->t,
                       tiny_span(g->t, g->worker, SPAN_OP, "fusion",
                                 from + i * half, half),
                       run);
}

/* Adds a marked step of 10 us at ts, which calls a function. */
static void step(struct rig *g, int number, int64_t ts) {
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    tiny_span(g->t, g->caller, SPAN_ANNOTATION, name, ts, 10);
    call(g, "PjitFunction(update)", ts + 1, 5);
}

static void check_step(const struct trace *t, size_t i, int64_t start,
                       int64_t end) {
    assert_true(i < t->nsteps);
    assert_int_equal(t->steps[i].ts / US, start);
    assert_int_equal((t->steps[i].ts + t->steps[i].dur) / US, end);
}

/* Returns the step of the k-th op of the worker. */
static uint32_t step_of_op(const struct rig *g, row_id k) {
    return g->t->spans.step[g->t->tracks[g->worker].first + k];
}

static void a_step_lasts_until_its_runs_end(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int i = 0; i < 3; i++) step(&g, i, 10 * i);
    for (int i = 0; i < 3; i++)
        run_of(&g, g.run + i, 4 + 100 * i, 104 + 100 * i);
    tiny_seal(g.t);
    check_step(g.t, 0, 0, 104);
    check_step(g.t, 1, 104, 204);
    check_step(g.t, 2, 204, 304);
    for (row_id k = 0; k < 6; k++) assert_int_equal(step_of_op(&g, k), k / 2);
    trace_free(g.t);
}

static void a_caller_that_waits_has_its_markers_as_steps(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int i = 0; i < 3; i++) {
        step(&g, i, 10 * i);
        run_of(&g, g.run + i, 10 * i + 2, 10 * i + 8);
    }
    tiny_seal(g.t);
    check_step(g.t, 0, 0, 10);
    check_step(g.t, 1, 10, 20);
    check_step(g.t, 2, 20, 30);
    trace_free(g.t);
}

static void a_run_called_before_the_first_step_is_in_none(void **state) {
    (void)state;
    struct rig g = rig_new();
    call(&g, "PjitFunction(make)", 0, 3);
    step(&g, 0, 10);
    run_of(&g, g.run, 4, 50);
    run_of(&g, g.run + 1, 50, 90);
    tiny_seal(g.t);
    check_step(g.t, 0, 50, 90);
    assert_int_equal(step_of_op(&g, 0), ROW_NONE);
    assert_int_equal(step_of_op(&g, 2), 0);
    trace_free(g.t);
}

/* Inside of a function's call stand that of the executable, and the function's
 * name once more. */
static void the_executable_goes_before_the_function(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int i = 0; i < 2; i++) {
        step(&g, i, 10 * i);
        call(&g, "PjitFunction(update)", 10 * i + 1, 4);
        call(&g, "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice",
             10 * i + 2, 1);
    }
    /* traced for another one, and never run */
    call(&g, "PjitFunction(inner)", 18, 1);
    for (int i = 0; i < 2; i++)
        run_of(&g, g.run + i, 3 + 100 * i, 103 + 100 * i);
    tiny_seal(g.t);
    check_step(g.t, 0, 0, 103);
    check_step(g.t, 1, 103, 203);
    trace_free(g.t);
}

static void runs_whose_calls_cannot_be_told_move_no_step(void **state) {
    (void)state;
    for (int odd = 0; odd < 2; odd++) {
        struct rig g = rig_new();
        for (int i = 0; i < 3; i++) step(&g, i, 10 * i);
        /* a call less than runs; or a run before the call with its place */
        if (odd == 0) run_of(&g, g.run + 9, 500, 600);
        run_of(&g, g.run, 4, 104);
        run_of(&g, g.run + 1, odd ? 9 : 104, 204);
        run_of(&g, g.run + 2, 204, 304);
        tiny_seal(g.t);
        check_step(g.t, 0, 0, 10);
        check_step(g.t, 1, 10, 20);
        check_step(g.t, 2, 20, 30);
        trace_free(g.t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_lasts_until_its_runs_end),
        cmocka_unit_test(a_caller_that_waits_has_its_markers_as_steps),
        cmocka_unit_test(a_run_called_before_the_first_step_is_in_none),
        cmocka_unit_test(the_executable_goes_before_the_function),
        cmocka_unit_test(runs_whose_calls_cannot_be_told_move_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
