/* SPDX-License-Identifier: Apache-2.0
 * Windows by name: which spans are instances of a region, where each begins and
 * ends, what belongs to it, and what a trace keeps of it. Hand-built traces, one
 * for each clause of docs/rules.md, "A region as the window". */
#include "tiny.h"

#include "model/region.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct rig {
    struct trace *t;
    uint32_t thread, other, stream;
    uint64_t id;
};

static struct rig rig_new(void) {
    struct rig g = {.t = tiny_new(true, true)};
    g.thread = tiny_thread(g.t, 1);
    g.other = tiny_thread(g.t, 2);
    g.stream = tiny_stream(g.t, 0, 7);
    return g;
}

static row_id region(struct rig *g, uint32_t track, const char *name,
                     int64_t ts, int64_t dur) {
    return tiny_span(g->t, track, SPAN_ANNOTATION, name, ts, dur);
}

static row_id op(struct rig *g, uint32_t track, const char *name, int64_t ts) {
    return tiny_span(g->t, track, SPAN_OP, name, ts, 1);
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

static const struct trace *view_of(const struct trace *t, const char *glob) {
    const struct trace *v = NULL;
    struct ops_err e = {0};
    if (trace_region(t, glob, &v, &e) != 0) fail_msg("%s", e.text);
    return v;
}

static void check_step(const struct trace *t, size_t i, int64_t number,
                       int64_t start, int64_t end) {
    assert_true(i < t->nsteps);
    assert_int_equal(t->steps[i].number, number);
    assert_int_equal(t->steps[i].ts / US, start);
    assert_int_equal((t->steps[i].ts + t->steps[i].dur) / US, end);
    assert_int_equal(t->spans.step[t->steps[i].marker], i);
}

/* Returns the step of the only span that begins then, on a host track. */
static uint32_t step_at(const struct trace *t, uint32_t track, int64_t ts) {
    row_id r = trace_row_at(t, &t->tracks[track], ts * US);
    assert_true(r < t->tracks[track].end && t->spans.ts[r] == ts * US);
    return t->spans.step[r];
}

static void time_between_instances_is_in_no_step(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "fwd", 10, 10);
    op(&g, g.thread, "a", 12);
    op(&g, g.thread, "b", 25);
    region(&g, g.thread, "fwd", 30, 10);
    op(&g, g.thread, "a", 39);
    op(&g, g.thread, "c", 40);
    tiny_seal(g.t);
    const struct trace *v = view_of(g.t, "fwd");
    assert_int_equal(v->nsteps, 2);
    check_step(v, 0, 0, 10, 20);
    check_step(v, 1, 1, 30, 40);
    assert_int_equal(step_at(v, g.thread, 12), 0);
    assert_int_equal(step_at(v, g.thread, 25), ROW_NONE);
    assert_int_equal(step_at(v, g.thread, 39), 1);
    assert_int_equal(step_at(v, g.thread, 40), ROW_NONE);
    assert_int_equal(v->sources[0].step_rule, STEPS_BY_REGION);
    assert_ptr_equal(v->base, g.t);
    assert_int_equal(trace_region_overlaps(v), 0);
    trace_region_done(v);
    trace_free(g.t);
}

static void the_outermost_of_a_name_counts(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "f", 0, 100);
    region(&g, g.thread, "f", 10, 50);
    region(&g, g.thread, "f", 20, 10);
    region(&g, g.thread, "f", 200, 10);
    tiny_seal(g.t);
    const struct trace *v = view_of(g.t, "f");
    assert_int_equal(v->nsteps, 2);
    check_step(v, 0, 0, 0, 100);
    check_step(v, 1, 1, 200, 210);
    trace_region_done(v);
    trace_free(g.t);
}

static void device_work_belongs_to_the_instance_that_launched_it(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "fwd", 100, 10);
    launch(&g, 105, 110, 200);
    launch(&g, 120, 200, 400); /* in no instance, and still running below */
    region(&g, g.thread, "fwd", 150, 10);
    launch(&g, 155, 400, 450);
    region(&g, g.thread, "fwd", 600, 10); /* the device is idle */
    launch(&g, 605, 620, 650);
    region(&g, g.thread, "fwd", 700, 10); /* launches nothing */
    launch(&g, 800, 800, 1200); /* ends after what follows has its own */
    region(&g, g.thread, "fwd", 850, 10);
    launch(&g, 855, 900, 920);
    tiny_seal(g.t);
    const struct trace *v = view_of(g.t, "fwd");
    assert_int_equal(v->nsteps, 5);
    check_step(v, 0, 0, 100, 200);
    check_step(v, 1, 1, 400, 450);
    check_step(v, 2, 2, 600, 650);
    check_step(v, 3, 3, 700, 710);
    check_step(v, 4, 4, 900, 920);
    row_id first = v->tracks[g.stream].first;
    const uint32_t want[] = {0, ROW_NONE, 1, 2, ROW_NONE, 4};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(v->spans.step[first + i], want[i]);
    trace_region_done(v);
    trace_free(g.t);
}

static void an_instant_counts_in_the_instance_that_began_first(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "request", 0, 100);
    op(&g, g.thread, "a", 60);
    region(&g, g.other, "request", 50, 100);
    op(&g, g.other, "b", 70);
    op(&g, g.other, "b", 120);
    region(&g, g.thread, "request", 110, 10); /* all of it inside another */
    op(&g, g.thread, "a", 115);
    uint32_t third = tiny_thread(g.t, 3);
    op(&g, third, "c", 70);
    op(&g, third, "c", 130);
    tiny_seal(g.t);
    const struct trace *v = view_of(g.t, "request");
    assert_int_equal(v->nsteps, 3);
    check_step(v, 0, 0, 0, 100);
    check_step(v, 1, 1, 100, 150);
    check_step(v, 2, 2, 150, 150);
    assert_int_equal(v->steps[2].marker_dur / US, 10);
    assert_int_equal(trace_region_overlaps(v), 2);
    /* what a thread does in its own instance is of that one */
    assert_int_equal(step_at(v, g.thread, 60), 0);
    assert_int_equal(step_at(v, g.other, 70), 1);
    assert_int_equal(step_at(v, g.other, 120), 1);
    assert_int_equal(step_at(v, g.thread, 115), 2);
    assert_int_equal(step_at(v, third, 70), 0);
    assert_int_equal(step_at(v, third, 130), 1);
    assert_int_equal(v->steps[0].thread, g.thread);
    assert_int_equal(v->steps[1].thread, g.other);
    trace_region_done(v);
    trace_free(g.t);
}

static size_t count(const struct trace *t, const char *glob) {
    const struct trace *v = NULL;
    struct ops_err e = {0};
    int rc = trace_region(t, glob, &v, &e);
    if (rc == OPS_EUSAGE) return 0;
    assert_int_equal(rc, 0);
    size_t n = v->nsteps;
    trace_region_done(v);
    return n;
}

static void names_match_by_themselves_and_inside_each_other(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "measure", 0, 100);
    region(&g, g.thread, "inner", 5, 90);
    region(&g, g.thread, "forward", 10, 20);
    region(&g, g.thread, "warmup", 200, 100);
    region(&g, g.thread, "forward", 210, 20);
    region(&g, g.thread, "a/b", 400, 10);
    region(&g, g.other, "forward", 20, 20); /* around it only in time */
    op(&g, g.thread, "mm", 15);
    op(&g, g.thread, "relu", 410 - 5);
    tiny_seal(g.t);
    assert_int_equal(count(g.t, "forward"), 3);
    assert_int_equal(count(g.t, "measure/forward"), 1);
    assert_int_equal(count(g.t, "measure/inner/forward"), 1);
    assert_int_equal(count(g.t, "inner/measure/forward"), 0);
    assert_int_equal(count(g.t, "*/forward"), 2);
    assert_int_equal(count(g.t, "?/b"), 1);
    assert_int_equal(count(g.t, "a\\/b"), 1);
    assert_int_equal(count(g.t, "a/b/c/d/e/f/g/h/i/j"), 0);
    assert_int_equal(count(g.t, "*"), 4); /* the outermost of all */
    /* where nobody named it so, ops do */
    assert_int_equal(count(g.t, "mm"), 1);
    assert_int_equal(count(g.t, "measure/mm"), 1);
    assert_int_equal(count(g.t, "a/b/relu"), 1);
    assert_int_equal(count(g.t, "warmup/mm"), 0);
    assert_int_equal(count(g.t, ""), 0);
    trace_free(g.t);
}

static void where_none_matches_it_says_what_there_is(void **state) {
    (void)state;
    struct rig g = rig_new();
    struct ops_err e = {0};
    const struct trace *v = NULL;
    for (int i = 0; i < 3; i++) region(&g, g.thread, "often", 10 * i, 5);
    region(&g, g.thread, "once", 100, 5);
    region(&g, g.thread, "ProfilerStep#1", 200, 5);
    op(&g, g.thread, "mm", 300);
    tiny_seal(g.t);
    assert_int_equal(trace_region(g.t, "x", &v, &e), OPS_EUSAGE);
    assert_string_equal(e.text,
                        "no region matches 'x'; there are often (3), once (1)");
    trace_free(g.t);

    g = rig_new();
    op(&g, g.thread, "mm", 0);
    tiny_seal(g.t);
    assert_int_equal(trace_region(g.t, "x", &v, &e), OPS_EUSAGE);
    assert_string_equal(e.text, "no region matches 'x'; nobody named any, and "
                                "there are mm (1)");
    trace_free(g.t);

    /* a list that is too long ends with how many more there are */
    g = rig_new();
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "a rather long name number %d", i);
        region(&g, g.thread, name, 10 * i, 5);
    }
    tiny_seal(g.t);
    assert_int_equal(trace_region(g.t, "x", &v, &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "number 0 (1), "));
    assert_non_null(strstr(e.text, " more"));
    trace_free(g.t);

    g = rig_new();
    tiny_seal(g.t);
    assert_int_equal(trace_region(g.t, "x", &v, &e), OPS_EUSAGE);
    assert_non_null(strstr(e.text, "no host spans"));
    trace_free(g.t);
}

/* The instance and what is around it are marks, as steps are: neither is work
 * of the host. */
static void an_instance_is_a_mark_and_no_work(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "train", 0, 1000);
    region(&g, g.thread, "fwd", 100, 100);
    tiny_span(g.t, g.thread, SPAN_OP, "mm", 120, 30);
    launch(&g, 125, 130, 140);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "steps", "region", "fwd");
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "dur_us")->i / US, 100);
    assert_int_equal(tiny_cell(&r, 0, "compute_us")->i / US, 10);
    assert_int_equal(tiny_cell(&r, 0, "launch_us")->i / US, 1);
    assert_int_equal(tiny_cell(&r, 0, "host_us")->i / US, 19);
    assert_int_equal(tiny_cell(&r, 0, "other_us")->i / US, 70);
    result_free(&r);
    /* the base is what it was */
    assert_int_equal(g.t->spans.flags[g.t->tracks[g.thread].first], 0);
    trace_free(g.t);
}

/* What the program does after a region, while the region's kernel still runs, is
 * on no path through it. */
static void what_comes_after_is_not_of_it(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "train", 0, 1000);
    region(&g, g.thread, "fwd", 100, 20);
    launch(&g, 105, 110, 600);
    tiny_span(g.t, g.thread, SPAN_OP, "later", 150, 400);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "critical", "region", "fwd");
    int64_t sum = 0;
    assert_true(r.nrows > 0);
    for (size_t i = 0; i < r.nrows; i++) {
        assert_string_not_equal(tiny_cell(&r, i, "name")->s, "later");
        sum += tiny_cell(&r, i, "on_path_us")->i;
    }
    assert_int_equal(sum, 500 * US);
    result_free(&r);
    trace_free(g.t);
}

static struct result ask(const struct trace *t, const char *analysis,
                         const char *region, const char *instance,
                         const char *steps, int want) {
    const struct analysis *a = analysis_find(analysis);
    struct result r = {0};
    struct ops_err e = {0};
    struct opts o = {0};
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    if (region) assert_int_equal(opts_set(&o, "region", region, &e), 0);
    if (instance) assert_int_equal(opts_set(&o, "instance", instance, &e), 0);
    if (steps) assert_int_equal(opts_set(&o, "steps", steps, &e), 0);
    int rc = analysis_run(a, t, &o, 0, &r, &e);
    if (rc != want) fail_msg("%s: %d %s", analysis, rc, e.text);
    return r;
}

static void instances_are_chosen_by_number_and_by_step(void **state) {
    (void)state;
    struct rig g = rig_new();
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", 10 + i);
        region(&g, g.thread, name, 100 * i, 90);
        region(&g, g.thread, "fwd", 100 * i + 10, 20);
        op(&g, g.thread, "mm", 100 * i + 15);
        region(&g, g.thread, "fwd", 100 * i + 40, 20);
    }
    tiny_seal(g.t);
    struct result r = ask(g.t, "steps", "fwd", "2..3", NULL, 0);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_cell(&r, 0, "step")->i, 2);
    result_free(&r);
    r = ask(g.t, "steps", "fwd", NULL, "11..12", 0);
    assert_int_equal(r.nrows, 4);
    assert_int_equal(tiny_cell(&r, 0, "step")->i, 2);
    result_free(&r);
    r = ask(g.t, "ops", "fwd", "2..7", "11..12", 0);
    assert_int_equal(r.nrows, 2); /* mm, and the region */
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 4);
    assert_int_equal(tiny_cell(&r, 1, "calls")->i, 2);
    result_free(&r);
    ask(g.t, "steps", "fwd", "8", NULL, OPS_EUSAGE);
    ask(g.t, "steps", "fwd", NULL, "20", OPS_EUSAGE);
    ask(g.t, "steps", "fwd", "0", "11", OPS_EUSAGE);
    ask(g.t, "steps", NULL, "0", NULL, OPS_EUSAGE);
    trace_free(g.t);
}

/* Allocations are the host's: those of an instance are inside its span, however
 * far the device is behind. */
static void memory_is_that_of_the_span(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t gpu = trace_allocator(g.t, 0, bytes_of("GPU 0"), 0);
    launch(&g, 0, 5, 500);
    region(&g, g.thread, "fwd", 100, 10);
    launch(&g, 105, 500, 600);
    tiny_mem(g.t, gpu, g.thread, 50, 0x1000, 512, 512);
    tiny_mem(g.t, gpu, g.thread, 105, 0x2000, 256, 768);
    tiny_mem(g.t, gpu, g.thread, 550, 0x3000, 4096, 4864);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "memory", "region", "fwd");
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "peak_bytes")->i, 768);
    assert_int_equal(tiny_cell(&r, 0, "allocs")->i, 1);
    assert_int_equal(tiny_cell(&r, 0, "peak_step")->i, 0);
    result_free(&r);
    r = tiny_run(g.t, "steps", "region", "fwd");
    assert_int_equal(tiny_cell(&r, 0, "start_us")->i / US, 500);
    result_free(&r);
    trace_free(g.t);
}

/* Steps of the base and of the view have numbers of their own. */
static void leaks_are_told_by_instance(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t gpu = trace_allocator(g.t, 0, bytes_of("GPU 0"), 0);
    for (int i = 0; i < 8; i++) {
        region(&g, g.thread, "fwd", 100 * i, 50);
        op(&g, g.thread, "mm", 100 * i + 10);
        tiny_mem(g.t, gpu, g.thread, 100 * i + 10, 0x1000u * (unsigned)(i + 1),
                 512, 512 * (i + 1));
        op(&g, g.thread, "add", 100 * i + 60);
    }
    tiny_seal(g.t);
    struct result r = ask(g.t, "leaks", "fwd", "2..7", NULL, 0);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "bytes_per_step")->i, 512);
    assert_non_null(strstr(r.remarks[0], "end of step 2: "));
    assert_non_null(strstr(r.remarks[0], "of step 7: "));
    result_free(&r);
    trace_free(g.t);
}

/* Rows that are made when they are asked for still have their view then. */
static void rows_of_later_keep_the_view(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "fwd", 0, 1000);
    for (int i = 0; i < 500; i++) op(&g, g.thread, "mm", i);
    region(&g, g.thread, "bwd", 2000, 10);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "trace", "region", "fwd");
    for (int i = 0; i < 10; i++) { /* others push it out of what is kept */
        char glob[8];
        snprintf(glob, sizeof glob, "f%.*sd", i % 2 + 1, "?*");
        trace_region_done(view_of(g.t, glob));
        snprintf(glob, sizeof glob, "b%.*s", i % 5 + 1, "*****");
        trace_region_done(view_of(g.t, glob));
    }
    struct ops_err e;
    assert_int_equal(result_gather(&r, &e), 0);
    assert_int_equal(r.nrows, 501);
    assert_int_equal(tiny_cell(&r, 500, "step")->i, 0);
    result_free(&r);
    trace_free(g.t);
}

static void *ask_often(void *t) {
    const struct trace *first = view_of(t, "fwd");
    bool same = true;
    for (int i = 0; i < 200; i++) {
        const struct trace *v = view_of(t, "fwd");
        same &= v == first;
        trace_region_done(v);
        char glob[16];
        snprintf(glob, sizeof glob, "f%d*", i % 7);
        assert_int_equal(count(t, glob), 0);
        snprintf(glob, sizeof glob, "%.*sfwd", i % 7, "*******");
        assert_int_equal(count(t, glob), 1);
    }
    trace_region_done(first);
    return same ? t : NULL;
}

static void all_threads_get_the_same_view(void **state) {
    (void)state;
    struct rig g = rig_new();
    region(&g, g.thread, "fwd", 0, 10);
    tiny_seal(g.t);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, g.t), 0);
    for (int i = 0; i < 4; i++) {
        void *got;
        pthread_join(threads[i], &got);
        assert_ptr_equal(got, g.t);
    }
    trace_free(g.t);
}

/* Each source counts its own. */
static void every_rank_has_its_own_instances(void **state) {
    (void)state;
    struct rig g = rig_new();
    uint32_t two = trace_source(g.t, "two", format_named("kineto"), NULL,
                                (struct bytes){0});
    trace_source(g.t, "three", format_named("kineto"), NULL, (struct bytes){0});
    uint32_t there = trace_track(g.t, two, TRACK_THREAD, 2, 1);
    region(&g, g.thread, "fwd", 0, 10);
    region(&g, there, "fwd", 5, 10); /* at the same time: no overlap */
    region(&g, there, "fwd", 20, 10);
    tiny_seal(g.t);
    const struct trace *v = view_of(g.t, "fwd");
    assert_int_equal(v->nsteps, 3);
    check_step(v, 0, 0, 0, 10);
    check_step(v, 1, 0, 5, 15);
    check_step(v, 2, 1, 20, 30);
    assert_int_equal(v->sources[1].step_first, 1);
    assert_int_equal(v->sources[1].step_end, 3);
    assert_int_equal(v->sources[2].step_end, 3);
    assert_int_equal(trace_region_overlaps(v), 0);
    trace_region_done(v);
    trace_free(g.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_between_instances_is_in_no_step),
        cmocka_unit_test(the_outermost_of_a_name_counts),
        cmocka_unit_test(device_work_belongs_to_the_instance_that_launched_it),
        cmocka_unit_test(an_instant_counts_in_the_instance_that_began_first),
        cmocka_unit_test(names_match_by_themselves_and_inside_each_other),
        cmocka_unit_test(where_none_matches_it_says_what_there_is),
        cmocka_unit_test(an_instance_is_a_mark_and_no_work),
        cmocka_unit_test(instances_are_chosen_by_number_and_by_step),
        cmocka_unit_test(memory_is_that_of_the_span),
        cmocka_unit_test(leaks_are_told_by_instance),
        cmocka_unit_test(rows_of_later_keep_the_view),
        cmocka_unit_test(all_threads_get_the_same_view),
        cmocka_unit_test(every_rank_has_its_own_instances),
        cmocka_unit_test(what_comes_after_is_not_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
