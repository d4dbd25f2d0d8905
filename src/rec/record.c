/* SPDX-License-Identifier: Apache-2.0
 * The calls: what runs in other people's loops. No lock, no system call, no
 * allocation; a handful of stores into memory that only this thread writes.
 *
 * The order of stores is a promise to whoever reads after a kill: a record's
 * slots before head, head before depth. A scope that has just ended may for a
 * moment stand in the ring and among the open ones, and readers know that. */
#include "rec/session.h"

#include <signal.h>
#include <string.h>

#include "rec/memory.h"
#include "rec/names.h"
#include "rec/record.h"
#include "rec/threads.h"
#include "ring/clock.h"
#include "ring/text.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* --- in and out ---------------------------------------------------------- */

static inline uint32_t state_now(void) { return OPS_STATE_(); }

static inline void leave(void) { REC_PUBLISH(&rec_self.busy, 0); }

/* The place of the caller's frame on the stack. */
#define FRAME() ((uintptr_t)__builtin_frame_address(0))

/* Mends the ring after a call that was left in the middle by a jump out of a
 * handler and may have done half of its work: a scope that stands in the ring
 * already is not open any more. */
static void mend(struct rec_ring *r, const struct rec_slot *slots) {
    uint32_t d = r->depth;
    if (d > 0 && d <= REC_FRAMES) {
        const struct rec_frame *f = &r->frames[d - 1];
        if (rec_ring_ended(r, slots, REC_SCOPE, f->time, f->name)) {
            REC_PUT(&r->args_top, f->args);
            REC_PUBLISH(&r->depth, d - 1);
        }
    }
    if ((r->marks & REC_IN_STEP) &&
        rec_ring_ended(r, slots, REC_STEP, r->step_time, 0))
        REC_PUBLISH(&r->marks, r->marks & ~(uint32_t)REC_IN_STEP);
    if ((r->marks & REC_IN_EPOCH) &&
        rec_ring_ended(r, slots, REC_EPOCH, r->epoch_time, 0))
        REC_PUBLISH(&r->marks, r->marks & ~(uint32_t)REC_IN_EPOCH);
}

/* `busy` is set: has the call that set it been left by a jump? A handler that
 * interrupted it runs further down the stack, by more than the kernel's frame
 * of a signal (over 512 bytes everywhere), or on a stack of its own. A caller
 * from as far up, or further, has left that call by a jump. */
static bool outlived(uintptr_t here) {
    enum { SIGNAL_FRAME = 512 };
    stack_t on;
    if (here + SIGNAL_FRAME <= rec_self.busy) return false;
    if (sigaltstack(NULL, &on) != 0 || (on.ss_flags & SS_ONSTACK)) return false;
    if (rec_self.gen == state_now() >> OPS_GEN_SHIFT_)
        mend(rec_self.ring, rec_self.slots);
    return true;
}

/* Puts the thread inside its ring until leave(). It sets `busy` and then looks
 * at the state again: ops_stop() stores the state and then looks at `busy`,
 * with a barrier for both (threads_quiesce). Before that look the ring may not
 * be touched: it may be gone. When busy is set already, the call that set it
 * keeps the ring there. */
static inline struct rec_ring *enter_at(uint32_t gen, uintptr_t frame) {
    REC_PUT(&rec_self.busy, frame);
    __asm__ volatile("" ::: "memory");
    if (UNLIKELY(state_now() >> OPS_GEN_SHIFT_ != gen)) {
        leave();
        return NULL;
    }
    return rec_self.ring;
}

static __attribute__((noinline, cold)) struct rec_ring *
enter_busy(uint32_t gen, uintptr_t frame) {
    if (outlived(frame)) return enter_at(gen, frame);
    struct rec_ring *r = rec_self.ring;
    REC_PUT(&r->lost[REC_LOST_SIGNAL], r->lost[REC_LOST_SIGNAL] + 1);
    return NULL;
}

static inline struct rec_ring *enter_ring(uint32_t gen) {
    if (UNLIKELY(rec_self.busy != 0)) return enter_busy(gen, FRAME());
    return enter_at(gen, FRAME());
}

/* Serves the first call of a thread in a session, or of a child after a fork;
 * also calls when no window is open: `any` wants the ring all the same. */
static __attribute__((noinline)) struct rec_ring *enter_slow(bool any) {
    uint32_t st = state_now();
    if (st & OPS_PENDING_BIT_) {
        session_child();
        st = state_now();
    }
    uint32_t gen = st >> OPS_GEN_SHIFT_;
    if (gen == 0 || (!any && !(st & OPS_ON_BIT_))) return NULL;
    if (rec_self.gen != gen && !thread_attach(gen)) return NULL;
    return enter_ring(gen);
}

/* Returns the ring while a window is open; else NULL. */
static inline struct rec_ring *enter(void) {
    uint32_t st = state_now();
    if (UNLIKELY(st != rec_self.word)) return enter_slow(false);
    return enter_ring(st >> OPS_GEN_SHIFT_);
}

/* --- slots --------------------------------------------------------------- */

/* Is there more room? The limit is this thread's own copy of what the flusher
 * has given back and of what has memory behind it: it is looked at again when
 * it is reached. */
static __attribute__((noinline)) bool more_room(struct rec_ring *r) {
    uint64_t limit = thread_room(r);
    REC_PUT(&r->write_limit, limit);
    if (r->head < limit) return true;
    enum rec_loss why = thread_lacks_memory(r) ? REC_LOST_MEMORY
                                               : REC_LOST_FULL;
    REC_PUT(&r->lost[why], r->lost[why] + 1);
    return false;
}

static inline bool has_room(struct rec_ring *r) {
    return LIKELY(r->head < r->write_limit) || more_room(r);
}

static inline void slot(struct rec_slot *s, uint64_t time, uint64_t rest) {
    REC_PUT(&s->time, time);
    REC_PUT(&s->rest, rest);
}

/* Writes a record with n bytes of payload into the thread's ring. */
static inline void put_record(struct rec_ring *r, enum rec_kind kind,
                              uint32_t name, uint64_t time, const void *payload,
                              uint32_t n) {
    struct rec_slot *slots = rec_self.slots;
    const uint8_t *p = payload;
    uint64_t at = r->head, mask = rec_self.mask;
    slot(&slots[at++ & mask], time, rec_rest(kind, name, n));
    for (; n > 0; at++) {
        uint8_t piece[REC_CONT_BYTES] = {0};
        uint32_t take = n < REC_CONT_BYTES ? n : REC_CONT_BYTES, rest;
        uint64_t first;
        memcpy(piece, p, take);
        memcpy(&first, piece, 8);
        memcpy(&rest, piece + 8, 4);
        slot(&slots[at & mask], first, rec_rest(REC_CONT, 0, rest));
        p += take;
        n -= take;
    }
    REC_PUBLISH(&r->head, at);
}

static inline void emit(struct rec_ring *r, enum rec_kind kind, uint32_t name,
                        uint64_t time, const void *payload, uint32_t n) {
    if (has_room(r)) put_record(r, kind, name, time, payload, n);
}

/* --- scopes -------------------------------------------------------------- */

/* Which scope of which call of a function this is: the place in the program and
 * the place in the stack. */
#define WHERE()                                                                \
    (FRAME() + (uintptr_t)__builtin_return_address(0) * 0x9e3779b97f4a7c15u)

/* Returns how the program knows a scope: by when it began. Never 0. */
static inline uint32_t which(uint64_t t) { return (uint32_t)t | 1u << 31; }

/* Opens a new scope at depth d, which is below REC_FRAMES. */
static inline void push(struct rec_ring *r, uint32_t d, uint32_t name,
                        uint64_t where, uint64_t now) {
    struct rec_frame *f = &r->frames[d];
    REC_PUT(&f->name, name);
    REC_PUT(&f->args, (uint16_t)r->args_top);
    REC_PUT(&f->where, where);
    REC_PUT(&f->time, now);
    REC_PUBLISH(&r->depth, d + 1);
}

/* May the scope at depth d just be pushed? Not if the innermost one is this
 * very scope, begun before: that one was left by a jump. */
static inline bool plain_begin(const struct rec_ring *r, uint32_t d,
                               uint64_t where) {
    return LIKELY(d < r->look_at) &&
           LIKELY(d == 0 || r->frames[d - 1].where != where);
}

static __attribute__((noinline)) void close_long(struct rec_ring *r,
                                                 const struct rec_frame *f,
                                                 uint32_t args_end,
                                                 uint64_t now) {
    uint8_t payload[8 + REC_ARGS];
    uint64_t dur = now > f->time ? now - f->time : 0;
    uint32_t n = args_end - f->args;
    memcpy(payload, &dur, 8);
    memcpy(payload + 8, r->args + f->args, n);
    put_record(r, REC_SCOPE_X, f->name, f->time, payload, 8 + n);
}

/* Ends the innermost scope in one slot, if it is this one, short, without
 * arguments and there is room. Else returns false, and does nothing. */
static inline bool close_plain(struct rec_ring *r, struct rec_slot *slots,
                               uint64_t mask, uint32_t one, uint64_t now) {
    uint32_t d = r->depth - 1;
    if (UNLIKELY(d >= REC_FRAMES)) return false;
    const struct rec_frame *f = &r->frames[d];
    if (UNLIKELY(which(f->time) != one)) return false;
    uint64_t dur = now - f->time, head = r->head;
    if (UNLIKELY(dur > UINT32_MAX || f->args != r->args_top ||
                 head >= r->write_limit))
        return false;
    slot(&slots[head & mask], f->time,
         rec_rest(REC_SCOPE, f->name, (uint32_t)dur));
    REC_PUBLISH(&r->head, head + 1);
    REC_PUBLISH(&r->depth, d);
    return true;
}

/* Ends the innermost scope. */
static void close_frame(struct rec_ring *r, uint64_t now) {
    uint32_t d = r->depth - 1;
    if (d < REC_FRAMES) {
        const struct rec_frame *f = &r->frames[d];
        if (close_plain(r, rec_self.slots, rec_self.mask, which(f->time), now))
            return;
        if (has_room(r)) close_long(r, f, r->args_top, now);
        if (r->args_top != f->args) REC_PUT(&r->args_top, f->args);
    }
    REC_PUBLISH(&r->depth, d);
}

/* Returns the count of begins by hand at this depth that no window saw. */
static uint16_t *unrecorded_begins(struct rec_ring *r) {
    return &r->unrecorded_begins[r->depth < REC_FRAMES ? r->depth : REC_FRAMES];
}

/* Does what enter() does in the usual case: it calls nothing, so that the
 * callers need not save a register. Returns false if it cannot: the caller then
 * takes the long way. */
static inline bool enter_fast(uint32_t gen) {
    if (UNLIKELY(rec_self.busy != 0)) return false;
    REC_PUT(&rec_self.busy, FRAME());
    __asm__ volatile("" ::: "memory");
    if (LIKELY(state_now() >> OPS_GEN_SHIFT_ == gen)) return true;
    leave();
    return false;
}

static void count_abandoned(struct rec_ring *r) {
    REC_PUT(&r->lost[REC_LOST_ABANDONED], r->lost[REC_LOST_ABANDONED] + 1);
}

/* Closes the innermost scope, which was left by a jump. */
static void abandon(struct rec_ring *r, uint64_t now) {
    count_abandoned(r);
    *unrecorded_begins(r) = 0;
    close_frame(r, now);
}

/* Is this the innermost scope? */
static bool is_top(const struct rec_ring *r, uint32_t one) {
    uint32_t d = r->depth - 1;
    return d < REC_FRAMES && which(r->frames[d].time) == one;
}

/* Closes a scope that is not the innermost. Scopes inside it that were left by
 * longjmp() end with it. A scope that is not there was too deep to be kept, or
 * ended twice. */
static __attribute__((noinline)) void close_other(struct rec_ring *r,
                                                  uint32_t one, uint64_t now) {
    uint32_t n = r->depth < REC_FRAMES ? r->depth : REC_FRAMES;
    uint32_t at = n;
    while (at > 0 && which(r->frames[at - 1].time) != one) at--;
    if (at > 0) {
        while (r->depth > at) abandon(r, now);
        close_frame(r, now);
    } else if (r->depth > REC_FRAMES) {
        REC_PUBLISH(&r->depth, r->depth - 1);
    } else {
        REC_PUT(&r->lost[REC_LOST_UNMATCHED], r->lost[REC_LOST_UNMATCHED] + 1);
    }
}

/* Takes scope i out from under the others. */
static void close_below(struct rec_ring *r, uint32_t i, uint64_t end) {
    struct rec_frame *f = &r->frames[i];
    uint32_t from = f->args, to = f[1].args;
    if (has_room(r)) close_long(r, f, to, end);
    memmove(r->args + from, r->args + to, r->args_top - to);
    for (uint32_t k = i; k + 1 < r->depth; k++) {
        r->frames[k] = r->frames[k + 1];
        r->frames[k].args = (uint16_t)(r->frames[k].args - (to - from));
    }
    REC_PUT(&r->args_top, r->args_top - (to - from));
    REC_PUBLISH(&r->depth, r->depth - 1);
}

/* Closes a scope of a block that is open twice, in the same call of the same
 * function: the first, and what is between them, was left by a jump, and had
 * ended when the second was begun. */
static void close_abandoned(struct rec_ring *r) {
    for (uint32_t i = 0; i + 1 < r->depth; i++) {
        uint32_t last = i;
        for (uint32_t k = i + 1; k < r->depth && r->frames[i].where != 0; k++)
            if (r->frames[k].where == r->frames[i].where) last = k;
        uint64_t end = r->frames[last].time;
        for (uint32_t k = i; k < last; k++) {
            count_abandoned(r);
            close_below(r, i, end);
        }
    }
}

/* Does the same where more scopes are open than are kept: those begun since the
 * jump are not kept, so that all are void from the first one on. */
static void close_abandoned_deep(struct rec_ring *r, uint64_t where,
                                 uint64_t now) {
    uint32_t i = 0;
    while (i < REC_FRAMES && r->frames[i].where != where) i++;
    if (i == REC_FRAMES) return;
    REC_PUBLISH(&r->depth, REC_FRAMES);
    while (r->depth > i) abandon(r, now);
}

/* Begins a scope where many are open. Every scope of a block looks whether it
 * is itself the innermost one; when many are open, all are looked at, but
 * seldom, since sound programs do not go that deep. */
static __attribute__((noinline)) void
begin_deep(struct rec_ring *r, uint32_t name, uint64_t where, uint64_t now) {
    enum { SELDOM = 64 };
    uint32_t d = r->depth;
    bool look = d >= r->look_at &&
                (d < REC_FRAMES || r->lost[REC_LOST_DEEP] % SELDOM == 0);
    if (where != 0 && d > REC_FRAMES) close_abandoned_deep(r, where, now);
    else if (where != 0 && d > 0 && r->frames[d - 1].where == where)
        abandon(r, now);
    if (look && r->depth <= REC_FRAMES) close_abandoned(r);
    d = r->depth;
    if (d >= r->look_at)
        REC_PUT(&r->look_at, d < REC_FRAMES / 2 ? 2 * d : REC_FRAMES);
    if (d < REC_FRAMES) {
        push(r, d, name, where, now);
    } else {
        REC_PUT(&r->lost[REC_LOST_DEEP], r->lost[REC_LOST_DEEP] + 1);
        REC_PUBLISH(&r->depth, d + 1);
    }
}

static __attribute__((noinline)) struct ops_scope_ begin_slow(uint32_t name,
                                                              uint64_t where) {
    struct rec_ring *r = enter();
    if (r == NULL) return (struct ops_scope_){0, 0};
    uint64_t now = rec_ticks();
    begin_deep(r, name, where, now);
    leave();
    return (struct ops_scope_){which(now), rec_self.gen};
}

static inline __attribute__((always_inline)) struct ops_scope_
begin(uint32_t name, uint64_t where, bool block) {
    uint32_t st = state_now(), gen = st >> OPS_GEN_SHIFT_;
    if (UNLIKELY(st != rec_self.fast || !enter_fast(gen)))
        return begin_slow(name, where);
    struct rec_ring *r = rec_self.ring;
    uint32_t d = r->depth;
    if (UNLIKELY(block ? !plain_begin(r, d, where) : d >= r->look_at)) {
        leave();
        return begin_slow(name, where);
    }
    uint64_t now = rec_counter();
    push(r, d, name, where, now);
    leave();
    return (struct ops_scope_){which(now), gen};
}

/* Begin the scope of a block; one that ops_end() ends, anywhere; and one that
 * ops_end_known_() ends, anywhere. */
struct ops_scope_ ops_begin_(uint32_t name) {
    return begin(name, WHERE(), true);
}
void ops_begin_by_hand_(uint32_t name) { begin(name, 0, false); }
struct ops_scope_ ops_begin_known_(uint32_t name) {
    return begin(name, 0, false);
}

/* inside: the ring was entered already. */
static __attribute__((noinline)) void end_slow(struct ops_scope_ s,
                                               uint64_t now, bool inside) {
    if (!inside && (rec_self.gen != s.gen || enter_ring(s.gen) == NULL)) return;
    struct rec_ring *r = rec_self.ring;
    if (LIKELY(is_top(r, s.which))) close_frame(r, now);
    else close_other(r, s.which, now);
    leave();
}

/* A scope that began inside a window is recorded when it ends outside. */
void ops_scope_end_(struct ops_scope_ s) {
    if (UNLIKELY(!rec_clock_is_tsc())) {
        end_slow(s, rec_ticks(), false);
        return;
    }
    uint64_t now = rec_counter();
    if (UNLIKELY(rec_self.gen != s.gen)) return;
    if (UNLIKELY(!enter_fast(s.gen))) {
        end_slow(s, now, false);
        return;
    }
    if (UNLIKELY(!close_plain(rec_self.ring, rec_self.slots, rec_self.mask,
                              s.which, now))) {
        end_slow(s, now, true);
        return;
    }
    leave();
}

/* Returns the ring if this thread has one in this session, window or not. */
static struct rec_ring *enter_mine(void) {
    uint32_t gen = state_now() >> OPS_GEN_SHIFT_;
    if (gen == 0 || rec_self.gen != gen) return NULL;
    return enter_ring(gen);
}

void ops_begin_off_(void) {
    struct rec_ring *r = enter_mine();
    if (r == NULL) return;
    if (*unrecorded_begins(r) < UINT16_MAX) ++*unrecorded_begins(r);
    leave();
}

/* Ends the innermost scope that was begun by hand. Scopes of blocks inside it
 * end by themselves: those that are still there were left by a jump. */
static void close_by_hand(struct rec_ring *r, uint64_t now) {
    uint32_t at = r->depth;
    while (at > 0 && at <= REC_FRAMES && r->frames[at - 1].where != 0) at--;
    if (at == 0) {
        REC_PUT(&r->lost[REC_LOST_UNMATCHED], r->lost[REC_LOST_UNMATCHED] + 1);
        return;
    }
    while (r->depth > at) abandon(r, now);
    close_frame(r, now);
}

void ops_end_(void) {
    uint64_t now = rec_ticks();
    struct rec_ring *r = enter_mine();
    if (r == NULL) return;
    if (UNLIKELY(*unrecorded_begins(r) > 0)) --*unrecorded_begins(r);
    else if (r->depth == 0 && rec_session.windowed)
        ; /* begun before the window, when this thread had no ring yet */
    else close_by_hand(r, now);
    leave();
}

/* Ends a scope that is not the innermost, and leaves those inside of it open:
 * they end by themselves, and may outlast it. */
static void take_out(struct rec_ring *r, uint32_t one, uint64_t now) {
    uint32_t at = r->depth < REC_FRAMES ? r->depth : REC_FRAMES;
    while (at > 0 && which(r->frames[at - 1].time) != one) at--;
    if (at == 0) {
        close_other(r, one, now); /* counts it */
        return;
    }
    while (r->depth > REC_FRAMES) abandon(r, now); /* they have no frames */
    if (at == r->depth) {
        close_frame(r, now);
        return;
    }
    uint16_t *begins = r->unrecorded_begins;
    begins[at - 1] = (uint16_t)(begins[at - 1] + begins[at]);
    for (uint32_t k = at; k < r->depth; k++) begins[k] = begins[k + 1];
    begins[r->depth] = 0;
    close_below(r, at - 1, now);
}

/* Ends a scope of this thread that ops_begin_known_() began; one that is not
 * the innermost only if it may be anywhere. Tells whether it did, or there was
 * nothing to end. */
bool ops_end_known_(struct ops_scope_ s, bool anywhere) {
    uint64_t now = rec_ticks();
    if (s.which == 0 || rec_self.gen != s.gen || enter_ring(s.gen) == NULL)
        return true;
    struct rec_ring *r = rec_self.ring;
    bool top = is_top(r, s.which);
    if (LIKELY(top)) close_frame(r, now);
    else if (anywhere) take_out(r, s.which, now);
    leave();
    return top || anywhere;
}

/* --- arguments ----------------------------------------------------------- */

static void arg(uint32_t key, enum rec_arg_type type, const void *value,
                size_t n) {
    struct rec_ring *r = enter();
    if (r == NULL) return;
    uint32_t at = r->args_top;
    if (r->depth == 0 || r->depth > REC_FRAMES ||
        at + REC_ARG_HEAD + n > REC_ARGS) {
        REC_PUT(&r->lost[REC_LOST_ARGS], r->lost[REC_LOST_ARGS] + 1);
    } else {
        uint8_t *p = r->args + at;
        memcpy(p, &key, 4);
        p[4] = (uint8_t)type;
        p[5] = (uint8_t)n;
        memcpy(p + REC_ARG_HEAD, value, n);
        REC_PUBLISH(&r->args_top, at + REC_ARG_HEAD + (uint32_t)n);
    }
    leave();
}

void ops_arg_int_(uint32_t key, int64_t v) { arg(key, REC_ARG_INT, &v, 8); }
void ops_arg_num_(uint32_t key, double v) { arg(key, REC_ARG_NUM, &v, 8); }

void ops_arg_text_(uint32_t key, const char *text) {
    if (text == NULL) text = "(null)";
    arg(key, REC_ARG_STRING, text,
        text_cut(text, strnlen(text, REC_ARG_TEXT_MAX + 1), REC_ARG_TEXT_MAX));
}

/* A flow where no scope is open stands on an instant. */
void ops_flow_(uint64_t id, int out) {
    enum rec_arg_type type = out ? REC_ARG_FLOW_OUT : REC_ARG_FLOW_IN;
    uint32_t name = names_intern("flow", OPS_KIND_OP);
    struct rec_ring *r = enter();
    if (r == NULL) return;
    uint32_t depth = r->depth;
    if (depth == 0) {
        uint8_t p[REC_ARG_HEAD + 8] = {0, 0, 0, 0, (uint8_t)type, 8};
        memcpy(p + REC_ARG_HEAD, &id, 8);
        emit(r, REC_INSTANT, name, rec_ticks(), p, sizeof p);
    }
    leave();
    if (depth > 0) arg(0, type, &id, 8);
}

uint64_t ops_flow_new(void) {
    static uint64_t next = 1;
    return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
}

uint64_t ops_correlation_(void) {
    static uint64_t next = 1;
    uint64_t id = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    arg(0, REC_ARG_CORR, &id, 8);
    return id;
}

/* --- the rest ------------------------------------------------------------ */

void ops_instant_(uint32_t name) {
    struct rec_ring *r = enter();
    if (r == NULL) return;
    emit(r, REC_INSTANT, name, rec_ticks(), NULL, 0);
    leave();
}

void ops_counter_(uint32_t name, double v) {
    struct rec_ring *r = enter();
    if (r == NULL) return;
    emit(r, REC_COUNTER, name, rec_ticks(), &v, sizeof v);
    leave();
}

void ops_alloc_(uint64_t addr, uint64_t bytes, uint32_t tag) {
    struct rec_ring *r = addr == 0 ? NULL : enter();
    if (r == NULL) return;
    uint64_t p[2] = {addr, bytes};
    emit(r, REC_ALLOC, tag, rec_ticks(), p, sizeof p);
    leave();
}

void ops_free_(uint64_t addr) {
    struct rec_ring *r = addr == 0 ? NULL : enter();
    if (r == NULL) return;
    emit(r, REC_FREE, 0, rec_ticks(), &addr, sizeof addr);
    leave();
}

void ops_scalar_(uint32_t tag, int64_t step, double v) {
    struct {
        int64_t step;
        double v;
    } p = {step, v};
    struct rec_ring *r = enter_slow(true);
    if (r == NULL) return;
    emit(r, REC_SCALAR, tag, rec_ticks(), &p, sizeof p);
    leave();
}

void ops_device_span_(uint32_t track, uint32_t name, uint64_t t0, uint64_t t1,
                      uint64_t corr) {
    struct rec_ring *r = track == 0 ? NULL : enter();
    if (r == NULL) return;
    uint8_t p[20];
    uint64_t dur = t1 > t0 ? t1 - t0 : 0;
    memcpy(p, &dur, 8);
    memcpy(p + 8, &corr, 8);
    memcpy(p + 16, &track, 4);
    emit(r, REC_DEVICE, name, t0, p, sizeof p);
    leave();
}

uint64_t ops_now(void) { return rec_mono_ns(); }

/* Gives the table its memory with the first async. */
static bool asyncs_ready(void) {
    struct rec_head *h = rec_session.map.head;
    if (LIKELY(REC_ACQUIRE(&h->asyncs_used))) return true;
    struct host_state q;
    host_state_save(&q);
    bool ok = memory_back(rec_self.asyncs,
                          REC_ASYNCS * sizeof *rec_self.asyncs);
    if (ok) REC_PUBLISH(&h->asyncs_used, 1);
    host_state_restore(&q);
    return ok;
}

/* Open asyncs stand in a table, so that a kill does not lose them: a thread
 * takes a place there that it finds free. */
struct ops_async ops_async_begin_(uint32_t name) {
    struct ops_async a = {0, name, 0, REC_ASYNCS};
    struct rec_ring *r = enter();
    if (r == NULL) return a;
    a.gen = rec_self.gen;
    a.t0 = rec_ticks();
    struct rec_async *table = rec_self.asyncs;
    for (uint32_t i = 0; i < 8 && asyncs_ready(); i++) {
        uint32_t at = (uint32_t)((a.t0 / 16 + i * 131) % REC_ASYNCS);
        uint64_t empty = 0;
        if (!__atomic_compare_exchange_n(&table[at].time, &empty, UINT64_MAX,
                                         false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        REC_PUT(&table[at].name, name);
        REC_PUBLISH(&table[at].time, a.t0);
        a.slot = at;
        break;
    }
    leave();
    return a;
}

void ops_async_end_(struct ops_async *a) {
    uint64_t now = rec_ticks();
    if (a->gen != state_now() >> OPS_GEN_SHIFT_) return;
    struct rec_ring *r = enter_slow(true);
    if (r == NULL) return;
    uint64_t dur = now > a->t0 ? now - a->t0 : 0;
    emit(r, REC_ASYNC, a->name, a->t0, &dur, sizeof dur);
    if (a->slot < REC_ASYNCS) REC_PUBLISH(&rec_self.asyncs[a->slot].time, 0);
    leave();
}

/* --- steps --------------------------------------------------------------- */

static void close_mark(struct rec_ring *r, bool epoch, uint64_t now) {
    uint32_t bit = epoch ? REC_IN_EPOCH : REC_IN_STEP;
    if (!(r->marks & bit)) return;
    uint64_t t0 = epoch ? r->epoch_time : r->step_time;
    struct {
        uint64_t dur;
        int64_t number;
    } p = {now > t0 ? now - t0 : 0, epoch ? r->epoch : r->step};
    emit(r, epoch ? REC_EPOCH : REC_STEP, 0, t0, &p, sizeof p);
    REC_PUBLISH(&r->marks, r->marks & ~bit);
}

static void end_mark(bool epoch, uint64_t now) {
    struct rec_ring *r = enter_mine();
    if (r == NULL) return;
    close_mark(r, epoch, now);
    leave();
}

/* The first call of a thread makes its ring, that of a child a whole session:
 * the time that this took is ours, and no part of the program's step. */
static void begin_mark(bool epoch, int64_t number, uint64_t now) {
    bool first = rec_self.gen == 0 ||
                 rec_self.gen != state_now() >> OPS_GEN_SHIFT_;
    struct rec_ring *r = enter();
    if (r == NULL) return;
    if (UNLIKELY(first)) now = rec_ticks();
    if (epoch) {
        REC_PUT(&r->epoch, number);
        REC_PUT(&r->epoch_time, now);
    } else {
        REC_PUT(&r->step, number);
        REC_PUT(&r->step_time, now);
    }
    REC_PUBLISH(&r->marks, r->marks | (epoch ? REC_IN_EPOCH : REC_IN_STEP));
    leave();
}

void ops_step_(int64_t number) {
    uint64_t now = rec_ticks();
    end_mark(false, now);
    if (state_now() & OPS_PENDING_BIT_) session_child();
    session_step(number);
    begin_mark(false, number, now);
}

/* Steps lie in epochs: only this can end the last step of the epoch before, and
 * a step that crossed into the next epoch would be a child of neither. */
void ops_epoch_(int64_t number) {
    uint64_t now = rec_ticks();
    end_mark(false, now);
    end_mark(true, now);
    begin_mark(true, number, now);
}

void ops_step_end_(void) {
    end_mark(false, rec_ticks());
    session_step_end();
}
void ops_epoch_end_(void) {
    uint64_t now = rec_ticks();
    end_mark(false, now);
    end_mark(true, now);
}

/* Is a scope open that was begun since that time? */
static bool opened_since(const struct rec_ring *r, uint64_t time) {
    uint32_t d = r->depth < REC_FRAMES ? r->depth : REC_FRAMES;
    return d > 0 && r->frames[d - 1].time >= time;
}

void record_close_steps(void) {
    uint64_t now = rec_ticks();
    struct rec_ring *r = enter_mine();
    if (r == NULL) return;
    if (r->depth <= REC_FRAMES) close_abandoned(r);
    if (!(r->marks & REC_IN_STEP) || !opened_since(r, r->step_time)) {
        close_mark(r, false, now);
        if (!opened_since(r, r->epoch_time)) close_mark(r, true, now);
    }
    leave();
}

void record_close_all(void) {
    uint64_t now = rec_ticks();
    if (rec_self.busy != 0) outlived(UINTPTR_MAX - 512);
    leave(); /* a thread that ends is in no call any more */
    struct rec_ring *r = enter_mine();
    if (r == NULL) return;
    if (r->depth <= REC_FRAMES) close_abandoned(r);
    while (r->depth > 0) abandon(r, now);
    close_mark(r, false, now);
    close_mark(r, true, now);
    leave();
}

/* --- what it costs ------------------------------------------------------- */

uint64_t record_cost_ps(const struct ring_map *v) {
    enum { ROUNDS = 16, SCOPES = 256 };
    static struct {
        struct rec_ring ring;
        struct rec_slot slots[SCOPES];
        uintptr_t busy;
    } trial;
    struct rec_ring *r = &trial.ring;
    uint64_t best = UINT64_MAX;
    uint32_t at = 0;
    r->slots = SCOPES;
    r->write_limit = UINT64_MAX;
    r->look_at = REC_FRAMES;
    for (int k = 0; k < ROUNDS; k++) {
        uint64_t t0 = rec_ticks();
        for (int i = 0; i < SCOPES; i++) {
            REC_PUT(&trial.busy, FRAME());
            if (plain_begin(r, 0, WHERE())) push(r, 0, 1, WHERE(), rec_ticks());
            REC_PUBLISH(&trial.busy, 0);
            uint64_t now = rec_ticks();
            REC_PUT(&trial.busy, FRAME());
            close_plain(r, trial.slots, SCOPES - 1, which(r->frames[0].time),
                        now);
            REC_PUBLISH(&trial.busy, 0);
        }
        uint64_t t = rec_ticks() - t0;
        if (t < best) best = t;
    }
    uint64_t a = v->head->start_tick;
    return rec_clock_ps(v->segs, v->head->nsegs, &at, a + best) / SCOPES;
}
