/* SPDX-License-Identifier: Apache-2.0
 * hints: what to change first, and what it will give.
 *
 * A few steps that stand for all are taken apart into graphs and freed of the
 * profiler's own cost. Every rule repairs its fault in a copy of them; what
 * the copy gains when it is run again is the saving. The best rule is listed,
 * its repair is kept, and the others are tried on what is left: so no time is
 * claimed twice. First come the rules that are repaired in place, then those
 * that want restructuring. */
#include "analyze/analyze.h"

#include "analyze/cost/device_peak.h"
#include "analyze/hints/hint.h"
#include "analyze/ops/compile_find.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/pystack.h"
#include "analyze/steps/bare.h"
#include "analyze/steps/overhead.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/text/plain.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <stdio.h>
#include <stdlib.h>

enum { MAX_STEPS = 32, MAX_HINTS = 10 };

#define X(name) extern const struct hint_rule hint_##name;
#include "analyze/hints/hints.def"
#undef X

static const struct hint_rule *const rules[] = {
#define X(name) &hint_##name,
#include "analyze/hints/hints.def"
#undef X
};

enum { RULES = COUNT(rules) };

/* A hint that was found. */
struct hint {
    const struct hint_rule *rule;
    struct hint_found found;
    int64_t save; /* ps, over all steps of the case */
    bool unknown; /* what a repair gives cannot be worked out */
};

struct hints {
    struct hint_case c;
    struct subresult leaks, memory, ranks;
    struct compiles compiles;
    struct pystack frames;
    int64_t lost; /* launches without a record of their work */
    bool cut;     /* the file ends too early */
    struct device_peak peak;
    struct hint v[MAX_HINTS];
    size_t n;
    bool listed[RULES]; /* not tried again; others are: what was repaired may
                           have laid bare what they look for */
};

/* ---- the line of a step as people see it: outermost ops one after the other,
 * and the pauses between them ---- */

/* What stands around a span, and in it. */
struct around {
    row_id row;
    uint32_t root; /* outermost op, call or region of the framework */
    bool optimizer;
};

/* What was looked up last, by row: neighbours have the same spans around
 * them. */
enum { SEEN = 4096, CLIMB = 10000 };

/* Does that region of an optimizer update tensors one by one? LBFGS looks for
 * a step along one vector of all of them, and runs the model for it. */
static bool updates(struct bytes name) {
    return !BYTES_STARTS(name, "Optimizer.zero_grad") &&
           !BYTES_STARTS(name, "Optimizer.step#LBFGS.");
}

/* Looks outwards from row, up to a span that is in seen. */
static struct around climb(const struct trace *t, row_id row,
                           const struct around *seen) {
    struct around a = {row, ROW_NONE, false};
    for (int i = 0; row != ROW_NONE && i < CLIMB; i++) {
        const struct around *known = &seen[row % SEEN];
        if (known->row == row) {
            if (known->root != ROW_NONE) a.root = known->root;
            a.optimizer |= known->optimizer;
            return a;
        }
        uint8_t k = t->spans.kind[row];
        if (k != SPAN_ANNOTATION && !span_is_step_mark(t, row)) a.root = row;
        a.optimizer |= (span_class(t, row) & CLASS_OPTIMIZER) &&
                       updates(strs_bytes(&t->strs, t->spans.name[row]));
        row = t->spans.parent[row];
    }
    return a;
}

static bool add_ops(const struct trace *t, struct hint_step *s,
                    struct around *seen) {
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        const struct piece *p = &s->d.line.v[i];
        const struct stop *stop = &s->d.stops[i];
        struct around a = {ROW_NONE, ROW_NONE, false};
        if (p->row != ROW_NONE) {
            uint32_t up = t->spans.parent[p->row];
            if (up != ROW_NONE) seen[up % SEEN] = climb(t, up, seen);
            a = seen[p->row % SEEN] = climb(t, p->row, seen);
        }
        struct step_op *last = s->nops > 0 ? &s->ops[s->nops - 1] : NULL;
        bool same = last && last->row == a.root && last->input == p->input &&
                    last->optimizer == a.optimizer;
        if (!same) {
            if (!VEC_ROOM(s->ops, s->nops, s->cap_ops)) return false;
            s->ops[s->nops++] = (struct step_op){.row = a.root,
                                                 .first = i,
                                                 .end = i,
                                                 .work = stop->first,
                                                 .optimizer = a.optimizer,
                                                 .input = p->input};
        }
        struct step_op *op = &s->ops[s->nops - 1];
        for (uint32_t w = stop->first; w < stop->end; w++) {
            uint8_t k = t->spans.kind[s->d.works[w].row];
            op->kernels += k == SPAN_KERNEL;
            op->copies += k == SPAN_COPY;
        }
        op->waits += stop->wait != DEP_NONE;
        op->end = i + 1;
        op->work_end = stop->end;
    }
    return true;
}

/* Fills s->ops from s->d. O(pieces), but more where pieces alternate between
 * threads and are deep. */
static int find_ops(struct hint_step *s, const struct trace *t,
                    struct ops_err *e) {
    struct around *seen = malloc(SEEN * sizeof *seen);
    bool ok = seen != NULL;
    for (size_t i = 0; ok && i < SEEN; i++) seen[i].row = ROW_NONE;
    ok = ok && add_ops(t, s, seen);
    free(seen);
    if (!ok) return fail_oom(e);
    const struct deps *d = &s->d;
    size_t w = 0; /* the step's first kernel */
    while (w < d->nworks && t->spans.kind[d->works[w].row] != SPAN_KERNEL) w++;
    for (size_t i = 0; w < d->nworks && i < s->nops; i++)
        s->ops[i].lead = s->ops[i].end <= d->works[w].piece;
    return 0;
}

/* ---- the steps under study ---- */

static int step_init(struct hint_case *c, const struct host_side *h,
                     uint32_t step, int64_t stall, struct ops_err *e) {
    struct hint_step *s = &c->steps[c->nsteps];
    *s = (struct hint_step){0};
    TRY(deps_build(&s->d, h, step, e));
    c->nsteps++; /* freed with the case from here on */
    TRY(plan_init(&s->now, &s->d, c->t, 1, e));
    s->now.stall = stall;
    TRY(plan_copy(&s->trial, &s->now, e));
    s->copies = malloc((s->d.nworks + 1) * sizeof *s->copies);
    if (s->copies == NULL) return fail_oom(e);
    for (size_t w = 0; w < s->d.nworks; w++) {
        row_id row = s->d.works[w].row;
        s->copies[w] = c->t->spans.kind[row] == SPAN_COPY
                           ? copy_args_of(c->t, row)
                           : (struct copy_args){.kind = COPY_KINDS};
    }
    return find_ops(s, c->t, e);
}

/* Returns the device whose peaks count: the source's first that ran
 * anything. */
static uint32_t device_of(const struct trace *t, uint32_t source) {
    for (size_t i = 0; i < t->ntracks; i++)
        if (t->tracks[i].kind == TRACK_STREAM &&
            t->tracks[i].source == source && t->tracks[i].device != ROW_NONE &&
            t->tracks[i].first < t->tracks[i].end)
            return t->tracks[i].device;
    return ROW_NONE;
}

/* Returns the sum over the steps, of trial or now; negative if out of
 * memory. */
static int64_t run_all(const struct hint_case *c, bool trial) {
    int64_t sum = 0;
    for (size_t i = 0; i < c->nsteps; i++) {
        int64_t d = replay(trial ? &c->steps[i].trial : &c->steps[i].now);
        if (d < 0) return -1;
        sat_inc(&sum, d);
    }
    return sum;
}

/* Repairs all steps in that way. Returns false if there was nothing to
 * repair. */
static bool try_repair(const struct hint_case *c,
                       void (*repair)(const struct hint_case *c,
                                      struct hint_step *s,
                                      struct hint_found *f),
                       struct hint_found *f) {
    *f = (struct hint_found){.row = ROW_NONE};
    for (size_t i = 0; i < c->nsteps; i++) {
        plan_assign(&c->steps[i].trial, &c->steps[i].now);
        repair(c, &c->steps[i], f);
    }
    return f->count > 0;
}

/* Finds the best of the rules that ask for that effort on what is left, of
 * which a run takes `before`; best->rule stays NULL if none is worth a word. */
static int find_best(struct hints *h, enum hint_effort effort, int64_t before,
                     struct hint *best, struct ops_err *e) {
    int64_t least = effort == EFFORT_REBUILD ? HINT_RESTRUCTURE_PERCENT
                                             : HINT_SAVE_PERCENT;
    *best = (struct hint){NULL, {0}, -1, false};
    for (size_t i = 0; i < RULES; i++) {
        struct hint_found f;
        if (rules[i]->effort != effort || h->listed[i]) continue;
        if (!try_repair(&h->c, rules[i]->repair, &f)) continue;
        int64_t after = run_all(&h->c, true), save = before - after;
        if (after < 0) return fail_oom(e);
        bool worth = save >= h->c.base / 100 * least &&
                     save / (int64_t)h->c.nsteps >= HINT_LEAST_NS * PS_PER_NS;
        bool told = worth || rules[i]->always;
        if (!worth) save = 0; /* noise */
        if (!(told || f.told) || save <= best->save) continue;
        *best = (struct hint){rules[i], f, save, !told};
    }
    return 0;
}

/* Lists a hint, and keeps its repair. */
static int list(struct hints *h, struct hint *best, int64_t before,
                struct ops_err *e) {
    for (size_t i = 0; i < RULES; i++) h->listed[i] |= rules[i] == best->rule;
    best->found.save = best->save;
    if (best->rule->also != NULL) {
        struct hint_found f;
        try_repair(&h->c, best->rule->also, &f);
        int64_t after = run_all(&h->c, true);
        if (after < 0) return fail_oom(e);
        best->found.also = before - after;
    }
    h->v[h->n++] = *best;
    try_repair(&h->c, best->rule->repair, &best->found);
    for (size_t i = 0; i < h->c.nsteps; i++)
        plan_assign(&h->c.steps[i].now, &h->c.steps[i].trial);
    return 0;
}

/* Lists the hints that ask for that effort, the best first. The first of all
 * leaves its place to one that asks for more and saves far more. */
static int list_all(struct hints *h, enum hint_effort effort,
                    struct ops_err *e) {
    while (h->n < MAX_HINTS) {
        struct hint best;
        int64_t before = run_all(&h->c, false);
        if (before < 0) return fail_oom(e);
        TRY(find_best(h, effort, before, &best, e));
        if (best.rule == NULL) return 0;
        int more = h->n > 0 || best.rule->clears ? 0 : (int)effort;
        while (more-- > 0) {
            struct hint other;
            TRY(find_best(h, (enum hint_effort)more, before, &other, e));
            if (best.save > 0 && other.save / HINT_FAR_MORE > best.save)
                best = other;
        }
        TRY(list(h, &best, before, e));
    }
    return 0;
}

static const struct column hints_cols[] = {
    {"id", NULL, NULL, "which kind of hint it is; the ids are fixed", COL_TEXT,
     COL_KEY},
    {"title", NULL, NULL, "what is slow", COL_TEXT, COL_WRAP},
    {"save_us", "saves", "us",
     "what a step would lose if it were repaired, after the hints above it; "
     "the profiler's own cost left out",
     COL_TIME, COL_MAIN | COL_MEAN},
    {"save_pct", "of step", "%", "the same as a share of the step", COL_PERCENT,
     COL_BAR},
    {"step_us", "step", "us",
     "the step that it is a share of: without the profiler's own cost, the "
     "median of bare_us in `steps`; where things are compiled again, with its "
     "part of that",
     COL_TIME, COL_DETAIL | COL_MEAN},
    {"confidence", NULL, NULL,
     "measured in the trace, simulated on it, or assumed", COL_TEXT,
     COL_DETAIL},
    {"evidence", NULL, NULL, "the numbers behind it", COL_TEXT, COL_BELOW},
    {"do", NULL, NULL, "what to change, as code for the framework at hand",
     COL_TEXT, COL_BELOW},
    {"assumes", NULL, NULL, "what the saving takes for granted", COL_TEXT,
     COL_BELOW | COL_DETAIL},
    {"see", NULL, NULL, "the analysis to look at for more", COL_TEXT,
     COL_DETAIL},
};

/* A rule's words that did not fit end with a whole character. */
static void trim(char *text, size_t cap) {
    size_t n = strlen(text);
    if (n + 1 == cap) text[plain_whole(text, n)] = '\0';
}

static void put_hint(struct result *r, const struct hints *h,
                     const struct hint *v) {
    struct hint_words w = {0};
    double share = h->c.base > 0 ? (double)v->save / (double)h->c.base : 0;
    const struct hint_rule *rule = v->rule;
    const char *advice = rule->advice[h->c.framework];
    if (advice == NULL) advice = rule->advice[FW_OTHER];
    rule->say(&h->c, &v->found, &w);
    const char *sure = w.confidence ? w.confidence : rule->confidence;
    size_t said = strlen(w.evidence);
    if (!v->unknown && v->save > 0 && strcmp(sure, "assumed") == 0)
        snprintf(w.evidence + said, sizeof w.evidence - said,
                 "; the saving is a guess (-v says what it rests on)");
    trim(w.title, sizeof w.title);
    trim(w.evidence, sizeof w.evidence);
    trim(w.repair, sizeof w.repair);
    result_row(r);
    cell_text(r, "id", rule->id);
    cell_text(r, "title", *w.title ? w.title : rule->title);
    /* what the replay saves is a share of what it took, and of the step */
    if (!v->unknown) {
        cell_int(r, "save_us", (int64_t)(share * (double)h->c.step));
        cell_float(r, "save_pct", hint_percent(&h->c, v->save));
    } else {
        w.confidence = "assumed";
    }
    cell_int(r, "step_us", h->c.step);
    cell_text(r, "confidence", w.confidence ? w.confidence : rule->confidence);
    cell_text(r, "evidence", w.evidence);
    cell_text(r, "do", *w.repair ? w.repair : advice);
    cell_text(r, "assumes", rule->assumes);
    cell_text(r, "see", rule->see);
}

/* Runs the analyses that the rules about compilation, memory and ranks read. */
static int run_parts(struct hints *h, const struct opts *o, struct ops_err *e) {
    const struct trace *t = h->c.t;
    TRY(pystack_init(&h->frames, t, e));
    h->c.frames = &h->frames;
    TRY(compiles_init(&h->compiles, t, e));
    h->c.compiles = &h->compiles;
    if (t->nsources > 1) {
        TRY(subresult_run(&h->ranks, "ranks", NULL, NULL, t, o, e));
        h->c.ranks = &h->ranks.r;
    }
    h->c.fragmented = SIZE_MAX;
    if (t->mem.n == 0) return 0;
    TRY(subresult_run(&h->leaks, "leaks", NULL, NULL, t, o, e));
    TRY(subresult_run(&h->memory, "memory", NULL, NULL, t, o, e));
    h->c.leaks = &h->leaks.r;
    h->c.memory = &h->memory.r;
    return hint_memory_read(&h->c, e);
}

/* Picks the source to study: of those in scope that have steps the one that
 * waits longest for others (it shows what the job could be), else the first
 * rank; ROW_NONE if no source has any. */
static int pick_source(struct hint_case *c, const struct selection *in,
                       struct ops_err *e) {
    const struct trace *t = c->t;
    bool *has = calloc(t->nsources + 1, sizeof *has);
    struct map rows = {0};
    int64_t most = -1;
    c->source = ROW_NONE;
    bool ok = has != NULL;
    /* the row of `ranks` that tells how long a rank waits, of two the first */
    for (size_t i = 0; ok && c->ranks != NULL && i < c->ranks->nrows; i++) {
        struct cell r = subresult_cell(c->ranks, i, "rank");
        if (r.null || subresult_cell(c->ranks, i, "wait_us").null) continue;
        uint32_t *at = map_at(&rows, (uint64_t)r.i);
        ok = at != NULL;
        if (ok && *at == MAP_NONE) *at = (uint32_t)i;
    }
    /* sources with a step in scope that has time to look at */
    for (size_t k = 0; ok && k < t->nsteps; k++) {
        uint32_t source = t->steps[k].source;
        if (trace_device_steps(t, source)) continue;
        if (t->steps[k].dur > 0 && (in->all || in->source_in[source]) &&
            (!in->by_step || in->step_in[k]))
            has[source] = true;
    }
    for (uint32_t i = 0; ok && i < t->nsources; i++) {
        if (!has[i]) continue;
        c->nranks++;
        int64_t rank = t->sources[i].rank, wait = -1;
        uint32_t at = map_get(&rows, (uint64_t)rank);
        if (at != MAP_NONE) wait = subresult_cell(c->ranks, at, "wait_us").i;
        bool first = c->source == ROW_NONE || rank < t->sources[c->source].rank;
        if (c->source != ROW_NONE && wait < most) continue;
        if (c->source != ROW_NONE && wait == most && !first) continue;
        c->source = i;
        most = wait;
    }
    c->waits = most > 0;
    free(has);
    map_free(&rows);
    return ok ? 0 : fail_oom(e);
}

static int study(struct hints *h, const struct trace *t,
                 const struct selection *in, const struct opts *o,
                 struct ops_err *e) {
    struct hint_case *c = &h->c;
    uint32_t chosen[MAX_STEPS];
    struct host_side side;
    size_t n;
    const struct step_choice typical = {
        .source = c->source,
        .in = in->by_step ? in->step_in : NULL,
        .max = MAX_STEPS,
    };
    TRY(deps_choose(t, &typical, chosen, &n, e));
    c->steps = calloc(MAX_STEPS, sizeof *c->steps);
    if (c->steps == NULL) return fail_oom(e);
    const struct bare *bare;
    struct bare_step usual;
    TRY(bare_get(&bare, t, e));
    if (bare_typical(bare, t, c->source, typical.in, &usual, e))
        c->step = usual.bare;
    else if (e->code != 0) return e->code;
    c->framework = framework_of(t, c->source);
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[c->source]; k < l->first[c->source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        if (tr->kind != TRACK_THREAD) continue;
        for (row_id r = tr->first; !c->host_exchange && r < tr->end; r++)
            c->host_exchange = span_class(t, r) & CLASS_COMM_CPU;
    }
    struct ops_err bad;
    if (device_peak_of(t, device_of(t, c->source), opts_text(o, "device-peak"),
                       &h->peak, &bad)) {
        c->peak = &h->peak;
    } else if (bad.code != 0) {
        *e = bad;
        return bad.code;
    }
    struct overhead overhead;
    TRY(overhead_read(&overhead, t, c->source, e));
    TRY(host_side_init(&side, t, c->source, NULL, e));
    if (overhead.known) side.overhead = &overhead;
    int64_t stall = hint_compile_stall(c, chosen, n);
    c->stall = stall;
    sat_inc(&c->step, stall);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = step_init(c, &side, chosen[i], stall, e);
    host_side_free(&side);
    TRY(rc);
    hint_optimizer_read(c);
    TRY(hint_shapes_read(c, e));
    TRY(hint_moved_read(c, e));
    TRY(hint_leaves_read(c, e));
    TRY(hint_recompute_read(c, e));
    TRY(hint_attention_read(c, e));
    hint_input_read(c);
    TRY(hint_pauses_read(c, e));
    TRY(hint_eager_read(c, e));
    return hint_small_read(c, e);
}

static int find_hints(struct hints *h, struct ops_err *e) {
    const struct trace *t = h->c.t;
    h->c.base = run_all(&h->c, false);
    if (h->c.base < 0) return fail_oom(e);
    /* the end of a cut file, above all device work, is missing */
    h->cut = t->notes[NOTE_FILE_CUT] > 0;
    /* these are launching calls whose device work has no record: without such
     * records a busy device looks idle, but a few do not matter */
    int64_t calls = 0, lost = 0;
    for (size_t i = 0; i < h->c.nsteps; i++) {
        const struct deps *d = &h->c.steps[i].d;
        for (size_t k = 0; k < d->line.n; k++) {
            row_id row = d->line.v[k].row;
            if (row == ROW_NONE || t->spans.kind[row] != SPAN_API ||
                d->line.v[k].ts != t->spans.ts[row] ||
                !(span_class(t, row) & CLASS_LAUNCH))
                continue;
            calls++;
            lost += d->stops[k].first == d->stops[k].end;
        }
    }
    if (lost * 100 > calls * HINT_LOST_PERCENT) h->lost = lost;
    if (h->lost > 0 || h->cut || h->c.step <= 0) return 0;
    for (int effort = EFFORTS - 1; effort >= 0; effort--)
        TRY(list_all(h, (enum hint_effort)effort, e));
    return 0;
}

/* Was anything recorded in the steps but their marks and regions? */
static bool has_ops(const struct trace *t) {
    for (row_id r = 0; r < t->spans.n; r++)
        if (t->spans.step[r] != ROW_NONE && !span_is_step_mark(t, r))
            return true;
    return false;
}

static void hints_remarks(struct result *r, const struct hints *h) {
    char bare[48];
    if (h->c.nsteps == 0) {
        bool device = false;
        for (uint32_t i = 0; i < h->c.t->nsources; i++)
            device |= trace_device_steps(h->c.t, i);
        result_remark(r, device ? "the steps lie on the device's own time "
                                  "line: what the host did for each is not "
                                  "known, and no saving can be worked out"
                                : "there is no step to look at: nothing can "
                                  "be said");
        return;
    }
    human_time(h->c.step, bare, sizeof bare);
    result_remark(r,
                  h->n > 0 ? "worked out on %zu step%s; shares are of a step "
                             "of %s, without the profiler's own cost%s"
                           : "worked out on %zu step%s; a step takes %s, "
                             "without the profiler's own cost%s",
                  h->c.nsteps, h->c.nsteps == 1 ? "" : "s", bare,
                  h->c.stall > 0 ? " and with its part of what other steps "
                                   "compile"
                                 : "");
    const struct source *s = &h->c.t->sources[h->c.source];
    const char *waits = h->c.waits ? ", which waits longest for the others"
                                   : "";
    if (h->c.nranks > 1 && s->rank >= 0)
        result_remark(r, "of %zu ranks rank %lld was studied%s", h->c.nranks,
                      (long long)s->rank, waits);
    else if (h->c.nranks > 1)
        result_remark(r, "of %zu profiles %s was studied%s", h->c.nranks,
                      s->path, waits);
    if (h->n > 1)
        result_remark(r, "each saving is of what the hints above it leave; "
                         "what is repaired in place comes before what wants "
                         "restructuring");
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].unknown) {
            result_remark(r, "where no saving stands, this profile cannot "
                             "tell what the repair would give");
            break;
        }
    if (h->cut)
        result_remark(r, "the file ends too early, and what is missing would "
                         "look like idle time: no saving can be worked out");
    else if (h->lost > 0)
        result_remark_n(
            r, (uint64_t)h->lost,
            "%lld launch[|es] of these steps [has|have] no record of "
            "[its|their] device work (a cut file, or records that were "
            "dropped): no saving can be worked out",
            (long long)h->lost);
    else if (h->c.step <= 0)
        result_remark(r, "the middle one of these steps took no time: no share "
                         "of it can be told");
    else if (!has_ops(h->c.t))
        result_remark(r, "no op was recorded: what would make a step faster "
                         "cannot be told (`coverage` says why)");
    else if (h->n == 0)
        result_remark(r,
                      "nothing was found that would make a step more than "
                      "%d %% faster",
                      (int)HINT_SAVE_PERCENT);
}

static int hints_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
    struct selection in;
    struct hints h = {.c = {.t = t}};
    TRY(select_init(&in, t, o, e));
    int rc = run_parts(&h, o, e);
    if (rc == 0) rc = pick_source(&h.c, &in, e);
    if (rc == 0 && h.c.source != ROW_NONE) {
        rc = study(&h, t, &in, o, e);
        if (rc == 0) rc = find_hints(&h, e);
    }
    select_free(&in);
    if (rc == 0) {
        result_init(r, "hints", "What to change first");
        result_from_trace(r, t);
        result_cols(r, hints_cols, COUNT(hints_cols));
        r->in_order = true;
        r->one_unit = true;
        for (size_t i = 0; i < h.n; i++) put_hint(r, &h, &h.v[i]);
        hints_remarks(r, &h);
        rc = result_done(r, e);
    }
    for (size_t i = 0; i < h.c.nsteps; i++) {
        struct hint_step *s = &h.c.steps[i];
        plan_free(&s->now);
        plan_free(&s->trial);
        deps_free(&s->d);
        free(s->ops);
        free(s->named);
        free(s->copies);
        free(s->joined);
        free(s->again);
        free(s->moved);
        free(s->leaves);
        free(s->attentions);
        free(s->parts);
        free(s->jitted);
    }
    free(h.c.steps);
    compiles_free(&h.compiles);
    pystack_free(&h.frames);
    subresult_free(&h.leaks);
    subresult_free(&h.memory);
    subresult_free(&h.ranks);
    return rc;
}

static const struct opt hints_opts[] = {
    {.name = "device-peak",
     .type = OPT_TEXT,
     .arg = "LIST",
     .help = "peaks of the device: bf16=989e12,tf32=495e12,bw=4.8e12"},
    {0},
};

const struct analysis analysis_hints = {
    .name = "hints",
    .help = "what to change first, and how much a step would gain by it",
    .row = "one recommendation",
    .opts = hints_opts,
    .all_rows = true,
    .run = hints_run,
};
