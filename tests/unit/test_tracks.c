/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny.h"

static void each_track_has_a_row_and_its_busy_time(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t a = trace_track(t, 0, TRACK_THREAD, 1, 10);
    uint32_t s = trace_track(t, 0, TRACK_STREAM, 0, 7);
    t->tracks[s].device = trace_device(t, 0, DEVICE_GPU, 0);
    trace_track_name(t, a, bytes_of("main"));
    str_id x = trace_str(t, bytes_of("x"));
    /* nested, then apart: 100 + 10 busy, three spans */
    int64_t at[][2] = {{0, 100}, {20, 30}, {200, 10}};
    for (int i = 0; i < 3; i++)
        trace_span(t, &(struct span_in){.ts = at[i][0],
                                        .dur = at[i][1],
                                        .track = a,
                                        .name = x,
                                        .kind = SPAN_OP});
    /* overlapping kernels count once */
    trace_span(t, &(struct span_in){.ts = 50,
                                    .dur = 100,
                                    .track = s,
                                    .name = x,
                                    .kind = SPAN_KERNEL});
    trace_span(t, &(struct span_in){.ts = 100,
                                    .dur = 100,
                                    .track = s,
                                    .name = x,
                                    .kind = SPAN_KERNEL});
    tiny_seal(t);
    struct result r = tiny_run(t, "tracks", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_int(&r, "main", "spans"), 3);
    assert_int_equal(tiny_int(&r, "main", "busy_us"), 110);
    assert_int_equal(tiny_int(&r, "GPU 0 stream 7", "busy_us"), 150);
    result_free(&r);
    trace_free(t);
}

static void an_empty_trace_has_none(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "tracks", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_track_has_a_row_and_its_busy_time),
        cmocka_unit_test(an_empty_trace_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
