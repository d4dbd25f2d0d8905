/* SPDX-License-Identifier: Apache-2.0
 * The body of all importer targets: any bytes, read by one importer (named by
 * FUZZ_IMPORTER, without asking sniff), sealed, every analysis run, every
 * result printed, the trace exported and read back. Included once by each
 * fuzz_<importer>.c. */
#include "analyze/analyze.h"
#include "base/io/sink.h"
#include "export/export.h"
#include "import/import.h"
#include "model/result.h"
#include "model/trace_fill.h"
#include "present/present.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct importer *target(void) {
    for (size_t i = 0; importers[i] != NULL; i++)
        if (strcmp(importers[i]->format.name, FUZZ_IMPORTER) == 0)
            return importers[i];
    abort();
}

/* Runs one analysis, in all forms; an error must come with a sentence. */
static void analyze(const struct trace *t, const struct analysis *a) {
    struct opts o = {0};
    struct result r;
    struct ops_err e = {0};
    struct text_style style = {.width = 80, .color = true};
    struct sink out;
    opts_init(&o, analysis_common_opts, a->opts, NULL);
    if (analysis_run(a, t, &o, 20, &r, &e) != 0) {
        assert(e.code != 0 && e.text[0] != '\0');
        return;
    }
    sink_memory(&out);
    for (size_t i = 0; presenters[i] != NULL; i++)
        presenters[i]->put(&r, &style, &out);
    assert(out.n != 0);
    sink_free(&out);
    result_free(&r);
}

/* Writes a Chrome trace and reads it again: it must have as many spans, links
 * and memory events. */
static void export_again(const struct trace *t) {
    struct export_form form;
    struct ops_err e = {0};
    struct sink out;
    struct trace *u = trace_new();
    static const char zeros[64];
    if (u == NULL || export_form("a.json", NULL, &form, &e) != 0) abort();
    sink_memory(&out);
    if (form.exporter->write(t, &out, &e) != 0) abort();
    sink_write(&out, zeros, sizeof zeros);
    struct import_opts o = {.threads = 1};
    struct bytes b = {(uint8_t *)out.buf, out.n - sizeof zeros};
    if (import_bytes(b, "a.json", u, &o, &e) != 0) abort();
    if (trace_seal(u, &e) != 0) abort();
    assert(u->spans.n == t->spans.n);
    assert(u->links.n == t->links.n);
    assert(u->mem.n == t->mem.n);
    assert(u->nooms == t->nooms);
    trace_free(u);
    sink_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = calloc(1, size + 64);
    struct trace *t = trace_new();
    if (copy == NULL || t == NULL) abort();
    memcpy(copy, data, size);
    const struct importer *imp = target();
    struct import_opts o = {.threads = 1 + (int)(size & 1)};
    struct ops_err e = {0};
    uint32_t s = trace_source(t, "fuzz", &imp->format, NULL,
                              (struct bytes){copy, size});
    int rc = imp->read(t, s, &o, &e);
    if (rc == 0) rc = trace_seal(t, &e);
    assert(rc == 0 || (e.code == rc && e.text[0] != '\0'));
    for (size_t i = 0; rc == 0 && analyses[i] != NULL; i++)
        analyze(t, analyses[i]);
    if (rc == 0) export_again(t);
    trace_free(t);
    free(copy);
    return 0;
}
