/* SPDX-License-Identifier: Apache-2.0
 * Jobs of several ranks, each a Kineto file written here and imported into one
 * trace: what the tests of communication share. Times in microseconds. */
#ifndef UNIT_JOB_H
#define UNIT_JOB_H

#include "tiny.h"

#include "import/import.h"
#include <stdio.h>
#include <stdlib.h>

enum { JOB_TEXT = 1 << 16, JOB_FILES = 512 };

struct job {
    struct trace *t;
    char *bufs[JOB_FILES];
    size_t nbufs;
    char *text; /* of the rank that is being written */
    size_t len;
    int64_t clock; /* us added to all its times */
    int correlation;
};

static inline struct job job_new(void) {
    struct job j = {.t = trace_new()};
    assert_non_null(j.t);
    return j;
}

static inline void job_put(struct job *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void job_put(struct job *j, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(j->text + j->len, JOB_TEXT - 64 - j->len, fmt, ap);
    va_end(ap);
    assert_true(n >= 0 && j->len + (size_t)n < JOB_TEXT - 64);
    j->len += (size_t)n;
}

/* Begins a rank's file. device: it has a GPU; extra: more of
 * distributedInfo. */
static inline void job_rank(struct job *j, int rank, int world, bool device,
                            const char *extra) {
    j->text = calloc(1, JOB_TEXT);
    assert_non_null(j->text);
    j->len = 0;
    j->clock = 0;
    job_put(j, "{\"schemaVersion\":1,\"baseTimeNanoseconds\":"
               "1790857026000000000,");
    if (device)
        job_put(j, "\"deviceProperties\":[{\"id\":0,\"name\":\"GPU\"},"
                   "{\"id\":1,\"name\":\"GPU\"}],");
    job_put(j,
            "\"distributedInfo\":{\"rank\":%d,\"world_size\":%d%s},"
            "\"traceEvents\":[{}",
            rank, world, extra ? extra : "");
}

static inline void job_span(struct job *j, const char *cat, const char *name,
                            int tid, int64_t ts, int64_t dur,
                            const char *args) {
    job_put(j,
            ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,"
            "\"tid\":%d,\"ts\":%lld,\"dur\":%lld,\"args\":{%s}}",
            cat, name, tid, (long long)(ts + j->clock), (long long)dur,
            args ? args : "");
}

static inline void job_step(struct job *j, int n, int64_t ts, int64_t dur) {
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", n);
    job_span(j, "user_annotation", name, 1, ts, dur, NULL);
}

/* Adds a kernel of device and stream, launched at ts - 5 by thread 1. */
static inline void job_kernel(struct job *j, const char *name, int device,
                              int stream, int64_t ts, int64_t dur,
                              const char *args) {
    char more[1024];
    int id = ++j->correlation;
    snprintf(more, sizeof more, "\"correlation\":%d", id);
    job_span(j, "cuda_runtime", "cudaLaunchKernel", 1, ts - 5, 2, more);
    snprintf(more, sizeof more,
             "\"correlation\":%d,\"device\":%d,\"stream\":%d%s%s", id, device,
             stream, args ? "," : "", args ? args : "");
    job_span(j, "kernel", name, stream, ts, dur, more);
}

/* Adds an NCCL kernel as torch writes it since 2.4. */
static inline void job_nccl(struct job *j, int64_t ts, int64_t dur, int seq,
                            const char *group) {
    char args[512];
    snprintf(args, sizeof args,
             "\"Collective name\":\"allreduce\",\"In msg nelems\":1000000,"
             "\"Out msg nelems\":1000000,\"dtype\":\"Float\",\"Group size\":4,"
             "\"Process Group Name\":\"%s\",\"Process Group Ranks\":"
             "\"[0, 1, 2, 3]\",\"Seq\":%d",
             group, seq);
    job_kernel(j, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 0,
               20, ts, dur, args);
}

/* Adds what gloo leaves: no group, no number. */
static inline void job_gloo(struct job *j, const char *name, int tid,
                            int64_t ts, int64_t dur, int elems) {
    char args[128];
    snprintf(args, sizeof args,
             "\"Input Dims\":[[%d]],\"Input type\":[\"float\"]", elems);
    job_span(j, "user_annotation", name, tid, ts, dur, args);
}

static inline void job_end(struct job *j) {
    struct ops_err e = {0};
    struct import_opts o = {.threads = 1};
    job_put(j, "]}");
    assert_true(j->nbufs < JOB_FILES);
    j->bufs[j->nbufs++] = j->text;
    struct bytes b = {(const uint8_t *)j->text, j->len};
    int rc = import_bytes(b, "job", j->t, &o, &e);
    if (rc != 0) fail_msg("%s", e.text);
}

static inline void job_free(struct job *j) {
    trace_free(j->t);
    for (size_t i = 0; i < j->nbufs; i++) free(j->bufs[i]);
}

static inline bool job_says(const struct result *r, const char *text) {
    for (size_t i = 0; i < r->nremarks; i++)
        if (strstr(r->remarks[i], text)) return true;
    return false;
}

#endif
