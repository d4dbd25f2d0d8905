/* SPDX-License-Identifier: Apache-2.0
 * Places in words: see where.h. */
#include "analyze/shared/where.h"

/* "node3 rank 1" and the like in the result's arena, or NULL. */
static const char *source_words(struct result *r, const struct trace *t,
                                uint32_t source) {
    const struct source *s = &t->sources[source];
    const char *host = s->host ? strs_text(&t->strs, s->host) : NULL;
    if (s->rank < 0) return host;
    return arena_fmt(&r->arena, "%s%srank %lld", host ? host : "",
                     host ? " " : "", (long long)s->rank);
}

void where_source(struct result *r, const struct trace *t, uint32_t source) {
    result_text(r, source_words(r, t, source));
}

void where_device(struct result *r, const struct trace *t, uint32_t source,
                  uint32_t device) {
    const char *what = device < t->ndevices
                           ? strs_text(&t->strs, t->devices[device].label)
                           : "host";
    const char *on = trace_processes(t) > 1 ? source_words(r, t, source) : NULL;
    if (on == NULL) result_text(r, what);
    else result_text(r, arena_fmt(&r->arena, "%s %s", on, what));
}
