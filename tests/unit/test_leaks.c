/* SPDX-License-Identifier: Apache-2.0
 * leaks: what stays and grows, and the many things that only look like it. */
#include "tiny.h"

#include <stdio.h>

enum { STEP = 100 }; /* us */

struct prog {
    struct trace *t;
    uint32_t th;
    uint16_t gpu;
    int64_t level;
    uint64_t next; /* address */
};

/* Begins n steps of 100 us, each with the op "aten::mm" from 10 to 60. */
static struct prog begin(int n) {
    struct prog p = {.t = tiny_new(true, true), .level = 1 << 20, .next = 1};
    p.th = tiny_thread(p.t, 1);
    p.gpu = trace_allocator(p.t, 0, bytes_of("GPU 0"),
                            trace_device(p.t, 0, DEVICE_GPU, 0));
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(p.t, p.th, SPAN_ANNOTATION, name, i * STEP, STEP - 1);
        tiny_span(p.t, p.th, SPAN_OP, "aten::mm", i * STEP + 10, 50);
    }
    return p;
}

static uint64_t get(struct prog *p, int64_t at, int64_t bytes) {
    p->level += bytes;
    tiny_mem(p->t, p->gpu, p->th, at, p->next, bytes, p->level);
    return p->next++;
}

static void put(struct prog *p, int64_t at, uint64_t addr, int64_t bytes) {
    p->level -= bytes;
    tiny_mem(p->t, p->gpu, p->th, at, addr, -bytes, p->level);
}

static struct result finish(struct prog *p, const char *opt,
                            const char *value) {
    tiny_seal(p->t);
    struct result r = tiny_run(p->t, "leaks", opt, value);
    trace_free(p->t);
    return r;
}

static bool says(const struct result *r, const char *text) {
    for (size_t i = 0; i < r->nremarks; i++)
        if (strstr(r->remarks[i], text)) return true;
    return false;
}

static void expect_none(struct prog *p) {
    struct result r = finish(p, NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(says(&r, "nothing grows"));
    result_free(&r);
}

static void one_block_kept_in_each_step(void **state) {
    (void)state;
    for (int n = 3; n < 12; n++) {
        struct prog p = begin(n);
        for (int i = 0; i < n; i++) {
            uint64_t a = get(&p, i * STEP + 20, 4096);
            get(&p, i * STEP + 30, 1000); /* stays */
            put(&p, i * STEP + 50, a, 4096);
        }
        struct result r = finish(&p, NULL, NULL);
        assert_int_equal(r.nrows, 1);
        assert_int_equal(tiny_int(&r, "aten::mm", "bytes_per_step"), 1000);
        assert_int_equal(tiny_int(&r, "aten::mm", "steps_seen"), n);
        assert_int_equal(tiny_int(&r, "aten::mm", "total_bytes"), 1000 * n);
        assert_int_equal(tiny_int(&r, "aten::mm", "blocks"), n);
        assert_true(tiny_null(&r, "aten::mm", "stack"));
        assert_true(says(&r, "1 site leaves behind 1000 B per step"));
        result_free(&r);
    }
}

/* Whatever the number of steps: thirds of odd length have one less than half. */
static void one_block_kept_in_every_other_step(void **state) {
    (void)state;
    for (int n = 12; n < 40; n++) {
        struct prog p = begin(n);
        for (int i = 0; i < n; i++) {
            uint64_t a = get(&p, i * STEP + 30, 1000);
            if (i % 2 == 0) put(&p, i * STEP + 50, a, 1000);
        }
        struct result r = finish(&p, NULL, NULL);
        assert_int_equal(r.nrows, 1);
        assert_int_equal(tiny_int(&r, "aten::mm", "steps_seen"), n / 2);
        result_free(&r);
    }
}

/* Every third step is no leak by this rule, but it is not kept quiet. */
static void what_grows_now_and_then_is_told(void **state) {
    (void)state;
    struct prog p = begin(60);
    for (int i = 0; i < 60; i++)
        if (i % 3 == 0) get(&p, i * STEP + 30, 1 << 24);
    struct result r = finish(&p, NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(says(&r, "It grew all the same"));
    result_free(&r);
}

static void host_memory_leaks_as_well(void **state) {
    (void)state;
    struct prog p = begin(5);
    p.gpu = trace_allocator(p.t, 0, bytes_of("CPU"), ROW_NONE);
    for (int i = 0; i < 5; i++) get(&p, i * STEP + 30, 64);
    struct result r = finish(&p, NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(tiny_cell(&r, 0, "device")->s, "host");
    result_free(&r);
}

static void sizes_may_differ(void **state) {
    (void)state;
    struct prog p = begin(6);
    for (int i = 0; i < 6; i++) get(&p, i * STEP + 30, 1000 + i);
    struct result r = finish(&p, NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_int(&r, "aten::mm", "total_bytes"), 6015);
    result_free(&r);
}

/* An allocator rounds now this way, now that: still one place. */
static void sizes_of_one_op_are_one_row(void **state) {
    (void)state;
    struct prog p = begin(4);
    for (int i = 0; i < 4; i++) {
        get(&p, i * STEP + 30, 1000);
        get(&p, i * STEP + 31, 1024);
    }
    struct result r = finish(&p, NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_int(&r, "aten::mm", "bytes_per_step"), 2024);
    assert_int_equal(tiny_int(&r, "aten::mm", "steps_seen"), 4);
    assert_int_equal(tiny_int(&r, "aten::mm", "blocks"), 8);
    result_free(&r);
}

static void only_chosen_steps_count(void **state) {
    (void)state;
    struct prog p = begin(9);
    for (int i = 2; i < 7; i++) get(&p, i * STEP + 30, 1000);
    struct result r = finish(&p, "steps", "2..6");
    assert_int_equal(tiny_int(&r, "aten::mm", "total_bytes"), 5000);
    assert_true(says(&r, "end of step 2"));
    result_free(&r);
}

/* Gradients, results: each step frees what the one before it made. */
static void replaced_is_no_leak(void **state) {
    (void)state;
    for (int depth = 1; depth <= 3; depth++) {
        struct prog p = begin(8);
        uint64_t a[8];
        for (int i = 0; i < 8; i++) {
            if (i >= depth) put(&p, i * STEP + 20, a[i - depth], 1000);
            a[i] = get(&p, i * STEP + 30, 1000);
        }
        expect_none(&p);
    }
}

static void ring_deeper_than_the_window_is_no_leak(void **state) {
    (void)state;
    struct prog p = begin(6);
    for (int i = 0; i < 6; i++) {
        put(&p, i * STEP + 20, 0x9000 + (uint64_t)i, 1000);
        get(&p, i * STEP + 30, 1000);
    }
    expect_none(&p);
    /* nor beside something that does leak, and is larger */
    p = begin(6);
    for (int i = 0; i < 6; i++) {
        put(&p, i * STEP + 20, 0x9000 + (uint64_t)i, 1000);
        get(&p, i * STEP + 30, 1000);
        get(&p, i * STEP + 70, 5000); /* not in the op */
    }
    struct result r = finish(&p, NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "total_bytes")->i, 30000);
    assert_true(tiny_cell(&r, 0, "op")->null);
    result_free(&r);
}

static void state_made_once_is_no_leak(void **state) {
    (void)state;
    struct prog p = begin(8);
    for (int i = 0; i < 40; i++) get(&p, 30, 1000);
    expect_none(&p);
}

static void cache_that_is_full_is_no_leak(void **state) {
    (void)state;
    struct prog p = begin(12);
    for (int i = 0; i < 6; i++) get(&p, i * STEP + 30, 1000);
    expect_none(&p);
}

static void cleared_now_and_then_is_no_leak(void **state) {
    (void)state;
    struct prog p = begin(12);
    uint64_t a[12];
    for (int i = 0; i < 12; i++) {
        a[i] = get(&p, i * STEP + 30, 1000);
        for (int k = i - 3; i % 4 == 3 && k <= i; k++)
            put(&p, i * STEP + 40 + k - i + 3, a[k], 1000);
    }
    expect_none(&p);
}

static void too_few_steps(void **state) {
    (void)state;
    for (int n = 1; n < 3; n++) {
        struct prog p = begin(n);
        for (int i = 0; i < n; i++) get(&p, i * STEP + 30, 1000);
        struct result r = finish(&p, NULL, NULL);
        assert_int_equal(r.nrows, 0);
        assert_true(says(&r, "too few"));
        result_free(&r);
    }
}

static void many_steps(void **state) {
    (void)state;
    enum { N = 100000 };
    struct prog p = begin(N);
    for (int i = 0; i < N; i++) get(&p, (int64_t)i * STEP + 30, 8);
    struct result r = finish(&p, NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_int(&r, "aten::mm", "steps_seen"), N);
    result_free(&r);
}

static void nothing_recorded(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "leaks", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "memory"));
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_block_kept_in_each_step),
        cmocka_unit_test(one_block_kept_in_every_other_step),
        cmocka_unit_test(what_grows_now_and_then_is_told),
        cmocka_unit_test(host_memory_leaks_as_well),
        cmocka_unit_test(sizes_may_differ),
        cmocka_unit_test(sizes_of_one_op_are_one_row),
        cmocka_unit_test(only_chosen_steps_count),
        cmocka_unit_test(replaced_is_no_leak),
        cmocka_unit_test(ring_deeper_than_the_window_is_no_leak),
        cmocka_unit_test(state_made_once_is_no_leak),
        cmocka_unit_test(cache_that_is_full_is_no_leak),
        cmocka_unit_test(cleared_now_and_then_is_no_leak),
        cmocka_unit_test(too_few_steps),
        cmocka_unit_test(many_steps),
        cmocka_unit_test(nothing_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
