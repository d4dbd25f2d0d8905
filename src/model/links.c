/* SPDX-License-Identifier: Apache-2.0
 * Launch links: API call -> device spans, by (source, correlation id). One
 * call may have many device spans (a CUDA graph launch has them all).
 *
 * Ids are mostly counters, so that a table indexed by id joins both sides in
 * one pass each. Where they are not, or a call's id comes twice, both sides
 * are sorted and merged. */
#include "model/seal.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <stdlib.h>

/* Adds a pair of rows to two columns of *n rows. Returns false if out of
 * memory. */
static bool add_pair(row_id **a, row_id **b, size_t *n, size_t *cap,
                     row_id in_a, row_id in_b) {
    if (*n == *cap) {
        size_t more = vec_next_cap(*cap, *n + 1);
        if (!vec_resize(a, more, sizeof **a) ||
            !vec_resize(b, more, sizeof **b))
            return false;
        *cap = more;
    }
    (*a)[*n] = in_a;
    (*b)[(*n)++] = in_b;
    return true;
}

static bool add_link(struct links *l, row_id host, row_id device) {
    return add_pair(&l->host, &l->device, &l->n, &l->cap, host, device);
}

/* Sorts the pairs of two columns by a, then b; pairs in order are not moved.
 * Returns false if out of memory. */
static bool order_pairs(row_id *a, row_id *b, size_t n) {
    size_t i = 1;
    while (i < n && (a[i - 1] < a[i] || (a[i - 1] == a[i] && b[i - 1] <= b[i])))
        i++;
    if (i >= n) return true;
    uint64_t *v = vec_alloc(n, sizeof *v);
    if (v == NULL) return false;
    for (i = 0; i < n; i++) v[i] = (uint64_t)a[i] << 32 | b[i];
    bool ok = sort_numbers(v, n);
    for (i = 0; ok && i < n; i++) {
        a[i] = (row_id)(v[i] >> 32);
        b[i] = (row_id)v[i];
    }
    free(v);
    return ok;
}

/* Counts a launch or copy call that has no device work. */
static void note_unused(struct trace *t, uint32_t source, row_id row) {
    uint16_t c = span_class(t, row);
    if ((c & (CLASS_LAUNCH | CLASS_COPY)) && t->sources[source].has_device)
        trace_note(t, NOTE_LAUNCH_WITHOUT_KERNEL, 1);
}

/* ---- by table ---- */

/* The calls of all sources: row = rows[base[source] + id - least[source]]. */
struct table {
    uint64_t *least, *most; /* ids of each source's calls */
    size_t *base;
    row_id *rows; /* ROW_NONE: no such call, or already linked */
    size_t n;
};

/* Lays the table out; *dense tells whether that is worth it. */
static bool size_table(const struct trace *t, struct table *tb, bool *dense) {
    const struct half_links *h = &t->host_halves;
    size_t n = t->nsources;
    tb->least = malloc((n + 1) * sizeof *tb->least);
    tb->most = malloc((n + 1) * sizeof *tb->most);
    tb->base = malloc((n + 1) * sizeof *tb->base);
    if (!tb->least || !tb->most || !tb->base) return false;
    for (size_t i = 0; i < n; i++) {
        tb->least[i] = UINT64_MAX;
        tb->most[i] = 0;
    }
    for (size_t i = 0; i < h->n; i++) {
        uint32_t s = h->v[i].source;
        if (h->v[i].key < tb->least[s]) tb->least[s] = h->v[i].key;
        if (h->v[i].key > tb->most[s]) tb->most[s] = h->v[i].key;
    }
    size_t limit = 16 * (h->n + t->device_halves.n) + 4096;
    for (size_t i = 0; i < n; i++) {
        uint64_t range = tb->least[i] <= tb->most[i]
                             ? tb->most[i] - tb->least[i]
                             : 0;
        tb->base[i] = tb->n;
        *dense = range < limit && tb->n + range + 1 < limit;
        if (!*dense) return true;
        tb->n += (size_t)range + 1;
    }
    return true;
}

/* Returns where the call of that id stands, or NULL. */
static row_id *slot(const struct table *tb, uint32_t source, uint64_t id) {
    if (id < tb->least[source] || id > tb->most[source]) return NULL;
    return &tb->rows[tb->base[source] + (size_t)(id - tb->least[source])];
}

/* Fills the table; *once tells whether no id came twice. */
static bool fill_table(const struct trace *t, struct table *tb, bool *once) {
    const struct half_links *h = &t->host_halves;
    tb->rows = vec_alloc(tb->n, sizeof *tb->rows);
    if (tb->rows == NULL) return false;
    memset(tb->rows, 0xff, tb->n * sizeof *tb->rows); /* all ROW_NONE */
    *once = true;
    for (size_t i = 0; *once && i < h->n; i++) {
        row_id *at = slot(tb, h->v[i].source, h->v[i].key);
        assert(at != NULL && at < tb->rows + tb->n);
        *once = *at == ROW_NONE;
        *at = h->v[i].row;
    }
    return true;
}

/* Joins in one pass over the device's side, and one for calls that nothing
 * used. */
static bool join_table(struct trace *t, const struct table *tb) {
    const struct half_links *h = &t->host_halves, *d = &t->device_halves;
    if (!vec_resize(&t->links.host, d->n, sizeof *t->links.host) ||
        !vec_resize(&t->links.device, d->n, sizeof *t->links.device))
        return false;
    t->links.cap = d->n;
    for (size_t i = 0; i < d->n; i++) {
        const row_id *at = slot(tb, d->v[i].source, d->v[i].key);
        if (at && *at != ROW_NONE && !add_link(&t->links, *at, d->v[i].row))
            return false;
    }
    for (size_t i = 0; i < d->n; i++) {
        row_id *at = slot(tb, d->v[i].source, d->v[i].key);
        if (at) *at = ROW_NONE;
    }
    for (size_t i = 0; i < h->n; i++)
        if (*slot(tb, h->v[i].source, h->v[i].key) != ROW_NONE)
            note_unused(t, h->v[i].source, h->v[i].row);
    return true;
}

/* ---- by sorting ---- */

/* Returns the halves as keys sorted by (source, id). */
static struct sort_key *sorted_halves(const struct half_links *h) {
    struct sort_key *v = vec_alloc(h->n + 1, sizeof *v);
    if (v == NULL) return NULL;
    for (size_t i = 0; i < h->n; i++)
        v[i] = (struct sort_key){h->v[i].source, h->v[i].key, h->v[i].row};
    if (sort_keys(v, h->n)) return v;
    free(v);
    return NULL;
}

static int order(const struct sort_key *a, const struct sort_key *b) {
    if (a->hi != b->hi) return a->hi < b->hi ? -1 : 1;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

/* Puts the calls with one id in the order of their starts, which become their
 * keys; of several with one start the first row, the outermost, stays. *n
 * becomes how many are left. Returns false if out of memory. */
static bool order_calls(const struct trace *t, struct sort_key *calls,
                        size_t *n) {
    for (size_t i = 0; i < *n; i++) {
        row_id r = calls[i].row;
        calls[i] = (struct sort_key){sort_signed(t->spans.ts[r]), r, r};
    }
    if (!sort_keys(calls, *n)) return false;
    size_t k = 0;
    for (size_t i = 0; i < *n; i++)
        if (k == 0 || calls[i].hi != calls[k - 1].hi) calls[k++] = calls[i];
    *n = k;
    return true;
}

/* Walks both sorted sides once. Of the calls with one id, the one that launched
 * a device span is the last that began before it (an id may be used again, or
 * be shared by a runtime call and the driver call inside it); if none did, the
 * first. */
static bool join_sorted(struct trace *t, struct sort_key *host,
                        const struct sort_key *dev) {
    size_t nh = t->host_halves.n, nd = t->device_halves.n, i = 0, j = 0;
    while (i < nh) {
        struct sort_key id = host[i];
        size_t same = i + 1;
        while (same < nh && order(&host[same], &id) == 0) same++;
        while (j < nd && order(&dev[j], &id) < 0) j++;
        if (j >= nd || order(&dev[j], &id) != 0) {
            for (size_t k = i; k < same; k++)
                note_unused(t, (uint32_t)host[k].hi, host[k].row);
            i = same;
            continue;
        }
        size_t calls = same - i;
        if (!order_calls(t, host + i, &calls)) return false;
        assert(calls > 0);
        for (; j < nd && order(&dev[j], &id) == 0; j++) {
            uint64_t at = sort_signed(t->spans.ts[dev[j].row]);
            size_t k;
            BOUND(k, i, i + calls, host[k].hi <= at);
            row_id call = host[k > i ? k - 1 : i].row;
            if (!add_link(&t->links, call, dev[j].row)) return false;
        }
        i = same;
    }
    return true;
}

static bool join_by_sorting(struct trace *t) {
    struct sort_key *host = sorted_halves(&t->host_halves);
    struct sort_key *dev = sorted_halves(&t->device_halves);
    bool ok = host && dev && join_sorted(t, host, dev);
    free(host);
    free(dev);
    return ok;
}

/* ---- both ---- */

/* Leaves each device span one launch: of one that names several ids, or one id
 * more than once, the first call counts. Else its time would count for each. */
static void keep_one_each(struct links *l) {
    size_t k = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (k > 0 && l->device[i] == l->device[k - 1]) continue;
        l->device[k] = l->device[i];
        l->host[k++] = l->host[i];
    }
    l->n = k;
}

/* Makes the second order: link numbers by host row, then device row. */
static bool order_by_host(struct links *l) {
    l->by_host = vec_alloc(l->n + 1, sizeof *l->by_host);
    if (l->by_host == NULL) return false;
    bool sorted = true;
    for (size_t i = 0; i < l->n; i++) {
        l->by_host[i] = (uint32_t)i;
        sorted &= i == 0 || l->host[i - 1] <= l->host[i];
    }
    if (sorted) return true;
    uint64_t *v = vec_alloc(l->n, sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < l->n; i++) v[i] = (uint64_t)l->host[i] << 32 | i;
    bool ok = sort_numbers(v, l->n);
    for (size_t i = 0; ok && i < l->n; i++) l->by_host[i] = (uint32_t)v[i];
    free(v);
    return ok;
}

/* Counts GPU work with no launch; other devices are not launched by calls. */
static void note_orphans(struct trace *t) {
    for (size_t k = 0, l = 0; k < t->ntracks; k++) {
        const struct track *tr = &t->tracks[k];
        if (tr->kind != TRACK_STREAM || tr->device == ROW_NONE ||
            t->devices[tr->device].kind != DEVICE_GPU)
            continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            while (l < t->links.n && t->links.device[l] < r) l++;
            bool linked = l < t->links.n && t->links.device[l] == r;
            if (!linked && span_is_device_work(t, r))
                trace_note(t, NOTE_KERNEL_WITHOUT_LAUNCH, 1);
        }
    }
}

bool seal_links(struct trace *t) {
    struct table tb = {0};
    bool dense = false, once = false;
    bool ok = size_table(t, &tb, &dense);
    if (ok && dense) ok = fill_table(t, &tb, &once);
    if (ok) ok = dense && once ? join_table(t, &tb) : join_by_sorting(t);
    free(tb.least);
    free(tb.most);
    free(tb.base);
    free(tb.rows);
    ok = ok && order_pairs(t->links.device, t->links.host, t->links.n);
    if (ok) keep_one_each(&t->links);
    ok = ok && order_by_host(&t->links);
    assert(!ok || t->links.n <= t->device_halves.n);
    if (ok) note_orphans(t);
    return ok;
}

/* ---- arrows that the source drew between spans ----
 *
 * Each end names a thread and a time; the span that it means is the innermost
 * one there. */

/* Binds the ends on one track, in time order in v[0..n), to the innermost span
 * that holds each (both ends count). One walk over the rows: what ended before
 * one arrow's end is not looked at again for a later one. */
static void bind_track(const struct trace *t, const struct sort_key *v,
                       size_t n, row_id *bound) {
    assert(n > 0);
    const struct track *tr = &t->tracks[t->half_flows.v[v[0].row].track];
    row_id next = tr->first, at = ROW_NONE;
    for (size_t i = 0; i < n; i++) {
        int64_t ts = t->half_flows.v[v[i].row].ts;
        row_id known = t->half_flows.v[v[i].row].row;
        for (; next < tr->end && t->spans.ts[next] <= ts; next++) at = next;
        while (at != ROW_NONE && span_end(t, at) < ts) at = t->spans.parent[at];
        bound[v[i].row] = known != ROW_NONE ? known : at;
    }
}

/* Finds the row of each end, or ROW_NONE, by its number in half_flows; v is
 * room for the keys. */
static bool bind_flows(const struct trace *t, struct sort_key *v,
                       row_id *bound) {
    const struct half_flows *h = &t->half_flows;
    for (size_t i = 0; i < h->n; i++)
        v[i] = (struct sort_key){h->v[i].track, sort_signed(h->v[i].ts),
                                 (row_id)i};
    if (!sort_keys(v, h->n)) return false;
    for (size_t i = 0, end; i < h->n; i = end) {
        for (end = i + 1; end < h->n && v[end].hi == v[i].hi;) end++;
        bind_track(t, v + i, end - i, bound);
    }
    return true;
}

/* Joins the ends of one id, which stand in time order in v[0..n). */
static bool join_flow(struct trace *t, const struct sort_key *v, size_t n,
                      const row_id *bound) {
    struct flows *f = &t->flows;
    row_id before = ROW_NONE;
    size_t arrows = 0;
    for (size_t i = 0; i < n; i++) {
        const struct half_flow *h = &t->half_flows.v[v[i].row];
        row_id here = bound[v[i].row];
        if (h->phase != 's' && before != ROW_NONE && here != ROW_NONE) {
            if (!add_pair(&f->from, &f->to, &f->n, &f->cap, before, here))
                return false;
            arrows++;
        }
        if (h->phase != 'i') before = h->phase == 'f' ? ROW_NONE : here;
    }
    if (arrows == 0) trace_note(t, NOTE_FLOW_DANGLING, 1);
    return true;
}

bool seal_flows(struct trace *t) {
    const struct half_flows *h = &t->half_flows;
    size_t n = h->n;
    struct sort_key *v = malloc((n + 1) * sizeof *v);
    row_id *bound = malloc((n + 1) * sizeof *bound);
    bool ok = v != NULL && bound != NULL && bind_flows(t, v, bound);
    for (size_t i = 0; ok && i < n; i++) {
        /* ids are unique only within a source */
        uint64_t source = t->tracks[h->v[i].track].source;
        v[i] = (struct sort_key){hash_pair(h->v[i].id, source),
                                 sort_signed(h->v[i].ts), (row_id)i};
    }
    ok = ok && sort_keys(v, n);
    for (size_t i = 0, end; ok && i < n; i = end) {
        for (end = i + 1; end < n && v[end].hi == v[i].hi;) end++;
        ok = join_flow(t, v + i, end - i, bound);
    }
    free(v);
    free(bound);
    return ok && order_pairs(t->flows.from, t->flows.to, t->flows.n);
}
