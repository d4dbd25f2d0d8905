/* SPDX-License-Identifier: Apache-2.0
 * copies: kinds by their spellings, and what of them is exposed. */
#include "tiny.h"

#include "analyze/shared/kernel_args.h"

static void empty_trace(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "copies", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_false(tiny_misses(&r, "device"));
    result_free(&r);
    trace_free(t);
}

/* The copy 10..30 on GPU 0: kernels there run 0..15 and 20..25; a kernel of
 * GPU 1 hides nothing. */
static void exposed_is_what_no_kernel_covers(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t a = tiny_stream(t, 0, 7), b = tiny_stream(t, 0, 8);
    uint32_t c = tiny_stream(t, 0, 9), other = tiny_stream(t, 1, 7);
    tiny_span(t, a, SPAN_KERNEL, "k", 0, 15);
    tiny_span(t, b, SPAN_KERNEL, "k", 20, 5);
    tiny_span(t, other, SPAN_KERNEL, "k", 0, 100);
    tiny_span(t, c, SPAN_COPY, "Memcpy HtoD (Pageable -> Device)", 10, 20);
    tiny_span(t, c, SPAN_COPY, "Memcpy HtoD (Pinned -> Device)", 40, 3);
    tiny_span(t, c, SPAN_MEMSET, "Memset (Device)", 50, 2);
    tiny_seal(t);
    struct result r = tiny_run(t, "copies", NULL, NULL);
    assert_int_equal(r.nrows, 3); /* by time: pageable, pinned, memset */
    assert_string_equal(tiny_cell(&r, 0, "kind")->s, "h2d");
    assert_true(tiny_cell(&r, 0, "pageable")->i);
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i, 20 * US);
    assert_int_equal(tiny_cell(&r, 0, "exposed_us")->i, 10 * US);
    assert_true(tiny_cell(&r, 0, "bytes")->null);
    assert_true(tiny_cell(&r, 0, "gb_per_s")->null);
    assert_false(tiny_cell(&r, 1, "pageable")->i);
    assert_int_equal(tiny_cell(&r, 1, "exposed_us")->i, 3 * US);
    assert_string_equal(tiny_cell(&r, 2, "kind")->s, "memset");
    result_free(&r);
    trace_free(t);
}

/* XLA's halves are one transfer; a start whose done was not recorded, or is in
 * no step that counts, is one by itself. */
static void halves_without_the_other(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t a = tiny_stream(t, 0, 7);
    tiny_span(t, a, SPAN_COPY, "copy-start.1", 0, 2);
    tiny_span(t, a, SPAN_COPY, "copy-done.1", 10, 2); /* 12 */
    tiny_span(t, a, SPAN_COPY, "copy-start.2", 20, 3);
    tiny_span(t, a, SPAN_COPY, "copy-start.2", 30, 4); /* began again */
    tiny_span(t, a, SPAN_COPY, "copy-start.3", 40, 5); /* to the end */
    tiny_span(t, a, SPAN_COPY, "copy-done.4", 50, 6);
    tiny_seal(t);
    struct result r = tiny_run(t, "copies", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_cell(&r, 0, "calls")->i, 5);
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i,
                     (12 + 3 + 4 + 5 + 6) * US);
    result_free(&r);
    trace_free(t);
}

static void spelled(const char *name, const char *details, enum copy_kind kind,
                    int pageable, int64_t bytes) {
    struct copy_args c = copy_args_from(bytes_of(name), bytes_of(details));
    assert_int_equal(c.kind, kind);
    assert_int_equal(c.pageable, pageable);
    assert_int_equal(c.bytes, bytes);
}

static void every_writers_spelling(void **state) {
    (void)state;
    spelled("Memcpy HtoD (Pinned -> Device)", "", COPY_H2D, 0, -1);
    spelled("Memcpy DtoH (Device -> Pageable)", "", COPY_D2H, 1, -1);
    spelled("Memcpy DtoD (Device -> Device)", "", COPY_D2D, 0, -1);
    spelled("Memcpy PtoP (Device -> Device)", "", COPY_P2P, 0, -1);
    spelled("MemcpyH2D",
            "kind_src:pageable kind_dst:device size:4096 dest:0 "
            "async:1",
            COPY_H2D, 1, 4096);
    spelled("MemcpyD2H", "kind_src:device kind_dst:pinned size:16 dest:0",
            COPY_D2H, 0, 16);
    spelled("MemcpyH2D", "", COPY_H2D, -1, -1);
    spelled("CopyDeviceToHost", "", COPY_D2H, -1, -1);
    spelled("Memset", "kind:device num_bytes:64", COPY_MEMSET, 0, 64);
    spelled("upload h2d", "", COPY_H2D, -1, -1);
    spelled("", "size:x size:99999999999999999999", COPY_OTHER, -1, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace),
        cmocka_unit_test(exposed_is_what_no_kernel_covers),
        cmocka_unit_test(halves_without_the_other),
        cmocka_unit_test(every_writers_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
