/* SPDX-License-Identifier: Apache-2.0
 * Windows: exactly the steps that were asked for are in the profile, with what
 * they contain, and nothing else. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "opscope/record.h"
#include "rec/rig.h"

enum { STEPS = 300 };

static int64_t
    *asked_at; /* shared: the step in which a capture was asked for */

/* Makes a step with a scope, one by hand, an instant; others outside steps. */
static void step(int64_t i) {
    ops_step(i);
    OPS_SCOPE_INT("work", "i", i);
    ops_begin("by hand");
    ops_arg_int("i", i);
    ops_end();
    ops_instant("mark");
}

static void run_steps(void *arg) {
    (void)arg;
    rig_begin();
    { OPS_SCOPE("before"); }
    for (int64_t i = 0; i < STEPS; i++) step(i);
    ops_step_end();
    { OPS_SCOPE("after"); }
    exit(0);
}

static struct xs profile_of(void (*run)(void *)) {
    struct xs x = {0};
    struct rig_end e = rig_run(run, NULL);
    if (e.status != 0 || e.out[0] != 0)
        fail_msg("status %x: %s", e.status, e.out);
    assert_int_equal(rig_load(&x), 1);
    return x;
}

/* Finds the numbers of the events called `name`, each once. Returns how
 * many. */
static size_t numbers(const struct xs *x, const char *name, const char *key,
                      uint8_t seen[STEPS]) {
    size_t n = 0;
    memset(seen, 0, STEPS);
    for (size_t i = 0; i < x->n; i++) {
        if (strcmp(x->v[i].name, name) != 0) continue;
        int64_t k = xs_int(x, &x->v[i], key, -1);
        assert_true(k >= 0 && k < STEPS);
        assert_int_equal(seen[k]++, 0);
        assert_int_equal(xs_int(x, &x->v[i], "unfinished", 0), 0);
        n++;
    }
    return n;
}

static void expect_steps(const struct xs *x, const uint8_t want[STEPS]) {
    static const char *const names[][2] = {{"step", "step_num"},
                                           {"work", "i"},
                                           {"by hand", "i"}};
    uint8_t seen[STEPS];
    size_t wanted = 0;
    for (int i = 0; i < STEPS; i++) wanted += want[i];
    for (size_t k = 0; k < 3; k++) {
        numbers(x, names[k][0], names[k][1], seen);
        for (int i = 0; i < STEPS; i++)
            if (seen[i] != want[i])
                fail_msg("%s: %s %d is%s there", rig_options.steps, names[k][0],
                         i, seen[i] ? "" : " not");
    }
    assert_int_equal(xs_count(x, "mark"), wanted);
    assert_int_equal(xs_count(x, "before"), 0);
    assert_int_equal(xs_count(x, "after"), 0);
    assert_int_equal(xs_dropped(x), 0);
}

static void test_steps(void **state) {
    static const struct {
        const char *steps;
        int from, to, every, length;
    } cases[] = {
        {"100..102", 100, 102, 1, 1},
        {"299", 299, 299, 1, 1},
        {"0", 0, 0, 1, 1},
        {"250..", 250, 299, 1, 1},
        {"every 50", 0, 299, 50, 1},
        {"every 50 for 3", 0, 299, 50, 3},
        {"1000..2000", 1, 0, 1, 1},
    };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint8_t want[STEPS] = {0};
        rig_remove_dir();
        rig_make_dir();
        rig_options.steps = cases[c].steps;
        for (int i = cases[c].from; i <= cases[c].to; i++)
            want[i] = (i - cases[c].from) % cases[c].every < cases[c].length;
        struct xs x = profile_of(run_steps);
        expect_steps(&x, want);
        xs_free(&x);
    }
}

static void test_list(void **state) {
    uint8_t want[STEPS] = {0};
    (void)state;
    rig_options.steps = "1,10,100";
    want[1] = want[10] = want[100] = 1;
    struct xs x = profile_of(run_steps);
    expect_steps(&x, want);
    xs_free(&x);
}

/* --- by time ------------------------------------------------------------ */

static void run_time(void *arg) {
    (void)arg;
    rig_begin();
    uint64_t until = rig_now_ns(CLOCK_MONOTONIC) + 20000000000;
    while (!ops_recording()) {
        OPS_SCOPE("before");
        if (rig_now_ns(CLOCK_MONOTONIC) > until) exit(97);
    }
    while (ops_recording()) {
        OPS_SCOPE("inside");
    }
    for (int i = 0; i < 1000; i++) {
        OPS_SCOPE("after");
    }
    exit(0);
}

static void test_time(void **state) {
    (void)state;
    rig_options.steps = "50ms..300ms";
    struct xs x = profile_of(run_time);
    assert_true(xs_count(&x, "inside") > 0);
    assert_int_equal(xs_count(&x, "after"), 0);
    /* one may have begun between two looks at the state */
    assert_true(xs_count(&x, "before") <= 1);
    for (size_t i = 0; i < x.n; i++)
        if (strcmp(x.v[i].name, "inside") == 0)
            assert_true(x.v[i].start >= 50000000000);
    xs_free(&x);
}

/* --- on demand ---------------------------------------------------------- */

static bool by_file;

static void ask(void) {
    char path[PATH_MAX + 32];
    if (!by_file) {
        raise(SIGUSR1);
        return;
    }
    snprintf(path, sizeof path, "%s/opscope.capture", rig_dir);
    close(open(path, O_WRONLY | O_CREAT, 0666));
}

static int own_signals;
static void own_handler(int sig) {
    (void)sig;
    own_signals++;
}

static void run_demand(void *arg) {
    int64_t i = 0;
    (void)arg;
    signal(SIGUSR1, own_handler);
    rig_begin();
    for (; i < 20; i++) step(i);
    *asked_at = i;
    ask();
    while (!ops_recording() && i < STEPS - 20) { /* soon, not at once */
        step(i++);
        rig_sleep_us(2000);
    }
    for (int k = 0; k < 10; k++) step(i++);
    if (!by_file && own_signals != 1) exit(98); /* the program's own got it */
    exit(0);
}

static void check_demand(void) {
    uint8_t seen[STEPS];
    struct xs x = profile_of(run_demand);
    assert_int_equal(numbers(&x, "step", "step_num", seen), 4);
    int first = 0;
    while (!seen[first]) first++;
    assert_true(first >= *asked_at);
    for (int i = first; i < first + 4; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(numbers(&x, "work", "i", seen), 4);
    for (int i = first; i < first + 4; i++) assert_int_equal(seen[i], 1);
    xs_free(&x);
}

static void test_demand_signal(void **state) {
    (void)state;
    rig_options = (struct ops_options){.no_machine = true,
                                       .steps = "demand",
                                       .signal = SIGUSR1,
                                       .demand_steps = 4};
    by_file = false;
    check_demand();
}

static void test_demand_file(void **state) {
    (void)state;
    rig_options = (struct ops_options){.no_machine = true,
                                       .steps = "demand",
                                       .demand_steps = 4};
    by_file = true;
    check_demand();
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/opscope.capture", rig_dir);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* --- begins and ends on two sides of a border --------------------------- */

static void run_borders(void *arg) {
    (void)arg;
    rig_begin();
    ops_begin("out 1"); /* not recorded: before the window */
    ops_step(0);
    ops_begin("out 2");
    ops_step(1); /* the window opens */
    ops_begin("in 1");
    ops_begin("in 2");
    ops_end();
    ops_step(2); /* and closes: in 1 is open */
    ops_begin("out 3");
    ops_begin("out 4");
    rig_sleep_us(3000);
    ops_end();
    ops_step(3); /* opens again */
    ops_begin("in 3");
    ops_end();
    ops_end(); /* out 3 */
    rig_sleep_us(3000);
    ops_end(); /* in 1 */
    ops_end(); /* out 2 */
    ops_begin("in 4");
    ops_end();
    ops_end(); /* out 1 */
    exit(0);
}

static void test_borders(void **state) {
    (void)state;
    rig_options.steps = "1,3";
    struct xs x = profile_of(run_borders);
    for (size_t i = 0; i < x.n; i++) {
        if (strncmp(x.v[i].name, "out", 3) == 0)
            fail_msg("%s was outside", x.v[i].name);
        /* it lasts over both pauses: no other's end has ended it */
        if (strcmp(x.v[i].name, "in 1") == 0)
            assert_true(x.v[i].end - x.v[i].start >= 6000000000);
    }
    assert_int_equal(xs_count(&x, "in 1"), 1);
    assert_int_equal(xs_count(&x, "in 2"), 1);
    assert_int_equal(xs_count(&x, "in 3"), 1);
    assert_int_equal(xs_count(&x, "in 4"), 1);
    assert_int_equal(xs_dropped(&x), 0);
    xs_free(&x);
}

/* --- children ------------------------------------------------------------ */

/* Steps 2 to 4 are wanted. Children that mark no steps do as their parent does:
 * of one that is made in step 3 all is recorded, of one that waits for step 3
 * what it does from then on, of one in step 7 nothing. One that marks steps has
 * a window of its own. */
static void run_children(void *arg) {
    int ready[2], go[2];
    char c;
    (void)arg;
    if (pipe(ready) != 0 || pipe(go) != 0) exit(98);
    rig_begin();
    ops_step(0);
    pid_t early = fork();
    if (early == 0) {
        close(go[1]);
        ops_instant("too early");
        if (write(ready[1], "x", 1) != 1 || read(go[0], &c, 1) != 0) _exit(97);
        while (!ops_recording()) rig_sleep_us(1000);
        ops_instant("early");
        exit(0);
    }
    if (read(ready[0], &c, 1) != 1) exit(96);
    for (int64_t i = 1; i < 10; i++) {
        ops_step(i);
        ops_instant("parent");
        if (i == 3) close(go[1]);
        if (i == 3) waitpid(early, NULL, 0);
        if ((i == 3 || i == 7) && fork() == 0) {
            for (int k = 0; k < 20; k++) ops_instant(i == 3 ? "in" : "out");
            exit(0);
        }
        if (i == 7 && fork() == 0) {
            for (int64_t k = 0; k < 6; k++) {
                ops_step(k);
                ops_instant("of its own");
            }
            exit(0);
        }
        if (i == 8)
            while (wait(NULL) > 0) {
            }
    }
    exit(0);
}

static void test_children(void **state) {
    struct xs x = {0};
    (void)state;
    if (RIG_ASAN || RIG_TSAN)
        skip_because("under sanitizers: forks of a threaded program");
    rig_options.steps = "2..4";
    struct rig_end e = rig_run(run_children, NULL);
    if (e.status != 0 || e.out[0] != 0)
        fail_msg("status %x: %s", e.status, e.out);
    /* who did nothing in the window leaves no file */
    assert_int_equal(rig_load(&x), 4);
    assert_int_equal(xs_count(&x, "parent"), 3);
    assert_int_equal(xs_count(&x, "in"), 20);
    assert_int_equal(xs_count(&x, "early"), 1);
    assert_int_equal(xs_count(&x, "of its own"), 3);
    assert_int_equal(xs_count(&x, "out"), 0);
    assert_int_equal(xs_count(&x, "too early"), 0);
    assert_int_equal(xs_dropped(&x), 0);
    xs_free(&x);
}

/* --- the harness -------------------------------------------------------- */

static void none_asked(void) { asked_at = rig_shared(sizeof *asked_at); }

RIG_MAIN("rec_steps", none_asked, CASE(test_steps), CASE(test_list),
         CASE(test_time), CASE(test_demand_signal), CASE(test_demand_file),
         CASE(test_borders), CASE(test_children))
