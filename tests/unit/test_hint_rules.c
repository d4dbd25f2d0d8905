/* SPDX-License-Identifier: Apache-2.0
 * The rules of hints one by one, on steps so small that what each saves is
 * worked out by hand. What recording cost is left out (the source's format is
 * one that nobody knows), so that a replay is plain sums:
 *
 *   a launch  its work starts at the end of its call, 1.2 us after the work
 *             before it on the stream
 *   a wait    ends after the work, and takes what it took after that */
#include "unit/hint_script.h"

#include "analyze/hints/hint.h"
#include "base/array.h"
#include "unit/job.h"

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

/* Experts in a loop: a comparison, nonzero (which waits for the size of its
 * result), the expert's product. Then as many rounds of gradients. */
static int experts;
static bool other_ops; /* rounds that differ */

static void fill_experts(struct script *p) {
    double at = 0;
    kernel(p, "aten::linear", "gemm", at, 14, 20, "");
    at += 40;
    for (int i = 0; i < experts; i++, at += 60) {
        kernel(p, "aten::eq", "elementwise", at, at + 14, 2, "");
        op(p, "aten::nonzero", at + 10, 30);
        work(p, "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", at + 11, 5, 7,
             at + 18, 2, "\"bytes\":8");
        call(p, "cudaStreamSynchronize", at + 17, 10);
        kernel(p, other_ops && i % 2 ? "aten::addmm" : "aten::mm", "gemm",
               at + 42, at + 53, 4, "");
    }
    for (int i = 0; i < experts; i++, at += 20)
        kernel(p, "autograd::engine::evaluate_function: IndexBackward0",
               "scatter", at, at + 12, 4, "");
    call(p, "cudaDeviceSynchronize", at, 30);
}

static void loops_over_shapes_of_the_data(void **state) {
    (void)state;
    experts = 8;
    other_ops = false;
    struct result r = study(fill_experts, 40 + 8 * 80 + 40, false, NULL);
    assert_string_equal(tiny_cell(&r, 0, "id")->s, "host-sync");
    assert_string_equal(tiny_cell(&r, 0, "confidence")->s, "assumed");
    assert_true(evidence_has(&r, "aten::nonzero"));
    assert_true(evidence_has(&r, "8 waits in 1 step")); /* each once */
    /* seven of eight rounds go, forward and backward */
    double us = (double)tiny_cell(&r, 0, "save_us")->i / US;
    assert_true(us > 7 * 80 * 0.85 && us < 8 * 80);
    result_free(&r);
    /* no loop: where rounds differ only the waiting could go */
    other_ops = true;
    experts = 3;
    r = study(fill_experts, 40 + 3 * 80 + 40, false, NULL);
    for (size_t i = 0; i < r.nrows; i++)
        assert_null(
            strstr(tiny_cell(&r, i, "evidence")->s, "rounds are alike"));
    result_free(&r);
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
    expect(study(fill_layout, 2022, false, NULL), "slow-layout", 991.2);
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

/* The last step alone compiles. */
static void fill_compiles_once(struct script *p) {
    if (p->at == (STEPS - 1) * 2000) fill_recompile(p);
    else kernel(p, "aten::mm", "k", 0, 14, 100, "");
    op(p, "aten::add", 1000, 900);
}

/* What one step compiles is told of the mean step, to which its part is added:
 * it is more than the usual step takes. */
static void compiled_in_one_step(void **state) {
    (void)state;
    struct result r = study(fill_compiles_once, 2000, false, NULL);
    expect_row(&r, 0, "recompile", 125);
    assert_int_equal(tiny_us(&r, "recompile", "step_us"), 2125);
    bool told = false;
    for (size_t i = 0; i < r.nremarks; i++)
        told |= strstr(r.remarks[i], "what other steps compile") != NULL;
    assert_true(told);
    result_free(&r);
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
    /* 409600000 less a peak of 1048576 + 46080, by 4608 */
    assert_non_null(
        strstr(tiny_cell(&r, 0, "title")->s, "full after 88651 more"));
    assert_true(evidence_has(&r, "saves no time, but ends the program"));
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

#define X(name) extern const struct hint_rule hint_##name;
#include "analyze/hints/hints.def"
#undef X

/* What a rule says to change is code of the framework at hand, or of none. */
static void advice_is_of_the_framework(void **state) {
    (void)state;
    static const struct hint_rule *const rules[] = {
#define X(name) &hint_##name,
#include "analyze/hints/hints.def"
#undef X
    };
    static const char *const words[FRAMEWORKS] = {
        [FW_TORCH] = "torch", [FW_TF] = "tf.", [FW_JAX] = "jax"};
    for (size_t i = 0; i < COUNT(rules); i++)
        for (int at = 0; at < FRAMEWORKS; at++) {
            const char *advice = rules[i]->advice[at];
            if (advice == NULL) advice = rules[i]->advice[FW_OTHER];
            /* threads are of all the pools that a program has */
            if (advice == NULL || strcmp(rules[i]->id, "oversubscribed") == 0)
                continue;
            for (int of = 0; of < FRAMEWORKS; of++)
                if (of != at && words[of] != NULL &&
                    strcasestr(advice, words[of]) != NULL)
                    fail_msg("%s: %s", rules[i]->id, advice);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_blocking),
        cmocka_unit_test(loops_over_shapes_of_the_data),
        cmocka_unit_test(host_sync_with_feeders),
        cmocka_unit_test(cpu_fallback),
        cmocka_unit_test(memory_pressure),
        cmocka_unit_test(device_not_full),
        cmocka_unit_test(unfused_pointwise),
        cmocka_unit_test(comm_exposed),
        cmocka_unit_test(recompile),
        cmocka_unit_test(compiled_in_one_step),
        cmocka_unit_test(peaks_by_hand),
        cmocka_unit_test(memory_leak),
        cmocka_unit_test(memory_fragmentation),
        cmocka_unit_test(straggler),
        cmocka_unit_test(hostile_times),
        cmocka_unit_test(advice_is_of_the_framework),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
