/* SPDX-License-Identifier: Apache-2.0
 * Processes and folders find each other by the files that are open for writing:
 * that works for every writer of event files, in any language. Readers (a
 * TensorBoard that shows the same folder) do not count. */
#include "cmd/watch_target.h"

#include "base/bytes.h"
#include "scalars/logdir.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char part_suffix[] = ".xplane.pb.part";
static const char profile_folder[] = "/plugins/profile/";

/* Looks at a process. Returns false if there is none, or if it has ended and
 * waits to be reaped. */
static bool runs(int32_t pid, struct proc_stat *now) {
    return proc_stat_read(pid, 0, now) && now->state != 'Z' &&
           now->state != 'X';
}

static bool is_log_file(const char *path) {
    const char *base = strrchr(path, '/');
    return bytes_ends(bytes_of(path), part_suffix) ||
           (base != NULL && logdir_is_event_file(base));
}

void watch_target_free(struct watch_target *w) {
    free(w->logdir);
    *w = (struct watch_target){0};
}

/* Takes the log folder that a file of it stands in. */
static bool take_logdir(void *ctx, const char *path) {
    struct watch_target *w = ctx;
    if (!is_log_file(path)) return true;
    const char *end = strstr(path, profile_folder);
    if (end == NULL || !bytes_ends(bytes_of(path), part_suffix))
        end = strrchr(path, '/');
    w->logdir = end > path ? strndup(path, (size_t)(end - path)) : strdup("/");
    return w->logdir == NULL;
}

/* Finds where the process writes: as it was told to, else as it does. */
static void find_logdir(struct watch_target *w) {
    char *said = proc_environ(w->pid, "OPSCOPE_LOGDIR");
    char *cwd = said && said[0] != '/' ? proc_cwd(w->pid) : NULL;
    struct stat st;
    if (cwd != NULL && asprintf(&w->logdir, "%s/%s", cwd, said) < 0)
        w->logdir = NULL;
    else if (said != NULL && said[0] == '/') w->logdir = strdup(said);
    free(said);
    free(cwd);
    if (w->logdir != NULL && stat(w->logdir, &st) != 0) {
        free(w->logdir); /* it will make the folder when it has something */
        w->logdir = NULL;
    }
    if (w->logdir == NULL) proc_each_written(w->pid, take_logdir, w);
}

/* What find_writers carries along. */
struct writers {
    struct watch_target *w;
    char root[PATH_MAX]; /* the folder as the kernel names it */
    bool writes;
};

static bool is_below(void *ctx, const char *path) {
    struct writers *x = ctx;
    size_t n = strlen(x->root);
    x->writes = is_log_file(path) && strncmp(path, x->root, n) == 0 &&
                (path[n] == '/' || path[n] == '\0');
    return !x->writes;
}

static void try_process(void *ctx, int32_t pid) {
    struct writers *x = ctx;
    struct watch_target *w = x->w;
    if (w->nprocs == WATCH_PROCESSES || pid == getpid()) return;
    for (size_t i = 0; i < w->nprocs; i++)
        if (w->procs[i].pid == pid) return;
    x->writes = false;
    proc_each_written(pid, is_below, x);
    if (x->writes && runs(pid, &w->procs[w->nprocs])) w->nprocs++;
}

/* Finds the processes that write into the folder now. */
static void find_writers(struct watch_target *w) {
    struct writers x = {.w = w};
    if (realpath(w->logdir, x.root) == NULL) return;
    if (w->nprocs < WATCH_PROCESSES) proc_list(0, try_process, &x);
}

void watch_target_look(struct watch_target *w) {
    size_t kept = 0;
    for (size_t i = 0; i < w->nprocs; i++) {
        struct proc_stat now;
        if (runs(w->procs[i].pid, &now) &&
            now.start_ticks == w->procs[i].start_ticks)
            w->procs[kept++] = now;
    }
    w->nprocs = kept;
    if (w->by_pid && w->nprocs > 0 && w->logdir == NULL) find_logdir(w);
    /* the writer may have handed over to another: look before saying it is
     * over */
    if (!w->by_pid && w->nprocs == 0) find_writers(w);
    w->ended = w->seen && w->nprocs == 0;
    w->seen |= w->nprocs > 0;
}

int watch_target_open(struct watch_target *w, const char *arg,
                      struct ops_err *e) {
    struct stat st;
    char *end;
    *w = (struct watch_target){0};
    if (stat(arg, &st) == 0) {
        w->logdir = strdup(arg);
        if (w->logdir == NULL) return fail_oom(e);
        find_writers(w);
        w->seen = w->nprocs > 0;
        return 0;
    }
    int err = errno;
    errno = 0;
    long long pid = strtoll(arg, &end, 10);
    if (*arg == '\0' || *end != '\0' || pid <= 0 || pid > INT32_MAX ||
        errno != 0) {
        fail(e, OPS_EIO, "cannot open: %s", strerror(err));
        return fail_in(e, arg);
    }
    w->by_pid = true;
    w->pid = (int32_t)pid;
    if (!runs(w->pid, &w->procs[0]))
        return fail(e, OPS_EIO,
                    "%s: there is no such folder and no process of "
                    "that number",
                    arg);
    w->nprocs = 1;
    w->seen = true;
    find_logdir(w);
    return 0;
}
