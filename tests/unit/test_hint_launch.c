/* SPDX-License-Identifier: Apache-2.0
 * What launch-bound advises: a program that torch.compile has worked on already
 * is not told to use it. */
#include "unit/hint_script.h"

#include "names/compiler_names.h"

enum { KERNELS = 60, OP_US = 12 };

static int in_region; /* so many of the kernels are launched by compiled code */
static int in_graphs; /* and so many more by a graph */
static bool by_kernel; /* which only their names tell */

static void fill(struct script *p) {
    if (in_region > 0 && !by_kernel)
        op(p, "Torch-Compiled Region: 0/0", 0, in_region * OP_US - 1);
    for (int i = 0; i < KERNELS; i++) {
        bool mine = i < in_region;
        double at = i * OP_US;
        kernel(p, mine ? "aten::mm" : "aten::add",
               mine && by_kernel ? "triton_poi_fused_add_3" : "k", at, at + 11,
               1, "");
    }
    char link[40];
    for (int i = 0; i < in_graphs; i++) {
        if (i == 0) {
            snprintf(link, sizeof link, "\"correlation\":%d", ++p->id);
            span(p, "cuda_runtime", "cudaGraphLaunch", KERNELS * OP_US, 10,
                 link);
        }
        put(p,
            ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"g\",\"pid\":0,"
            "\"tid\":7,\"ts\":%.3f,\"dur\":1,\"args\":{\"device\":0,"
            "\"stream\":7,%s}}",
            (double)p->at + KERNELS * OP_US + 12 + i * 2, link);
    }
}

/* Returns the hints of such a program, of which launch-bound is the first. */
static struct result advice(int region, int graphs, bool kernels) {
    struct script p = begin("GPU");
    in_region = region;
    in_graphs = graphs;
    by_kernel = kernels;
    int length = KERNELS * OP_US + (graphs > 0 ? 14 + 2 * graphs : 0);
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        p.at = i * length;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        span(&p, "user_annotation", name, 0, length, "");
        fill(&p);
    }
    struct trace *t = import(&p);
    t->sources[0].format = format_named("kineto");
    struct result r = tiny_run(t, "hints", NULL, NULL);
    trace_free(t);
    free(p.s);
    assert_true(r.nrows > 0);
    assert_string_equal(tiny_cell(&r, 0, "id")->s, "launch-bound");
    return r;
}

static void expect_advice(struct result r, const char *does,
                          const char *evidence) {
    const char *said = tiny_cell(&r, 0, "do")->s;
    if (strstr(said, does) == NULL) fail_msg("%s", said);
    if (evidence == NULL)
        assert_null(strstr(tiny_cell(&r, 0, "evidence")->s, "compiled"));
    else assert_non_null(strstr(tiny_cell(&r, 0, "evidence")->s, evidence));
    /* only who has none is told to compile the model */
    assert_int_equal(strstr(said, "model = torch.compile(model") != NULL,
                     evidence == NULL);
    result_free(&r);
}

static void who_does_not_compile_is_told_to(void **state) {
    (void)state;
    expect_advice(advice(0, 0, false), "mode='reduce-overhead'", NULL);
}

static void who_compiles_is_told_the_mode(void **state) {
    (void)state;
    static const char mode[] = "give its torch.compile mode='reduce-overhead'";
    expect_advice(advice(KERNELS, 0, false), mode, "launches 100 % of them");
    expect_advice(advice(KERNELS * 3 / 4, 0, false), mode, "75 %");
    expect_advice(advice(KERNELS * 3 / 4, 0, true), mode, "75 %");
}

static void what_is_not_compiled_is_named(void **state) {
    (void)state;
    expect_advice(advice(KERNELS / 4, 0, false),
                  "launched outside of what is compiled", "25 %");
}

static void graphs_of_a_part_are_known(void **state) {
    (void)state;
    expect_advice(advice(KERNELS, 20, false), "TORCH_LOGS=perf_hints",
                  "launches 100 % of them");
}

static void kernels_by_hand_are_not_compiled(void **state) {
    (void)state;
    assert_true(name_is_inductor_kernel(bytes_of("triton_per_fused_sum_0")));
    assert_true(name_is_inductor_kernel(bytes_of("triton_mm_12")));
    assert_true(name_is_inductor_kernel(bytes_of("triton__0d1d")));
    assert_false(name_is_inductor_kernel(bytes_of("triton_softmax_kernel")));
    assert_false(name_is_inductor_kernel(bytes_of("my_triton_poi_kernel")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_compile_is_told_to),
        cmocka_unit_test(who_compiles_is_told_the_mode),
        cmocka_unit_test(what_is_not_compiled_is_named),
        cmocka_unit_test(graphs_of_a_part_are_known),
        cmocka_unit_test(kernels_by_hand_are_not_compiled),
    };
    return cmocka_run_group_tests_name("hint_launch", tests, NULL, NULL);
}
