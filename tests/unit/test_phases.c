/* SPDX-License-Identifier: Apache-2.0
 * Where a step's time goes: each clause of the rule alone, then random traces
 * against a count instant by instant that knows nothing of intervals. */
#include "tiny.h"

#include "analyze/shared/phases.h"
#include <limits.h>
#include <stdio.h>

struct rig {
    struct trace *t;
    uint32_t thread, stream;
    uint64_t id;
};

static struct rig rig_new(bool device) {
    struct rig g = {.t = tiny_new(device, false)};
    g.thread = tiny_thread(g.t, 1);
    if (device) g.stream = tiny_stream(g.t, 0, 7);
    tiny_span(g.t, g.thread, SPAN_ANNOTATION, "ProfilerStep#0", 0, 100);
    return g;
}

static void host(struct rig *g, enum span_kind kind, const char *name,
                 int64_t from, int64_t to) {
    tiny_span(g->t, g->thread, kind, name, from, to - from);
}

static void device(struct rig *g, enum span_kind kind, const char *name,
                   int64_t from, int64_t to) {
    tiny_span(g->t, g->stream, kind, name, from, to - from);
}

/* Splits [0, 100) by the n-th view and checks the seven parts (us). */
static void check_view(struct rig *g, size_t view, const int want[PHASES]) {
    struct phases p;
    struct ops_err e;
    int64_t parts[PHASES], sum = 0;
    assert_int_equal(phases_get(&p, g->t, &e), 0);
    assert_true(view < p.nviews);
    phases_split(&p.views[view], 0, 100 * US, parts);
    for (int i = 0; i < PHASES; i++) {
        assert_int_equal(parts[i] / US, want[i]);
        sum += parts[i];
    }
    assert_int_equal(sum, 100 * US);
}

#define CHECK(g, ...)                                                          \
    do {                                                                       \
        tiny_seal((g)->t);                                                     \
        check_view(g, 0, (const int[PHASES]){__VA_ARGS__});                    \
        trace_free((g)->t);                                                    \
    } while (0)

/*                       compute comm copy input launch host other */

static void an_instant_goes_to_the_first_that_runs(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    device(&g, SPAN_KERNEL, "gemm", 0, 10);
    device(&g, SPAN_KERNEL, "ncclDevKernel_AllReduce", 5, 20);
    device(&g, SPAN_COPY, "Memcpy HtoD", 15, 30);
    host(&g, SPAN_ANNOTATION, "enumerate(DataLoader)#x.__next__", 25, 40);
    host(&g, SPAN_API, "cudaLaunchKernel", 40, 50);
    host(&g, SPAN_OP, "aten::mm", 40, 60);
    CHECK(&g, 10, 10, 10, 10, 10, 10, 40);
}

static void memsets_are_copies_and_waits_are_no_work(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    device(&g, SPAN_MEMSET, "Memset", 0, 10);
    device(&g, SPAN_SYNC, "Stream Sync", 10, 50);
    CHECK(&g, 0, 0, 10, 0, 0, 0, 90);
}

static void markers_and_python_frames_are_no_host_work(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    uint32_t frames = trace_track(g.t, 0, TRACK_PYTHON, 1, 1);
    tiny_span(g.t, frames, SPAN_PYTHON, "main.py(1): f", 0, 100);
    device(&g, SPAN_KERNEL, "gemm", 0, 1);
    CHECK(&g, 1, 0, 0, 0, 0, 0, 99);
}

static void markers_that_make_no_step_are_no_host_work(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    uint32_t second = tiny_thread(g.t, 2);
    tiny_span(g.t, second, SPAN_ANNOTATION, "ProfilerStep#0", 5, 80);
    host(&g, SPAN_ANNOTATION, "ProfilerStep#7", 10, 90);
    host(&g, SPAN_OP, "aten::mm", 20, 30);
    device(&g, SPAN_KERNEL, "gemm", 0, 1);
    CHECK(&g, 1, 0, 0, 0, 0, 10, 89);
}

static void other_threads_work_but_do_not_wait_for_input(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    uint32_t backward = tiny_thread(g.t, 2), loader = tiny_thread(g.t, 3);
    tiny_span(g.t, backward, SPAN_OP, "MulBackward0", 0, 10);
    trace_track_name(g.t, loader, bytes_of("pt_data_worker"));
    tiny_span(g.t, loader, SPAN_OP, "aten::stack", 20, 10);
    tiny_span(g.t, backward, SPAN_ANNOTATION,
              "enumerate(DataLoader)#x.__next__", 40, 1);
    device(&g, SPAN_KERNEL, "gemm", 90, 100);
    CHECK(&g, 10, 0, 0, 0, 0, 10, 80);
}

static void regions_before_the_first_launch_are_input(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    host(&g, SPAN_ANNOTATION, "load batch", 0, 20);
    host(&g, SPAN_API, "cudaMemcpyAsync", 15, 18);
    host(&g, SPAN_ANNOTATION, "forward", 20, 60);
    trace_link_host(g.t, 0, 1,
                    tiny_span(g.t, g.thread, SPAN_API, "cudaLaunchKernel", 30,
                              5));
    trace_link_device(g.t, 0, 1,
                      tiny_span(g.t, g.stream, SPAN_KERNEL, "gemm", 40, 10));
    CHECK(&g, 10, 0, 0, 20, 5, 25, 40);
}

/* What torch.compile records of itself stands before the first launch, too. */
static void a_compilers_regions_are_never_input(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    host(&g, SPAN_ANNOTATION, "_compile.compile_inner (dynamo_timed)", 0, 30);
    host(&g, SPAN_ANNOTATION, "some pass of it", 5, 20);
    tiny_launch(g.t, g.thread, g.stream, "gemm", 40, 10);
    CHECK(&g, 10, 0, 0, 0, 1, 30, 59);
}

static void the_optimizers_regions_are_never_input(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    host(&g, SPAN_ANNOTATION, "Optimizer.zero_grad#SGD.zero_grad", 0, 20);
    trace_link_host(g.t, 0, 1,
                    tiny_span(g.t, g.thread, SPAN_API, "cudaLaunchKernel", 30,
                              5));
    trace_link_device(g.t, 0, 1,
                      tiny_span(g.t, g.stream, SPAN_KERNEL, "gemm", 40, 10));
    CHECK(&g, 10, 0, 0, 0, 5, 20, 65);
}

static void what_the_input_pipeline_calls_is_input(void **state) {
    (void)state;
    struct rig g = rig_new(false);
    host(&g, SPAN_ANNOTATION, "enumerate(DataLoader)#x.__next__", 0, 30);
    host(&g, SPAN_OP, "aten::stack", 10, 20);
    host(&g, SPAN_OP, "aten::mm", 30, 50);
    CHECK(&g, 20, 0, 0, 30, 0, 0, 50);
}

static void a_cpu_collective_is_hidden_by_the_steps_own_ops(void **state) {
    (void)state;
    struct rig g = rig_new(false);
    uint32_t worker = tiny_thread(g.t, 2);
    tiny_span(g.t, worker, SPAN_ANNOTATION, "gloo:all_reduce", 10, 50);
    host(&g, SPAN_OP, "aten::mm", 0, 30);
    CHECK(&g, 30, 30, 0, 0, 0, 0, 40);
}

static void the_call_that_starts_a_collective_is_host_work(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    uint32_t worker = tiny_thread(g.t, 2);
    host(&g, SPAN_ANNOTATION, "nccl:all_reduce", 0, 20);
    host(&g, SPAN_OP, "c10d::allreduce_", 20, 25);
    device(&g, SPAN_KERNEL, "ncclDevKernel_AllReduce", 30, 50);
    tiny_span(g.t, worker, SPAN_ANNOTATION, "gloo:broadcast", 60, 10);
    CHECK(&g, 0, 30, 0, 0, 0, 25, 45);
}

static void
without_a_device_ops_are_compute_after_comm_and_input(void **state) {
    (void)state;
    struct rig g = rig_new(false);
    uint32_t worker = tiny_thread(g.t, 2);
    host(&g, SPAN_OP, "aten::mm", 0, 10);
    host(&g, SPAN_ANNOTATION, "region", 0, 20);
    tiny_span(g.t, worker, SPAN_OP, "aten::add", 50, 20); /* feeds on */
    tiny_span(g.t, worker, SPAN_ANNOTATION, "mpi:bcast", 60, 10);
    CHECK(&g, 20, 10, 0, 0, 0, 10, 60);
}

static void each_device_has_a_view_and_steps_show_the_mean(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    uint32_t second = tiny_stream(g.t, 1, 7);
    device(&g, SPAN_KERNEL, "gemm", 0, 50);
    tiny_span(g.t, second, SPAN_KERNEL, "gemm", 0, 21);
    host(&g, SPAN_OP, "aten::mm", 0, 100);
    tiny_seal(g.t);
    check_view(&g, 0, (const int[PHASES]){50, 0, 0, 0, 0, 50, 0});
    check_view(&g, 1, (const int[PHASES]){21, 0, 0, 0, 0, 79, 0});
    struct result r = tiny_run(g.t, "steps", NULL, NULL);
    int64_t compute = tiny_cell(&r, 0, "compute_us")->i;
    int64_t hosts = tiny_cell(&r, 0, "host_us")->i;
    assert_int_equal(compute, 35500 * PS_PER_NS);
    assert_int_equal(compute + hosts, tiny_cell(&r, 0, "dur_us")->i);
    result_free(&r);
    r = tiny_run(g.t, "steps", "by", "device");
    assert_int_equal(r.nrows, 2);
    result_free(&r);
    trace_free(g.t);
}

static void the_remark_on_devices_is_about_any_source(void **state) {
    (void)state;
    struct rig g = rig_new(true), h = rig_new(true);
    uint32_t second = tiny_stream(h.t, 1, 7);
    device(&g, SPAN_KERNEL, "gemm", 0, 50);
    device(&h, SPAN_KERNEL, "gemm", 0, 50);
    tiny_span(h.t, second, SPAN_KERNEL, "gemm", 0, 21);
    struct ops_err e;
    assert_int_equal(trace_append(g.t, h.t, &e), 0);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "steps", NULL, NULL);
    bool said = false;
    for (size_t i = 0; i < r.nremarks; i++)
        said |= strncmp(r.remarks[i], "2 devices", 9) == 0;
    assert_true(said);
    result_free(&r);
    trace_free(g.t);
}

static void the_mean_of_odd_parts_still_sums(void **state) {
    (void)state;
    struct rig g = rig_new(true);
    uint32_t more[2] = {tiny_stream(g.t, 1, 7), tiny_stream(g.t, 2, 7)};
    struct span_in s = {.ts = 0,
                        .kind = SPAN_KERNEL,
                        .name = trace_str(g.t, bytes_of("gemm"))};
    int64_t len[] = {1, 2, 5}; /* ps: no multiple of three */
    for (int i = 0; i < 3; i++) {
        s.track = i ? more[i - 1] : g.stream;
        s.dur = len[i];
        trace_span(g.t, &s);
    }
    s.track = more[0];
    s.ts = 10;
    s.kind = SPAN_COPY;
    trace_span(g.t, &s);
    tiny_seal(g.t);
    struct result r = tiny_run(g.t, "steps", NULL, NULL);
    static const char *const names[] = {"compute_us", "comm_us",   "copy_us",
                                        "input_us",   "launch_us", "host_us",
                                        "other_us"};
    int64_t sum = 0;
    for (int i = 0; i < PHASES; i++) {
        assert_true(tiny_cell(&r, 0, names[i])->i >= 0);
        sum += tiny_cell(&r, 0, names[i])->i;
    }
    assert_int_equal(sum, tiny_cell(&r, 0, "dur_us")->i);
    result_free(&r);
    trace_free(g.t);
}

/* A step of months on many devices: each device's part fits, their sum does
 * not. And what is printed has all digits of a mean. */
static void the_mean_of_long_steps_still_sums(void **state) {
    (void)state;
    enum { DEVICES = 40 };
    struct trace *t = tiny_new(true, false);
    struct span_in s = {.kind = SPAN_KERNEL,
                        .dur = DUR_LIMIT,
                        .name = trace_str(t, bytes_of("gemm"))};
    for (int i = 0; i < DEVICES; i++) {
        s.track = tiny_stream(t, i, 7);
        s.ts = i * 1001;
        trace_span(t, &s);
        s.ts = TS_LIMIT - i * 1001;
        trace_span(t, &s);
    }
    tiny_seal(t);
    struct result r = tiny_run(t, "steps", NULL, NULL);
    static const char *const names[] = {"compute_us", "comm_us",   "copy_us",
                                        "input_us",   "launch_us", "host_us",
                                        "other_us"};
    int64_t sum = 0, dur = 0;
    for (size_t i = 0; i < r.nrows; i++) {
        for (int p = 0; p < PHASES; p++) {
            assert_true(tiny_cell(&r, i, names[p])->i >= 0);
            sum += tiny_cell(&r, i, names[p])->i;
        }
        dur += tiny_cell(&r, i, "dur_us")->i;
    }
    assert_true(dur > INT64_MAX / DEVICES * 2);
    assert_int_equal(sum, dur);
    assert_int_equal(r.decimals, 6);
    result_free(&r);
    r = tiny_run(t, "steps", "by", "device");
    assert_int_equal(r.decimals, 3); /* no means: as the source has them */
    result_free(&r);
    trace_free(t);
}

/* --- random traces, instant by instant --- */

enum { SPACE = 200, MOST = 40 };

enum what {
    W_GEMM,
    W_NCCL,
    W_COPY,
    W_LOADER,
    W_API,
    W_OP,
    W_REGION,
    W_GLOO,
    W_KINDS
};

struct piece {
    enum what what;
    int from, to;
    int gpu; /* device work: which */
};

/* clang-format off */
static const char *const names_of[] = {
    "gemm", "ncclDevKernel_X", "Memcpy DtoD", "enumerate(DataLoader)#a",
    "cudaStreamSynchronize", "aten::mm", "region", "gloo:all_reduce"};
/* clang-format on */
static const uint8_t kinds_of[] = {SPAN_KERNEL,     SPAN_KERNEL,    SPAN_COPY,
                                   SPAN_ANNOTATION, SPAN_API,       SPAN_OP,
                                   SPAN_ANNOTATION, SPAN_ANNOTATION};

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 12;
}

/* Makes pieces that overlap, nest and cross in every way. */
static size_t make_pieces(struct piece *v, uint32_t *seed, bool gpus) {
    size_t n = 0;
    for (int slot = 0; slot < SPACE; slot += 20) {
        for (int k = 0; k < 4 && n < MOST; k++) {
            enum what w = (enum what)(next(seed) % W_KINDS);
            if (!gpus && w <= W_COPY) continue;
            int a = slot + (int)(next(seed) % 8),
                b = a + 1 + (int)(next(seed) % 10);
            if (w <= W_COPY || w == W_GLOO) b += (int)(next(seed) % 60);
            v[n++] = (struct piece){w, a, b, (int)(next(seed) % 2)};
        }
    }
    return n;
}

/* Is a host piece on the step's thread inside a loader there? Then it is the
 * loader's. Of two with the same ends the first recorded is the outer one. */
static bool in_loader(const struct piece *v, size_t n, const struct piece *p) {
    for (size_t i = 0; i < n; i++) {
        if (v[i].what != W_LOADER || v[i].from > p->from || v[i].to < p->to)
            continue;
        bool same = v[i].from == p->from && v[i].to == p->to;
        if (!same || &v[i] < p) return true;
    }
    return false;
}

static bool runs(const struct piece *v, size_t n, enum what w, int t, int gpu) {
    for (size_t i = 0; i < n; i++) {
        if (v[i].what != w || t < v[i].from || t >= v[i].to) continue;
        if (w <= W_COPY && v[i].gpu != gpu) continue;
        if ((w == W_API || w == W_OP || w == W_REGION) &&
            in_loader(v, n, &v[i]))
            continue;
        return true;
    }
    return false;
}

/* Does a region run at t that ends before the first op, and so prepares the
 * input of a step without a device? */
static bool prepares(const struct piece *v, size_t n, int t) {
    int first = INT_MAX;
    for (size_t i = 0; i < n; i++)
        if (v[i].what == W_OP && v[i].from < first && !in_loader(v, n, &v[i]))
            first = v[i].from;
    for (size_t i = 0; i < n; i++)
        if (v[i].what == W_REGION && v[i].from <= t && t < v[i].to &&
            first < INT_MAX && v[i].to <= first)
            return true;
    return false;
}

/* Returns the phase by the rule as the interface states it. gpu is -1 without a
 * device. */
static enum phase phase_at(const struct piece *v, size_t n, int t, int gpu) {
    bool op = runs(v, n, W_OP, t, gpu);
    bool comm = runs(v, n, W_GLOO, t, gpu) && !op;
    if (gpu >= 0 && runs(v, n, W_GEMM, t, gpu)) return PHASE_COMPUTE;
    if (comm || (gpu >= 0 && runs(v, n, W_NCCL, t, gpu))) return PHASE_COMM;
    if (gpu >= 0 && runs(v, n, W_COPY, t, gpu)) return PHASE_COPY;
    if (runs(v, n, W_LOADER, t, gpu)) return PHASE_INPUT;
    if (gpu < 0 && prepares(v, n, t)) return PHASE_INPUT;
    if (gpu < 0 && op) return PHASE_COMPUTE;
    if (runs(v, n, W_API, t, gpu)) return PHASE_LAUNCH;
    if (op || runs(v, n, W_REGION, t, gpu) || runs(v, n, W_GLOO, t, gpu))
        return PHASE_HOST;
    return PHASE_OTHER;
}

static void add_pieces(struct rig *g, const struct piece *v, size_t n,
                       const uint32_t stream[2], uint32_t worker) {
    for (size_t i = 0; i < n; i++) {
        uint32_t track = v[i].what <= W_COPY   ? stream[v[i].gpu]
                         : v[i].what == W_GLOO ? worker
                                               : g->thread;
        tiny_span(g->t, track, (enum span_kind)kinds_of[v[i].what],
                  names_of[v[i].what], v[i].from, v[i].to - v[i].from);
    }
}

static void check_random(uint32_t *seed, bool gpus) {
    struct piece v[MOST];
    struct rig g = {.t = tiny_new(gpus, false)};
    size_t n = make_pieces(v, seed, gpus);
    g.thread = tiny_thread(g.t, 1);
    tiny_span(g.t, g.thread, SPAN_ANNOTATION, "ProfilerStep#0", 0, SPACE);
    uint32_t stream[2] = {0, 0}, worker = tiny_thread(g.t, 2);
    for (int i = 0; gpus && i < 2; i++) stream[i] = tiny_stream(g.t, i, 7);
    add_pieces(&g, v, n, stream, worker);
    tiny_seal(g.t);
    struct phases p;
    struct ops_err e;
    assert_int_equal(phases_get(&p, g.t, &e), 0);
    for (size_t k = 0; k < p.nviews; k++) {
        uint32_t d = p.views[k].device;
        int gpu = d == ROW_NONE ? -1 : (int)g.t->devices[d].ordinal;
        int a = (int)(next(seed) % 50), b = a + (int)(next(seed) % 150);
        int64_t parts[PHASES], want[PHASES] = {0};
        phases_split(&p.views[k], a * US, b * US, parts);
        for (int t = a; t < b; t++) want[phase_at(v, n, t, gpu)] += US;
        for (int i = 0; i < PHASES; i++) assert_int_equal(parts[i], want[i]);
    }
    trace_free(g.t);
}

static void random_traces_split_as_counted_by_instant(void **state) {
    (void)state;
    uint32_t seed = 11;
    for (int i = 0; i < 1500; i++) check_random(&seed, i % 3 != 0);
}

/* Checks that the input phase of all devices together is the sum of theirs, and
 * the unoccupied time the mean of their last three phases, be they few (asked
 * one by one) or many (asked by levels). */
static void check_together(uint32_t *seed, int64_t devices) {
    struct rig g = rig_new(true);
    for (int k = 0; k < 4; k++)
        host(&g, SPAN_OP, "enumerate(DataLoader)#_SingleProcess.__next__",
             k * 25, k * 25 + 2 + (int64_t)(next(seed) % 15));
    for (int64_t d = 0; d < devices; d++) {
        uint32_t stream = tiny_stream(g.t, d, 7);
        for (int64_t at = (int64_t)(next(seed) % 9); at < 90; at += 7)
            tiny_span(g.t, stream, SPAN_KERNEL, "k", at,
                      1 + (int64_t)(next(seed) % 6));
    }
    tiny_seal(g.t);
    struct phases p;
    struct ops_err e;
    assert_int_equal(phases_get(&p, g.t, &e), 0);
    struct intervals all = {0};
    assert_true(intervals_add(&all, 0, 100 * US));
    intervals_union(&all);
    wide input = 0, open = 0;
    for (size_t i = 0; i < p.nviews; i++) {
        int64_t parts[PHASES];
        phases_split(&p.views[i], 0, 100 * US, parts);
        input += parts[PHASE_INPUT];
        open += parts[PHASE_LAUNCH] + parts[PHASE_HOST] + parts[PHASE_OTHER];
    }
    struct phase_input x;
    int64_t mean;
    assert_true(phase_input_init(&x, &p, 0, &all));
    assert_true(input > 0);
    assert_true(phase_input_sum(&x, 0, 100 * US) == input);
    assert_true(phases_unoccupied(&p, 0, &all, &mean));
    assert_true(mean == (int64_t)(open / (wide)p.nviews));
    phase_input_free(&x);
    intervals_free(&all);
    trace_free(g.t);
}

static void devices_together_are_the_sum_of_each(void **state) {
    (void)state;
    uint32_t seed = 5;
    for (int64_t n = 1; n < 40; n++) check_together(&seed, n);
}

/* Makes steps of 10 us, and as many devices; each works in its own step, or all
 * of them all the time. */
static struct trace *many_of_both(int64_t n, bool always) {
    struct trace *t = tiny_new(true, false);
    uint32_t thread = tiny_thread(t, 1);
    for (int64_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", (int)i);
        tiny_span(t, thread, SPAN_ANNOTATION, name, 10 * i, 10);
        tiny_span(t, tiny_stream(t, i, 7), SPAN_KERNEL, "k",
                  always ? 0 : 10 * i + 1, always ? 10 * n : 3);
    }
    tiny_seal(t);
    return t;
}

static bool remarks_say(const struct result *r, const char *text) {
    for (size_t i = 0; i < r->nremarks; i++)
        if (strstr(r->remarks[i], text)) return true;
    return false;
}

/* More pairs of a step and a device than a file of this size may have rows:
 * those that did something are shown, and what is not is counted. */
static void steps_and_devices_without_number(void **state) {
    (void)state;
    enum { FEW = 20, MANY = 700 };
    struct trace *t = many_of_both(FEW, false);
    struct result r = tiny_run(t, "steps", "by", "device");
    assert_int_equal(r.nrows, FEW * FEW);
    result_free(&r);
    trace_free(t);
    t = many_of_both(MANY, false);
    r = tiny_run(t, "steps", "by", "device");
    assert_int_equal(r.nrows, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(tiny_cell(&r, i, "step")->i, i);
        assert_int_equal(tiny_cell(&r, i, "dur_us")->i, 10 * US);
        assert_int_equal(tiny_cell(&r, i, "compute_us")->i, 3 * US);
        assert_int_equal(tiny_cell(&r, i, "other_us")->i, 7 * US);
    }
    assert_string_equal(tiny_cell(&r, 9, "device")->s, "GPU 9");
    assert_true(remarks_say(&r, "489300 rows of devices that did nothing"));
    result_free(&r);
    trace_free(t);
    t = many_of_both(MANY, true);
    r = tiny_run(t, "steps", "by", "device");
    assert_int_equal(r.nrows, (1 << 18) + 8 * 2 * MANY);
    assert_int_equal(tiny_cell(&r, MANY, "step")->i, 1);
    assert_int_equal(tiny_cell(&r, MANY, "compute_us")->i, 10 * US);
    assert_true(remarks_say(&r, "The last 216656 rows"));
    result_free(&r);
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instant_goes_to_the_first_that_runs),
        cmocka_unit_test(memsets_are_copies_and_waits_are_no_work),
        cmocka_unit_test(markers_and_python_frames_are_no_host_work),
        cmocka_unit_test(markers_that_make_no_step_are_no_host_work),
        cmocka_unit_test(other_threads_work_but_do_not_wait_for_input),
        cmocka_unit_test(regions_before_the_first_launch_are_input),
        cmocka_unit_test(a_compilers_regions_are_never_input),
        cmocka_unit_test(the_optimizers_regions_are_never_input),
        cmocka_unit_test(what_the_input_pipeline_calls_is_input),
        cmocka_unit_test(a_cpu_collective_is_hidden_by_the_steps_own_ops),
        cmocka_unit_test(the_call_that_starts_a_collective_is_host_work),
        cmocka_unit_test(without_a_device_ops_are_compute_after_comm_and_input),
        cmocka_unit_test(each_device_has_a_view_and_steps_show_the_mean),
        cmocka_unit_test(the_remark_on_devices_is_about_any_source),
        cmocka_unit_test(the_mean_of_odd_parts_still_sums),
        cmocka_unit_test(the_mean_of_long_steps_still_sums),
        cmocka_unit_test(steps_and_devices_without_number),
        cmocka_unit_test(devices_together_are_the_sum_of_each),
        cmocka_unit_test(random_traces_split_as_counted_by_instant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
