/* SPDX-License-Identifier: Apache-2.0
 * Hints: each fault on a program made for it, alone and together; and none
 * where there is nothing to gain. */
#include "unit/tiny.h"

#include "unit/feed.h"

/* A program that trains: what a step is made of, in us. */
struct program {
    int kernels;        /* launched one by one */
    int64_t kernel_us;  /* each */
    int64_t op_us;      /* of the host, each */
    int64_t input_us;   /* in a region before the first kernel */
    int64_t silent_us;  /* before the first kernel, nothing recorded */
    int64_t pause_us;   /* Python after the kernels */
    int syncs;          /* .item() after as many kernels */
    int optimizer;      /* kernels in the optimizer, one each */
    const char *region; /* the optimizer's, or NULL: Adam's */
    const char *update; /* its ops, or NULL: aten::add_ */
    const char *last;   /* an op behind these, or NULL */
    const char *kernel; /* its name, or NULL */
};

struct loop {
    struct trace *t;
    uint32_t th, gpu;
    int64_t host, device; /* us: where both have come to */
    uint64_t id;
};

static void launch(struct loop *l, const char *op, const char *kernel,
                   int64_t op_us, int64_t dur, enum span_kind kind) {
    tiny_span(l->t, l->th, SPAN_OP, op, l->host, op_us);
    int64_t call = l->host + op_us - 3;
    trace_link_host(l->t, 0, ++l->id,
                    tiny_span(l->t, l->th, SPAN_API,
                              kind == SPAN_COPY ? "cudaMemcpyAsync"
                                                : "cudaLaunchKernel",
                              call, 2));
    int64_t start = call + 5 > l->device + 1 ? call + 5 : l->device + 1;
    trace_link_device(l->t, 0, l->id,
                      tiny_span(l->t, l->gpu, kind, kernel, start, dur));
    l->device = start + dur;
    l->host += op_us;
}

static void item(struct loop *l) {
    int64_t from = l->host;
    launch(l, "aten::_local_scalar_dense", "Memcpy DtoH (Device -> Pinned)", 10,
           1, SPAN_COPY);
    int64_t end = l->device > l->host ? l->device + 2 : l->host + 2;
    tiny_span(l->t, l->th, SPAN_API, "cudaStreamSynchronize", l->host,
              end - l->host);
    l->host = end + 1;
    tiny_span(l->t, l->th, SPAN_OP, "aten::item", from, l->host - from);
}

static void train_step(struct loop *l, const struct program *p, int number) {
    int64_t from = l->host;
    if (p->input_us > 0) {
        tiny_span(l->t, l->th, SPAN_ANNOTATION, "load_batch", l->host,
                  p->input_us);
        l->host += p->input_us;
    }
    l->host += p->silent_us;
    for (int i = 0; i < p->kernels; i++) {
        launch(l, "aten::op", p->kernel ? p->kernel : "k", p->op_us,
               p->kernel_us, SPAN_KERNEL);
        if (i < p->syncs) item(l);
    }
    l->host += p->pause_us;
    if (p->optimizer > 0) {
        int64_t at = l->host;
        for (int i = 0; i < p->optimizer; i++)
            launch(l, p->update ? p->update : "aten::add_", "k", p->op_us,
                   p->kernel_us, SPAN_KERNEL);
        if (p->last) launch(l, p->last, "k", p->op_us, 1, SPAN_KERNEL);
        tiny_span(l->t, l->th, SPAN_ANNOTATION,
                  p->region ? p->region : "Optimizer.step#Adam.step", at,
                  l->host - at);
    }
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    tiny_span(l->t, l->th, SPAN_ANNOTATION, name, from, l->host - from);
}

static struct result hints(const struct program *p) {
    struct loop l = {.t = tiny_new(true, false)};
    l.th = tiny_thread(l.t, 1);
    l.gpu = tiny_stream(l.t, 0, 7);
    l.t->devices[0].model = trace_str(l.t, bytes_of("NVIDIA H200"));
    for (int i = 0; i < 6; i++) train_step(&l, p, i);
    tiny_seal(l.t);
    struct result r = tiny_run(l.t, "hints", NULL, NULL);
    trace_free(l.t);
    return r;
}

static const char *id_of(const struct result *r, size_t row) {
    return row < r->nrows ? tiny_cell(r, row, "id")->s : "none";
}

static double percent(const struct result *r, size_t row) {
    return tiny_cell(r, row, "save_pct")->f;
}

/* Checks that rows sum to no more than the step, and every cell of a row is
 * filled. */
static void check_rows(const struct result *r) {
    double sum = 0;
    for (size_t i = 0; i < r->nrows; i++) {
        sum += percent(r, i);
        for (size_t c = 0; c < r->ncols; c++)
            assert_false(result_cell(r, i, c).null);
        assert_true(strlen(tiny_cell(r, i, "evidence")->s) > 20);
        assert_true(strlen(tiny_cell(r, i, "do")->s) > 10);
    }
    assert_true(sum <= 100);
}

static void device_bound_gets_none(void **state) {
    (void)state;
    struct program p = {.kernels = 50, .kernel_us = 200, .op_us = 20};
    struct result r = hints(&p);
    assert_int_equal(r.nrows, 0);
    assert_true(r.nremarks >= 2);
    result_free(&r);
}

static void input_first(void **state) {
    (void)state;
    struct program p = {.kernels = 50,
                        .kernel_us = 20,
                        .op_us = 8,
                        .input_us = 4000};
    struct result r = hints(&p);
    assert_string_equal(id_of(&r, 0), "input-bound");
    /* 50 x 21 us of device time stay */
    assert_true(percent(&r, 0) > 75 && percent(&r, 0) < 82);
    check_rows(&r);
    result_free(&r);
}

/* Batch code that nobody annotated is seen by what it delays. */
static void silent_input(void **state) {
    (void)state;
    struct program p = {.kernels = 50,
                        .kernel_us = 20,
                        .op_us = 8,
                        .silent_us = 4000};
    struct result r = hints(&p);
    assert_string_equal(id_of(&r, 0), "input-bound");
    assert_true(percent(&r, 0) > 75 && percent(&r, 0) < 82);
    result_free(&r);
}

static void syncs_cost(void **state) {
    (void)state;
    struct program p = {.kernels = 40,
                        .kernel_us = 60,
                        .op_us = 50,
                        .syncs = 40};
    struct result r = hints(&p);
    assert_string_equal(id_of(&r, 0), "host-sync");
    /* each step was 40 x (op + kernel + item), will be 40 kernels */
    assert_true(percent(&r, 0) > 40 && percent(&r, 0) < 60);
    check_rows(&r);
    result_free(&r);
}

/* Reading the loss at the end of a step that the device bounds delays
 * nothing. */
static void sync_that_delays_nothing(void **state) {
    (void)state;
    struct loop l = {.t = tiny_new(true, false)};
    l.th = tiny_thread(l.t, 1);
    l.gpu = tiny_stream(l.t, 0, 7);
    for (int i = 0; i < 6; i++) {
        int64_t from = l.host;
        char name[32];
        for (int k = 0; k < 30; k++)
            launch(&l, "aten::op", "k", 10, 100, SPAN_KERNEL);
        item(&l);
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(l.t, l.th, SPAN_ANNOTATION, name, from, l.host - from);
    }
    tiny_seal(l.t);
    struct result r = tiny_run(l.t, "hints", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
    trace_free(l.t);
}

static void launch_bound(void **state) {
    (void)state;
    struct program p = {.kernels = 300, .kernel_us = 3, .op_us = 40};
    struct result r = hints(&p);
    assert_string_equal(id_of(&r, 0), "launch-bound");
    assert_true(percent(&r, 0) > 80);
    assert_int_equal(r.nrows, 1);
    check_rows(&r);
    result_free(&r);
    /* longer kernels than a launch costs: what the device waits is all */
    p.kernel_us = 25;
    r = hints(&p);
    assert_string_equal(id_of(&r, 0), "launch-bound");
    assert_true(percent(&r, 0) > 10 && percent(&r, 0) < 30);
    result_free(&r);
    /* a device that is busy is not held up */
    p.kernel_us = 39;
    r = hints(&p);
    assert_string_equal(id_of(&r, 0), "none");
    result_free(&r);
}

/* What is repaired in place comes first, though restructuring gives more,
 * unless that is far more; and what the first took is not claimed again. */
static void in_place_comes_first(void **state) {
    (void)state;
    struct program p = {.kernels = 200,
                        .kernel_us = 3,
                        .op_us = 40,
                        .optimizer = 160,
                        .input_us = 1500};
    struct result r = hints(&p);
    assert_string_equal(id_of(&r, 0), "slow-op");
    assert_string_equal(id_of(&r, 1), "input-bound");
    assert_string_equal(id_of(&r, 2), "launch-bound");
    assert_true(percent(&r, 2) > percent(&r, 0));
    check_rows(&r);
    result_free(&r);
    p.kernels = 600;
    r = hints(&p);
    assert_string_equal(id_of(&r, 0), "launch-bound");
    assert_string_equal(id_of(&r, 1), "slow-op");
    assert_true(percent(&r, 0) > 3 * percent(&r, 1));
    check_rows(&r);
    result_free(&r);
}

static bool has_hint(const struct program *p, const char *id) {
    struct result r = hints(p);
    bool found = false;
    for (size_t i = 0; i < r.nrows; i++) found |= strcmp(id_of(&r, i), id) == 0;
    result_free(&r);
    return found;
}

/* What a closure runs, the model, is no update; LBFGS has none by tensors. */
static void a_closure_is_no_update(void **state) {
    (void)state;
    struct program p = {.kernels = 200,
                        .kernel_us = 3,
                        .op_us = 40,
                        .optimizer = 160,
                        .update = "aten::addmm"};
    assert_true(has_hint(&p, "slow-op"));
    p.last = "autograd::engine::evaluate_function: TBackward0";
    assert_false(has_hint(&p, "slow-op"));
    p.last = NULL;
    p.region = "Optimizer.step#LBFGS.step";
    assert_false(has_hint(&p, "slow-op"));
}

static void full_fp32(void **state) {
    (void)state;
    struct program p = {
        .kernels = 30,
        .kernel_us = 500,
        .op_us = 20,
        .kernel = "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize128x128x8_"
                  "stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel_"
                  "_5x_cublas"};
    struct result r = hints(&p);
    assert_string_equal(id_of(&r, 0), "low-precision-off");
    assert_true(percent(&r, 0) > 70 && percent(&r, 0) < 90);
    result_free(&r);
    p.kernel = "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize128x256x32_"
               "warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas";
    r = hints(&p);
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

static void python_between(void **state) {
    (void)state;
    struct program p = {.kernels = 50,
                        .kernel_us = 20,
                        .op_us = 8,
                        .pause_us = 3000};
    struct result r = hints(&p);
    assert_string_equal(id_of(&r, 0), "python-overhead");
    assert_true(percent(&r, 0) > 50);
    result_free(&r);
}

/* Runs hints on 8 steps of a CPU program, every `each` of which has a pause of
 * 2 ms between its second op and its third. */
static struct result with_pauses(int each, bool frames) {
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    if (frames)
        tiny_span(t, trace_track(t, 0, TRACK_PYTHON, 1, 1), SPAN_PYTHON,
                  "train.py(12): log_all", 0, 100000);
    for (int i = 0, at = 0; i < 8; i++) {
        char name[32];
        int pause = i % each == 0 ? 2000 : 10;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, at, 300 + pause);
        tiny_span(t, th, SPAN_OP, "aten::relu", at, 90);
        tiny_span(t, th, SPAN_OP, "aten::mm", at + 100, 90);
        tiny_span(t, th, SPAN_OP, "aten::relu", at + 190 + pause, 90);
        at += 300 + pause;
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

/* A pause that most steps do not have at that place is no habit: somebody else
 * had the processor. */
static void pauses_of_single_steps(void **state) {
    (void)state;
    struct result r = with_pauses(1, false);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(id_of(&r, 0), "python-overhead");
    assert_true(percent(&r, 0) > 80);
    assert_non_null(strstr(tiny_cell(&r, 0, "do")->s, "with_stack=True"));
    result_free(&r);
    r = with_pauses(1, true); /* who has the frames need not record them */
    assert_null(strstr(tiny_cell(&r, 0, "do")->s, "with_stack=True"));
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "log_all"));
    result_free(&r);
    r = with_pauses(4, false); /* two of eight */
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

/* Copies have their size and kind in arguments: text for the importer. */
/* The program waits for a collective that another thread carries out: that is
 * no Python, and beside the computation it still takes its time. */
static void exchange_on_another_thread(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1), other = tiny_thread(t, 2);
    for (int i = 0; i < 6; i++) {
        int64_t at = 6000 * i;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, at, 5990);
        for (int k = 0; k < 10; k++)
            tiny_span(t, th, SPAN_OP, "aten::mm", at + 10 + 100 * k, 100);
        tiny_span(t, th, SPAN_OP, "c10d::allreduce_", at + 1020, 20);
        tiny_span(t, other, SPAN_ANNOTATION, "gloo:all_reduce", at + 1030,
                  4800);
        tiny_span(t, th, SPAN_OP, "aten::add_", at + 5840, 100);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(id_of(&r, 0), "comm-exposed");
    int64_t saves = tiny_us(&r, "comm-exposed", "save_us");
    assert_true(saves > 900 && saves < 1300);
    /* the host's pieces of an exchange are not so many exchanges */
    assert_non_null(
        strstr(tiny_cell(&r, 0, "evidence")->s, "collectives take 4.8"));
    result_free(&r);
    trace_free(t);
}

static void pageable_copy(void **state) {
    (void)state;
    char *s = calloc(1, 1 << 16);
    size_t n = (size_t)sprintf(
        s, "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\":"
           " \"NVIDIA H200\", \"numSms\": 132}], \"traceEvents\": [");
    for (int i = 0; i < 4; i++) {
        int at = i * 10000;
        n += (size_t)sprintf(
            s + n,
            "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
            "\"ProfilerStep#%d\",\"pid\":9,\"tid\":9,\"ts\":%d.000,"
            "\"dur\":10000.000},"
            "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::copy_\","
            "\"pid\":9,\"tid\":9,\"ts\":%d.000,\"dur\":8100.000},"
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
            "\"cudaMemcpyAsync\",\"pid\":9,\"tid\":9,\"ts\":%d.000,"
            "\"dur\":8050.000,\"args\":{\"correlation\":%d}},"
            "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":"
            "\"Memcpy HtoD (Pageable -> Device)\",\"pid\":0,\"tid\":7,"
            "\"ts\":%d.000,\"dur\":8000.000,\"args\":{\"device\":0,"
            "\"stream\":7,\"correlation\":%d,\"bytes\":64000000}},"
            "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\","
            "\"pid\":9,\"tid\":9,\"ts\":%d.000,\"dur\":50.000},"
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":"
            "\"cudaLaunchKernel\",\"pid\":9,\"tid\":9,\"ts\":%d.000,"
            "\"dur\":5.000,\"args\":{\"correlation\":%d}},"
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,"
            "\"tid\":7,\"ts\":%d.000,\"dur\":1700.000,\"args\":{\"device\":0,"
            "\"stream\":7,\"correlation\":%d}}",
            i ? "," : "", i, at, at + 10, at + 20, 100 + i, at + 40, 100 + i,
            at + 8150, at + 8160, 200 + i, at + 8170, 200 + i);
    }
    strcpy(s + n, "]}");
    struct feed f = feed_text(s);
    struct result r = tiny_run(f.t, "hints", NULL, NULL);
    assert_string_equal(id_of(&r, 0), "copy-pageable");
    /* 8 ms of 10 go; the copy runs beside the step before */
    assert_true(percent(&r, 0) > 75 && percent(&r, 0) < 90);
    check_rows(&r);
    result_free(&r);
    feed_free(&f);
    free(s);
}

static void nothing_to_study(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_int_equal(r.nremarks, 1);
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_bound_gets_none),
        cmocka_unit_test(input_first),
        cmocka_unit_test(silent_input),
        cmocka_unit_test(syncs_cost),
        cmocka_unit_test(sync_that_delays_nothing),
        cmocka_unit_test(launch_bound),
        cmocka_unit_test(in_place_comes_first),
        cmocka_unit_test(a_closure_is_no_update),
        cmocka_unit_test(full_fp32),
        cmocka_unit_test(python_between),
        cmocka_unit_test(pauses_of_single_steps),
        cmocka_unit_test(exchange_on_another_thread),
        cmocka_unit_test(pageable_copy),
        cmocka_unit_test(nothing_to_study),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
