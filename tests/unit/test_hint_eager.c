/* SPDX-License-Identifier: Apache-2.0
 * not-jitted: steps whose ops are called one by one from Python, so small that
 * what is left of them in one function is worked out by hand. Times in us. */
#include "unit/tiny.h"

#include <math.h>
#include <stdio.h>

enum { STEPS = 4, CALLS = 25, OP = 10, CALL_A_FUNCTION = 100 };

/* What the steps are like. */
struct program {
    int64_t apart; /* from op to op */
    int64_t own;   /* code of its own before the last op of every step */
    int64_t turn;  /* another program's turn, in step 0 alone */
    int thin;      /* so many of the ops only look at a shape */
};

static void eager_op(struct trace *t, uint32_t th, const char *name, int64_t ts,
                     int64_t dur) {
    struct span_in s = {.ts = ts * US,
                        .dur = dur * US,
                        .track = th,
                        .name = trace_str(t, bytes_of(name)),
                        .kind = SPAN_OP,
                        .flags = SPAN_EAGER};
    trace_span(t, &s);
}

/* Steps of TensorFlow. */
static struct result eager(const struct program *p) {
    struct trace *t = tiny_new(false, false);
    t->sources[0].format = format_named("stepstats");
    uint32_t th = tiny_thread(t, 1);
    int64_t at = 0;
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        int64_t begin = at;
        for (int k = 0; k < CALLS; k++) {
            if (k == CALLS - 1) at += p->own;
            if (k == CALLS / 2 && i == 0) at += p->turn;
            bool thin = k < p->thin;
            eager_op(t, th, thin ? "Shape" : "MatMul", at, thin ? 4 : OP);
            at += p->apart;
        }
        tiny_span(t, th, SPAN_ANNOTATION, name, begin, at - begin);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

static void expect(struct result *r, double us) {
    assert_true(r->nrows > 0);
    assert_string_equal(tiny_cell(r, 0, "id")->s, "not-jitted");
    double got = (double)tiny_cell(r, 0, "save_us")->i / US;
    if (fabs(got - us) > 0.01) fail_msg("saves %f, not %f", got, us);
    result_free(r);
}

static void the_ops_stay(void **state) {
    (void)state;
    struct result r = eager(&(struct program){.apart = 40});
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "25 eager ops"));
    assert_non_null(strstr(tiny_cell(&r, 0, "do")->s, "@tf.function"));
    expect(&r, 25 * 30 - CALL_A_FUNCTION);
}

/* What calling an op costs is taken off each: ops that do nothing take 4. */
static void calling_costs(void **state) {
    (void)state;
    struct result r = eager(&(struct program){.apart = 40, .thin = 5});
    expect(&r, 25 * 40 - 20 * (OP - 4) - CALL_A_FUNCTION);
}

/* Code that every step has between two of its ops is no way to an op. */
static void own_code_stays(void **state) {
    (void)state;
    struct result r = eager(&(struct program){.apart = 400, .own = 3000});
    /* the way to the last op is 390 longer, and stays with it */
    expect(&r, 25 * 390 - 390 - CALL_A_FUNCTION);
}

static void one_step_is_disturbed(void **state) {
    (void)state;
    struct result r = eager(&(struct program){.apart = 400, .turn = 30000});
    expect(&r, 25 * 390 - CALL_A_FUNCTION);
}

static void milliseconds_are_no_call(void **state) {
    (void)state;
    struct result r = eager(&(struct program){.apart = 4000});
    for (size_t i = 0; i < r.nrows; i++)
        assert_string_not_equal(tiny_cell(&r, i, "id")->s, "not-jitted");
    result_free(&r);
}

/* Steps of JAX: so many calls of compiled functions, each with an op that XLA
 * runs on a thread of its own. */
static struct result jax(int calls, bool frames) {
    struct trace *t = tiny_new(false, false);
    t->sources[0].format = format_named("xspace");
    trace_meta(t, 0, "hlo_module", bytes_of("jit_tanh"));
    uint32_t th = tiny_thread(t, 1), xla = tiny_thread(t, 2);
    uint32_t py = trace_track(t, 0, TRACK_PYTHON, 1, 1);
    int64_t at = 0;
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        int64_t begin = at;
        for (int k = 0; k < calls; k++) {
            /* JAX records each call twice, one in the other */
            tiny_span(t, th, SPAN_RUNTIME, "PjitFunction(tanh)", at, 100);
            tiny_span(t, th, SPAN_RUNTIME, "PjitFunction(tanh)", at + 1, 98);
            tiny_span(t, xla, SPAN_OP, "wrapped_tanh", at + 60, 20);
            if (frames)
                tiny_span(t, py, SPAN_PYTHON, "$traceback_util.py:191 reraise",
                          at, 1990);
            at += 2000;
        }
        tiny_span(t, th, SPAN_ANNOTATION, name, begin, at - begin);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

/* A call every 2 ms is no way to an op, unless JAX's own frames fill it. */
static void jax_op_by_op(void **state) {
    (void)state;
    struct result r = jax(CALLS, true);
    assert_true(r.nrows > 0);
    assert_string_equal(tiny_cell(&r, 0, "id")->s, "not-jitted");
    assert_non_null(strstr(tiny_cell(&r, 0, "do")->s, "@jax.jit"));
    assert_true(tiny_cell(&r, 0, "save_pct")->f > 95);
    result_free(&r);
    r = jax(CALLS, false);
    for (size_t i = 0; i < r.nrows; i++)
        assert_string_not_equal(tiny_cell(&r, i, "id")->s, "not-jitted");
    result_free(&r);
    r = jax(10, true); /* a small step is many calls, too */
    assert_true(r.nrows > 0);
    assert_string_equal(tiny_cell(&r, 0, "id")->s, "not-jitted");
    result_free(&r);
    r = jax(3, true); /* a step in a few functions */
    for (size_t i = 0; i < r.nrows; i++)
        assert_string_not_equal(tiny_cell(&r, i, "id")->s, "not-jitted");
    result_free(&r);
}

/* Steps of JAX that are one function, which runs on a device or on a thread of
 * XLA's, in an executor; then the program does something of its own, in a frame
 * of Python if it has a name. */
static struct result in_one_function(bool device, const char *frame) {
    struct trace *t = tiny_new(false, false);
    t->sources[0].format = format_named("xspace");
    trace_meta(t, 0, "hlo_module", bytes_of("jit_train"));
    uint32_t th = tiny_thread(t, 1), xla = tiny_thread(t, 2);
    uint32_t py = frame ? trace_track(t, 0, TRACK_PYTHON, 1, 1) : ROW_NONE;
    for (int i = 0, at = 0; i < STEPS; i++, at += 2000) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, at, 2000);
        tiny_span(t, th, SPAN_RUNTIME, "PjitFunction(train)", at, 100);
        if (!device) {
            tiny_span(t, xla, SPAN_RUNTIME, "ThunkExecutor::Execute", at + 20,
                      200);
            tiny_span(t, xla, SPAN_OP, "dot", at + 30, 180);
        }
        if (frame != NULL) tiny_span(t, py, SPAN_PYTHON, frame, at + 220, 1780);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

/* What goes by between two calls of a function is the program's own code. */
static void jax_in_one_function(void **state) {
    (void)state;
    for (int device = 0; device < 2; device++) {
        struct result r = in_one_function(device, "$train.py:12 batches");
        assert_int_equal(r.nrows, 1);
        assert_string_equal(tiny_cell(&r, 0, "id")->s, "python-overhead");
        assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "batches"));
        assert_true(tiny_cell(&r, 0, "save_pct")->f > 80);
        result_free(&r);
        r = in_one_function(device, "$array.py:615 _value"); /* it waits */
        assert_int_equal(r.nrows, 0);
        result_free(&r);
    }
    struct result r = in_one_function(false, "$queue.py:154 get");
    assert_non_null(strstr(tiny_cell(&r, 0, "title")->s, "for a queue"));
    assert_non_null(strstr(tiny_cell(&r, 0, "do")->s, "keep up"));
    result_free(&r);
    r = in_one_function(true, NULL); /* it may wait */
    assert_int_equal(r.nrows, 0);
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ops_stay),
        cmocka_unit_test(calling_costs),
        cmocka_unit_test(own_code_stays),
        cmocka_unit_test(one_step_is_disturbed),
        cmocka_unit_test(milliseconds_are_no_call),
        cmocka_unit_test(jax_op_by_op),
        cmocka_unit_test(jax_in_one_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
