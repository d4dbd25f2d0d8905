/* SPDX-License-Identifier: Apache-2.0
 * What a program recorded is what is read, event for event. A child records
 * random events from several threads and keeps its own account of them in
 * memory that it shares with its parent; it stops in order, or is killed, or
 * closes parts on the way. The parent imports what it finds and compares. */
#include "import/import.h"
#include "load/runs.h"
#include "model/args.h"
#include "model/span_class.h"
#include "opscope/record.h"
#include "rec/temp.h"

#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    THREADS = 4,
    EVENTS = 3000,
    NAMES = 10,
    DEEP = 6,
    LIVE = 16,
    NOBODY = -1
};

/* How far the profile's clock may lie from clock_gettime(). */
#define SLACK_NS 2000000

enum what { SCOPE, INSTANT, COUNTER, ALLOC, FREE, ASYNC, DEVICE };

/* One event as the program knows it. Times are between two reads of the
 * clock, in ns of CLOCK_MONOTONIC. */
struct done {
    enum what what;
    int name, kind, parent; /* parent: the scope around it, or NOBODY */
    int64_t t0[2], t1[2];
    int64_t i; /* its argument "i"; bytes */
    double x;  /* its argument "x"; a counter's value */
    bool has_i, has_x, has_text, flops;
    uint64_t id, out, in, corr; /* address; arrows; a device span's launch */
    bool open;                  /* not ended */
};

struct account {
    int n;
    uint32_t tid;
    uint64_t mail; /* an arrow that the next thread may take */
    struct done v[EVENTS];
};

/* Shared with the parent. */
static struct account *all;
static char root[TEMP_MAX];

/* ---- the child ---- */

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static const char *name_of(int i) {
    /* clang-format off */
    static const char *const names[NAMES] = {
        "matmul", "load", "all_reduce", "Foo::Bar", "gather", "step", "epoch",
        "MemoryAllocation", "relu \"quoted\" \xc3\xa9", "x",
    };
    /* clang-format on */
    return names[i];
}

struct thread {
    int index;
    uint32_t seed, queue;
    struct account *a;
    int stack[DEEP], depth;
    uint64_t live[LIVE];
    int nlive;
    struct ops_async async[4];
    int async_at[4], nasync;
    bool hangs; /* does not end: what it has open stays open */
    pthread_barrier_t *done;
};

static struct done *new_event(struct thread *t, enum what what) {
    struct done *d = &t->a->v[t->a->n];
    *d = (struct done){.what = what,
                       .parent = t->depth > 0 ? t->stack[t->depth - 1]
                                              : NOBODY};
    d->name = (int)(next(&t->seed) % NAMES);
    d->kind = (int)(next(&t->seed) % (OPS_KIND_PHASE + 1));
    return d;
}

static void add_args(struct thread *t, struct done *d) {
    uint32_t r = next(&t->seed);
    if ((d->has_i = r & 1)) {
        d->i = (int64_t)next(&t->seed) - (1 << 23);
        ops_arg_int("i", d->i);
    }
    if ((d->has_x = r & 2)) {
        d->x = (double)next(&t->seed) / 7;
        ops_arg_num("x", d->x);
    }
    if ((d->has_text = (r & 12) == 12)) ops_arg_text("text", name_of(d->name));
    if ((d->flops = (r & 48) == 48)) ops_arg_int("flops", 1000);
}

static void open_scope(struct thread *t) {
    struct done *d = new_event(t, SCOPE);
    d->open = true;
    d->t0[0] = now();
    ops_begin_as(d->kind, name_of(d->name));
    d->t0[1] = now();
    if (next(&t->seed) % 2) add_args(t, d);
    t->stack[t->depth++] = t->a->n++;
}

static void close_scope(struct thread *t) {
    struct done *d = &t->a->v[t->stack[--t->depth]];
    d->t1[0] = now();
    ops_end();
    d->t1[1] = now();
    d->open = false;
}

static void one_alloc(struct thread *t) {
    struct done *d = new_event(t, ALLOC);
    d->id = ((uint64_t)t->index + 1) << 32 | (next(&t->seed) % 64) << 8;
    for (int i = 0; i < t->nlive; i++)
        if (t->live[i] == d->id) return;
    d->i = 1 + next(&t->seed) % 100000;
    d->t0[0] = now();
    ops_alloc((void *)(uintptr_t)d->id, (uint64_t)d->i, "tag");
    d->t0[1] = now();
    t->live[t->nlive++] = d->id;
    t->a->n++;
}

static void one_free(struct thread *t) {
    int k = (int)(next(&t->seed) % (uint32_t)t->nlive);
    struct done *d = new_event(t, FREE);
    d->id = t->live[k];
    d->t0[0] = now();
    ops_free((void *)(uintptr_t)d->id);
    d->t0[1] = now();
    t->live[k] = t->live[--t->nlive];
    t->a->n++;
}

/* Draws an arrow from a scope of this thread to one of the next; its id tells
 * where it began. */
static void one_arrow(struct thread *t) {
    int k = t->stack[t->depth - 1];
    struct done *d = &t->a->v[k];
    if (d->out == 0) {
        d->out = (uint64_t)(t->index * EVENTS + k) + 1;
        ops_flow_out(d->out);
        __atomic_store_n(&t->a->mail, d->out, __ATOMIC_SEQ_CST);
    }
    struct account *before = &all[(t->index + THREADS - 1) % THREADS];
    uint64_t got = d->in != 0 ? 0
                              : __atomic_exchange_n(&before->mail, 0,
                                                    __ATOMIC_SEQ_CST);
    if (got == 0) return;
    d->in = got;
    ops_flow_in(got);
}

static void one_device(struct thread *t) {
    struct done *d = new_event(t, DEVICE);
    d->corr = ops_correlation();
    d->t0[0] = (int64_t)ops_now();
    d->t1[0] = d->t0[0] + 1 + next(&t->seed) % 1000;
    ops_device_span(t->queue, name_of(d->name), (uint64_t)d->t0[0],
                    (uint64_t)d->t1[0], d->corr);
    t->a->n++;
}

static void start_async(struct thread *t) {
    struct done *d = new_event(t, ASYNC);
    d->open = true;
    d->t0[0] = now();
    t->async[t->nasync] = ops_async_begin(OPS_KIND_OP, name_of(d->name));
    d->t0[1] = now();
    t->async_at[t->nasync++] = t->a->n++;
}

static void end_async(struct thread *t) {
    struct done *d = &t->a->v[t->async_at[--t->nasync]];
    d->t1[0] = now();
    ops_async_end(&t->async[t->nasync]);
    d->t1[1] = now();
    d->open = false;
}

static void one_point(struct thread *t, enum what what) {
    struct done *d = new_event(t, what);
    char name[32];
    snprintf(name, sizeof name, "count %d", t->index);
    d->x = next(&t->seed) % 1000;
    d->t0[0] = now();
    if (what == INSTANT) ops_instant(name_of(d->name));
    else ops_counter(name, d->x);
    d->t0[1] = now();
    t->a->n++;
}

static void one_event(struct thread *t) {
    uint32_t r = next(&t->seed) % 100;
    if (r < 40 && t->depth < DEEP) open_scope(t);
    else if (r < 75 && t->depth > 0) close_scope(t);
    else if (r < 80) one_point(t, INSTANT);
    else if (r < 84) one_point(t, COUNTER);
    else if (r < 88 && t->nlive < LIVE) one_alloc(t);
    else if (r < 91 && t->nlive > 0) one_free(t);
    else if (r < 94 && t->depth > 0) one_arrow(t);
    else if (r < 97 && t->depth > 0) one_device(t);
    else if (r < 98 && t->nasync < 4) start_async(t);
    else if (t->nasync > 0) end_async(t);
}

static void *work(void *arg) {
    struct thread *t = arg;
    char name[32];
    snprintf(name, sizeof name, "thread %d", t->index);
    ops_thread_name(name);
    t->a->tid = (uint32_t)gettid();
    while (t->a->n < EVENTS - 1) one_event(t);
    while (!t->hangs && t->depth > 0) close_scope(t);
    while (!t->hangs && t->nasync > 0) end_async(t);
    if (t->hangs) pthread_barrier_wait(t->done);
    while (t->hangs) pause();
    return NULL;
}

enum ending { STOPS, IS_KILLED, DUMPS };

/* Records and never returns. */
static void child(enum ending how, uint32_t seed, bool tsc) {
    struct ops_options o = {.no_machine = true, .no_tsc = !tsc, .host = "h"};
    setenv("OPSCOPE_SHM", root, 1); /* what a kill leaves goes with the rest */
    if (ops_start(root, &o) != 0) _exit(7);
    struct thread t[THREADS] = {0};
    pthread_t id[THREADS];
    pthread_barrier_t done;
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        char queue[32];
        snprintf(queue, sizeof queue, "queue %d", i);
        t[i] = (struct thread){.index = i,
                               .seed = seed + (uint32_t)i * 77,
                               .a = &all[i],
                               .hangs = how == IS_KILLED,
                               .done = &done,
                               .queue = ops_device_track("npu 0", queue)};
        pthread_create(&id[i], NULL, work, &t[i]);
    }
    if (how == IS_KILLED) {
        pthread_barrier_wait(&done);
        kill(getpid(), SIGKILL);
    }
    for (int i = 0; how == DUMPS && i < 3; i++) {
        usleep(500);
        ops_dump();
    }
    for (int i = 0; i < THREADS; i++) pthread_join(id[i], NULL);
    ops_stop();
    _exit(0);
}

/* ---- the parent ---- */

static int remove_one(const char *p, const struct stat *st, int type,
                      struct FTW *w) {
    (void)st;
    (void)type;
    (void)w;
    return remove(p);
}

struct got {
    struct trace *t;
    int64_t start_mono;   /* ns, at ps 0 of the epoch */
    row_id *row[THREADS]; /* by event of the account: its row */
};

static struct trace *import_all(struct loaded *l) {
    struct run_list runs;
    const struct run *run;
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    assert_int_equal(runs_find(root, &runs, &e), 0);
    assert_int_equal(runs_pick(&runs, NULL, &run, &e), 0);
    assert_int_equal(runs_load(run->files, run->n, &o, l, &e), 0);
    runs_free(&runs);
    assert_int_equal(l->n, 1);
    return l->v[0];
}

static void near(const struct got *g, int64_t ps, const int64_t between[2]) {
    int64_t ns = g->start_mono + ps / PS_PER_NS;
    assert_in_range(ns, between[0] - SLACK_NS, between[1] + SLACK_NS);
}

static uint32_t track_of(const struct trace *t, int thread) {
    char name[64];
    snprintf(name, sizeof name, "thread %d/%u", thread, all[thread].tid);
    for (size_t i = 0; i < t->ntracks; i++)
        if (strcmp(strs_text(&t->strs, t->tracks[i].name), name) == 0)
            return (uint32_t)i;
    fail_msg("no track %s", name);
    return 0;
}

static void check_kind(const struct trace *t, row_id r, int kind) {
    static const struct {
        uint8_t span;
        uint16_t class;
    } want[] = {
        [OPS_KIND_OP] = {SPAN_OP, 0},
        [OPS_KIND_INPUT] = {SPAN_OP, CLASS_INPUT},
        [OPS_KIND_COMM] = {SPAN_OP, CLASS_COMM | CLASS_COMM_CPU},
        [OPS_KIND_COPY] = {SPAN_OP, CLASS_COPY},
        [OPS_KIND_WAIT] = {SPAN_API, CLASS_SYNC},
        [OPS_KIND_PHASE] = {SPAN_ANNOTATION, 0},
    };
    assert_int_equal(t->spans.kind[r], want[kind].span);
    /* names of collectives say it themselves */
    uint16_t by_name = t->name_class[t->spans.name[r]];
    assert_int_equal(span_class(t, r), want[kind].class | by_name);
}

static void check_args(const struct trace *t, row_id r, const struct done *d) {
    struct arg i = args_get(t, r, "i"), x = args_get(t, r, "x");
    struct arg text = args_get(t, r, "text"), f = args_get(t, r, "flops");
    assert_int_equal(i.type, d->has_i ? ARG_INT : ARG_NONE);
    assert_int_equal(x.type, d->has_x ? ARG_FLOAT : ARG_NONE);
    assert_int_equal(text.type, d->has_text ? ARG_TEXT : ARG_NONE);
    assert_int_equal(f.type, d->flops ? ARG_INT : ARG_NONE);
    if (d->has_i) assert_int_equal(i.i, d->i);
    if (d->has_x) assert_true(x.f == d->x);
    if (d->has_text)
        assert_true(
            bytes_eq(text.text, name_of(d->name), strlen(name_of(d->name))));
    assert_int_equal(!!(t->spans.flags[r] & SPAN_COSTED), d->flops);
}

/* Checks scopes and instants of a thread, which stand in the order in which
 * they began. */
static void check_thread(struct got *g, int thread) {
    const struct trace *t = g->t;
    const struct track *tr = &t->tracks[track_of(t, thread)];
    const struct account *a = &all[thread];
    row_id r = tr->first;
    for (int k = 0; k < a->n; k++) {
        const struct done *d = &a->v[k];
        g->row[thread][k] = ROW_NONE;
        if (d->what != SCOPE && d->what != INSTANT) continue;
        assert_true(r < tr->end);
        g->row[thread][k] = r;
        assert_string_equal(span_name(t, r), name_of(d->name));
        near(g, t->spans.ts[r], d->t0);
        assert_int_equal(!!(t->spans.flags[r] & SPAN_INSTANT),
                         d->what == INSTANT);
        assert_int_equal(!!(t->spans.flags[r] & SPAN_OPEN), d->open);
        if (d->what == SCOPE) check_kind(t, r, d->kind);
        if (d->what == SCOPE) check_args(t, r, d);
        if (d->what == SCOPE && !d->open) near(g, span_end(t, r), d->t1);
        assert_int_equal(t->spans.parent[r], d->parent == NOBODY
                                                 ? ROW_NONE
                                                 : g->row[thread][d->parent]);
        r++;
    }
    assert_int_equal(r, tr->end);
}

static void check_counter(const struct got *g, int thread) {
    const struct trace *t = g->t;
    const struct account *a = &all[thread];
    char name[32];
    snprintf(name, sizeof name, "count %d", thread);
    size_t at = 0;
    while (at < t->samples.n &&
           strcmp(strs_text(&t->strs, t->counters[t->samples.counter[at]].name),
                  name) != 0)
        at++;
    for (int k = 0; k < a->n; k++) {
        if (a->v[k].what != COUNTER) continue;
        assert_true(at < t->samples.n);
        assert_true(t->samples.value[at] == a->v[k].x);
        near(g, t->samples.ts[at], a->v[k].t0);
        at++;
    }
}

/* Checks memory events of a thread's addresses, in time order. */
static void check_memory(const struct got *g, int thread) {
    const struct trace *t = g->t;
    const struct account *a = &all[thread];
    size_t at = 0;
    for (int k = 0; k < a->n; k++) {
        const struct done *d = &a->v[k];
        if (d->what != ALLOC && d->what != FREE) continue;
        while (at < t->mem.n && (int)(t->mem.addr[at] >> 32) != thread + 1)
            at++;
        assert_true(at < t->mem.n);
        assert_int_equal(t->mem.addr[at], d->id);
        near(g, t->mem.ts[at], d->t0);
        int64_t bytes = d->i;
        for (int b = k; d->what == FREE && b >= 0; b--)
            if (a->v[b].what == ALLOC && a->v[b].id == d->id) {
                bytes = -a->v[b].i;
                break;
            }
        assert_int_equal(t->mem.bytes[at], bytes);
        if (d->what == ALLOC)
            assert_string_equal(strs_text(&t->strs, t->mem.what[at]), "tag");
        at++;
    }
    while (at < t->mem.n) /* and no more */
        assert_int_not_equal(t->mem.addr[at++] >> 32, thread + 1);
}

static void check_device(const struct got *g, int thread) {
    const struct trace *t = g->t;
    const struct account *a = &all[thread];
    char name[32];
    snprintf(name, sizeof name, "npu 0 queue %d", thread);
    const struct track *tr = NULL;
    for (size_t i = 0; i < t->ntracks; i++)
        if (strcmp(strs_text(&t->strs, t->tracks[i].name), name) == 0)
            tr = &t->tracks[i];
    assert_non_null(tr);
    row_id r = tr->first;
    for (int k = 0; k < a->n; k++) {
        const struct done *d = &a->v[k];
        if (d->what != DEVICE) continue;
        assert_true(r < tr->end);
        assert_string_equal(span_name(t, r), name_of(d->name));
        assert_int_equal(t->spans.kind[r], SPAN_KERNEL);
        assert_int_equal(t->spans.ts[r],
                         (d->t0[0] - g->start_mono) * PS_PER_NS);
        assert_int_equal(t->spans.dur[r], (d->t1[0] - d->t0[0]) * PS_PER_NS);
        row_id scope = g->row[thread][d->parent];
        assert_int_equal(trace_launch_of(t, r), scope);
        r++;
    }
    assert_int_equal(r, tr->end);
}

/* Returns how far a time lies outside what the program read, in ns. */
static int64_t outside(const struct got *g, int64_t ps,
                       const int64_t between[2]) {
    int64_t ns = g->start_mono + ps / PS_PER_NS;
    if (ns < between[0]) return between[0] - ns;
    return ns > between[1] ? ns - between[1] : 0;
}

static int64_t misfit(const struct got *g, row_id r, const struct done *d) {
    int64_t ns = outside(g, g->t->spans.ts[r], d->t0);
    return d->open ? ns : ns + outside(g, span_end(g->t, r), d->t1);
}

/* Checks asynchronous spans: each is found once, the one of its name that fits
 * best: their lines do not tell which thread began them. */
static size_t check_async(const struct got *g, int thread, bool *used) {
    const struct trace *t = g->t;
    const struct account *a = &all[thread];
    size_t n = 0;
    for (int k = 0; k < a->n; k++) {
        const struct done *d = &a->v[k];
        row_id best = ROW_NONE;
        if (d->what != ASYNC) continue;
        for (row_id r = 0; r < t->spans.n; r++)
            if (!used[r] && (t->spans.flags[r] & SPAN_ASYNC) &&
                strcmp(span_name(t, r), name_of(d->name)) == 0 &&
                !!(t->spans.flags[r] & SPAN_OPEN) == d->open &&
                (best == ROW_NONE || misfit(g, r, d) < misfit(g, best, d)))
                best = r;
        assert_int_not_equal(best, ROW_NONE);
        near(g, t->spans.ts[best], d->t0);
        if (!d->open) near(g, span_end(t, best), d->t1);
        used[best] = true;
        n++;
    }
    return n;
}

/* Checks that every arrow that was taken up is there, from scope to scope.
 * Returns how many there must be. */
static size_t check_arrows(const struct got *g) {
    const struct flows *f = &g->t->flows;
    size_t n = 0;
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < all[i].n; k++) {
            uint64_t id = all[i].v[k].in;
            if (id == 0) continue;
            row_id from = g->row[(id - 1) / EVENTS][(id - 1) % EVENTS];
            size_t at = 0;
            while (at < f->n &&
                   (f->from[at] != from || f->to[at] != g->row[i][k]))
                at++;
            assert_true(at < f->n);
            n++;
        }
    return n;
}

static void check_all(struct trace *t) {
    struct got g = {.t = t};
    const char *mono = trace_meta_get(t, 0, "start_monotonic_ns");
    assert_non_null(mono);
    g.start_mono = strtoll(mono, NULL, 10);
    size_t expected = 0, async = 0, arrows = 0;
    bool *used = calloc(t->spans.n + 1, sizeof *used);
    for (int i = 0; i < THREADS; i++) {
        g.row[i] = calloc(EVENTS, sizeof *g.row[i]);
        assert_non_null(g.row[i]);
        check_thread(&g, i);
        check_counter(&g, i);
        check_memory(&g, i);
        check_device(&g, i);
        async += check_async(&g, i, used);
        for (int k = 0; k < all[i].n; k++) {
            const struct done *d = &all[i].v[k];
            expected += d->what == DEVICE || g.row[i][k] != ROW_NONE;
            arrows += d->out != 0 && g.row[i][k] != ROW_NONE;
        }
    }
    assert_int_equal(t->spans.n, expected + async); /* none invented */
    size_t taken = check_arrows(&g);
    assert_int_equal(t->flows.n, taken);
    assert_int_equal(t->notes[NOTE_FLOW_DANGLING], arrows - taken);
    assert_int_equal(t->notes[NOTE_RECORDER_DROPPED], 0);
    assert_int_equal(t->notes[NOTE_CROSSING_SPANS], 0);
    assert_int_equal(t->notes[NOTE_CHILD_OUTLIVES_PARENT], 0);
    assert_int_equal(t->notes[NOTE_BAD_FIELD], 0);
    assert_int_equal(t->notes[NOTE_KERNEL_WITHOUT_LAUNCH], 0);
    for (int i = 0; i < THREADS; i++) free(g.row[i]);
    free(used);
}

/* Lets a child record, and returns what it left. */
static struct trace *recorded(enum ending how, uint32_t seed, bool tsc,
                              struct loaded *l) {
    assert_non_null(mkdtemp(temp_name(root, "round")));
    memset(all, 0, THREADS * sizeof *all);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) child(how, seed, tsc);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (how == IS_KILLED) assert_int_equal(WTERMSIG(status), SIGKILL);
    else assert_int_equal(status, 0);
    return import_all(l);
}

static void forget(struct loaded *l) {
    loaded_free(l);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void what_was_recorded_is_read(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct loaded l;
        struct trace *t = recorded(STOPS, seed, seed % 2, &l);
        assert_int_equal(t->notes[NOTE_PART_OPEN], 0);
        check_all(t);
        forget(&l);
    }
}

static void what_a_killed_program_left_is_read(void **state) {
    (void)state;
    for (uint32_t seed = 11; seed <= 14; seed++) {
        struct loaded l;
        struct trace *t = recorded(IS_KILLED, seed, seed % 2, &l);
        assert_int_equal(t->notes[NOTE_PART_OPEN], 1);
        check_all(t);
        forget(&l);
    }
}

static void parts_are_one_recording(void **state) {
    (void)state;
    for (uint32_t seed = 21; seed <= 24; seed++) {
        struct loaded l;
        struct trace *t = recorded(DUMPS, seed, seed % 2, &l);
        assert_true(t->nsources > 1);
        assert_int_equal(t->nprocesses, 1);
        check_all(t);
        forget(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_recorded_is_read),
        cmocka_unit_test(what_a_killed_program_left_is_read),
        cmocka_unit_test(parts_are_one_recording),
    };
    all = mmap(NULL, THREADS * sizeof *all, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
