/* SPDX-License-Identifier: Apache-2.0
 * Launch links: API call -> device spans, by (source, correlation id). One
 * call may have many device spans (a CUDA graph launch has them all). */
#include "model/seal.h"

#include "base/sort.h"
#include "base/vec.h"
#include "model/opclass.h"
#include <stdlib.h>

/* The halves as keys sorted by (source, id). */
static struct sort_key *sorted_halves(const struct half_links *h) {
    struct sort_key *v = malloc((h->n + 1) * sizeof *v);
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

/* The calls with one id in the order of their starts, which become their keys;
 * of several with one start the first row, the outermost, stays. *n is how
 * many there are then. False: out of memory. */
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

/* Of the calls with one id, the one that launched this device span: the last
 * that began before it (an id may be used again, or be shared by a runtime
 * call and the driver call inside it); if none did, the first. */
static row_id pick_call(const struct trace *t, const struct sort_key *calls,
                        size_t n, row_id device) {
    uint64_t at = sort_signed(t->spans.ts[device]);
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (calls[mid].hi <= at) lo = mid + 1;
        else hi = mid;
    }
    return calls[lo > 0 ? lo - 1 : 0].row;
}

static bool add_link(struct links *l, row_id host, row_id device) {
    if (l->n == l->cap) {
        size_t cap = vec_next_cap(l->cap, l->n + 1);
        if (!vec_resize(&l->host, cap, sizeof *l->host) ||
            !vec_resize(&l->device, cap, sizeof *l->device))
            return false;
        l->cap = cap;
    }
    l->host[l->n] = host;
    l->device[l->n++] = device;
    return true;
}

/* Counts a launch or copy call that has no device work. */
static void note_unused(struct trace *t, const struct sort_key *call) {
    uint16_t c = t->name_class[t->spans.name[call->row]];
    if ((c & (NAME_LAUNCH | NAME_COPY)) && t->sources[call->hi].has_device)
        trace_note(t, NOTE_LAUNCH_WITHOUT_KERNEL, 1);
}

/* Walks both sorted sides once. */
static bool join(struct trace *t, struct sort_key *host,
                 const struct sort_key *dev) {
    size_t nh = t->host_halves.n, nd = t->device_halves.n, i = 0, j = 0;
    while (i < nh) {
        struct sort_key id = host[i];
        size_t same = i + 1;
        while (same < nh && order(&host[same], &id) == 0) same++;
        while (j < nd && order(&dev[j], &id) < 0) j++;
        if (j >= nd || order(&dev[j], &id) != 0) {
            for (size_t k = i; k < same; k++) note_unused(t, &host[k]);
            i = same;
            continue;
        }
        size_t calls = same - i;
        if (!order_calls(t, host + i, &calls)) return false;
        for (; j < nd && order(&dev[j], &id) == 0; j++) {
            row_id call = pick_call(t, host + i, calls, dev[j].row);
            if (!add_link(&t->links, call, dev[j].row)) return false;
        }
        i = same;
    }
    return true;
}

/* Links sorted by device row, and the second order by host row. */
static bool order_links(struct links *l) {
    struct sort_key *v = malloc((l->n + 1) * sizeof *v);
    l->by_host = malloc((l->n + 1) * sizeof *l->by_host);
    bool ok = v != NULL && l->by_host != NULL;
    for (size_t i = 0; ok && i < l->n; i++)
        v[i] = (struct sort_key){l->device[i], 0, l->host[i]};
    ok = ok && sort_keys(v, l->n);
    for (size_t i = 0; ok && i < l->n; i++) {
        l->device[i] = (row_id)v[i].hi;
        l->host[i] = v[i].row;
        v[i] = (struct sort_key){l->host[i], l->device[i], (row_id)i};
    }
    ok = ok && sort_keys(v, l->n);
    for (size_t i = 0; ok && i < l->n; i++) l->by_host[i] = v[i].row;
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
    struct sort_key *host = sorted_halves(&t->host_halves);
    struct sort_key *dev = sorted_halves(&t->device_halves);
    bool ok = host && dev && join(t, host, dev) && order_links(&t->links);
    free(host);
    free(dev);
    if (ok) note_orphans(t);
    return ok;
}
