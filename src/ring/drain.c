/* SPDX-License-Identifier: Apache-2.0
 * The order of stores is the whole point: first bytes to the files, then the
 * other commit, then `active`. A reader after a kill sees the old state or the
 * new. */
#include "ring/drain.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/xspace.h"
#include "ring/clock.h"
#include "ring/ring_map.h"
#include "ring/sys.h"

/* Writes what was changed in a copy to the ring file. */
static int keep(struct drain *d, const void *p, size_t n) {
    uint64_t at = (uint64_t)((const char *)p - (const char *)d->map->head);
    int error = d->ring < 0 ? 0 : sys_write_all(d->ring, p, n, at, NULL);
    if (error != 0) d->files.error = error;
    return error == 0 ? 0 : -1;
}

int drain_keep_events(struct drain *d) {
    return keep(d, d->map->head->events, sizeof d->map->head->events);
}

static struct rec_commit *next_commit(struct drain *d) {
    return &d->map->head->commit[!d->map->head->active];
}

/* Makes a plane's file when the first bytes for it come. */
static int open_plane(void *self, unsigned file) {
    struct drain *d = self;
    next_commit(d)->names[file] = 0;
    return files_create(&d->files, file);
}

static void add_facts(void *self) {
    struct drain *d = self;
    if (d->at_open != NULL) d->at_open(d, d->ctx);
}

static int write_plane(void *self, unsigned file, const void *p, size_t n) {
    struct drain *d = self;
    return files_write(&d->files, file, p, n);
}

static void give_scalar(void *self, const char *tag, size_t n, int64_t step,
                        double value, double unix_s) {
    struct drain *d = self;
    if (d->scalar != NULL) d->scalar(d->ctx, tag, n, step, value, unix_s);
}

/* Notes the planes that have begun: those that have files. */
static void note_planes(struct drain *d) {
    d->enc.begun = 0;
    for (unsigned i = 0; i < REC_FILES; i++)
        if (d->files.f[i].fd >= 0) d->enc.begun |= 1u << i;
}

/* Returns ring i; NULL if it is not mapped, or free. A free ring is the next
 * thread's, which may be taking it just now. */
static struct rec_ring *used_ring(const struct ring_map *map, uint32_t i) {
    struct rec_ring *r = map->ring[i];
    return r == NULL || REC_ACQUIRE(&r->state) == REC_RING_FREE ? NULL : r;
}

/* Begins a pass. */
static void drain_begin(struct drain *d) {
    struct rec_head *h = d->map->head;
    *next_commit(d) = h->commit[h->active];
    /* A commit without a pass over the rings (a new part) takes nothing out of
     * them: their ends are those of the commit before. */
    for (uint32_t i = 0; i < d->map->nrings; i++) {
        struct rec_ring *r = used_ring(d->map, i);
        if (r == NULL) continue;
        r->tail[!h->active] = r->tail[h->active];
        memcpy(r->reported[!h->active], r->reported[h->active],
               sizeof r->reported[0]);
    }
    d->enc.events = h->commit[h->active].events;
    d->enc.nnames = REC_ACQUIRE(&h->nnames);
    d->enc.failed = false;
}

int drain_open_memory(struct drain *d, struct ring_map *map,
                      struct encoder_out out, uint32_t begun) {
    memset(d, 0, sizeof *d);
    d->map = map;
    d->ring = -1;
    files_init(&d->files, -1, "", 0);
    if (encoder_init(&d->enc, map, out, 1 << 16) != 0) return -1;
    d->enc.begun = begun;
    drain_begin(d);
    return 0;
}

int drain_open(struct drain *d, struct ring_map *map, int dir, const char *stem,
               int ring) {
    const struct rec_head *h = map->head;
    struct encoder_out out = {.self = d,
                              .open = open_plane,
                              .add_facts = add_facts,
                              .write = write_plane,
                              .scalar = give_scalar};
    d->map = map;
    d->ring = ring;
    files_init(&d->files, dir, stem, h->commit[h->active].part);
    /* facts of a recovery have numbers of their own */
    if (encoder_init(&d->enc, map, out, ring < 0 ? 0 : 1 << 16) != 0) {
        d->files.error = ENOMEM;
        return -1;
    }
    drain_begin(d);
    if (ring >= 0) {
        /* The files that a dead process left go on. */
        const struct rec_commit *c = &h->commit[h->active];
        for (unsigned i = 0; i < REC_FILES; i++)
            if (c->bytes[i] == 0)
                files_remove(&d->files, i); /* made just before the end */
            else if (files_resume(&d->files, i, c->bytes[i]) != 0) return -1;
        note_planes(d);
        return 0;
    }
    encoder_begin(&d->enc, 0);
    return d->enc.failed ? -1 : 0;
}

/* Returns the first slot that no file has, of those up to head that are not
 * further than `most` behind `now`, where the writer is. */
static uint64_t ring_from(const struct rec_head *h, const struct rec_ring *r,
                          uint64_t head, uint64_t now, uint64_t most) {
    uint64_t from = r->tail[h->active];
    if (from < r->first_slot) from = r->first_slot;
    if (from > head) from = head;
    if (now - from > most) from = now - most;
    return from > head ? head : from;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Writes the scopes that are open, as ending at the last known time unless
 * told. */
static void drain_open_scopes(struct drain *d, uint64_t end) {
    uint64_t t = 0; /* when the last of what is open began */
    for (uint32_t i = 0; i < d->map->nrings; i++) {
        const struct rec_ring *r = d->map->ring[i];
        if (r == NULL || r->state != REC_RING_LIVE) continue;
        uint32_t n = r->depth < REC_FRAMES ? r->depth : REC_FRAMES;
        if (n > 0) t = later(t, r->frames[n - 1].time);
        if (r->marks & REC_IN_STEP) t = later(t, r->step_time);
        if (r->marks & REC_IN_EPOCH) t = later(t, r->epoch_time);
    }
    for (uint32_t i = 0; d->map->head->asyncs_used && i < REC_ASYNCS; i++)
        if (d->map->asyncs[i].time != UINT64_MAX)
            t = later(t, d->map->asyncs[i].time);
    struct rec_head *h = d->map->head;
    if (end == 0) /* + 1: what came last lies inside of what is open */
        end = later(later(d->enc.last, h->last_tick), t) + 1;
    d->enc.last = end;
    for (uint32_t i = 0; i < d->map->nrings; i++) {
        const struct rec_ring *r = d->map->ring[i];
        if (r != NULL && r->state == REC_RING_LIVE)
            encoder_open_scopes(&d->enc, r, rec_slots(r), end);
    }
    encoder_open_asyncs(&d->enc, end);
}

/* Returns the end of an eighth of the ring from there on; no record is cut. */
static uint64_t piece_end(const struct rec_ring *r, uint64_t from,
                          uint64_t head) {
    const struct rec_slot *slots = rec_slots(r);
    if (head - from <= r->slots / 8) return head;
    uint64_t to = from + r->slots / 8;
    while (to < head && rec_slot_kind(REC_LOAD(
                            &slots[to & (r->slots - 1)].rest)) == REC_CONT)
        to++;
    return to;
}

static void drain_ring(struct drain *d, struct rec_ring *r, unsigned next) {
    const struct rec_head *h = d->map->head;
    uint64_t head = REC_ACQUIRE(&r->head);
    /* The writer of a flight recorder may be at work on the oldest slots. Other
     * writers never are, and the last record may lie beyond the limit. */
    uint64_t most = r->slots - (h->flight ? REC_SLOT_MAX : 0);
    uint64_t from = ring_from(h, r, head, head, most);
    if (d->in_pieces) head = piece_end(r, from, head);
    const uint64_t *reported = r->reported[h->active];
    bool news = from < head;
    for (unsigned k = 0; k < REC_LOSSES; k++) {
        r->reported[next][k] = REC_LOAD(&r->lost[k]);
        if (r->reported[next][k] != reported[k]) news = true;
    }
    if (news)
        encoder_ring(&d->enc, r,
                     &(struct encoder_range){rec_slots(r), from, head, reported,
                                             r->reported[next]});
    r->tail[next] = head;
}

void drain_mark_final(struct drain *d) { next_commit(d)->closed = 1; }

void drain_rings(struct drain *d, bool final, uint64_t end) {
    struct rec_head *h = d->map->head;
    drain_begin(d);
    d->map->nrings = REC_ACQUIRE(&h->nrings);
    for (uint32_t i = 0; i < d->map->nrings; i++) {
        struct rec_ring *r = used_ring(d->map, i);
        if (r != NULL) drain_ring(d, r, !h->active);
    }
    if (final && !h->commit[h->active].closed) {
        drain_open_scopes(d, end);
        drain_mark_final(d);
    }
    encoder_lines(&d->enc);
}

/* --- the flight recorder's dump ------------------------------------------ */

/* Copies the head of a ring whose thread runs: each field as it is at some
 * moment. Arguments of open scopes are not taken: they may change in the
 * middle. */
static void flight_copy_head(struct rec_ring *to, const struct rec_ring *r) {
    memset(to, 0, sizeof *to);
    to->slots = r->slots;
    to->first_slot = r->first_slot;
    to->state = REC_LOAD(&r->state);
    to->tid = r->tid;
    to->thread = r->thread;
    char name[REC_THREAD_NAME];
    rec_name_get(r, name);
    rec_name_put(to, name);
    for (unsigned i = 0; i < REC_LOSSES; i++)
        to->lost[i] = REC_LOAD(&r->lost[i]);
    to->depth = REC_ACQUIRE(&r->depth);
    if (to->depth > REC_FRAMES) to->depth = REC_FRAMES;
    for (uint32_t i = 0; i < to->depth; i++) {
        to->frames[i].time = REC_LOAD(&r->frames[i].time);
        to->frames[i].name = REC_LOAD(&r->frames[i].name);
    }
    to->marks = REC_ACQUIRE(&r->marks);
    to->step = REC_LOAD(&r->step);
    to->step_time = REC_LOAD(&r->step_time);
    to->epoch = REC_LOAD(&r->epoch);
    to->epoch_time = REC_LOAD(&r->epoch_time);
}

/* Copies a ring first, then asks how far the writer has come: slots more than a
 * ring's length behind it by then were overwritten under the copy. */
static void flight_ring(struct drain *d, struct rec_ring *r) {
    struct rec_head *h = d->map->head;
    unsigned next = !h->active;
    size_t bytes = r->slots * sizeof(struct rec_slot);
    struct rec_slot *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) return;
    struct rec_ring a, b;
    flight_copy_head(&a, r);
    uint64_t head = REC_ACQUIRE(&r->head);
    /* Behind the backed slots there is no memory, and nothing to copy. Acquire:
     * the look at head that follows is not done before. */
    uint64_t backed = REC_ACQUIRE(&r->backed_slots);
    for (uint64_t i = 0; i < backed; i++) {
        slots[i].time = REC_ACQUIRE(&rec_slots(r)[i].time);
        slots[i].rest = REC_ACQUIRE(&rec_slots(r)[i].rest);
    }
    uint64_t later = REC_ACQUIRE(&r->head);
    flight_copy_head(&b, r);
    rec_ring_keep_common(&a, &b);
    a.head = head;
    /* Left out are the record that is being written, and as much again: a CPU
     * may show the slots of the next record before the head of the last. */
    uint64_t most = r->slots - 2 * REC_SLOT_MAX;
    struct encoder_range range = {slots, ring_from(h, r, head, later, most),
                                  head, r->reported[h->active], a.lost};
    encoder_ring(&d->enc, &a, &range);
    if (a.state == REC_RING_LIVE)
        encoder_open_scopes(&d->enc, &a, slots, rec_ticks());
    r->tail[next] = head;
    memcpy(r->reported[next], a.lost, sizeof a.lost);
    munmap(slots, bytes);
}

void drain_flight(struct drain *d) {
    struct rec_head *h = d->map->head;
    drain_begin(d);
    d->map->nrings = REC_ACQUIRE(&h->nrings);
    for (uint32_t i = 0; i < d->map->nrings; i++) {
        struct rec_ring *r = used_ring(d->map, i);
        if (r != NULL) flight_ring(d, r);
    }
    encoder_lines(&d->enc);
}

/* --- the commit ---------------------------------------------------------- */

/* A device's plane has a list of names of its own. */
void drain_names(struct drain *d, unsigned file) {
    struct rec_commit *c = next_commit(d);
    uint64_t n = REC_ACQUIRE(&d->map->head->nnames);
    encoder_names(&d->enc, file, c->names[file], n);
    c->names[file] = n;
}

/* Is all that the thread did in the files, its losses too? */
static bool emptied(const struct rec_ring *r, unsigned active) {
    for (unsigned k = 0; k < REC_LOSSES; k++)
        if (REC_LOAD(&r->lost[k]) != r->reported[active][k]) return false;
    return REC_LOAD(&r->head) == r->tail[active];
}

static int failed(struct drain *d) {
    files_rollback(&d->files);
    note_planes(d);
    if (d->at_failure != NULL) d->at_failure(d, d->ctx);
    d->enc.failed = false;
    return -1;
}

/* Makes the commit that was filled hold: one store, or one write. */
static int flip(struct drain *d) {
    struct rec_head *h = d->map->head;
    unsigned next = !h->active;
    for (uint32_t i = 0; d->ring >= 0 && i < d->map->nrings; i++) {
        const struct rec_ring *r = d->map->ring[i];
        if (r != NULL &&
            (keep(d, &r->tail[next], sizeof r->tail[0]) != 0 ||
             keep(d, r->reported[next], sizeof r->reported[0]) != 0))
            return -1;
    }
    if (keep(d, &h->commit[next], sizeof h->commit[0]) != 0) return -1;
    REC_PUBLISH(&h->active, next);
    if (keep(d, &h->active, sizeof h->active) == 0) return 0;
    h->active = !next;
    return -1;
}

int drain_commit(struct drain *d) {
    encoder_lines(&d->enc);
    for (unsigned i = 0; i < REC_FILES; i++)
        if (d->files.f[i].fd >= 0) drain_names(d, i);
    if (d->enc.failed) return failed(d);
    struct rec_commit *c = next_commit(d);
    for (unsigned i = 0; i < REC_FILES; i++)
        c->bytes[i] = d->files.f[i].fd < 0 ? 0 : d->files.f[i].end;
    c->part = d->files.part;
    c->events = d->enc.events;
    if (d->at_commit != NULL) d->at_commit(d, c, d->ctx);
    if (flip(d) != 0) return failed(d);
    files_commit(&d->files);
    /* The writers get room, now that it is safe. */
    const struct rec_head *h = d->map->head;
    for (uint32_t i = 0; i < d->map->nrings && !h->flight; i++) {
        struct rec_ring *r = used_ring(d->map, i);
        if (r == NULL) continue;
        uint64_t tail = r->tail[h->active];
        REC_PUBLISH(&r->reusable_to, tail + r->slots - REC_SLOT_MAX);
        if (REC_ACQUIRE(&r->state) != REC_RING_ENDED || !emptied(r, h->active))
            continue;
        /* from here on drain_begin leaves the ring alone: both ends are the
         * last */
        r->tail[!h->active] = tail;
        memcpy(r->reported[!h->active], r->reported[h->active],
               sizeof r->reported[0]);
        REC_PUBLISH(&r->state, REC_RING_FREE);
    }
    return 0;
}

static int join(struct drain *d) {
    uint8_t tail[256];
    const struct rec_head *h = d->map->head;
    uint32_t at = 0;
    uint64_t last = d->enc.last > h->last_tick ? d->enc.last : h->last_tick;
    uint64_t ps = rec_clock_ps(d->map->segs, h->nsegs, &at, last);
    uint64_t start = (uint64_t)h->start_unix_ns;
    uint8_t *end = xspace_environment(tail, start, start + ps / 1000);
    return files_join(&d->files, tail, (size_t)(end - tail));
}

int drain_rotate(struct drain *d) {
    char name[NAME_MAX + 1];
    if (join(d) != 0) return -1;
    struct files old = d->files;
    files_init(&d->files, old.dir, old.stem, old.part + 1);
    drain_begin(d);
    memset(next_commit(d)->names, 0, sizeof next_commit(d)->names);
    note_planes(d);
    encoder_begin(&d->enc, 0);
    if (d->enc.failed || drain_commit(d) != 0) {
        int error = d->files.error;
        files_discard(&d->files);
        d->files = old;
        d->files.error = error;
        note_planes(d);
        return -1;
    }
    int result = files_finish(&old, name);
    if (result != 0) d->files.error = old.error;
    files_close(&old);
    return result;
}

int drain_finish(struct drain *d, char name[NAME_MAX + 1]) {
    struct rec_head *h = d->map->head;
    if (join(d) != 0) return -1;
    REC_PUBLISH(&h->done, 1);
    if (keep(d, &h->done, sizeof h->done) != 0) return -1;
    return files_finish(&d->files, name);
}

void drain_free(struct drain *d) {
    files_close(&d->files);
    encoder_free(&d->enc);
}
