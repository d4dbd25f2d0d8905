/* SPDX-License-Identifier: Apache-2.0
 * Text fed to the importers, and the trace read back by name: what the tests
 * of the JSON formats share. */
#ifndef UNIT_FEED_H
#define UNIT_FEED_H

/* our headers come first: cmocka makes a macro of fail */
#include "import/import.h"
#include "model/trace_fill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct feed {
    uint8_t *buf; /* the bytes, 64 zeros behind them */
    struct trace *t;
    struct ops_err e;
    int rc;
};

/* Imports n bytes with that many threads and seals the trace. */
static inline struct feed feed_bytes(const void *p, size_t n, int threads) {
    struct feed f = {.buf = calloc(1, n + 64), .t = trace_new()};
    assert_non_null(f.buf);
    assert_non_null(f.t);
    if (n > 0) memcpy(f.buf, p, n);
    struct import_opts o = {.threads = threads};
    f.rc = import_bytes((struct bytes){f.buf, n}, "mem", f.t, &o, &f.e);
    if (f.rc == 0) assert_int_equal(trace_seal(f.t, &f.e), 0);
    return f;
}

static inline struct feed feed_text(const char *s) {
    struct feed f = feed_bytes(s, strlen(s), 1);
    if (f.rc != 0) fail_msg("%s", f.e.text);
    return f;
}

static inline void feed_free(struct feed *f) {
    trace_free(f->t);
    free(f->buf);
}

static inline row_id feed_find(const struct feed *f, const char *name) {
    for (row_id r = 0; r < f->t->spans.n; r++)
        if (strcmp(span_name(f->t, r), name) == 0) return r;
    return ROW_NONE;
}

static inline row_id feed_row(const struct feed *f, const char *name) {
    row_id r = feed_find(f, name);
    if (r == ROW_NONE) fail_msg("no span '%s'", name);
    return r;
}

static inline void feed_check(const struct feed *f, const char *name,
                              int64_t ts_ps, int64_t dur_ps) {
    row_id r = feed_row(f, name);
    assert_int_equal(f->t->spans.ts[r], ts_ps);
    assert_int_equal(f->t->spans.dur[r], dur_ps);
}

static inline const struct track *feed_track(const struct feed *f,
                                             const char *name) {
    return &f->t->tracks[f->t->spans.track[feed_row(f, name)]];
}

static inline uint64_t feed_notes(const struct feed *f) {
    uint64_t sum = 0;
    for (int i = 0; i < NOTE_COUNT; i++) sum += f->t->notes[i];
    return sum;
}

/* Cuts text at every byte. Each cut must give a clean error, or a trace with
 * every event that ends before the cut and a note. The events are those whose
 * closing brace stands at ends[0..n). */
static inline void feed_cuts(const char *text, const size_t *ends, size_t n,
                             bool bare) {
    size_t len = strlen(text);
    for (size_t cut = 0; cut < len; cut++) {
        struct feed f = feed_bytes(text, cut, 1);
        size_t whole = 0;
        while (whole < n && ends[whole] <= cut) whole++;
        if (f.rc != 0) {
            assert_int_equal(f.rc, OPS_EFORMAT);
            assert_true(f.e.text[0] != '\0');
            assert_int_equal(whole, 0);
        } else {
            assert_true(f.t->spans.n >= whole);
            bool closed = bare && text[cut - 1] == ']';
            if (!closed) assert_true(f.t->notes[NOTE_FILE_CUT] == 1);
        }
        feed_free(&f);
    }
}

#endif
