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
#include "capture/launch.h"

#include "base/array.h"
#include "base/facts.h"
#include "base/io/sink.h"
#include "base/xspace.h"
#include "capture/tree.h"
#include "model/strs.h"
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

/* The profile while it is put together: every message is finished before the
 * one around it, whose head needs its length. */
struct profile {
    struct sink lines, facts; /* of the plane */
    struct sink line;         /* the events of the line that is open */
    struct sink event;        /* the stats of the next event */
    struct strs stats;        /* names of stats */
    struct strs events;       /* names of events */
    struct strs texts;        /* what is to be valid UTF-8 */
    const struct tree *tree;
    const struct launch_end *end;
    int64_t ns_per_tick;
    int64_t cpus; /* of this machine; 0 or less: not known */
};

/* --- a plane of an XSpace ------------------------------------------------ */

static void put_raw(struct sink *s, const uint8_t *from, const uint8_t *end) {
    sink_write(s, from, (size_t)(end - from));
}

/* Writes a field of bytes. */
static void put_bytes(struct sink *s, uint32_t field, const void *b, size_t n) {
    uint8_t head[PBW_FIELD_ROOM];
    put_raw(s, head, pbw_len(head, field, n));
    sink_write(s, b, n);
}

static void put_uint(struct sink *s, uint32_t field, uint64_t v) {
    uint8_t b[PBW_FIELD_ROOM];
    put_raw(s, b, pbw_uint(b, field, v));
}

/* Returns the number of a name in a table; the format never uses 0. When memory
 * runs out, the sink says so. */
static uint64_t number_of(struct strs *s, const char *text, struct sink *out) {
    str_id id = strs_intern(s, bytes_of(text));
    if (id == STR_NONE) out->broken = ENOMEM;
    return id;
}

/* Returns a name as UTF-8, which a process's own name need not be: interning
 * mends it. */
static struct bytes valid(struct profile *p, const char *text) {
    return strs_bytes(&p->texts, strs_intern(&p->texts, bytes_of(text)));
}

static void put_text(struct profile *p, struct sink *s, uint32_t field,
                     const char *key, const char *text) {
    struct bytes b = valid(p, text);
    uint8_t head[XSPACE_STAT_ROOM];
    uint64_t id = number_of(&p->stats, key, s);
    put_raw(s, head, xspace_stat_text(head, field, id, b.n));
    sink_write(s, b.p, b.n);
}

static void put_int(struct profile *p, struct sink *s, uint32_t field,
                    const char *key, int64_t v) {
    uint8_t b[XSPACE_STAT_ROOM];
    put_raw(s, b, xspace_stat_int(b, field, number_of(&p->stats, key, s), v));
}

static void fact_int(struct profile *p, const char *key, int64_t v) {
    put_int(p, &p->facts, XPLANE_STATS, key, v);
}

static void fact_text(struct profile *p, const char *key, const char *text) {
    put_text(p, &p->facts, XPLANE_STATS, key, text);
}

/* Add stats to the event that comes next. */
static void stat_int(struct profile *p, const char *key, int64_t v) {
    put_int(p, &p->event, XEVENT_STATS, key, v);
}

/* Ends an event of the open line; times in ps from the line's begin. */
static void end_event(struct profile *p, const char *name, int64_t offset_ps,
                      int64_t dur_ps) {
    uint8_t b[3 * PBW_FIELD_ROOM], head[PBW_FIELD_ROOM], *at = b;
    uint64_t id = number_of(&p->events, *name ? name : "?", &p->line);
    at = pbw_uint(at, XEVENT_METADATA_ID, id);
    at = pbw_int(at, XEVENT_OFFSET_PS, offset_ps);
    if (dur_ps > 0) at = pbw_int(at, XEVENT_DURATION_PS, dur_ps);
    put_raw(&p->line, head,
            pbw_len(head, XLINE_EVENTS, (size_t)(at - b) + p->event.n));
    put_raw(&p->line, b, at);
    sink_write(&p->line, p->event.buf, p->event.n);
    if (p->event.broken) p->line.broken = p->event.broken;
    p->event.n = 0;
}

/* Ends the open line, which began at ns (from the profile's start). */
static void end_line(struct profile *p, int64_t id, const char *name,
                     int64_t ns) {
    struct sink s;
    struct bytes b = valid(p, name);
    sink_memory(&s);
    put_uint(&s, XLINE_ID, (uint64_t)id);
    put_bytes(&s, XLINE_NAME, b.p, b.n);
    put_uint(&s, XLINE_TIMESTAMP_NS, (uint64_t)ns);
    sink_write(&s, p->line.buf, p->line.n);
    put_bytes(&p->lines, XPLANE_LINES, s.buf, s.n);
    if (s.broken) p->lines.broken = s.broken;
    if (p->line.broken) p->lines.broken = p->line.broken;
    p->line.n = 0;
    sink_free(&s);
}

/* Writes the names of a table; no name has the number 0. */
static void put_names(struct sink *s, uint32_t field,
                      const struct strs *names) {
    for (size_t i = 1; i < names->n; i++) {
        uint8_t head[XSPACE_META_ROOM];
        struct bytes name = strs_bytes(names, (str_id)i);
        put_raw(s, head, xspace_meta_head(head, field, i, name.n, 0));
        sink_write(s, name.p, name.n);
    }
}

/* Writes the plane as a field of an XSpace. Fails only when memory ran out. */
static int put_plane(struct profile *p, struct sink *to, struct ops_err *e) {
    struct sink s;
    sink_memory(&s);
    put_uint(&s, XPLANE_ID, 1);
    put_bytes(&s, XPLANE_NAME, XSPACE_HOST_PLANE, sizeof XSPACE_HOST_PLANE - 1);
    sink_write(&s, p->lines.buf, p->lines.n);
    put_names(&s, XPLANE_EVENT_METADATA, &p->events);
    put_names(&s, XPLANE_STAT_METADATA, &p->stats);
    sink_write(&s, p->facts.buf, p->facts.n);
    put_bytes(to, XSPACE_PLANES, s.buf, s.n);
    bool broken = s.broken || p->lines.broken || p->facts.broken ||
                  p->event.broken;
    sink_free(&s);
    return broken ? fail_oom(e) : 0;
}

/* --- what was seen ------------------------------------------------------- */

/* Adds a stat, unless it is not known. */
static void stat_known(struct profile *p, const char *key, int64_t v) {
    if (v >= 0) stat_int(p, key, v);
}

/* Returns a time as it stands in the file, from the program's start: Unix times
 * in picoseconds, in which XProf works, do not fit into 64 bits. */
static int64_t since_start(const struct profile *p, int64_t mono) {
    return mono > p->end->t0 ? mono - p->end->t0 : 0;
}

static int64_t usage_us(const struct timeval *t) {
    return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

static void put_process(struct profile *p, const struct seen_proc *q) {
    /* how often the seen threads ran, and how long they waited to run */
    int64_t turns = UNKNOWN, wait_ns = UNKNOWN;
    for (size_t i = 0; i < q->nthreads; i++) {
        if (q->threads[i].turns < 0) continue;
        turns = (turns < 0 ? 0 : turns) + q->threads[i].turns;
        wait_ns = (wait_ns < 0 ? 0 : wait_ns) + q->threads[i].wait_ns;
    }
    stat_int(p, FACT_PID, q->pid);
    stat_int(p, FACT_PPID, q->ppid);
    if (q->command != NULL)
        put_text(p, &p->event, XEVENT_STATS, FACT_ARGV, q->command);
    stat_known(p, FACT_CPU_NS, q->cpu_ns);
    stat_known(p, FACT_USER_NS, q->user_ticks * p->ns_per_tick);
    stat_known(p, FACT_SYS_NS, q->sys_ticks * p->ns_per_tick);
    stat_known(p, FACT_CPU_WAIT_NS, wait_ns);
    stat_known(p, FACT_SWITCHES, turns);
    /* This is the peak, where the kernel tells it for this process alone: of a
     * process that had children it does not. */
    int64_t peak = q->peak_rss;
    if (q->reaped && q->child_ticks == 0 && q->child_faults == 0 &&
        q->usage.ru_maxrss * INT64_C(1024) > peak)
        peak = q->usage.ru_maxrss * INT64_C(1024);
    stat_known(p, FACT_PEAK_RSS_BYTES, peak);
    stat_known(p, FACT_PAGE_FAULTS, q->minor_faults + q->major_faults);
    stat_known(p, FACT_MAJOR_FAULTS, q->major_faults);
    stat_known(p, FACT_DISK_READ_BYTES, q->read_bytes);
    stat_known(p, FACT_DISK_WRITE_BYTES, q->write_bytes);
    stat_known(p, FACT_THREADS,
               q->nthreads > 0 ? (int64_t)q->nthreads : UNKNOWN);
    stat_known(p, "looks", q->looks);
    stat_int(p, FACT_EXACT, q->exact);
    if (q->alive) stat_int(p, FACT_UNFINISHED, 1);
    if (q->reaped) {
        if (WIFSIGNALED(q->status))
            stat_int(p, FACT_SIGNAL, WTERMSIG(q->status));
        else stat_int(p, FACT_EXIT_STATUS, WEXITSTATUS(q->status));
        /* these are its own and its children's; exact, to the microsecond */
        stat_int(p, "tree_user_ns", usage_us(&q->usage.ru_utime) * 1000);
        stat_int(p, "tree_sys_ns", usage_us(&q->usage.ru_stime) * 1000);
        stat_int(p, "tree_switches", q->usage.ru_nvcsw + q->usage.ru_nivcsw);
        stat_int(p, "tree_peak_rss_bytes", q->usage.ru_maxrss * INT64_C(1024));
    }
    end_event(p, q->name, 0, (q->t1 - q->t0) * PS);
}

static void put_thread(struct profile *p, const struct seen_proc *q,
                       const struct seen_thread *t, int64_t line) {
    stat_int(p, FACT_PID, q->pid);
    stat_int(p, "tid", t->tid);
    int64_t ticks = t->user_ticks + t->sys_ticks;
    stat_known(p, FACT_CPU_NS,
               t->run_ns >= 0 ? t->run_ns : ticks * p->ns_per_tick);
    stat_known(p, FACT_USER_NS, t->user_ticks * p->ns_per_tick);
    stat_known(p, FACT_SYS_NS, t->sys_ticks * p->ns_per_tick);
    stat_known(p, FACT_CPU_WAIT_NS, t->wait_ns);
    stat_known(p, FACT_SWITCHES, t->turns);
    stat_known(p, FACT_PAGE_FAULTS, t->minor_faults + t->major_faults);
    stat_known(p, FACT_MAJOR_FAULTS, t->major_faults);
    if (t->alive && q->alive) stat_int(p, FACT_UNFINISHED, 1);
    end_event(p, t->name, (t->t0 - line) * PS, (t->t1 - t->t0) * PS);
}

/* Writes a line, "train/4711". */
static void put_line(struct profile *p, const char *name, int32_t id,
                     int64_t t0) {
    char text[PROC_NAME + 16];
    snprintf(text, sizeof text, "%s/%d", name, id);
    end_line(p, id, text, since_start(p, t0));
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

/* Writes one sample of a counter. */
static void put_sample(struct profile *p, const char *name, const char *of,
                       int64_t at, double value) {
    char text[64 + PROC_NAME];
    snprintf(text, sizeof text, "%s%s", name, of);
    uint8_t b[XSPACE_STAT_ROOM];
    uint64_t id = number_of(&p->stats, FACT_COUNTER_VALUE, &p->event);
    put_raw(&p->event, b, xspace_stat_num(b, XEVENT_STATS, id, value));
    end_event(p, text, since_start(p, at) * PS, 0);
}

/* Returns the first sample behind i to which a rate can be told: the time
 * between them is long beside what is not known of their instants (we may have
 * been taken off the CPU in between). s->n if there is none. */
static size_t rate_end(const struct tree_samples *s, size_t i) {
    enum { LONG = 20 };
    const struct tree_sample *v = &s->v[i];
    for (size_t k = i + 1; k < s->n; k++) {
        int64_t ns = s->v[k].at - v->at;
        if (ns > 0 && ns / LONG >= v->off + s->v[k].off) return k;
    }
    return s->n;
}

/* Readers hold a sample's value until the next sample. So a sample of a rate
 * has the rate from this look to the next of which one can be told; the last
 * has it to the end. */
static void put_rates(struct profile *p, const struct tree_samples *s,
                      const char *of) {
    if (s->n == 0) return;
    size_t end = rate_end(s, 0);
    for (size_t i = 0; end < s->n;) {
        const struct tree_sample *v = &s->v[i], *next = &s->v[end];
        size_t then = rate_end(s, end);
        if (then == s->n) next = &s->v[s->n - 1];
        double cores = (double)(next->cpu_ns - v->cpu_ns) /
                       (double)(next->at - v->at);
        /* that little more, too, is what is not known of the instants */
        if (p->cpus > 0 && cores > (double)p->cpus) cores = (double)p->cpus;
        if (v->cpu_ns >= 0) put_sample(p, "cpu_cores", of, v->at, cores);
        i = end;
        end = then;
    }
}

static void put_counters(struct profile *p, const struct tree_samples *s,
                         const char *of) {
    put_rates(p, s, of);
    for (size_t i = 0; i < s->n; i++) {
        const struct tree_sample *v = &s->v[i];
        put_sample(p, "rss_bytes", of, v->at, (double)v->rss);
        if (*of != '\0') continue;
        put_sample(p, "processes", of, v->at, v->procs);
        put_sample(p, FACT_THREADS, of, v->at, v->threads);
        put_sample(p, FACT_PAGE_FAULTS, of, v->at, (double)v->faults);
        put_sample(p, FACT_DISK_READ_BYTES, of, v->at, (double)v->read_bytes);
        put_sample(p, FACT_DISK_WRITE_BYTES, of, v->at, (double)v->write_bytes);
    }
}

static int by_cpu(const void *a, const void *b) {
    const struct seen_proc *x = *(struct seen_proc *const *)a;
    const struct seen_proc *y = *(struct seen_proc *const *)b;
    if (x->cpu_ns != y->cpu_ns) return x->cpu_ns > y->cpu_ns ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Writes counters of the whole, and of the processes with the most CPU time. */
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
        fact_int(p, "counters_left_out", (int64_t)(t->nprocs - COUNTED_PROCS));
    free(v);
    end_line(p, INT64_MAX, XSPACE_COUNTERS_LINE, 0);
    return true;
}

/* Returns the command line, its words apart. */
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

static void put_facts(struct profile *p, const struct run_spec *l,
                      const char *host) {
    const struct tree *t = p->tree;
    char *argv = words(l->argv);
    fact_text(p, FACT_VIEW, "processes");
    fact_text(p, "opscope_record", OPS_VERSION);
    fact_text(p, FACT_HOST_NAME, host);
    if (argv != NULL) fact_text(p, FACT_ARGV, argv);
    free(argv);
    if (t->nprocs > 0) fact_int(p, FACT_PROCESS_ID, t->procs[0].pid);
    fact_int(p, FACT_START_UNIX_NS, p->end->unix_ns);
    fact_int(p, FACT_RUN_NS, p->end->t1 - p->end->t0);
    fact_int(p, FACT_CPUS, p->cpus);
    /* This is the CPU time of all, from what the kernel keeps: the processes
     * that we reaped with all that they waited for, and what the others had
     * used when seen last. Microseconds. */
    int64_t unseen = 0;
    for (size_t i = 0; i < t->nprocs; i++) {
        const struct seen_proc *q = &t->procs[i];
        if (q->reaped)
            unseen += usage_us(&q->usage.ru_utime) +
                      usage_us(&q->usage.ru_stime);
        else if (q->alive && q->cpu_ns > 0) unseen += q->cpu_ns / 1000;
    }
    fact_int(p, FACT_CPU_US, unseen);
    for (size_t i = 0; i < t->nprocs; i++)
        if (t->procs[i].cpu_ns > 0) unseen -= t->procs[i].cpu_ns / 1000;
    fact_int(p, FACT_UNSEEN_CPU_US, unseen > 0 ? unseen : 0);
    fact_int(p, "looks", t->look);
    fact_int(p, "looking_cpu_ns", t->spent_ns);
    if (t->untold_procs + t->untold_threads > 0)
        fact_int(p, FACT_DROPPED,
                 (int64_t)(t->untold_procs + t->untold_threads));
}

static int encode(struct profile *p, const struct run_spec *l, const char *host,
                  struct sink *to, struct ops_err *e) {
    struct sink *sinks[] = {&p->lines, &p->facts, &p->line, &p->event};
    struct strs *tables[] = {&p->stats, &p->events, &p->texts};
    int rc = 0;
    for (size_t i = 0; i < COUNT(sinks); i++) sink_memory(sinks[i]);
    for (size_t i = 0; i < COUNT(tables); i++)
        if (!strs_init(tables[i]) && rc == 0) rc = fail_oom(e);
    if (rc == 0) {
        for (size_t i = 0; i < p->tree->nprocs; i++)
            put_lines(p, &p->tree->procs[i]);
        put_facts(p, l, host);
        if (!put_all_counters(p)) rc = fail_oom(e);
    }
    if (rc == 0) rc = put_plane(p, to, e);
    for (size_t i = 0; i < COUNT(sinks); i++) sink_free(sinks[i]);
    for (size_t i = 0; i < COUNT(tables); i++) strs_free(tables[i]);
    int64_t last = p->tree->last > p->end->t1 ? p->tree->last : p->end->t1;
    uint64_t start = (uint64_t)p->end->unix_ns;
    uint8_t b[256];
    put_raw(to, b,
            xspace_environment(b, start,
                               start + (uint64_t)since_start(p, last)));
    return rc;
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
        int why = errno, rc = 0;
        /* a file system without links: nobody else has this name yet */
        if (why != EEXIST && access(*path, F_OK) != 0 &&
            rename(tmp, *path) == 0)
            return 0;
        if (why != EEXIST) {
            fail(e, OPS_EIO, "cannot be written: %s", strerror(why));
            rc = fail_in(e, *path);
        }
        free(*path);
        *path = NULL;
        if (rc != 0) return rc;
    }
    fail(e, OPS_ELIMIT, "too many profiles of %s", host);
    return fail_in(e, dir);
}

/* Writes bytes to disk, under a hidden name until they are whole. */
static int write_file(struct sink *s, const char *dir, const char *host,
                      char **path, struct ops_err *e) {
    char *tmp;
    if (asprintf(&tmp, "%s/.record.XXXXXX", dir) < 0) return fail_oom(e);
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        fail(e, OPS_EIO, "cannot be written: %s", strerror(errno));
        int rc = fail_in(e, dir);
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
    if (rc != 0) fail_in(e, dir);
    else rc = name_file(tmp, dir, host, path, e);
    unlink(tmp);
    free(tmp);
    return rc;
}

int profile_write(const struct tree *tree, const struct run_spec *l,
                  const struct launch_end *end, const struct rundir *dir,
                  char **path, struct ops_err *e) {
    struct profile p = {.tree = tree,
                        .end = end,
                        .ns_per_tick = 1000000000 / sysconf(_SC_CLK_TCK),
                        .cpus = sysconf(_SC_NPROCESSORS_ONLN)};
    char host[128];
    struct sink s;
    *path = NULL;
    if (l->host != NULL && *l->host != '\0')
        snprintf(host, sizeof host, "%s", l->host);
    else if (gethostname(host, sizeof host) != 0)
        snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    text_file_name(host); /* it is part of a file's name */
    if (host[0] == '.' || host[0] == '\0') host[0] = '_';
    sink_memory(&s);
    int rc = encode(&p, l, host, &s, e);
    if (rc == 0 && s.broken) rc = fail_oom(e);
    if (rc == 0) rc = write_file(&s, dir->path, host, path, e);
    sink_free(&s);
    return rc;
}
