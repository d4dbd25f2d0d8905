/* SPDX-License-Identifier: Apache-2.0
 * A program and all its descendants, seen from outside: which processes and
 * threads there were, from when to when, and what they used.
 *
 * It is sampled from /proc: what lives between two looks is not seen. What is
 * exact in spite of that: the figures of a process whose death is seen (dead,
 * not reaped yet: the kernel still has them), and the sums over all that were
 * waited for, which the kernel keeps for the parent.
 *
 * Memory is bounded: so many processes and threads, the rest is counted; so
 * many samples of each, then every second one goes. */
#ifndef CAPTURE_TREE_H
#define CAPTURE_TREE_H

#include "base/clock.h"
#include "base/map.h"
#include "capture/proc.h"
#include <sys/resource.h>

enum {
    TREE_PROCS_MAX = 16384,
    TREE_THREADS_MAX = 65536,
    TREE_SAMPLES_MAX = 4096,
    TREE_COMMAND_MAX = 400, /* bytes of a command line that are kept */
};

/* Times are CLOCK_MONOTONIC, ns. Any figure may be UNKNOWN. */
struct seen_thread {
    int32_t tid;
    bool alive, main;
    uint32_t looks; /* how often it was seen */
    uint32_t look;  /* number of the last look that saw it */
    char name[PROC_NAME];
    int64_t t0, t1;      /* began; was seen last, or ended */
    int64_t start_ticks; /* with the tid: which thread it is */
    int64_t user_ticks, sys_ticks, minor_faults, major_faults;
    int64_t run_ns, wait_ns, turns; /* on a CPU, waiting for one, times on */
};

/* One look at a process, or at all of them. */
struct tree_sample {
    int64_t at, cpu_ns, rss;
    int64_t off; /* the CPU time was read at `at`, or up to so many ns away */
    int64_t faults, read_bytes, write_bytes; /* so far */
    int32_t procs, threads;
};

struct tree_samples {
    struct tree_sample *v;
    size_t n, cap;
    int64_t gap; /* ns between those that are kept, once some were dropped */
};

struct seen_proc {
    int32_t pid, ppid;
    bool alive;          /* as far as we know */
    bool exact;          /* the figures are those at its end */
    bool reaped;         /* by us: status and usage are set */
    int status;          /* as wait() gives it */
    struct rusage usage; /* its own and its waited-for children's */
    char name[PROC_NAME];
    char *command; /* or NULL */
    int64_t t0, t1, start_ticks;
    int64_t cpu_ns, user_ticks, sys_ticks;
    int64_t read_from, read_to; /* cpu_ns was read between these */
    int64_t child_ticks;        /* CPU of children it waited for */
    int64_t minor_faults, major_faults, child_faults;
    int64_t rss, peak_rss, read_bytes, write_bytes;
    int32_t most_threads;
    uint32_t looks, look;
    struct seen_thread *threads;
    size_t nthreads, cap_threads;
    struct tree_samples samples;
};

struct tree {
    int32_t self;    /* our own pid: orphans come back to it */
    uint64_t launch; /* a number that stands in the rings of the program's
                              processes; 0: none does */
    struct seen_proc *procs;
    size_t nprocs, cap_procs, threads;
    struct map by_pid; /* pid -> the latest process that had it */
    int32_t *listed;   /* the pids at the last scan, sorted */
    size_t nlisted;
    int32_t *older; /* the pids before the program began, sorted */
    size_t nolder;
    int32_t last_pid;  /* given out before the last scan */
    int64_t scanned;   /* when the last scan was */
    int64_t next_scan; /* not before: a scan costs what the machine runs */
    uint32_t look;
    struct tree_samples total;
    int64_t start, last;     /* first and last look */
    int64_t spent_ns;        /* our CPU time in looks */
    uint64_t young;          /* first looks at processes and threads */
    int64_t young_ns;        /* of spent_ns: what these took, once for each */
    uint64_t untold_procs;   /* over the limit, or no memory */
    uint64_t untold_threads; /* the same, at least: so many at one look */
    uint64_t untold_now;     /* threads, at this look */
};

/* Is called before the program starts: processes that are there already are not
 * its own, not even our own children (a shell that became us may have had
 * some). tree is zeroed. */
void tree_prepare(struct tree *tree, int32_t self);
/* Watches the descendants of self; child is the first of them, started at
 * t0. */
void tree_begin(struct tree *tree, int32_t child, int64_t t0);
void tree_free(struct tree *tree);

/* Looks once at everything. Returns when the next look should come: the looks
 * take at most 0.75 % of a CPU, 5 ms to begin with, and what the first looks at
 * a new process or thread take: some 0.1 ms, less than making it took. */
int64_t tree_look(struct tree *tree, int64_t now);

/* Takes the last figures of a process that is dead and not reaped. */
void tree_last_look(struct tree *tree, int32_t pid, int64_t now);
/* Notes that we reaped the process. */
void tree_reaped(struct tree *tree, int32_t pid, int status,
                 const struct rusage *usage, int64_t now);

/* Returns the latest process with that pid, or NULL; good until the next
 * look. */
struct seen_proc *tree_find(struct tree *tree, int32_t pid);

/* Keeps a sample of all processes together. */
void tree_sample_total(struct tree *tree, int64_t now);

/* Returns the time of CLOCK_MONOTONIC, ns. */
static inline int64_t mono_now(void) { return clock_ns(CLOCK_MONOTONIC); }

#endif
