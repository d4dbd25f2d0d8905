/* SPDX-License-Identifier: Apache-2.0
 * Acts that make threads, and the ways in which one ends. */
#include "storm.h"

#include <limits.h>
#include <semaphore.h>

__thread struct self *self;

enum { STACK_SANITIZED = 512 << 10 };

/* Blocks the signals that are only ever waited for, in every thread. */
static void block_waited(void) {
    sigset_t s;
    sigemptyset(&s);
    for (int i = 20; i < 24; i++) sigaddset(&s, SIGRTMIN + i);
    pthread_sigmask(SIG_BLOCK, &s, NULL);
}

void self_begin(struct self *s, bool first) {
    self = s;
    s->first = first;
    if (!first) return;
    block_waited();
    signals_begin();
}

/* The smallest stack that the system allows has room for a signal's frame above
 * it: the program sees to that. */
size_t stack_size(int64_t wanted) {
    long least = sysconf(_SC_THREAD_STACK_MIN);
    long frame = sysconf(_SC_MINSIGSTKSZ);
    size_t n = (size_t)wanted;
    if (least < PTHREAD_STACK_MIN) least = PTHREAD_STACK_MIN;
    if (frame < 0) frame = 4096;
    if (n < (size_t)least) n = (size_t)least;
    n += ((size_t)frame + 4095) / 4096 * 4096;
    if (SANITIZED && n < STACK_SANITIZED) n = STACK_SANITIZED;
    return n;
}

struct start {
    void *(*run)(void *);
    void *arg;
    sigset_t mask;
};

/* Every thread of this program knows that it is one, from before its first
 * signal to behind its last. */
static void *begin(void *arg) {
    static struct self nobody;
    struct self own = {0};
    struct start s = *(struct start *)arg;
    free(arg);
    self_begin(&own, false);
    pthread_sigmask(SIG_SETMASK, &s.mask, NULL);
    void *result = s.run(s.arg);
    self = &nobody;
    return result;
}

/* A stack of 0 is as large as usual. */
int thread_start(pthread_t *t, int64_t stack, void *(*run)(void *), void *arg) {
    pthread_attr_t a;
    sigset_t all;
    struct start *s = malloc(sizeof *s);
    if (s == NULL) return ENOMEM;
    s->run = run;
    s->arg = arg;
    model_threads();
    pthread_attr_init(&a);
    if (stack > 0) pthread_attr_setstacksize(&a, stack_size(stack));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &s->mask);
    sigset_t mask = s->mask;
    int error = pthread_create(t, &a, begin, s);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_attr_destroy(&a);
    if (error != 0) free(s);
    return error;
}

static void *run_thread(void *arg) {
    const struct act *a = arg;
    if (run_body((uint32_t)arg_num(a, "body", 0)) == GO_ON) settle();
    return NULL;
}

static enum flow do_thread(const struct act *a) {
    pthread_t t;
    int error = thread_start(&t, arg_num(a, "stack", 0), run_thread,
                             (void *)(uintptr_t)a);
    if (error != 0) say(a, "no thread: %d", error);
    else if (arg_is(a, "how", "join")) pthread_join(t, NULL);
    else if (arg_is(a, "how", "late") && self->nlate < LATER)
        self->late[self->nlate++] = t;
    else pthread_detach(t);
    return GO_ON;
}

/* --- many at once -------------------------------------------------------- */

static void *short_thread(void *arg) {
    const struct act *a = arg;
    struct name name = name_of(a->id, 0);
    CALL(a->id, 0, ops_instant(name.text));
    return NULL;
}

/* Threads that come and go: rings change hands. */
static enum flow do_crowd(const struct act *a) {
    enum { MOST = 32 };
    pthread_t t[MOST];
    int64_t n = arg_num(a, "n", 4), made = 0;
    if (n > MOST) n = MOST;
    for (int64_t r = 0; r < arg_num(a, "rounds", 1); r++, made = 0) {
        while (made < n &&
               thread_start(&t[made], arg_num(a, "stack", 0), short_thread,
                            (void *)(uintptr_t)a) == 0)
            made++;
        for (int64_t i = 0; i < made; i++) pthread_join(t[i], NULL);
    }
    return GO_ON;
}

/* --- the last word of a thread ------------------------------------------- */

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* Runs before or after the recorder's own destructor, and then once more. */
static void at_thread_end(void *arg) {
    const struct act *a = arg;
    struct name name = name_of(a->id, 0);
    CALL(a->id, 0, ops_instant(name.text));
}

static void make_key(void) { pthread_key_create(&key, at_thread_end); }

static enum flow do_keyed(const struct act *a) {
    pthread_once(&key_once, make_key);
    pthread_setspecific(key, a);
    return GO_ON;
}

/* --- cancellation -------------------------------------------------------- */

struct victim {
    const struct act *act;
    sem_t ready;
    unsigned cleaned;
};

static void clean_up(void *arg) {
    struct victim *v = arg;
    struct name name = name_of(v->act->id, 1);
    v->cleaned++;
    CALL(v->act->id, 1, ops_instant(name.text));
}

__attribute__((noinline)) static void
victim_work(const struct act *a, const char *name, unsigned i) {
    OPS_SCOPE(name);
    if (arg_num(a, "flush", 0) && i % 4 == 0) ops_flush();
    if (arg_num(a, "dump", 0) && i % 16 == 0) ops_dump();
}

/* Is cancelled only where it says so: never in the middle of a call, though
 * some calls wait and write. */
static void *deferred(void *arg) {
    struct victim *v = arg;
    struct name name = name_of(v->act->id, 0);
    pthread_cleanup_push(clean_up, v);
    for (unsigned i = 0;; i++) {
        CALL(v->act->id, 0, victim_work(v->act, name.text, i));
        if (i == 10) sem_post(&v->ready);
        if (i % 2 == 0) pthread_testcancel();
        else sleep_us(50);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* May be cancelled anywhere, but calls nothing of the recorder meanwhile. */
static void *any_time(void *arg) {
    struct victim *v = arg;
    struct name name = name_of(v->act->id, 0);
    CALL(v->act->id, 0, ops_instant(name.text));
    pthread_cleanup_push(clean_up, v);
    sem_post(&v->ready);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) __asm__ volatile("" ::: "memory");
    pthread_cleanup_pop(0);
    return NULL;
}

static enum flow do_cancel(const struct act *a) {
    struct victim v = {.act = a};
    pthread_t t;
    void *result = NULL;
    sem_init(&v.ready, 0, 0);
    int error = thread_start(&t, 0,
                             arg_num(a, "async", 0) ? any_time : deferred, &v);
    if (error != 0) return GO_ON;
    while (sem_wait(&v.ready) != 0 && errno == EINTR) {
    }
    sleep_us(arg_num(a, "after", 200));
    pthread_cancel(t);
    pthread_join(t, &result);
    say(a, "%s, cleaned up %u times",
        result == PTHREAD_CANCELED ? "cancelled" : "not cancelled", v.cleaned);
    sem_destroy(&v.ready);
    return GO_ON;
}

const struct verb thread_verbs[] = {
    {"thread", do_thread}, {"crowd", do_crowd}, {"keyed", do_keyed},
    {"cancel", do_cancel}, {NULL, NULL},
};
