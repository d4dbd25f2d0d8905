/* SPDX-License-Identifier: Apache-2.0
 * Facts and counters of a view from outside. */
#include "analyze/outside.h"

#include <stdlib.h>
#include <string.h>

bool outside_only(const struct trace *t) {
    for (size_t i = 0; i < t->nsources; i++)
        if (!t->sources[i].outside) return false;
    return t->nsources > 0;
}

const char *outside_text(const struct trace *t, uint32_t source,
                         const char *key) {
    for (size_t i = 0; i < t->nmeta; i++)
        if (t->meta[i].source == source &&
            strcmp(strs_text(&t->strs, t->meta[i].key), key) == 0)
            return strs_text(&t->strs, t->meta[i].value);
    return NULL;
}

int64_t outside_fact(const struct trace *t, uint32_t source, const char *key) {
    const char *text = outside_text(t, source, key);
    return text != NULL ? strtoll(text, NULL, 10) : -1;
}

double outside_peak(const struct trace *t, uint32_t source,
                    const char *counter) {
    double most = -1;
    for (size_t i = 0; i < t->samples.n; i++) {
        const struct counter *c = &t->counters[t->samples.counter[i]];
        if (c->source != source || t->samples.value[i] <= most) continue;
        if (strcmp(strs_text(&t->strs, c->name), counter) == 0)
            most = t->samples.value[i];
    }
    return most;
}
