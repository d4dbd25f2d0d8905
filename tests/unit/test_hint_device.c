/* SPDX-License-Identifier: Apache-2.0
 * The rules about what runs on the device: forward that runs again,
 * attention that is written out. As in test_hint_rules.c a replay is plain sums. */
#include "unit/hint_script.h"

/* Adds an op of autograd's: a number and the forward thread, 0 in forward. */
static void numbered(struct script *p, const char *name, double ts, double dur,
                     int number, int thread) {
    char args[80];
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":%d",
             number, thread);
    span(p, "cpu_op", name, ts, dur, args);
}

static void memory(struct script *p, double ts, int64_t bytes, int64_t level) {
    put(p,
        ",{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\","
        "\"pid\":9,\"tid\":9,\"s\":\"t\",\"ts\":%.3f,\"args\":{\"Addr\":%lld,"
        "\"Device Id\":0,\"Device Type\":1,\"Bytes\":%lld,"
        "\"Total Allocated\":%lld,\"Total Reserved\":%lld}}",
        (double)p->at + ts, 4096 + llabs(bytes), (long long)bytes,
        (long long)level, (long long)level);
}

/* What a test may change about a step that runs forward again. */
static struct {
    bool hooks;     /* inside a node of its own, not of CheckpointFunction */
    bool numbered;  /* the node's own work is numbered, too */
    int64_t memory; /* what running again allocates; 0: not recorded */
    int64_t frees;  /* what it frees that is older */
} again;

static void fill_again(struct script *p) {
    numbered(p, "aten::linear", 0, 10, 1, 0);
    work(p, "kernel", "k", 0, 10, 7, 14, 1000, "");
    numbered(p, again.hooks ? "GeluBackward0" : "CheckpointFunctionBackward",
             10, 40, 1, 1);
    numbered(p, "aten::linear", 20, 10, 2, 0);
    work(p, "kernel", "k", 20, 10, 7, 1016, 1000, "");
    if (again.memory > 0) {
        if (again.frees > 0) memory(p, 21, -again.frees, 100000);
        memory(p, 22, again.memory, 100000 + again.memory);
        memory(p, 45, -again.memory, 100000);
    }
    if (again.numbered) numbered(p, "aten::mm", 40, 10, 3, 0);
    else op(p, "aten::mm", 40, 10);
    work(p, "kernel", "k", 40, 10, 7, 2018, 1000, "");
    call(p, "cudaDeviceSynchronize", 50, 2972);
}

static struct result study_again(void) {
    return study(fill_again, 3030, false, NULL);
}

static void forward_runs_again(void **state) {
    (void)state;
    for (int hooks = 0; hooks < 2; hooks++) {
        again.hooks = hooks;
        struct result r = study_again();
        /* three kernels of 1000 with gaps of 1.2; then two */
        assert_true(evidence_has(&r, "1 run in 1 step"));
        assert_true(evidence_has(&r, "1.00 ms of the device's"));
        assert_string_equal(tiny_cell(&r, 0, "confidence")->s, "assumed");
        expect(r, "recompute", 1001.2);
    }
    /* a gradient of a gradient */
    again.numbered = true;
    struct result r = study_again();
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    again.numbered = false;
}

/* Where the host holds up the device, what Python does around a checkpoint goes
 * as well: 290 before the block, 10 and 100 around what runs again. What it does
 * before an op that is no checkpoint's stays. */
static void fill_slow_python(struct script *p) {
    op(p, "aten::relu", 0, 10);
    work(p, "kernel", "k", 0, 10, 7, 14, 1, "");
    op(p, "aten::empty", 100, 2);
    op(p, "_NoopSaveInputs", 200, 50);
    numbered(p, "aten::linear", 300, 10, 1, 0);
    work(p, "kernel", "k", 300, 10, 7, 314, 1, "");
    numbered(p, "GeluBackward0", 350, 140, 1, 1);
    numbered(p, "aten::linear", 360, 10, 2, 0);
    work(p, "kernel", "k", 360, 10, 7, 374, 1, "");
    op(p, "aten::mm", 470, 10);
    work(p, "kernel", "k", 470, 10, 7, 484, 1, "");
    call(p, "cudaDeviceSynchronize", 490, 10);
}

static void python_around_checkpoints(void **state) {
    (void)state;
    struct result r = study(fill_slow_python, 500, false, NULL);
    assert_true(evidence_has(&r, "1 run in 1 step"));
    expect(r, "recompute", 290 + 10 + 10 + 100);
}

static void memory_needs_it(void **state) {
    (void)state;
    again.memory = 500000; /* 600000 are the peak, of 1000000 */
    struct result r = study_again();
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    again.memory = 200000;
    r = study_again();
    assert_true(evidence_has(&r, "kept they take 195.3 KiB more"));
    assert_string_equal(tiny_cell(&r, 0, "confidence")->s, "simulated");
    expect(r, "recompute", 1001.2);
    again.frees = 300000; /* more than it allocates: that is none to keep */
    r = study_again();
    assert_true(evidence_has(&r, "kept they take 0 B more"));
    assert_string_equal(tiny_cell(&r, 0, "confidence")->s, "simulated");
    expect(r, "recompute", 1001.2);
    again.memory = again.frees = 0;
}

/* XLA names what it computes again. */
static void remat_of_xla(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    t->sources[0].format = format_named("chrome");
    uint32_t th = tiny_thread(t, 1), gpu = tiny_stream(t, 0, 7);
    struct launch again_op = {
        .tf_op = bytes_of("jit(f)/checkpoint/rematted_computation/dot")};
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, i * 4000, 4000);
        for (int k = 0; k < 3; k++) {
            struct span_in s = {.ts = (i * 4000 + 10 + k * 1002) * US,
                                .dur = 1000 * US,
                                .track = gpu,
                                .cat = k == 1 ? launch_cat(t, &again_op) : 0,
                                .name = trace_str(t, bytes_of("gemm_fusion")),
                                .kind = SPAN_KERNEL};
            uint64_t id = (uint64_t)(i * 10 + k + 1);
            trace_link_host(t, 0, id,
                            tiny_span(t, th, SPAN_API, "cuLaunchKernel",
                                      i * 4000 + k * 2, 1));
            trace_link_device(t, 0, id, trace_span(t, &s));
        }
        tiny_span(t, th, SPAN_API, "cuStreamSynchronize", i * 4000 + 8, 3020);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    assert_true(tiny_has_row(&r, "recompute"));
    int64_t saves = tiny_us(&r, "recompute", "save_us");
    assert_true(saves > 950 && saves < 1400);
    result_free(&r);
    trace_free(t);
}

/* What a test may change about a step with attention. */
static struct {
    bool backward;       /* nodes of autograd, not ops */
    bool shapes;         /* are recorded */
    const char *product; /* what the products are, in aten::matmul */
    const char *between; /* stands between product and softmax */
} attend;

static void attend_op(struct script *p, const char *name, const char *inner,
                      int i) {
    char args[200], dims[120] = "";
    if (attend.shapes)
        snprintf(dims, sizeof dims,
                 "\"Input Dims\":[[8,100,50],[8,50,100]],"
                 "\"Input type\":[\"float\",\"float\"]");
    snprintf(args, sizeof args, "\"Fwd thread id\":%d%s%s", attend.backward,
             *dims ? "," : "", dims);
    span(p, "cpu_op", name, 10 * i, 10, args);
    span(p, "cpu_op", inner, 10 * i, 10, dims);
    work(p, "kernel", "k", 10 * i, 10, 7, 14 + 1002 * i, 1000, "");
}

static void fill_attend(struct script *p) {
    if (attend.backward) {
        attend_op(p, "BmmBackward0", attend.product, 0);
        attend_op(p, "SoftmaxBackward0", "aten::_softmax_backward_data", 1);
        attend_op(p, attend.between, "aten::div", 2);
        attend_op(p, "BmmBackward0", attend.product, 3);
    } else {
        attend_op(p, "aten::matmul", attend.product, 0);
        attend_op(p, attend.between, "aten::div", 1);
        attend_op(p, "aten::softmax", "aten::_softmax", 2);
        attend_op(p, "aten::matmul", attend.product, 3);
    }
    call(p, "cudaDeviceSynchronize", 40, 3990);
}

/* Four kernels of 1000 with gaps of 1.2 become one. */
static void attention_written_out(void **state) {
    (void)state;
    attend.product = "aten::bmm";
    attend.between = "aten::div";
    struct result r = study(fill_attend, 4040, false, NULL);
    assert_true(evidence_has(&r, "1 attention in 1 step"));
    assert_true(evidence_has(&r, "of which 2.00 ms in softmax"));
    assert_string_equal(tiny_cell(&r, 0, "confidence")->s, "assumed");
    expect(r, "slow-attention", 2003.6);
    /* the products make 16 MFLOP, in fp32 at 40 % of the vector units */
    attend.shapes = true;
    r = study(fill_attend, 4040, false, "fp32=40e9");
    assert_true(evidence_has(&r, "its scores are 156.3 KiB"));
    assert_string_equal(tiny_cell(&r, 0, "confidence")->s, "simulated");
    expect(r, "slow-attention", 3003.6);
    attend.shapes = false;
    /* the gradient computes the scores again */
    attend.backward = true;
    attend.between = "DivBackward0";
    r = study(fill_attend, 4040, false, NULL);
    expect(r, "slow-attention", 1503.6);
    attend.backward = false;
}

static void no_attention(void **state) {
    (void)state;
    const char *products[] = {"aten::mm", "aten::bmm"};
    const char *betweens[] = {"aten::div", "aten::topk"};
    for (int i = 0; i < 2; i++) {
        attend.product = products[i];
        attend.between = betweens[i];
        struct result r = study(fill_attend, 4040, false, NULL);
        assert_int_equal(r.nrows, 0);
        result_free(&r);
    }
}

static void fill_precision(struct script *p) {
    kernel(p, "aten::mm",
           "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize128x128x8_stage3_"
           "warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
           0, 14, 7000, "");
    kernel(p, "aten::gelu",
           "void at::native::vectorized_elementwise_kernel<4, float>()", 10,
           7016, 1000, "");
    call(p, "cudaDeviceSynchronize", 20, 8000);
}

/* The least change is what it saves; what gives more is told beside it. */
static void two_precisions(void **state) {
    (void)state;
    struct result r = study(fill_precision, 8020, false,
                            "fp32=10e12,tf32=100e12,bf16=200e12");
    /* of 8015.2: products in a 7th and a 14th, pointwise in half */
    assert_true(evidence_has(&r, "TF32 saves 75 %, bf16 87 %;"));
    assert_true(evidence_has(&r, "1 kernel in 1 step, 7.00 ms"));
    expect(r, "low-precision-off", 6000);
    /* a device without TF32 */
    r = study(fill_precision, 8020, false, "fp32=10e12,fp16=100e12");
    assert_true(evidence_has(&r, "fp16 saves 81 %; "));
    expect(r, "low-precision-off", 6500);
}

/* The device waits for a copy of another stream, the program does not. */
static void fill_other_stream(struct script *p) {
    kernel(p, "aten::mm", "k", 0, 14, 1000, "");
    op(p, "aten::copy_", 10, 10);
    work(p, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 10, 10, 20, 1015,
         1000, "\"bytes\":64000000");
    kernel(p, "aten::mm", "k", 20, 2016, 1000, "");
    call(p, "cudaDeviceSynchronize", 30, 2992);
}

static void copy_of_another_stream(void **state) {
    (void)state;
    struct result r = study(fill_other_stream, 3030, false, NULL);
    assert_true(evidence_has(&r, "1 copy in 1 step, 1.00 ms a step"));
    /* three of 1000, one after the other; then two with a gap of 1.2 */
    expect(r, "copy-blocking", 998.8);
}

static const char *layout_op; /* launches the second kernel */

static void fill_layout(struct script *p) {
    kernel(p, "aten::cudnn_convolution",
           "void cudnn::nchwToNhwcKernel<__nv_bfloat16>()", 0, 14, 1000, "");
    span(p, "cpu_op", layout_op, 10, 10,
         "\"Input Dims\":[[1000,1000]],\"Input type\":[\"float\"]");
    work(p, "kernel",
         "void at::native::batch_norm_collect_statistics_kernel<float>()", 10,
         10, 7, 1016, 1000, "");
    kernel(p, "aten::cudnn_convolution", "sm90_xmma_fprop_nhwc_cudnn", 20, 2018,
           1000, "");
    call(p, "cudaDeviceSynchronize", 30, 2996);
}

static void layout(void **state) {
    (void)state;
    layout_op = "aten::native_batch_norm";
    /* what turns data round goes, the norm stays as it is: its op starts when
     * it is launched, at 20 */
    struct result r = study(fill_layout, 3036, false, NULL);
    assert_true(evidence_has(&r, "record shapes to see how much"));
    expect(r, "slow-layout", 991.2);
    /* 8 MB take 100 us at best, a norm 333.333 */
    r = study(fill_layout, 3036, false, "bw=80e9");
    assert_true(evidence_has(&r, "33 % by themselves"));
    expect(r, "slow-layout", 1657.867);
    /* a norm that has no kernel for the other layout */
    layout_op = "aten::native_group_norm";
    r = study(fill_layout, 3036, false, "bw=80e9");
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

/* A group norm, a dropout and an activation, each a pass or two; shapes make
 * all tensors of 4 MB. */
static void fill_chain(struct script *p) {
    static const char *const kernels[] = {
        "void at::native::RowwiseMomentsCUDAKernel<float>()",
        "void at::native::elementwise_kernel<128, 2>()",
        "void at::native::fused_dropout_kernel_vec<float>()",
        "sm90_xmma_fprop_nhwc_cudnn"};
    static const char *const ops[] = {"aten::native_group_norm", "aten::mul",
                                      "aten::native_dropout",
                                      "aten::cudnn_convolution"};
    for (int i = 0; i < 4; i++) {
        span(p, "cpu_op", ops[i], 10 * i, 10,
             "\"Input Dims\":[[1000,1000]],\"Input type\":[\"float\"]");
        work(p, "kernel", kernels[i], 10 * i, 10, 7, 14 + 1002 * i, 1000, "");
    }
    call(p, "cudaDeviceSynchronize", 40, 3990);
}

static void norms_join_chains(void **state) {
    (void)state;
    /* the statistics stay, the two others become one: it follows the launch
     * of the first; the convolution follows it */
    expect(study(fill_chain, 4040, false, NULL), "unfused-pointwise", 1002.4);
    /* 8 MB take 100 us at best: 333.333 as statistics and 125 as a pass */
    expect(study(fill_chain, 4040, false, "bw=80e9"), "unfused-pointwise",
           2544.067);
}

/* Steps of a CPU with four pointwise ops of that length and a product. */
static struct result chain_of_ops(int64_t us) {
    struct trace *t = tiny_new(false, false);
    t->sources[0].format = format_named("chrome");
    uint32_t th = tiny_thread(t, 1);
    for (int i = 0; i < STEPS; i++) {
        int64_t at = i * 8 * us;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, at, 8 * us);
        for (int k = 0; k < 4; k++)
            tiny_span(t, th, SPAN_OP, "aten::mul", at + k * us, us);
        tiny_span(t, th, SPAN_OP, "aten::mm", at + 4 * us, 4 * us);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

static void chains_of_the_cpu(void **state) {
    (void)state;
    struct result r = chain_of_ops(1000);
    assert_true(evidence_has(&r, "4 ops a step"));
    expect(r, "unfused-pointwise", 3000);
    r = chain_of_ops(20); /* these are calls more than passes over memory */
    for (size_t i = 0; i < r.nrows; i++)
        assert_string_not_equal(result_cell(&r, i, 0).s, "unfused-pointwise");
    result_free(&r);
}

/* Steps of a CPU with a product and forty short ops of that name. */
static struct result many_ops(const char *op_name) {
    struct trace *t = tiny_new(false, false);
    t->sources[0].format = format_named("chrome");
    uint32_t th = tiny_thread(t, 1);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, i * 800, 800);
        tiny_span(t, th, SPAN_OP, "aten::mm", i * 800, 400);
        for (int k = 0; k < 40; k++)
            tiny_span(t, th, SPAN_OP, op_name, i * 800 + 400 + 10 * k, 5);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

static void update_by_hand(void **state) {
    (void)state;
    struct result r = many_ops("aten::add_");
    assert_true(evidence_has(&r, "40 ops and 400.0"));
    expect(r, "slow-op", 200);  /* of 400, 200 for a joined one */
    r = many_ops("aten::relu"); /* nothing is updated */
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

/* A copying call that is written as longer than its step is not told as
 * longer. */
static void calls_end_with_their_step(void **state) {
    (void)state;
    struct script p = begin("GPU");
    span(&p, "user_annotation", "ProfilerStep#0", 0, 1000, "");
    op(&p, "aten::copy_", 100, 900);
    span(&p, "cuda_runtime", "cudaMemcpyAsync", 100, 5e6, "\"correlation\":7");
    put(&p, ",{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD "
            "(Pageable -> Device)\",\"pid\":0,\"tid\":7,\"ts\":110,"
            "\"dur\":880,\"args\":{\"device\":0,\"stream\":7,"
            "\"correlation\":7,\"bytes\":16777216}}");
    struct trace *t = import(&p);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    assert_true(tiny_has_row(&r, "copy-pageable"));
    assert_true(evidence_has(&r, "1.00 ms a step in the copying calls"));
    result_free(&r);
    trace_free(t);
    free(p.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_runs_again),
        cmocka_unit_test(python_around_checkpoints),
        cmocka_unit_test(memory_needs_it),
        cmocka_unit_test(remat_of_xla),
        cmocka_unit_test(attention_written_out),
        cmocka_unit_test(no_attention),
        cmocka_unit_test(two_precisions),
        cmocka_unit_test(copy_of_another_stream),
        cmocka_unit_test(layout),
        cmocka_unit_test(norms_join_chains),
        cmocka_unit_test(chains_of_the_cpu),
        cmocka_unit_test(update_by_hand),
        cmocka_unit_test(calls_end_with_their_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
