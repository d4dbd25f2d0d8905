/* SPDX-License-Identifier: Apache-2.0
 * Own times against their definition, on tracks made at random: instant by
 * instant, who opened last of those that are open. */
#include "analyze/shared/intervals.h"
#include "analyze/shared/own.h"

#include <stdlib.h>

#include "unit/tiny.h"

enum { LONG = 60 }; /* instants of a track */

/* Makes a stream of a device that nests, with n spans at random. */
static struct trace *random_stream(unsigned seed, int n) {
    struct trace *t = tiny_new(true, false);
    uint32_t st = trace_track(t, 0, TRACK_STREAM, 0, 1);
    t->tracks[st].device = trace_device(t, 0, DEVICE_TPU, 0);
    srand(seed);
    for (int i = 0; i < n; i++) {
        int from = rand() % LONG, dur = rand() % (LONG - from);
        if (rand() % 4 == 0) dur = 0;
        tiny_span(t, st, SPAN_KERNEL, rand() % 2 ? "x" : "y", from, dur);
    }
    tiny_seal(t);
    return t;
}

/* Returns which span has the instant at us: of those that run then, the one
 * that began last, of equal ones the shortest; but not one that a later one
 * crossed before. */
static row_id owner_at(const struct trace *t, int64_t us) {
    row_id best = ROW_NONE;
    for (row_id r = 0; r < t->spans.n; r++) {
        if (t->spans.ts[r] > us * US || span_end(t, r) <= us * US) continue;
        bool crossed = false;
        for (row_id k = r + 1; k < t->spans.n; k++)
            crossed |= t->spans.ts[k] <= us * US &&
                       t->spans.ts[k] < span_end(t, r) &&
                       span_end(t, k) > span_end(t, r);
        if (!crossed) best = r;
    }
    return best;
}

static void own_times_are_what_they_are_defined_as(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 400; seed++) {
        struct trace *t = random_stream(seed, 1 + (int)(seed % 9));
        struct own_times own;
        int64_t want[16] = {0}, sum = 0, together = 0;
        assert_true(own_times_init(&own, t, &t->tracks[0]));
        for (int64_t us = 0; us < LONG; us++) {
            row_id r = owner_at(t, us);
            if (r != ROW_NONE) want[r]++;
            bool any = false;
            for (row_id k = 0; k < t->spans.n; k++)
                any |= t->spans.ts[k] <= us * US && span_end(t, k) > us * US;
            together += any;
        }
        for (row_id r = 0; r < t->spans.n; r++) {
            if (own_time(&own, r) != want[r] * US)
                fail_msg("seed %u, row %u: %lld, not %lld", seed, r,
                         (long long)(own_time(&own, r) / US),
                         (long long)want[r]);
            sum += own_time(&own, r);
        }
        assert_int_equal(sum, together * US); /* the union, exactly */
        own_times_free(&own);
        trace_free(t);
    }
}

static void streams_of_a_gpu_do_not_nest(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t st = tiny_stream(t, 0, 7);
    tiny_span(t, st, SPAN_KERNEL, "a", 0, 100);
    tiny_span(t, st, SPAN_KERNEL, "b", 50, 20);
    tiny_seal(t);
    struct own_times own;
    assert_true(own_times_init(&own, t, &t->tracks[st]));
    assert_int_equal(own_time(&own, 0), 100 * US);
    assert_int_equal(own_time(&own, 1), 20 * US);
    own_times_free(&own);
    trace_free(t);
}

/* A child that ends after its parent by the source's rounding is a child. */
static void rounding_is_no_crossing(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t st = trace_track(t, 0, TRACK_STREAM, 0, 1);
    t->tracks[st].device = trace_device(t, 0, DEVICE_TPU, 0);
    t->sources[0].rounding_ps = 2 * US;
    tiny_span(t, st, SPAN_KERNEL, "a", 0, 10);
    tiny_span(t, st, SPAN_KERNEL, "b", 5, 7);
    tiny_seal(t);
    struct own_times own;
    assert_true(own_times_init(&own, t, &t->tracks[st]));
    assert_int_equal(own_time(&own, 0), 5 * US);
    assert_int_equal(own_time(&own, 1), 5 * US); /* it ends with its parent */
    own_times_free(&own);
    trace_free(t);
}

static void an_instant_counts_once(void **state) {
    (void)state;
    struct once o = {0};
    assert_int_equal(once_add(&o, 0, -10, 20), 30);
    assert_int_equal(once_add(&o, 0, 0, 10), 0);
    assert_int_equal(once_add(&o, 0, 15, 25), 5);
    assert_int_equal(once_add(&o, 0, 25, 25), 0);
    assert_int_equal(once_add(&o, 0, 30, 40), 10);
    assert_int_equal(once_add(&o, 1, 0, 10), 10); /* another track */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_times_are_what_they_are_defined_as),
        cmocka_unit_test(streams_of_a_gpu_do_not_nest),
        cmocka_unit_test(rounding_is_no_crossing),
        cmocka_unit_test(an_instant_counts_once),
    };
    return cmocka_run_group_tests_name("own", tests, NULL, NULL);
}
