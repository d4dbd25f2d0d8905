/* SPDX-License-Identifier: Apache-2.0
 * The recorder for minutes on end: a million scopes a second from four
 * threads, whose memory must stay as it is and of which none may be lost.
 *
 *     soak LOGDIR SECONDS [SCOPES_PER_SECOND]
 *
 * Prints a line every ten seconds and a verdict; exit status 1 when memory
 * grew, an event was dropped, or the profile does not have them all. Parts of
 * the profile that are closed are removed on the way: a minute is a gigabyte. */
#include <glob.h>
#include <limits.h>
#include <opscope/record.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xs.h"

enum { THREADS = 4, TICK_NS = 1000000, SETTLED_S = 30, GROWTH_KB = 4096 };

static long per_tick;
static int over;
static uint64_t made[THREADS];

static void *worker(void *arg) {
    unsigned t = (unsigned)(uintptr_t)arg;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        for (long i = 0; i < per_tick; i++) {
            OPS_SCOPE("scope");
        }
        made[t] += (uint64_t)per_tick;
        next.tv_nsec += TICK_NS;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return NULL;
}

static long rss_kb(void) {
    long pages = 0, size;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%ld %ld", &size, &pages) != 2) pages = 0;
    if (f != NULL) fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double cpu_s(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Removes the parts that are closed. */
static void remove_parts(const char *dir) {
    char pattern[PATH_MAX];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/plugins/profile/*/*.xplane.pb", dir);
    if (glob(pattern, 0, NULL, &g) != 0) return;
    for (size_t i = 0; i < g.gl_pathc; i++) unlink(g.gl_pathv[i]);
    globfree(&g);
}

/* Judges by what the last part says of all of them, and by its own losses. */
static int verdict(const char *dir, uint64_t want) {
    char pattern[PATH_MAX];
    struct xs x = {0};
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/plugins/profile/*/*.xplane.pb", dir);
    if (glob(pattern, 0, NULL, &g) != 0) return 1;
    for (size_t i = 0; i < g.gl_pathc; i++) xs_load(&x, g.gl_pathv[i]);
    globfree(&g);
    int64_t got = xs_fact(&x, "events_recorded", -1);
    uint64_t lost = xs_dropped(&x);
    printf("%llu scopes made, %lld recorded, %llu dropped in the last part, "
           "flusher %.1f s\n",
           (unsigned long long)want, (long long)got, (unsigned long long)lost,
           (double)xs_fact(&x, "flusher_cpu_ns", 0) * 1e-9);
    xs_free(&x);
    return got != (int64_t)want || lost > 0;
}

int main(int argc, char **argv) {
    pthread_t t[THREADS];
    struct ops_options o = {.no_machine = true, .run = "soak"};
    const char *dir = argc > 1 ? argv[1] : "soak-logs";
    long seconds = argc > 2 ? atol(argv[2]) : 600;
    long rate = argc > 3 ? atol(argv[3]) : 1000000;
    long settled = 0, most = 0;
    uint64_t want = 0;
    char why[OPS_PROBLEM_MAX];
    per_tick = rate / 1000 / THREADS;
    if (ops_start(dir, &o) != 0) {
        ops_problem(why, sizeof why);
        printf("start: %s\n", why);
        return 1;
    }
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, worker, (void *)i);
    for (long s = 1; s <= seconds; s++) {
        sleep(1);
        if (s < seconds) remove_parts(dir);
        long kb = rss_kb();
        if (s == SETTLED_S || (s == seconds && settled == 0)) settled = kb;
        if (settled > 0 && kb > most) most = kb;
        ops_problem(why, sizeof why);
        if (s % 10 == 0)
            printf("%4ld s  RSS %ld KiB  CPU %.1f s  %s\n", s, kb, cpu_s(),
                   why);
        fflush(stdout);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        want += made[i];
    }
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    ops_stop();
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("stop %.3f s; RSS %ld KiB after %d s, %ld at most since\n",
           (double)(b.tv_sec - a.tv_sec) +
               (double)(b.tv_nsec - a.tv_nsec) / 1e9,
           settled, (int)SETTLED_S, most);
    int bad = verdict(dir, want);
    if (most > settled + GROWTH_KB) bad = 1;
    printf("%s\n", bad ? "BAD" : "good");
    return bad;
}
