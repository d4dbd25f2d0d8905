/* SPDX-License-Identifier: Apache-2.0
 * Which trace a memory snapshot belongs to. A snapshot tells neither its host
 * nor its rank nor its process: addresses and times that both have tell it,
 * or, where the trace recorded no memory, the clock alone. And which one a view
 * from outside belongs to: host and clock tell it. */
#include "load/runs_impl.h"

#include "model/format.h"
#include "model/trace_fill.h"

#include <string.h>

bool part_is_snapshot(const struct part *p) {
    return p->t != NULL && p->t->sources[0].format->role == ROLE_MEMORY;
}

/* Do they lie in the same time, and not say that they are of two ranks? */
static bool may_join(const struct part *trace, const struct part *snap) {
    if (trace->t == NULL || part_is_snapshot(trace)) return false;
    int64_t a = trace->t->sources[0].rank, b = snap->t->sources[0].rank;
    return (a < 0 || b < 0 || a == b) && parts_overlap(trace, snap);
}

static bool has_device_events(const struct trace *t) {
    for (size_t i = 0; i < t->mem.n; i++)
        if (t->allocators[t->mem.allocator[i]].device != ROW_NONE) return true;
    return false;
}

/* What is still held against each other: a folder may have any number of
 * traces and of snapshots, at the same time. */
struct left {
    size_t pairs;
    uint64_t events; /* of memory, in those pairs */
};

/* The part that a snapshot belongs to, or n. */
static int partner(const struct part *v, size_t n, size_t snap,
                   struct left *left, size_t *out, struct ops_err *e) {
    size_t best = n, most = 0, without = n, nwithout = 0;
    *out = n;
    for (size_t i = 0; i < n; i++) {
        if (v[i].t == NULL || part_is_snapshot(&v[i])) continue;
        if (left->pairs == 0) return 0;
        left->pairs--;
        if (!may_join(&v[i], &v[snap])) continue;
        uint64_t cost = v[i].t->mem.n + v[snap].t->mem.n;
        if (cost > left->events) return 0;
        left->events -= cost;
        size_t common;
        TRY(mem_common(v[i].t, v[snap].t, &common, e));
        if (common > most) {
            best = i;
            most = common;
        }
        if (!has_device_events(v[i].t)) {
            without = i;
            nwithout++;
        }
    }
    *out = most > 0 ? best : nwithout == 1 ? without : n;
    return 0;
}

int parts_join_snapshots(struct part *v, size_t n, struct ops_err *e) {
    enum { ANY_EVENTS = 1 << 24, TIMES = 256 };
    struct left left = {pairs_allowed(n), ANY_EVENTS};
    size_t traces = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].t == NULL) continue;
        left.events += TIMES * (uint64_t)v[i].t->mem.n;
        traces += !part_is_snapshot(&v[i]);
    }
    for (size_t i = 0; i < n && traces > 0; i++) {
        if (!part_is_snapshot(&v[i])) continue;
        size_t k;
        TRY(partner(v, n, i, &left, &k, e));
        if (k == n) continue;
        struct trace *snap = v[i].t;
        v[i].t = NULL;
        v[i].taken = true;
        TRY(trace_join_memory(v[k].t, 0, snap, e));
    }
    return 0;
}

static bool is_outside(const struct part *p) {
    return p->t != NULL && p->t->sources[0].outside;
}

static const char *host_of(const struct part *p) {
    return strs_text(&p->t->strs, p->t->sources[0].host);
}

/* The first recording of that time, of the same host if there is one; or n. */
static size_t inside_of(const struct part *v, size_t n, size_t outside,
                        size_t *left) {
    size_t found = n;
    for (size_t i = 0; i<n && * left> 0; i++) {
        --*left;
        if (v[i].t == NULL || is_outside(&v[i]) || part_is_snapshot(&v[i]) ||
            !parts_overlap(&v[i], &v[outside]))
            continue;
        if (strcmp(host_of(&v[i]), host_of(&v[outside])) == 0) return i;
        if (found == n) found = i;
    }
    return found;
}

int parts_join_outside(struct part *v, size_t n, struct ops_err *e) {
    size_t left = pairs_allowed(n);
    for (size_t i = 0; i < n; i++) {
        if (!is_outside(&v[i])) continue;
        size_t k = inside_of(v, n, i, &left);
        if (k == n) continue;
        struct trace *view = v[i].t;
        uint32_t beside = (uint32_t)v[k].t->nsources;
        v[i].t = NULL;
        v[i].taken = true;
        TRY(trace_append(v[k].t, view, e));
        v[k].t->sources[beside].beside = 0;
    }
    return 0;
}
