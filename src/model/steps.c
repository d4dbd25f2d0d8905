/* SPDX-License-Identifier: Apache-2.0
 * Steps: which spans mark them, where each begins and ends, and which step a
 * span belongs to.
 *
 * A marker alone is not the step: programs run ahead of the device. A step
 * runs from the end of the step before it to the later of the next marker's
 * start and the end of the last device work that was launched in it (or, where
 * the host executes compiled programs beside, of their last run). The first
 * begins at its marker or, if later, where device work launched before it
 * ends; the last ends at its marker's end or its last device work.
 *
 * opscope's own recorder says where a step ends: at the next one, at
 * ops_step_end(), or where a window of recording closes. What lies between two
 * such markers (a validation, steps that were not recorded) is in no step. */
#include "model/seal.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/span_class.h"
#include "model/trace_fill.h"
#include "model/turns.h"
#include <assert.h>
#include <stdlib.h>

/* The markers of one source, by start. */
struct markers {
    row_id *v;
    size_t n, cap;
};

/* Returns the end of the tracks of a source: numbers [*k, end) of
 * t->of_source.v. */
static size_t tracks_of(const struct trace *t, uint32_t source, size_t *k) {
    *k = t->of_source.first[source];
    return t->of_source.first[source + 1];
}

static int64_t slack_of(const struct trace *t, row_id r) {
    return t->sources[t->tracks[t->spans.track[r]].source].rounding_ps;
}

/* Does row r lie inside a span before it that ended at `end`? A row that only
 * crosses that end (steps that overlap, or rounding at the source) does not;
 * one that outlives it by no more than rounding does. */
static bool is_inside(const struct trace *t, row_id r, int64_t end) {
    return t->spans.ts[r] < end &&
           sat_sub(span_end(t, r), end) <= slack_of(t, r);
}

/* Does it begin before that end, by more than rounding? Regions that cross each
 * other are no turns of a loop. */
static bool overlaps(const struct trace *t, row_id r, int64_t end) {
    return t->spans.ts[r] < end &&
           sat_sub(end, t->spans.ts[r]) > slack_of(t, r);
}

static bool add_marker(struct markers *m, row_id r) {
    if (!VEC_ROOM(m->v, m->n, m->cap)) return false;
    m->v[m->n++] = r;
    return true;
}

/* Takes the markers of a track, nested ones left out, into m (NULL: nowhere),
 * and adds up their time, -1 if there are none. Returns false if out of
 * memory. */
static bool take_markers(const struct trace *t, uint32_t track,
                         struct markers *m, int64_t *time) {
    const struct track *tr = &t->tracks[track];
    int64_t end = INT64_MIN;
    *time = -1;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (!span_is_step_mark(t, r) || is_inside(t, r, end)) continue;
        *time = sat_add(*time < 0 ? 0 : *time, t->spans.dur[r]);
        end = span_end(t, r);
        if (m != NULL && !add_marker(m, r)) return false;
    }
    return true;
}

/* Returns the track whose markers give the steps: an XLA device's own step line
 * wins over the host (the host runs ahead of it); then the most marked time. */
static uint32_t marker_track(const struct trace *t, uint32_t source) {
    uint32_t best = ROW_NONE;
    int64_t best_time = -1;
    bool best_device = false;
    size_t k, end = tracks_of(t, source, &k);
    for (; k < end; k++) {
        uint32_t i = t->of_source.v[k];
        const struct track *tr = &t->tracks[i];
        int64_t time;
        take_markers(t, i, NULL, &time);
        if (time < 0) continue;
        bool device = tr->device != ROW_NONE;
        if (best != ROW_NONE && best_device > device) continue;
        /* All cores of a device run the same steps: the first one speaks. */
        if (best != ROW_NONE && best_device == device &&
            (device || time <= best_time))
            continue;
        best = i;
        best_time = time;
        best_device = device;
    }
    return best;
}

/* Returns the first hint of that row or a later one. Hints are sorted by
 * row. */
static size_t hint_at(const struct step_hints *h, row_id row) {
    size_t i;
    BOUND(i, 0, h->n, h->v[i].row < row);
    return i;
}

/* Returns the number that hints give a row, or dflt. */
static int64_t hint_of(const struct step_hints *h, row_id row, int64_t dflt) {
    size_t at = hint_at(h, row);
    return at < h->n && h->v[at].row == row ? h->v[at].number : dflt;
}

/* Is this row the outermost of its group on its track? */
static bool leads_group(const struct trace *t, row_id r, int64_t number) {
    row_id up = t->spans.parent[r];
    return t->spans.dur[r] > 0 &&
           (up == ROW_NONE || hint_of(&t->group_hints, up, -1) != number);
}

/* Finds markers where there are none but the source numbered groups of events
 * (TensorFlow's group_id): on the thread where they take the most time the
 * first event of each group marks a step. */
static bool group_markers(const struct trace *t, uint32_t source,
                          struct markers *m) {
    const struct step_hints *h = &t->group_hints;
    const struct track *best = NULL;
    int64_t most = 0;
    size_t k, stop = tracks_of(t, source, &k);
    for (; h->n > 0 && k < stop; k++) {
        const struct track *tr = &t->tracks[t->of_source.v[k]];
        int64_t time = 0;
        if (tr->kind != TRACK_THREAD) continue;
        for (size_t i = hint_at(h, tr->first);
             i < h->n && h->v[i].row < tr->end; i++)
            if (leads_group(t, h->v[i].row, h->v[i].number))
                sat_inc(&time, t->spans.dur[h->v[i].row]);
        if (time <= most) continue;
        most = time;
        best = tr;
    }
    if (best == NULL) return true;
    int64_t last = -1, end = INT64_MIN;
    for (size_t i = hint_at(h, best->first);
         i < h->n && h->v[i].row < best->end; i++) {
        row_id r = h->v[i].row;
        if (h->v[i].number == last || overlaps(t, r, end) ||
            !leads_group(t, r, h->v[i].number))
            continue;
        if (!add_marker(m, r)) return false;
        last = h->v[i].number;
        end = span_end(t, r);
    }
    return true;
}

/* Returns the number that the source gave this marker, or the one in its name,
 * or its ordinal. */
static int64_t step_number(const struct trace *t, row_id marker, size_t i) {
    int64_t given = hint_of(&t->step_hints, marker, -1);
    if (given < 0) given = hint_of(&t->group_hints, marker, -1);
    if (given >= 0) return given;
    int64_t n = name_step_number(strs_bytes(&t->strs, t->spans.name[marker]));
    return n >= 0 ? n : (int64_t)i;
}

/* Returns the host thread with the most time in ops and regions. */
static uint32_t busiest_thread(const struct trace *t, uint32_t source) {
    uint32_t best = ROW_NONE;
    int64_t most = -1;
    size_t k, stop = tracks_of(t, source, &k);
    for (; k < stop; k++) {
        const struct track *tr = &t->tracks[t->of_source.v[k]];
        if (tr->kind != TRACK_THREAD) continue;
        int64_t sum = 0;
        for (row_id r = tr->first; r < tr->end; r++)
            if (t->spans.parent[r] == ROW_NONE) sat_inc(&sum, t->spans.dur[r]);
        if (sum > most) {
            most = sum;
            best = t->of_source.v[k];
        }
    }
    return best;
}

uint32_t steps_thread_of(const struct trace *t, row_id marker) {
    uint32_t k = t->spans.track[marker];
    const struct track *tr = &t->tracks[k];
    if (tr->kind == TRACK_PYTHON) return tr->thread;
    return tr->device == ROW_NONE ? k : busiest_thread(t, tr->source);
}

/* Adds a step per marker; ts and dur come later. */
static bool add_steps(struct trace *t, uint32_t source,
                      const struct markers *m) {
    /* markers come from one track */
    uint32_t thread = m->n > 0 ? steps_thread_of(t, m->v[0]) : ROW_NONE;
    for (size_t i = 0; i < m->n; i++) {
        if (!VEC_ROOM(t->steps, t->nsteps, t->cap_steps)) return false;
        row_id r = m->v[i];
        t->steps[t->nsteps++] = (struct step){
            .number = step_number(t, r, i),
            .name = t->spans.name[r],
            .source = source,
            .marker = r,
            .thread = thread,
            .marker_ts = t->spans.ts[r],
            .marker_dur = t->spans.dur[r],
        };
    }
    return true;
}

/* Adds a step per turn of a loop that nobody marked; none where the signs of
 * such a loop do not agree. */
static bool add_turns(struct trace *t, uint32_t source) {
    struct turns turns;
    if (!turns_find(t, source, &turns)) return false;
    bool ok = true;
    for (size_t i = 0; ok && i < turns.n; i++) {
        ok = VEC_ROOM(t->steps, t->nsteps, t->cap_steps);
        if (!ok) break;
        t->steps[t->nsteps++] = (struct step){
            .number = (int64_t)i,
            .source = source,
            .marker = ROW_NONE,
            .thread = turns.thread,
            .marker_ts = turns.v[i].ts,
            .marker_dur = turns.v[i].end - turns.v[i].ts,
        };
    }
    struct source *src = &t->sources[source];
    src->step_rule = turns.n > 0 ? STEPS_INFERRED : STEPS_WHOLE;
    src->turn_sign = turns.sign;
    src->turns_alike = turns.alike;
    trace_note(t, NOTE_STEPS_INFERRED, turns.n);
    turns_free(&turns);
    return ok;
}

/* Makes the window one step where nothing marks and nothing repeats. */
static bool add_whole(struct trace *t, uint32_t source) {
    const struct source *src = &t->sources[source];
    bool empty = true;
    size_t k, stop = tracks_of(t, source, &k);
    for (; empty && k < stop; k++) {
        const struct track *tr = &t->tracks[t->of_source.v[k]];
        empty = tr->kind == TRACK_OTHER || tr->first == tr->end;
    }
    if (empty) return true;
    if (!VEC_ROOM(t->steps, t->nsteps, t->cap_steps)) return false;
    t->steps[t->nsteps++] = (struct step){
        .source = source,
        .marker = ROW_NONE,
        .name = 0,
        .thread = busiest_thread(t, source),
        .marker_ts = src->window_ts,
        .marker_dur = src->window_end - src->window_ts,
    };
    return true;
}

/* Returns the end of the host time that counts as inside step i of steps[first,
 * end): the marker's; for groups the time to the next counts, too, as the event
 * is only a part of the loop's body. */
static int64_t host_end(const struct trace *t, size_t i, size_t end) {
    const struct step *st = &t->steps[i];
    bool grouped = t->sources[st->source].step_rule == STEPS_BY_GROUP;
    if (grouped && i + 1 < end) return t->steps[i + 1].marker_ts;
    if (grouped) return t->sources[st->source].window_end;
    return st->marker_ts + st->marker_dur;
}

/* Returns, from step `at` on, the first of [at, end) that starts later than ts:
 * near ones are found in a few steps. by_marker: by their markers' starts. */
static size_t step_after(const struct trace *t, size_t at, size_t end,
                         int64_t ts, bool by_marker) {
    size_t lo = at, hi = end;
    for (size_t step = 1; lo + step < end; step *= 2) {
        const struct step *s = &t->steps[lo + step - 1];
        if ((by_marker ? s->marker_ts : s->ts) > ts) {
            hi = lo + step;
            break;
        }
        lo += step;
    }
    size_t i;
    BOUND(i, lo, hi,
          (by_marker ? t->steps[i].marker_ts : t->steps[i].ts) <= ts);
    return i;
}

/* Finds the steps of one host track's rows, which stand in time order: the
 * marker around their start. A track may have few rows and the source many
 * steps: the step of each row is searched for. */
static void assign_track(struct trace *t, const struct track *tr, size_t first,
                         size_t end) {
    const struct step *s = t->steps;
    size_t after = first; /* steps before it begin at the row or earlier */
    for (row_id r = tr->first; r < tr->end; r++) {
        int64_t ts = t->spans.ts[r];
        after = step_after(t, after, end, ts, true);
        if (after == first) continue;
        size_t i = after - 1;
        /* a marker of no length still holds what starts with it; of several
         * the first does */
        if (s[i].marker_ts == ts && i > first && s[i - 1].marker_ts == ts)
            i = step_after(t, first, end, ts - 1, true);
        int64_t stop = host_end(t, i, end);
        if (i + 1 < end && s[i + 1].marker_ts < stop) stop = s[i + 1].marker_ts;
        if (ts < stop || ts == s[i].marker_ts) t->spans.step[r] = (uint32_t)i;
    }
}

/* Ends of device work: launched in each step, and before each source's first
 * step; INT64_MIN: none. */
struct device_ends {
    int64_t *of, *before;
};

/* Finds the steps of device rows: that of the launching call. Rows with no
 * launch are left for steps_assign_by_time. */
static void assign_linked(struct trace *t, struct device_ends *ends) {
    const struct links *l = &t->links;
    for (size_t i = 0; i < l->n; i++) {
        row_id d = l->device[i], h = l->host[i];
        uint32_t source = t->tracks[t->spans.track[d]].source;
        const struct source *src = &t->sources[source];
        if (trace_device_steps(t, source)) continue;
        uint32_t st = t->spans.step[h];
        assert(st == ROW_NONE || st < t->nsteps);
        t->spans.step[d] = st;
        int64_t *end = NULL, stop = span_end(t, d);
        if (st != ROW_NONE) end = &ends->of[st];
        else if (src->step_first < src->step_end &&
                 t->spans.ts[h] < t->steps[src->step_first].marker_ts)
            end = &ends->before[source];
        if (end && stop > *end) *end = stop;
    }
}

/* Sets begin and end of each step by the rule at the head of this file. */
static void place_steps(struct trace *t, uint32_t source,
                        const struct device_ends *ends) {
    size_t first = t->sources[source].step_first;
    size_t end = t->sources[source].step_end;
    bool apart = t->sources[source].by_opscope &&
                 t->sources[source].step_rule == STEPS_BY_MARKER;
    assert(first <= end && end <= t->nsteps);
    if (first == end) return;
    int64_t from = t->steps[first].marker_ts;
    if (ends->before[source] > from) from = ends->before[source];
    for (size_t i = first; i < end; i++) {
        struct step *st = &t->steps[i];
        if (apart && st->marker_ts > from) from = st->marker_ts;
        int64_t stop = i + 1 < end && !apart ? t->steps[i + 1].marker_ts
                                             : host_end(t, i, end);
        if (ends->of[i] > stop) stop = ends->of[i];
        if (stop < from) stop = from;
        st->ts = from;
        st->dur = stop - from;
        assert(st->dur >= 0);
        from = stop;
    }
}

void steps_assign_by_time(struct trace *t, uint32_t source) {
    size_t first = t->sources[source].step_first;
    size_t end = t->sources[source].step_end;
    bool all = trace_device_steps(t, source);
    size_t k, stop = tracks_of(t, source, &k);
    for (; k < stop; k++) {
        const struct track *tr = &t->tracks[t->of_source.v[k]];
        if (tr->kind != TRACK_STREAM) continue;
        size_t after = first, l = trace_link_at(t, tr->first);
        for (row_id r = tr->first; r < tr->end; r++) {
            while (l < t->links.n && t->links.device[l] < r) l++;
            if (l < t->links.n && t->links.device[l] == r && !all) continue;
            int64_t ts = t->spans.ts[r];
            after = step_after(t, after, end, ts, false);
            if (first == end) continue;
            size_t at = after > first ? after - 1 : first;
            const struct step *st = &t->steps[at];
            bool in = ts >= st->ts && ts < st->ts + st->dur;
            t->spans.step[r] = in ? (uint32_t)at : ROW_NONE;
        }
    }
}

/* Finds the markers, if there are any. */
static bool find_markers(struct trace *t, uint32_t source, struct markers *m) {
    struct source *src = &t->sources[source];
    uint32_t track = marker_track(t, source);
    int64_t time;
    src->step_rule = src->runs_mark ? STEPS_BY_RUN : STEPS_BY_MARKER;
    if (track != ROW_NONE) return take_markers(t, track, m, &time);
    src->step_rule = STEPS_BY_GROUP;
    if (!group_markers(t, source, m)) return false;
    if (m->n > 0) return true;
    return true;
}

/* Returns a key that is the same for all processes of one program. */
static uint64_t program_key(const struct source *s) {
    return hash_pair(s->host, (uint64_t)s->rank);
}

/* What finding the steps of all sources shares. */
struct finding {
    bool *marked;        /* by source: of the recorder, and has markers */
    struct map programs; /* program_key of those */
};

static bool begin_finding(const struct trace *t, struct finding *f) {
    f->marked = malloc(t->nsources + 1);
    bool ok = f->marked != NULL;
    for (uint32_t i = 0; ok && i < t->nsources; i++) {
        f->marked[i] = t->sources[i].by_opscope &&
                       marker_track(t, i) != ROW_NONE;
        if (f->marked[i])
            ok = map_set(&f->programs, program_key(&t->sources[i]), i);
    }
    return ok;
}

/* Finds the steps of rows that tell more of what another source of the same
 * process traced: that has the steps. */
static void assign_companion(struct trace *t, uint32_t source) {
    uint32_t of = t->sources[source].companion_of;
    size_t k, stop = tracks_of(t, source, &k);
    for (; k < stop; k++) {
        const struct track *tr = &t->tracks[t->of_source.v[k]];
        if (tr->kind == TRACK_STREAM || tr->kind == TRACK_OTHER) continue;
        for (uint32_t i = 0; i < source; i++) {
            const struct source *s = &t->sources[i];
            if (i == of || s->companion_of == of)
                assign_track(t, tr, s->step_first, s->step_end);
        }
    }
}

/* Finds the steps of one source, their markers set; and the steps of its host
 * rows. */
static bool source_steps(struct trace *t, uint32_t source,
                         const struct finding *f) {
    struct markers m = {0};
    size_t first = t->nsteps;
    /* This is a process that works for another one of the same program, which
     * has the steps: a forked loader. Its whole life is no step. */
    const struct source *s = &t->sources[source];
    if (s->beside) {
        assign_companion(t, source);
        return true;
    }
    if (s->by_opscope && !f->marked[source] &&
        map_get(&f->programs, program_key(s)) != MAP_NONE)
        return true;
    bool ok = find_markers(t, source, &m) && add_steps(t, source, &m);
    if (ok && m.n == 0) ok = add_turns(t, source);
    free(m.v);
    if (ok && t->nsteps == first) {
        ok = add_whole(t, source);
        if (t->nsteps > first) trace_note(t, NOTE_STEPS_NONE, 1);
    }
    size_t k, stop = tracks_of(t, source, &k);
    for (; ok && k < stop; k++) {
        const struct track *tr = &t->tracks[t->of_source.v[k]];
        if (tr->kind != TRACK_STREAM) assign_track(t, tr, first, t->nsteps);
    }
    return ok;
}

static int by_row(const void *a, const void *b) {
    row_id x = ((const struct step_hint *)a)->row;
    row_id y = ((const struct step_hint *)b)->row;
    return x < y ? -1 : x > y;
}

bool seal_steps(struct trace *t) {
    struct step_hints *h[] = {&t->step_hints, &t->group_hints};
    for (int i = 0; i < 2; i++)
        if (h[i]->n > 1) qsort(h[i]->v, h[i]->n, sizeof *h[i]->v, by_row);
    if (t->spans.n > 0) /* all ROW_NONE */
        memset(t->spans.step, 0xff, t->spans.n * sizeof *t->spans.step);
    struct finding f = {0};
    bool ok = begin_finding(t, &f);
    for (uint32_t i = 0; ok && i < t->nsources; i++) {
        t->sources[i].step_first = t->nsteps;
        ok = source_steps(t, i, &f);
        t->sources[i].step_end = t->nsteps;
    }
    free(f.marked);
    map_free(&f.programs);
    return ok;
}

/* What a step holds. */
struct content {
    int64_t calls;  /* ops, calls and regions, and work of devices */
    int64_t device; /* of these, work of devices */
};

static void count_content(const struct trace *t, struct content *v) {
    const struct spans *s = &t->spans;
    for (row_id r = 0; r < s->n; r++) {
        uint8_t kind = s->kind[r];
        if (s->step[r] == ROW_NONE || kind == SPAN_PYTHON ||
            kind == SPAN_OVERHEAD || kind == SPAN_SYNC ||
            (s->flags[r] & (SPAN_DERIVED | SPAN_STEPMARK)) ||
            t->steps[s->step[r]].marker == r)
            continue;
        v[s->step[r]].calls++;
        v[s->step[r]].device += span_is_device_work(t, r);
    }
}

/* Does it do nothing, on the device or, where nobody uses one, at all, while
 * every other step does something? */
static bool is_empty(const struct content *v, size_t first, size_t end,
                     size_t at) {
    bool device = true, calls = true;
    for (size_t i = first; i < end; i++) {
        device &= i == at ? v[i].device == 0 : v[i].device > 0;
        calls &= i == at ? v[i].calls == 0 : v[i].calls > 0;
    }
    return device || calls;
}

/* Has it less than half the calls of the middle one of the others, which are
 * alike: none has less than 95 % of the middle one's? v has their numbers, by
 * size. */
static bool is_short(const int64_t *v, size_t n, int64_t calls) {
    if (n < 2) return false; /* the other one may be the odd one: it compiles */
    int64_t middle = v[n / 2];
    return v[0] >= middle - middle / 20 && calls < middle / 2;
}

/* Is the step at an end of the window a stump? A program that stops its
 * profiler behind its last step leaves one that has just begun. others has room
 * for the numbers of all others. */
static bool is_stump(const struct content *v, size_t first, size_t end,
                     size_t at, int64_t *others) {
    bool device = true;
    size_t n = 0;
    if (is_empty(v, first, end, at)) return true;
    for (size_t i = first; i < end; i++) device &= i == at || v[i].device > 0;
    for (size_t i = first; i < end; i++)
        if (i != at) others[n++] = device ? v[i].device : v[i].calls;
    qsort(others, n, sizeof *others, sort_by_value);
    return is_short(others, n, device ? v[at].device : v[at].calls);
}

/* Was the step at the end open when the recording ended? */
static bool is_open(const struct trace *t, const struct step *step) {
    return step->marker != ROW_NONE &&
           (t->spans.flags[step->marker] & SPAN_OPEN) != 0;
}

/* Marks the steps that the window cuts. The recorder of opscope says itself
 * where a step ends, unless a kill came before, and turns of a loop are whole
 * by the way they were found. */
static bool mark_cut(struct trace *t) {
    struct content *v = calloc(t->nsteps + 1, sizeof *v);
    int64_t *others = malloc((t->nsteps + 1) * sizeof *others);
    bool ok = v != NULL && others != NULL;
    if (ok) count_content(t, v);
    for (size_t i = 0; ok && i < t->nsources; i++) {
        const struct source *s = &t->sources[i];
        size_t first = s->step_first, end = s->step_end;
        if (s->step_rule >= STEPS_INFERRED || end - first < 2) continue;
        if (s->by_opscope) {
            struct step *last = &t->steps[end - 1];
            last->cut = is_open(t, last);
            continue;
        }
        t->steps[first].cut = is_stump(v, first, end, first, others);
        struct step *last = &t->steps[end - 1];
        last->cut = is_open(t, last) ||
                    (!s->last_is_whole &&
                     is_stump(v, first, end, end - 1, others));
    }
    free(v);
    free(others);
    return ok;
}

bool seal_device_steps(struct trace *t) {
    struct device_ends ends = {
        .of = malloc((t->nsteps + 1) * sizeof(int64_t)),
        .before = malloc((t->nsources + 1) * sizeof(int64_t)),
    };
    bool ok = ends.of && ends.before;
    for (size_t i = 0; ok && i < t->nsteps; i++) ends.of[i] = INT64_MIN;
    for (size_t i = 0; ok && i < t->nsources; i++) ends.before[i] = INT64_MIN;
    if (ok) assign_linked(t, &ends);
    ok = ok && seal_host_runs(t, ends.of, ends.before);
    for (uint32_t i = 0; ok && i < t->nsources; i++) {
        place_steps(t, i, &ends);
        steps_assign_by_time(t, i);
    }
    free(ends.of);
    free(ends.before);
    return ok && mark_cut(t);
}
