/* SPDX-License-Identifier: Apache-2.0
 * ops: one row per operation name. Times, calls, memory and device time by
 * torch's rules (key_averages), for every format.
 *
 * One pass over the host spans fills groups by direct arrays, no hashing per
 * event: a name's group is found by its string id. Self time is own.h's. Device
 * time is put on the launching op and carried up the tree in one backward pass.
 * A group's totals count a call inside of another one of the same group once,
 * as part of that one; but torch's own tables do not, and are followed. */
#include "analyze/analyze.h"
#include "analyze/cost/op_cost.h"
#include "analyze/ops/hlo_cols.h"
#include "analyze/ops/op_groups.h"
#include "analyze/ops/op_waits.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/own.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/format.h"
#include "model/hlo/hlo.h"
#include "names/name_class.h"
#include "names/op_names.h"
#include <stdlib.h>

static const struct opt ops_opts[] = {
    {.name = "group",
     .type = OPT_TEXT,
     .arg = "LIST",
     .help = "split rows further: shapes, stack, module; a comma list"},
    {.name = "by",
     .type = OPT_CHOICE,
     .arg = "job|rank",
     .dflt = "job",
     .help = "of several ranks: one row for all of them, or one for each"},
    {0},
};

struct ops {
    const struct trace *t;
    struct selection selection;
    struct host_tree tree;
    struct op_groups groups;
    uint32_t *gid; /* by row: its group; kept rows only. INNER: a call
                               of the same group is around it */
    struct own own;
    row_id *open; /* the kept spans around a row, outermost first */
    size_t nopen, cap_open;
    int64_t *launched;      /* by row: ps of the device work that it launched */
    int64_t unattributed;   /* ps of device work with no op */
    uint64_t nunattributed; /* spans */
    int64_t outside_host, outside_device; /* bytes outside every span */
    uint64_t noutside;
    bool device, shapes; /* recorded in some source */
    bool by_device;      /* shares are of device time: there is some */
    bool waits;          /* some row waited for ops of other threads */
    wide whole;          /* what they are shares of, ps */
};

#define INNER (1u << 31)

static struct op_group *group_at(const struct ops *o, row_id r) {
    return &o->groups.v[o->gid[r] & ~INNER];
}

static bool is_inner(const struct ops *o, row_id r) {
    return o->gid[r] & INNER;
}

/* Adds the work of an instruction of XLA, known from its program. */
static void add_hlo_flops(struct ops *o, struct op_group *v, row_id r) {
    const struct hlo_instr *i = v->hlo ? hlo_of_span(o->t, r) : NULL;
    if (i == NULL || i->flops < 0) return;
    v->has_flops = true;
    if (hlo_is_first(o->t, r, i)) sat_inc(&v->flops, i->flops);
}

static void spend(void *ctx, row_id r, int64_t from, int64_t to) {
    struct ops *o = ctx;
    if (select_has(&o->selection, r))
        sat_inc(&group_at(o, r)->host_self, to - from);
}

/* Closes the open spans down to `to`. */
static void close_down(struct ops *o, row_id to) {
    while (o->nopen > 0 && o->open[o->nopen - 1] != to)
        group_at(o, o->open[--o->nopen])->open--;
}

/* Counts calls, total and self time. */
static bool count_track(struct ops *o, uint32_t track) {
    const struct track *tr = &o->t->tracks[track];
    const struct source *src = &o->t->sources[tr->source];
    const int64_t *ts = o->t->spans.ts;
    bool torch = source_is_torchs(src);
    own_begin(&o->own, src->rounding_ps);
    for (row_id r = tr->first; r < tr->end; r++) {
        if (o->tree.rep[r] != r) continue;
        int64_t end = span_end(o->t, r);
        own_until(&o->own, ts[r], spend, o);
        own_cross(&o->own, end);
        if (!own_open(&o->own, r, end)) return false;
        uint32_t g = op_groups_of(&o->groups, &o->tree, r);
        g = op_groups_in_rank(&o->groups, g, tr->source);
        if (g == ROW_NONE || g >= INNER) return false;
        close_down(o, o->tree.up[r]);
        if (!VEC_ROOM(o->open, o->nopen, o->cap_open)) return false;
        o->open[o->nopen++] = r;
        /* torch counts a call inside one of its group in the totals again */
        o->gid[r] = g | (o->groups.v[g].open++ > 0 && !torch ? INNER : 0);
        if (!select_has(&o->selection, r)) continue;
        struct op_group *v = group_at(o, r);
        v->calls++;
        add_hlo_flops(o, v, r);
        sat_inc(&v->host,
                torch ? end - ts[r] : once_add(&v->once, track, ts[r], end));
        v->has_device |= src->has_device;
        v->has_memory |= src->has_memory;
    }
    own_until(&o->own, INT64_MAX, spend, o);
    close_down(o, ROW_NONE);
    return true;
}

static void take_wait(void *ctx, row_id r, int64_t ps) {
    struct ops *o = ctx;
    row_id rep = o->tree.rep[r];
    if (rep == ROW_NONE || !select_has(&o->selection, rep)) return;
    sat_inc(&group_at(o, rep)->host_wait, ps);
    o->waits = true;
}

/* Returns what a group did itself: its own time less what it waited for ops
 * that have rows of their own. */
static int64_t host_work(const struct op_group *v) {
    return v->host_wait < v->host_self ? v->host_self - v->host_wait : 0;
}

/* Counts the spans of a track whose spans begin on one thread and end on
 * another: they overlap, so that only their number and the sum of their times
 * are known. */
static bool count_async(struct ops *o, const struct track *tr) {
    const struct spans *sp = &o->t->spans;
    bool regions = o->tree.regions[tr->source];
    for (row_id r = tr->first; r < tr->end; r++) {
        if (!host_tree_kind(&o->tree, r, regions) ||
            !select_has(&o->selection, r))
            continue;
        uint32_t g = op_groups_async(&o->groups, r);
        g = op_groups_in_rank(&o->groups, g, tr->source);
        if (g == ROW_NONE) return false;
        o->groups.v[g].calls++;
        sat_inc(&o->groups.v[g].host, sp->dur[r]);
    }
    return true;
}

/* Returns the name of the op that a device span belongs to where no host op
 * launched it: XLA writes it on the kernel; on a TPU the span is the op. */
static struct bytes device_op(const struct ops *o, row_id d) {
    const struct trace *t = o->t;
    const struct track *tr = &t->tracks[t->spans.track[d]];
    bool known = tr->device < t->ndevices;
    bool gpu = !known || t->devices[tr->device].kind == DEVICE_GPU;
    bool tpu = known && t->devices[tr->device].kind == DEVICE_TPU;
    if (t->spans.kind[d] != SPAN_KERNEL && !tpu) return (struct bytes){0};
    struct bytes name = kernel_framework_op(t, d);
    if (name.n == 0 && !gpu) name = strs_bytes(&t->strs, t->spans.name[d]);
    return name;
}

/* Charges ops of a TPU, which nest (a loop and its body): own is the time that
 * is not the inner ones', and a loop inside a loop of its name is part of
 * that. */
static bool charge_device_op(struct ops *o, row_id d, struct bytes name,
                             int64_t own) {
    const struct spans *sp = &o->t->spans;
    uint32_t track = sp->track[d];
    uint32_t g = op_groups_device(&o->groups, name, d);
    g = op_groups_in_rank(&o->groups, g, o->t->tracks[track].source);
    if (g == ROW_NONE) return false;
    struct op_group *v = &o->groups.v[g];
    v->calls++;
    add_hlo_flops(o, v, d);
    bool nests = track_nests(o->t, &o->t->tracks[track]);
    sat_inc(&v->device,
            nests ? once_add(&v->once, track, sp->ts[d], span_end(o->t, d))
                  : sp->dur[d]);
    sat_inc(&v->device_self, own);
    v->has_device = true;
    return true;
}

/* Puts a device span's time where it belongs: on the op that launched it; else
 * on the op that it names itself; else nowhere, which is counted. */
static bool charge_span(void *ctx, row_id d, row_id launch, int64_t own) {
    struct ops *o = ctx;
    const struct spans *sp = &o->t->spans;
    row_id op = ROW_NONE;
    if (launch != ROW_NONE) op = host_tree_launcher(&o->tree, launch);
    struct bytes name = {0};
    if (op == ROW_NONE || sp->kind[op] == SPAN_ANNOTATION)
        name = device_op(o, d);
    if (name.n > 0 && select_has(&o->selection, d) &&
        !charge_device_op(o, d, name, own))
        return false;
    if (op != ROW_NONE) {
        sat_inc(&o->launched[op], own);
        if (name.n == 0 && select_has(&o->selection, op))
            sat_inc(&group_at(o, op)->device_self, own);
    } else if (name.n == 0 && select_has(&o->selection, d)) {
        sat_inc(&o->unattributed, own);
        o->nunattributed++;
    }
    return true;
}

static int charge_device(struct ops *o, struct ops_err *e) {
    const struct trace *t = o->t;
    int64_t *dev = vec_zeroed(t->spans.n + 1, sizeof *dev);
    if (!dev) return fail_oom(e);
    o->launched = dev;
    if (!own_each_work(t, charge_span, o)) return fail_oom(e);
    const struct host_tree *h = &o->tree;
    for (size_t i = 0; t->links.n > 0 && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (!host_tree_has(h, (uint32_t)i)) continue;
        /* sums from the leaves up: children stand after their parents */
        for (row_id r = tr->end; r-- > tr->first;) {
            if (dev[r] == 0 || h->rep[r] != r) continue;
            if (select_has(&o->selection, r) && !is_inner(o, r))
                sat_inc(&group_at(o, r)->device, dev[r]);
            if (h->up[r] != ROW_NONE) sat_inc(&dev[h->up[r]], dev[r]);
        }
    }
    free(dev);
    o->launched = NULL;
    return 0;
}

/* ---- memory ---- */

/* Bytes allocated minus bytes freed in any stretch of time, per source: what
 * torch calls an op's memory. Every thread's events count, both ends count. The
 * trace has memory events by allocator, each in time order: here they are
 * merged, run by run, and summed up. */
struct mem_sums {
    size_t n;
    int64_t *ts;            /* n times */
    int64_t *host, *device; /* n + 1 sums: of the events before the i-th */
};

/* Merges neighbouring runs of events until one is left; run r is
 * [at[r], at[r + 1]). Returns where the result stands: v or tmp. */
static row_id *merge_runs(const int64_t *ts, row_id *v, row_id *tmp, size_t *at,
                          size_t runs) {
    while (runs > 1) {
        size_t k = 0;
        for (size_t r = 0; r < runs; r += 2) {
            size_t a = at[r], b = at[r + 1];
            size_t c = r + 1 < runs ? at[r + 2] : b;
            size_t i = a, j = b;
            for (size_t to = a; to < c; to++)
                tmp[to] = i < b && (j == c || ts[v[j]] >= ts[v[i]]) ? v[i++]
                                                                    : v[j++];
            at[k++] = a;
            at[k] = c;
        }
        runs = k;
        row_id *swap = v;
        v = tmp;
        tmp = swap;
    }
    return v;
}

/* Lists the source's events as runs; returns how many runs. */
static size_t collect(const struct trace *t, uint32_t source, row_id *v,
                      size_t *at) {
    const struct lists *l = &t->allocators_of;
    size_t n = 0, runs = 0;
    for (size_t k = l->first[source]; k < l->first[source + 1]; k++) {
        uint32_t a = l->v[k];
        if (t->mem_first[a] == t->mem_first[a + 1]) continue;
        at[runs++] = n;
        for (size_t i = t->mem_first[a]; i < t->mem_first[a + 1]; i++)
            v[n++] = (row_id)i;
    }
    at[runs] = n;
    return runs;
}

static void mem_sums_free(struct mem_sums *m) {
    free(m->ts);
    free(m->host);
    free(m->device);
    *m = (struct mem_sums){0};
}

/* Holds nothing when the source has no event. O(n log k) for k allocators. */
static int mem_sums_init(struct mem_sums *m, const struct trace *t,
                         uint32_t source, struct ops_err *e) {
    const struct lists *l = &t->allocators_of;
    *m = (struct mem_sums){0};
    for (size_t k = l->first[source]; k < l->first[source + 1]; k++)
        m->n += t->mem_first[l->v[k] + 1] - t->mem_first[l->v[k]];
    if (m->n == 0) return 0;
    row_id *v = vec_alloc(2 * m->n, sizeof *v);
    size_t runs = l->first[source + 1] - l->first[source];
    size_t *at = malloc((runs + 3) * sizeof *at);
    m->ts = vec_alloc(m->n, sizeof *m->ts);
    m->host = vec_alloc(m->n + 1, sizeof *m->host);
    m->device = vec_alloc(m->n + 1, sizeof *m->device);
    bool ok = v && at && m->ts && m->host && m->device;
    if (ok) {
        const struct mem_events *mem = &t->mem;
        const row_id *x = merge_runs(mem->ts, v, v + m->n, at,
                                     collect(t, source, v, at));
        m->host[0] = m->device[0] = 0;
        for (size_t i = 0; i < m->n; i++) {
            int64_t bytes = mem->bytes[x[i]];
            bool host = t->allocators[mem->allocator[x[i]]].device == ROW_NONE;
            m->ts[i] = mem->ts[x[i]];
            m->host[i + 1] = sat_add(m->host[i], host ? bytes : 0);
            m->device[i + 1] = sat_add(m->device[i], host ? 0 : bytes);
        }
    }
    free(v);
    free(at);
    if (ok) return 0;
    mem_sums_free(m);
    return fail_oom(e);
}

/* Returns the number of events before ts, given that from of them are; cheap
 * when the answer is near. */
static size_t mem_sums_before(const struct mem_sums *m, size_t from,
                              int64_t ts) {
    size_t step = 1, lo = from, hi = from;
    while (hi < m->n && m->ts[hi] < ts) {
        lo = hi + 1;
        hi = step < m->n - lo ? lo + step : m->n;
        step *= 2;
    }
    return lo + lower_bound(m->ts + lo, hi - lo, ts);
}

/* Charges the memory of each span of a track; cover counts, per event, how many
 * outermost spans have it inside. */
static void charge_memory(struct ops *o, const struct track *tr,
                          const struct mem_sums *m, int32_t *cover) {
    const struct host_tree *h = &o->tree;
    size_t i = 0;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (h->rep[r] != r) continue;
        i = mem_sums_before(m, i, o->t->spans.ts[r]);
        size_t j = mem_sums_before(m, i, span_end(o->t, r) + 1);
        if (i == j) continue;
        int64_t host = sat_sub(m->host[j], m->host[i]);
        int64_t device = sat_sub(m->device[j], m->device[i]);
        if (select_has(&o->selection, r)) {
            struct op_group *g = group_at(o, r);
            if (!is_inner(o, r)) {
                sat_inc(&g->host_bytes, host);
                sat_inc(&g->device_bytes, device);
            }
            sat_inc(&g->host_self_bytes, host);
            sat_inc(&g->device_self_bytes, device);
        }
        row_id p = h->up[r];
        if (p == ROW_NONE) {
            cover[i]++;
            cover[j]--;
        } else if (select_has(&o->selection, p)) {
            sat_dec(&group_at(o, p)->host_self_bytes, host);
            sat_dec(&group_at(o, p)->device_self_bytes, device);
        }
    }
}

/* Bytes that a source's allocations name each op for, by string id. */
struct named_bytes {
    int64_t *host, *device;
};

/* Charges the op's own bytes, once: all nodes of one name share a row. */
static void charge_named(struct ops *o, const struct track *tr,
                         struct named_bytes *b) {
    for (row_id r = tr->first; r < tr->end; r++) {
        str_id name = o->t->spans.name[r];
        if (o->tree.rep[r] != r || !select_has(&o->selection, r)) continue;
        struct op_group *g = group_at(o, r);
        sat_inc(&g->host_bytes, b->host[name]);
        sat_inc(&g->host_self_bytes, b->host[name]);
        sat_inc(&g->device_bytes, b->device[name]);
        sat_inc(&g->device_self_bytes, b->device[name]);
        b->host[name] = b->device[name] = 0;
        g->has_memory = g->host_bytes != 0 || g->device_bytes != 0;
    }
}

/* Charges nodes of StepStats, which says of each allocation which node made it,
 * and whose nodes overlap: the node is charged with what it allocated,
 * temporaries once. Frees come when other nodes run and are no one's. Nodes
 * with no allocation of their own (they reuse an input's buffer) have nothing
 * recorded. */
static void charge_named_memory(struct ops *o, uint32_t source,
                                struct named_bytes *b) {
    const struct trace *t = o->t;
    const struct mem_events *m = &t->mem;
    const struct lists *l = &t->allocators_of;
    size_t k = l->first[source], end = l->first[source + 1];
    /* bytes that no op of the source is named for must not stay for the next */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t x = k; x < end; x++) {
            uint32_t a = l->v[x];
            int64_t *bytes = t->allocators[a].device == ROW_NONE ? b->host
                                                                 : b->device;
            for (size_t i = t->mem_first[a]; i < t->mem_first[a + 1]; i++) {
                if (pass == 1) bytes[m->what[i]] = 0;
                else if (m->bytes[i] > 0)
                    sat_inc(&bytes[m->what[i]], m->bytes[i]);
            }
        }
        const struct lists *of = &t->of_source;
        for (size_t x = of->first[source];
             pass == 0 && x < of->first[source + 1]; x++)
            if (host_tree_has(&o->tree, of->v[x]))
                charge_named(o, &t->tracks[of->v[x]], b);
    }
}

static int charge_source_memory(struct ops *o, uint32_t source,
                                struct ops_err *e) {
    struct mem_sums m;
    TRY(mem_sums_init(&m, o->t, source, e));
    int32_t *cover = calloc(m.n + 1, sizeof *cover);
    if (!cover) {
        mem_sums_free(&m);
        return fail_oom(e);
    }
    const struct lists *l = &o->t->of_source;
    for (size_t k = l->first[source]; m.n > 0 && k < l->first[source + 1]; k++)
        if (host_tree_has(&o->tree, l->v[k]))
            charge_memory(o, &o->t->tracks[l->v[k]], &m, cover);
    int64_t depth = 0; /* spans around the event */
    for (size_t i = 0; o->selection.all && i < m.n; i++) {
        depth += cover[i];
        if (depth > 0) continue;
        o->noutside++;
        sat_inc(&o->outside_host, sat_sub(m.host[i + 1], m.host[i]));
        sat_inc(&o->outside_device, sat_sub(m.device[i + 1], m.device[i]));
    }
    free(cover);
    mem_sums_free(&m);
    return 0;
}

static int charge_all_memory(struct ops *o, struct ops_err *e) {
    const struct trace *t = o->t;
    struct named_bytes b = {0}; /* made for the first that needs it */
    int rc = 0;
    for (uint32_t s = 0; rc == 0 && s < t->nsources; s++) {
        if (!t->sources[s].has_memory) continue;
        if (!t->sources[s].format->allocs_name_ops) {
            rc = charge_source_memory(o, s, e);
            continue;
        }
        if (b.host == NULL) b.host = calloc(t->strs.n + 1, sizeof *b.host);
        if (b.device == NULL)
            b.device = calloc(t->strs.n + 1, sizeof *b.device);
        if (b.host == NULL || b.device == NULL) rc = fail_oom(e);
        else charge_named_memory(o, s, &b);
    }
    free(b.host);
    free(b.device);
    return rc;
}

/* Counts FLOPs: only for names with a formula, and spans that tell theirs, are
 * arguments read. */
static void count_flops(struct ops *o) {
    const struct trace *t = o->t;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (!host_tree_has(&o->tree, (uint32_t)i) ||
            !t->sources[tr->source].has_shapes)
            continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            if (o->tree.rep[r] != r) continue;
            struct op_group *g = group_at(o, r);
            bool told = t->spans.flags[r] & SPAN_COSTED;
            if ((g->rule == 0 && !told) || !select_has(&o->selection, r))
                continue;
            int64_t n = told ? args_int(t, r, "flops", -1)
                             : torch_flops_of(t, r, g->rule);
            if (n < 0) continue;
            sat_inc(&g->flops, n);
            g->has_flops = true;
        }
    }
}

static int ops_gather(struct ops *o, const struct opts *opts,
                      struct ops_err *e) {
    const struct trace *t = o->t;
    TRY(select_init(&o->selection, t, opts, e));
    TRY(host_tree_get(&o->tree, t, e));
    TRY(op_groups_init(&o->groups, t, opts_text(opts, "group"), e));
    if (strcmp(opts_text(opts, "by"), "rank") == 0 &&
        !op_groups_by_rank(&o->groups))
        return fail_oom(e);
    o->gid = vec_alloc(t->spans.n + 1, sizeof *o->gid);
    if (!o->gid) return fail_oom(e);
    for (uint32_t i = 0; i < t->ntracks; i++)
        if (host_tree_has(&o->tree, i) && !count_track(o, i))
            return fail_oom(e);
    for (uint32_t i = 0; i < t->ntracks; i++)
        if (t->tracks[i].kind == TRACK_ASYNC &&
            t->tracks[i].device == ROW_NONE && !count_async(o, &t->tracks[i]))
            return fail_oom(e);
    TRY(op_waits_each(t, &o->tree, take_wait, o, e));
    TRY(charge_device(o, e));
    TRY(charge_all_memory(o, e));
    if (o->shapes) count_flops(o);
    /* shares are of device time where any was launched, else of host time */
    wide device = 0, host = 0;
    for (size_t i = 0; i < o->groups.n; i++) {
        device += o->groups.v[i].device_self;
        host += host_work(&o->groups.v[i]);
    }
    o->by_device = device > 0;
    o->whole = o->by_device ? device : host;
    return 0;
}

static void ops_put_columns(struct result *r, const struct ops *o) {
    unsigned dev = o->by_device ? COL_MAIN : 0;
    unsigned host = o->by_device || o->waits ? 0 : COL_MAIN;
    unsigned work = !o->waits ? COL_DETAIL : o->by_device ? 0 : COL_MAIN;
    bool torch = false;
    for (size_t i = 0; i < o->t->nsources; i++)
        torch |= source_is_torchs(&o->t->sources[i]);
    /* clang-format off */
    const struct column cols[] = {
        {"name", "operation", NULL, "the operation, region or API call",
         COL_TEXT, COL_KEY},
        {"calls", NULL, NULL, "how often it ran", COL_INT, 0},
        {"host_us", "host", "us", "time on the host, callees included",
         COL_TIME, 0},
        {"host_self_us", "host self", "us",
         "time on the host less that of the operations called from it",
         COL_TIME, host},
        {"host_work_us", "host work", "us",
         "host_self_us less the time in which it waited for ops of other "
         "threads, which have rows of their own", COL_TIME, work},
        {"host_mean_us", "host mean", "us", "host time of one call", COL_TIME,
         COL_MEAN | COL_DETAIL},
        {"device_us", "device", "us",
         "time of the device work launched in it, callees included", COL_TIME,
         0},
        {"device_self_us", "device self", "us",
         "time of the device work that it launched itself", COL_TIME, dev},
        {"device_mean_us", "device mean", "us", "device time of one call",
         COL_TIME, COL_MEAN | COL_DETAIL},
        {"host_bytes", "host mem", "bytes",
         "host memory allocated less freed while it ran, on any thread",
         COL_BYTES, COL_DETAIL},
        {"host_self_bytes", "host mem self", "bytes",
         "the same less that of the operations called from it", COL_BYTES,
         COL_DETAIL},
        {"device_bytes", "device mem", "bytes",
         "device memory allocated less freed while it ran, on any thread",
         COL_BYTES, COL_SIZE | COL_DETAIL},
        {"device_self_bytes", "device mem self", "bytes",
         "the same less that of the operations called from it", COL_BYTES,
         COL_DETAIL},
        {"flops", torch ? "torch's flops" : NULL, NULL,
         "floating-point operations, from XLA's program or, as torch's own "
         "table has them, from the shapes of its inputs: some ops, no backward "
         "pass; `roofline` and `tree` count all", COL_INT, COL_DETAIL},
        {"share_pct", "share", "%",
         "of the device time that ops launched; with no device, of "
         "host_work_us of all rows", COL_PERCENT, COL_BAR},
        {"kind", NULL, NULL, "op, annotation, api, region; device: an op that "
         "is known from its device work alone; function: a call of a "
         "tf.function, whose ops have rows of their own: below the ops, "
         "whatever it takes; async: begun and ended by any "
         "thread, so that it has no self time; memory: outside every row",
         COL_TEXT, COL_LESS},
        {"type", NULL, NULL, "the operation's type, where the name is of one "
         "node of a graph", COL_TEXT, 0},
    };
    /* clang-format on */
    result_cols(r, cols, COUNT(cols));
    hlo_cols(r, o->t->hlo != NULL ? 0 : COL_DETAIL);
    static const struct column by[] = {
        /* in the order of enum group_by */
        {"shapes", NULL, NULL, "shapes of its inputs", COL_TEXT, COL_ASKED},
        {"stack", NULL, NULL, "Python frames around it, innermost first",
         COL_TEXT, COL_SYMBOL | COL_ASKED},
        {"module", NULL, NULL, "innermost module that called it", COL_TEXT,
         COL_ASKED},
    };
    for (size_t i = 0; i < COUNT(by); i++)
        if (o->groups.by >> i & 1) result_col(r, by[i]);
    if (o->groups.rank != NULL)
        result_col(r, (struct column){"host", "rank", NULL, "the host or rank",
                                      COL_TEXT, COL_ASKED});
}

static int64_t mean(int64_t sum, int64_t n) {
    if (n == 0) return 0;
    return sat_add(sum, sum < 0 ? -n / 2 : n / 2) / n;
}

/* Puts name and type: a TensorFlow op is "name:Type", a step marker
 * "Prefix#N". */
static void put_name(struct result *r, const struct ops *o,
                     const struct op_group *v, struct bytes *type) {
    bool own = v->kind == SPAN_KERNEL;
    const struct strs *in = own ? &o->groups.texts : &o->t->strs;
    struct bytes full = strs_bytes(in, v->key), name = full;
    *type = (struct bytes){0};
    size_t n = own ? 0 : name_group_prefix(full);
    char buf[256];
    if (n > 0 && n + 1 < sizeof buf) {
        memcpy(buf, full.p, n);
        buf[n] = '*';
        name = (struct bytes){(const uint8_t *)buf, n + 1};
    } else if (v->kind == SPAN_OP) {
        struct bytes skip;
        name_split_tf(full, &name, &skip);
        *type = name_op_type(full);
    }
    cell_str(r, "name", name);
}

static const char *row_kind(int kind) {
    switch (kind) {
    case SPAN_OP: return "op";
    case SPAN_ANNOTATION: return "annotation";
    case SPAN_API: return "api";
    case SPAN_OVERHEAD: return "overhead";
    case SPAN_KERNEL: return "device";
    default: return "region";
    }
}

static void ops_put_row(struct result *r, const struct ops *o,
                        const struct op_group *v) {
    struct bytes type;
    bool dev = v->has_device, mem = v->has_memory;
    bool host = v->kind != SPAN_KERNEL;
    result_row(r);
    put_name(r, o, v, &type);
    cell_int(r, "calls", v->calls);
    if (host) {
        cell_int(r, "host_us", v->host);
        if (!v->async) cell_int(r, "host_self_us", v->host_self);
        if (!v->async) cell_int(r, "host_work_us", host_work(v));
        cell_int(r, "host_mean_us", mean(v->host, v->calls));
    }
    if (dev) {
        cell_int(r, "device_us", v->device);
        cell_int(r, "device_self_us", v->device_self);
        cell_int(r, "device_mean_us", mean(v->device, v->calls));
    }
    if (mem) {
        cell_int(r, "host_bytes", v->host_bytes);
        cell_int(r, "host_self_bytes", v->host_self_bytes);
    }
    if (mem && dev) {
        cell_int(r, "device_bytes", v->device_bytes);
        cell_int(r, "device_self_bytes", v->device_self_bytes);
    }
    if (v->has_flops) cell_int(r, "flops", v->flops);
    int64_t part = o->by_device ? v->device_self : host_work(v);
    bool has_part = o->whole > 0 && !v->async && (o->by_device ? dev : host);
    if (has_part)
        cell_float(r, "share_pct", 100.0 * (double)part / (double)o->whole);
    cell_text(r, "kind",
              v->async      ? "async"
              : v->function ? "function"
                            : row_kind(v->kind));
    if (type.n > 0) cell_str(r, "type", type);
    hlo_cells(r, o->t, v->hlo, op_groups_text(&o->groups, v->program));
    const struct op_groups *g = &o->groups;
    if (g->by & GROUP_SHAPES)
        cell_text(r, "shapes", op_groups_text(g, v->shapes));
    if (g->by & GROUP_STACK) cell_text(r, "stack", op_groups_text(g, v->stack));
    if (g->by & GROUP_MODULE)
        cell_text(r, "module", op_groups_text(g, v->module));
    if (v->place > 0) cell_text(r, "host", label_source(r, o->t, v->place - 1));
}

static int by_host_work(const void *a, const void *b) {
    const struct op_group *x = a, *y = b;
    if (host_work(x) != host_work(y))
        return host_work(x) < host_work(y) ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The order of a profile with functions: they come last. */
static int ops_first(const void *a, const void *b) {
    const struct op_group *x = a, *y = b;
    if (x->function != y->function) return x->function ? 1 : -1;
    if (x->device_self != y->device_self)
        return x->device_self < y->device_self ? 1 : -1;
    return by_host_work(a, b);
}

/* Says what functions took that no op did. */
static void say_functions(struct result *r, const struct ops *o) {
    const struct op_group *most = NULL;
    wide work = 0;
    uint64_t n = 0;
    for (size_t i = 0; i < o->groups.n; i++) {
        const struct op_group *v = &o->groups.v[i];
        if (!v->function || v->calls == 0) continue;
        if (most == NULL) most = v;
        work += o->by_device ? v->device_self : host_work(v);
        n++;
    }
    if (most == NULL || o->whole <= 0) return;
    char time[48], who[160];
    const char *name = strs_text(&o->t->strs, most->key);
    human_time(wide_narrow(work), time, sizeof time);
    if (n == 1) cut_fmt(who, sizeof who, "%.*s", CUT(100, name));
    else
        cut_fmt(who, sizeof who, "%llu rows (%.*s, ...)", (unsigned long long)n,
                CUT(100, name));
    result_remark_n(r, n,
                    "%s [is a function|are functions] of the program, no "
                    "op[|s]: %s (%.1f %%) beside the ops that [it runs|they "
                    "run]. [It stands|They stand] below these; --sort "
                    "share_pct ranks all rows.",
                    who, time, 100.0 * (double)work / (double)o->whole);
}

/* Orders the groups, whose numbers rows no longer need then: rows that launched
 * nothing are equal in the main column and stay in this order. */
static void ops_put_rows(struct result *r, struct ops *o) {
    for (size_t i = 0; i < o->groups.n; i++)
        r->in_order |= o->groups.v[i].function;
    if (o->groups.n > 0)
        qsort(o->groups.v, o->groups.n, sizeof *o->groups.v,
              r->in_order ? ops_first : by_host_work);
    for (size_t i = 0; i < o->groups.n; i++)
        if (o->groups.v[i].calls > 0) ops_put_row(r, o, &o->groups.v[i]);
    if (o->noutside > 0) { /* memory events in no span, as torch shows them */
        result_row(r);
        cell_text(r, "name", "[memory]");
        cell_int(r, "calls", (int64_t)o->noutside);
        cell_int(r, "host_bytes", o->outside_host);
        cell_int(r, "host_self_bytes", o->outside_host);
        if (o->device) {
            cell_int(r, "device_bytes", o->outside_device);
            cell_int(r, "device_self_bytes", o->outside_device);
        }
        cell_text(r, "kind", "memory");
    }
    if (o->t->nprocesses > 1 && o->groups.rank == NULL)
        result_remark(
            r, "Rows are of all %zu processes; --by rank shows each rank.",
            o->t->nprocesses);
    say_functions(r, o);
    if (o->nunattributed > 0)
        result_remark_n(
            r, o->nunattributed,
            "%llu device span[|s], %.3f us, [was|were] launched by no "
            "operation of this profile: [its|their] time is in no row",
            (unsigned long long)o->nunattributed,
            (double)o->unattributed / PS_PER_US);
}

static int ops_run(const struct trace *t, const struct opts *opts,
                   struct result *r, struct ops_err *e) {
    struct ops o = {.t = t};
    result_init(r, "ops", "Operations");
    result_from_trace(r, t);
    o.device = missing_too(r, t, MISSING_DEVICE);
    missing_too(r, t, MISSING_MEMORY);
    /* programs of XLA have the shapes of all that they run */
    if (t->hlo == NULL) o.shapes = missing_too(r, t, MISSING_SHAPES);
    for (size_t i = 0; i < t->nsources; i++)
        o.shapes |= t->sources[i].has_shapes;
    int rc = ops_gather(&o, opts, e);
    if (rc == 0) {
        ops_put_columns(r, &o);
        ops_put_rows(r, &o);
        if (o.groups.by & (GROUP_STACK | GROUP_MODULE))
            missing_say(r, t, MISSING_STACKS);
        rc = result_done(r, e);
    }
    select_free(&o.selection);
    op_groups_free(&o.groups);
    free(o.gid);
    free(o.own.v);
    free(o.open);
    free(o.launched);
    return rc;
}

const struct analysis analysis_ops = {
    .name = "ops",
    .help = "time, calls, memory and FLOPs of each operation",
    .row = "one framework operation name",
    .opts = ops_opts,
    .run = ops_run,
};
