/* SPDX-License-Identifier: Apache-2.0
 * The instances of a region. A pattern is held against the name of a span; and
 * cut at its slashes it is held against the names of spans inside each other:
 * "measure/forward" is a forward somewhere in a measure. A name may have
 * slashes of its own, so a piece between two cuts may be of several parts.
 *
 * Each span carries on what the spans around it have matched, as bits: bit i is
 * set where parts 0 to i - 1 are used up. One walk over the rows of a track
 * does it, since a parent stands before its children, and each name is compared
 * once. */
#include "model/region_find.h"

#include "base/err.h"
#include "base/text/cut.h"
#include "base/text/glob.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARTS = 7,       /* a pattern is cut into at most so many */
    INSIDE = 1 << 7, /* beside the bits of parts: in an instance */
    LISTED = 12,     /* names that an error lists */
};

/* What is taken for a region, the first that has a match: what people named,
 * then ops and calls, then Python frames. */
enum level { LEVEL_NAMED, LEVEL_CALL, LEVEL_FRAME, LEVELS };

/* The pattern, cut; piece[i][j] is parts i to j with the slashes between
 * them. */
struct pattern {
    char *piece[PARTS][PARTS];
    int n;
};

/* What a name matches: bit j of to[i] says that it matches piece[i][j]. */
struct name_match {
    bool known;
    uint8_t to[PARTS];
};

struct finder {
    const struct trace *t;
    struct pattern pattern;
    struct name_match *names; /* by str_id */
    uint8_t *state;           /* by row of host tracks */
    struct instances *out;
};

static void pattern_free(struct pattern *p) {
    for (int i = 0; i < PARTS; i++)
        for (int j = 0; j < PARTS; j++) free(p->piece[i][j]);
}

/* Returns false if out of memory. */
static bool pattern_init(struct pattern *p, const char *glob) {
    const char *start[PARTS + 1] = {glob};
    *p = (struct pattern){.n = 1};
    for (const char *s = glob; *s != '\0' && p->n < PARTS; s++) {
        if (*s == '\\' && s[1] != '\0') s++;
        else if (*s == '/') start[p->n++] = s + 1;
    }
    start[p->n] = glob + strlen(glob) + 1; /* as if a slash ended it */
    bool ok = true;
    for (int i = 0; i < p->n; i++)
        for (int j = i; ok && j < p->n; j++) {
            size_t len = (size_t)(start[j + 1] - 1 - start[i]);
            p->piece[i][j] = strndup(start[i], len);
            ok = p->piece[i][j] != NULL;
        }
    return ok;
}

static const struct name_match *match_of(struct finder *f, str_id name) {
    struct name_match *m = &f->names[name];
    const struct pattern *p = &f->pattern;
    if (m->known) return m;
    const char *text = strs_text(&f->t->strs, name);
    for (int i = 0; i < p->n; i++)
        for (int j = i; j < p->n; j++)
            if (glob_match(p->piece[i][j], text))
                m->to[i] |= (uint8_t)(1u << j);
    m->known = true;
    return m;
}

static enum level level_of(uint8_t kind) {
    switch (kind) {
    case SPAN_ANNOTATION:
    case SPAN_OTHER: return LEVEL_NAMED;
    case SPAN_OP:
    case SPAN_API:
    case SPAN_RUNTIME: return LEVEL_CALL;
    case SPAN_PYTHON: return LEVEL_FRAME;
    default: return LEVELS;
    }
}

/* May spans of this track be regions? Those of a device follow from what was
 * launched. */
static bool is_host(const struct track *tr) {
    return tr->device == ROW_NONE &&
           (tr->kind == TRACK_THREAD || tr->kind == TRACK_PYTHON ||
            tr->kind == TRACK_ASYNC);
}

static bool is_region(const struct trace *t, row_id r) {
    return !(t->spans.flags[r] & (SPAN_INSTANT | SPAN_DERIVED));
}

static bool add_instance(struct finder *f, row_id r) {
    const struct spans *s = &f->t->spans;
    struct instances *o = f->out;
    if (!VEC_ROOM(o->v, o->n, o->cap)) return false;
    o->v[o->n++] = (struct sort_key){sort_signed(s->ts[r]),
                                     ~(uint64_t)s->dur[r], r};
    return true;
}

/* Takes the instances of one track. Returns false if out of memory. */
static bool take_track(struct finder *f, const struct track *tr,
                       enum level level) {
    const struct trace *t = f->t;
    const struct spans *s = &t->spans;
    const uint8_t last = (uint8_t)(1u << (f->pattern.n - 1));
    for (row_id r = tr->first; r < tr->end; r++) {
        uint8_t around = s->parent[r] == ROW_NONE ? 1 : f->state[s->parent[r]];
        enum level own = level_of(s->kind[r]);
        f->state[r] = around;
        if (own > level || !is_region(t, r)) continue;
        const struct name_match *m = match_of(f, s->name[r]);
        bool whole = false;
        for (int i = 0; i < f->pattern.n; i++) {
            if (!(around & 1u << i)) continue;
            whole |= m->to[i] & last;
            f->state[r] |= (uint8_t)((m->to[i] & ~last) << 1);
        }
        if (!whole || own != level || (around & INSIDE)) continue;
        f->state[r] |= INSIDE;
        if (!add_instance(f, r)) return false;
    }
    return true;
}

static bool take_level(struct finder *f, enum level level) {
    const struct lists *l = &f->t->of_source;
    struct instances *o = f->out;
    o->n = 0;
    for (uint32_t i = 0; i < f->t->nsources; i++) {
        size_t first = o->first[i] = o->n;
        for (size_t k = l->first[i]; k < l->first[i + 1]; k++) {
            const struct track *tr = &f->t->tracks[l->v[k]];
            if (is_host(tr) && !take_track(f, tr, level)) return false;
        }
        if (o->n > first && !sort_keys(o->v + first, o->n - first))
            return false;
    }
    o->first[f->t->nsources] = o->n;
    return true;
}

/* A name, and how many spans bear it. */
struct name_count {
    str_id name;
    uint64_t n;
};

static int by_count(const void *a, const void *b) {
    const struct name_count *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

/* Counts the names of one level. The caller frees them; NULL if out of
 * memory. */
static struct name_count *count_names(const struct trace *t, enum level level,
                                      size_t *n) {
    struct name_count *v = calloc(t->strs.n + 1, sizeof *v);
    *n = 0;
    if (v == NULL) return NULL;
    for (size_t k = 0; k < t->ntracks; k++) {
        const struct track *tr = &t->tracks[k];
        for (row_id r = tr->first; is_host(tr) && r < tr->end; r++)
            if (level_of(t->spans.kind[r]) == level && is_region(t, r) &&
                !span_is_step_mark(t, r))
                v[t->spans.name[r]].n++;
    }
    for (size_t i = 0; i < t->strs.n; i++)
        if (v[i].n > 0) v[(*n)++] = (struct name_count){(str_id)i, v[i].n};
    qsort(v, *n, sizeof *v, by_count);
    return v;
}

/* Says that nothing matches, and what is there. */
static int say_none(const struct trace *t, const char *glob,
                    struct ops_err *e) {
    enum level level = LEVEL_NAMED;
    struct name_count *v = NULL;
    size_t n = 0, len = 0, i = 0;
    char text[400] = "";
    for (; n == 0 && level < LEVELS; level++) {
        free(v);
        v = count_names(t, level, &n);
        if (v == NULL) return fail_oom(e);
    }
    for (; i < n && i < LISTED; i++) {
        char one[96];
        size_t k = cut_fmt(one, sizeof one, "%s%.*s (%llu)", i > 0 ? ", " : "",
                           CUT(60, strs_text(&t->strs, v[i].name)),
                           (unsigned long long)v[i].n);
        if (len + k > 300) break;
        memcpy(text + len, one, k + 1);
        len += k;
    }
    free(v);
    if (n == 0)
        return fail(e, OPS_EUSAGE,
                    "no region matches '%.*s': the profile has no host spans",
                    CUT(100, glob));
    if (i < n) snprintf(text + len, sizeof text - len, ", %zu more", n - i);
    return fail(e, OPS_EUSAGE, "no region matches '%.*s'; %s %s", CUT(60, glob),
                level == LEVEL_NAMED + 1 ? "there are"
                                         : "nobody named any, and there are",
                text);
}

int instances_find(const struct trace *t, const char *glob,
                   struct instances *out, struct ops_err *e) {
    *out = (struct instances){0};
    struct finder f = {.t = t, .out = out};
    f.names = calloc(t->strs.n + 1, sizeof *f.names);
    f.state = vec_alloc(t->spans.n + 1, 1);
    out->first = calloc(t->nsources + 1, sizeof *out->first);
    bool ok = pattern_init(&f.pattern, glob) && f.names && f.state &&
              out->first;
    for (int i = 0; ok && out->n == 0 && i < LEVELS; i++)
        ok = take_level(&f, (enum level)i);
    pattern_free(&f.pattern);
    free(f.names);
    free(f.state);
    int rc = 0;
    if (!ok) rc = fail_oom(e);
    else if (out->n == 0) rc = say_none(t, glob, e);
    if (rc != 0) instances_free(out);
    return rc;
}

void instances_free(struct instances *v) {
    free(v->v);
    free(v->first);
    *v = (struct instances){0};
}
