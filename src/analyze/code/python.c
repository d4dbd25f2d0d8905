/* SPDX-License-Identifier: Apache-2.0
 * python: one row per Python function, and how much of the step is spent in
 * Python itself.
 *
 * A function's own time is what neither functions that it called nor ops,
 * driver calls or the framework's machinery inside of it took: a frame around
 * torch.mm() has the cost of the call, not of the product. Total times count
 * a function that calls itself once. */
#include "analyze/analyze.h"
#include "analyze/code/thread_walk.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "names/frame_name.h"
#include <stdlib.h>

struct function {
    str_id name; /* in python.names: the stable name */
    int64_t calls, total, self;
    int64_t in_step;  /* of self: on the step's thread, inside of a step */
    struct once once; /* what total has already */
    bool native;      /* a function of C */
    bool waits;       /* it is there to wait: block_until_ready */
};

struct python {
    const struct trace *t;
    struct selection selection;
    struct thread_walk walk;
    struct strs names;
    struct function *v;
    size_t n, cap;
    uint32_t *of;     /* by str_id: function + 1; 0: not yet known */
    struct map index; /* stable name -> function */
    size_t *near;     /* by source: the step that the last time lay in */
    struct intervals *others; /* by source: ops run on threads that are not
                                 the steps' (autograd, executors) */
    wide steps;               /* ps, sum of the steps that count */
    int64_t nsteps;
    wide inside; /* ps of Python itself in them */
    bool oom;
};

/* Returns the function of a frame, made when new; TOKEN_NONE if out of
 * memory. */
static uint32_t function_of(struct python *p, row_id r) {
    str_id name = p->t->spans.name[r];
    if (p->of[name] != 0) return p->of[name] - 1;
    char buf[FRAME_NAME_MAX];
    struct bytes b = frame_name_stable(strs_bytes(&p->t->strs, name), buf);
    str_id stable = strs_intern(&p->names, b);
    uint32_t *at = stable == STR_NONE ? NULL : map_at(&p->index, stable);
    if (at == NULL || (*at == MAP_NONE && !VEC_ROOM(p->v, p->n, p->cap))) {
        p->oom = true;
        return TOKEN_NONE;
    }
    if (*at == MAP_NONE) {
        /* nothing says in which file a function of C is */
        b = strs_bytes(&p->names, stable);
        p->v[p->n] =
            (struct function){.name = stable,
                              .native = frame_name_split(b).file.n == 0 &&
                                        !BYTES_STARTS(b, "nn.Module: "),
                              .waits = frame_name_waits(b)};
        *at = (uint32_t)p->n++;
    }
    p->of[name] = *at + 1;
    return *at;
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
    if (p->t->spans.kind[r] != SPAN_PYTHON) return TOKEN_NONE;
    uint32_t f = function_of(p, r);
    if (f != TOKEN_NONE && select_has(&p->selection, r)) p->v[f].calls++;
    return f;
}

/* Returns how much of from..to lies in steps that count. Times of one thread
 * come in order, so the last step is near. A function of C during which ops run
 * on other threads waits for them (loss.backward() for autograd's thread): that
 * is no time of Python. */
static int64_t step_part(struct python *p, row_id r, bool native, int64_t from,
                         int64_t to) {
    const struct trace *t = p->t;
    uint32_t track = t->spans.track[r], source = t->tracks[track].source;
    size_t first = t->sources[source].step_first, i = p->near[source];
    size_t end = t->sources[source].step_end;
    int64_t sum = 0;
    if (i < end && i > first && t->steps[i].ts > from) i = first;
    while (i < end && t->steps[i].ts + t->steps[i].dur <= from) i++;
    p->near[source] = i;
    for (; i < end && t->steps[i].ts < to; i++) {
        const struct step *s = &t->steps[i];
        int64_t a = s->ts > from ? s->ts : from;
        int64_t b = s->ts + s->dur < to ? s->ts + s->dur : to;
        if (b <= a || !p->selection.step_in[i]) continue;
        if (s->thread != ROW_NONE && s->thread != track &&
            s->thread != t->tracks[track].thread)
            continue; /* not the thread that the step runs on */
        sat_inc(&sum, b - a);
        if (native) sat_dec(&sum, intervals_overlap(&p->others[source], a, b));
    }
    return sum;
}

static void on_spend(void *ctx, row_id r, uint32_t f, int64_t from,
                     int64_t to) {
    struct python *p = ctx;
    if (f == TOKEN_NONE) return;
    int64_t part = p->v[f].waits ? 0
                                 : step_part(p, r, p->v[f].native, from, to);
    sat_inc(&p->v[f].in_step, part);
    p->inside += part;
    if (select_has(&p->selection, r)) sat_inc(&p->v[f].self, to - from);
}

static bool find_others(struct python *p) {
    const struct trace *t = p->t;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        const struct source *src = &t->sources[tr->source];
        if (tr->kind != TRACK_THREAD) continue;
        if (src->step_first < src->step_end &&
            t->steps[src->step_first].thread == i)
            continue; /* the steps of a source are on one thread */
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

static int python_gather(struct python *p, const struct opts *o,
                         struct ops_err *e) {
    const struct trace *t = p->t;
    TRY(select_init(&p->selection, t, o, e));
    p->of = calloc(t->strs.n + 1, sizeof *p->of);
    p->near = calloc(t->nsources + 1, sizeof *p->near);
    p->others = calloc(t->nsources + 1, sizeof *p->others);
    if (!p->of || !p->near || !p->others || !strs_init(&p->names))
        return fail_oom(e);
    for (size_t s = 0; s < t->nsources; s++)
        p->near[s] = t->sources[s].step_first;
    for (size_t k = 0; k < t->nsteps; k++) {
        if (!t->sources[t->steps[k].source].has_stacks ||
            !p->selection.step_in[k])
            continue;
        p->nsteps++;
        p->steps += t->steps[k].dur;
    }
    if (!find_others(p)) return fail_oom(e);
    p->walk = (struct thread_walk){.t = t,
                                   .ctx = p,
                                   .wants = on_wants,
                                   .enter = on_enter,
                                   .spend = on_spend,
                                   .python = true};
    TRY(thread_walk(&p->walk, e));
    if (p->oom) return fail_oom(e);
    /* total times count frames of a function inside each other once */
    for (uint32_t i = 0; i < t->ntracks; i++) {
        if (t->tracks[i].kind != TRACK_PYTHON) continue;
        for (row_id r = t->tracks[i].first; r < t->tracks[i].end; r++) {
            uint32_t f = p->walk.token[r];
            if (f == TOKEN_NONE || t->spans.kind[r] != SPAN_PYTHON ||
                !on_wants(p, r) || (t->spans.flags[r] & SPAN_ASYNC) ||
                !select_has(&p->selection, r))
                continue;
            sat_inc(&p->v[f].total,
                    once_add(&p->v[f].once, i, t->spans.ts[r], span_end(t, r)));
        }
    }
    return 0;
}

/* clang-format off */
static const struct column python_cols[] = {
    {"function", NULL, NULL, "the function; a method of C in angle "
     "brackets, a call of a module as nn.Module", COL_TEXT, COL_KEY},
    {"file", NULL, NULL, "where it is defined; none for functions of C",
     COL_TEXT, COL_KEY},
    {"line", NULL, NULL, "the line of its definition", COL_INT, 0},
    {"calls", NULL, NULL, "how often it was called", COL_INT, 0},
    {"total_us", "total", "us", "time in it, callees included; calls of "
     "itself inside of itself count once", COL_TIME, COL_ANSWER},
    {"self_us", "self", "us", "time in its own Python code: less that of "
     "functions, operations and driver calls inside of it", COL_TIME,
     COL_ANSWER},
    {"step_self_us", "self in steps", "us", "of self_us, on the steps' thread "
     "in steps, waits left out", COL_TIME, 0},
    {"share_of_step_pct", "of step", "%", "step_self_us, of the time of all "
     "steps", COL_PERCENT, COL_BAR | COL_MAIN},
};
/* clang-format on */

static void put_function(struct result *r, const struct python *p,
                         const struct function *f) {
    struct frame_name n = frame_name_split(strs_bytes(&p->names, f->name));
    result_row(r);
    cell_str(r, "function", n.function);
    if (n.file.n > 0) cell_str(r, "file", n.file);
    if (n.line >= 0) cell_int(r, "line", n.line);
    cell_int(r, "calls", f->calls);
    cell_int(r, "total_us", f->total);
    cell_int(r, "self_us", f->self);
    if (p->steps <= 0) return;
    cell_int(r, "step_self_us", f->in_step);
    cell_float(r, "share_of_step_pct",
               100.0 * (double)f->in_step / (double)p->steps);
}

/* Compares functions by their share, then by own time, then by name. */
static int compare_functions(const void *x, const void *y, void *ctx) {
    const struct python *p = ctx;
    const struct function *a = x, *b = y;
    if (a->self != b->self) return a->self > b->self ? -1 : 1;
    return strcmp(strs_text(&p->names, a->name), strs_text(&p->names, b->name));
}

/* Says what of the trace is no function of the program. */
static void say_own(struct result *r, const struct python *p) {
    char own[48];
    if (p->walk.own <= 0) return;
    human_time(wide_narrow(p->walk.own), own, sizeof own);
    result_remark(r,
                  "Functions of opscope, which watched the program, are left "
                  "out: %s in all that was traced.",
                  own);
}

static void python_say(struct result *r, const struct python *p) {
    bool some = missing_say(r, p->t, MISSING_STACKS);
    if (!some || r->nrows == 0) {
        result_remark(r, some ? "No Python function ran in what was chosen."
                              : "No Python frame was recorded: there is "
                                "nothing to show.");
        return;
    }
    if (p->steps <= 0) return;
    char inside[48], step[48];
    human_time((int64_t)(p->inside / p->nsteps), inside, sizeof inside);
    human_time((int64_t)(p->steps / p->nsteps), step, sizeof step);
    result_remark(r,
                  "Python itself takes %.1f %% of the step: %s of %s, mean of "
                  "%lld step%s; recording frames makes it slower than it is.",
                  100.0 * (double)p->inside / (double)p->steps, inside, step,
                  (long long)p->nsteps, p->nsteps == 1 ? "" : "s");
}

static int python_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct python p = {.t = t};
    result_init(r, "python", "Python functions");
    result_from_trace(r, t);
    int rc = python_gather(&p, o, e);
    if (rc == 0) {
        result_cols(r, python_cols, COUNT(python_cols));
        if (p.n > 0) qsort_r(p.v, p.n, sizeof *p.v, compare_functions, &p);
        for (size_t i = 0; i < p.n; i++)
            if (p.v[i].calls > 0 || p.v[i].in_step > 0)
                put_function(r, &p, &p.v[i]);
        python_say(r, &p);
        say_own(r, &p);
        rc = result_done(r, e);
    }
    select_free(&p.selection);
    strs_free(&p.names);
    map_free(&p.index);
    free(p.walk.token);
    free(p.v);
    free(p.of);
    free(p.near);
    for (size_t i = 0; p.others && i < t->nsources; i++)
        intervals_free(&p.others[i]);
    free(p.others);
    return rc;
}

const struct analysis analysis_python = {
    .name = "python",
    .help = "time of each Python function, and Python's share of the step",
    .row = "one Python function",
    .run = python_run,
};
