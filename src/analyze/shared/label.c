/* SPDX-License-Identifier: Apache-2.0
 * Labels of sources and devices: see label.h. */
#include "analyze/shared/label.h"

const char *label_source(struct result *r, const struct trace *t,
                         uint32_t source) {
    const struct source *s = &t->sources[source];
    const char *host = s->host ? strs_text(&t->strs, s->host) : NULL;
    if (s->rank < 0) return host;
    return arena_fmt(&r->arena, "%s%srank %lld", host ? host : "",
                     host ? " " : "", (long long)s->rank);
}

const char *label_device(struct result *r, const struct trace *t,
                         uint32_t source, uint32_t device) {
    const char *what = device < t->ndevices
                           ? strs_text(&t->strs, t->devices[device].label)
                           : "host";
    const char *on = t->nprocesses > 1 ? label_source(r, t, source) : NULL;
    return on == NULL ? what : arena_fmt(&r->arena, "%s %s", on, what);
}
