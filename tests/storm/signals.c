/* SPDX-License-Identifier: Apache-2.0
 * Acts with signals, and jumps out of handlers and scopes. Each act has a
 * real-time signal of its own, so that what a handler counts is known. */
#include "storm.h"

#include <sys/mman.h>
#include <sys/time.h>

/* For each signal the act that asked for it, and how often it came. */
static struct {
    const struct act *act;
    unsigned seen, elsewhere;
    pid_t tid; /* where it is to come; 0: in any thread of ours */
} on[128];

#define GET(p)    __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define SET(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

static int signal_of(const struct act *a) {
    return SIGRTMIN + (int)arg_num(a, "sig", 0);
}

static pid_t tid_now(void) { return (pid_t)syscall(SYS_gettid); }

/* --- the handlers -------------------------------------------------------- */

/* Kind 0: scopes of the handler; kind 1: calls that it made. */
static void record_in_handler(uint32_t act) {
    struct name name = name_of(act, 0);
    note_tried(act, 1, 3);
    struct sure s = sure_before();
    note_tried(act, 0, 1);
    { OPS_SCOPE_INT(name.text, "handler", 1); }
    if (sure_after(s)) note_done(act, 0, 1);
}

static void handler(int sig) {
    const struct act *a = GET(&on[sig].act);
    pid_t tid = GET(&on[sig].tid);
    if (self == NULL) {
        fault(a->id, FAULT_FOREIGN, (uint64_t)sig, (uint64_t)tid_now());
        return;
    }
    if (tid != 0 && tid != tid_now())
        __atomic_fetch_add(&on[sig].elsewhere, 1, __ATOMIC_SEQ_CST);
    if (arg_num(a, "records", 0)) record_in_handler(a->id);
    __atomic_fetch_add(&on[sig].seen, 1, __ATOMIC_SEQ_CST);
}

static void handler_info(int sig, siginfo_t *info, void *context) {
    (void)info;
    (void)context;
    handler(sig);
}

static void take(const struct act *a, int sig, pid_t tid) {
    struct sigaction sa = {.sa_handler = handler};
    SET(&on[sig].act, a);
    SET(&on[sig].seen, 0);
    SET(&on[sig].elsewhere, 0);
    SET(&on[sig].tid, tid);
    sigemptyset(&sa.sa_mask);
    if (arg_num(a, "info", 0)) {
        sa.sa_sigaction = handler_info;
        sa.sa_flags |= SA_SIGINFO;
    }
    if (arg_num(a, "restart", 0)) sa.sa_flags |= SA_RESTART;
    if (arg_num(a, "onstack", 0)) sa.sa_flags |= SA_ONSTACK;
    sigaction(sig, &sa, NULL);
}

static unsigned seen(int sig) { return GET(&on[sig].seen); }

/* Waits at most a few seconds: a signal that went astray is a finding. */
static void await(int sig, unsigned n) {
    for (int i = 0; i < 5000 && seen(sig) < n; i++) sleep_us(1000);
}

/* --- the smallest stack for handlers ------------------------------------- */

enum { ALT_ROOM = 8192 }; /* beside the frame: what a handler may use */

static size_t alt_size(void) {
    long frame = sysconf(_SC_MINSIGSTKSZ);
    size_t n = (size_t)(frame > 0 ? frame : 4096) + ALT_ROOM;
    return SANITIZED ? 256 << 10 : (n + 4095) / 4096 * 4096;
}

/* Returns a stack below which lies a page that nobody may touch. */
static void *alt_stack(void) {
    size_t n = alt_size();
    char *p = mmap(NULL, n + 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    mprotect(p, 4096, PROT_NONE);
    stack_t s = {.ss_sp = p + 4096, .ss_size = n};
    sigaltstack(&s, NULL);
    return p;
}

static void alt_gone(void *p) {
    stack_t s = {.ss_flags = SS_DISABLE};
    sigaltstack(&s, NULL);
    if (p != NULL) munmap(p, alt_size() + 4096);
}

/* --- acts ---------------------------------------------------------------- */

static enum flow do_raise(const struct act *a) {
    int sig = signal_of(a);
    bool process = arg_is(a, "to", "process");
    bool alt = arg_num(a, "onstack", 0) != 0;
    int64_t n = arg_num(a, "n", 1);
    void *stack = alt ? alt_stack() : NULL;
    take(a, sig, process ? 0 : tid_now());
    for (int64_t i = 1; i <= n; i++) {
        if (process) kill(getpid(), sig);
        else pthread_kill(pthread_self(), sig);
        if (process) await(sig, (unsigned)i);
    }
    await(sig, (unsigned)n);
    signal(sig, SIG_IGN);
    if (alt) alt_gone(stack);
    say(a, "handled %u, elsewhere %u", seen(sig), GET(&on[sig].elsewhere));
    return GO_ON;
}

/* Sends a thousand signals a second, into any thread, while a body runs. */
static enum flow do_timer(const struct act *a) {
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    pid_t me = getpid();
    take(a, SIGALRM, 0);
    setitimer(ITIMER_REAL, &every, NULL);
    enum flow flow = run_body((uint32_t)arg_num(a, "body", 0));
    if (getpid() != me) return flow;
    setitimer(ITIMER_REAL, &never, NULL);
    return flow;
}

/* Blocked signals wait for the thread that they were sent to, whatever the
 * recorder does with masks meanwhile. */
static enum flow do_pending(const struct act *a) {
    int sig = signal_of(a);
    struct name name = name_of(a->id, 2);
    int64_t n = arg_num(a, "n", 1);
    sigset_t mask, old, now;
    sigemptyset(&mask);
    sigaddset(&mask, sig);
    pthread_sigmask(SIG_BLOCK, &mask, &old);
    take(a, sig, tid_now());
    for (int64_t i = 0; i < n; i++) pthread_kill(pthread_self(), sig);
    CALL(a->id, 2, ops_instant(name.text));
    if (arg_num(a, "flush", 0)) ops_flush();
    if (arg_num(a, "dump", 0)) ops_dump();
    if (arg_num(a, "again", 0)) session_restart();
    sigpending(&now);
    unsigned early = seen(sig);
    int waiting = sigismember(&now, sig);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    await(sig, (unsigned)n);
    signal(sig, SIG_IGN);
    say(a, "early %u, waiting %d, handled %u, elsewhere %u", early, waiting,
        seen(sig), GET(&on[sig].elsewhere));
    return GO_ON;
}

struct sender {
    pthread_t to;
    int sig;
    int64_t n;
    bool process;
};

static void *send_them(void *arg) {
    const struct sender *s = arg;
    for (int64_t i = 0; i < s->n; i++) {
        union sigval v = {.sival_int = (int)i};
        if (s->process) sigqueue(getpid(), s->sig, v);
        else pthread_sigqueue(s->to, s->sig, v);
    }
    return NULL;
}

/* Waits with sigwait() for one of the signals that all threads block. */
static enum flow do_sigwait(const struct act *a) {
    struct sender s = {pthread_self(),
                       SIGRTMIN + 20 + (int)arg_num(a, "sig", 0) % 4,
                       arg_num(a, "n", 1), arg_is(a, "to", "process")};
    const struct timespec limit = {5, 0};
    struct name name = name_of(a->id, 0);
    pthread_t t;
    sigset_t set;
    int64_t got = 0, sum = 0;
    if (thread_start(&t, 0, send_them, &s) != 0) return GO_ON;
    sigemptyset(&set);
    sigaddset(&set, s.sig);
    while (got < s.n) {
        siginfo_t info;
        int sig = sigtimedwait(&set, &info, &limit);
        if (sig < 0 && errno == EINTR) continue;
        if (sig < 0) break;
        got++;
        sum += info.si_value.sival_int;
        CALL(a->id, 0, ops_instant(name.text));
    }
    pthread_join(t, NULL);
    say(a, "waited for %lld, sum %lld", (long long)got, (long long)sum);
    return GO_ON;
}

/* The program has a handler of its own for the signal that a recorder may be
 * told to take: it is called all the same. */
static void usr1_handler(int sig) {
    (void)sig;
    if (self != NULL) __atomic_fetch_add(&self->usr1, 1, __ATOMIC_SEQ_CST);
}

void signals_begin(void) {
    struct sigaction sa = {.sa_handler = usr1_handler, .sa_flags = SA_RESTART};
    sigemptyset(&sa.sa_mask);
    sigaction(SIGUSR1, &sa, NULL);
}

static enum flow do_usr1(const struct act *a) {
    unsigned before = GET(&self->usr1);
    int64_t n = arg_num(a, "n", 1);
    for (int64_t i = 0; i < n; i++) pthread_kill(pthread_self(), SIGUSR1);
    say(a, "usr1 came %u times", GET(&self->usr1) - before);
    return GO_ON;
}

/* --- jumps --------------------------------------------------------------- */

static void jump_handler(int sig) {
    (void)sig;
    if (self == NULL || !self->may_jump) return;
    self->may_jump = 0;
    siglongjmp(self->jump, 1);
}

__attribute__((noinline)) static void jump_work(const char *name, unsigned i) {
    OPS_SCOPE(name);
    if (i % 3 == 0) ops_arg_int("seq", (int64_t)i);
}

/* Records until the handler jumps away, most often out of a call. */
static void work_until_jump(const struct act *a, timer_t timer, int64_t us) {
    struct name scope = name_of(a->id, 0), count = name_of(a->id, 1);
    struct itimerspec once = {{0, 0}, {0, us * 1000}};
    if (sigsetjmp(self->jump, 1) != 0) return;
    self->may_jump = 1;
    timer_settime(timer, 0, &once, NULL);
    for (unsigned i = 0;; i++) {
        CALL(a->id, 0, jump_work(scope.text, i));
        if (i % 4 == 0) CALL(a->id, 1, ops_counter(count.text, (double)i));
    }
}

/* Kind 2: what comes behind the last jump; kind 3: the jumps. */
static enum flow do_jump(const struct act *a) {
    int sig = signal_of(a);
    struct sigaction sa = {.sa_handler = jump_handler};
    struct name after = name_of(a->id, 2);
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sig};
    timer_t timer;
    volatile int64_t i, n = arg_num(a, "n", 1);
    sigemptyset(&sa.sa_mask);
    if (arg_num(a, "restart", 0)) sa.sa_flags = SA_RESTART;
    sigaction(sig, &sa, NULL);
    ev._sigev_un._tid = tid_now();
    if (timer_create(CLOCK_MONOTONIC, &ev, &timer) != 0) return GO_ON;
    for (i = 0; i < n; i++) {
        note_tried(a->id, 3, 1);
        work_until_jump(a, timer, 300 + i * 37 % 700);
    }
    timer_delete(timer);
    signal(sig, SIG_IGN);
    for (i = 0; i < 20; i++) CALL(a->id, 2, ops_instant(after.text));
    say(a, "jumped %lld times", (long long)n);
    return GO_ON;
}

/* Scopes that are left by longjmp end with the one around them. */
static void leave_scopes(const struct act *a, jmp_buf *back) {
    struct name inner = name_of(a->id, 1);
    for (int64_t i = arg_num(a, "depth", 2); i > 0; i--) {
        note_tried(a->id, 1, 1);
        ops_begin(inner.text);
    }
    longjmp(*back, 1);
}

__attribute__((noinline)) static void come_back(const struct act *a) {
    jmp_buf back;
    if (setjmp(back) == 0) leave_scopes(a, &back);
}

static void around_jump(const struct act *a, const char *name) {
    OPS_SCOPE(name);
    come_back(a);
}

static enum flow do_longjmp(const struct act *a) {
    struct name outer = name_of(a->id, 0);
    uint64_t depth = (uint64_t)arg_num(a, "depth", 2);
    for (int64_t i = 0, n = arg_num(a, "n", 1); i < n; i++) {
        struct sure s = sure_before();
        note_tried(a->id, 0, 1);
        around_jump(a, outer.text);
        if (!sure_after(s)) continue;
        note_done(a->id, 0, 1);
        note_done(a->id, 1, depth);
    }
    return GO_ON;
}

const struct verb signal_verbs[] = {
    {"raise", do_raise},     {"timer", do_timer}, {"pending", do_pending},
    {"sigwait", do_sigwait}, {"jump", do_jump},   {"longjmp", do_longjmp},
    {"usr1", do_usr1},       {NULL, NULL},
};
