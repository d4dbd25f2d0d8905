/* SPDX-License-Identifier: Apache-2.0
 * coverage: what the profile can and cannot say. One row per kind of gap: how
 * much there is of it, of what whole, why, and how to have it next time. Rows
 * that are complete are shown, too: then it is known that nothing is missing.
 *
 * Reasons partition what they explain: the ops with device time and those of
 * every reason sum to all ops, so do the device's times by owner. */
#include "analyze/analyze.h"
#include "analyze/report/cover.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "model/format.h"
#include "names/input_names.h"
#include "names/name_class.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One row while it is put together. */
struct gap {
    const char *what;
    double have, whole; /* whole may be NO_WHOLE */
    const char *unit, *where, *why, *fix;
};

#define NO_WHOLE (-1.0) /* have is no part of anything */

struct coverage {
    const struct trace *t;
    struct selection in;
    struct result *r;
};

static const struct column coverage_cols[] = {
    {"what", NULL, NULL, "what is covered, or what is missing", COL_TEXT,
     COL_KEY},
    {"amount", NULL, NULL, "have, of expected, in words", COL_TEXT, COL_ANSWER},
    {"have", NULL, NULL, "how much of it there is", COL_FLOAT, COL_DETAIL},
    {"expected", NULL, NULL, "the whole that it is a part of", COL_FLOAT,
     COL_DETAIL},
    {"unit", NULL, NULL, "of have and expected", COL_TEXT, COL_DETAIL},
    {"pct", NULL, "%", "have as a share of expected", COL_PERCENT, 0},
    {"where", NULL, NULL, "an example: a name, a step, a device", COL_TEXT,
     COL_SYMBOL},
    {"why", NULL, NULL, "why it is not all", COL_TEXT, COL_BELOW},
    {"fix", NULL, NULL, "how to have it next time", COL_TEXT, COL_BELOW},
};

/* Returns a number of microseconds in picoseconds, the most there are if it has
 * more. */
static int64_t us_to_ps(double us) {
    double ps = us * PS_PER_US;
    return ps < (double)INT64_MAX ? (int64_t)ps : INT64_MAX;
}

/* Puts "12 of 40 ops", "3.20 ms of 4.00 ms" or "2". */
static void put_amount(struct result *r, const struct gap *g) {
    char a[48], b[48], text[160];
    bool time = g->unit && strcmp(g->unit, "us") == 0;
    if (time) {
        human_time(us_to_ps(g->have), a, sizeof a);
        human_time(us_to_ps(g->whole), b, sizeof b);
    } else {
        snprintf(a, sizeof a, "%.0f", g->have);
        snprintf(b, sizeof b, "%.0f", g->whole);
    }
    bool of = g->whole >= 0, unit = g->unit && !time;
    snprintf(text, sizeof text, "%s%s%s%s%s", a, of ? " of " : "", of ? b : "",
             unit ? " " : "", unit ? g->unit : "");
    cell_text(r, "amount", text);
}

static void put_gap(struct coverage *c, struct gap g) {
    struct result *r = c->r;
    result_row(r);
    cell_text(r, "what", g.what);
    put_amount(r, &g);
    cell_float(r, "have", g.have);
    if (g.whole >= 0) cell_float(r, "expected", g.whole);
    cell_text(r, "unit", g.unit);
    if (g.whole > 0) cell_float(r, "pct", 100 * g.have / g.whole);
    cell_text(r, "where", g.where);
    cell_text(r, "why", g.why);
    cell_text(r, "fix", g.fix);
}

/* Puts a row; one that is complete needs no reason and no cure. */
static void put_unless_all(struct coverage *c, struct gap g) {
    if (g.have >= g.whole) g.why = g.fix = NULL;
    put_gap(c, g);
}

static const char *name_of(const struct coverage *c, str_id id) {
    return id == 0 ? NULL : strs_text(&c->t->strs, id);
}

/* Is the source in scope, and could it have recorded such a thing? What stands
 * beside a profile of the same process could not. */
static bool could_record(const struct coverage *c, uint32_t i) {
    const struct source *s = &c->t->sources[i];
    return c->in.source_in[i] &&
           !(s->companion_of != ROW_NONE && (s->process_view || s->beside));
}

static bool is_recorded(const struct coverage *c, uint32_t i,
                        enum missing_what what) {
    return missing_has(c->t, i, what) || missing_is_beside(c->t, what);
}

/* Returns the framework's words for it, from the first source in scope that
 * lacks it; NULL if every one has it. */
static const char *fix_of(const struct coverage *c, enum missing_what what) {
    for (uint32_t i = 0; i < c->t->nsources; i++)
        if (could_record(c, i) && !is_recorded(c, i, what))
            return missing_fix(c->t, i, what);
    return NULL;
}

/* ---- the time of steps ---- */

static void put_part(struct coverage *c, const char *what,
                     const struct cover_part *p, const char *label,
                     const char *why, const char *fix) {
    char where[200];
    if (p->whole <= 0) return;
    int n = snprintf(where, sizeof where, "%s", label ? label : "");
    if (p->worst_whole > 0)
        snprintf(where + n, sizeof where - (size_t)n,
                 "%sstep %" PRId64 " has least: %.1f %%", label ? "; " : "",
                 p->worst,
                 100 * (double)p->worst_have / (double)p->worst_whole);
    put_unless_all(c,
                   (struct gap){what, (double)p->have / 1e6,
                                (double)p->whole / 1e6, "us", where, why, fix});
}

/* Returns "GPU 0"; with the ranks of a job "rank 1 GPU 0". */
static const char *device_label(const struct trace *t, uint32_t d, char *text,
                                size_t cap) {
    const struct source *s = &t->sources[t->devices[d].source];
    const char *label = strs_text(&t->strs, t->devices[d].label);
    if (t->nsources < 2) cut_fmt(text, cap, "%.*s", CUT(60, label));
    else if (s->rank >= 0)
        cut_fmt(text, cap, "rank %" PRId64 " %.*s", s->rank, CUT(60, label));
    else
        cut_fmt(text, cap, "%.*s %.*s", CUT(60, strs_text(&t->strs, s->host)),
                CUT(60, label));
    return text;
}

/* Puts the devices by rank and number, in whatever order the files came. */
static int put_devices(struct coverage *c, const struct step_cover *s,
                       struct ops_err *e) {
    const struct trace *t = c->t;
    struct sort_key *v = vec_alloc(t->ndevices + 1, sizeof *v);
    if (v == NULL) return fail_oom(e);
    for (uint32_t d = 0; d < t->ndevices; d++)
        v[d] = (struct sort_key){sort_signed(
                                     t->sources[t->devices[d].source].rank),
                                 sort_signed(t->devices[d].ordinal), d};
    bool ok = sort_keys(v, t->ndevices);
    for (size_t i = 0; ok && i < t->ndevices; i++) {
        char label[160];
        put_part(c, "step time with device work", &s->device[v[i].row],
                 device_label(t, v[i].row, label, sizeof label),
                 "in the rest the device is idle, as far as it was recorded",
                 "`idle` says for what it waits");
    }
    free(v);
    return ok ? 0 : fail_oom(e);
}

static int put_steps(struct coverage *c, struct ops_err *e) {
    const struct trace *t = c->t;
    struct step_cover s;
    TRY(step_cover_init(&s, t, &c->in, e));
    const char *fix = fix_of(c, MISSING_STACKS);
    bool own = missing_own(t);
    if (missing_own_python(t))
        fix = MISSING_UNTRACED "opscope record --steps 2..4";
    else if (own) fix = "put OPS_SCOPE(\"name\") around what runs there";
    else if (!fix)
        fix = "name regions of the program; `python` shows its frames";
    put_part(c, "step time with any event", &s.any, NULL,
             own ? "in the rest no scope was open and no device ran"
                 : "in the rest no op, call, region or device work is "
                   "recorded: Python between ops, other programs, or waiting",
             fix);
    put_part(c, "step time with a host event", &s.host, NULL,
             "in the rest the host runs nothing that records itself", fix);
    int rc = put_devices(c, &s, e);
    step_cover_free(&s);
    return rc;
}

/* ---- ops ---- */

/* What a row says, by answer. */
struct words {
    const char *what, *why, *fix;
    int advice; /* 1 + enum advice: the fix is in the framework's words */
};

static const struct words device_words[OP_DEVICE_ANSWERS] = {
    [OP_ON_DEVICE] = {"ops with device time", NULL, NULL, 0},
    [OP_NOT_RECORDED] =
        {"no device time: device not recorded",
         "they launch device work, but no device event was recorded at all: "
         "CUPTI (or roctracer) is absent, in use by another tool, or was "
         "refused",
         "let users read counters (NVreg_RestrictProfilingToAdminUsers=0), "
         "stop other profilers, and look for CUPTI errors in the program's "
         "output",
         0},
    [OP_OUTSIDE] =
        {"no device time: outside the window",
         "their launches come after the last device event: the recording "
         "stopped before the device got there",
         NULL, 1 + ADVICE_WAIT},
    [OP_DROPPED] =
        {"no device time: record missing",
         "their launches have no device event, though later ones have: the "
         "record was dropped, or the call put nothing on the device",
         NULL, 1 + ADVICE_ROOM},
    [OP_NO_DEVICE] =
        {"no device time: no device recorded",
         "the profile has no device event and no launching call: all ran on "
         "the CPU, or device recording was off",
         NULL, 0},
    [OP_VIEW] =
        {"no device time: view",
         "they give the same memory another shape: there is nothing to run",
         NULL, 0},
    [OP_ALLOCATES] = {"no device time: allocation",
                      "they only ask for memory, or about a tensor", NULL, 0},
    [OP_LIBRARY] =
        {"no device time: launched by a library",
         "a collective is launched by its library, on a thread or stream of "
         "its own, which no op is on",
         "`comm` has the time of collectives", 0},
    [OP_FUSED] = {"no device time: in a compiled region",
                  "the compiler made them part of another op's kernel", NULL,
                  1 + ADVICE_FUSED},
    [OP_BOOKKEEPING] =
        {"no device time: bookkeeping",
         "the framework's own work on the host: graph nodes, look-ups", NULL,
         0},
    [OP_CPU] = {"no device time: ran on the CPU",
                "they launch nothing: the CPU does their work",
                "if one should run on the device, move its inputs there", 0},
};

static const struct words memory_words[OP_MEMORY_ANSWERS] = {
    [OP_ALLOCATED] = {"ops with memory", NULL, NULL, 0},
    [OP_MEM_OFF] = {"no memory: not recorded",
                    "no allocation was recorded in their profile", NULL, 0},
    [OP_MEM_VIEW] = {"no memory: view",
                     "they look at memory that another op holds", NULL, 0},
    [OP_IN_PLACE] = {"no memory: in place", "they write into their input", NULL,
                     0},
    [OP_MEM_EAGER] =
        {"no memory: eager",
         "allocations of eager ops are recorded without the op's name",
         "wrap the step in tf.function", 0},
    [OP_CUSTOM] =
        {"no memory: custom op",
         "not one of the framework's ops: it may allocate by itself, past the "
         "framework's allocator",
         NULL, 1 + ADVICE_ALLOC},
    [OP_MEM_NONE] =
        {"no memory: no allocation",
         "no allocation came while they ran: they return memory that they "
         "were given, or ops around them allocate for them",
         NULL, 0},
};

static const char *words_fix(const struct coverage *c, const struct words *w) {
    return w->advice > 0 ? missing_advice(c->t, (enum advice)(w->advice - 1))
                         : w->fix;
}

/* Puts one row per answer that some op has; the first is for ops with no gap,
 * the answer `off` for what was not recorded. */
static void put_ops(struct coverage *c, int64_t ops, const struct words *words,
                    const int64_t *count, const str_id *name, int n, int off,
                    enum missing_what what) {
    for (int i = 0; i < n; i++) {
        if (i != 0 && count[i] == 0) continue;
        put_gap(c, (struct gap){words[i].what, (double)count[i],
                                ops > 0 ? (double)ops : NO_WHOLE, "ops",
                                name_of(c, name[i]),
                                ops > 0 ? words[i].why : "no op was recorded",
                                i == off ? fix_of(c, what)
                                         : words_fix(c, &words[i])});
    }
}

/* ---- device work ---- */

static const struct words work_words[WORK_OWNERS] = {
    [WORK_OP] = {"device time that belongs to an op", NULL, NULL, 0},
    [WORK_FOREIGN] =
        {"device time, no op: launched outside ops",
         "the launching call stands in no op: custom kernels, copies by hand, "
         "libraries on threads of their own",
         NULL, 1 + ADVICE_OP},
    [WORK_GRAPH] =
        {"device time, no op: in a CUDA graph",
         "a graph is launched as one: its kernels do not say which op they "
         "come from",
         NULL, 1 + ADVICE_GRAPH},
    [WORK_NO_LAUNCH] =
        {"device time, no op: launch not recorded",
         "no launching call with its correlation id is in the profile: it was "
         "launched before the window, by another process, or the record was "
         "dropped",
         "begin the recording when the device is idle", 0},
};

static void put_work(struct coverage *c, const struct host_tree *h) {
    struct work_cover w;
    work_cover_init(&w, h, &c->in);
    double whole = 0;
    char where[300];
    for (int i = 0; i < WORK_OWNERS; i++) whole += (double)w.time[i];
    for (int i = 0; i < WORK_OWNERS; i++) {
        if (w.count[i] == 0 && (i != WORK_OP || whole <= 0)) continue;
        cut_fmt(where, sizeof where, "%" PRId64 " event%s; longest: %.*s",
                w.count[i], w.count[i] == 1 ? "" : "s",
                CUT(200, strs_text(&c->t->strs, w.name[i])));
        put_gap(c,
                (struct gap){work_words[i].what, (double)w.time[i] / 1e6,
                             whole / 1e6, "us", w.count[i] ? where : NULL,
                             work_words[i].why, words_fix(c, &work_words[i])});
    }
    if (w.early == 0) return;
    char most[48];
    human_time(w.early_most, most, sizeof most);
    cut_fmt(where, sizeof where, "by up to %s: %.*s", most,
            CUT(200, strs_text(&c->t->strs, w.early_name)));
    double all = 0;
    for (int i = 0; i < WORK_OWNERS; i++) all += (double)w.count[i];
    put_gap(c, (struct gap){
                   "device work that begins before its launch", (double)w.early,
                   all, "events", where,
                   "the clocks of host and device disagree: delays between "
                   "them are off by as much",
                   "record again; newer drivers convert the clocks better"});
}

/* ---- what was recorded at all ---- */

static void put_recorded(struct coverage *c, const char *name,
                         enum missing_what what) {
    int64_t have = 0, all = 0;
    for (uint32_t i = 0; i < c->t->nsources; i++) {
        if (!could_record(c, i)) continue;
        all++;
        have += is_recorded(c, i, what);
    }
    put_gap(c, (struct gap){name, (double)have, (double)all,
                            all == 1 ? "file" : "files", NULL,
                            have == all ? NULL : missing_why(what),
                            fix_of(c, what)});
}

/* Says whether XLA programs are in the profile with their HLO, or by name. */
static void put_hlo(struct coverage *c) {
    const struct trace *t = c->t;
    int64_t n = 0;
    bool xla = false;
    const char *one = NULL;
    for (uint32_t i = 0; i < t->nsources; i++)
        xla |= could_record(c, i) && t->sources[i].format->has_programs;
    for (size_t i = 0; i < t->nmeta; i++)
        if (strcmp(strs_text(&t->strs, t->meta[i].key), "hlo_module") == 0) {
            if (n++ == 0) one = strs_text(&t->strs, t->meta[i].value);
        }
    if (!xla) return;
    put_gap(c, (struct gap){"XLA programs with their HLO", (double)n, NO_WHOLE,
                            n == 1 ? "program" : "programs", one,
                            n ? NULL
                              : "no XLA program ran, or its HLO was not kept",
                            n ? NULL : missing_advice(t, ADVICE_HLO)});
}

static void put_step_rule(struct coverage *c) {
    static const char *const why[] = {
        [STEPS_BY_REGION] = NULL,
        [STEPS_BY_MARKER] = NULL,
        [STEPS_BY_GROUP] = "the profile has no marker; its numbered groups "
                           "were taken",
        [STEPS_BY_RUN] = "the profile has no marker; each run of a compiled "
                         "program is taken for a step",
        [STEPS_INFERRED] = "the profile has no marker: steps are inferred from "
                           "what repeats; 'info' says how",
        [STEPS_WHOLE] = "no marker, and no signs of a loop that agree: the "
                        "whole window is one step",
    };
    const struct trace *t = c->t;
    int64_t marked = 0, all = 0;
    enum step_rule worst = STEPS_BY_MARKER;
    for (size_t i = 0; i < t->nsteps; i++) {
        if (!c->in.step_in[i]) continue;
        enum step_rule rule = t->sources[t->steps[i].source].step_rule;
        all++;
        marked += rule <= STEPS_BY_MARKER;
        if (rule > worst) worst = rule;
    }
    put_gap(c, (struct gap){"steps with a marker", (double)marked,
                            all > 0 ? (double)all : NO_WHOLE,
                            all == 1 ? "step" : "steps", NULL,
                            all ? why[worst] : "the profile is empty",
                            worst > STEPS_BY_GROUP
                                ? missing_advice(t, ADVICE_STEPS)
                                : NULL});
}

/* Says which ranks of the job no file was given of. */
static int put_ranks(struct coverage *c, struct ops_err *e) {
    const struct trace *t = c->t;
    int64_t world = 0, have = 0;
    for (size_t i = 0; i < t->nsources; i++)
        if (t->sources[i].world_size > world) world = t->sources[i].world_size;
    if (world < 2) return 0;
    if (world > 1000000) world = 1000000; /* no job is larger; files lie */
    uint8_t *seen = calloc((size_t)world, 1);
    if (seen == NULL) return fail_oom(e);
    for (size_t i = 0; i < t->nsources; i++) {
        int64_t k = t->sources[i].rank;
        if (k < 0 || k >= world || seen[k]) continue;
        seen[k] = 1;
        have++;
    }
    char where[120] = "missing:";
    size_t n = strlen(where);
    for (int64_t k = 0; k < world && n < sizeof where - 24; k++)
        if (!seen[k])
            n += (size_t)snprintf(where + n, sizeof where - n, " %" PRId64, k);
    if (n >= sizeof where - 24) snprintf(where + n, sizeof where - n, " ...");
    free(seen);
    bool all = have == world;
    put_unless_all(c, (struct gap){"ranks of the job", (double)have,
                                   (double)world, "ranks", all ? NULL : where,
                                   "no file of the others was given",
                                   "give the files of all ranks together"});
    return 0;
}

/* Says that loader workers are processes of their own, which no profiler
 * follows. */
static void put_workers(struct coverage *c) {
    const struct trace *t = c->t;
    for (size_t i = 0; i < t->strs.n; i++) {
        struct bytes n = strs_bytes(&t->strs, (str_id)i);
        if (!(t->name_class[i] & CLASS_INPUT) ||
            name_loader(n) != LOADER_WORKERS)
            continue;
        put_gap(c, (struct gap){
                       "loader workers", 0, NO_WHOLE, "recorded",
                       strs_text(&t->strs, (str_id)i),
                       "workers of a DataLoader are processes of their own; "
                       "only the wait for them is recorded",
                       "profile inside a worker (worker_init_fn), or once "
                       "with num_workers=0"});
        return;
    }
}

/* ---- what was lost ---- */

static void put_losses(struct coverage *c) {
    const struct trace *t = c->t;
    for (int i = 0; i < NOTE_COUNT; i++) {
        enum note_id id = (enum note_id)i;
        char what[100], text[NOTE_TEXT];
        if (t->notes[i] == 0 || note_class(id) != NOTE_CLASS_LOSS) continue;
        snprintf(what, sizeof what, "lost: %s", note_name(id));
        /* the words of the profiler itself, where it wrote some */
        const char *said = NULL;
        if (id == NOTE_SOURCE_WARNING || id == NOTE_DROPPED_AT_SOURCE) {
            said = trace_meta_get(t, ROW_NONE, "error");
            if (!said) said = trace_meta_get(t, ROW_NONE, "warning");
        }
        put_gap(c,
                (struct gap){what, (double)t->notes[i], NO_WHOLE, NULL, said,
                             note_text(id, t->notes[i], text), note_fix(id)});
    }
}

static int put_all(struct coverage *c, const struct host_tree *h,
                   struct ops_err *e) {
    struct op_cover ops;
    TRY(op_cover_init(&ops, h, &c->in, e));
    TRY(put_steps(c, e));
    put_ops(c, ops.ops, device_words, ops.device, ops.device_name,
            OP_DEVICE_ANSWERS, OP_NO_DEVICE, MISSING_DEVICE);
    put_work(c, h);
    if (ops.launches > 0)
        put_unless_all(
            c, (struct gap){"launching calls with device work",
                            (double)(ops.launches - ops.unanswered),
                            (double)ops.launches, "calls",
                            name_of(c, ops.unanswered_name),
                            "the others put nothing on the device, or their "
                            "work ran outside the window, or its record was "
                            "dropped",
                            "wait for the device before the profiler stops"});
    put_ops(c, ops.ops, memory_words, ops.memory, ops.memory_name,
            OP_MEMORY_ANSWERS, OP_MEM_OFF, MISSING_MEMORY);
    put_recorded(c, "device recording", MISSING_DEVICE);
    put_recorded(c, "memory recording", MISSING_MEMORY);
    put_recorded(c, "input shapes", MISSING_SHAPES);
    if (!missing_own(c->t)) put_recorded(c, "Python frames", MISSING_STACKS);
    if (!missing_own(c->t)) put_hlo(c);
    put_step_rule(c);
    TRY(put_ranks(c, e));
    put_workers(c);
    put_losses(c);
    return 0;
}

static int coverage_run(const struct trace *t, const struct opts *o,
                        struct result *r, struct ops_err *e) {
    struct coverage c = {.t = t, .r = r};
    struct host_tree h = {0};
    result_init(r, "coverage", "What this profile can and cannot say");
    result_from_trace(r, t);
    result_cols(r, coverage_cols, COUNT(coverage_cols));
    r->in_order = true;
    int rc = select_init(&c.in, t, o, e);
    if (rc == 0) rc = host_tree_get(&h, t, e);
    if (rc == 0) rc = put_all(&c, &h, e);
    if (rc == 0) rc = result_done(r, e);
    select_free(&c.in);
    return rc;
}

const struct analysis analysis_coverage = {
    .name = "coverage",
    .help = "what the profile can and cannot say, why, and how to get it",
    .row = "one kind of gap",
    .all_rows = true,
    .run = coverage_run,
};
