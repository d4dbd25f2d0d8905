/* SPDX-License-Identifier: Apache-2.0
 * The shared memory of a recording program: what a reader finds in it after a
 * kill -9. One file (/dev/shm, or the log folder), written by the program,
 * read by its flusher thread, and by opscope when the program has died.
 *
 *     0          struct rec_head
 *     segs_at    struct rec_seg[REC_SEGS]        ticks to time
 *     asyncs_at  struct rec_async[REC_ASYNCS]    async spans still open
 *     names_at   struct rec_name[REC_NAMES]      sparse, grows
 *     text_at    the names' bytes                sparse, grows
 *     rings[i].at  struct rec_ring, then its slots
 *
 * The file is as long as it may ever get, and sparse: a page gets memory just
 * before its first use, so that a program with little to say takes little.
 * Whoever looks at a page that has none must not do it through a mapping: on a
 * full file system that is a SIGBUS.
 *
 * A ring has one writer (its thread) and one reader. A record is one slot, or a
 * slot and `aux` bytes of payload in the slots behind it, 12 in each. The
 * writer fills slots, then stores head (release). A scope is written when it
 * ends; until then it stands in the ring's frames.
 *
 * Flushed is what rec_head.commit[active] says: the lengths of the files and
 * with them the tails of the rings. The flusher writes files behind their
 * committed lengths, fills the other commit and flips `active`: there is no
 * moment at which an event is in neither of the two or in both.
 *
 * The writer holds an open-file lock on the file for as long as it lives.
 *
 * Numbers are the machine's own (a ring is read on the machine that wrote it).
 * A reader trusts nothing: it checks magic, sizes, offsets and indices. */
#ifndef RING_RING_H
#define RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REC_MAGIC "OPSRING1"

/* Values that several threads look at are loaded and stored only by these. A
 * thread that acquires a value that was published sees all that was stored
 * before it. */
#define REC_LOAD(p)       __atomic_load_n(p, __ATOMIC_RELAXED)
#define REC_ACQUIRE(p)    __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define REC_PUT(p, v)     __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define REC_PUBLISH(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

enum {
    REC_VERSION = 4,
    REC_PAGE = 64 << 10, /* ARM has pages of 4, 16 and 64 KiB */
    REC_RINGS = 4096,
    REC_SEGS = 2048,
    REC_ASYNCS = 1024,
    REC_NAMES = 1 << 18,
    REC_TEXT = 16 << 20,
    REC_FRAMES = 256,       /* open scopes of a thread */
    REC_ARGS = 1024,        /* bytes of arguments of its open scopes */
    REC_ARG_TEXT_MAX = 240, /* bytes of one text argument */
    REC_TRACKS = 256,       /* queues of devices */
    REC_DEVICES = 16,
    REC_FILES = 1 + REC_DEVICES, /* planes with a file: the host, devices */
    REC_SLOT_MAX = 128,          /* slots of the longest record */
    REC_CONT_BYTES = 12,
    REC_THREAD_NAME = 32,
    REC_RING_HEAD = 8192, /* bytes of a struct rec_ring, padded */
};

/* What a record is. */
enum rec_kind {
    REC_NONE,    /* never written: damage */
    REC_CONT,    /* payload of the record before */
    REC_SCOPE,   /* time: its begin; aux: its length in ticks */
    REC_SCOPE_X, /* u64 length, then arguments */
    REC_STEP,    /* u64 length, i64 number */
    REC_EPOCH,   /* the same */
    REC_INSTANT, /* u8 arguments may follow */
    REC_COUNTER, /* f64 */
    REC_ALLOC,   /* u64 address, u64 bytes; name: the tag */
    REC_FREE,    /* u64 address */
    REC_ASYNC,   /* u64 length */
    REC_DEVICE,  /* u64 length in ns, u64 correlation, u32 track; time in ns */
    REC_SCALAR,  /* i64 step, f64 value; name: the tag */
    REC_KINDS
};

/* 16 bytes. `head` is kind << 24 | name; of REC_CONT only the kind is used, and
 * time and aux are 12 bytes of payload. Both words are stored and loaded
 * atomically (relaxed): the flight recorder is read while it is written. */
struct rec_slot {
    uint64_t time; /* ticks */
    uint64_t rest; /* aux | (uint64_t)head << 32 */
};

static inline uint64_t rec_rest(enum rec_kind k, uint32_t name, uint32_t aux) {
    return (uint64_t)((uint32_t)k << 24 | name) << 32 | aux;
}
static inline uint32_t rec_slot_kind(uint64_t rest) { return rest >> 56; }
static inline uint32_t rec_slot_name(uint64_t rest) {
    return (uint32_t)(rest >> 32) & 0xffffff;
}
static inline uint32_t rec_slot_aux(uint64_t rest) { return (uint32_t)rest; }

/* An argument, in a scope's frame and in a record's payload: packed, 6 bytes
 * before the value. */
enum rec_arg_type {
    REC_ARG_INT = 1,
    REC_ARG_NUM,
    REC_ARG_STRING,
    REC_ARG_CORR,
    REC_ARG_FLOW_OUT,
    REC_ARG_FLOW_IN
};
struct rec_arg {
    uint32_t key; /* a name; 0 for correlation and flows */
    uint8_t type;
    uint8_t bytes; /* of the value behind it */
};
enum { REC_ARG_HEAD = 6 };

/* A scope that is open. */
struct rec_frame {
    uint64_t time;
    uint64_t where; /* in the program it was begun, and how deep in its stack;
                       0: by hand */
    uint32_t name;
    uint16_t args; /* where its arguments begin */
};

/* What could not be recorded, and why. */
enum rec_loss {
    REC_LOST_FULL,      /* the ring was full */
    REC_LOST_MEMORY,    /* there was no memory for more of the ring */
    REC_LOST_SIGNAL,    /* a handler called while a call was going on */
    REC_LOST_DEEP,      /* a scope deeper than REC_FRAMES */
    REC_LOST_ARGS,      /* an argument that did not fit */
    REC_LOST_UNMATCHED, /* ops_end() without a begin */
    REC_LOST_ABANDONED, /* not lost: a scope left by longjmp, which its parent
                           closed */
    REC_LOSSES
};

enum rec_ring_state { REC_RING_FREE, REC_RING_LIVE, REC_RING_ENDED };

struct rec_ring {
    /* the writer's cache line */
    uint64_t head;        /* slots ever written */
    uint64_t write_limit; /* head must stay below: the writer's copy of what
                             reusable_to and backed_slots said last, but not
                             far ahead */
    uint32_t depth;   /* open scopes; more than REC_FRAMES are only counted */
    uint32_t look_at; /* the depth at which the writer looks for abandoned
                         ones */
    uint32_t args_top;
    uint32_t marks; /* REC_IN_STEP, REC_IN_EPOCH */
    int64_t step, epoch;
    uint64_t step_time, epoch_time;
    uint64_t lost[REC_LOSSES]; /* since the ring was given to this thread */
    /* the reader's cache line */
    uint64_t tail[2] __attribute__((aligned(64))); /* by rec_head.active */
    uint64_t reusable_to;             /* slots below this may be written over */
    uint64_t reported[2][REC_LOSSES]; /* how many of lost the files tell of */
    /* the thread that it belongs to */
    uint64_t first_slot __attribute__((aligned(64))); /* of this thread */
    uint64_t slots;                                   /* a power of two */
    uint64_t
        backed_slots; /* slots that have memory behind them: powers of two, up
                        to all of them. A thread with little to say takes
                        little */
    uint32_t state, tid;
    uint64_t thread; /* number in this process: tids are used again */
    uint64_t died;   /* ticks */
    char name[REC_THREAD_NAME];
    uint32_t named; /* by the program: not asked from the system again */
    /* by depth: scopes begun by hand there while no window was open; their ends
     * must not end others. Only the writer uses it. */
    uint16_t unrecorded_begins[REC_FRAMES + 1];
    struct rec_frame frames[REC_FRAMES];
    uint8_t args[REC_ARGS];
};
/* A thread's name is set by the thread and read by the flusher, byte by byte:
 * at worst a line gets a name that is half old and half new. */
static inline void rec_name_put(struct rec_ring *r, const char *name) {
    bool end = false;
    for (unsigned i = 0; i < REC_THREAD_NAME; i++) {
        end = end || i + 1 == REC_THREAD_NAME || name[i] == 0;
        REC_PUT(&r->name[i], end ? 0 : name[i]);
    }
}
static inline void rec_name_get(const struct rec_ring *r,
                                char out[REC_THREAD_NAME]) {
    for (unsigned i = 0; i < REC_THREAD_NAME; i++)
        out[i] = REC_LOAD(&r->name[i]);
    out[REC_THREAD_NAME - 1] = 0;
}

enum { REC_IN_STEP = 1, REC_IN_EPOCH = 2 };

/* From this tick on, ps = this + (ticks - tick) * mult / 2^32. */
struct rec_seg {
    uint64_t tick, ps, mult;
};

struct rec_async {
    uint64_t time; /* 0: not in use */
    uint32_t name;
};

struct rec_name {
    uint32_t at; /* in the text */
    uint16_t bytes;
    uint16_t kind; /* enum ops_kind, or OPS_KEY_ and its neighbours */
};

struct rec_track {
    uint32_t device; /* its plane's file: 1.. */
    char queue[60];
};

struct rec_device {
    char name[64];
};

struct rec_commit {
    uint64_t part;             /* which file of the session, from 0 */
    uint64_t bytes[REC_FILES]; /* of the file of each plane */
    uint64_t names[REC_FILES]; /* how many names stand in it */
    uint64_t events;           /* in all files, since the start */
    uint64_t scalar_bytes;     /* of the event file */
    uint64_t closed;           /* what was open at the end is written too */
};

/* Losses that belong to no ring. Any thread may add to them at any time: see
 * memory_losses(). */
struct rec_losses {
    uint64_t no_ring;      /* calls of threads that got none */
    uint64_t names;        /* uses of names beyond the limit: the call itself is
                         recorded, under another name */
    uint64_t names_memory; /* the same, of names that got no memory */
};

struct rec_head {
    char magic[8];
    uint32_t version, head_bytes;
    uint32_t pid, gen;
    uint64_t launch; /* which `opscope record` it is under (settings.h), or 0 */
    uint64_t file_bytes;
    uint64_t segs_at, asyncs_at, names_at, text_at;
    /* where the profile is being written, an absolute path; rec_part_name()
     * names the file of plane f and part p */
    char stem[1024];
    char host[256];
    char events[1024];   /* the event file of scalars, "" when there is none */
    uint64_t world_rank; /* rec_world_rank(): changes at once, at any time */
    uint32_t flight;
    uint32_t tsc; /* ticks are the CPU's, else nanoseconds */
    uint64_t start_tick;
    uint64_t start_mono_ns; /* CLOCK_MONOTONIC at ps 0 */
    int64_t start_unix_ns;  /* CLOCK_REALTIME at ps 0 */
    uint64_t clock_resolution_ps;
    uint64_t cost_ps;   /* of a scope, measured at the start */
    uint64_t last_tick; /* the flusher was alive then */
    uint32_t nsegs, nnames, ntext, nrings, ntracks, ndevices;
    uint32_t asyncs_used; /* their table has memory */
    uint32_t active;      /* which commit holds */
    uint32_t done;        /* stopped in order: the files are whole */
    struct rec_losses lost;
    uint64_t drops_write;   /* samples and device events that could not be
                                written; what is in rings waits there */
    uint64_t drops_scalars; /* scalars that are in neither rings nor a file */
    struct rec_commit commit[2];
    struct rec_device devices[REC_DEVICES];
    /* pages of these two tables get memory when they are needed */
    struct {
        uint64_t at, bytes;
    } rings[REC_RINGS];
    struct rec_track tracks[REC_TRACKS];
};

/* Returns a rank and the number of ranks in one word; a world of 0: not
 * known. */
static inline uint64_t rec_world_rank(int32_t world, int32_t rank) {
    return (uint64_t)(uint32_t)world << 32 | (uint32_t)rank;
}

_Static_assert(sizeof(struct rec_slot) == 16, "a slot is 16 bytes");
_Static_assert(sizeof(struct rec_ring) <= REC_RING_HEAD, "a ring's head fits");
_Static_assert(offsetof(struct rec_head, lost) / 4096 ==
                   (offsetof(struct rec_head, lost) +
                    sizeof(struct rec_losses) - 1) /
                       4096,
               "losses lie in one page");

#endif
