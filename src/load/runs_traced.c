/* SPDX-License-Identifier: Apache-2.0
 * A program under `opscope record` is traced by its framework for some steps,
 * and recorded by opscope all the time. Both are of one process and become one
 * trace: the framework's captures
 *
 *     <host>_<pid>.step<N>.pt.trace.json.gz   or   .xplane.pb
 *
 * have its steps, and opscope's own recording beside them, which knows the
 * process by its number, tells three things more: how long steps take while
 * nobody traces them, the machine's counters, and what the program itself named
 * inside of the captures. What lies outside of these is kept where it can be
 * looked at and is counted nowhere: sums are of the steps that were traced. */
#include "load/runs_impl.h"

#include "base/facts.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/format.h"
#include "model/trace_fill.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Steps at the beginning in which programs compile and warm up, left out
     * where enough others are there. */
    WARM_UP = 2,
    ENOUGH = 5,
    ENOUGH_BEFORE = 10, /* before the capture */
};

/* When something was traced, ps of the recording's epoch. */
struct stretch {
    __int128 lo, hi;
};

/* What one process left: its own recording, and captures by its framework. */
struct traced {
    struct loaded_file *own;
    struct loaded_file **v; /* the captures, at last in order of time */
    size_t n, cap;
    int64_t from;         /* ps of own: before it no step was one */
    struct stretch *when; /* in order, apart from each other */
    size_t nwhen;
};

/* Is this the name of a capture of the process that made that recording? */
static bool is_capture_of(const struct loaded_file *p,
                          const struct loaded_file *own) {
    char mark[40];
    const char *name = strrchr(p->path, '/');
    const char *other = strrchr(own->path, '/');
    size_t folder = name != NULL ? (size_t)(name + 1 - p->path) : 0;
    if ((other != NULL ? (size_t)(other + 1 - own->path) : 0) != folder ||
        memcmp(p->path, own->path, folder) != 0)
        return false;
    snprintf(mark, sizeof mark, "_%" PRId64 ".step", own->t->sources[0].pid);
    const char *at = strstr(p->path + folder, mark);
    /* "<host>_" stands before the number in both names */
    return at != NULL && strncmp(p->path + folder, own->path + folder,
                                 (size_t)(at + 1 - p->path) - folder) == 0;
}

static bool is_own(const struct loaded_file *p) {
    return p->t != NULL && p->t->sources[0].by_opscope &&
           !p->t->sources[0].process_view && p->t->sources[0].pid >= 0;
}

static bool is_step(const struct trace *t, row_id r) {
    return (t->spans.flags[r] & SPAN_STEPMARK) != 0;
}

/* Returns an instant of one trace as one of another's epoch. */
static __int128 moved(const struct trace *from, const struct trace *to,
                      int64_t ts) {
    return ts + ((__int128)from->epoch_ns - to->epoch_ns) * PS_PER_NS;
}

static int by_begin(const void *a, const void *b) {
    const struct stretch *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Lists when captures were taken, by time and apart. What only touches stays
 * apart: an instant between the two is in neither. Returns false if out of
 * memory. */
static bool list_stretches(struct traced *p) {
    struct stretch *v = malloc((p->n + 1) * sizeof *v);
    size_t last = 0;
    if (v == NULL) return false;
    for (size_t i = 0; i < p->n; i++) {
        const struct loaded_file *c = p->v[i];
        v[i].lo = moved(c->t, p->own->t, c->lo);
        v[i].hi = moved(c->t, p->own->t, c->hi);
    }
    qsort(v, p->n, sizeof *v, by_begin);
    for (size_t i = 1; i < p->n; i++) {
        if (v[i].lo >= v[last].hi) v[++last] = v[i];
        else if (v[i].hi > v[last].hi) v[last].hi = v[i].hi;
    }
    p->when = v;
    p->nwhen = p->n > 0 ? last + 1 : 0;
    return true;
}

/* Was that row of the recording inside of a capture, at least in part? */
static bool was_traced(const struct traced *p, row_id r) {
    const struct trace *own = p->own->t;
    int64_t ts = own->spans.ts[r];
    size_t lo = 0, hi = p->nwhen; /* the first that is not over */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->when[mid].hi <= ts) lo = mid + 1;
        else hi = mid;
    }
    return lo < p->nwhen && p->when[lo].lo < ts + own->spans.dur[r];
}

static int by_start(const void *a, const void *b) {
    const struct own_step *x = a, *y = b;
    return x->ts < y->ts ? -1 : x->ts > y->ts;
}

/* Notes a time of steps, in microseconds. */
static void put_us(struct trace *t, const char *key, int64_t ps) {
    char text[48];
    snprintf(text, sizeof text, "%" PRId64 ".%06" PRId64, ps / PS_PER_US,
             ps % PS_PER_US);
    trace_meta(t, 0, key, bytes_of(text));
}

static void put_count(struct trace *t, const char *key, int64_t n) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    trace_meta(t, 0, key, bytes_of(text));
}

static void put_figures(struct trace *t, const struct lap_figures *f) {
    if (trace_meta_get(t, 0, FACT_BARE_STEP_US) != NULL) return;
    put_us(t, FACT_BARE_STEP_US, f->step);
    put_us(t, FACT_BARE_LOW_US, f->low);
    put_us(t, FACT_BARE_HIGH_US, f->high);
    put_count(t, FACT_BARE_STEPS, f->steps);
    if (f->laps > 0) put_count(t, FACT_BARE_LAPS, f->laps);
}

/* How many of the steps count, one by one? Those before the first capture
 * where it traced a device and they are enough: its tracer stays with the
 * program, and later launches are dearer. */
static size_t steps_that_count(const struct traced *p,
                               const struct own_step *steps, size_t n) {
    size_t before = 0;
    while (before < n && !steps[before].traced) before++;
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i]->t->sources[0].has_device &&
            before >= WARM_UP + ENOUGH_BEFORE)
            return before;
    return n;
}

/* Finds the median, and what one in ten is below and above, of steps that
 * nobody traced. Returns false if out of memory; f->steps is 0 where there is
 * none. */
static bool measure_each(const struct traced *p, const struct own_step *steps,
                         size_t n, struct lap_figures *f) {
    int64_t *bare = malloc((n + 1) * sizeof *bare), *v = bare;
    size_t count = 0, warm = 0;
    *f = (struct lap_figures){0};
    if (bare == NULL) return false;
    n = steps_that_count(p, steps, n);
    for (size_t i = 0; i < n; i++) {
        /* the one after a capture pays for its end */
        if (steps[i].traced || (i > 0 && steps[i - 1].traced)) continue;
        warm += i < WARM_UP;
        bare[count++] = steps[i].dur;
    }
    if (count >= warm + ENOUGH) {
        v += warm;
        count -= warm;
    }
    qsort(v, count, sizeof *v, sort_by_value);
    if (count > 0)
        *f = (struct lap_figures){v[(count - 1) / 2], v[(count - 1) / 10],
                                  v[count - 1 - (count - 1) / 10],
                                  (int64_t)count, 0};
    free(bare);
    return true;
}

/* Tells each capture what steps took while nothing traced them, and the
 * recording itself where the program ran ahead: its steps do not show it. */
static bool tell_bare(const struct traced *p, struct own_step *steps,
                      size_t n) {
    struct trace *own = p->own->t;
    struct lap_figures f;
    bool ahead;
    qsort(steps, n, sizeof *steps, by_start);
    if (!laps_measure(own, steps, n, p->from, &f, &ahead)) return false;
    if (ahead && p->n == 0) put_figures(own, &f);
    if (!ahead && p->n > 0 && !measure_each(p, steps, n, &f)) return false;
    for (size_t i = 0; i < p->n && f.steps > 0; i++)
        put_figures(p->v[i]->t, &f);
    return true;
}

/* Is it the span over which the tracer ran? */
static bool is_tracer(const struct trace *t, row_id r) {
    return strncmp(strs_text(&t->strs, t->spans.name[r]), SPAN_TRACED_BY,
                   sizeof SPAN_TRACED_BY - 1) == 0;
}

/* Is it of what opscope did, which is no part of the program? */
static bool is_ours(const struct trace *t, row_id r) {
    const char *name = strs_text(&t->strs, t->spans.name[r]);
    return is_tracer(t, r) || strcmp(name, SPAN_LAP) == 0 ||
           strcmp(name, SPAN_LAP_WAIT) == 0;
}

bool put_row_aside(struct trace *t, row_id r) {
    const struct track *tr = &t->tracks[t->spans.track[r]];
    uint32_t aside = trace_track(t, 0, TRACK_OTHER, tr->pid, tr->tid);
    if (aside != ROW_NONE) t->spans.track[r] = aside;
    return aside != ROW_NONE;
}

/* Lists the steps of the recording. Returns false if out of memory. */
static bool list_steps(const struct traced *p, struct own_step **steps,
                       size_t *n) {
    const struct trace *own = p->own->t;
    size_t cap = 0;
    for (row_id r = 0; r < own->spans.n; r++) {
        if (!is_step(own, r) || (own->spans.flags[r] & SPAN_OPEN)) continue;
        if (!VEC_ROOM(*steps, *n, cap)) return false;
        (*steps)[(*n)++] = (struct own_step){own->spans.ts[r],
                                             own->spans.dur[r],
                                             was_traced(p, r)};
    }
    return true;
}

/* Looks at the recording's steps for how long they take. */
static void measure(const struct traced *p) {
    struct own_step *steps = NULL;
    size_t n = 0;
    if (!list_steps(p, &steps, &n) || (n > 0 && !tell_bare(p, steps, n)))
        p->own->t->oom = true;
    free(steps);
}

/* Puts what lies outside of the captures where nothing is counted; and the
 * steps themselves, the waits for batches and what is ours: captures have the
 * first two, too. */
static void put_aside(struct traced *p) {
    struct trace *own = p->own->t;
    str_id wait = strs_find(&own->strs, bytes_of(SPAN_INPUT_WAIT));
    for (row_id r = 0; r < own->spans.n && !own->oom; r++) {
        const struct track *tr = &own->tracks[own->spans.track[r]];
        bool other = is_step(own, r) || own->spans.name[r] == wait ||
                     is_ours(own, r);
        own->spans.flags[r] &= (uint8_t)~SPAN_STEPMARK;
        if ((was_traced(p, r) && !other) || tr->kind == TRACK_STREAM) continue;
        if (!put_row_aside(own, r)) break;
    }
}

/* Puts all rows of a capture where nothing is counted: another one has traced
 * the same steps, and only its memory is news. */
static void put_all_aside(struct trace *t) {
    for (row_id r = 0; r < t->spans.n && !t->oom; r++) put_row_aside(t, r);
    t->sources[0].beside = true;
}

static bool is_torchs(const struct loaded_file *p) {
    return p->t->sources[0].format->writer == WRITER_TORCH;
}

/* Of captures of the same steps (a trace, and TensorFlow's statistics of a run
 * in it) the one with more events counts. It comes first of all. Torch and
 * another framework in one program know nothing of each other's ops: those of
 * both count, and the one that began first has the steps. */
static void find_doubles(struct traced *p) {
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = i + 1; k < p->n; k++) {
            struct loaded_file *a = p->v[i], *b = p->v[k];
            __int128 lo = moved(b->t, a->t, b->lo),
                     hi = moved(b->t, a->t, b->hi);
            if (a->t->sources[0].beside || b->t->sources[0].beside ||
                lo >= a->hi || hi <= a->lo)
                continue;
            bool less = b->t->sources[0].events <= a->t->sources[0].events;
            if (is_torchs(a) != is_torchs(b)) b->t->sources[0].beside = true;
            else put_all_aside(less ? b->t : a->t);
        }
    for (size_t i = 1; i < p->n && p->v[0]->t->sources[0].beside; i++) {
        struct loaded_file *first = p->v[i];
        if (first->t->sources[0].beside) continue;
        p->v[i] = p->v[0];
        p->v[0] = first;
    }
}

/* Puts the captures in the order of their time: names end in numbers, and
 * "step10" comes before "step2". */
static void order_captures(struct traced *p) {
    for (size_t i = 1; i < p->n; i++) {
        struct loaded_file *c = p->v[i];
        size_t at = i;
        for (; at > 0 && moved(c->t, p->v[at - 1]->t, c->lo) < p->v[at - 1]->lo;
             at--)
            p->v[at] = p->v[at - 1];
        p->v[at] = c;
    }
}

/* Makes one trace, that of the first capture, of all that a process left. */
static int join_traced(struct traced *p, struct ops_err *e) {
    struct source *own = &p->own->t->sources[0];
    order_captures(p);
    find_doubles(p);
    measure(p);
    put_aside(p);
    own->beside = true;
    if (p->own->t->oom) return fail_oom(e);
    struct loaded_file *first = p->v[0];
    for (size_t i = 0; i < p->n; i++) {
        struct source *s = &p->v[i]->t->sources[0];
        if (s->rank < 0) s->rank = own->rank;
        if (s->world_size < 0) s->world_size = own->world_size;
        if (s->pid < 0) s->pid = own->pid;
    }
    for (size_t i = 1; i <= p->n; i++) {
        struct loaded_file *more = i < p->n ? p->v[i] : p->own;
        struct trace *t = more->t;
        __int128 lo = moved(t, first->t, more->lo);
        __int128 hi = moved(t, first->t, more->hi);
        if (more->lo <= more->hi && lo >= -DUR_LIMIT && hi <= TS_LIMIT) {
            if (lo < first->lo) first->lo = (int64_t)lo;
            if (hi > first->hi) first->hi = (int64_t)hi;
        }
        uint32_t beside = (uint32_t)first->t->nsources;
        more->t = NULL;
        more->taken = true;
        TRY(trace_append(first->t, t, e));
        first->t->sources[beside].companion_of = 0;
        first->t->sources[beside].host = first->t->sources[0].host;
    }
    return 0;
}

/* Puts the spans in which a tracer was on where nothing is counted: they are
 * no work of the program. Was one on when the process died? What it had traced
 * went with it. */
static void settle_tracer(struct trace *t) {
    for (row_id r = 0; r < t->spans.n && !t->oom; r++) {
        if (!is_ours(t, r)) continue;
        if (t->spans.flags[r] & SPAN_OPEN) {
            if (is_tracer(t, r)) trace_note(t, NOTE_TRACER_DIED, 1);
            /* it is no scope that the program left open */
            if (t->notes[NOTE_UNFINISHED] > 0) t->notes[NOTE_UNFINISHED]--;
        }
        t->spans.flags[r] &= (uint8_t)~SPAN_OPEN;
        put_row_aside(t, r);
    }
}

static void drop_step(struct trace *t, row_id r) {
    t->spans.flags[r] &= (uint8_t)~SPAN_STEPMARK;
    put_row_aside(t, r);
}

/* What a program took for steps at first (batches of an evaluation) were
 * none where it began to count anew. Returns where it did. */
static int64_t drop_steps_before(struct trace *t) {
    str_id anew = strs_find(&t->strs, bytes_of(SPAN_ANEW));
    int64_t from = INT64_MIN;
    if (anew == STR_NONE) return from;
    for (row_id r = 0; r < t->spans.n; r++) {
        if (t->spans.name[r] != anew) continue;
        if (t->spans.ts[r] > from) from = t->spans.ts[r];
        put_row_aside(t, r);
    }
    for (row_id r = 0; r < t->spans.n; r++)
        if (is_step(t, r) && t->spans.ts[r] < from) drop_step(t, r);
    return from;
}

int join_all_traced(struct loaded_file *v, size_t n, struct ops_err *e) {
    size_t left = pairs_allowed(n);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct traced p = {.own = &v[i]};
        bool oom = false;
        if (!is_own(&v[i])) continue;
        settle_tracer(v[i].t);
        p.from = drop_steps_before(v[i].t);
        bool placed = v[i].t->sources[0].has_clock;
        for (size_t k = 0; placed && k < n && left > 0; k++, left--) {
            if (v[k].t == NULL || v[k].t->sources[0].by_opscope ||
                v[k].t->sources[0].process_view || v[k].lo > v[k].hi ||
                !is_capture_of(&v[k], &v[i]))
                continue;
            if (!v[k].t->sources[0].has_clock &&
                !clock_by_steps(&v[k], &v[i], &oom))
                continue;
            if (!VEC_ROOM(p.v, p.n, p.cap)) oom = true;
            else p.v[p.n++] = &v[k];
        }
        if (!mend_told_steps(&v[i], p.v, p.n)) oom = true;
        if (oom) rc = fail_oom(e);
        if (rc == 0 && !list_stretches(&p)) rc = fail_oom(e);
        if (rc == 0 && p.n > 0) rc = join_traced(&p, e);
        else if (rc == 0 && placed) measure(&p);
        free(p.v);
        free(p.when);
    }
    return rc;
}
