/* SPDX-License-Identifier: Apache-2.0
 * A memory snapshot beside the trace of the same process: two records of one
 * allocator. The trace knows the operation, the thread and the level; the
 * snapshot the call stacks, the segments, and what happened before the trace
 * began. Both have addresses and the Unix clock, the snapshot to the
 * microsecond: in a real pair all 644 allocations agree to within 7 us.
 *
 *     an allocation in both       is the trace's, with the snapshot's stack
 *     a free of an older block    gets the stack of the block
 *     what was in use before      becomes trace->before, with its stacks
 *     segments, failures          are the allocator's
 *     the snapshot's own events   go, where the trace has events of that
 *                                 allocator: no byte counts twice; else they
 *                                 are the trace's memory events
 *     its annotations             go: they stand in the trace, too
 *
 * Done before sealing: events stand in file order, and what goes leaves no
 * gap. */
#include "model/trace_fill.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

/* How far the two clocks may be apart for one event. An address is seldom
 * handed out again so soon, and then the nearest time wins. */
#define TOLERANCE PS_PER_MS

struct join {
    struct trace *t;
    size_t mem0, oom0, before0; /* where the snapshot's begin */
    bool *both;                 /* by allocator: both have events of it */
    bool *known;        /* by snapshot event: stands in the trace, too */
    int64_t *from, *to; /* by allocator: the trace's window */
    struct sort_key *trace, *snap; /* events by address, then time */
    size_t ntrace, nsnap;
    struct mem_before *old; /* blocks from before the trace */
    size_t nold, cap_old;
    struct map by_addr; /* place -> its last in old */
};

/* Returns an address of an allocator as a number; where two clash, the rows are
 * compared. */
static uint64_t place(uint64_t addr, uint32_t allocator) {
    return fixed_pair(fixed_pair(addr, 0), allocator);
}

static uint64_t place_of(const struct trace *t, size_t i) {
    return place(t->mem.addr[i], t->mem.allocator[i]);
}

static int64_t key_ts(const struct sort_key *k) {
    return (int64_t)sort_signed((int64_t)k->lo);
}

static int64_t distance(const struct sort_key *a, const struct sort_key *b) {
    int64_t d = sat_sub(key_ts(a), key_ts(b));
    return d < 0 ? sat_sub(0, d) : d;
}

/* Finds which allocators have events on both sides, and when. */
static bool find_both(struct join *j) {
    const struct trace *t = j->t;
    const struct mem_events *m = &t->mem;
    size_t n = t->nallocators + 1;
    j->both = calloc(n, sizeof *j->both);
    j->known = calloc(m->n - j->mem0 + 1, sizeof *j->known);
    j->from = malloc(n * sizeof *j->from);
    j->to = malloc(n * sizeof *j->to);
    if (!j->both || !j->known || !j->from || !j->to) return false;
    for (size_t i = 0; i < n; i++) {
        j->from[i] = INT64_MAX;
        j->to[i] = INT64_MIN;
    }
    for (size_t i = 0; i < j->mem0; i++) {
        uint32_t a = m->allocator[i];
        if (m->ts[i] < j->from[a]) j->from[a] = m->ts[i];
        if (m->ts[i] > j->to[a]) j->to[a] = m->ts[i];
    }
    for (size_t i = j->mem0; i < m->n; i++)
        j->both[m->allocator[i]] |= j->from[m->allocator[i]] != INT64_MAX;
    for (size_t i = j->before0; i < t->nbefore; i++)
        j->both[t->before[i].allocator] |= j->from[t->before[i].allocator] !=
                                           INT64_MAX;
    return true;
}

/* Lists the trace's events and the snapshot's allocations, by place and
 * time. */
static bool find_keys(struct join *j) {
    const struct mem_events *m = &j->t->mem;
    j->trace = vec_alloc(j->mem0 + 1, sizeof *j->trace);
    j->snap = vec_alloc(m->n - j->mem0 + 1, sizeof *j->snap);
    if (!j->trace || !j->snap) return false;
    for (size_t i = 0; i < m->n; i++) {
        if (!j->both[m->allocator[i]] || m->addr[i] == 0) continue;
        struct sort_key k = {place_of(j->t, i), sort_signed(m->ts[i]),
                             (uint32_t)i};
        if (i < j->mem0) j->trace[j->ntrace++] = k;
        else if (m->bytes[i] > 0) j->snap[j->nsnap++] = k;
    }
    return sort_keys(j->trace, j->ntrace) && sort_keys(j->snap, j->nsnap);
}

/* Events of one place: [at, at + n) of some keys. */
struct run {
    const struct sort_key *v;
    size_t n;
};

/* Returns the run of that place at or behind *at; *at moves on to its end. */
static struct run run_of(const struct sort_key *v, size_t n, size_t *at,
                         uint64_t at_place) {
    while (*at < n && v[*at].hi < at_place) ++*at;
    struct run r = {v + *at, 0};
    while (*at < n && v[*at].hi == at_place) {
        ++*at;
        r.n++;
    }
    return r;
}

/* Returns the one of r nearest to k, from *at on; NULL if none is near enough.
 * Both go through time in order. */
static const struct sort_key *nearest(const struct run *r, size_t *at,
                                      const struct sort_key *k) {
    if (*at >= r->n) return NULL;
    while (*at + 1 < r->n &&
           distance(&r->v[*at + 1], k) <= distance(&r->v[*at], k))
        ++*at;
    return distance(&r->v[*at], k) <= TOLERANCE ? &r->v[(*at)++] : NULL;
}

static void match(struct join *j, const struct sort_key *k,
                  const struct sort_key *s) {
    struct trace *t = j->t;
    const struct mem_events *m = &t->mem;
    if (s == NULL || m->addr[k->row] != m->addr[s->row] ||
        m->allocator[k->row] != m->allocator[s->row]) {
        trace_note(t, NOTE_ALLOC_NOT_IN_SNAPSHOT, 1);
        return;
    }
    j->known[s->row - j->mem0] = true;
    trace_mem_stack(t, k->row, mem_stack(t, s->row));
}

/* Matches each allocation of the trace with the snapshot's. */
static void match_all(struct join *j) {
    size_t at = 0;
    for (size_t i = 0; i < j->ntrace;) {
        size_t first = i;
        struct run here = run_of(j->trace, j->ntrace, &i, j->trace[first].hi);
        struct run there = run_of(j->snap, j->nsnap, &at, j->trace[first].hi);
        size_t next = 0;
        for (size_t k = 0; k < here.n; k++)
            if (j->t->mem.bytes[here.v[k].row] > 0)
                match(j, &here.v[k], nearest(&there, &next, &here.v[k]));
    }
}

/* Adds a block that may be from before; of two at one place the later one
 * stays. */
static bool add_old(struct join *j, struct mem_before b) {
    uint32_t *at = map_at(&j->by_addr, place(b.addr, b.allocator));
    if (at == NULL || j->nold >= MAP_NONE) return false;
    if (*at != MAP_NONE) {
        j->old[*at] = b;
        return true;
    }
    if (!VEC_ROOM(j->old, j->nold, j->cap_old)) return false;
    *at = (uint32_t)j->nold;
    j->old[j->nold++] = b;
    return true;
}

/* Follows the snapshot up to where the trace begins. bytes are negative once a
 * block is freed: it stays listed, because the clocks differ. */
static bool replay(struct join *j) {
    struct trace *t = j->t;
    const struct mem_events *m = &t->mem;
    bool ok = true;
    for (size_t i = j->before0; ok && i < t->nbefore; i++)
        if (j->both[t->before[i].allocator]) ok = add_old(j, t->before[i]);
    for (size_t i = j->mem0; ok && i < m->n; i++) {
        uint32_t a = m->allocator[i];
        if (!j->both[a] || m->ts[i] >= j->from[a] || j->known[i - j->mem0])
            continue;
        if (m->bytes[i] > 0) {
            ok = add_old(j, (struct mem_before){.addr = m->addr[i],
                                                .bytes = m->bytes[i],
                                                .ts = m->ts[i],
                                                .allocator = a,
                                                .stack = mem_stack(t, i)});
            continue;
        }
        uint32_t at = map_get(&j->by_addr, place_of(t, i));
        if (at != MAP_NONE && j->old[at].bytes > 0) j->old[at].bytes *= -1;
    }
    return ok;
}

/* Adds the blocks that the trace frees but did not see allocated: those were
 * there before for certain, and their size is known. */
static bool settle_frees(struct join *j) {
    struct trace *t = j->t;
    for (size_t i = 0; i < j->ntrace;) {
        size_t row = j->trace[i].row;
        uint64_t here = j->trace[i].hi;
        run_of(j->trace, j->ntrace, &i, here);
        if (t->mem.bytes[row] >= 0) continue;
        int64_t bytes = sat_sub(0, t->mem.bytes[row]);
        uint32_t at = map_get(&j->by_addr, here);
        if (at != MAP_NONE) {
            j->old[at].bytes = bytes;
            trace_mem_stack(t, (row_id)row, j->old[at].stack);
        } else if (!add_old(j, (struct mem_before){.addr = t->mem.addr[row],
                                                   .bytes = bytes,
                                                   .ts = TS_NONE,
                                                   .allocator =
                                                       t->mem.allocator[row],
                                                   .stack = ROW_NONE})) {
            return false;
        }
    }
    return true;
}

/* Writes trace->before of the joined allocators anew. */
static void put_before(struct join *j) {
    struct trace *t = j->t;
    size_t n = j->before0;
    for (size_t i = j->before0; i < t->nbefore; i++)
        if (!j->both[t->before[i].allocator]) t->before[n++] = t->before[i];
    t->nbefore = n;
    for (size_t i = 0; i < j->nold && !t->oom; i++)
        if (j->old[i].bytes > 0) trace_before(t, &j->old[i]);
}

/* Drops the snapshot's events where the trace has its own. */
static void drop_events(struct join *j) {
    struct mem_events *m = &j->t->mem;
    size_t n = j->mem0;
    for (size_t i = j->mem0; i < m->n; i++) {
        uint32_t a = m->allocator[i];
        if (!j->both[a]) {
            mem_move(m, n++, i);
            continue;
        }
        if (m->bytes[i] > 0 && !j->known[i - j->mem0] &&
            m->ts[i] > sat_add(j->from[a], TOLERANCE) &&
            m->ts[i] < sat_sub(j->to[a], TOLERANCE))
            trace_note(j->t, NOTE_ALLOC_NOT_IN_TRACE, 1);
    }
    m->n = n;
}

static int by_allocator(const void *pa, const void *pb) {
    const struct mem_oom *a = pa, *b = pb;
    if (a->allocator != b->allocator)
        return a->allocator < b->allocator ? -1 : 1;
    return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/* Makes one of a failure that both recorded: the trace's, with what the
 * snapshot knows of it. */
static void join_ooms(struct join *j) {
    struct trace *t = j->t;
    size_t all = t->nooms, at = 0, n = j->oom0;
    if (all == j->oom0) return;
    if (j->oom0 > 1) qsort(t->ooms, j->oom0, sizeof *t->ooms, by_allocator);
    qsort(t->ooms + j->oom0, all - j->oom0, sizeof *t->ooms, by_allocator);
    for (size_t i = j->oom0; i < all; i++) {
        struct mem_oom *s = &t->ooms[i], early = *s;
        early.ts = sat_sub(s->ts, TOLERANCE);
        while (at < j->oom0 && by_allocator(&t->ooms[at], &early) < 0) at++;
        struct mem_oom *o = &t->ooms[at];
        if (at == j->oom0 || o->allocator != s->allocator ||
            sat_sub(o->ts, s->ts) > TOLERANCE) {
            t->ooms[n++] = *s;
            continue;
        }
        o->device_free = s->device_free;
        o->stack = s->stack;
        at++;
    }
    t->nooms = n;
}

static bool join_events(struct join *j) {
    if (!find_both(j) || !find_keys(j)) return false;
    match_all(j);
    if (!replay(j) || !settle_frees(j)) return false;
    put_before(j);
    drop_events(j);
    join_ooms(j);
    return !j->t->oom;
}

/* Shares facts: the snapshot is of the same process, so what holds for one
 * holds for both. */
static void share_facts(struct trace *t, uint32_t source, uint32_t beside) {
    struct source *s = &t->sources[source], *b = &t->sources[beside];
    s->has_memory = true;
    b->companion_of = source;
    b->host = s->host;
    b->rank = s->rank;
    b->world_size = s->world_size;
    b->pid = s->pid;
    b->has_device = s->has_device;
    b->has_shapes = s->has_shapes;
    b->has_stacks = s->has_stacks;
}

int trace_join_memory(struct trace *t, uint32_t source, struct trace *snap,
                      struct ops_err *e) {
    assert(!t->sealed && source < t->nsources && snap->nsources == 1);
    struct join j = {.t = t,
                     .mem0 = t->mem.n,
                     .oom0 = t->nooms,
                     .before0 = t->nbefore};
    uint32_t beside = (uint32_t)t->nsources;
    /* the trace has spans and tracks itself, and better ones */
    snap->spans.n = snap->ntracks = snap->step_hints.n = 0;
    for (size_t i = 0; i < snap->mem.n; i++) snap->mem.track[i] = ROW_NONE;
    for (size_t i = 0; i < snap->nooms; i++) snap->ooms[i].track = ROW_NONE;
    TRY(trace_append_companion(t, snap, source, e));
    assert(beside + 1 == t->nsources);
    share_facts(t, source, beside);
    bool ok = join_events(&j);
    free(j.both);
    free(j.known);
    free(j.from);
    free(j.to);
    free(j.trace);
    free(j.snap);
    free(j.old);
    map_free(&j.by_addr);
    return ok ? 0 : fail_oom(e);
}

/* Returns allocations on devices by address and time, shifted by so many ps. */
static struct sort_key *alloc_keys(const struct trace *t, int64_t shift,
                                   size_t *n) {
    const struct mem_events *m = &t->mem;
    struct sort_key *v = vec_alloc(m->n + 1, sizeof *v);
    *n = 0;
    for (size_t i = 0; v && i < m->n; i++) {
        if (m->bytes[i] <= 0 || m->addr[i] == 0 ||
            t->allocators[m->allocator[i]].device == ROW_NONE)
            continue;
        v[(*n)++] = (struct sort_key){m->addr[i],
                                      sort_signed(sat_add(m->ts[i], shift)),
                                      (uint32_t)i};
    }
    if (v && sort_keys(v, *n)) return v;
    free(v);
    *n = 0;
    return NULL;
}

int trace_shared_allocs(const struct trace *t, const struct trace *snap,
                        size_t *out, struct ops_err *e) {
    int64_t ns, shift;
    *out = 0;
    if (__builtin_sub_overflow(snap->epoch_ns, t->epoch_ns, &ns) ||
        __builtin_mul_overflow(ns, PS_PER_NS, &shift))
        return 0;
    size_t na, nb, at = 0;
    struct sort_key *a = alloc_keys(t, 0, &na);
    struct sort_key *b = alloc_keys(snap, shift, &nb);
    for (size_t i = 0; a && b && i < na;) {
        size_t first = i, next = 0;
        struct run here = run_of(a, na, &i, a[first].hi);
        struct run there = run_of(b, nb, &at, a[first].hi);
        for (size_t k = 0; k < here.n; k++)
            *out += nearest(&there, &next, &here.v[k]) != NULL;
    }
    int rc = a && b ? 0 : fail_oom(e);
    free(a);
    free(b);
    return rc;
}
