/* SPDX-License-Identifier: Apache-2.0
 * Call stacks of memory events, and what traces tell of allocators beside
 * their events: interned, moved by append, sorted by seal. */
#include "tiny.h"

#include <stdlib.h>

static uint32_t frame(struct trace *t, const char *name, const char *file,
                      int32_t line) {
    return trace_frame(t, trace_str(t, bytes_of(name)),
                       trace_str(t, bytes_of(file)), line);
}

static const char *text(const struct trace *t, uint32_t stack, int n) {
    static char buf[256];
    size_t len = stack_text(t, stack, n, buf, sizeof buf);
    assert_int_equal(len, strlen(buf));
    return buf;
}

static void equal_stacks_are_one(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t f = frame(t, "step", "train.py", 12);
    uint32_t g = frame(t, "main", "train.py", 80);
    assert_int_equal(frame(t, "step", "train.py", 12), f);
    assert_int_not_equal(frame(t, "step", "train.py", 13), f);
    uint32_t ab[] = {f, g}, ba[] = {g, f};
    uint32_t s = trace_stack(t, ab, 2);
    assert_int_equal(trace_stack(t, ab, 2), s);
    assert_int_not_equal(trace_stack(t, ba, 2), s);
    assert_int_not_equal(trace_stack(t, ab, 1), s);
    assert_int_equal(t->stacks.n, 3);
    assert_int_equal(trace_stack(t, ab, 0), ROW_NONE);
    assert_string_equal(text(t, s, 9), "train.py:12 step < train.py:80 main");
    assert_string_equal(text(t, s, 1), "train.py:12 step");
    assert_string_equal(text(t, ROW_NONE, 9), "");
    trace_free(t);
}

static void python_frames_hide_the_ones_of_c(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t v[] = {frame(t, "at::empty", "??", 0),
                    frame(t, "f", "/x/site-packages/torch/nn.py", 7),
                    frame(t, "main", "", 0)};
    assert_string_equal(text(t, trace_stack(t, v, 3), 9), "torch/nn.py:7 f");
    uint32_t c[] = {v[0], v[2]};
    assert_string_equal(text(t, trace_stack(t, c, 2), 9), "at::empty < main");
    char small[8];
    uint32_t s = trace_stack(t, c, 2);
    for (size_t cap = 1; cap <= sizeof small; cap++)
        assert_int_equal(stack_text(t, s, 9, small, cap), cap - 1);
    trace_free(t);
}

/* Any number of frames may share a text of any length: of a path that is none
 * only the beginning is read, and of both what fits. */
static void long_texts_are_cut(void **state) {
    (void)state;
    enum { LONG = 1 << 20, MANY = 50000 };
    char *name = malloc(LONG + 1), want[256];
    assert_non_null(name);
    memset(name, 'x', LONG);
    name[LONG] = '\0';
    struct trace *t = tiny_new(true, true);
    uint32_t f = frame(t, name, name, 3), g = frame(t, "f", name + 1, 3);
    uint32_t a = trace_stack(t, &f, 1), b = trace_stack(t, &g, 1);
    memset(want, 'x', sizeof want - 1);
    want[sizeof want - 1] = '\0';
    for (int i = 0; i < MANY; i++) {
        assert_string_equal(text(t, a, 9), want);
        assert_string_equal(text(t, b, 9), want);
    }
    memcpy(name + 9, "/site-packages/torch/nn.py", 27);
    f = frame(t, "f", name, 7);
    assert_string_equal(text(t, trace_stack(t, &f, 1), 9), "torch/nn.py:7 f");
    free(name);
    trace_free(t);
}

/* Two events, the second with a stack; a segment of two blocks; a block from
 * before; a failed allocation. n makes it its own. */
static struct trace *sample(const char *path, int n) {
    struct trace *t = trace_new();
    trace_source(t, path, format_named("kineto"), NULL, (struct bytes){0});
    uint32_t d = trace_device(t, 0, DEVICE_GPU, 0);
    uint32_t al = trace_allocator(t, 0, bytes_of("GPU 0"), d);
    uint32_t f = frame(t, "f", "a.py", n);
    uint32_t s = trace_stack(t, &f, 1);
    struct mem_in m = {.ts = 2 * US,
                       .bytes = n,
                       .allocated = -1,
                       .reserved = -1,
                       .addr = 8,
                       .track = ROW_NONE,
                       .allocator = al};
    trace_mem(t, &m);
    m.ts = US;
    trace_mem_stack(t, trace_mem(t, &m), s);
    for (int i = 2; i > 0; i--) {
        trace_segment(t, &(struct mem_segment){.addr = 4096u * (unsigned)i,
                                               .bytes = 1024,
                                               .allocator = al,
                                               .stack = s});
        for (int k = 0; k < i; k++)
            trace_block(t, &(struct mem_block){.addr = 4096u * (unsigned)i +
                                                       512u * (unsigned)k,
                                               .bytes = 512,
                                               .stack = s,
                                               .state = BLOCK_ALLOCATED});
    }
    trace_before(t, &(struct mem_before){.addr = 9,
                                         .bytes = 3,
                                         .ts = TS_NONE,
                                         .allocator = al,
                                         .stack = s});
    trace_before(t, &(struct mem_before){.addr = 8,
                                         .bytes = 4,
                                         .ts = -US,
                                         .allocator = al,
                                         .stack = s});
    for (int i = 2; i > 0; i--)
        trace_oom(t, &(struct mem_oom){.ts = i * US,
                                       .bytes = n,
                                       .track = ROW_NONE,
                                       .stack = s,
                                       .allocator = al});
    return t;
}

static void seal_sorts_the_tables(void **state) {
    (void)state;
    struct trace *t = sample("a", 1);
    tiny_seal(t);
    assert_int_equal(t->mem.ts[0], US);
    assert_string_equal(text(t, mem_stack(t, 0), 9), "a.py:1 f");
    assert_int_equal(mem_stack(t, 1), ROW_NONE);
    assert_int_equal(t->segments[0].addr, 4096);
    assert_int_equal(t->segments[0].end - t->segments[0].first, 1);
    assert_int_equal(t->segments[1].end - t->segments[1].first, 2);
    assert_int_equal(t->blocks[t->segments[0].first].addr, 4096);
    assert_int_equal(t->before[0].addr, 8);
    assert_int_equal(t->ooms[0].ts, US);
    trace_free(t);
}

static void append_moves_all_of_it(void **state) {
    (void)state;
    struct ops_err e;
    struct trace *a = sample("a", 1), *b = sample("b", 2);
    a->epoch_ns = 1000000;
    b->epoch_ns = 1002000; /* two us later */
    a->epoch_set = b->epoch_set = true;
    assert_int_equal(trace_append(a, b, &e), 0);
    tiny_seal(a);
    assert_int_equal(a->nallocators, 2);
    assert_int_equal(a->stacks.n, 2);
    assert_int_equal(a->mem.n, 4);
    assert_int_equal(a->mem.ts[2], 3 * US);
    assert_string_equal(text(a, mem_stack(a, 0), 9), "a.py:1 f");
    assert_string_equal(text(a, mem_stack(a, 2), 9), "a.py:2 f");
    assert_int_equal(a->nsegments, 4);
    assert_int_equal(a->segments[2].allocator, 1);
    assert_string_equal(text(a, a->segments[2].stack, 9), "a.py:2 f");
    assert_int_equal(a->blocks[a->segments[3].end - 1].addr, 8192 + 512);
    assert_int_equal(a->nbefore, 4);
    assert_int_equal(a->before[2].ts, US);
    assert_int_equal(a->before[3].ts, TS_NONE);
    assert_int_equal(a->nooms, 4);
    assert_int_equal(a->ooms[3].ts, 4 * US);
    assert_int_equal(a->ooms[3].allocator, 1);
    trace_free(a);
}

static void nobody_recorded_a_stack(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t al = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    tiny_mem(t, al, ROW_NONE, 1, 1, 64, -1);
    tiny_seal(t);
    assert_null(t->mem.stack);
    assert_int_equal(mem_stack(t, 0), ROW_NONE);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_one),
        cmocka_unit_test(python_frames_hide_the_ones_of_c),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(seal_sorts_the_tables),
        cmocka_unit_test(append_moves_all_of_it),
        cmocka_unit_test(nobody_recorded_a_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
