/* SPDX-License-Identifier: Apache-2.0
 * Recordings of opscope's own recorder, hand-made to its format: everything
 * that the program said stands in the trace. */
#include "analyze/analyze.h"
#include "import/import.h"
#include "model/args.h"
#include "model/result.h"
#include "model/span_class.h"
#include "unit/ownwrite.h"
#include "unit/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

extern const struct importer importer_xspace;

static struct trace *read_as(struct out *file, int threads) {
    struct ops_err e = {0};
    struct import_opts o = {.threads = threads};
    struct trace *t = trace_new();
    assert_non_null(t);
    assert_int_equal(import_bytes(out_all(file), "box_1.xplane.pb", t, &o, &e),
                     0);
    assert_string_equal(t->sources[0].format->name, "xspace");
    assert_int_equal(trace_seal(t, &e), 0);
    return t;
}

/* Reads a closed file with this host plane; the file must outlive the trace: it
 * is kept in *file. */
static struct trace *load(struct own_plane *host, struct out *file) {
    *file = (struct out){0};
    own_close(file, host);
    own_environment(file);
    return read_as(file, 1);
}

static void drop(struct trace *t, struct out *file) {
    trace_free(t);
    out_free(file);
}

static row_id row_of(const struct trace *t, const char *name) {
    for (size_t i = 0; i < t->spans.n; i++)
        if (strcmp(span_name(t, (row_id)i), name) == 0) return (row_id)i;
    return ROW_NONE;
}

static void run(const struct trace *t, const char *name, const char *opt,
                const char *value, struct result *r) {
    struct opts o = {0};
    struct ops_err e = {0};
    const struct analysis *a = NULL;
    for (size_t i = 0; analyses[i] != NULL; i++)
        if (strcmp(analyses[i]->name, name) == 0) a = analyses[i];
    assert_non_null(a);
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    if (opt != NULL) assert_int_equal(opts_set(&o, opt, value, &e), 0);
    assert_int_equal(analysis_run(a, t, &o, 0, r, &e), 0);
}

/* Returns the cell of a row by column; NULL if it is null. */
static const struct cell *cell(const struct result *r, size_t row,
                               const char *col) {
    for (size_t i = 0; i < r->ncols; i++) {
        if (strcmp(r->cols[i].name, col) != 0) continue;
        const struct cell *c = tiny_keep(result_cell(r, row, i));
        return c->null ? NULL : c;
    }
    fail_msg("no column %s", col);
    return NULL;
}

static size_t row_with(const struct result *r, const char *col,
                       const char *text) {
    for (size_t i = 0; i < r->nrows; i++) {
        const struct cell *c = cell(r, i, col);
        if (c != NULL && strcmp(c->s, text) == 0) return i;
    }
    return SIZE_MAX;
}

/* ---- scopes ---- */

static void kinds_become_what_analyses_know(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        uint8_t span;
        uint16_t class;
    } kinds[] = {
        {"op", SPAN_OP, 0},
        {"input", SPAN_OP, CLASS_INPUT},
        {"comm", SPAN_OP, CLASS_COMM | CLASS_COMM_CPU},
        {"copy", SPAN_OP, CLASS_COPY},
        {"wait", SPAN_API, CLASS_SYNC},
        {"phase", SPAN_ANNOTATION, 0},
    };
    enum { N = sizeof kinds / sizeof *kinds };
    struct own_plane p;
    struct out file;
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    /* one text for all: the kind is part of the name */
    for (int i = 0; i < N; i++)
        own_event(&p, own_name(&p, "work", kinds[i].kind), i * 10 * US, 5 * US,
                  NULL);
    /* names of frameworks mean nothing here */
    own_event(&p, own_name(&p, "Foo::Bar", "op"), 100 * US, US, NULL);
    own_event(&p, own_name(&p, "$frame", "op"), 110 * US, US, NULL);
    struct trace *t = load(&p, &file);
    assert_true(t->sources[0].by_opscope);
    assert_int_equal(t->spans.n, N + 2);
    for (row_id r = 0; r < N; r++) {
        assert_int_equal(t->spans.ts[r], (int64_t)r * 10 * US);
        assert_int_equal(t->spans.kind[r], kinds[r].span);
        assert_int_equal(span_class(t, r), kinds[r].class);
    }
    assert_int_equal(t->spans.kind[N], SPAN_OP);
    assert_int_equal(t->spans.kind[N + 1], SPAN_OP);
    drop(t, &file);
}

/* The package's tracer of Python names functions so; a file's name may have
 * blanks. */
static void functions_of_python_are_frames(void **state) {
    (void)state;
    static const char *const frames[] = {
        "$train.py:12 step", "$<frozen abc>:117 ABCMeta.__instancecheck__",
        "$my model.py:3 <lambda>"};
    struct own_plane p;
    struct out file;
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    for (int i = 0; i < 3; i++)
        own_event(&p, own_name(&p, frames[i], "op"), i * 10 * US, 5 * US, NULL);
    struct trace *t = load(&p, &file);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t->spans.kind[row_of(t, frames[i])], SPAN_PYTHON);
    drop(t, &file);
}

static void scopes_nest_whatever_order_they_end_in(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    int64_t a = own_name(&p, "outer", "op"), b = own_name(&p, "inner", "op");
    own_line(&p, 7, "main/7", 1000); /* 1 us after the start */
    own_event(&p, b, 2 * US, 3 * US, NULL);
    own_event(&p, b, 6 * US, US, NULL);
    own_event(&p, a, US, 9 * US, NULL);
    /* the next flush: the line repeats, and an outer one began in the last */
    own_line(&p, 7, "main/7", 50000);
    own_event(&p, b, 2 * US, US, NULL);
    struct trace *t = load(&p, &file);
    assert_int_equal(t->ntracks, 1);
    assert_int_equal(t->spans.n, 4);
    assert_int_equal(t->spans.ts[0], 2 * US);
    assert_int_equal(t->spans.parent[0], ROW_NONE);
    assert_int_equal(t->spans.parent[1], 0);
    assert_int_equal(t->spans.parent[2], 0);
    assert_int_equal(t->spans.ts[3], 52 * US);
    assert_int_equal(t->spans.parent[3], ROW_NONE);
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    drop(t, &file);
}

static void a_scope_of_no_length_is_no_instant(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    own_event(&p, own_name(&p, "short", "op"), US, 0, NULL);
    own_event(&p, own_name(&p, "mark", "op"), US, -1, NULL);
    struct trace *t = load(&p, &file);
    assert_false(t->spans.flags[row_of(t, "short")] & SPAN_INSTANT);
    assert_true(t->spans.flags[row_of(t, "mark")] & SPAN_INSTANT);
    drop(t, &file);
}

static void steps_and_epochs_are_marks(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    int64_t step = own_name(&p, "step", NULL);
    int64_t epoch = own_name(&p, "epoch", NULL), op = own_name(&p, "f", "op");
    own_line(&p, 7, "main/7", 0);
    for (int e = 0; e < 2; e++) {
        for (int i = 0; i < 3; i++) {
            int64_t at = (e * 40 + i * 10) * US;
            own_event(&p, op, at + US, 4 * US, NULL);
            own_step(&p, step, 100 + e * 3 + i, at, 10 * US);
        }
        struct out s = {0};
        arg_int(&p, &s, "epoch_num", e);
        own_event(&p, epoch, e * 40 * US, 35 * US, &s);
    }
    /* a scope of the program that is called so is none */
    own_event(&p, own_name(&p, "step", "op"), 90 * US, US, NULL);
    struct trace *t = load(&p, &file);
    assert_int_equal(t->nsteps, 6);
    assert_int_equal(t->steps[0].number, 100);
    assert_int_equal(t->steps[5].number, 105);
    assert_int_equal(t->sources[0].step_rule, STEPS_BY_MARKER);
    struct result r;
    run(t, "steps", "by", "epoch", &r);
    assert_int_equal(r.nrows, 2);
    assert_string_equal(cell(&r, 0, "epoch")->s, "epoch 0");
    assert_string_equal(cell(&r, 1, "epoch")->s, "epoch 1");
    assert_int_equal(cell(&r, 0, "steps")->i, 3);
    /* 4 of each 10 us in an op; an epoch around it is no work */
    assert_int_equal(cell(&r, 1, "compute_us")->i, 12 * US);
    assert_int_equal(cell(&r, 1, "host_us")->i, 0);
    result_free(&r);
    drop(t, &file);
}

static void phases_follow_the_kinds(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    int64_t outer = own_name(&p, "body", "op");
    own_event(&p, own_name(&p, "load", "input"), 0, 10 * US, NULL);
    own_event(&p, own_name(&p, "reduce", "comm"), 20 * US, 5 * US, NULL);
    own_event(&p, own_name(&p, "pack", "copy"), 30 * US, 4 * US, NULL);
    own_event(&p, outer, 15 * US, 25 * US, NULL);
    own_event(&p, own_name(&p, "join", "wait"), 50 * US, 20 * US, NULL);
    own_event(&p, own_name(&p, "tail", "phase"), 75 * US, 5 * US, NULL);
    own_step(&p, own_name(&p, "step", NULL), 1, 0, 100 * US);
    /* the loader's own work is nobody's time */
    own_line(&p, 8, "loader/8", 0);
    own_event(&p, own_name(&p, "read", "input"), 0, 90 * US, NULL);
    struct trace *t = load(&p, &file);
    struct result r;
    run(t, "steps", NULL, NULL, &r);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(cell(&r, 0, "dur_us")->i, 100 * US);
    assert_int_equal(cell(&r, 0, "input_us")->i, 10 * US);
    assert_int_equal(cell(&r, 0, "comm_us")->i, 5 * US);
    assert_int_equal(cell(&r, 0, "copy_us")->i, 4 * US);
    assert_int_equal(cell(&r, 0, "compute_us")->i, 16 * US);
    assert_int_equal(cell(&r, 0, "launch_us")->i, 0);
    assert_int_equal(cell(&r, 0, "host_us")->i, 5 * US);
    assert_int_equal(cell(&r, 0, "other_us")->i, 60 * US);
    result_free(&r);
    run(t, "input", NULL, NULL, &r);
    size_t load_row = row_with(&r, "stage", "load");
    assert_int_not_equal(load_row, SIZE_MAX);
    assert_int_equal(cell(&r, load_row, "exposed_us")->i, 10 * US);
    assert_int_not_equal(row_with(&r, "stage", "read"), SIZE_MAX);
    result_free(&r);
    run(t, "comm", NULL, NULL, &r);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(cell(&r, 0, "name")->s, "reduce");
    assert_int_equal(cell(&r, 0, "total_us")->i, 5 * US);
    result_free(&r);
    drop(t, &file);
}

static void arguments_tell_flops_bytes_and_shape(void **state) {
    (void)state;
    struct own_plane p;
    struct out file, s = {0};
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    int64_t mm = own_name(&p, "matmul", "op");
    for (int i = 0; i < 3; i++) {
        arg_int(&p, &s, "flops", 1000);
        arg_int(&p, &s, "bytes", 50);
        arg_text(&p, &s, "shape", i < 2 ? "4x4" : "8x8");
        arg_num(&p, &s, "loss", 0.5);
        own_event(&p, mm, i * 10 * US, 5 * US, &s);
    }
    own_event(&p, mm, 40 * US, 5 * US, NULL);
    struct trace *t = load(&p, &file);
    assert_true(t->sources[0].has_shapes);
    struct arg a = args_get(t, 0, "loss");
    assert_int_equal(a.type, ARG_FLOAT);
    assert_true(a.f == 0.5);
    struct result r;
    run(t, "ops", NULL, NULL, &r);
    assert_int_equal(cell(&r, row_with(&r, "name", "matmul"), "flops")->i,
                     3000);
    result_free(&r);
    run(t, "ops", "group", "shapes", &r);
    size_t four = row_with(&r, "shapes", "4x4");
    assert_int_equal(cell(&r, four, "calls")->i, 2);
    assert_int_equal(cell(&r, four, "flops")->i, 2000);
    assert_int_equal(cell(&r, row_with(&r, "shapes", "8x8"), "calls")->i, 1);
    result_free(&r);
    run(t, "roofline", NULL, NULL, &r);
    assert_int_equal(r.nrows, 1);
    assert_int_equal(cell(&r, 0, "flops")->i, 3000);
    assert_int_equal(cell(&r, 0, "bytes")->i, 150);
    result_free(&r);
    drop(t, &file);
}

/* ---- threads ---- */

static void arrows_join_the_scopes_that_named_them(void **state) {
    (void)state;
    struct own_plane p;
    struct out file, s = {0};
    own_host(&p);
    int64_t put = own_name(&p, "put", "op"), get = own_name(&p, "get", "op");
    own_line(&p, 7, "main/7", 0);
    arg_uint(&p, &s, "flow", 5 << 2 | 2); /* out: to two others */
    arg_uint(&p, &s, "flow", 6 << 2 | 2);
    own_event(&p, put, 10 * US, 5 * US, &s);
    own_line(&p, 8, "a/8", 0);
    arg_uint(&p, &s, "flow", 5 << 2 | 1);
    own_event(&p, get, 2 * US, 20 * US, &s); /* it waited since before */
    /* a child that begins with its parent is not meant */
    own_event(&p, own_name(&p, "inner", "op"), 2 * US, US, NULL);
    own_line(&p, 9, "b/9", 0);
    arg_uint(&p, &s, "flow", 5 << 2 | 1);
    arg_uint(&p, &s, "flow", 6 << 2 | 1);
    own_event(&p, get, 12 * US, 20 * US, &s);
    /* an argument of the program that is called so is no arrow */
    arg_int(&p, &s, "flow", 77 << 2 | 2);
    own_event(&p, get, 40 * US, US, &s);
    struct trace *t = load(&p, &file);
    assert_int_equal(t->flows.n, 3);
    row_id from = row_of(t, "put");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(t->flows.from[i], from);
        assert_string_equal(span_name(t, t->flows.to[i]), "get");
    }
    assert_int_not_equal(t->flows.to[0], t->flows.to[1]);
    assert_int_equal(t->flows.to[1], t->flows.to[2]);
    assert_int_equal(t->notes[NOTE_FLOW_DANGLING], 0);
    drop(t, &file);
}

static void async_spans_overlap_and_have_no_parent(void **state) {
    (void)state;
    struct own_plane p;
    struct out file, s = {0};
    own_host(&p);
    int64_t n = own_name(&p, "prefetch", "input");
    own_line(&p, 7, "async jobs/7", 0); /* a thread of that name */
    own_event(&p, own_name(&p, "work", "op"), 0, 50 * US, NULL);
    own_line(&p, INT64_C(1) << 62, "async", 0);
    arg_int(&p, &s, "_a", 1);
    arg_uint(&p, &s, "flow", 9 << 2 | 3);
    own_event(&p, n, 5 * US, 10 * US, &s);
    own_line(&p, (INT64_C(1) << 62) + 1, "async 2", 0);
    arg_int(&p, &s, "_a", 1);
    arg_uint(&p, &s, "flow", 10 << 2 | 3);
    own_event(&p, n, 6 * US, 20 * US, &s);
    struct trace *t = load(&p, &file);
    assert_int_equal(t->ntracks, 3);
    size_t async = 0;
    for (row_id r = 0; r < t->spans.n; r++) {
        if (t->tracks[t->spans.track[r]].kind != TRACK_ASYNC) continue;
        async++;
        assert_true(t->spans.flags[r] & SPAN_ASYNC);
        assert_int_equal(t->spans.parent[r], ROW_NONE);
    }
    assert_int_equal(async, 2);
    assert_int_equal(t->flows.n, 0);
    assert_int_equal(t->notes[NOTE_FLOW_DANGLING], 0);
    drop(t, &file);
}

static void a_thread_keeps_its_last_name(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    int64_t n = own_name(&p, "f", "op");
    own_line(&p, 7, "a.out/7", 0);
    own_event(&p, n, 0, US, NULL);
    own_line(&p, 7, "loader/7", 0);
    own_event(&p, n, 5 * US, US, NULL);
    struct trace *t = load(&p, &file);
    assert_int_equal(t->ntracks, 1);
    assert_string_equal(strs_text(&t->strs, t->tracks[0].name), "loader/7");
    drop(t, &file);
}

static void counters_count_from_the_start(void **state) {
    (void)state;
    struct own_plane p;
    struct out file, s = {0};
    own_host(&p);
    int64_t q = own_name(&p, "queue", NULL);
    own_line(&p, 7, "main/7", 0);
    own_event(&p, own_name(&p, "f", "op"), 0, 50 * US, NULL);
    own_counters(&p);
    for (int i = 0; i < 4; i++) {
        arg_num(&p, &s, "counter_value", i * 1.5);
        own_event(&p, q, i * 10 * US, -1, &s);
    }
    struct trace *t = load(&p, &file);
    assert_int_equal(t->ncounters, 1);
    assert_int_equal(t->samples.n, 4);
    assert_int_equal(t->samples.ts[3], 30 * US);
    assert_true(t->samples.value[3] == 4.5);
    assert_int_equal(t->spans.n, 1);
    drop(t, &file);
}

/* ---- memory ---- */

static void frees_take_the_size_of_their_allocation(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    int64_t a = own_name(&p, "MemoryAllocation", NULL);
    int64_t f = own_name(&p, "MemoryDeallocation", NULL);
    own_line(&p, 7, "main/7", 0);
    own_mem(&p, a, 1 * US, 0x100, 1000, "weights");
    own_mem(&p, a, 2 * US, 0x200, 500, "scratch");
    own_mem(&p, f, 9 * US, 0x100, -1, NULL);
    own_mem(&p, f, 9 * US, 0x999, -1, NULL); /* nobody knows it */
    own_mem(&p, a, 10 * US, 0x300, 0, "empty");
    own_mem(&p, f, 11 * US, 0x300, -1, NULL);
    own_mem(&p, a, 12 * US, 0x400, 70, "input");
    own_mem(&p, a, 13 * US, 0x400, 80, "input"); /* a free is missing */
    /* another thread frees and allocates in between */
    own_line(&p, 8, "w/8", 0);
    own_mem(&p, f, 4 * US, 0x200, -1, NULL);
    own_mem(&p, a, 5 * US, 0x200, 300, "gradients");
    struct trace *t = load(&p, &file);
    assert_true(t->sources[0].has_memory);
    assert_int_equal(t->nallocators, 1);
    assert_string_equal(strs_text(&t->strs, t->allocators[0].name), "program");
    static const int64_t bytes[] = {1000, 500, -500, 300, -1000, 0, 70, 80};
    assert_int_equal(t->mem.n, sizeof bytes / sizeof *bytes);
    for (size_t i = 0; i < t->mem.n; i++)
        assert_int_equal(t->mem.bytes[i], bytes[i]);
    assert_int_equal(t->notes[NOTE_FREE_WITHOUT_ALLOC], 1);
    assert_int_equal(t->notes[NOTE_FREE_NOT_RECORDED], 1);
    struct result r;
    run(t, "memory", NULL, NULL, &r);
    assert_int_equal(cell(&r, 0, "peak_bytes")->i, 1500);
    assert_int_equal(cell(&r, 0, "live_at_end_bytes")->i, 380);
    result_free(&r);
    run(t, "memory", "by", "category", &r);
    assert_int_equal(r.nrows, 2); /* at the peak */
    assert_int_equal(
        cell(&r, row_with(&r, "category", "parameter"), "bytes")->i, 1000);
    assert_int_equal(cell(&r, row_with(&r, "category", "scratch"), "bytes")->i,
                     500);
    result_free(&r);
    drop(t, &file);
}

/* ---- devices ---- */

/* Adds a queue of a device with kernels that scopes launched. */
static void add_device(struct out *file, int64_t id, const char *name) {
    struct own_plane d;
    struct out s = {0};
    own_plane(&d, id, name);
    own_fact(&d, "model", "Fast One");
    own_line(&d, 1, "queue 0", 0);
    int64_t k = own_name(&d, "mm_kernel", "kernel");
    arg_uint(&d, &s, "correlation_id", 41);
    own_event(&d, k, 12 * US, 8 * US, &s);
    arg_uint(&d, &s, "correlation_id", 42);
    own_event(&d, k, 30 * US, 8 * US, &s);
    arg_int(&d, &s, "bytes", 4096);
    arg_text(&d, &s, "opscope_kind", "copy");
    own_event(&d, k, 5 * US, US, &s);
    own_close(file, &d);
}

static void devices_are_accelerators_with_queues(void **state) {
    (void)state;
    struct own_plane p;
    struct out file = {0}, s = {0};
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    arg_uint(&p, &s, "correlation_id", 41);
    arg_uint(&p, &s, "correlation_id", 42);
    own_event(&p, own_name(&p, "layer", "op"), 10 * US, 10 * US, &s);
    own_step(&p, own_name(&p, "step", NULL), 0, 0, 50 * US);
    own_close(&file, &p);
    add_device(&file, 1, "/device:CUSTOM:npu 0");
    add_device(&file, 2, "/device:CUSTOM:dsp 0");
    own_environment(&file);
    struct trace *t = read_as(&file, 1);
    assert_int_equal(t->ndevices, 2);
    assert_string_equal(strs_text(&t->strs, t->devices[0].label), "npu 0");
    assert_string_equal(strs_text(&t->strs, t->devices[1].label), "dsp 0");
    assert_string_equal(strs_text(&t->strs, t->devices[0].model), "Fast One");
    assert_int_equal(t->links.n, 4); /* two queues, two kernels each */
    assert_int_equal(t->spans.kind[row_of(t, "layer")], SPAN_OP);
    struct result r;
    run(t, "kernels", NULL, NULL, &r);
    assert_int_equal(r.nrows, 2);
    assert_string_equal(cell(&r, 0, "op")->s, "layer");
    assert_int_equal(cell(&r, 0, "calls")->i, 2);
    assert_int_equal(cell(&r, 0, "total_us")->i, 16 * US);
    result_free(&r);
    run(t, "ops", NULL, NULL, &r);
    size_t layer = row_with(&r, "name", "layer");
    assert_int_equal(cell(&r, layer, "device_us")->i, 32 * US);
    result_free(&r);
    run(t, "copies", NULL, NULL, &r);
    assert_int_equal(cell(&r, 0, "bytes")->i, 8192);
    assert_null(cell(&r, 0, "pageable")); /* nobody said */
    result_free(&r);
    run(t, "idle", NULL, NULL, &r);
    assert_int_not_equal(r.nrows, 0);
    result_free(&r);
    run(t, "launch", NULL, NULL, &r);
    assert_int_equal(r.nrows, 1);
    assert_string_equal(cell(&r, 0, "op")->s, "layer");
    result_free(&r);
    drop(t, &file);
}

/* ---- facts, losses ---- */

static void facts_are_the_sources(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    own_fact_int(&p, "rank", 5);
    own_fact_int(&p, "world_size", 8);
    own_fact_int(&p, "rank", 3); /* told again: the last holds */
    own_fact_int(&p, "scope_cost_ps", 25000);
    own_fact(&p, "opscope_loss", "the disk was full for 2 s");
    own_fact(&p, "opscope_loss", "the log folder was removed");
    own_line(&p, 7, "main/7", 0);
    own_event(&p, own_name(&p, "f", "op"), 0, US, NULL);
    own_step(&p, own_name(&p, "step", NULL), 0, 0, 10 * US);
    struct trace *t = load(&p, &file);
    const struct source *s = &t->sources[0];
    assert_int_equal(s->rank, 3);
    assert_int_equal(s->world_size, 8);
    assert_int_equal(s->pid, 4711);
    assert_string_equal(strs_text(&t->strs, s->host), "box");
    assert_int_equal(t->epoch_ns, OWN_START);
    assert_int_equal(t->notes[NOTE_SOURCE_WARNING], 2);
    size_t losses = 0;
    for (size_t i = 0; i < t->nmeta; i++)
        losses += strcmp(strs_text(&t->strs, t->meta[i].key), "opscope_loss") ==
                  0;
    assert_int_equal(losses, 2);
    struct result r; /* the step without two marks of 25 ns each */
    run(t, "steps", NULL, NULL, &r);
    assert_int_equal(cell(&r, 0, "bare_us")->i, 10 * US - 2 * 25000);
    result_free(&r);
    drop(t, &file);
}

static void losses_are_counted_and_are_no_ops(void **state) {
    (void)state;
    struct own_plane p;
    struct out file, s = {0};
    own_host(&p);
    own_fact_int(&p, "dropped_traces", 17);
    own_line(&p, 7, "main/7", 0);
    arg_int(&p, &s, "count", 12);
    arg_text(&p, &s, "why", "the thread's ring was full");
    own_event(&p, own_name(&p, "opscope: dropped", NULL), 0, -1, &s);
    arg_int(&p, &s, "unfinished", 1);
    own_event(&p, own_name(&p, "f", "op"), US, US, &s);
    struct trace *t = load(&p, &file);
    assert_int_equal(t->notes[NOTE_RECORDER_DROPPED], 17 + 12);
    assert_int_equal(t->notes[NOTE_UNFINISHED], 1);
    assert_int_equal(t->spans.n, 1);
    assert_true(t->spans.flags[0] & SPAN_OPEN);
    assert_non_null(strstr(trace_meta_get(t, 0, "dropped"), "ring was full"));
    drop(t, &file);
}

/* Only a full ring is avoided by larger rings. */
static void each_loss_has_its_own_advice(void **state) {
    (void)state;
    static const struct {
        const char *why, *advice;
    } cases[] = {
        {"the thread's ring was full", "; larger rings"},
        {"ops_end() without a begin", "; a thread may end only what it began"},
        {"scopes nested too deep", "; a thread may have 256 scopes open"},
        {"called from a signal handler", NULL},
        {"a cause of another version", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct own_plane p;
        struct out file, s = {0};
        own_host(&p);
        own_line(&p, 7, "main/7", 0);
        arg_int(&p, &s, "count", 1);
        arg_text(&p, &s, "why", cases[i].why);
        own_event(&p, own_name(&p, "opscope: dropped", NULL), 0, -1, &s);
        struct trace *t = load(&p, &file);
        assert_int_equal(t->notes[NOTE_RECORDER_DROPPED], 1);
        const char *told = strstr(trace_meta_get(t, 0, "dropped"),
                                  cases[i].why);
        assert_non_null(told);
        told += strlen(cases[i].why);
        if (cases[i].advice == NULL) assert_string_equal(told, "");
        else assert_ptr_equal(strstr(told, cases[i].advice), told);
        drop(t, &file);
    }
    char text[NOTE_TEXT];
    assert_null(strstr(note_text(NOTE_RECORDER_DROPPED, 2, text), "rings"));
}

static void lost_processes_and_points_are_no_calls(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    own_fact_int(&p, "unrecorded_processes", 2);
    own_fact_int(&p, "scalars_lost", 70);
    own_fact(&p, "opscope_loss",
             "2 processes of the program that could not be recorded");
    own_line(&p, 7, "main/7", 0);
    own_event(&p, own_name(&p, "f", "op"), 0, US, NULL);
    struct trace *t = load(&p, &file);
    assert_int_equal(t->notes[NOTE_RECORDER_DROPPED], 0);
    assert_int_equal(t->notes[NOTE_PROCESS_UNRECORDED], 2);
    assert_int_equal(t->notes[NOTE_SCALARS_LOST], 70);
    const char *told = trace_meta_get(t, 0, "opscope_loss");
    assert_non_null(strstr(told, "2 processes"));
    assert_non_null(strstr(told, "/dev/shm"));
    assert_null(strstr(told, "rings"));
    drop(t, &file);
}

/* Of many losses the first are told in words: as many with two threads. */
static void as_many_losses_are_told_by_two_threads(void **state) {
    (void)state;
    enum { LOSSES = 300 };
    struct own_plane p;
    struct out file;
    size_t told[2];
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    int64_t name = own_name(&p, "opscope: dropped", NULL);
    for (int i = 0; i < LOSSES; i++) {
        struct out s = {0};
        arg_int(&p, &s, "count", 1 + i);
        own_event(&p, name, i * US, -1, &s);
    }
    struct trace *t = load(&p, &file), *u = read_as(&file, 2);
    const struct trace *both[] = {t, u};
    for (int k = 0; k < 2; k++) {
        told[k] = 0;
        for (size_t i = 0; i < both[k]->nmeta; i++)
            told[k] += strcmp(strs_text(&both[k]->strs, both[k]->meta[i].key),
                              "dropped") == 0;
    }
    assert_in_range(told[0], 1, LOSSES - 1);
    assert_int_equal(told[0], told[1]);
    trace_free(u);
    drop(t, &file);
}

static void advice_names_the_calls_of_record_h(void **state) {
    (void)state;
    struct own_plane p;
    struct out file;
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    own_event(&p, own_name(&p, "f", "op"), 0, US, NULL);
    struct trace *t = load(&p, &file);
    static const char *const names[] = {"info",  "overview", "coverage",
                                        "ops",   "memory",   "steps",
                                        "input", "counters"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct result r;
        run(t, names[i], NULL, NULL, &r);
        for (size_t k = 0; k < r.nmissing; k++) {
            assert_null(strstr(r.missing[k].fix, "profile with"));
            assert_null(strstr(r.missing[k].fix, "torch"));
            assert_null(strstr(r.missing[k].what, "Python"));
            if (strcmp(r.missing[k].what, "memory") == 0)
                assert_non_null(strstr(r.missing[k].fix, "ops_alloc"));
        }
        result_free(&r);
    }
    drop(t, &file);
}

/* ---- files that are being written ---- */

static void what_lies_behind_the_length_is_not_read(void **state) {
    (void)state;
    struct own_plane p;
    struct out file = {0}, more = {0}, line = {0};
    own_host(&p);
    own_line(&p, 7, "main/7", 0);
    own_event(&p, own_name(&p, "f", "op"), 0, US, NULL);
    own_close(&file, &p);
    /* a line that is half written, and room that was not written to yet */
    out_int(&line, 1, 7);
    out_text(&line, 2, "main/7");
    out_raw(&line, "\x22\x7f\x08", 3);
    out_msg(&more, 3, &line);
    out_raw(&file, more.p, more.n - 1);
    out_raw(&file, "\0\0\0\0\0\0\0\0", 8);
    out_free(&more);
    struct trace *t = read_as(&file, 1);
    assert_int_equal(t->spans.n, 1);
    assert_int_equal(t->notes[NOTE_PART_OPEN], 1);
    assert_int_equal(t->notes[NOTE_FILE_CUT], 0);
    assert_int_equal(t->notes[NOTE_BAD_FIELD], 0);
    assert_int_equal(t->epoch_ns, OWN_START); /* with no Task Environment */
    drop(t, &file);
}

static void two_threads_read_the_same(void **state) {
    (void)state;
    struct own_plane p;
    struct out file, s = {0};
    own_host(&p);
    int64_t n = own_name(&p, "f", "op"), load_ = own_name(&p, "in", "input");
    int64_t a = own_name(&p, "MemoryAllocation", NULL);
    int64_t f = own_name(&p, "MemoryDeallocation", NULL);
    for (int k = 0; k < 4; k++) {
        own_line(&p, 7 + k, k % 2 ? "a/1" : "b/2", 0);
        for (int i = 0; i < 50; i++) {
            arg_uint(&p, &s, "flow", (uint64_t)i << 2 | (k % 2 ? 1 : 2));
            own_event(&p, i % 3 ? n : load_, (k * 50 + i) * US, US / 2, &s);
            own_mem(&p, k % 2 ? f : a, (k * 50 + i) * US, 0x1000u + (unsigned)i,
                    k % 2 ? -1 : i, k % 2 ? NULL : "x");
        }
    }
    struct trace *t = load(&p, &file), *u = read_as(&file, 2);
    assert_int_equal(t->spans.n, u->spans.n);
    assert_int_equal(t->flows.n, 100);
    assert_int_equal(u->flows.n, 100);
    for (row_id r = 0; r < t->spans.n; r++) {
        assert_int_equal(t->spans.ts[r], u->spans.ts[r]);
        assert_string_equal(span_name(t, r), span_name(u, r));
        assert_int_equal(span_class(t, r), span_class(u, r));
    }
    for (size_t i = 0; i < t->flows.n; i++) {
        assert_int_equal(t->flows.from[i], u->flows.from[i]);
        assert_int_equal(t->flows.to[i], u->flows.to[i]);
    }
    assert_int_equal(t->mem.n, u->mem.n);
    for (size_t i = 0; i < t->mem.n; i++)
        assert_int_equal(t->mem.bytes[i], u->mem.bytes[i]);
    trace_free(u);
    drop(t, &file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_become_what_analyses_know),
        cmocka_unit_test(functions_of_python_are_frames),
        cmocka_unit_test(scopes_nest_whatever_order_they_end_in),
        cmocka_unit_test(a_scope_of_no_length_is_no_instant),
        cmocka_unit_test(steps_and_epochs_are_marks),
        cmocka_unit_test(phases_follow_the_kinds),
        cmocka_unit_test(arguments_tell_flops_bytes_and_shape),
        cmocka_unit_test(arrows_join_the_scopes_that_named_them),
        cmocka_unit_test(async_spans_overlap_and_have_no_parent),
        cmocka_unit_test(a_thread_keeps_its_last_name),
        cmocka_unit_test(counters_count_from_the_start),
        cmocka_unit_test(frees_take_the_size_of_their_allocation),
        cmocka_unit_test(devices_are_accelerators_with_queues),
        cmocka_unit_test(facts_are_the_sources),
        cmocka_unit_test(losses_are_counted_and_are_no_ops),
        cmocka_unit_test(each_loss_has_its_own_advice),
        cmocka_unit_test(lost_processes_and_points_are_no_calls),
        cmocka_unit_test(as_many_losses_are_told_by_two_threads),
        cmocka_unit_test(advice_names_the_calls_of_record_h),
        cmocka_unit_test(what_lies_behind_the_length_is_not_read),
        cmocka_unit_test(two_threads_read_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
