/* SPDX-License-Identifier: Apache-2.0
 * When is zero? The plane "Task Environment" says when the profile started;
 * lines count from there, or (files that nobody normalised) from the Unix
 * epoch: a line older than the start counts from it. Without that plane (a
 * cut file has lost it: it stands last) lines that lie in this century are
 * Unix times, others count from a zero that nobody knows. */
#include "import/xspace/xspace.h"
#include "model/trace_fill.h"

#include "base/facts.h"
#include "base/xspace.h"

/* Times from here on (1973) are Unix times; no profile runs three years. */
#define UNIX_NS_LEAST INT64_C(100000000000000000)

/* Returns the earliest Unix time among the lines, or 0. */
static int64_t first_line(const struct xspace *x) {
    int64_t first = 0;
    for (size_t i = 0; i < x->nplanes; i++)
        for (size_t k = 0; k < x->planes[i].nlines; k++) {
            int64_t ts = x->planes[i].lines[k].ts_ns;
            if (ts >= UNIX_NS_LEAST && (first == 0 || ts < first)) first = ts;
        }
    return first;
}

/* Returns the start of a line in ps of the trace; far out times end as ones
 * that trace_span() refuses. */
static int64_t line_base(const struct xspace *x, int64_t ts_ns) {
    int64_t ns = ts_ns, ps;
    if (x->zero_ns > 0 &&
        (ts_ns >= x->zero_ns || (x->own && ts_ns >= UNIX_NS_LEAST)))
        ns = ts_ns - x->zero_ns;
    if (__builtin_mul_overflow(ns, PS_PER_NS, &ps) ||
        __builtin_add_overflow(ps, x->shift, &ps))
        return INT64_MAX / 2;
    return ps;
}

/* Finds offset and device_offset_ps of the first event of a line that has
 * both. */
static bool first_offsets(const struct xplane *p, const struct xline *l,
                          int64_t *host, int64_t *dev) {
    struct pb lr = {l->events, l->body.p + l->body.n, false}, r;
    struct pb_field f;
    *host = 0;
    if (!pb_next(&lr, &f) || f.num != XLINE_EVENTS || f.wire != PB_BYTES)
        return false;
    bool found = false;
    for (r = pb_reader(f.bytes); pb_next(&r, &f);) {
        uint64_t id;
        struct xval v;
        if (f.num == XEVENT_OFFSET_PS && f.wire == PB_VARINT)
            *host = (int64_t)f.value;
        if (f.num != XEVENT_STATS || f.wire != PB_BYTES) continue;
        if (!xstat_read(f.bytes, &id, &v)) continue;
        uint32_t s = xids_get(&p->stat_ids, id);
        if (s == MAP_NONE || p->stats[s].code != XSTAT_DEVICE_OFFSET) continue;
        *dev = xval_int(p, &v);
        found = true;
    }
    return found;
}

/* Sets a device's clock. Its offsets count from the line's base, from the
 * profile's start, or from a zero of the device's own. The first event, whose
 * time on the host's clock is known, decides: the reading that puts it within a
 * second of that is believed, else its zero is set so that the event agrees. */
static void device_clock(const struct xspace *x, struct xplane *p) {
    for (size_t i = 0; i < p->nlines; i++) {
        const struct xline *l = &p->lines[i];
        int64_t host, dev, by_line, by_start;
        if (!first_offsets(p, l, &host, &dev)) continue;
        if (!ts_is_sane(host)) continue;
        if (__builtin_sub_overflow(dev, host, &by_line)) continue;
        if (by_line > -PS_PER_S && by_line < PS_PER_S) return;
        p->own_clock = true;
        p->dev_zero = x->shift;
        by_start = l->base - x->shift - by_line;
        if (by_start > -PS_PER_S && by_start < PS_PER_S) return;
        if (__builtin_sub_overflow(l->base, by_line, &p->dev_zero))
            p->dev_zero = 0;
        return;
    }
}

void xspace_clock(struct xspace *x) {
    for (size_t i = 0; i < x->nplanes; i++) {
        const struct xplane *p = &x->planes[i];
        if (!BYTES_IS(p->name, XSPACE_ENVIRONMENT)) continue;
        int64_t start = xplane_fact_int(p, XSPACE_START_TIME, 0);
        if (start > 0 && start < INT64_MAX / 2) x->zero_ns = start;
    }
    /* the recorder says it in every file, closed or not */
    for (size_t i = 0; i < x->nplanes && x->zero_ns == 0; i++) {
        const struct xplane *p = &x->planes[i];
        int64_t start = p->own ? xplane_fact_int(p, FACT_START_UNIX_NS, 0) : 0;
        if (start > 0 && start < INT64_MAX / 2) x->zero_ns = start;
    }
    if (x->zero_ns == 0) x->zero_ns = first_line(x);
    if (x->zero_ns == 0) trace_note(x->t, NOTE_CLOCK_UNKNOWN, 1);
    x->shift = trace_epoch(x->t, x->source, x->zero_ns, x->zero_ns > 0);
    for (size_t i = 0; i < x->nplanes; i++) {
        struct xplane *p = &x->planes[i];
        for (size_t k = 0; k < p->nlines; k++)
            p->lines[k].base = line_base(x, p->lines[k].ts_ns);
        if (p->kind == XPLANE_XLA) device_clock(x, p);
    }
}
