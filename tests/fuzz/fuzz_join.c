/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the joining of a memory snapshot with a trace: the same bytes are
 * read twice, the second time moved about a little, and joined with the
 * first, which plays the trace. No event may count twice. */
#include "../unit/formats.h"
#include "analyze/analyze.h"
#include "base/hash.h"
#include "import/import.h"
#include "model/trace_fill.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct importer importer_snapshot;

static struct trace *load(const uint8_t *data, size_t size) {
    struct trace *t = trace_new();
    struct import_opts o = {.threads = 1};
    struct ops_err e = {0};
    if (t == NULL) abort();
    uint32_t s = trace_source(t, "fuzz", format_named("snapshot"), NULL,
                              (struct bytes){data, size});
    if (importer_snapshot.read(t, s, &o, &e) == 0) return t;
    trace_free(t);
    return NULL;
}

/* Makes some events differ in time, address or size. */
static void disturb(struct trace *t) {
    for (size_t i = 0; i < t->mem.n; i++) {
        uint64_t h = hash_u64(i + t->mem.n);
        if (h % 4 == 0 && ts_is_sane(t->mem.ts[i] + 2 * PS_PER_MS))
            t->mem.ts[i] += (int64_t)(h >> 8) % (2 * PS_PER_MS);
        if (h % 16 == 1) t->mem.addr[i] ^= 512;
        if (h % 16 == 2) t->mem.bytes[i] = -t->mem.bytes[i];
    }
}

static void analyze(const struct trace *t, const char *name) {
    struct opts o = {0};
    struct result r;
    struct ops_err e = {0};
    const struct analysis *a = analysis_find(name);
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    if (analysis_run(a, t, &o, 0, &r, &e) == 0) result_free(&r);
    else assert(e.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = calloc(2, size + 64);
    if (copy == NULL) abort();
    memcpy(copy, data, size);
    memcpy(copy + size + 64, data, size);
    struct trace *a = load(copy, size);
    struct trace *b = load(copy + size + 64, size);
    struct ops_err e = {0};
    if (a != NULL && b != NULL) {
        size_t events = a->mem.n, before = a->nsources;
        disturb(b);
        size_t common;
        if (trace_shared_allocs(a, b, &common, &e) != 0) abort();
        assert(common <= events);
        if (trace_join_memory(a, 0, b, &e) != 0) abort();
        assert(a->mem.n >= events && a->nsources == before + 1);
        if (trace_seal(a, &e) != 0) abort();
        analyze(a, "memory");
        analyze(a, "allocs");
        analyze(a, "segments");
        b = NULL;
    }
    trace_free(a);
    trace_free(b);
    free(copy);
    return 0;
}
