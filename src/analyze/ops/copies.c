/* SPDX-License-Identifier: Apache-2.0
 * copies: one row per kind of transfer, pageable apart from pinned. The time
 * of a copy is exposed where no kernel of its device runs meanwhile. */
#include "analyze/analyze.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/own.h"
#include "base/array.h"
#include "base/map.h"
#include "base/sum.h"
#include "names/hlo_text.h"
#include <stdlib.h>

enum { PAGEABLE_STATES = 3 }; /* not recorded, no, yes */

struct copy_group {
    int64_t calls, bytes, total, exposed;
    int64_t sized_time; /* duration of those whose size is known */
    bool sized;
};

struct copies {
    const struct trace *t;
    struct selection selection;
    struct intervals *busy; /* by device: when a kernel ran; one more for
                               streams of no device */
    bool oom;
    struct copy_group v[COPY_KINDS][PAGEABLE_STATES];
};

static size_t device_index(const struct trace *t, uint32_t track) {
    uint32_t d = t->tracks[track].device;
    return d < t->ndevices ? d : t->ndevices;
}

/* Counts the transfer of row r, which began at start. */
static void count_copy(struct copies *c, row_id r, int64_t start) {
    const struct trace *t = c->t;
    struct copy_args a = copy_args_of(t, r);
    struct copy_group *g = &c->v[a.kind][a.pageable + 1];
    int64_t dur = span_end(t, r) - start;
    size_t d = device_index(t, t->spans.track[r]);
    g->calls++;
    sat_inc(&g->total, dur);
    int64_t hidden = intervals_overlap(&c->busy[d], start, start + dur);
    sat_inc(&g->exposed, dur - hidden);
    if (a.bytes < 0) return;
    g->sized = true;
    sat_inc(&g->bytes, a.bytes);
    sat_inc(&g->sized_time, dur);
}

/* Adds the time of a kernel to its device's. */
static void add_busy(void *ctx, row_id r, int64_t from, int64_t to) {
    struct copies *c = ctx;
    size_t d = device_index(c->t, c->t->spans.track[r]);
    if (c->t->spans.kind[r] == SPAN_KERNEL && !c->oom)
        c->oom = !intervals_add(&c->busy[d], from, to);
}

/* Finds when kernels ran. */
static bool find_busy(struct copies *c) {
    const struct trace *t = c->t;
    for (uint32_t i = 0; i < t->ntracks && !c->oom; i++)
        if (t->tracks[i].kind == TRACK_STREAM)
            c->oom |= !own_stretches(t, &t->tracks[i], add_busy, c);
    return !c->oom;
}

/* Is the row a start that no done ended? open has them by their keys. */
static bool is_open(const struct copies *c, const struct map *open, row_id r) {
    const struct trace *t = c->t;
    uint64_t key;
    return t->spans.kind[r] != SPAN_KERNEL && span_is_device_work(t, r) &&
           hlo_half_of(strs_bytes(&t->strs, t->spans.name[r]), &key) ==
               HLO_START &&
           map_get(open, key) == r;
}

/* Counts the transfers of a stream. XLA splits one that runs beside its ops
 * into a start and a done: that is one transfer, from the one to the other. A
 * start whose done is not in the window counts by itself. */
static bool count_stream(struct copies *c, const struct track *tr) {
    const struct trace *t = c->t;
    struct map open = {0}; /* key of an instruction -> its start */
    bool ok = true;
    for (row_id r = tr->first; ok && r < tr->end; r++) {
        uint64_t key;
        if (t->spans.kind[r] == SPAN_KERNEL || !span_is_device_work(t, r) ||
            !select_has(&c->selection, r))
            continue;
        enum hlo_half half = hlo_half_of(strs_bytes(&t->strs, t->spans.name[r]),
                                         &key);
        uint32_t *at = half == HLO_WHOLE ? NULL : map_at(&open, key);
        ok = half == HLO_WHOLE || at != NULL;
        if (!ok) break;
        row_id start = at != NULL && *at != MAP_NONE ? *at : ROW_NONE;
        if (half == HLO_START && start != ROW_NONE) /* it was never ended */
            count_copy(c, start, t->spans.ts[start]);
        if (half == HLO_START) *at = r;
        else count_copy(c, r, t->spans.ts[start == ROW_NONE ? r : start]);
        if (half == HLO_DONE) *at = MAP_NONE;
    }
    for (row_id r = tr->first; ok && open.n > 0 && r < tr->end; r++)
        if (is_open(c, &open, r)) count_copy(c, r, t->spans.ts[r]);
    map_free(&open);
    return ok;
}

static const struct column copies_cols[] = {
    {"kind", NULL, NULL,
     "h2d, d2h, d2d, p2p between devices, or memset: a fill", COL_TEXT,
     COL_KEY},
    {"pageable", NULL, NULL,
     "does it read or write pageable host memory? Such copies are slower "
     "and make the host wait",
     COL_BOOL, 0},
    {"calls", NULL, NULL, "how many", COL_INT, 0},
    {"bytes", NULL, "bytes", "moved or filled", COL_BYTES, COL_SIZE},
    {"total_us", "total", "us", "sum of their durations", COL_TIME, COL_MAIN},
    {"gb_per_s", "rate", "GB/s", "bytes by time, 1e9 bytes a second", COL_FLOAT,
     0},
    {"exposed_us", "exposed", "us",
     "time during which no kernel ran on that device", COL_TIME, 0},
};

static void put_copies(struct result *r, int kind, int pageable,
                       const struct copy_group *g) {
    result_row(r);
    cell_text(r, "kind", copy_kind_name((enum copy_kind)kind));
    if (pageable >= 0) cell_bool(r, "pageable", pageable);
    cell_int(r, "calls", g->calls);
    if (g->sized) cell_int(r, "bytes", g->bytes);
    cell_int(r, "total_us", g->total);
    /* bytes per ps x 1000 = GB/s */
    if (g->sized && g->sized_time > 0)
        cell_float(r, "gb_per_s",
                   1e3 * (double)g->bytes / (double)g->sized_time);
    cell_int(r, "exposed_us", g->exposed);
}

static int copies_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct copies c = {.t = t};
    result_init(r, "copies", "Copies and fills");
    result_from_trace(r, t);
    missing_say(r, t, MISSING_DEVICE);
    result_cols(r, copies_cols, COUNT(copies_cols));
    int rc = select_init(&c.selection, t, o, e);
    c.busy = calloc(t->ndevices + 1, sizeof *c.busy);
    if (rc == 0 && (!c.busy || !find_busy(&c))) rc = fail_oom(e);
    for (size_t d = 0; rc == 0 && d <= t->ndevices; d++)
        intervals_union(&c.busy[d]);
    for (size_t i = 0; rc == 0 && i < t->ntracks; i++)
        if (t->tracks[i].kind == TRACK_STREAM &&
            !count_stream(&c, &t->tracks[i]))
            rc = fail_oom(e);
    if (rc == 0) {
        for (int k = 0; k < COPY_KINDS; k++)
            for (int p = 0; p < PAGEABLE_STATES; p++)
                if (c.v[k][p].calls > 0) put_copies(r, k, p - 1, &c.v[k][p]);
        rc = result_done(r, e);
    }
    for (size_t d = 0; c.busy && d <= t->ndevices; d++)
        intervals_free(&c.busy[d]);
    free(c.busy);
    select_free(&c.selection);
    return rc;
}

const struct analysis analysis_copies = {
    .name = "copies",
    .help = "transfers between host and devices, and fills",
    .row = "one kind of transfer",
    .run = copies_run,
};
