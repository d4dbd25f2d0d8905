/* SPDX-License-Identifier: Apache-2.0
 * The steps of a source are run again one by one. A file may have any number of
 * steps: from some number on only a part of them is, spread over all, and the
 * others lose as much of their recording cost as those did. */
#include "analyze/steps/bare.h"

#include "analyze/shared/phases.h"
#include "analyze/steps/overhead.h"
#include "analyze/steps/replay.h"
#include "base/facts.h"
#include "base/sort.h"
#include "base/text/number.h"
#include "model/span_class.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Steps of a source that are run again, and tracks that may be looked at
     * for that: real programs have some dozens of both. */
    REPLAYED_MAX = 512,
    TRACKS_MAX = 1 << 20,
    /* Below this share of a step the cost does not show: two runs of one
     * program differ by more. */
    SHOWS_PERCENT = 1,
    /* So far apart are two runs of one program, whatever recorded them. */
    RUNS_PERCENT = 3,
    /* Of the host's part of a step that costs nobody can explain may be. */
    BESIDES_PERCENT = 65,
};

/* What is known of a source whose steps are worked on. */
struct work_source {
    const struct trace *t;
    uint32_t source;
    struct overhead o;
    struct host_side side;
    struct bare_step *steps; /* all of the trace */
    int64_t *costs;          /* by step: what recording its events cost ... */
    int64_t *besides;        /* ... and may have cost besides */
};

/* What the profiler cost a step: at the best guess, at least and at most. */
struct saved {
    double mid, least, most; /* ps */
};

/* Returns how much shorter the plan's run is than `before`; negative if out of
 * memory. */
static double shorter(struct plan *p, const struct trace *t, double times,
                      int64_t before) {
    plan_as_bare(p, t, times);
    int64_t after = replay(p);
    if (after < 0) return -1;
    return after < before ? (double)(before - after) : 0;
}

/* Runs a step again, as it was and without its profiler. */
static int replay_step(const struct work_source *w, uint32_t step,
                       struct saved *s, struct ops_err *e) {
    struct deps d;
    struct plan p;
    TRY(deps_build(&d, &w->side, step, e));
    int rc = plan_init(&p, &d, w->t, 0, e);
    if (rc == 0) {
        plan_as_traced(&p);
        int64_t before = replay(&p);
        s->mid = shorter(&p, w->t, 1, before);
        s->least = shorter(&p, w->t, w->o.least, before);
        s->most = shorter(&p, w->t, w->o.most, before);
        if (before < 0 || s->mid < 0 || s->least < 0 || s->most < 0)
            rc = fail_oom(e);
        plan_free(&p);
    }
    deps_free(&d);
    return rc;
}

/* Returns the step less so much, within its bounds. */
static int64_t less(const struct bare_step *b, double saved) {
    double v = (double)b->dur - saved;
    if (!(v > (double)b->busy)) return b->busy;
    return v < (double)b->dur ? (int64_t)v : b->dur;
}

static void set_estimate(struct bare_step *b, const struct saved *s,
                         int64_t besides) {
    double apart = (double)b->dur / 100 * RUNS_PERCENT;
    /* part of the host's work is its own */
    int64_t most = (b->dur - b->busy) / 100 * BESIDES_PERCENT;
    if (besides > most) besides = most;
    b->bare = less(b, s->mid);
    b->how = b->dur - less(b, s->most) > b->dur / 100 * SHOWS_PERCENT
                 ? BARE_ESTIMATED
                 : BARE_RECORDED;
    b->low = less(b, s->most + apart + (double)besides);
    b->high = less(b, s->least - apart);
    bool range = b->how == BARE_ESTIMATED;
    if (b->low > b->bare || !range) b->low = b->bare;
    if (b->high < b->bare || !range) b->high = b->bare;
}

/* Sets the steps of a source whose recorder's cost is estimated. */
static int estimate(struct work_source *w, const int64_t *launches,
                    struct ops_err *e) {
    const struct trace *t = w->t;
    const struct source *src = &t->sources[w->source];
    size_t n = src->step_end - src->step_first, some = REPLAYED_MAX;
    const struct lists *l = &t->of_source;
    size_t tracks = l->first[w->source + 1] - l->first[w->source] + 1;
    struct saved all = {0};
    double cost = 0;
    if (some > TRACKS_MAX / tracks) some = TRACKS_MAX / tracks;
    if (some < 1) some = 1;
    if (some > n) some = n;
    TRY(host_side_init(&w->side, t, w->source, launches, e));
    w->side.overhead = &w->o;
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < some; k++) {
        size_t i = src->step_first + k * n / some;
        struct saved s;
        rc = replay_step(w, (uint32_t)i, &s, e);
        if (rc != 0) break;
        set_estimate(&w->steps[i], &s, w->besides[i]);
        cost += (double)w->costs[i];
        all.mid += s.mid;
        all.least += s.least;
        all.most += s.most;
    }
    host_side_free(&w->side);
    /* the others: such a share of what recording cost was felt */
    for (size_t k = src->step_first; rc == 0 && k < src->step_end; k++) {
        if (w->steps[k].how != BARE_UNKNOWN) continue;
        double part = cost > 0 ? (double)w->costs[k] / cost : 0;
        set_estimate(&w->steps[k],
                     &(struct saved){.mid = all.mid * part,
                                     .least = all.least * part,
                                     .most = all.most * part},
                     w->besides[k]);
    }
    return rc;
}

/* Sets the steps of a source of which somebody measured the bare step, or whose
 * recorder told what it costs. */
static void set_known(struct work_source *w, int64_t measured) {
    const struct source *src = &w->t->sources[w->source];
    for (size_t i = src->step_first; i < src->step_end; i++) {
        struct bare_step *b = &w->steps[i];
        b->how = measured > 0 ? BARE_MEASURED : BARE_RECORDED;
        b->bare = measured > 0 ? measured : less(b, (double)w->costs[i]);
        /* a step that was quicker than that, or whose device was busy for
         * longer, is as it was recorded */
        if (b->bare > b->dur || b->bare < b->busy) b->how = BARE_RECORDED;
        if (b->bare > b->dur) b->bare = b->dur;
        if (b->bare < b->busy) b->bare = b->busy;
        b->low = b->high = b->bare;
    }
}

/* Returns the ps that a fact tells; -1 if it is not there, or is no time. */
static int64_t told_us(const struct trace *t, uint32_t source,
                       const char *fact) {
    const char *text = trace_meta_get(t, source, fact);
    char *end;
    if (text == NULL) return -1;
    double us = strtod(text, &end);
    bool ok = end != text && *end == '\0' && us > 0 &&
              us < (double)(DUR_LIMIT / PS_PER_US);
    return ok ? (int64_t)(us * (double)PS_PER_US + 0.5) : -1;
}

/* Returns the count that a fact tells; -1 if it tells none. */
static int64_t told_count(const struct trace *t, uint32_t source,
                          const char *fact) {
    const char *text = trace_meta_get(t, source, fact);
    long long n = text != NULL ? atoll(text) : 0;
    return n > 0 ? n : -1;
}

/* Returns what somebody measured without the profiler. */
static struct bare_measured measured_of(const struct trace *t,
                                        uint32_t source) {
    struct bare_measured m = {-1, -1, -1, -1, -1};
    /* it is of the program's steps, not of a region that somebody asked for */
    if (t->sources[source].step_rule == STEPS_BY_REGION) return m;
    m.step = told_us(t, source, FACT_BARE_STEP_US);
    m.low = told_us(t, source, FACT_BARE_LOW_US);
    m.high = told_us(t, source, FACT_BARE_HIGH_US);
    int64_t n = told_count(t, source, FACT_BARE_STEPS);
    if (n <= 0 || m.low <= 0 || m.low > m.step || m.step > m.high) return m;
    m.steps = n;
    m.laps = told_count(t, source, FACT_BARE_LAPS);
    return m;
}

bool bare_is_handing_over(const struct bare_measured *m, int64_t recorded) {
    return m->laps > 0 && m->step / 2 > recorded;
}

void bare_measured_text(const struct bare_measured *m, char *buf, size_t n) {
    char range[96];
    buf[0] = '\0';
    if (m->step <= 0 || m->steps <= 0) return;
    human_times(m->low, m->high, range, sizeof range);
    if (m->laps > 0) {
        snprintf(buf, n,
                 " (median of %lld stretch%s of together %lld steps that "
                 "nobody traced, whose program runs ahead of its device: %s a "
                 "step)",
                 (long long)m->laps, m->laps == 1 ? "" : "es",
                 (long long)m->steps, range);
        return;
    }
    snprintf(buf, n,
             " (median of %lld step%s that nobody traced; 8 of 10 take "
             "%s)",
             (long long)m->steps, m->steps == 1 ? "" : "s", range);
}

/* Fills in what was recorded: lengths, the device's work, events. */
static int read_steps(struct bare *b, const struct trace *t,
                      struct ops_err *e) {
    struct phases ph;
    struct phase_sums sums = {0};
    uint32_t source = ROW_NONE;
    int64_t parts[PHASES];
    TRY(phases_get(&ph, t, e));
    int rc = 0;
    for (size_t i = 0; i < t->nsteps; i++) {
        const struct step *st = &t->steps[i];
        struct bare_step *s = &b->steps[i];
        if (st->source != source) {
            phase_sums_free(&sums);
            source = st->source;
            rc = phase_sums_init(&sums, &ph, source, e);
            if (rc != 0) break;
        }
        phase_sums_mean(&sums, st->ts, st->ts + st->dur, parts, &s->busy);
        s->dur = s->bare = s->low = s->high = st->dur;
        s->how = BARE_UNKNOWN;
    }
    phase_sums_free(&sums);
    for (size_t i = 0; rc == 0 && i < t->spans.n; i++)
        if (t->spans.step[i] != ROW_NONE && overhead_counts(t, (row_id)i))
            b->steps[t->spans.step[i]].events++;
    return rc;
}

/* Adds up, by step, what recording cost in that source. */
static void add_costs(struct work_source *w) {
    const struct trace *t = w->t;
    const struct lists *l = &t->of_source;
    for (size_t k = l->first[w->source]; k < l->first[w->source + 1]; k++) {
        const struct track *tr = &t->tracks[l->v[k]];
        for (row_id r = tr->first; r < tr->end; r++) {
            uint32_t step = t->spans.step[r];
            if (step == ROW_NONE) continue;
            sat_inc(&w->costs[step], overhead_cost(&w->o, t, r));
            if (w->o.besides > 0 && t->spans.kind[r] == SPAN_API &&
                (span_class(t, r) & CLASS_GRAPH))
                sat_inc(&w->besides[step], w->o.besides);
        }
    }
}

static int fill(struct bare *b, const struct trace *t, int64_t *costs,
                int64_t *besides, const int64_t *launches, struct ops_err *e) {
    TRY(read_steps(b, t, e));
    for (uint32_t i = 0; i < t->nsources; i++) {
        struct work_source w = {.t = t,
                                .source = i,
                                .steps = b->steps,
                                .costs = costs,
                                .besides = besides};
        b->measured[i] = measured_of(t, i);
        if (t->sources[i].step_first >= t->sources[i].step_end) continue;
        TRY(overhead_read(&w.o, t, i, e));
        if (w.o.known) add_costs(&w);
        if (b->measured[i].step > 0 || (w.o.known && w.o.told))
            set_known(&w, b->measured[i].step);
        else if (w.o.known) TRY(estimate(&w, launches, e));
    }
    return 0;
}

static void drop_bare(void *v) {
    struct bare *b = v;
    if (b == NULL) return;
    free(b->steps);
    free(b->measured);
    free(b);
}

static void *make_bare(const struct trace *t) {
    struct ops_err e;
    struct bare *b = calloc(1, sizeof *b);
    int64_t *costs = calloc(t->nsteps + 1, sizeof *costs);
    int64_t *besides = calloc(t->nsteps + 1, sizeof *besides);
    int64_t *launches = phases_first_launches(t);
    bool ok = b && costs && besides && launches;
    if (ok) {
        b->steps = calloc(t->nsteps + 1, sizeof *b->steps);
        b->measured = calloc(t->nsources + 1, sizeof *b->measured);
        ok = b->steps != NULL && b->measured != NULL &&
             fill(b, t, costs, besides, launches, &e) == 0;
    }
    free(costs);
    free(besides);
    free(launches);
    if (ok) return b;
    drop_bare(b);
    return NULL;
}

int bare_get(const struct bare **b, const struct trace *t, struct ops_err *e) {
    *b = trace_memo(t, MEMO_BARE, make_bare, drop_bare);
    return *b != NULL ? 0 : fail_oom(e);
}

const char *bare_word(enum bare_how how) {
    static const char *const words[] = {[BARE_MEASURED] = "measured",
                                        [BARE_RECORDED] = "recorded",
                                        [BARE_ESTIMATED] = "estimated",
                                        [BARE_UNKNOWN] = NULL};
    return words[how];
}

/* Returns the median of one figure of n steps, found by its offset. */
static int64_t median_of(const struct bare_step *const *v, size_t n,
                         size_t offset, int64_t *room) {
    for (size_t i = 0; i < n; i++)
        memcpy(&room[i], (const char *)v[i] + offset, sizeof *room);
    qsort(room, n, sizeof *room, sort_by_value);
    return room[(n - 1) / 2];
}

bool bare_typical(const struct bare *b, const struct trace *t, uint32_t source,
                  const bool *in, struct bare_step *out, struct ops_err *e) {
    const struct source *src = &t->sources[source];
    size_t most = src->step_end - src->step_first + 1, n = 0;
    size_t kinds[BARE_UNKNOWN + 1] = {0};
    const struct bare_step **v = malloc(most * sizeof *v);
    int64_t *room = malloc(most * sizeof *room);
    bool ok = v != NULL && room != NULL;
    bool whole = false; /* is there a step that the window does not cut? */
    e->code = 0;
    if (!ok) fail_oom(e);
    for (size_t i = src->step_first; i < src->step_end; i++)
        whole |= (in == NULL || in[i]) && !t->steps[i].cut;
    for (size_t i = src->step_first; ok && i < src->step_end; i++) {
        if ((in != NULL && !in[i]) || (whole && t->steps[i].cut)) continue;
        kinds[b->steps[i].how]++;
        v[n++] = &b->steps[i];
    }
    if (n > 0) {
#define MEDIAN(member) median_of(v, n, offsetof(struct bare_step, member), room)
        *out = (struct bare_step){.dur = MEDIAN(dur),
                                  .busy = MEDIAN(busy),
                                  .bare = MEDIAN(bare),
                                  .low = MEDIAN(low),
                                  .high = MEDIAN(high),
                                  .events = MEDIAN(events)};
#undef MEDIAN
        for (int k = 0; k <= BARE_UNKNOWN; k++)
            if (kinds[k] > kinds[out->how]) out->how = (enum bare_how)k;
    }
    free(v);
    free(room);
    return n > 0;
}
