/* SPDX-License-Identifier: Apache-2.0
 * Unions of times, cut by the steps; and one pass over the streams beside
 * the links, which stand in the order of the device's rows. */
#include "analyze/report/cover_time.h"

#include "analyze/analyze.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/intervals.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/phases.h"
#include "base/sum.h"
#include "model/format.h"
#include "model/span_class.h"
#include <stdlib.h>

/* Pairs of a device and a step that are looked at. */
enum { ANY_PAIRS = 1 << 18, PAIRS_PER_SPAN = 8 };

static bool explains(const struct trace *t, row_id r) {
    const struct spans *s = &t->spans;
    if (s->flags[r] & (SPAN_ASYNC | SPAN_DERIVED)) return false;
    if (s->kind[r] == SPAN_OVERHEAD || s->kind[r] == SPAN_PYTHON) return false;
    uint32_t st = s->step[r];
    return !span_is_step_mark(t, r) &&
           !(st != ROW_NONE && t->steps[st].marker == r);
}

/* When something runs on the step's thread or on one that it feeds; threads of
 * the input pipeline work ahead and explain nothing. */
static bool host_union(const struct trace *t, uint32_t source,
                       struct intervals *out) {
    uint32_t own = phases_step_thread(t, source);
    const struct lists *l = &t->of_source;
    struct intervals_many all = {0};
    bool ok = true;
    for (size_t k = l->first[source]; ok && k < l->first[source + 1]; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_THREAD) continue;
        if (i != own && phases_input_thread(t, i)) continue;
        struct intervals one = {0};
        for (row_id r = tr->first; ok && r < tr->end; r++)
            if (explains(t, r))
                ok = intervals_extend(&one, t->spans.ts[r], span_end(t, r));
        intervals_union(&one);
        ok = ok && intervals_many_add(&all, &one);
        intervals_free(&one);
    }
    return intervals_many_take(&all, out) && ok;
}

static void add(struct cover_part *p, int64_t have, int64_t whole,
                int64_t step) {
    sum_add(&p->have, have);
    sum_add(&p->whole, whole);
    if (whole <= 0) return;
    double now = (double)have / (double)whole;
    double worst = p->worst_whole > 0
                       ? (double)p->worst_have / (double)p->worst_whole
                       : 2;
    if (now > worst || (now == worst && step >= p->worst)) return;
    p->worst = step;
    p->worst_have = have;
    p->worst_whole = whole;
}

/* One device's view of its source's steps. */
static void add_view(struct step_cover *c, const struct trace *t,
                     const struct scope *in, const struct phase_view *v) {
    const struct source *s = &t->sources[v->source];
    for (size_t i = s->step_first; i < s->step_end; i++) {
        const struct step *st = &t->steps[i];
        int64_t parts[PHASES];
        if (!in->all && !in->step_in[i]) continue;
        phases_split(v, st->ts, st->ts + st->dur, parts);
        add(&c->any, st->dur - parts[PHASE_OTHER], st->dur, st->number);
        if (v->device != ROW_NONE)
            add(&c->device[v->device],
                intervals_overlap(&v->busy, st->ts, st->ts + st->dur), st->dur,
                st->number);
    }
}

/* The same of all steps at once: which one is explained worst is not looked
 * for. */
static void add_whole(struct step_cover *c, const struct phase_view *v,
                      const struct phase_window *w) {
    int64_t parts[PHASES], busy, all = intervals_length(&w->times);
    phases_split_window(v, w, parts, &busy);
    sum_add(&c->any.have, all - parts[PHASE_OTHER]);
    sum_add(&c->any.whole, all);
    if (v->device == ROW_NONE) return;
    sum_add(&c->device[v->device].have, busy);
    sum_add(&c->device[v->device].whole, all);
}

/* The views of a source. Steps are looked at one by one for as many devices as
 * *left allows: a file may have any number of both. */
static bool add_views(struct step_cover *c, const struct phases *p,
                      const struct scope *in, uint32_t source, size_t *left) {
    const struct trace *t = p->t;
    const struct source *s = &t->sources[source];
    size_t steps = s->step_end - s->step_first;
    struct intervals times = {0};
    struct phase_window w;
    bool ok = true;
    for (size_t i = s->step_first; ok && i < s->step_end; i++)
        if (in->all || in->step_in[i])
            ok = intervals_add(&times, t->steps[i].ts,
                               t->steps[i].ts + t->steps[i].dur);
    intervals_union(&times);
    ok = phase_window_init(&w, p, source, &times) && ok;
    size_t k = p->view_first[source];
    for (; ok && k < p->view_first[source + 1]; k++) {
        if (steps > *left) {
            add_whole(c, &p->views[k], &w);
            continue;
        }
        *left -= steps;
        add_view(c, t, in, &p->views[k]);
    }
    phase_window_free(&w);
    return ok;
}

static int add_host(struct step_cover *c, const struct trace *t,
                    const struct scope *in, uint32_t source,
                    struct ops_err *e) {
    struct intervals host = {0};
    if (!in->all && !in->source_in[source]) return 0;
    bool ok = host_union(t, source, &host);
    const struct source *s = &t->sources[source];
    for (size_t i = s->step_first; ok && i < s->step_end; i++) {
        const struct step *st = &t->steps[i];
        if (!in->all && !in->step_in[i]) continue;
        add(&c->host, intervals_overlap(&host, st->ts, st->ts + st->dur),
            st->dur, st->number);
        c->steps++;
    }
    intervals_free(&host);
    return ok ? 0 : fail_oom(e);
}

int step_cover_init(struct step_cover *c, const struct trace *t,
                    const struct scope *in, struct ops_err *e) {
    struct phases p;
    *c = (struct step_cover){0};
    c->device = calloc(t->ndevices + 1, sizeof *c->device);
    if (c->device == NULL) return fail_oom(e);
    int rc = phases_init(&p, t, e);
    size_t left = ANY_PAIRS + PAIRS_PER_SPAN * t->spans.n;
    for (uint32_t i = 0; rc == 0 && i < t->nsources; i++)
        if ((in->all || in->source_in[i]) && !add_views(c, &p, in, i, &left))
            rc = fail_oom(e);
    phases_free(&p);
    for (uint32_t i = 0; rc == 0 && i < t->nsources; i++)
        rc = add_host(c, t, in, i, e);
    if (rc != 0) step_cover_free(c);
    return rc;
}

void step_cover_free(struct step_cover *c) {
    free(c->device);
    *c = (struct step_cover){0};
}

/* Is the op written on the work itself? XLA does that, but for the kernels of
 * CUDA graphs, which all say "command_buffer". */
static bool names_op(const struct trace *t, row_id r, uint32_t source) {
    if (source_is_torchs(&t->sources[source])) return false;
    return kernel_op_is_known(kernel_hlo_op(t, r));
}

static enum work_owner owner(const struct host_tree *h, row_id r, row_id call,
                             uint32_t source) {
    row_id op = call == ROW_NONE ? ROW_NONE : host_tree_launcher_name(h, call);
    if (op != ROW_NONE && h->t->spans.kind[op] != SPAN_ANNOTATION)
        return WORK_OP;
    if (names_op(h->t, r, source)) return WORK_OP;
    if (call == ROW_NONE) return WORK_NO_LAUNCH;
    return span_class(h->t, call) & NAME_GRAPH ? WORK_GRAPH : WORK_FOREIGN;
}

/* Is it a better example: more, or as much and first by the alphabet? So the
 * order of files and streams does not matter. */
static bool is_better(const struct trace *t, int64_t v, str_id name,
                      int64_t best, str_id best_name) {
    if (v != best || name == best_name) return v > best;
    return strcmp(strs_text(&t->strs, name), strs_text(&t->strs, best_name)) <
           0;
}

static void note_early(struct work_cover *c, const struct trace *t, row_id r,
                       row_id call) {
    int64_t by = t->spans.ts[call] - t->spans.ts[r];
    if (by <= 0) return;
    c->early++;
    if (!is_better(t, by, t->spans.name[r], c->early_most, c->early_name))
        return;
    c->early_most = by;
    c->early_name = t->spans.name[r];
}

void work_cover_init(struct work_cover *c, const struct host_tree *h,
                     const struct scope *in) {
    const struct trace *t = h->t;
    int64_t longest[WORK_OWNERS] = {-1, -1, -1, -1};
    size_t link = 0;
    *c = (struct work_cover){0};
    for (row_id r = 0; r < t->spans.n; r++) {
        const struct track *tr = &t->tracks[t->spans.track[r]];
        if (tr->kind != TRACK_STREAM || !span_is_device_work(t, r) ||
            !scope_has(in, r))
            continue;
        while (link < t->links.n && t->links.device[link] < r) link++;
        bool linked = link < t->links.n && t->links.device[link] == r;
        row_id call = linked ? t->links.host[link] : ROW_NONE;
        enum work_owner o = owner(h, r, call, tr->source);
        c->count[o]++;
        sum_add(&c->time[o], t->spans.dur[r]);
        if (is_better(t, t->spans.dur[r], t->spans.name[r], longest[o],
                      c->name[o])) {
            longest[o] = t->spans.dur[r];
            c->name[o] = t->spans.name[r];
        }
        if (linked) note_early(c, t, r, call);
    }
}
