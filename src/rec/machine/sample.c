/* SPDX-License-Identifier: Apache-2.0
 * See sample.h. A counter is a level (given as it is) or a total that only
 * grows (given as a rate). A thread's CPU time is read through its clock, a
 * system call with a result in ns: /proc/<pid>/task/<tid>/stat costs ten times
 * as much and counts in ticks of 10 ms.
 *
 * Surprise: ru_maxrss is not used for the peak. It survives exec(), so that a
 * program started by a large one would show that one's peak. */
#include "rec/machine/sample.h"

#include "base/facts.h"
#include "rec/machine/cgroup.h"
#include "ring/procfile.h"
#include "ring/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum counter {
    RSS,
    PEAK,
    MINOR,
    MAJOR,
    VOLUNTARY,
    INVOLUNTARY,
    CPU,
    CPU_SYSTEM,
    THREADS,
    READ_CALLS,
    READ_STORAGE,
    WRITE_CALLS,
    WRITE_STORAGE,
    GROUP_MEMORY,
    GROUP_THROTTLED,
    NOT_SHOWN,
    COUNTERS
};
_Static_assert((int)COUNTERS <= (int)SAMPLE_COUNTERS, "a place for each");

static const char *const names[COUNTERS] = {
    [RSS] = "memory: RSS (bytes)",
    [PEAK] = "memory: peak RSS (bytes)",
    [MINOR] = "page faults: minor (per s)",
    [MAJOR] = "page faults: major (per s)",
    [VOLUNTARY] = "context switches: voluntary (per s)",
    [INVOLUNTARY] = COUNTER_INVOLUNTARY,
    [CPU] = COUNTER_CPU,
    [CPU_SYSTEM] = "CPU: process, in the kernel (% of one core)",
    [THREADS] = COUNTER_THREADS,
    [READ_CALLS] = "I/O: read (bytes/s)",
    [READ_STORAGE] = "I/O: read from storage (bytes/s)",
    [WRITE_CALLS] = "I/O: written (bytes/s)",
    [WRITE_STORAGE] = "I/O: written to storage (bytes/s)",
    [GROUP_MEMORY] = "cgroup: memory (bytes)",
    [GROUP_THROTTLED] = "cgroup: CPU throttled (% of one core)",
    [NOT_SHOWN] = "CPU: threads without a counter (count)",
};

#define SECOND 1000000000.0
static const double BUSY = 0.1; /* %: below, a thread is not worth a counter */
/* Seconds: over less a rate says more of when we were let run than of the
 * program. The last run may come at once after the one before. */
static const double RATE_LEAST = 0.01;

/* One run: where values go, and over how long. */
struct run {
    struct sample *s;
    sample_give *give;
    void *to;
    double seconds; /* since the run before; 0: the first */
};

void sample_open(struct sample *s) {
    struct cgroup g;
    memset(s, 0, sizeof *s);
    cgroup_self(&g);
    s->statm = sys_open("/proc/self/statm", O_RDONLY);
    s->status = sys_open("/proc/self/status", O_RDONLY);
    s->io = sys_open("/proc/self/io", O_RDONLY);
    s->task = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    s->cg_memory = cgroup_open_memory(&g);
    s->cg_cpu = cgroup_open_cpu(&g);
    long page = sysconf(_SC_PAGESIZE);
    s->page = page > 0 ? (uint64_t)page : 4096;
}

void sample_close(struct sample *s) {
    int *fds[] = {&s->statm, &s->status,    &s->io,
                  &s->task,  &s->cg_memory, &s->cg_cpu};
    if (s->page == 0) return; /* never opened: its zeros are no descriptors */
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0) sys_close(*fds[i]);
        *fds[i] = -1;
    }
}

/* Gives a level; a flat line costs one value a second. */
static void level(const struct run *r, enum counter c, double value) {
    struct sample *s = r->s;
    if (!r->give) {
        s->counters[c].at = 0;
        return;
    }
    if (s->counters[c].at != 0 && s->counters[c].value == value &&
        s->now - s->counters[c].at < 1000000000)
        return;
    s->counters[c].value = value;
    s->counters[c].at = s->now;
    r->give(r->to, names[c], value);
}

/* Gives a rate; unit is what one of the total is in the counter's unit. */
static void rate(const struct run *r, enum counter c, uint64_t total,
                 double unit) {
    struct sample *s = r->s;
    uint64_t before = s->counters[c].total;
    bool known = s->counters[c].known;
    s->counters[c].total = total;
    s->counters[c].known = true;
    if (!known || total < before || r->seconds <= 0) return;
    level(r, c, (double)(total - before) * unit / r->seconds);
}

static uint64_t usec(struct timeval t) {
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void run_usage(const struct run *r) {
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return;
    rate(r, MINOR, (uint64_t)u.ru_minflt, 1);
    rate(r, MAJOR, (uint64_t)u.ru_majflt, 1);
    rate(r, VOLUNTARY, (uint64_t)u.ru_nvcsw, 1);
    rate(r, INVOLUNTARY, (uint64_t)u.ru_nivcsw, 1);
    rate(r, CPU, usec(u.ru_utime) + usec(u.ru_stime), 100e-6);
    rate(r, CPU_SYSTEM, usec(u.ru_stime), 100e-6);
}

/* Reads "size resident shared ...", in pages. */
static void run_rss(const struct run *r) {
    char text[128];
    if (procfile_reread(r->s->statm, text, sizeof text) <= 0) return;
    char *p = strchr(text, ' ');
    if (!p) return;
    p++;
    p[strcspn(p, " \n")] = '\0';
    int64_t pages;
    if (procfile_whole(p, &pages)) level(r, RSS, (double)pages * r->s->page);
}

static void run_io(const struct run *r) {
    static const struct {
        enum counter c;
        const char *key;
    } fields[] = {
        {READ_CALLS, "rchar"},
        {READ_STORAGE, "read_bytes"},
        {WRITE_CALLS, "wchar"},
        {WRITE_STORAGE, "write_bytes"},
    };
    char text[512];
    uint64_t n;
    if (procfile_reread(r->s->io, text, sizeof text) <= 0) return;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (procfile_u64(text, fields[i].key, &n)) rate(r, fields[i].c, n, 1);
}

static void run_cgroup(const struct run *r) {
    char text[1024];
    int64_t bytes;
    uint64_t n;
    if (procfile_reread(r->s->cg_memory, text, sizeof text) > 0) {
        text[strcspn(text, "\n")] = '\0';
        if (procfile_whole(text, &bytes)) level(r, GROUP_MEMORY, (double)bytes);
    }
    if (procfile_reread(r->s->cg_cpu, text, sizeof text) <= 0) return;
    if (procfile_u64(text, "throttled_usec", &n)) /* version 2 */
        rate(r, GROUP_THROTTLED, n, 100e-6);
    else if (procfile_u64(text, "throttled_time", &n)) /* version 1, ns */
        rate(r, GROUP_THROTTLED, n, 100e-9);
}

static void run_status(const struct run *r) {
    char text[4096];
    uint64_t n;
    if (procfile_reread(r->s->status, text, sizeof text) <= 0) return;
    if (procfile_u64(text, "VmHWM", &n)) level(r, PEAK, (double)n * 1024);
    if (procfile_u64(text, "Threads", &n)) level(r, THREADS, (double)n);
}

/* --- threads ------------------------------------------------------------- */

/* Returns the entry of tid in a table: its own, or a free one. The table is
 * never full: at most SAMPLE_WATCHED are put in. */
static struct sample_task *task_of(struct sample_task *table, int32_t tid) {
    uint32_t i = (uint32_t)tid * 2654435761u;
    for (;; i++) {
        struct sample_task *t = &table[i % SAMPLE_TASKS];
        if (t->tid == tid || t->tid == 0) return t;
    }
}

static void meet_task(const struct run *r, int32_t tid, double seconds) {
    struct sample *s = r->s;
    struct sample_task *now = task_of(s->tasks[s->turn & 1], tid);
    const struct sample_task *old = task_of(s->tasks[~s->turn & 1], tid);
    struct timespec t;
    /* This is the clock of a thread's CPU time by the kernel's numbers for
     * clocks, which pthread_getcpuclockid() makes too (it wants a pthread_t,
     * and we have none) */
    if (clock_gettime((clockid_t)(~(uint32_t)tid << 3 | 6), &t) != 0) return;
    uint64_t cpu = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    *now = (struct sample_task){.tid = tid, .cpu_ns = cpu};
    if (seconds <= 0) return;
    /* A new thread has used all of its time in this second; so has one that got
     * the number of another. */
    uint64_t before = old->tid == tid && old->cpu_ns <= cpu ? old->cpu_ns : 0;
    now->percent = (float)((double)(cpu - before) / (seconds * SECOND) * 100);
    now->shown = old->tid == tid && old->shown;
}

/* A walk over the folder of threads. */
struct task_walk {
    const struct run *r;
    double seconds;
    uint64_t met;
};

static bool walk_task(void *ctx, const char *name) {
    struct task_walk *w = ctx;
    int64_t tid;
    if (!procfile_whole(name, &tid) || tid <= 0 || tid > INT32_MAX) return true;
    if (w->met++ < SAMPLE_WATCHED) meet_task(w->r, (int32_t)tid, w->seconds);
    else w->r->s->threads_left_out++;
    return true;
}

/* Chooses the busiest threads, in order, and those that fell idle since they
 * were given. Returns how many there are; only SAMPLE_THREADS of them are in
 * top. */
static uint32_t choose(struct sample_task *table, struct sample_task **top) {
    uint32_t n = 0, all = 0;
    for (uint32_t i = 0; i < SAMPLE_TASKS; i++) {
        struct sample_task *t = &table[i];
        if (t->tid == 0 || (t->percent < BUSY && !t->shown)) continue;
        all++;
        uint32_t k = n < SAMPLE_THREADS ? n++ : SAMPLE_THREADS;
        for (; k > 0 && top[k - 1]->percent < t->percent; k--)
            if (k < SAMPLE_THREADS) top[k] = top[k - 1];
        if (k < SAMPLE_THREADS) top[k] = t;
    }
    return all;
}

/* Gives "CPU: thread main/4711 (% of one core)". */
static void give_task(const struct run *r, struct sample_task *t) {
    char path[32], comm[64], name[128];
    snprintf(path, sizeof path, "%d/comm", t->tid);
    if (procfile_read_line(r->s->task, path, comm, sizeof comm) <= 0) return;
    for (char *p = comm; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    snprintf(name, sizeof name, "CPU: thread %s/%d (%% of one core)", comm,
             t->tid);
    t->shown = t->percent >= BUSY;
    r->give(r->to, name, t->percent);
}

static void run_tasks(const struct run *r, double seconds) {
    struct sample *s = r->s;
    struct sample_task *top[SAMPLE_THREADS];
    if (s->task < 0) return;
    s->turn++;
    memset(s->tasks[s->turn & 1], 0, sizeof s->tasks[0]);
    s->threads_left_out = 0;
    sys_list(s->task, walk_task, &(struct task_walk){r, seconds, 0});
    if (!r->give || seconds <= 0) return;
    uint32_t n = choose(s->tasks[s->turn & 1], top);
    uint64_t without = s->threads_left_out;
    if (n > SAMPLE_THREADS) without += n - SAMPLE_THREADS;
    for (uint32_t i = 0; i < n && i < SAMPLE_THREADS; i++) give_task(r, top[i]);
    /* nothing is said in programs where all threads are shown */
    if (without > 0 || s->counters[NOT_SHOWN].at != 0)
        level(r, NOT_SHOWN, (double)without);
}

void sample_run(struct sample *s, uint64_t now_ns, sample_give *give,
                void *to) {
    struct run r = {.s = s, .give = give, .to = to};
    if (s->now != 0 && now_ns <= s->now) return;
    if (s->now != 0) r.seconds = (double)(now_ns - s->rates_at) / SECOND;
    bool soon = s->now != 0 && r.seconds < RATE_LEAST;
    s->now = now_ns;
    run_rss(&r);
    if (soon) return;
    s->rates_at = now_ns;
    run_usage(&r);
    run_io(&r);
    run_cgroup(&r);
    if (s->second_at != 0 && now_ns - s->second_at < 1000000000) return;
    run_status(&r);
    run_tasks(&r, s->second_at ? (double)(now_ns - s->second_at) / SECOND : 0);
    s->second_at = now_ns;
}
