/* SPDX-License-Identifier: Apache-2.0
 * Hints for programs without a device that record themselves, on steps so
 * small that what each hint saves is worked out by hand. The recordings do not
 * tell what a scope costs: nothing is taken off. Times in us. */
#include "unit/tiny.h"

#include "import/import.h"
#include "unit/ownwrite.h"
#include <math.h>

enum { STEPS = 4, LENGTH = 1000 };

/* A recording under way; events are added to its step at hand. */
struct script {
    struct own_plane p;
    struct out file;
    int64_t at; /* the step's start */
    int rank;
    /* names */
    int64_t step, forward, matmul, rest, next_batch, make_batch;
    int64_t all_reduce, alloc;
};

static void begin(struct script *s, int rank) {
    *s = (struct script){.rank = rank};
    own_host(&s->p);
    own_fact_int(&s->p, "rank", rank);
    own_fact_int(&s->p, "world_size", 2);
    s->step = own_name(&s->p, "step", NULL);
    s->forward = own_name(&s->p, "forward", "phase");
    s->matmul = own_name(&s->p, "matmul", "op");
    s->rest = own_name(&s->p, "rest", "op");
    s->next_batch = own_name(&s->p, "next_batch", "input");
    s->make_batch = own_name(&s->p, "make_batch", "input");
    s->all_reduce = own_name(&s->p, "all_reduce", "comm");
    s->alloc = own_name(&s->p, "MemoryAllocation", NULL);
    own_line(&s->p, 7, "main/7", 0);
}

static void scope(struct script *s, int64_t name, int64_t ts, int64_t dur) {
    own_event(&s->p, name, (s->at + ts) * US, dur * US, NULL);
}

/* Adds a product; one with flops < 0 does not tell them. */
static void matmul(struct script *s, int64_t ts, int64_t dur, int64_t flops) {
    struct out args = {0};
    if (flops >= 0) arg_int(&s->p, &args, "flops", flops);
    own_event(&s->p, s->matmul, (s->at + ts) * US, dur * US, &args);
}

static void write_steps(struct script *s, void (*fill)(struct script *)) {
    for (int i = 0; i < STEPS; i++) {
        s->at = (int64_t)i * LENGTH;
        fill(s);
        own_step(&s->p, s->step, i, s->at * US, LENGTH * US);
    }
    own_close(&s->file, &s->p);
    own_environment(&s->file);
}

static void load(struct trace *t, const struct script *s) {
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    char path[32];
    snprintf(path, sizeof path, "box_%d.xplane.pb", s->rank);
    if (import_bytes(out_all(&s->file), path, t, &o, &e) != 0)
        fail_msg("%s", e.text);
}

/* Returns the hints of a job of n ranks, each of whose steps fill writes. */
static struct result study(int n, void (*fill)(struct script *)) {
    struct script s[2];
    struct trace *t = trace_new();
    assert_non_null(t);
    for (int i = 0; i < n; i++) {
        begin(&s[i], i);
        write_steps(&s[i], fill);
        load(t, &s[i]);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    for (int i = 0; i < n; i++) out_free(&s[i].file);
    return r;
}

static void expect_row(const struct result *r, size_t k, const char *id,
                       double us) {
    if (k >= r->nrows) fail_msg("no hint %zu, want %s", k, id);
    assert_string_equal(tiny_cell(r, k, "id")->s, id);
    double got = (double)tiny_cell(r, k, "save_us")->i / US;
    /* a share of the step as recorded, which what is run again misses a little
     */
    if (fabs(got - us) > us / 100 + 0.001)
        fail_msg("%s saves %f, not %f", id, got, us);
}

static void expect_only(struct result r, const char *id, double us) {
    expect_row(&r, 0, id, us);
    assert_int_equal(r.nrows, 1);
    result_free(&r);
}

static void expect_none(struct result r) {
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

/* ---- many small calls ---- */

enum { CALLS = 100 };

static void fill_calls(struct script *s, int64_t large_flops,
                       int64_t small_flops, int64_t takes) {
    if (large_flops != 0) matmul(s, 10, 200, large_flops);
    else scope(s, s->rest, 10, 200);
    for (int i = 0; i < CALLS; i++)
        matmul(s, 250 + i * (takes + 1), takes, small_flops);
    scope(s, s->rest, 800, 200);
    scope(s, s->forward, 0, LENGTH);
}

/* 1000 FLOPs a us in the large one, 250 in the small ones. */
static void fill_small(struct script *s) { fill_calls(s, 200000, 1000, 4); }
/* No large one of the same name; none that tells. */
static void fill_alone(struct script *s) { fill_calls(s, 0, 1000, 4); }
static void fill_silent(struct script *s) { fill_calls(s, -1, -1, 4); }
/* As fast as the large one. */
static void fill_fast(struct script *s) { fill_calls(s, 200000, 4000, 4); }

static void small_calls(void **state) {
    (void)state;
    struct result r = study(1, fill_small);
    assert_non_null(strstr(tiny_cell(&r, 0, "title")->s, "100 small calls"));
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "400.0"));
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "100.0"));
    /* each 4 us become 1, and the 99 us between them go */
    expect_only(r, "launch-bound", 3 * CALLS + 99);
}

static void small_calls_need_a_measure(void **state) {
    (void)state;
    expect_none(study(1, fill_alone));
    expect_none(study(1, fill_silent));
    /* 99 us of 1000 between them, and nothing in them, is less than is worth
     * restructuring a program for */
    expect_none(study(1, fill_fast));
}

/* One of the small calls was held up for 50 us. */
static void fill_disturbed(struct script *s) {
    matmul(s, 10, 200, 200000);
    for (int i = 0; i < CALLS; i++)
        matmul(s, 250 + i * 5 + (i > 50 ? 50 : 0), i == 50 ? 54 : 4, 1000);
    scope(s, s->rest, 800, 200);
    scope(s, s->forward, 0, LENGTH);
}

static void held_up_calls_are_small_too(void **state) {
    (void)state;
    expect_only(study(1, fill_disturbed), "launch-bound", 3 * CALLS + 50 + 99);
}

/* Ops of 20 us are not small, however slow. */
static void fill_medium(struct script *s) {
    matmul(s, 10, 200, 200000);
    for (int i = 0; i < 25; i++) matmul(s, 250 + i * 21, 20, 1000);
    scope(s, s->rest, 800, 200);
    scope(s, s->forward, 0, LENGTH);
}

/* A dozen small ops are no loop. */
static void fill_dozen(struct script *s) {
    matmul(s, 10, 200, 200000);
    for (int i = 0; i < 12; i++) matmul(s, 250 + i * 10, 9, 1);
    scope(s, s->rest, 400, 600);
    scope(s, s->forward, 0, LENGTH);
}

static void few_or_longer_calls(void **state) {
    (void)state;
    expect_none(study(1, fill_medium));
    expect_none(study(1, fill_dozen));
}

/* ---- input, memory ---- */

static void fill_input(struct script *s) {
    scope(s, s->next_batch, 0, 300);
    matmul(s, 310, 680, 1000);
}

static void waits_for_input(void **state) {
    (void)state;
    struct result r = study(1, fill_input);
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "next_batch"));
    assert_non_null(strstr(tiny_cell(&r, 0, "do")->s, "another thread"));
    expect_only(r, "input-bound", 300);
}

/* The same, and a thread that takes all of a step for a batch. */
static void fill_loader(struct script *s) {
    own_line(&s->p, 8, "loader/8", 0);
    scope(s, s->make_batch, 0, LENGTH);
    own_line(&s->p, 7, "main/7", 0);
    fill_input(s);
}

static void loader_is_too_slow(void **state) {
    (void)state;
    struct result r = study(1, fill_loader);
    assert_non_null(strstr(tiny_cell(&r, 0, "do")->s, "loader/8 makes"));
    expect_only(r, "input-bound", 300);
}

static void fill_leak(struct script *s) {
    matmul(s, 0, 990, 1000);
    own_mem(&s->p, s->alloc, (s->at + 995) * US, (uint64_t)s->at + 64, 1 << 20,
            "maps");
}

static void leaks_what_it_allocates(void **state) {
    (void)state;
    struct result r = study(1, fill_leak);
    assert_non_null(strstr(tiny_cell(&r, 0, "title")->s, "1.00 MiB"));
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "maps"));
    assert_null(strstr(tiny_cell(&r, 0, "do")->s, "tensor"));
    expect_only(r, "memory-leak", 0);
}

/* ---- ranks ---- */

/* Rank 1 comes 400 us later to an exchange of 100 us. */
static void fill_late(struct script *s) {
    int64_t from = s->rank == 0 ? 400 : 800;
    matmul(s, 0, from, 1000);
    scope(s, s->all_reduce, from, 900 - from);
    matmul(s, 900, 100, 1000);
}

/* Both come at once; the exchange takes 500 us. */
static void fill_exchange(struct script *s) {
    matmul(s, 0, 400, 1000);
    scope(s, s->all_reduce, 400, 500);
    matmul(s, 900, 100, 1000);
}

static void waiting_is_no_exchange(void **state) {
    (void)state;
    struct result r = study(2, fill_late);
    expect_row(&r, 0, "straggler", 400);
    assert_non_null(strstr(tiny_cell(&r, 0, "title")->s, "wait for rank 1"));
    /* the other 100 could run beside the computation */
    expect_row(&r, 1, "comm-exposed", 100);
    assert_int_equal(r.nrows, 2);
    result_free(&r);
    expect_only(study(2, fill_exchange), "comm-exposed", 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_calls),
        cmocka_unit_test(small_calls_need_a_measure),
        cmocka_unit_test(held_up_calls_are_small_too),
        cmocka_unit_test(few_or_longer_calls),
        cmocka_unit_test(waits_for_input),
        cmocka_unit_test(loader_is_too_slow),
        cmocka_unit_test(leaks_what_it_allocates),
        cmocka_unit_test(waiting_is_no_exchange),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
