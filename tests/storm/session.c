/* SPDX-License-Identifier: Apache-2.0
 * What the program itself knows of the recorder's state, and the acts that
 * change it: start, stop, dump, flush, limits, the environment.
 *
 * The program must know of each call whether it had to be recorded. Changes are
 * counted: a call is certain when a window was open before it and after it, no
 * change began in between and none was going on. What happened beside a change
 * may be recorded or not; only that it was tried is known. */
#include "storm.h"

#include <ftw.h>
#include <sys/resource.h>

enum window { WINDOW_NONE, WINDOW_STEPS, WINDOW_UNSURE };
enum started { NO, YES, UNKNOWN };

static struct {
    unsigned changing, changes, closing;
    bool pending; /* a child that records from its first call on */
    bool no_fork, leaving;
    enum window window;
    enum started started;
    const struct act *last; /* the start whose options hold */
} model;

#define GET(p)    __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define SET(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

/* --- certainty ----------------------------------------------------------- */

struct sure sure_before(void) {
    struct sure s = {GET(&model.changes), false};
    s.so = GET(&model.changing) == 0 && GET(&model.window) != WINDOW_UNSURE &&
           (ops_recording() || GET(&model.pending));
    return s;
}

bool sure_after(struct sure s) {
    bool on = ops_recording();
    if (!s.so || GET(&model.changing) != 0 || GET(&model.changes) != s.changes)
        return false;
    if (GET(&model.pending)) {
        SET(&model.pending, false);
        SET(&model.started, on ? YES : NO);
        if (!on && !is_hostile()) fault(0, FAULT_CHILD_OFF, 0, 0);
    }
    return on;
}

void change_begins(void) {
    __atomic_fetch_add(&model.changing, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&model.changes, 1, __ATOMIC_SEQ_CST);
}

void change_ends(void) {
    __atomic_fetch_add(&model.changes, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&model.changing, 1, __ATOMIC_SEQ_CST);
}

bool model_on(void) {
    return GET(&model.changing) == 0 && GET(&model.window) == WINDOW_NONE &&
           !GET(&model.no_fork) && (ops_recording() || GET(&model.pending));
}

bool is_windowed(void) { return GET(&model.window) != WINDOW_NONE; }

/* Only a child of fork() is told what its parent did. */
void model_forked(enum born how, bool on) {
    bool off = how == BORN_BY_CLONE || GET(&model.no_fork) ||
               (GET(&model.changing) == 0 && GET(&model.started) == NO);
    SET(&model.changing, 0);
    SET(&model.leaving, false);
    SET(&model.pending, on);
    SET(&model.started, on || off ? NO : UNKNOWN);
    if (off) SET(&model.window, WINDOW_NONE);
}

void model_threads(void) { SET(&model.pending, false); }

void hostile(void) { SET(&diary->hostile, 1); }
bool is_hostile(void) { return GET(&diary->hostile) != 0; }

void closing_begins(void) {
    __atomic_fetch_add(&model.closing, 1, __ATOMIC_SEQ_CST);
}

void closing_ends(void) {
    __atomic_fetch_add(&model.closing, 1, __ATOMIC_SEQ_CST);
}

/* --- start and stop ------------------------------------------------------ */

static const char *env_or(const char *name, const char *other) {
    const char *v = getenv(name);
    return v != NULL && v[0] != 0 ? v : other;
}

static enum window window_of(const char *steps) {
    if (steps == NULL) return WINDOW_NONE;
    return strchr(steps, 's') != NULL || strcmp(steps, "demand") == 0
               ? WINDOW_UNSURE
               : WINDOW_STEPS;
}

static struct ops_options options_of(const struct act *a) {
    struct ops_options o = {.run = "storm"};
    if (a == NULL) return o;
    o.steps = arg_text(a, "steps", NULL);
    o.flight = arg_num(a, "flight", 0) != 0;
    o.ring_bytes = (size_t)arg_num(a, "ring", 0);
    o.memory_bytes = (size_t)arg_num(a, "memory", 0);
    o.no_machine = arg_num(a, "machine", 1) == 0;
    o.no_tsc = arg_num(a, "tsc", 1) == 0;
    o.no_fork = arg_num(a, "fork", 1) == 0;
    o.signal = (int)arg_num(a, "signal", 0);
    return o;
}

/* What a thread must find as it was: its signals and cancellation. */
struct manners {
    sigset_t mask;
    int cancel;
};

static struct manners manners_before(void) {
    struct manners m;
    pthread_sigmask(SIG_SETMASK, NULL, &m.mask);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &m.cancel);
    pthread_setcancelstate(m.cancel, NULL);
    errno = ERRNO_PROBE;
    return m;
}

static void manners_after(uint32_t act, const struct manners *m) {
    int error = errno, cancel;
    sigset_t now;
    if (error != ERRNO_PROBE) fault(act, FAULT_ERRNO, (uint64_t)error, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; i < 64; i++)
        if (sigismember(&now, i) != sigismember(&m->mask, i))
            fault(act, FAULT_MASK, (uint64_t)i, 0);
    pthread_setcancelstate(m->cancel, &cancel);
    if (cancel != m->cancel) fault(act, FAULT_CANCEL, (uint64_t)cancel, 0);
}

/* Did no other thread change anything? Then it is known what holds now. At the
 * end of a process the recorder stops by itself, at a moment that nobody
 * tells. */
static bool alone(unsigned changes) {
    return GET(&model.changing) == 1 && GET(&model.changes) == changes &&
           !GET(&model.leaving);
}

void model_leaving(void) { SET(&model.leaving, true); }

/* The options count where nothing was started. Where the environment starts
 * programs, those of a later start may count as well. */
static void learn(const struct act *a, const struct ops_options *o) {
    bool loaded = strcmp(env_or("OPSCOPE", ""), "1") == 0;
    if (GET(&model.started) == YES && loaded && o->steps != NULL)
        SET(&model.window, WINDOW_UNSURE);
    if (GET(&model.started) == YES) return;
    SET(&model.window, GET(&model.started) == UNKNOWN
                           ? WINDOW_UNSURE
                           : window_of(env_or("OPSCOPE_STEPS", o->steps)));
    SET(&model.no_fork,
        o->no_fork || strcmp(env_or("OPSCOPE_FORK", ""), "0") == 0);
    SET(&model.started, YES);
    SET(&model.last, a);
}

static bool at_home(void) {
    struct stat here, home;
    return stat(".", &here) == 0 && stat(workdir, &home) == 0 &&
           here.st_ino == home.st_ino && here.st_dev == home.st_dev;
}

void session_start(const struct act *a) {
    struct ops_options o = options_of(a);
    uint32_t id = a != NULL ? a->id : 0;
    bool relative = a != NULL && arg_num(a, "relative", 0) && at_home();
    change_begins();
    unsigned changes = GET(&model.changes), closing = GET(&model.closing);
    struct manners m = manners_before();
    int rc = ops_start(relative ? "logs" : logdir, &o);
    manners_after(id, &m);
    bool forbidden = strcmp(env_or("OPSCOPE", ""), "0") == 0;
    SET(&model.pending, false);
    if (!alone(changes)) {
        SET(&model.window, WINDOW_UNSURE);
        SET(&model.started, UNKNOWN);
    } else if (rc == 0) {
        learn(a, &o);
        if (GET(&model.window) == WINDOW_NONE && !ops_recording() &&
            alone(changes))
            fault(id, FAULT_START_OFF, 0, 0);
    } else {
        SET(&model.started, NO);
        bool calm = closing % 2 == 0 && GET(&model.closing) == closing;
        if (!forbidden && !is_hostile() && calm)
            fault(id, FAULT_START_FAILED, 0, 0);
    }
    change_ends();
}

void session_stop(void) {
    change_begins();
    unsigned changes = GET(&model.changes);
    struct manners m = manners_before();
    ops_stop();
    manners_after(0, &m);
    SET(&model.pending, false);
    bool on = ops_recording();
    if (!alone(changes)) {
        SET(&model.window, WINDOW_UNSURE);
        SET(&model.started, UNKNOWN);
    } else {
        if (on) fault(0, FAULT_STOP_ON, 0, 0);
        SET(&model.window, WINDOW_NONE);
        SET(&model.started, NO);
    }
    change_ends();
}

/* Restarts with the options of the last start, if they are known. */
void session_restart(void) {
    const struct act *a = GET(&model.last);
    if (GET(&model.started) != YES && !GET(&model.pending)) return;
    session_stop();
    session_start(a);
}

/* Under OPSCOPE=1 the recorder runs before main() does. */
__attribute__((constructor(65535))) static void look_at_load(void) {
    if (strcmp(env_or("OPSCOPE", ""), "1") != 0) return;
    model.started = YES;
    model.window = window_of(env_or("OPSCOPE_STEPS", NULL));
    model.no_fork = strcmp(env_or("OPSCOPE_FORK", ""), "0") == 0;
}

/* --- acts ---------------------------------------------------------------- */

static enum flow do_start(const struct act *a) {
    session_start(a);
    return GO_ON;
}

static enum flow do_stop(const struct act *a) {
    (void)a;
    session_stop();
    return GO_ON;
}

static enum flow do_dump(const struct act *a) {
    struct manners m = manners_before();
    ops_dump();
    manners_after(a->id, &m);
    return GO_ON;
}

static enum flow do_flush(const struct act *a) {
    struct manners m = manners_before();
    ops_flush();
    manners_after(a->id, &m);
    return GO_ON;
}

static enum flow do_setenv(const struct act *a) {
    setenv(arg_text(a, "name", "OPSCOPE_NOTHING"), arg_text(a, "value", ""), 1);
    return GO_ON;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *f) {
    (void)st;
    (void)type;
    (void)f;
    remove(path);
    return 0;
}

/* Removes the log folder; programs that record into it make new files
 * meanwhile. */
static enum flow do_rmlogs(const struct act *a) {
    bool on = model_on();
    hostile();
    SET(&diary->gone, 1);
    descriptors_lock();
    for (int i = 0; i < 3; i++)
        nftw(logdir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    descriptors_unlock();
    if (arg_num(a, "ask", 0) == 0 || !on) return GO_ON;
    /* The folder is gone: that becomes a problem when the recorder wants to
     * write. */
    for (int i = 0; i < 40; i++) {
        CALL(a->id, 0, ops_instant(name_of(a->id, 0).text));
        ops_flush();
        if (ops_problem(NULL, 0) != 0 || !ops_recording()) return GO_ON;
        sleep_us(25000);
    }
    /* unless somebody began to record since then, and made it anew */
    if (ops_recording() && access(logdir, F_OK) != 0)
        fault(a->id, FAULT_PROBLEM, 0, 0);
    return GO_ON;
}

static enum flow do_limit(const struct act *a) {
    struct rlimit l;
    const char *what = arg_text(a, "what", "nofile");
    int which = strcmp(what, "nofile") == 0  ? RLIMIT_NOFILE
                : strcmp(what, "fsize") == 0 ? RLIMIT_FSIZE
                : strcmp(what, "stack") == 0 ? RLIMIT_STACK
                                             : RLIMIT_NPROC;
    if (which != RLIMIT_STACK) hostile();
    getrlimit(which, &l);
    l.rlim_cur = (rlim_t)arg_num(a, "value", 64);
    if (l.rlim_max != RLIM_INFINITY && l.rlim_cur > l.rlim_max)
        l.rlim_cur = l.rlim_max;
    say(a, "limit %d", setrlimit(which, &l));
    return GO_ON;
}

static enum flow do_chdir(const struct act *a) {
    char path[300];
    snprintf(path, sizeof path, "%s/folder%u", workdir, a->id);
    int made = mkdir(path, 0777);
    say(a, "chdir %d %d", made, chdir(path));
    return GO_ON;
}

static enum flow do_umask(const struct act *a) {
    umask((mode_t)strtol(arg_text(a, "mode", "077"), NULL, 8));
    return GO_ON;
}

/* Asks for a capture, in the way of people at a shell. */
static enum flow do_capture(const struct act *a) {
    char path[400];
    (void)a;
    snprintf(path, sizeof path, "%s/opscope.capture", logdir);
    descriptors_lock();
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) close(fd);
    descriptors_unlock();
    return GO_ON;
}

static enum flow do_rank(const struct act *a) {
    struct manners m = manners_before();
    ops_set_rank((int)(a->id % 4), 4);
    manners_after(a->id, &m);
    return GO_ON;
}

static enum flow do_problem(const struct act *a) {
    char why[OPS_PROBLEM_MAX];
    (void)a;
    size_t n = ops_problem(why, sizeof why);
    /* whole, however many tell another meanwhile */
    if (n >= sizeof why || strnlen(why, sizeof why) >= sizeof why) abort();
    return GO_ON;
}

/* clang-format off */
const struct verb session_verbs[] = {
    {"start", do_start},   {"stop", do_stop},       {"dump", do_dump},
    {"flush", do_flush},   {"setenv", do_setenv},   {"rmlogs", do_rmlogs},
    {"limit", do_limit},   {"chdir", do_chdir},     {"umask", do_umask},
    {"problem", do_problem}, {"capture", do_capture}, {"rank", do_rank},
    {NULL, NULL},
};
/* clang-format on */
