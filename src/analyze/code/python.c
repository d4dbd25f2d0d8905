/* SPDX-License-Identifier: Apache-2.0
 * python: one row per Python function, and how much of the step is spent in
 * Python itself.
 *
 * A function's own time is what neither functions that it called nor ops,
 * driver calls or the framework's machinery inside of it took: a frame around
 * torch.mm() has the cost of the call, not of the product. Total times count
 * a function that calls itself once. */
#include "analyze/analyze.h"
#include "analyze/code/lanes.h"
#include "analyze/shared/intervals.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/once.h"
#include "base/sum.h"
#include "base/vec.h"
#include "names/frame_name.h"
#include <stdlib.h>

struct function {
    str_id name; /* in python.names: the stable name */
    int64_t calls, total, self;
    int64_t in_step;  /* of self: on the step's thread, inside of a step */
    struct once once; /* what total has already */
    bool native;      /* a function of C */
};

struct python {
    const struct trace *t;
    struct scope scope;
    struct lanes lanes;
    struct strs names;
    struct function *v;
    size_t n, cap;
    uint32_t *of;     /* by str_id: function + 1; 0: not yet known */
    struct map index; /* stable name -> function */
    size_t *near;     /* by source: the step that the last time lay in */
    size_t *first;    /* by source: its first step; [source + 1]: its end */
    struct intervals *others; /* by source: ops run on threads that are not
                                 the steps' (autograd, executors) */
    wide steps;               /* ps, sum of the steps that count */
    int64_t nsteps;
    wide inside; /* ps of Python itself in them */
    bool oom;
};

/* A function of C: nothing says in which file it is. */
static bool is_c(struct bytes name) {
    return frame_name_split(name).file.n == 0 && !frame_name_is_module(name);
}

static uint32_t add_function(struct python *p, str_id stable) {
    uint32_t *at = map_at(&p->index, stable);
    if (at == NULL || (*at == MAP_NONE && !VEC_ROOM(p->v, p->n, p->cap))) {
        p->oom = true;
        return LANE_NONE;
    }
    if (*at == MAP_NONE) {
        struct bytes name = strs_bytes(&p->names, stable);
        p->v[p->n] = (struct function){.name = stable, .native = is_c(name)};
        *at = (uint32_t)p->n++;
    }
    return *at;
}

/* The function of a frame, made when new; LANE_NONE: out of memory. */
static uint32_t function_of(struct python *p, row_id r) {
    str_id name = p->t->spans.name[r];
    if (p->of[name] != 0) return p->of[name] - 1;
    char buf[FRAME_NAME_MAX];
    struct bytes b = frame_name_stable(strs_bytes(&p->t->strs, name), buf);
    str_id stable = strs_intern(&p->names, b);
    if (stable == STR_NONE) {
        p->oom = true;
        return LANE_NONE;
    }
    uint32_t f = add_function(p, stable);
    if (f != LANE_NONE) p->of[name] = f + 1;
    return f;
}

static bool on_wants(void *ctx, row_id r) {
    const struct spans *sp = &((struct python *)ctx)->t->spans;
    if (sp->flags[r] & SPAN_INSTANT) return false;
    switch (sp->kind[r]) {
    case SPAN_PYTHON:
    case SPAN_OP:
    case SPAN_API:
    case SPAN_RUNTIME: return true;
    default: return false; /* a region is Python's, whoever named it */
    }
}

static uint32_t on_enter(void *ctx, row_id r, uint32_t outer) {
    struct python *p = ctx;
    (void)outer;
    if (p->t->spans.kind[r] != SPAN_PYTHON) return LANE_NONE;
    uint32_t f = function_of(p, r);
    if (f != LANE_NONE && scope_has(&p->scope, r)) p->v[f].calls++;
    return f;
}

/* Is this the thread that the step runs on? */
static bool is_step_thread(const struct trace *t, const struct step *s,
                           row_id r) {
    const struct track *tr = &t->tracks[t->spans.track[r]];
    return s->thread == ROW_NONE || s->thread == tr->thread ||
           s->thread == t->spans.track[r];
}

/* How much of from..to lies in steps that count. Times of one thread come in
 * order, so the last step is near. A function of C during which ops run on
 * other threads waits for them (loss.backward() for autograd's thread): that
 * is no time of Python. */
static int64_t step_part(struct python *p, row_id r, bool native, int64_t from,
                         int64_t to) {
    const struct trace *t = p->t;
    uint32_t source = t->tracks[t->spans.track[r]].source;
    size_t i = p->near[source], end = p->first[source + 1];
    int64_t sum = 0;
    if (i < end && i > p->first[source] && t->steps[i].ts > from)
        i = p->first[source];
    while (i < end && t->steps[i].ts + t->steps[i].dur <= from) i++;
    p->near[source] = i;
    for (; i < end && t->steps[i].ts < to; i++) {
        const struct step *s = &t->steps[i];
        int64_t a = s->ts > from ? s->ts : from;
        int64_t b = s->ts + s->dur < to ? s->ts + s->dur : to;
        if (b <= a || !p->scope.step_in[i] || !is_step_thread(t, s, r))
            continue;
        sum_add(&sum, b - a);
        if (native) sum_sub(&sum, intervals_overlap(&p->others[source], a, b));
    }
    return sum;
}

static void on_spend(void *ctx, row_id r, uint32_t f, int64_t from,
                     int64_t to) {
    struct python *p = ctx;
    if (f == LANE_NONE) return;
    int64_t part = step_part(p, r, p->v[f].native, from, to);
    sum_add(&p->v[f].in_step, part);
    p->inside += part;
    if (scope_has(&p->scope, r)) sum_add(&p->v[f].self, to - from);
}

/* Total times: frames of a function inside of each other count once. */
static void add_totals(struct python *p, uint32_t track) {
    const struct trace *t = p->t;
    for (row_id r = t->tracks[track].first; r < t->tracks[track].end; r++) {
        uint32_t f = p->lanes.token[r];
        if (f == LANE_NONE || t->spans.kind[r] != SPAN_PYTHON ||
            !on_wants(p, r) || (t->spans.flags[r] & SPAN_ASYNC) ||
            !scope_has(&p->scope, r))
            continue;
        sum_add(&p->v[f].total,
                once_add(&p->v[f].once, track, t->spans.ts[r], span_end(t, r)));
    }
}

/* Steps of a source stand together, by time; counts those in scope. */
static void look_at_steps(struct python *p) {
    const struct trace *t = p->t;
    size_t i = 0;
    for (size_t s = 0; s < t->nsources; s++) {
        p->first[s] = p->near[s] = i;
        for (; i < t->nsteps && t->steps[i].source == s; i++) {
            if (!t->sources[s].has_stacks || !p->scope.step_in[i]) continue;
            p->nsteps++;
            p->steps += t->steps[i].dur;
        }
    }
    p->first[t->nsources] = i;
}

static bool is_some_steps_thread(const struct python *p, uint32_t source,
                                 uint32_t track) {
    /* the steps of a source are on one thread */
    size_t i = p->first[source];
    return i < p->first[source + 1] && p->t->steps[i].thread == track;
}

static bool find_others(struct python *p) {
    const struct trace *t = p->t;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_THREAD ||
            is_some_steps_thread(p, tr->source, (uint32_t)i))
            continue;
        struct intervals *s = &p->others[tr->source];
        int64_t end = INT64_MIN;
        for (row_id r = tr->first; r < tr->end; r++) {
            if (t->spans.kind[r] != SPAN_OP || span_end(t, r) <= end) continue;
            end = span_end(t, r);
            if (!intervals_add(s, t->spans.ts[r], end)) return false;
        }
    }
    for (size_t s = 0; s < t->nsources; s++) intervals_union(&p->others[s]);
    return true;
}

static int gather(struct python *p, const struct opts *o, struct ops_err *e) {
    const struct trace *t = p->t;
    TRY(scope_init(&p->scope, t, o, e));
    p->of = calloc(t->strs.n + 1, sizeof *p->of);
    p->near = calloc(t->nsources + 2, sizeof *p->near);
    p->first = calloc(t->nsources + 2, sizeof *p->first);
    p->others = calloc(t->nsources + 1, sizeof *p->others);
    if (!p->of || !p->near || !p->first || !p->others || !strs_init(&p->names))
        return fail_oom(e);
    look_at_steps(p);
    if (!find_others(p)) return fail_oom(e);
    p->lanes = (struct lanes){.t = t,
                              .ctx = p,
                              .wants = on_wants,
                              .enter = on_enter,
                              .spend = on_spend,
                              .python = true};
    TRY(lanes_walk(&p->lanes, e));
    if (p->oom) return fail_oom(e);
    for (uint32_t i = 0; i < t->ntracks; i++)
        if (t->tracks[i].kind == TRACK_PYTHON) add_totals(p, i);
    return 0;
}

static void put_columns(struct result *r) {
    /* clang-format off */
    const struct column cols[] = {
        {"function", NULL, NULL, "the function; a method of C in angle "
         "brackets, a call of a module as nn.Module", COL_TEXT, COL_KEY},
        {"file", NULL, NULL, "where it is defined; none for functions of C",
         COL_TEXT, COL_KEY},
        {"line", NULL, NULL, "the line of its definition", COL_INT, 0},
        {"calls", NULL, NULL, "how often it was called", COL_INT, 0},
        {"total_us", "total", "us", "time in it, callees included; calls of "
         "itself inside of itself count once", COL_TIME, 0},
        {"self_us", "self", "us", "time in its own Python code: less that of "
         "functions, operations and driver calls inside of it", COL_TIME,
         0},
        {"share_of_step_pct", "of step", "%", "of the time of all steps, what "
         "its own code took on the steps' thread, waits for "
         "other threads' operations left out", COL_PERCENT,
         COL_BAR | COL_MAIN},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
}

static void put_row(struct result *r, const struct python *p,
                    const struct function *f) {
    struct frame_name n = frame_name_split(strs_bytes(&p->names, f->name));
    result_row(r);
    result_str(r, n.function);
    if (n.file.n > 0) result_str(r, n.file);
    else result_null(r);
    result_int_if(r, n.line >= 0, n.line);
    result_int(r, f->calls);
    result_int(r, f->total);
    result_int(r, f->self);
    result_float_if(r, p->steps > 0,
                    100.0 * (double)f->in_step / (double)p->steps);
}

/* Rows that are equal in their share stand by own time, then by name. */
static int compare(const void *x, const void *y, void *ctx) {
    const struct python *p = ctx;
    const struct function *a = x, *b = y;
    if (a->self != b->self) return a->self > b->self ? -1 : 1;
    return strcmp(strs_text(&p->names, a->name), strs_text(&p->names, b->name));
}

static void put_rows(struct result *r, struct python *p) {
    if (p->n > 0) qsort_r(p->v, p->n, sizeof *p->v, compare, p);
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].calls > 0 || p->v[i].in_step > 0) put_row(r, p, &p->v[i]);
}

static void say(struct result *r, const struct python *p) {
    bool some = missing_say(r, p->t, MISSING_STACKS);
    if (!some || r->nrows == 0) {
        result_remark(r, some ? "No Python function ran in what was chosen."
                              : "No Python frame was recorded: there is "
                                "nothing to show.");
        return;
    }
    if (p->steps > 0)
        result_remark(r,
                      "Python itself takes %.1f %% of the step: %.1f us of "
                      "%.1f us, mean of %lld steps; recording frames makes "
                      "it slower than it is.",
                      100.0 * (double)p->inside / (double)p->steps,
                      (double)p->inside / (double)p->nsteps / PS_PER_US,
                      (double)p->steps / (double)p->nsteps / PS_PER_US,
                      (long long)p->nsteps);
}

static int run(const struct trace *t, const struct opts *o, struct result *r,
               struct ops_err *e) {
    struct python p = {.t = t};
    result_init(r, "python", "Python functions");
    result_from_trace(r, t);
    int rc = gather(&p, o, e);
    if (rc == 0) {
        put_columns(r);
        put_rows(r, &p);
        say(r, &p);
        rc = result_done(r, e);
    }
    scope_free(&p.scope);
    strs_free(&p.names);
    map_free(&p.index);
    free(p.lanes.token);
    free(p.v);
    free(p.of);
    free(p.near);
    free(p.first);
    for (size_t i = 0; p.others && i < t->nsources; i++)
        intervals_free(&p.others[i]);
    free(p.others);
    return rc;
}

const struct analysis analysis_python = {
    .name = "python",
    .help = "time of each Python function, and Python's share of the step",
    .row = "one Python function",
    .run = run,
};
