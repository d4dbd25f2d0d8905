/* SPDX-License-Identifier: Apache-2.0
 * Sorted interval sets. Each interval of a union knows the length of all
 * before it, so that the part inside any window costs two searches. */
#include "analyze/shared/intervals.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>

void intervals_free(struct intervals *s) {
    free(s->v);
    *s = (struct intervals){0};
}

bool intervals_add(struct intervals *s, int64_t start, int64_t end) {
    if (end <= start) return true;
    if (!VEC_ROOM(s->v, s->n, s->cap)) return false;
    s->v[s->n++] = (struct interval){start, end, 0};
    return true;
}

static int by_start(const void *a, const void *b) {
    const struct interval *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

void intervals_union(struct intervals *s) {
    if (s->n == 0) return;
    size_t sorted = 1, n = 0;
    while (sorted < s->n && s->v[sorted].start >= s->v[sorted - 1].start)
        sorted++;
    /* device streams come sorted, and so do most others */
    if (sorted < s->n) qsort(s->v, s->n, sizeof *s->v, by_start);
    for (size_t i = 1; i < s->n; i++) {
        struct interval *last = &s->v[n];
        if (s->v[i].start > last->end) s->v[++n] = s->v[i];
        else if (s->v[i].end > last->end) last->end = s->v[i].end;
    }
    s->n = n + 1;
    int64_t sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->v[i].before = sum;
        sat_inc(&sum, sat_sub(s->v[i].end, s->v[i].start));
    }
}

int64_t intervals_length(const struct intervals *s) {
    if (s->n == 0) return 0;
    const struct interval *l = &s->v[s->n - 1];
    return sat_add(l->before, sat_sub(l->end, l->start));
}

/* Returns the number of intervals that start at or before ts. */
static size_t upper(const struct intervals *s, int64_t ts) {
    size_t i;
    BOUND(i, 0, s->n, s->v[i].start <= ts);
    return i;
}

/* Does the same from number `from` on, which starts at or before ts: near ones
 * are found in a few steps. */
static size_t upper_from(const struct intervals *s, size_t from, int64_t ts) {
    size_t lo = from, step = 1;
    while (step < s->n - lo && s->v[lo + step].start <= ts) {
        lo += step;
        step *= 2;
    }
    size_t i;
    BOUND(i, lo, step < s->n - lo ? lo + step : s->n, s->v[i].start <= ts);
    return i;
}

/* Returns the length before ts; i intervals start at or before it. */
static int64_t length_until(const struct intervals *s, size_t i, int64_t ts) {
    if (i == 0) return 0;
    const struct interval *v = &s->v[i - 1];
    return sat_add(v->before, sat_sub(ts < v->end ? ts : v->end, v->start));
}

int64_t intervals_overlap(const struct intervals *s, int64_t start,
                          int64_t end) {
    if (end <= start || s->n == 0) return 0;
    size_t i = upper(s, start), j = upper_from(s, i > 0 ? i - 1 : 0, end);
    return sat_sub(length_until(s, j, end), length_until(s, i, start));
}

bool intervals_contain(const struct intervals *s, int64_t ts) {
    size_t i = upper(s, ts);
    return i > 0 && ts < s->v[i - 1].end;
}

bool intervals_extend(struct intervals *s, int64_t start, int64_t end) {
    if (s->n > 0 && start <= s->v[s->n - 1].end &&
        start >= s->v[s->n - 1].start) {
        if (end > s->v[s->n - 1].end) s->v[s->n - 1].end = end;
        return true;
    }
    return intervals_add(s, start, end);
}

/* Merges in one pass: this is most of the work of analyses that need phases. */
bool intervals_or(const struct intervals *a, const struct intervals *b,
                  struct intervals *out) {
    assert(out->n == 0);
    size_t i = 0, j = 0, n = 0;
    /* room for all at once: growing step by step moves large sets again and
     * again; what is not filled is not touched */
    if (a->n + b->n > out->cap) {
        if (!vec_resize(&out->v, a->n + b->n, sizeof *out->v)) return false;
        out->cap = a->n + b->n;
    }
    struct interval *o = out->v;
    while (i < a->n || j < b->n) {
        bool first = j == b->n || (i < a->n && a->v[i].start <= b->v[j].start);
        struct interval v = first ? a->v[i++] : b->v[j++];
        struct interval *last = n > 0 ? &o[n - 1] : NULL;
        if (last != NULL && v.start <= last->end) {
            if (v.end > last->end) last->end = v.end;
            continue;
        }
        v.before = last == NULL
                       ? 0
                       : sat_add(last->before, sat_sub(last->end, last->start));
        o[n++] = v;
    }
    out->n = n;
    return true;
}

bool intervals_and(const struct intervals *a, const struct intervals *b,
                   struct intervals *out) {
    assert(out->n == 0);
    size_t i = 0, j = 0;
    while (i < a->n && j < b->n) {
        const struct interval *x = &a->v[i], *y = &b->v[j];
        int64_t start = x->start > y->start ? x->start : y->start;
        int64_t end = x->end < y->end ? x->end : y->end;
        if (!intervals_add(out, start, end)) return false;
        if (x->end < y->end) i++;
        else j++;
    }
    intervals_union(out);
    return true;
}

bool intervals_sub(const struct intervals *a, const struct intervals *b,
                   struct intervals *out) {
    assert(out->n == 0);
    size_t j = 0;
    for (size_t i = 0; i < a->n; i++) {
        int64_t at = a->v[i].start, end = a->v[i].end;
        while (j < b->n && b->v[j].end <= at) j++;
        /* the last of b may reach into the next of a: j stays on it */
        for (size_t k = j; k < b->n && b->v[k].start < end; k++) {
            if (!intervals_add(out, at, b->v[k].start)) return false;
            if (b->v[k].end > at) at = b->v[k].end;
            j = k;
        }
        if (!intervals_add(out, at, end)) return false;
    }
    intervals_union(out);
    return true;
}

void intervals_trim(struct intervals *s) {
    if (s->cap > s->n && vec_resize(&s->v, s->n, sizeof *s->v)) s->cap = s->n;
}

/* Returns what v has of b, from b's number *at on: earlier ones are done
 * with. */
static int64_t part_of(const struct interval *v, const struct intervals *b,
                       size_t *at) {
    if (*at >= b->n || b->v[*at].start >= v->end) return 0;
    size_t lo = b->v[*at].start <= v->start ? upper_from(b, *at, v->start)
                                            : *at;
    size_t hi = upper_from(b, lo > *at ? lo - 1 : *at, v->end);
    *at = hi - 1;
    return sat_sub(length_until(b, hi, v->end), length_until(b, lo, v->start));
}

void intervals_common(const struct intervals *a, const struct intervals *b,
                      int64_t *before) {
    size_t at = 0;
    before[0] = 0;
    for (size_t i = 0; i < a->n; i++)
        before[i + 1] = sat_add(before[i], part_of(&a->v[i], b, &at));
}

int64_t intervals_common_length(const struct intervals *a,
                                const struct intervals *b) {
    size_t at = 0;
    int64_t sum = 0;
    if (a->n > b->n) return intervals_common_length(b, a);
    for (size_t i = 0; i < a->n; i++) sat_inc(&sum, part_of(&a->v[i], b, &at));
    return sum;
}

/* Returns the length that both have before ts. */
static int64_t common_until(const struct intervals *a,
                            const struct intervals *b, const int64_t *before,
                            int64_t ts) {
    size_t i = upper(a, ts);
    if (i == 0) return 0;
    const struct interval *v = &a->v[i - 1];
    if (ts >= v->end) return before[i];
    return sat_add(before[i - 1], intervals_overlap(b, v->start, ts));
}

int64_t intervals_common_in(const struct intervals *a,
                            const struct intervals *b, const int64_t *before,
                            int64_t start, int64_t end) {
    if (end <= start || a->n == 0 || b->n == 0) return 0;
    return sat_sub(common_until(a, b, before, end),
                   common_until(a, b, before, start));
}

/* Sets s to s or with, and frees with. */
static bool absorb(struct intervals *s, struct intervals *with) {
    struct intervals both = {0};
    bool ok = intervals_or(s, with, &both);
    intervals_free(s);
    intervals_free(with);
    *s = both;
    return ok;
}

bool intervals_many_add(struct intervals_many *m, struct intervals *s) {
    size_t k = 0;
    struct intervals sum = *s;
    *s = (struct intervals){0};
    for (; m->full[k]; k++) {
        m->full[k] = false;
        if (absorb(&sum, &m->v[k])) continue;
        intervals_free(&sum);
        return false;
    }
    assert(k < COUNT(m->v) && m->v[k].n == 0);
    m->v[k] = sum;
    m->full[k] = true;
    return true;
}

bool intervals_many_take(struct intervals_many *m, struct intervals *out) {
    bool ok = true;
    assert(out->n == 0);
    for (size_t i = 0; ok && i < COUNT(m->v); i++)
        if (m->full[i]) ok = absorb(out, &m->v[i]);
    for (size_t i = 0; i < COUNT(m->v); i++) intervals_free(&m->v[i]);
    *m = (struct intervals_many){0};
    return ok;
}
