/* SPDX-License-Identifier: Apache-2.0
 * The rules of hints one by one, on steps so small that what each saves is
 * worked out by hand. What recording cost is left out (the source's format is
 * one that nobody knows), so that a replay is plain sums:
 *
 *   a launch  its work starts at the end of its call, 1.2 us after the work
 *             before it on the stream
 *   a wait    ends after the work, and takes what it took after that */
#include "unit/tiny.h"

#include "unit/job.h"
#include <math.h>

/* A file under way, in the manner of torch. Times in us from the step's
 * start. */
struct script {
    char *s;
    size_t n;
    int id;
    int64_t at; /* the step's start */
    bool grad;  /* as the test likes */
};

enum { SCRIPT_TEXT = 1 << 17, STEPS = 4 };

static void put(struct script *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct script *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(p->s + p->n, SCRIPT_TEXT - p->n, fmt, ap);
    va_end(ap);
    assert_true(n >= 0 && p->n + (size_t)n < SCRIPT_TEXT);
    p->n += (size_t)n;
}

static void span(struct script *p, const char *cat, const char *name, double ts,
                 double dur, const char *args) {
    put(p,
        ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":9,\"tid\":9,"
        "\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}",
        cat, name, (double)p->at + ts, dur, args);
}

static void op(struct script *p, const char *name, double ts, double dur) {
    span(p, "cpu_op", name, ts, dur, "");
}

static void call(struct script *p, const char *name, double ts, double dur) {
    span(p, "cuda_runtime", name, ts, dur, "");
}

/* Adds a call that fills [ts, ts + dur), and its device work. */
static void work(struct script *p, const char *cat, const char *name, double ts,
                 double dur, int stream, double start, double takes,
                 const char *args) {
    char link[40];
    snprintf(link, sizeof link, "\"correlation\":%d", ++p->id);
    span(p, "cuda_runtime",
         strcmp(cat, "kernel") == 0 ? "cudaLaunchKernel" : "cudaMemcpyAsync",
         ts, dur, link);
    put(p,
        ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":0,"
        "\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"device\":0,"
        "\"stream\":%d,%s%s%s}}",
        cat, name, stream, (double)p->at + start, takes, stream, link,
        *args ? "," : "", args);
}

/* Adds an op of 10 us that is all one launch. */
static void kernel(struct script *p, const char *name, const char *kernel_name,
                   double ts, double start, double takes, const char *args) {
    op(p, name, ts, 10);
    work(p, "kernel", kernel_name, ts, 10, 7, start, takes, args);
}

static struct script begin(const char *device) {
    struct script p = {.s = calloc(1, SCRIPT_TEXT + 64)};
    assert_non_null(p.s);
    put(&p,
        "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,"
        "\"name\":\"%s\",\"numSms\":132}],\"traceEvents\":[{}",
        device);
    return p;
}

static struct trace *import(struct script *p) {
    struct trace *t = trace_new();
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    assert_non_null(t);
    put(p, "]}");
    if (import_bytes((struct bytes){(const uint8_t *)p->s, p->n}, "mem", t, &o,
                     &e) != 0)
        fail_msg("%s", e.text);
    tiny_seal(t);
    t->sources[0].format = format_named("chrome");
    return t;
}

/* Returns the hints of a few steps of that length, each written by fill. */
static struct result study(void (*fill)(struct script *), int64_t length,
                           bool grad, const char *peak) {
    struct script p = begin("GPU");
    p.grad = grad;
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        p.at = i * length;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        span(&p, "user_annotation", name, 0, (double)length, "");
        fill(&p);
    }
    struct trace *t = import(&p);
    struct result r = tiny_run(t, "hints", peak ? "device-peak" : NULL, peak);
    trace_free(t);
    free(p.s);
    return r;
}

/* Checks that row k is that hint and saves so much a step. */
static void expect_row(const struct result *r, size_t k, const char *id,
                       double us) {
    if (k >= r->nrows) fail_msg("no hint %zu, want %s", k, id);
    assert_string_equal(tiny_cell(r, k, "id")->s, id);
    double got = (double)tiny_cell(r, k, "save_us")->i / US;
    if (fabs(got - us) > 0.001) fail_msg("%s saves %f, not %f", id, got, us);
}

/* Checks that it is the only hint. */
static void expect(struct result r, const char *id, double us) {
    expect_row(&r, 0, id, us);
    assert_int_equal(r.nrows, 1);
    for (size_t c = 0; c < r.ncols; c++)
        assert_false(result_cell(&r, 0, c).null);
    result_free(&r);
}

static bool evidence_has(const struct result *r, const char *text) {
    return strstr(tiny_cell(r, 0, "evidence")->s, text) != NULL;
}

/* The program waits for a large copy, though its memory is pinned. */
static void fill_blocking(struct script *p) {
    kernel(p, "aten::mm", "k", 0, 14, 1000, "");
    op(p, "aten::copy_", 10, 2020);
    work(p, "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 10, 10, 7, 1016,
         1000, "\"bytes\":64000000");
    call(p, "cudaStreamSynchronize", 20, 2010);
    op(p, "aten::on_the_cpu", 2030, 2000);
    kernel(p, "aten::mm", "k", 4030, 4044, 1000, "");
    call(p, "cudaDeviceSynchronize", 4040, 1010);
}

static void copy_blocking(void **state) {
    (void)state;
    /* now: kernel to 1010, copy 1011.2 to 2011.2, 14 after it, 2000, 10, kernel
     * of 1000, 6: 5041.2. then: 10 + 10 + 10 + 2000 + 10, 1000, 6: 3046 */
    expect(study(fill_blocking, 5050, false, NULL), "copy-blocking", 1995.2);
}

/* x.abs().max().item(), then work of the host, then more for the device. */
static void fill_sync(struct script *p) {
    kernel(p, "aten::mm", "k", 0, 14, 1000, "");
    kernel(p, "aten::abs", "k", 10, 1015, 100, "");
    kernel(p, "aten::max", "k", 20, 1116, 100, "");
    op(p, "aten::item", 30, 1220);
    work(p, "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 30, 10, 7, 1217, 2,
         "\"bytes\":4");
    call(p, "cudaStreamSynchronize", 40, 1210);
    op(p, "aten::on_the_cpu", 1250, 2000);
    kernel(p, "aten::mm", "k", 3250, 3264, 1000, "");
    call(p, "cudaDeviceSynchronize", 3260, 1010);
    if (!p->grad) return;
    for (int i = 0; i < 2; i++)
        put(p,
            ",{\"ph\":\"%c\",\"id\":%d,\"cat\":\"fwdbwd\",\"name\":"
            "\"fwdbwd\",\"pid\":9,\"tid\":9,\"ts\":%.3f,\"bp\":\"e\"}",
            i ? 'f' : 's', p->id, (double)p->at + (i ? 3250 : 20));
}

static void host_sync_with_feeders(void **state) {
    (void)state;
    /* now: kernels to 1010, 1111.2, 1212.4, copy to 1215.6, 31 after it, 2000,
     * 10, 1000, 6: 4262.6. then: 10 + 2000 + 10 + 1000; nobody waits at the
     * end: 3020 */
    struct result r = study(fill_sync, 4270, false, NULL);
    assert_true(evidence_has(&r, "2 waits in 1 step,"));
    assert_true(evidence_has(&r, "aten::item"));
    expect(r, "host-sync", 1242.6);
    /* a gradient flows through max: it and abs are wanted, and cost the host
     * their launches */
    expect(study(fill_sync, 4270, true, NULL), "host-sync", 1222.6);
}

static void fill_fallback(struct script *p) {
    kernel(p, "aten::mm", "k", 0, 14, 1000, "");
    op(p, "aten::to", 10, 1030);
    work(p, "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 10, 1030, 7, 1016,
         14, "\"bytes\":1000");
    op(p, "aten::unique", 1040, 1000);
    op(p, "aten::to", 2040, 20);
    work(p, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 2040, 20, 7, 2044,
         10, "\"bytes\":1000");
    kernel(p, "aten::mm", "k", 2060, 2074, 500, "");
    call(p, "cudaDeviceSynchronize", 2070, 510);
}

static void cpu_fallback(void **state) {
    (void)state;
    /* now: kernel to 1010, copy to 1025.2, 10 after it, 1000, copy of 10, 6
     * after it, 10, 500, 6: 2567.2. then: kernel to 1010, 1.2, 500, 6 */
    struct result r = study(fill_fallback, 2580, false, NULL);
    assert_true(evidence_has(&r, "1 time in 1 step, 1.00 ms"));
    assert_true(evidence_has(&r, "aten::unique"));
    expect(r, "cpu-fallback", 1050);
}

static void fill_malloc(struct script *p) {
    kernel(p, "aten::mm", "k", 0, 14, 100, "");
    op(p, "aten::empty", 10, 500);
    call(p, "cudaMalloc", 10, 500);
    kernel(p, "aten::mm", "k", 510, 524, 100, "");
    call(p, "cudaDeviceSynchronize", 520, 110);
}

static void memory_pressure(void **state) {
    (void)state;
    /* now: 10, 500, 10, 100, 6. then: kernels to 110 and 211.2, 6 */
    struct result r = study(fill_malloc, 630, false, NULL);
    assert_true(evidence_has(&r, "1 call in 1 step"));
    expect(r, "memory-pressure", 408.8);
}

/* The kernels of a step: two in a row and the end. */
static void two_kernels(struct script *p, const char *first, const char *args,
                        const char *more) {
    kernel(p, "aten::a", first, 0, 14, 1000, args);
    kernel(p, "aten::b", "k", 10, 1016, 1000, more);
    call(p, "cudaDeviceSynchronize", 20, 2002);
}

static void fill_small(struct script *p) {
    two_kernels(p, "k", "\"grid\":[10,1,1]", "\"grid\":[1000,1,1]");
}

static void fill_thin(struct script *p) {
    two_kernels(p, "k", "\"grid\":[1000,1,1],\"est. achieved occupancy %\":5",
                "\"grid\":[1000,1,1],\"est. achieved occupancy %\":50");
}

static void fill_layout(struct script *p) {
    two_kernels(p, "void cudnn::nchwToNhwcKernel<float>()", "", "");
}

static void device_not_full(void **state) {
    (void)state;
    /* now: 10, 1000, 1.2, 1000, 6. then: half of the first kernel */
    expect(study(fill_small, 2022, false, NULL), "small-batch", 500);
    struct result r = study(fill_thin, 2022, false, NULL);
    assert_true(evidence_has(&r, "occupancy 5 %"));
    assert_null(strstr(tiny_cell(&r, 0, "evidence")->s, "registers"));
    expect(r, "low-occupancy", 500);
    /* then: without the first, the second starts after its own launch at 20 */
    expect(study(fill_layout, 2022, false, NULL), "slow-op", 991.2);
}

static void fill_pointwise(struct script *p) {
    const char *name = "void at::native::vectorized_elementwise_kernel<4>()";
    for (int i = 0; i < 3; i++)
        kernel(p, "aten::mul", name, i * 10, 14 + 1002 * i, 1000, "");
    call(p, "cudaDeviceSynchronize", 30, 2994);
}

static void fill_two_pointwise(struct script *p) {
    const char *name = "void at::native::vectorized_elementwise_kernel<4>()";
    two_kernels(p, name, "", "");
}

static void unfused_pointwise(void **state) {
    (void)state;
    /* now: 10, three of 1000 with two gaps, 6. then: one of 1000, 6 */
    expect(study(fill_pointwise, 3024, false, NULL), "unfused-pointwise",
           2002.4);
    struct result r = study(fill_two_pointwise, 2022, false, NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

static void fill_exposed(struct script *p) {
    kernel(p, "aten::mm", "k", 0, 14, 1000, "");
    op(p, "c10d::allreduce_", 10, 10);
    work(p, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 10, 10, 20,
         1016, 1000, "");
    kernel(p, "aten::mm", "k", 20, 2018, 500, "");
    call(p, "cudaDeviceSynchronize", 30, 2500);
}

static void comm_exposed(void **state) {
    (void)state;
    /* now: 10, 1000, exchange of 1000, kernel of 500, 12: 2522. then: 10, 1000,
     * 1.2, 500, 12, the exchange beside it */
    expect(study(fill_exposed, 2530, false, NULL), "comm-exposed", 998.8);
}

static void fill_recompile(struct script *p) {
    char region[48];
    snprintf(region, sizeof region, "Torch-Compiled Region: 0/%d", p->id + 1);
    kernel(p, "aten::mm", "k", 0, 14, 100, "");
    op(p, "_compile.compile_inner (dynamo_timed)", 10, 500);
    kernel(p, region, "k", 510, 524, 100, "");
    call(p, "cudaDeviceSynchronize", 520, 110);
}

static void recompile(void **state) {
    (void)state;
    /* as with memory that is asked for */
    struct result r = study(fill_recompile, 630, false, NULL);
    assert_true(evidence_has(&r, "4 compilations"));
    expect(r, "recompile", 408.8);
}

static void fill_fp32(struct script *p) {
    kernel(p, "aten::mm",
           "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize128x128x8_stage3_"
           "warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
           0, 14, 7000, "");
    call(p, "cudaDeviceSynchronize", 10, 7010);
}

static void peaks_by_hand(void **state) {
    (void)state;
    struct result r = study(fill_fp32, 7020, false, NULL);
    assert_int_equal(r.nrows, 0); /* nobody knows what a "GPU" can do */
    result_free(&r);
    /* 70 % of ten times: 7000 become 1000 */
    expect(study(fill_fp32, 7020, false, "fp32=10e12,tf32=100e12"),
           "low-precision-off", 6000);
    struct ops_err e = {0};
    struct trace *t = tiny_new(true, false);
    tiny_launch(t, tiny_thread(t, 1), tiny_stream(t, 0, 7), "k", 0, 10);
    tiny_seal(t);
    assert_int_equal(tiny_try(t, "hints", "device-peak", "fp99=1", &r, &e),
                     OPS_EUSAGE);
    trace_free(t);
}

/* Steps of 25 ops of TensorFlow, so many us apart, each called from Python. */
static struct result eager(int64_t apart) {
    struct trace *t = tiny_new(false, false);
    t->sources[0].format = format_named("stepstats");
    uint32_t th = tiny_thread(t, 1);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, i * 25 * apart, 25 * apart);
        for (int k = 0; k < 25; k++) {
            struct span_in s = {.ts = (i * 25 + k) * apart * US,
                                .dur = 10 * US,
                                .track = th,
                                .name = trace_str(t, bytes_of("MatMul")),
                                .kind = SPAN_OP,
                                .flags = SPAN_EAGER};
            trace_span(t, &s);
        }
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

static void eager_ops(void **state) {
    (void)state;
    struct result r = eager(40);
    assert_true(evidence_has(&r, "25 eager ops"));
    expect(r, "launch-bound", 750); /* 25 x 10 of 1000 stay */
    r = eager(4000);                /* calling an op takes no milliseconds */
    for (size_t i = 0; i < r.nrows; i++)
        assert_string_not_equal(result_cell(&r, i, 0).s, "launch-bound");
    result_free(&r);
}

/* Ten steps in which that much is kept on a device of 100,000 pages. */
static struct result leak(int64_t bytes, int64_t level) {
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1);
    uint32_t gpu = trace_device(t, 0, DEVICE_GPU, 0);
    uint32_t a = trace_allocator(t, 0, bytes_of("GPU 0"), gpu);
    t->devices[gpu].memory_bytes = 4096 * INT64_C(100000);
    for (int i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, i * 100, 99);
        tiny_span(t, th, SPAN_OP, "aten::mm", i * 100 + 10, 50);
        level += bytes;
        tiny_mem(t, a, th, i * 100 + 20, (uint64_t)i + 1, bytes, level);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

/* A leak counts when 100,000 steps of it fill the device. */
static void memory_leak(void **state) {
    (void)state;
    struct result r = leak(4096, 1 << 20);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    r = leak(4608, 1 << 20);
    assert_non_null(strstr(tiny_cell(&r, 0, "title")->s, "4.50 KiB"));
    expect(r, "memory-leak", 0);
}

/* Of 390 MiB the allocator holds 240 and uses half. */
static void memory_fragmentation(void **state) {
    (void)state;
    struct result r = leak(512, 120 << 20);
    assert_true(evidence_has(&r, "50 % is in pieces"));
    expect(r, "memory-fragmentation", 0);
    r = leak(512, 80 << 20); /* 160 are less than half of the device */
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

/* Two ranks; the second comes 300 us late to every exchange. */
static void write_rank(struct job *j, int rank) {
    job_rank(j, rank, 2, true, NULL);
    for (int s = 0; s < STEPS; s++) {
        int64_t at = 430 * s, from = rank == 0 ? 100 : 400;
        job_step(j, s, at, 430);
        job_kernel(j, "gemm", 0, 7, at + 10, 50, NULL);
        job_nccl(j, at + from, 420 - from, s, "0");
        job_span(j, "cuda_runtime", "cudaStreamSynchronize", 1, at + from - 3,
                 425 - (from - 3), NULL);
    }
    job_end(j);
}

static void straggler(void **state) {
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct job j = job_new();
        write_rank(&j, swap);
        write_rank(&j, !swap);
        tiny_seal(j.t);
        for (int i = 0; i < 2; i++)
            j.t->sources[i].format = format_named("chrome");
        struct result r = tiny_run(j.t, "hints", NULL, NULL);
        assert_true(job_says(&r, "of 2 ranks rank 0 was studied, which waits"));
        assert_non_null(
            strstr(tiny_cell(&r, 0, "title")->s, "wait for rank 1, 300.0"));
        /* its exchange of 320 becomes one of 20 */
        expect(r, "straggler", 300);
        /* alone, the rank that waits shows no straggler */
        r = tiny_run(j.t, "hints", "rank", "0");
        assert_false(job_says(&r, "of 2 ranks"));
        /* 320 of exchange stay, beside 97 + 5 + 5 */
        expect(r, "comm-exposed", 107);
        job_free(&j);
    }
}

/* Work and calls of six days each, over each other on many streams. */
static void hostile_times(void **state) {
    (void)state;
    const double days = 570000e6;
    struct script p = begin("NVIDIA H200");
    for (int i = 0; i < 3; i++) {
        char name[32];
        p.at = i * 1000;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        span(&p, "user_annotation", name, 0, days, "");
        for (int k = 0; k < 40; k++) {
            op(&p, k % 3 ? "aten::item" : "", k, k % 2 ? days : -1);
            work(&p, "kernel", k % 2 ? "vectorized_elementwise_kernel" : "", k,
                 k % 5 ? 0.5 : days, k % 4, k * 2.5, days, "");
            work(&p, "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", k,
                 k % 7 ? days : 0, k % 4, -days, days,
                 "\"bytes\":9000000000000000000");
            call(&p, "cudaMalloc", k, days);
        }
    }
    struct trace *t = import(&p);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    double sum = 0;
    for (size_t i = 0; i < r.nrows; i++) {
        assert_true(tiny_cell(&r, i, "save_us")->i >= 0);
        sum += tiny_cell(&r, i, "save_pct")->f;
    }
    assert_true(sum <= 100.0001);
    result_free(&r);
    r = tiny_run(t, "critical", NULL, NULL);
    int64_t path = 0, step = r.nrows ? tiny_cell(&r, 0, "step")->i : 0;
    for (size_t i = 0; i < r.nrows; i++)
        path += tiny_cell(&r, i, "on_path_us")->i;
    assert_int_equal(path, t->steps[step].dur);
    result_free(&r);
    trace_free(t);
    free(p.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_blocking),
        cmocka_unit_test(host_sync_with_feeders),
        cmocka_unit_test(cpu_fallback),
        cmocka_unit_test(memory_pressure),
        cmocka_unit_test(device_not_full),
        cmocka_unit_test(unfused_pointwise),
        cmocka_unit_test(comm_exposed),
        cmocka_unit_test(recompile),
        cmocka_unit_test(peaks_by_hand),
        cmocka_unit_test(eager_ops),
        cmocka_unit_test(memory_leak),
        cmocka_unit_test(memory_fragmentation),
        cmocka_unit_test(straggler),
        cmocka_unit_test(hostile_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
