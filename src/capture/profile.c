/* SPDX-License-Identifier: Apache-2.0
 * The watched tree as an XSpace. One "/host:CPU" plane, which XProf shows as
 * one host with a line per process and thread:
 *
 *     line pid    "train/4711": the process, its figures as stats; inside it,
 *                 where there were other threads, the main thread
 *     line tid    "loader/4715": a thread
 *     _counters_  of all processes together, and of the busiest one by one
 *
 * The plane's fact opscope_view = "processes" tells readers that these spans
 * are lifetimes and not work: they make no steps and no ops. */
#include "capture/profile.h"

#include "capture/tree.h"
#include "capture/xplane.h"
#include "ring/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COUNTED_PROCS = 32, /* processes with counters of their own */
    PS = 1000,          /* per ns */
    SAME_HOST = 10000,  /* profiles of one host in one run */
};

struct profile {
    struct xplane_out x;
    const struct tree *tree;
    const struct launch_end *end;
    int64_t ns_per_tick;
};

/* A stat that is left out where it is not known. */
static void stat_known(struct profile *p, const char *key, int64_t v) {
    if (v >= 0) xplane_stat_int(&p->x, key, v);
}

/* Times in the file count from the program's start: Unix times in picoseconds,
 * in which XProf works, do not fit into 64 bits. */
static int64_t since_start(const struct profile *p, int64_t mono) {
    return mono > p->end->t0 ? mono - p->end->t0 : 0;
}

/* Times on CPUs of the threads that were seen; UNKNOWN: none told. */
static int64_t turns_of(const struct seen_proc *q, int64_t *wait_ns) {
    int64_t turns = UNKNOWN;
    *wait_ns = UNKNOWN;
    for (size_t i = 0; i < q->nthreads; i++) {
        if (q->threads[i].turns < 0) continue;
        turns = (turns < 0 ? 0 : turns) + q->threads[i].turns;
        *wait_ns = (*wait_ns < 0 ? 0 : *wait_ns) + q->threads[i].wait_ns;
    }
    return turns;
}

static int64_t usage_us(const struct timeval *t) {
    return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

/* The peak, where the kernel tells it for this process alone: it is not to be
 * had of one that had children. */
static int64_t peak_of(const struct seen_proc *q) {
    int64_t peak = q->peak_rss;
    if (q->reaped && q->child_ticks == 0 && q->child_faults == 0 &&
        q->usage.ru_maxrss * INT64_C(1024) > peak)
        peak = q->usage.ru_maxrss * INT64_C(1024);
    return peak;
}

/* How it ended, where we know. */
static void put_ending(struct profile *p, const struct seen_proc *q) {
    if (q->alive) xplane_stat_int(&p->x, "unfinished", 1);
    if (!q->reaped) return;
    if (WIFSIGNALED(q->status))
        xplane_stat_int(&p->x, "signal", WTERMSIG(q->status));
    else xplane_stat_int(&p->x, "exit_status", WEXITSTATUS(q->status));
    /* its own and its children's; exact, to the microsecond */
    xplane_stat_int(&p->x, "tree_user_ns", usage_us(&q->usage.ru_utime) * 1000);
    xplane_stat_int(&p->x, "tree_sys_ns", usage_us(&q->usage.ru_stime) * 1000);
    xplane_stat_int(&p->x, "tree_switches",
                    q->usage.ru_nvcsw + q->usage.ru_nivcsw);
    xplane_stat_int(&p->x, "tree_peak_rss_bytes",
                    q->usage.ru_maxrss * INT64_C(1024));
}

static void put_process(struct profile *p, const struct seen_proc *q) {
    int64_t wait_ns, turns = turns_of(q, &wait_ns);
    xplane_stat_int(&p->x, "pid", q->pid);
    xplane_stat_int(&p->x, "ppid", q->ppid);
    if (q->command != NULL) xplane_stat_text(&p->x, "argv", q->command);
    stat_known(p, "cpu_ns", q->cpu_ns);
    stat_known(p, "user_ns", q->user_ticks * p->ns_per_tick);
    stat_known(p, "sys_ns", q->sys_ticks * p->ns_per_tick);
    stat_known(p, "cpu_wait_ns", wait_ns);
    stat_known(p, "switches", turns);
    stat_known(p, "peak_rss_bytes", peak_of(q));
    stat_known(p, "page_faults", q->minor_faults + q->major_faults);
    stat_known(p, "major_faults", q->major_faults);
    stat_known(p, "disk_read_bytes", q->read_bytes);
    stat_known(p, "disk_write_bytes", q->write_bytes);
    stat_known(p, "threads", q->nthreads > 0 ? (int64_t)q->nthreads : UNKNOWN);
    stat_known(p, "looks", q->looks);
    xplane_stat_int(&p->x, "exact", q->exact);
    put_ending(p, q);
    xplane_event(&p->x, q->name, 0, (q->t1 - q->t0) * PS);
}

static void put_thread(struct profile *p, const struct seen_proc *q,
                       const struct seen_thread *t, int64_t line) {
    xplane_stat_int(&p->x, "pid", q->pid);
    xplane_stat_int(&p->x, "tid", t->tid);
    int64_t ticks = t->user_ticks + t->sys_ticks;
    stat_known(p, "cpu_ns",
               t->run_ns >= 0 ? t->run_ns : ticks * p->ns_per_tick);
    stat_known(p, "user_ns", t->user_ticks * p->ns_per_tick);
    stat_known(p, "sys_ns", t->sys_ticks * p->ns_per_tick);
    stat_known(p, "cpu_wait_ns", t->wait_ns);
    stat_known(p, "switches", t->turns);
    stat_known(p, "page_faults", t->minor_faults + t->major_faults);
    stat_known(p, "major_faults", t->major_faults);
    if (t->alive && q->alive) xplane_stat_int(&p->x, "unfinished", 1);
    xplane_event(&p->x, t->name, (t->t0 - line) * PS, (t->t1 - t->t0) * PS);
}

/* "train/4711". */
static void put_line(struct profile *p, const char *name, int32_t id,
                     int64_t t0) {
    char text[PROC_NAME + 16];
    snprintf(text, sizeof text, "%s/%d", name, id);
    xplane_line(&p->x, id, text, since_start(p, t0));
}

static void put_lines(struct profile *p, const struct seen_proc *q) {
    put_process(p, q);
    for (size_t i = 0; q->nthreads > 1 && i < q->nthreads; i++)
        if (q->threads[i].main) put_thread(p, q, &q->threads[i], q->t0);
    put_line(p, q->name, q->pid, q->t0);
    for (size_t i = 0; i < q->nthreads; i++) {
        const struct seen_thread *t = &q->threads[i];
        if (t->main) continue;
        put_thread(p, q, t, t->t0);
        put_line(p, t->name[0] ? t->name : q->name, t->tid, t->t0);
    }
}

/* One sample of a counter. */
static void put_sample(struct profile *p, const char *name, const char *of,
                       int64_t at, double value) {
    char text[64 + PROC_NAME];
    snprintf(text, sizeof text, "%s%s", name, of);
    xplane_stat_num(&p->x, "counter_value", value);
    xplane_event(&p->x, text, since_start(p, at) * PS, 0);
}

/* A sample holds until the next: the rate up to the next stands here. */
static void put_counters(struct profile *p, const struct tree_samples *s,
                         const char *of) {
    for (size_t i = 0; i < s->n; i++) {
        const struct tree_sample *v = &s->v[i], *next = v + 1;
        put_sample(p, "rss_bytes", of, v->at, (double)v->rss);
        if (i + 1 < s->n && next->at > v->at && v->cpu_ns >= 0)
            put_sample(p, "cpu_cores", of, v->at,
                       (double)(next->cpu_ns - v->cpu_ns) /
                           (double)(next->at - v->at));
        if (*of != '\0') continue;
        put_sample(p, "processes", of, v->at, v->procs);
        put_sample(p, "threads", of, v->at, v->threads);
        put_sample(p, "page_faults", of, v->at, (double)v->faults);
        put_sample(p, "disk_read_bytes", of, v->at, (double)v->read_bytes);
        put_sample(p, "disk_write_bytes", of, v->at, (double)v->write_bytes);
    }
}

static int by_cpu(const void *a, const void *b) {
    const struct seen_proc *x = *(struct seen_proc *const *)a;
    const struct seen_proc *y = *(struct seen_proc *const *)b;
    if (x->cpu_ns != y->cpu_ns) return x->cpu_ns > y->cpu_ns ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Of the whole, and of the processes with the most CPU time. */
static bool put_all_counters(struct profile *p) {
    const struct tree *t = p->tree;
    const struct seen_proc **v = malloc((t->nprocs + 1) * sizeof *v);
    if (v == NULL) return false;
    for (size_t i = 0; i < t->nprocs; i++) v[i] = &t->procs[i];
    if (t->nprocs > 1) qsort(v, t->nprocs, sizeof *v, by_cpu);
    put_counters(p, &t->total, "");
    for (size_t i = 0; i < t->nprocs && i < COUNTED_PROCS; i++) {
        char of[PROC_NAME + 16];
        snprintf(of, sizeof of, " %s/%d", v[i]->name, v[i]->pid);
        if (t->nprocs > 1) put_counters(p, &v[i]->samples, of);
    }
    if (t->nprocs > COUNTED_PROCS)
        xplane_fact_int(&p->x, "counters_left_out",
                        (int64_t)(t->nprocs - COUNTED_PROCS));
    free(v);
    xplane_line(&p->x, INT64_MAX, "_counters_", 0);
    return true;
}

/* CPU time of everybody, from what the kernel keeps: those that we reaped with
 * all that they waited for, and what the others had used when seen last.
 * Microseconds. */
static int64_t whole_cpu_us(const struct tree *t) {
    int64_t sum = 0;
    for (size_t i = 0; i < t->nprocs; i++) {
        const struct seen_proc *q = &t->procs[i];
        if (q->reaped)
            sum += usage_us(&q->usage.ru_utime) + usage_us(&q->usage.ru_stime);
        else if (q->alive && q->cpu_ns > 0) sum += q->cpu_ns / 1000;
    }
    return sum;
}

static int64_t seen_cpu_us(const struct tree *t) {
    int64_t sum = 0;
    for (size_t i = 0; i < t->nprocs; i++)
        if (t->procs[i].cpu_ns > 0) sum += t->procs[i].cpu_ns / 1000;
    return sum;
}

/* The command line, its words apart. */
static char *words(char *const *argv) {
    size_t n = 1;
    for (size_t i = 0; argv[i] != NULL; i++) n += strlen(argv[i]) + 1;
    char *s = malloc(n), *at = s;
    if (s == NULL) return NULL;
    for (size_t i = 0; argv[i] != NULL; i++) {
        size_t k = strlen(argv[i]);
        if (i > 0) *at++ = ' ';
        memcpy(at, argv[i], k);
        at += k;
    }
    *at = '\0';
    return s;
}

static void put_facts(struct profile *p, const struct launch *l,
                      const char *host) {
    const struct tree *t = p->tree;
    struct xplane_out *x = &p->x;
    char *argv = words(l->argv);
    xplane_fact_text(x, "opscope_view", "processes");
    xplane_fact_text(x, "opscope_record", OPS_VERSION);
    xplane_fact_text(x, "host_name", host);
    if (argv != NULL) xplane_fact_text(x, "argv", argv);
    free(argv);
    if (t->nprocs > 0) xplane_fact_int(x, "process_id", t->procs[0].pid);
    xplane_fact_int(x, "start_unix_ns", p->end->unix_ns);
    xplane_fact_int(x, "run_ns", p->end->t1 - p->end->t0);
    xplane_fact_int(x, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    xplane_fact_int(x, "cpu_us", whole_cpu_us(t));
    int64_t unseen = whole_cpu_us(t) - seen_cpu_us(t);
    xplane_fact_int(x, "unseen_cpu_us", unseen > 0 ? unseen : 0);
    xplane_fact_int(x, "looks", t->look);
    xplane_fact_int(x, "looking_cpu_ns", t->spent_ns);
    if (t->untold_procs + t->untold_threads > 0)
        xplane_fact_int(x, "dropped_traces",
                        (int64_t)(t->untold_procs + t->untold_threads));
}

/* When it was taken, where readers of XSpace look for it. */
static int put_times(struct profile *p, struct sink *s, struct ops_err *e) {
    struct xplane_out x;
    int rc = xplane_out_init(&x) ? 0 : fail_oom(e);
    if (rc == 0) {
        xplane_fact_uint(&x, "profile_start_time", (uint64_t)p->end->unix_ns);
        int64_t last = p->tree->last > p->end->t1 ? p->tree->last : p->end->t1;
        xplane_fact_uint(&x, "profile_stop_time",
                         (uint64_t)(p->end->unix_ns + since_start(p, last)));
        rc = xplane_out_write(&x, 2, "Task Environment", s, e);
    }
    xplane_out_free(&x);
    return rc;
}

static int encode(struct profile *p, const struct launch *l, const char *host,
                  struct sink *s, struct ops_err *e) {
    int rc = xplane_out_init(&p->x) ? 0 : fail_oom(e);
    if (rc == 0) {
        for (size_t i = 0; i < p->tree->nprocs; i++)
            put_lines(p, &p->tree->procs[i]);
        put_facts(p, l, host);
        if (!put_all_counters(p)) rc = fail_oom(e);
    }
    if (rc == 0) rc = xplane_out_write(&p->x, 1, "/host:CPU", s, e);
    xplane_out_free(&p->x);
    return rc != 0 ? rc : put_times(p, s, e);
}

/* Gives the finished file the first name that nobody has. */
static int name_file(const char *tmp, const char *dir, const char *host,
                     char **path, struct ops_err *e) {
    for (int i = 1; i < SAME_HOST; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "_%d", i);
        if (asprintf(path, "%s/%s_record%s.xplane.pb", dir, host, number) < 0) {
            *path = NULL;
            return fail_oom(e);
        }
        if (link(tmp, *path) == 0) return 0;
        int why = errno;
        /* a file system without links: nobody else has this name yet */
        if (why != EEXIST && access(*path, F_OK) != 0 &&
            rename(tmp, *path) == 0)
            return 0;
        if (why != EEXIST) {
            int rc = fail(e, OPS_EIO, "%s: cannot be written: %s", *path,
                          strerror(why));
            free(*path);
            *path = NULL;
            return rc;
        }
        free(*path);
        *path = NULL;
    }
    return fail(e, OPS_ELIMIT, "%s: too many profiles of %s", dir, host);
}

/* Bytes to disk, under a hidden name until they are whole. */
static int write_file(struct sink *s, const char *dir, const char *host,
                      char **path, struct ops_err *e) {
    char *tmp;
    if (asprintf(&tmp, "%s/.record.XXXXXX", dir) < 0) return fail_oom(e);
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        int rc = fail(e, OPS_EIO, "%s: cannot be written: %s", dir,
                      strerror(errno));
        free(tmp);
        return rc;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0644 & ~mask);
    struct sink out;
    sink_fd(&out, fd);
    sink_write(&out, s->buf, s->n);
    int rc = sink_flush(&out, e);
    sink_free(&out);
    if (close(fd) != 0 && rc == 0)
        rc = fail(e, OPS_EIO, "cannot write: %s", strerror(errno));
    if (rc != 0) fail_in(e, "%s", dir);
    else rc = name_file(tmp, dir, host, path, e);
    unlink(tmp);
    free(tmp);
    return rc;
}

/* A name that can be part of a file's name. */
static void host_name(const char *given, char *out, size_t cap) {
    if (given != NULL && *given != '\0') snprintf(out, cap, "%s", given);
    else if (gethostname(out, cap) != 0) snprintf(out, cap, "localhost");
    out[cap - 1] = '\0';
    text_file_name(out);
    if (out[0] == '.' || out[0] == '\0') out[0] = '_';
}

int profile_write(const struct tree *tree, const struct launch *l,
                  const struct launch_end *end, const struct rundir *dir,
                  char **path, struct ops_err *e) {
    struct profile p = {.tree = tree,
                        .end = end,
                        .ns_per_tick = 1000000000 / sysconf(_SC_CLK_TCK)};
    char host[128];
    struct sink s;
    *path = NULL;
    host_name(l->host, host, sizeof host);
    sink_memory(&s);
    int rc = encode(&p, l, host, &s, e);
    if (rc == 0 && s.broken) rc = fail_oom(e);
    if (rc == 0) rc = write_file(&s, dir->path, host, path, e);
    sink_free(&s);
    return rc;
}
