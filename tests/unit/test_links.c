/* SPDX-License-Identifier: Apache-2.0
 * Launch links: which call launched which device span. */
#include "tiny.h"

struct rig {
    struct trace *t;
    uint32_t thread, stream;
};

static struct rig rig_new(void) {
    struct rig g = {.t = tiny_new(true, false)};
    g.thread = tiny_thread(g.t, 1);
    g.stream = tiny_stream(g.t, 0, 7);
    return g;
}

static void call(struct rig *g, uint64_t id, const char *name, int64_t ts,
                 int64_t dur) {
    trace_link_host(g->t, 0, id,
                    tiny_span(g->t, g->thread, SPAN_API, name, ts, dur));
}

static void kernel(struct rig *g, uint64_t id, int64_t ts) {
    trace_link_device(g->t, 0, id,
                      tiny_span(g->t, g->stream, SPAN_KERNEL, "k", ts, 1));
}

/* Returns the start (us) of the call that launched the i-th kernel, or -1. */
static int64_t launched_at(const struct rig *g, row_id i) {
    row_id r = trace_launch_of(g->t, g->t->tracks[g->stream].first + i);
    return r == ROW_NONE ? -1 : g->t->spans.ts[r] / US;
}

static void one_call_may_launch_many(void **state) {
    (void)state;
    struct rig g = rig_new();
    kernel(&g, 5, 20);
    kernel(&g, 5, 22);
    call(&g, 5, "cudaGraphLaunch", 10, 2);
    call(&g, 6, "cudaLaunchKernel", 13, 2);
    kernel(&g, 6, 24);
    tiny_seal(g.t);
    assert_int_equal(launched_at(&g, 0), 10);
    assert_int_equal(launched_at(&g, 1), 10);
    assert_int_equal(launched_at(&g, 2), 13);
    size_t first,
        end = trace_links_from(g.t, g.t->tracks[g.thread].first, &first);
    assert_int_equal(end - first, 2);
    assert_int_equal(g.t->notes[NOTE_KERNEL_WITHOUT_LAUNCH], 0);
    trace_free(g.t);
}

static void both_sides_may_be_alone_and_are_counted(void **state) {
    (void)state;
    struct rig g = rig_new();
    call(&g, 1, "cudaLaunchKernel", 0, 1);
    call(&g, 2, "cudaMemcpyAsync", 2, 1);
    call(&g, 3, "cudaDeviceSynchronize", 4, 1); /* launches nothing */
    kernel(&g, 9, 10);
    tiny_span(g.t, g.stream, SPAN_COPY, "Memcpy HtoD", 12, 1); /* no id */
    tiny_seal(g.t);
    assert_int_equal(launched_at(&g, 0), -1);
    assert_int_equal(g.t->notes[NOTE_LAUNCH_WITHOUT_KERNEL], 2);
    assert_int_equal(g.t->notes[NOTE_KERNEL_WITHOUT_LAUNCH], 2);
    assert_int_equal(g.t->links.n, 0);
    trace_free(g.t);
}

static void a_reused_id_means_the_last_call_before_it(void **state) {
    (void)state;
    struct rig g = rig_new();
    call(&g, 1, "cudaLaunchKernel", 100, 1);
    call(&g, 1, "cudaLaunchKernel", 0, 1);
    kernel(&g, 1, 5);
    kernel(&g, 1, 105);
    kernel(&g, 1, -3); /* before both: clocks differ a little */
    tiny_seal(g.t);
    assert_int_equal(launched_at(&g, 0), 0);
    assert_int_equal(launched_at(&g, 1), 0);
    assert_int_equal(launched_at(&g, 2), 100);
    trace_free(g.t);
}

static void of_nested_calls_with_one_start_the_outer_one_counts(void **state) {
    (void)state;
    struct rig g = rig_new();
    call(&g, 1, "cuLaunchKernel", 10, 3);
    call(&g, 1, "cudaLaunchKernel", 10, 5);
    kernel(&g, 1, 20);
    tiny_seal(g.t);
    assert_string_equal(
        span_name(g.t, trace_launch_of(g.t, g.t->tracks[g.stream].first)),
        "cudaLaunchKernel");
    trace_free(g.t);
}

static void the_same_id_in_two_files_is_two_ids(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t other = trace_source(g.t, "b", format_named("kineto"), NULL,
                                  (struct bytes){0});
    uint32_t th = trace_track(g.t, other, TRACK_THREAD, 1, 1);
    trace_link_host(g.t, other, 1,
                    tiny_span(g.t, th, SPAN_API, "cudaLaunchKernel", 0, 1));
    kernel(&g, 1, 5);
    tiny_seal(g.t);
    assert_int_equal(launched_at(&g, 0), -1);
    trace_free(g.t);
}

static void a_hundred_thousand_of_one_id_take_no_time(void **state) {
    (void)state;
    enum { MANY = 100000 };
    struct rig g = rig_new();
    for (int i = 0; i < MANY; i++) {
        call(&g, 0, "cudaLaunchKernel", i < MANY / 2 ? 7 : i, 1);
        kernel(&g, 0, i);
    }
    tiny_seal(g.t);
    assert_int_equal(g.t->links.n, MANY);
    assert_int_equal(launched_at(&g, 8), 7);
    assert_int_equal(launched_at(&g, MANY - 1), MANY - 1);
    trace_free(g.t);
}

static void
a_device_span_counts_for_one_call_however_often_it_names_it(void **state) {
    (void)state;
    struct rig g = rig_new();
    call(&g, 5, "cudaLaunchKernel", 10, 2);
    call(&g, 6, "cudaLaunchKernel", 13, 2);
    row_id k = tiny_span(g.t, g.stream, SPAN_KERNEL, "k", 20, 1);
    trace_link_device(g.t, 0, 5, k);
    trace_link_device(g.t, 0, 5, k);
    trace_link_device(g.t, 0, 6, k);
    kernel(&g, 6, 30);
    tiny_seal(g.t);
    assert_int_equal(g.t->links.n, 2);
    assert_int_equal(launched_at(&g, 0), 10);
    assert_int_equal(launched_at(&g, 1), 13);
    trace_free(g.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_call_may_launch_many),
        cmocka_unit_test(both_sides_may_be_alone_and_are_counted),
        cmocka_unit_test(a_reused_id_means_the_last_call_before_it),
        cmocka_unit_test(of_nested_calls_with_one_start_the_outer_one_counts),
        cmocka_unit_test(the_same_id_in_two_files_is_two_ids),
        cmocka_unit_test(a_hundred_thousand_of_one_id_take_no_time),
        cmocka_unit_test(
            a_device_span_counts_for_one_call_however_often_it_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
