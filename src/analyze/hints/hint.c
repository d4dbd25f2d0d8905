/* SPDX-License-Identifier: Apache-2.0
 * What the rules of hints share: removing from a plan, and words. */
#include "analyze/hints/hint.h"

#include "analyze/ops/compile_find.h"
#include "analyze/shared/phases.h"
#include "analyze/shared/pystack.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "model/span_class.h"
#include "model/trace.h"
#include "names/frame_name.h"
#include <stdio.h>

/* As row_at: the example's own start. */
#define ROW_START INT64_MIN

/* Is that example dearer than the one kept, or the first that has a name? */
static bool is_dearest(const struct hint_found *f, row_id row, int64_t time) {
    return f->count == 0 || time > f->row_time ||
           (f->row == ROW_NONE && row != ROW_NONE);
}

void hint_saw(struct hint_found *f, row_id row, int64_t time) {
    bool dearest = is_dearest(f, row, time);
    f->count++;
    sat_inc(&f->time, time);
    if (!dearest) return;
    f->row = row;
    f->row_time = time;
    f->row_at = ROW_START;
}

void hint_saw_piece(struct hint_found *f, const struct hint_step *s, uint32_t i,
                    row_id row, int64_t time) {
    bool dearest = is_dearest(f, row, time);
    hint_saw(f, row, time);
    if (dearest) f->row_at = s->d.line.v[i].ts + s->d.line.v[i].dur / 2;
}

const struct step_op *hint_op_at(const struct hint_step *s, uint32_t i) {
    size_t next;
    if (s->nops == 0) return NULL;
    BOUND(next, 1, s->nops, s->ops[next].first <= i);
    return &s->ops[next - 1];
}

double hint_percent(const struct hint_case *c, int64_t sum) {
    return c->base > 0 ? 100.0 * (double)sum / (double)c->base : 0;
}

int64_t hint_host(const struct hint_step *s, uint32_t first, uint32_t end) {
    int64_t sum = 0;
    for (uint32_t i = first; i < end; i++)
        if (s->d.stops[i].wait == DEP_NONE) sum += s->trial.host[i];
    return sum;
}

uint32_t hint_longest(const struct hint_step *s, uint32_t first, uint32_t end) {
    uint32_t best = first;
    for (uint32_t i = first + 1; i < end; i++)
        if (s->d.line.v[i].dur > s->d.line.v[best].dur) best = i;
    return best;
}

bool hint_is_no_python(const struct hint_case *c, const struct hint_step *s,
                       uint32_t piece) {
    row_id row = s->d.line.v[piece].row;
    return row != ROW_NONE &&
           (span_is_comm(c->t, row) ||
            (c->compiles != NULL && compiles_has(c->compiles, row)));
}

int64_t hint_remove(struct hint_step *s, uint32_t first, uint32_t end,
                    bool works) {
    int64_t sum = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct stop *p = &s->d.stops[i];
        if (!works && p->first < p->end) continue;
        sum += s->trial.host[i];
        s->trial.host[i] = 0;
        s->trial.go[i] = true;
        for (uint32_t w = p->first; works && w < p->end; w++)
            s->trial.work[w] = WORK_GONE;
    }
    return sum;
}

const char *hint_time(const struct hint_case *c, int64_t sum, char *buf) {
    human_time(c->nsteps > 0 ? sum / (int64_t)c->nsteps : 0, buf, 48);
    return buf;
}

int64_t hint_of_step(const struct hint_case *c, int64_t sum) {
    double scale = c->base > 0
                       ? (double)c->step * (double)c->nsteps / (double)c->base
                       : 1;
    return (int64_t)((double)sum * scale);
}

const char *hint_count(const struct hint_case *c, int64_t n, const char *one,
                       const char *many, char *buf) {
    snprintf(buf, 48, "%lld %s in %zu step%s", (long long)n,
             n == 1 ? one : many, c->nsteps, c->nsteps == 1 ? "" : "s");
    return buf;
}

struct bytes hint_bytes(const struct trace *t, row_id row) {
    return strs_bytes(&t->strs, t->spans.name[row]);
}

const char *hint_name(const struct hint_case *c, row_id row) {
    if (row == ROW_NONE || span_is_step_mark(c->t, row)) return "";
    return span_name(c->t, row);
}

/* Returns the Python frame that is open there, or ROW_NONE. */
static row_id innermost_frame(const struct hint_case *c,
                              const struct hint_found *f) {
    const struct spans *s = &c->t->spans;
    bool named = f->row != ROW_NONE; /* else a pause of the step's thread */
    if (!named && (f->count == 0 || f->row_at == ROW_START)) return ROW_NONE;
    uint32_t thread = named ? s->track[f->row]
                            : phases_step_thread(c->t, c->source);
    if (thread == ROW_NONE) return ROW_NONE;
    int64_t at = f->row_at == ROW_START ? s->ts[f->row] : f->row_at;
    return pystack_at(c->frames, thread, at);
}

bool hint_is_within(const struct hint_case *c, const struct hint_found *f,
                    bool (*is)(struct bytes name)) {
    row_id r = innermost_frame(c, f);
    for (int i = 0; r != ROW_NONE && i < HINT_CLIMB;
         i++, r = c->t->spans.parent[r])
        if (is(strs_bytes(&c->t->strs, c->t->spans.name[r]))) return true;
    return false;
}

const char *hint_where(const struct hint_case *c, const struct hint_found *f,
                       char *buf) {
    enum { FRAMES = 3 };
    const struct spans *s = &c->t->spans;
    buf[0] = '\0';
    row_id r = innermost_frame(c, f);
    /* for a function of C, people look for the frame that called it */
    while (r != ROW_NONE &&
           frame_name_is_builtin(strs_bytes(&c->t->strs, s->name[r])))
        r = s->parent[r];
    size_t n = 0;
    for (int i = 0; i < FRAMES && r != ROW_NONE; i++, r = s->parent[r])
        n += cut_fmt(buf + n, HINT_TEXT - n, "%s%.*s",
                     i == 0 ? ", called from " : " < ",
                     CUT(90, span_name(c->t, r)));
    return buf;
}
