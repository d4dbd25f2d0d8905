/* SPDX-License-Identifier: Apache-2.0
 * Series of several files become one curve for each tag of a run. */
#include "scalars/scalars.h"

#include "base/array.h"
#include "base/vec.h"
#include <math.h>
#include <stdlib.h>

/* All points of one curve, before those that were replaced are taken out. */
struct joined {
    size_t n;
    int64_t *step, top; /* the largest step so far */
    double *wall, *value;
    struct restart *restarts;
    size_t nrestarts, cap_restarts;
    bool interleaved;
};

void curves_free(struct curves *c) {
    for (size_t i = 0; i < c->n; i++) free(c->v[i].own);
    free(c->v);
    *c = (struct curves){0};
}

static const char *run_of(const struct scalars *s, uint32_t series) {
    return strs_text(&s->strs, s->files[s->series[series].file].run);
}

/* Compares by run, tag, kind; then by the time of the first point. */
static int by_place(const void *pa, const void *pb, void *ctx) {
    const struct scalars *s = ctx;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    const struct series *x = &s->series[a], *y = &s->series[b];
    int d = strcmp(run_of(s, a), run_of(s, b));
    if (d == 0)
        d = strcmp(strs_text(&s->strs, x->tag), strs_text(&s->strs, y->tag));
    if (d == 0) d = (int)x->kind - (int)y->kind;
    if (d == 0) d = (x->wall[0] > y->wall[0]) - (x->wall[0] < y->wall[0]);
    if (d == 0) d = strcmp(s->files[x->file].path, s->files[y->file].path);
    return d != 0 ? d : (a > b) - (a < b);
}

static bool same_curve(const struct scalars *s, uint32_t a, uint32_t b) {
    const struct series *x = &s->series[a], *y = &s->series[b];
    return x->tag == y->tag && x->kind == y->kind &&
           s->files[x->file].run == s->files[y->file].run;
}

static bool joined_restart(struct joined *j, size_t at, int64_t step) {
    if (!VEC_ROOM(j->restarts, j->nrestarts, j->cap_restarts)) return false;
    j->restarts[j->nrestarts++] = (struct restart){at, step};
    return true;
}

/* Appends a series. Returns false if out of memory. */
static bool joined_append(struct joined *j, const struct series *v) {
    bool ok = true;
    if (j->n > 0 && v->wall[0] < j->wall[j->n - 1]) {
        j->interleaved = true;
    } else if (j->n > 0) {
        if (v->step[0] <= j->top) ok = joined_restart(j, j->n, v->step[0]);
    }
    for (size_t i = 0; i < v->n; i++)
        if (v->step[i] > j->top) j->top = v->step[i];
    for (size_t i = 0; ok && i < v->nrestarts; i++)
        ok = joined_restart(j, j->n + v->restarts[i].at, v->restarts[i].step);
    memcpy(j->step + j->n, v->step, v->n * sizeof *v->step);
    memcpy(j->wall + j->n, v->wall, v->n * sizeof *v->wall);
    memcpy(j->value + j->n, v->value, v->n * sizeof *v->value);
    j->n += v->n;
    return ok;
}

static int by_wall(const void *pa, const void *pb, void *ctx) {
    const double *wall = ctx;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    if (wall[a] != wall[b]) return wall[a] < wall[b] ? -1 : 1;
    return (a > b) - (a < b);
}

/* Sorts the points of files that were written at the same time by wall time.
 * Which of them a restart would replace cannot be told, so none is replaced.
 * Returns false if out of memory. */
static bool interleave(struct joined *j) {
    void *const columns[] = {j->step, j->value, j->wall};
    size_t *order = vec_alloc(j->n, sizeof *order);
    uint64_t *copy = vec_alloc(j->n, sizeof *copy);
    bool ok = order != NULL && copy != NULL;
    for (size_t i = 0; ok && i < j->n; i++) order[i] = i;
    if (ok) qsort_r(order, j->n, sizeof *order, by_wall, j->wall);
    for (size_t k = 0; ok && k < COUNT(columns); k++) {
        for (size_t i = 0; i < j->n; i++)
            memcpy(&copy[i], (char *)columns[k] + 8 * order[i], 8);
        memcpy(columns[k], copy, 8 * j->n);
    }
    free(order);
    free(copy);
    return ok;
}

/* Takes out the points that restarts replaced: a point goes when a restart
 * behind it began at its step or earlier. A pass backwards finds which; then
 * the points close up. */
static bool leave_out(struct joined *j, struct curve *c) {
    bool *gone = calloc(j->n + 1, 1);
    if (gone == NULL) return false;
    int64_t from = INT64_MAX;
    bool any = false;
    for (size_t i = j->n, k = j->nrestarts; i-- > 0;) {
        for (; k > 0 && j->restarts[k - 1].at > i; k--) {
            if (j->restarts[k - 1].step < from) from = j->restarts[k - 1].step;
            any = true;
        }
        gone[i] = any && j->step[i] >= from;
    }
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++) {
        if (gone[i]) continue;
        j->step[n] = j->step[i];
        j->wall[n] = j->wall[i];
        j->value[n++] = j->value[i];
    }
    c->replaced = j->n - n;
    c->restarts = j->nrestarts;
    c->restarted = j->restarts[j->nrestarts - 1].step;
    j->n = n;
    free(gone);
    return true;
}

/* Joins the series order[0..n) of one curve. */
static bool join_series(const struct scalars *s, const uint32_t *order,
                        size_t n, struct curve *c) {
    size_t all = 0;
    for (size_t i = 0; i < n; i++) all += s->series[order[i]].n;
    char *block = all < SIZE_MAX / 24 ? vec_alloc(all, 24) : NULL;
    if (block == NULL) return false;
    struct joined j = {.step = (int64_t *)block,
                       .wall = (double *)(block + 8 * all),
                       .value = (double *)(block + 16 * all),
                       .top = INT64_MIN};
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = joined_append(&j, &s->series[order[i]]);
    if (ok && j.interleaved) ok = interleave(&j);
    else if (ok && j.nrestarts > 0) ok = leave_out(&j, c);
    free(j.restarts);
    c->n = j.n;
    c->step = j.step;
    c->wall = j.wall;
    c->value = j.value;
    c->interleaved = j.interleaved;
    c->own = block;
    return ok;
}

/* Makes the curve of the series order[0..n), which all are of one tag and
 * run. */
static bool make_curve(const struct scalars *s, const uint32_t *order, size_t n,
                       struct curve *c) {
    const struct series *v = &s->series[order[0]];
    *c = (struct curve){
        .run = run_of(s, order[0]),
        .tag = strs_text(&s->strs, v->tag),
        .kind = v->kind,
        .n = v->n,
        .step = v->step,
        .wall = v->wall,
        .value = v->value,
        .last = &s->series[order[n - 1]],
        .min = NAN,
        .max = NAN,
    };
    for (size_t i = 0; i < n; i++) {
        const struct series *x = &s->series[order[i]];
        c->min = fmin(c->min, x->min); /* of a NAN and a number: the number */
        c->max = fmax(c->max, x->max);
    }
    return n == 1 && v->nrestarts == 0 ? true : join_series(s, order, n, c);
}

int scalars_curves(const struct scalars *s, struct curves *out,
                   struct ops_err *e) {
    *out = (struct curves){0};
    uint32_t *order = vec_alloc(s->nseries + 1, sizeof *order);
    if (order == NULL || s->oom) {
        free(order);
        return fail_oom(e);
    }
    size_t n = 0;
    for (size_t i = 0; i < s->nseries; i++)
        if (s->series[i].n > 0) order[n++] = (uint32_t)i;
    if (n > 1) qsort_r(order, n, sizeof *order, by_place, (void *)s);
    bool ok = true;
    for (size_t i = 0, end; ok && i < n; i = end) {
        for (end = i + 1; end < n && same_curve(s, order[i], order[end]);)
            end++;
        ok = VEC_ROOM(out->v, out->n, out->cap);
        if (ok) ok = make_curve(s, order + i, end - i, &out->v[out->n++]);
    }
    free(order);
    if (ok) return 0;
    curves_free(out);
    return fail_oom(e);
}
