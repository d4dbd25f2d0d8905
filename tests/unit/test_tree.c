/* SPDX-License-Identifier: Apache-2.0
 * tree: scopes from frames, names and regions; the backward pass with its
 * forward; own + children = total; what is in no scope. */
#include "unit/tiny.h"

#include "unit/feed.h"

#include "analyze/code/scope_tree.h"
#include "names/op_names.h"
#include <stdio.h>

static uint32_t python(struct trace *t, uint32_t thread) {
    const struct track *tr = &t->tracks[thread];
    uint32_t p = trace_track(t, 0, TRACK_PYTHON, tr->pid, tr->tid);
    t->tracks[p].thread = thread;
    t->sources[0].has_stacks = true;
    return p;
}

static row_id frame(struct trace *t, uint32_t track, const char *name,
                    int64_t ts, int64_t dur) {
    return tiny_span(t, track, SPAN_PYTHON, name, ts, dur);
}

static void launch(struct trace *t, uint32_t thread, uint32_t stream,
                   const char *kernel, int64_t ts, int64_t dur) {
    tiny_launch(t, thread, stream, kernel, ts, dur);
}

/* Net calls Conv in a step; its backward runs on another thread. */
static struct trace *net(void) {
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1), py = python(t, th);
    uint32_t grad = tiny_thread(t, 2), s = tiny_stream(t, 0, 7);
    frame(t, py, "train.py(3): main", 0, 1000);
    frame(t, py, "nn.Module: Net_0", 100, 300);
    frame(t, py, "nn.Module: Conv_0", 150, 100);
    tiny_span(t, th, SPAN_OP, "aten::conv2d", 160, 50);
    launch(t, th, s, "conv", 170, 30);
    tiny_span(t, th, SPAN_OP, "aten::relu", 300, 40);
    launch(t, th, s, "relu", 310, 10);
    tiny_span(t, th, SPAN_OP, "aten::add_", 800, 20);
    launch(t, th, s, "add", 805, 5);
    tiny_span(t, grad, SPAN_OP,
              "autograd::engine::evaluate_function: ConvBackward0", 500, 90);
    tiny_span(t, grad, SPAN_OP, "ConvBackward0", 510, 70);
    launch(t, grad, s, "dgrad", 520, 60);
    trace_flow(t, 1, th, 160 * US, 's');
    trace_flow(t, 1, grad, 510 * US, 'f');
    tiny_span(t, grad, SPAN_OP,
              "autograd::engine::evaluate_function: "
              "torch::autograd::AccumulateGrad",
              600, 10);
    launch(t, grad, s, "acc", 602, 2);
    return t;
}

static void modules_have_their_frames_and_their_backward(void **state) {
    (void)state;
    struct trace *t = net();
    tiny_seal(t);
    struct result r = tiny_run(t, "tree", NULL, NULL);
    assert_int_equal(tiny_us(&r, "Net_0", "host_us"), 300 + 90 + 10);
    assert_int_equal(tiny_us(&r, "Net_0", "host_self_us"), 200);
    assert_int_equal(tiny_us(&r, "Net_0/Conv_0", "host_us"), 200);
    assert_int_equal(tiny_us(&r, "Net_0/Conv_0", "backward_host_us"), 100);
    assert_int_equal(tiny_us(&r, "Net_0/Conv_0", "device_us"), 30 + 60 + 2);
    assert_int_equal(tiny_us(&r, "Net_0/Conv_0", "backward_device_us"), 62);
    assert_int_equal(tiny_us(&r, "Net_0", "device_us"), 102);
    assert_int_equal(tiny_us(&r, "Net_0", "device_self_us"), 10);
    assert_int_equal(tiny_us(&r, "(no scope)", "device_us"), 5);
    assert_int_equal(tiny_us(&r, "(no scope)", "host_us"), 20);
    assert_int_equal(tiny_int(&r, "Net_0/Conv_0", "calls"), 1);
    assert_int_equal(tiny_int(&r, "Net_0/Conv_0", "depth"), 1);
    assert_true(tiny_null(&r, "Net_0", "bytes"));
    assert_true(tiny_null(&r, "Net_0", "parameters"));
    assert_true(tiny_misses(&r, "parameters"));
    assert_true(r.nremarks >= 2);
    result_free(&r);
    trace_free(t);
}

#define W(cat, name, tid, ts, dur, args)                                       \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name                       \
    "\",\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur               \
    ",\"args\":{" args "}}"
#define FLOW(ph, id, tid, ts)                                                  \
    "{\"ph\":\"" ph "\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"bp\":\"e\","  \
    "\"pid\":1,\"tid\":" #tid ",\"ts\":" #ts ",\"id\":" #id "}"
#define ACC  "torch::autograd::AccumulateGrad"
#define EVAL "autograd::engine::evaluate_function: "

/* The weight of a plain op is known by its gradient; a second backward pass
 * through the same op does not count it again. */
static void a_modules_own_weights_count_once(void **state) {
    (void)state;
    struct feed f = feed_text(
        /* clang-format off */
        "{\"schemaVersion\":1,\"record_shapes\":1,\"traceEvents\":["
        W("python_function", "nn.Module: Net_0", 1, 0, 100,
          "\"Python id\":1") ","
        W("cpu_op", "aten::add", 1, 10, 5,
          "\"Input Dims\":[[8, 4], [1, 4]],\"Sequence number\":7") ","
        W("cpu_op", EVAL "AddBackward0", 2, 200, 5, "") ","
        W("cpu_op", "AddBackward0", 2, 201, 3, "\"Sequence number\":7") ","
        W("cpu_op", EVAL ACC, 2, 210, 5, "") ","
        W("cpu_op", ACC, 2, 211, 3, "\"Input Dims\":[[1, 4]]") ","
        W("cpu_op", EVAL "AddBackward0", 2, 300, 5, "") ","
        W("cpu_op", "AddBackward0", 2, 301, 3, "\"Sequence number\":7") ","
        W("cpu_op", EVAL ACC, 2, 310, 5, "") ","
        W("cpu_op", ACC, 2, 311, 3, "\"Input Dims\":[[1, 4]]") ","
        FLOW("s", 1, 1, 10) "," FLOW("f", 1, 2, 201) ","
        FLOW("s", 2, 1, 10) "," FLOW("f", 2, 2, 301) "]}"
        /* clang-format on */
    );
    struct result r = tiny_run(f.t, "tree", "by", "module");
    assert_int_equal(tiny_int(&r, "Net_0", "parameters"), 4);
    result_free(&r);
    feed_free(&f);
}

static void a_tree_is_cut_by_glob_time_and_top(void **state) {
    (void)state;
    struct trace *t = net();
    tiny_seal(t);
    struct result r = tiny_run(t, "tree", "scope", "*Conv_0");
    assert_int_equal(r.nrows, 1);
    result_free(&r);
    r = tiny_run(t, "tree", "scope", "Net_0");
    assert_int_equal(r.nrows, 2); /* with what is inside of it */
    result_free(&r);
    r = tiny_run(t, "tree", "min-us", "50");
    assert_false(tiny_has_row(&r, "(no scope)"));
    assert_int_equal(r.nrows, 2);
    result_free(&r);
    r = tiny_run(t, "tree", "top", "2");
    assert_int_equal(r.nrows, 2); /* the largest, not the first */
    assert_true(tiny_has_row(&r, "Net_0/Conv_0"));
    result_free(&r);
    r = tiny_run(t, "tree", "scope", "nothing");
    assert_int_equal(r.nrows, 0);
    assert_true(r.nremarks >= 1);
    result_free(&r);
    trace_free(t);
}

static void ops_nest_as_they_were_called(void **state) {
    (void)state;
    struct trace *t = net();
    tiny_seal(t);
    struct result r = tiny_run(t, "tree", "by", "op");
    assert_int_equal(tiny_us(&r, "aten::conv2d", "device_us"), 30);
    assert_int_equal(tiny_us(&r, "aten::conv2d", "host_us"), 50);
    const char *back = "autograd::engine::evaluate_function: ConvBackward0";
    assert_int_equal(tiny_us(&r, back, "host_us"), 90);
    assert_int_equal(tiny_us(&r, back, "host_self_us"), 20);
    assert_false(tiny_has_row(&r, "(no scope)"));
    result_free(&r);
    r = tiny_run(t, "tree", "by", "code");
    assert_int_equal(tiny_us(&r, "train.py(3): main", "device_us"), 107);
    assert_int_equal(tiny_us(&r, "train.py(3): main/Net_0/Conv_0", "device_us"),
                     92);
    result_free(&r);
    trace_free(t);
}

static void regions_are_scopes_where_names_spell_none(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t th = tiny_thread(t, 1), s = tiny_stream(t, 0, 7);
    uint32_t gpu = trace_allocator(t, 0, bytes_of("GPU 0"), 0);
    tiny_span(t, th, SPAN_ANNOTATION, "forward", 0, 100);
    tiny_span(t, th, SPAN_ANNOTATION, "attention", 10, 50);
    tiny_span(t, th, SPAN_OP, "aten::mm", 20, 10);
    launch(t, th, s, "mm", 22, 8);
    tiny_mem(t, gpu, th, 25, 1, 4096, 4096);
    tiny_mem(t, gpu, th, 70, 2, 100, 4196);
    tiny_mem(t, gpu, th, 80, 1, -4096, 100);
    tiny_seal(t);
    struct result r = tiny_run(t, "tree", "by", "scope");
    assert_int_equal(tiny_us(&r, "forward/attention", "device_us"), 8);
    assert_int_equal(tiny_us(&r, "forward", "host_self_us"), 50);
    assert_int_equal(tiny_int(&r, "forward/attention", "bytes"), 4096);
    assert_int_equal(tiny_int(&r, "forward", "bytes"), 4196);
    result_free(&r);
    r = tiny_run(t, "tree", "min-bytes", "4K");
    assert_true(tiny_has_row(&r, "forward/attention"));
    result_free(&r);
    trace_free(t);
}

static void tensorflow_names_are_paths(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    t->sources[0].format = format_named("xspace");
    uint32_t th = tiny_thread(t, 1);
    tiny_span(t, th, SPAN_OP, "net/fc/MatMul:MatMul", 0, 10);
    tiny_span(t, th, SPAN_OP, "gradient_tape/net/fc/MatMul/MatMul_1:MatMul", 20,
              5);
    tiny_span(t, th, SPAN_OP, "loss/Mean:Mean", 30, 1);
    tiny_seal(t);
    struct result r = tiny_run(t, "tree", NULL, NULL);
    assert_int_equal(tiny_us(&r, "net", "host_us"), 15);
    assert_int_equal(tiny_us(&r, "net", "host_self_us"), 0);
    assert_int_equal(tiny_int(&r, "net", "calls"), 2);
    assert_int_equal(tiny_us(&r, "net/fc/MatMul", "host_self_us"), 10);
    assert_int_equal(tiny_us(&r, "net/fc/MatMul/MatMul_1", "host_us"), 5);
    assert_int_equal(tiny_us(&r, "net", "backward_host_us"), 5);
    assert_true(tiny_null(&r, "net", "device_us"));
    assert_string_equal(tiny_cell(&r, 0, "path")->s, "net");
    result_free(&r);
    trace_free(t);
}

static void check_path(bool xla, const char *name, const char *want,
                       bool want_back) {
    struct paths p;
    struct sink out;
    bool back;
    assert_true(paths_init(&p));
    uint32_t n = xla ? scope_path_xla(&p, bytes_of(name), &back)
                     : scope_path_tf(&p, bytes_of(name), &back);
    sink_memory(&out);
    if (n != PATH_NONE) paths_text(&p, n, "/", 1000, &out);
    sink_putc(&out, '\0');
    assert_string_equal(out.buf, want);
    assert_int_equal(back, want_back);
    sink_free(&out);
    paths_free(&p);
}

static void backward_scopes_stand_with_their_forward(void **state) {
    (void)state;
    check_path(false, "conv/Relu:_FusedConv2D", "conv/Relu", false);
    check_path(false, "gradients/conv/Conv2D_grad/ReluGrad:ReluGrad",
               "conv/Conv2D/ReluGrad", true);
    check_path(false, "train/gradients_1/a/b_grad/Sum:Sum", "a/b/Sum", true);
    check_path(false, "gradients/Fill:Fill", "gradients/Fill", false);
    check_path(false, "S/gradient_tape/net/a/b:Mul", "S/net/a/b", true);
    check_path(false, "my_grad/x:Mul", "my_grad/x", false);
    check_path(false, "Iterator::Root::Map[0]", "Iterator/Root/Map[0]", false);
    check_path(false, "", "", false);
    check_path(false, "//", "", false);
    check_path(true, "jit(step)/jvp(layer0)/dot_general",
               "jit(step)/layer0/dot_general", false);
    check_path(true, "jit(step)/transpose(jvp(layer0))/dot_general",
               "jit(step)/layer0/dot_general", true);
    check_path(true, "jit(f)/transpose(jvp())/mul", "jit(f)/mul", true);
    check_path(true, "jit(f)/transpose", "jit(f)/transpose", false);
    check_path(true, "jit(f)/transpose(", "jit(f)/transpose(", false);
}

static int64_t weights(const char *dims, const char *op) {
    return weights_from(bytes_of(dims), op_weight_inputs(bytes_of(op)));
}

static void weights_are_counted_from_shapes(void **state) {
    (void)state;
    assert_int_equal(weights("[[32, 3, 8, 8], [16, 3, 3, 3], [16], [], []]",
                             "aten::conv2d"),
                     16 * 27 + 16);
    assert_int_equal(weights("[[8, 4], [5, 4], []]", "aten::linear"), 20);
    assert_int_equal(weights("[[9, 7], [], [7], [7], []]", "aten::layer_norm"),
                     14);
    assert_int_equal(
        weights("[[5, 1, 4], [[1, 1, 3], [1, 1, 3]], [[12, 4], [12, 3], [12]],"
                " []]",
                "aten::lstm"),
        48 + 36 + 12);
    assert_int_equal(weights("", "aten::linear"), -1);
    assert_int_equal(weights("[[[[", "aten::linear"), -1);
    assert_int_equal(weights("[[1],[99999999999999999999,9999999999999999999]]",
                             "aten::linear"),
                     -1);
    assert_int_equal(op_weight_inputs(bytes_of("aten::add")), 0);
    assert_int_equal(op_weight_inputs(bytes_of("")), 0);
}

static void steps_and_devices_are_chosen(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t th = tiny_thread(t, 1), a = tiny_stream(t, 0, 7),
             b = tiny_stream(t, 1, 7);
    for (int64_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", (int)i);
        tiny_span(t, th, SPAN_ANNOTATION, name, 1000 * i, 900);
        tiny_span(t, th, SPAN_OP, "aten::mm", 1000 * i + 10, 100);
        launch(t, th, a, "mm", 1000 * i + 20, 50);
        launch(t, th, b, "mm", 1000 * i + 30, 50); /* at the same time */
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "tree", "steps", "1..1");
    assert_int_equal(tiny_int(&r, "aten::mm", "calls"), 1);
    assert_int_equal(tiny_us(&r, "aten::mm", "device_us"), 100);
    result_free(&r);
    r = tiny_run(t, "tree", NULL, NULL);
    assert_int_equal(tiny_us(&r, "aten::mm", "device_us"), 300);
    result_free(&r);
    trace_free(t);
}

static void little_is_answered_in_a_sentence(void **state) {
    (void)state;
    static const char *const by[] = {"scope", "module", "op", "code"};
    for (int i = 0; i < 4; i++) {
        struct trace *t = tiny_new(false, false);
        tiny_seal(t);
        struct result r = tiny_run(t, "tree", "by", by[i]);
        assert_int_equal(r.nrows, 0);
        assert_true(r.nremarks > 0);
        result_free(&r);
        trace_free(t);
        t = tiny_new(true, false); /* a device alone */
        tiny_span(t, tiny_stream(t, 0, 7), SPAN_KERNEL, "k", 5, 10);
        tiny_seal(t);
        r = tiny_run(t, "tree", "by", by[i]);
        assert_int_equal(tiny_us(&r, "(no scope)", "device_us"), 10);
        result_free(&r);
        trace_free(t);
    }
}

/* Frames that call themselves without end make no text without end. */
static void deep_paths_are_cut(void **state) {
    (void)state;
    enum { DEEP = 3000 };
    struct trace *t = tiny_new(false, false);
    uint32_t py = python(t, tiny_thread(t, 1));
    for (int64_t i = 0; i < DEEP; i++)
        frame(t, py, "a.py(1): f", i, 2 * DEEP - 2 * i);
    tiny_seal(t);
    struct result r = tiny_run(t, "tree", "by", "code");
    assert_int_equal(r.nrows, PATH_DEPTH_MAX);
    assert_int_equal(tiny_cell(&r, 0, "host_us")->i, 2 * DEEP * US);
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_have_their_frames_and_their_backward),
        cmocka_unit_test(a_modules_own_weights_count_once),
        cmocka_unit_test(a_tree_is_cut_by_glob_time_and_top),
        cmocka_unit_test(ops_nest_as_they_were_called),
        cmocka_unit_test(regions_are_scopes_where_names_spell_none),
        cmocka_unit_test(tensorflow_names_are_paths),
        cmocka_unit_test(backward_scopes_stand_with_their_forward),
        cmocka_unit_test(weights_are_counted_from_shapes),
        cmocka_unit_test(steps_and_devices_are_chosen),
        cmocka_unit_test(little_is_answered_in_a_sentence),
        cmocka_unit_test(deep_paths_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
