/* SPDX-License-Identifier: Apache-2.0
 * Steps of a program that runs ahead of its device: told by stretches between
 * two moments at which the device had nothing to do. */
#include "tiny.h"

#include "base/facts.h"
#include "load/runs_impl.h"

enum { HANDED_OVER = 10 }; /* us: what a step looks like */

struct rig {
    struct trace *t;
    uint32_t thread, side;
    struct own_step steps[400];
    size_t n;
    int64_t now; /* us */
};

static struct rig rig_new(void) {
    struct rig g = {.t = tiny_new(false, false)};
    g.thread = tiny_thread(g.t, 1);
    g.side = tiny_thread(g.t, 2);
    return g;
}

/* Adds a stretch of steps that take so long each, the last of it a wait. */
static void stretch(struct rig *g, size_t steps, int64_t each, int64_t wait) {
    int64_t from = g->now;
    for (size_t i = 0; i < steps; i++)
        g->steps[g->n++] = (struct own_step){(from + (int64_t)i * HANDED_OVER) *
                                                 US,
                                             HANDED_OVER * US, false};
    g->now += (int64_t)steps * each;
    tiny_span(g->t, g->side, SPAN_ANNOTATION, SPAN_LAP, from, g->now - from);
    tiny_span(g->t, g->side, SPAN_ANNOTATION, SPAN_LAP_WAIT, g->now - wait,
              wait);
}

static struct lap_figures figures(struct rig *g, int64_t from, bool ahead) {
    struct lap_figures f;
    bool told;
    assert_true(laps_measure(g->t, g->steps, g->n, from, &f, &told));
    assert_int_equal(told, ahead);
    trace_free(g->t);
    return f;
}

static void the_middle_of_the_long_ones_counts(void **state) {
    (void)state;
    struct rig g = rig_new();
    stretch(&g, 8, 900, 5000); /* short: its begin weighs too much */
    stretch(&g, 32, 210, 6000);
    stretch(&g, 64, 200, 9000);
    stretch(&g, 64, 500, 9000); /* an evaluation was in between */
    stretch(&g, 64, 202, 9000);
    struct lap_figures f = figures(&g, INT64_MIN, true);
    assert_int_equal(f.step, 206 * US); /* between 202 and 210 */
    assert_int_equal(f.low, 200 * US);
    assert_int_equal(f.high, 500 * US);
    assert_int_equal(f.steps, 224);
    assert_int_equal(f.laps, 4);
}

static void of_short_ones_those_with_most_steps_count(void **state) {
    (void)state;
    struct rig g = rig_new();
    stretch(&g, 8, 300, 1000);
    stretch(&g, 16, 250, 2000);
    struct lap_figures f = figures(&g, INT64_MIN, true);
    assert_int_equal(f.step, 250 * US);
    assert_int_equal(f.laps, 1);
}

static void a_wait_shorter_than_a_step_is_no_running_ahead(void **state) {
    (void)state;
    struct rig g = rig_new();
    stretch(&g, 32, 200, 199);
    stretch(&g, 64, 200, 0);
    figures(&g, INT64_MIN, false);
}

static void steps_that_were_traced_are_left_out(void **state) {
    (void)state;
    struct rig g = rig_new();
    stretch(&g, 32, 900, 9000);
    g.steps[31].traced = true;
    stretch(&g, 32, 200, 5000);
    struct lap_figures f = figures(&g, INT64_MIN, true);
    assert_int_equal(f.step, 200 * US);
    assert_int_equal(f.steps, 32);
}

static void what_was_no_step_is_left_out(void **state) {
    (void)state;
    struct rig g = rig_new();
    stretch(&g, 32, 900, 9000);
    int64_t from = g.now * US;
    stretch(&g, 32, 200, 5000);
    struct lap_figures f = figures(&g, from, true);
    assert_int_equal(f.step, 200 * US);
}

/* The program ended, or was killed, in the middle of one. */
static void one_without_its_end_is_left_out(void **state) {
    (void)state;
    struct rig g = rig_new();
    stretch(&g, 32, 200, 5000);
    tiny_span(g.t, g.side, SPAN_ANNOTATION, SPAN_LAP, g.now, 900000);
    for (int i = 0; i < 32; i++)
        g.steps[g.n++] = (struct own_step){(g.now + 10 * i) * US, 10 * US,
                                           false};
    struct lap_figures f = figures(&g, INT64_MIN, true);
    assert_int_equal(f.step, 200 * US);
    assert_int_equal(f.laps, 1);
}

static void nothing_is_told_of_nothing(void **state) {
    (void)state;
    struct rig g = rig_new();
    figures(&g, INT64_MIN, false);
    g = rig_new();
    stretch(&g, 0, 0, 0); /* a stretch with no step in it */
    figures(&g, INT64_MIN, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_middle_of_the_long_ones_counts),
        cmocka_unit_test(of_short_ones_those_with_most_steps_count),
        cmocka_unit_test(a_wait_shorter_than_a_step_is_no_running_ahead),
        cmocka_unit_test(steps_that_were_traced_are_left_out),
        cmocka_unit_test(what_was_no_step_is_left_out),
        cmocka_unit_test(one_without_its_end_is_left_out),
        cmocka_unit_test(nothing_is_told_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
