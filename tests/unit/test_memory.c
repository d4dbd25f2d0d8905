/* SPDX-License-Identifier: Apache-2.0
 * memory: peaks told by the source, and peaks replayed. */
#include "tiny.h"

static uint16_t gpu0(struct trace *t) {
    return trace_allocator(t, 0, bytes_of("GPU 0"),
                           trace_device(t, 0, DEVICE_GPU, 0));
}

static void not_recorded(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "memory"));
    assert_non_null(strstr(r.missing[0].fix, "profile_memory=True"));
    result_free(&r);
    trace_free(t);
}

static void recorded_levels_are_the_truth(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t);
    tiny_span(t, th, SPAN_OP, "op", 0, 100);
    tiny_mem(t, g, th, 10, 0xa, 100, 1100); /* 1000 from before */
    tiny_mem(t, g, th, 20, 0xb, 400, 1500);
    tiny_mem(t, g, th, 30, 0xc, -800, 700); /* one of those */
    tiny_mem(t, g, th, 40, 0xa, -100, 600);
    tiny_seal(t);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_int(&r, "GPU 0", "peak_bytes"), 1500);
    assert_int_equal(tiny_us(&r, "GPU 0", "peak_at_us"), 20);
    assert_int_equal(tiny_int(&r, "GPU 0", "reserved_bytes"), 3000);
    assert_int_equal(tiny_int(&r, "GPU 0", "allocs"), 2);
    assert_int_equal(tiny_int(&r, "GPU 0", "frees"), 2);
    assert_int_equal(tiny_int(&r, "GPU 0", "live_at_end_bytes"), 600);
    assert_int_equal(tiny_int(&r, "GPU 0", "before_window_bytes"), 1000);
    double f = tiny_cell(&r, 0, "fragmentation_pct")->f;
    assert_true(f > 49.999 && f < 50.001);
    assert_int_equal(r.nremarks, 0);
    result_free(&r);
    trace_free(t);
}

static void replayed_from_what_must_have_been_there(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t), h = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    tiny_mem(t, g, th, 10, 0xa, 100, -1);
    tiny_mem(t, g, th, 20, 0xa, -100, -1);
    tiny_mem(t, g, th, 30, 0xb, -300, -1); /* allocated before the window */
    tiny_mem(t, h, th, 10, 0, -70, -1);    /* no addresses: only the sum */
    tiny_mem(t, h, th, 20, 0, 50, -1);
    tiny_seal(t);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(tiny_int(&r, "GPU 0", "peak_bytes"), 400);
    assert_int_equal(tiny_us(&r, "GPU 0", "peak_at_us"), 10);
    assert_int_equal(tiny_int(&r, "GPU 0", "live_at_end_bytes"), 0);
    assert_true(tiny_null(&r, "GPU 0", "reserved_bytes"));
    assert_true(tiny_null(&r, "GPU 0", "fragmentation_pct"));
    assert_int_equal(tiny_int(&r, "host", "before_window_bytes"), 70);
    assert_int_equal(tiny_int(&r, "host", "live_at_end_bytes"), 50);
    assert_int_equal(r.nremarks, 1);
    result_free(&r);
    trace_free(t);
}

static void steps_bound_the_peak(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t h = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    for (int i = 0; i < 3; i++) {
        char name[] = "ProfilerStep#0";
        name[13] = (char)('0' + i);
        struct span_in s = {.ts = i * 100 * US,
                            .dur = 100 * US,
                            .track = th,
                            .name = trace_str(t, bytes_of(name)),
                            .kind = SPAN_ANNOTATION,
                            .flags = SPAN_STEPMARK};
        trace_step_hint(t, trace_span(t, &s), i);
        tiny_mem(t, h, th, i * 100 + 10, 1, 10 * (i + 1), -1);
        tiny_mem(t, h, th, i * 100 + 20, 1, -10 * (i + 1), -1);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(tiny_int(&r, "host", "peak_bytes"), 30);
    assert_int_equal(tiny_int(&r, "host", "peak_step"), 2);
    result_free(&r);
    r = tiny_run(t, "memory", "steps", "0..1");
    assert_int_equal(tiny_int(&r, "host", "peak_bytes"), 20);
    assert_int_equal(tiny_int(&r, "host", "peak_step"), 1);
    assert_int_equal(tiny_int(&r, "host", "allocs"), 2);
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_recorded),
        cmocka_unit_test(recorded_levels_are_the_truth),
        cmocka_unit_test(replayed_from_what_must_have_been_there),
        cmocka_unit_test(steps_bound_the_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
