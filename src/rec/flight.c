/* SPDX-License-Identifier: Apache-2.0
 * Copy first, then ask how far the writer has come: what lies more than a
 * ring's length behind it by then was overwritten under the copy. */
#include "rec/flight.h"

#include <string.h>
#include <sys/mman.h>

#include "ring/clock.h"
#include "ring/view.h"

#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)

/* The head of a ring whose thread runs: each field as it is at some moment.
 * Arguments of open scopes are not taken: they may change in the middle. */
static void copy_head(struct rec_ring *to, const struct rec_ring *r) {
    memset(to, 0, sizeof *to);
    to->slots = r->slots;
    to->floor = r->floor;
    to->state = LOAD(&r->state);
    to->tid = r->tid;
    to->thread = r->thread;
    char name[REC_THREAD_NAME];
    rec_name_get(r, name);
    rec_name_put(to, name);
    for (unsigned i = 0; i < REC_LOSSES; i++) to->lost[i] = LOAD(&r->lost[i]);
    to->depth = __atomic_load_n(&r->depth, __ATOMIC_ACQUIRE);
    if (to->depth > REC_FRAMES) to->depth = REC_FRAMES;
    for (uint32_t i = 0; i < to->depth; i++) {
        to->frames[i].time = LOAD(&r->frames[i].time);
        to->frames[i].name = LOAD(&r->frames[i].name);
    }
    to->marks = __atomic_load_n(&r->marks, __ATOMIC_ACQUIRE);
    to->step = LOAD(&r->step);
    to->step_time = LOAD(&r->step_time);
    to->epoch = LOAD(&r->epoch);
    to->epoch_time = LOAD(&r->epoch_time);
}

/* Acquire: the look at head that follows is not done before. */
static void copy_slots(struct rec_slot *to, const struct rec_slot *from,
                       uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        to[i].time = __atomic_load_n(&from[i].time, __ATOMIC_ACQUIRE);
        to[i].rest = __atomic_load_n(&from[i].rest, __ATOMIC_ACQUIRE);
    }
}

static void dump_ring(struct drain *d, struct rec_ring *r) {
    struct rec_head *h = d->v->head;
    unsigned next = !h->active;
    size_t bytes = r->slots * sizeof(struct rec_slot);
    struct rec_slot *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) return;
    struct rec_ring a, b;
    copy_head(&a, r);
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
    /* behind that there is no memory, and nothing */
    copy_slots(slots, rec_slots(r),
               __atomic_load_n(&r->backed, __ATOMIC_ACQUIRE));
    uint64_t later = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
    copy_head(&b, r);
    rec_ring_keep_common(&a, &b);
    a.head = head;
    /* The record that is being written, and as much again: a CPU may show the
     * slots of the next before the head of the last. */
    uint64_t from = r->tail[h->active], most = r->slots - 2 * REC_SLOT_MAX;
    if (from < r->floor) from = r->floor;
    if (later - from > most) from = later - most;
    if (from > head) from = head;
    encode_ring(&d->enc, &a, slots, from, head, r->told[h->active], a.lost);
    if (a.state == REC_RING_LIVE) encode_open(&d->enc, &a, slots, rec_ticks());
    r->tail[next] = head;
    memcpy(r->told[next], a.lost, sizeof a.lost);
    munmap(slots, bytes);
}

void flight_pass(struct drain *d) {
    struct rec_head *h = d->v->head;
    drain_begin(d);
    d->v->nrings = __atomic_load_n(&h->nrings, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < d->v->nrings; i++) {
        struct rec_ring *r = d->v->ring[i];
        if (r != NULL &&
            __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != REC_RING_FREE)
            dump_ring(d, r);
    }
    encode_lines(&d->enc);
}
