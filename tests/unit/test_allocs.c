/* SPDX-License-Identifier: Apache-2.0
 * allocs: pairs by address, ops, and what is live at an instant. */
#include "tiny.h"

/* 1000 bytes from before; empty(5..8) in mm(0..20) makes 100 that mm frees
 * itself and 200 that live on; 400 more at 30, and one block of before goes
 * at 40. */
static struct trace *sample(void) {
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint32_t g = trace_allocator(t, 0, bytes_of("GPU 0"),
                                 trace_device(t, 0, DEVICE_GPU, 0));
    tiny_span(t, th, SPAN_OP, "aten::mm", 0, 20);
    tiny_span(t, th, SPAN_OP, "aten::empty", 5, 5);
    tiny_mem(t, g, th, 6, 0xa, 100, 1100);
    tiny_mem(t, g, th, 7, 0xb, 200, 1300);
    tiny_mem(t, g, th, 12, 0xa, -100, 1200);
    tiny_mem(t, g, th, 30, 0xa, 400, 1600);
    tiny_mem(t, g, th, 40, 0xc, -600, 1000);
    tiny_mem(t, g, th, 50, 0xa, -400, 600);
    tiny_seal(t);
    return t;
}

static size_t with_bytes(const struct result *r, int64_t bytes) {
    for (size_t i = 0; i < r->nrows; i++)
        if (tiny_cell(r, i, "bytes")->i == bytes) return i;
    fail_msg("no block of %d bytes", (int)bytes);
    return 0;
}

static int64_t total(const struct result *r) {
    int64_t sum = 0;
    for (size_t i = 0; i < r->nrows; i++) sum += tiny_cell(r, i, "bytes")->i;
    return sum;
}

static void each_allocation_has_its_free(void **state) {
    (void)state;
    struct trace *t = sample();
    struct result r = tiny_run(t, "allocs", NULL, NULL);
    assert_int_equal(r.nrows, 5);
    size_t i = with_bytes(&r, 100);
    assert_string_equal(tiny_cell(&r, i, "op")->s, "aten::empty");
    assert_string_equal(tiny_cell(&r, i, "parent_op")->s, "aten::mm");
    assert_string_equal(tiny_cell(&r, i, "category")->s, "temporary");
    assert_int_equal(tiny_cell(&r, i, "free_us")->i, 12 * US);
    i = with_bytes(&r, 200);
    assert_true(tiny_cell(&r, i, "free_us")->null);
    assert_string_equal(tiny_cell(&r, i, "category")->s, "unknown");
    i = with_bytes(&r, 400);
    assert_true(tiny_cell(&r, i, "op")->null);
    assert_int_equal(tiny_cell(&r, i, "free_us")->i, 50 * US);
    /* of 1000 bytes from before the window 600 are freed in it */
    i = with_bytes(&r, 600);
    assert_string_equal(tiny_cell(&r, i, "category")->s, "before-window");
    assert_int_equal(tiny_cell(&r, i, "free_us")->i, 40 * US);
    assert_int_equal(tiny_cell(&r, i, "blocks")->i, 1);
    /* what is never freed is what is live at the end: 200 and 400 of 600 */
    int64_t kept = 0;
    for (size_t k = 0; k < r.nrows; k++)
        if (tiny_cell(&r, k, "free_us")->null)
            kept += tiny_cell(&r, k, "bytes")->i;
    assert_int_equal(kept, 600);
    result_free(&r);
    trace_free(t);
}

static void live_blocks_sum_to_the_level(void **state) {
    (void)state;
    struct trace *t = sample();
    struct result r = tiny_run(t, "allocs", "peak", "1");
    assert_int_equal(total(&r), 1600);
    assert_int_equal(r.nrows, 3);
    result_free(&r);
    r = tiny_run(t, "allocs", "at", "45");
    assert_int_equal(total(&r), 1000); /* 200 + 400 + 400 from before */
    assert_int_equal(r.nrows, 3);
    result_free(&r);
    r = tiny_run(t, "allocs", "at", "1");
    assert_int_equal(total(&r), 1000);
    result_free(&r);
    trace_free(t);
}

/* An address allocated twice with no free between: the first one ended. */
static void reused_address_ends_a_block(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    uint32_t h = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    tiny_mem(t, h, ROW_NONE, 1, 0xa, 8, -1);
    tiny_mem(t, h, ROW_NONE, 2, 0xa, 16, -1);
    tiny_mem(t, h, ROW_NONE, 3, 0xa, -16, -1);
    tiny_seal(t);
    struct result r = tiny_run(t, "allocs", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_cell(&r, with_bytes(&r, 8), "free_us")->i, 2 * US);
    assert_int_equal(tiny_cell(&r, with_bytes(&r, 16), "free_us")->i, 3 * US);
    result_free(&r);
    trace_free(t);
}

static void not_recorded(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "allocs", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "memory"));
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_has_its_free),
        cmocka_unit_test(live_blocks_sum_to_the_level),
        cmocka_unit_test(reused_address_ends_a_block),
        cmocka_unit_test(not_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
