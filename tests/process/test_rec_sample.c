/* SPDX-License-Identifier: Apache-2.0
 * The machine sampler, against other figures of the kernel: smaps_rollup (a walk
 * over the page tables) for RSS, getrusage and the CPU clocks before and after
 * for rates, and what the test itself did: pages touched, bytes written.
 *
 * The sampler is told the time: two runs one second apart, whatever the clock
 * says, make a rate equal to the count. */
#include "rec/machine/sample.h"
#include "rec/temp.h"
#include "ring/sanitized.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define MIB    (1024.0 * 1024.0)

struct bag {
    int n;
    struct {
        char name[96];
        double value;
    } got[512];
};

static void keep(void *to, const char *counter, double value) {
    struct bag *b = to;
    assert_true(b->n < 512);
    snprintf(b->got[b->n].name, sizeof b->got[0].name, "%s", counter);
    b->got[b->n++].value = value;
}

/* Returns the value of the counter whose name begins so; -1 if it was not
 * given. */
static double value_of(const struct bag *b, const char *begin) {
    for (int i = 0; i < b->n; i++)
        if (strncmp(b->got[i].name, begin, strlen(begin)) == 0)
            return b->got[i].value;
    return -1;
}

static int count_of(const struct bag *b, const char *begin) {
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += strncmp(b->got[i].name, begin, strlen(begin)) == 0;
    return n;
}

static struct sample *opened(void) {
    struct sample *s = malloc(sizeof *s);
    assert_non_null(s);
    memset(s, 0xa5, sizeof *s); /* open must not rely on what was there */
    sample_open(s);
    return s;
}

static void closed(struct sample *s) {
    sample_close(s);
    free(s);
}

/* Gives the sampler's numbers over what `work` does: rates are counts. */
static void sampled(void (*work)(void *), void *arg, struct bag *b) {
    struct sample *s = opened();
    struct bag *first = calloc(1, sizeof *first);
    sample_run(s, SECOND, keep, first);
    work(arg);
    memset(b, 0, sizeof *b);
    sample_run(s, 2 * SECOND, keep, b);
    free(first);
    closed(s);
}

static double file_field_kib(const char *path, const char *key) {
    char line[256];
    double kib = -1;
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtod(line + strlen(key), NULL);
    fclose(f);
    return kib;
}

enum { BLOCK = 64 << 20 };

static void rss_and_peak_follow_what_is_touched(void **state) {
    (void)state;
    if (SANITIZED_THREAD)
        skip_because("under sanitizers: its shadow grows with what is touched");
    struct bag before = {0}, held = {0}, after = {0};
    struct sample *s = opened();
    sample_run(s, SECOND, keep, &before);
    char *p = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    memset(p, 1, BLOCK);
    sample_run(s, 2 * SECOND, keep, &held);
    double walked = file_field_kib("/proc/self/smaps_rollup", "Rss:");
    munmap(p, BLOCK);
    sample_run(s, 3 * SECOND, keep, &after);
    closed(s);
    const char *rss = "memory: RSS (bytes)", *peak = "memory: peak RSS (bytes)";
    double grown = value_of(&held, rss) - value_of(&before, rss);
    /* the kernel keeps the count in parts, one per CPU: some pages off */
    assert_true(grown > BLOCK - 4 * MIB && grown < BLOCK + 4 * MIB);
    if (walked > 0) {
        double off = value_of(&held, rss) - walked * 1024;
        assert_true(off > -4 * MIB && off < 4 * MIB);
    }
    double back = value_of(&after, rss) - value_of(&before, rss);
    assert_true(back > -4 * MIB && back < 4 * MIB);
    assert_true(value_of(&after, peak) >= value_of(&held, rss) - 4 * MIB);
    double status = file_field_kib("/proc/self/status", "VmHWM:") * 1024;
    assert_true(value_of(&after, peak) <= status + 4 * MIB);
}

struct usage {
    struct rusage before, after;
};

static void touch_pages(void *arg) {
    struct usage *u = arg;
    getrusage(RUSAGE_SELF, &u->before);
    char *p = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    madvise(p, BLOCK, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < BLOCK; i += 4096) p[i] = 1;
    munmap(p, BLOCK);
    getrusage(RUSAGE_SELF, &u->after);
}

static void page_faults_are_counted(void **state) {
    (void)state;
    struct usage u;
    struct bag b;
    sampled(touch_pages, &u, &b);
    double faults = (double)(u.after.ru_minflt - u.before.ru_minflt);
    double got = value_of(&b, "page faults: minor (per s)");
    long pages = BLOCK / sysconf(_SC_PAGESIZE);
    assert_true(faults >= (double)pages);
    assert_true(got >= faults && got < faults + 200);
    double major = value_of(&b, "page faults: major (per s)");
    assert_true(major >= (double)(u.after.ru_majflt - u.before.ru_majflt));
}

static void sleep_often(void *arg) {
    struct usage *u = arg;
    struct timespec t = {0, 100000};
    getrusage(RUSAGE_SELF, &u->before);
    for (int i = 0; i < 60; i++) nanosleep(&t, NULL);
    getrusage(RUSAGE_SELF, &u->after);
}

static void context_switches_are_counted(void **state) {
    (void)state;
    struct usage u;
    struct bag b;
    sampled(sleep_often, &u, &b);
    double real = (double)(u.after.ru_nvcsw - u.before.ru_nvcsw);
    double got = value_of(&b, "context switches: voluntary (per s)");
    assert_true(real >= 1); /* on a busy machine a sleep may be over at once */
    assert_true(got >= real && got <= real + 20);
    real = (double)(u.after.ru_nivcsw - u.before.ru_nivcsw);
    got = value_of(&b, "context switches: involuntary (per s)");
    assert_true(got >= real);
}

static double clock_ms(clockid_t c) {
    struct timespec t;
    clock_gettime(c, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Burns CPU; *ms becomes what this thread has used in all. */
static void burn(double *ms, double much) {
    while (clock_ms(CLOCK_THREAD_CPUTIME_ID) < much)
        for (volatile int i = 0; i < 1000;) i++;
    *ms = clock_ms(CLOCK_THREAD_CPUTIME_ID);
}

static void burn_process(void *arg) {
    double *used = arg, ms;
    double before = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    burn(&ms, clock_ms(CLOCK_THREAD_CPUTIME_ID) + 60);
    *used = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - before;
}

static void cpu_is_what_the_clock_says(void **state) {
    (void)state;
    struct bag b;
    double ms;
    sampled(burn_process, &ms, &b);
    double got = value_of(&b, "CPU: process (% of one core)") * 10; /* ms */
    assert_true(ms >= 60);
    assert_true(got > ms - 2 && got < ms + 20);
    double kernel = value_of(&b, "CPU: process, in the kernel");
    assert_true(kernel >= 0 && kernel * 10 <= got + 0.01);
}

struct crew {
    pthread_barrier_t go, burnt, end;
    double much;
    double used; /* by the one that was started alone */
};

static void *work(void *arg) {
    struct crew *c = arg;
    double ms;
    prctl(PR_SET_NAME, "bad\x01name");
    pthread_barrier_wait(&c->go);
    burn(&ms, c->much);
    __atomic_store(&c->used, &ms, __ATOMIC_RELAXED); /* anybody's will do */
    pthread_barrier_wait(&c->burnt);
    pthread_barrier_wait(&c->end);
    return NULL;
}

/* n threads that burn `much` ms each between two runs of the sampler, and
 * nothing before the third: what the second and the third gave. */
static double run_crew(int n, double much, struct bag *busy, struct bag *idle) {
    struct crew c = {.much = much};
    pthread_t *t = calloc((size_t)n, sizeof *t);
    struct bag *none = calloc(1, sizeof *none);
    pthread_barrier_init(&c.go, NULL, (unsigned)n + 1);
    pthread_barrier_init(&c.burnt, NULL, (unsigned)n + 1);
    pthread_barrier_init(&c.end, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&t[i], NULL, work, &c), 0);
    struct sample *s = opened();
    sample_run(s, SECOND, keep, none);
    assert_int_equal(count_of(none, "CPU: thread "), 0);
    pthread_barrier_wait(&c.go);
    pthread_barrier_wait(&c.burnt);
    sample_run(s, 2 * SECOND, keep, busy);
    sample_run(s, 3 * SECOND, keep, idle);
    /* Idle threads are silent, once the last has found its way to sleep. */
    for (uint64_t i = 4; i < 104; i++) {
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        none->n = 0;
        sample_run(s, i * SECOND, keep, none);
        if (count_of(none, "CPU: thread bad") == 0) break;
    }
    assert_int_equal(count_of(none, "CPU: thread bad"), 0);
    pthread_barrier_wait(&c.end);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    assert_true(s->threads_left_out == 0);
    closed(s);
    free(t);
    free(none);
    return c.used;
}

static void a_thread_has_its_own_counter(void **state) {
    (void)state;
    struct bag busy = {0}, idle = {0};
    double ms = run_crew(1, 50, &busy, &idle);
    const char *name = "CPU: thread bad?name/";
    assert_int_equal(count_of(&busy, name), 1);
    double got = value_of(&busy, name) * 10;
    assert_true(got > 45 && got < ms + 5);
    /* and once more when it is idle, so that the line comes down */
    assert_int_equal(count_of(&idle, name), 1);
    assert_true(value_of(&idle, name) < 1);
    assert_true(value_of(&busy, "CPU: threads (count)") >= 2);
    assert_int_equal(count_of(&busy, "CPU: threads without a counter"), 0);
}

static void the_busiest_threads_are_given(void **state) {
    (void)state;
    struct bag *busy = calloc(2, sizeof *busy);
    run_crew(100, 3, &busy[0], &busy[1]);
    assert_int_equal(count_of(&busy[0], "CPU: thread "), SAMPLE_THREADS);
    double without = value_of(&busy[0], "CPU: threads without a counter");
    assert_true(without == 100 - SAMPLE_THREADS ||
                without ==
                    101 - SAMPLE_THREADS); /* the test's own may be busy */
    /* and one of the sanitizer's own */
    assert_int_equal(value_of(&busy[0], "CPU: threads (count)"),
                     101 + SANITIZED_THREAD);
    for (int i = 1; i < busy[0].n; i++)
        if (strncmp(busy[0].got[i - 1].name, "CPU: thread ", 12) == 0 &&
            strncmp(busy[0].got[i].name, "CPU: thread ", 12) == 0)
            assert_true(busy[0].got[i - 1].value >= busy[0].got[i].value);
    free(busy);
}

static void write_and_read(void *arg) {
    FILE *f = arg;
    char block[4096];
    memset(block, 7, sizeof block);
    for (int i = 0; i < 256; i++)
        assert_int_equal(write(fileno(f), block, sizeof block), sizeof block);
    lseek(fileno(f), 0, SEEK_SET);
    for (int i = 0; i < 128; i++)
        assert_int_equal(read(fileno(f), block, sizeof block), sizeof block);
}

static void io_is_counted_in_bytes(void **state) {
    (void)state;
    struct bag b;
    FILE *f = tmpfile();
    assert_non_null(f);
    if (access("/proc/self/io", R_OK) != 0)
        skip_because("/proc/self/io may not be read here");
    sampled(write_and_read, f, &b);
    fclose(f);
    double w = value_of(&b, "I/O: written (bytes/s)");
    double r = value_of(&b, "I/O: read (bytes/s)");
    assert_true(w >= MIB && w < MIB + 4096);
    /* the sampler's own reads of /proc are in it */
    assert_true(r >= MIB / 2 && r < MIB / 2 + 16384);
    assert_true(value_of(&b, "I/O: read from storage (bytes/s)") >= 0);
    assert_true(value_of(&b, "I/O: written to storage (bytes/s)") >= 0);
}

static void flat_lines_are_given_once_a_second(void **state) {
    (void)state;
    struct bag *b = calloc(1, sizeof *b);
    struct sample *s = opened();
    for (uint64_t t = 10; t <= 40; t++)
        sample_run(s, t * (SECOND / 10), keep, b);
    assert_int_equal(count_of(b, "CPU: threads (count)"), 4);
    int major = count_of(b, "page faults: major (per s)");
    assert_true(major >= 3 && major <= 30);
    free(b);
    closed(s);
}

/* Outside of a window nothing is given, and what happened there is not part of
 * the first rate inside. */
static void a_run_without_give_moves_the_start_of_rates(void **state) {
    (void)state;
    struct usage u;
    struct bag b = {0};
    struct sample *s = opened();
    sample_run(s, SECOND, NULL, NULL);
    touch_pages(&u);
    sample_run(s, 2 * SECOND, NULL, NULL);
    sample_run(s, 3 * SECOND, keep, &b);
    double got = value_of(&b, "page faults: minor (per s)");
    assert_true(got >= 0 && got < 1000);
    assert_true(value_of(&b, "memory: RSS (bytes)") > 0);
    closed(s);
}

static void time_that_stands_still_gives_nothing(void **state) {
    (void)state;
    struct bag b = {0};
    struct sample *s = opened();
    sample_run(s, 5 * SECOND, keep, &b);
    int n = b.n;
    assert_true(n > 0);
    sample_run(s, 5 * SECOND, keep, &b);
    sample_run(s, 4 * SECOND, keep, &b);
    assert_int_equal(b.n, n);
    closed(s);
}

static int open_files(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    closedir(d);
    return n;
}

static void files_are_closed_and_missing_ones_do_no_harm(void **state) {
    (void)state;
    int before = open_files();
    struct sample *s = opened();
    assert_true(open_files() > before);
    sample_close(s);
    assert_int_equal(open_files(), before);
    struct bag b = {0};
    sample_run(s, SECOND, keep, &b); /* all descriptors are -1 now */
    sample_run(s, 2 * SECOND, keep, &b);
    assert_true(value_of(&b, "memory: RSS (bytes)") == -1);
    assert_true(value_of(&b, "page faults: minor (per s)") >= 0);
    sample_close(s);
    memset(s, 0, sizeof *s);
    sample_close(s); /* never opened: standard input is not its to close */
    assert_int_equal(open_files(), before);
    free(s);
}

static void ignore(void *to, const char *counter, double value) {
    (void)to, (void)counter, (void)value;
}

/* Not held to a limit: machines differ. */
static void what_a_run_costs_is_printed(void **state) {
    (void)state;
    struct sample *s = opened();
    enum { RUNS = 2000 };
    double t0 = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < RUNS; i++)
        sample_run(s, SECOND + i * 10000000, ignore, NULL);
    double t1 = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < RUNS; i++)
        sample_run(s, (RUNS + i) * SECOND, ignore, NULL);
    double t2 = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    print_message("# a run costs %.1f us, with peak and threads %.1f us\n",
                  (t1 - t0) * 1e3 / RUNS, (t2 - t1) * 1e3 / RUNS);
    assert_true(t2 > t0);
    closed(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rss_and_peak_follow_what_is_touched),
        cmocka_unit_test(page_faults_are_counted),
        cmocka_unit_test(context_switches_are_counted),
        cmocka_unit_test(cpu_is_what_the_clock_says),
        cmocka_unit_test(a_thread_has_its_own_counter),
        cmocka_unit_test(the_busiest_threads_are_given),
        cmocka_unit_test(io_is_counted_in_bytes),
        cmocka_unit_test(flat_lines_are_given_once_a_second),
        cmocka_unit_test(a_run_without_give_moves_the_start_of_rates),
        cmocka_unit_test(time_that_stands_still_gives_nothing),
        cmocka_unit_test(files_are_closed_and_missing_ones_do_no_harm),
        cmocka_unit_test(what_a_run_costs_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
