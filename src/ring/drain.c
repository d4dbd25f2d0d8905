/* SPDX-License-Identifier: Apache-2.0
 * The order of stores is the whole point: bytes to the files, the other commit,
 * then `active`. Whoever looks after a kill sees the old state or the new. */
#include "ring/drain.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "opscope/record.h"
#include "ring/clock.h"
#include "ring/sys.h"
#include "ring/view.h"

/* Of a copy: what was changed in it goes to the ring file. */
static int keep(struct drain *d, const void *p, size_t n) {
    const char *from = p;
    off_t at = from - (const char *)d->v->head;
    while (d->ring >= 0 && n > 0) {
        ssize_t w = sys_pwrite(d->ring, from, n, at);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) {
            d->files.error = w < 0 ? errno : EIO;
            return -1;
        }
        from += w;
        at += w;
        n -= (size_t)w;
    }
    return 0;
}

int drain_keep_events(struct drain *d) {
    return keep(d, d->v->head->events, sizeof d->v->head->events);
}

static struct rec_commit *next_commit(struct drain *d) {
    return &d->v->head->commit[!d->v->head->active];
}

/* A plane's file is made when the first bytes for it come. */
static int open_plane(struct drain *d, unsigned file) {
    if (files_create(&d->files, file) != 0) return -1;
    struct rec_commit *c = next_commit(d);
    c->names[file] = 0;
    encode_plane(&d->enc, file);
    if (file == 0) {
        encode_head_facts(&d->enc);
        if (d->at_open != NULL) d->at_open(d, d->ctx);
    }
    return d->enc.failed ? -1 : 0;
}

static int write_plane(void *self, unsigned file, const void *p, size_t n) {
    struct drain *d = self;
    if (d->files.f[file].fd < 0 && open_plane(d, file) != 0) return -1;
    return files_write(&d->files, file, p, n);
}

static void give_scalar(void *self, const char *tag, size_t n, int64_t step,
                        double value, double unix_s) {
    struct drain *d = self;
    if (d->events.scalar != NULL)
        d->events.scalar(d->events.self, tag, n, step, value, unix_s);
}

static bool is_free(const struct rec_ring *r) {
    return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == REC_RING_FREE;
}

void drain_begin(struct drain *d) {
    struct rec_head *h = d->v->head;
    *next_commit(d) = h->commit[h->active];
    /* Whoever commits without a pass over the rings (a new part) takes nothing
     * out of them: their ends are those of the commit before. A free one is
     * the next thread's, who may be taking it just now. */
    for (uint32_t i = 0; i < d->v->nrings; i++) {
        struct rec_ring *r = d->v->ring[i];
        if (r == NULL || is_free(r)) continue;
        r->tail[!h->active] = r->tail[h->active];
        memcpy(r->told[!h->active], r->told[h->active], sizeof r->told[0]);
    }
    d->enc.events = h->commit[h->active].events;
    d->enc.nnames = __atomic_load_n(&h->nnames, __ATOMIC_ACQUIRE);
    d->enc.failed = false;
}

static int resume(struct drain *d) {
    const struct rec_head *h = d->v->head;
    const struct rec_commit *c = &h->commit[h->active];
    for (unsigned i = 0; i < REC_FILES; i++)
        if (c->bytes[i] == 0)
            files_remove(&d->files, i); /* made just before the end */
        else if (files_resume(&d->files, i, c->bytes[i]) != 0) return -1;
    return 0;
}

int drain_open_memory(struct drain *d, struct rec_view *v, struct enc_to to) {
    memset(d, 0, sizeof *d);
    d->v = v;
    d->ring = -1;
    files_init(&d->files, -1, "", 0);
    if (encoder_init(&d->enc, v, to, 1 << 16) != 0) return -1;
    drain_begin(d);
    return 0;
}

int drain_open(struct drain *d, struct rec_view *v, int dir, const char *stem,
               int ring) {
    const struct rec_head *h = v->head;
    struct enc_to to = {.self = d, .write = write_plane, .scalar = give_scalar};
    d->v = v;
    d->ring = ring;
    files_init(&d->files, dir, stem, h->commit[h->active].part);
    /* facts of a rescue have numbers of their own */
    if (encoder_init(&d->enc, v, to, ring < 0 ? 0 : 1 << 16) != 0) {
        d->files.error = ENOMEM;
        return -1;
    }
    drain_begin(d);
    return ring < 0 ? open_plane(d, 0) : resume(d);
}

static uint64_t ring_from(const struct rec_head *h, const struct rec_ring *r,
                          uint64_t head) {
    uint64_t from = r->tail[h->active];
    if (from < r->floor) from = r->floor;
    if (from > head) from = head;
    /* A flight recorder: its writer may be at work on the oldest slots. Others
     * never are, and the last record may lie beyond the limit. */
    uint64_t most = r->slots - (h->flight ? REC_SLOT_MAX : 0);
    return head - from > most ? head - most : from;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* When the last of what is open began. */
static uint64_t last_begin(const struct rec_view *v) {
    uint64_t t = 0;
    for (uint32_t i = 0; i < v->nrings; i++) {
        const struct rec_ring *r = v->ring[i];
        if (r == NULL || r->state != REC_RING_LIVE) continue;
        uint32_t n = r->depth < REC_FRAMES ? r->depth : REC_FRAMES;
        if (n > 0) t = later(t, r->frames[n - 1].time);
        if (r->marks & REC_IN_STEP) t = later(t, r->step_time);
        if (r->marks & REC_IN_EPOCH) t = later(t, r->epoch_time);
    }
    for (uint32_t i = 0; v->head->asyncs_used && i < REC_ASYNCS; i++)
        if (v->asyncs[i].time != UINT64_MAX) t = later(t, v->asyncs[i].time);
    return t;
}

/* Scopes that are open, at the last known time unless told. */
static void drain_open_scopes(struct drain *d, uint64_t end) {
    struct rec_head *h = d->v->head;
    if (end == 0) /* + 1: what came last lies inside of what is open */
        end = later(later(d->enc.last, h->last_tick), last_begin(d->v)) + 1;
    d->enc.last = end;
    for (uint32_t i = 0; i < d->v->nrings; i++) {
        const struct rec_ring *r = d->v->ring[i];
        if (r != NULL && r->state == REC_RING_LIVE)
            encode_open(&d->enc, r, rec_slots(r), end);
    }
    encode_asyncs(&d->enc, end);
}

/* An eighth of the ring from there on, and no record is cut. */
static uint64_t piece_end(const struct rec_ring *r, uint64_t from,
                          uint64_t head) {
    const struct rec_slot *slots = rec_slots(r);
    if (head - from <= r->slots / 8) return head;
    uint64_t to = from + r->slots / 8;
    while (to < head &&
           rec_slot_kind(__atomic_load_n(&slots[to & (r->slots - 1)].rest,
                                         __ATOMIC_RELAXED)) == REC_CONT)
        to++;
    return to;
}

static void drain_ring(struct drain *d, struct rec_ring *r, unsigned next) {
    const struct rec_head *h = d->v->head;
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
    uint64_t from = ring_from(h, r, head);
    if (d->in_pieces) head = piece_end(r, from, head);
    const uint64_t *told = r->told[h->active];
    bool news = from < head;
    for (unsigned k = 0; k < REC_LOSSES; k++) {
        r->told[next][k] = __atomic_load_n(&r->lost[k], __ATOMIC_RELAXED);
        if (r->told[next][k] != told[k]) news = true;
    }
    if (news)
        encode_ring(&d->enc, r, rec_slots(r), from, head, told, r->told[next]);
    r->tail[next] = head;
}

void drain_closed(struct drain *d) { next_commit(d)->closed = 1; }

void drain_rings(struct drain *d, bool final, uint64_t end) {
    struct rec_view *v = d->v;
    struct rec_head *h = v->head;
    unsigned next = !h->active;
    drain_begin(d);
    v->nrings = __atomic_load_n(&h->nrings, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < v->nrings; i++) {
        struct rec_ring *r = v->ring[i];
        if (r == NULL || is_free(r)) continue;
        drain_ring(d, r, next);
    }
    if (final && !h->commit[h->active].closed) {
        drain_open_scopes(d, end);
        drain_closed(d);
    }
    encode_lines(&d->enc);
}

/* A device's plane has a list of its own. */
void drain_names(struct drain *d, unsigned file) {
    struct rec_commit *c = next_commit(d);
    uint64_t n = __atomic_load_n(&d->v->head->nnames, __ATOMIC_ACQUIRE);
    encode_names(&d->enc, file, c->names[file], n);
    c->names[file] = n;
}

/* Is all that the thread did in the files, its losses too? */
static bool emptied(const struct rec_ring *r, unsigned active) {
    for (unsigned k = 0; k < REC_LOSSES; k++)
        if (__atomic_load_n(&r->lost[k], __ATOMIC_RELAXED) !=
            r->told[active][k])
            return false;
    return __atomic_load_n(&r->head, __ATOMIC_RELAXED) == r->tail[active];
}

/* Room for the writers, now that it is safe. */
static void release_rings(struct drain *d) {
    const struct rec_head *h = d->v->head;
    for (uint32_t i = 0; i < d->v->nrings && !h->flight; i++) {
        struct rec_ring *r = d->v->ring[i];
        if (r == NULL || is_free(r)) continue;
        uint64_t tail = r->tail[h->active];
        __atomic_store_n(&r->room, tail + r->slots - REC_SLOT_MAX,
                         __ATOMIC_RELEASE);
        if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != REC_RING_ENDED ||
            !emptied(r, h->active))
            continue;
        /* from here on drain_begin leaves it alone: both ends are the last */
        r->tail[!h->active] = tail;
        memcpy(r->told[!h->active], r->told[h->active], sizeof r->told[0]);
        __atomic_store_n(&r->state, REC_RING_FREE, __ATOMIC_RELEASE);
    }
}

static int failed(struct drain *d) {
    files_rollback(&d->files);
    if (d->at_failure != NULL) d->at_failure(d, d->ctx);
    d->enc.failed = false;
    return -1;
}

/* The commit that was filled holds from here on: one store, or one write. */
static int flip(struct drain *d) {
    struct rec_head *h = d->v->head;
    unsigned next = !h->active;
    for (uint32_t i = 0; d->ring >= 0 && i < d->v->nrings; i++) {
        const struct rec_ring *r = d->v->ring[i];
        if (r != NULL && (keep(d, &r->tail[next], sizeof r->tail[0]) != 0 ||
                          keep(d, r->told[next], sizeof r->told[0]) != 0))
            return -1;
    }
    if (keep(d, &h->commit[next], sizeof h->commit[0]) != 0) return -1;
    __atomic_store_n(&h->active, next, __ATOMIC_RELEASE);
    if (keep(d, &h->active, sizeof h->active) == 0) return 0;
    h->active = !next;
    return -1;
}

int drain_commit(struct drain *d) {
    encode_lines(&d->enc);
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
    release_rings(d);
    return 0;
}

static int join(struct drain *d) {
    uint8_t tail[256];
    const struct rec_head *h = d->v->head;
    uint32_t at = 0;
    uint64_t last = d->enc.last > h->last_tick ? d->enc.last : h->last_tick;
    uint64_t ps = rec_clock_ps(d->v->segs, h->nsegs, &at, last);
    return files_join(&d->files, tail, encode_environment(h, ps, tail));
}

int drain_rotate(struct drain *d) {
    char name[NAME_MAX + 1];
    if (join(d) != 0) return -1;
    struct files old = d->files;
    files_init(&d->files, old.dir, old.stem, old.part + 1);
    drain_begin(d);
    struct rec_commit *c = next_commit(d);
    memset(c->names, 0, sizeof c->names);
    if (open_plane(d, 0) != 0 || drain_commit(d) != 0) {
        int error = d->files.error;
        files_discard(&d->files);
        d->files = old;
        d->files.error = error;
        return -1;
    }
    int result = files_finish(&old, name);
    if (result != 0) d->files.error = old.error;
    files_close(&old);
    return result;
}

int drain_finish(struct drain *d, char name[NAME_MAX + 1]) {
    struct rec_head *h = d->v->head;
    if (join(d) != 0) return -1;
    __atomic_store_n(&h->done, 1, __ATOMIC_RELEASE);
    if (keep(d, &h->done, sizeof h->done) != 0) return -1;
    return files_finish(&d->files, name);
}

void drain_close(struct drain *d) {
    files_close(&d->files);
    encoder_free(&d->enc);
}
