/* SPDX-License-Identifier: Apache-2.0
 * The step rule: a step runs from the end of the step before it to the later
 * of the next marker's start and the end of the last device work launched in
 * it. Hand-built traces, one for each clause. */
#include "tiny.h"

#include <stdio.h>

struct rig {
    struct trace *t;
    uint32_t thread, stream;
    uint64_t id;
};

static struct rig rig_new(void) {
    struct rig g = {.t = tiny_new(true, false)};
    g.thread = tiny_thread(g.t, 1);
    g.stream = tiny_stream(g.t, 0, 7);
    return g;
}

static void marker(struct rig *g, int number, int64_t ts, int64_t dur) {
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    tiny_span(g->t, g->thread, SPAN_ANNOTATION, name, ts, dur);
}

/* Adds a launch at ts whose kernel runs [from, to). */
static void launch(struct rig *g, int64_t ts, int64_t from, int64_t to) {
    uint64_t id = ++g->id;
    trace_link_host(g->t, 0, id,
                    tiny_span(g->t, g->thread, SPAN_API, "cudaLaunchKernel", ts,
                              1));
    trace_link_device(g->t, 0, id,
                      tiny_span(g->t, g->stream, SPAN_KERNEL, "kernel", from,
                                to - from));
}

static void check_step(const struct trace *t, size_t i, int64_t number,
                       int64_t start, int64_t end) {
    assert_true(i < t->nsteps);
    assert_int_equal(t->steps[i].number, number);
    assert_int_equal(t->steps[i].ts / US, start);
    assert_int_equal((t->steps[i].ts + t->steps[i].dur) / US, end);
}

static void without_a_device_a_step_ends_at_the_next_marker(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 3, 10, 8);
    marker(&g, 4, 20, 8);
    marker(&g, 5, 30, 8);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 3);
    check_step(g.t, 0, 3, 10, 20);
    check_step(g.t, 1, 4, 20, 30);
    check_step(g.t, 2, 5, 30, 38); /* the last: its own end */
    assert_int_equal(g.t->sources[0].step_rule, STEPS_BY_MARKER);
    assert_int_equal(g.t->steps[0].marker_dur / US, 8);
    assert_int_equal(g.t->notes[NOTE_STEPS_INFERRED], 0);
    trace_free(g.t);
}

/* opscope's recorder knows where a step ends; what lies between the markers was
 * not recorded, or is no step: steps 10 and 100 of .steps = "10,100". */
static void between_our_own_markers_is_no_step(void **state) {
    (void)state;
    struct rig g = rig_new();
    g.t->sources[0].by_opscope = true;
    marker(&g, 10, 10, 8);
    marker(&g, 11, 18, 8);
    marker(&g, 100, 500, 8);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 3);
    check_step(g.t, 0, 10, 10, 18);
    check_step(g.t, 1, 11, 18, 26);
    check_step(g.t, 2, 100, 500, 508);
    trace_free(g.t);
}

/* Device work still counts, and is in one step only. */
static void our_own_steps_wait_for_the_device(void **state) {
    (void)state;
    struct rig g = rig_new();
    g.t->sources[0].by_opscope = true;
    marker(&g, 0, 0, 10);
    marker(&g, 1, 20, 10);
    marker(&g, 2, 200, 10);
    launch(&g, 5, 6, 100);
    launch(&g, 25, 100, 180);
    tiny_seal(g.t);
    check_step(g.t, 0, 0, 0, 100);
    check_step(g.t, 1, 1, 100, 180);
    check_step(g.t, 2, 2, 200, 210);
    trace_free(g.t);
}

static void a_step_lasts_until_its_device_work_ends(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 0, 0, 10);
    marker(&g, 1, 10, 10);
    launch(&g, 5, 6, 100);
    launch(&g, 15, 100, 180);
    tiny_seal(g.t);
    check_step(g.t, 0, 0, 0, 100);
    check_step(g.t, 1, 1, 100, 180);
    row_id first = g.t->tracks[g.stream].first;
    assert_int_equal(g.t->spans.step[first], 0);
    assert_int_equal(g.t->spans.step[first + 1], 1);
    trace_free(g.t);
}

static void the_first_step_waits_for_work_launched_before_it(void **state) {
    (void)state;
    struct rig g = rig_new();
    launch(&g, 1, 2, 25); /* before the first marker */
    marker(&g, 7, 10, 10);
    launch(&g, 12, 25, 40);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 1);
    check_step(g.t, 0, 7, 25, 40);
    assert_int_equal(g.t->spans.step[g.t->tracks[g.stream].first], ROW_NONE);
    trace_free(g.t);
}

static void earlier_work_that_ended_in_time_moves_nothing(void **state) {
    (void)state;
    struct rig g = rig_new();
    launch(&g, 1, 2, 8);
    marker(&g, 7, 10, 10);
    tiny_seal(g.t);
    check_step(g.t, 0, 7, 10, 20);
    trace_free(g.t);
}

static void a_launch_between_markers_is_of_no_step(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 0, 0, 10);
    launch(&g, 12, 13, 90); /* evaluation between two steps */
    marker(&g, 1, 20, 10);
    launch(&g, 22, 90, 95);
    tiny_seal(g.t);
    check_step(g.t, 0, 0, 0, 20);
    check_step(g.t, 1, 1, 20, 95);
    row_id first = g.t->tracks[g.stream].first;
    assert_int_equal(g.t->spans.step[first], ROW_NONE);
    assert_int_equal(g.t->spans.step[first + 1], 1);
    trace_free(g.t);
}

static void a_device_far_behind_makes_steps_of_no_length(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 0, 0, 10);
    launch(&g, 1, 2, 100);
    marker(&g, 1, 10, 10); /* launches nothing, over before step 0 is */
    marker(&g, 2, 20, 10);
    launch(&g, 21, 100, 120);
    tiny_seal(g.t);
    check_step(g.t, 0, 0, 0, 100);
    check_step(g.t, 1, 1, 100, 100);
    check_step(g.t, 2, 2, 100, 120);
    trace_free(g.t);
}

static void steps_follow_each_other_without_a_gap(void **state) {
    (void)state;
    uint32_t seed = 9;
    for (int round = 0; round < 200; round++) {
        struct rig g = rig_new();
        int64_t at = 0, device = 0;
        for (int i = 0; i < 6; i++) {
            seed = seed * 1664525u + 1013904223u;
            int64_t len = 5 + (seed >> 20) % 20, gap = (seed >> 10) % 5;
            marker(&g, i, at, len);
            int64_t from = at + 2 > device ? at + 2 : device;
            device = from + (seed >> 24) % 40;
            launch(&g, at + 1, from, device);
            at += len + gap;
        }
        tiny_seal(g.t);
        assert_int_equal(g.t->nsteps, 6);
        for (size_t i = 1; i < 6; i++) {
            const struct step *a = &g.t->steps[i - 1], *b = a + 1;
            assert_int_equal(a->ts + a->dur, b->ts);
            assert_true(b->dur >= 0);
        }
        trace_free(g.t);
    }
}

static void host_spans_belong_to_the_marker_around_their_start(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t other = tiny_thread(g.t, 2);
    marker(&g, 0, 10, 10);
    marker(&g, 1, 30, 10);
    static const struct {
        int64_t ts;
        uint32_t step;
    } v[] = {
        {5, ROW_NONE},  {10, 0}, {19, 0}, {20, ROW_NONE},
        {25, ROW_NONE}, {30, 1}, {39, 1}, {40, ROW_NONE},
    };
    for (size_t i = 0; i < 8; i++)
        tiny_span(g.t, other, SPAN_OP, "aten::mm", v[i].ts, 1);
    tiny_seal(g.t);
    for (row_id i = 0; i < 8; i++)
        assert_int_equal(g.t->spans.step[g.t->tracks[other].first + i],
                         v[i].step);
    trace_free(g.t);
}

static void device_work_with_no_launch_goes_by_time(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 0, 0, 10);
    marker(&g, 1, 10, 10);
    tiny_span(g.t, g.stream, SPAN_KERNEL, "a", 2, 3);
    tiny_span(g.t, g.stream, SPAN_KERNEL, "b", 10, 3);
    tiny_span(g.t, g.stream, SPAN_KERNEL, "c", 50, 3);
    tiny_seal(g.t);
    row_id first = g.t->tracks[g.stream].first;
    assert_int_equal(g.t->spans.step[first], 0);
    assert_int_equal(g.t->spans.step[first + 1], 1);
    assert_int_equal(g.t->spans.step[first + 2], ROW_NONE);
    trace_free(g.t);
}

static void nested_markers_count_once(void **state) {
    (void)state;
    struct rig g = rig_new();
    marker(&g, 0, 0, 10);
    row_id r = tiny_span(g.t, g.thread, SPAN_ANNOTATION, "train", 1, 8);
    trace_step_hint(g.t, r, 99);
    marker(&g, 1, 10, 10);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 2);
    check_step(g.t, 1, 1, 10, 20);
    trace_free(g.t);
}

static void markers_that_overlap_are_steps_each(void **state) {
    (void)state;
    struct rig g = rig_new();
    g.t->sources[0].rounding_ps = US; /* times in whole microseconds */
    marker(&g, 0, 0, 101);            /* ends, by rounding, in the next */
    marker(&g, 1, 100, 100);
    marker(&g, 2, 150, 100); /* truly overlaps */
    marker(&g, 9, 160, 91);  /* in the third, but for rounding */
    tiny_span(g.t, g.thread, SPAN_OP, "op", 160, 1);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 3);
    check_step(g.t, 0, 0, 0, 100);
    check_step(g.t, 1, 1, 100, 150);
    check_step(g.t, 2, 2, 150, 250);
    assert_int_equal(g.t->spans.step[g.t->spans.n - 1], 2);
    trace_free(g.t);
}

static void a_number_from_the_source_wins_over_the_name(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int i = 0; i < 3; i++) {
        row_id r = tiny_span(g.t, g.thread, SPAN_ANNOTATION, "train 5",
                             20 - 10 * i, 10);
        trace_step_hint(g.t, r, 102 - i);
    }
    tiny_seal(g.t);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(g.t->steps[i].number, 100 + (int64_t)i);
    trace_free(g.t);
}

static void with_no_marker_the_longest_repeating_region_is_it(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int i = 0; i < 4; i++) {
        tiny_span(g.t, g.thread, SPAN_ANNOTATION, "iteration", 100 * i, 80);
        for (int k = 0; k < 10; k++) /* often, but short */
            tiny_span(g.t, g.thread, SPAN_ANNOTATION, "layer", 100 * i + 5 * k,
                      4);
    }
    tiny_span(g.t, g.thread, SPAN_ANNOTATION, "save", 400, 30);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 4);
    assert_int_equal(g.t->sources[0].step_rule, STEPS_INFERRED);
    assert_int_equal(g.t->notes[NOTE_STEPS_INFERRED], 4);
    for (size_t i = 0; i < 3; i++)
        check_step(g.t, i, (int64_t)i, 100 * (int64_t)i,
                   100 * (int64_t)i + 100);
    check_step(g.t, 3, 3, 300, 400); /* what is saved is none of it */
    trace_free(g.t);
}

static void where_nothing_repeats_the_window_is_one_step(void **state) {
    (void)state;
    struct rig g = rig_new();
    tiny_span(g.t, g.thread, SPAN_ANNOTATION, "all", 10, 90);
    tiny_span(g.t, g.thread, SPAN_OP, "aten::mm", 20, 10);
    tiny_span(g.t, g.thread, SPAN_OP, "aten::mm", 40, 10);
    launch(&g, 50, 51, 150);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 1);
    check_step(g.t, 0, 0, 10, 150);
    assert_int_equal(g.t->sources[0].step_rule, STEPS_WHOLE);
    assert_int_equal(g.t->notes[NOTE_STEPS_NONE], 1);
    assert_int_equal(g.t->steps[0].marker, ROW_NONE);
    assert_int_equal(g.t->steps[0].thread, g.thread);
    trace_free(g.t);
}

static void an_empty_trace_has_no_step(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    assert_int_equal(t->nsteps, 0);
    trace_free(t);
}

static void each_source_has_its_own_steps(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t other = trace_source(g.t, "rank1", format_named("kineto"), NULL,
                                  (struct bytes){0});
    uint32_t th = trace_track(g.t, other, TRACK_THREAD, 2, 2);
    uint32_t dev = trace_device(g.t, other, DEVICE_GPU, 0);
    uint32_t st = trace_track(g.t, other, TRACK_STREAM, 0, 7);
    g.t->tracks[st].device = dev;
    marker(&g, 0, 0, 10);
    marker(&g, 1, 10, 10);
    tiny_span(g.t, th, SPAN_ANNOTATION, "ProfilerStep#0", 5, 10);
    trace_link_host(g.t, other, 1,
                    tiny_span(g.t, th, SPAN_API, "cudaLaunchKernel", 6, 1));
    trace_link_device(g.t, other, 1,
                      tiny_span(g.t, st, SPAN_KERNEL, "k", 8, 92));
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 3);
    check_step(g.t, 0, 0, 0, 10);
    check_step(g.t, 1, 1, 10, 20);
    check_step(g.t, 2, 0, 5, 100);
    assert_int_equal(g.t->steps[2].source, other);
    assert_int_equal(g.t->spans.step[g.t->tracks[st].first], 2);
    trace_free(g.t);
}

static void a_device_that_marks_its_steps_has_a_host_thread(void **state) {
    (void)state;
    struct trace *t = trace_new();
    uint32_t src = trace_source(t, "t", format_named("xspace"), NULL,
                                (struct bytes){0});
    uint32_t idle = trace_track(t, src, TRACK_THREAD, 1, 1);
    uint32_t busy = trace_track(t, src, TRACK_THREAD, 1, 2);
    uint32_t line = trace_track(t, src, TRACK_DERIVED, 2, 1);
    t->tracks[line].device = trace_device(t, src, DEVICE_TPU, 0);
    str_id x = trace_str(t, bytes_of("x"));
    struct span_in s = {.ts = 0, .dur = 10, .track = idle, .name = x};
    trace_span(t, &s);
    s.track = busy;
    s.dur = 500;
    trace_span(t, &s);
    for (int i = 0; i < 2; i++)
        trace_step_hint(t,
                        trace_span(t, &(struct span_in){.ts = i * 1000,
                                                        .dur = 900,
                                                        .track = line,
                                                        .name = x,
                                                        .flags = SPAN_DERIVED}),
                        40 + i);
    struct ops_err e;
    assert_int_equal(trace_seal(t, &e), 0);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[1].number, 41);
    assert_int_equal(t->steps[0].thread, busy);
    trace_free(t);
}

static void derived_regions_mark_nothing(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t line = trace_track(g.t, 0, TRACK_DERIVED, 0, 7);
    struct span_in s = {.ts = 0,
                        .dur = 500 * US,
                        .track = line,
                        .kind = SPAN_ANNOTATION,
                        .flags = SPAN_DERIVED,
                        .name = trace_str(g.t, bytes_of("ProfilerStep#0"))};
    trace_span(g.t, &s);
    marker(&g, 0, 10, 10);
    tiny_seal(g.t);
    assert_int_equal(g.t->nsteps, 1);
    check_step(g.t, 0, 0, 10, 20);
    trace_free(g.t);
}

/* No marker and no region that fills the loop: the optimizer comes once a
 * turn; zero_grad, if it is there, begins one. */
static void the_optimizer_marks_turns(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    for (int i = 0; i < 3; i++) {
        int64_t at = 1000 * i;
        tiny_span(t, th, SPAN_ANNOTATION, "Optimizer.zero_grad#SGD.zero_grad",
                  at, 10);
        tiny_span(t, th, SPAN_OP, "aten::mm", at + 20, 800);
        tiny_span(t, th, SPAN_ANNOTATION, "Optimizer.step#SGD.step", at + 900,
                  50);
    }
    tiny_seal(t);
    assert_int_equal(t->nsteps, 3);
    assert_int_equal(t->sources[0].step_rule, STEPS_INFERRED);
    assert_int_equal(t->steps[1].ts, 1000 * US);
    assert_int_equal(t->steps[1].dur, 1000 * US);
    assert_int_equal(t->notes[NOTE_STEPS_INFERRED], 3);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_device_a_step_ends_at_the_next_marker),
        cmocka_unit_test(between_our_own_markers_is_no_step),
        cmocka_unit_test(our_own_steps_wait_for_the_device),
        cmocka_unit_test(a_step_lasts_until_its_device_work_ends),
        cmocka_unit_test(the_first_step_waits_for_work_launched_before_it),
        cmocka_unit_test(earlier_work_that_ended_in_time_moves_nothing),
        cmocka_unit_test(a_launch_between_markers_is_of_no_step),
        cmocka_unit_test(a_device_far_behind_makes_steps_of_no_length),
        cmocka_unit_test(steps_follow_each_other_without_a_gap),
        cmocka_unit_test(host_spans_belong_to_the_marker_around_their_start),
        cmocka_unit_test(device_work_with_no_launch_goes_by_time),
        cmocka_unit_test(nested_markers_count_once),
        cmocka_unit_test(markers_that_overlap_are_steps_each),
        cmocka_unit_test(a_number_from_the_source_wins_over_the_name),
        cmocka_unit_test(with_no_marker_the_longest_repeating_region_is_it),
        cmocka_unit_test(where_nothing_repeats_the_window_is_one_step),
        cmocka_unit_test(an_empty_trace_has_no_step),
        cmocka_unit_test(each_source_has_its_own_steps),
        cmocka_unit_test(a_device_that_marks_its_steps_has_a_host_thread),
        cmocka_unit_test(derived_regions_mark_nothing),
        cmocka_unit_test(the_optimizer_marks_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
