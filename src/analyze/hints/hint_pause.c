/* SPDX-License-Identifier: Apache-2.0
 * Pauses between ops that are a habit of the program, told from those that
 * happened once: another program had the processor, a garbage collector ran. A
 * habit comes at the same place in most steps. A place is between two ops, by
 * their names, and which time that pair comes in the step. */
#include "analyze/hints/hint.h"

#include "base/array.h"
#include "base/err.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/trace.h"
#include <stdlib.h>

enum {
    /* One step cannot be compared with others. */
    STEPS_MIN = 2,
    /* A pause so many times as long as usual at its place is not the usual
     * one. */
    UNUSUAL = 4,
};

struct pauses {
    struct sort_key *v; /* by place: (pair of names, its number); row: in of */
    struct step_op **of;
    size_t n, cap, cap_of;
};

static str_id name_of(const struct trace *t, const struct hint_step *s,
                      size_t i) {
    row_id row = i < s->nops ? s->ops[i].row : ROW_NONE;
    return row != ROW_NONE ? t->spans.name[row] : 0;
}

/* Lists the pauses of a step. */
static bool list_pauses(struct pauses *p, const struct trace *t,
                        struct hint_step *s) {
    struct map seen = {0}; /* pair of names -> how often so far */
    bool ok = true;
    for (size_t i = 0; ok && i < s->nops; i++) {
        if (s->ops[i].row != ROW_NONE) continue;
        uint64_t pair = (uint64_t)name_of(t, s, i - 1) << 32 |
                        name_of(t, s, i + 1);
        uint32_t *at = map_at(&seen, pair);
        ok = at != NULL && VEC_ROOM(p->v, p->n, p->cap) &&
             VEC_ROOM(p->of, p->n, p->cap_of);
        if (!ok) break;
        *at = *at == MAP_NONE ? 0 : *at + 1;
        p->of[p->n] = &s->ops[i];
        p->v[p->n] = (struct sort_key){pair, *at, (uint32_t)p->n};
        p->n++;
    }
    map_free(&seen);
    return ok;
}

/* Returns how long a pause took, as traced. */
static int64_t length(const struct hint_step *s, const struct step_op *op) {
    const struct piece *first = &s->d.line.v[op->first];
    const struct piece *last = &s->d.line.v[op->end - 1];
    return last->ts + last->dur - first->ts;
}

/* Marks those of n pauses at one place that are far longer than usual there;
 * steps without any have one of no length. */
static void mark(const struct hint_case *c, struct step_op *const *of,
                 const int64_t *dur, size_t n, int64_t *room) {
    size_t without = c->nsteps - n, middle = (c->nsteps - 1) / 2;
    for (size_t i = 0; i < n; i++) room[i] = dur[i];
    qsort(room, n, sizeof *room, sort_by_value);
    int64_t usual = middle < without ? 0 : room[middle - without];
    for (size_t i = 0; i < n; i++) of[i]->once = dur[i] / UNUSUAL > usual;
}

/* ---- one step under study ---- */

/* The pauses of that step, and how many other steps have one like it. */
struct compared {
    const struct trace *t;
    const struct hint_step *s;
    const struct pauses *p; /* in order */
    uint32_t *votes;        /* by pause */
    struct map seen;        /* of the step that is looked at: as list_pauses */
    bool ok;
};

/* Notes a pause of another step between ops of two names. */
static void vote(struct compared *k, str_id before, str_id after,
                 int64_t lasts) {
    uint64_t pair = (uint64_t)before << 32 | after;
    uint32_t *at = map_at(&k->seen, pair);
    if (at == NULL) k->ok = false;
    if (!k->ok) return;
    *at = *at == MAP_NONE ? 0 : *at + 1;
    size_t i;
    BOUND(i, 0, k->p->n,
          k->p->v[i].hi < pair ||
              (k->p->v[i].hi == pair && k->p->v[i].lo < *at));
    if (i == k->p->n || k->p->v[i].hi != pair || k->p->v[i].lo != *at) return;
    const struct step_op *mine = k->p->of[k->p->v[i].row];
    k->votes[k->p->v[i].row] += lasts >= length(k->s, mine) / UNUSUAL;
}

/* Goes through the pauses of the source's other steps on one thread. Returns
 * how many steps these are. */
static size_t ask_others(struct compared *k, const struct source *from,
                         uint32_t track) {
    const struct trace *t = k->t;
    const struct spans *sp = &t->spans;
    size_t others = 0;
    row_id r = t->tracks[track].first, rows = t->tracks[track].end;
    for (size_t n = from->step_first; k->ok && n < from->step_end; n++) {
        const struct step *step = &t->steps[n];
        int64_t last = step->ts;
        str_id name = 0;
        bool other = n != k->s->d.step && !step->cut;
        while (r < rows && sp->ts[r] < step->ts) r++;
        for (; r < rows && sp->ts[r] < step->ts + step->dur; r++) {
            if (sp->kind[r] != SPAN_OP || sp->ts[r] < last || !other) continue;
            vote(k, name, sp->name[r], sp->ts[r] - last);
            last = span_end(t, r);
            name = sp->name[r];
        }
        if (other && name != 0) vote(k, name, 0, step->ts + step->dur - last);
        others += other && name != 0;
        map_free(&k->seen);
        k->seen = (struct map){0};
    }
    return others;
}

/* A pause happened once if most other steps have none like it at its place. */
static bool compare_steps(const struct hint_case *c, struct hint_step *s,
                          struct pauses *p) {
    struct compared k = {.t = c->t, .s = s, .p = p, .ok = true};
    uint32_t track = ROW_NONE;
    for (size_t i = 0; i < s->nops && track == ROW_NONE; i++)
        if (s->ops[i].row != ROW_NONE) track = c->t->spans.track[s->ops[i].row];
    if (track == ROW_NONE || p->n == 0) return true;
    k.votes = calloc(p->n, sizeof *k.votes);
    if (k.votes == NULL) return false;
    size_t others = ask_others(&k, &c->t->sources[c->source], track);
    for (size_t i = 0; k.ok && i < p->n; i++)
        p->of[i]->once = (size_t)k.votes[i] * 2 < others;
    map_free(&k.seen);
    free(k.votes);
    return k.ok;
}

/* In a window that is one step a pause happened once if no other stands between
 * two such ops. v is in order, n > 0. */
static void compare_pairs(struct pauses *p) {
    for (size_t i = 0, end; i < p->n; i = end) {
        for (end = i; end < p->n && p->v[end].hi == p->v[i].hi;) end++;
        if (end - i == 1) p->of[p->v[i].row]->once = true;
    }
}

/* Marks pauses of a single step. */
static bool mark_single(struct hint_case *c, struct pauses *p) {
    const struct source *from = &c->t->sources[c->source];
    if (c->nsteps == 0) return true;
    if (!list_pauses(p, c->t, &c->steps[0]) || !sort_keys(p->v, p->n))
        return false;
    if (from->step_end - from->step_first > 1)
        return compare_steps(c, &c->steps[0], p);
    compare_pairs(p);
    return true;
}

int hint_pauses_read(struct hint_case *c, struct ops_err *e) {
    struct pauses p = {0};
    struct step_op **of = malloc((c->nsteps + 1) * sizeof *of);
    int64_t *dur = malloc((c->nsteps + 1) * 2 * sizeof *dur);
    size_t *first = malloc((c->nsteps + 1) * sizeof *first);
    bool ok = of != NULL && dur != NULL && first != NULL;
    if (ok && c->nsteps < STEPS_MIN) {
        ok = mark_single(c, &p);
        goto done;
    }
    for (size_t i = 0; ok && i < c->nsteps; i++) {
        first[i] = p.n;
        ok = list_pauses(&p, c->t, &c->steps[i]);
    }
    ok = ok && sort_keys(p.v, p.n);
    /* equal places stay in the order of the steps: one of each at the most */
    for (size_t i = 0, end; ok && i < p.n; i = end) {
        size_t n = 0, step = 0;
        for (end = i;
             end < p.n && p.v[end].hi == p.v[i].hi && p.v[end].lo == p.v[i].lo;
             end++) {
            while (step + 1 < c->nsteps && first[step + 1] <= p.v[end].row)
                step++;
            of[n] = p.of[p.v[end].row];
            dur[n] = length(&c->steps[step], of[n]);
            n++;
        }
        mark(c, of, dur, n, dur + c->nsteps);
    }
done:
    free(p.v);
    free(p.of);
    free(of);
    free(dur);
    free(first);
    return ok ? 0 : fail_oom(e);
}
