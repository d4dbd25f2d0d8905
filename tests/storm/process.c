/* SPDX-License-Identifier: Apache-2.0
 * Acts that make processes, and the ways in which one ends. */
#include "storm.h"

#include <dlfcn.h>
#include <glob.h>
#include <poll.h>
#include <spawn.h>
#include <stdio_ext.h>
#include <sys/wait.h>

extern char **environ;

static FILE *buffered; /* text that waits in it is written at the end */

int first_return;

/* --- children ------------------------------------------------------------ */

int wait_for(pid_t pid) {
    int status = -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

void say_status(const struct act *a, const char *what, int status) {
    if (status == -1) say(a, "%s cannot be waited for", what);
    else if (WIFEXITED(status))
        say(a, "%s ended with %d", what, WEXITSTATUS(status));
    else say(a, "%s was killed by %d", what, WTERMSIG(status));
}

/* A child has one thread, the one that made it, and nothing to wait for. */
static void child_begin(enum born how, bool on) {
    self->nlate = self->nchild = 0;
    descriptors_forked();
    model_forked(how, on);
    if (buffered != NULL) __fpurge(buffered);
}

pid_t fork_here(void) {
    descriptors_lock();
    bool on = model_on();
    pid_t pid = fork();
    if (pid == 0) child_begin(BORN_BY_FORK, on);
    else descriptors_unlock();
    return pid;
}

pid_t clone_here(void) {
    descriptors_lock();
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) child_begin(BORN_BY_CLONE, false);
    else descriptors_unlock();
    return pid;
}

void settle(void) {
    while (self->nlate > 0) pthread_join(self->late[--self->nlate], NULL);
    for (unsigned i = 0; i < self->nchild; i++)
        say_status(self->child_act[i], "child", wait_for(self->child[i]));
    self->nchild = 0;
}

void last_words(void) {
    descriptors_verify();
    model_leaving();
}

/* Does the child's part of fork and clone. A body that ends without a word ends
 * its process. */
static enum flow be_child(const struct act *a) {
    enum flow flow = run_body((uint32_t)arg_num(a, "body", 0));
    if (flow == RETURN) return RETURN;
    settle();
    last_words();
    exit(0);
}

static void after_child(const struct act *a, pid_t pid) {
    if (pid < 0) {
        say(a, "no child");
    } else if (arg_is(a, "then", "wait")) {
        say_status(a, "child", wait_for(pid));
    } else if (arg_is(a, "then", "later") && self->nchild < LATER) {
        self->child_act[self->nchild] = a;
        self->child[self->nchild++] = pid;
    } /* else it goes its own way */
}

static enum flow do_fork(const struct act *a) {
    pid_t pid = fork_here();
    if (pid == 0) return be_child(a);
    after_child(a, pid);
    return GO_ON;
}

/* Makes a child that no library knows of: it must not use what the recorder has
 * of its parent. stay: it stays until the file `release` is made. */
static enum flow do_clone(const struct act *a) {
    pid_t pid = clone_here();
    if (pid != 0) {
        after_child(a, pid);
        return GO_ON;
    }
    run_body((uint32_t)arg_num(a, "body", 0));
    if (arg_num(a, "stay", 0)) {
        char path[300];
        snprintf(path, sizeof path, "%s/release", workdir);
        for (int i = 0; i < 3000 && access(path, F_OK) != 0; i++)
            sleep_us(10000);
    }
    _exit((int)(a->id % 100));
}

static enum flow do_vfork(const struct act *a) {
    char *const quick[] = {"/bin/true", NULL};
    char **again = self_argv((uint32_t)arg_num(a, "body", 0));
    const char *how = arg_text(a, "how", "_exit");
    bool exec_true = strcmp(how, "exec_true") == 0;
    bool exec_self = strcmp(how, "exec_self") == 0;
    int code = (int)(a->id % 100);
    descriptors_lock();
    pid_t pid = vfork();
    if (pid == 0) {
        if (exec_true) execv(quick[0], quick);
        if (exec_self) execv(again[0], again);
        _exit(code);
    }
    descriptors_unlock();
    if (pid > 0) say_status(a, "vfork", wait_for(pid));
    return GO_ON;
}

static enum flow do_spawn(const struct act *a) {
    char *const quick[] = {"/bin/true", NULL};
    char *const *argv = arg_is(a, "what", "self")
                            ? self_argv((uint32_t)arg_num(a, "body", 0))
                            : quick;
    pid_t pid = -1;
    descriptors_lock();
    int error = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    descriptors_unlock();
    if (error != 0) say(a, "spawn failed with %d", error);
    else say_status(a, "spawned", wait_for(pid));
    return GO_ON;
}

/* --- many short children ------------------------------------------------- */

enum { GATHER = 32, LEFT_AT_MOST = 4, GATHER_MS = 4000 };

static unsigned rings_of(const pid_t *pid, unsigned n) {
    unsigned left = 0;
    descriptors_lock(); /* glob opens the folder */
    for (unsigned i = 0; i < n; i++) {
        char pattern[64];
        glob_t g;
        snprintf(pattern, sizeof pattern, "/dev/shm/opscope-*-%d-*",
                 (int)pid[i]);
        if (glob(pattern, 0, NULL, &g) != 0) continue;
        left += (unsigned)g.gl_pathc;
        globfree(&g);
    }
    descriptors_unlock();
    return left;
}

/* Plays a program whose workers come and go: what the dead leave in memory goes
 * while their parent lives on. */
static enum flow do_gather(const struct act *a) {
    pid_t pid[GATHER];
    struct name name = name_of(a->id, 0);
    unsigned n = (unsigned)arg_num(a, "n", 8), left = 0;
    if (n > GATHER) n = GATHER;
    CALL(a->id, 0, ops_instant(name.text)); /* who records gathers */
    for (unsigned i = 0; i < n; i++) {
        pid[i] = fork_here();
        if (pid[i] == 0) {
            for (int k = 0; k < 3; k++) CALL(a->id, 0, ops_instant(name.text));
            _exit(0);
        }
        if (pid[i] > 0) wait_for(pid[i]);
    }
    uint64_t until = now_ms() + GATHER_MS * (SANITIZED ? 4 : 1);
    if (model_on() && !is_hostile())
        while ((left = rings_of(pid, n)) > LEFT_AT_MOST && now_ms() < until)
            sleep_us(20000);
    if (left > LEFT_AT_MOST) say(a, "memory of %u dead children is left", left);
    else say(a, "gathered");
    return GO_ON;
}

/* --- leaving ------------------------------------------------------------- */

__attribute__((noinline)) static void segv(void) {
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

static void leave_by_signal(const char *how) {
    if (strcmp(how, "abort") == 0) abort();
    bool is_segv = strcmp(how, "segv") == 0;
    if (is_segv && !SANITIZED) segv();
    kill(getpid(), is_segv                    ? SIGSEGV
                   : strcmp(how, "term") == 0 ? SIGTERM
                                              : SIGKILL);
    for (;;) pause();
}

static void leave_by_exec(const struct act *a, const char *how) {
    char *const quick[] = {"/bin/true", NULL};
    char **again = self_argv((uint32_t)arg_num(a, "body", 0));
    if (strcmp(how, "exec_self") == 0) execv(again[0], again);
    else execv(quick[0], quick);
    _exit(126);
}

/* Does the last act of a body: its process ends, or only its thread. */
static enum flow do_leave(const struct act *a) {
    const char *how = arg_text(a, "how", "exit");
    int code = (int)(a->id % 100) + 1;
    if (strcmp(how, "pthread_exit") == 0) {
        descriptors_verify();
        pthread_exit(NULL);
    }
    settle();
    last_words();
    if (strcmp(how, "return") == 0) {
        first_return = code;
        return RETURN;
    }
    if (strcmp(how, "exit") == 0) exit(code);
    if (strcmp(how, "_exit") == 0) _exit(code);
    if (strcmp(how, "quick_exit") == 0) quick_exit(code);
    if (strcmp(how, "stop_exit") == 0) {
        session_stop();
        exit(code);
    }
    if (strncmp(how, "exec", 4) == 0) leave_by_exec(a, how);
    leave_by_signal(how);
    return GO_ON;
}

enum { AT_EXITS = 8 };

static struct {
    uint32_t body;
    pid_t pid;
} at_exit[AT_EXITS];
static unsigned at_exits;

static void run_at_exit(void) {
    static struct self own;
    if (at_exits == 0 || at_exit[--at_exits].pid != getpid()) return;
    if (self == NULL) self = &own;
    run_body(at_exit[at_exits].body);
}

static enum flow do_atexit(const struct act *a) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (at_exits < AT_EXITS) {
        at_exit[at_exits].body = (uint32_t)arg_num(a, "body", 0);
        at_exit[at_exits++].pid = getpid();
        atexit(run_at_exit);
    }
    pthread_mutex_unlock(&lock);
    return GO_ON;
}

/* Writes text that only an orderly end brings into its file. */
static enum flow do_stdio(const struct act *a) {
    char path[300];
    if (buffered != NULL) return GO_ON;
    snprintf(path, sizeof path, "%s/stdio%u", workdir, a->id);
    descriptors_lock();
    buffered = fopen(path, "we");
    if (buffered != NULL) {
        descriptor_own(fileno(buffered), false);
        fprintf(buffered, "text of act %u that is flushed at the end\n", a->id);
    }
    descriptors_unlock();
    return GO_ON;
}

/* Runs after the recorder's own end: calls do nothing, and do no harm. */
__attribute__((destructor(101))) static void very_last(void) {
    if (diary == NULL) return;
    OPS_SCOPE_INT("behind the end", "i", 1);
    ops_counter("behind the end", 1);
    ops_scalar("behind the end", 1, 1);
    ops_flush();
    ops_dump();
    ops_stop();
}

/* --- plugins ------------------------------------------------------------- */

typedef void plugin_fn(uint32_t act, int64_t n, const char *dir,
                       void (*tried)(uint32_t, unsigned, uint64_t),
                       void (*done)(uint32_t, unsigned, uint64_t));

struct plugin_call {
    plugin_fn *fn;
    const struct act *act;
};

static void *in_plugin(void *arg) {
    const struct plugin_call *c = arg;
    int64_t n = arg_num(c->act, "n", 1);
    struct sure s = sure_before();
    c->fn(c->act->id, n, logdir, note_tried, note_done);
    if (!arg_is(c->act, "kind", "own") && sure_after(s))
        note_done(c->act->id, 0, (uint64_t)n);
    return NULL;
}

/* own: it has a recorder of its own inside; shared: it uses the program's. */
static enum flow do_plugin(const struct act *a) {
    char path[300];
    snprintf(path, sizeof path, "%s/plugin-%s.so", plugin_dir,
             arg_text(a, "kind", "shared"));
    for (int64_t i = 0, n = arg_num(a, "rounds", 1); i < n; i++) {
        pthread_t t;
        descriptors_lock();
        void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        descriptors_unlock();
        if (lib == NULL) {
            say(a, "no plugin: %s", dlerror());
            return GO_ON;
        }
        struct plugin_call c = {.act = a};
        *(void **)&c.fn = dlsym(lib, "storm_plugin");
        in_plugin(&c);
        if (arg_num(a, "thread", 0) && thread_start(&t, 0, in_plugin, &c) == 0)
            pthread_join(t, NULL);
        if (arg_num(a, "close", 1)) dlclose(lib);
    }
    say(a, "plugin done");
    return GO_ON;
}

const struct verb process_verbs[] = {
    {"fork", do_fork},     {"clone", do_clone},   {"vfork", do_vfork},
    {"spawn", do_spawn},   {"gather", do_gather}, {"leave", do_leave},
    {"atexit", do_atexit}, {"stdio", do_stdio},   {"plugin", do_plugin},
    {NULL, NULL},
};
