/* SPDX-License-Identifier: Apache-2.0
 * What opscope's recording tells of a step once it has begun holds for the
 * marker that a framework's tracer has of it, too. */
#include "tiny.h"

#include "base/facts.h"
#include "load/runs_impl.h"

enum { EPOCH = 1000000, LATER = 2 }; /* ns; us, of the capture's clock */

struct rig {
    struct loaded_file own, capture, *captures[1];
    uint32_t thread, steps;
};

/* Steps of ten us, 1 to 4, of which the capture has the last three; the last
 * one lasts until the program's end. */
static void rig_make(struct rig *g) {
    *g = (struct rig){.own = {.t = tiny_new(false, false)},
                      .capture = {.t = tiny_new(false, false)}};
    g->captures[0] = &g->capture;
    trace_epoch(g->own.t, 0, EPOCH, true);
    trace_epoch(g->capture.t, 0, EPOCH + LATER * 1000, true);
    g->thread = tiny_thread(g->own.t, 1);
    g->steps = tiny_thread(g->capture.t, 1);
    for (int i = 0; i < 4; i++) {
        int dur = i < 3 ? 10 : 1000;
        trace_step_hint(g->own.t,
                        tiny_span(g->own.t, g->thread, SPAN_ANNOTATION, "step",
                                  10 * i, dur),
                        i + 1);
        /* it is marked a moment before */
        if (i > 0)
            trace_step_hint(g->capture.t,
                            tiny_span(g->capture.t, g->steps, SPAN_ANNOTATION,
                                      "train", 10 * i - 1 - LATER, dur),
                            i + 1);
    }
    g->capture.lo = 0;
    g->capture.hi = 2000 * PS_PER_US;
}

static void tell(struct rig *g, const char *what, int64_t us) {
    tiny_span(g->own.t, g->thread, SPAN_OP, what, us, 0);
}

/* Compares the steps that are left and the last one of the capture. */
static void left_are(struct rig *g, int own, int captured, int64_t last_us,
                     bool cut) {
    int n = 0, m = 0;
    assert_true(mend_told_steps(&g->own, g->captures, 1));
    const struct trace *t = g->capture.t;
    row_id last = ROW_NONE;
    for (row_id r = 0; r < g->own.t->spans.n; r++)
        n += (g->own.t->spans.flags[r] & SPAN_STEPMARK) != 0;
    for (row_id r = 0; r < t->spans.n; r++) {
        if ((t->spans.flags[r] & SPAN_STEPMARK) == 0) continue;
        last = r;
        m++;
    }
    assert_int_equal(n, own);
    assert_int_equal(m, captured);
    assert_int_not_equal(last, ROW_NONE);
    assert_int_equal(t->spans.dur[last], last_us * PS_PER_US);
    assert_int_equal((t->spans.flags[last] & SPAN_OPEN) != 0, cut);
    trace_free(g->own.t);
    trace_free(g->capture.t);
}

static void nothing_told_changes_nothing(void **state) {
    (void)state;
    struct rig g;
    rig_make(&g);
    tell(&g, "other", 500);
    left_are(&g, 4, 3, 1000, false);
}

static void the_step_behind_the_last_one_is_none(void **state) {
    (void)state;
    struct rig g;
    rig_make(&g);
    tell(&g, SPAN_NO_STEP, 500);
    left_are(&g, 3, 2, 10, false);
}

static void a_step_in_the_middle_may_be_none(void **state) {
    (void)state;
    struct rig g;
    rig_make(&g);
    tell(&g, SPAN_NO_STEP, 15);
    left_are(&g, 3, 2, 1000, false);
}

static void the_last_step_ends_before_the_program(void **state) {
    (void)state;
    struct rig g;
    rig_make(&g);
    tell(&g, SPAN_STEP_OVER "985000", 1025); /* at 40: it is marked at 29 */
    left_are(&g, 4, 3, 11, false);
}

static void a_step_of_which_nobody_knows_the_end_is_cut(void **state) {
    (void)state;
    struct rig g;
    rig_make(&g);
    tell(&g, SPAN_STEP_CUT, 1025);
    left_are(&g, 4, 3, 1000, true);
}

static void a_time_that_cannot_be_is_passed_over(void **state) {
    (void)state;
    struct rig g;
    rig_make(&g);
    tell(&g, SPAN_STEP_OVER "-5", 1025);
    tell(&g, SPAN_STEP_OVER "99999999999999999999999", 1026);
    left_are(&g, 4, 3, 1000, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_told_changes_nothing),
        cmocka_unit_test(the_step_behind_the_last_one_is_none),
        cmocka_unit_test(a_step_in_the_middle_may_be_none),
        cmocka_unit_test(the_last_step_ends_before_the_program),
        cmocka_unit_test(a_step_of_which_nobody_knows_the_end_is_cut),
        cmocka_unit_test(a_time_that_cannot_be_is_passed_over),
    };
    return cmocka_run_group_tests_name("told_steps", tests, NULL, NULL);
}
