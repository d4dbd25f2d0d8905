/* SPDX-License-Identifier: Apache-2.0
 * Facts as rows: see facts.h. */
#include "analyze/report/facts.h"

#include "base/array.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "model/trace.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void facts_columns(struct result *r) {
    static const struct column cols[] = {
        {"metric", NULL, NULL, "What the row is about.", COL_TEXT, COL_KEY},
        {"value", NULL, NULL, "The number, where there is one.", COL_FLOAT,
         COL_DETAIL},
        {"unit", NULL, NULL, "The unit of the number.", COL_TEXT, COL_DETAIL},
        {"text", "", NULL, "The same in words.", COL_TEXT, COL_WRAP},
    };
    result_cols(r, cols, COUNT(cols));
    r->in_order = true;
}

void facts_put(struct result *r, const char *metric, bool have, double value,
               const char *unit, const char *text) {
    result_row(r);
    cell_text(r, "metric", metric);
    if (have) cell_float(r, "value", value);
    cell_text(r, "unit", unit);
    cell_text(r, "text", text);
}

void facts_text(struct result *r, const char *metric, const char *text) {
    facts_put(r, metric, false, 0, NULL, text);
}

void facts_count(struct result *r, const char *metric, uint64_t n) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, n);
    facts_put(r, metric, true, (double)n, NULL, text);
}

void facts_time(struct result *r, const char *metric, int64_t ps) {
    char text[48];
    human_time(ps, text, sizeof text);
    facts_put(r, metric, true, (double)ps / PS_PER_US, "us", text);
}

void facts_bytes(struct result *r, const char *metric, int64_t n) {
    char text[48];
    human_bytes(n, text, sizeof text);
    facts_put(r, metric, true, (double)n, "bytes", text);
}

void facts_words(struct result *r, const char *metric, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    cut_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    facts_text(r, metric, text);
}

int64_t facts_told(const struct trace *t, uint32_t source, const char *key) {
    const char *text = trace_meta_get(t, source, key);
    return text != NULL ? strtoll(text, NULL, 10) : -1;
}

bool *facts_devices(const struct trace *t) {
    bool *used = calloc(t->ndevices + 1, sizeof *used), any = false;
    if (used == NULL) return NULL;
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->device != ROW_NONE && tr->first < tr->end)
            used[tr->device] = true;
    }
    for (size_t i = 0; i < t->nallocators; i++)
        if (t->allocators[i].device != ROW_NONE)
            used[t->allocators[i].device] = true;
    for (size_t i = 0; i < t->ncounters; i++)
        if (t->counters[i].device != ROW_NONE)
            used[t->counters[i].device] = true;
    for (size_t i = 0; i < t->ndevices; i++) any |= used[i];
    /* where nothing ran, all that can be told is what there is */
    for (size_t i = 0; i < t->ndevices && !any; i++) used[i] = true;
    return used;
}
