/* SPDX-License-Identifier: Apache-2.0
 * What is said of a step only once it has begun. The engine in a Python program
 * learns late that a step is none (the loader had no batch left), that it was
 * the program's last one (it goes on until the program is over, which takes its
 * time after training), or that nobody knows where it ended. It says so by an
 * instant in opscope's own recording, of the latest step that began before; the
 * marker that a framework's tracer has of that step is mended the same way. */
#include "load/runs_impl.h"

#include "base/facts.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/trace_fill.h"
#include <stdlib.h>
#include <string.h>

/* A step, or an instant of the recording that tells of one. */
struct mark {
    int64_t ts;
    row_id row;
    row_id longest; /* of the capture: which up to here ends last */
    bool is_step;
};

struct marks {
    struct mark *v;
    size_t n, cap;
};

/* A capture and its markers of steps, by time. */
struct capture {
    struct loaded_file *file;
    struct marks markers;
};

/* What was told of a step that lay there in the recording. */
struct told {
    int64_t ts, end; /* as it was recorded */
    int64_t over;    /* then it was over; INT64_MAX: as it was recorded */
    bool none, cut;
};

static bool is_step(const struct trace *t, row_id r) {
    return (t->spans.flags[r] & SPAN_STEPMARK) != 0;
}

/* Reads the time in the name of SPAN_STEP_OVER. Returns ps, or -1 if it is
 * another name. */
static int64_t ago_of(const char *name) {
    if (strncmp(name, SPAN_STEP_OVER, sizeof SPAN_STEP_OVER - 1) != 0)
        return -1;
    long long ns = strtoll(name + sizeof SPAN_STEP_OVER - 1, NULL, 10);
    return ns < 0 || ns > INT64_MAX / PS_PER_NS ? -1 : ns * PS_PER_NS;
}

static bool tells(const char *name) {
    return strcmp(name, SPAN_NO_STEP) == 0 ||
           strcmp(name, SPAN_STEP_CUT) == 0 || ago_of(name) >= 0;
}

static int by_time(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    if (x->ts != y->ts) return x->ts < y->ts ? -1 : 1;
    return y->is_step - x->is_step;
}

/* Lists steps by time, with what tells of them or without. Returns false if out
 * of memory. */
static bool list_marks(const struct trace *t, bool told, struct marks *out) {
    for (row_id r = 0; r < t->spans.n; r++) {
        bool step = is_step(t, r);
        if (!step && !(told && tells(strs_text(&t->strs, t->spans.name[r]))))
            continue;
        if (!VEC_ROOM(out->v, out->n, out->cap)) return false;
        out->v[out->n++] = (struct mark){t->spans.ts[r], r, r, step};
    }
    if (out->n > 1) qsort(out->v, out->n, sizeof *out->v, by_time);
    return true;
}

/* Lists a capture's markers. Returns false if out of memory. */
static bool list_markers(const struct trace *t, struct marks *out) {
    if (!list_marks(t, false, out)) return false;
    for (size_t i = 1; i < out->n; i++) {
        row_id longest = out->v[i - 1].longest;
        if (span_end(t, longest) > span_end(t, out->v[i].row))
            out->v[i].longest = longest;
    }
    return true;
}

static void add_told(const struct trace *t, row_id by, struct told *told) {
    const char *name = strs_text(&t->strs, t->spans.name[by]);
    int64_t ago = ago_of(name);
    if (ago >= 0) told->over = sat_sub(t->spans.ts[by], ago);
    else if (strcmp(name, SPAN_STEP_CUT) == 0) told->cut = true;
    else told->none = true;
}

/* Mends a marker; `over` is of its own trace. */
static void mend(struct trace *t, row_id r, const struct told *told,
                 int64_t over) {
    int64_t *dur = &t->spans.dur[r], ts = t->spans.ts[r];
    if (told->none) {
        t->spans.flags[r] &= (uint8_t)~SPAN_STEPMARK;
        put_row_aside(t, r);
        return;
    }
    if (told->cut) t->spans.flags[r] |= SPAN_OPEN;
    if (over < ts + *dur) *dur = over > ts ? over - ts : 0;
}

/* Is row r of the capture a marker of what lies at [ts, end), by more than half
 * of the shorter one, and of more of it than *most? Then that is what it
 * shares. */
static bool is_better(const struct trace *t, row_id r, int64_t ts, int64_t end,
                      int64_t *most) {
    int64_t lo = t->spans.ts[r], hi = span_end(t, r);
    int64_t least = (hi - lo < end - ts ? hi - lo : end - ts) / 2;
    if (lo < ts) lo = ts;
    if (hi > end) hi = end;
    if (!is_step(t, r) || hi - lo <= least || hi - lo <= *most) return false;
    *most = hi - lo;
    return true;
}

/* Returns the capture's marker of what lies at [ts, end): that which shares
 * most of its time, or ROW_NONE. Clocks of two recorders differ by
 * microseconds. Of all that began before, that which ends last shares most, and
 * it alone is looked at: there may be any number of them. */
static row_id marker_at(const struct capture *c, int64_t ts, int64_t end) {
    const struct trace *t = c->file->t;
    const struct marks *m = &c->markers;
    row_id best = ROW_NONE;
    int64_t most = 0;
    size_t i = 0, past = m->n;
    while (i < past) {
        size_t mid = i + (past - i) / 2;
        if (m->v[mid].ts < ts) i = mid + 1;
        else past = mid;
    }
    if (i > 0 && is_better(t, m->v[i - 1].longest, ts, end, &most))
        best = m->v[i - 1].longest;
    for (; i < m->n && m->v[i].ts < end; i++)
        if (is_better(t, m->v[i].row, ts, end, &most)) best = m->v[i].row;
    return best;
}

static bool is_last_step(struct capture *c, row_id r) {
    const struct trace *t = c->file->t;
    struct marks *m = &c->markers;
    while (m->n > 0 && !is_step(t, m->v[m->n - 1].row)) m->n--;
    return m->n == 0 || m->v[m->n - 1].ts <= t->spans.ts[r];
}

static void mend_capture(struct capture *c, const struct loaded_file *own,
                         const struct told *told) {
    struct loaded_file *f = c->file;
    __int128 by = ((__int128)own->t->epoch_ns - f->t->epoch_ns) * PS_PER_NS;
    __int128 lo = told->ts + by, hi = told->end + by;
    if (hi <= f->lo || lo >= f->hi || lo < -DUR_LIMIT || hi > TS_LIMIT) return;
    row_id r = marker_at(c, (int64_t)lo, (int64_t)hi);
    if (r == ROW_NONE) return;
    bool is_over = told->over != INT64_MAX;
    mend(f->t, r, told, is_over ? (int64_t)(told->over + by) : INT64_MAX);
    if (is_over && !told->cut && !told->none)
        f->t->sources[0].last_is_whole = is_last_step(c, r);
}

static void captures_free(struct capture *v, size_t n) {
    for (size_t i = 0; v != NULL && i < n; i++) free(v[i].markers.v);
    free(v);
}

/* Returns NULL if out of memory. */
static struct capture *captures_new(struct loaded_file **files, size_t n) {
    struct capture *v = calloc(n + 1, sizeof *v);
    bool ok = v != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        v[i].file = files[i];
        ok = list_markers(files[i]->t, &v[i].markers);
    }
    if (ok) return v;
    captures_free(v, n);
    return NULL;
}

bool mend_told_steps(struct loaded_file *own, struct loaded_file **captures,
                     size_t n) {
    struct trace *t = own->t;
    struct marks m = {0};
    struct capture *v = captures_new(captures, n);
    bool ok = v != NULL && list_marks(t, true, &m);
    for (size_t i = 0; ok && i < m.n; i++) {
        if (!m.v[i].is_step) continue;
        row_id r = m.v[i].row;
        struct told told = {t->spans.ts[r], span_end(t, r), INT64_MAX, false,
                            false};
        size_t next = i + 1;
        for (; next < m.n && !m.v[next].is_step; next++)
            add_told(t, m.v[next].row, &told);
        if (next == i + 1) continue;
        mend(t, r, &told, told.over);
        /* else each of many that overlap would look at the same markers */
        if (next < m.n && told.end > m.v[next].ts) told.end = m.v[next].ts;
        for (size_t k = 0; k < n; k++) mend_capture(&v[k], own, &told);
    }
    for (size_t i = 0; ok && i < m.n; i++)
        if (!m.v[i].is_step) put_row_aside(t, m.v[i].row);
    captures_free(v, n);
    free(m.v);
    return ok;
}
