/* SPDX-License-Identifier: Apache-2.0
 * Acts that record. Each notes in the diary what it tries and what it has
 * done; numbers count from 1 within an act, so that a record that is there
 * twice shows. */
#include "storm.h"

enum { NUMBERS = 100000 }; /* step numbers of one act: act * this + n */

static int64_t count_of(const struct act *a) { return arg_num(a, "n", 1); }

static enum ops_kind kind_of(const struct act *a) {
    return (enum ops_kind)arg_num(a, "kind", OPS_KIND_OP);
}

/* --- scopes -------------------------------------------------------------- */

static void put_args(const char *which, int64_t i) {
    if (strcmp(which, "none") == 0) return;
    ops_arg_int("seq", i);
    if (strcmp(which, "num") == 0) ops_arg_num("half", (double)i / 2);
    if (strcmp(which, "text") == 0) ops_arg_text("file", "a name of a file");
    if (strcmp(which, "long") == 0)
        ops_arg_text("long",
                     "a text that is longer than it need be, since it "
                     "says nothing at all, and says that twice: since it says "
                     "nothing at all");
    if (strcmp(which, "many") == 0)
        for (int k = 0; k < 12; k++) ops_arg_int("k", k);
}

static void one_scope(const struct act *a, const char *name, int64_t i,
                      int64_t hold) {
    OPS_SCOPE_AS(kind_of(a), name);
    put_args(arg_text(a, "args", "none"), i);
    if (hold > 0) sleep_us(hold);
    if (hold > 0) errno = ERRNO_PROBE;
}

static enum flow do_scope(const struct act *a) {
    struct name name = name_of(a->id, 0);
    int64_t n = count_of(a), hold = arg_num(a, "hold", 0);
    for (int64_t i = 1; i <= n; i++)
        CALL(a->id, 0, one_scope(a, name.text, i, i % 8 == 0 ? hold : 0));
    return GO_ON;
}

/* The name stands at the call site: it is the same for all acts. */
static void one_literal(const struct act *a, int64_t i) {
    OPS_SCOPE_INT("literal", "act", a->id);
    ops_arg_int("seq", i);
}

static enum flow do_literal(const struct act *a) {
    for (int64_t i = 1, n = count_of(a); i <= n; i++)
        CALL(a->id, 0, one_literal(a, i));
    return GO_ON;
}

/* Opens scopes by hand, each in the one before. */
static void one_nest(const struct act *a, unsigned depth, unsigned most) {
    struct name name = name_of(a->id, depth);
    CALL(a->id, depth, {
        ops_begin(name.text);
        if (depth + 1 < most) one_nest(a, depth + 1, most);
        errno = ERRNO_PROBE;
        ops_end();
    });
}

static enum flow do_hand(const struct act *a) {
    unsigned depth = (unsigned)arg_num(a, "depth", 1);
    for (int64_t i = 1, n = count_of(a); i <= n; i++) one_nest(a, 0, depth);
    return GO_ON;
}

static enum flow in_scope(const struct act *a, const char *name) {
    OPS_SCOPE_AS(kind_of(a), name);
    return run_body((uint32_t)arg_num(a, "body", 0));
}

static enum flow by_hand(const char *name, uint32_t body) {
    ops_begin(name);
    enum flow flow = run_body(body);
    ops_end();
    return flow;
}

/* Runs a body inside a scope. RETURN comes in a child of a fork that was made
 * there: the scope is not its own. */
static enum flow do_within(const struct act *a) {
    struct name name = name_of(a->id, 0);
    struct sure s = sure_before();
    note_tried(a->id, 0, 1);
    enum flow flow = arg_num(a, "hand", 0)
                         ? by_hand(name.text, (uint32_t)arg_num(a, "body", 0))
                         : in_scope(a, name.text);
    if (flow == GO_ON && sure_after(s)) note_done(a->id, 0, 1);
    return flow;
}

/* Calls ops_end() without a begin. */
static enum flow do_badend(const struct act *a) {
    for (int64_t i = 1, n = count_of(a); i <= n; i++) {
        note_tried(a->id, 0, 1);
        ops_end();
    }
    return GO_ON;
}

/* Goes deeper than is recorded. */
static void go_deep(const struct act *a, const char *name, int64_t left) {
    OPS_SCOPE(name);
    ops_arg_int("seq", left);
    if (left > 1) go_deep(a, name, left - 1);
}

static enum flow do_deep(const struct act *a) {
    struct name name = name_of(a->id, 0);
    int64_t n = count_of(a);
    struct sure s = sure_before();
    note_tried(a->id, 0, (uint64_t)n);
    go_deep(a, name.text, n);
    if (sure_after(s)) note_done(a->id, 0, (uint64_t)n);
    return GO_ON;
}

/* --- points -------------------------------------------------------------- */

static enum flow do_instant(const struct act *a) {
    struct name name = name_of(a->id, 0);
    for (int64_t i = 1, n = count_of(a); i <= n; i++)
        CALL(a->id, 0, ops_instant(name.text));
    return GO_ON;
}

static enum flow do_counter(const struct act *a) {
    struct name name = name_of(a->id, 0);
    for (int64_t i = 1, n = count_of(a); i <= n; i++)
        CALL(a->id, 0, ops_counter(name.text, (double)i));
    return GO_ON;
}

/* Uses addresses that no other act has. */
static enum flow do_memory(const struct act *a) {
    struct name tag = name_of(a->id, 0);
    for (int64_t i = 1, n = count_of(a); i <= n; i++) {
        void *p = (void *)((uintptr_t)a->id << 24 | (uintptr_t)i << 4 | 8);
        CALL(a->id, 0, ops_alloc(p, (size_t)i, tag.text));
        CALL(a->id, 1, ops_free(p));
    }
    return GO_ON;
}

/* Scalars are written whether or not a window is open. */
static enum flow do_scalar(const struct act *a) {
    struct name tag = name_of(a->id, 0);
    for (int64_t i = 1, n = count_of(a); i <= n; i++)
        CALL(a->id, 0, ops_scalar(tag.text, i, (double)i));
    return GO_ON;
}

/* --- steps --------------------------------------------------------------- */

/* A step moves a window of steps. */
static void move(void (*call)(int64_t), int64_t number) {
    bool moves = is_windowed();
    if (moves) change_begins();
    errno = ERRNO_PROBE;
    call(number);
    if (errno != ERRNO_PROBE) fault(0, FAULT_ERRNO, (uint64_t)errno, 0);
    if (moves) change_ends();
}

static void step_end(int64_t number) {
    (void)number;
    ops_step_end();
}

static void epoch_end(int64_t number) {
    (void)number;
    ops_epoch_end();
}

/* A step ends with the next: it is done when the next one has begun. */
static enum flow steps(const struct act *a, void (*begin)(int64_t),
                       void (*end)(int64_t)) {
    struct name name = name_of(a->id, 1);
    struct sure last = {0, false};
    for (int64_t i = 1, n = count_of(a); i <= n + 1; i++) {
        struct sure s = sure_before();
        if (i <= n) note_tried(a->id, 0, 1);
        if (i <= n) move(begin, (int64_t)a->id * NUMBERS + i);
        else move(end, 0);
        if (i > 1 && sure_after(last)) note_done(a->id, 0, 1);
        last = s;
        if (i <= n) CALL(a->id, 1, one_scope(a, name.text, i, 0));
    }
    return GO_ON;
}

static enum flow do_step(const struct act *a) {
    return steps(a, ops_step, step_end);
}

static enum flow do_epoch(const struct act *a) {
    return steps(a, ops_epoch, epoch_end);
}

/* --- work that is not a scope of a thread -------------------------------- */

enum { ASYNCS = 64 };

struct asyncs {
    const struct act *act;
    struct ops_async v[ASYNCS];
    struct sure sure[ASYNCS];
    int64_t n;
};

static void *end_asyncs(void *arg) {
    struct asyncs *x = arg;
    for (int64_t i = x->n; i-- > 0;) {
        errno = ERRNO_PROBE;
        ops_async_end(&x->v[i]);
        if (errno != ERRNO_PROBE)
            fault(x->act->id, FAULT_ERRNO, (uint64_t)errno, 0);
        if (sure_after(x->sure[i])) note_done(x->act->id, 0, 1);
    }
    return NULL;
}

static enum flow do_async(const struct act *a) {
    struct asyncs x = {.act = a, .n = count_of(a)};
    struct name name = name_of(a->id, 0);
    pthread_t t;
    if (x.n > ASYNCS) x.n = ASYNCS;
    for (int64_t i = 0; i < x.n; i++) {
        x.sure[i] = sure_before();
        note_tried(a->id, 0, 1);
        x.v[i] = ops_async_begin(OPS_KIND_COMM, name.text);
    }
    if (arg_num(a, "cross", 0) == 0) {
        end_asyncs(&x);
    } else if (thread_start(&t, 0, end_asyncs, &x) == 0) {
        pthread_join(t, NULL);
    }
    return GO_ON;
}

static void one_flow(const char *name, uint64_t id, bool out) {
    OPS_SCOPE(name);
    ops_arg_int("seq", (int64_t)(id % NUMBERS));
    if (out) ops_flow_out(id);
    else ops_flow_in(id);
}

static enum flow do_flow(const struct act *a) {
    struct name out = name_of(a->id, 0), in = name_of(a->id, 1);
    for (int64_t i = 1, n = count_of(a); i <= n; i++) {
        uint64_t id = (uint64_t)a->id * NUMBERS + (uint64_t)i;
        CALL(a->id, 0, one_flow(out.text, id, true));
        CALL(a->id, 1, one_flow(in.text, id, false));
    }
    return GO_ON;
}

/* A track belongs to the session in which it was made. */
static void one_span(const struct act *a, const char *name, int64_t i) {
    char queue[24];
    snprintf(queue, sizeof queue, "q%u", a->id % 8);
    uint32_t track = ops_device_track("npu", queue);
    uint64_t now = ops_now();
    errno = ERRNO_PROBE;
    ops_device_span(track, name, now, now + (uint64_t)i, (uint64_t)i);
}

static enum flow do_device(const struct act *a) {
    struct name name = name_of(a->id, 0);
    for (int64_t i = 1, n = count_of(a); i <= n; i++)
        CALL(a->id, 0, one_span(a, name.text, i));
    return GO_ON;
}

static enum flow do_name(const struct act *a) {
    struct name name = name_of(a->id, 0);
    errno = ERRNO_PROBE;
    ops_thread_name(name.text);
    if (errno != ERRNO_PROBE) fault(a->id, FAULT_ERRNO, (uint64_t)errno, 0);
    return GO_ON;
}

/* A device's tracer that has its records when it is asked for them. */
struct tracer {
    struct ops_device_tracer t;
    struct name name;
    uint64_t n, given;
};

static int tracer_start(void *self_) {
    (void)self_;
    return 0;
}

static void tracer_stop(void *self_) { (void)self_; }

static uint64_t
tracer_collect(void *self_,
               void (*give)(void *, const struct ops_device_record *, size_t),
               void *to) {
    struct tracer *x = self_;
    for (uint64_t i = x->given; i < x->n; i++) {
        uint64_t now = ops_now();
        struct ops_device_record r = {.queue = "traced",
                                      .name = x->name.text,
                                      .t0 = now,
                                      .t1 = now + 1,
                                      .corr = i + 1,
                                      .bytes = -1};
        give(to, &r, sizeof r);
        __atomic_store_n(&x->given, i + 1, __ATOMIC_RELEASE);
    }
    return 0;
}

/* null: the device has no name, as in a program with a bug. */
static enum flow do_tracer(const struct act *a) {
    struct tracer x = {.t = {.device = arg_num(a, "null", 0) ? NULL : "npu",
                             .start = tracer_start,
                             .stop = tracer_stop,
                             .collect = tracer_collect},
                       .name = name_of(a->id, 0),
                       .n = (uint64_t)count_of(a)};
    struct name name = name_of(a->id, 1);
    x.t.self = &x;
    CALL(a->id, 1, ops_instant(name.text)); /* a child starts by a record */
    struct sure s = sure_before();
    note_tried(a->id, 0, x.n);
    bool on = ops_device_tracer_add(&x.t) == 0;
    for (int i = 0; i < 200 && on && ops_recording(); i++) {
        ops_flush(); /* who has answered it is not collecting */
        if (__atomic_load_n(&x.given, __ATOMIC_ACQUIRE) == x.n) break;
        sleep_us(1000);
    }
    if (on) ops_device_tracer_remove(&x.t);
    if (sure_after(s) && x.given == x.n && !arg_num(a, "null", 0))
        note_done(a->id, 0, x.n);
    return GO_ON;
}

/* Passes what a program that has a bug passes. */
static enum flow do_nulls(const struct act *a) {
    const char *volatile null = NULL;
    (void)a;
    ops_thread_name(null);
    ops_alloc(NULL, 5, "nothing");
    ops_free(NULL);
    (void)ops_device_track("npu", null);
    (void)ops_device_track(null, "q");
    ops_set_rank(-1, 5);
    ops_device_span(0, "nowhere", 1, 2, 3);
    return GO_ON;
}

/* --- time ---------------------------------------------------------------- */

static enum flow do_sleep(const struct act *a) {
    sleep_us(arg_num(a, "us", 100));
    return GO_ON;
}

static enum flow do_yield(const struct act *a) {
    for (int64_t i = 0, n = count_of(a); i < n; i++) sched_yield();
    return GO_ON;
}

const struct verb record_verbs[] = {
    {"scope", do_scope},     {"literal", do_literal}, {"hand", do_hand},
    {"within", do_within},   {"badend", do_badend},   {"deep", do_deep},
    {"instant", do_instant}, {"counter", do_counter}, {"memory", do_memory},
    {"scalar", do_scalar},   {"step", do_step},       {"epoch", do_epoch},
    {"async", do_async},     {"flow", do_flow},       {"device", do_device},
    {"name", do_name},       {"nulls", do_nulls},     {"sleep", do_sleep},
    {"yield", do_yield},     {"tracer", do_tracer},   {NULL, NULL},
};
