/* SPDX-License-Identifier: Apache-2.0
 * counters: means over time, and which samples belong together. */
#include "tiny.h"

#include "feed.h"
#include <math.h>

static void empty_trace(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "counters", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "counters"));
    result_free(&r);
    trace_free(t);
}

static void mean_is_over_time(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "a", 0, 100);
    uint32_t c = trace_counter(t, 0, bytes_of("q"), bytes_of("items"),
                               ROW_NONE);
    uint32_t one = trace_counter(t, 0, bytes_of("busy pct"), bytes_of(""),
                                 ROW_NONE);
    trace_sample(t, c, 40 * US, 0); /* out of order: seal sorts */
    trace_sample(t, c, 0, 10);
    trace_sample(t, c, 10 * US, 20);
    trace_sample(t, c, 50 * US, NAN);
    trace_sample(t, one, 7 * US, 3);
    tiny_seal(t);
    struct result r = tiny_run(t, "counters", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    size_t q = tiny_row(&r, "q"), b = tiny_row(&r, "busy pct");
    /* 10 us of 10, 30 us of 20, 10 us of 0 */
    assert_true(tiny_cell(&r, q, "mean")->f == 14);
    assert_true(tiny_cell(&r, q, "min")->f == 0);
    assert_true(tiny_cell(&r, q, "max")->f == 20);
    assert_true(tiny_cell(&r, q, "last")->f == 0);
    assert_int_equal(tiny_cell(&r, q, "samples")->i, 3);
    assert_string_equal(tiny_cell(&r, q, "unit")->s, "items");
    assert_true(tiny_cell(&r, b, "mean")->f == 3); /* the only one */
    assert_string_equal(tiny_cell(&r, b, "unit")->s, "%");
    assert_int_equal(r.nremarks, 1); /* the NaN */
    result_free(&r);
    trace_free(t);
}

/* Values at the ends of a double have a mean. */
static void extreme_samples_have_a_mean(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t c = trace_counter(t, 0, bytes_of("q"), bytes_of(""), ROW_NONE);
    static const double v[] = {1e308, -1e308, 1.7e308, -1.7e308, 0};
    for (int i = 0; i < 5; i++) trace_sample(t, c, i * US, v[i]);
    tiny_seal(t);
    struct result r = tiny_run(t, "counters", NULL, NULL);
    struct cell *mean = tiny_cell(&r, 0, "mean");
    assert_false(mean->null);
    assert_true(fabs(mean->f) < 1e293);
    result_free(&r);
    trace_free(t);
}

#define C(pid, ts, v)                                                          \
    "{\"ph\":\"C\",\"name\":\"load\",\"pid\":" pid ",\"ts\":" #ts              \
    ",\"args\":{\"cpu\":" #v "}}"

static void two_processes_do_not_mix(void **state) {
    (void)state;
    struct feed f = feed_text(
        "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,"
        "\"args\":{\"name\":\"trainer\"}}," C("1", 0, 10) "," C(
            "2", 1, 99) "," C("1", 10, 20) "," C("\"GPU 3 Counters\"", 5,
                                                 7) "]");
    struct result r = tiny_run(f.t, "counters", NULL, NULL);
    assert_int_equal(r.nrows, 3);
    assert_string_equal(tiny_cell(&r, 0, "process")->s, "trainer 1");
    assert_int_equal(tiny_cell(&r, 0, "samples")->i, 2);
    assert_true(tiny_cell(&r, 0, "max")->f == 20);
    assert_true(tiny_cell(&r, 0, "mean")->f == 10);
    assert_true(tiny_cell(&r, 1, "last")->f == 99);
    assert_string_equal(tiny_cell(&r, 2, "process")->s, "GPU 3 Counters");
    assert_true(tiny_cell(&r, 2, "device")->null); /* the file has no GPU 3 */
    result_free(&r);
    feed_free(&f);
}

static void hardware_counters_get_their_device(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"schemaVersion\":1,\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,"
        "\"ts\":1,\"dur\":2,\"args\":{\"device\":0,\"stream\":7}},"
        "{\"ph\":\"C\",\"cat\":\"hardware_counters\",\"name\":\"sm\","
        "\"pid\":\"GPU 0 Counters\",\"ts\":1,\"args\":{\"\":55.5}}]}");
    struct result r = tiny_run(f.t, "counters", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(tiny_cell(&r, 0, "name")->s, "sm");
    assert_string_equal(tiny_cell(&r, 0, "device")->s, "GPU 0");
    result_free(&r);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace),
        cmocka_unit_test(mean_is_over_time),
        cmocka_unit_test(extreme_samples_have_a_mean),
        cmocka_unit_test(two_processes_do_not_mix),
        cmocka_unit_test(hardware_counters_get_their_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
