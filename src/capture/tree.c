/* SPDX-License-Identifier: Apache-2.0
 * Which processes belong to the tree, and when to look. A process belongs to it
 * if its parent does, or is us: orphans come back to us (launch.c), so that one
 * look at the parents finds all, however they came to be. Further below: the
 * figures of processes and threads at one moment, and the rows of them that are
 * kept. */
#include "capture/tree.h"

#include "base/vec.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    NS_PER_MS = 1000000,
    CREDIT_NS = 5 * NS_PER_MS, /* of CPU time, before the limit holds */
    SHARE = 200,               /* a look may take 1/200 of the time */
    SCAN_SHARE = 400,
    RARELY = 16, /* looks between those at what seldom changes */
};

/* Returns the CPU time of this thread, ns. */
static int64_t cpu_now(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

struct seen_proc *tree_find(struct tree *tree, int32_t pid) {
    uint32_t i = map_get(&tree->by_pid, (uint64_t)pid);
    return i == MAP_NONE ? NULL : &tree->procs[i];
}

/* Returns when something started, by the kernel's ticks since boot, which are
 * coarse: not before `after` and not after now. */
static int64_t tree_start_time(int64_t ticks, int64_t after, int64_t now) {
    int64_t t = now - clock_ns(CLOCK_BOOTTIME) +
                ticks * (1000000000 / sysconf(_SC_CLK_TCK));
    if (t < after) t = after;
    return t > now ? now : t;
}

/* Adds pid to the tree. Returns NULL over the limit. */
static struct seen_proc *tree_add(struct tree *tree, int32_t pid,
                                  const struct proc_stat *st, int64_t now) {
    if (tree->nprocs >= TREE_PROCS_MAX ||
        !VEC_ROOM(tree->procs, tree->nprocs, tree->cap_procs) ||
        !map_set(&tree->by_pid, (uint64_t)pid, (uint32_t)tree->nprocs)) {
        tree->untold_procs++;
        return NULL;
    }
    struct seen_proc *p = &tree->procs[tree->nprocs++];
    *p = (struct seen_proc){
        .pid = pid,
        .ppid = st->ppid,
        .alive = true,
        .t1 = now,
        .t0 = tree_start_time(st->start_ticks, tree->scanned, now),
        .start_ticks = st->start_ticks,
        .cpu_ns = UNKNOWN,
        .rss = UNKNOWN,
        .peak_rss = UNKNOWN,
        .read_bytes = UNKNOWN,
        .write_bytes = UNKNOWN,
    };
    memcpy(p->name, st->name, sizeof p->name);
    return p;
}

void tree_free(struct tree *tree) {
    for (size_t i = 0; i < tree->nprocs; i++) {
        free(tree->procs[i].command);
        free(tree->procs[i].threads);
        free(tree->procs[i].samples.v);
    }
    free(tree->procs);
    free(tree->listed);
    free(tree->older);
    free(tree->total.v);
    map_free(&tree->by_pid);
    *tree = (struct tree){0};
}

/* --- figures of one moment ----------------------------------------------- */

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

/* Reads name, faults, user and system time. */
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

/* Looks at a thread. Most threads sleep: one that did not run since the last
 * look has changed nothing but, perhaps, its name. */
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

/* Reads name and command line: an exec changes both, and a name may change at
 * any time. */
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

/* Puts a sample's instant between two, of which it is not known which. */
static void set_instant(struct tree_sample *s, int64_t from, int64_t to) {
    s->off = (to - from + 1) / 2;
    s->at = from + s->off;
}

/* Keeps one row of the process's history. */
static void keep_sample(struct seen_proc *p, int32_t threads) {
    /* clang-format off */
    struct tree_sample s = {
        .cpu_ns = p->cpu_ns, .rss = p->rss,
        .faults = p->minor_faults + p->major_faults,
        .read_bytes = p->read_bytes, .write_bytes = p->write_bytes,
        .procs = 1, .threads = threads,
    };
    /* clang-format on */
    set_instant(&s, p->read_from, p->read_to);
    keep(&p->samples, &s);
}

/* Has the process not run since the last look? Then it has changed nothing: its
 * CPU clock, one cheap call, tells it. Dying takes time, too. */
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
    keep_sample(p, threads);
    return true;
}

/* Reads all its figures. Returns false if it is gone, or was dead already. */
static bool look_at(struct tree *tree, struct seen_proc *p, int64_t cpu,
                    int64_t now) {
    struct proc_stat st;
    /* without a thread it is just being reaped, and its figures read as 0 */
    if (!proc_stat_read(p->pid, 0, &st) || st.threads == 0 ||
        st.start_ticks != p->start_ticks) {
        p->alive = false;
        return false;
    }
    bool dead = st.state == 'Z' || st.state == 'X';
    p->ppid = st.ppid;
    p->user_ticks = st.user_ticks;
    p->sys_ticks = st.sys_ticks;
    p->child_ticks = st.child_user_ticks + st.child_sys_ticks;
    p->minor_faults = st.minor_faults;
    p->major_faults = st.major_faults;
    p->child_faults = st.child_faults;
    if (st.threads > p->most_threads) p->most_threads = (int32_t)st.threads;
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
    p->rss = st.rss_pages * sysconf(_SC_PAGESIZE);
    if (p->rss > p->peak_rss) p->peak_rss = p->rss;
    int64_t peak = p->looks % RARELY == 2 ? proc_peak_rss(p->pid) : UNKNOWN;
    if (peak > p->peak_rss) p->peak_rss = peak;
    struct thread_look l = {tree, p, 0, now, p->looks > 1 ? tree->last : p->t0,
                            0};
    /* threads that are not in the list any more have ended */
    if (proc_list(p->pid, look_at_thread, &l))
        for (size_t i = 0; i < p->nthreads; i++)
            if (p->threads[i].look != tree->look) p->threads[i].alive = false;
    keep_sample(p, l.alive);
    return true;
}

/* Takes the figures of one process, and its threads, now. Returns false if it
 * is gone, or was dead already. */
static bool tree_sample_proc(struct tree *tree, size_t i, int64_t now) {
    struct seen_proc *p = &tree->procs[i];
    p->read_from = mono_now();
    int64_t cpu = proc_cpu_ns(p->pid);
    p->read_to = mono_now();
    int64_t began = cpu_now();
    if (still_asleep(p, cpu, tree->look, now)) return true;
    uint64_t young = tree->young;
    bool more = look_at(tree, p, cpu, now);
    young = tree->young - young;
    if (young > 0)
        tree->young_ns += (cpu_now() - began) * (int64_t)young /
                          (int64_t)(1 + p->nthreads);
    return more;
}

/* Adds v if it is known. */
static void add_known(int64_t *sum, int64_t v) {
    if (v > 0) *sum += v;
}

void tree_sample_total(struct tree *tree, int64_t now) {
    struct tree_sample s = {0};
    int64_t from = INT64_MAX, to = now;
    for (size_t i = 0; i < tree->nprocs; i++) {
        const struct seen_proc *p = &tree->procs[i];
        if (p->look == tree->look && p->read_from >= now) {
            if (p->read_from < from) from = p->read_from;
            if (p->read_to > to) to = p->read_to;
        }
        add_known(&s.cpu_ns, p->cpu_ns);
        add_known(&s.faults, p->minor_faults + p->major_faults);
        add_known(&s.read_bytes, p->read_bytes);
        add_known(&s.write_bytes, p->write_bytes);
        if (!p->alive) continue;
        add_known(&s.rss, p->rss);
        s.procs++;
        for (size_t k = 0; k < p->nthreads; k++)
            s.threads += p->threads[k].alive;
    }
    set_instant(&s, from < to ? from : now, to);
    keep(&tree->total, &s);
}

/* --- who there is -------------------------------------------------------- */

static int by_number(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

struct listing {
    int32_t *v;
    size_t n, cap;
};

static void list_pid(void *ctx, int32_t pid) {
    struct listing *l = ctx;
    if (VEC_ROOM(l->v, l->n, l->cap)) l->v[l->n++] = pid;
}

/* Lists all pids of the machine, sorted. Returns the list before, which is the
 * caller's. */
static struct listing list_all(struct tree *tree) {
    struct listing l = {0}, old = {tree->listed, tree->nlisted, 0};
    proc_list(0, list_pid, &l);
    if (l.n > 1) qsort(l.v, l.n, sizeof *l.v, by_number);
    tree->listed = l.v;
    tree->nlisted = l.n;
    return old;
}

void tree_prepare(struct tree *tree, int32_t self) {
    tree->self = self;
    list_all(tree);
    tree->nolder = tree->nlisted;
    tree->older = malloc((tree->nolder + 1) * sizeof *tree->older);
    if (tree->older == NULL) tree->nolder = 0;
    else if (tree->nolder > 0)
        memcpy(tree->older, tree->listed, tree->nolder * sizeof *tree->older);
}

void tree_begin(struct tree *tree, int32_t child, int64_t t0) {
    struct proc_stat st;
    tree->start = tree->last = tree->scanned = t0;
    if (proc_stat_read(child, 0, &st)) {
        struct seen_proc *p = tree_add(tree, child, &st, mono_now());
        if (p != NULL) p->t0 = t0;
    }
}

/* Does it belong to the tree? A pid that was used again is another process. */
static bool belongs(struct tree *tree, const struct proc_stat *st) {
    if (st->ppid == tree->self) return true;
    const struct seen_proc *parent = tree_find(tree, st->ppid);
    return parent != NULL && parent->alive;
}

/* Takes in those of the fresh pids that belong to the tree. A child can stand
 * before its parent in the list (pids wrap around), so the list is gone through
 * until nothing is found any more. */
static void take_in(struct tree *tree, int32_t *fresh, size_t n, int64_t now) {
    int64_t cpu = cpu_now(), all = (int64_t)n + 1;
    int64_t before = (int64_t)tree->nprocs;
    for (bool found = true; found && n > 0;) {
        size_t left = 0;
        found = false;
        for (size_t i = 0; i < n; i++) {
            struct proc_stat st;
            const struct seen_proc *known = tree_find(tree, fresh[i]);
            if (!proc_stat_read(fresh[i], 0, &st)) continue;
            if (known != NULL && known->start_ticks == st.start_ticks) continue;
            if (!belongs(tree, &st)) fresh[left++] = fresh[i];
            else if (tree_add(tree, fresh[i], &st, now)) found = true;
        }
        n = left;
    }
    /* new processes of others do not count */
    int64_t ours = (int64_t)tree->nprocs - before;
    tree->young_ns += (cpu_now() - cpu) * ours / all;
}

/* Returns how long to wait where looks are cheap: short programs get a close
 * look. */
static int64_t pace(int64_t age) {
    if (age < 100 * (int64_t)NS_PER_MS) return 2 * NS_PER_MS;
    if (age < 1000 * (int64_t)NS_PER_MS) return 10 * NS_PER_MS;
    if (age < 10000 * (int64_t)NS_PER_MS) return 50 * NS_PER_MS;
    return 100 * NS_PER_MS;
}

int64_t tree_look(struct tree *tree, int64_t now) {
    int64_t cpu = cpu_now(), young = tree->young_ns;
    tree->look++;
    int32_t last = proc_last_pid();
    if ((last == 0 || last != tree->last_pid) && now >= tree->next_scan) {
        /* All processes of the machine are looked through for those that were
         * not there at the last scan. */
        struct listing old = list_all(tree);
        size_t n = 0, k = 0;
        int32_t *fresh = malloc((tree->nlisted + 1) * sizeof *fresh);
        for (size_t i = 0; fresh != NULL && i < tree->nlisted; i++) {
            int32_t pid = tree->listed[i];
            while (k < old.n && old.v[k] < pid) k++;
            bool known = k < old.n && old.v[k] == pid;
            if (!known && pid != tree->self) fresh[n++] = pid;
        }
        take_in(tree, fresh, n, now);
        free(fresh);
        free(old.v);
        int64_t cost = cpu_now() - cpu - (tree->young_ns - young);
        tree->last_pid = last;
        tree->scanned = tree->next_scan = now;
        if (tree->spent_ns > CREDIT_NS && cost > 0)
            tree->next_scan += cost * SCAN_SHARE;
    }
    int64_t scanned = cpu_now();
    young = tree->young_ns;
    tree->untold_now = 0;
    for (size_t i = 0; i < tree->nprocs; i++)
        if (tree->procs[i].alive) tree_sample_proc(tree, i, now);
    if (tree->untold_now > tree->untold_threads)
        tree->untold_threads = tree->untold_now;
    tree_sample_total(tree, now);
    tree->last = now;
    int64_t end = cpu_now(), wait = pace(now - tree->start);
    int64_t cost = end - scanned - (tree->young_ns - young);
    tree->spent_ns += end - cpu;
    if (tree->spent_ns > CREDIT_NS && cost * SHARE > wait) wait = cost * SHARE;
    return now + wait;
}

void tree_last_look(struct tree *tree, int32_t pid, int64_t now) {
    struct proc_stat st;
    struct seen_proc *p = tree_find(tree, pid);
    if (!proc_stat_read(pid, 0, &st)) return;
    if (p == NULL || p->start_ticks != st.start_ticks) {
        if (tree->nolder > 0 && bsearch(&pid, tree->older, tree->nolder,
                                        sizeof pid, by_number) != NULL)
            return; /* it was there before the program */
        p = tree_add(tree, pid, &st, now);
    }
    if (p == NULL) return;
    p->alive = true;
    tree_sample_proc(tree, (size_t)(p - tree->procs), now);
    p->alive = false;
    p->t1 = now;
}

void tree_reaped(struct tree *tree, int32_t pid, int status,
                 const struct rusage *usage, int64_t now) {
    struct seen_proc *p = tree_find(tree, pid);
    if (p == NULL) return;
    p->alive = false;
    p->reaped = true;
    p->status = status;
    p->usage = *usage;
    if (now > p->t1) p->t1 = now;
}
