/* SPDX-License-Identifier: Apache-2.0
 * Who belongs to the tree, and when to look. A process belongs to it whose
 * parent does, or is us: orphans come back to us (launch.c), so that one look
 * at the parents finds everybody, however they came to be. */
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
};

int64_t mono_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t cpu_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct seen_proc *tree_find(struct tree *tree, int32_t pid) {
    uint32_t i = map_get(&tree->by_pid, (uint64_t)pid);
    return i == MAP_NONE ? NULL : &tree->procs[i];
}

int64_t tree_start_time(int64_t ticks, int64_t after, int64_t now) {
    struct timespec boot;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    int64_t since = (int64_t)boot.tv_sec * 1000000000 + boot.tv_nsec;
    int64_t t = now - since + ticks * (1000000000 / sysconf(_SC_CLK_TCK));
    if (t < after) t = after;
    return t > now ? now : t;
}

struct seen_proc *tree_add(struct tree *tree, int32_t pid,
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

/* All pids of the machine, sorted; returns those of the time before, which are
 * the caller's. */
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

/* Is it one of ours? A pid that was used again is another process. */
static bool belongs(struct tree *tree, const struct proc_stat *st) {
    if (st->ppid == tree->self) return true;
    const struct seen_proc *parent = tree_find(tree, st->ppid);
    return parent != NULL && parent->alive;
}

/* Takes in those of the fresh pids that belong to the tree. A child can stand
 * before its parent in the list (pids wrap around): it is asked again until
 * nothing is found any more. */
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
    /* strangers that are new are not ours to pay for */
    int64_t ours = (int64_t)tree->nprocs - before;
    tree->young_ns += (cpu_now() - cpu) * ours / all;
}

/* Looks through all processes of the machine for those that were not there at
 * the last scan. */
static void scan(struct tree *tree, int64_t now) {
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
}

/* How long to wait where looks are cheap: short programs get a close look. */
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
        scan(tree, now);
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

/* Was it there before the program? */
static bool is_older(const struct tree *tree, int32_t pid) {
    return tree->nolder > 0 && bsearch(&pid, tree->older, tree->nolder,
                                       sizeof pid, by_number) != NULL;
}

void tree_last_look(struct tree *tree, int32_t pid, int64_t now) {
    struct proc_stat st;
    struct seen_proc *p = tree_find(tree, pid);
    if (!proc_stat_read(pid, 0, &st)) return;
    if (p == NULL || p->start_ticks != st.start_ticks) {
        if (is_older(tree, pid)) return;
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
