/* SPDX-License-Identifier: Apache-2.0
 * Many files, few traces: ranks and hosts of one job are tracks of one trace;
 * profiles that have nothing to do with each other stay apart. */
#include "load/runs.h"

#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"
#include "import/import.h"
#include "load/runs_impl.h"
#include "model/format.h"
#include "model/trace_fill.h"
#include <stdlib.h>
#include <string.h>

void loaded_free(struct loaded *l) {
    for (size_t i = 0; i < l->n; i++) {
        trace_free(l->v[i]);
        free(l->names[i]);
    }
    free(l->v);
    free(l->names);
    *l = (struct loaded){0};
}

/* Returns the number behind "rank" in a file's name, or -1. */
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

static bool is_snapshot(const struct loaded_file *p) {
    return p->t != NULL && p->t->sources[0].format->role == ROLE_MEMORY;
}

static void find_window(struct loaded_file *p) {
    const struct trace *t = p->t;
    p->lo = INT64_MAX;
    p->hi = INT64_MIN;
    for (size_t i = 0; i < t->spans.n; i++) {
        if (t->tracks[t->spans.track[i]].kind == TRACK_OTHER &&
            !t->sources[0].process_view)
            continue;
        int64_t end = t->spans.ts[i] + t->spans.dur[i];
        if (t->spans.ts[i] < p->lo) p->lo = t->spans.ts[i];
        if (end > p->hi) p->hi = end;
    }
    if (!is_snapshot(p)) return;
    for (size_t i = 0; i < t->mem.n; i++) {
        if (t->mem.ts[i] < p->lo) p->lo = t->mem.ts[i];
        if (t->mem.ts[i] > p->hi) p->hi = t->mem.ts[i];
    }
}

/* Do both have a clock, and do their windows overlap? */
static bool files_overlap(const struct loaded_file *a,
                          const struct loaded_file *b) {
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

static bool has_device_events(const struct trace *t) {
    for (size_t i = 0; i < t->mem.n; i++)
        if (t->allocators[t->mem.allocator[i]].device != ROW_NONE) return true;
    return false;
}

/* How many more comparisons may be made: a folder may have any number of traces
 * and of snapshots of the same time. */
struct left {
    size_t pairs;
    uint64_t events; /* of memory, in those pairs */
};

/* Finds the file that a snapshot belongs to; n if there is none. */
static int partner(const struct loaded_file *v, size_t n, size_t snap,
                   struct left *left, size_t *out, struct ops_err *e) {
    size_t best = n, most = 0, without = n, nwithout = 0;
    *out = n;
    for (size_t i = 0; i < n; i++) {
        if (v[i].t == NULL || is_snapshot(&v[i])) continue;
        if (left->pairs == 0) return 0;
        left->pairs--;
        int64_t a = v[i].t->sources[0].rank, b = v[snap].t->sources[0].rank;
        if (a >= 0 && b >= 0 && a != b) continue; /* two ranks */
        if (!files_overlap(&v[i], &v[snap])) continue;
        uint64_t cost = v[i].t->mem.n + v[snap].t->mem.n;
        if (cost > left->events) return 0;
        left->events -= cost;
        size_t common;
        TRY(trace_shared_allocs(v[i].t, v[snap].t, &common, e));
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

/* Joins memory snapshots with the traces of their processes; those without one
 * stay what they are. A snapshot tells neither its host nor its rank nor its
 * process: addresses and times that both have decide, or, where the trace
 * recorded no memory, the clock alone. */
static int join_snapshots(struct loaded_file *v, size_t n, struct ops_err *e) {
    enum { ANY_EVENTS = 1 << 24, TIMES = 256 };
    struct left left = {pairs_allowed(n), ANY_EVENTS};
    size_t traces = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].t == NULL) continue;
        left.events += TIMES * (uint64_t)v[i].t->mem.n;
        traces += !is_snapshot(&v[i]);
    }
    for (size_t i = 0; i < n && traces > 0; i++) {
        if (!is_snapshot(&v[i])) continue;
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

static bool is_outside(const struct loaded_file *p) {
    return p->t != NULL && p->t->sources[0].process_view;
}

static const char *host_of(const struct loaded_file *p) {
    return strs_text(&p->t->strs, p->t->sources[0].host);
}

/* Returns the first recording of that time, of the same host if any; else n. */
static size_t inside_of(const struct loaded_file *v, size_t n, size_t outside,
                        size_t *left) {
    size_t found = n;
    for (size_t i = 0; i<n && * left> 0; i++) {
        --*left;
        if (v[i].t == NULL || is_outside(&v[i]) || is_snapshot(&v[i]) ||
            !files_overlap(&v[i], &v[outside]))
            continue;
        if (strcmp(host_of(&v[i]), host_of(&v[outside])) == 0) return i;
        if (found == n) found = i;
    }
    return found;
}

/* Puts what `opscope record` saw of a program from outside beside what the
 * program recorded itself, if it did: host and clock decide which that is. */
static int join_outside_views(struct loaded_file *v, size_t n,
                              struct ops_err *e) {
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
        v[k].t->sources[beside].companion_of = 0;
    }
    return 0;
}

/* Are these two processes of one program that recorded themselves into one run:
 * a worker and the process that forked it? */
static bool one_program(const struct loaded_file *a,
                        const struct loaded_file *b) {
    const struct source *x = &a->t->sources[0], *y = &b->t->sources[0];
    const char *sx = strrchr(a->path, '/'), *sy = strrchr(b->path, '/');
    return x->by_opscope && y->by_opscope && x->pid != y->pid && sx != NULL &&
           sy != NULL && sx - a->path == sy - b->path &&
           memcmp(a->path, b->path, (size_t)(sx - a->path)) == 0;
}

/* Captures of one job, each of another host, rank or process, all at the same
 * time. A snapshot that found no trace is a profile of its own. */
struct group {
    size_t leader;   /* its first part */
    __int128 lo, hi; /* the time that all its programs share, Unix ps */
};

/* A file is compared with a group, not with each of its members: a job may have
 * ten thousands of ranks. */
struct groups {
    struct loaded_file *v;
    struct group *g;
    size_t n, cap;
    struct map ranks;    /* (group, rank, host) -> the first part of these */
    struct map pids;     /* (group, rank, host, process) -> anything */
    struct map families; /* (folder, rank, host, family) -> its group */
    uint32_t *of;        /* by part: its group */
    size_t left;         /* pairs of a part and a group still held */
    bool oom;
};

static uint64_t rank_key(const struct loaded_file *p, size_t group) {
    const struct source *s = &p->t->sources[0];
    struct bytes host = strs_bytes(&p->t->strs, s->host);
    uint64_t h = hash_pair((uint64_t)s->rank, hash_bytes(host.p, host.n));
    return hash_pair(h, group);
}

static uint64_t pid_key(const struct loaded_file *p, size_t group) {
    return hash_pair(rank_key(p, group), (uint64_t)p->t->sources[0].pid);
}

/* Returns the number of a folder and a rank in it, the same for all processes
 * of a program that recorded themselves there. */
static uint64_t program_key(const struct loaded_file *p) {
    const char *slash = strrchr(p->path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - p->path) : 0;
    return rank_key(p, hash_bytes(p->path, folder));
}

static uint64_t family_key(const struct loaded_file *p) {
    return hash_pair(program_key(p), (uint64_t)p->t->sources[0].family);
}

/* Finds when a file begins and ends. Returns false if it does not say. */
static bool window_of(const struct loaded_file *p, __int128 *lo, __int128 *hi) {
    __int128 zero = (__int128)p->t->epoch_ns * PS_PER_NS;
    *lo = zero + p->lo;
    *hi = zero + p->hi;
    return p->t->sources[0].has_clock && p->lo <= p->hi;
}

/* Does file k differ from all of the group, and share their time? A worker need
 * not share that of its program's other workers: they come and go. */
static bool fits(const struct groups *s, size_t group, size_t k) {
    const struct group *g = &s->g[group];
    const struct loaded_file *p = &s->v[k], *first = &s->v[g->leader];
    __int128 lo, hi, from = g->lo, to = g->hi;
    if (is_snapshot(p) != is_snapshot(first)) return false;
    uint32_t same = map_get(&s->ranks, rank_key(p, group));
    if (same != MAP_NONE) {
        if (!one_program(&s->v[same], p) ||
            map_get(&s->pids, pid_key(p, group)) != MAP_NONE)
            return false;
        window_of(&s->v[same], &from, &to);
    }
    return window_of(p, &lo, &hi) && lo < to && from < hi;
}

static void join_group(struct groups *s, size_t group, size_t k) {
    struct group *g = &s->g[group];
    struct loaded_file *p = &s->v[k];
    __int128 lo, hi;
    s->of[k] = (uint32_t)group;
    if (!map_set(&s->families, family_key(p), (uint32_t)group)) s->oom = true;
    if (!window_of(p, &lo, &hi)) return; /* a child that recorded nothing */
    uint32_t *at = map_at(&s->ranks, rank_key(p, group));
    if (at == NULL || !map_set(&s->pids, pid_key(p, group), 1)) {
        s->oom = true;
    } else if (*at == MAP_NONE) {
        *at = (uint32_t)k;
        if (lo > g->lo) g->lo = lo;
        if (hi < g->hi) g->hi = hi;
    } else {
        /* its program runs at least as long as its workers do */
        struct loaded_file *first = &s->v[*at];
        __int128 zero = (__int128)first->t->epoch_ns * PS_PER_NS;
        if (lo - zero < first->lo) first->lo = (int64_t)(lo - zero);
        if (hi - zero > first->hi) first->hi = (int64_t)(hi - zero);
    }
}

/* Can both stand on one time line? A clock may have been set meanwhile. */
static bool is_near(const struct loaded_file *a, const struct loaded_file *b) {
    if (a->t->epoch_ns == 0 || b->t->epoch_ns == 0) return true;
    __int128 zero = (__int128)b->t->epoch_ns - a->t->epoch_ns;
    zero *= PS_PER_NS;
    __int128 hi = b->lo <= b->hi && b->hi > 0 ? zero + b->hi : zero;
    __int128 lo = b->lo <= b->hi && b->lo < 0 ? zero + b->lo : zero;
    return lo >= -DUR_LIMIT && hi <= TS_LIMIT;
}

/* Puts file k into the group of its family or the first that it fits, or into a
 * new one. Of processes that forked each other none need share another's time:
 * parents may record before and after their children only. */
static void find_group(struct groups *s, size_t k) {
    const struct loaded_file *p = &s->v[k];
    __int128 lo, hi;
    bool timed = window_of(p, &lo, &hi);
    if (p->t->sources[0].family != 0) {
        uint32_t own = map_get(&s->families, family_key(p));
        if (own != MAP_NONE && is_near(&s->v[s->g[own].leader], p) &&
            map_get(&s->pids, pid_key(p, own)) == MAP_NONE) {
            join_group(s, own, k);
            return;
        }
    }
    for (size_t i = 0; timed && i < s->n && s->left > 0; i++) {
        s->left--;
        if (!fits(s, i, k)) continue;
        join_group(s, i, k);
        return;
    }
    if (!VEC_ROOM(s->g, s->n, s->cap)) {
        s->oom = true;
        return;
    }
    /* nothing fits a file that does not tell its time */
    s->g[s->n] =
        (struct group){.leader = k, .lo = timed ? lo : 1, .hi = timed ? hi : 0};
    s->n++;
    if (timed) join_group(s, s->n - 1, k);
    else s->of[k] = (uint32_t)(s->n - 1);
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

/* Moves the traces of a group's other members behind that of its leader, in
 * their order, and seals each leader's. */
static int finish_groups(struct groups *s, size_t n, struct loaded *out,
                         struct ops_err *e) {
    struct loaded_file *v = s->v;
    for (size_t k = 0; k < n; k++) {
        if (v[k].taken) continue;
        size_t leader = s->g[s->of[k]].leader;
        if (leader == k) continue;
        struct trace *more = v[k].t;
        v[k].t = NULL;
        TRY(trace_append(v[leader].t, more, e));
    }
    for (size_t i = 0; i < s->n; i++) {
        struct loaded_file *p = &v[s->g[i].leader];
        TRY(trace_seal(p->t, e));
        if (!add_loaded(out, p->t, p->path)) return fail_oom(e);
        p->t = NULL;
    }
    return 0;
}

/* Lists the files that are left: first those that begin a program, as they
 * stand, then its workers, by the time at which they begin (last, those that
 * recorded nothing). So a worker finds
 * its program, whatever both are called. Returns how many there are. */
static size_t order_files(struct groups *s, size_t n, struct sort_key *order) {
    struct map first = {0}; /* program_key() -> the earliest of its files */
    __int128 lo, hi, early, unused;
    size_t count = 0;
    for (size_t k = 0; k < n; k++) {
        if (s->v[k].taken || !window_of(&s->v[k], &lo, &hi)) continue;
        uint32_t *at = map_at(&first, program_key(&s->v[k]));
        if (at == NULL) s->oom = true;
        else if (*at == MAP_NONE ||
                 (window_of(&s->v[*at], &early, &unused) && lo < early))
            *at = (uint32_t)k;
    }
    for (size_t k = 0; k < n; k++) {
        if (s->v[k].taken) continue;
        const struct source *from = &s->v[k].t->sources[0];
        bool timed = window_of(&s->v[k], &lo, &hi);
        bool worker = from->by_opscope &&
                      (timed ? map_get(&first, program_key(&s->v[k])) != k
                             : from->family != 0);
        int64_t at = timed ? (int64_t)(lo / PS_PER_NS) : INT64_MAX;
        order[count++] = (struct sort_key){worker, worker ? sort_signed(at) : k,
                                           (uint32_t)k};
    }
    map_free(&first);
    if (!sort_keys(order, count)) s->oom = true;
    return count;
}

/* Makes few traces of many files. */
static int join_groups(struct loaded_file *v, size_t n, struct loaded *out,
                       struct ops_err *e) {
    struct groups s = {.v = v, .left = pairs_allowed(n)};
    struct sort_key *order = malloc((n + 1) * sizeof *order);
    s.of = malloc((n + 1) * sizeof *s.of);
    if (s.of == NULL || order == NULL) s.oom = true;
    size_t left = s.oom ? 0 : order_files(&s, n, order);
    for (size_t i = 0; i < left && !s.oom; i++) find_group(&s, order[i].row);
    free(order);
    int rc = s.oom ? fail_oom(e) : finish_groups(&s, n, out, e);
    free(s.g);
    free(s.of);
    map_free(&s.ranks);
    map_free(&s.pids);
    map_free(&s.families);
    return rc;
}

static int load_file(struct loaded_file *p, const struct import_opts *o,
                     struct ops_err *e) {
    p->t = trace_new();
    int rc = p->t ? import_file_by(p->importer, p->path, p->t, o, e)
                  : fail_oom(e);
    if (rc != 0 && e != NULL && e->text[0] != '\0') rc = fail_in(e, p->path);
    if (rc == 0) {
        /* What a file's name tells and its contents did not: the rank, the
         * host. */
        struct source *s = &p->t->sources[0];
        if (s->rank < 0) s->rank = rank_in_name(p->path);
        static const char suffix[] = ".xplane.pb";
        const char *base = strrchr(p->path, '/');
        base = base ? base + 1 : p->path;
        const char *end = strstr(base, suffix);
        if (s->host == 0 && end != NULL && end > base)
            s->host = trace_str(p->t, (struct bytes){(const uint8_t *)base,
                                                     (size_t)(end - base)});
    }
    return rc;
}

static bool is_ring(const char *path) {
    struct own_file f;
    return own_file_of(path, &f) && f.form == OWN_RING;
}

/* Loads the files. A program's shared memory comes first: what it brings of the
 * files beside it is not read again. */
static int load_files(struct loaded_file *v, size_t n, const struct stems *s,
                      const struct import_opts *o, struct ops_err *e) {
    for (size_t i = 0; i < n; i++)
        if (is_ring(v[i].path)) TRY(load_file(&v[i], o, e));
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = stems_of(s, v[i].path); k != ROW_NONE && !v[i].taken;
             k = s->next[k])
            v[i].taken = k != i && is_ring(v[k].path) &&
                         own_is_included(&v[k], v[i].path);
        if (v[i].t == NULL && !v[i].taken) TRY(load_file(&v[i], o, e));
    }
    TRY(join_recordings(v, n, s, e));
    for (size_t i = 0; i < n && n > 1; i++)
        if (!v[i].taken) find_window(&v[i]);
    return 0;
}

int runs_load(const struct run_file *files, size_t n,
              const struct import_opts *o, struct loaded *out,
              struct ops_err *e) {
    *out = (struct loaded){0};
    struct loaded_file *v = calloc(n + 1, sizeof *v);
    struct stems stems = {0};
    int rc = v ? 0 : fail_oom(e);
    for (size_t i = 0; i < n && rc == 0; i++) {
        v[i].path = files[i].path;
        v[i].importer = files[i].importer;
    }
    if (rc == 0 && !stems_init(&stems, v, n)) rc = fail_oom(e);
    if (rc == 0) rc = load_files(v, n, &stems, o, e);
    stems_free(&stems);
    if (rc == 0) rc = join_snapshots(v, n, e);
    if (rc == 0) rc = join_all_traced(v, n, e);
    if (rc == 0) rc = join_outside_views(v, n, e);
    if (rc == 0) rc = join_groups(v, n, out, e);
    for (size_t i = 0; v && i < n; i++) trace_free(v[i].t);
    free(v);
    if (rc != 0) loaded_free(out);
    return rc;
}
