/* SPDX-License-Identifier: Apache-2.0
 * segments: the state of an allocator, and what is said when there is none. */
#include "tiny.h"

static void run(const struct trace *t, struct result *r) {
    struct opts o = {0};
    struct ops_err e;
    const struct analysis *a = analysis_find("segments");
    assert_non_null(a);
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    assert_int_equal(analysis_run(a, t, &o, 0, r, &e), 0);
}

static struct cell *cell(const struct result *r, size_t row, const char *col) {
    int c = result_find_col(r, col);
    assert_true(c >= 0);
    return tiny_keep(result_cell(r, row, (size_t)c));
}

static struct trace *new_trace(const char *format) {
    struct trace *t = trace_new();
    trace_source(t, "x", format_named(format), NULL, (struct bytes){0});
    return t;
}

static void block(struct trace *t, uint64_t addr, int64_t bytes,
                  enum block_state state) {
    trace_block(t, &(struct mem_block){.addr = addr,
                                       .bytes = bytes,
                                       .requested = -1,
                                       .stack = ROW_NONE,
                                       .state = (uint8_t)state});
}

static void a_row_tells_how_it_is_cut(void **state) {
    (void)state;
    struct trace *t = new_trace("snapshot");
    uint32_t d = trace_device(t, 0, DEVICE_GPU, 3);
    uint32_t al = trace_allocator(t, 0, bytes_of("GPU 3"), d);
    uint32_t f = trace_frame(t, trace_str(t, bytes_of("main")),
                             trace_str(t, bytes_of("a.py")), 4);
    trace_segment(t, &(struct mem_segment){.addr = 0x7000,
                                           .bytes = 4096,
                                           .allocated = 1024,
                                           .active = 2048,
                                           .requested = -1,
                                           .stream = 0x55,
                                           .pool = {0, 2},
                                           .allocator = al,
                                           .large = true,
                                           .stack = trace_stack(t, &f, 1)});
    block(t, 0x7000, 1024, BLOCK_ALLOCATED);
    block(t, 0x7400, 512, BLOCK_FREE);
    block(t, 0x7600, 1024, BLOCK_PENDING_FREE);
    block(t, 0x7a00, 1536, BLOCK_FREE);
    trace_segment(t, &(struct mem_segment){.addr = 0x1000,
                                           .bytes = 0,
                                           .allocator = al,
                                           .stack = ROW_NONE});
    tiny_seal(t);
    struct result r;
    run(t, &r);
    assert_int_equal(r.nrows, 2);
    assert_string_equal(cell(&r, 0, "device")->s, "GPU 3");
    assert_string_equal(cell(&r, 0, "address")->s, "0x7000");
    assert_int_equal(cell(&r, 0, "bytes")->i, 4096);
    assert_int_equal(cell(&r, 0, "active_bytes")->i, 2048);
    assert_true(cell(&r, 0, "requested_bytes")->null);
    assert_int_equal(cell(&r, 0, "largest_free_bytes")->i, 1536);
    assert_int_equal(cell(&r, 0, "blocks")->i, 4);
    assert_int_equal(cell(&r, 0, "free_blocks")->i, 2);
    assert_true(cell(&r, 0, "fragmentation_pct")->f == 50.0);
    assert_string_equal(cell(&r, 0, "stream")->s, "0x55");
    assert_string_equal(cell(&r, 0, "pool")->s, "large, private 0,2");
    assert_string_equal(cell(&r, 0, "stack")->s, "a.py:4 main");
    assert_true(cell(&r, 1, "fragmentation_pct")->null); /* of nothing */
    assert_true(cell(&r, 1, "stack")->null);
    assert_string_equal(cell(&r, 1, "stream")->s, "0");
    result_free(&r);
    trace_free(t);
}

static void without_a_snapshot_it_says_how_to_get_one(void **state) {
    (void)state;
    struct trace *t = new_trace("kineto");
    tiny_seal(t);
    struct result r;
    run(t, &r);
    assert_int_equal(r.nrows, 0);
    assert_int_equal(r.nmissing, 1);
    assert_non_null(strstr(r.missing[0].fix, "_dump_snapshot"));
    result_free(&r);
    trace_free(t);
}

static void a_snapshot_of_nothing_is_no_loss(void **state) {
    (void)state;
    struct trace *t = new_trace("snapshot");
    tiny_seal(t);
    struct result r;
    run(t, &r);
    assert_int_equal(r.nmissing, 0);
    assert_int_equal(r.nremarks, 1);
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_tells_how_it_is_cut),
        cmocka_unit_test(without_a_snapshot_it_says_how_to_get_one),
        cmocka_unit_test(a_snapshot_of_nothing_is_no_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
