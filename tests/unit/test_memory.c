/* SPDX-License-Identifier: Apache-2.0
 * memory: peaks told by the source, and peaks replayed. */
#include "tiny.h"

#include "base/array.h"

#include <stdio.h>

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

/* Shared memory has totals of 0 beside the allocator's own. */
static void what_no_total_counts_is_added(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t h = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    tiny_mem(t, h, th, 10, 0xa, 100, 100);
    tiny_mem(t, h, th, 20, 0x51, 4000, 0);  /* a batch */
    tiny_mem(t, h, th, 30, 0x50, -7000, 0); /* one from before the window */
    tiny_mem(t, h, th, 40, 0xb, 900, 1000);
    tiny_mem(t, h, th, 50, 0xb, -900, 100);
    tiny_mem(t, h, th, 60, 0xa, -100, 0); /* really all that it counts */
    tiny_mem(t, h, th, 70, 0x51, -4000, 0);
    tiny_mem(t, h, th, 80, 0xc, 50, 50);
    tiny_seal(t);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(tiny_int(&r, "host", "peak_bytes"), 100 + 4000 + 7000);
    assert_int_equal(tiny_us(&r, "host", "peak_at_us"), 20);
    assert_int_equal(tiny_int(&r, "host", "before_window_bytes"), 7000);
    assert_int_equal(tiny_int(&r, "host", "live_at_end_bytes"), 50);
    assert_int_equal(r.nremarks, 1);
    assert_non_null(strstr(r.remarks[0], "shared memory"));
    result_free(&r);
    r = tiny_run(t, "memory", "by", "time");
    const int64_t level[] = {7100, 11100, 4100, 5000, 4100, 4000, 0, 50};
    assert_int_equal(r.nrows, COUNT(level));
    for (size_t i = 0; i < COUNT(level); i++)
        assert_int_equal(tiny_cell(&r, i, "allocated_bytes")->i, level[i]);
    result_free(&r);
    trace_free(t);
}

static void steps_bound_the_peak(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    uint32_t th = tiny_thread(t, 1);
    uint32_t h = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
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

/* 1000 bytes from before; mm makes 100 in a region, an event is missing (500
 * more than the blocks explain), and the peak is at 30. */
static struct trace *peaked(void) {
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t);
    tiny_span(t, th, SPAN_ANNOTATION, "train", 0, 100);
    tiny_span(t, th, SPAN_ANNOTATION, "forward", 5, 40);
    tiny_span(t, th, SPAN_OP, "aten::mm", 5, 10);
    tiny_span(t, th, SPAN_OP, "aten::empty", 6, 5);
    tiny_mem(t, g, th, 10, 0xa, 100, 1100);
    tiny_mem(t, g, th, 20, 0xb, 300, 1400);  /* in no op */
    tiny_mem(t, g, th, 25, 0xd, -200, 1200); /* from before */
    tiny_mem(t, g, th, 30, 0xc, 50, 1750);
    tiny_mem(t, g, th, 40, 0xa, -100, 1650);
    tiny_seal(t);
    return t;
}

/* Returns the bytes of the row with that key; NULL: of the row with none. */
static int64_t held(const struct result *r, const char *col, const char *key) {
    for (size_t i = 0; i < r->nrows; i++) {
        const struct cell *c = tiny_cell(r, i, col);
        if (c->null ? key == NULL : key && strcmp(c->s, key) == 0)
            return tiny_cell(r, i, "bytes")->i;
    }
    return -1;
}

static void every_byte_of_the_peak_has_a_holder(void **state) {
    (void)state;
    struct trace *t = peaked();
    static const char *const keys[] = {"op", "category", "scope", "module",
                                       "stack"};
    for (size_t k = 0; k < 5; k++) {
        struct result r = tiny_run(t, "memory", "by", keys[k]);
        int64_t sum = 0;
        for (size_t i = 0; i < r.nrows; i++)
            sum += tiny_cell(&r, i, "bytes")->i;
        assert_int_equal(sum, 1750);
        assert_int_equal(held(&r, keys[k], "before-window"), 800);
        result_free(&r);
    }
    struct result r = tiny_run(t, "memory", "by", "op");
    assert_int_equal(held(&r, "op", "aten::mm"), 100);
    assert_int_equal(held(&r, "op", NULL), 350);
    assert_int_equal(held(&r, "op", "unrecorded"), 500);
    assert_int_equal(tiny_cell(&r, 0, "peak_at_us")->i, 30 * US);
    result_free(&r);
    r = tiny_run(t, "memory", "by", "scope");
    assert_int_equal(held(&r, "scope", "train/forward"), 450);
    result_free(&r);
    r = tiny_run(t, "memory", "by", "category");
    assert_int_equal(held(&r, "category", "activation"), 100);
    assert_int_equal(held(&r, "category", "unknown"), 850);
    result_free(&r);
    trace_free(t);
}

static const char *const divisions[] = {"op", "category", "scope", "module",
                                        "stack"};

/* Checks that the rows of each division are amounts and sum to the peak. */
static void check_divisions(const struct trace *t) {
    struct result r = tiny_run(t, "memory", NULL, NULL);
    int64_t peak = tiny_cell(&r, 0, "peak_bytes")->i;
    assert_true(peak >= 0);
    assert_true(tiny_cell(&r, 0, "live_at_end_bytes")->i >= 0);
    assert_true(tiny_cell(&r, 0, "before_window_bytes")->i >= 0);
    result_free(&r);
    for (size_t k = 0; k < 5; k++) {
        int64_t sum = 0;
        r = tiny_run(t, "memory", "by", divisions[k]);
        for (size_t i = 0; i < r.nrows; i++) {
            assert_true(tiny_cell(&r, i, "bytes")->i >= 0);
            struct cell *share = tiny_cell(&r, i, "share_pct");
            assert_true(share->null || share->f <= 100.0001);
            sum += tiny_cell(&r, i, "bytes")->i;
        }
        assert_int_equal(sum, peak);
        result_free(&r);
    }
    r = tiny_run(t, "allocs", "peak", "1");
    int64_t sum = 0;
    for (size_t i = 0; i < r.nrows; i++) sum += tiny_cell(&r, i, "bytes")->i;
    assert_int_equal(sum, peak);
    result_free(&r);
}

/* Blocks that no machine has are left out and counted, before they make sums
 * stop; and so are those that are too many together. */
static void sizes_that_cannot_be_are_counted(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t);
    tiny_mem(t, g, th, 1, 0xa, INT64_MAX, -1);
    tiny_mem(t, g, th, 2, 0xb, INT64_C(1) << 62, -1);
    tiny_mem(t, g, th, 3, 0xc, SIZE_LIMIT, -1);
    tiny_mem(t, g, th, 4, 0xd, 100, INT64_MAX / 2); /* totals that cannot be */
    tiny_mem(t, g, th, 5, 0xb, -(INT64_C(1) << 62), -1);
    tiny_mem(t, g, th, 6, 0xe, 50, -1);
    tiny_seal(t);
    assert_int_equal(t->mem.n, 3);
    assert_int_equal(t->notes[NOTE_SIZE_OUT_OF_RANGE], 3 + 2);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(tiny_cell(&r, 0, "peak_bytes")->i, SIZE_LIMIT + 150);
    result_free(&r);
    check_divisions(t);
    trace_free(t);
    t = tiny_new(true, true);
    g = gpu0(t);
    for (int i = 0; i < 5000; i++)
        tiny_mem(t, g, ROW_NONE, i, 512 * (uint64_t)(i + 1), SIZE_LIMIT, -1);
    tiny_seal(t);
    assert_int_equal(t->mem.n, SIZES_LIMIT / SIZE_LIMIT);
    assert_int_equal(t->notes[NOTE_SIZE_OUT_OF_RANGE], 5000 - t->mem.n);
    check_divisions(t);
    trace_free(t);
}

/* The level is the truth: of blocks that it has no room for the oldest must
 * have been freed, and a remark says so. */
static void blocks_without_their_frees_are_taken_as_freed(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t);
    tiny_span(t, th, SPAN_OP, "old", 0, 15);
    tiny_span(t, th, SPAN_OP, "new", 20, 100);
    tiny_mem(t, g, th, 10, 0xa, 1000, 1000);
    tiny_mem(t, g, th, 30, 0xb, 400, 450); /* 0xa is gone, all but 50 */
    tiny_mem(t, g, th, 40, 0xc, 800, 1250);
    tiny_seal(t);
    check_divisions(t);
    struct result r = tiny_run(t, "memory", "by", "op");
    assert_int_equal(held(&r, "op", "old"), -1);
    assert_int_equal(held(&r, "op", "new"), 1200);
    assert_int_equal(held(&r, "op", "unrecorded"), 50);
    assert_non_null(strstr(r.remarks[r.nremarks - 1], "frees were not"));
    result_free(&r);
    trace_free(t);
    t = tiny_new(true, true); /* less in use than was allocated at once */
    g = gpu0(t);
    tiny_mem(t, g, ROW_NONE, 10, 0xa, 1000, 400);
    tiny_mem(t, g, ROW_NONE, 20, 0xa, -1000, -1);
    tiny_mem(t, g, ROW_NONE, 30, 0xb, -5000, -1);
    tiny_seal(t);
    check_divisions(t);
    trace_free(t);
}

static void few_points_keep_the_peak(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t);
    for (int i = 0; i < 500; i++)
        tiny_mem(t, g, th, i, (uint64_t)i + 1, 8, i == 77 ? 5000 : 8 + i % 10);
    tiny_seal(t);
    for (int64_t n = 2; n < 700; n += 13) {
        char text[16];
        snprintf(text, sizeof text, "%d", (int)n);
        struct result r = tiny_run(t, "memory", "points", text);
        result_free(&r); /* --points alone changes nothing */
        struct opts o;
        struct ops_err e = {0};
        memset(&o, 0, sizeof o);
        const struct analysis *a = analysis_find("memory");
        opts_init(&o, analysis_common_opts, a->opts, NULL);
        assert_int_equal(opts_set(&o, "by", "time", &e), 0);
        assert_int_equal(opts_set(&o, "points", text, &e), 0);
        assert_int_equal(analysis_run(a, t, &o, 0, &r, &e), 0);
        assert_true((int64_t)r.nrows <= n);
        assert_true((int64_t)r.nrows == (n < 500 ? (int64_t)r.nrows : 500));
        int64_t top = 0, before = -1;
        for (size_t i = 0; i < r.nrows; i++) {
            int64_t at = tiny_cell(&r, i, "at_us")->i;
            int64_t level = tiny_cell(&r, i, "allocated_bytes")->i;
            assert_true(at > before);
            before = at;
            if (level > top) top = level;
        }
        assert_int_equal(top, 5000);
        assert_int_equal(before, 499 * US);
        result_free(&r);
    }
    struct opts o;
    struct ops_err e = {0};
    opts_init(&o, analysis_find("memory")->opts, NULL, NULL);
    assert_int_equal(opts_set(&o, "points", "1", &e), OPS_EUSAGE);
    trace_free(t);
}

static void who_asked_when_it_ran_out(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t);
    tiny_span(t, th, SPAN_OP, "aten::mm", 5, 10);
    tiny_span(t, th, SPAN_OP, "aten::bmm", 30, 10);
    tiny_mem(t, g, th, 10, 0xa, 4096, 4096);
    for (int i = 0; i < 5; i++)
        trace_oom(t, &(struct mem_oom){.ts = (35 + i) * US,
                                       .bytes = (i + 1) << 20,
                                       .device_free = 2048,
                                       .allocated = 4096,
                                       .reserved = -1,
                                       .track = th,
                                       .stack = ROW_NONE,
                                       .allocator = g});
    tiny_seal(t);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(r.nremarks, 4);
    assert_string_equal(
        r.remarks[0],
        "out of memory: aten::bmm asked for 1.00 MiB when 2.00 KiB were free "
        "on the device; of 4.00 KiB in use aten::mm held the most, 4.00 KiB");
    assert_string_equal(r.remarks[3], "and 2 more allocations failed");
    result_free(&r);
    trace_free(t);
}

static void segments_tell_what_is_stuck(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint16_t g = gpu0(t);
    tiny_mem(t, g, th, 10, 0x100, 64, 64);
    struct mem_segment seg = {.addr = 0x100,
                              .bytes = 256,
                              .allocator = g,
                              .stack = ROW_NONE};
    trace_segment(t, &seg);
    trace_block(t,
                &(struct mem_block){0x100, 64, 64, ROW_NONE, BLOCK_ALLOCATED});
    trace_block(t, &(struct mem_block){0x140, 192, -1, ROW_NONE, BLOCK_FREE});
    seg.addr = 0x900;
    seg.bytes = 512;
    trace_segment(t, &seg);
    trace_block(t, &(struct mem_block){0x900, 512, -1, ROW_NONE, BLOCK_FREE});
    tiny_seal(t);
    struct result r = tiny_run(t, "memory", NULL, NULL);
    assert_int_equal(tiny_int(&r, "GPU 0", "segments"), 2);
    assert_int_equal(tiny_int(&r, "GPU 0", "segment_free_bytes"), 704);
    assert_int_equal(tiny_int(&r, "GPU 0", "segment_stuck_bytes"), 192);
    assert_int_equal(r.nremarks, 1);
    assert_non_null(strstr(r.remarks[0], "largest free piece is 512 B"));
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_recorded),
        cmocka_unit_test(recorded_levels_are_the_truth),
        cmocka_unit_test(replayed_from_what_must_have_been_there),
        cmocka_unit_test(what_no_total_counts_is_added),
        cmocka_unit_test(steps_bound_the_peak),
        cmocka_unit_test(every_byte_of_the_peak_has_a_holder),
        cmocka_unit_test(sizes_that_cannot_be_are_counted),
        cmocka_unit_test(blocks_without_their_frees_are_taken_as_freed),
        cmocka_unit_test(few_points_keep_the_peak),
        cmocka_unit_test(who_asked_when_it_ran_out),
        cmocka_unit_test(segments_tell_what_is_stuck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
