/* SPDX-License-Identifier: Apache-2.0
 * Steps written as torch writes them, and the hints on them: what the tests of
 * the rules share. */
#ifndef UNIT_HINT_SCRIPT_H
#define UNIT_HINT_SCRIPT_H

#include "unit/tiny.h"

#include "import/import.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A file under way, in the manner of torch. Times in us from the step's
 * start. */
struct script {
    char *s;
    size_t n;
    int id;
    int64_t at; /* the step's start */
    bool grad;  /* as the test likes */
};

enum { SCRIPT_TEXT = 1 << 17, STEPS = 4 };

static void put(struct script *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void put(struct script *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(p->s + p->n, SCRIPT_TEXT - p->n, fmt, ap);
    va_end(ap);
    assert_true(n >= 0 && p->n + (size_t)n < SCRIPT_TEXT);
    p->n += (size_t)n;
}

static inline void span(struct script *p, const char *cat, const char *name,
                        double ts, double dur, const char *args) {
    put(p,
        ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":9,\"tid\":9,"
        "\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}",
        cat, name, (double)p->at + ts, dur, args);
}

static inline void op(struct script *p, const char *name, double ts,
                      double dur) {
    span(p, "cpu_op", name, ts, dur, "");
}

static inline void call(struct script *p, const char *name, double ts,
                        double dur) {
    span(p, "cuda_runtime", name, ts, dur, "");
}

/* Adds a call that fills [ts, ts + dur), and its device work. */
static inline void work(struct script *p, const char *cat, const char *name,
                        double ts, double dur, int stream, double start,
                        double takes, const char *args) {
    char link[40];
    snprintf(link, sizeof link, "\"correlation\":%d", ++p->id);
    span(p, "cuda_runtime",
         strcmp(cat, "kernel") == 0 ? "cudaLaunchKernel" : "cudaMemcpyAsync",
         ts, dur, link);
    put(p,
        ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":0,"
        "\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"device\":0,"
        "\"stream\":%d,%s%s%s}}",
        cat, name, stream, (double)p->at + start, takes, stream, link,
        *args ? "," : "", args);
}

/* Adds an op of 10 us that is all one launch. */
static inline void kernel(struct script *p, const char *name,
                          const char *kernel_name, double ts, double start,
                          double takes, const char *args) {
    op(p, name, ts, 10);
    work(p, "kernel", kernel_name, ts, 10, 7, start, takes, args);
}

static inline struct script begin(const char *device) {
    struct script p = {.s = calloc(1, SCRIPT_TEXT + 64)};
    assert_non_null(p.s);
    put(&p,
        "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,"
        "\"name\":\"%s\",\"numSms\":132,\"totalGlobalMem\":1000000}],"
        "\"traceEvents\":[{}",
        device);
    return p;
}

static inline struct trace *import(struct script *p) {
    struct trace *t = trace_new();
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    assert_non_null(t);
    put(p, "]}");
    if (import_bytes((struct bytes){(const uint8_t *)p->s, p->n}, "mem", t, &o,
                     &e) != 0)
        fail_msg("%s", e.text);
    tiny_seal(t);
    t->sources[0].format = format_named("chrome");
    return t;
}

/* Returns the hints of a few steps of that length, each written by fill. */
static inline struct result study(void (*fill)(struct script *), int64_t length,
                                  bool grad, const char *peak) {
    struct script p = begin("GPU");
    p.grad = grad;
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        p.at = i * length;
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        span(&p, "user_annotation", name, 0, (double)length, "");
        fill(&p);
    }
    struct trace *t = import(&p);
    struct result r = tiny_run(t, "hints", peak ? "device-peak" : NULL, peak);
    trace_free(t);
    free(p.s);
    return r;
}

/* Checks that row k is that hint and saves so much a step. */
static inline void expect_row(const struct result *r, size_t k, const char *id,
                              double us) {
    if (k >= r->nrows) fail_msg("no hint %zu, want %s", k, id);
    assert_string_equal(tiny_cell(r, k, "id")->s, id);
    double got = (double)tiny_cell(r, k, "save_us")->i / US;
    /* a share of the step as recorded, which what is run again misses a little
     */
    if (fabs(got - us) > us / 100 + 0.001)
        fail_msg("%s saves %f, not %f", id, got, us);
}

/* Checks that it is the only hint. */
static inline void expect(struct result r, const char *id, double us) {
    expect_row(&r, 0, id, us);
    assert_int_equal(r.nrows, 1);
    for (size_t c = 0; c < r.ncols; c++)
        assert_false(result_cell(&r, 0, c).null);
    result_free(&r);
}

static inline bool evidence_has(const struct result *r, const char *text) {
    return strstr(tiny_cell(r, 0, "evidence")->s, text) != NULL;
}

#endif
