/* SPDX-License-Identifier: Apache-2.0
 * StepStats and RunMetadata: hand-made, whole and damaged. Figures of real
 * files are checked in tests/golden. */
#include "import/import.h"
#include "model/args.h"
#include "model/trace_fill.h"
#include "names/op_names.h"
#include "unit/formats.h"
#include "unit/pbwrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

extern const struct importer importer_stepstats, importer_xspace;

#define START INT64_C(1790000000000000)

static struct trace *load(struct bytes b) {
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    struct trace *t = trace_new();
    assert_non_null(t);
    uint32_t s = trace_source(t, "test", format_named("stepstats"), NULL, b);
    assert_int_equal(importer_stepstats.read(t, s, &o, &e), 0);
    assert_int_equal(trace_seal(t, &e), 0);
    return t;
}

static row_id row_of(const struct trace *t, const char *name) {
    for (size_t i = 0; i < t->spans.n; i++)
        if (strcmp(span_name(t, (row_id)i), name) == 0) return (row_id)i;
    return ROW_NONE;
}

/* Makes a node that starts so many us after START, its op after one more. */
static struct out new_node(const char *name, const char *label, int64_t at,
                           int64_t dur) {
    struct out n = {0};
    out_text(&n, 1, name);
    out_int(&n, 2, START + at);
    out_int(&n, 3, 1);
    out_int(&n, 4, 1 + dur);
    out_int(&n, 5, 3 + dur);
    if (label) out_text(&n, 8, label);
    return n;
}

static void record(struct out *mem, int64_t at, int64_t bytes) {
    struct out r = {0};
    out_int(&r, 1, START + at);
    out_int(&r, 2, bytes);
    out_msg(mem, 6, &r);
}

static struct out cpu_device(void) {
    struct out d = {0}, n, m = {0};
    out_text(&d, 1, "/job:localhost/replica:0/task:0/device:CPU:0");
    n = new_node("conv/Relu",
                 "[cpu 0.8MB 0.8MB] conv/Relu = _FusedConv2D(x, w, b)", 0, 50);
    out_text(&m, 1, "cpu");
    out_int(&m, 2, 300);
    out_int(&m, 3, 300);
    out_int(&m, 4, 100);
    record(&m, 5, 200);
    record(&m, 6, 100);
    record(&m, 40, -200);
    out_msg(&n, 6, &m);
    out_msg(&d, 2, &n);
    n = new_node("b", "b = Add(x)", 10, 20); /* overlaps the first */
    out_text(&m, 1, "cpu");
    out_int(&m, 2, 64);
    out_int(&m, 4, 24);
    out_msg(&n, 6, &m);
    out_msg(&d, 2, &n);
    n = new_node("c", NULL, 60, 5);
    out_msg(&d, 2, &n);
    return d;
}

static struct out run_metadata(void) {
    struct out s = {0}, x = {0}, d = cpu_device();
    out_msg(&s, 1, &d);
    out_msg(&x, 1, &s);
    return x;
}

static void nodes_become_ops(void **state) {
    (void)state;
    struct out x = run_metadata();
    assert_true(importer_stepstats.sniff(out_all(&x)));
    assert_false(importer_xspace.sniff(out_all(&x)));
    struct trace *t = load(out_all(&x));
    row_id a = row_of(t, "conv/Relu:_FusedConv2D"), b = row_of(t, "b:Add");
    row_id c = row_of(t, "c");
    assert_int_equal(t->spans.n, 3);
    assert_int_equal(t->spans.dur[a], 50 * PS_PER_US);
    assert_int_equal(t->spans.ts[b] - t->spans.ts[a], 10 * PS_PER_US);
    assert_int_equal(t->epoch_ns, (START + 1) * 1000);
    assert_int_equal(t->spans.kind[a], SPAN_OP);
    /* no thread was recorded: overlapping nodes get lanes */
    assert_int_not_equal(t->spans.track[a], t->spans.track[b]);
    assert_int_equal(t->spans.track[a], t->spans.track[c]);
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    assert_int_equal(t->sources[0].events, 3);
    assert_int_equal(t->nsteps, 1);
    assert_int_equal(t->sources[0].step_rule, STEPS_WHOLE);
    struct bytes name, type;
    assert_true(
        name_split_tf(strs_bytes(&t->strs, t->spans.name[a]), &name, &type));
    assert_true(BYTES_IS(name, "conv/Relu") && BYTES_IS(type, "_FusedConv2D"));
    trace_free(t);
    out_free(&x);
}

/* Allocated bytes are the records', or the total where there are none: never
 * both, and temporaries once. */
static void memory_counts_once(void **state) {
    (void)state;
    struct out x = run_metadata();
    struct trace *t = load(out_all(&x));
    int64_t sum = 0, left = 0;
    for (size_t i = 0; i < t->mem.n; i++) {
        left += t->mem.bytes[i];
        if (t->mem.bytes[i] > 0) sum += t->mem.bytes[i];
        assert_true(t->mem.what[i] != 0);
    }
    assert_int_equal(sum, 300 + 64);
    assert_int_equal(left, 100 + 24);
    /* the free of 200 is that of the block of 200 */
    uint64_t addr = 0;
    for (size_t i = 0; i < t->mem.n; i++) {
        if (t->mem.bytes[i] == 200) addr = t->mem.addr[i];
        if (t->mem.bytes[i] != -200) continue;
        assert_int_not_equal(addr, 0);
        assert_int_equal(t->mem.addr[i], addr);
    }
    assert_true(t->sources[0].has_memory);
    trace_free(t);
    out_free(&x);
}

static void bare_step_stats(void **state) {
    (void)state;
    struct out x = {0}, d = cpu_device();
    out_msg(&x, 1, &d);
    assert_true(importer_stepstats.sniff(out_all(&x)));
    struct trace *t = load(out_all(&x));
    assert_int_equal(t->spans.n, 3);
    trace_free(t);
    out_free(&x);
}

static void threads_are_named(void **state) {
    (void)state;
    struct out x = {0}, s = {0}, d = {0}, n, m = {0};
    out_text(&d, 1, "/job:w/device:CPU:0");
    n = new_node("a", NULL, 0, 10);
    out_int(&n, 10, 77);
    out_msg(&d, 2, &n);
    out_int(&m, 1, 77);
    out_text(&m, 2, "tf_Compute");
    out_msg(&d, 3, &m);
    out_msg(&s, 1, &d);
    out_msg(&x, 1, &s);
    struct trace *t = load(out_all(&x));
    assert_int_equal(t->tracks[0].tid, 77);
    assert_string_equal(strs_text(&t->strs, t->tracks[0].name), "tf_Compute");
    trace_free(t);
    out_free(&x);
}

static void device_with(struct out *stats, const char *device, const char *node,
                        const char *label) {
    struct out d = {0}, n = new_node(node, label, 0, 10);
    out_text(&d, 1, device);
    out_msg(&d, 2, &n);
    out_msg(stats, 1, &d);
}

/* Streams by number are the work; "all" and "memcpy" repeat it. */
static void gpu_streams(void **state) {
    (void)state;
    struct out x = {0}, s = {0};
    device_with(&s, "/device:GPU:1/stream:13", "mm:MatMul", "MatMul");
    device_with(&s, "/device:GPU:1/stream:14", "edge_1", "MEMCPYHtoD 12 bytes");
    device_with(&s, "/device:GPU:1/stream:all", "mm:MatMul", "MatMul");
    device_with(&s, "/device:GPU:1/memcpy", "edge_1", "MEMCPYHtoD 12 bytes");
    out_msg(&x, 1, &s);
    struct trace *t = load(out_all(&x));
    size_t kernels = 0, copies = 0;
    for (size_t i = 0; i < t->spans.n; i++) {
        if (!span_is_device_work(t, (row_id)i)) continue;
        kernels += t->spans.kind[i] == SPAN_KERNEL;
        copies += t->spans.kind[i] == SPAN_COPY;
    }
    assert_int_equal(kernels, 1);
    assert_int_equal(copies, 1);
    assert_true(t->sources[0].has_device);
    assert_int_equal(t->ndevices, 1);
    assert_int_equal(t->devices[0].ordinal, 1);
    trace_free(t);
    out_free(&x);
}

static bool find_total(void *ctx, struct bytes key, const struct arg *a) {
    if (!BYTES_IS(key, "total_bytes")) return true;
    *(int64_t *)ctx = a->i;
    return false;
}

static void arguments_are_read_back(void **state) {
    (void)state;
    struct out x = run_metadata();
    struct trace *t = load(out_all(&x));
    int64_t total = 0;
    args_each(t, row_of(t, "conv/Relu:_FusedConv2D"), find_total, &total);
    assert_int_equal(total, 300);
    trace_free(t);
    out_free(&x);
}

static void cut_at_every_byte(void **state) {
    (void)state;
    struct out x = run_metadata();
    size_t before = 0;
    for (size_t n = 1; n <= x.n; n++) {
        uint8_t *copy = calloc(1, n + 64);
        memcpy(copy, x.p, n);
        struct bytes b = {copy, n};
        if (importer_stepstats.sniff(b)) {
            struct trace *t = load(b);
            assert_int_equal(t->notes[NOTE_FILE_CUT], n < x.n);
            assert_int_equal(t->notes[NOTE_BAD_FIELD], 0);
            assert_true(t->spans.n >= before);
            before = t->spans.n;
            trace_free(t);
        } else {
            assert_true(n < 16);
        }
        free(copy);
    }
    assert_int_equal(before, 3);
    out_free(&x);
}

static void odd_fields(void **state) {
    (void)state;
    struct out x = {0}, s = {0}, d = {0}, n = new_node("a", NULL, 0, 10);
    out_int(&n, 40, 1); /* unknown */
    out_int(&n, 8, 1);  /* a label that is a number */
    out_text(&d, 1, "/job:w/device:CPU:0");
    out_msg(&d, 2, &n);
    out_raw(&d, "\x12\x7f\x0a", 3); /* a node past the end */
    out_msg(&s, 1, &d);
    device_with(&s, "/job:w/device:CPU:1", "b", NULL);
    out_msg(&x, 1, &s);
    struct trace *t = load(out_all(&x));
    assert_int_equal(t->spans.n, 2);
    assert_int_equal(t->notes[NOTE_UNKNOWN_FIELD], 1);
    assert_int_equal(t->notes[NOTE_BAD_FIELD], 2);
    trace_free(t);
    out_free(&x);
}

static void others_are_not_claimed(void **state) {
    (void)state;
    static const char graph[] = "\x0a\x08\x0a\x01x\x12\x03Mul";
    static const char text[] = "\n\n\n/job:localhost";
    const struct bytes none[] = {
        {(const uint8_t *)"", 0},
        {(const uint8_t *)graph, sizeof graph - 1},
        {(const uint8_t *)text, sizeof text - 1},
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(importer_stepstats.sniff(none[i]));
}

static void op_names_split(void **state) {
    (void)state;
    static const struct {
        const char *full, *name, *type;
    } cases[] = {
        {"conv/Relu:_FusedConv2D", "conv/Relu", "_FusedConv2D"},
        {"PyFunc:PyFunc", "PyFunc", "PyFunc"},
        {"_SOURCE:NoOp", "_SOURCE", "NoOp"},
        {"Iterator::Root", NULL, NULL},
        {"a b:Mul", NULL, NULL},
        {"a:mul", NULL, NULL},
        {"jit_step:XLA GPU module", NULL, NULL},
        {"x:", NULL, NULL},
        {":Mul", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes name, type;
        bool ok = name_split_tf(bytes_of(cases[i].full), &name, &type);
        assert_int_equal(ok, cases[i].name != NULL);
        if (!ok) continue;
        assert_true(bytes_eq(name, cases[i].name, strlen(cases[i].name)));
        assert_true(bytes_eq(type, cases[i].type, strlen(cases[i].type)));
    }
    assert_true(BYTES_IS(name_op_type(bytes_of("Iterator::A")), "Dataset"));
    assert_int_equal(name_op_type(bytes_of("plain")).n, 0);
}

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* n nodes of a stream whose name is n times as long as theirs, and n on a
 * device without threads that all overlap. */
static double nodes_cost(int n) {
    struct out d = {0}, all = {0};
    char *name = calloc(1, 60 * (size_t)n + 64);
    assert_non_null(name);
    strcpy(name, "/job:w/replica:0/task:0/device:GPU:0/stream:");
    memset(name + strlen(name), 'x', 60 * (size_t)n);
    for (int device = 0; device < 2; device++) {
        out_text(&d, 1, device ? "/job:w/device:CPU:0" : name);
        for (int i = 0; i < n; i++) {
            struct out node = new_node("op", NULL, i, 10 * n);
            out_msg(&d, 2, &node);
        }
        out_msg(&all, 1, &d);
    }
    double start = cpu_now();
    struct trace *t = load(out_all(&all));
    double took = cpu_now() - start;
    assert_int_equal(t->spans.n, 2 * n);
    trace_free(t);
    out_free(&all);
    free(name);
    return took;
}

/* 8 times the file may take 8 times as long, and somewhat more; the square
 * would be 64. */
static void time_grows_as_the_file_does(void **state) {
    (void)state;
    enum { FEW = 1000, MANY = 8 * FEW, BOUND = 24, TRIES = 4 };
    double best = 1e9;
    for (int i = 0; i < TRIES && best > BOUND; i++) {
        double few = nodes_cost(FEW) + 0.001, many = nodes_cost(MANY);
        if (many / few < best) best = many / few;
    }
    if (best > BOUND) fail_msg("8 times the file: %.0f times as long", best);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_become_ops),
        cmocka_unit_test(memory_counts_once),
        cmocka_unit_test(bare_step_stats),
        cmocka_unit_test(threads_are_named),
        cmocka_unit_test(gpu_streams),
        cmocka_unit_test(arguments_are_read_back),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(odd_fields),
        cmocka_unit_test(others_are_not_claimed),
        cmocka_unit_test(op_names_split),
        cmocka_unit_test(time_grows_as_the_file_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
