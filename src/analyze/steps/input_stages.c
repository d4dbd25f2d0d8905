/* SPDX-License-Identifier: Apache-2.0
 * Stages by one sweep over each host thread: at every instant the innermost
 * stage that is open there owns the time. That time is its self time; on the
 * step's thread, the part of it that lies in the input phase is exposed, so
 * that exposed times sum to the phase by construction.
 *
 * A parallel map shows next to nothing by itself: it starts the user's function
 * (RunAsync) and the executor's threads run it. The spans there carry the id
 * of the run, and the run belongs to whoever asked for the element that the
 * same thread fetched just before. A sequential map waits for its function, so
 * there the executor's spans are the same wait and are not added. */
#include "analyze/steps/input_stages.h"

#include "analyze/analyze.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/phases.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/span_class.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What is kept of a stage only while the stages are being found. */
struct extra {
    str_id id;                /* its name, in names */
    wide raw;                 /* exposed on all devices of the source at hand */
    uint32_t track, fn_track; /* the last that was counted in threads */
    int64_t fn_threads;
    struct intervals own, fn; /* when it ran itself, and its function */
    bool waits;               /* an iterator works for it on another thread */
    int64_t alone;            /* calls on a thread with no stage around them */
    uint32_t walk;            /* cut_circles: the walk that came by, or 0 */
    /* order_stages: */
    bool shown;
    uint32_t child, next; /* first of those it asks; next of its siblings */
    uint32_t place;       /* index in the order */
};

/* A run of the user's function that was started and not waited for. */
struct stage_run {
    uint32_t stage; /* that started it, or was fetched just before */
    bool consumer;  /* the second: it belongs to that stage's parent */
};

/* Names that matter, as ids of the trace; STR_NONE if it has no such name. */
struct known {
    str_id sync[SYNC_RUNS], async, process;
};

struct finder {
    const struct trace *t;
    const struct selection *selection;
    struct input_stages *s;
    struct extra *x; /* beside s->v */
    size_t found, capx;
    struct map fold; /* a trace's name -> id in s->names */
    struct map at;   /* (parent or iterator, name) -> stage */
    struct map runs; /* (source, run's id) -> run */
    struct stage_run *run;
    size_t nruns, cap_runs;
    struct known known;
    struct phases ph;
    int64_t *first;           /* by step: first launch */
    struct phase_input input; /* of the source at hand, inside its steps */
    uint32_t *touched; /* stages that have a raw time of the source at hand */
    size_t ntouched, cap_touched;
    size_t looked; /* stages that were looked at for a DataLoader */
    bool loader;   /* ... and one of them was */
};

struct open_stage {
    uint32_t stage;
    int64_t end;
    bool counts; /* is it in the scope? */
};

/* One thread's sweep. */
struct stage_sweep {
    struct finder *f;
    uint32_t track, source;
    bool on_step;
    struct open_stage *v; /* open stages, the innermost last */
    size_t n, cap;
    int64_t at;    /* all before it is settled */
    uint32_t last; /* iterator that nobody around it asked, or ROW_NONE */
    struct intervals waits; /* of others than the step's thread */
};

/* ---- stages by key ---- */

enum { KEY_ITERATOR = 0, KEY_WAIT = 1, KEY_CHILD = 2 };

/* Returns the stage of that key, made when new; ROW_NONE if out of memory. */
static uint32_t stage_at(struct finder *f, uint32_t key, str_id name,
                         enum stage_kind kind) {
    struct input_stages *s = f->s;
    if (name == STR_NONE) return ROW_NONE;
    uint32_t *slot = map_at(&f->at, (uint64_t)key << 32 | name);
    if (slot == NULL) return ROW_NONE;
    if (*slot != MAP_NONE) return *slot;
    if (!VEC_ROOM(s->v, s->n, s->cap) || !VEC_ROOM(f->x, s->n, f->capx))
        return ROW_NONE;
    *slot = (uint32_t)s->n;
    s->v[s->n] = (struct input_stage){.parent = ROW_NONE,
                                      .kind = kind,
                                      .bytes = -1,
                                      .pageable = -1};
    f->x[s->n] =
        (struct extra){.id = name, .track = ROW_NONE, .fn_track = ROW_NONE};
    f->found++;
    return (uint32_t)s->n++;
}

static uint32_t child_at(struct finder *f, uint32_t parent, struct bytes name,
                         enum stage_kind kind) {
    /* keys of parents have a range of their own, apart from the fixed keys */
    uint32_t key = parent == ROW_NONE ? KEY_CHILD : parent + 3;
    uint32_t i = stage_at(f, key, strs_intern(&f->s->names, name), kind);
    if (i != ROW_NONE) f->s->v[i].parent = parent;
    return i;
}

static const char *stage_text(const struct finder *f, uint32_t i) {
    return strs_text(&f->s->names, f->x[i].id);
}

/* Sets the parent. Of two that ask the same iterator (training and validation)
 * the first by name is taken: threads have no order. */
static void set_parent(struct finder *f, uint32_t i, uint32_t parent) {
    uint32_t now = f->s->v[i].parent;
    if (parent == now || parent == ROW_NONE || parent == i) return;
    if (now == ROW_NONE ||
        strcmp(stage_text(f, parent), stage_text(f, now)) < 0)
        f->s->v[i].parent = parent;
}

/* ---- the sweep ---- */

/* Adds to a set that grows by time on each thread in turn. */
static bool add_work(struct intervals *s, int64_t start, int64_t end) {
    if (s->n > 0 && start < s->v[s->n - 1].start)
        return intervals_add(s, start, end);
    return intervals_extend(s, start, end);
}

/* Gives the innermost stage the time from w->at on; false if out of memory. */
static bool charge(struct stage_sweep *w, int64_t to) {
    const struct open_stage *top = &w->v[w->n - 1];
    struct finder *f = w->f;
    struct extra *x = &f->x[top->stage];
    if (to > top->end) to = top->end;
    if (to <= w->at) return true;
    if (top->counts) {
        sat_inc(&f->s->v[top->stage].self, to - w->at);
        if (!add_work(&x->own, w->at, to)) return false;
    }
    wide raw = w->on_step ? phase_input_sum(&f->input, w->at, to) : 0;
    if (raw > 0 && x->raw == 0) {
        if (!VEC_ROOM(f->touched, f->ntouched, f->cap_touched)) return false;
        f->touched[f->ntouched++] = top->stage;
    }
    x->raw += raw;
    w->at = to;
    return true;
}

/* Settles all time before ts and closes the stages that ended. */
static bool settle(struct stage_sweep *w, int64_t ts) {
    while (w->n > 0) {
        if (!charge(w, ts)) return false;
        if (w->v[w->n - 1].end > ts) break;
        w->n--;
    }
    if (w->at < ts) w->at = ts;
    return true;
}

/* Opens a stage for row r. */
static bool open_stage(struct stage_sweep *w, row_id r, uint32_t stage) {
    struct finder *f = w->f;
    if (stage == ROW_NONE || !VEC_ROOM(w->v, w->n, w->cap)) return false;
    struct input_stage *s = &f->s->v[stage];
    bool counts = select_has(f->selection, r), again = false;
    for (size_t i = w->n; i > 0 && w->n - i < 64 && !again; i--)
        again = w->v[i - 1].stage == stage; /* inside itself: counted once */
    if (counts) {
        s->calls++;
        s->on_step |= w->on_step;
        if (!again) sat_inc(&s->call, f->t->spans.dur[r]);
        if (f->x[stage].track != w->track) s->threads++;
        f->x[stage].track = w->track;
    }
    w->v[w->n++] = (struct open_stage){stage, span_end(f->t, r), counts};
    return true;
}

static uint32_t top_stage(const struct stage_sweep *w) {
    return w->n ? w->v[w->n - 1].stage : ROW_NONE;
}

static bool top_is(const struct stage_sweep *w, enum stage_kind kind) {
    return w->n > 0 && w->f->s->v[top_stage(w)].kind == kind;
}

/* Takes a span that the pipeline's names tell of. */
static bool take_named(struct stage_sweep *w, row_id r, bool iterator) {
    struct finder *f = w->f;
    str_id id = f->t->spans.name[r], name = map_get(&f->fold, id);
    if (name == MAP_NONE) { /* the program said so, not the name */
        name = strs_intern(&f->s->names, strs_bytes(&f->t->strs, id));
        if (name == STR_NONE || !map_set(&f->fold, id, name)) return false;
    }
    if (iterator) {
        uint32_t i = stage_at(f, KEY_ITERATOR, name, STAGE_KINDS);
        if (i == ROW_NONE) return false;
        if (f->s->v[i].kind == STAGE_KINDS) /* it is new */
            f->s->v[i].kind = stage_kind_of(strs_bytes(&f->s->names, name));
        if (w->n == 0) w->last = i;
        f->x[i].alone += w->n == 0 && select_has(f->selection, r);
        set_parent(f, i, top_stage(w));
        return open_stage(w, r, i);
    }
    if (top_is(w, STAGE_WAIT)) {
        /* A wait inside a wait is the same one: IteratorGetNext runs
         * IteratorGetNextOp::DoCompute. Where the inner one ends later, which
         * broken times can say, the wait lasts until then. */
        struct open_stage *top = &w->v[w->n - 1];
        int64_t end = span_end(f->t, r);
        if (end <= top->end) return true;
        if (top->counts) sat_inc(&f->s->v[top->stage].call, end - top->end);
        top->end = end;
        return true;
    }
    /* A program that records itself waits for input on its step's thread; what
     * another thread calls input is input being made. */
    bool makes = !w->on_step && f->t->sources[w->source].by_opscope;
    if (!w->on_step && !makes && w->n == 0 && select_has(f->selection, r) &&
        !intervals_add(&w->waits, f->t->spans.ts[r], span_end(f->t, r)))
        return false;
    uint32_t i = stage_at(f, KEY_WAIT, name, makes ? STAGE_REGION : STAGE_WAIT);
    if (i != ROW_NONE) set_parent(f, i, top_stage(w));
    return open_stage(w, r, i);
}

static uint64_t run_key(uint32_t source, int64_t id) {
    return hash_pair((uint64_t)id, source);
}

/* Takes the start of the user's function, which is not waited for. */
static bool take_async(struct stage_sweep *w, row_id r) {
    struct finder *f = w->f;
    bool around = w->n > 0;
    uint32_t stage = around ? top_stage(w) : w->last;
    int64_t id = args_int(f->t, r, "id", 0);
    if (stage == ROW_NONE || id == 0) return true;
    if (!VEC_ROOM(f->run, f->nruns, f->cap_runs)) return false;
    f->run[f->nruns] = (struct stage_run){stage, !around};
    return map_set(&f->runs, run_key(w->source, id), (uint32_t)f->nruns++);
}

/* Takes one span of a host thread. */
static bool take_span(struct stage_sweep *w, row_id r) {
    const struct trace *t = w->f->t;
    uint16_t class = span_class(t, r);
    uint8_t kind = t->spans.kind[r];
    if (span_is_input(t, r)) return take_named(w, r, class & CLASS_ITERATOR);
    struct bytes name = strs_bytes(&t->strs, t->spans.name[r]);
    if (w->on_step && phases_is_loop(t, r, w->f->first))
        return open_stage(w, r,
                          child_at(w->f, top_stage(w), name, STAGE_REGION));
    if (t->spans.name[r] == w->f->known.async) return take_async(w, r);
    bool sync_run = false; /* it runs the user's function and waits for it */
    for (int i = 0; i < SYNC_RUNS; i++)
        sync_run |= t->spans.name[r] == w->f->known.sync[i];
    if (sync_run) {
        if (w->n > 0 && select_has(w->f->selection, r))
            sat_inc(&w->f->s->v[top_stage(w)].function, t->spans.dur[r]);
        return true;
    }
    bool inside = top_is(w, STAGE_WAIT) || top_is(w, STAGE_REGION);
    if (!inside || (kind != SPAN_OP && kind != SPAN_ANNOTATION)) return true;
    return open_stage(w, r, child_at(w->f, top_stage(w), name, STAGE_OP));
}

static bool sweep_track(struct finder *f, uint32_t track, bool on_step,
                        struct intervals *waits) {
    const struct track *tr = &f->t->tracks[track];
    struct stage_sweep w = {.f = f,
                            .track = track,
                            .source = tr->source,
                            .on_step = on_step,
                            .at = INT64_MIN,
                            .last = ROW_NONE};
    bool ok = true;
    for (row_id r = tr->first; ok && r < tr->end; r++) {
        if (f->t->spans.flags[r] & (SPAN_ASYNC | SPAN_DERIVED)) continue;
        if (w.n == 0) w.at = f->t->spans.ts[r];
        ok = settle(&w, f->t->spans.ts[r]) && take_span(&w, r);
    }
    ok = ok && settle(&w, INT64_MAX);
    for (size_t i = 0; ok && i < w.waits.n; i++)
        ok = intervals_add(waits, w.waits.v[i].start, w.waits.v[i].end);
    intervals_free(&w.waits);
    free(w.v);
    return ok;
}

/* ---- the thread that pins memory ---- */

/* Takes the thread of DataLoader(pin_memory=True), which does nothing but ask
 * what kind of memory a tensor is in, get pinned memory and copy. It is known
 * by these calls: its name is not always recorded. */
static bool take_pins(struct finder *f, uint32_t track) {
    const struct trace *t = f->t;
    bool pins = false;
    for (row_id r = t->tracks[track].first; r < t->tracks[track].end; r++) {
        if (t->spans.depth[r] > 0) continue;
        bool known = name_pins_memory(strs_bytes(&t->strs, t->spans.name[r]));
        if ((!known && t->spans.kind[r] != SPAN_API) ||
            (span_class(t, r) & CLASS_LAUNCH))
            return true; /* it does other things */
        pins |= known;
    }
    if (!pins) return true;
    str_id name = strs_intern(&f->s->names,
                              bytes_of("DataLoader pin_memory thread"));
    uint32_t i = stage_at(f, KEY_WAIT, name, STAGE_PIN);
    if (i == ROW_NONE) return false;
    struct input_stage *s = &f->s->v[i];
    for (row_id r = t->tracks[track].first; r < t->tracks[track].end; r++) {
        if (t->spans.depth[r] > 0 || !select_has(f->selection, r)) continue;
        s->calls++;
        sat_inc(&s->call, t->spans.dur[r]);
        sat_inc(&s->self, t->spans.dur[r]);
    }
    s->threads++;
    return true;
}

/* ---- copies to the device ---- */

static bool take_copy(struct finder *f, row_id r) {
    const struct trace *t = f->t;
    /* the name alone decides: arguments are read only for those that matter */
    struct bytes name = strs_bytes(&t->strs, t->spans.name[r]);
    enum copy_kind by_name = copy_kind_of(name);
    if (by_name != COPY_H2D && by_name != COPY_OTHER) return true;
    struct copy_args a = copy_args_of(t, r);
    if (a.kind != COPY_H2D) return true;
    static const char *const names[] = {"copy to device (pinned)",
                                        "copy to device (pageable)"};
    const char *text = a.pageable < 0 ? "copy to device" : names[a.pageable];
    uint32_t i = stage_at(f, KEY_WAIT,
                          strs_intern(&f->s->names, bytes_of(text)),
                          STAGE_COPY);
    if (i == ROW_NONE) return false;
    struct input_stage *s = &f->s->v[i];
    s->calls++;
    s->pageable = a.pageable;
    sat_inc(&s->call, t->spans.dur[r]);
    sat_inc(&s->self, t->spans.dur[r]);
    if (a.bytes >= 0) s->bytes = sat_add(s->bytes < 0 ? 0 : s->bytes, a.bytes);
    if (f->x[i].track != t->spans.track[r]) s->threads++;
    f->x[i].track = t->spans.track[r];
    return true;
}

/* ---- one source ---- */

/* Finds when the source's steps that count ran. */
static bool step_times(const struct finder *f, uint32_t source,
                       struct intervals *out) {
    const struct trace *t = f->t;
    const struct source *s = &t->sources[source];
    for (size_t i = s->step_first; i < s->step_end; i++)
        if (f->selection->step_in[i] &&
            !intervals_add(out, t->steps[i].ts,
                           t->steps[i].ts + t->steps[i].dur))
            return false;
    intervals_union(out);
    return true;
}

/* Adds up the steps, and their input phase as `steps` shows it. */
static bool add_steps(struct finder *f, uint32_t source, int64_t *input) {
    const struct trace *t = f->t;
    const struct source *s = &t->sources[source];
    struct phase_sums sums;
    struct ops_err e;
    *input = 0;
    if (phase_sums_init(&sums, &f->ph, source, &e) != 0) return false;
    for (size_t i = s->step_first; i < s->step_end; i++) {
        const struct step *st = &t->steps[i];
        int64_t parts[PHASES], busy;
        if (!f->selection->step_in[i]) continue;
        phase_sums_mean(&sums, st->ts, st->ts + st->dur, parts, &busy);
        sat_inc(input, parts[PHASE_INPUT]);
        f->s->steps++;
        sat_inc(&f->s->step_time, st->dur);
        row_id m = st->marker;
        if (m == ROW_NONE || t->tracks[t->spans.track[m]].kind != TRACK_THREAD)
            continue;
        /* this is the time between a marker's start and the first event after
         * it */
        int64_t end = span_end(t, m), next = end;
        if (m + 1 < t->tracks[t->spans.track[m]].end &&
            t->spans.ts[m + 1] < end)
            next = t->spans.ts[m + 1];
        sat_inc(&f->s->unseen, next - t->spans.ts[m]);
    }
    phase_sums_free(&sums);
    sat_inc(&f->s->exposed, *input);
    return true;
}

/* Makes exposed times the mean of the devices'. */
static void share_exposed(struct finder *f, int64_t input) {
    int64_t views = (int64_t)f->input.n, rest = input;
    for (size_t k = 0; k < f->ntouched; k++) {
        uint32_t i = f->touched[k];
        int64_t mean = (int64_t)(f->x[i].raw / views);
        sat_inc(&f->s->v[i].exposed, mean);
        sat_dec(&rest, mean);
        f->x[i].raw = 0;
    }
    /* What rounding left or took too much, less than a picosecond a step and
     * stage, goes to stages that were exposed: within their own time, and not
     * below 0. */
    for (size_t k = 0; views > 1 && rest != 0 && k < f->ntouched; k++) {
        struct input_stage *s = &f->s->v[f->touched[k]];
        int64_t room = rest > 0 ? sat_sub(s->self, s->exposed) : s->exposed;
        if (room <= 0) continue;
        int64_t by = rest > room ? room : rest < -room ? -room : rest;
        s->exposed += by;
        rest -= by;
    }
    f->s->mean |= views > 1;
    f->ntouched = 0;
}

/* Adds waits of others than the step's thread (model.fit: the executor's) while
 * nothing was computed: the mean of the views. */
static bool add_waited(struct finder *f, uint32_t source,
                       struct intervals *waits, const struct intervals *steps) {
    struct intervals inside = {0};
    int64_t mean = 0;
    intervals_union(waits);
    bool ok = intervals_and(waits, steps, &inside) &&
              phases_unoccupied(&f->ph, source, &inside, &mean);
    intervals_free(&inside);
    const struct phase_view *v = &f->ph.views[f->ph.view_first[source]];
    f->s->has_device |= v->device != ROW_NONE;
    sat_inc(&f->s->waited, mean);
    return ok;
}

static bool take_source(struct finder *f, uint32_t source) {
    const struct trace *t = f->t;
    struct intervals steps = {0}, waits = {0};
    uint32_t own = phases_step_thread(t, source);
    const struct lists *l = &t->of_source;
    size_t first = l->first[source], end = l->first[source + 1];
    int64_t input;
    bool ok = step_times(f, source, &steps) &&
              phase_input_init(&f->input, &f->ph, source, &steps);
    for (size_t k = first; ok && k < end; k++) {
        uint32_t i = l->v[k];
        const struct track *tr = &t->tracks[i];
        if (tr->kind == TRACK_THREAD) ok = sweep_track(f, i, i == own, &waits);
        if (tr->kind != TRACK_STREAM) continue;
        for (row_id r = tr->first; ok && r < tr->end; r++)
            if (t->spans.kind[r] == SPAN_COPY && span_is_device_work(t, r) &&
                select_has(f->selection, r))
                ok = take_copy(f, r);
    }
    for (; f->looked < f->s->n; f->looked++)
        f->loader |= name_loader(bytes_of(
                         stage_text(f, (uint32_t)f->looked))) != LOADER_NONE;
    for (size_t k = first; ok && f->loader && k < end; k++)
        if (l->v[k] != own && t->tracks[l->v[k]].kind == TRACK_THREAD)
            ok = take_pins(f, l->v[k]);
    ok = ok && add_steps(f, source, &input);
    if (ok) {
        share_exposed(f, input);
        ok = add_waited(f, source, &waits, &steps);
    }
    phase_input_free(&f->input);
    intervals_free(&steps);
    intervals_free(&waits);
    return ok;
}

/* ---- parents, functions, order ---- */

/* Sets parents of iterators on other threads: their names say who asks them. */
static void name_parents(struct finder *f) {
    for (uint32_t i = 0; i < f->s->n; i++) {
        if (f->s->v[i].parent != ROW_NONE) continue;
        struct bytes up = strs_bytes(&f->s->names, f->x[i].id);
        if (!name_is_iterator(up)) continue;
        while (f->s->v[i].parent == ROW_NONE) {
            up = stage_name_parent(up);
            if (up.n == 0) break;
            str_id id = strs_find(&f->s->names, up);
            if (id == STR_NONE) continue;
            uint32_t p = map_get(&f->at, (uint64_t)KEY_ITERATOR << 32 | id);
            if (p != MAP_NONE) set_parent(f, i, p);
        }
    }
}

/* Cuts circles of parents, which only damaged files have: a walk up that meets
 * itself. */
static void cut_circles(struct finder *f) {
    for (uint32_t i = 0; i < f->s->n; i++) {
        uint32_t last = ROW_NONE, k = i;
        for (; k != ROW_NONE && f->x[k].walk == 0; k = f->s->v[k].parent) {
            f->x[k].walk = i + 1;
            last = k;
        }
        if (last != ROW_NONE && k != ROW_NONE && f->x[k].walk == i + 1)
            f->s->v[last].parent = ROW_NONE;
    }
}

/* Takes the function's spans on one of the executor's threads. */
static bool take_process(struct finder *f, uint32_t track) {
    const struct trace *t = f->t;
    const struct track *tr = &t->tracks[track];
    int64_t end = INT64_MIN;
    for (row_id r = tr->first; r < tr->end; r++) {
        if (t->spans.name[r] != f->known.process || t->spans.ts[r] < end ||
            !select_has(f->selection, r))
            continue;
        int64_t id = args_int(t, r, "id", 0);
        uint32_t k = map_get(&f->runs, run_key(tr->source, id));
        if (k == MAP_NONE) continue;
        uint32_t i = f->run[k].stage;
        if (f->run[k].consumer) i = f->s->v[i].parent;
        if (i == ROW_NONE) continue;
        sat_inc(&f->s->v[i].async, t->spans.dur[r]);
        if (f->x[i].fn_track != track) f->x[i].fn_threads++;
        f->x[i].fn_track = track;
        end = span_end(t, r);
        if (!add_work(&f->x[i].fn, t->spans.ts[r], end)) return false;
    }
    return true;
}

static bool take_functions(struct finder *f) {
    const struct trace *t = f->t;
    if (f->nruns == 0 || f->known.process == STR_NONE) return true;
    for (uint32_t i = 0; i < t->ntracks; i++)
        if (t->tracks[i].kind == TRACK_THREAD &&
            f->selection->source_in[t->tracks[i].source] && !take_process(f, i))
            return false;
    /* Charges each stage with its function. While the caller waits in the stage
     * for what runs elsewhere, that wait has been counted already. */
    bool ok = true;
    for (size_t i = 0; ok && i < f->s->n; i++) {
        struct input_stage *s = &f->s->v[i];
        struct extra *x = &f->x[i];
        struct intervals both = {0};
        if (x->fn.n == 0) continue;
        intervals_union(&x->own);
        intervals_union(&x->fn);
        ok = intervals_and(&x->own, &x->fn, &both);
        sat_inc(&s->function, s->async);
        sat_dec(&s->async, intervals_length(&both));
        intervals_free(&both);
        assert(!ok || s->async >= 0); /* fn is a union of what async adds up */
        sat_inc(&s->self, s->async);
        s->threads = x->fn_threads;
        s->parallel = true;
    }
    return ok;
}

/* Finds how long stages were at work. A stage that leaves the work to other
 * threads (a prefetch, a parallel map or interleave, a loader with workers)
 * waits for them in its own time. Copies on the device keep no thread busy. */
static void set_busy(struct finder *f) {
    for (size_t i = 0; i < f->s->n; i++) {
        uint32_t up = f->s->v[i].parent;
        /* a few calls lack the stage around them at the window's edge */
        if (f->x[i].alone > f->s->v[i].calls / 2 && up != ROW_NONE)
            f->x[up].waits = true;
    }
    for (uint32_t i = 0; i < f->s->n; i++) {
        struct input_stage *s = &f->s->v[i];
        struct extra *x = &f->x[i];
        bool waits = x->waits || s->parallel || s->kind == STAGE_PREFETCH ||
                     (s->kind == STAGE_WAIT &&
                      name_loader(bytes_of(stage_text(f, i))) != LOADER_INLINE);
        struct intervals *work = waits ? &x->fn : &x->own;
        intervals_union(work);
        s->busy = intervals_length(work);
    }
}

/* Compares siblings: the larger first, then by name. */
static int by_time(const void *a, const void *b) {
    const struct input_stage *x = *(const struct input_stage *const *)a;
    const struct input_stage *y = *(const struct input_stage *const *)b;
    int64_t tx = input_stage_total(x), ty = input_stage_total(y);
    if (tx != ty) return tx > ty ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Names the stages and marks those that are shown: those with a call or an
 * exposed moment in the scope, and those above them. Returns their number. */
static size_t mark_shown(struct finder *f) {
    size_t n = 0;
    for (uint32_t i = 0; i < f->s->n; i++) {
        f->s->v[i].name = stage_text(f, i);
        f->x[i].child = ROW_NONE;
        if (f->s->v[i].calls == 0 && f->s->v[i].exposed == 0) continue;
        for (uint32_t k = i; k != ROW_NONE && !f->x[k].shown;
             k = f->s->v[k].parent) {
            f->x[k].shown = true;
            n++;
        }
    }
    return n;
}

/* Puts the stages that are shown into the order of the header. There are no
 * circles any more. */
static bool order_stages(struct finder *f) {
    struct input_stages *s = f->s;
    struct extra *x = f->x;
    size_t n = mark_shown(f), k = 0;
    const struct input_stage **sorted = malloc((n + 1) * sizeof *sorted);
    struct input_stage *out = malloc((n + 1) * sizeof *out);
    bool ok = sorted && out;
    for (size_t i = 0; ok && i < s->n; i++)
        if (x[i].shown) sorted[k++] = &s->v[i];
    if (k > 1) qsort(sorted, k, sizeof *sorted, by_time);
    uint32_t stack =
        ROW_NONE;     /* a list of stages that are to be put, first the roots */
    while (k-- > 0) { /* from the last on: lists grow at their head */
        uint32_t i = (uint32_t)(sorted[k] - s->v), up = s->v[i].parent;
        uint32_t *list = up == ROW_NONE ? &stack : &x[up].child;
        x[i].next = *list;
        *list = i;
    }
    for (uint32_t put = 0; stack != ROW_NONE; put++) {
        uint32_t i = stack, last = x[i].child, up = s->v[i].parent;
        out[put] = s->v[i];
        x[i].place = put;
        if (up != ROW_NONE) {
            out[put].parent = x[up].place;
            out[put].depth = out[x[up].place].depth + 1;
        }
        stack = x[i].next;
        if (last == ROW_NONE) continue;
        while (x[last].next != ROW_NONE) last = x[last].next;
        x[last].next = stack; /* its children come first */
        stack = x[i].child;
    }
    free(sorted);
    if (ok) {
        free(s->v);
        s->v = out;
        s->n = s->cap = n;
    } else {
        free(out);
    }
    return ok;
}

/* ---- names ---- */

/* More names than this that differ in indices alone are shown as one: FlatMap
 * and Repeat count elements and epochs, thousands of them. A Zip or Interleave
 * written by hand has fewer inputs. */
enum { INDICES_SHOWN = 16 };

/* Text that is used again and again; n is 0 when it holds nothing. */
struct buf {
    uint8_t *p;
    size_t n, cap;
};

/* Makes the name with every index as [*]; empty if it has none. Returns false
 * if out of memory. */
static bool without_indices(struct buf *b, struct bytes name) {
    b->n = 0;
    if (memchr(name.p, '[', name.n) == NULL) return true;
    if (b->cap < name.n) { /* [0] -> [*]: never longer */
        if (!vec_resize(&b->p, 2 * name.n, 1)) return false;
        b->cap = 2 * name.n;
    }
    for (size_t i = 0; i < name.n; i++) {
        b->p[b->n++] = name.p[i];
        size_t k = i + 1;
        while (k < name.n && name.p[k] >= '0' && name.p[k] <= '9') k++;
        if (name.p[i] != '[' || k == i + 1 || k == name.n || name.p[k] != ']')
            continue;
        b->p[b->n++] = '*';
        i = k - 1;
    }
    return true;
}

/* Fills f->fold for names of spans of the input pipeline. A path with indices,
 * A::FlatMap[7]::B, of which there are too many becomes A::FlatMap[*]::B.
 * Returns false if out of memory. O(names of the trace). */
static bool fold_names(struct finder *f) {
    const struct trace *t = f->t;
    struct strs folded;     /* names without their indices ... */
    struct map count = {0}; /* ... and how many names became each */
    struct buf b = {0};
    if (!strs_init(&folded)) return false;
    bool ok = true;
    for (str_id id = 0; ok && id < t->strs.n; id++) {
        if (!(t->name_class[id] & CLASS_ITERATOR)) continue;
        ok = without_indices(&b, strs_bytes(&t->strs, id));
        if (!ok || b.n == 0) continue;
        str_id to = strs_intern(&folded, (struct bytes){b.p, b.n});
        uint32_t *n = to == STR_NONE ? NULL : map_at(&count, to);
        ok = n != NULL;
        if (ok) *n = *n == MAP_NONE ? 1 : *n + 1;
    }
    for (str_id id = 0; ok && id < t->strs.n; id++) {
        if (!(t->name_class[id] & CLASS_INPUT)) continue;
        struct bytes own = strs_bytes(&t->strs, id);
        ok = without_indices(&b, own);
        struct bytes less = {b.p, b.n};
        str_id to = ok && b.n ? strs_find(&folded, less) : STR_NONE;
        uint32_t n = to == STR_NONE ? MAP_NONE : map_get(&count, to);
        bool many = n != MAP_NONE && n > INDICES_SHOWN;
        to = strs_intern(&f->s->names, many ? less : own);
        ok = ok && to != STR_NONE && map_set(&f->fold, id, to);
    }
    free(b.p);
    map_free(&count);
    strs_free(&folded);
    return ok;
}

/* ---- in and out ---- */

static bool find_stages(struct finder *f) {
    f->first = phases_first_launches(f->t);
    bool ok = f->first && fold_names(f);
    const struct strs *names = &f->t->strs;
    for (int i = 0; i < SYNC_RUNS; i++)
        f->known.sync[i] = strs_find(names, bytes_of(input_sync_runs[i]));
    f->known.async = strs_find(names, bytes_of(input_async_run));
    f->known.process = strs_find(names, bytes_of(input_async_work));
    for (uint32_t i = 0; ok && i < f->t->nsources; i++)
        if (f->selection->source_in[i]) ok = take_source(f, i);
    if (!ok) return false;
    name_parents(f);
    cut_circles(f);
    if (!take_functions(f)) return false;
    set_busy(f);
    return order_stages(f);
}

int input_stages_init(struct input_stages *s, const struct trace *t,
                      const struct selection *in, struct ops_err *e) {
    *s = (struct input_stages){0};
    struct finder f = {.t = t, .selection = in, .s = s};
    if (!strs_init(&s->names)) return fail_oom(e);
    int rc = phases_get(&f.ph, t, e);
    bool ok = rc == 0 && find_stages(&f);
    free(f.touched);
    free(f.first);
    for (size_t i = 0; i < f.found; i++) {
        intervals_free(&f.x[i].own);
        intervals_free(&f.x[i].fn);
    }
    free(f.x);
    free(f.run);
    map_free(&f.fold);
    map_free(&f.at);
    map_free(&f.runs);
    if (ok) return 0;
    input_stages_free(s);
    return rc != 0 ? rc : fail_oom(e);
}

void input_stages_free(struct input_stages *s) {
    strs_free(&s->names);
    free(s->v);
    *s = (struct input_stages){0};
}
