/* SPDX-License-Identifier: Apache-2.0
 * input: one row per stage of the input pipeline, in the pipeline's order: the
 * one that hands out batches first, the source last. Exposed times sum to the
 * input phase of `steps`, to the picosecond. */
#include "analyze/analyze.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/phases.h"
#include "analyze/steps/input_stages.h"
#include "base/array.h"
#include "base/sum.h"
#include <stdlib.h>

/* Shares of the step at which input is called the bottleneck, and worth a
 * word: those at which XProf says "highly" and "moderately input-bound". */
enum { BOUND_PCT = 20, NOTICE_PCT = 5 };

/* A stage at work for that share of the time has no time left to run ahead. */
enum { LIMIT_PCT = 90 };

static const struct column input_cols[] = {
    {"stage", NULL, NULL,
     "The stage: a tf.data iterator by its path, a DataLoader's wait, a region "
     "before the step's first launch, an op inside one of them, copies.",
     COL_TEXT, COL_KEY | COL_SYMBOL},
    {"calls", NULL, NULL, "How often it was asked.", COL_INT, 0},
    {"total_us", "total", "us",
     "Time in it and in the stages that it called on its own thread; with the "
     "user's function where that ran on others and was not waited for.",
     COL_TIME, COL_MAIN},
    {"self_us", "self", "us", "Of that, not in a stage that it called.",
     COL_TIME, 0},
    {"per_step_us", "per step", "us", "total_us by the number of steps.",
     COL_TIME, COL_MEAN},
    {"share_pct", "share", "%", "self_us as a share of all stages' self time.",
     COL_PERCENT, 0},
    {"exposed_us", "exposed", "us",
     "Of self_us: the device did nothing meanwhile, and the step's thread "
     "waited here; with no device: the step's thread waited here. All stages "
     "together: the input phase of `steps`.",
     COL_TIME, COL_ANSWER},
    {"hidden_us", "hidden", "us", "Of self_us: not exposed.", COL_TIME,
     COL_DETAIL},
    {"exposed_pct", "of step", "%", "exposed_us as a share of the steps' time.",
     COL_PERCENT, COL_ANSWER},
    {"waited_us", "waited", "us",
     "All waits of other threads in the step's place (as in model.fit) while "
     "no op ran: in no exposed_us. It stands with the first of the stages that "
     "ran on them.",
     COL_TIME, COL_DETAIL},
    {"waited_pct", "waited", "%", "waited_us as a share of the steps' time.",
     COL_PERCENT, COL_DETAIL},
    {"kind", NULL, NULL,
     "wait, source, map (runs your function), batch, shuffle, cache, prefetch, "
     "flow (hands elements on), region, op, pin or copy.",
     COL_TEXT, COL_LESS},
    {"thread", NULL, NULL,
     "Where it ran: step (the step's own thread, which waits for it), "
     "background, or device.",
     COL_TEXT, 0},
    {"busy_us", "busy", "us",
     "Per step: at least one thread was at work on it. Waiting for other "
     "threads is no work. As long as the step: it never rests, and the step "
     "cannot be faster.",
     COL_TIME, COL_MEAN},
    {"threads", NULL, NULL, "Threads that worked for it.", COL_INT, 0},
    {"function_us", "function", "us",
     "The user's function of a map, filter, ..., on all its threads; null: it "
     "has none that was recorded.",
     COL_TIME, COL_DETAIL},
    {"call_us", "in calls", "us",
     "Of total_us: on the threads that asked for elements. What XProf shows.",
     COL_TIME, COL_DETAIL},
    {"parent", NULL, NULL, "The stage that asks this one.", COL_TEXT,
     COL_DETAIL},
    {"depth", NULL, NULL, "Stages above it.", COL_INT, COL_DETAIL},
    {"bytes", NULL, "bytes", "Copies: bytes moved.", COL_BYTES,
     COL_SIZE | COL_DETAIL},
    {"pageable", NULL, NULL, "Copies: from pageable memory, which is slower?",
     COL_BOOL, COL_DETAIL},
    {"advice", NULL, NULL, "What to look at first.", COL_TEXT, 0},
};

static double pct(int64_t part, wide whole) {
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static double ms_per_step(const struct input_stages *s, int64_t ps) {
    return s->steps > 0 ? (double)ps / (double)s->steps / PS_PER_MS : 0;
}

/* Returns the stage that is at work for the longest, or NULL: if it never
 * rests, it limits the pipeline. */
static const struct input_stage *slowest(const struct input_stages *s) {
    const struct input_stage *most = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].busy > (most ? most->busy : 0)) most = &s->v[i];
    return most;
}

/* Returns how long the steps' thread, or another in its place, waited. */
static int64_t all_waited(const struct input_stages *s) {
    return sat_add(s->exposed, s->waited);
}

/* Returns a word on a stage that costs something; NULL if it does not. */
static const char *advice_for(const struct input_stages *all,
                              const struct input_stage *s) {
    if (s->kind == STAGE_COPY) return s->pageable == 1 ? "pin_memory" : NULL;
    bool costs = pct(s->exposed, all->step_time) >= NOTICE_PCT;
    bool limits = s == slowest(all) &&
                  pct(all_waited(all), all->step_time) >= NOTICE_PCT;
    if (!costs && !limits) return NULL;
    switch (s->kind) {
    case STAGE_MAP:
        return s->parallel ? "more parallel calls" : "num_parallel_calls";
    case STAGE_SOURCE: return "parallel interleave";
    case STAGE_BATCH:
    case STAGE_SHUFFLE:
    case STAGE_FLOW:
    case STAGE_CACHE: return "prefetch";
    case STAGE_PREFETCH: return "see the slowest stage";
    case STAGE_REGION: return "load in the background";
    case STAGE_WAIT:
        switch (name_loader(bytes_of(s->name))) {
        case LOADER_NONE: return "prefetch";
        case LOADER_INLINE: return "num_workers";
        default: return "more workers";
        }
    default: return NULL;
    }
}

/* Returns the first stage beside the step's thread, or NULL. */
static const struct input_stage *first_beside(const struct input_stages *s) {
    for (size_t i = 0; i < s->n; i++)
        if (!s->v[i].on_step && s->v[i].kind != STAGE_COPY) return &s->v[i];
    return NULL;
}

static void put_stage(struct result *r, const struct input_stages *all,
                      const struct input_stage *s, wide selfs) {
    int64_t hidden = sat_sub(s->self, s->exposed);
    int64_t total = input_stage_total(s);
    result_row(r);
    cell_text(r, "stage", s->name);
    cell_int(r, "calls", s->calls);
    cell_int(r, "total_us", total);
    cell_int(r, "self_us", s->self);
    if (all->steps > 0) cell_int(r, "per_step_us", total / all->steps);
    cell_float(r, "share_pct", pct(s->self, selfs));
    cell_int(r, "exposed_us", s->exposed);
    /* with --steps a wait may have begun in the step before */
    cell_int(r, "hidden_us", hidden > 0 ? hidden : 0);
    if (all->step_time > 0)
        cell_float(r, "exposed_pct", pct(s->exposed, all->step_time));
    cell_text(r, "kind", stage_kind_name(s->kind));
    cell_text(r, "thread",
              s->kind == STAGE_COPY ? "device"
              : s->on_step          ? "step"
                                    : "background");
    if (all->steps > 0 && s->busy > 0)
        cell_int(r, "busy_us", s->busy / all->steps);
    if (s->kind != STAGE_COPY) cell_int(r, "threads", s->threads);
    if (s->function > 0) cell_int(r, "function_us", s->function);
    cell_int(r, "call_us", s->call);
    if (s->parent != ROW_NONE) cell_text(r, "parent", all->v[s->parent].name);
    cell_int(r, "depth", s->depth);
    if (s->bytes >= 0) cell_int(r, "bytes", s->bytes);
    if (s->pageable >= 0) cell_bool(r, "pageable", s->pageable == 1);
    cell_text(r, "advice", advice_for(all, s));
}

/* Says whether the device waits for input, and where. */
static void say_verdict(struct result *r, const struct input_stages *s) {
    const char *who = s->has_device ? "device" : "step's thread";
    const struct input_stage *most = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].exposed > (most ? most->exposed : 0)) most = &s->v[i];
    int64_t waited = all_waited(s);
    double share = pct(waited, s->step_time);
    const char *head = share >= BOUND_PCT    ? "Input is the bottleneck: "
                       : share >= NOTICE_PCT ? "Input costs time: "
                                             : "Input is not the bottleneck: ";
    result_remark(r,
                  "%sthe %s waits for it %.3f ms of each step of %.3f ms "
                  "(%.1f %%)%s%s.",
                  head, who, ms_per_step(s, waited),
                  ms_per_step(s, s->step_time), share,
                  most && share >= NOTICE_PCT ? ", most of it in " : "",
                  most && share >= NOTICE_PCT ? most->name : "");
    if (s->waited > 0)
        result_remark(r,
                      "Of that, %.3f ms per step are not in exposed_us: "
                      "another thread waited for a batch in the step's place "
                      "(as model.fit does), and no op ran meanwhile.",
                      ms_per_step(s, s->waited));
}

/* Says which stage limits the throughput. Nothing is said where the work that
 * is waited for was not recorded (a loader's workers), or where it costs
 * nothing because the device works meanwhile. */
static void say_limit(struct result *r, const struct input_stages *s) {
    const struct input_stage *most = slowest(s);
    int64_t waited = all_waited(s);
    if (most == NULL || most->busy < waited / 2) return;
    bool on_step = most->on_step && !most->parallel;
    bool costs = pct(waited, s->step_time) >= NOTICE_PCT;
    if (on_step && !costs) return;
    double share = pct(most->busy, s->step_time);
    result_remark(r,
                  "The slowest stage is %s: at work %.3f ms per step "
                  "(%.1f %%) on %lld thread%s%s.",
                  most->name, ms_per_step(s, most->busy), share,
                  (long long)most->threads, most->threads == 1 ? "" : "s",
                  on_step              ? ", in the step's own thread"
                  : !costs             ? ", and keeps up"
                  : share >= LIMIT_PCT ? ", so it limits the step"
                                       : "");
}

static void say_copies(struct result *r, const struct input_stages *s) {
    int64_t time = 0, pageable = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].kind != STAGE_COPY) continue;
        sat_inc(&time, s->v[i].self);
        if (s->v[i].pageable == 1) sat_inc(&pageable, s->v[i].self);
    }
    if (time == 0) return;
    result_remark(r,
                  "Copies to the device take %.3f ms per step (%.1f %%), "
                  "%.3f ms of it from pageable memory; what they delay is the "
                  "copy phase of `steps`, not exposed_us.",
                  ms_per_step(s, time), pct(time, s->step_time),
                  ms_per_step(s, pageable));
}

/* Adds all remarks. own: opscope's recorder wrote the profile, and the program
 * says what is input. */
static void say_all(struct result *r, const struct trace *t,
                    const struct input_stages *s) {
    bool any = false, own = missing_own(t), python = missing_own_python(t);
    const char *region = python ? "opscope.scope(\"name\", kind=\"input\")"
                         : own  ? "OPS_SCOPE_AS(OPS_KIND_INPUT, \"name\")"
                                : missing_advice(t, ADVICE_REGION);
    bool workers = false; /* does a stage wait for processes of their own? */
    for (size_t i = 0; i < s->n; i++) {
        any |= s->v[i].kind != STAGE_COPY && s->v[i].kind != STAGE_PIN;
        workers |= name_loader(bytes_of(s->v[i].name)) == LOADER_WORKERS;
    }
    if (!any && python)
        result_remark(r, "No input pipeline was recorded: no loader gave a "
                         "batch, and no scope has kind=\"input\".");
    else if (!any && own)
        result_remark(r, "No input pipeline was recorded: no scope of kind "
                         "OPS_KIND_INPUT (OPS_SCOPE_AS(OPS_KIND_INPUT, "
                         "\"load\")).");
    else if (!any)
        result_remark(r, "No input pipeline was recorded: no tf.data iterator, "
                         "no DataLoader, and no region before the first kernel "
                         "launch of a step.");
    if (any && s->steps > 0) {
        say_verdict(r, s);
        say_limit(r, s);
    }
    if (s->steps > 0) say_copies(r, s);
    /* plain Python before the first op leaves no trace but the gap */
    if (s->steps > 0 && pct(s->unseen, s->step_time) >= BOUND_PCT)
        result_remark(r,
                      "In %.3f ms at the start of each step nothing at all was "
                      "recorded on its thread. If the program prepares its "
                      "batches there, put a region around it (%s) and it will "
                      "be listed here.",
                      ms_per_step(s, s->unseen), region);
    if (workers)
        result_missing(r, "the loader's workers",
                       "the DataLoader's worker "
                       "processes are not in the profile of the process that "
                       "trains: only the wait for them is",
                       "profile a few steps with num_workers=0 to see what a "
                       "batch costs, or profile inside a worker "
                       "(worker_init_fn)");
}

static int input_run(const struct trace *t, const struct opts *o,
                     struct result *r, struct ops_err *e) {
    result_init(r, "input", "Input pipeline, from its end to its source");
    result_from_trace(r, t);
    r->in_order = true;
    result_cols(r, input_cols, COUNT(input_cols));
    struct selection in;
    struct input_stages s;
    TRY(select_init(&in, t, o, e));
    int rc = input_stages_init(&s, t, &in, e);
    if (rc == 0) {
        wide selfs = 0;
        if (s.mean) r->decimals = MEAN_DECIMALS;
        for (size_t i = 0; i < s.n; i++) selfs += s.v[i].self;
        const struct input_stage *beside = first_beside(&s);
        for (size_t i = 0; i < s.n; i++) {
            put_stage(r, &s, &s.v[i], selfs);
            if (&s.v[i] != beside || s.waited <= 0 || s.step_time <= 0)
                continue;
            cell_int(r, "waited_us", s.waited);
            cell_float(r, "waited_pct", pct(s.waited, s.step_time));
        }
        say_all(r, t, &s);
        missing_too(r, t, MISSING_DEVICE);
        input_stages_free(&s);
        rc = result_done(r, e);
    }
    select_free(&in);
    return rc;
}

const struct analysis analysis_input = {
    .name = "input",
    .help = "stages of the input pipeline, and how much the device waited",
    .row = "one stage of the input pipeline",
    .all_rows = true,
    .run = input_run,
};
