/* SPDX-License-Identifier: Apache-2.0
 * Joining traces: nothing is lost, numbers are moved, times are shifted. */
#include "tiny.h"

#include <stdio.h>

static void append(struct trace *a, struct trace *b) {
    struct ops_err e;
    assert_int_equal(trace_append(a, b, &e), 0);
}

/* A trace of one op, one launch with its kernel, a memory event and a sample;
 * n makes its names and ids its own. */
static struct trace *sample(const char *path, int n) {
    struct trace *t = trace_new();
    char name[16];
    snprintf(name, sizeof name, "op %d", n);
    uint32_t s = trace_source(t, path, format_named("kineto"), NULL,
                              (struct bytes){0});
    t->sources[s].has_device = true;
    uint32_t th = tiny_thread(t, 1), st = tiny_stream(t, 0, 7);
    trace_track_name(t, th, bytes_of("main"));
    tiny_span(t, th, SPAN_OP, name, n, 5);
    tiny_launch(t, th, st, "kernel", n + 10, 3);
    uint32_t al = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    tiny_mem(t, al, th, n, 1, 64 + n, -1);
    uint32_t c = trace_counter(t, 0, bytes_of("load"), bytes_of("%"), ROW_NONE);
    trace_sample(t, c, n * US, n);
    trace_meta(t, s, "key", bytes_of(name));
    trace_note(t, NOTE_BAD_EVENT, 1);
    return t;
}

static void other_files_become_other_sources(void **state) {
    (void)state;
    struct trace *a = sample("a", 1);
    append(a, sample("b", 2));
    assert_int_equal(a->nsources, 2);
    assert_string_equal(a->sources[1].path, "b");
    assert_int_equal(a->spans.n, 6);
    assert_int_equal(a->ntracks, 4);
    assert_int_equal(a->ndevices, 2);
    assert_int_equal(a->nallocators, 2);
    assert_int_equal(a->ncounters, 2);
    assert_int_equal(a->notes[NOTE_BAD_EVENT], 2);
    assert_string_equal(trace_meta_get(a, 1, "key"), "op 2");
    tiny_seal(a);
    assert_int_equal(a->links.n, 2);
    for (size_t i = 0; i < a->links.n; i++)
        assert_int_equal(a->tracks[a->spans.track[a->links.host[i]]].source,
                         a->tracks[a->spans.track[a->links.device[i]]].source);
    assert_int_equal(a->mem.bytes[1], 66);
    assert_int_equal(a->samples.n, 2);
    trace_free(a);
}

static void pieces_of_one_file_stay_one_source(void **state) {
    (void)state;
    static const uint8_t file[100];
    struct trace *t[2];
    for (int i = 0; i < 2; i++) {
        t[i] = trace_new();
        trace_source(t[i], "f", format_named("kineto"), NULL,
                     (struct bytes){file, sizeof file});
        struct span_in s = {.ts = i * US,
                            .dur = US,
                            .kind = SPAN_OP,
                            .track = tiny_thread(t[i], 1),
                            .name = trace_str(t[i], bytes_of("same")),
                            .cat = trace_cat(t[i], bytes_of("cat")),
                            .args = 10 + (uint64_t)i};
        trace_span(t[i], &s);
    }
    t[1]->sources[0].rank = 3;
    append(t[0], t[1]);
    tiny_seal(t[0]);
    assert_int_equal(t[0]->nsources, 1);
    assert_int_equal(t[0]->ntracks, 1);
    assert_int_equal(t[0]->sources[0].rank, 3);
    assert_int_equal(t[0]->spans.name[0], t[0]->spans.name[1]);
    assert_int_equal(span_cat(t[0], 0), span_cat(t[0], 1));
    uint32_t source;
    assert_ptr_equal(trace_args(t[0], 1, &source).p, file + 10);
    trace_free(t[0]);
}

static void devices_keep_their_facts_with_or_without_a_model(void **state) {
    (void)state;
    struct trace *a = sample("a", 1), *b = sample("b", 2);
    b->devices[0].units = 132;
    b->devices[0].memory_bytes = 1 << 30;
    append(a, b);
    assert_int_equal(a->ndevices, 2);
    assert_int_equal(a->devices[0].units, 0);
    assert_int_equal(a->devices[1].units, 132);
    assert_int_equal(a->devices[1].memory_bytes, 1 << 30);
    trace_free(a);
}

static void a_source_with_no_span_does_not_move_the_origin(void **state) {
    (void)state;
    const int64_t late = INT64_C(20000000000); /* us, beyond an hour */
    struct trace *a = tiny_new(false, false), *b = tiny_new(false, false);
    tiny_span(a, tiny_thread(a, 1), SPAN_OP, "op", late, 5);
    append(a, b);
    tiny_seal(a);
    assert_int_equal(a->nsources, 2);
    assert_int_equal(trace_origin(a), late * US);
    trace_free(a);
}

static void arguments_too_far_on_are_counted(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    struct span_in s = {.kind = SPAN_OP, .args = UINT64_C(1) << 40};
    s.track = tiny_thread(t, 1);
    trace_span(t, &s);
    assert_int_equal(t->notes[NOTE_ARGS_TRUNCATED], 1);
    trace_free(t);
}

static void arguments_stay_with_their_file(void **state) {
    (void)state;
    static const uint8_t first[50], second[60];
    struct trace *a = trace_new(), *b = trace_new();
    trace_source(a, "a", format_named("kineto"), NULL,
                 (struct bytes){first, 50});
    trace_source(b, "b", format_named("kineto"), NULL,
                 (struct bytes){second, 60});
    struct span_in s = {.kind = SPAN_OP, .args = 21, .args_n = 100};
    s.track = tiny_thread(a, 1);
    trace_span(a, &s);
    s.track = tiny_thread(b, 1);
    trace_span(b, &s);
    append(a, b);
    tiny_seal(a);
    uint32_t source;
    assert_ptr_equal(trace_args(a, 0, &source).p, first + 20);
    struct bytes args = trace_args(a, 1, &source);
    assert_ptr_equal(args.p, second + 20);
    assert_int_equal(args.n, 40);
    assert_int_equal(source, 1);
    trace_free(a);
}

static struct trace *at_epoch(const char *path, int64_t ns, int64_t ts_us) {
    struct trace *t = trace_new();
    trace_source(t, path, format_named("kineto"), NULL, (struct bytes){0});
    assert_int_equal(trace_epoch(t, 0, ns, true), 0);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, path, ts_us, 1);
    return t;
}

static void times_are_shifted_by_the_clocks_difference(void **state) {
    (void)state;
    int64_t epoch = INT64_C(1790857026000000000);
    struct trace *a = at_epoch("a", epoch, 0);
    append(a, at_epoch("b", epoch + 5000, 7));
    tiny_seal(a);
    assert_int_equal(a->spans.ts[1], 12 * US);
    trace_free(a);
}

static void profiles_years_apart_are_refused(void **state) {
    (void)state;
    int64_t epoch = INT64_C(1790857026000000000);
    static const int64_t off[] = {INT64_C(31536000000000000),
                                  -INT64_C(31536000000000000)};
    for (int i = 0; i < 2; i++) {
        struct trace *a = at_epoch("a", epoch, 0);
        struct ops_err e;
        assert_int_equal(trace_append(a, at_epoch("b", epoch + off[i], 0), &e),
                         OPS_EUNSUP);
        trace_free(a);
    }
    struct trace *a = at_epoch("a", INT64_MAX, 0);
    struct ops_err e;
    assert_int_equal(trace_append(a, at_epoch("b", INT64_MIN, 0), &e),
                     OPS_EUNSUP);
    trace_free(a);
}

/* torch counts from the begin of a quarter, others from when they started. */
static void only_times_that_are_there_must_fit(void **state) {
    (void)state;
    int64_t day = INT64_C(86400000000000), epoch = 1000 * day;
    for (int k = 0; k < 2; k++) {
        struct trace *t[] = {at_epoch("a", epoch, 90 * day / 1000),
                             at_epoch("b", epoch + 90 * day, 7)};
        append(t[k], t[1 - k]);
        tiny_seal(t[k]);
        assert_int_equal(t[k]->spans.ts[1] - t[k]->spans.ts[0],
                         (k == 0 ? 7 : -7) * US);
        trace_free(t[k]);
    }
}

static void a_shift_never_overflows_what_is_no_span(void **state) {
    (void)state;
    int64_t day = INT64_C(86400000000000), epoch = 1000 * day;
    for (int k = 0; k < 3; k++) {
        struct trace *a = at_epoch("a", epoch, 0);
        struct trace *b = at_epoch("b", epoch + 90 * day, 0);
        if (k == 0)
            trace_mem(b,
                      &(struct mem_in){.ts = TS_LIMIT,
                                       .allocator = trace_allocator(
                                           b, 0, bytes_of("CPU"), ROW_NONE)});
        if (k == 1)
            trace_sample(b,
                         trace_counter(b, 0, bytes_of("c"), bytes_of(""),
                                       ROW_NONE),
                         TS_LIMIT, 1);
        if (k == 2) trace_flow(b, 1, 0, TS_LIMIT, 's');
        struct ops_err e;
        assert_int_equal(trace_append(a, b, &e), OPS_EUNSUP);
        trace_free(a);
    }
}

static void step_hints_follow_their_rows(void **state) {
    (void)state;
    struct trace *a = sample("a", 1), *b = sample("b", 2);
    row_id r = tiny_span(b, tiny_thread(b, 1), SPAN_ANNOTATION, "train", 0,
                         100);
    trace_step_hint(b, r, 42);
    append(a, b);
    tiny_seal(a);
    bool seen = false;
    for (size_t i = 0; i < a->nsteps; i++)
        seen |= a->steps[i].source == 1 && a->steps[i].number == 42;
    assert_true(seen);
    trace_free(a);
}

static void arrows_of_two_files_are_not_joined(void **state) {
    (void)state;
    struct trace *a = sample("a", 1), *b = sample("b", 2);
    trace_flow(a, 9, tiny_thread(a, 1), 2 * US, 's');
    trace_flow(b, 9, tiny_thread(b, 1), 3 * US, 'f');
    append(a, b);
    tiny_seal(a);
    assert_int_equal(a->flows.n, 0);
    assert_int_equal(a->notes[NOTE_FLOW_DANGLING], 2);
    trace_free(a);
}

/* Zero bytes are mended to spaces, and spaces at a name's end are cut: once
 * or twice must be the same, since pieces of a file are appended. */
static void
a_name_that_ends_in_zero_bytes_is_the_same_after_appending(void **state) {
    (void)state;
    static const uint8_t name[] = {'a', 0, ' ', 0};
    struct trace *t[2];
    for (int i = 0; i < 2; i++) {
        t[i] = sample("f", 1);
        uint32_t th = tiny_thread(t[i], 5);
        trace_track_name(t[i], th, (struct bytes){name, sizeof name});
        assert_string_equal(strs_text(&t[i]->strs, t[i]->tracks[th].name), "a");
    }
    append(t[0], t[1]);
    assert_int_equal(t[0]->notes[NOTE_DUPLICATE_TRACK_NAME], 0);
    trace_free(t[0]);
}

/* More variants of kernels than 16 bits can tell apart: each row keeps its own
 * facts, also behind those of another trace, and none of them is a category. */
static void seventy_thousand_variants_stay_apart(void **state) {
    (void)state;
    enum { VARIANTS = 70000 };
    struct trace *t[2] = {trace_new(), trace_new()};
    struct ops_err e;
    char text[32];
    for (int k = 0; k < 2; k++) {
        trace_source(t[k], "f", format_named("xspace"), NULL,
                     (struct bytes){0});
        uint32_t track = trace_track(t[k], 0, TRACK_STREAM, 1, 7);
        for (int i = 0; i < VARIANTS; i++) {
            snprintf(text, sizeof text, "fusion.%d", k * 10 + i);
            struct launch l = {.hlo_op = bytes_of(text),
                               .details = bytes_of("regs:16\ngrid:1")};
            struct span_in s = {.ts = i,
                                .dur = 1,
                                .track = track,
                                .name = trace_str(t[k], bytes_of("k")),
                                .kind = SPAN_KERNEL,
                                .cat = launch_cat(t[k], &l)};
            trace_span(t[k], &s);
        }
    }
    assert_int_equal(trace_append(t[0], t[1], &e), 0);
    assert_int_equal(trace_seal(t[0], &e), 0);
    assert_int_equal(t[0]->notes[NOTE_CATEGORIES_FULL], 0);
    assert_int_equal(t[0]->spans.n, 2 * VARIANTS);
    for (row_id r = 0; r < 2 * VARIANTS; r++) {
        struct launch l;
        assert_true(launch_of_cat(t[0], span_cat(t[0], r), &l));
        bool second = t[0]->tracks[t[0]->spans.track[r]].source == 1;
        snprintf(text, sizeof text, "fusion.%lld",
                 (long long)t[0]->spans.ts[r] + (second ? 10 : 0));
        assert_true(bytes_eq(l.hlo_op, text, strlen(text)));
        assert_true(BYTES_IS(l.details, "regs:16\ngrid:1"));
        assert_int_equal(t[0]->cats[span_cat(t[0], r)].text, 0);
    }
    trace_free(t[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seventy_thousand_variants_stay_apart),
        cmocka_unit_test(
            a_name_that_ends_in_zero_bytes_is_the_same_after_appending),
        cmocka_unit_test(other_files_become_other_sources),
        cmocka_unit_test(pieces_of_one_file_stay_one_source),
        cmocka_unit_test(devices_keep_their_facts_with_or_without_a_model),
        cmocka_unit_test(a_source_with_no_span_does_not_move_the_origin),
        cmocka_unit_test(arguments_too_far_on_are_counted),
        cmocka_unit_test(arguments_stay_with_their_file),
        cmocka_unit_test(times_are_shifted_by_the_clocks_difference),
        cmocka_unit_test(profiles_years_apart_are_refused),
        cmocka_unit_test(only_times_that_are_there_must_fit),
        cmocka_unit_test(a_shift_never_overflows_what_is_no_span),
        cmocka_unit_test(step_hints_follow_their_rows),
        cmocka_unit_test(arrows_of_two_files_are_not_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
