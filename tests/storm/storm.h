/* SPDX-License-Identifier: Apache-2.0
 * A program that does what a script says: processes, threads, signals,
 * descriptors, and between them calls of the recorder. tests/storm/grammar.py
 * writes the scripts, tests/storm/judge.py holds what was recorded against the
 * diary that the program keeps by itself.
 *
 * A script is a list of bodies, a body a list of acts, one on a line:
 *
 *     body 0
 *     1 start
 *     2 scope n=20 args=int
 *     3 fork body=1 then=wait
 *     body 1
 *     4 instant n=3
 *     5 leave how=_exit
 *
 * Body 0 is main's. Every other body is named by one act (a thread, a fork, a
 * scope around others) and runs once, so that an act belongs to one thread of
 * one process, and a name that is made of the act's number to nobody else. */
#ifndef TESTS_STORM_STORM_H
#define TESTS_STORM_STORM_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <opscope/record.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* --- the diary ----------------------------------------------------------- */

enum { ACTS = 4096, BODIES = 1024, FAULTS = 256, KINDS = 4 };

/* What was found to be wrong on the spot. judge.py knows the names. */
enum fault {
    FAULT_NONE,
    FAULT_ERRNO,     /* a call changed errno */
    FAULT_MASK,      /* a call changed the thread's signal mask */
    FAULT_CHILD_OFF, /* a child of a recording program does not record */
    FAULT_START_OFF, /* ops_start() said 0, and nothing is recorded */
    FAULT_STOP_ON,   /* ops_stop() came back, and something is recorded */
    FAULT_FOREIGN,   /* a handler ran in a thread that is not the program's */
    FAULT_PROBLEM,   /* the folder is gone, and ops_problem() is "" */
    FAULT_START_FAILED, /* ops_start() failed, and nothing stands in its way */
    FAULT_CANCEL,       /* a call changed the cancellation state */
};

/* A file that is mapped by every process of the tree. All numbers are 64 bits:
 * the other side reads them as an array. */
struct diary {
    uint64_t gone;    /* the log folder was removed */
    uint64_t hostile; /* something stands in the recorder's way */
    uint64_t nfaults;
    uint64_t unused[5];
    struct {
        uint64_t act, what, a, b;
    } fault[FAULTS];
    struct {
        uint64_t pid, tid, began, ended;
    } body[BODIES];
    /* For each act, by the kind of record that it makes: how many calls were
     * begun, and how many returned that were certain to be recorded. */
    struct {
        uint64_t tried[KINDS], done[KINDS];
    } act[ACTS];
};

extern struct diary *diary;
extern const char *logdir, *workdir, *plugin_dir;

/* --- the script ---------------------------------------------------------- */

enum { ARGS = 8 };

enum flow { GO_ON, RETURN };

struct act {
    uint32_t id;
    const struct verb *verb;
    unsigned nargs;
    const char *key[ARGS], *value[ARGS];
};

struct verb {
    const char *name;
    enum flow (*run)(const struct act *a);
};

/* Tables of verbs end with a NULL name. */
extern const struct verb record_verbs[], session_verbs[], process_verbs[],
    thread_verbs[], descriptor_verbs[], signal_verbs[];

/* Return an argument of an act; `none` if it is not there. */
int64_t arg_num(const struct act *a, const char *key, int64_t none);
const char *arg_text(const struct act *a, const char *key, const char *none);
bool arg_is(const struct act *a, const char *key, const char *value);

/* Runs a body in the calling thread. Returns RETURN if the function that its
 * thread or process began with is to be left. */
enum flow run_body(uint32_t body);

/* Prints a line in one write: lines of threads and processes come in any order,
 * but whole. */
__attribute__((format(printf, 2, 3))) void say(const struct act *a,
                                               const char *format, ...);

/* --- threads and processes ----------------------------------------------- */

enum { LATER = 16 };

/* What a thread of this program knows of itself; a thread that has none is not
 * of this program. */
struct self {
    bool first; /* of its process: it may return from main() */
    pthread_t late[LATER];
    unsigned nlate;
    pid_t child[LATER];
    const struct act *child_act[LATER];
    unsigned nchild;
    sigjmp_buf jump; /* where a handler that jumps goes */
    volatile sig_atomic_t may_jump;
    unsigned usr1; /* how often that signal came */
};
extern __thread struct self *self;

/* Waits for the threads and children that were left for later. */
void settle(void);
/* Says and looks at all that must be before a process ends. */
void last_words(void);
/* Forks, with all that the program itself must do around it. */
pid_t fork_here(void);
/* Does the same by the bare system call: no handler of any library runs. */
pid_t clone_here(void);
/* Waits, whatever signals come. Returns how the process ended. */
int wait_for(pid_t pid);
void say_status(const struct act *a, const char *what, int status);
/* Does what a new thread does first; `first`: it is that of a new program. */
void self_begin(struct self *s, bool first);
void signals_begin(void);
char **self_argv(uint32_t body);
extern uint32_t first_body;
/* What main() is to return when a body said RETURN. */
extern int first_return;

void sleep_us(int64_t us);
uint64_t now_ms(void);
/* Returns the size of a thread's stack: no smaller than what this build
 * needs. */
size_t stack_size(int64_t wanted);
int thread_start(pthread_t *t, int64_t stack, void *(*run)(void *), void *arg);

/* --- what the program knows of the recorder ------------------------------ */

/* Is a call certain to be recorded? It is when a window was open before and
 * after, and nothing was started or stopped in between. */
struct sure {
    unsigned changes;
    bool so;
};
struct sure sure_before(void);
bool sure_after(struct sure s);

/* Stand around everything that may start, stop or move the window. */
void change_begins(void);
void change_ends(void);

/* Is called in a child, at once. `on`: it is certain that its parent
 * recorded. */
enum born { BORN_BY_FORK, BORN_BY_CLONE };
void model_forked(enum born how, bool on);
/* Notes that the process is about to end. */
void model_leaving(void);
/* Is called before a second thread is made: which call is a child's first is
 * then no longer known. */
void model_threads(void);
/* Is it certain that this process records? */
bool model_on(void);
/* Starts and stops as an act says, or as the last start did. */
void session_start(const struct act *a);
void session_stop(void);
void session_restart(void);
/* Notes that something stands in the recorder's way, in any process of the
 * tree: starts may fail. */
void hostile(void);
bool is_hostile(void);
/* Note that descriptors that are not the program's are being closed: a start
 * beside that may fail. */
void closing_begins(void);
void closing_ends(void);
bool is_windowed(void);

void fault(uint32_t act, enum fault what, uint64_t a, uint64_t b);

/* --- calls, noted -------------------------------------------------------- */

void note_tried(uint32_t act, unsigned kind, uint64_t n);
void note_done(uint32_t act, unsigned kind, uint64_t n);

/* "s12.0": the name of act 12's records of kind 0. */
struct name {
    char text[24];
};
struct name name_of(uint32_t act, unsigned kind);

enum { ERRNO_PROBE = 117 };

/* Makes one call that makes one record. */
#define CALL(act, kind, call)                                                  \
    do {                                                                       \
        struct sure call_sure_ = sure_before();                                \
        note_tried(act, kind, 1);                                              \
        errno = ERRNO_PROBE;                                                   \
        call;                                                                  \
        if (errno != ERRNO_PROBE) fault(act, FAULT_ERRNO, (uint64_t)errno, 0); \
        if (sure_after(call_sure_)) note_done(act, kind, 1);                   \
    } while (0)

/* --- descriptors --------------------------------------------------------- */

/* Must be held to open, close or count descriptors; nothing is forked
 * meanwhile. */
void descriptors_lock(void);
void descriptors_unlock(void);
/* Notes that this descriptor is ours; `pipe`: a child has no use for it. The
 * lock is held. */
void descriptor_own(int fd, bool pipe);
void descriptor_close(int fd);
void descriptors_forked(void);
/* Are all files that this process holds what it made of them? */
void descriptors_verify(void);

#endif
