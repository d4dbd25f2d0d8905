/* SPDX-License-Identifier: Apache-2.0
 * The critical path: what is on it, and that its parts sum to the step. */
#include "unit/tiny.h"

static int64_t sum(const struct result *r) {
    int64_t all = 0;
    for (size_t i = 0; i < r->nrows; i++)
        all += tiny_cell(r, i, "on_path_us")->i;
    return all;
}

/* Returns the time on the path of that kind and name, in us; 0 if it is not on
 * it. */
static int64_t on_path(const struct result *r, const char *kind,
                       const char *name) {
    for (size_t i = 0; i < r->nrows; i++)
        if (strcmp(tiny_cell(r, i, "kind")->s, kind) == 0 &&
            strcmp(tiny_cell(r, i, "name")->s, name) == 0)
            return tiny_cell(r, i, "on_path_us")->i / US;
    return 0;
}

static uint32_t step(struct trace *t, int64_t dur) {
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_ANNOTATION, "ProfilerStep#1", 0, dur);
    return th;
}

static void launch(struct trace *t, uint32_t th, uint32_t stream,
                   const char *kernel, int64_t call, int64_t ts, int64_t dur) {
    uint64_t id = (uint64_t)call + 1;
    trace_link_host(t, 0, id,
                    tiny_span(t, th, SPAN_API, "cudaLaunchKernel", call, 1));
    trace_link_device(t, 0, id,
                      tiny_span(t, stream, SPAN_KERNEL, kernel, ts, dur));
}

/* The device is behind: the path is launch, then kernels back to back. */
static void device_bound(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 30), gpu = tiny_stream(t, 0, 7);
    tiny_span(t, th, SPAN_OP, "aten::mm", 8, 4);
    launch(t, th, gpu, "gemm", 10, 20, 100);
    tiny_span(t, th, SPAN_OP, "aten::add", 13, 3);
    launch(t, th, gpu, "add", 14, 121, 50);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), t->steps[0].dur);
    assert_int_equal(on_path(&r, "compute", "aten::mm"), 100);
    assert_int_equal(on_path(&r, "compute", "aten::add"), 50);
    assert_int_equal(on_path(&r, "gap", "aten::add"), 1);
    assert_int_equal(on_path(&r, "launch", "cudaLaunchKernel"), 10);
    assert_int_equal(on_path(&r, "host", "aten::mm"), 2);
    assert_int_equal(on_path(&r, "host", "aten::add"), 0);
    result_free(&r);
    trace_free(t);
}

/* The program waits for the device in the middle: the path goes over it. */
static void over_a_sync(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 200), gpu = tiny_stream(t, 0, 7);
    launch(t, th, gpu, "k", 10, 20, 80);
    tiny_span(t, th, SPAN_API, "cudaStreamSynchronize", 12, 93);
    tiny_span(t, th, SPAN_OP, "after", 110, 90);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), 200 * US);
    assert_int_equal(on_path(&r, "host", "after"), 90);
    assert_int_equal(on_path(&r, "sync", "cudaStreamSynchronize"), 5);
    assert_int_equal(on_path(&r, "compute", "k"), 80);
    assert_int_equal(on_path(&r, "launch", "cudaLaunchKernel"), 10);
    assert_int_equal(on_path(&r, "python", "(Python, nothing recorded)"), 15);
    result_free(&r);
    trace_free(t);
}

/* A kernel that nobody waits for is not on the path. */
static void hidden_work_is_not_on_it(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 100), gpu = tiny_stream(t, 0, 7);
    launch(t, th, gpu, "k", 10, 20, 30);
    tiny_span(t, th, SPAN_OP, "long", 12, 88);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), 100 * US);
    assert_int_equal(on_path(&r, "compute", "k"), 0);
    assert_int_equal(on_path(&r, "host", "long"), 88);
    result_free(&r);
    trace_free(t);
}

/* A thread launches while another is in a wait that leads the line, for work
 * that comes later: the path goes on over what the program did before. (It
 * went round in circles there, and all before was "nothing recorded".) */
static void into_the_middle_of_a_wait(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 200), other = tiny_thread(t, 2);
    uint32_t a = tiny_stream(t, 0, 7), b = tiny_stream(t, 0, 8);
    tiny_span(t, th, SPAN_OP, "before", 0, 40);
    tiny_span(t, th, SPAN_API, "cudaStreamSynchronize", 40, 120);
    launch(t, other, b, "late", 100, 110, 40);
    launch(t, other, a, "last", 60, 80, 119);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), 200 * US);
    assert_int_equal(on_path(&r, "host", "before"), 40);
    result_free(&r);
    trace_free(t);
}

/* Work of no length and calls of no length end the walk all the same. */
static void walk_ends(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 10), gpu = tiny_stream(t, 0, 7);
    for (int i = 0; i < 4; i++) {
        uint64_t id = (uint64_t)i + 1;
        trace_link_host(t, 0, id,
                        tiny_span(t, th, SPAN_API, "cudaMemcpyAsync", 5, 0));
        trace_link_device(t, 0, id,
                          tiny_span(t, gpu, SPAN_COPY, "Memcpy DtoH", 5, 0));
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), 10 * US);
    result_free(&r);
    trace_free(t);
}

/* An op that its source gave no name is on the path like any other. */
static void op_without_a_name(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 100);
    tiny_span(t, th, SPAN_OP, "", 10, 90);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), 100 * US);
    assert_int_equal(on_path(&r, "host", ""), 90);
    result_free(&r);
    trace_free(t);
}

/* Another thread launches while the step's thread waits: the path goes over
 * the work to its launch, and on from there. */
static void launched_during_a_wait(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = step(t, 100), gpu = tiny_stream(t, 0, 7);
    tiny_span(t, th, SPAN_OP, "before", 0, 20);
    tiny_span(t, th, SPAN_API, "cudaDeviceSynchronize", 20, 80);
    launch(t, tiny_thread(t, 2), gpu, "k", 50, 60, 38);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), 100 * US);
    assert_int_equal(on_path(&r, "compute", "k"), 38);
    assert_int_equal(on_path(&r, "launch", "cudaLaunchKernel"), 10);
    /* 2 us after the work, 30 before it was launched */
    assert_int_equal(on_path(&r, "sync", "cudaDeviceSynchronize"), 32);
    assert_int_equal(on_path(&r, "host", "before"), 20);
    result_free(&r);
    trace_free(t);
}

static void nothing_to_walk(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_int_equal(r.nremarks, 1);
    result_free(&r);
    trace_free(t);
}

/* A profile of the device alone has a path, too. */
static void device_only(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t gpu = tiny_stream(t, 0, 7);
    tiny_span(t, gpu, SPAN_KERNEL, "a", 0, 40);
    tiny_span(t, gpu, SPAN_KERNEL, "b", 50, 50);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), t->steps[0].dur);
    assert_int_equal(on_path(&r, "compute", "b"), 50);
    result_free(&r);
    trace_free(t);
}

/* What a framework's machinery does is done for an op, or for a region. */
static void machinery_has_the_name_of_its_op(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = step(t, 100);
    tiny_span(t, th, SPAN_RUNTIME, "EagerExecute", 0, 40);
    tiny_span(t, th, SPAN_OP, "Conv2D", 10, 30);
    tiny_span(t, th, SPAN_RUNTIME, "KernelAndDeviceFunc::Run", 15, 20);
    tiny_span(t, th, SPAN_ANNOTATION, "train_fn", 50, 50);
    tiny_span(t, th, SPAN_RUNTIME, "FunctionRun", 60, 30);
    tiny_seal(t);
    struct result r = tiny_run(t, "critical", NULL, NULL);
    assert_int_equal(sum(&r), t->steps[0].dur);
    assert_int_equal(on_path(&r, "host", "Conv2D"), 30);
    assert_int_equal(on_path(&r, "host", "train_fn"), 30);
    assert_int_equal(on_path(&r, "host", "EagerExecute"), 10);
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_bound),
        cmocka_unit_test(over_a_sync),
        cmocka_unit_test(hidden_work_is_not_on_it),
        cmocka_unit_test(into_the_middle_of_a_wait),
        cmocka_unit_test(walk_ends),
        cmocka_unit_test(op_without_a_name),
        cmocka_unit_test(launched_during_a_wait),
        cmocka_unit_test(nothing_to_walk),
        cmocka_unit_test(device_only),
        cmocka_unit_test(machinery_has_the_name_of_its_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
