/* SPDX-License-Identifier: Apache-2.0
 * One plane of an XSpace, put together in memory.
 *
 *     XSpace { 1 planes }   XPlane { 1 id, 2 name, 3 lines, 4 event names,
 *     5 stat names, 6 stats }   XLine { 1 id, 2 name, 3 begin in ns, 4 events }
 *     XEvent { 1 name, 2 offset_ps, 3 duration_ps, 4 stats }
 *     XStat { 1 name, 2 double | 3 uint64 | 4 int64 | 5 text } */
#ifndef CAPTURE_XPLANE_H
#define CAPTURE_XPLANE_H

#include "base/io/sink.h"
#include "model/strs.h"

struct xplane_out {
    struct sink lines, facts;
    struct strs stats;  /* names of stats */
    struct strs events; /* names of events */
    struct strs texts;  /* what is to be valid UTF-8 */
    struct sink line;   /* the one that is open */
    struct sink event;  /* the stats of the next event */
};

/* False: out of memory. xplane_out_free in any case. */
bool xplane_out_init(struct xplane_out *p);
void xplane_out_free(struct xplane_out *p);

/* Facts of the plane. */
void xplane_fact_int(struct xplane_out *p, const char *key, int64_t v);
void xplane_fact_uint(struct xplane_out *p, const char *key, uint64_t v);
void xplane_fact_text(struct xplane_out *p, const char *key, const char *text);

/* Stats of the event that comes next. */
void xplane_stat_int(struct xplane_out *p, const char *key, int64_t v);
void xplane_stat_num(struct xplane_out *p, const char *key, double v);
void xplane_stat_text(struct xplane_out *p, const char *key, const char *text);

/* An event of the open line; times in ps from the line's begin. */
void xplane_event(struct xplane_out *p, const char *name, int64_t offset_ps,
                  int64_t dur_ps);

/* Closes the open line, which began at ns (from the profile's start). */
void xplane_line(struct xplane_out *p, int64_t id, const char *name,
                 int64_t ns);

/* The plane as a field of an XSpace. An error only when memory ran out. */
int xplane_out_write(struct xplane_out *p, int64_t id, const char *name,
                     struct sink *to, struct ops_err *e);

#endif
