/* SPDX-License-Identifier: Apache-2.0
 * Sealing: order, nesting and the notes about what does not nest. */
#include "tiny.h"

/* Returns the row of the span called name, after seal. */
static row_id row_of(const struct trace *t, const char *name) {
    for (row_id r = 0; r < t->spans.n; r++)
        if (strcmp(span_name(t, r), name) == 0) return r;
    fail_msg("no span %s", name);
    return 0;
}

/* Returns the name of the span's parent, or "". */
static const char *parent_of(const struct trace *t, const char *name) {
    row_id p = t->spans.parent[row_of(t, name)];
    return p == ROW_NONE ? "" : span_name(t, p);
}

static struct trace *with_slack(int64_t slack) {
    struct trace *t = tiny_new(false, false);
    t->sources[0].rounding_ps = slack;
    return t;
}

static void op(struct trace *t, const char *name, int64_t ts, int64_t dur) {
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, name, ts, dur);
}

static void rows_come_by_track_then_start_then_longest(void **state) {
    (void)state;
    struct trace *t = with_slack(0);
    uint32_t a = tiny_thread(t, 1), b = tiny_thread(t, 2);
    tiny_span(t, b, SPAN_OP, "b1", 5, 1);
    tiny_span(t, a, SPAN_OP, "a3", 9, 1);
    tiny_span(t, a, SPAN_OP, "a2", 3, 2);
    tiny_span(t, b, SPAN_OP, "b0", -5, 1);
    tiny_span(t, a, SPAN_OP, "a1", 3, 6);
    tiny_seal(t);
    static const char *const want[] = {"a1", "a2", "a3", "b0", "b1"};
    for (row_id r = 0; r < 5; r++)
        assert_string_equal(span_name(t, r), want[r]);
    assert_int_equal(t->tracks[a].first, 0);
    assert_int_equal(t->tracks[a].end, 3);
    assert_int_equal(t->tracks[b].first, 3);
    assert_int_equal(t->tracks[b].end, 5);
    trace_free(t);
}

static void spans_nest_by_containment(void **state) {
    (void)state;
    struct trace *t = with_slack(0);
    op(t, "outer", 0, 100);
    op(t, "first", 0, 10);
    op(t, "inner", 2, 3);
    op(t, "second", 10, 20);
    op(t, "last", 90, 10);
    op(t, "after", 100, 5);
    tiny_seal(t);
    assert_string_equal(parent_of(t, "outer"), "");
    assert_string_equal(parent_of(t, "first"), "outer");
    assert_string_equal(parent_of(t, "inner"), "first");
    assert_string_equal(parent_of(t, "second"), "outer");
    assert_string_equal(parent_of(t, "last"), "outer");
    assert_string_equal(parent_of(t, "after"), "");
    assert_int_equal(t->spans.depth[row_of(t, "inner")], 2);
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    trace_free(t);
}

static void equal_starts_and_no_length_nest_one_way(void **state) {
    (void)state;
    struct trace *t = with_slack(0);
    op(t, "point at end", 10, 0);
    op(t, "point at start", 0, 0);
    op(t, "twin 1", 20, 5);
    op(t, "twin 2", 20, 5);
    op(t, "outer", 0, 10);
    op(t, "points 1", 50, 0);
    op(t, "points 2", 50, 0);
    tiny_seal(t);
    assert_string_equal(parent_of(t, "point at start"), "outer");
    assert_string_equal(parent_of(t, "point at end"), "");
    assert_string_equal(parent_of(t, "twin 1"), "");
    assert_string_equal(parent_of(t, "twin 2"), "twin 1");
    assert_string_equal(parent_of(t, "points 2"), "");
    trace_free(t);
}

static void a_crossing_is_kept_and_noted_once(void **state) {
    (void)state;
    struct trace *t = with_slack(PS_PER_NS);
    op(t, "a", 0, 100);
    op(t, "b", 1, 98);
    op(t, "c", 2, 96);
    op(t, "crossing", 50, 100);
    op(t, "inside", 120, 5);
    tiny_seal(t);
    assert_string_equal(parent_of(t, "crossing"), "");
    assert_string_equal(parent_of(t, "inside"), "crossing");
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 1);
    assert_int_equal(t->notes[NOTE_CHILD_OUTLIVES_PARENT], 0);
    assert_int_equal(t->spans.n, 5);
    trace_free(t);
}

static void a_child_that_outlives_its_parent_by_rounding_stays(void **state) {
    (void)state;
    struct trace *t = with_slack(PS_PER_US);
    op(t, "parent", 0, 10);
    op(t, "child", 5, 6); /* ends at 11 */
    tiny_seal(t);
    assert_string_equal(parent_of(t, "child"), "parent");
    assert_int_equal(t->notes[NOTE_CHILD_OUTLIVES_PARENT], 1);
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    trace_free(t);
}

static void what_follows_such_a_child_is_not_its_child(void **state) {
    (void)state;
    struct trace *t = with_slack(PS_PER_US);
    op(t, "parent", 0, 10);
    op(t, "child", 5, 6);
    op(t, "next", 10, 1); /* begins where the parent ends */
    op(t, "later", 11, 1);
    tiny_seal(t);
    assert_string_equal(parent_of(t, "next"), "");
    assert_string_equal(parent_of(t, "later"), "");
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    trace_free(t);
}

static void async_spans_and_streams_do_not_nest(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t stream = tiny_stream(t, 0, 7);
    uint32_t async = trace_track(t, 0, TRACK_ASYNC, 1, 1);
    tiny_span(t, stream, SPAN_KERNEL, "k1", 0, 10);
    tiny_span(t, stream, SPAN_KERNEL, "k2", 5, 10);
    tiny_span(t, stream, SPAN_KERNEL, "k3", 6, 2);
    tiny_span(t, async, SPAN_OTHER, "x", 0, 10);
    tiny_span(t, async, SPAN_OTHER, "y", 1, 2);
    tiny_seal(t);
    for (row_id r = 0; r < t->spans.n; r++) {
        assert_int_equal(t->spans.parent[r], ROW_NONE);
        assert_int_equal(t->spans.depth[r], 0);
    }
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    trace_free(t);
}

static void python_frames_have_a_stack_of_their_own(void **state) {
    (void)state;
    struct trace *t = with_slack(0);
    uint32_t frames = trace_track(t, 0, TRACK_PYTHON, 1, 1);
    uint32_t thread = tiny_thread(t, 1);
    op(t, "region", 5, 20);
    tiny_span(t, frames, SPAN_PYTHON, "main.py(1): main", 0, 15);
    tiny_seal(t);
    assert_string_equal(parent_of(t, "region"), "");
    assert_string_equal(parent_of(t, "main.py(1): main"), "");
    assert_int_equal(t->tracks[frames].thread, thread);
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    trace_free(t);
}

static void times_out_of_range_are_left_out_and_counted(void **state) {
    (void)state;
    struct trace *t = with_slack(0);
    struct span_in s = {.track = tiny_thread(t, 1), .kind = SPAN_OP};
    static const struct {
        int64_t ts, dur;
    } v[] = {
        {INT64_MAX, 0},      {INT64_MIN, 0},     {TS_LIMIT + 1, 1},
        {-DUR_LIMIT - 1, 1}, {0, DUR_LIMIT + 1}, {0, INT64_MAX},
    };
    for (size_t i = 0; i < 6; i++) {
        s.ts = v[i].ts;
        s.dur = v[i].dur;
        assert_int_equal(trace_span(t, &s), ROW_NONE);
    }
    s.ts = TS_LIMIT;
    s.dur = DUR_LIMIT;
    assert_int_not_equal(trace_span(t, &s), ROW_NONE);
    s.ts = -DUR_LIMIT;
    s.dur = INT64_MIN;
    assert_int_not_equal(trace_span(t, &s), ROW_NONE);
    tiny_seal(t);
    assert_int_equal(t->notes[NOTE_TIME_OUT_OF_RANGE], 6);
    assert_int_equal(t->notes[NOTE_NEGATIVE_DURATION], 1);
    assert_int_equal(t->spans.dur[0], 0);
    assert_int_equal(t->spans.n, 2);
    trace_free(t);
}

static void a_tower_of_spans_takes_linear_time(void **state) {
    (void)state;
    enum { HIGH = 200000 };
    struct trace *t = with_slack(0);
    for (int i = 0; i < HIGH; i++) op(t, "level", i, 2 * HIGH - 2 * i);
    tiny_seal(t);
    assert_int_equal(t->spans.depth[HIGH - 1], UINT16_MAX);
    assert_int_equal(t->spans.parent[HIGH - 1], HIGH - 2);
    trace_free(t);
}

static void memory_and_samples_are_sorted_stably(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    uint32_t cpu = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    uint32_t gpu = trace_allocator(t, 0, bytes_of("GPU"),
                                   trace_device(t, 0, DEVICE_GPU, 0));
    uint32_t th = tiny_thread(t, 1);
    tiny_mem(t, gpu, th, 5, 1, 100, -1);
    tiny_mem(t, cpu, th, 9, 2, 200, -1);
    tiny_mem(t, gpu, th, 5, 1, -100, -1);
    tiny_mem(t, cpu, th, 1, 3, 300, -1);
    uint32_t c = trace_counter(t, 0, bytes_of("c"), bytes_of(""), ROW_NONE);
    trace_sample(t, c, 20, 2);
    trace_sample(t, c, 10, 1);
    tiny_seal(t);
    static const int64_t bytes[] = {300, 200, 100, -100};
    for (size_t i = 0; i < 4; i++) assert_int_equal(t->mem.bytes[i], bytes[i]);
    assert_int_equal(t->samples.ts[0], 10);
    assert_int_equal(t->samples.ts[1], 20);
    trace_free(t);
}

/* Adds an arrow from ts a on thread 1 to ts b on thread 2. */
static void arrow(struct trace *t, uint64_t id, int64_t a, int64_t b) {
    trace_flow(t, id, tiny_thread(t, 1), a * US, 's');
    trace_flow(t, id, tiny_thread(t, 2), b * US, 'f');
}

static void arrows_bind_to_the_innermost_span(void **state) {
    (void)state;
    struct trace *t = with_slack(0);
    op(t, "outer", 0, 100);
    op(t, "inner", 10, 10);
    tiny_span(t, tiny_thread(t, 2), SPAN_OP, "to", 50, 10);
    arrow(t, 1, 15, 55);
    arrow(t, 2, 40, 60);
    arrow(t, 3, 20, 50);
    arrow(t, 4, 200, 55);                             /* starts in no span */
    trace_flow(t, 5, tiny_thread(t, 1), 5 * US, 's'); /* has no end */
    tiny_seal(t);
    row_id outer = row_of(t, "outer"), inner = row_of(t, "inner");
    assert_int_equal(t->flows.n, 3);
    assert_int_equal(t->flows.from[0], outer);
    assert_int_equal(t->flows.from[1], inner);
    assert_int_equal(t->flows.from[2], inner);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(t->flows.to[i], row_of(t, "to"));
    assert_int_equal(t->notes[NOTE_FLOW_DANGLING], 2);
    trace_free(t);
}

static void many_arrows_behind_a_tower_take_linear_time(void **state) {
    (void)state;
    enum { MANY = 100000 };
    struct trace *t = with_slack(0);
    op(t, "outer", 0, 10 * MANY);
    for (int i = 0; i < MANY; i++) op(t, "level", i, 2 * MANY - 2 * i);
    tiny_span(t, tiny_thread(t, 2), SPAN_OP, "to", 0, 10 * MANY);
    for (int i = 0; i < MANY; i++)
        arrow(t, (uint64_t)i, 5 * MANY + i, 5 * MANY + i);
    tiny_seal(t);
    assert_int_equal(t->flows.n, MANY);
    assert_int_equal(t->flows.from[0], row_of(t, "outer"));
    trace_free(t);
}

static void a_thousand_devices_are_told_apart(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    for (int round = 0; round < 2; round++)
        for (int64_t i = 0; i < 1000; i++) {
            assert_int_equal(trace_device(t, 0, DEVICE_GPU, i * 7), 2 * i);
            assert_int_equal(trace_device(t, 0, DEVICE_TPU, i * 7), 2 * i + 1);
        }
    assert_string_equal(strs_text(&t->strs, t->devices[2].label), "GPU 7");
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_by_track_then_start_then_longest),
        cmocka_unit_test(spans_nest_by_containment),
        cmocka_unit_test(equal_starts_and_no_length_nest_one_way),
        cmocka_unit_test(a_crossing_is_kept_and_noted_once),
        cmocka_unit_test(a_child_that_outlives_its_parent_by_rounding_stays),
        cmocka_unit_test(what_follows_such_a_child_is_not_its_child),
        cmocka_unit_test(async_spans_and_streams_do_not_nest),
        cmocka_unit_test(python_frames_have_a_stack_of_their_own),
        cmocka_unit_test(times_out_of_range_are_left_out_and_counted),
        cmocka_unit_test(a_tower_of_spans_takes_linear_time),
        cmocka_unit_test(memory_and_samples_are_sorted_stably),
        cmocka_unit_test(arrows_bind_to_the_innermost_span),
        cmocka_unit_test(many_arrows_behind_a_tower_take_linear_time),
        cmocka_unit_test(a_thousand_devices_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
