/* SPDX-License-Identifier: Apache-2.0
 * The loop while the program runs: signals are not handled but waited for, one
 * at a time, and between them it looks at the processes.
 *
 * Which signals go on to the program? One that the kernel sends because of the
 * terminal (Ctrl-C, Ctrl-\, a lost connection) goes to the whole foreground
 * process group: the program has it already. One that somebody sent with kill()
 * to us was meant for it. Somebody who signals our whole group by kill()
 * reaches the program twice: that cannot be told apart. */
#include "capture/launch.h"

#include "base/text/cut.h"
#include "capture/hook.h"
#include "capture/tree.h"
#include "ring/window.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                SIGTERM, SIGUSR1, SIGUSR2};
enum {
    NFORWARDED = sizeof forwarded / sizeof *forwarded,
    LINGER_LOOK_MS = 20,
    RECOVER_MS = 200, /* between looks for what the dead left */
    GRACE_MS = 200
}; /* for children that are about to record */

/* --- starting it --------------------------------------------------------- */

/* Masks and dispositions that the program is to find as we found them. */
struct spawn_signals {
    sigset_t mask;
    struct sigaction child; /* SIGCHLD's */
};

/* Runs argv, found by PATH, with that environment. Returns 0 and *pid, or an
 * errno: the program was not started. The child says that exec failed through a
 * pipe that a successful exec closes. */
static int spawn_program(char *const *argv, char *const *envp,
                         const struct spawn_signals *old, pid_t *pid) {
    int pipes[2], why = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0) return errno;
    *pid = fork();
    if (*pid == 0) {
        /* This is the child; it never returns. It makes only calls that are
         * safe there: we have one thread, but a library may have started
         * others. */
        sigaction(SIGCHLD, &old->child, NULL);
        sigprocmask(SIG_SETMASK, &old->mask, NULL);
        execvpe(argv[0], argv, envp);
        why = errno;
        while (write(pipes[1], &why, sizeof why) < 0 && errno == EINTR)
            continue;
        _exit(127);
    }
    int failed = *pid < 0 ? errno : 0;
    close(pipes[1]);
    ssize_t n = 0;
    while (failed == 0 && (n = read(pipes[0], &why, sizeof why)) < 0 &&
           errno == EINTR)
        continue;
    close(pipes[0]);
    if (failed != 0) return failed;
    if (n != (ssize_t)sizeof why) return 0;
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) continue;
    return why;
}

/* Do both "NAME=..." have the same name? */
static int same_name(const char *a, const char *b) {
    const char *eq = strchr(b, '=');
    return eq != NULL && strncmp(a, b, (size_t)(eq - b) + 1) == 0;
}

/* Returns a copy of the environment with the NULL-terminated "NAME=value" of
 * more in the place of others of those names; NULL if there is no memory. The
 * caller frees the vector; its texts are borrowed. */
static char **spawn_environment(char *const *more) {
    size_t n = 0, m = 0, kept = 0;
    while (environ != NULL && environ[n] != NULL) n++;
    while (more[m] != NULL) m++;
    char **v = calloc(n + m + 1, sizeof *v);
    if (v == NULL) return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < m && !same_name(environ[i], more[k])) k++;
        if (k == m) v[kept++] = environ[i];
    }
    for (size_t k = 0; k < m; k++) v[kept++] = more[k];
    return v;
}

/* --- watching it --------------------------------------------------------- */

struct watch {
    struct tree *tree;
    struct launch_end *end;
    pid_t child;
    bool ended;       /* the program */
    bool asked;       /* a signal came after its end: do not linger */
    sigset_t signals; /* that we wait for */
    struct spawn_signals old;
    int64_t next;      /* look */
    size_t dead;       /* processes, when their rings were last closed */
    int64_t recovered; /* when that was */
};

/* Reaps all that died and are our children: the program, and orphans that came
 * back to us. Their last figures are taken first, since they go with them. */
static void reap(struct watch *w) {
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            return;
        int status;
        struct rusage usage;
        int64_t now = mono_now();
        tree_last_look(w->tree, info.si_pid, now);
        if (wait4(info.si_pid, &status, WNOHANG, &usage) != info.si_pid) return;
        tree_reaped(w->tree, info.si_pid, status, &usage, now);
        if (info.si_pid != w->child) continue;
        w->ended = true;
        w->end->status = status;
        w->end->t1 = now;
    }
}

/* Waits for a signal or until then, whichever comes first. */
static void wait_until(struct watch *w, int64_t then) {
    int64_t left = then - mono_now();
    struct timespec ts = {0, 0};
    if (left > 0) ts = (struct timespec){left / 1000000000, left % 1000000000};
    siginfo_t info;
    int sig = sigtimedwait(&w->signals, &info, &ts);
    if (sig <= 0) return;
    if (sig == SIGCHLD) {
        reap(w);
    } else if (w->ended) {
        w->asked = true;
    } else if (info.si_code <= 0 && info.si_pid != w->child) {
        kill(w->child, sig); /* SI_USER, SI_QUEUE, SI_TKILL: by somebody */
    }
}

/* Returns how many descendants are known to live. */
static size_t count_alive(const struct tree *tree) {
    size_t n = 0;
    for (size_t i = 0; i < tree->nprocs; i++) n += tree->procs[i].alive;
    return n;
}

/* Closes recordings of processes that ended without doing so, so that their
 * memory is free while the others go on. */
static void recover_dead(struct watch *w, const char *dir, bool alone) {
    int64_t now = mono_now();
    size_t dead = w->tree->nprocs - count_alive(w->tree);
    if (dead == w->dead || now - w->recovered < RECOVER_MS * 1000000) return;
    w->dead = dead;
    recover_run_dead(dir, w->tree, alone, &w->end->got);
    w->recovered = mono_now();
}

/* Lets processes that still record finish after the program is over. A child
 * that is just being born may begin to, if others did. */
static void linger(struct watch *w, const char *dir, int64_t ms) {
    int64_t began = mono_now(), until = began + ms * 1000000;
    int64_t grace = began + (ms < GRACE_MS ? ms : GRACE_MS) * 1000000;
    for (;;) {
        reap(w);
        tree_look(w->tree, mono_now());
        w->end->left = count_alive(w->tree);
        w->end->recording = w->end->left ? recover_run_live(dir, w->tree) : 0;
        int64_t now = mono_now();
        w->end->waited = now - began;
        if (w->end->left == 0 || w->asked || now >= until) return;
        if (w->end->recording == 0 && (now >= grace || !recover_run_any(dir)))
            return;
        int64_t then = now + LINGER_LOOK_MS * 1000000;
        wait_until(w, then < until ? then : until);
    }
}

/* Returns "NAME=value", or NULL and *oom. */
static char *setting(const char *name, const char *value, bool *oom) {
    char *s;
    if (asprintf(&s, "%s=%s", name, value) >= 0) return s;
    *oom = true;
    return NULL;
}

/* Starts the program; its environment says how the recorder in it is set up. */
static int launch_start(struct watch *w, const struct run_spec *l,
                        const struct rundir *dir, struct ops_err *e) {
    char *more[12] = {0}, id[20], *python = hook_python_path();
    size_t n = 0;
    if (getrandom(&w->tree->launch, sizeof w->tree->launch, 0) < 0)
        w->tree->launch = 0;
    snprintf(id, sizeof id, "%" PRIx64, w->tree->launch);
    bool oom = false;
    more[n++] = setting("OPSCOPE", "1", &oom);
    more[n++] = setting("OPSCOPE_LOGDIR", dir->logdir, &oom);
    more[n++] = setting("OPSCOPE_RUN", dir->name, &oom);
    more[n++] = setting("OPSCOPE_LAUNCH", id, &oom);
    if (l->steps) more[n++] = setting("OPSCOPE_STEPS", l->steps, &oom);
    if (l->flight) more[n++] = setting("OPSCOPE_FLIGHT", "1", &oom);
    if (l->host) more[n++] = setting("OPSCOPE_HOST", l->host, &oom);
    if (l->traced) more[n++] = setting("OPSCOPE_CAPTURE", l->traced, &oom);
    if (l->seconds) more[n++] = setting("OPSCOPE_SECONDS", l->seconds, &oom);
    if (python) more[n++] = setting("PYTHONPATH", python, &oom);
    free(python);
    char **envp = oom ? NULL : spawn_environment(more);
    if (envp != NULL) {
        w->end->t0 = w->end->t1 = mono_now();
        w->end->unix_ns = clock_ns(CLOCK_REALTIME);
        w->end->errnum = spawn_program(l->argv, envp, &w->old, &w->child);
    }
    for (size_t i = 0; i < n; i++) free(more[i]);
    int rc = envp ? 0 : fail_oom(e);
    free(envp);
    return rc;
}

int launch_check_steps(const char *steps, struct ops_err *e) {
    struct window w;
    char why[200];
    if (steps == NULL || window_parse(&w, steps, why, sizeof why) == 0)
        return 0;
    return fail(e, OPS_EUSAGE, "--steps '%.*s': %s", CUT(200, steps), why);
}

int launch_run(const struct run_spec *l, const struct rundir *dir,
               struct tree *tree, struct launch_end *out, struct ops_err *e) {
    *out = (struct launch_end){0};
    struct watch w = {.tree = tree, .end = out};
    /* The signals that the loop waits for are blocked. Those that we were told
     * to ignore (nohup) stay so: they are not for the program either. */
    struct sigaction is, dfl = {.sa_handler = SIG_DFL};
    sigemptyset(&w.signals);
    sigaddset(&w.signals, SIGCHLD);
    for (int i = 0; i < NFORWARDED; i++)
        if (sigaction(forwarded[i], NULL, &is) == 0 && is.sa_handler != SIG_IGN)
            sigaddset(&w.signals, forwarded[i]);
    sigprocmask(SIG_BLOCK, &w.signals, &w.old.mask);
    /* if it were ignored, children would vanish without a status */
    sigaction(SIGCHLD, &dfl, &w.old.child);
    /* old kernels refuse it: orphans are then lost from sight, no more */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    tree_prepare(tree, getpid());
    int rc = launch_start(&w, l, dir, e);
    if (rc == 0 && out->errnum == 0) {
        tree_begin(tree, w.child, out->t0);
        while (!w.ended) {
            int64_t now = mono_now();
            if (now >= w.next) w.next = tree_look(tree, now);
            recover_dead(&w, dir->path, l->alone);
            wait_until(&w, w.next);
        }
        linger(&w, dir->path, l->linger_ms);
    }
    sigaction(SIGCHLD, &w.old.child, NULL);
    sigprocmask(SIG_SETMASK, &w.old.mask, NULL);
    return rc;
}
