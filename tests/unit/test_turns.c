/* SPDX-License-Identifier: Apache-2.0
 * Steps that nobody marked: programs of every shape, told right or not at all.
 * Each is written as the calls that it makes; how many steps it has is known. */
#include "tiny.h"
#include <stdio.h>

#include <stdio.h>

/* A thread that calls one thing after the other. */
struct program {
    struct trace *t;
    uint32_t thread;
    int64_t now;
};

static struct program program_new(void) {
    struct trace *t = tiny_new(false, false);
    return (struct program){t, tiny_thread(t, 1), 0};
}

static void op(struct program *p, const char *name) {
    tiny_span(p->t, p->thread, SPAN_OP, name, p->now, 8);
    p->now += 10;
}

/* A region of n ops of one name. */
static void region(struct program *p, const char *name, const char *inner,
                   int n) {
    int64_t from = p->now++;
    for (int i = 0; i < n; i++) op(p, inner);
    tiny_span(p->t, p->thread, SPAN_ANNOTATION, name, from, p->now - from);
    p->now += 5;
}

static void step_of(struct program *p, const char *optimizer) {
    region(p, optimizer, "aten::add_", 4);
}

static void forward(struct program *p, int layers) {
    op(p, "aten::embedding");
    for (int i = 0; i < layers; i++) {
        op(p, "aten::layer_norm");
        op(p, "aten::linear");
        op(p, "aten::gelu");
    }
    op(p, "aten::log_softmax");
}

static void backward(struct program *p, int layers) {
    op(p, "autograd::engine::evaluate_function: LogSoftmaxBackward0");
    for (int i = 0; i < layers; i++) {
        op(p, "autograd::engine::evaluate_function: GeluBackward0");
        op(p, "autograd::engine::evaluate_function: AddmmBackward0");
    }
}

static void train(struct program *p, int layers) {
    op(p, "aten::zeros");
    forward(p, layers);
    backward(p, layers);
    step_of(p, "Optimizer.step#SGD.step");
}

static void evaluate(struct program *p, int batches) {
    for (int i = 0; i < batches; i++) {
        forward(p, 4);
        op(p, "aten::argmax");
        op(p, "aten::item");
    }
}

/* Seals and checks: so many steps, by that sign. */
static void expect(struct program *p, size_t steps, enum turn_sign sign) {
    tiny_seal(p->t);
    assert_int_equal(p->t->sources[0].step_rule, STEPS_INFERRED);
    assert_int_equal(p->t->nsteps, steps);
    assert_int_equal(p->t->sources[0].turn_sign, sign);
    assert_int_equal(p->t->notes[NOTE_STEPS_INFERRED], steps);
    for (size_t i = 0; i < steps; i++) {
        const struct step *s = &p->t->steps[i];
        assert_int_equal(s->number, i);
        assert_true(s->dur > 0);
        if (i > 0) assert_int_equal(s->ts, s[-1].ts + s[-1].dur);
    }
    trace_free(p->t);
}

/* Seals and checks: the steps cannot be told. */
static void expect_none(struct program *p) {
    tiny_seal(p->t);
    assert_int_equal(p->t->sources[0].step_rule, STEPS_WHOLE);
    assert_int_equal(p->t->nsteps, 1);
    assert_int_equal(p->t->notes[NOTE_STEPS_NONE], 1);
    trace_free(p->t);
}

static void training(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 7; i++) train(&p, 4);
    expect(&p, 7, TURN_OPTIMIZER);
}

static void two_steps_are_enough_and_one_is_no_loop(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 2; i++) train(&p, 4);
    expect(&p, 2, TURN_OPTIMIZER);
    p = program_new();
    train(&p, 12);
    expect_none(&p);
}

static void the_first_step_may_do_more(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 20; i++) op(&p, "cudaMalloc");
    for (int i = 0; i < 5; i++) train(&p, 4);
    expect(&p, 5, TURN_OPTIMIZER);
}

static void gradients_may_be_gathered_over_several_batches(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 4; k++) {
            forward(&p, 4);
            backward(&p, 4);
        }
        step_of(&p, "Optimizer.step#SGD.step");
    }
    expect(&p, 5, TURN_OPTIMIZER);
}

static void an_evaluation_in_between_is_part_of_a_step(void **state) {
    (void)state;
    for (int every = 3; every <= 7; every++) {
        struct program p = program_new();
        for (int i = 0; i < 20; i++) {
            train(&p, 4);
            if (i % every == every - 1) evaluate(&p, 3);
        }
        expect(&p, 20, TURN_OPTIMIZER);
    }
}

/* Discriminator (so many times) and generator; the same optimizer's name, or
 * two of them. */
static struct program two_nets(int n, int critic, const char *a, const char *b,
                               bool cold) {
    struct program p = program_new();
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < critic; k++) {
            forward(&p, 4);
            forward(&p, 4);
            op(&p, "aten::zeros_like");
            backward(&p, 4);
            if (cold && i == 0 && k == 0) op(&p, "aten::clone");
            step_of(&p, a);
        }
        forward(&p, 4);
        op(&p, "aten::neg");
        backward(&p, 6);
        step_of(&p, b);
    }
    return p;
}

static void two_optimizers_take_turns(void **state) {
    (void)state;
    static const char adam[] = "Optimizer.step#Adam.step";
    static const char sgd[] = "Optimizer.step#SGD.step";
    for (int critic = 1; critic <= 5; critic++) {
        struct program p = two_nets(4, critic, adam, adam, false);
        expect(&p, 4, TURN_OPTIMIZER);
        p = two_nets(5, critic, sgd, adam, true);
        expect(&p, 5, TURN_OPTIMIZER);
    }
}

static void what_follows_the_optimizer_belongs_to_its_step(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 6; i++) {
        train(&p, 2);
        for (int k = 0; k < 3; k++) op(&p, "aten::item"); /* logs */
    }
    tiny_seal(p.t);
    assert_int_equal(p.t->nsteps, 6);
    const struct step *last = &p.t->steps[5];
    assert_int_equal(last->ts + last->dur, p.t->sources[0].window_end);
    trace_free(p.t);
}

static void a_window_may_begin_and_end_within_a_step(void **state) {
    (void)state;
    struct program p = program_new();
    backward(&p, 2);
    step_of(&p, "Optimizer.step#SGD.step");
    for (int i = 0; i < 5; i++) train(&p, 4);
    forward(&p, 4);
    expect(&p, 5, TURN_OPTIMIZER);
}

static void lengths_may_vary(void **state) {
    (void)state;
    struct program p = program_new();
    static const int lengths[] = {5, 12, 7, 9, 6, 11, 8};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        train(&p, lengths[i]);
    expect(&p, 7, TURN_OPTIMIZER);
}

static void weights_may_be_changed_by_hand(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 8; i++) {
        forward(&p, 4);
        backward(&p, 4);
        for (int k = 0; k < 4; k++) op(&p, "aten::sub_");
    }
    expect(&p, 8, TURN_BACKWARD);
}

static void batches_that_are_asked_for(void **state) {
    (void)state;
    struct program p = program_new();
    op(&p, "aten::randperm"); /* once, when the loader is made */
    for (int i = 0; i < 9; i++) {
        region(&p,
               "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
               i < 8 ? "aten::stack" : "aten::empty", i < 8 ? 2 : 0);
        if (i < 8) forward(&p, 4);
    }
    expect(&p, 8, TURN_INPUT);
}

static void calls_of_a_function(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 6; i++) {
        int64_t from = p.now++;
        tiny_span(p.t, p.thread, SPAN_RUNTIME, "Wait for usage holds", p.now,
                  3);
        p.now += 90;
        tiny_span(p.t, p.thread, SPAN_RUNTIME, "PjitFunction(step)", from,
                  p.now - from);
        p.now += 10;
    }
    expect(&p, 6, TURN_FUNCTION);
}

/* Layers repeat in a pass as passes do in a loop; only the loop leaves nothing
 * over. */
static void passes_are_told_from_layers(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 6; i++) forward(&p, 12);
    expect(&p, 6, TURN_SEQUENCE);
    p = program_new();
    forward(&p, 48);
    expect_none(&p);
    p = program_new();
    forward(&p, 48);
    forward(&p, 48);
    expect_none(&p);
}

/* A stack of layers with nothing before or behind it: one pass of twelve layers
 * is as good a reading as twelve passes of one. */
static void layers_alone_are_not_told(void **state) {
    (void)state;
    for (int passes = 1; passes <= 5; passes++) {
        struct program p = program_new();
        for (int i = 0; i < passes * 12; i++) {
            op(&p, "aten::layer_norm");
            for (int k = 0; k < 3; k++) op(&p, "aten::linear");
            op(&p, "aten::scaled_dot_product_attention");
            op(&p, "aten::linear");
            op(&p, "aten::add");
        }
        expect_none(&p);
    }
}

/* The generator's step has all that the critic's has, and more gradients. */
static void a_step_with_more_gradients_is_another_nets(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 6; k++) {
            forward(&p, 4);
            backward(&p, k < 5 ? 4 : 7);
            step_of(&p, "Optimizer.step#Adam.step");
        }
    }
    expect(&p, 4, TURN_OPTIMIZER);
    /* so many that they are not found to be of one step: not told */
    p = program_new();
    for (int i = 0; i < 40; i++) {
        forward(&p, 4);
        backward(&p, i % 10 < 9 ? 4 : 7);
        step_of(&p, "Optimizer.step#Adam.step");
    }
    expect_none(&p);
}

/* TensorFlow, op by op: the optimizer is some assignments. */
static void variables_that_change_tell_the_outer_loop(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 2; k++) {
            op(&p, "MatMul");
            op(&p, "Relu");
        }
        op(&p, "Mean");
        for (int k = 0; k < 2; k++) op(&p, "AssignSubVariableOp");
    }
    expect(&p, 6, TURN_SEQUENCE);
}

/* The call of a compiled function, as JAX records it: twice, one in the other,
 * and something of the runtime's that comes now and then. */
static void jitted(struct program *p, const char *name) {
    int64_t from = p->now;
    tiny_span(p->t, p->thread, SPAN_RUNTIME, name, from, 90);
    tiny_span(p->t, p->thread, SPAN_RUNTIME, name, from + 2, 80);
    if (from % 7 < 3)
        tiny_span(p->t, p->thread, SPAN_RUNTIME, "ParseArguments", from + 4, 2);
    p->now += 100;
    if (from % 5 < 2) {
        tiny_span(p->t, p->thread, SPAN_RUNTIME, "Wait for usage holds", p->now,
                  3);
        p->now += 7;
    }
}

static void compiled_functions(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 9; i++) { /* gradients, then the update; a look */
        jitted(&p, "PjitFunction(grads)");
        jitted(&p, "PjitFunction(update)");
        tiny_span(p.t, p.thread, SPAN_ANNOTATION, "np.asarray(jax.Array)",
                  p.now, 500);
        p.now += 510;
    }
    expect(&p, 9, TURN_FUNCTION);
    p = program_new();
    for (int i = 0; i < 9; i++) {
        jitted(&p, "PjitFunction(train_step)");
        if (i % 3 == 2) jitted(&p, "PjitFunction(eval_step)");
    }
    expect(&p, 9, TURN_FUNCTION);
}

/* Is f the step and g a test of every third, or is g the step, for which f
 * gathers? Nobody knows. */
static void functions_of_different_counts_are_not_told(void **state) {
    (void)state;
    for (int often = 2; often <= 5; often++) {
        struct program p = program_new();
        for (int i = 0; i < 6; i++) {
            for (int k = 0; k < often; k++) jitted(&p, "PjitFunction(f)");
            jitted(&p, "PjitFunction(g)");
        }
        expect_none(&p);
    }
}

/* Inference with Python frames: the model is called by name, its layers inside
 * of it. A batch is made before each call. */
static void calls_of_a_module(void **state) {
    (void)state;
    for (int passes = 1; passes <= 5; passes += 4) {
        struct program p = program_new();
        uint32_t frames = trace_track(p.t, 0, TRACK_PYTHON, 1, 1);
        for (int i = 0; i < passes; i++) {
            op(&p, "aten::randn");
            int64_t from = p.now;
            for (int k = 0; k < 12; k++) {
                char name[32];
                snprintf(name, sizeof name, "nn.Module: Linear_%d", k);
                tiny_span(p.t, frames, SPAN_PYTHON, name, p.now - 1, 10);
                op(&p, "aten::linear");
            }
            tiny_span(p.t, frames, SPAN_PYTHON, "nn.Module: Net_0", from - 2,
                      p.now - from + 2);
            p.now += 5;
        }
        if (passes == 1) expect_none(&p);
        else expect(&p, 5, TURN_MODULE);
    }
}

/* TensorFlow: Python calls the function, executors do nearly all that is
 * recorded. What came before the loop is no part of it. */
static void a_function_whose_work_is_elsewhere(void **state) {
    (void)state;
    struct program p = program_new();
    uint32_t executor = tiny_thread(p.t, 2);
    for (int i = 0; i < 12; i++) op(&p, "RangeDataset");
    for (int i = 0; i < 7; i++) {
        tiny_span(p.t, p.thread, SPAN_ANNOTATION, "train", p.now, 160);
        tiny_span(p.t, p.thread, SPAN_RUNTIME,
                  "EagerLocalExecute: __inference_train_212", p.now + 20, 120);
        for (int k = 0; k < 40; k++)
            tiny_span(p.t, executor, SPAN_OP, "MatMul:MatMul", p.now + 3 * k,
                      2);
        p.now += 200;
    }
    expect(&p, 7, TURN_FUNCTION);
}

/* Pairs that alternate may be two optimizers or an evaluation of every second
 * step: the signs do not tell. */
static void what_may_be_two_things_is_not_told(void **state) {
    (void)state;
    struct program p = program_new();
    for (int i = 0; i < 12; i++) {
        forward(&p, 4);
        backward(&p, 4);
        if (i % 2) evaluate(&p, 3);
        step_of(&p, "Optimizer.step#SGD.step");
    }
    expect_none(&p);
}

static void no_loop_no_steps(void **state) {
    (void)state;
    static const char *const names[] = {"aten::sin", "aten::cos", "aten::exp",
                                        "aten::abs", "aten::tanh"};
    struct program p = program_new();
    uint32_t seed = 7;
    for (int i = 0; i < 200; i++) {
        seed = seed * 1664525u + 1013904223u;
        op(&p, names[(seed >> 24) % 5]);
    }
    expect_none(&p);
    p = program_new();
    for (int i = 0; i < 100; i++) {
        seed = seed * 1664525u + 1013904223u;
        for (uint32_t k = 0; k < 1 + (seed >> 24) % 40; k++)
            op(&p, names[(seed >> (k % 24)) % 5]);
        if (seed >> 30 == 0) op(&p, "aten::topk");
        if (seed >> 30 == 1) op(&p, i % 3 ? "aten::mm" : "aten::sort");
    }
    expect_none(&p);
}

/* A server: several threads, none of which drives the others. */
static void threads_that_do_different_things(void **state) {
    (void)state;
    struct program p = program_new();
    for (int k = 0; k < 4; k++) {
        p.thread = tiny_thread(p.t, k + 1);
        p.now = 3 * k;
        for (int i = 0; i < 4 + 3 * k; i++) forward(&p, 12 - 2 * k);
    }
    expect_none(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training),
        cmocka_unit_test(two_steps_are_enough_and_one_is_no_loop),
        cmocka_unit_test(the_first_step_may_do_more),
        cmocka_unit_test(gradients_may_be_gathered_over_several_batches),
        cmocka_unit_test(an_evaluation_in_between_is_part_of_a_step),
        cmocka_unit_test(two_optimizers_take_turns),
        cmocka_unit_test(what_follows_the_optimizer_belongs_to_its_step),
        cmocka_unit_test(a_window_may_begin_and_end_within_a_step),
        cmocka_unit_test(lengths_may_vary),
        cmocka_unit_test(weights_may_be_changed_by_hand),
        cmocka_unit_test(batches_that_are_asked_for),
        cmocka_unit_test(calls_of_a_function),
        cmocka_unit_test(passes_are_told_from_layers),
        cmocka_unit_test(layers_alone_are_not_told),
        cmocka_unit_test(a_step_with_more_gradients_is_another_nets),
        cmocka_unit_test(variables_that_change_tell_the_outer_loop),
        cmocka_unit_test(compiled_functions),
        cmocka_unit_test(functions_of_different_counts_are_not_told),
        cmocka_unit_test(calls_of_a_module),
        cmocka_unit_test(a_function_whose_work_is_elsewhere),
        cmocka_unit_test(what_may_be_two_things_is_not_told),
        cmocka_unit_test(no_loop_no_steps),
        cmocka_unit_test(threads_that_do_different_things),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
