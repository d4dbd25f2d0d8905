/* SPDX-License-Identifier: Apache-2.0
 * kill -9 at random moments: what the program's calls had returned from is
 * there afterwards, once, in order, or counted as dropped; nothing else is.
 *
 * The victim keeps a diary of its own in a shared mapping: a number for each
 * kind of record, written after the call has returned. The number also stands
 * in the record. 200 kills of each form; 30 where a sanitizer slows it.
 * REC_SEED repeats a run. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

enum { THREADS = 4, LEAST = 30, MOST = 200 };

/* What a thread has done: numbers count from 1 in each kind. */
enum kind { INNER, OUTER, COUNTER, FLOW, STEP, DEVICE, SCALAR, KINDS };
static const char *const kind_names[KINDS] = {"inner", "outer", "counter",
                                              "flow",  "step",  "device span",
                                              "scalar"};

struct diary {
    struct {
        uint64_t done[KINDS];
        uint64_t open[KINDS]; /* begun, with its argument, and not yet ended */
        uint64_t tid;
    } thread[THREADS];
    uint64_t started_ns, ready;
};

static struct diary *diary;
static bool fast, dumps;
#define NOTE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

/* --- the victim --------------------------------------------------------- */

static void inner(unsigned t, uint64_t i) {
    {
        OPS_SCOPE_INT("inner", "seq", (int64_t)i);
        NOTE(&diary->thread[t].open[INNER], i);
        if (!fast) rig_sleep_us(i % 8 == 0 ? 20 : 0);
        NOTE(&diary->thread[t].open[INNER], 0);
    }
    NOTE(&diary->thread[t].done[INNER], i);
}

static void outer(unsigned t, uint64_t i) {
    char name[16];
    {
        OPS_SCOPE_INT("outer", "seq", (int64_t)i);
        NOTE(&diary->thread[t].open[OUTER], i);
        inner(t, 2 * i - 1);
        snprintf(name, sizeof name, "counter %u", t);
        ops_counter(name, (double)i);
        NOTE(&diary->thread[t].done[COUNTER], i);
        inner(t, 2 * i);
        NOTE(&diary->thread[t].open[OUTER], 0);
    }
    NOTE(&diary->thread[t].done[OUTER], i);
}

static void *work(void *arg) {
    unsigned t = (unsigned)(uintptr_t)arg;
    char queue[16], tag[16];
    diary->thread[t].tid = (uint64_t)gettid();
    snprintf(queue, sizeof queue, "queue %u", t);
    snprintf(tag, sizeof tag, "scalar %u", t);
    uint32_t track = ops_device_track("npu", queue);
    for (uint64_t i = 1;; i++) {
        ops_step((int64_t)i);
        NOTE(&diary->thread[t].done[STEP], i - 1);
        NOTE(&diary->thread[t].open[STEP], i);
        outer(t, i);
        ops_flow_out(i); /* no scope is open: an instant with a number */
        NOTE(&diary->thread[t].done[FLOW], i);
        uint64_t now = ops_now();
        ops_device_span(track, "kernel", now - 1000, now, i);
        NOTE(&diary->thread[t].done[DEVICE], i);
        ops_scalar(tag, (int64_t)i, 0.5);
        NOTE(&diary->thread[t].done[SCALAR], i);
        NOTE(&diary->thread[t].open[STEP], 0);
    }
    return NULL;
}

static void victim(void *arg) {
    pthread_t t;
    (void)arg;
    diary->started_ns = rig_now_ns(CLOCK_REALTIME);
    if (ops_start(rig_dir, &rig_options) != 0) _exit(1);
    NOTE(&diary->ready, 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&t, NULL, work, (void *)i);
    for (int i = 0;; i++) {
        rig_sleep_us(dumps ? 500 : 100000);
        if (dumps && i % 2 == 0) ops_dump();
        else if (dumps) ops_flush();
    }
}

/* --- what is left ------------------------------------------------------- */

/* The records of one thread and kind, as found. */
struct found {
    uint64_t *seen; /* by number: 1 whole, 2 unfinished */
    uint64_t cap, most, whole, cut;
};

static unsigned thread_of(const struct xs_event *e) {
    for (unsigned t = 0; t < THREADS; t++)
        if ((uint32_t)e->line == diary->thread[t].tid) return t;
    fail_msg("an event on line %s, which is no thread's", e->line_name);
    return 0;
}

static void note(struct found *f, uint64_t number, bool cut, const char *what) {
    if (number == 0 && cut) { /* killed before it had its argument */
        f->cut++;
        return;
    }
    if (number == 0 || number > (uint64_t)1 << 32)
        fail_msg("%s %llu was never written", what, (unsigned long long)number);
    if (number >= f->cap) {
        uint64_t cap = number * 2 + 64;
        f->seen = realloc(f->seen, cap * sizeof *f->seen);
        memset(f->seen + f->cap, 0, (cap - f->cap) * sizeof *f->seen);
        f->cap = cap;
    }
    if (f->seen[number] != 0)
        fail_msg("%s %llu is there twice (%llu, %d)", what,
                 (unsigned long long)number,
                 (unsigned long long)f->seen[number], cut);
    f->seen[number] = cut ? 2 : 1;
    if (number > f->most) f->most = number;
    if (cut) f->cut++;
    else f->whole++;
}

/* Finds which kind it is, its number and its thread. Returns false if it is
 * none of ours. */
static bool what_is(const struct xs *x, const struct xs_event *e,
                    enum kind *kind, uint64_t *number, unsigned *t) {
    if (sscanf(e->name, "counter %u", t) == 1) {
        *kind = COUNTER;
        *number = (uint64_t)xs_num(x, e, "counter_value");
        return true;
    }
    if (strcmp(e->line_name, "_counters_") == 0 || xs_own(e)) return false;
    if (sscanf(e->line_name, "queue %u", t) == 1) {
        *kind = DEVICE;
        *number = (uint64_t)xs_int(x, e, "correlation_id", 0);
        return true;
    }
    *t = thread_of(e);
    *number = (uint64_t)xs_int(x, e, "seq", 0);
    if (strcmp(e->name, "inner") == 0) *kind = INNER;
    else if (strcmp(e->name, "outer") == 0) *kind = OUTER;
    else if (strcmp(e->name, "step") == 0) {
        *kind = STEP;
        *number = (uint64_t)xs_int(x, e, "step_num", 0);
    } else if (strcmp(e->name, "flow") == 0) {
        *kind = FLOW;
        *number = (uint64_t)xs_int(x, e, "flow", 0) >> 2;
    } else {
        fail_msg("an event '%s' was never written", e->name);
    }
    return true;
}

/* Checks the order of ends within a kind: no record overtakes another. */
static void check_order(const struct xs *x) {
    uint64_t last[THREADS][KINDS] = {{0}}, at[THREADS][KINDS] = {{0}};
    /* a line stands in the file once per flush, early ends on one beside it */
    for (size_t i = 0; i < x->n; i++) {
        enum kind k;
        uint64_t n;
        unsigned t;
        if (!what_is(x, &x->v[i], &k, &n, &t) || n == 0) continue;
        uint64_t end = x->v[i].end;
        if ((end > at[t][k]) != (n > last[t][k]) && end != at[t][k])
            fail_msg("%s %llu lies out of order", kind_names[k],
                     (unsigned long long)n);
        if (end >= at[t][k]) {
            at[t][k] = end;
            last[t][k] = n;
        }
    }
}

static uint64_t line_drops(const struct xs *x, unsigned t) {
    uint64_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        if (xs_own(&x->v[i]) && thread_of(&x->v[i]) == t)
            n += (uint64_t)xs_int(x, &x->v[i], "count", 0);
    return n;
}

static void check_thread(const struct xs *x, struct found f[KINDS], unsigned t,
                         bool rescued) {
    uint64_t done = 0, whole = 0, drops = line_drops(x, t);
    for (unsigned k = 0; k < (rescued ? KINDS : SCALAR); k++) {
        uint64_t logged = diary->thread[t].done[k];
        uint64_t open = diary->thread[t].open[k];
        done += logged;
        whole += f[k].whole;
        /* one more may have been written and not yet noted; a step that
         * begins ends another */
        if (f[k].most > logged + (k == STEP ? 2 : 1))
            fail_msg("%s %llu of %llu", kind_names[k],
                     (unsigned long long)f[k].most, (unsigned long long)logged);
        assert_true(f[k].cut <= 1);
        if (drops == 0 && f[k].whole < logged)
            fail_msg("thread %u: %llu of %llu %s, and no drop", t,
                     (unsigned long long)f[k].whole, (unsigned long long)logged,
                     kind_names[k]);
        if (open != 0 && (open >= f[k].cap || f[k].seen[open] != 2))
            fail_msg("thread %u: %s %llu was open", t, kind_names[k],
                     (unsigned long long)open);
    }
    /* a scalar that is not in its file yet may be among the drops */
    if (!rescued && drops > 0) return;
    if (whole + drops < done || whole + drops > done + 1) {
        for (unsigned k = 0; k < KINDS; k++)
            print_message("# %s: %llu whole, %llu cut, most %llu, %llu done, "
                          "%llu open\n",
                          kind_names[k], (unsigned long long)f[k].whole,
                          (unsigned long long)f[k].cut,
                          (unsigned long long)f[k].most,
                          (unsigned long long)diary->thread[t].done[k],
                          (unsigned long long)diary->thread[t].open[k]);
        fail_msg("thread %u: %llu there, %llu dropped, %llu written", t,
                 (unsigned long long)whole, (unsigned long long)drops,
                 (unsigned long long)done);
    }
}

/* Checks that all that is open ends at one moment, not before anything else. */
static void check_times(const struct xs *x, uint64_t death_ns) {
    const uint64_t slack = 2000000; /* ns: the clock is young */
    uint64_t last = 0, cut_end = 0;
    uint64_t base = (uint64_t)xs_fact(x, "start_unix_ns", 0);
    assert_true(base + slack >= diary->started_ns && base <= death_ns);
    for (size_t i = 0; i < x->n; i++) {
        const struct xs_event *e = &x->v[i];
        if (strcmp(e->line_name, "_counters_") == 0 ||
            strncmp(e->line_name, "queue", 5) == 0)
            continue;
        bool cut = xs_int(x, e, "unfinished", 0) != 0;
        assert_true(base + e->start / 1000 + slack >= diary->started_ns);
        assert_true(base + e->end / 1000 <= death_ns + slack);
        if (!cut && e->end > last) last = e->end;
        if (cut && cut_end != 0) assert_int_equal(e->end, cut_end);
        if (cut) cut_end = e->end;
    }
    if (cut_end != 0) assert_true(cut_end >= last);
}

/* Reads the event files, frame by frame: {1: time, 2: step, 5: {1: {1:
 * tag}}}. */
static void read_scalars(const char *path, struct found f[THREADS][KINDS]) {
    FILE *in = fopen(path, "rb");
    uint8_t head[12], data[256], crc[4];
    uint64_t n;
    assert_non_null(in);
    while (fread(head, sizeof head, 1, in) == 1) {
        struct xs_field g, h;
        memcpy(&n, head, 8);
        assert_true(n <= sizeof data);
        assert_int_equal(fread(data, n, 1, in), 1);
        assert_int_equal(fread(crc, sizeof crc, 1, in), 1);
        struct xs_bytes b = {data, n};
        uint64_t step = 0;
        while (xs_next(&b, &g)) {
            unsigned t;
            if (g.number == 2) step = g.v;
            if (g.number != 5 || !xs_next(&g.b, &h) || !xs_next(&h.b, &g))
                continue;
            char tag[16] = "";
            memcpy(tag, g.b.p, g.b.n < 15 ? g.b.n : 15);
            assert_int_equal(sscanf(tag, "scalar %u", &t), 1);
            note(&f[t][SCALAR], step, false, "scalar");
        }
    }
    fclose(in);
}

static void all_scalars(struct found f[THREADS][KINDS]) {
    char pattern[PATH_MAX + 32];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/events.out.*", rig_dir);
    if (glob(pattern, 0, NULL, &g) != 0) return;
    for (size_t i = 0; i < g.gl_pathc; i++) read_scalars(g.gl_pathv[i], f);
    globfree(&g);
}

/* rescued: scalars are in their files now, not in the rings. */
static void check(const struct xs *x, uint64_t death_ns, bool rescued) {
    struct found f[THREADS][KINDS] = {0};
    if (rescued) all_scalars(f);
    for (size_t i = 0; i < x->n; i++) {
        enum kind k;
        uint64_t n;
        unsigned t;
        const struct xs_event *e = &x->v[i];
        if (what_is(x, e, &k, &n, &t))
            note(&f[t][k], n, xs_int(x, e, "unfinished", 0) != 0,
                 kind_names[k]);
    }
    for (unsigned t = 0; t < THREADS; t++) check_thread(x, f[t], t, rescued);
    check_order(x);
    check_times(x, death_ns);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned k = 0; k < KINDS; k++) free(f[t][k].seen);
}

/* --- a kill ------------------------------------------------------------- */

static uint64_t kill_one(long us) {
    int status;
    memset(diary, 0, sizeof *diary);
    pid_t pid = rig_fork(victim, NULL, -1);
    while (__atomic_load_n(&diary->ready, __ATOMIC_ACQUIRE) == 0) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            fail_msg("the victim ended by itself: %x", status);
        rig_sleep_us(100);
    }
    rig_sleep_us(us);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(rig_rings(pid), 1);
    return rig_now_ns(CLOCK_REALTIME);
}

static void the_pointer(char out[PATH_MAX]) {
    glob_t g;
    assert_int_equal(rig_files(".ring", &g), 1);
    snprintf(out, PATH_MAX, "%s", g.gl_pathv[0]);
    globfree(&g);
}

/* Checks that reading changes nothing and gives the same again. */
static void read_twice(uint64_t death_ns) {
    char pointer[PATH_MAX], why[256] = "";
    struct recovered a, b;
    the_pointer(pointer);
    if (recover_read(pointer, &a, why, sizeof why) != 0 ||
        recover_read(pointer, &b, why, sizeof why) != 0)
        fail_msg("%s", why);
    assert_int_equal(a.state, RECOVER_DEAD);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    struct xs x = {0};
    xs_read(&x, a.p, a.n);
    if (!dumps) check(&x, death_ns, false);
    xs_free(&x);
    recover_free(&a);
    recover_free(&b);
}

static void rescuer(void *arg) {
    (void)arg;
    rig_rescue();
    _exit(0);
}

/* Kills the rescuer too, now and then. */
static void rescue_and_kill(unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        int status;
        pid_t pid = rig_fork(rescuer, NULL, -1);
        rig_sleep_us(rand() % 3000);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void check_rescued(uint64_t death_ns) {
    struct xs x = {0};
    rig_rescue();
    assert_int_equal(rig_count(".ring"), 0);
    assert_int_equal(rig_count(".part"), 0);
    assert_true(rig_load(&x) >= 1);
    check(&x, death_ns, true);
    xs_free(&x);
}

static void one_round(long us, unsigned kills) {
    rig_make_dir();
    uint64_t death_ns = kill_one(us);
    read_twice(death_ns);
    rescue_and_kill(kills);
    check_rescued(death_ns);
    rig_remove_dir();
}

static int rounds(void) {
    if (rig_slow()) return 6;
    return RIG_ASAN && !rig_full() ? LEAST : MOST;
}

static void test_moderate(void **state) {
    (void)state;
    fast = false;
    rig_options = (struct ops_options){.no_machine = true};
    for (int i = 0; i < rounds() * 2 / 3; i++)
        one_round(rand() % (i % 4 == 0 ? 1000 : 30000), 0);
}

static void test_fast(void **state) {
    (void)state;
    fast = true;
    rig_options = (struct ops_options){.no_machine = true,
                                       .ring_bytes = 1 << 16};
    for (int i = 0; i < rounds() / 6; i++) one_round(rand() % 15000, 0);
}

static void test_rescuer_killed(void **state) {
    (void)state;
    fast = false;
    rig_options = (struct ops_options){0};
    for (int i = 0; i < rounds() / 6; i++) one_round(rand() % 20000, 8);
}

/* Kills while parts are closed and begun; then the rescuer as well. */
static void test_rotation(void **state) {
    (void)state;
    fast = false;
    dumps = true;
    rig_options = (struct ops_options){.no_machine = true};
    for (int i = 0; i < rounds() / 6; i++) one_round(rand() % 10000, i % 2 * 6);
    dumps = false;
}

static int set_up(void **state) {
    (void)state;
    unsigned seed = (unsigned)(rig_now_ns(CLOCK_REALTIME) ^ (uint64_t)getpid());
    if (getenv("REC_SEED") != NULL) seed = (unsigned)atoll(getenv("REC_SEED"));
    print_message("# REC_SEED=%u\n", seed);
    srand(seed);
    diary = rig_shared(sizeof *diary);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moderate),
        cmocka_unit_test(test_fast),
        cmocka_unit_test(test_rescuer_killed),
        cmocka_unit_test(test_rotation),
    };
    return cmocka_run_group_tests_name("rec_kill", tests, set_up, NULL);
}
