/* SPDX-License-Identifier: Apache-2.0
 * launch: what it costs to put work on a device, by op or by driver call: the
 * time in the calls, the delay until the work starts, and how much the stream
 * still had to do.
 *
 * A launch is a call whose device work was recorded. A CUDA graph is one
 * launch of many kernels: it has one delay (to its first node) and one place
 * in the queue. The queue of a stream is what HTA counts: launched, and not
 * started yet; a launch sees those before it. */
#include "analyze/analyze.h"

#include "analyze/shared/host_tree.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>

static const struct opt launch_opts[] = {
    {.name = "by",
     .type = OPT_CHOICE,
     .arg = "op|call",
     .dflt = "op",
     .help = "one row per operation, or per driver call"},
    {0},
};

struct call {
    row_id host;
    row_id first;       /* the piece of work that started first */
    int64_t start, end; /* of its work: first start, last end */
    int64_t kernels, graph_kernels, shorter;
    uint32_t group; /* ROW_NONE: not in scope */
    uint32_t queue; /* launched on its stream before, not started */
    bool starved;   /* all that was launched before had ended */
};

struct group {
    str_id name; /* in texts */
    int64_t launches, time;
    int64_t kernels, graph_kernels, shorter, starved;
    int64_t delay_p50, delay_p95, queue_p50, queue_min, queue_max;
};

struct launches {
    const struct trace *t;
    struct selection selection;
    struct host_tree tree;
    struct call *v;
    size_t n, cap;
    struct group *groups;
    size_t ngroups, cap_groups;
    uint32_t *of_name; /* by str_id of the trace: group + 1; 0: none */
    struct strs texts;
    struct map of_text; /* name in texts -> group */
    struct sort_key *keys;
    int64_t behind; /* launches whose work began before the call did */
    bool by_call;
};

/* Returns one launching call and its work, links [first, end) of by_host. */
static struct call call_of(const struct trace *t, row_id host, size_t first,
                           size_t end) {
    struct call c = {.host = host,
                     .first = ROW_NONE,
                     .start = INT64_MAX,
                     .end = INT64_MIN,
                     .group = ROW_NONE};
    int64_t pieces = 0;
    for (size_t i = first; i < end; i++) {
        row_id r = t->links.device[t->links.by_host[i]];
        if (!span_is_device_work(t, r)) continue;
        pieces++;
        if (t->spans.ts[r] < c.start) {
            c.start = t->spans.ts[r];
            c.first = r;
        }
        if (span_end(t, r) > c.end) c.end = span_end(t, r);
    }
    for (size_t i = first; i < end; i++) {
        row_id r = t->links.device[t->links.by_host[i]];
        if (t->spans.kind[r] != SPAN_KERNEL || !span_is_device_work(t, r))
            continue;
        c.kernels++;
        /* the kernels of a graph share their launch */
        c.shorter += t->spans.dur[r] < t->spans.dur[host] / pieces;
    }
    /* no other call starts several kernels, however the runtime spells it */
    if ((span_class(t, host) & CLASS_GRAPH) || c.kernels > 1)
        c.graph_kernels = c.kernels;
    return c;
}

static bool take_calls(struct launches *l) {
    const struct trace *t = l->t;
    for (size_t i = 0, end; i < t->links.n; i = end) {
        row_id host = t->links.host[t->links.by_host[i]];
        for (end = i;
             end < t->links.n && t->links.host[t->links.by_host[end]] == host;)
            end++;
        struct call c = call_of(t, host, i, end);
        if (c.first == ROW_NONE) continue;
        if (!VEC_ROOM(l->v, l->n, l->cap)) return false;
        l->v[l->n++] = c;
    }
    l->keys = malloc((2 * l->n + 1) * sizeof *l->keys);
    return l->keys != NULL;
}

static uint32_t group_of_text(struct launches *l, str_id text) {
    uint32_t *at = text == STR_NONE ? NULL : map_at(&l->of_text, text);
    if (at == NULL) return ROW_NONE;
    if (*at == MAP_NONE) {
        if (!VEC_ROOM(l->groups, l->ngroups, l->cap_groups)) return ROW_NONE;
        l->groups[l->ngroups] = (struct group){.name = text};
        *at = (uint32_t)l->ngroups++;
    }
    return *at;
}

/* Returns the group. By op it is the op around the call, else the one that the
 * source wrote on the work, else the region around the call, else the call. */
static uint32_t group_of(struct launches *l, const struct call *c) {
    const struct trace *t = l->t;
    row_id op = c->host;
    if (!l->by_call) {
        op = host_tree_launcher_name(&l->tree, c->host);
        struct bytes b = {0};
        if (op == ROW_NONE || t->spans.kind[op] == SPAN_ANNOTATION)
            b = kernel_hlo_op(t, c->first);
        if (b.n > 0) return group_of_text(l, strs_intern(&l->texts, b));
        if (op == ROW_NONE || span_is_step_mark(t, op)) op = c->host;
    }
    uint32_t *known = &l->of_name[t->spans.name[op]];
    if (*known != 0) return *known - 1;
    struct bytes name = strs_bytes(&t->strs, t->spans.name[op]);
    uint32_t g = group_of_text(l, strs_intern(&l->texts, name));
    if (g != ROW_NONE) *known = g + 1;
    return g;
}

/* Finds how many launches each launch finds waiting. Calls by stream and time
 * of launch, and starts by stream and time, are walked side by side: a launch
 * sees those before it less those started. */
static bool find_queues(struct launches *l) {
    const struct spans *s = &l->t->spans;
    struct sort_key *calls = l->keys, *starts = l->keys + l->n;
    for (size_t i = 0; i < l->n; i++) {
        const struct call *c = &l->v[i];
        uint64_t stream = s->track[c->first];
        calls[i] = (struct sort_key){stream, sort_signed(s->ts[c->host]),
                                     (uint32_t)i};
        starts[i] = (struct sort_key){stream, sort_signed(c->start),
                                      (uint32_t)i};
    }
    if (!sort_keys(calls, l->n) || !sort_keys(starts, l->n)) return false;
    int64_t last = INT64_MIN; /* end of all work launched so far */
    for (size_t i = 0, k = 0, first = 0; i < l->n; i++) {
        struct call *c = &l->v[calls[i].row];
        if (i > 0 && calls[i].hi != calls[i - 1].hi) {
            first = k = i; /* a stream has as many starts as calls */
            last = INT64_MIN;
        }
        while (k < l->n && starts[k].hi == calls[i].hi &&
               starts[k].lo <= calls[i].lo)
            k++;
        size_t before = i - first, started = k - first;
        c->queue = started < before ? (uint32_t)(before - started) : 0;
        c->starved = last <= s->ts[c->host];
        if (c->end > last) last = c->end;
    }
    return true;
}

/* Returns the value of rank ceil(n * pct / 100) of n sorted keys, the first for
 * 0. */
static int64_t rank_of(const struct sort_key *k, size_t n, size_t pct) {
    assert(n > 0 && pct <= 100);
    size_t rank = n / 100 * pct + (n % 100 * pct + 99) / 100;
    return (int64_t)sort_signed((int64_t)k[rank > 0 ? rank - 1 : 0].lo);
}

/* Sorts the calls in scope by group and one figure, then by the other: each
 * group reads its ranks. */
static bool find_ranks(struct launches *l) {
    for (int queue = 0; queue < 2; queue++) {
        size_t n = 0;
        for (size_t i = 0; i < l->n; i++) {
            const struct call *c = &l->v[i];
            if (c->group == ROW_NONE) continue;
            int64_t v = queue ? (int64_t)c->queue
                              : c->start - l->t->spans.ts[c->host];
            l->keys[n++] = (struct sort_key){c->group, sort_signed(v),
                                             (uint32_t)i};
        }
        if (!sort_keys(l->keys, n)) return false;
        for (size_t i = 0; i < n;) {
            struct group *g = &l->groups[l->keys[i].hi];
            size_t m = (size_t)g->launches;
            assert(m > 0 && m <= n - i);
            if (queue) {
                g->queue_p50 = rank_of(&l->keys[i], m, 50);
                g->queue_min = rank_of(&l->keys[i], m, 0);
                g->queue_max = rank_of(&l->keys[i], m, 100);
            } else {
                g->delay_p50 = rank_of(&l->keys[i], m, 50);
                g->delay_p95 = rank_of(&l->keys[i], m, 95);
            }
            i += m;
        }
    }
    return true;
}

static void launch_columns(struct result *r, bool by_call) {
    const struct column cols[] = {
        {"op", by_call ? "call" : NULL, NULL,
         by_call ? "The driver call that launched."
                 : "The operation that launched; the region or the driver "
                   "call where there is none.",
         COL_TEXT, COL_KEY | COL_SYMBOL},
        {"launches", NULL, NULL,
         "Calls that put a kernel, copy, fill or graph on a device.", COL_INT,
         0},
        {"launch_us", "in calls", "us", "Host time in these calls.", COL_TIME,
         COL_MAIN},
        {"share_pct", "share", "%", "Part of the time in all launching calls.",
         COL_PERCENT, COL_DETAIL},
        {"delay_p50_us", "delay", "us",
         "From the start of the call to the start of its work on the device; "
         "half of the launches had at most this. Less than 0 where the clocks "
         "of host and device differ.",
         COL_TIME, 0},
        {"delay_p95_us", "p95", "us", "The same for 95 of 100 launches.",
         COL_TIME, 0},
        {"queue_p50", "queue", NULL,
         "Launches that waited in the stream, not started yet, when the call "
         "began; half of the calls found at most this. 0 often means that the "
         "device waits for the host.",
         COL_INT, 0},
        {"queue_min", "least", NULL, "The least that a call found waiting.",
         COL_INT, COL_DETAIL},
        {"queue_max", "most", NULL,
         "The most that a call found waiting: a full queue makes calls wait.",
         COL_INT, COL_DETAIL},
        {"starved", NULL, NULL,
         "Launches that found their stream with nothing left to do.", COL_INT,
         0},
        {"kernels", NULL, NULL, "Kernels that these launches started.", COL_INT,
         COL_DETAIL},
        {"short_kernels", "short", NULL,
         "Kernels that ran for less time than their launching call took (in a "
         "graph: than their share of it).",
         COL_INT, 0},
        {"graph_kernels", "in graphs", NULL,
         "Kernels that were nodes of a graph: one launch starts all of them.",
         COL_INT, 0},
    };
    result_cols(r, cols, COUNT(cols));
}

static void launch_row(struct result *r, const struct launches *l,
                       const struct group *g, wide whole) {
    result_row(r);
    cell_text(r, "op", strs_text(&l->texts, g->name));
    cell_int(r, "launches", g->launches);
    cell_int(r, "launch_us", g->time);
    if (whole > 0)
        cell_float(r, "share_pct", 100.0 * (double)g->time / (double)whole);
    cell_int(r, "delay_p50_us", g->delay_p50);
    cell_int(r, "delay_p95_us", g->delay_p95);
    cell_int(r, "queue_p50", g->queue_p50);
    cell_int(r, "queue_min", g->queue_min);
    cell_int(r, "queue_max", g->queue_max);
    cell_int(r, "starved", g->starved);
    cell_int(r, "kernels", g->kernels);
    cell_int(r, "short_kernels", g->shorter);
    cell_int(r, "graph_kernels", g->graph_kernels);
}

static void add_remarks(struct result *r, const struct launches *l,
                        const struct group *all) {
    if (all->launches == 0) {
        if (l->n == 0 && l->t->ndevices > 0)
            result_missing(r, "launches",
                           "no device work is linked to the "
                           "call that launched it",
                           missing_own(l->t)
                               ? "give ops_device_span() the number that "
                                 "ops_correlation() gave in the launching scope"
                               : "record driver calls and device activity "
                                 "together");
        return;
    }
    result_remark(r,
                  "%lld launch%s started %lld kernel%s; %lld launch%s "
                  "(%.0f %%) found %s stream empty, %lld kernel%s (%.0f %%) "
                  "ran shorter than %s launch.",
                  (long long)all->launches, all->launches == 1 ? "" : "es",
                  (long long)all->kernels, all->kernels == 1 ? "" : "s",
                  (long long)all->starved, all->starved == 1 ? "" : "es",
                  100.0 * (double)all->starved / (double)all->launches,
                  all->starved == 1 ? "its" : "their", (long long)all->shorter,
                  all->shorter == 1 ? "" : "s",
                  all->kernels > 0
                      ? 100.0 * (double)all->shorter / (double)all->kernels
                      : 0.0,
                  all->shorter == 1 ? "its" : "their");
    if (l->behind > 0)
        result_remark_n(
            r, (uint64_t)l->behind,
            "%lld launch[|es] began after [its|their] work did: the "
            "clocks of host and device differ, and delays with "
            "them.",
            (long long)l->behind);
}

static void launch_rows(struct result *r, const struct launches *l) {
    struct group all = {0};
    wide time = 0;
    for (size_t i = 0; i < l->ngroups; i++) {
        const struct group *g = &l->groups[i];
        all.launches += g->launches;
        time += g->time;
        all.kernels += g->kernels;
        all.shorter += g->shorter;
        all.starved += g->starved;
    }
    for (size_t i = 0; i < l->ngroups; i++)
        if (l->groups[i].launches > 0) launch_row(r, l, &l->groups[i], time);
    add_remarks(r, l, &all);
}

static int launch_gather(struct launches *l, const struct opts *o,
                         struct ops_err *e) {
    l->by_call = strcmp(opts_text(o, "by"), "call") == 0;
    l->of_name = calloc(l->t->strs.n + 1, sizeof *l->of_name);
    if (!l->of_name || !strs_init(&l->texts)) return fail_oom(e);
    TRY(select_init(&l->selection, l->t, o, e));
    TRY(host_tree_get(&l->tree, l->t, e));
    if (!take_calls(l) || !find_queues(l)) return fail_oom(e);
    for (size_t i = 0; i < l->n; i++) {
        struct call *c = &l->v[i];
        if (!select_has(&l->selection, c->host)) continue;
        c->group = group_of(l, c);
        if (c->group == ROW_NONE) return fail_oom(e);
        struct group *g = &l->groups[c->group];
        g->launches++;
        sat_inc(&g->time, l->t->spans.dur[c->host]);
        g->kernels += c->kernels;
        g->graph_kernels += c->graph_kernels;
        g->shorter += c->shorter;
        g->starved += c->starved;
        l->behind += c->start < l->t->spans.ts[c->host];
    }
    return find_ranks(l) ? 0 : fail_oom(e);
}

static int launch_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct launches l = {.t = t};
    result_init(r, "launch", "Launches: what it costs to start device work");
    result_from_trace(r, t);
    missing_say(r, t, MISSING_DEVICE);
    int rc = launch_gather(&l, o, e);
    launch_columns(r, l.by_call);
    if (rc == 0) launch_rows(r, &l);
    if (rc == 0) rc = result_done(r, e);
    select_free(&l.selection);
    strs_free(&l.texts);
    map_free(&l.of_text);
    free(l.v);
    free(l.groups);
    free(l.of_name);
    free(l.keys);
    return rc;
}

const struct analysis analysis_launch = {
    .name = "launch",
    .help = "what launches cost: calls, delay to the device, queue depth",
    .row = "one launching operation or call",
    .opts = launch_opts,
    .run = launch_run,
};
