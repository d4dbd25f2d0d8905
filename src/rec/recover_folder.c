/* SPDX-License-Identifier: Apache-2.0
 * Finding pointers of the dead, and when to look for them. */
#include "rec/recover_folder.h"
#include "rec/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rec/memory.h"
#include "rec/session.h"
#include "ring/clock.h"
#include "ring/recover.h"
#include "ring/sys.h"
#include "ring/text.h"

#define MS UINT64_C(1000000)
enum {
    RUNS = 256,
    EVERY_MS = 100,    /* between looks at the others */
    AT_MOST_MS = 5000, /* also when there are very many */
    SHARE = 20,        /* at most one part in so many of a core */
    PATIENCE_MS = 20,  /* at the end, before it is told to stop */
    FIRST_LOOK_MS = 5,
    LAST_LOOK_MS = 1000,
};

/* What a look at a run's folder found. */
struct seen {
    unsigned alive; /* others that record */
    uint64_t bytes; /* of memory in all its rings ... */
    uint64_t freed; /* ... but those that were finished */
};

/* One thread's work. Its descriptors tell its state. */
struct search {
    int logdir, run; /* -1: not this one */
    bool stop;       /* atomic */
    bool done;       /* atomic */
    struct seen seen;
    uint64_t took_ns;
};

static struct {
    pthread_t thread;
    struct search *search;   /* NULL: no thread */
    bool mine;               /* the lock on the run's folder */
    struct timespec changed; /* the folder, at the last look */
    uint64_t next_ns;        /* not before that */
    bool others;             /* there were some at the last look */
    bool looked;             /* at all runs of the log folder */
} state;

/* --- looking ------------------------------------------------------------- */

static bool enough(uint64_t until_ns, const bool *stop) {
    return rec_mono_ns() >= until_ns || (stop != NULL && REC_LOAD(stop));
}

static void look_at(int dir, const char *name, struct seen *seen) {
    char why[256];
    struct recover_closed saved;
    struct recover_look l;
    bool there = recover_look(dir, name, &l);
    if (there && l.alive) {
        seen->alive += l.pid != getpid();
        seen->bytes += l.bytes;
    } else if (there && !l.mine) {
        return;
    } else if (recover_close_at(dir, name, &saved, why, sizeof why) != 0) {
        seen->bytes += l.bytes;
    } else {
        seen->freed += l.bytes;
    }
}

/* A folder that is looked at, entry by entry. */
struct looking {
    int dir;
    uint64_t until_ns;
    const bool *stop;
    unsigned runs;
    struct seen seen;
};

static bool look_at_file(void *ctx, const char *name) {
    struct looking *l = ctx;
    if (enough(l->until_ns, l->stop)) return false;
    if (text_ends(name, ".ring")) look_at(l->dir, name, &l->seen);
    return true;
}

/* Finishes the recordings that it can in the folder of a run. */
static struct seen recover_one_run(int dir, uint64_t until_ns,
                                   const bool *stop) {
    struct looking l = {.dir = dir, .until_ns = until_ns, .stop = stop};
    sys_list(dir, look_at_file, &l);
    return l.seen;
}

static bool look_at_run(void *ctx, const char *name) {
    struct looking *l = ctx;
    if (enough(l->until_ns, l->stop) || l->runs == RUNS) return false;
    if (name[0] == '.') return true;
    int run = sys_openat(l->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (run < 0) return true;
    l->runs++;
    recover_one_run(run, l->until_ns, l->stop);
    sys_close(run);
    return true;
}

void recover_folder(int logdir, uint64_t until_ns, const bool *stop) {
    struct looking l = {.until_ns = until_ns, .stop = stop};
    l.dir = sys_openat(logdir, "plugins/profile", O_PATH | O_DIRECTORY, 0);
    if (l.dir < 0) return;
    sys_list(l.dir, look_at_run, &l);
    sys_close(l.dir);
}

/* --- in a thread of its state -------------------------------------------- */

/* Searches in a thread of its own: a dead run may have left half a gigabyte,
 * and passes do not wait for it. */
static void *search_thread(void *arg) {
    struct search *w = arg;
    uint64_t began = rec_mono_ns();
    prctl(PR_SET_NAME, "opscope-rescue");
    rec_self.ours = true;
    if (w->logdir >= 0) recover_folder(w->logdir, UINT64_MAX, &w->stop);
    if (w->run >= 0) w->seen = recover_one_run(w->run, UINT64_MAX, &w->stop);
    if (w->logdir >= 0) sys_close(w->logdir);
    if (w->run >= 0) sys_close(w->run);
    w->took_ns = rec_mono_ns() - began;
    /* whoever sees this takes the struct; else it is lost: 100 bytes */
    REC_PUBLISH(&w->done, true);
    return NULL;
}

static int again(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }

static void search_start(const struct session_paths *p, bool all_runs) {
    pthread_attr_t a;
    struct search *w = calloc(1, sizeof *w);
    if (w == NULL) return;
    rec_thread_attr(&a);
    w->logdir = all_runs ? again(p->logdir) : -1;
    w->run = again(p->run);
    if (pthread_create(&state.thread, &a, search_thread, w) == 0) {
        state.search = w;
    } else {
        if (w->logdir >= 0) sys_close(w->logdir);
        if (w->run >= 0) sys_close(w->run);
        free(w);
    }
    pthread_attr_destroy(&a);
}

/* --- when ---------------------------------------------------------------- */

void recover_folder_forked(void) { memset(&state, 0, sizeof state); }

/* Is it this program's turn? One of all that record into the folder looks after
 * it. Where a folder cannot be locked, each of them does. */
static bool is_mine(const struct session_paths *p) {
    if (!state.mine)
        state.mine = flock(p->run, LOCK_EX | LOCK_NB) == 0 ||
                     errno != EWOULDBLOCK;
    return state.mine;
}

/* A short program does not look, unless the dead hold much: then nobody who
 * lives looks after them (children, which leave by _exit, of a process that
 * does not record), and each program that comes does a little. */
void recover_folder_begin(const struct session_paths *p, uint64_t now_ns) {
    memset(&state, 0, sizeof state);
    state.next_ns = now_ns + EVERY_MS * MS;
    if (memory_is_much() && is_mine(p))
        memory_freed(
            recover_one_run(p->run, now_ns + FIRST_LOOK_MS * MS, NULL).freed);
}

/* Has a file come or gone since the last look? */
static bool folder_changed(const struct session_paths *p) {
    struct stat st;
    if (sys_fstat(p->run, &st) != 0 ||
        (st.st_mtim.tv_sec == state.changed.tv_sec &&
         st.st_mtim.tv_nsec == state.changed.tv_nsec))
        return false;
    state.changed = st.st_mtim;
    return true;
}

void recover_folder_look(const struct session_paths *p, uint64_t now_ns) {
    if (state.search != NULL) {
        if (!REC_ACQUIRE(&state.search->done)) return;
        struct search *w = state.search;
        uint64_t pause = w->took_ns * SHARE;
        if (pause < EVERY_MS * MS) pause = EVERY_MS * MS;
        if (pause > AT_MOST_MS * MS) pause = AT_MOST_MS * MS;
        pthread_join(state.thread, NULL);
        state.next_ns = now_ns + pause;
        state.others = w->seen.alive > 0;
        if (state.mine) memory_count(w->seen.bytes);
        free(w);
        state.search = NULL;
    }
    if (now_ns < state.next_ns) return;
    state.next_ns = now_ns + EVERY_MS * MS;
    if (!state.looked) search_start(p, true);
    else if (is_mine(p) && (folder_changed(p) || state.others))
        search_start(p, false);
    state.looked = true;
}

/* Waits that long for the thread. Returns false if it is still at work. */
static bool wait_for_thread(uint64_t ms) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000 * MS);
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return pthread_timedjoin_np(state.thread, NULL, &t) == 0;
}

void recover_folder_end(const struct session_paths *p) {
    if (state.search != NULL) {
        bool ended = wait_for_thread(PATIENCE_MS);
        REC_PUT(&state.search->stop, true);
        if (ended || wait_for_thread(LAST_LOOK_MS)) {
            state.others |= state.search->seen.alive > 0;
            free(state.search);
        } else {
            pthread_detach(state.thread); /* it ends when it is done */
        }
        state.search = NULL;
    }
    if (is_mine(p) && (folder_changed(p) || state.others))
        recover_one_run(p->run, rec_mono_ns() + LAST_LOOK_MS * MS, NULL);
}
