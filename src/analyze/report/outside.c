/* SPDX-License-Identifier: Apache-2.0
 * Facts and counters of a view from outside. */
#include "analyze/report/outside.h"

#include <stdlib.h>
#include <string.h>

bool outside_only(const struct trace *t) {
    for (size_t i = 0; i < t->nsources; i++)
        if (!t->sources[i].outside) return false;
    return t->nsources > 0;
}

const char *outside_text(const struct trace *t, uint32_t source,
                         const char *key) {
    return trace_meta_get(t, source, key);
}

int64_t outside_fact(const struct trace *t, uint32_t source, const char *key) {
    const char *text = outside_text(t, source, key);
    return text != NULL ? strtoll(text, NULL, 10) : -1;
}

double *outside_peaks(const struct trace *t, const char *counter) {
    str_id name = strs_find(&t->strs, bytes_of(counter));
    double *most = malloc((t->nsources + 1) * sizeof *most);
    for (size_t i = 0; most != NULL && i < t->nsources; i++) most[i] = -1;
    for (size_t i = 0; most != NULL && name != STR_NONE && i < t->samples.n;
         i++) {
        const struct counter *c = &t->counters[t->samples.counter[i]];
        if (c->name == name && t->samples.value[i] > most[c->source])
            most[c->source] = t->samples.value[i];
    }
    return most;
}
