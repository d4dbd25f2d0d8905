/* SPDX-License-Identifier: Apache-2.0
 * critical: the chain of work that made the step as long as it was. It is
 * walked backwards from the step's end over the step's graph (deps.h): from
 * device work to what it waited for last, from a call that waited to the work
 * that it waited for, else to what the program did before. Each instant of the
 * step is on the path once, so the parts sum to the step. */
#include "analyze/analyze.h"

#include "analyze/shared/host_tree.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/phases.h"
#include "analyze/shared/pystack.h"
#include "analyze/steps/deps.h"
#include "base/array.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "names/frame_name.h"
#include <stdlib.h>

enum { MAX_STEPS = 32 };

enum path_kind {
    ON_COMPUTE,
    ON_COMM,
    ON_COPY,
    ON_INPUT,
    ON_LAUNCH,
    ON_SYNC,
    ON_HOST,
    ON_PYTHON,
    ON_GAP,
    ON_KINDS,
};

static const char *const path_kind_names[ON_KINDS] = {
    "compute", "communication", "copy",   "input", "launch",
    "sync",    "host",          "python", "gap",
};

/* A stretch of the path. */
struct path_segment {
    int64_t ts, dur;
    row_id row; /* what ran, or ROW_NONE */
    uint8_t kind;
};

struct path {
    const struct trace *t;
    const struct deps *d;
    const struct pystack *frames;
    struct path_segment *v; /* last first */
    size_t n, cap;
    int64_t now, start; /* walked back to; the step's start */
    uint32_t last;      /* the work that ends last in the step, or DEP_NONE */
    bool oom;
};

/* Puts [from, now) on the path and walks back to from. */
static void back_to(struct path *p, int64_t from, row_id row,
                    enum path_kind kind) {
    if (from < p->start) from = p->start;
    if (from >= p->now) return;
    if (!VEC_ROOM(p->v, p->n, p->cap)) {
        p->oom = true;
        p->now = p->start;
        return;
    }
    p->v[p->n++] = (struct path_segment){from, p->now - from, row,
                                         (uint8_t)kind};
    p->now = from;
}

static enum path_kind host_kind(const struct trace *t, const struct piece *p) {
    /* between its ops a program that records itself need not run Python */
    enum path_kind between = missing_own(t) ? ON_HOST : ON_PYTHON;
    if (p->input) return ON_INPUT;
    if (p->row == ROW_NONE) return between;
    switch (t->spans.kind[p->row]) {
    case SPAN_API:
        return span_class(t, p->row) & CLASS_SYNC ? ON_SYNC : ON_LAUNCH;
    case SPAN_OVERHEAD: return ON_LAUNCH;
    case SPAN_ANNOTATION:
    case SPAN_PYTHON: return span_is_comm(t, p->row) ? ON_COMM : between;
    default: return span_is_comm(t, p->row) ? ON_COMM : ON_HOST;
    }
}

/* Returns the work that ends later; DEP_NONE counts as never. */
static uint32_t later(const struct deps *d, uint32_t a, uint32_t b) {
    if (a == DEP_NONE) return b;
    if (b == DEP_NONE) return a;
    return work_end(&d->works[a]) >= work_end(&d->works[b]) ? a : b;
}

/* Walks back over work i, up to now. Returns the work that held it up; DEP_NONE
 * if its launch did. */
static uint32_t walk_work(struct path *p, uint32_t i) {
    const struct work *w = &p->d->works[i];
    enum path_kind kind = p->t->spans.kind[w->row] != SPAN_KERNEL ? ON_COPY
                          : span_is_comm(p->t, w->row)            ? ON_COMM
                                                                  : ON_COMPUTE;
    back_to(p, w->ts, w->row, kind);
    uint32_t before = later(p->d, w->prev, w->after);
    int64_t call = work_launched(p->t, w);
    /* where nobody recorded the launch, the work before it is all there is */
    bool alone = w->call == ROW_NONE;
    if (before != DEP_NONE &&
        (alone || work_end(&p->d->works[before]) > call)) {
        back_to(p, work_end(&p->d->works[before]), w->row, ON_GAP);
        return before;
    }
    if (alone) back_to(p, p->start, w->row, ON_GAP);
    else back_to(p, call, w->call, ON_LAUNCH);
    return DEP_NONE;
}

/* Does the program wait in that piece for the last work, as its Python frame
 * tells? JAX waits in a call that nobody records. */
static bool waits_for_last(const struct path *p, const struct piece *q) {
    if (p->last == DEP_NONE || host_kind(p->t, q) != ON_PYTHON) return false;
    int64_t end = work_end(&p->d->works[p->last]);
    if (end <= q->ts || end > p->now) return false;
    row_id r = pystack_at(p->frames, p->t->steps[p->d->step].thread,
                          q->ts + q->dur / 2);
    return r != ROW_NONE &&
           frame_name_waits(strs_bytes(&p->t->strs, p->t->spans.name[r]));
}

/* Walks back over what the program did before now. Returns the work that it
 * waited for; DEP_NONE if it did something itself. */
static uint32_t walk_host(struct path *p) {
    const struct timeline *l = &p->d->line;
    if (l->n == 0 || p->now <= l->ts) {
        back_to(p, p->start, ROW_NONE, ON_GAP);
        return DEP_NONE;
    }
    size_t i = timeline_at(l, p->now - 1);
    const struct piece *q = &l->v[i];
    const struct stop *s = &p->d->stops[i];
    if (p->now > q->ts + q->dur) /* past the program's end: nobody worked */
        back_to(p, q->ts + q->dur, ROW_NONE, ON_GAP);
    if (s->wait != DEP_NONE) {
        const struct work *w = &p->d->works[s->wait];
        /* The path may come into the middle of a wait, by a launch on another
         * thread: work that began only later held up nothing here. */
        if (work_end(w) > q->ts && w->ts < p->now) {
            back_to(p, work_end(w), q->row, ON_SYNC);
            return s->wait;
        }
    }
    if (waits_for_last(p, q)) {
        back_to(p, work_end(&p->d->works[p->last]), q->row, ON_SYNC);
        return p->last;
    }
    back_to(p, q->ts, q->row, host_kind(p->t, q));
    return DEP_NONE;
}

static void walk_step(struct path *p, const struct step *s) {
    const struct deps *d = p->d;
    p->start = s->ts;
    p->now = s->ts + s->dur;
    uint32_t at = DEP_NONE; /* the work that ends the step */
    for (uint32_t i = 0; i < d->nworks; i++)
        if (work_end(&d->works[i]) <= p->now) at = later(d, at, i);
    p->last = at;
    if (at != DEP_NONE && d->line.n > 0) {
        /* a program that recorded nothing at the end did not make the step
         * end */
        bool idle = d->line.v[d->line.n - 1].row == ROW_NONE;
        int64_t last = work_end(&d->works[at]);
        bool alone = d->works[at].call == ROW_NONE; /* no host to look at */
        if (!alone && (last < d->line.end || (!idle && last == d->line.end)))
            at = DEP_NONE;
    }
    if (at != DEP_NONE) back_to(p, work_end(&d->works[at]), ROW_NONE, ON_GAP);
    /* each turn goes back to an earlier piece or work, so there is a bound */
    size_t left = 2 * (d->nworks + d->line.n) + 8;
    while (p->now > p->start && left-- > 0)
        at = at != DEP_NONE ? walk_work(p, at) : walk_host(p);
    back_to(p, p->start, ROW_NONE, ON_GAP);
}

/* Rows of the result: one for each step, kind and name. */
struct path_row {
    uint32_t step;
    uint32_t name; /* in names */
    uint8_t kind;
    int64_t time, segments, first;
};

struct path_rows {
    struct path_row *v;
    size_t n, cap;
    struct map find; /* (name, kind) of the step at hand -> row */
    struct strs names;
    struct pystack frames;
};

/* Returns what a framework's machinery (a SPAN_RUNTIME) is at work for: the op
 * around it, else the region that the user knows; the row itself if there is
 * none. */
static row_id known_around(const struct trace *t, row_id r) {
    enum { CLIMB = 64 };
    row_id region = ROW_NONE, up = r;
    for (int i = 0; i < CLIMB && up != ROW_NONE; i++) {
        uint8_t kind = t->spans.kind[up];
        if (kind == SPAN_OP) return up;
        if (kind == SPAN_ANNOTATION && region == ROW_NONE &&
            !span_is_step_mark(t, up))
            region = up;
        up = t->spans.parent[up];
    }
    return region != ROW_NONE ? region : r;
}

static const char *name_of(const struct path *p, const struct host_tree *h,
                           const struct path_segment *s) {
    if (s->row == ROW_NONE || span_is_step_mark(p->t, s->row)) {
        row_id frame =
            ROW_NONE; /* the function that the step's thread was in */
        if (s->kind == ON_PYTHON)
            frame = pystack_at(p->frames, p->t->steps[p->d->step].thread,
                               s->ts + s->dur / 2);
        if (frame != ROW_NONE) return span_name(p->t, frame);
        if (missing_own(p->t)) return "(no scope open)";
        return s->kind == ON_PYTHON ? "(Python, nothing recorded)"
                                    : "(nothing recorded)";
    }
    if (s->kind == ON_COMPUTE || s->kind == ON_COMM || s->kind == ON_COPY ||
        s->kind == ON_GAP) {
        row_id call = trace_launch_of(p->t, s->row);
        row_id op = call == ROW_NONE ? ROW_NONE
                                     : host_tree_launcher_name(h, call);
        if (op != ROW_NONE && !span_is_step_mark(p->t, op))
            return span_name(p->t, op);
    }
    if (p->t->spans.kind[s->row] == SPAN_RUNTIME)
        return span_name(p->t, known_around(p->t, s->row));
    return span_name(p->t, s->row);
}

static bool add_segment(struct path_rows *rows, const struct path *p,
                        const struct host_tree *h,
                        const struct path_segment *s) {
    str_id name = strs_intern(&rows->names, bytes_of(name_of(p, h, s)));
    if (name == STR_NONE) return false;
    uint32_t *slot = map_at(&rows->find, (uint64_t)name * ON_KINDS + s->kind);
    if (slot == NULL) return false;
    if (*slot == MAP_NONE) {
        if (!VEC_ROOM(rows->v, rows->n, rows->cap)) return false;
        *slot = (uint32_t)rows->n;
        rows->v[rows->n++] = (struct path_row){.step = p->d->step,
                                               .name = name,
                                               .kind = s->kind,
                                               .first = s->ts};
    }
    struct path_row *r = &rows->v[*slot];
    r->time += s->dur;
    r->segments++;
    if (s->ts < r->first) r->first = s->ts;
    return true;
}

static int add_step(struct path_rows *rows, const struct host_side *side,
                    const struct host_tree *h, uint32_t step,
                    struct ops_err *e) {
    struct deps d;
    TRY(deps_build(&d, side, step, e));
    struct path p = {.t = side->t, .d = &d, .frames = &rows->frames};
    walk_step(&p, &side->t->steps[step]);
    bool ok = !p.oom;
    map_free(&rows->find); /* names are one row within a step, not across */
    for (size_t i = 0; ok && i < p.n; i++)
        ok = add_segment(rows, &p, h, &p.v[i]);
    free(p.v);
    deps_free(&d);
    return ok ? 0 : fail_oom(e);
}

static int walk_source(struct path_rows *rows, const struct trace *t,
                       const struct selection *in, const struct host_tree *h,
                       const int64_t *first, uint32_t source,
                       struct ops_err *e) {
    struct step_choice asked = {source, in->step_in, true, MAX_STEPS};
    uint32_t chosen[MAX_STEPS];
    size_t n = 0;
    struct host_side side;
    if (!in->all && !in->source_in[source]) return 0;
    /* the steps that were asked for, else one that stands for all */
    if (in->asked) TRY(deps_choose(t, &asked, chosen, &n, e));
    else TRY(deps_typical(t, source, chosen, e));
    if (!in->asked) n = chosen[0] != ROW_NONE;
    if (n == 0) return 0;
    TRY(host_side_init(&side, t, source, first, e));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (t->steps[chosen[i]].dur > 0)
            rc = add_step(rows, &side, h, chosen[i], e);
    host_side_free(&side);
    return rc;
}

static const struct column critical_cols[] = {
    {"host", NULL, NULL, "the step's host or rank", COL_TEXT, 0},
    {"step", NULL, NULL, "which step", COL_INT, 0},
    {"kind", NULL, NULL,
     "compute, communication, copy: the device worked; input, host, python: "
     "the program did; launch: a call and the way to the device; sync: a call "
     "after what it waited for; gap: nobody did anything that was recorded",
     COL_TEXT, 0},
    {"name", NULL, NULL, "the op, call or region", COL_TEXT, COL_KEY},
    {"on_path_us", "on path", "us",
     "its time on the path; the rows of a step sum to the step", COL_TIME,
     COL_MAIN},
    {"share_pct", "share", "%", "the same of the step", COL_PERCENT, COL_BAR},
    {"segments", NULL, NULL, "stretches of the path that it is made of",
     COL_INT, 0},
    {"first_at_us", NULL, "us", "where the first begins", COL_TIME,
     COL_STAMP | COL_DETAIL},
};

static void put_remarks(struct result *r, const struct trace *t,
                        const struct selection *in,
                        const struct path_rows *rows) {
    if (rows->n == 0) {
        result_remark(r, "there is no step that takes any time: there is no "
                         "path to walk");
        return;
    }
    if (in->asked) return;
    const struct step *shown = &t->steps[rows->v[0].step];
    const struct source *s = &t->sources[shown->source];
    size_t all = s->step_end - s->step_first;
    bool others = t->steps[rows->v[rows->n - 1].step].source != shown->source;
    if (all > 1)
        result_remark(r, "%s %lld stands for all %zu%s; --%s A..B shows others",
                      t->base != NULL ? "instance" : "step",
                      (long long)shown->number, all,
                      others ? " of its rank, and so on for each rank" : "",
                      t->base != NULL ? "instance" : "steps");
}

static int critical_run(const struct trace *t, const struct opts *o,
                        struct result *r, struct ops_err *e) {
    struct selection in;
    struct host_tree h = {0};
    struct path_rows rows = {0};
    TRY(select_init(&in, t, o, e));
    int rc = host_tree_get(&h, t, e);
    if (rc == 0 && !strs_init(&rows.names)) rc = fail_oom(e);
    if (rc == 0) rc = pystack_init(&rows.frames, t, e);
    int64_t *first = phases_first_launches(t);
    if (rc == 0 && first == NULL) rc = fail_oom(e);
    for (uint32_t i = 0; rc == 0 && i < t->nsources; i++)
        rc = walk_source(&rows, t, &in, &h, first, i, e);
    free(first);
    if (rc == 0) {
        result_init(r, "critical", "Critical path");
        result_from_trace(r, t);
        result_cols(r, critical_cols, COUNT(critical_cols));
        for (size_t i = 0; i < rows.n; i++) {
            const struct path_row *v = &rows.v[i];
            const struct step *s = &t->steps[v->step];
            double share = 100.0 * (double)v->time / (double)s->dur;
            result_row(r);
            cell_text(r, "host", label_source(r, t, s->source));
            cell_int(r, "step", s->number);
            cell_text(r, "kind", path_kind_names[v->kind]);
            cell_text(r, "name", strs_text(&rows.names, v->name));
            cell_int(r, "on_path_us", v->time);
            cell_float(r, "share_pct", share);
            cell_int(r, "segments", v->segments);
            cell_int(r, "first_at_us", v->first);
        }
        put_remarks(r, t, &in, &rows);
        rc = result_done(r, e);
    }
    free(rows.v);
    map_free(&rows.find);
    strs_free(&rows.names);
    pystack_free(&rows.frames);
    select_free(&in);
    return rc;
}

const struct analysis analysis_critical = {
    .name = "critical",
    .help = "the chain of work that made a step as long as it was",
    .row = "one op, call or region on the critical path of a step",
    .run = critical_run,
};
