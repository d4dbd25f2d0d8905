/* SPDX-License-Identifier: Apache-2.0
 * Start, stop, fork, windows. Everything here may fail quietly: the program
 * goes on without being recorded, and ops_problem() says why. */
#include "rec/session.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rec/device.h"
#include "rec/keeper.h"
#include "rec/memory.h"
#include "rec/names.h"
#include "rec/record.h"
#include "rec/settings.h"
#include "rec/threads.h"
#include "ring/clock.h"
#include "ring/text.h"

enum { TID_BYTES = (1 << 22) / 8 };

/* The state has a page of its own, also where pages are 64 KiB. */
uint32_t ops_state_[OPS_STATE_WORDS_]
    __attribute__((aligned(OPS_STATE_WORDS_ * sizeof(uint32_t))));

struct session rec_session = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .problem_lock = PTHREAD_MUTEX_INITIALIZER,
    .problem = "",
};

static void set_state(uint32_t v) {
    __atomic_store_n(ops_state_, v, __ATOMIC_SEQ_CST);
}

void session_lock(struct host_state *q) {
    host_state_save(q);
    pthread_mutex_lock(&rec_session.lock);
}

void session_unlock(const struct host_state *q) {
    pthread_mutex_unlock(&rec_session.lock);
    host_state_restore(q);
}

/* Returns a copy of the text that is never changed: a thread may be reading it.
 * There are few different ones. */
static const char *keep_text(const char *text) {
    enum { TEXTS = 64 };
    static char kept[TEXTS][OPS_PROBLEM_MAX];
    static int n;
    for (int i = 0; i < n; i++)
        if (strcmp(kept[i], text) == 0) return kept[i];
    if (n == TEXTS) return "there were too many different problems";
    snprintf(kept[n], sizeof kept[n], "%s", text);
    return kept[n++];
}

/* Copies a text of any length into `most` bytes and a NUL. One that does not
 * fit loses its middle: a path begins and ends with what tells most. */
static void shorten(char *to, size_t most, const char *from) {
    static const char gap[] = "...";
    size_t n = strlen(from), half = (most - (sizeof gap - 1)) / 2;
    if (n <= most) {
        memcpy(to, from, n + 1);
        return;
    }
    size_t head = text_cut(from, n, half);
    const char *tail = from + n - half;
    while (((unsigned char)*tail & 0xc0) == 0x80) tail++;
    snprintf(to, most + 1, "%.*s%s%s", (int)head, from, gap, tail);
}

int session_problem(const char *what, int error) {
    struct session *s = &rec_session;
    const char *why = error != 0 ? strerrordesc_np(error) : NULL;
    char text[OPS_PROBLEM_MAX], reason[96] = "";
    if (why != NULL) snprintf(reason, sizeof reason, ": %s", why);
    shorten(text, sizeof text - 1 - strlen(reason), what);
    strcat(text, reason);
    pthread_mutex_lock(&s->problem_lock);
    const char *kept = text[0] == 0 ? "" : keep_text(text);
    REC_PUBLISH(&s->problem, kept);
    pthread_mutex_unlock(&s->problem_lock);
    return -1;
}

/* Does what session_problem does for a text that stands in the program: without
 * a lock, which a handler or a child might find taken. */
static int fail_with(const char *literal) {
    REC_PUBLISH(&rec_session.problem, literal);
    return -1;
}

/* The text stays as it is, even if a thread sets another meanwhile: nothing is
 * locked. */
size_t ops_problem(char *buf, size_t n) {
    const char *text = REC_ACQUIRE(&rec_session.problem);
    size_t len = strlen(text), cut = text_cut(text, len, n > 0 ? n - 1 : 0);
    if (buf == NULL || n == 0) return len;
    memcpy(buf, text, cut);
    buf[cut] = '\0';
    return len;
}

/* --- fork ---------------------------------------------------------------- */

static struct host_state around_fork; /* with the lock */
static bool forked_pending; /* whoever forked had not made a call yet */
static bool forked_inside;  /* a window was open when it did */

/* Makes sure that nothing of ours changes while the child is made. */
static void before_fork(void) {
    struct host_state q;
    session_lock(&q);
    around_fork = q;
    forked_pending = (OPS_STATE_() & OPS_PENDING_BIT_) != 0;
    if (!forked_pending) forked_inside = (OPS_STATE_() & OPS_ON_BIT_) != 0;
    names_fork_lock();
}

static void after_fork_parent(void) {
    struct host_state q = around_fork;
    names_fork_unlock();
    session_unlock(&q);
}

static void leave_parent(void) {
    set_state(0);
    flusher_init();
    keeper_init();
    pthread_mutex_init(&rec_session.problem_lock, NULL);
    threads_forget();
    device_forget();
    if (rec_session.gen != 0) {
        /* The child has none of the parent's rings and descriptors: neither is
         * inherited. It records for itself from its first call on. */
        struct session *s = &rec_session;
        flusher_forked();
        memory_forked();
        s->events_open = false;
        s->gen = 0;
        memset(&s->map, 0, sizeof s->map);
        names_session(NULL);
        if (s->tids != NULL) munmap(s->tids, TID_BYTES);
        s->tids = NULL;
        if (!s->set.o.no_fork) set_state(OPS_PENDING_BIT_);
    }
}

/* A child of a child that made no call takes its place: forked_pending. */
static void after_fork_child(void) {
    struct host_state q = around_fork;
    names_fork_unlock();
    leave_parent();
    if (forked_pending) set_state(OPS_PENDING_BIT_);
    session_unlock(&q);
}

/* Switches recording off in a child that was made without our handlers
 * (clone(), _Fork()): it has nothing of its parent's rings and must not look
 * for them. The lock is held. */
static void look_whose(void) {
    struct session *s = &rec_session;
    if (s->gen == 0 || s->pid == getpid()) return;
    leave_parent();
    set_state(0);
}

/* ops_state_, which says that recording is on, is wiped in a child even if no
 * handler runs there (clone, vfork): that child does not record. */
static void once_per_process(void) {
    static bool done;
    if (done) return;
    done = true;
    flusher_init();
    keeper_init();
    memory_init();
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (sizeof ops_state_ % page == 0 && (uintptr_t)ops_state_ % page == 0)
        madvise(ops_state_, sizeof ops_state_, MADV_WIPEONFORK);
    syscall(SYS_membarrier, 1 << 4 /* REGISTER_PRIVATE_EXPEDITED */, 0, 0);
}

/* --- windows ------------------------------------------------------------- */

void session_window(bool on) {
    struct session *s = &rec_session;
    uint32_t want = s->gen << OPS_GEN_SHIFT_ | (on ? OPS_ON_BIT_ : 0);
    if (s->gen == 0) return;
    if (OPS_STATE_() != want) set_state(want);
    if (!s->set.child) memory_set_window(on);
}

bool session_follows(void) {
    const struct session *s = &rec_session;
    return s->set.child && s->windowed && window_uses_steps(&s->window) &&
           !REC_LOAD(&s->saw_step) && (forked_inside || memory_window());
}

void session_step(int64_t number) {
    struct session *s = &rec_session;
    struct host_state q;
    REC_PUT(&s->saw_step, true);
    if (!REC_ACQUIRE(&s->windowed)) return;
    session_lock(&q);
    if (s->gen != 0 && s->windowed) {
        uint64_t ns = rec_mono_ns() - s->map.head->start_mono_ns;
        bool on = window_wants_step(&s->window, number) ||
                  window_wants_time(&s->window, ns);
        /* a capture on demand takes whole steps, from the next one on */
        if (!on && s->demand_steps_left > 0) {
            s->demand_steps_left--;
            on = true;
        }
        session_window(on);
    }
    session_unlock(&q);
}

void session_step_end(void) {
    struct session *s = &rec_session;
    struct host_state q;
    if (!REC_ACQUIRE(&s->windowed)) return;
    session_lock(&q);
    if (s->gen != 0 && s->windowed) {
        uint64_t now = rec_mono_ns();
        session_window(
            window_wants_time(&s->window, now - s->map.head->start_mono_ns) ||
            now < s->demand_until_ns);
    }
    session_unlock(&q);
}

/* --- signal -------------------------------------------------------------- */

static struct sigaction old_action;
static int taken; /* the signal that our handler is somewhere in the chain of:
                     installing it twice would make it call itself */

static void on_signal(int sig, siginfo_t *info, void *context) {
    REC_PUT(&rec_session.signalled, 1);
    if (old_action.sa_handler == SIG_DFL || old_action.sa_handler == SIG_IGN)
        return; /* whatever the flags say */
    if (old_action.sa_flags & SA_SIGINFO)
        old_action.sa_sigaction(sig, info, context);
    else old_action.sa_handler(sig);
}

static void take_signal(int sig) {
    struct sigaction a = {.sa_sigaction = on_signal,
                          .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (sig > 0 && taken == 0 && sigaction(sig, &a, &old_action) == 0)
        taken = sig;
}

static void set_rank(struct session *s, int rank, int world) {
    s->set.o.rank = rank;
    s->set.o.world = world;
    if (s->gen == 0) return;
    REC_PUT(&s->map.head->world_rank, rec_world_rank(world, rank));
    REC_PUBLISH(&s->rank_changed, 1);
}

/* --- start --------------------------------------------------------------- */

static void undo(struct session *s) {
    names_session(NULL);
    memory_count_losses(-1);
    if (s->map.head != NULL && threads_unmap())
        memory_unmap(s->map.head, s->map.bytes);
    memory_give_back();
    memset(&s->map, 0, sizeof s->map);
    if (s->tids != NULL) munmap(s->tids, TID_BYTES);
    s->tids = NULL;
}

static int open_session(struct session *s, const struct host_state *q) {
    REC_PUT(&s->pid, getpid());
    s->memory_used = 0;
    s->threads = 0;
    s->signalled = s->rank_changed = 0;
    s->demand_steps_left = 0;
    s->demand_until_ns = 0;
    REC_PUT(&s->saw_step, false);
    s->events_open = false;
    s->tids = mmap(NULL, TID_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->tids == MAP_FAILED) s->tids = NULL;
    if (flusher_start() != 0) return -1;
    if (keeper_start(&q->mask) == 0) return 0;
    flusher_stop();
    return -1;
}

static int start(struct session *s, const struct host_state *q) {
    char why[160];
    const char *wrong = settings_wrong(&s->set);
    if (wrong != NULL) return session_problem(wrong, 0);
    identity_read(&s->id, s->set.host, s->set.o.rank, s->set.o.world);
    memset(&s->window, 0, sizeof s->window);
    REC_PUBLISH(&s->windowed, s->set.steps[0] != 0);
    if (s->windowed &&
        window_parse(&s->window, s->set.steps, why, sizeof why) != 0)
        return session_problem(why, 0);
    s->recorded = !s->windowed;
    s->gen = ++s->last_gen;
    if (!s->set.child) /* any number that no other program draws */
        s->family = rec_mono_ns() << 22 ^ (uint64_t)getpid();
    if (open_session(s, q) != 0) {
        undo(s);
        s->gen = 0;
        return -1;
    }
    take_signal(s->set.o.signal);
    session_window(!s->windowed || window_wants_time(&s->window, 0) ||
                   session_follows());
    return 0;
}

/* Serves the program's own ops_start, when the environment started the recorder
 * at load: what only the program knows (its steps, its rank, its signal) still
 * counts. */
static int start_again(struct session *s, const struct ops_options *o,
                       size_t size) {
    static struct settings own; /* with the lock: too large for small stacks */
    static struct window w;
    char why[160];
    if (!s->set.automatic || o == NULL) return 0;
    s->set.automatic = false;
    settings_read(&own, s->set.logdir, o, size);
    const char *wrong = settings_wrong(&own);
    if (wrong != NULL) return session_problem(wrong, 0);
    if (own.o.world > 0) set_rank(s, own.o.rank, own.o.world);
    if (s->set.o.signal == 0 && own.o.signal > 0) {
        s->set.o.signal = own.o.signal;
        take_signal(own.o.signal);
    }
    if (s->set.steps[0] != 0 || own.steps[0] == 0) return 0;
    memset(&w, 0, sizeof w);
    if (window_parse(&w, own.steps, why, sizeof why) != 0)
        return session_problem(why, 0);
    s->window = w;
    REC_PUBLISH(&s->windowed, true);
    session_window(
        window_wants_time(&w, rec_mono_ns() - s->map.head->start_mono_ns));
    return 0;
}

/* Keeps the object that this code is in loaded for ever: threads of ours
 * outlive the call, and thread_end() comes at the end of any thread. The shared
 * library is linked so; a plugin that holds the static one is not. The lock is
 * not held: a thread that loads a library may wait for our lock in a
 * constructor. */
static void pin(void) {
    static bool done;
    Dl_info info;
    struct link_map *map = NULL;
    if (REC_ACQUIRE(&done)) return;
    if (dladdr1((void *)&rec_session, &info, (void **)&map, RTLD_DL_LINKMAP) &&
        map != NULL && map->l_name != NULL && map->l_name[0] != 0)
        dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    REC_PUBLISH(&done, true);
}

const char *ops_record_version(void) { return OPS_VERSION; }

int ops_start_(uint32_t abi, const char *logdir, const struct ops_options *o,
               size_t size) {
    struct session *s = &rec_session;
    struct host_state q;
    int result;
    if (abi != OPS_RECORD_ABI) {
        /* The program was compiled with another header: nothing is known of
         * what its macros would do, except that they do nothing while the first
         * word is 0. */
        char text[OPS_PROBLEM_MAX];
        snprintf(text, sizeof text,
                 "the program was compiled with an opscope/record.h of ABI "
                 "%" PRIu32 ", this library (%s) has %d: compile it again",
                 abi, OPS_VERSION, OPS_RECORD_ABI);
        ops_stop();
        session_lock(&q);
        result = session_problem(text, 0);
        session_unlock(&q);
        return result;
    }
    if (settings_forbidden()) return fail_with("switched off by OPSCOPE=0");
    pin();
    session_lock(&q);
    once_per_process();
    look_whose();
    if (s->gen != 0) {
        result = start_again(s, o, size);
    } else {
        session_problem("", 0);
        settings_read(&s->set, logdir, o, size);
        result = start(s, &q);
    }
    session_unlock(&q);
    return result;
}

/* Who brings the library along and starts it when the time has come defines
 * this, as Python's extension does. */
extern OPS_API const char ops_starts_itself_[] __attribute__((weak));

/* Starts recording under `opscope record` from the beginning, whether or not
 * the program will call ops_start; its own start then finds it started. */
static __attribute__((constructor)) void start_by_environment(void) {
    if (settings_automatic() && ops_starts_itself_ == NULL)
        ops_start(NULL, NULL);
}

void session_child(void) {
    struct session *s = &rec_session;
    struct host_state q;
    session_lock(&q);
    if (OPS_STATE_() & OPS_PENDING_BIT_) {
        set_state(0);
        settings_child(&s->set);
        if (start(s, &q) != 0) memory_add_unrecorded();
    }
    session_unlock(&q);
}

/* --- stop ---------------------------------------------------------------- */

void ops_stop(void) {
    struct session *s = &rec_session;
    struct host_state q;
    if (OPS_STATE_() == 0) return;
    record_close_steps();
    session_lock(&q);
    set_state(0);
    if (s->gen != 0 && s->pid == getpid()) {
        threads_quiesce();
        flusher_stop();
        /* The signal is given back only if no other handler has been put over
         * ours meanwhile. */
        struct sigaction now;
        if (s->set.o.signal > 0 && s->set.o.signal == taken &&
            sigaction(s->set.o.signal, NULL, &now) == 0 &&
            (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal &&
            sigaction(s->set.o.signal, &old_action, NULL) == 0)
            taken = 0;
        undo(s);
        s->gen = 0;
    }
    session_unlock(&q);
}

/* Stops also when the program only returns from main(). */
static __attribute__((destructor)) void stop_at_exit(void) { ops_stop(); }

/* Asks the flusher. The lock is held to ask, not for the answer, so that nobody
 * else waits for the disk. A thread that stops meanwhile answers too. */
static int ask_flusher(bool dump, struct host_state *q) {
    struct session *s = &rec_session;
    session_lock(q);
    if (s->gen == 0) {
        session_unlock(q);
        return fail_with("not started");
    }
    uint64_t ticket = flusher_ask(dump);
    pthread_mutex_unlock(&s->lock);
    int result = flusher_wait(ticket);
    host_state_restore(q);
    return result;
}

int ops_dump(void) {
    struct host_state q;
    if (OPS_STATE_() >> OPS_GEN_SHIFT_ == 0) return fail_with("not started");
    return ask_flusher(true, &q);
}

void ops_flush(void) {
    struct host_state q;
    if (OPS_STATE_() >> OPS_GEN_SHIFT_ == 0) return;
    ask_flusher(false, &q);
}

void ops_set_rank(int rank, int world) {
    struct session *s = &rec_session;
    struct host_state q;
    if (rank < 0 || world <= 0 || rank >= world) return;
    if (OPS_STATE_() & OPS_PENDING_BIT_) session_child();
    session_lock(&q);
    look_whose();
    set_rank(s, rank, world);
    session_unlock(&q);
}
