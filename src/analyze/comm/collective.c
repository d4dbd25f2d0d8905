/* SPDX-License-Identifier: Apache-2.0
 * Finding the collectives: which of the many spans of one carries its time,
 * and what the others tell about it. */
#include "analyze/comm/collective.h"

#include "base/hash.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "names/hlo_text.h"
#include "names/op_names.h"
#include <assert.h>
#include <stdlib.h>

enum { OPEN_MAX = 64 }; /* XLA collectives under way at once on one line */

/* What a source has; it decides which spans carry the time. */
struct source_has {
    bool kernels, cpu;
    uint32_t device;   /* of the first collective kernel, or ROW_NONE */
    bool devices;      /* kernels on several devices */
    const char *group; /* the only process group, or NULL ... */
    bool groups;       /* ... or there are several */
};

struct coll_finder {
    struct collectives *c;
    struct source_has *has;     /* by source */
    uint32_t *member_of;        /* by source: its member, or ROW_NONE ... */
    uint32_t *member_of_device; /* ... and by device, where devices is set */
    struct map groups;          /* hash of a group -> its index */
    struct map streams;         /* hash of a stream -> its number */
};

static bool counts(const struct trace *t, row_id r) {
    return span_is_comm(t, r) &&
           !(t->spans.flags[r] & (SPAN_DERIVED | SPAN_ASYNC | SPAN_INSTANT));
}

static bool is_cpu(const struct trace *t, row_id r) {
    return span_class(t, r) & CLASS_COMM_CPU;
}

/* Finds what each source has. */
static void look_at_sources(struct coll_finder *f) {
    const struct trace *t = f->c->t;
    for (uint32_t i = 0; i < t->nsources; i++) {
        f->has[i].device = ROW_NONE;
        f->has[i].group = trace_meta_get(t, i, "process_group");
        f->has[i].groups = trace_meta_get(t, i, "process_groups") != NULL;
    }
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        struct source_has *h = &f->has[tr->source];
        row_id r = tr->first;
        if (tr->kind == TRACK_STREAM) {
            while (r < tr->end &&
                   (t->spans.kind[r] != SPAN_KERNEL || !counts(t, r)))
                r++;
            if (r == tr->end) continue;
            h->devices |= h->kernels && h->device != tr->device;
            if (!h->kernels) h->device = tr->device;
            h->kernels = true;
        } else if (tr->kind == TRACK_THREAD) {
            for (; !h->cpu && r < tr->end; r++)
                h->cpu = is_cpu(t, r) && t->spans.kind[r] != SPAN_API &&
                         counts(t, r);
        }
    }
}

struct member_key {
    const struct trace *t;
    struct coll_member m;
};

/* Compares by rank, host, path, device: never by the order of the files
 * given. */
static int by_member(const void *a, const void *b) {
    const struct member_key *x = a, *y = b;
    const struct source *p = &x->t->sources[x->m.source];
    const struct source *q = &x->t->sources[y->m.source];
    if (p->rank != q->rank) return p->rank < q->rank ? -1 : 1;
    int d = strcmp(strs_text(&x->t->strs, p->host),
                   strs_text(&x->t->strs, q->host));
    if (d == 0 && p->path && q->path) d = strcmp(p->path, q->path);
    if (d != 0) return d;
    if (x->m.source != y->m.source) return x->m.source < y->m.source ? -1 : 1;
    int64_t i = x->m.device == ROW_NONE ? -1
                                        : x->t->devices[x->m.device].ordinal;
    int64_t k = y->m.device == ROW_NONE ? -1
                                        : y->t->devices[y->m.device].ordinal;
    if (i != k) return i < k ? -1 : 1;
    return x->m.device < y->m.device ? -1 : x->m.device > y->m.device;
}

/* Makes a member per source, or per device where several of one communicate. */
static bool make_members(struct coll_finder *f) {
    struct collectives *c = f->c;
    const struct trace *t = c->t;
    struct member_key *v = calloc(t->nsources + t->ndevices + 1, sizeof *v);
    if (v == NULL) return false;
    size_t n = 0;
    for (uint32_t i = 0; i < t->nsources; i++)
        if (!f->has[i].devices && t->sources[i].companion_of == ROW_NONE)
            v[n++] = (struct member_key){t, {i, ROW_NONE}};
    for (uint32_t d = 0; d < t->ndevices; d++)
        if (f->has[t->devices[d].source].devices)
            v[n++] = (struct member_key){t, {t->devices[d].source, d}};
    qsort(v, n, sizeof *v, by_member);
    bool ok = vec_resize(&c->members, n + 1, sizeof *c->members);
    for (size_t i = 0; ok && i < n; i++) {
        c->members[i] = v[i].m;
        if (v[i].m.device != ROW_NONE)
            f->member_of_device[v[i].m.device] = (uint32_t)i;
        if (f->member_of[v[i].m.source] == ROW_NONE)
            f->member_of[v[i].m.source] = (uint32_t)i;
    }
    c->nmembers = ok ? n : 0;
    free(v);
    return ok;
}

/* Returns a key of what must be equal on two ranks for it to be the same
 * collective. Kernels of one collective may have different names on different
 * ranks (algorithm and protocol), so their kind stands for the name where a
 * size is known. */
static uint64_t stream_key(const struct collectives *c, const struct coll *x,
                           const struct coll_facts *f) {
    int64_t elems = coll_elems(f);
    bool by_kind = x->carrier == COLL_KERNEL && elems >= 0 &&
                   x->kind != COLL_OTHER;
    uint64_t h = hash_pair(x->group, (uint64_t)elems);
    if (coll_is_p2p(x->kind)) {
        h = hash_pair(hash_pair(h, (uint64_t)f->src), (uint64_t)f->dst);
        /* a transfer whose other end is not recorded has no counterpart */
        if (f->src < 0 || f->dst < 0)
            h = hash_pair(h, (uint64_t)x->member << 8 | x->kind);
        return h;
    }
    return hash_pair(hash_pair(h, x->kind),
                     by_kind ? 0 : (uint64_t)c->t->spans.name[x->row] + 1);
}

/* Returns all that the spans around a carrier say, and what the source knows.
 * The call that launched a kernel stands inside the ops and regions of the
 * framework. */
static struct coll_facts facts_of(const struct coll_finder *finder,
                                  const struct coll *x) {
    const struct trace *t = finder->c->t;
    const struct spans *s = &t->spans;
    struct coll_facts f = coll_facts_none();
    coll_facts_add(&f, t, x->row);
    row_id r = x->carrier == COLL_KERNEL ? trace_launch_of(t, x->row) : x->row;
    bool enough = f.in_elems >= 0 && f.group.n > 0 && f.group_size > 0;
    for (; !enough && r != ROW_NONE; r = s->parent[r])
        if (r != x->row && counts(t, r)) coll_facts_add(&f, t, r);
    if (x->carrier == COLL_CALL)
        for (r = x->row + 1; r < s->n && s->track[r] == s->track[x->row] &&
                             s->ts[r] < x->ts + x->dur;
             r++)
            if (counts(t, r)) coll_facts_add(&f, t, r);
    /* torch names only the other end of a transfer */
    uint32_t source = t->tracks[s->track[x->row]].source;
    const struct source *of = &t->sources[source];
    if (f.kind == COLL_SEND && f.src < 0) f.src = of->rank;
    if (f.kind == COLL_RECV && f.dst < 0) f.dst = of->rank;
    /* shapes tell how many ranks there were, also where the job has more */
    if (f.group_size < 0) f.group_size = f.ratio;
    /* where the source has only one process group, that group is all ranks */
    const struct source_has *h = &finder->has[source];
    if (f.group.n > 0 || h->groups) return f;
    if (h->group) f.group = bytes_of(h->group);
    if (f.group_size < 0 && of->world_size > 0) f.group_size = of->world_size;
    return f;
}

/* Adds one more collective. */
static bool coll_add(struct coll_finder *f, row_id row,
                     enum coll_carrier carrier, int64_t end) {
    struct collectives *c = f->c;
    const struct trace *t = c->t;
    const struct track *tr = &t->tracks[t->spans.track[row]];
    bool apart = f->has[tr->source].devices && tr->device != ROW_NONE;
    uint32_t member = apart ? f->member_of_device[tr->device] : ROW_NONE;
    if (member == ROW_NONE) member = f->member_of[tr->source];
    if (!VEC_ROOM(c->v, c->n, c->cap)) return false;
    struct coll *x = &c->v[c->n];
    *x = (struct coll){.row = row,
                       .member = member,
                       .match = ROW_NONE,
                       .carrier = (uint8_t)carrier,
                       .ts = t->spans.ts[row],
                       .dur = end - t->spans.ts[row]};
    assert(x->dur >= 0 && x->member < c->nmembers);
    struct coll_facts facts = facts_of(f, x);
    x->kind = (uint8_t)facts.kind;
    x->bytes = coll_bytes(&facts);
    x->ranks = coll_is_p2p(facts.kind) ? 2 : facts.group_size;
    /* each rank numbers its sends for itself */
    x->seq = coll_is_p2p(facts.kind) ? -1 : facts.seq;
    x->dtype = facts.dtype;
    uint64_t h = hash_pair(hash_bytes(facts.group.p, facts.group.n),
                           hash_bytes(facts.group_ranks.p,
                                      facts.group_ranks.n));
    uint32_t *group = map_at(&f->groups, h);
    if (group == NULL ||
        (*group == MAP_NONE && !VEC_ROOM(c->groups, c->ngroups, c->cap_groups)))
        return false;
    if (*group == MAP_NONE) {
        *group = (uint32_t)c->ngroups;
        c->groups[c->ngroups++] = facts.group;
    }
    x->group = *group;
    /* Streams are numbered in the order in which they are met: the order must
     * not depend on a hash. */
    uint32_t *stream = map_at(&f->streams, stream_key(c, x, &facts));
    if (stream == NULL) return false;
    if (*stream == MAP_NONE) *stream = (uint32_t)f->streams.n;
    x->stream = (uint64_t)*stream << 32;
    c->n++;
    return true;
}

/* XLA splits a collective: "all-reduce-start.3" begins it and "-done.3" waits
 * for its end. Returns where in name mark stands, or NULL. */
static const uint8_t *hlo_mark(struct bytes name, const char *mark) {
    size_t n = strlen(mark);
    const uint8_t *p = memmem(name.p, name.n, mark, n);
    if (p == NULL) return NULL;
    size_t rest = name.n - (size_t)(p - name.p) - n;
    return rest == 0 || p[n] == '.' ? p : NULL;
}

struct open_hlo {
    row_id row[OPEN_MAX];
    uint64_t key[OPEN_MAX]; /* the same for a start and its done */
    size_t n;
};

/* Takes the i-th out. */
static row_id open_take(struct open_hlo *o, size_t i) {
    row_id r = o->row[i];
    o->n--;
    memmove(&o->row[i], &o->row[i + 1], (o->n - i) * sizeof *o->row);
    memmove(&o->key[i], &o->key[i + 1], (o->n - i) * sizeof *o->key);
    return r;
}

/* Ends the start that this done belongs to; a done without one stands alone. */
static bool close_hlo(struct coll_finder *f, struct open_hlo *open, row_id done,
                      uint64_t key) {
    int64_t end = span_end(f->c->t, done);
    for (size_t i = 0; i < open->n; i++) {
        if (open->key[i] != key) continue;
        row_id r = open_take(open, i);
        int64_t own = span_end(f->c->t, r);
        return coll_add(f, r, COLL_KERNEL, end > own ? end : own);
    }
    return coll_add(f, done, COLL_KERNEL, end);
}

static bool take_kernel(struct coll_finder *f, struct open_hlo *open,
                        row_id r) {
    const struct trace *t = f->c->t;
    uint64_t key;
    enum hlo_half half = HLO_WHOLE;
    if (span_class(t, r) & CLASS_COMM_HLO)
        half = hlo_half_of(strs_bytes(&t->strs, t->spans.name[r]), &key);
    if (half == HLO_DONE) return close_hlo(f, open, r, key);
    if (half == HLO_WHOLE) return coll_add(f, r, COLL_KERNEL, span_end(t, r));
    bool ok = true;
    if (open->n == OPEN_MAX) { /* the oldest never ended: by itself */
        row_id old = open_take(open, 0);
        ok = coll_add(f, old, COLL_KERNEL, span_end(t, old));
    }
    open->key[open->n] = key;
    open->row[open->n++] = r;
    return ok;
}

static bool take_stream(struct coll_finder *f, const struct track *tr) {
    const struct trace *t = f->c->t;
    struct open_hlo open = {.n = 0};
    bool ok = true;
    for (row_id r = tr->first; ok && r < tr->end; r++)
        if (t->spans.kind[r] == SPAN_KERNEL && counts(t, r))
            ok = take_kernel(f, &open, r);
    for (size_t i = 0; ok && i < open.n; i++)
        ok = coll_add(f, open.row[i], COLL_KERNEL, span_end(t, open.row[i]));
    return ok;
}

/* Takes the outermost spans of a thread: those that carry a collective out or,
 * where the source has nothing better, the calls. */
static bool take_thread(struct coll_finder *f, const struct track *tr) {
    const struct trace *t = f->c->t;
    const struct source_has *h = &f->has[tr->source];
    int64_t until = INT64_MIN;
    if (h->kernels && !h->cpu) return true;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (!(span_class(t, r) & (CLASS_COMM | CLASS_COMM_HLO))) continue;
        if (!counts(t, r) || t->spans.kind[r] == SPAN_API) continue;
        if (h->cpu != is_cpu(t, r) || span_end(t, r) <= until) continue;
        until = span_end(t, r);
        if (!coll_add(f, r, h->cpu ? COLL_CPU : COLL_CALL, until)) return false;
    }
    return true;
}

int collectives_init(struct collectives *c, const struct trace *t,
                     struct ops_err *e) {
    *c = (struct collectives){.t = t, .crossed_row = ROW_NONE};
    struct coll_finder f = {.c = c};
    f.has = calloc(t->nsources + 1, sizeof *f.has);
    f.member_of = malloc((t->nsources + 1) * sizeof *f.member_of);
    f.member_of_device = malloc((t->ndevices + 1) * sizeof *f.member_of);
    c->clocks = calloc(t->nsources + 1, sizeof *c->clocks);
    bool ok = f.has && f.member_of && f.member_of_device && c->clocks;
    if (ok) {
        memset(f.member_of, 0xff, (t->nsources + 1) * sizeof *f.member_of);
        memset(f.member_of_device, 0xff,
               (t->ndevices + 1) * sizeof *f.member_of);
        /* most traces have none, which names and categories tell at once */
        bool any = false;
        for (size_t i = 0; !any && i < t->strs.n; i++)
            any = t->name_class[i] & (CLASS_COMM | CLASS_COMM_HLO);
        for (size_t i = 0; !any && i < t->ncats; i++)
            any = t->cat_class[i] & CLASS_COMM;
        if (any) look_at_sources(&f);
        ok = make_members(&f);
        for (size_t i = 0; ok && any && i < t->ntracks; i++) {
            const struct track *tr = &t->tracks[i];
            const struct source *s = &t->sources[tr->source];
            /* opscope record saw processes: one that is called nccl_perf is no
             * collective; a source that belongs to another one is no member */
            if (s->process_view || s->companion_of != ROW_NONE) continue;
            if (tr->kind == TRACK_STREAM) ok = take_stream(&f, tr);
            if (tr->kind == TRACK_THREAD) ok = take_thread(&f, tr);
        }
        ok = ok && collectives_match(c);
    }
    map_free(&f.groups);
    map_free(&f.streams);
    free(f.has);
    free(f.member_of);
    free(f.member_of_device);
    if (ok) return 0;
    collectives_free(c);
    return fail_oom(e);
}

void collectives_free(struct collectives *c) {
    free(c->v);
    free(c->members);
    free(c->groups);
    free(c->matches);
    free(c->by_match);
    free(c->clocks);
    *c = (struct collectives){0};
}

int64_t coll_world_size(const struct trace *t) {
    int64_t most = 0;
    for (size_t i = 0; i < t->nsources; i++)
        if (t->sources[i].world_size > most) most = t->sources[i].world_size;
    return most;
}

int64_t coll_arrival(const struct collectives *c, const struct coll *x) {
    return sat_add(x->ts, c->clocks[coll_source(c, x)].offset);
}

int64_t coll_wait_end(const struct collectives *c, const struct coll *x) {
    assert(x->match != ROW_NONE);
    int64_t end = x->ts + x->dur;
    int64_t last = sat_sub(c->matches[x->match].latest,
                           c->clocks[coll_source(c, x)].offset);
    if (last < x->ts) return x->ts;
    return last < end ? last : end;
}

struct bytes coll_name(const struct collectives *c, const struct coll *x) {
    const struct trace *t = c->t;
    str_id id = t->spans.name[x->row];
    struct bytes name = strs_bytes(&t->strs, id);
    const uint8_t *p = NULL;
    struct bytes node, type;
    if (x->carrier == COLL_KERNEL && (t->name_class[id] & CLASS_COMM_HLO))
        p = hlo_mark(name, "-start");
    else if (x->carrier == COLL_CALL && name_split_tf(name, &node, &type))
        return node;
    /* "all-reduce-start.3": the part before the mark is the instruction */
    return p ? (struct bytes){name.p, (size_t)(p - name.p)} : name;
}
