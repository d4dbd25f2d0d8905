/* SPDX-License-Identifier: Apache-2.0
 * Tiny traces built by hand, and results read back by name: what the tests of
 * the analyses share. Times are given in microseconds. */
#ifndef UNIT_TINY_H
#define UNIT_TINY_H

/* our headers come first: cmocka makes a macro of fail */
#include "analyze/analyze.h"
#include "model/result.h"
#include "model/trace_fill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/formats.h"

#define US PS_PER_US

static inline struct trace *tiny_new(bool device, bool memory) {
    struct trace *t = trace_new();
    assert_non_null(t);
    uint32_t s = trace_source(t, "tiny", format_named("kineto"), NULL,
                              (struct bytes){0});
    assert_int_equal(s, 0);
    t->sources[0].has_device = device;
    t->sources[0].has_memory = memory;
    return t;
}

static inline uint32_t tiny_thread(struct trace *t, int64_t tid) {
    return trace_track(t, 0, TRACK_THREAD, 1, tid);
}

static inline uint32_t tiny_stream(struct trace *t, int64_t gpu, int64_t tid) {
    uint32_t d = trace_device(t, 0, DEVICE_GPU, gpu);
    uint32_t s = trace_track(t, 0, TRACK_STREAM, gpu, tid);
    t->tracks[s].device = d;
    return s;
}

static inline row_id tiny_span(struct trace *t, uint32_t track,
                               enum span_kind kind, const char *name,
                               int64_t ts, int64_t dur) {
    struct span_in s = {.ts = ts * US,
                        .dur = dur * US,
                        .track = track,
                        .name = trace_str(t, bytes_of(name)),
                        .kind = (uint8_t)kind};
    return trace_span(t, &s);
}

/* Adds a launch call at ts and its kernel; both take dur. */
static inline void tiny_launch(struct trace *t, uint32_t thread,
                               uint32_t stream, const char *kernel, int64_t ts,
                               int64_t dur) {
    uint64_t id = (uint64_t)ts + 1000 * (uint64_t)thread;
    trace_link_host(t, 0, id,
                    tiny_span(t, thread, SPAN_API, "cudaLaunchKernel", ts, 1));
    trace_link_device(t, 0, id,
                      tiny_span(t, stream, SPAN_KERNEL, kernel, ts + 1, dur));
}

static inline void tiny_mem(struct trace *t, uint16_t allocator, uint32_t track,
                            int64_t ts, uint64_t addr, int64_t bytes,
                            int64_t allocated) {
    struct mem_in m = {.ts = ts * US,
                       .bytes = bytes,
                       .allocated = allocated,
                       .reserved = allocated < 0 ? -1 : 2 * allocated,
                       .addr = addr,
                       .track = track,
                       .allocator = allocator};
    trace_mem(t, &m);
}

static inline void tiny_seal(struct trace *t) {
    struct ops_err e;
    assert_int_equal(trace_seal(t, &e), 0);
}

/* Runs an analysis with "name=value name=value" options. */
static inline int tiny_try(const struct trace *t, const char *analysis,
                           const char *name, const char *value,
                           struct result *r, struct ops_err *e) {
    const struct analysis *a = analysis_find(analysis);
    assert_non_null(a);
    struct opts o;
    memset(&o, 0, sizeof o);
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    if (name) assert_int_equal(opts_set(&o, name, value, e), 0);
    return analysis_run(a, t, &o, 0, r, e);
}

static inline struct result tiny_run(const struct trace *t,
                                     const char *analysis, const char *name,
                                     const char *value) {
    struct result r;
    struct ops_err e = {0};
    int rc = tiny_try(t, analysis, name, value, &r, &e);
    if (rc != 0) fail_msg("%s: %s", analysis, e.text);
    return r;
}

/* Keeps a cell for the next few calls, so that it can be pointed at. */
static inline struct cell *tiny_keep(struct cell c) {
    static struct cell kept[64];
    static unsigned n;
    kept[++n % 64] = c;
    return &kept[n % 64];
}

static inline struct cell *tiny_cell(const struct result *r, size_t row,
                                     const char *col) {
    int c = result_find_col(r, col);
    if (c < 0) fail_msg("no column %s", col);
    assert_true(row < r->nrows);
    return tiny_keep(result_cell(r, row, (size_t)c));
}

/* Returns the row whose first column is name. */
static inline size_t tiny_row(const struct result *r, const char *name) {
    for (size_t i = 0; i < r->nrows; i++) {
        struct cell c = result_cell(r, i, 0);
        if (!c.null && strcmp(c.s, name) == 0) return i;
    }
    fail_msg("no row %s", name);
    return 0;
}

static inline bool tiny_has_row(const struct result *r, const char *name) {
    for (size_t i = 0; i < r->nrows; i++) {
        struct cell c = result_cell(r, i, 0);
        if (!c.null && strcmp(c.s, name) == 0) return true;
    }
    return false;
}

static inline int64_t tiny_int(const struct result *r, const char *row,
                               const char *col) {
    struct cell *c = tiny_cell(r, tiny_row(r, row), col);
    if (c->null) fail_msg("%s of %s is null", col, row);
    return c->i;
}

/* Returns the microseconds of a COL_TIME cell. */
static inline int64_t tiny_us(const struct result *r, const char *row,
                              const char *col) {
    return tiny_int(r, row, col) / US;
}

static inline bool tiny_null(const struct result *r, const char *row,
                             const char *col) {
    return tiny_cell(r, tiny_row(r, row), col)->null;
}

static inline bool tiny_misses(const struct result *r, const char *what) {
    for (size_t i = 0; i < r->nmissing; i++)
        if (strstr(r->missing[i].what, what)) return true;
    return false;
}

#endif
