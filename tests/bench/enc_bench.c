/* SPDX-License-Identifier: Apache-2.0
 * enc_bench WORK FILE [TIMES]: the recorder's own thread at work, alone, from
 * inside. One line of JSON: ns of one event, the least and the median.
 *
 *     encode     scopes of a full ring into XSpace, thrown away
 *     write      the same, written to FILE
 *     nested     as encode, of a thread that has steps
 *     scalars    1 M scalars into an event file in the folder FILE
 *     copy       yardstick: memcpy of the ring */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ring/encoder.h"
#include "ring/eventfile.h"
#include "ring/ring_map.h"

enum {
    SLOTS = 1 << 19,
    TIMES_MAX = 1001,
    SCALARS = 1000000,
    STEP_SCOPES = 100
};

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A session's memory as a program would have left it: names, a clock at 2.6
 * GHz, one ring full of scopes of 30 to 1,000 ns. */
static struct ring_map view;

static void make_view(bool steps) {
    struct rec_head layout;
    size_t bytes = rec_layout(&layout);
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct rec_ring *r = calloc(1, REC_RING_HEAD + SLOTS * 16);
    if (p == MAP_FAILED || r == NULL) exit(4);
    rec_layout((struct rec_head *)(void *)p);
    ring_map_tables(&view, p, bytes);
    view.segs[0] = (struct rec_seg){0, 0,
                                    (uint64_t)(1e12 / 2.6e9 * 4294967296.)};
    view.head->nsegs = 1;
    view.head->nnames = 100;
    r->slots = SLOTS;
    r->step_time = steps;
    r->tid = 4711;
    struct rec_slot *s = rec_slots(r);
    uint64_t tick = 1000000, begun = tick;
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t dur = 80 + i * 2654435761u % 2500;
        s[i] = (struct rec_slot){tick, rec_rest(REC_SCOPE, 2 + i % 90, dur)};
        tick += dur + 60;
        if (!steps || i % STEP_SCOPES != 0 || i + 3 > SLOTS) continue;
        uint64_t p64[2] = {tick - begun, i};
        uint32_t half;
        memcpy(&half, (char *)p64 + 8, 4);
        s[++i] = (struct rec_slot){begun, rec_rest(REC_STEP, 0, 16)};
        s[++i] = (struct rec_slot){p64[0], rec_rest(REC_CONT, 0, half)};
        s[++i] = (struct rec_slot){p64[1] >> 32, rec_rest(REC_CONT, 0, 0)};
        begun = tick;
    }
    view.ring[0] = r;
    view.nrings = 1;
}

static int fd = -1;
static uint64_t bytes_out;
static off_t file_at;

static int throw_away(void *self, unsigned file, const void *p, size_t n) {
    (void)self, (void)file, (void)p;
    bytes_out += n;
    return 0;
}

static int write_out(void *self, unsigned file, const void *p, size_t n) {
    (void)self, (void)file;
    bytes_out += n;
    if (pwrite(fd, p, n, file_at) != (ssize_t)n) return -1;
    file_at += (off_t)n;
    return 0;
}

static double ns[TIMES_MAX];

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(int n, double bytes) {
    qsort(ns, (size_t)n, sizeof *ns, by_size);
    printf("{\"best\": %.3f, \"median\": %.3f, \"bytes\": %.2f}\n", ns[0],
           ns[n / 2], bytes);
}

static void encode(int times, bool steps, bool file) {
    static struct encoder e;
    static const uint64_t none[REC_LOSSES];
    struct encoder_out to = {.write = file ? write_out : throw_away};
    make_view(steps);
    if (encoder_init(&e, &view, to, 0) != 0) exit(4);
    e.begun = UINT32_MAX; /* no heads of planes */
    struct encoder_range all = {rec_slots(view.ring[0]), 0, SLOTS, none, none};
    for (int i = 0; i < times; i++) {
        e.events = bytes_out = 0;
        file_at = 0;
        if (file && ftruncate(fd, 0) != 0) exit(2);
        double t = now_ns();
        encoder_ring(&e, view.ring[0], &all);
        encoder_lines(&e);
        ns[i] = (now_ns() - t) / (double)e.events;
    }
    print(times, (double)bytes_out / (double)e.events);
}

static void copy(int times) {
    static struct rec_slot to[SLOTS];
    make_view(false);
    for (int i = 0; i < times; i++) {
        double t = now_ns();
        memcpy(to, rec_slots(view.ring[0]), sizeof to);
        __asm__ volatile("" ::: "memory");
        ns[i] = (now_ns() - t) / SLOTS;
    }
    print(times, sizeof *to);
}

static void scalars(const char *dir, int times) {
    static struct eventfile f;
    char path[EVENTFILE_PATH_MAX];
    uint64_t bytes = 0;
    int folder = open(dir, O_RDONLY | O_DIRECTORY);
    if (folder < 0) exit(2);
    for (int i = 0; i < times; i++) {
        double t = now_ns();
        if (eventfile_init(&f, folder, dir, "bench") != 0) exit(2);
        for (int k = 0; k < SCALARS; k++)
            eventfile_scalar(&f, "loss", 4, k, 1.0f / (float)(k + 1), 1.7e9);
        if (eventfile_flush(&f) != 0 || f.lost > 0) exit(2);
        ns[i] = (now_ns() - t) / SCALARS;
        memcpy(path, f.path, sizeof path);
        bytes = f.size;
        eventfile_close(&f);
        if (i + 1 < times) unlink(path);
    }
    close(folder);
    print(times, (double)bytes / SCALARS);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: enc_bench WORK FILE [TIMES]\n");
        return 1;
    }
    int times = argc > 3 ? atoi(argv[3]) : 11;
    if (times < 1) times = 1;
    if (times > TIMES_MAX) times = TIMES_MAX;
    if (strcmp(argv[1], "scalars") == 0) {
        scalars(argv[2], times);
        return 0;
    }
    if (strcmp(argv[1], "copy") == 0) {
        copy(times);
        return 0;
    }
    bool file = strcmp(argv[1], "write") == 0;
    if (file) fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file && fd < 0) return 2;
    encode(times, strcmp(argv[1], "nested") == 0, file);
    return 0;
}
