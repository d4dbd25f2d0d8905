/* SPDX-License-Identifier: Apache-2.0
 * coverage: each op has one reason, reasons sum to all ops, losses are all
 * shown. */
#include "tiny.h"

#include "analyze/report/cover.h"
#include "feed.h"
#include "names/op_names.h"

static double have(const struct result *r, const char *what) {
    struct cell *c = tiny_cell(r, tiny_row(r, what), "have");
    if (c->null) fail_msg("%s: null", what);
    return c->f;
}

static double expected(const struct result *r, const char *what) {
    struct cell *c = tiny_cell(r, tiny_row(r, what), "expected");
    if (c->null) fail_msg("%s: null", what);
    return c->f;
}

static void empty_trace(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "coverage", NULL, NULL);
    assert_true(have(&r, "ops with device time") == 0);
    assert_true(tiny_null(&r, "ops with device time", "pct"));
    assert_string_equal(
        tiny_cell(&r, tiny_row(&r, "ops with device time"), "why")->s,
        "no op was recorded");
    assert_false(tiny_has_row(&r, "step time with any event"));
    result_free(&r);
    trace_free(t);
}

/* One op of every reason; the device's last event ends at 60. */
static struct trace *mixed(void) {
    struct trace *t = tiny_new(true, true);
    uint32_t a = tiny_thread(t, 1), s = tiny_stream(t, 0, 7);
    tiny_span(t, a, SPAN_OP, "aten::linear", 0, 10);
    tiny_span(t, a, SPAN_OP, "aten::t", 1, 1);
    tiny_span(t, a, SPAN_OP, "aten::addmm", 3, 5);
    tiny_launch(t, a, s, "gemm", 4, 55);
    tiny_span(t, a, SPAN_OP, "aten::empty", 11, 1);
    tiny_span(t, a, SPAN_OP, "aten::relu_", 13, 4);
    tiny_span(t, a, SPAN_API, "cudaLaunchKernel", 14, 1); /* lost */
    tiny_span(t, a, SPAN_OP, "c10d::allreduce_", 20, 2);
    tiny_span(t, a, SPAN_OP, "my::sort", 23, 2);
    tiny_span(t, a, SPAN_OP, "AddBackward0", 26, 1);
    tiny_span(t, a, SPAN_OP, "Torch-Compiled Region: 0/0", 30, 5);
    tiny_span(t, a, SPAN_OP, "aten::mul", 70, 4);
    tiny_span(t, a, SPAN_API, "cudaLaunchKernel", 71, 1); /* after the end */
    uint32_t m = trace_allocator(t, 0, bytes_of("GPU 0"), 0);
    tiny_mem(t, m, a, 11, 16, 512, 512);
    return t;
}

static void every_op_has_one_reason(void **state) {
    (void)state;
    struct trace *t = mixed();
    tiny_seal(t);
    struct result r = tiny_run(t, "coverage", NULL, NULL);
    static const struct {
        const char *what;
        int n;
    } want[] = {
        {"ops with device time", 2},
        {"no device time: view", 1},
        {"no device time: allocation", 1},
        {"no device time: record missing", 1},
        {"no device time: outside the window", 1},
        {"no device time: launched by a library", 1},
        {"no device time: ran on the CPU", 1},
        {"no device time: bookkeeping", 1},
        {"no device time: in a compiled region", 1},
    };
    double sum = 0;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_true(have(&r, want[i].what) == want[i].n);
        assert_true(expected(&r, want[i].what) == 10);
        sum += have(&r, want[i].what);
    }
    assert_true(sum == 10);
    assert_true(have(&r, "ops with memory") == 1);
    assert_true(have(&r, "no memory: in place") == 1);
    assert_true(have(&r, "no memory: custom op") == 1);
    assert_true(have(&r, "launching calls with device work") == 1);
    assert_true(expected(&r, "launching calls with device work") == 3);
    result_free(&r);
    trace_free(t);
}

static void launches_without_a_device_were_not_recorded(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t a = tiny_thread(t, 1);
    tiny_span(t, a, SPAN_OP, "aten::mm", 0, 10);
    tiny_span(t, a, SPAN_API, "cudaLaunchKernel", 4, 1);
    tiny_span(t, a, SPAN_OP, "aten::add", 20, 10);
    tiny_seal(t);
    struct result r = tiny_run(t, "coverage", NULL, NULL);
    assert_true(have(&r, "no device time: device not recorded") == 1);
    assert_true(have(&r, "no device time: no device recorded") == 1);
    assert_true(have(&r, "no memory: not recorded") == 2);
    assert_true(have(&r, "memory recording") == 0);
    result_free(&r);
    trace_free(t);
}

/* Device 10..15 in an op, 20..23 outside one, 30..32 without a launch; one
 * kernel begins before its call. */
static void device_time_by_owner(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t a = tiny_thread(t, 1), s = tiny_stream(t, 0, 7);
    tiny_span(t, a, SPAN_OP, "aten::mm", 8, 4);
    tiny_launch(t, a, s, "in", 9, 5);
    tiny_launch(t, a, s, "custom", 19, 3);
    tiny_span(t, s, SPAN_KERNEL, "lone", 30, 2);
    trace_link_host(t, 0, 77,
                    tiny_span(t, a, SPAN_API, "cudaLaunchKernel", 50, 1));
    trace_link_device(t, 0, 77, tiny_span(t, s, SPAN_KERNEL, "early", 46, 1));
    trace_link_host(t, 0, 78,
                    tiny_span(t, a, SPAN_API, "cudaGraphLaunch", 60, 1));
    trace_link_device(t, 0, 78, tiny_span(t, s, SPAN_KERNEL, "node", 62, 7));
    tiny_seal(t);
    struct result r = tiny_run(t, "coverage", NULL, NULL);
    assert_true(have(&r, "device time that belongs to an op") == 5);
    assert_true(expected(&r, "device time that belongs to an op") == 18);
    assert_true(have(&r, "device time, no op: in a CUDA graph") == 7);
    assert_true(have(&r, "device time, no op: launched outside ops") == 4);
    assert_true(have(&r, "device time, no op: launch not recorded") == 2);
    assert_true(have(&r, "device work that begins before its launch") == 1);
    result_free(&r);
    trace_free(t);
}

static void steps_say_how_much_is_explained(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t a = tiny_thread(t, 1);
    for (int i = 0; i < 2; i++) {
        row_id m = tiny_span(t, a, SPAN_ANNOTATION,
                             i ? "ProfilerStep#1" : "ProfilerStep#0", 100 * i,
                             100);
        t->spans.flags[m] |= SPAN_STEPMARK;
        trace_step_hint(t, m, i);
        tiny_span(t, a, SPAN_OP, "aten::mm", 100 * i + 10, i ? 20 : 60);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "coverage", NULL, NULL);
    assert_true(have(&r, "step time with a host event") == 80);
    assert_true(expected(&r, "step time with a host event") == 200);
    const char *where =
        tiny_cell(&r, tiny_row(&r, "step time with a host event"), "where")->s;
    assert_string_equal(where, "step 1 has least: 20.0 %");
    result_free(&r);
    r = tiny_run(t, "coverage", "steps", "0..0");
    assert_true(have(&r, "step time with any event") == 60);
    assert_true(expected(&r, "ops with device time") == 1);
    result_free(&r);
    trace_free(t);
}

/* Every note that means a loss has its row. */
static void losses_are_shown(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    for (int i = 0; i < NOTE_COUNT; i++) trace_note(t, (enum note_id)i, 3);
    t->sources[0].world_size = 4;
    t->sources[0].rank = 2;
    tiny_seal(t);
    struct result r = tiny_run(t, "coverage", NULL, NULL);
    /* clang-format off */
    static const char *const lost[] = {
        "lost: dropped-at-source", "lost: capped-at-source", "lost: file-cut",
        "lost: bad-event", "lost: kernel-without-launch",
        "lost: time-out-of-range", "lost: gzip-damaged"};
    /* clang-format on */
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        assert_true(have(&r, lost[i]) == 3);
    assert_false(tiny_has_row(&r, "lost: utf8-mended"));
    assert_true(have(&r, "ranks of the job") == 1);
    assert_true(expected(&r, "ranks of the job") == 4);
    assert_string_equal(
        tiny_cell(&r, tiny_row(&r, "ranks of the job"), "where")->s,
        "missing: 0 1 3");
    result_free(&r);
    trace_free(t);
}

static void views_by_name(void **state) {
    (void)state;
    assert_true(op_is_view(bytes_of("aten::t")));
    assert_true(op_is_view(bytes_of("dense/Reshape:Reshape")));
    assert_false(op_is_view(bytes_of("aten::tanh")));
    assert_false(op_is_view(bytes_of("aten::")));
    assert_false(op_is_view(bytes_of("")));
}

static void iterators_are_no_custom_ops(void **state) {
    (void)state;
    assert_true(op_is_custom(bytes_of("mylib::gather")));
    assert_false(op_is_custom(bytes_of("aten::gather")));
    assert_false(op_is_custom(bytes_of("Iterator::Root::Prefetch::MapV2")));
}

/* Where some eager op has its memory, another without has none. */
static void eager_ops_may_need_no_memory(void **state) {
    (void)state;
    for (int told = 0; told < 2; told++) {
        struct trace *t = tiny_new(false, true);
        uint32_t a = tiny_thread(t, 1);
        uint16_t m = trace_allocator(t, 0, bytes_of("host"), ROW_NONE);
        tiny_span(t, a, SPAN_OP, "MatMul", 0, 10);
        tiny_span(t, a, SPAN_OP, "Pack", 20, 10);
        t->spans.flags[0] = t->spans.flags[1] = SPAN_EAGER;
        tiny_mem(t, m, a, told ? 5 : 15, 16, 512, 512);
        tiny_seal(t);
        struct result r = tiny_run(t, "coverage", NULL, NULL);
        assert_int_equal(tiny_has_row(&r, "no memory: eager"), !told);
        result_free(&r);
        trace_free(t);
    }
}

/* Adds a source that stands beside the first, as `opscope record` leaves
 * them: the program's own recording, or the processes seen from outside. */
static void beside(struct trace *t, bool processes, bool stacks) {
    uint32_t s = trace_source(t, "beside", format_named("xspace"), NULL,
                              (struct bytes){0});
    t->sources[s].companion_of = 0;
    t->sources[s].by_opscope = true;
    t->sources[s].beside = !processes;
    t->sources[s].process_view = processes;
    t->sources[s].has_stacks = stacks;
}

static const char *fix(const struct result *r, const char *what) {
    struct cell *c = tiny_cell(r, tiny_row(r, what), "fix");
    return c->null ? "" : c->s;
}

/* What stands beside a trace fills its gaps, and gives no advice of its own. */
static void advice_fits_opscope_record(void **state) {
    (void)state;
    for (int stacks = 0; stacks < 2; stacks++) {
        struct trace *t = tiny_new(false, false);
        t->sources[0].format = format_named("xspace");
        t->sources[0].has_stacks = false;
        uint32_t a = tiny_thread(t, 1);
        tiny_span(t, a, SPAN_ANNOTATION, "ProfilerStep#1", 0, 100);
        tiny_span(t, a, SPAN_RUNTIME, "EagerExecute: Mul", 10, 10);
        beside(t, false, stacks == 1);
        beside(t, true, false);
        tiny_seal(t);
        struct result r = tiny_run(t, "coverage", NULL, NULL);
        assert_true(have(&r, "Python frames") == stacks);
        const char *f = fix(&r, "Python frames");
        assert_true(stacks ? *f == 0 : strstr(f, "record --stacks") != NULL);
        f = fix(&r, "step time with any event");
        assert_non_null(strstr(f, stacks ? "`python`" : "record --stacks"));
        assert_non_null(
            strstr(fix(&r, "memory recording"), "opscope record --memory"));
        result_free(&r);
        trace_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace),
        cmocka_unit_test(every_op_has_one_reason),
        cmocka_unit_test(launches_without_a_device_were_not_recorded),
        cmocka_unit_test(device_time_by_owner),
        cmocka_unit_test(steps_say_how_much_is_explained),
        cmocka_unit_test(losses_are_shown),
        cmocka_unit_test(views_by_name),
        cmocka_unit_test(iterators_are_no_custom_ops),
        cmocka_unit_test(eager_ops_may_need_no_memory),
        cmocka_unit_test(advice_fits_opscope_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
