/* SPDX-License-Identifier: Apache-2.0
 * Python frames stand on tracks of their own; an op's stack is what is open
 * there at the op's start. */
#include "analyze/shared/pystack.h"

#include "model/trace.h"
#include "names/frame_name.h"
#include <stdlib.h>

int pystack_init(struct pystack *p, const struct trace *t, struct ops_err *e) {
    *p = (struct pystack){.t = t};
    p->python = trace_python_tracks(t);
    return p->python ? 0 : fail_oom(e);
}

void pystack_free(struct pystack *p) {
    free(p->python);
    *p = (struct pystack){0};
}

row_id pystack_at(const struct pystack *p, uint32_t thread, int64_t ts) {
    if (thread >= p->t->ntracks) return ROW_NONE;
    return span_at(p->t, p->python[thread], ts);
}

size_t pystack_text(const struct pystack *p, uint32_t thread, int64_t ts, int n,
                    char *buf, size_t cap) {
    size_t len = 0;
    buf[0] = '\0';
    row_id r = pystack_at(p, thread, ts);
    for (int i = 0; i < n && r != ROW_NONE; i++, r = p->t->spans.parent[r]) {
        struct bytes b = strs_bytes(&p->t->strs, p->t->spans.name[r]);
        size_t sep = i > 0 ? 3 : 0;
        if (sep + b.n >= cap - len) break;
        memcpy(buf + len, " < ", sep);
        memcpy(buf + len + sep, b.p, b.n);
        len += sep + b.n;
        buf[len] = '\0';
    }
    return len;
}

row_id pystack_module(const struct pystack *p, uint32_t thread, int64_t ts) {
    row_id r = pystack_at(p, thread, ts);
    for (int i = 0; i < CLIMB_MAX && r != ROW_NONE; i++) {
        struct bytes b = strs_bytes(&p->t->strs, p->t->spans.name[r]);
        if (frame_name_is_module(b)) return r;
        r = p->t->spans.parent[r];
    }
    return ROW_NONE;
}
