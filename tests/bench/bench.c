/* SPDX-License-Identifier: Apache-2.0
 * bench WORK FILE [TIMES]: one measurement in this process, as one line of
 * JSON: seconds (best and median of TIMES), bytes, events, private bytes.
 * run.py asks for them and writes the table.
 *
 *     import1 import2   open, import on one or two threads, seal
 *     ops               the ops analysis of a trace that is imported
 *     analyses          every analysis, by the public calls, of a profile that
 *                       is opened once: a line each, then one for opening it
 *     tiles             tiles of the time line, drawn at random: a line with
 *                       what the index and the tiles took (of CPU), then as
 *                       above: one tile of each track, with all of it
 *     rows              yardstick: the busy time of the bins of these, by a
 *                       loop over all spans
 *     scan1 scan2       yardstick: bare JSON scanner
 *     walk              yardstick: bare XSpace walk
 *     inflate           yardstick: isa-l alone, into memory that is there
 *     open              file_open alone (inflates, if compressed)
 *     touch             yardstick: a byte of every cache line
 *     copy              yardstick: memcpy of the contents */
#include "analyze/analyze.h"
#include "base/hash.h"
#include "base/io/file.h"
#include "import/import.h"
#include "model/lod.h"
#include "model/result.h"
#include "model/trace.h"
#include "opscope/opscope.h"
#include "yard.h"
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { TIMES_MAX = 101, ENOUGH_S = 15 };

struct measure {
    const char *path;
    double seconds[TIMES_MAX]; /* each time, sorted at the end */
    double cpu;                /* least user + system seconds of one import */
    int times, done;
    uint64_t bytes;         /* of contents, inflated */
    uint64_t events, spans; /* events in the file; rows that became spans */
    uint64_t check;         /* must not depend on threads or time */
    int64_t private_bytes;  /* anonymous memory held by the trace */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_now(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void die(const struct ops_err *e) {
    fprintf(stderr, "bench: %s\n", e->text);
    exit(2);
}

/* Returns the anonymous memory of this process, in which mapped files and
 * scratch files are not; -1 where the system does not tell. */
static int64_t anonymous(void) {
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long long kb = -1;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "Anonymous: %lld kB", &kb) == 1) break;
    if (f != NULL) fclose(f);
    return kb < 0 ? -1 : kb * 1024;
}

static struct trace *load(const char *path, int threads) {
    struct ops_err e;
    struct trace *t = trace_new();
    if (t == NULL) exit(4);
    struct import_opts o = {.threads = threads};
    if (import_file(path, t, &o, &e) != 0) die(&e);
    if (trace_seal(t, &e) != 0) die(&e);
    return t;
}

/* Returns a fingerprint of the sealed columns: order, times, nesting. */
static uint64_t fingerprint(const struct trace *t) {
    uint64_t h = t->spans.n;
    for (size_t i = 0; i < t->spans.n; i++) {
        h = hash_u64(h ^ (uint64_t)t->spans.ts[i]);
        h += (uint64_t)t->spans.dur[i] * 31 + t->spans.parent[i];
        h ^= (uint64_t)t->spans.name[i] << 32 | t->spans.track[i];
    }
    return hash_u64(h ^ t->links.n);
}

static void import(struct measure *m, int threads) {
    int64_t before = anonymous();
    double start = now(), cpu = cpu_now();
    struct trace *t = load(m->path, threads);
    m->seconds[m->done++] = now() - start;
    cpu = cpu_now() - cpu;
    if (m->done == 1 || cpu < m->cpu) m->cpu = cpu;
    /* Only the first time counts: later ones reuse what the allocator kept. */
    if (before >= 0 && m->done == 1) m->private_bytes = anonymous() - before;
    for (size_t i = 0; i < t->nsources; i++) {
        m->bytes = t->sources[i].bytes.n;
        m->events = t->sources[i].events;
    }
    m->spans = t->spans.n;
    m->check = fingerprint(t);
    trace_free(t);
}

static void import1(struct measure *m) { import(m, 1); }
static void import2(struct measure *m) { import(m, 2); }

static void ops(struct measure *m) {
    struct trace *t = load(m->path, 0);
    const struct analysis *a = analysis_find("ops");
    if (a == NULL) exit(2);
    struct ops_err e;
    m->events = m->spans = t->spans.n;
    for (; m->done < m->times; m->done++) {
        struct opts o = {0};
        struct result r;
        opts_init(&o, analysis_common_opts, a->opts, NULL);
        double start = now();
        if (analysis_run(a, t, &o, 20, &r, &e) != 0) die(&e);
        m->seconds[m->done] = now() - start;
        m->check = r.total_rows;
        result_free(&r);
    }
    trace_free(t);
}

/* Returns the CPU seconds of one analysis of a profile that was just opened:
 * they include what several analyses share and is worked out once. */
static double cold(const char *path, const char *analysis) {
    struct ops_err e;
    struct ops_profile *p;
    struct ops_result *r;
    if (ops_open(&p, path, &e) != 0) die(&e);
    double cpu = cpu_now();
    if (ops_run(p, analysis, NULL, &r, &e) != 0) die(&e);
    cpu = cpu_now() - cpu;
    ops_result_free(r);
    ops_close(p);
    return cpu;
}

/* Every analysis with all defaults, as a program asks for it: ops_open once,
 * ops_run again and again. Prints a line each: seconds and CPU seconds, the
 * least of all times; and those of the first time. */
static void analyses_of(struct measure *m) {
    struct ops_err e;
    struct ops_profile *p;
    double start = now();
    if (ops_open(&p, m->path, &e) != 0) die(&e);
    m->seconds[0] = now() - start;
    for (size_t i = 0; i < ops_analysis_count(); i++) {
        double best = 0, least = 0;
        size_t rows = 0;
        for (int k = 0; k < m->times; k++) {
            struct ops_result *r;
            double cpu = cpu_now();
            start = now();
            if (ops_run(p, ops_analysis_name(i), NULL, &r, &e) != 0) die(&e);
            double took = now() - start;
            cpu = cpu_now() - cpu;
            if (k == 0 || took < best) best = took;
            if (k == 0 || cpu < least) least = cpu;
            rows = ops_result_rows(r);
            ops_result_free(r);
        }
        double first = cold(m->path, ops_analysis_name(i));
        printf("{\"analysis\": \"%s\", \"best\": %.6f, \"cpu\": %.6f, "
               "\"first\": %.6f, \"rows\": %zu}\n",
               ops_analysis_name(i), best, least, first, rows);
        fflush(stdout);
    }
    m->done = m->times;
    for (int k = 1; k < m->done; k++) m->seconds[k] = m->seconds[0];
    ops_close(p);
}

static struct lod_tile tile_room;

static double thread_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the seconds of CPU that a tile took, with its bytes: on a busy machine
 * the slowest of many are those in which another program had its turn. */
static double tile_cost(const struct trace *t, const struct lod_query *q) {
    static uint8_t bytes[LOD_TILE_BYTES];
    struct ops_err e;
    double start = thread_now();
    if (lod_tile(t, q, &tile_room, &e) != 0) die(&e);
    lod_encode(t, &tile_room, bytes);
    return thread_now() - start;
}

static int by_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Tiles of any level around a span, of its lane or of all, in turn. */
static void random_tiles(const struct trace *t, const struct lod_extent *of,
                         double *seconds, size_t n) {
    struct ops_err e;
    for (size_t i = 0; i < n; i++) {
        row_id r = (row_id)(hash_u64(2 * i + 1) % t->spans.n);
        struct lod_query q = {.track = t->spans.track[r], .lane = LOD_ALL};
        q.level = (unsigned)(hash_u64(2 * i + 2) % (of->top + 1));
        q.tile = (uint64_t)(t->spans.ts[r] - of->start) >> q.level >> 8;
        q.slices = i % 4 < 2 ? LOD_SLICES : 0;
        if (i % 2 && lod_lane(t, r, &q.lane, &e) != 0) die(&e);
        seconds[i] = tile_cost(t, &q);
    }
    qsort(seconds, n, sizeof *seconds, by_seconds);
}

static void tiles(struct measure *m) {
    enum { TILES = 20000 };
    static double seconds[TILES];
    struct trace *t = load(m->path, 0);
    struct ops_err e;
    struct lod_extent of;
    size_t bytes = 0, lanes = 0;
    double start = now(), cpu = cpu_now();
    for (uint32_t k = 0; k < t->ntracks; k++) {
        struct lod_track track;
        if (lod_track(t, k, &track, &e) != 0) die(&e);
        bytes += track.bytes;
        lanes += track.lanes;
    }
    start = now() - start;
    cpu = cpu_now() - cpu;
    if (lod_extent(t, &of, &e) != 0) die(&e);
    random_tiles(t, &of, seconds, TILES);
    printf("{\"index\": %.6f, \"index_cpu\": %.6f, \"index_bytes\": %zu, "
           "\"lanes\": %zu, \"tracks\": %zu, \"tiles\": %d, "
           "\"p50\": %.7f, \"p99\": %.7f, \"worst\": %.7f}\n",
           start, cpu, bytes, lanes, t->ntracks, TILES, seconds[TILES / 2],
           seconds[TILES - TILES / 100], seconds[TILES - 1]);
    m->events = m->spans = t->spans.n;
    for (; m->done < m->times; m->done++) {
        m->check = 0;
        for (uint32_t k = 0; k < t->ntracks; k++) {
            struct lod_query q = {.track = k, .lane = LOD_ALL, .level = of.top};
            m->seconds[m->done] += tile_cost(t, &q);
            m->check += tile_room.busy;
        }
    }
    trace_free(t);
}

/* What is busy in each bin, by the track's spans one after the other. */
static uint64_t loop_bins(const struct trace *t, const struct track *tr,
                          int64_t from, unsigned level) {
    uint64_t bins[LOD_BINS] = {0}, sum = 0;
    int64_t upto = from;
    for (row_id r = tr->first; r < tr->end; r++) {
        int64_t a = t->spans.ts[r], end = span_end(t, r);
        for (a = a > upto ? a : upto; a < end; a = upto) {
            size_t bin = (size_t)((a - from) >> level);
            int64_t to = from + ((int64_t)(bin + 1) << level);
            upto = end < to ? end : to;
            bins[bin] += (uint64_t)(upto - a);
        }
    }
    for (int i = 0; i < LOD_BINS; i++) sum += bins[i];
    return sum;
}

static void rows(struct measure *m) {
    struct trace *t = load(m->path, 0);
    struct lod_extent of;
    struct ops_err e;
    if (lod_extent(t, &of, &e) != 0) die(&e);
    m->events = m->spans = t->spans.n;
    for (; m->done < m->times; m->done++) {
        double start = now();
        m->check = 0;
        for (size_t k = 0; k < t->ntracks; k++)
            m->check += loop_bins(t, &t->tracks[k], of.start, of.top);
        m->seconds[m->done] = now() - start;
    }
    trace_free(t);
}

/* Runs a yardstick over the contents, touched before. */
static void yard(struct measure *m, struct yard (*run)(struct bytes)) {
    struct file *f;
    struct ops_err e;
    if (file_open(m->path, &f, &e) != 0) die(&e);
    yard_touch(f->bytes);
    for (; m->done < m->times; m->done++) {
        double start = now();
        struct yard y = run(f->bytes);
        m->seconds[m->done] = now() - start;
        m->events = y.events;
        m->check = y.sum + y.keys + y.numbers;
    }
    m->bytes = f->bytes.n;
    file_close(f);
}

static struct yard json1(struct bytes b) { return yard_json(b, 1); }
static struct yard json2(struct bytes b) { return yard_json(b, 2); }

static void scan1(struct measure *m) { yard(m, json1); }
static void scan2(struct measure *m) { yard(m, json2); }
static void walk(struct measure *m) { yard(m, yard_xspace); }
static void touch(struct measure *m) { yard(m, yard_touch); }

/* Copies into the same 64 MiB again and again: memory that is there already. */
static struct yard copy_all(struct bytes b) {
    enum { ROOM = 64 << 20 };
    static uint8_t *room;
    if (room == NULL) room = calloc(1, ROOM);
    if (room == NULL) exit(4);
    for (size_t i = 0; i < b.n; i += ROOM)
        memcpy(room, b.p + i, b.n - i < ROOM ? b.n - i : ROOM);
    return (struct yard){.sum = room[b.n % ROOM]};
}

static void copy(struct measure *m) { yard(m, copy_all); }

static void open_only(struct measure *m) {
    struct file *f;
    struct ops_err e;
    double start = now();
    if (file_open(m->path, &f, &e) != 0) die(&e);
    m->seconds[m->done++] = now() - start;
    m->bytes = f->bytes.n;
    file_close(f);
}

static uint8_t *slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) exit(2);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*n + 1);
    if (p == NULL || fread(p, 1, *n, f) != *n) exit(2);
    fclose(f);
    return p;
}

static void inflate_alone(struct measure *m) {
    enum { ROOM = 1 << 20 };
    size_t n;
    uint8_t *in = slurp(m->path, &n), *out = malloc(ROOM);
    struct inflate_state *z = malloc(sizeof *z);
    if (out == NULL || z == NULL || n > UINT32_MAX) exit(4);
    for (; m->done < m->times; m->done++) {
        double start = now();
        isal_inflate_init(z);
        z->crc_flag = ISAL_GZIP;
        z->next_in = in;
        z->avail_in = (uint32_t)n;
        m->bytes = 0;
        do {
            z->next_out = out;
            z->avail_out = ROOM;
            if (isal_inflate(z) < 0) exit(2);
            m->bytes += ROOM - z->avail_out;
        } while (z->block_state != ISAL_BLOCK_FINISH && z->avail_out == 0);
        m->seconds[m->done] = now() - start;
    }
    free(z);
    free(in);
    free(out);
}

static const struct work {
    const char *name;
    void (*run)(struct measure *m);
} works[] = {
    {"import1", import1}, {"import2", import2},
    {"ops", ops},         {"analyses", analyses_of},
    {"scan1", scan1},     {"scan2", scan2},
    {"walk", walk},       {"inflate", inflate_alone},
    {"open", open_only},  {"touch", touch},
    {"copy", copy},       {"tiles", tiles},
    {"rows", rows},
};

static void print(struct measure *m) {
    qsort(m->seconds, (size_t)m->done, sizeof *m->seconds, by_seconds);
    printf("{\"best\": %.6f, \"median\": %.6f, \"cpu\": %.6f, "
           "\"bytes\": %llu, "
           "\"events\": %llu, \"spans\": %llu, \"private\": %lld, "
           "\"check\": \"%016llx\"}\n",
           m->seconds[0], m->seconds[m->done / 2], m->cpu,
           (unsigned long long)m->bytes, (unsigned long long)m->events,
           (unsigned long long)m->spans, (long long)m->private_bytes,
           (unsigned long long)m->check);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bench WORK FILE [TIMES]\n");
        return 1;
    }
    struct measure m = {.path = argv[2], .times = 1};
    if (argc > 3) m.times = atoi(argv[3]);
    if (m.times < 1) m.times = 1;
    if (m.times > TIMES_MAX) m.times = TIMES_MAX;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(works[i].name, argv[1]) != 0) continue;
        double start = now();
        while (m.done < m.times && (m.done == 0 || now() - start < ENOUGH_S))
            works[i].run(&m);
        print(&m);
        return 0;
    }
    fprintf(stderr, "bench: no work named %s\n", argv[1]);
    return 1;
}
