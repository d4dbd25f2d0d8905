/* SPDX-License-Identifier: Apache-2.0
 * roofline: rates and roofs by hand, and every kind of trace that has none. */
#include "tiny.h"

#include "feed.h"
#include "import/import.h"
#include <math.h>

extern const struct importer importer_xspace;

static void near(double got, double want) {
    if (fabs(got - want) > 1e-9 * fabs(want))
        fail_msg("%.12g, not %.12g", got, want);
}

static bool remarks(const struct result *r, const char *words) {
    for (size_t i = 0; i < r->nremarks; i++)
        if (strstr(r->remarks[i], words)) return true;
    return false;
}

/* An H200 that ran one product of 1024 cubed and one addition. */
static const char torch[] =
    "{\"schemaVersion\": 1, \"record_shapes\": 1, \"deviceProperties\": [{"
    "\"id\": 0, \"name\": \"NVIDIA H200\", \"numSms\": 132}],"
    "\"traceEvents\": ["
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#0\","
    "\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":100},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,"
    "\"tid\":1,\"ts\":1,\"dur\":10,\"args\":{\"Input Dims\":"
    "[[1024,1024],[1024,1024]],\"Input type\":[\"c10::BFloat16\","
    "\"c10::BFloat16\"]}},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
    "\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1,\"args\":{\"correlation\":1}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nvjet_sm90_tst_128x128\","
    "\"pid\":0,\"tid\":7,\"ts\":20,\"dur\":10,\"args\":{\"correlation\":1,"
    "\"device\":0,\"stream\":7}},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
    "\"pid\":1,\"tid\":1,\"ts\":4,\"dur\":1,\"args\":{\"correlation\":2}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
    "\"void cublasLt::splitKreduce_kernel<32, float>\","
    "\"pid\":0,\"tid\":7,\"ts\":31,\"dur\":2,\"args\":{\"correlation\":2,"
    "\"device\":0,\"stream\":7}},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,"
    "\"tid\":1,\"ts\":12,\"dur\":5,\"args\":{\"Input Dims\":"
    "[[1024,1024],[1024,1024],[]],\"Input type\":[\"float\",\"float\","
    "\"Scalar\"]}},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
    "\"pid\":1,\"tid\":1,\"ts\":13,\"dur\":1,\"args\":{\"correlation\":3}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
    "\"void at::native::vectorized_elementwise_kernel<4, float>\","
    "\"pid\":0,\"tid\":7,\"ts\":40,\"dur\":1,\"args\":{\"correlation\":3,"
    "\"device\":0,\"stream\":7}},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"my::op\",\"pid\":1,"
    "\"tid\":1,\"ts\":60,\"dur\":5},"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
    "\"pid\":1,\"tid\":1,\"ts\":61,\"dur\":1,\"args\":{\"correlation\":4}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"mine\",\"pid\":0,\"tid\":7,"
    "\"ts\":70,\"dur\":3,\"args\":{\"correlation\":4,\"device\":0,"
    "\"stream\":7}}"
    "]}";

static void ops_under_their_roofs(void **state) {
    (void)state;
    struct feed f = feed_text(torch);
    struct result r = tiny_run(f.t, "roofline", NULL, NULL);
    assert_int_equal(r.nrows, 3);
    size_t mm = tiny_row(&r, "aten::mm"), add = tiny_row(&r, "aten::add");
    int64_t flops = INT64_C(2) << 30, bytes = 3 * 2 << 20;
    assert_int_equal(tiny_cell(&r, mm, "flops")->i, flops);
    assert_int_equal(tiny_cell(&r, mm, "bytes")->i, bytes);
    assert_int_equal(tiny_us(&r, "aten::mm", "device_us"), 12);
    assert_string_equal(tiny_cell(&r, mm, "dtype")->s, "bf16");
    near(tiny_cell(&r, mm, "gflops")->f, (double)flops / 12e-6 / 1e9);
    near(tiny_cell(&r, mm, "gb_per_s")->f, (double)bytes / 12e-6 / 1e9);
    near(tiny_cell(&r, mm, "peak_gflops")->f, 989.4e3);
    near(tiny_cell(&r, mm, "ridge")->f, 989.4e12 / 4.8e12);
    assert_string_equal(tiny_cell(&r, mm, "bound")->s, "compute");
    near(tiny_cell(&r, mm, "of_peak_pct")->f,
         100 * (double)flops / 12e-6 / 989.4e12);
    /* 12 MiB in a microsecond is more than the memory gives */
    assert_string_equal(tiny_cell(&r, add, "bound")->s, "memory");
    near(tiny_cell(&r, add, "of_peak_pct")->f,
         100 * 12 * 1048576 / 1e-6 / 4.8e12);
    assert_true(remarks(&r, "1 row is over 100 %"));
    assert_true(remarks(&r, "NVIDIA H200"));
    assert_true(remarks(&r, "MFU"));
    assert_string_equal(tiny_cell(&r, tiny_row(&r, "my::op"), "bound")->s,
                        "unknown");
    assert_true(tiny_null(&r, "my::op", "flops"));
    assert_true(tiny_null(&r, "my::op", "of_peak_pct"));
    assert_true(tiny_misses(&r, "FLOPs of 1 operation "));
    result_free(&r);
    feed_free(&f);
}

static void kernels_take_their_ops_cost(void **state) {
    (void)state;
    struct feed f = feed_text(torch);
    struct result r = tiny_run(f.t, "roofline", "by", "kernel");
    assert_int_equal(r.nrows, 4);
    assert_int_equal(tiny_int(&r, "nvjet_sm90_tst_128x128", "flops"),
                     INT64_C(2) << 30);
    assert_int_equal(tiny_us(&r, "nvjet_sm90_tst_128x128", "device_us"), 10);
    /* a helper of the product: time, no work of its own */
    assert_true(tiny_null(&r, "void cublasLt::splitKreduce_kernel<32, float>",
                          "flops"));
    assert_false(
        tiny_null(&r,
                  "void at::native::vectorized_elementwise_kernel<4, float>",
                  "flops"));
    result_free(&r);
    feed_free(&f);
}

static void peaks_as_given(void **state) {
    (void)state;
    struct feed f = feed_text(torch);
    struct result r = tiny_run(f.t, "roofline", "device-peak",
                               "bf16=1e15,bw=1e12");
    size_t mm = tiny_row(&r, "aten::mm");
    near(tiny_cell(&r, mm, "ridge")->f, 1000);
    assert_string_equal(tiny_cell(&r, mm, "bound")->s, "memory");
    result_free(&r);
    struct ops_err e = {0};
    assert_int_equal(tiny_try(f.t, "roofline", "device-peak", "bf=1", &r, &e),
                     OPS_EUSAGE);
    result_free(&r);
    feed_free(&f);
}

static void traces_with_nothing(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "roofline", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    trace_free(t);
    /* one host span */
    t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "op", 0, 10);
    tiny_seal(t);
    r = tiny_run(t, "roofline", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "shapes"));
    assert_true(remarks(&r, "nothing to put under a roof"));
    result_free(&r);
    trace_free(t);
    /* device only, two devices of no name: time, and no peak */
    t = tiny_new(true, false);
    tiny_span(t, tiny_stream(t, 0, 7), SPAN_KERNEL, "ampere_sgemm_nn", 0, 10);
    tiny_span(t, tiny_stream(t, 1, 7), SPAN_KERNEL, "ampere_sgemm_nn", 5, 10);
    tiny_span(t, tiny_stream(t, 0, 8), SPAN_COPY, "Memcpy HtoD", 5, 10);
    tiny_seal(t);
    r = tiny_run(t, "roofline", "by", "kernel");
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_us(&r, "ampere_sgemm_nn", "device_us"), 20);
    assert_string_equal(tiny_cell(&r, 0, "dtype")->s, "fp32");
    assert_true(tiny_misses(&r, "peak"));
    result_free(&r);
    r = tiny_run(t, "roofline", NULL, NULL);
    assert_true(tiny_has_row(&r, "(no launch recorded)"));
    result_free(&r);
    trace_free(t);
}

/* A loop on a TPU and its body: the time is counted once. */
static void loops_of_a_tpu(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t d = trace_device(t, 0, DEVICE_TPU, 0);
    uint32_t s = trace_track(t, 0, TRACK_STREAM, 0, 1);
    t->devices[d].model = trace_str(t, bytes_of("TPU v4"));
    t->tracks[s].device = d;
    tiny_span(t, s, SPAN_KERNEL, "while.1", 0, 100);
    tiny_span(t, s, SPAN_KERNEL, "fusion.1", 10, 20);
    tiny_seal(t);
    struct result r = tiny_run(t, "roofline", "by", "kernel");
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_us(&r, "fusion.1", "device_us"), 20);
    assert_true(tiny_null(&r, "fusion.1", "flops"));
    result_free(&r);
    trace_free(t);
}

static bool advises(const struct result *r, const char *word) {
    for (size_t i = 0; i < r->nmissing; i++)
        if (r->missing[i].fix && strstr(r->missing[i].fix, word)) return true;
    return false;
}

/* A JAX program has HLO: what its graphs' kernels lack is the way to it. */
static void kernels_of_xlas_graphs(void **state) {
    (void)state;
    for (int graphs = 0; graphs < 2; graphs++) {
        struct trace *t = tiny_new(true, false);
        t->sources[0].format = &importer_xspace.format;
        tiny_span(t, tiny_thread(t, 1), SPAN_RUNTIME, "PjitFunction(f)", 0, 5);
        tiny_span(t, tiny_stream(t, 0, 7), SPAN_KERNEL, "nvjet_1", 0, 10);
        trace_note(t, NOTE_GRAPH_KERNEL_UNPLACED, (uint64_t)graphs);
        tiny_seal(t);
        struct result r = tiny_run(t, "roofline", NULL, NULL);
        assert_true(advises(&r, graphs ? "command_buffer" : "HLO comes"));
        result_free(&r);
        trace_free(t);
    }
}

/* With no device: the product, not the copy of its bias, nor the op around
 * it. */
static void host_ops_count_once(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"schemaVersion\": 1, \"record_shapes\": 1, \"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":1,"
        "\"tid\":1,\"ts\":0,\"dur\":50,\"args\":{\"Input Dims\":"
        "[[4,8],[3,8],[3]],\"Input type\":[\"float\",\"float\",\"float\"]}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::addmm\",\"pid\":1,"
        "\"tid\":1,\"ts\":1,\"dur\":40,\"args\":{\"Input Dims\":"
        "[[3],[4,8],[8,3]],\"Input type\":[\"float\",\"float\",\"float\"]}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::copy_\",\"pid\":1,"
        "\"tid\":1,\"ts\":2,\"dur\":10,\"args\":{\"Input Dims\":"
        "[[4,3],[4,3]],\"Input type\":[\"float\",\"float\"]}}]}");
    struct result r = tiny_run(f.t, "roofline", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_us(&r, "aten::addmm", "device_us"), 40);
    assert_int_equal(tiny_int(&r, "aten::addmm", "flops"), 192);
    assert_string_equal(tiny_cell(&r, 0, "bound")->s, "unknown");
    assert_true(tiny_misses(&r, "peak"));
    result_free(&r);
    r = tiny_run(f.t, "roofline", "device-peak", "fp32=1e12,bw=1e11");
    assert_string_equal(tiny_cell(&r, 0, "bound")->s, "memory");
    result_free(&r);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_under_their_roofs),
        cmocka_unit_test(kernels_take_their_ops_cost),
        cmocka_unit_test(peaks_as_given),
        cmocka_unit_test(traces_with_nothing),
        cmocka_unit_test(loops_of_a_tpu),
        cmocka_unit_test(kernels_of_xlas_graphs),
        cmocka_unit_test(host_ops_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
