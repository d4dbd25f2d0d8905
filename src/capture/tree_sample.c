/* SPDX-License-Identifier: Apache-2.0
 * The figures of processes and threads at one moment, and the rows of them
 * that are kept. */
#include "capture/tree.h"

#include "base/vec.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RARELY = 16, /* looks between those at what seldom changes */
};

/* Keeps a sample; from the limit on half as many are kept as before. */
static void keep(struct tree_samples *s, const struct tree_sample *x) {
    if (s->n > 0 && x->at - s->v[s->n - 1].at < s->gap) return;
    if (s->n == TREE_SAMPLES_MAX) {
        for (size_t i = 0; i < s->n / 2; i++) s->v[i] = s->v[2 * i];
        s->n /= 2;
        s->gap = 2 * (x->at - s->v[0].at) / TREE_SAMPLES_MAX;
    }
    if (VEC_ROOM(s->v, s->n, s->cap)) s->v[s->n++] = *x;
}

struct thread_look {
    struct tree *tree;
    struct seen_proc *p;
    size_t next; /* where the next thread of the list probably stands */
    int64_t now;
    int64_t after; /* the look before, or the process's begin */
    int32_t alive;
};

static struct seen_thread *find_thread(struct thread_look *l, int32_t tid) {
    struct seen_proc *p = l->p;
    for (size_t k = 0; k < p->nthreads; k++) {
        size_t i = (l->next + k) % p->nthreads;
        if (p->threads[i].tid != tid || !p->threads[i].alive) continue;
        l->next = i + 1;
        return &p->threads[i];
    }
    return NULL;
}

static struct seen_thread *add_thread(struct thread_look *l, int32_t tid) {
    struct seen_proc *p = l->p;
    if (l->tree->threads >= TREE_THREADS_MAX ||
        !VEC_ROOM(p->threads, p->nthreads, p->cap_threads)) {
        l->tree->untold_now++;
        return NULL;
    }
    l->tree->threads++;
    struct seen_thread *t = &p->threads[p->nthreads++];
    *t = (struct seen_thread){.tid = tid,
                              .main = tid == p->pid,
                              .alive = true,
                              .t0 = l->now,
                              .run_ns = UNKNOWN,
                              .wait_ns = UNKNOWN,
                              .turns = UNKNOWN};
    return t;
}

/* Its name, faults, user and system time. */
static void read_stat(struct thread_look *l, struct seen_thread *t) {
    struct proc_stat st;
    if (!proc_stat_read(l->p->pid, t->tid, &st)) return;
    memcpy(t->name, st.name, sizeof t->name);
    t->start_ticks = st.start_ticks;
    if (t->looks == 0) /* it was not there at the look before */
        t->t0 = t->main ? l->p->t0
                        : tree_start_time(st.start_ticks, l->after, l->now);
    t->user_ticks = st.user_ticks;
    t->sys_ticks = st.sys_ticks;
    t->minor_faults = st.minor_faults;
    t->major_faults = st.major_faults;
}

/* Most threads sleep: one that did not run since the last look has changed
 * nothing but, perhaps, its name. */
static void look_at_thread(void *ctx, int32_t tid) {
    struct thread_look *l = ctx;
    struct seen_thread *t = find_thread(l, tid);
    if (t == NULL) t = add_thread(l, tid);
    l->alive++;
    if (t == NULL) return;
    int64_t run, wait, turns;
    bool known = proc_sched_read(l->p->pid, tid, &run, &wait, &turns);
    if (!known || run != t->run_ns || t->looks < 2 || t->looks % RARELY == 0)
        read_stat(l, t);
    if (known) {
        t->run_ns = run;
        t->wait_ns = wait;
        t->turns = turns;
    }
    l->tree->young += t->looks < 2;
    t->looks++;
    t->look = l->tree->look;
    t->t1 = l->now;
}

/* Threads that are not in the list any more have ended. */
static void end_threads(struct seen_proc *p, uint32_t look) {
    for (size_t i = 0; i < p->nthreads; i++)
        if (p->threads[i].look != look) p->threads[i].alive = false;
}

/* An exec changes name and command line; a name may change at any time. */
static void read_command(struct seen_proc *p, const struct proc_stat *st) {
    char text[TREE_COMMAND_MAX];
    bool renamed = strcmp(p->name, st->name) != 0;
    memcpy(p->name, st->name, sizeof p->name);
    if (!renamed && p->command != NULL && p->looks % RARELY != 1) return;
    if (proc_command(p->pid, text, sizeof text) == 0) return;
    if (p->command != NULL && strcmp(p->command, text) == 0) return;
    char *copy = strdup(text);
    if (copy == NULL) return;
    free(p->command);
    p->command = copy;
}

static void take_stat(struct seen_proc *p, const struct proc_stat *st) {
    p->ppid = st->ppid;
    p->user_ticks = st->user_ticks;
    p->sys_ticks = st->sys_ticks;
    p->child_ticks = st->child_user_ticks + st->child_sys_ticks;
    p->minor_faults = st->minor_faults;
    p->major_faults = st->major_faults;
    p->child_faults = st->child_faults;
    if (st->threads > p->most_threads) p->most_threads = (int32_t)st->threads;
}

static void take_memory(struct seen_proc *p, const struct proc_stat *st) {
    p->rss = st->rss_pages * sysconf(_SC_PAGESIZE);
    if (p->rss > p->peak_rss) p->peak_rss = p->rss;
    if (p->looks % RARELY != 2) return;
    int64_t peak = proc_peak_rss(p->pid);
    if (peak > p->peak_rss) p->peak_rss = peak;
}

/* One row of its history. */
static void keep_sample(struct seen_proc *p, int64_t now, int32_t threads) {
    /* clang-format off */
    struct tree_sample s = {
        .at = now, .cpu_ns = p->cpu_ns, .rss = p->rss,
        .faults = p->minor_faults + p->major_faults,
        .read_bytes = p->read_bytes, .write_bytes = p->write_bytes,
        .procs = 1, .threads = threads,
    };
    /* clang-format on */
    keep(&p->samples, &s);
}

/* A process that did not run since the last look has changed nothing: its CPU
 * clock, one cheap call, tells it. Dying takes time, too. */
static bool still_asleep(struct seen_proc *p, int64_t cpu, uint32_t look,
                         int64_t now) {
    int32_t threads = 0;
    if (cpu < 0 || cpu != p->cpu_ns || p->looks <= 2 || p->looks % RARELY == 0)
        return false;
    for (size_t i = 0; i < p->nthreads; i++) {
        if (!p->threads[i].alive) continue;
        p->threads[i].t1 = now;
        p->threads[i].look = look;
        threads++;
    }
    p->t1 = now;
    p->looks++;
    p->look = look;
    keep_sample(p, now, threads);
    return true;
}

/* All of its figures now; false: it is gone, or was dead already. */
static bool look_at(struct tree *tree, struct seen_proc *p, int64_t cpu,
                    int64_t now) {
    struct proc_stat st;
    /* no thread: it is just being reaped, and its figures read as 0 */
    if (!proc_stat_read(p->pid, 0, &st) || st.threads == 0 ||
        st.start_ticks != p->start_ticks) {
        p->alive = false;
        return false;
    }
    bool dead = st.state == 'Z' || st.state == 'X';
    take_stat(p, &st);
    if (cpu >= p->cpu_ns) p->cpu_ns = cpu;
    int64_t in, out;
    if (proc_io_read(p->pid, &in, &out)) {
        p->read_bytes = in;
        p->write_bytes = out;
    }
    tree->young += p->looks < 2;
    p->t1 = now;
    p->looks++;
    p->look = tree->look;
    if (dead) { /* memory and threads are gone, the rest is final */
        p->alive = false;
        p->exact = true;
        return false;
    }
    read_command(p, &st);
    take_memory(p, &st);
    struct thread_look l = {tree, p, 0, now, p->looks > 1 ? tree->last : p->t0,
                            0};
    if (proc_list(p->pid, look_at_thread, &l)) end_threads(p, tree->look);
    keep_sample(p, now, l.alive);
    return true;
}

bool tree_sample_proc(struct tree *tree, size_t i, int64_t now) {
    struct seen_proc *p = &tree->procs[i];
    int64_t cpu = proc_cpu_ns(p->pid), began = cpu_now();
    if (still_asleep(p, cpu, tree->look, now)) return true;
    uint64_t young = tree->young;
    bool more = look_at(tree, p, cpu, now);
    young = tree->young - young;
    if (young > 0)
        tree->young_ns += (cpu_now() - began) * (int64_t)young /
                          (int64_t)(1 + p->nthreads);
    return more;
}

/* Adds what is known. */
static void add(int64_t *sum, int64_t v) {
    if (v > 0) *sum += v;
}

void tree_sample_total(struct tree *tree, int64_t now) {
    struct tree_sample s = {.at = now};
    for (size_t i = 0; i < tree->nprocs; i++) {
        const struct seen_proc *p = &tree->procs[i];
        add(&s.cpu_ns, p->cpu_ns);
        add(&s.faults, p->minor_faults + p->major_faults);
        add(&s.read_bytes, p->read_bytes);
        add(&s.write_bytes, p->write_bytes);
        if (!p->alive) continue;
        add(&s.rss, p->rss);
        s.procs++;
        for (size_t k = 0; k < p->nthreads; k++)
            s.threads += p->threads[k].alive;
    }
    keep(&tree->total, &s);
}
