/* SPDX-License-Identifier: Apache-2.0
 * stacks and python: threads and their Python frames as one stack. */
#include "unit/tiny.h"

#include "names/frame_name.h"
#include <stdio.h>

struct program {
    struct trace *t;
    uint32_t thread, python, stream;
};

static struct program start(void) {
    struct program p = {.t = tiny_new(true, false)};
    p.thread = tiny_thread(p.t, 1);
    p.python = trace_track(p.t, 0, TRACK_PYTHON, 1, 1);
    p.t->tracks[p.python].thread = p.thread;
    p.t->sources[0].has_stacks = true;
    p.stream = tiny_stream(p.t, 0, 7);
    return p;
}

static void py(struct program *p, const char *name, int64_t ts, int64_t dur) {
    tiny_span(p->t, p->python, SPAN_PYTHON, name, ts, dur);
}

static void op(struct program *p, const char *name, int64_t ts, int64_t dur) {
    tiny_span(p->t, p->thread, SPAN_OP, name, ts, dur);
}

static int64_t sum(const struct result *r, const char *col) {
    int64_t v = 0;
    for (size_t i = 0; i < r->nrows; i++) v += tiny_cell(r, i, col)->i;
    return v;
}

static void kernels_stand_under_what_launched_them(void **state) {
    (void)state;
    struct program p = start();
    py(&p, "a.py(1): main", 0, 200);
    py(&p, "torch/x.py(9): linear", 10, 50);
    op(&p, "aten::linear", 15, 40);
    tiny_launch(p.t, p.thread, p.stream, "gemm;1", 20, 30);
    op(&p, "aten::linear", 70, 40);
    tiny_launch(p.t, p.thread, p.stream, "gemm;1", 80, 7);
    tiny_span(p.t, p.stream, SPAN_KERNEL, "alone", 150, 3);
    tiny_seal(p.t);
    struct result r = tiny_run(p.t, "stacks", NULL, NULL);
    const char *in = "a.py(1): main;torch/x.py(9): linear;aten::linear;gemm_1";
    const char *out = "a.py(1): main;aten::linear;gemm_1";
    assert_int_equal(r.nrows, 3);
    assert_int_equal(tiny_us(&r, in, "self_us"), 30);
    assert_int_equal(tiny_us(&r, out, "self_us"), 7);
    assert_int_equal(tiny_us(&r, "alone", "total_us"), 3);
    assert_int_equal(tiny_int(&r, in, "count"), 1);
    assert_string_equal(tiny_cell(&r, tiny_row(&r, in), "caller")->s,
                        "a.py(1): main");
    assert_string_equal(tiny_cell(&r, tiny_row(&r, in), "op")->s,
                        "aten::linear");
    result_free(&r);
    trace_free(p.t);
}

static void own_times_sum_to_the_threads(void **state) {
    (void)state;
    struct program p = start();
    py(&p, "a.py(1): main", 0, 200);
    op(&p, "aten::mm", 50, 40);
    op(&p, "aten::mm", 100, 40);
    op(&p, "aten::mul", 250, 10); /* outside of every frame */
    tiny_seal(p.t);
    struct result r = tiny_run(p.t, "stacks", "by", "host");
    assert_int_equal(tiny_us(&r, "a.py(1): main", "self_us"), 120);
    assert_int_equal(tiny_us(&r, "a.py(1): main", "total_us"), 200);
    assert_int_equal(tiny_us(&r, "a.py(1): main;aten::mm", "self_us"), 80);
    assert_int_equal(tiny_int(&r, "a.py(1): main;aten::mm", "count"), 2);
    assert_int_equal(sum(&r, "self_us"), 210 * US);
    result_free(&r);
    trace_free(p.t);
}

/* A region begins inside of the call that opens it and ends in the one that
 * closes it: it is neither lost nor cut to those. */
static void regions_cross_the_calls_that_open_them(void **state) {
    (void)state;
    struct program p = start();
    py(&p, "a.py(1): main", 0, 200);
    py(&p, "__enter__", 10, 10);
    tiny_span(p.t, p.thread, SPAN_ANNOTATION, "region", 15, 100);
    op(&p, "aten::mm", 30, 20);
    py(&p, "__exit__", 110, 10);
    tiny_seal(p.t);
    struct result r = tiny_run(p.t, "stacks", "by", "host");
    const char *region = "a.py(1): main;region";
    assert_int_equal(tiny_us(&r, "a.py(1): main;__enter__", "self_us"), 5);
    assert_int_equal(tiny_us(&r, region, "self_us"), 110 - 15 - 20);
    assert_int_equal(tiny_us(&r, "a.py(1): main;region;aten::mm", "self_us"),
                     20);
    assert_int_equal(tiny_us(&r, "a.py(1): main;__exit__", "self_us"), 10);
    assert_int_equal(sum(&r, "self_us"), 200 * US);
    result_free(&r);
    trace_free(p.t);
}

static void ops_of_a_tpu_nest(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t s = trace_track(t, 0, TRACK_STREAM, 0, 1);
    t->tracks[s].device = trace_device(t, 0, DEVICE_TPU, 0);
    tiny_span(t, s, SPAN_KERNEL, "while", 0, 100);
    tiny_span(t, s, SPAN_KERNEL, "body", 10, 30);
    tiny_span(t, s, SPAN_KERNEL, "body", 50, 30);
    tiny_seal(t);
    struct result r = tiny_run(t, "stacks", NULL, NULL);
    assert_int_equal(tiny_us(&r, "while", "self_us"), 40);
    assert_int_equal(tiny_us(&r, "while", "total_us"), 100);
    assert_int_equal(tiny_us(&r, "while;body", "self_us"), 60);
    result_free(&r);
    r = tiny_run(t, "tree", NULL, NULL);
    assert_int_equal(tiny_us(&r, "(no scope)", "device_us"), 100);
    result_free(&r);
    trace_free(t);
}

static void nothing_is_said_to_be_nothing(void **state) {
    (void)state;
    static const char *const names[] = {"stacks", "python"};
    for (int i = 0; i < 2; i++) {
        struct trace *t = tiny_new(false, false);
        tiny_seal(t);
        struct result r = tiny_run(t, names[i], NULL, NULL);
        assert_int_equal(r.nrows, 0);
        assert_true(r.nremarks > 0);
        assert_true(tiny_misses(&r, "Python"));
        result_free(&r);
        trace_free(t);
    }
    struct trace *t = tiny_new(false, false);
    tiny_span(t, tiny_thread(t, 1), SPAN_OP, "aten::mm", 0, 5);
    tiny_seal(t);
    struct result r = tiny_run(t, "stacks", "by", "device");
    assert_int_equal(r.nrows, 0);
    assert_true(tiny_misses(&r, "device"));
    result_free(&r);
    trace_free(t);
}

/* main calls f, which calls itself; an op inside is not Python's time. */
static void recursion_counts_once(void **state) {
    (void)state;
    struct program p = start();
    tiny_span(p.t, p.thread, SPAN_ANNOTATION, "ProfilerStep#0", 0, 400);
    py(&p, "a.py(1): main", 0, 300);
    py(&p, "a.py(5): f", 10, 200);
    py(&p, "a.py(5): f", 20, 100);
    py(&p, "<built-in method mm of T object at 0x7f00>", 30, 40);
    op(&p, "aten::mm", 35, 30);
    py(&p, "<built-in method mm of T object at 0x7f11>", 230, 10);
    tiny_seal(p.t);
    struct result r = tiny_run(p.t, "python", NULL, NULL);
    const char *mm = "<built-in method mm of T object>";
    assert_int_equal(tiny_us(&r, "f", "total_us"), 200);
    assert_int_equal(tiny_int(&r, "f", "calls"), 2);
    assert_int_equal(tiny_us(&r, "f", "self_us"), 160);
    assert_int_equal(tiny_us(&r, "main", "self_us"), 90);
    assert_int_equal(tiny_int(&r, mm, "calls"), 2);
    assert_int_equal(tiny_us(&r, mm, "self_us"), 20);
    assert_int_equal(tiny_int(&r, "f", "line"), 5);
    assert_true(tiny_null(&r, mm, "file"));
    double share = tiny_cell(&r, tiny_row(&r, "f"), "share_of_step_pct")->f;
    assert_true(share > 39.99 && share < 40.01);
    assert_true(r.nremarks == 1 && strstr(r.remarks[0], "67.5 %"));
    result_free(&r);
    trace_free(p.t);
}

/* loss.backward() waits in C while autograd's thread works. */
static void waiting_for_another_thread_is_no_python(void **state) {
    (void)state;
    struct program p = start();
    uint32_t grad = tiny_thread(p.t, 2);
    tiny_span(p.t, p.thread, SPAN_ANNOTATION, "ProfilerStep#0", 0, 100);
    py(&p, "<built-in method run_backward of E object at 0x1>", 0, 100);
    tiny_span(p.t, grad, SPAN_OP, "MmBackward0", 10, 70);
    tiny_seal(p.t);
    struct result r = tiny_run(p.t, "python", NULL, NULL);
    assert_int_equal(tiny_cell(&r, 0, "self_us")->i, 100 * US);
    double share = tiny_cell(&r, 0, "share_of_step_pct")->f;
    assert_true(share > 29.99 && share < 30.01);
    result_free(&r);
    trace_free(p.t);
}

/* JAX waits for the device in a frame that records nothing below it: that is no
 * Python, and the critical path goes on with the device. */
static void frames_that_wait_are_no_python(void **state) {
    (void)state;
    struct program p = start();
    tiny_span(p.t, p.thread, SPAN_ANNOTATION, "ProfilerStep#0", 0, 1000);
    py(&p, "a.py(1): main", 0, 990);
    py(&p, "jax/api.py(27): block_until_ready", 100, 890);
    tiny_launch(p.t, p.thread, p.stream, "gemm", 10, 900);
    tiny_seal(p.t);
    struct result r = tiny_run(p.t, "python", NULL, NULL);
    assert_int_equal(tiny_us(&r, "block_until_ready", "self_us"), 890);
    assert_int_equal(tiny_us(&r, "block_until_ready", "step_self_us"), 0);
    assert_true(tiny_us(&r, "main", "step_self_us") > 90);
    result_free(&r);
    r = tiny_run(p.t, "critical", NULL, NULL);
    int64_t compute = 0, python = 0;
    for (size_t i = 0; i < r.nrows; i++) {
        const char *kind = tiny_cell(&r, i, "kind")->s;
        int64_t us = tiny_cell(&r, i, "on_path_us")->i / US;
        if (strcmp(kind, "compute") == 0) compute += us;
        if (strcmp(kind, "python") == 0) python += us;
    }
    assert_int_equal(compute, 900);
    assert_true(python < 30);
    result_free(&r);
    trace_free(p.t);
}

static void steps_choose_pieces(void **state) {
    (void)state;
    struct program p = start();
    py(&p, "a.py(1): main", 0, 3000);
    for (int64_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", (int)i);
        tiny_span(p.t, p.thread, SPAN_ANNOTATION, name, 1000 * i, 900);
        py(&p, "a.py(9): f", 1000 * i + 100, 100 + i);
    }
    tiny_seal(p.t);
    struct result r = tiny_run(p.t, "python", "steps", "1..1");
    assert_int_equal(tiny_int(&r, "f", "calls"), 1);
    assert_int_equal(tiny_us(&r, "f", "self_us"), 101);
    result_free(&r);
    r = tiny_run(p.t, "stacks", "steps", "2..2");
    assert_int_equal(r.nrows, 1); /* main is in no step, but on the path */
    assert_int_equal(tiny_us(&r, "a.py(1): main;a.py(9): f", "self_us"), 102);
    result_free(&r);
    trace_free(p.t);
}

static void check_name(const char *name, const char *function, const char *file,
                       int64_t line) {
    struct frame_name f = frame_name_split(bytes_of(name));
    assert_int_equal(f.function.n, strlen(function));
    assert_true(bytes_eq(f.function, function, strlen(function)));
    assert_int_equal(f.file.n, strlen(file));
    if (f.file.n > 0) assert_true(bytes_eq(f.file, file, strlen(file)));
    assert_int_equal(f.line, line);
}

static void frames_are_taken_apart(void **state) {
    (void)state;
    check_name("pkg/a.py(12): f", "f", "pkg/a.py", 12);
    check_name("a (1): b.py(12): <lambda>", "<lambda>", "a (1): b.py", 12);
    check_name("<frozen os>(674): __getitem__", "__getitem__", "<frozen os>",
               674);
    check_name("$a.py:12 f", "f", "a.py", 12);
    check_name("$builtins len", "builtins len", "", -1);
    check_name("$<unknown> items", "<unknown> items", "", -1);
    check_name("nn.Module: Conv2d_3", "nn.Module: Conv2d_3", "", -1);
    check_name("<built-in function len>", "<built-in function len>", "", -1);
    check_name("", "", "", -1);
    check_name("$", "$", "", -1);
    check_name("a(x): b", "a(x): b", "", -1);
    check_name("(1): b", "(1): b", "", -1);
    char buf[FRAME_NAME_MAX];
    struct bytes b = frame_name_stable(bytes_of("<m at 0x7f>"), buf);
    assert_true(BYTES_IS(b, "<m>"));
    b = frame_name_stable(bytes_of("<m at 0x7g>"), buf);
    assert_true(BYTES_IS(b, "<m at 0x7g>"));
    b = frame_name_stable(bytes_of("<>"), buf);
    assert_true(BYTES_IS(b, "<>"));
    struct frame_name f = frame_name_split(bytes_of("train.py(1): main"));
    assert_true(frame_name_is_users(&f));
    f = frame_name_split(bytes_of("torch/nn/x.py(1): main"));
    assert_false(frame_name_is_users(&f));
    f = frame_name_split(bytes_of("/usr/lib/python3.12/x.py(1): main"));
    assert_false(frame_name_is_users(&f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_stand_under_what_launched_them),
        cmocka_unit_test(own_times_sum_to_the_threads),
        cmocka_unit_test(regions_cross_the_calls_that_open_them),
        cmocka_unit_test(ops_of_a_tpu_nest),
        cmocka_unit_test(nothing_is_said_to_be_nothing),
        cmocka_unit_test(recursion_counts_once),
        cmocka_unit_test(frames_that_wait_are_no_python),
        cmocka_unit_test(waiting_for_another_thread_is_no_python),
        cmocka_unit_test(steps_choose_pieces),
        cmocka_unit_test(frames_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
