/* SPDX-License-Identifier: Apache-2.0
 * The recorder's own thread: every few milliseconds it takes what the rings
 * hold into the files, so that a ring of 8 MiB outlasts any burst (a thread
 * that does nothing but scopes fills it in 15 ms), and beside that it keeps the
 * clock straight, samples the machine and watches for requests.
 *
 * All that the recorder opens is opened here, from the first folder to the last
 * rename, in a table of descriptors that the program does not have: whatever it
 * closes, duplicates or opens, none of it is ours, and none of ours is its. */
#include "rec/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/facts.h"
#include "rec/alone.h"
#include "rec/device.h"
#include "rec/keeper.h"
#include "rec/machine/sample.h"
#include "rec/memory.h"
#include "rec/names.h"
#include "rec/record.h"
#include "rec/recover_folder.h"
#include "rec/threads.h"
#include "ring/clock.h"
#include "ring/open.h"
#include "ring/procfile.h"
#include "ring/sys.h"

enum {
    BUSY_NS = 4000000,    /* between looks while a window is open */
    RUSH_NS = 1000000,    /* shortly after rings were filling */
    IDLE_NS = 20000000,   /* without a window, or while nothing is recorded */
    FLUSH_NS = 100000000, /* between passes when there is no need for one */
    SAMPLE_NS = 100000000,
    WATCH_NS = 50000000, /* between looks for the capture file */
    NAMES_NS = 1000000000,
    NAMED_AT_MOST = 256,
    CROWD_NS = 1000000000, /* between looks at all rings of this user */
    DUMP_LATER = 1,        /* beside 0 and -1 */
};

/* What the flusher alone knows. Times are ns of CLOCK_MONOTONIC. */
static struct {
    struct sample sample;
    struct alone alone;
    bool program_ended;            /* the program has no thread any more */
    bool folder_gone;              /* the log folder was removed */
    bool memory_short;             /* calls were lost for want of memory */
    bool gpus_reported;            /* their facts are in the file */
    bool more_waiting;             /* rings are still filling behind a pass */
    struct eventfile_mark scalars; /* the event file as of the last commit */
    int scalars_error;             /* errno: they cannot be written now */
    uint64_t window_edge_ns; /* when a window of times opens or closes; 0 */
    uint64_t last_rush_ns;   /* the last look at which rings were filling */
    uint64_t heads;          /* slots ever written, in all rings, at a look */
    uint64_t last_write_ns;  /* the last look at which there were more */
    uint64_t last_pass_ns, last_sample_ns, last_watch_ns, last_names_ns;
    uint64_t next_crowd_ns; /* when all rings of this user are looked at */
} fl;

/* --- what goes into the files beside the rings --------------------------- */

static void give_counter(void *to, const char *name, double value) {
    struct encoder *e = to;
    uint32_t at = 0, id = names_intern(name, OPS_COUNT_);
    const struct ring_map *v = e->map;
    encoder_counter(e, id, value,
                    rec_clock_ps(v->segs, v->head->nsegs, &at, rec_ticks()));
}

static void give_fact(void *to, const char *key, const char *value) {
    encoder_fact(to, 0, key, value);
}

static void rank_facts(struct session *s, struct encoder *e) {
    uint64_t both = REC_LOAD(&s->map.head->world_rank);
    if ((int32_t)(both >> 32) <= 0) return;
    encoder_fact_int(e, 0, FACT_RANK, (int32_t)both);
    encoder_fact_int(e, 0, FACT_WORLD_SIZE, (int32_t)(both >> 32));
}

/* Writes the facts at the head of each part. */
static void part_facts(struct drain *d, void *ctx) {
    struct session *s = ctx;
    encoder_fact_int(&d->enc, 0, FACT_SCOPE_COST_PS,
                     (int64_t)s->map.head->cost_ps);
    if (s->set.steps[0] != 0)
        encoder_fact(&d->enc, 0, "opscope_steps", s->set.steps);
    rank_facts(s, &d->enc);
    encoder_fact_int(&d->enc, 0, FACT_FAMILY, (int64_t)(s->family >> 1));
    identity_facts(&s->id, give_fact, &d->enc);
}

/* Tells the rings' head, which outlives the program, how many scalars are in
 * neither rings nor a file. */
static void count_scalars(struct session *s) {
    s->map.head->drops_scalars = s->events.lost + s->events.waiting;
}

static void put_events_path(struct session *s) {
    snprintf(s->map.head->events, sizeof s->map.head->events, "%.1023s",
             s->events.path);
}

/* Takes a scalar. The file's name is noted before anything goes into the file,
 * which a full buffer may cause at any scalar: a recovery must be able to cut
 * the file. */
static void give_scalar(void *ctx, const char *tag, size_t n, int64_t step,
                        double value, double unix_s) {
    struct session *s = ctx;
    if (!s->events_open) {
        eventfile_init(&s->events, s->paths.logdir, s->set.logdir, s->id.host);
        eventfile_begin(&s->events);
        put_events_path(s);
        eventfile_mark(&s->events, &fl.scalars);
        s->events_open = true;
    }
    eventfile_scalar(&s->events, tag, n, step, (float)value, unix_s);
}

/* Puts scalars on disk before the commit that says so. A recovery cuts off what
 * a kill in between would leave there twice. */
static void flush_scalars(struct drain *d, struct rec_commit *c, void *ctx) {
    struct session *s = ctx;
    (void)d;
    if (!s->events_open) return;
    if (s->events.n > 0) eventfile_begin(&s->events);
    put_events_path(s);
    fl.scalars_error = -eventfile_flush(&s->events);
    put_events_path(s);
    c->scalar_bytes = s->events.size;
    count_scalars(s);
    eventfile_mark(&s->events, &fl.scalars);
}

/* Writes the last scalars; those that cannot be written now never will be. */
static void settle_scalars(struct session *s) {
    if (!s->events_open) return;
    if (s->events.n > 0) eventfile_begin(&s->events);
    put_events_path(s);
    eventfile_flush(&s->events);
    eventfile_give_up(&s->events);
    count_scalars(s);
}

/* Forgets scalars that the rings still have: the next pass gives them again. */
static void forget_scalars(struct drain *d, void *ctx) {
    struct session *s = ctx;
    (void)d;
    if (!s->events_open) return;
    eventfile_rollback(&s->events, &fl.scalars);
    count_scalars(s);
}

/* Samples the machine. Its counters belong to the time of a window; the last
 * ones come when the window is closed already. */
static void sample(struct session *s, uint64_t now, bool final) {
    bool on = final || (OPS_STATE_() & OPS_ON_BIT_) != 0;
    if (s->set.o.no_machine || s->set.o.flight ||
        (now - fl.last_sample_ns < SAMPLE_NS && !final))
        return;
    fl.last_sample_ns = now;
    /* not `now`: the pass since then may have taken long */
    sample_run(&fl.sample, rec_mono_ns(), on ? give_counter : NULL,
               &s->drain.enc);
    if (on) keeper_sample(give_counter, &s->drain.enc);
    if (!fl.gpus_reported)
        fl.gpus_reported = keeper_facts(give_fact, &s->drain.enc);
}

/* Writes what is known only at the end. */
static void last_facts(struct session *s) {
    struct encoder *e = &s->drain.enc;
    const struct rec_head *h = s->map.head;
    struct rec_instant now = rec_clock_read();
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    int64_t stepped = (now.unix_ns - h->start_unix_ns) -
                      (int64_t)(now.mono_ns - h->start_mono_ns);
    encoder_fact_int(e, 0, "events_recorded", (int64_t)e->events);
    encoder_fact_int(e, 0, "flusher_cpu_ns",
                     (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec);
    encoder_fact_int(e, 0, "wall_clock_moved_ns", stepped);
    encoder_losses(e, h);
    if (s->set.child) return;
    /* the family's: whoever began it tells */
    if (memory_unrecorded() > 0)
        encoder_fact_int(e, 0, FACT_UNRECORDED, (int64_t)memory_unrecorded());
    encoder_loss(e, memory_refused(), LOSS_REFUSED);
    encoder_loss(e, memory_unrecorded(), LOSS_PROCESSES);
}

/* --- a pass -------------------------------------------------------------- */

static void scalars_problem(const struct session *s, const char *what,
                            int error) {
    char text[PATH_MAX + 64];
    snprintf(text, sizeof text, "%s: %s", s->set.logdir, what);
    session_problem(text, error);
}

/* Was anything lost because there was no memory for rings or names? */
static bool memory_short(const struct session *s) {
    const struct rec_head *h = s->map.head;
    if (fl.memory_short || !memory_failed()) return fl.memory_short;
    uint64_t lost = REC_LOAD(&h->lost.no_ring) +
                    REC_LOAD(&h->lost.names_memory);
    uint32_t n = REC_ACQUIRE(&h->nrings);
    for (uint32_t i = 0; i < n; i++)
        if (s->map.ring[i] != NULL)
            lost += REC_LOAD(&s->map.ring[i]->lost[REC_LOST_MEMORY]);
    return fl.memory_short = lost > 0;
}

static void wrote(struct session *s, int result) {
    /* without an error of its own, the one before still stands in the way */
    if (result != 0 && (s->drain.files.error != 0 || s->problem[0] == 0))
        session_problem(s->map.head->stem, s->drain.files.error);
    else if (result == 0 && fl.scalars_error != 0 && !fl.folder_gone)
        scalars_problem(s, "scalars cannot be written", fl.scalars_error);
    else if (result == 0 && memory_short(s) && !fl.folder_gone)
        session_problem("no more memory for the rings: calls are lost", ENOSPC);
    else if (result == 0 && s->drain.files.error == 0 && !fl.folder_gone)
        session_problem("", 0);
    s->drain.files.error = 0;
}

/* Keeps a ring in reserve for the next thread, and names up to date. */
static void housekeeping(struct session *s, uint64_t now) {
    if (pthread_mutex_trylock(&s->lock) != 0) return;
    thread_spare();
    if (now - fl.last_names_ns >= NAMES_NS) {
        fl.last_names_ns = now;
        /* Threads are often named after they have begun to work. */
        for (uint32_t i = 0; i < s->map.nrings && i < NAMED_AT_MOST; i++) {
            struct rec_ring *r = s->map.ring[i];
            char path[64], name[REC_THREAD_NAME];
            if (r == NULL || REC_LOAD(&r->named) ||
                REC_ACQUIRE(&r->state) != REC_RING_LIVE)
                continue;
            snprintf(path, sizeof path, "/proc/self/task/%u/comm", r->tid);
            if (procfile_read_line(AT_FDCWD, path, name, sizeof name) <= 0)
                continue;
            rec_name_put(r, name);
        }
        threads_look_for_gone();
    }
    pthread_mutex_unlock(&s->lock);
}

/* Keeps the clock straight. A new segment may need a page of its own; without
 * it the line stays straight. */
static void keep_clock(struct session *s) {
    struct rec_head *h = s->map.head;
    enum { PAGE = 4096, A_PAGE = PAGE / sizeof(struct rec_seg) };
    if (h->nsegs % A_PAGE == 0 && h->nsegs > 0 && h->nsegs < REC_SEGS &&
        !memory_back(&s->map.segs[h->nsegs], PAGE))
        return;
    rec_clock_bend(h, s->map.segs);
}

static int pass(struct session *s, bool final) {
    struct rec_head *h = s->map.head;
    uint64_t now = rec_mono_ns(), end = rec_ticks();
    fl.last_pass_ns = now;
    keep_clock(s);
    REC_PUT(&h->last_tick, end);
    drain_rings(&s->drain, final && !s->set.o.flight, end);
    uint64_t of_rings = s->drain.enc.events;
    bool gpus_reported = fl.gpus_reported, rank = false;
    if (OPS_STATE_() & OPS_ON_BIT_) s->recorded = true;
    sample(s, now, final && s->recorded);
    keeper_collect(&s->drain.enc, final);
    if (__atomic_exchange_n(&s->rank_changed, 0, __ATOMIC_ACQUIRE)) {
        rank = true;
        rank_facts(s, &s->drain.enc);
    }
    if (final) {
        settle_scalars(s);
        device_facts(&s->drain.enc);
        last_facts(s);
    }
    /* the tick comes after the samples that were just taken */
    REC_PUT(&h->last_tick, rec_ticks());
    int result = drain_commit(&s->drain);
    wrote(s, result);
    if (result != 0) { /* rings give theirs again; the others are to be told */
        h->drops_write += s->drain.enc.events - of_rings;
        fl.gpus_reported = gpus_reported;
        if (rank) REC_PUBLISH(&s->rank_changed, 1);
    }
    if (result == 0 && s->drain.files.committed[0] >= FILES_LIMIT)
        wrote(s, drain_rotate(&s->drain));
    return result;
}

/* Is a ring an eighth full, or waiting to be used again? A thread that does
 * nothing but scopes fills a ring of 8 MiB in 10 ms, and gets room back only
 * behind a pass, during which it writes on: then the next look is soon. */
static bool rings_fill(const struct session *s) {
    const struct rec_head *h = s->map.head;
    uint32_t n = REC_ACQUIRE(&h->nrings);
    for (uint32_t i = 0; i < n; i++) {
        const struct rec_ring *r = s->map.ring[i];
        if (r == NULL) continue;
        uint32_t state = REC_ACQUIRE(&r->state);
        uint64_t head = REC_LOAD(&r->head);
        if (state == REC_RING_ENDED ||
            (state == REC_RING_LIVE &&
             head - r->tail[h->active] >= r->slots / 8))
            return true;
    }
    return false;
}

/* Is it time for a pass? Few passes are better: each costs writes, and makes of
 * each thread's events a line of its own, in which XProf looks for the events
 * of a step. Events in the rings are as safe there as in the file. */
static bool pass_is_due(const struct session *s, uint64_t now) {
    if (s->set.o.flight) return false;
    if (rings_fill(s)) {
        fl.last_rush_ns = now;
        return true;
    }
    return now - fl.last_pass_ns >= FLUSH_NS || device_any();
}

/* Leaves the rings alone and only keeps the clock. */
static int idle_pass(struct session *s) {
    keep_clock(s);
    REC_PUT(&s->map.head->last_tick, rec_ticks());
    return 0;
}

static int dump(struct session *s) {
    s->drain.in_pieces = false;
    if (s->set.o.flight) {
        idle_pass(s);
        drain_flight(&s->drain);
        keeper_collect(&s->drain.enc, false);
        int result = drain_commit(&s->drain);
        wrote(s, result);
        if (result != 0) return result;
    } else if (pass(s, false) != 0) {
        return -1;
    }
    int result = drain_rotate(&s->drain);
    wrote(s, result);
    return result;
}

/* --- windows and requests ------------------------------------------------ */

/* Starts a capture on demand. The holder of the lock may be waiting for this
 * thread: then it is done later. */
static void demand(struct session *s, uint64_t now) {
    if (pthread_mutex_trylock(&s->lock) != 0) {
        REC_PUBLISH(&s->signalled, 1);
        return;
    }
    if (REC_LOAD(&s->saw_step))
        s->demand_steps_left = (uint32_t)s->set.o.demand_steps;
    else s->demand_until_ns = now + (uint64_t)s->set.o.demand_ms * 1000000u;
    pthread_mutex_unlock(&s->lock);
}

/* Opens and closes the windows of time; ops_step does so for those of steps. */
static void windows(struct session *s, uint64_t now) {
    if (!REC_ACQUIRE(&s->windowed)) return;
    if (pthread_mutex_trylock(&s->lock) != 0) return;
    if (window_uses_time(&s->window) || s->demand_until_ns > 0 ||
        s->set.child) {
        uint64_t since = now - s->map.head->start_mono_ns;
        bool on = window_wants_time(&s->window, since) ||
                  now < s->demand_until_ns || session_follows();
        /* between ops_step calls a window of steps is left as it is */
        if (on || !window_uses_steps(&s->window) || !REC_LOAD(&s->saw_step))
            session_window(on);
        if (s->demand_until_ns > 0 && now >= s->demand_until_ns)
            s->demand_until_ns = 0;
        /* this is when the window may next open or close by itself */
        uint64_t start = s->map.head->start_mono_ns;
        uint64_t next = window_next_ns(&s->window, since);
        next = next > UINT64_MAX - start ? 0 : next + start;
        if (s->demand_until_ns > 0 && (next == 0 || s->demand_until_ns < next))
            next = s->demand_until_ns;
        fl.window_edge_ns = next;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Dumps. A flight recorder's rings are dumped with the lock: a ring must not
 * change hands meanwhile. The holder of the lock may be stopping and wait for
 * this thread: then it is done later. */
static int dump_locked(struct session *s) {
    if (!s->set.o.flight) return dump(s);
    if (pthread_mutex_trylock(&s->lock) != 0) return DUMP_LATER;
    int result = dump(s);
    pthread_mutex_unlock(&s->lock);
    return result;
}

/* Looks at what others did. When the rings of many programs together hold too
 * much, none grows any more; a look costs as much as there are files. When the
 * log folder was removed, files without a name take all that is written to them
 * and are gone with us: no call fails, so the user must be told. */
static void look_around(struct session *s, uint64_t now) {
    if (now >= fl.next_crowd_ns) {
        memory_crowded(session_paths_ring_bytes(&s->paths) > s->paths.uid_cap);
        uint64_t took = rec_mono_ns() - now;
        fl.next_crowd_ns = now + CROWD_NS + 100 * took;
    }
    if (fl.folder_gone ||
        (!session_paths_gone(&s->paths) && !files_gone(&s->drain.files)))
        return;
    fl.folder_gone = true;
    session_problem("the log folder was removed: nothing of this session will "
                    "be left",
                    0);
}

/* Ends the program if only our threads are left; leaves the table of
 * descriptors if the program has. */
static void end_when_alone(void) {
    int status;
    if (fl.program_ended || keeper_tid() == 0) return;
    if (alone_now(&fl.alone, keeper_listed(), &status)) {
        fl.program_ended = true;
        keeper_end_program(status);
    } else if (alone_in_table(&fl.alone, keeper_tid())) {
        keeper_drop_table();
    }
}

static void watch(struct session *s, uint64_t now) {
    bool asked = __atomic_exchange_n(&s->signalled, 0, __ATOMIC_ACQUIRE) != 0;
    if (now - fl.last_watch_ns >= WATCH_NS) {
        fl.last_watch_ns = now;
        /* a user made this file: that is a request, and it is removed */
        if (!s->set.o.no_demand &&
            unlinkat(s->paths.logdir, "opscope.capture", 0) == 0)
            asked = true;
        housekeeping(s, now);
        look_around(s, now);
        recover_folder_look(&s->paths, now);
        end_when_alone();
    }
    if (!asked) return;
    if (s->windowed && !s->set.o.flight) demand(s, now);
    else if (dump_locked(s) == DUMP_LATER) REC_PUBLISH(&s->signalled, 1);
}

/* --- the thread ---------------------------------------------------------- */

/* Has nothing been recorded for a while? Then looks may be few: whoever records
 * wakes us before a ring is full (thread_room). A program may have hundreds of
 * processes that wait. Tracers of devices do not wake us. */
static bool is_quiet(const struct session *s, uint64_t now) {
    uint32_t n = REC_ACQUIRE(&s->map.head->nrings);
    uint64_t heads = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->map.ring[i] != NULL) heads += REC_LOAD(&s->map.ring[i]->head);
    if (heads != fl.heads) fl.last_write_ns = now;
    fl.heads = heads;
    return now - fl.last_write_ns >= FLUSH_NS && !device_any();
}

/* Sleeps until the next pass is due or a thread asks. Returns true if it is
 * told to stop. While there is much to do it does not sleep at all: on a busy
 * machine a thread that sleeps waits for others' time slices before it runs
 * again. */
static bool wait_turn(struct session *s, uint64_t *ticket, bool *want_dump) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    long pause = fl.more_waiting ? 0
                 : fl.last_rush_ns != 0 && now - fl.last_rush_ns < FLUSH_NS
                     ? RUSH_NS
                 : OPS_STATE_() & OPS_ON_BIT_ && !is_quiet(s, now) ? BUSY_NS
                                                                   : IDLE_NS;
    if (fl.window_edge_ns > now && fl.window_edge_ns - now < (uint64_t)pause)
        pause = (long)(fl.window_edge_ns - now);
    ts.tv_nsec += pause;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_nsec -= 1000000000;
        ts.tv_sec++;
    }
    pthread_mutex_lock(&s->flush_lock);
    if (pause > 0 && !s->ask_stop && s->asked == s->answered && !s->woken) {
        REC_PUT(&s->dozing, pause > BUSY_NS);
        pthread_cond_timedwait(&s->wake, &s->flush_lock, &ts);
        REC_PUT(&s->dozing, false);
    }
    s->woken = false;
    *ticket = s->asked;
    *want_dump = s->ask_dump;
    s->ask_dump = false;
    bool stop = s->ask_stop;
    pthread_mutex_unlock(&s->flush_lock);
    return stop;
}

/* --- begin and end ------------------------------------------------------- */

/* Returns the addresses that the program may still use, where they are
 * limited. */
static uint64_t addresses_left(void) {
    struct rlimit l;
    char text[128];
    if (getrlimit(RLIMIT_AS, &l) != 0 || l.rlim_cur == RLIM_INFINITY ||
        procfile_read("/proc/self/statm", text, sizeof text) <= 0)
        return UINT64_MAX;
    uint64_t used = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < l.rlim_cur ? l.rlim_cur - used : 0;
}

/* Makes the ring file, as long as it may get, and maps it; the first pages of
 * its tables get memory. The program keeps most of its addresses: rings lie a
 * page apart, so that they may take twice their bytes. */
static int map_rings(struct session *s) {
    static struct rec_head layout; /* too large for a stack */
    size_t tables = rec_layout(&layout);
    uint64_t rings = 2 * s->memory_cap, quarter = addresses_left() / 4;
    void *p = NULL;
    int error = ENOSPC;
    /* a program that locks its memory (mlockall) may map little */
    for (rings = rings < quarter ? rings : quarter;; rings /= 2) {
        if (rings < REC_PAGE) return session_paths_no_rings(error);
        rings = rec_paged(rings);
        if (ftruncate(s->paths.ring, (off_t)(tables + rings)) != 0)
            error = errno;
        else if ((p = memory_map(s->paths.ring, tables + rings)) != NULL) break;
    }
    s->map.head = p;
    s->map.bytes = tables + rings;
    /* this is for rings, and for tables of which most processes need little */
    memory_allow(s->memory_cap + s->memory_cap / 4 + (1 << 20));
    if (!memory_back(p, offsetof(struct rec_head, rings)) ||
        !memory_count_losses(s->paths.ring) ||
        !memory_back((char *)p + layout.segs_at, sizeof(struct rec_seg)))
        return session_paths_no_rings(ENOSPC);
    struct rec_head *h = p;
    rec_layout(h);
    h->version = REC_VERSION;
    h->head_bytes = sizeof *h;
    h->file_bytes = tables;
    ring_map_tables(&s->map, p, tables + rings);
    return 0;
}

static int open_files(struct session *s) {
    s->drain.at_open = part_facts;
    s->drain.at_commit = flush_scalars;
    s->drain.at_failure = forget_scalars;
    s->drain.ctx = s;
    s->drain.scalar = give_scalar;
    if (drain_open(&s->drain, &s->map, s->paths.run, s->paths.base, -1) == 0 &&
        drain_commit(&s->drain) == 0)
        return 0;
    return session_problem(s->paths.stem, s->drain.files.error);
}

/* Makes everything that a session needs. The thread that starts the session has
 * the lock and waits. */
static int begin(struct session *s) {
    int error = rec_own_table();
    if (error != 0)
        return session_problem(
            "the system allows no thread descriptors of its own "
            "(close_range or unshare)",
            error);
    if (!alone_open(&fl.alone))
        return session_problem(
            "/proc is not there, or there are too few descriptors", 0);
    struct rec_instant first = rec_clock_begin(!s->set.o.no_tsc);
    if (session_paths_make(s) != 0 || map_rings(s) != 0) return -1;
    if (!names_session(&s->map) || !thread_spare())
        return session_paths_no_rings(ENOSPC);
    /* The stem fits: session_paths_make has made sure of that. */
    struct rec_head *h = s->map.head;
    h->pid = (uint32_t)s->pid;
    h->gen = s->gen;
    h->launch = s->set.launch;
    snprintf(h->stem, sizeof h->stem, "%.1023s", s->paths.stem);
    snprintf(h->host, sizeof h->host, "%s", s->id.host);
    h->world_rank = rec_world_rank(s->id.world, s->id.rank);
    h->flight = s->set.o.flight;
    rec_clock_start(h, s->map.segs, &first);
    h->last_tick = h->start_tick;
    h->cost_ps = record_cost_ps(&s->map);
    memcpy(h->magic, REC_MAGIC, sizeof h->magic);
    if (open_files(s) != 0) return -1;
    if (!s->set.o.no_machine) sample_open(&fl.sample);
    fl.gpus_reported = s->set.o.no_machine || s->set.child;
    return 0;
}

/* Closes what begin() opened; after a start that failed, as far as it came. */
static void close_all(struct session *s, bool keep) {
    drain_free(&s->drain);
    session_paths_remove(&s->paths, keep);
    sample_close(&fl.sample);
    alone_close(&fl.alone);
}

/* Closes the event file. All is in it that ever will be: where the profile
 * could not be closed, what the rings have is for whoever closes it. */
static void close_scalars(struct session *s) {
    if (!s->events_open) return;
    eventfile_give_up(&s->events);
    eventfile_close(&s->events);
    if (s->whole && s->events.lost > 0 && !fl.folder_gone)
        scalars_problem(s, "scalars were lost", s->events.error);
}

static void tell_begun(struct session *s, int result) {
    pthread_mutex_lock(&s->flush_lock);
    s->begun = result == 0 ? 1 : -1;
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->flush_lock);
}

static void loop(struct session *s) {
    for (;;) {
        uint64_t ticket;
        bool want_dump;
        bool stop = wait_turn(s, &ticket, &want_dump);
        uint64_t now = rec_mono_ns();
        if (stop) return;
        windows(s, now);
        bool asked = ticket != s->answered;
        threads_look_ahead();
        bool due = asked || pass_is_due(s, now);
        s->drain.in_pieces = !asked;
        int result = want_dump                 ? dump_locked(s)
                     : due && !s->set.o.flight ? pass(s, false)
                                               : idle_pass(s);
        if (result == DUMP_LATER) {
            const struct timespec pause = {0, RUSH_NS};
            nanosleep(&pause, NULL);
            pthread_mutex_lock(&s->flush_lock);
            s->ask_dump = true;
            pthread_mutex_unlock(&s->flush_lock);
        } else {
            pthread_mutex_lock(&s->flush_lock);
            s->answered = ticket;
            s->dump_result = result;
            pthread_cond_broadcast(&s->done);
            pthread_mutex_unlock(&s->flush_lock);
        }
        /* where nothing could be written it is no use to try again at once */
        fl.more_waiting = due && result == 0 && !s->set.o.flight &&
                          rings_fill(s);
        watch(s, now);
    }
}

static void *flusher(void *arg) {
    struct session *s = arg;
    prctl(PR_SET_NAME, "opscope");
    rec_self.ours = true;
    memset(&fl, 0, sizeof fl);
    fl.alone = (struct alone){.stat = -1, .tasks = -1};
    int result = begin(s);
    if (result == 0) {
        fl.last_write_ns = rec_mono_ns();
        recover_folder_begin(&s->paths, fl.last_write_ns);
        tell_begun(s, 0);
        loop(s);
        /* Now the rest is written, and all is closed. */
        char name[NAME_MAX + 1];
        if (s->set.o.flight) {
            drain_flight(&s->drain);
            drain_mark_final(&s->drain);
            drain_commit(&s->drain);
        }
        s->drain.in_pieces = false;
        /* Under `opscope record` every process of a job is started; one that
         * has recorded nothing (a launcher) leaves nothing. Nor does a child
         * that did nothing while a window was open. */
        bool empty = (s->set.automatic || (s->set.child && s->windowed)) &&
                     s->threads == 0;
        if (empty) files_discard(&s->drain.files);
        s->whole = empty ||
                   (pass(s, true) == 0 && drain_finish(&s->drain, name) == 0);
        if (!s->whole) wrote(s, -1);
        close_scalars(s);
        recover_folder_end(&s->paths);
        keeper_leave();
        close_all(s, !s->whole);
    } else {
        files_discard(&s->drain.files);
        close_all(s, false);
        tell_begun(s, -1);
    }
    return NULL;
}

void flusher_init(void) {
    struct session *s = &rec_session;
    pthread_condattr_t ca;
    pthread_mutex_init(&s->flush_lock, NULL);
    pthread_condattr_init(&ca);
    pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &ca);
    pthread_cond_init(&s->done, NULL);
    pthread_condattr_destroy(&ca);
    s->answered = s->asked; /* tickets of the parent's threads */
}

/* The caller's signals are all blocked (host_state_save), and so are the
 * thread's. */
int flusher_start(void) {
    struct session *s = &rec_session;
    pthread_attr_t a;
    s->ask_dump = s->ask_stop = s->dozing = s->woken = false;
    s->begun = 0;
    s->whole = true;
    memset(&s->drain, 0, sizeof s->drain);
    files_init(&s->drain.files, -1, "", 0);
    rec_thread_attr(&a);
    int error = pthread_create(&s->flusher, &a, flusher, s);
    pthread_attr_destroy(&a);
    if (error != 0) return session_problem("no thread for the recorder", error);
    pthread_mutex_lock(&s->flush_lock);
    while (s->begun == 0) pthread_cond_wait(&s->done, &s->flush_lock);
    pthread_mutex_unlock(&s->flush_lock);
    if (s->begun > 0) return 0;
    pthread_join(s->flusher, NULL);
    return -1;
}

uint64_t flusher_ask(bool want_dump) {
    struct session *s = &rec_session;
    pthread_mutex_lock(&s->flush_lock);
    uint64_t ticket = ++s->asked;
    if (want_dump) s->ask_dump = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->flush_lock);
    return ticket;
}

/* Whoever has the lock wakes the flusher too, or is the flusher. */
void flusher_wake(void) {
    struct session *s = &rec_session;
    if (pthread_mutex_trylock(&s->flush_lock) != 0) return;
    s->woken = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->flush_lock);
}

int flusher_wait(uint64_t ticket) {
    struct session *s = &rec_session;
    pthread_mutex_lock(&s->flush_lock);
    while (s->answered < ticket) pthread_cond_wait(&s->done, &s->flush_lock);
    int result = s->dump_result;
    pthread_mutex_unlock(&s->flush_lock);
    return result;
}

/* Forgets the thread and its descriptors: the child has neither. */
void flusher_forked(void) {
    encoder_free(&rec_session.drain.enc);
    memset(&fl, 0, sizeof fl);
    recover_folder_forked();
}

void flusher_stop(void) {
    struct session *s = &rec_session;
    if (keeper_is_me()) keeper_come_back();
    pthread_mutex_lock(&s->flush_lock);
    s->ask_stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->flush_lock);
    if (keeper_is_me()) keeper_serve();
    pthread_join(s->flusher, NULL);
    keeper_join();
    pthread_mutex_lock(&s->flush_lock);
    s->answered = s->asked; /* those who asked while it was stopping */
    s->dump_result = s->whole ? 0 : -1;
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->flush_lock);
}
