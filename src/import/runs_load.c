/* SPDX-License-Identifier: Apache-2.0
 * Many files, few traces: ranks and hosts of one job are tracks of one trace;
 * profiles that have nothing to do with each other stay apart. */
#include "import/runs.h"

#include "base/vec.h"
#include "import/import.h"
#include "import/runs_impl.h"
#include <stdlib.h>

void loaded_free(struct loaded *l) {
    for (size_t i = 0; i < l->n; i++) {
        trace_free(l->v[i]);
        free(l->names[i]);
    }
    free(l->v);
    free(l->names);
    *l = (struct loaded){0};
}

/* The number behind "rank" in a file's name, or -1. */
static int64_t rank_in_name(const char *path) {
    const char *base = strrchr(path, '/');
    for (const char *p = base ? base : path; (p = strstr(p, "rank"));) {
        p += 4;
        if (*p == '_' || *p == '-' || *p == '.') p++;
        if (*p < '0' || *p > '9') continue;
        long v = strtol(p, NULL, 10);
        return v < 1000000 ? v : -1;
    }
    return -1;
}

/* What a file's name tells and its contents did not: the rank, the host. */
static void use_name(struct trace *t, const char *path) {
    struct source *s = &t->sources[0];
    if (s->rank < 0) s->rank = rank_in_name(path);
    static const char suffix[] = ".xplane.pb";
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    const char *end = strstr(base, suffix);
    if (s->host == 0 && end != NULL && end > base)
        s->host = trace_str(t, (struct bytes){(const uint8_t *)base,
                                              (size_t)(end - base)});
}

static void find_window(struct part *p) {
    const struct trace *t = p->t;
    p->lo = INT64_MAX;
    p->hi = INT64_MIN;
    for (size_t i = 0; i < t->spans.n; i++) {
        if (t->tracks[t->spans.track[i]].kind == TRACK_OTHER &&
            !t->sources[0].outside)
            continue;
        int64_t end = t->spans.ts[i] + t->spans.dur[i];
        if (t->spans.ts[i] < p->lo) p->lo = t->spans.ts[i];
        if (end > p->hi) p->hi = end;
    }
    if (!part_is_snapshot(p)) return;
    for (size_t i = 0; i < t->mem.n; i++) {
        if (t->mem.ts[i] < p->lo) p->lo = t->mem.ts[i];
        if (t->mem.ts[i] > p->hi) p->hi = t->mem.ts[i];
    }
}

bool parts_overlap(const struct part *a, const struct part *b) {
    const struct source *x = &a->t->sources[0], *y = &b->t->sources[0];
    if (!x->has_clock || !y->has_clock || a->lo > a->hi || b->lo > b->hi)
        return false;
    int64_t ns, shift;
    if (__builtin_sub_overflow(b->t->epoch_ns, a->t->epoch_ns, &ns) ||
        __builtin_mul_overflow(ns, PS_PER_NS, &shift))
        return false;
    int64_t lo, hi;
    if (__builtin_add_overflow(b->lo, shift, &lo) ||
        __builtin_add_overflow(b->hi, shift, &hi))
        return false;
    return lo < a->hi && a->lo < hi;
}

/* Two processes of one program that recorded themselves into one run: a worker
 * and who forked it. */
static bool one_program(const struct part *a, const struct part *b) {
    const struct source *x = &a->t->sources[0], *y = &b->t->sources[0];
    const char *sx = strrchr(a->path, '/'), *sy = strrchr(b->path, '/');
    return x->own && y->own && x->pid != y->pid && sx != NULL && sy != NULL &&
           sx - a->path == sy - b->path &&
           memcmp(a->path, b->path, (size_t)(sx - a->path)) == 0;
}

/* Two captures of one job, each of another host, rank or process, at the same
 * time? A snapshot that found no trace is a profile of its own. */
static bool belong(const struct part *a, const struct part *b) {
    const struct source *x = &a->t->sources[0], *y = &b->t->sources[0];
    const char *hx = strs_text(&a->t->strs, x->host);
    const char *hy = strs_text(&b->t->strs, y->host);
    bool differ = x->rank != y->rank || strcmp(hx, hy) != 0 ||
                  one_program(a, b);
    return differ && part_is_snapshot(a) == part_is_snapshot(b) &&
           parts_overlap(a, b);
}

/* Does part k differ from all that were already joined to part i? */
static bool fits(const struct part *v, const size_t *group, size_t n,
                 size_t k) {
    for (size_t i = 0; i < n; i++)
        if (!belong(&v[group[i]], &v[k])) return false;
    return true;
}

static bool add_loaded(struct loaded *l, struct trace *t, const char *path) {
    size_t cap = l->cap;
    char *name = strdup(path);
    if (name == NULL || !VEC_ROOM(l->v, l->n, l->cap) ||
        (cap != l->cap && !vec_resize(&l->names, l->cap, sizeof *l->names))) {
        free(name);
        return false;
    }
    l->v[l->n] = t;
    l->names[l->n++] = name;
    return true;
}

/* Seals part i with all later parts that belong to it. */
static int finish_group(struct part *v, size_t n, size_t i, size_t *group,
                        struct loaded *out, struct ops_err *e) {
    size_t size = 0;
    group[size++] = i;
    for (size_t k = i + 1; k < n; k++)
        if (!v[k].taken && fits(v, group, size, k)) group[size++] = k;
    struct trace *t = v[i].t;
    v[i].t = NULL;
    int rc = 0;
    for (size_t k = 1; k < size && rc == 0; k++) {
        v[group[k]].taken = true;
        struct trace *more = v[group[k]].t;
        v[group[k]].t = NULL;
        rc = trace_append(t, more, e);
    }
    if (rc == 0) rc = trace_seal(t, e);
    if (rc == 0 && !add_loaded(out, t, v[i].path)) rc = fail_oom(e);
    if (rc != 0) trace_free(t);
    return rc;
}

static int load_part(struct part *p, const struct import_opts *o,
                     struct ops_err *e) {
    p->t = trace_new();
    int rc = p->t ? import_file(p->path, p->t, o, e) : fail_oom(e);
    if (rc != 0 && e != NULL && e->text[0] != '\0')
        rc = fail_in(e, "%s", p->path);
    if (rc == 0) use_name(p->t, p->path);
    return rc;
}

static bool is_ring(const char *path) {
    struct own_file f;
    return own_file_of(path, &f) && f.form == OWN_RING;
}

/* A program's shared memory comes first: what it brings of the files beside it
 * is not read again. */
static int load_parts(struct part *v, size_t n, const struct import_opts *o,
                      struct ops_err *e) {
    for (size_t i = 0; i < n; i++)
        if (is_ring(v[i].path)) TRY(load_part(&v[i], o, e));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n && !v[i].taken; k++)
            v[i].taken = k != i && is_ring(v[k].path) &&
                         own_is_included(&v[k], v[i].path);
        if (v[i].t == NULL && !v[i].taken) TRY(load_part(&v[i], o, e));
    }
    TRY(parts_join_own(v, n, e));
    for (size_t i = 0; i < n && n > 1; i++)
        if (!v[i].taken) find_window(&v[i]);
    return 0;
}

int runs_load(char *const *files, size_t n, const struct import_opts *o,
              struct loaded *out, struct ops_err *e) {
    *out = (struct loaded){0};
    struct part *v = calloc(n + 1, sizeof *v);
    size_t *group = calloc(n + 1, sizeof *group);
    int rc = v && group ? 0 : fail_oom(e);
    for (size_t i = 0; i < n && rc == 0; i++) v[i].path = files[i];
    if (rc == 0) rc = load_parts(v, n, o, e);
    if (rc == 0) rc = parts_join_snapshots(v, n, e);
    if (rc == 0) rc = parts_join_outside(v, n, e);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (!v[i].taken) rc = finish_group(v, n, i, group, out, e);
    for (size_t i = 0; v && i < n; i++) trace_free(v[i].t);
    free(v);
    free(group);
    if (rc != 0) loaded_free(out);
    return rc;
}
