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
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *rule_words(enum step_rule rule) {
    switch (rule) {
    case STEPS_BY_MARKER: return "by the markers in the profile";
    case STEPS_BY_GROUP: return "by the group ids in the profile";
    case STEPS_INFERRED:
        return "inferred from what repeats: a region, or "
               "the optimizer's calls";
    case STEPS_WHOLE: break;
    }
    return "none marked: the whole window is one step";
}

static size_t steps_of(const struct trace *t, size_t source) {
    return t->sources[source].step_end - t->sources[source].step_first;
}

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
    if (s->beside != ROW_NONE) { /* its times and steps are the other's */
        facts_text(r, "belongs to", t->sources[s->beside].path);
        return;
    }
    facts_time(r, "time window", s->window_end - s->window_ts);
    facts_count(r, "steps", steps_of(t, i));
    facts_text(r, "steps found", rule_words(s->step_rule));
}

static void put_devices(struct result *r, const struct trace *t) {
    facts_count(r, "devices", t->ndevices);
    for (size_t i = 0; i < t->ndevices; i++) {
        const struct device *d = &t->devices[i];
        const char *model = strs_text(&t->strs, d->model);
        char memory[48] = "";
        if (d->memory_bytes > 0)
            human_bytes(d->memory_bytes, memory, sizeof memory);
        facts_words(r, "device", "%s%s%s%s%s", strs_text(&t->strs, d->label),
                    *model ? ": " : "", model, *memory ? ", " : "", memory);
    }
}

static const char *track_words(enum track_kind kind) {
    switch (kind) {
    case TRACK_THREAD: return "host threads";
    case TRACK_PYTHON: return "tracks of Python frames";
    case TRACK_STREAM: return "device streams";
    case TRACK_DERIVED: return "derived lines (not counted)";
    case TRACK_ASYNC: return "tracks of asynchronous spans";
    case TRACK_OTHER: break;
    }
    return "other tracks";
}

static void put_tracks(struct result *r, const struct trace *t) {
    facts_count(r, "tracks", t->ntracks);
    for (int k = TRACK_THREAD; k <= TRACK_OTHER; k++) {
        size_t n = 0;
        for (size_t i = 0; i < t->ntracks; i++)
            if ((int)t->tracks[i].kind == k) n++;
        if (n > 0) facts_count(r, track_words((enum track_kind)k), n);
    }
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

static void put_meta(struct result *r, const struct trace *t) {
    for (size_t i = 0; i < t->nmeta; i++) {
        const char *key = strs_text(&t->strs, t->meta[i].key);
        facts_text(r, key, strs_text(&t->strs, t->meta[i].value));
    }
}

static void put_missing(struct result *r, const struct trace *t) {
    static const enum missing_what all[] = {MISSING_DEVICE, MISSING_MEMORY,
                                            MISSING_SHAPES, MISSING_STACKS};
    for (size_t i = 0; t->nsources > 0 && i < COUNT(all); i++)
        missing_say(r, t, all[i]);
}

static int run(const struct trace *t, const struct opts *o, struct result *r,
               struct ops_err *e) {
    struct scope s;
    TRY(scope_init(&s, t, o, e));
    result_init(r, "info", "What is in it");
    result_from_trace(r, t);
    facts_columns(r);
    for (size_t i = 0; i < t->nsources; i++)
        if (s.source_in[i]) put_source(r, t, i);
    put_devices(r, t);
    put_tracks(r, t);
    put_spans(r, t);
    put_meta(r, t);
    put_missing(r, t);
    scope_free(&s);
    return result_done(r, e);
}

const struct analysis analysis_info = {
    .name = "info",
    .help = "what is in a profile: format, hosts, devices, tracks, spans, "
            "steps; what was skipped or not recorded",
    .row = "one fact about the profile",
    .all_rows = true,
    .run = run,
};
