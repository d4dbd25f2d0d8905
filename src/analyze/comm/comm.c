/* SPDX-License-Identifier: Apache-2.0
 * comm: one row per collective or transfer between ranks: how much it moved,
 * how long that took, how much of it nothing else hid and, with the files of
 * the other ranks, how much of it was waiting for the last one to come.
 *
 * Times are unions per rank: two collectives of a row that run at once count
 * once. So exposed + overlapped = wait + move = total, to the picosecond. */
#include "analyze/analyze.h"

#include "analyze/comm/collective.h"
#include "analyze/shared/phases.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

struct comm_row {
    uint32_t first; /* a collective of the row: its name, kind, group */
    int64_t calls, ranks, bytes, total, exposed, wait, matched;
    bool sized, mixed; /* sizes known; more than one type */
    struct bytes dtype;
    double algo, bus; /* bytes per ps x time: summed, then divided */
    double algo_ps, bus_ps;
};

struct comm {
    const struct trace *t;
    struct selection selection;
    struct collectives c;
    struct phases ph;
    struct sort_key *order; /* those in scope, by row, member, time */
    size_t n;
    struct comm_row *rows;
    size_t nrows, cap_rows;
    struct phase_sums *sums; /* by source: n is 0: not made yet */
};

/* Gives the collectives in scope their rows, by name, kind and group, and sorts
 * them by row and member; inside by time. */
static bool sort_rows(struct comm *w) {
    struct map rows = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < w->c.n; i++) {
        const struct coll *x = &w->c.v[i];
        if (!select_has(&w->selection, x->row)) continue;
        struct bytes name = coll_name(&w->c, x);
        uint64_t key = hash_pair(hash_bytes(name.p, name.n),
                                 x->kind + 64 * (uint64_t)x->group);
        uint32_t *row = map_at(&rows, key);
        ok = row &&
             (*row != MAP_NONE || VEC_ROOM(w->rows, w->nrows, w->cap_rows));
        if (!ok) break;
        if (*row == MAP_NONE) {
            *row = (uint32_t)w->nrows;
            w->rows[w->nrows++] = (struct comm_row){.first = i,
                                                    .dtype = x->dtype};
        }
        w->order[w->n++] = (struct sort_key){(uint64_t)*row << 32 | x->member,
                                             sort_signed(x->ts), i};
    }
    map_free(&rows);
    return ok && sort_keys(w->order, w->n);
}

/* Finds the part of `all` (a union) that nothing else hid, against its own
 * device or as the mean of the source's. A kernel is hidden by other kernels of
 * its device; a collective of the host is exposed where the step counts it as
 * communication. */
static bool exposed_part(struct comm *w, const struct intervals *all,
                         const struct coll *x, int64_t *out) {
    uint32_t source = coll_source(&w->c, x);
    uint32_t device = w->t->tracks[w->t->spans.track[x->row]].device;
    bool own = x->carrier == COLL_KERNEL && device != ROW_NONE;
    bool calls = x->carrier == COLL_CALL && w->t->sources[source].has_device;
    const struct phase_view *v = &w->ph.views[w->ph.view_first[source]];
    struct phase_sums one = {.n = 1}, *sums = own ? &one : &w->sums[source];
    struct ops_err e;
    if (own) one.views = phases_of_device(&w->ph, source, device);
    else if (sums->n == 0 && phase_sums_init(sums, &w->ph, source, &e) != 0)
        return false;
    *out = intervals_length(all);
    if (sums->views == NULL) return true; /* the device has no view */
    bool by_kernels = v->device != ROW_NONE &&
                      (x->carrier == COLL_KERNEL || calls);
    __int128 sum = 0;
    for (size_t i = 0; i < all->n; i++) {
        __int128 parts[PHASES], busy;
        int64_t start = all->v[i].start, end = all->v[i].end;
        phase_sums_split(sums, start, end, parts, &busy);
        sum += by_kernels
                   ? (__int128)sums->n * (end - start) - parts[PHASE_COMPUTE]
                   : parts[PHASE_COMM];
    }
    *out = (int64_t)(sum / (__int128)sums->n);
    return true;
}

/* Adds the collectives [from, to) of one row on one member. */
static bool add_member(struct comm *w, size_t from, size_t to) {
    struct comm_row *l = &w->rows[w->order[from].hi >> 32];
    const struct coll *x = NULL;
    struct intervals all = {0}, wait = {0};
    bool ok = true;
    for (size_t i = from; ok && i < to; i++) {
        x = &w->c.v[w->order[i].row];
        l->calls++;
        if (l->dtype.n != x->dtype.n ||
            (l->dtype.n > 0 && memcmp(l->dtype.p, x->dtype.p, l->dtype.n) != 0))
            l->mixed = true;
        /* With the other ranks' times the shortest duration is the moving
         * alone; else its own duration counts, waiting and all. */
        bool matched = x->match != ROW_NONE;
        int64_t ps = matched ? w->c.matches[x->match].least : x->dur;
        double factor = coll_bus_factor((enum coll_kind)x->kind, x->ranks);
        l->matched += matched;
        if (x->bytes >= 0) {
            l->sized = true;
            sat_inc(&l->bytes, x->bytes);
            l->algo += (double)x->bytes;
            l->algo_ps += (double)ps;
        }
        if (x->bytes >= 0 && factor >= 0) {
            l->bus += factor * (double)x->bytes;
            l->bus_ps += (double)ps;
        }
        ok = intervals_add(&all, x->ts, x->ts + x->dur) &&
             (!matched || intervals_add(&wait, x->ts, coll_wait_end(&w->c, x)));
    }
    intervals_union(&all);
    intervals_union(&wait);
    int64_t exposed = 0;
    ok = ok && exposed_part(w, &all, x, &exposed);
    if (ok) {
        int64_t total = intervals_length(&all);
        assert(exposed <= total && intervals_length(&wait) <= total);
        l->ranks++;
        sat_inc(&l->total, total);
        sat_inc(&l->exposed, exposed);
        sat_inc(&l->wait, intervals_length(&wait));
    }
    intervals_free(&all);
    intervals_free(&wait);
    return ok;
}

static const struct column comm_cols[] = {
    {"name", NULL, NULL, "The kernel, region or op that carries it out",
     COL_TEXT, COL_KEY | COL_SYMBOL},
    {"kind", NULL, NULL, "all_reduce, all_gather, broadcast, send, ...",
     COL_TEXT, 0},
    {"calls", NULL, NULL, "How many, on all ranks together", COL_INT, 0},
    {"bytes", NULL, "bytes",
     "The messages, each counted on every rank: the whole output of an "
     "all_gather, the input of all others",
     COL_BYTES, COL_SIZE},
    {"total_us", "total", "us",
     "Time during which one was under way, summed over the ranks", COL_TIME,
     COL_MAIN},
    {"exposed_us", "exposed", "us", "The part of it that no computation hid",
     COL_TIME, COL_ANSWER},
    {"overlapped_us", "overlapped", "us",
     "The part of it during which computation went on", COL_TIME, COL_DETAIL},
    {"bus_gb_per_s", "bus", "GB/s",
     "Rate by which links are compared, whatever the number of ranks: an "
     "all_reduce of n ranks moves its message 2(n-1)/n times",
     COL_FLOAT, 0},
    {"wait_us", "wait", "us",
     "The part of the total before the last rank had come", COL_TIME,
     COL_ANSWER},
    {"move_us", "move", "us", "The rest: every rank was there and data moved",
     COL_TIME, 0},
    {"process_group", "group", NULL, "The group of ranks that took part",
     COL_TEXT, 0},
    {"algo_gb_per_s", "algo", "GB/s", "Bytes by the time that moving them took",
     COL_FLOAT, COL_DETAIL},
    {"ranks", NULL, NULL, "Ranks in these files that ran it", COL_INT,
     COL_DETAIL},
    {"group_size", NULL, NULL, "Ranks in the process group", COL_INT,
     COL_DETAIL},
    {"dtype", NULL, NULL, "Type of the elements", COL_TEXT, COL_DETAIL},
    {"matched", NULL, NULL,
     "Calls whose counterparts on other ranks were found", COL_INT, COL_DETAIL},
};

static void put_comm_row(struct result *r, const struct comm *w,
                         const struct comm_row *l) {
    const struct coll *x = &w->c.v[l->first];
    struct bytes group = w->c.groups[x->group];
    bool waits = l->matched > 0;
    result_row(r);
    cell_str(r, "name", coll_name(&w->c, x));
    cell_text(r, "kind", coll_kind_name((enum coll_kind)x->kind));
    cell_int(r, "calls", l->calls);
    if (l->sized) cell_int(r, "bytes", l->bytes);
    cell_int(r, "total_us", l->total);
    cell_int(r, "exposed_us", l->exposed);
    cell_int(r, "overlapped_us", l->total - l->exposed);
    /* bytes per ps x 1000 = GB/s */
    if (l->bus_ps > 0) cell_float(r, "bus_gb_per_s", 1e3 * l->bus / l->bus_ps);
    if (waits) cell_int(r, "wait_us", l->wait);
    if (waits) cell_int(r, "move_us", l->total - l->wait);
    if (group.n > 0) cell_str(r, "process_group", group);
    if (l->algo_ps > 0)
        cell_float(r, "algo_gb_per_s", 1e3 * l->algo / l->algo_ps);
    cell_int(r, "ranks", l->ranks);
    if (x->ranks > 0) cell_int(r, "group_size", x->ranks);
    if (l->mixed) cell_text(r, "dtype", "mixed");
    else if (l->dtype.n > 0) cell_str(r, "dtype", l->dtype);
    if (w->c.nmembers > 1) cell_int(r, "matched", l->matched);
}

/* Says how much of the steps all of it is, unions per rank. Returns false if
 * out of memory. */
static bool say_whole(struct result *r, struct comm *w) {
    int64_t steps = 0, time = 0, total = 0;
    char a[32], b[32];
    for (size_t i = 0; i < w->n; i++) w->order[i].hi &= UINT32_MAX;
    bool ok = sort_keys(w->order, w->n);
    for (size_t i = 0, to; ok && i < w->n; i = to) {
        struct intervals all = {0};
        to = same_hi_end(w->order, i, w->n);
        for (size_t k = i; ok && k < to; k++) {
            const struct coll *x = &w->c.v[w->order[k].row];
            ok = intervals_extend(&all, x->ts, x->ts + x->dur);
        }
        intervals_union(&all);
        sat_inc(&total, intervals_length(&all));
        intervals_free(&all);
    }
    for (size_t i = 0; i < w->t->nsteps; i++) {
        if (!w->selection.all && !w->selection.step_in[i]) continue;
        steps++;
        sat_inc(&time, w->t->steps[i].dur);
    }
    if (ok && steps > 0 && time > 0)
        result_remark(r,
                      "A collective is under way for %s of a step of %s, on "
                      "the mean of ranks and steps.",
                      human_time(total / steps, a, sizeof a),
                      human_time(time / steps, b, sizeof b));
    return ok;
}

/* Says which files are there, and what is not known for want of others. */
static void say_ranks(struct result *r, const struct comm *w) {
    const struct collectives *c = &w->c;
    int64_t world = coll_world_size(w->t);
    size_t calls = 0;
    for (size_t i = 0; i < c->n; i++)
        calls += c->v[i].carrier == COLL_CALL &&
                 w->t->sources[coll_source(c, &c->v[i])].has_device;
    if (calls > 0)
        result_remark(r, "No kernel of a collective was recorded: the times "
                         "are those of the calls that start them.");
    if (c->nmembers < 2)
        result_missing(r, "waiting apart from moving",
                       "only one rank's file was given",
                       "give the files of all ranks at once, recorded at the "
                       "same time");
    else if ((int64_t)c->nmembers < world)
        result_remark(r,
                      "Files of %zu of %lld ranks: who came last may be "
                      "one of the others, so the waiting is at least that "
                      "much.",
                      c->nmembers, (long long)world);
    if (c->nmembers < 2) return;
    if (c->unmatched > 0)
        result_remark_n(
            r, c->unmatched,
            "%zu of %zu calls [has|have] no counterpart on another "
            "rank (one-sided, or outside the other's window): [its|their] "
            "waiting is not known.",
            c->unmatched, c->n);
    if (c->crossed > 0)
        result_remark(r,
                      "%zu calls, of %s among others, look like one "
                      "collective but are not: a rank had left before another "
                      "came. The profile does not tell their process groups "
                      "apart.",
                      c->crossed, span_name(w->t, c->crossed_row));
}

static int comm_fill(struct comm *w, struct result *r, struct ops_err *e) {
    w->order = calloc(w->c.n + 1, sizeof *w->order);
    w->sums = calloc(w->t->nsources + 1, sizeof *w->sums);
    if (!w->order || !w->sums || !sort_rows(w)) return fail_oom(e);
    for (size_t i = 0, to; i < w->n; i = to) {
        to = same_hi_end(w->order, i, w->n);
        if (!add_member(w, i, to)) return fail_oom(e);
    }
    for (size_t i = 0; i < w->nrows; i++) put_comm_row(r, w, &w->rows[i]);
    if (w->n > 0 && !say_whole(r, w)) return fail_oom(e);
    if (w->c.n > 0) say_ranks(r, w);
    return 0;
}

static int comm_run(const struct trace *t, const struct opts *o,
                    struct result *r, struct ops_err *e) {
    struct comm w = {.t = t};
    result_init(r, "comm", "Communication between ranks");
    result_from_trace(r, t);
    result_cols(r, comm_cols, COUNT(comm_cols));
    TRY(select_init(&w.selection, t, o, e));
    int rc = collectives_init(&w.c, t, e);
    if (rc == 0 && w.c.n > 0) rc = phases_get(&w.ph, t, e);
    if (rc == 0) rc = comm_fill(&w, r, e);
    if (rc == 0 && w.c.n == 0)
        result_remark(r, "No collective or transfer between ranks was "
                         "recorded: one process alone, or a library that this "
                         "profiler does not see.");
    free(w.order);
    for (size_t i = 0; w.sums && i < t->nsources; i++)
        phase_sums_free(&w.sums[i]);
    free(w.sums);
    free(w.rows);
    collectives_free(&w.c);
    select_free(&w.selection);
    return rc;
}

const struct analysis analysis_comm = {
    .name = "comm",
    .help = "collectives between ranks: bytes, bandwidth, waiting, overlap",
    .row = "one collective or transfer between ranks",
    .run = comm_run,
};
