/* SPDX-License-Identifier: Apache-2.0
 * compile: whose time it is when compilers nest and run on several threads,
 * what is a recompilation, and why, where that is recorded. */
#include "tiny.h"

#include "analyze/ops/compile_find.h"
#include "feed.h"
#include "names/compiler_names.h"

static void empty_trace(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    tiny_seal(t);
    struct result r = tiny_run(t, "compile", NULL, NULL);
    assert_int_equal(r.nrows, 0);
    assert_int_equal(r.nremarks, 1);
    assert_non_null(strstr(r.remarks[0], "nothing was compiled"));
    result_free(&r);
    trace_free(t);
}

static void names_of_compilers(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum compile_class class;
    } v[] = {
        {"_compile.compile_inner (dynamo_timed)", CC_TORCH},
        {"dynamo", CC_TORCH},
        {"dynamodb", CC_NONE},
        {"Torch-Compiled Region: 0/1", CC_REGION},
        {"backend_compile_and_load", CC_JIT_COMPILE},
        {"PjRtCApiCompiler::BufferFromHostBuffer(f32[8])", CC_NONE},
        {"XlaCompile", CC_XLA},
        {"InstantiatedCapturedFunction::Run", CC_NONE},
        {"Net/compile_loss/mse/sub:Sub", CC_NONE},
        {"", CC_NONE},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        assert_int_equal(compile_classify(bytes_of(v[i].name)), v[i].class);
    int64_t f = -1, k = -1;
    assert_true(compile_id_of(bytes_of("Torch-Compiled Region: 12/3"), &f, &k));
    assert_int_equal(f, 12);
    assert_int_equal(k, 3);
    assert_false(compile_id_of(bytes_of("Torch-Compiled Region"), &f, &k));
    assert_false(compile_id_of(bytes_of("/"), &f, &k));
    assert_false(compile_id_of(bytes_of("99999999999999999999/1"), &f, &k));
}

/* An older torch: no ids inside; the region that follows tells. */
static void region_names_the_compilation_before_it(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t a = tiny_thread(t, 1);
    tiny_span(t, a, SPAN_OP, "_compile.compile_inner (dynamo_timed)", 0, 100);
    tiny_span(t, a, SPAN_OP, "backend_compile (dynamo_timed)", 10, 50);
    tiny_span(t, a, SPAN_OP, "Torch-Compiled Region: 3/2", 110, 5);
    tiny_span(t, a, SPAN_OP, "TorchDynamo Cache Lookup", 200, 1);
    tiny_seal(t);
    struct result r = tiny_run(t, "compile", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_us(&r, "frame 3", "total_us"), 100);
    assert_int_equal(tiny_int(&r, "frame 3", "count"), 1);
    assert_int_equal(tiny_int(&r, "frame 3", "recompiles"), 1);
    assert_true(tiny_null(&r, "frame 3", "reason"));
    assert_true(tiny_misses(&r, "compile again"));
    assert_int_equal(tiny_us(&r, "TorchDynamo Cache Lookup", "total_us"), 1);
    assert_true(tiny_null(&r, "TorchDynamo Cache Lookup", "recompiles"));
    result_free(&r);
    trace_free(t);
}

/* Thread 2 compiles 5..15 for thread 1 (0..10), thread 3 another thing by
 * itself 8..20: 10 us are thread 1's, 10 thread 3's, none counted twice. */
static void no_time_is_counted_twice(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t a = tiny_thread(t, 1), b = tiny_thread(t, 2);
    uint32_t c = tiny_thread(t, 3);
    tiny_span(t, a, SPAN_RUNTIME, "PjitFunction(f)", 0, 30);
    tiny_span(t, a, SPAN_ANNOTATION, "lower_sharding_computation", 2, 3);
    tiny_span(t, a, SPAN_ANNOTATION, "backend_compile_and_load", 5, 5);
    tiny_span(t, b, SPAN_RUNTIME, "PjRtCpuClient::Compile", 6, 9);
    tiny_span(t, c, SPAN_OP, "dynamo", 8, 12);
    tiny_seal(t);
    struct compiles f;
    struct ops_err e;
    assert_int_equal(compiles_init(&f, t, &e), 0);
    int64_t own = 0;
    for (size_t i = 0; i < f.nspans; i++) own += f.spans[i].own;
    assert_int_equal(own, 20 * US);
    for (row_id r = 0; r < t->spans.n; r++) /* all are a compiler's */
        assert_true(compiles_has(&f, r));
    compiles_free(&f);
    struct result r = tiny_run(t, "compile", NULL, NULL);
    assert_int_equal(r.nrows, 4); /* f: trace, lower, compile; dynamo */
    assert_int_equal(tiny_us(&r, "dynamo", "total_us"), 10);
    result_free(&r);
    trace_free(t);
}

static void jit_that_ran_before_is_compiled_again(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t a = tiny_thread(t, 1);
    tiny_span(t, a, SPAN_RUNTIME, "PjitFunction(f)", 0, 5);
    for (int i = 1; i <= 2; i++) {
        tiny_span(t, a, SPAN_RUNTIME, "PjitFunction(f)", 100 * i, 50);
        tiny_span(t, a, SPAN_RUNTIME, "PjitFunction(f)", 100 * i, 49);
        /* traced inside: no call of its own */
        tiny_span(t, a, SPAN_RUNTIME, "PjitFunction(dot)", 100 * i + 1, 5);
        tiny_span(t, a, SPAN_ANNOTATION, "lower_sharding_computation",
                  100 * i + 10, 10);
        tiny_span(t, a, SPAN_ANNOTATION, "backend_compile_and_load",
                  100 * i + 20, 20);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "compile", NULL, NULL);
    assert_int_equal(r.nrows, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(tiny_cell(&r, i, "name")->s, "f");
        assert_int_equal(tiny_cell(&r, i, "count")->i, 2);
        assert_int_equal(tiny_cell(&r, i, "recompiles")->i, 2);
    }
    assert_string_equal(tiny_cell(&r, 0, "kind")->s, "compile");
    assert_int_equal(tiny_cell(&r, 0, "total_us")->i, 40 * US);
    assert_string_equal(tiny_cell(&r, 1, "kind")->s, "trace");
    assert_int_equal(tiny_cell(&r, 1, "total_us")->i, 20 * US);
    result_free(&r);
    trace_free(t);
}

static void capture_lasts_from_begin_to_end(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t a = tiny_thread(t, 1);
    tiny_span(t, a, SPAN_API, "cudaStreamEndCapture", 0, 1); /* no begin */
    tiny_span(t, a, SPAN_API, "cudaStreamBeginCapture", 10, 1);
    tiny_span(t, a, SPAN_OP, "aten::mm", 12, 3);
    tiny_span(t, a, SPAN_API, "cudaStreamEndCapture", 20, 2);
    tiny_span(t, a, SPAN_API, "cudaGraphInstantiate", 30, 4);
    tiny_seal(t);
    struct result r = tiny_run(t, "compile", NULL, NULL);
    assert_int_equal(r.nrows, 2);
    assert_int_equal(tiny_us(&r, "CUDA graph capture", "total_us"), 12);
    assert_int_equal(tiny_us(&r, "cudaGraphInstantiate", "total_us"), 4);
    result_free(&r);
    trace_free(t);
}

#define X(name, ts, dur, args)                                                 \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,"        \
    "\"tid\":1,\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}}"

static void shapes_that_changed_are_the_reason(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"schemaVersion\":1,\"traceEvents\":[" X("Torch-Compiled Region: 0/0", 0, 9, "") "," X("CompiledFunction", 1, 5, "\"Input Dims\":[[8, 16],[4]]") "," X(
            "dynamo", 10, 50,
            "") "," X("Torch-Compiled "
                      "Region: 0/1",
                      70, 9,
                      "") "," X("Compiled"
                                "Functio"
                                "n",
                                71, 5,
                                "\"Input "
                                "Dims\":["
                                "[8, "
                                "16],[7]"
                                "]") "," X("dynamo", 90, 5,
                                           "") "," X("Torch-Compiled Region: "
                                                     "0/2",
                                                     100, 9,
                                                     "") "," X("CompiledFunctio"
                                                               "n",
                                                               101, 5,
                                                               "\"Input "
                                                               "Dims\":[[8, "
                                                               "16],[7]]") "]"
                                                                           "}");
    struct result r = tiny_run(f.t, "compile", NULL, NULL);
    assert_int_equal(tiny_int(&r, "frame 0", "count"), 2);
    assert_int_equal(tiny_us(&r, "frame 0", "total_us"), 55);
    const char *why = tiny_cell(&r, 0, "reason")->s;
    assert_non_null(strstr(why, "shape of tensor 1: [7], before [4]"));
    assert_non_null(strstr(why, "a guard on a value"));
    assert_false(tiny_misses(&r, "compile again"));
    result_free(&r);
    feed_free(&f);
}

/* A size that became a symbol is handed over as a number beside the tensor. */
static void numbers_among_the_inputs_are_no_tensors(void **state) {
    (void)state;
    static const char text[] =
        "{\"schemaVersion\":1,\"traceEvents\":[" X("Torch-Compiled Region: 0/0", 0, 9, "") "," X(
            "CompiledFunction", 1, 5,
            "\"Input type\":[\"float\",\"float\"],"
            "\"Input Dims\":[[64],[32, 64]]") "," X("dynamo", 10, 50,
                                                    "") "," X("Torch-Compiled "
                                                              "Region: 0/1",
                                                              70, 9,
                                                              "") "," X("Compil"
                                                                        "edFunc"
                                                                        "tion",
                                                                        71, 5,
                                                                        "\"Inpu"
                                                                        "t "
                                                                        "type\""
                                                                        ":["
                                                                        "\"floa"
                                                                        "t\","
                                                                        "\"Scal"
                                                                        "ar\","
                                                                        "\"floa"
                                                                        "t\"],"
                                                                        "\"Inpu"
                                                                        "t "
                                                                        "Dims\""
                                                                        ":[[64]"
                                                                        ",[],["
                                                                        "48, "
                                                                        "64]]") "," X("dynamo",
                                                                                      90,
                                                                                      5,
                                                                                      "") "," X("Torch-Compiled Region: 1/3",
                                                                                                100,
                                                                                                9,
                                                                                                "") "]}";
    struct feed f = feed_text(text);
    struct result r = tiny_run(f.t, "compile", NULL, NULL);
    assert_string_equal(tiny_cell(&r, 0, "reason")->s,
                        "shape of tensor 1: [48, 64], before [32, 64] "
                        "(dimension 0: 32 -> 48)");
    /* of the other frame nothing is known, and the line says of which */
    assert_int_equal(tiny_int(&r, "frame 1", "recompiles"), 1);
    assert_true(tiny_misses(&r, "what made frame 1 compile again"));
    result_free(&r);
    feed_free(&f);
}

/* With stacks the first Python frame in the region is the function. */
static void stacks_name_the_function(void **state) {
    (void)state;
    struct feed f = feed_text(
        "{\"schemaVersion\":1,\"traceEvents\":[" X("dynamo", 10, 50, "") "," X(
            "Torch-Compiled Region: 4/0", 70, 9,
            "") ","
                "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":"
                "\"t.py(8): net\",\"pid\":1,\"tid\":1,\"ts\":71,\"dur\":5,"
                "\"args\":{}},"
                "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":"
                "\"t.py(1): <module>\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":99,"
                "\"args\":{}}]}");
    struct result r = tiny_run(f.t, "compile", NULL, NULL);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(tiny_us(&r, "t.py(8): net", "total_us"), 50);
    assert_int_equal(tiny_int(&r, "t.py(8): net", "recompiles"), 0);
    result_free(&r);
    feed_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace),
        cmocka_unit_test(names_of_compilers),
        cmocka_unit_test(region_names_the_compilation_before_it),
        cmocka_unit_test(no_time_is_counted_twice),
        cmocka_unit_test(jit_that_ran_before_is_compiled_again),
        cmocka_unit_test(capture_lasts_from_begin_to_end),
        cmocka_unit_test(shapes_that_changed_are_the_reason),
        cmocka_unit_test(numbers_among_the_inputs_are_no_tensors),
        cmocka_unit_test(stacks_name_the_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
