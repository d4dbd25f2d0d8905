/* SPDX-License-Identifier: Apache-2.0
 * A capture without a wall clock gets that of opscope's recording, by the steps
 * that both have. */
#include "tiny.h"

#include "base/facts.h"
#include "load/runs_impl.h"

enum { EPOCH = 1000000, DELAY = 3 }; /* ns; us from one mark to the other */

struct rig {
    struct loaded_file own, capture;
    uint32_t thread, side, steps;
};

static struct rig rig_new(void) {
    struct rig g = {.own = {.t = tiny_new(false, false)},
                    .capture = {.t = tiny_new(false, false)}};
    trace_epoch(g.own.t, 0, EPOCH, true);
    trace_epoch(g.capture.t, 0, 0, false);
    trace_note(g.capture.t, NOTE_CLOCK_UNKNOWN, 1);
    g.thread = tiny_thread(g.own.t, 1);
    g.side = tiny_thread(g.own.t, 2);
    g.steps = tiny_thread(g.capture.t, 1);
    return g;
}

/* Adds a step to one of the two. */
static void step(struct trace *t, uint32_t track, int64_t ts, int64_t number) {
    trace_step_hint(t, tiny_span(t, track, SPAN_ANNOTATION, "step", ts, 5),
                    number);
}

static void traced(struct rig *g, int64_t from, int64_t dur) {
    tiny_span(g->own.t, g->side, SPAN_OP, SPAN_TRACED_BY "tensorflow", from,
              dur);
}

/* Was the capture's zero found, and so many us into the recording? */
static void zero_is(struct rig *g, bool found, int64_t us) {
    bool oom = false;
    assert_int_equal(clock_by_steps(&g->capture, &g->own, &oom), found);
    assert_false(oom);
    assert_int_equal(g->capture.t->sources[0].has_clock, found);
    assert_int_equal(g->capture.t->notes[NOTE_CLOCK_UNKNOWN], !found);
    assert_int_equal(g->capture.t->notes[NOTE_CLOCK_BY_STEPS], found);
    if (found) assert_int_equal(g->capture.t->epoch_ns, EPOCH + us * 1000);
    trace_free(g->own.t);
    trace_free(g->capture.t);
}

/* Its zero is at 500 us of the recording. */
static void the_nearest_marks_tell(void **state) {
    (void)state;
    struct rig g = rig_new();
    traced(&g, 490, 100);
    for (int i = 0; i < 20; i++) step(g.own.t, g.thread, 30 * i, i);
    step(g.capture.t, g.steps, 10 - DELAY - 2, 17); /* 510 */
    step(g.capture.t, g.steps, 40 - DELAY, 18);     /* 540 */
    zero_is(&g, true, 500 + DELAY);
}

static void numbers_that_come_again_are_told_apart_by_the_tracer(void **state) {
    (void)state;
    struct rig g = rig_new();
    traced(&g, 995, 100);
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0; i < 10; i++)
            step(g.own.t, g.thread, 1000 * epoch + 10 * i, i);
    step(g.capture.t, g.steps, 20, 3); /* 1030 */
    zero_is(&g, true, 1010);
}

/* Two captures began at a step of that number: how far the steps lie apart
 * says which this one is. */
static void of_two_places_the_even_one_counts(void **state) {
    (void)state;
    struct rig g = rig_new();
    traced(&g, 0, 3000);
    for (int i = 0; i < 4; i++) step(g.own.t, g.thread, 10 * i, i);
    for (int i = 0; i < 4; i++) step(g.own.t, g.thread, 2000 + 50 * i, i);
    for (int i = 1; i < 4; i++) step(g.capture.t, g.steps, 50 * i, i);
    zero_is(&g, true, 2000);
}

static void of_two_places_that_are_alike_none_counts(void **state) {
    (void)state;
    struct rig g = rig_new();
    traced(&g, 0, 3000);
    step(g.own.t, g.thread, 100, 7);
    step(g.own.t, g.thread, 2000, 7);
    step(g.capture.t, g.steps, 50, 7);
    zero_is(&g, false, 0);
}

static void steps_that_were_not_traced_tell_nothing(void **state) {
    (void)state;
    struct rig g = rig_new();
    traced(&g, 500, 100);
    for (int i = 0; i < 10; i++) step(g.own.t, g.thread, 10 * i, i);
    step(g.capture.t, g.steps, 50, 7);
    zero_is(&g, false, 0);
}

static void a_capture_without_steps_has_no_clock(void **state) {
    (void)state;
    struct rig g = rig_new();
    traced(&g, 0, 100);
    step(g.own.t, g.thread, 10, 1);
    zero_is(&g, false, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_marks_tell),
        cmocka_unit_test(numbers_that_come_again_are_told_apart_by_the_tracer),
        cmocka_unit_test(of_two_places_the_even_one_counts),
        cmocka_unit_test(of_two_places_that_are_alike_none_counts),
        cmocka_unit_test(steps_that_were_not_traced_tell_nothing),
        cmocka_unit_test(a_capture_without_steps_has_no_clock),
    };
    return cmocka_run_group_tests_name("step_clock", tests, NULL, NULL);
}
