/* SPDX-License-Identifier: Apache-2.0
 * `info`: what is in a profile. A row is one fact: a name, a number where there
 * is one, and the words for it. Sources come first, then what was recorded,
 * then what was not. */
#include "analyze/analyze.h"

#include "analyze/report/facts.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/text/number.h"
#include "model/format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const rule_words[] = {
    [STEPS_BY_REGION] = "the instances of --region are the steps",
    [STEPS_BY_MARKER] = "by the markers in the profile",
    [STEPS_BY_GROUP] = "by the group ids in the profile",
    [STEPS_BY_RUN] = "no marker: each run of a compiled program is one",
    [STEPS_WHOLE] = "cannot be told: none is marked, and no signs of a loop "
                    "agree; the whole window is one",
};

/* What ends a step that nobody marked. */
static const char *const sign_words[] = {
    [TURN_OPTIMIZER] = "the optimizer's calls end them",
    [TURN_BACKWARD] = "backward passes end them",
    [TURN_INPUT] = "each begins by asking for a batch",
    [TURN_FUNCTION] = "each begins with the call that takes most of the time",
    [TURN_MODULE] = "each begins with the call of the same module",
    [TURN_SEQUENCE] = "all that is called repeats",
};

static void put_source(struct result *r, const struct trace *t, size_t i) {
    const struct source *s = &t->sources[i];
    facts_text(r, "path", s->path);
    facts_text(r, "format", s->format->name);
    facts_text(r, "host", s->host ? strs_text(&t->strs, s->host) : NULL);
    if (s->rank >= 0) facts_count(r, "rank", (uint64_t)s->rank);
    if (s->world_size >= 0)
        facts_count(r, "world size", (uint64_t)s->world_size);
    if (s->pid >= 0) facts_count(r, "process", (uint64_t)s->pid);
    facts_bytes(r, "file size", (int64_t)s->bytes.n);
    facts_count(r, "events in file", s->events);
    if (s->companion_of != ROW_NONE) { /* its times and steps are the other's */
        facts_text(r, "belongs to", t->sources[s->companion_of].path);
        return;
    }
    facts_time(r, "time window", s->window_end - s->window_ts);
    facts_count(r, "steps", s->step_end - s->step_first);
    if (s->step_rule == STEPS_INFERRED)
        facts_words(r, "steps found",
                    "inferred: %s; %.0f %% of them call the same",
                    sign_words[s->turn_sign], 100 * s->turns_alike);
    else facts_text(r, "steps found", rule_words[s->step_rule]);
}

/* Puts the devices that did something; of the others, how many there are. */
static bool put_devices(struct result *r, const struct trace *t) {
    bool *used = facts_devices(t);
    size_t unused = 0;
    if (used == NULL) return false;
    facts_count(r, "devices", t->ndevices);
    for (size_t i = 0; i < t->ndevices; i++) {
        const struct device *d = &t->devices[i];
        unused += !used[i];
        if (!used[i]) continue;
        const char *model = strs_text(&t->strs, d->model);
        char memory[48] = "";
        if (d->memory_bytes > 0)
            human_bytes(d->memory_bytes, memory, sizeof memory);
        facts_words(r, "device", "%s%s%s%s%s", strs_text(&t->strs, d->label),
                    *model ? ": " : "", model, *memory ? ", " : "", memory);
    }
    if (unused > 0) facts_count(r, "devices that did nothing", unused);
    free(used);
    return true;
}

static void put_tracks(struct result *r, const struct trace *t) {
    static const char *const words[] = {
        [TRACK_THREAD] = "host threads",
        [TRACK_PYTHON] = "tracks of Python frames",
        [TRACK_STREAM] = "device streams",
        [TRACK_DERIVED] = "derived lines (not counted)",
        [TRACK_ASYNC] = "tracks of asynchronous spans",
        [TRACK_OTHER] = "other tracks",
    };
    size_t n[COUNT(words)] = {0};
    facts_count(r, "tracks", t->ntracks);
    for (size_t i = 0; i < t->ntracks; i++) n[t->tracks[i].kind]++;
    for (size_t k = 0; k < COUNT(words); k++)
        if (n[k] > 0) facts_count(r, words[k], n[k]);
}

static void put_spans(struct result *r, const struct trace *t) {
    /* clang-format off */
    static const char *const words[SPAN_KINDS] = {
        "other host regions", "framework ops",     "annotations",
        "API calls",          "Python frames",     "runtime spans",
        "kernels",            "copies",            "memsets",
        "device waits",       "profiler overhead",
    };
    /* clang-format on */
    uint64_t by_kind[SPAN_KINDS] = {0}, derived = 0;
    for (size_t i = 0; i < t->spans.n; i++) {
        if (t->spans.flags[i] & SPAN_DERIVED) derived++;
        else by_kind[t->spans.kind[i]]++;
    }
    facts_count(r, "spans", t->spans.n);
    for (int k = 0; k < SPAN_KINDS; k++)
        if (by_kind[k] > 0) facts_count(r, words[k], by_kind[k]);
    if (derived > 0) facts_count(r, "derived spans (not counted)", derived);
    facts_count(r, "launch links", t->links.n);
    facts_count(r, "memory events", t->mem.n);
    facts_count(r, "counters", t->ncounters);
    if (t->samples.n > 0) facts_count(r, "counter samples", t->samples.n);
}

static int info_run(const struct trace *t, const struct opts *o,
                    struct result *r, struct ops_err *e) {
    struct selection s;
    TRY(select_init(&s, t, o, e));
    result_init(r, "info", "What is in it");
    result_from_trace(r, t);
    facts_columns(r);
    for (size_t i = 0; i < t->nsources; i++)
        if (s.source_in[i]) put_source(r, t, i);
    bool ok = put_devices(r, t);
    put_tracks(r, t);
    put_spans(r, t);
    for (size_t i = 0; i < t->nmeta; i++)
        facts_text(r, strs_text(&t->strs, t->meta[i].key),
                   strs_text(&t->strs, t->meta[i].value));
    for (int i = MISSING_DEVICE; t->nsources > 0 && i < MISSING_KINDS; i++)
        missing_say(r, t, (enum missing_what)i);
    select_free(&s);
    return ok ? result_done(r, e) : fail_oom(e);
}

const struct analysis analysis_info = {
    .name = "info",
    .help = "what is in a profile: format, hosts, devices, tracks, spans, "
            "steps; what was skipped or not recorded",
    .row = "one fact about the profile",
    .all_rows = true,
    .run = info_run,
};
