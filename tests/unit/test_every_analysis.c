/* SPDX-License-Identifier: Apache-2.0
 * What holds for every analysis, those that are not written yet included: the
 * tests loop over analyses[] and, for each, over the choices and flags of its
 * option table. On every odd trace that can be thought of, an analysis gives
 * rows, or says in a sentence why it has none; it never fails, and time grows
 * as the trace does. What each analysis says is the business of its own
 * test. */
#include "tiny.h"

#include "present/present.h"
#include "ring/sanitized.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Values of text options that no choice lists. */
static const struct {
    const char *analysis, *option, *value;
} more[] = {
    {"ops", "group", "shapes"}, {"ops", "group", "stack"},
    {"ops", "group", "module"}, {"ops", "group", "shapes,stack,module"},
    {"allocs", "at", "1"},
};

/* Columns in which a value below zero has a meaning. */
static const struct {
    const char *analysis, *column;
} signed_columns[] = {
    {"ranks", "clock_offset_us"}, /* one clock may be ahead or behind */
    /* Net, by torch's rule: an op that only frees has less than nothing. */
    {"ops", "host_bytes"},
    {"ops", "host_self_bytes"},
    {"ops", "device_bytes"},
    {"ops", "device_self_bytes"},
    /* Of the row for what cannot be known: frees that name no block leave
     * blocks in the list that are not there any more. */
    {"allocs", "bytes"},
    {"memory", "bytes"},
};

/* Runs of one analysis on one trace: how far they are, for messages. */
struct visit {
    const char *what; /* the case */
    const struct trace *t;
    const struct analysis *a;
    const char *option, *value; /* "" where there is none */
    bool large;                 /* results are looked at, but not printed */
    double cpu;                 /* seconds spent in analyses */
    int wrong;
};

/* Says what is wrong and goes on: one run shows all faults. */
static void complain(struct visit *v, const char *why, const char *column,
                     int64_t value) {
    print_error("%s: %s %s%s %s: %s %s %lld\n", v->what, v->a->name,
                *v->option ? "--" : "", v->option, v->value, why, column,
                (long long)value);
    v->wrong++;
}

static bool is_signed(const char *analysis, const char *column) {
    for (size_t i = 0; i < sizeof signed_columns / sizeof *signed_columns; i++)
        if (strcmp(column, signed_columns[i].column) == 0 &&
            strcmp(analysis, signed_columns[i].analysis) == 0)
            return true;
    return false;
}

static void check_cell(struct visit *v, const struct column *c,
                       struct cell cell, size_t row) {
    if (cell.null) return;
    if (c->type == COL_TEXT && cell.s == NULL)
        complain(v, "a text that is none in", c->name, (int64_t)row);
    bool amount = c->type == COL_BYTES || c->type == COL_TIME;
    if (amount && !(c->flags & COL_STAMP) && cell.i < 0 &&
        !is_signed(v->a->name, c->name))
        complain(v, "less than nothing:", c->name, cell.i);
}

/* Prints it in every form, each to its end. */
static void check_screens(struct visit *v, const struct result *r) {
    struct text_style style = {.width = 100, .unicode = true, .detail = true};
    for (size_t i = 0; presenters[i] != NULL; i++) {
        struct sink s;
        sink_memory(&s);
        presenters[i]->put(r, &style, &s);
        if (s.n == 0 || s.broken != 0) complain(v, "prints nothing", "", 0);
        sink_free(&s);
    }
}

static void check_result(struct visit *v, const struct result *r) {
    if (r->ncols == 0) complain(v, "no columns", "", 0);
    if (r->nrows == 0 && r->nremarks + r->nmissing == 0)
        complain(v, "no rows, and does not say why", "", 0);
    for (size_t i = 0; i < r->nremarks; i++)
        if (*r->remarks[i] == '\0') complain(v, "empty remark", "", 0);
    for (size_t i = 0; i < r->nmissing; i++)
        if (*r->missing[i].what == '\0' || *r->missing[i].why == '\0')
            complain(v, "empty reason", "", 0);
    for (size_t row = 0; row < r->nrows; row++) {
        struct cell cells[RESULT_COLS];
        result_cells(r, row, cells);
        for (size_t col = 0; col < r->ncols; col++)
            check_cell(v, &r->cols[col], cells[col], row);
    }
    if (!v->large) check_screens(v, r);
}

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run_one(struct visit *v, const char *option, const char *value) {
    struct result r;
    struct ops_err e = {0};
    v->option = option != NULL ? option : "";
    v->value = value != NULL ? value : "";
    double start = cpu_now();
    int rc = tiny_try(v->t, v->a->name, option, value, &r, &e);
    v->cpu += cpu_now() - start;
    if (rc != 0) {
        complain(v, e.text, "", rc);
        return;
    }
    check_result(v, &r);
    result_free(&r);
}

/* Runs every choice of an option: "step|device|epoch". */
static void run_choices(struct visit *v, const struct opt *o) {
    char all[256];
    assert_true(strlen(o->arg) < sizeof all);
    strcpy(all, o->arg);
    for (char *word = all, *next; word != NULL; word = next) {
        next = strchr(word, '|');
        if (next != NULL) *next++ = '\0';
        run_one(v, o->name, word);
    }
}

static void run_options(struct visit *v) {
    const struct opt *o = v->a->opts;
    for (; o != NULL && o->name != NULL; o++) {
        if (o->type == OPT_CHOICE) run_choices(v, o);
        if (o->type == OPT_FLAG) run_one(v, o->name, "1");
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (strcmp(more[i].analysis, v->a->name) == 0)
            run_one(v, more[i].option, more[i].value);
}

/* Is there a span of a host thread that has a length? */
static bool has_region(const struct trace *t) {
    for (size_t i = 0; i < t->spans.n; i++) {
        const struct track *tr = &t->tracks[t->spans.track[i]];
        if (tr->device == ROW_NONE && tr->kind == TRACK_THREAD &&
            t->spans.kind[i] < SPAN_KERNEL && !t->spans.flags[i])
            return true;
    }
    return false;
}

/* Runs one analysis in all the ways that it can be asked. */
static void run_analysis(struct visit *v) {
    char number[32];
    run_one(v, NULL, NULL);
    run_options(v);
    if (has_region(v->t)) run_one(v, "region", "*");
    if (v->t->nsteps == 0) return;
    snprintf(number, sizeof number, "%lld", (long long)v->t->steps[0].number);
    run_one(v, "steps", number);
}

static void every(const char *what, struct trace *t) {
    int wrong = 0;
    tiny_seal(t);
    for (size_t i = 0; analyses[i] != NULL; i++) {
        struct visit v = {.what = what, .t = t, .a = analyses[i]};
        run_analysis(&v);
        wrong += v.wrong;
    }
    trace_free(t);
    assert_int_equal(wrong, 0);
}

/* Adds a step of 10 us from `at` on: its marker (when marked), a host span of
 * that kind in it that launches a kernel on the stream, and a collective. */
static void put_step_of(struct trace *t, uint32_t thread, uint32_t stream,
                        int64_t number, int64_t at, bool marked,
                        enum span_kind kind) {
    char name[48];
    snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)number);
    row_id m = marked ? tiny_span(t, thread, SPAN_ANNOTATION, name, at, 9)
                      : ROW_NONE;
    if (m != ROW_NONE) {
        t->spans.flags[m] |= SPAN_STEPMARK;
        trace_step_hint(t, m, number);
    }
    tiny_span(t, thread, kind, "aten::mm", at + 1, 4);
    if (stream == ROW_NONE) return;
    tiny_launch(t, thread, stream, "gemm", at + 2, 3);
    tiny_launch(t, thread, stream, "ncclDevKernel_AllReduce_Sum_f32", at + 6,
                2);
}

static void put_step(struct trace *t, uint32_t thread, uint32_t stream,
                     int64_t number, int64_t at, bool marked) {
    put_step_of(t, thread, stream, number, at, marked, SPAN_OP);
}

/* Adds allocations and frees of one step on the device; 64 bytes stay. */
static void put_memory(struct trace *t, uint16_t allocator, uint32_t thread,
                       int64_t number, int64_t at) {
    uint64_t addr = 0x1000 + 256 * (uint64_t)number;
    int64_t live = 64 * number;
    tiny_mem(t, allocator, thread, at + 1, addr, 64, live + 64);
    tiny_mem(t, allocator, thread, at + 2, addr + 64, 128, live + 192);
    tiny_mem(t, allocator, thread, at + 4, addr + 64, -128, live + 64);
}

static struct trace *steps_trace(int64_t n, enum span_kind kind) {
    struct trace *t = tiny_new(true, true);
    uint32_t thread = tiny_thread(t, 1), stream = tiny_stream(t, 0, 7);
    uint32_t gpu = trace_allocator(t, 0, bytes_of("GPU 0"), 0);
    uint32_t c = trace_counter(t, 0, bytes_of("power"), bytes_of("W"), 0);
    for (int64_t i = 0; i < n; i++) {
        put_step_of(t, thread, stream, i, 10 * i, true, kind);
        put_memory(t, gpu, thread, i, 10 * i);
        trace_sample(t, c, 10 * i * US, (double)(i % 100));
    }
    return t;
}

static void empty_trace(void **state) {
    (void)state;
    every("no source", trace_new());
    every("no event", tiny_new(false, false));
    every("no event, all recorded", tiny_new(true, true));
}

static void one_span(void **state) {
    (void)state;
    for (int kind = 0; kind < SPAN_KERNEL; kind++) {
        struct trace *t = tiny_new(false, false);
        tiny_span(t, tiny_thread(t, 1), (enum span_kind)kind, "x", 5, 3);
        every("one host span", t);
    }
    for (int kind = SPAN_KERNEL; kind < SPAN_KINDS; kind++) {
        struct trace *t = tiny_new(true, false);
        tiny_span(t, tiny_stream(t, 0, 7), (enum span_kind)kind, "x", 5, 3);
        every("one device span", t);
    }
}

static void no_steps(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t thread = tiny_thread(t, 1), stream = tiny_stream(t, 0, 7);
    for (int i = 0; i < 5; i++) put_step(t, thread, stream, i, 10 * i, false);
    every("no steps", t);
}

static void no_device(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    uint32_t thread = tiny_thread(t, 1);
    uint32_t host = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    for (int i = 0; i < 5; i++) {
        put_step(t, thread, ROW_NONE, i, 10 * i, true);
        put_memory(t, host, thread, i, 10 * i);
    }
    every("no device", t);
}

static void device_only(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t stream = tiny_stream(t, 0, 7);
    for (int i = 0; i < 20; i++) {
        tiny_span(t, stream, SPAN_KERNEL, "gemm", 10 * i, 4);
        tiny_span(t, stream, SPAN_COPY, "Memcpy HtoD", 10 * i + 5, 2);
        tiny_span(t, stream, SPAN_KERNEL, "ncclDevKernel_AllGather_RING_LL",
                  10 * i + 7, 2);
    }
    every("device only", t);
}

static void two_devices(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t thread = tiny_thread(t, 1), other = tiny_thread(t, 2);
    uint32_t a = tiny_stream(t, 0, 7), b = tiny_stream(t, 1, 7);
    uint32_t one = trace_allocator(t, 0, bytes_of("GPU 0"), 0);
    uint32_t two = trace_allocator(t, 0, bytes_of("GPU 1"), 1);
    for (int i = 0; i < 5; i++) {
        put_step(t, thread, a, i, 10 * i, true);
        put_step(t, other, b, i, 10 * i, false);
        put_memory(t, one, thread, i, 10 * i);
        put_memory(t, two, other, i, 10 * i);
    }
    every("two devices", t);
}

static void overlapping_streams(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t thread = tiny_thread(t, 1);
    for (int i = 0; i < 5; i++) {
        put_step(t, thread, tiny_stream(t, 0, 7), i, 10 * i, true);
        for (int s = 0; s < 6; s++)
            tiny_span(t, tiny_stream(t, 0, 20 + s), SPAN_KERNEL, "side",
                      10 * i + s, 10);
        row_id r = tiny_span(t, trace_track(t, 0, TRACK_ASYNC, 1, 3),
                             SPAN_ANNOTATION, "async", 10 * i, 25);
        t->spans.flags[r] |= SPAN_ASYNC;
    }
    every("overlapping streams", t);
}

/* The window opens and closes inside a step: the first one's marker is not
 * there, its kernel is; the last one's marker is still open, and its kernels
 * are not there. */
static void step_cut_at_the_edge(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t thread = tiny_thread(t, 1), stream = tiny_stream(t, 0, 7);
    uint32_t gpu = trace_allocator(t, 0, bytes_of("GPU 0"), 0);
    tiny_span(t, stream, SPAN_KERNEL, "gemm", -5, 8);
    tiny_mem(t, gpu, thread, -4, 0x99, -4096, 4096);
    for (int i = 3; i < 6; i++)
        put_step(t, thread, stream, i, 10 * i - 30, true);
    row_id m = tiny_span(t, thread, SPAN_ANNOTATION, "ProfilerStep#6", 30, 2);
    t->spans.flags[m] |= SPAN_STEPMARK | SPAN_OPEN;
    trace_step_hint(t, m, 6);
    row_id op = tiny_span(t, thread, SPAN_OP, "aten::mm", 31, 1);
    t->spans.flags[op] |= SPAN_OPEN;
    trace_link_host(t, 0, 77,
                    tiny_span(t, thread, SPAN_API, "cudaLaunchKernel", 31, 1));
    tiny_mem(t, gpu, thread, 31, 0x77, 4096, 8192);
    every("a step cut at the edge", t);
}

static void only_memory(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, true);
    uint32_t gpu = trace_device(t, 0, DEVICE_GPU, 0);
    uint32_t a = trace_allocator(t, 0, bytes_of("GPU 0"), gpu);
    uint32_t b = trace_allocator(t, 0, bytes_of("CPU"), ROW_NONE);
    for (int i = 0; i < 50; i++) {
        put_memory(t, a, ROW_NONE, i, 10 * i);
        tiny_mem(t, b, ROW_NONE, 10 * i, 0, i % 2 ? -8 : 8, -1);
    }
    every("only memory events", t);
}

static void only_counters(void **state) {
    (void)state;
    static const double values[] = {1, -2, 1e308, -1e308, 0.0 / 0.0, 1.0 / 0.0};
    struct trace *t = tiny_new(false, false);
    uint32_t c = trace_counter(t, 0, bytes_of("power"), bytes_of("W"),
                               ROW_NONE);
    trace_counter(t, 0, bytes_of("never sampled"), bytes_of(""), ROW_NONE);
    for (int i = 0; i < 60; i++) trace_sample(t, c, i * US, values[i % 6]);
    every("only counters", t);
}

static void only_python(void **state) {
    (void)state;
    struct trace *t = tiny_new(false, false);
    uint32_t python = trace_track(t, 0, TRACK_PYTHON, 1, 1);
    tiny_span(t, python, SPAN_PYTHON, "train.py(80): main", 0, 100);
    for (int i = 0; i < 9; i++)
        tiny_span(t, python, SPAN_PYTHON, "train.py(12): step", 10 * i, 9);
    tiny_span(t, python, SPAN_PYTHON, "nn.Module: Linear_0", 1, 3);
    tiny_span(t, python, SPAN_PYTHON, "", 5, 1);
    every("only Python frames", t);
}

static void deep_nesting(void **state) {
    (void)state;
    enum { DEEP = 2000 };
    struct trace *t = tiny_new(true, false);
    uint32_t thread = tiny_thread(t, 1), stream = tiny_stream(t, 0, 7);
    uint32_t python = trace_track(t, 0, TRACK_PYTHON, 1, 1);
    t->tracks[python].thread = thread;
    char name[48];
    for (int i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "f.py(%d): f%d", i, i % 7);
        tiny_span(t, python, SPAN_PYTHON, name, i, 2 * (DEEP - i) + 10);
        snprintf(name, sizeof name, "scope/%d/op", i);
        tiny_span(t, thread, i % 2 ? SPAN_OP : SPAN_ANNOTATION, name, i,
                  2 * (DEEP - i) + 10);
    }
    for (int i = 0; i < 5; i++)
        tiny_launch(t, thread, stream, "gemm", DEEP + 2 * i, 1);
    every("2,000 levels", t);
}

static void zero_length(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t thread = tiny_thread(t, 1), stream = tiny_stream(t, 0, 7);
    for (int i = 0; i < 30; i++) {
        row_id m = tiny_span(t, thread, SPAN_ANNOTATION, "ProfilerStep#1",
                             i / 10, 0);
        t->spans.flags[m] |= SPAN_STEPMARK;
        trace_step_hint(t, m, i);
        tiny_span(t, thread, SPAN_OP, "aten::view", i / 10, 0);
        tiny_span(t, thread, SPAN_PYTHON, "a.py(1): f", i / 10, 0);
        tiny_span(t, stream, SPAN_KERNEL, "nothing", i / 10, 0);
        tiny_span(t, stream, SPAN_COPY, "Memcpy DtoH", i / 10, 0);
    }
    every("no length", t);
}

/* Adds a rank of a job: a source with a thread, a stream, steps,
 * collectives. */
static void put_rank(struct trace *t, int64_t rank, int64_t world) {
    uint32_t s = trace_source(t, "rank", format_named("kineto"), NULL,
                              (struct bytes){0});
    t->sources[s].rank = rank;
    t->sources[s].world_size = world;
    t->sources[s].has_device = true;
    uint32_t thread = trace_track(t, s, TRACK_THREAD, 1, 1);
    uint32_t stream = trace_track(t, s, TRACK_STREAM, 0, 7);
    t->tracks[stream].device = trace_device(t, s, DEVICE_GPU, 0);
    for (int64_t i = 0; i < 3; i++)
        put_step(t, thread, stream, i, 10 * i + rank % 3, true);
}

static void thousand_ranks(void **state) {
    (void)state;
    struct trace *t = trace_new();
    assert_non_null(t);
    for (int64_t i = 0; i < 1000; i++) put_rank(t, i, 1000);
    every("1,000 ranks", t);
}

/* The longest spans and the largest blocks that a trace can hold: sums stay
 * at the end of their range, and do not run over it. */
static void sums_saturate(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, true);
    uint32_t thread = tiny_thread(t, 1);
    uint16_t gpu = 0;
    int64_t whole = DUR_LIMIT / US, last = TS_LIMIT / US;
    for (int i = 0; i < 40; i++) {
        uint32_t stream = tiny_stream(t, 0, 100 + i);
        gpu = trace_allocator(t, 0, bytes_of("GPU 0"), 0);
        tiny_span(t, stream, SPAN_KERNEL, "forever", -whole, whole);
        tiny_span(t, stream, SPAN_KERNEL, "forever", last, whole);
        tiny_span(t, tiny_thread(t, 200 + i), SPAN_OP, "aten::mm", last, whole);
        tiny_mem(t, gpu, thread, i, (uint64_t)i + 1, INT64_MAX, -1);
        tiny_mem(t, gpu, thread, i, (uint64_t)i + 9, -INT64_MAX, -1);
    }
    every("the largest values", t);
}

/* Returns the CPU seconds of every way to ask one analysis. */
static double cost(const struct analysis *a, const struct trace *t) {
    struct visit v = {.what = "many steps", .t = t, .a = a, .large = true};
    run_analysis(&v);
    assert_int_equal(v.wrong, 0);
    return v.cpu;
}

/* 10 times the steps may take 10 times as long; caches and a busy machine make
 * it more, the square would make it 100. Two of three tries must agree. A
 * sanitizer looks at the same on fewer steps. */
static void check_growth(enum span_kind kind) {
    enum {
        FEW = SANITIZED_ADDRESS || SANITIZED_THREAD ? 500 : 4000,
        MANY = 10 * FEW,
        BOUND = 40,
        TRIES = 3,
        ENOUGH = 2
    };
    const double noise = 0.0005;
    struct trace *few = steps_trace(FEW, kind);
    struct trace *many = steps_trace(MANY, kind);
    tiny_seal(few);
    tiny_seal(many);
    assert_int_equal(many->nsteps, MANY);
    for (size_t i = 0; analyses[i] != NULL; i++) {
        double times[TRIES] = {0};
        int good = 0;
        for (int k = 0; k < TRIES && good < ENOUGH; k++) {
            double one = cost(analyses[i], few) + noise;
            times[k] = cost(analyses[i], many) / one;
            good += times[k] <= BOUND;
        }
        if (good < ENOUGH)
            fail_msg("%s: 10 times the steps take %.0f, %.0f, %.0f times as "
                     "long: %d of %d tries are good",
                     analyses[i]->name, times[0], times[1], times[2], good,
                     TRIES);
    }
    trace_free(few);
    trace_free(many);
}

static void time_grows_as_the_steps_do(void **state) {
    (void)state;
    check_growth(SPAN_OP);
}

/* JAX has no ops on the host: what looks for the first one in each step must
 * not look through all the trace for it. */
static void and_where_there_are_no_ops(void **state) {
    (void)state;
    check_growth(SPAN_RUNTIME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_trace),
        cmocka_unit_test(one_span),
        cmocka_unit_test(no_steps),
        cmocka_unit_test(no_device),
        cmocka_unit_test(device_only),
        cmocka_unit_test(two_devices),
        cmocka_unit_test(overlapping_streams),
        cmocka_unit_test(step_cut_at_the_edge),
        cmocka_unit_test(only_memory),
        cmocka_unit_test(only_counters),
        cmocka_unit_test(only_python),
        cmocka_unit_test(deep_nesting),
        cmocka_unit_test(zero_length),
        cmocka_unit_test(thousand_ranks),
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(time_grows_as_the_steps_do),
        cmocka_unit_test(and_where_there_are_no_ops),
    };
    return cmocka_run_group_tests_name("every_analysis", tests, NULL, NULL);
}
