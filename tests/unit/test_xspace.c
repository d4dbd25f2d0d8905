/* SPDX-License-Identifier: Apache-2.0
 * XSpace: hand-made files, whole and damaged. Figures of real files are
 * checked in tests/golden. */
#include "import/import.h"
#include "import/xspace/xspace.h"
#include "model/args.h"
#include "model/trace_fill.h"
#include "unit/formats.h"
#include "unit/pbwrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

extern const struct importer importer_xspace;

#define START INT64_C(1790000000000000000)

/* Reads bytes as XSpace and seals; the caller frees. */
static struct trace *load(struct bytes b, int threads) {
    struct ops_err e = {0};
    struct import_opts o = {.threads = threads};
    struct trace *t = trace_new();
    assert_non_null(t);
    uint32_t s = trace_source(t, "test", format_named("xspace"), NULL, b);
    assert_int_equal(importer_xspace.read(t, s, &o, &e), 0);
    assert_int_equal(trace_seal(t, &e), 0);
    return t;
}

/* Returns the first row of that name, or ROW_NONE. */
static row_id row_of(const struct trace *t, const char *name) {
    for (size_t i = 0; i < t->spans.n; i++)
        if (strcmp(span_name(t, (row_id)i), name) == 0) return (row_id)i;
    return ROW_NONE;
}

static size_t count_kind(const struct trace *t, enum span_kind k) {
    size_t n = 0;
    for (size_t i = 0; i < t->spans.n; i++) n += t->spans.kind[i] == k;
    return n;
}

static void check_row(const struct trace *t, const char *name, int64_t ts,
                      int64_t dur, enum span_kind kind) {
    row_id r = row_of(t, name);
    assert_int_not_equal(r, ROW_NONE);
    assert_int_equal(t->spans.ts[r], ts);
    assert_int_equal(t->spans.dur[r], dur);
    assert_int_equal(t->spans.kind[r], kind);
}

/* ---- building ---- */

static void stat_int(struct out *event, int64_t id, int64_t v) {
    struct out s = {0};
    out_int(&s, 1, id);
    out_int(&s, 4, v);
    out_msg(event, 4, &s);
}

static void stat_text(struct out *event, int64_t id, const char *v) {
    struct out s = {0};
    out_int(&s, 1, id);
    out_text(&s, 5, v);
    out_msg(event, 4, &s);
}

static struct out new_event(int64_t name, int64_t offset, int64_t dur) {
    struct out e = {0};
    out_int(&e, 1, name);
    out_int(&e, 2, offset);
    if (dur) out_int(&e, 3, dur);
    return e;
}

static void plain(struct out *line, int64_t name, int64_t offset, int64_t dur) {
    struct out e = new_event(name, offset, dur);
    out_msg(line, 4, &e);
}

static struct out new_line(int64_t id, const char *name, int64_t ts) {
    struct out l = {0};
    out_int(&l, 1, id);
    out_text(&l, 2, name);
    out_int(&l, 3, ts);
    return l;
}

/* Adds an entry of event names (num 4) or stat names (num 5). */
static void name_entry(struct out *plane, uint32_t num, int64_t id,
                       const char *name) {
    struct out m = {0}, e = {0};
    out_int(&m, 1, id);
    out_text(&m, 2, name);
    out_int(&e, 1, id);
    out_msg(&e, 2, &m);
    out_msg(plane, num, &e);
}

static struct out new_plane(const char *name) {
    struct out p = {0};
    out_text(&p, 2, name);
    return p;
}

static void environment(struct out *space) {
    struct out p = new_plane("Task Environment"), s = {0};
    name_entry(&p, 5, 1, "profile_start_time");
    out_int(&s, 1, 1);
    out_int(&s, 3, START);
    out_msg(&p, 6, &s);
    out_msg(space, 1, &p);
}

/* Makes a plane with one line "t" of id 7 at 5 ns and one event, whose name is
 * given. */
static struct out one_event(const char *name) {
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 5), x = {0};
    plain(&l, 1, 3000, 1000);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, name);
    out_msg(&x, 1, &p);
    environment(&x);
    return x;
}

enum { S_STEP = 1, S_CORR, S_HLO, S_KERNEL, S_MEMCPY, S_SRC };

static void stat_names(struct out *p) {
    name_entry(p, 5, S_STEP, "step_num");
    name_entry(p, 5, S_CORR, "correlation_id");
    name_entry(p, 5, S_HLO, "hlo_op");
    name_entry(p, 5, S_KERNEL, "kernel_details");
    name_entry(p, 5, S_MEMCPY, "memcpy_details");
    name_entry(p, 5, S_SRC, "_src");
}

static void host_plane(struct out *space) {
    /* clang-format off */
    static const char *const names[] = {
        "train", "conv/Relu:_FusedConv2D", "EagerExecute",
        "EagerLocalExecute: MatMul", "dot.3", "$file.py:1 f", "cuGraphLaunch",
        "load_batch", "ExecutorState::Process", "Iterator::Root::Map"};
    /* clang-format on */
    struct out p = new_plane("/host:CPU"), l = new_line(-5, "main", 100);
    struct out e = new_event(1, 0, 90000);
    stat_int(&e, S_STEP, 42);
    out_msg(&l, 4, &e);
    for (int i = 2; i <= 4; i++) plain(&l, i, i * 1000, 5000 - i * 100);
    e = new_event(5, 10000, 2000);
    stat_text(&e, S_HLO, "dot.3");
    out_msg(&l, 4, &e);
    plain(&l, 6, 20000, 500);
    e = new_event(7, 30000, 700);
    stat_int(&e, S_CORR, 9);
    out_msg(&l, 4, &e);
    for (int i = 8; i <= 10; i++) plain(&l, i, i * 5000, 1000);
    out_msg(&p, 3, &l);
    for (int i = 0; i < 10; i++) name_entry(&p, 4, i + 1, names[i]);
    stat_names(&p);
    out_msg(space, 1, &p);
}

static void gpu_plane(struct out *space) {
    struct out p = new_plane("/device:GPU:3"), l, e;
    l = new_line(14, "Stream #14(Compute)", 100);
    for (int i = 0; i < 3; i++) {
        e = new_event(1 + i, 40000 + i * 10000, 8000);
        stat_int(&e, S_CORR, 9);
        if (i < 2) stat_text(&e, i == 0 ? S_KERNEL : S_MEMCPY, "regs:1");
        out_msg(&l, 4, &e);
    }
    out_msg(&p, 3, &l);
    l = new_line(-559038737, "Steps", 100);
    plain(&l, 1, 40000, 30000);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "gemm");
    name_entry(&p, 4, 2, "MemcpyH2D");
    name_entry(&p, 4, 3, "Memset 0");
    stat_names(&p);
    out_msg(space, 1, &p);
}

static struct out small_space(void) {
    struct out x = {0};
    host_plane(&x);
    gpu_plane(&x);
    environment(&x);
    out_text(&x, 4, "box");
    return x;
}

/* ---- whole files ---- */

static void kinds_follow_names_and_stats(void **state) {
    (void)state;
    struct out x = small_space();
    assert_true(importer_xspace.sniff(out_all(&x)));
    struct trace *t = load(out_all(&x), 1);
    check_row(t, "train", 100000, 90000, SPAN_ANNOTATION);
    check_row(t, "conv/Relu:_FusedConv2D", 102000, 4800, SPAN_OP);
    check_row(t, "EagerExecute", 103000, 4700, SPAN_RUNTIME);
    check_row(t, "MatMul", 104000, 4600, SPAN_OP);
    check_row(t, "dot.3", 110000, 2000, SPAN_OP);
    check_row(t, "$file.py:1 f", 120000, 500, SPAN_PYTHON);
    check_row(t, "cuGraphLaunch", 130000, 700, SPAN_API);
    check_row(t, "load_batch", 140000, 1000, SPAN_ANNOTATION);
    check_row(t, "ExecutorState::Process", 145000, 1000, SPAN_RUNTIME);
    check_row(t, "Iterator::Root::Map", 150000, 1000, SPAN_OP);
    assert_true(t->spans.flags[row_of(t, "MatMul")] & SPAN_EAGER);
    check_row(t, "MemcpyH2D", 150000, 8000, SPAN_COPY);
    check_row(t, "Memset 0", 160000, 8000, SPAN_MEMSET);
    assert_int_equal(t->epoch_ns, START);
    assert_true(t->sources[0].has_clock && t->sources[0].has_device);
    assert_false(t->sources[0].has_memory);
    assert_int_equal(t->sources[0].events, 14);
    assert_string_equal(strs_text(&t->strs, t->sources[0].host), "box");
    trace_free(t);
    out_free(&x);
}

static void tracks_links_and_steps(void **state) {
    (void)state;
    struct out x = small_space();
    struct trace *t = load(out_all(&x), 1);
    row_id launch = row_of(t, "cuGraphLaunch");
    row_id frame = row_of(t, "$file.py:1 f");
    assert_int_equal(t->links.n, 3);
    for (size_t i = 0; i < t->links.n; i++)
        assert_int_equal(t->links.host[i], launch);
    const struct track *py = &t->tracks[t->spans.track[frame]];
    assert_int_equal(py->kind, TRACK_PYTHON);
    assert_int_equal(py->thread, t->spans.track[launch]);
    assert_int_equal(py->tid, -5);
    assert_int_equal(t->nsteps, 1);
    assert_int_equal(t->steps[0].number, 42);
    assert_int_equal(t->steps[0].marker_dur, 90000);
    assert_int_equal(t->devices[0].ordinal, 3);
    /* the GPU's derived line is there, and not counted */
    assert_int_equal(t->notes[NOTE_DERIVED_LINES], 1);
    size_t work = 0;
    for (size_t i = 0; i < t->spans.n; i++)
        work += span_is_device_work(t, (row_id)i);
    assert_int_equal(work, 3);
    trace_free(t);
    out_free(&x);
}

static void line_times_may_be_absolute(void **state) {
    (void)state;
    int64_t ts[2];
    for (int k = 0; k < 2; k++) {
        struct out p = new_plane("/host:CPU"), x = {0};
        struct out l = new_line(7, "t", k ? START + 5 : 5);
        plain(&l, 1, 3000, 1000);
        out_msg(&p, 3, &l);
        name_entry(&p, 4, 1, "a");
        out_msg(&x, 1, &p);
        environment(&x);
        struct trace *t = load(out_all(&x), 1);
        ts[k] = t->spans.ts[0];
        trace_free(t);
        out_free(&x);
    }
    assert_int_equal(ts[0], 8000);
    assert_int_equal(ts[1], 8000);
}

static void without_a_clock_that_is_said(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 5), x = {0};
    plain(&l, 1, 3000, 1000);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "a");
    out_msg(&x, 1, &p);
    struct trace *t = load(out_all(&x), 1);
    assert_false(t->sources[0].has_clock);
    assert_int_equal(t->spans.ts[0], 8000);
    assert_int_equal(t->notes[NOTE_CLOCK_UNKNOWN], 1);
    trace_free(t);
    out_free(&x);
}

/* Ids are any 64-bit number, and lines with the same id are one thread. */
static void odd_ids(void **state) {
    (void)state;
    const int64_t ids[] = {INT64_MIN, -1, 0, INT64_MAX, 1 << 20, 3};
    struct out p = new_plane("/host:CPU"), x = {0};
    for (int k = 0; k < 2; k++) {
        struct out l = new_line(-77, "t", 0);
        for (int i = 0; i < 6; i++) plain(&l, ids[i], i * 10 + k, 1);
        out_msg(&p, 3, &l);
    }
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        name_entry(&p, 4, ids[i], name);
    }
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->ntracks, 1);
    assert_int_equal(t->tracks[0].tid, -77);
    assert_int_equal(t->spans.n, 12);
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(t->spans.ts[row_of(t, name)], i * 10);
    }
    assert_int_equal(t->notes[NOTE_METADATA_MISSING], 0);
    trace_free(t);
    out_free(&x);
}

/* CPU 7 is not thread 7. */
static void lines_that_are_no_threads(void **state) {
    (void)state;
    struct out x = one_event("a"), p = new_plane("Host CPUs");
    struct out l = new_line(7, "CPU 7", 5);
    plain(&l, 1, 0, 10000);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "swapper");
    out_msg(&x, 1, &p);
    struct trace *t = load(out_all(&x), 1);
    row_id a = row_of(t, "a"), b = row_of(t, "swapper");
    assert_int_not_equal(t->spans.track[a], t->spans.track[b]);
    assert_int_equal(t->tracks[t->spans.track[b]].kind, TRACK_OTHER);
    assert_int_equal(t->ndevices, 0);
    trace_free(t);
    out_free(&x);
}

/* TensorFlow's ring reduction traces a "Loop" inside the op; elsewhere it is
 * the program's own word. */
static void a_loop_of_tensorflows_is_its_own(void **state) {
    (void)state;
    for (int tf = 0; tf < 2; tf++) {
        struct out x = {0}, p = new_plane("/host:CPU");
        struct out l = new_line(1, "main", 100);
        plain(&l, 1, 0, 9000);
        plain(&l, 2, 1000, 500);
        out_msg(&p, 3, &l);
        name_entry(&p, 4, 1, tf ? "ExecutorState::Process" : "train");
        name_entry(&p, 4, 2, "Loop");
        out_msg(&x, 1, &p);
        struct trace *t = load(out_all(&x), 1);
        assert_int_equal(t->spans.kind[row_of(t, "Loop")],
                         tf ? SPAN_RUNTIME : SPAN_ANNOTATION);
        trace_free(t);
        out_free(&x);
    }
}

static void function_pairs_are_no_ops(void **state) {
    (void)state;
    struct out x = one_event("ThenExecuteCallback:GetEventForSyncPoint");
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->spans.kind[0], SPAN_RUNTIME);
    trace_free(t);
    out_free(&x);
    x = one_event("CopyDone:WaitForAll"); /* no TensorFlow ran here */
    t = load(out_all(&x), 1);
    assert_int_not_equal(t->spans.kind[0], SPAN_OP);
    trace_free(t);
    out_free(&x);
    x = one_event("EagerLocalExecute: __inference_f_7");
    t = load(out_all(&x), 1);
    assert_int_equal(t->spans.kind[0], SPAN_RUNTIME);
    trace_free(t);
    out_free(&x);
    x = one_event("scope/x:MatMul");
    t = load(out_all(&x), 1);
    assert_int_equal(t->spans.kind[0], SPAN_OP);
    trace_free(t);
    out_free(&x);
}

/* A stat of a name holds for all its events; the event's own wins. */
static void constant_stats_apply(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 0), x = {0};
    plain(&l, 1, 0, 10);
    struct out e = new_event(1, 20, 10);
    stat_int(&e, S_STEP, 8);
    out_msg(&l, 4, &e);
    out_msg(&p, 3, &l);
    struct out m = {0}, s = {0}, entry = {0};
    out_int(&m, 1, 1);
    out_text(&m, 2, "step");
    out_int(&s, 1, S_STEP);
    out_int(&s, 3, 7);
    out_msg(&m, 5, &s);
    out_int(&entry, 1, 1);
    out_msg(&entry, 2, &m);
    out_msg(&p, 4, &entry);
    stat_names(&p);
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 7);
    assert_int_equal(t->steps[1].number, 8);
    trace_free(t);
    out_free(&x);
}

/* Files that were grouped already, and have no step_num. */
static void groups_are_steps(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 0), x = {0};
    for (int i = 0; i < 3; i++) {
        struct out e = new_event(1, i * 100, 90);
        stat_int(&e, 1, 1);
        stat_int(&e, 2, 30 + i);
        out_msg(&l, 4, &e);
    }
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "FunctionRun");
    name_entry(&p, 5, 1, "_r");
    name_entry(&p, 5, 2, "group_id");
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->nsteps, 3);
    assert_int_equal(t->steps[2].number, 32);
    trace_free(t);
    out_free(&x);
}

static void tpu_line(struct out *p, int64_t id, const char *name, int n,
                     int64_t dur) {
    struct out l = new_line(id, name, 1000);
    for (int i = 0; i < n; i++) plain(&l, 1, i * 1000, dur);
    out_msg(p, 3, &l);
}

/* Kernels are every event of "XLA Ops", once; steps come from "Steps". */
static void tpu_lines(void **state) {
    (void)state;
    struct out p = new_plane("/device:TPU:2"), x = {0};
    tpu_line(&p, 1, "Steps", 2, 900);
    tpu_line(&p, 2, "XLA Modules", 3, 900);
    tpu_line(&p, 3, "XLA Ops", 4, 0);
    tpu_line(&p, 4, "Async XLA Ops", 5, 800);
    tpu_line(&p, 5, "Framework Name Scope", 6, 700);
    struct out l = new_line(3, "XLA Ops", 1000), e = new_event(1, 9000, 70);
    stat_int(&e, 1, 9500);
    stat_int(&e, 2, 60);
    out_msg(&l, 4, &e);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "11");
    name_entry(&p, 5, 1, "device_offset_ps");
    name_entry(&p, 5, 2, "device_duration_ps");
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    size_t kernels = 0, last = 0;
    for (size_t i = 0; i < t->spans.n; i++)
        if (span_is_device_work(t, (row_id)i)) {
            kernels++;
            assert_int_equal(t->tracks[t->spans.track[i]].kind, TRACK_STREAM);
            last = i;
        }
    assert_int_equal(kernels, 5);
    assert_int_equal(t->spans.ts[last], 1000 * 1000 + 9500);
    assert_int_equal(t->spans.dur[last], 60);
    assert_int_equal(t->nsteps, 2);
    assert_int_equal(t->steps[0].number, 11);
    assert_int_equal(t->notes[NOTE_DERIVED_LINES], 2 + 3 + 5 + 6);
    trace_free(t);
    out_free(&x);
}

/* A reader of the file may have drawn steps for a GPU: they count where the
 * host has no marker. */
static void steps_drawn_for_a_gpu_are_used(void **state) {
    (void)state;
    for (int host = 0; host < 2; host++) {
        struct out p = new_plane("/device:GPU:0"), x = {0};
        tpu_line(&p, 20, "Stream #20(Compute)", 3, 500);
        tpu_line(&p, 30, "Steps", 3, 900);
        name_entry(&p, 4, 1, "7");
        out_msg(&x, 1, &p);
        if (host) host_plane(&x);
        environment(&x);
        struct trace *t = load(out_all(&x), 1);
        assert_int_equal(t->sources[0].step_rule, STEPS_BY_MARKER);
        assert_int_equal(trace_device_steps(t, 0), !host);
        if (!host) assert_int_equal(t->nsteps, 3);
        if (!host) assert_int_equal(t->steps[0].number, 7);
        trace_free(t);
        out_free(&x);
    }
}

/* With no Steps line and no marker on the host, modules are the steps. */
static void tpu_modules_stand_in_for_steps(void **state) {
    (void)state;
    struct out p = new_plane("/device:TPU:0"), x = {0};
    tpu_line(&p, 2, "XLA Modules", 3, 900);
    tpu_line(&p, 3, "XLA Ops", 3, 500);
    name_entry(&p, 4, 1, "jit_f");
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->nsteps, 3);
    assert_int_equal(t->steps[2].number, 2);
    assert_int_equal(t->sources[0].step_rule, STEPS_BY_RUN);
    trace_free(t);
    out_free(&x);
}

static void counters_are_samples(void **state) {
    (void)state;
    struct out p = new_plane("/device:GPU:0"), x = {0};
    struct out l = new_line(INT64_MAX, "_counters_", 0);
    for (int i = 0; i < 3; i++) {
        struct out e = new_event(1, i * 100, 0), s = {0};
        out_int(&s, 1, 5);
        out_double(&s, 2, i + 0.5);
        out_msg(&e, 4, &s);
        out_msg(&l, 4, &e);
    }
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "SMs Active (%)");
    name_entry(&p, 5, 5, "sm__cycles_active");
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->samples.n, 3);
    assert_true(t->samples.value[2] == 2.5);
    assert_int_equal(t->samples.ts[2], 200);
    assert_string_equal(strs_text(&t->strs, t->counters[0].name),
                        "SMs Active (%)");
    assert_int_equal(t->spans.n, 0);
    trace_free(t);
    out_free(&x);
}

static void memory_event(struct out *l, int64_t name, int64_t at,
                         int64_t allocated, const char *fragmentation) {
    struct out e = new_event(name, at, 0);
    stat_text(&e, 1, "GPU_1_bfc");
    stat_int(&e, 2, allocated);
    stat_int(&e, 3, 1000 - allocated);
    stat_int(&e, 4, 256);
    stat_int(&e, 5, 777);
    stat_int(&e, 6, 4096);
    stat_text(&e, 7, fragmentation);
    out_msg(l, 4, &e);
}

static void memory_events(void **state) {
    (void)state;
    static const char *const stats[] = {"allocator_name",    "bytes_allocated",
                                        "bytes_available",   "allocation_bytes",
                                        "peak_bytes_in_use", "addr",
                                        "fragmentation"};
    struct out p = new_plane("/device:GPU:1"), x = {0};
    out_msg(&x, 1, &p);
    p = new_plane("/host:CPU");
    struct out l = new_line(7, "t", 0);
    memory_event(&l, 1, 100, 600, "0.25");
    memory_event(&l, 2, 200, 344, "0.5");
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "MemoryAllocation");
    name_entry(&p, 4, 2, "MemoryDeallocation");
    for (int i = 0; i < 7; i++) name_entry(&p, 5, i + 1, stats[i]);
    out_msg(&x, 1, &p);
    environment(&x);
    for (int threads = 1; threads <= 2; threads++) {
        struct trace *t = load(out_all(&x), threads);
        assert_true(t->sources[0].has_memory);
        assert_int_equal(t->mem.n, 2);
        assert_int_equal(t->mem.bytes[0], 256);
        assert_int_equal(t->mem.bytes[1], -256);
        assert_int_equal(t->mem.allocated[0], 600);
        assert_int_equal(t->mem.addr[1], 4096);
        assert_int_equal(t->nallocators, 1);
        assert_int_equal(t->allocators[0].capacity, 1000);
        assert_int_equal(t->allocators[0].peak_life, 777);
        assert_true(t->allocators[0].fragmentation == 0.25);
        assert_int_equal(t->devices[t->allocators[0].device].ordinal, 1);
        trace_free(t);
    }
    out_free(&x);
}

static void sums_are_off_the_time_line(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 0), x = {0};
    struct out e = {0};
    out_int(&e, 1, 1);
    out_int(&e, 5, 12);
    out_int(&e, 3, 5000);
    out_msg(&l, 4, &e);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "Non-XLA Event");
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->notes[NOTE_AGGREGATED_EVENTS], 1);
    assert_int_equal(t->tracks[t->spans.track[0]].kind, TRACK_ASYNC);
    trace_free(t);
    out_free(&x);
}

static void warnings_are_told(void **state) {
    (void)state;
    struct out x = small_space();
    out_text(&x, 2, "it failed");
    out_text(&x, 3, "events dropped");
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->notes[NOTE_SOURCE_WARNING], 2);
    assert_string_equal(trace_meta_get(t, 0, "error"), "it failed");
    assert_string_equal(trace_meta_get(t, 0, "warning"), "events dropped");
    trace_free(t);
    out_free(&x);
}

struct seen {
    char text[256];
};

static bool note_arg(void *ctx, struct bytes key, const struct arg *a) {
    struct seen *s = ctx;
    size_t n = strlen(s->text);
    if (a->type == ARG_TEXT)
        snprintf(s->text + n, sizeof s->text - n, "%.*s=%.*s;", (int)key.n,
                 (const char *)key.p, (int)a->text.n, (const char *)a->text.p);
    else
        snprintf(s->text + n, sizeof s->text - n, "%.*s=%lld;", (int)key.n,
                 (const char *)key.p, (long long)a->i);
    return true;
}

static void arguments_are_read_back(void **state) {
    (void)state;
    struct out x = small_space();
    struct trace *t = load(out_all(&x), 1);
    struct seen s = {{0}};
    xspace_args_each(t, row_of(t, "gemm"), note_arg, &s);
    assert_string_equal(s.text, "correlation_id=9;kernel_details=regs:1;");
    s.text[0] = 0;
    xspace_args_each(t, row_of(t, "load_batch"), note_arg, &s);
    assert_string_equal(s.text, "");
    xspace_args_each(t, row_of(t, "train"), note_arg, &s);
    assert_string_equal(s.text, "step_num=42;");
    trace_free(t);
    out_free(&x);
}

/* ---- damage ---- */

static void names_that_are_not_there(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 0), x = {0};
    plain(&l, -12, 0, 10);
    out_msg(&p, 3, &l);
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_string_equal(span_name(t, 0), "-12");
    assert_int_equal(t->notes[NOTE_METADATA_MISSING], 1);
    trace_free(t);
    out_free(&x);
}

static void bad_utf8_and_long_names(void **state) {
    (void)state;
    struct out x = one_event("caf\xe9 name");
    struct trace *t = load(out_all(&x), 1);
    assert_string_equal(span_name(t, 0), "caf\xef\xbf\xbd name");
    assert_int_equal(t->notes[NOTE_UTF8_MENDED], 1);
    trace_free(t);
    out_free(&x);
    char *big = malloc((1 << 20) + 1);
    memset(big, 'a', 1 << 20);
    big[1 << 20] = 0;
    x = one_event(big);
    t = load(out_all(&x), 1);
    assert_int_equal(strlen(span_name(t, 0)), 1 << 14);
    assert_int_equal(t->notes[NOTE_NAME_CUT], 1);
    trace_free(t);
    out_free(&x);
    /* not through a letter */
    memset(big, 'a', 1 << 15);
    memcpy(big + (1 << 14) - 1, "\xc3\xa9", 2);
    x = one_event(big);
    t = load(out_all(&x), 1);
    assert_int_equal(strlen(span_name(t, 0)), (1 << 14) - 1);
    assert_int_equal(t->notes[NOTE_UTF8_MENDED], 0);
    trace_free(t);
    out_free(&x);
    free(big);
}

static bool count_args(void *ctx, struct bytes key, const struct arg *a) {
    size_t *sizes = ctx;
    sizes[0]++;
    if (key.n + a->text.n > sizes[1]) sizes[1] = key.n + a->text.n;
    return true;
}

/* What stands with a name, or with a stat's name, is an argument of every event
 * of it: an event of a few bytes must not bring a megabyte. */
static void what_events_share_is_bounded(void **state) {
    (void)state;
    struct out x = {0}, p = new_plane("/host:CPU"), l = new_line(7, "t", 0);
    struct out e = new_event(1, 5, 10), s = {0}, m = {0}, entry = {0};
    char *big = malloc((1 << 20) + 1);
    memset(big, 'a', 1 << 20);
    big[1 << 20] = 0;
    out_int(&s, 1, 100);
    out_int(&s, 7, 101); /* by reference */
    out_msg(&e, 4, &s);
    out_msg(&l, 4, &e);
    out_msg(&p, 3, &l);
    out_int(&m, 1, 1);
    out_text(&m, 2, big);
    out_text(&m, 4, "short");
    for (int i = 0; i < 5000; i++) {
        out_int(&s, 1, 100);
        if (i == 0) out_text(&s, 5, big);
        else out_int(&s, 4, i);
        out_msg(&m, 5, &s);
    }
    out_int(&entry, 1, 1);
    out_msg(&entry, 2, &m);
    out_msg(&p, 4, &entry);
    name_entry(&p, 5, 100, "what");
    name_entry(&p, 5, 101, big);
    out_msg(&x, 1, &p);
    struct trace *t = load(out_all(&x), 1);
    size_t sizes[2] = {0, 0};
    args_each(t, 0, count_args, sizes);
    assert_in_range(sizes[0], 20, 300);
    assert_in_range(sizes[1], 1 << 10, (1 << 16) + 16);
    trace_free(t);
    out_free(&x);
    free(big);
}

/* Puts raw bytes behind an event's fields, and a good event behind it. */
static struct trace *with_odd_event(const char *raw, size_t n, struct out *x) {
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 0);
    struct out e = new_event(1, 5, 10);
    out_raw(&e, raw, n);
    out_msg(&l, 4, &e);
    plain(&l, 1, 100, 10);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "good");
    stat_names(&p);
    *x = (struct out){0};
    out_msg(x, 1, &p);
    environment(x);
    return load(out_all(x), 1);
}

static void odd_fields_in_events(void **state) {
    (void)state;
    static const struct {
        const char *raw;
        size_t n;
        enum note_id note;
    } cases[] = {
        {"\x78\x01", 2, NOTE_UNKNOWN_FIELD},         /* field 15 */
        {"\x82\x01\x01\x41", 4, NOTE_UNKNOWN_FIELD}, /* field 16, bytes */
        {"\x12\x01\x41", 3, NOTE_BAD_FIELD},         /* offset as bytes */
        {"\x20\x05", 2, NOTE_BAD_FIELD},             /* stats as a number */
        {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12,
         NOTE_BAD_FIELD},                                /* endless */
        {"\x22\x7f\x08", 3, NOTE_BAD_FIELD},             /* stat past the end */
        {"\x22\x04\x08\x01\x20\x80", 6, NOTE_BAD_FIELD}, /* value past stat */
        {"\x22\x03\x08\x01\x23", 5, NOTE_BAD_FIELD},     /* a group */
        {"\x22\x04\x08\x01\x2a\x09", 6, NOTE_BAD_FIELD}, /* text past stat */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct out x;
        struct trace *t = with_odd_event(cases[i].raw, cases[i].n, &x);
        assert_int_equal(t->spans.n, 2);
        assert_true(t->notes[cases[i].note] > 0);
        assert_int_equal(t->notes[NOTE_FILE_CUT], 0);
        assert_int_equal(t->spans.ts[1], 100);
        trace_free(t);
        out_free(&x);
    }
}

/* A line whose length runs past its plane ends the plane, not the file. */
static void lengths_past_the_plane(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), x = {0};
    out_raw(&p, "\x1a\x7f\x08\x01", 4);
    out_msg(&x, 1, &p);
    host_plane(&x);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->notes[NOTE_BAD_FIELD], 1);
    assert_int_equal(t->notes[NOTE_FILE_CUT], 0);
    assert_int_equal(t->spans.n, 10);
    trace_free(t);
    out_free(&x);
}

static void odd_fields_elsewhere(void **state) {
    (void)state;
    struct out x = {0}, p = new_plane("/host:CPU"), l = new_line(7, "t", 0);
    out_int(&x, 9, 1);  /* XSpace has no field 9 */
    out_int(&x, 1, 1);  /* a plane that is a number */
    out_int(&l, 12, 1); /* XLine has no field 12 */
    out_int(&l, 11, 1); /* display_name as a number */
    plain(&l, 1, 1, 1);
    out_msg(&p, 3, &l);
    out_int(&p, 7, 1); /* XPlane has no field 7 */
    out_int(&p, 4, 1); /* names as a number */
    name_entry(&p, 4, 1, "a");
    out_msg(&x, 1, &p);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->spans.n, 1);
    assert_int_equal(t->notes[NOTE_UNKNOWN_FIELD], 3);
    assert_int_equal(t->notes[NOTE_BAD_FIELD], 3);
    trace_free(t);
    out_free(&x);
}

static void times_out_of_range(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), x = {0};
    struct out l = new_line(7, "t", INT64_MAX);
    plain(&l, 1, INT64_MAX, 10);
    out_msg(&p, 3, &l);
    l = new_line(8, "t", 0);
    plain(&l, 1, 5, -10);
    plain(&l, 1, INT64_MIN, 10);
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "a");
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->spans.n, 1);
    assert_int_equal(t->notes[NOTE_TIME_OUT_OF_RANGE], 2);
    assert_int_equal(t->notes[NOTE_NEGATIVE_DURATION], 1);
    trace_free(t);
    out_free(&x);
}

/* Every cut is read, says so once, and never has more than a longer one. */
static void cut_at_every_byte(void **state) {
    (void)state;
    struct out x = small_space();
    size_t before = 0, cuts_told = 0;
    for (size_t n = 1; n <= x.n; n++) {
        uint8_t *copy = calloc(1, n + 64);
        memcpy(copy, x.p, n);
        struct bytes b = {copy, n};
        if (importer_xspace.sniff(b)) {
            struct trace *t = load(b, 1);
            assert_true(t->notes[NOTE_FILE_CUT] <= 1);
            assert_int_equal(t->notes[NOTE_BAD_FIELD], 0);
            cuts_told += t->notes[NOTE_FILE_CUT];
            assert_true(t->spans.n >= before);
            before = t->spans.n;
            trace_free(t);
        } else {
            assert_true(n < 16); /* not even the first plane's name */
        }
        free(copy);
    }
    assert_int_equal(before, 14);
    /* cuts between two planes cannot be seen */
    assert_true(cuts_told > x.n - 24);
    out_free(&x);
}

/* What the recorder leaves when it is killed: one plane, its length patched,
 * and behind it what was being written. */
static void unfinished_recording(void **state) {
    (void)state;
    struct out p = new_plane("/host:CPU"), x = {0};
    name_entry(&p, 4, 1, "a");
    for (int k = 0; k < 3; k++) {
        struct out l = new_line(7, "t", 0);
        plain(&l, 1 + (k == 2), k * 100, 10);
        out_msg(&p, 3, &l);
        name_entry(&p, 4, 2, "late");
    }
    for (int whole = 0; whole < 2; whole++) {
        x = (struct out){0};
        uint8_t head[6] = {
            0x0a, (uint8_t)(p.n | 0x80), (uint8_t)(p.n >> 7 | 0x80), 0x80, 0x80,
            0};
        out_raw(&x, head, 6);
        out_raw(&x, p.p, p.n);
        if (whole) {
            environment(&x);
            out_text(&x, 4, "box");
        } else {
            out_raw(&x, "\x1a\x02\x08\x07\x1a\x20\x08\x07\x12", 9);
        }
        struct trace *t = load(out_all(&x), 1);
        assert_int_equal(t->spans.n, 3);
        assert_int_equal(t->ntracks, 1);
        assert_string_equal(span_name(t, 2), "late");
        assert_int_equal(t->notes[NOTE_FILE_CUT], !whole);
        assert_int_equal(t->notes[NOTE_SOURCE_WARNING], 0);
        assert_int_equal(t->sources[0].host != 0, whole);
        trace_free(t);
        out_free(&x);
    }
    out_free(&p);
}

static void others_are_not_claimed(void **state) {
    (void)state;
    static const char run[] = "\x0a\x12\x0a\x10\x0a\x0e/job:localhost";
    static const char graph[] = "\x0a\x08\x0a\x01x\x12\x03Mul";
    static const char events[] = "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09";
    static const char text[] = "\n\nhello world, this is text\n";
    const struct bytes none[] = {
        {(const uint8_t *)"", 0},
        {(const uint8_t *)run, sizeof run - 1},
        {(const uint8_t *)graph, sizeof graph - 1},
        {(const uint8_t *)events, sizeof events - 1},
        {(const uint8_t *)text, sizeof text - 1},
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(importer_xspace.sniff(none[i]));
}

/* ---- two threads ---- */

static struct out many_lines(void) {
    struct out x = {0}, p = new_plane("/host:CPU");
    char name[32];
    for (int k = 0; k < 5; k++) {
        struct out l = new_line(k % 4, "thread", 10 * k);
        for (int i = 0; i < 400; i++) {
            struct out e = new_event(i % 37 + (i % 41 == 0 ? 1000 : 0),
                                     i * 1000, 900);
            if (i % 5 == 0) stat_int(&e, S_CORR, k * 1000 + i);
            if (i % 100 == 0) stat_int(&e, S_STEP, i);
            out_msg(&l, 4, &e);
        }
        out_text(&l, 11, k == 3 ? "worker" : "thread");
        out_msg(&p, 3, &l);
    }
    for (int i = 0; i < 37; i++) {
        snprintf(name, sizeof name, "%sname %d", i % 7 ? "" : "$", i);
        name_entry(&p, 4, i, name);
    }
    stat_names(&p);
    out_msg(&x, 1, &p);
    gpu_plane(&x);
    environment(&x);
    return x;
}

static void same_column(const void *a, const void *b, size_t n) {
    assert_memory_equal(a, b, n);
}

static void two_threads_give_the_same(void **state) {
    (void)state;
    struct out x = many_lines();
    struct trace *a = load(out_all(&x), 1), *b = load(out_all(&x), 2);
    size_t n = a->spans.n;
    assert_int_equal(n, b->spans.n);
    same_column(a->spans.ts, b->spans.ts, n * 8);
    same_column(a->spans.dur, b->spans.dur, n * 8);
    same_column(a->spans.track, b->spans.track, n * 4);
    same_column(a->spans.name, b->spans.name, n * 4);
    same_column(a->spans.args_lo, b->spans.args_lo, n * 4);
    same_column(a->spans.kind, b->spans.kind, n);
    same_column(a->spans.flags, b->spans.flags, n);
    same_column(a->spans.step, b->spans.step, n * 4);
    same_column(a->notes, b->notes, sizeof a->notes);
    assert_int_equal(a->links.n, b->links.n);
    assert_int_equal(a->ntracks, b->ntracks);
    for (size_t i = 0; i < a->ntracks; i++)
        assert_string_equal(strs_text(&a->strs, a->tracks[i].name),
                            strs_text(&b->strs, b->tracks[i].name));
    assert_int_equal(a->strs.n, b->strs.n);
    assert_int_equal(a->sources[0].events, b->sources[0].events);
    assert_int_equal(count_kind(a, SPAN_PYTHON), count_kind(b, SPAN_PYTHON));
    trace_free(a);
    trace_free(b);
    out_free(&x);
}

/* Each rank of a large job brings allocators of its own, and a file may say any
 * number. */
static void any_number_of_allocators(void **state) {
    (void)state;
    enum { MANY = 70000 };
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 0), x = {0};
    for (int i = 0; i < MANY; i++) {
        struct out e = new_event(1, i, 0);
        char name[16];
        snprintf(name, sizeof name, "pool %d", i);
        stat_text(&e, 1, name);
        stat_int(&e, 2, i + 1);
        out_msg(&l, 4, &e);
    }
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "MemoryAllocation");
    name_entry(&p, 5, 1, "allocator_name");
    name_entry(&p, 5, 2, "allocation_bytes");
    out_msg(&x, 1, &p);
    environment(&x);
    for (int threads = 1; threads <= 2; threads++) {
        struct trace *t = load(out_all(&x), threads);
        assert_int_equal(t->nallocators, MANY);
        assert_int_equal(t->mem.n, MANY);
        for (size_t i = 0; i < MANY; i++) {
            char name[32];
            snprintf(name, sizeof name, "pool %lld",
                     (long long)t->mem.bytes[i] - 1);
            const struct allocator *a = &t->allocators[t->mem.allocator[i]];
            assert_string_equal(strs_text(&t->strs, a->name), name);
        }
        trace_free(t);
    }
    out_free(&x);
}

/* Markers without a number are numbered by their place on the line, which
 * another thread may have begun to read. */
static void steps_by_place_count_on_in_the_second_half(void **state) {
    (void)state;
    struct out p = new_plane("/device:TPU:0"), x = {0};
    tpu_line(&p, 2, "XLA Modules", 40, 900);
    name_entry(&p, 4, 1, "jit_f");
    out_msg(&x, 1, &p);
    environment(&x);
    for (int threads = 1; threads <= 2; threads++) {
        struct trace *t = load(out_all(&x), threads);
        assert_int_equal(t->nsteps, 40);
        for (int i = 0; i < 40; i++) assert_int_equal(t->steps[i].number, i);
        trace_free(t);
    }
    out_free(&x);
}

/* What a kernel's module is its own stats say, not those of a kernel before it
 * that has the same program. */
static void the_module_is_each_event_s_own(void **state) {
    (void)state;
    enum { OP = 1, MODULE, PROGRAM };
    struct out p = new_plane("/host:CPU"), l = new_line(7, "t", 0), x = {0};
    static const char *const modules[] = {"a", "b", "a"};
    for (int i = 0; i < 3; i++) {
        struct out e = new_event(1, i * 100, 50);
        stat_text(&e, OP, "dot");
        stat_text(&e, MODULE, modules[i]);
        stat_int(&e, PROGRAM, 5);
        out_msg(&l, 4, &e);
    }
    out_msg(&p, 3, &l);
    name_entry(&p, 4, 1, "dot");
    name_entry(&p, 5, OP, "hlo_op");
    name_entry(&p, 5, MODULE, "hlo_module");
    name_entry(&p, 5, PROGRAM, "program_id");
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    for (int i = 0; i < 3; i++) {
        struct launch launch;
        assert_true(launch_of_cat(t, span_cat(t, i), &launch));
        assert_int_equal(launch.module.p[0], modules[i][0]);
    }
    trace_free(t);
    out_free(&x);
}

/* XLA on a CPU numbers the runs of each program from anywhere, and carries them
 * out long after the calls: here all of the first function's, then the other's,
 * whose numbers are smaller. */
static void runs_of_two_programs_go_to_their_calls(void **state) {
    (void)state;
    enum { OP = 1, MODULE, PROGRAM, RUN, STEP };
    struct out p = new_plane("/host:CPU"), x = {0};
    struct out caller = new_line(1, "python", 0), work = new_line(2, "w", 0);
    for (int i = 0; i < 3; i++) {
        struct out e = new_event(1, i * 1000, 900);
        stat_int(&e, STEP, i);
        out_msg(&caller, 4, &e);
        plain(&caller, 2, i * 1000 + 100, 200);
        plain(&caller, 3, i * 1000 + 500, 200);
    }
    for (int k = 0; k < 6; k++) {
        bool first = k < 3;
        struct out e = new_event(4, 10000 + k * 1000, 900);
        stat_text(&e, OP, "dot");
        stat_text(&e, MODULE, first ? "jit__train_step_" : "jit_evaluate");
        stat_int(&e, PROGRAM, first ? 18 : 20);
        stat_int(&e, RUN, (first ? 1071292072 : -1192639503) + k % 3);
        out_msg(&work, 4, &e);
    }
    out_msg(&p, 3, &caller);
    out_msg(&p, 3, &work);
    static const char *const names[] = {"train", "PjitFunction(<train step>)",
                                        "PjitFunction(evaluate)", "dot"};
    for (int i = 0; i < 4; i++) name_entry(&p, 4, i + 1, names[i]);
    static const char *const stats[] = {"hlo_op", "hlo_module", "program_id",
                                        "run_id", "step_num"};
    for (int i = 0; i < 5; i++) name_entry(&p, 5, i + 1, stats[i]);
    out_msg(&x, 1, &p);
    environment(&x);
    struct trace *t = load(out_all(&x), 1);
    assert_int_equal(t->nsteps, 3);
    int seen = 0;
    for (row_id r = 0; r < t->spans.n; r++)
        if (strcmp(span_name(t, r), "dot") == 0)
            assert_int_equal(t->steps[t->spans.step[r]].number, seen++ % 3);
    assert_int_equal(seen, 6);
    trace_free(t);
    out_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_follow_names_and_stats),
        cmocka_unit_test(tracks_links_and_steps),
        cmocka_unit_test(line_times_may_be_absolute),
        cmocka_unit_test(without_a_clock_that_is_said),
        cmocka_unit_test(odd_ids),
        cmocka_unit_test(lines_that_are_no_threads),
        cmocka_unit_test(a_loop_of_tensorflows_is_its_own),
        cmocka_unit_test(function_pairs_are_no_ops),
        cmocka_unit_test(constant_stats_apply),
        cmocka_unit_test(groups_are_steps),
        cmocka_unit_test(tpu_lines),
        cmocka_unit_test(steps_drawn_for_a_gpu_are_used),
        cmocka_unit_test(tpu_modules_stand_in_for_steps),
        cmocka_unit_test(counters_are_samples),
        cmocka_unit_test(memory_events),
        cmocka_unit_test(sums_are_off_the_time_line),
        cmocka_unit_test(warnings_are_told),
        cmocka_unit_test(arguments_are_read_back),
        cmocka_unit_test(names_that_are_not_there),
        cmocka_unit_test(bad_utf8_and_long_names),
        cmocka_unit_test(what_events_share_is_bounded),
        cmocka_unit_test(odd_fields_in_events),
        cmocka_unit_test(lengths_past_the_plane),
        cmocka_unit_test(odd_fields_elsewhere),
        cmocka_unit_test(times_out_of_range),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(unfinished_recording),
        cmocka_unit_test(others_are_not_claimed),
        cmocka_unit_test(two_threads_give_the_same),
        cmocka_unit_test(any_number_of_allocators),
        cmocka_unit_test(steps_by_place_count_on_in_the_second_half),
        cmocka_unit_test(the_module_is_each_event_s_own),
        cmocka_unit_test(runs_of_two_programs_go_to_their_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
