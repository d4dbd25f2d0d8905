/* SPDX-License-Identifier: Apache-2.0
 * What blocks are for: a small training loop with one block of each kind, and
 * what stacks, names and shapes tell. Sizes are the blocks' names. */
#include "tiny.h"

#include "analyze/memory/mem_site.h"
#include "names/mem_phase.h"
#include <stdio.h>

enum { STEP = 1000 };

struct prog {
    struct trace *t;
    uint32_t main, autograd, python;
    uint16_t gpu;
    uint64_t next;
};

static uint64_t get(struct prog *p, uint32_t th, int64_t at, int64_t bytes) {
    tiny_mem(p->t, p->gpu, th, at, p->next, bytes, -1);
    return p->next++;
}

static void put(struct prog *p, uint32_t th, int64_t at, uint64_t addr,
                int64_t bytes) {
    tiny_mem(p->t, p->gpu, th, at, addr, -bytes, -1);
}

/* Adds one step: load, forward, backward on a thread of its own, optimizer. */
static void add_spans(struct prog *p, int i) {
    char name[32];
    int64_t o = (int64_t)i * STEP;
    struct trace *t = p->t;
    snprintf(name, sizeof name, "ProfilerStep#%d", i);
    tiny_span(t, p->main, SPAN_ANNOTATION, name, o, STEP - 1);
    tiny_span(t, p->main, SPAN_ANNOTATION,
              "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
              o + 10, 80);
    tiny_span(t, p->main, SPAN_OP, "aten::stack", o + 20, 20);
    tiny_span(t, p->main, SPAN_OP, "aten::randn", o + 100, 20);
    tiny_span(t, p->main, SPAN_OP, "aten::linear", o + 200, 50);
    tiny_span(t, p->main, SPAN_OP, "aten::addmm", o + 210, 30);
    tiny_span(t, p->autograd, SPAN_OP,
              "autograd::engine::evaluate_function: AddmmBackward0", o + 400,
              50);
    tiny_span(t, p->autograd, SPAN_OP, "aten::mm", o + 410, 30);
    tiny_span(t, p->autograd, SPAN_OP,
              "autograd::engine::evaluate_function: TBackward0", o + 500, 50);
    tiny_span(t, p->main, SPAN_ANNOTATION, "Optimizer.step#Adam.step", o + 600,
              100);
    tiny_span(t, p->main, SPAN_OP, "aten::mul", o + 610, 20);
    tiny_span(t, p->main, SPAN_ANNOTATION, "Optimizer.zero_grad#Adam.zero_grad",
              o + 800, 50);
}

static struct prog loop(int steps) {
    struct prog p = {.t = tiny_new(true, true), .next = 1};
    p.main = tiny_thread(p.t, 1);
    p.autograd = tiny_thread(p.t, 2);
    p.gpu = trace_allocator(p.t, 0, bytes_of("GPU 0"),
                            trace_device(p.t, 0, DEVICE_GPU, 0));
    for (int i = 0; i < steps; i++) add_spans(&p, i);
    return p;
}

/* Returns the category of the block of so many bytes. */
static const char *category(const struct result *r, int64_t bytes) {
    for (size_t i = 0; i < r->nrows; i++)
        if (tiny_cell(r, i, "bytes")->i == bytes)
            return tiny_cell(r, i, "category")->s;
    fail_msg("no block of %d bytes", (int)bytes);
    return NULL;
}

static struct result finish(struct prog *p) {
    tiny_seal(p->t);
    struct result r = tiny_run(p->t, "allocs", NULL, NULL);
    trace_free(p->t);
    return r;
}

static void one_block_of_each_kind(void **state) {
    (void)state;
    struct prog p = loop(4);
    uint64_t a;
    a = get(&p, p.main, 30, 101); /* in __next__, goes with the step */
    put(&p, p.main, 1095, a, 101);
    a = get(&p, p.main, 25, 102); /* in __next__, but not after its op */
    put(&p, p.main, 35, a, 102);
    a = get(&p, p.main, 105, 103); /* made of nothing */
    put(&p, p.main, 900, a, 103);
    a = get(&p, p.main, 220, 104); /* forward: the backward pass frees it */
    put(&p, p.autograd, 520, a, 104);
    a = get(&p, p.main, 221, 105); /* forward: scratch */
    put(&p, p.main, 230, a, 105);
    a = get(&p, p.main, 222, 106); /* forward: a result, until the next step */
    put(&p, p.main, 1205, a, 106);
    a = get(&p, p.autograd, 420, 107); /* a gradient */
    put(&p, p.main, 810, a, 107);
    a = get(&p, p.autograd, 421, 108); /* from node to node */
    put(&p, p.autograd, 530, a, 108);
    a = get(&p, p.autograd, 422, 109); /* freed between two nodes */
    put(&p, p.autograd, 470, a, 109);
    a = get(&p, p.main, 615, 110); /* the update's scratch, over two ops */
    put(&p, p.main, 690, a, 110);
    get(&p, p.main, 616, 111);      /* momentum */
    get(&p, p.main, 223, 112);      /* forward, never freed: who knows */
    get(&p, p.main, 3220, 113);     /* forward in the last step */
    get(&p, p.autograd, 3420, 114); /* the last step's gradient */
    get(&p, p.main, 3950, 115);     /* in no op */
    put(&p, p.main, 50, 0x77, 116); /* from before */
    struct result r = finish(&p);
    static const char *const want[] = {
        "input",      "temporary",  "input",     "activation",
        "temporary",  "activation", "gradient",  "temporary",
        "temporary",  "temporary",  "optimizer", "unknown",
        "activation", "gradient",   "unknown",   "before-window",
    };
    for (int i = 0; i < 16; i++)
        if (strcmp(category(&r, 101 + i), want[i]) != 0)
            fail_msg("block %d is %s, not %s", 101 + i, category(&r, 101 + i),
                     want[i]);
    result_free(&r);
}

/* Backward on the step's own thread, as on CPUs: the pass is over when that
 * thread begins something else. */
static void one_thread(void **state) {
    (void)state;
    struct prog p = loop(0);
    p.autograd = p.main;
    for (int i = 0; i < 3; i++) add_spans(&p, i);
    uint64_t a = get(&p, p.main, 420, 107);
    put(&p, p.main, 1810, a, 107);
    a = get(&p, p.main, 421, 108);
    put(&p, p.main, 560, a, 108); /* behind the last node, before all else */
    struct result r = finish(&p);
    assert_string_equal(category(&r, 107), "gradient");
    assert_string_equal(category(&r, 108), "temporary");
    result_free(&r);
}

static void no_address_no_fate(void **state) {
    (void)state;
    struct prog p = loop(3);
    tiny_mem(p.t, p.gpu, p.main, 220, 0, 104, -1);
    struct result r = finish(&p);
    assert_string_equal(category(&r, 104), "unknown");
    result_free(&r);
}

/* With a region that ends before the first kernel: a hand-written loader. */
static void regions_before_the_first_launch_are_input(void **state) {
    (void)state;
    struct prog p = loop(2);
    uint32_t s = tiny_stream(p.t, 0, 7);
    tiny_span(p.t, p.main, SPAN_ANNOTATION, "data_loading", 120, 60);
    tiny_span(p.t, p.main, SPAN_OP, "aten::cat", 130, 10);
    tiny_launch(p.t, p.main, s, "gemm", 215, 10);
    uint64_t a = get(&p, p.main, 135, 101);
    put(&p, p.main, 1100, a, 101);
    a = get(&p, p.main, 216, 102);
    put(&p, p.main, 1101, a, 102);
    struct result r = finish(&p);
    assert_string_equal(category(&r, 101), "input");
    assert_string_equal(category(&r, 102), "activation");
    result_free(&r);
}

static uint32_t stack_of(struct trace *t, const char *file, const char *name) {
    uint32_t f[] = {trace_frame(t, trace_str(t, bytes_of("at::empty")), 0, 0),
                    trace_frame(t, trace_str(t, bytes_of(name)),
                                trace_str(t, bytes_of(file)), 5)};
    return trace_stack(t, f, 2);
}

static row_id get_stack(struct prog *p, int64_t at, int64_t bytes,
                        uint64_t addr, uint32_t stack) {
    row_id k = trace_mem(p->t, &(struct mem_in){.ts = at * US,
                                                .bytes = bytes,
                                                .addr = addr,
                                                .allocated = -1,
                                                .reserved = -1,
                                                .track = ROW_NONE,
                                                .allocator = p->gpu});
    trace_mem_stack(p->t, k, stack);
    return k;
}

/* A snapshot alone: no spans, but a stack for each block. */
static void stacks_tell_without_spans(void **state) {
    (void)state;
    struct prog p = {.t = tiny_new(true, true)};
    struct trace *t = p.t;
    p.gpu = trace_allocator(t, 0, bytes_of("GPU 0"),
                            trace_device(t, 0, DEVICE_GPU, 0));
    uint32_t init = stack_of(t, "torch/nn/modules/linear.py", "__init__");
    uint32_t fwd = stack_of(t, "torch/nn/modules/module.py", "_call_impl");
    uint32_t bwd = stack_of(t, "torch/autograd/__init__.py", "backward");
    uint32_t opt = stack_of(t, "torch/optim/adamw.py", "step");
    uint32_t work = stack_of(t, "??", "at::cuda::setWorkspaceForHandle(...)");
    trace_before(t, &(struct mem_before){.addr = 0x50,
                                         .bytes = 300,
                                         .ts = TS_NONE,
                                         .allocator = p.gpu,
                                         .stack = init});
    trace_before(t, &(struct mem_before){.addr = 0x60,
                                         .bytes = 301,
                                         .ts = TS_NONE,
                                         .allocator = p.gpu,
                                         .stack = ROW_NONE});
    get_stack(&p, 10, 302, 1, init);
    get_stack(&p, 20, 303, 2, fwd);
    get_stack(&p, 21, 304, 3, fwd);
    get_stack(&p, 22, -304, 3, ROW_NONE);
    get_stack(&p, 23, 309, 9, work);
    get_stack(&p, 30, 305, 4, bwd);
    get_stack(&p, 31, -303, 2, ROW_NONE);
    get_stack(&p, 32, 306, 5, bwd);
    get_stack(&p, 33, -306, 5, ROW_NONE);
    get_stack(&p, 40, 307, 6, opt);
    get_stack(&p, 41, -301, 0x60, ROW_NONE);
    struct result r = finish(&p);
    assert_string_equal(category(&r, 300), "parameter");
    assert_string_equal(category(&r, 301), "before-window");
    assert_string_equal(category(&r, 302), "parameter");
    assert_string_equal(category(&r, 303), "activation");
    assert_string_equal(category(&r, 305), "gradient");
    assert_string_equal(category(&r, 306), "temporary");
    assert_string_equal(category(&r, 307), "optimizer");
    assert_string_equal(category(&r, 309), "unknown");
    for (size_t i = 0; i < r.nrows; i++)
        if (tiny_cell(&r, i, "bytes")->i == 307)
            assert_non_null(strstr(tiny_cell(&r, i, "stack")->s, "adamw.py:5"));
    result_free(&r);
}

static void python_frames_tell_what_stays(void **state) {
    (void)state;
    struct prog p = loop(3);
    uint32_t py = trace_track(p.t, 0, TRACK_PYTHON, 1, 1);
    p.t->tracks[py].thread = p.main;
    tiny_span(p.t, py, SPAN_PYTHON, "train.py(1): <module>", 0, 3000);
    tiny_span(p.t, py, SPAN_PYTHON, "torch/nn/modules/linear.py(90): __init__",
              195, 60);
    tiny_span(p.t, py, SPAN_PYTHON, "<built-in method empty>", 215, 20);
    get(&p, p.main, 220, 101);
    struct result r = finish(&p);
    assert_string_equal(category(&r, 101), "parameter");
    /* the op says what was built in; the frame, where */
    assert_string_equal(tiny_cell(&r, 0, "stack")->s,
                        "torch/nn/modules/linear.py(90): __init__ < "
                        "train.py(1): <module>");
    result_free(&r);
}

static enum mem_phase of_text(const char *s) {
    return mem_phase_of_text(bytes_of(s));
}

static void frames_and_names(void **state) {
    (void)state;
    assert_int_equal(of_text("torch/optim/sgd.py(80): step"), MEM_OPTIMIZER);
    assert_int_equal(of_text("torch/optim/optimizer.py(9): zero_grad"),
                     MEM_ZERO_GRAD);
    assert_int_equal(of_text("nn.Module: Linear_0"), MEM_FORWARD);
    assert_int_equal(of_text("<built-in method run_backward of X>"),
                     MEM_BACKWARD);
    assert_int_equal(of_text("train.py(3): step"), MEM_NOWHERE);
    assert_int_equal(of_text(""), MEM_NOWHERE);
    assert_int_equal(mem_phase_of_op(bytes_of("gradients/a/b:MatMul")),
                     MEM_BACKWARD);
    assert_int_equal(mem_phase_of_op(bytes_of("train/m:ApplyAdam")),
                     MEM_OPTIMIZER);
    assert_int_equal(mem_phase_of_op(bytes_of("dense/MatMul:MatMul")),
                     MEM_NOWHERE);
}

/* JSON readers want zeros behind the text. */
static struct mem_shape shape(const char *op, const char *concrete,
                              int64_t bytes) {
    static char buf[512];
    memset(buf, 0, sizeof buf);
    snprintf(buf, sizeof buf - 64, "%s", concrete);
    return mem_shape_from(bytes_of(op), bytes_of(buf), bytes);
}

static void shapes_must_fit_the_block(void **state) {
    (void)state;
    struct mem_shape s = shape("aten::empty", "[\"[2, 3]\", \"6\", \"\"]", 512);
    assert_true(BYTES_IS(s.dims, "[2, 3]"));
    assert_string_equal(s.dtype, "fp32");
    s = shape("aten::empty_strided", "[\"[4]\", \"[1]\", \"15\"]", 8);
    assert_true(BYTES_IS(s.dims, "[4]"));
    assert_string_equal(s.dtype, "bf16");
    s = shape("aten::empty", "[\"[]\", \"\"]", 4);
    assert_true(BYTES_IS(s.dims, "[]"));
    assert_null(s.dtype);
    /* clang-format off */
    static const char *const bad[] = {
        "[\"[2, 300]\", \"6\"]", "[\"[2, -3]\", \"6\"]",
        "[\"[9223372036854775807, 9]\"]", "[\"[99999999999999999999]\"]",
        "[\"[2, x]\"]", "[\"2\"]", "[\"[\"]", "[]", "", "[6]", "{}", "[\"",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(shape("aten::empty", bad[i], 512).dims.n, 0);
    assert_int_equal(shape("aten::mm", "[\"[2]\", \"6\"]", 512).dims.n, 0);
    assert_null(shape("aten::empty", "[\"[2]\", \"99\"]", 512).dtype);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_block_of_each_kind),
        cmocka_unit_test(one_thread),
        cmocka_unit_test(no_address_no_fate),
        cmocka_unit_test(regions_before_the_first_launch_are_input),
        cmocka_unit_test(stacks_tell_without_spans),
        cmocka_unit_test(python_frames_tell_what_stays),
        cmocka_unit_test(frames_and_names),
        cmocka_unit_test(shapes_must_fit_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
