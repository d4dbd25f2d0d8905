/* SPDX-License-Identifier: Apache-2.0
 * kernels on small traces, and the spellings of launch shapes. */
#include "tiny.h"

#include "analyze/shared/kernel_args.h"
#include <stdlib.h>

static void empty_trace(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "kernels", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "device"));
    result_free(&r);
    trace_free(t);
}

static void sums_per_name_and_device(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1);
    uint32_t a = tiny_stream(t, 0, 7), b = tiny_stream(t, 0, 8);
    uint32_t other = tiny_stream(t, 1, 7);
    tiny_span(t, th, SPAN_OP, "aten::mm", 0, 50);
    tiny_span(t, th, SPAN_OP, "aten::add", 60, 50);
    tiny_launch(t, th, a, "gemm", 10, 20);
    tiny_launch(t, th, b, "gemm", 12, 10);
    tiny_launch(t, th, a, "gemm", 70, 40);
    tiny_launch(t, th, other, "gemm", 80, 30);
    tiny_span(t, a, SPAN_COPY, "Memcpy HtoD", 500, 100);
    tiny_seal(t);
    struct result r = tiny_run(t, "kernels", NULL, NULL);
    assert_int_equal(r.nrows, 2); /* largest first: GPU 0 */
    assert_string_equal(tiny_cell(&r, 0, "device")->s, "GPU 0");
    assert_string_equal(tiny_cell(&r, 0, "op")->s, "aten::add");
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 3);
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i, 70 * US);
    assert_int_equal(tiny_cell(&r, 0, "min_us")->i, 10 * US);
    assert_int_equal(tiny_cell(&r, 0, "max_us")->i, 40 * US);
    double share = tiny_cell(&r, 0, "share_pct")->f;
    assert_true(share > 69.99 && share < 70.01);
    assert_true(tiny_cell(&r, 0, "grid")->null);
    assert_true(tiny_cell(&r, 0, "occupancy_pct")->null);
    assert_int_equal(tiny_cell(&r, 1, "total_us")->i, 30 * US);
    result_free(&r);
    trace_free(t);
}

static void ranks_are_added_up_or_split(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t two = trace_source(t, "two", format_named("kineto"), NULL,
                                (struct bytes){0});
    t->sources[0].rank = 0;
    t->sources[two].rank = 1;
    t->sources[two].has_device = true;
    uint32_t a = tiny_stream(t, 0, 7);
    uint32_t gpu = trace_device(t, two, DEVICE_GPU, 1);
    uint32_t b = trace_track(t, two, TRACK_STREAM, 1, 7);
    t->tracks[b].device = gpu;
    tiny_span(t, a, SPAN_KERNEL, "gemm", 0, 10);
    tiny_span(t, b, SPAN_KERNEL, "gemm", 0, 30);
    tiny_span(t, b, SPAN_KERNEL, "relu", 50, 5);
    uint32_t thread = tiny_thread(t, 1);
    uint32_t there = trace_track(t, two, TRACK_THREAD, 2, 1);
    tiny_span(t, thread, SPAN_OP, "mm", 0, 3);
    tiny_span(t, there, SPAN_OP, "mm", 0, 4);
    tiny_seal(t);
    struct result r = tiny_run(t, "kernels", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_string_equal(tiny_cell(&r, 0, "name")->s, "gemm");
    assert_string_equal(tiny_cell(&r, 0, "device")->s, "2 devices");
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 2);
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i, 40 * US);
    assert_int_equal(tiny_cell(&r, 0, "min_us")->i, 10 * US);
    assert_string_equal(tiny_cell(&r, 1, "device")->s, "rank 1 GPU 1");
    result_free(&r);
    r = tiny_run(t, "kernels", "by", "rank");
    assert_int_equal(r.nrows, 3);
    assert_string_equal(tiny_cell(&r, 0, "device")->s, "rank 1 GPU 1");
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i, 30 * US);
    result_free(&r);
    r = tiny_run(t, "kernels", "group", "shape");
    assert_int_equal(r.nrows, 2);
    assert_string_equal(tiny_cell(&r, 0, "device")->s, "2 devices");
    result_free(&r);
    r = tiny_run(t, "ops", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "host_us")->i, 7 * US);
    result_free(&r);
    r = tiny_run(t, "ops", "by", "rank");
    assert_int_equal(r.nrows, 2);
    assert_string_equal(tiny_cell(&r, 0, "host")->s, "rank 1");
    assert_int_equal(tiny_cell(&r, 0, "host_us")->i, 4 * US);
    assert_int_equal(tiny_cell(&r, 1, "host_us")->i, 3 * US);
    result_free(&r);
    trace_free(t);
}

static void without_launch_there_is_no_op(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_span(t, tiny_stream(t, 0, 7), SPAN_KERNEL, "k", 0, 0);
    tiny_seal(t);
    struct result r = tiny_run(t, "kernels", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_true(tiny_null(&r, "k", "op"));
    assert_int_equal(tiny_us(&r, "k", "total_us"), 0);
    assert_int_equal(tiny_int(&r, "k", "variants"), 1);
    assert_true(tiny_null(&r, "k", "share_pct"));
    result_free(&r);
    trace_free(t);
}

static void details_text_is_read(void **state) {
    (void)state;
    struct kernel_args a = {{-1, -1, -1}, {-1, -1, -1}, -1, -1, -1, false};
    kernel_args_details(&a, bytes_of("regs:168 static_shared:1024 "
                                     "dynamic_shared:230400\ngrid:66,2,1 "
                                     "block:384,1,1 occ_pct:18.75"));
    assert_int_equal(a.registers, 168);
    assert_int_equal(a.shared_bytes, 231424);
    assert_int_equal(a.grid[0], 66);
    assert_int_equal(a.grid[1], 2);
    assert_int_equal(a.block[0], 384);
    assert_true(a.occupancy_pct == 18.75);
}

/* Any number of kernels may share a text: what stands far behind in it is not
 * read, and no number is cut in two. */
static void of_long_details_the_beginning_is_read(void **state) {
    (void)state;
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    for (size_t pad = 0; pad < 12; pad++) {
        for (size_t i = 0; i < LONG; i++) text[i] = "regs:123456 "[i % 12];
        memcpy(text, "block:1,2,3 ", 12);
        memset(text + 12, ' ', pad);
        memcpy(text + LONG - 12, " grid:1,2,3 ", 12);
        text[LONG] = '\0';
        struct kernel_args a = {{-1, -1, -1}, {-1, -1, -1}, -1, -1, -1, false};
        kernel_args_details(&a, bytes_of(text));
        assert_int_equal(a.registers, 123456);
        assert_int_equal(a.block[2], 3);
        assert_int_equal(a.grid[0], -1);
    }
    memset(text, 'x', LONG);
    memcpy(text, "Memcpy HtoD", 11);
    memcpy(text + LONG - 8, "Pageable", 8);
    struct copy_args c = copy_args_from(bytes_of(text), bytes_of(text));
    assert_int_equal(c.kind, COPY_H2D);
    assert_int_equal(c.pageable, -1);
    free(text);
}

static void broken_details_leave_nulls(void **state) {
    (void)state;
    struct kernel_args a = {{-1, -1, -1}, {-1, -1, -1}, -1, -1, -1, false};
    kernel_args_details(&a, bytes_of("regs:x grid:1,2 block:,, : occ_pct:nan "
                                     "regs grid:"));
    assert_int_equal(a.registers, -1);
    assert_int_equal(a.grid[0], -1);
    assert_int_equal(a.block[2], -1);
    assert_true(a.occupancy_pct == -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace),
        cmocka_unit_test(sums_per_name_and_device),
        cmocka_unit_test(ranks_are_added_up_or_split),
        cmocka_unit_test(without_launch_there_is_no_op),
        cmocka_unit_test(details_text_is_read),
        cmocka_unit_test(of_long_details_the_beginning_is_read),
        cmocka_unit_test(broken_details_leave_nulls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
