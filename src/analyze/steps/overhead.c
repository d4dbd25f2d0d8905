/* SPDX-License-Identifier: Apache-2.0
 * The cost of recording, from measurements of the same programs with and
 * without their profilers, scaled to the host at hand.
 *
 * Recorders stamp an event's start after their own work at its begin, and its
 * end before that at its end: what recording takes lies around the span, in the
 * span that holds it. Spans that do nothing but call one other (aten::detach,
 * EagerExecute: op_thin) show it. Their own time hardly differs between
 * programs, so it tells how fast a host is: figures below are for one on which
 * it is as in `thin`, and are multiplied by how much longer it takes here. */
#include "analyze/steps/overhead.h"

#include "analyze/shared/missing.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/sort.h"
#include "model/format.h"
#include "model/span_class.h"
#include "names/frame_name.h"
#include "names/op_names.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What recording costs, ns at a speed of 1. */
struct figures {
    int op;                            /* an op ... */
    int view;                          /* less of one that only makes a view */
    int shapes, stacks, memory, flops; /* ... and more with each of these */
    int engine;                 /* more for a call of autograd's engine */
    int python, builtin;        /* a Python frame; one of a C function */
    int annotation, api, other; /* a region, a driver call, the rest */
    int graph;                  /* a kernel of a graph, when that is launched */
    double least, most;         /* times these figures, in 19 of 20 programs */
};

/* docs/bare-step.md has the programs, and how far off these were on others. */
static const struct figures
    /* torch 2.13, six programs with six sets of options. A region is dear: it
     * is entered from Python. */
    torch_cpu = {.op = 195,
                 .shapes = 160,
                 .stacks = 15,
                 .memory = 40,
                 .flops = 85,
                 .engine = 920,
                 .python = 130,
                 .builtin = 215,
                 .annotation = 9500,
                 .api = 500,
                 .other = 195,
                 .least = 0.65,
                 .most = 1.75},
    /* torch 2.11, an H200: ids that tie ops to kernels are pushed and popped in
     * CUPTI at every op, but hardly any time is lost on views. */
    torch_device = {.op = 4200,
                    .view = 3200,
                    .shapes = 690,
                    .stacks = 100,
                    .memory = 205,
                    .flops = 410,
                    .python = 900,
                    .builtin = 1260,
                    .annotation = 20000,
                    .api = 3300,
                    .other = 1000,
                    .graph = 2000,
                    .least = 0.33,
                    .most = 1.8},
    /* TensorFlow 2.21 and JAX 0.10 on a CPU; graphs of JAX on an H200. */
    tensorflow = {.op = 165,
                  .python = 200,
                  .builtin = 200,
                  .annotation = 7000,
                  .api = 1000,
                  .other = 165,
                  .least = 0.6,
                  .most = 1.6},
    jax = {.op = 90,
           .python = 200,
           .builtin = 200,
           .annotation = 5000,
           .api = 1000,
           .other = 75,
           .graph = 800,
           .least = 0.6,
           .most = 1.6};

/* Own time of spans that only call another, ns at a speed of 1: alone, and more
 * where shapes are recorded. */
static const struct {
    int own, shapes;
} thin[THIN_OPS] = {
    [THIN_DETACH] = {160, 40},      [THIN_TO] = {160, 80},
    [THIN_T] = {320, 65},           [THIN_TRANSPOSE] = {230, 215},
    [THIN_ITEM] = {150, 135},       [THIN_RESHAPE] = {160, 135},
    [THIN_EMPTY_LIKE] = {210, 190}, [THIN_ACCUMULATE] = {285, 50},
    [THIN_T_BACKWARD] = {220, 55},  [THIN_EAGER_EXECUTE] = {132, 0},
    [THIN_EAGER_KERNEL] = {165, 0}, [THIN_PJIT] = {70, 0},
};

enum {
    THIN_MIN = 8,    /* fewer of a name tell nothing */
    THIN_MAX = 1024, /* more tell nothing new */
    INSIDE_MAX = 64, /* spans inside one; with more it is none */
    /* FLOPs make them longer by this, ns. */
    THIN_FLOPS_NS = 35,
    /* On the host of the figures for devices, with CUPTI at work, they take so
     * much longer, per cent. */
    DEVICE_PERCENT = 350,
};

/* Beside a device the own time of thin spans is twice as long in one capture of
 * a program as in another; what recording costs differs by less. So much of the
 * difference counts, as a power. */
static const double DEVICE_POWER = 0.6;

/* A host whose speed nothing tells is taken for this slow, and then less is
 * known. */
static const double UNKNOWN_SPEED = 1.2, UNKNOWN_LEAST = 0.3,
                    UNKNOWN_MOST = 2.5, SLOWEST = 20, FASTEST = 0.2;

/* The same beside a device that XProf's tracer watches. CUPTI gets ready in the
 * first milliseconds and slows every launch of a graph: in ten programs of JAX
 * on an H200 by up to so many us more than its events explain. */
static const double UNKNOWN_BESIDE_DEVICE = 5;
enum { XPROF_GRAPH_US = 600 };

/* Returns the own time of a span that calls one other; -1 if it calls none or
 * more. */
static int64_t own_time(const struct trace *t, row_id r, row_id end) {
    if (r + 1 >= end || t->spans.parent[r + 1] != r) return -1;
    int64_t last = span_end(t, r + 1);
    for (row_id k = r + 2; k < end && t->spans.ts[k] < span_end(t, r); k++)
        if (t->spans.ts[k] >= last || k > r + INSIDE_MAX) return -1;
    return t->spans.dur[r] - t->spans.dur[r + 1];
}

/* Own times by the name of the span. */
struct thin_times {
    int64_t v[THIN_OPS][THIN_MAX];
    size_t n[THIN_OPS];
};

static void read_times(struct thin_times *x, const struct trace *t,
                       uint32_t source) {
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[source]; k < l->first[source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind != TRACK_THREAD) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            uint8_t kind = t->spans.kind[r];
            if (kind != SPAN_OP && kind != SPAN_RUNTIME) continue;
            int64_t own = own_time(t, r, tr->end);
            if (own <= 0) continue;
            int i = op_thin(strs_bytes(&t->strs, t->spans.name[r]));
            if (i >= 0 && x->n[i] < THIN_MAX) x->v[i][x->n[i]++] = own;
        }
    }
}

/* Returns how many times as long as on the machine of the figures such spans
 * take: by their names the lower quarter, since what they do besides only adds.
 * 0 if there are too few to tell. */
static double speed_of(struct thin_times *x, const struct source *s,
                       bool flops) {
    double v[THIN_OPS];
    size_t n = 0;
    for (int i = 0; i < THIN_OPS; i++) {
        if (x->n[i] < THIN_MIN) continue;
        qsort(x->v[i], x->n[i], sizeof x->v[i][0], sort_by_value);
        int ns = thin[i].own + thin[i].shapes * s->has_shapes +
                 THIN_FLOPS_NS * flops;
        double here = (double)x->v[i][x->n[i] / 2] / (double)(ns * PS_PER_NS);
        size_t at = n++;
        for (; at > 0 && v[at - 1] > here; at--) v[at] = v[at - 1];
        v[at] = here;
    }
    return n > 0 ? v[(n - 1) / 4] : 0;
}

/* Returns the figures for the recorder that wrote the source, or NULL. */
static const struct figures *figures_of(const struct trace *t,
                                        uint32_t source) {
    const struct source *s = &t->sources[source];
    if (source_is_torchs(s)) return s->has_device ? &torch_device : &torch_cpu;
    if (s->format->writer != WRITER_XPROF) return NULL;
    return framework_of(t, source) == FW_JAX ? &jax : &tensorflow;
}

/* Reads what opscope's recorder says: it measures what a scope costs on the
 * machine and in the program where it runs. More than 10 us is no such
 * figure. */
static void read_told(struct overhead *o, const struct trace *t,
                      uint32_t source) {
    const char *text = trace_meta_get(t, source, FACT_SCOPE_COST_PS);
    char *end;
    if (text == NULL) return;
    long long ps = strtoll(text, &end, 10);
    if (*end != '\0' || ps <= 0 || ps > 10 * PS_PER_US) return;
    *o = (struct overhead){.known = true, .told = true, .least = 1, .most = 1};
    for (int k = 0; k < SPAN_KINDS; k++) o->event[k] = ps;
    o->builtin = ps;
}

/* Scales the figures to a host; a speed of 0 is not known. */
static void set_costs(struct overhead *o, const struct source *s,
                      const struct figures *f, double speed, bool flops) {
    *o = (struct overhead){.known = true, .least = f->least, .most = f->most};
    bool beside = s->has_device && f != &torch_device;
    if (beside) { /* the figures are from a CPU */
        o->besides = XPROF_GRAPH_US * PS_PER_US;
        o->least = UNKNOWN_LEAST;
    }
    if (speed <= 0) {
        speed = beside ? UNKNOWN_BESIDE_DEVICE : UNKNOWN_SPEED;
        o->least = UNKNOWN_LEAST;
        o->most = UNKNOWN_MOST;
    } else if (f == &torch_device) {
        speed = pow(speed * 100 / DEVICE_PERCENT, DEVICE_POWER);
    }
    if (speed < FASTEST) speed = FASTEST;
    if (speed > SLOWEST) speed = SLOWEST;
    const int ns[SPAN_KINDS] = {[SPAN_OP] = f->op + f->shapes * s->has_shapes +
                                            f->stacks * s->has_stacks +
                                            f->memory * s->has_memory +
                                            f->flops * flops,
                                [SPAN_ANNOTATION] = f->annotation,
                                [SPAN_API] = f->api,
                                [SPAN_PYTHON] = f->python,
                                [SPAN_RUNTIME] = f->other};
    for (int k = 0; k < SPAN_KINDS; k++)
        o->event[k] = (int64_t)(speed * ns[k] * PS_PER_NS);
    o->graph = (int64_t)(speed * f->graph * PS_PER_NS);
    o->view = (int64_t)(speed * f->view * PS_PER_NS);
    o->engine = (int64_t)(speed * f->engine * PS_PER_NS);
    o->builtin = (int64_t)(speed * f->builtin * PS_PER_NS);
}

int64_t overhead_cost(const struct overhead *o, const struct trace *t,
                      row_id r) {
    if (!overhead_counts(t, r)) return 0;
    uint8_t kind = t->spans.kind[r];
    struct bytes name = strs_bytes(&t->strs, t->spans.name[r]);
    if (kind == SPAN_API && o->graph > 0 && (span_class(t, r) & CLASS_GRAPH)) {
        size_t first, end = trace_links_from(t, r, &first);
        return o->event[kind] + o->graph * (int64_t)(end - first);
    }
    if (kind == SPAN_PYTHON && frame_name_is_builtin(name)) return o->builtin;
    if (kind == SPAN_OP && o->engine > 0 &&
        BYTES_STARTS(name, NAME_ENGINE_CALL))
        return o->event[kind] + o->engine;
    if (kind == SPAN_OP && o->view > 0 && op_is_view(name))
        return o->event[kind] - o->view;
    return o->event[kind];
}

int overhead_read(struct overhead *o, const struct trace *t, uint32_t source,
                  struct ops_err *e) {
    const struct source *s = &t->sources[source];
    const struct figures *f = figures_of(t, source);
    *o = (struct overhead){0};
    if (s->by_opscope) read_told(o, t, source);
    if (s->by_opscope || f == NULL) return 0;
    struct thin_times *times = calloc(1, sizeof *times);
    if (times == NULL) return fail_oom(e);
    const char *text = trace_meta_get(t, source, "with_flops");
    bool flops = text != NULL && strcmp(text, "1") == 0;
    read_times(times, t, source);
    double speed = speed_of(times, s, flops);
    free(times);
    set_costs(o, s, f, speed, flops);
    return 0;
}
