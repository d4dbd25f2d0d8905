/* SPDX-License-Identifier: Apache-2.0
 * What a step does outside of its ops: pauses that all steps have are its own
 * code, those before its first op perhaps its input, a region there is its
 * input; and threads that take turns on too few CPUs. Times in us. */
#include "unit/tiny.h"

#include "base/facts.h"
#include <stdio.h>

enum { STEPS = 16, LENGTH = 2000 };

struct program {
    int64_t before; /* a pause before the first op of every step */
    int64_t after;  /* one between the last two ops of every step */
    int alone;      /* so many of the steps under study, from the fifth on, have
                       one of 1,000 that the others have not */
    bool region;    /* the pause before is in a region */
    const char *cpus; /* that the program has; NULL: not told */
    bool told_beside; /* by opscope's recording beside the trace */
};

/* Notes how many CPUs the program has. */
static void tell_cpus(struct trace *t, const struct program *p) {
    uint32_t source = 0;
    if (p->told_beside) {
        source = trace_source(t, "own", format_named("xspace"), NULL,
                              (struct bytes){0});
        t->sources[source].companion_of = 0;
        t->sources[source].beside = true;
    }
    trace_meta(t, source, FACT_CPU_ALLOWED, bytes_of(p->cpus));
}

static struct result analyse(const struct program *p, const char *analysis) {
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    if (p->cpus) tell_cpus(t, p);
    for (int i = 0; i < STEPS; i++) {
        static const char *const ops[] = {"aten::mm", "aten::add", "aten::exp",
                                          "aten::sum", "aten::div"};
        char name[32];
        int64_t at = i * LENGTH;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, at, LENGTH);
        if (p->region)
            tiny_span(t, th, SPAN_ANNOTATION, "load_batch", at, p->before);
        at += p->before;
        for (int k = 0; k < 5; k++) {
            if (k == 4) at += p->after;
            if (i >= 4 && i < 4 + p->alone && k == 1 + i % 3) at += 1000;
            tiny_span(t, th, SPAN_OP, ops[k], at, 50);
            at += 50;
        }
        /* the rest of the step is an op, too */
        int64_t left = (int64_t)(i + 1) * LENGTH - at;
        assert_true(left > 0);
        tiny_span(t, th, SPAN_OP, "aten::bmm", at, left);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, analysis, NULL, NULL);
    trace_free(t);
    return r;
}

static struct result hints(const struct program *p) {
    return analyse(p, "hints");
}

static void expect(struct result r, const char *id, const char *confidence) {
    if (id == NULL) {
        assert_int_equal(r.nrows, 0);
    } else {
        assert_int_equal(r.nrows, 1);
        assert_string_equal(tiny_cell(&r, 0, "id")->s, id);
        assert_string_equal(tiny_cell(&r, 0, "confidence")->s, confidence);
    }
    result_free(&r);
}

static void pauses_of_all_steps_are_code(void **state) {
    (void)state;
    expect(hints(&(struct program){.after = 600}), "python-overhead",
           "assumed");
}

static void pauses_of_one_step_are_not(void **state) {
    (void)state;
    expect(hints(&(struct program){.alone = 1}), NULL, NULL);
    expect(hints(&(struct program){.alone = 3}), NULL, NULL);
}

/* Four steps, of which one is studied: each has a pause of 900 between two ops,
 * all at one place or each at another. */
static struct result four_steps(bool one_place) {
    static const char *const ops[] = {"aten::mm",  "aten::add", "aten::exp",
                                      "aten::sum", "aten::div", "aten::bmm"};
    struct trace *t = tiny_new(false, false);
    uint32_t th = tiny_thread(t, 1);
    for (int i = 0; i < 4; i++) {
        char name[32];
        int64_t at = i * LENGTH;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, at, LENGTH);
        for (int k = 0; k < 6; k++) {
            if (k == (one_place ? 2 : 1 + i)) at += 900;
            int64_t left = (int64_t)(i + 1) * LENGTH - at;
            int64_t dur = k < 5 ? 50 : left;
            tiny_span(t, th, SPAN_OP, ops[k], at, dur);
            at += dur;
        }
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

static void few_steps_are_compared_as_well(void **state) {
    (void)state;
    expect(four_steps(true), "python-overhead", "assumed");
    expect(four_steps(false), NULL, NULL);
}

static void unmarked_time_is_a_guess(void **state) {
    (void)state;
    struct result r = hints(&(struct program){.before = 600});
    assert_non_null(strstr(tiny_cell(&r, 0, "title")->s, "perhaps its input"));
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "a guess"));
    expect(r, "input-bound", "assumed");
}

/* Nobody is told that the step does not wait for what was not recorded. */
static void overview_tells_the_guess_apart(void **state) {
    (void)state;
    struct result r = analyse(&(struct program){.before = 600}, "overview");
    size_t row = tiny_row(&r, "is it the input?");
    assert_non_null(strstr(tiny_cell(&r, row, "text")->s,
                           "no input pipeline was recorded; by a guess"));
    assert_true(tiny_cell(&r, row, "value")->null);
    result_free(&r);
}

static void a_region_before_the_first_op_is_input(void **state) {
    (void)state;
    struct program p = {.before = 600, .region = true};
    struct result r = hints(&p);
    assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, "load_batch"));
    expect(r, "input-bound", "simulated");
}

/* A program that records itself, and what it sampled. */
static struct result counted(double threads, double cpu, double switches) {
    const struct {
        const char *name;
        double value;
    } all[] = {{COUNTER_THREADS, threads},
               {COUNTER_CPU, cpu},
               {COUNTER_INVOLUNTARY, switches}};
    struct trace *t = tiny_new(false, false);
    t->sources[0].by_opscope = true;
    trace_meta(t, 0, FACT_CPU_ALLOWED, bytes_of("4"));
    uint32_t th = tiny_thread(t, 1);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        tiny_span(t, th, SPAN_ANNOTATION, name, i * LENGTH, LENGTH);
        tiny_span(t, th, SPAN_OP, "matmul", i * LENGTH, LENGTH);
    }
    for (size_t k = 0; k < 3; k++) {
        uint32_t c = trace_counter(t, 0, bytes_of(all[k].name), bytes_of(""),
                                   ROW_NONE);
        for (int i = 0; i < 3; i++)
            trace_sample(t, c, i * LENGTH * US, all[k].value);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    return r;
}

/* No device: nothing to pin; and no more workers than CPUs. */
static void as_many_workers_as_cpus(void **state) {
    (void)state;
    static const char *const cases[][2] = {{NULL, "num_workers=8"},
                                           {"4", "num_workers=4"},
                                           {"64", "num_workers=8"}};
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        struct result r = hints(&(struct program){.before = 600,
                                                  .region = true,
                                                  .cpus = cases[i / 2][0],
                                                  .told_beside = i % 2});
        const char *text = tiny_cell(&r, 0, "do")->s;
        assert_non_null(strstr(text, cases[i / 2][1]));
        assert_null(strstr(text, "pin_memory"));
        result_free(&r);
    }
}

static void threads_take_turns(void **state) {
    (void)state;
    struct result r = counted(16, 390, 2000);
    assert_int_equal(r.nrows, 1);
    assert_true(tiny_cell(&r, 0, "save_us")->null); /* nobody can tell */
    expect(r, "oversubscribed", "assumed");
    r = counted(16, 390, 1e300); /* no integer holds it */
    assert_null(strchr(tiny_cell(&r, 0, "evidence")->s, '-'));
    expect(r, "oversubscribed", "assumed");
    expect(counted(4, 390, 2000), NULL, NULL);  /* as many as CPUs */
    expect(counted(16, 200, 2000), NULL, NULL); /* others have the CPUs */
    expect(counted(16, 390, 40), NULL, NULL);   /* most of them wait */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_of_all_steps_are_code),
        cmocka_unit_test(pauses_of_one_step_are_not),
        cmocka_unit_test(few_steps_are_compared_as_well),
        cmocka_unit_test(unmarked_time_is_a_guess),
        cmocka_unit_test(overview_tells_the_guess_apart),
        cmocka_unit_test(a_region_before_the_first_op_is_input),
        cmocka_unit_test(as_many_workers_as_cpus),
        cmocka_unit_test(threads_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
