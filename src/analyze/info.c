/* SPDX-License-Identifier: Apache-2.0
 * `info`: what is in a profile. A row is one fact: a name, a number where there
 * is one, and the words for it. Sources come first, then what was recorded,
 * then what was not. */
#include "analyze/analyze.h"

#include "analyze/missing.h"
#include "base/number.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One fact: value may be absent (have false); text is for people. */
static void put_fact(struct result *r, const char *metric, bool have,
                     double value, const char *unit, const char *text) {
    result_row(r);
    result_text(r, metric);
    result_float_if(r, have, value);
    result_text(r, unit);
    result_text(r, text);
}

static void put_text(struct result *r, const char *metric, const char *text) {
    put_fact(r, metric, false, 0, NULL, text);
}

static void put_count(struct result *r, const char *metric, uint64_t n) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, n);
    put_fact(r, metric, true, (double)n, NULL, text);
}

static void put_time(struct result *r, const char *metric, int64_t ps) {
    char text[48];
    human_time(ps, text, sizeof text);
    put_fact(r, metric, true, (double)ps / PS_PER_US, "us", text);
}

static void put_bytes(struct result *r, const char *metric, int64_t n) {
    char text[48];
    human_bytes(n, text, sizeof text);
    put_fact(r, metric, true, (double)n, "bytes", text);
}

/* A text row from a format. */
__attribute__((format(printf, 3, 4)))
static void put_words(struct result *r, const char *metric, const char *fmt,
                      ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put_text(r, metric, text);
}

static const char *rule_words(enum step_rule rule) {
    switch (rule) {
    case STEPS_BY_MARKER: return "by the markers in the profile";
    case STEPS_BY_GROUP: return "by the group ids in the profile";
    case STEPS_INFERRED: return "inferred from the longest repeating region";
    case STEPS_WHOLE: break;
    }
    return "none marked: the whole window is one step";
}

static size_t steps_of(const struct trace *t, size_t source) {
    size_t n = 0;
    for (size_t i = 0; i < t->nsteps; i++)
        if (t->steps[i].source == source) n++;
    return n;
}

static void put_source(struct result *r, const struct trace *t, size_t i) {
    const struct source *s = &t->sources[i];
    put_text(r, "path", s->path);
    put_text(r, "format", s->format);
    put_text(r, "host", s->host ? strs_text(&t->strs, s->host) : NULL);
    if (s->rank >= 0) put_count(r, "rank", (uint64_t)s->rank);
    if (s->world_size >= 0)
        put_count(r, "world size", (uint64_t)s->world_size);
    if (s->pid >= 0) put_count(r, "process", (uint64_t)s->pid);
    put_bytes(r, "file size", (int64_t)s->bytes.n);
    put_count(r, "events in file", s->events);
    put_time(r, "time window", s->window_end - s->window_ts);
    put_count(r, "steps", steps_of(t, i));
    put_text(r, "steps found", rule_words(s->step_rule));
}

static void put_devices(struct result *r, const struct trace *t) {
    put_count(r, "devices", t->ndevices);
    for (size_t i = 0; i < t->ndevices; i++) {
        const struct device *d = &t->devices[i];
        const char *model = strs_text(&t->strs, d->model);
        char memory[48] = "";
        if (d->memory_bytes > 0)
            human_bytes(d->memory_bytes, memory, sizeof memory);
        put_words(r, "device", "%s%s%s%s%s", strs_text(&t->strs, d->label),
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
    put_count(r, "tracks", t->ntracks);
    for (int k = TRACK_THREAD; k <= TRACK_OTHER; k++) {
        size_t n = 0;
        for (size_t i = 0; i < t->ntracks; i++)
            if ((int)t->tracks[i].kind == k) n++;
        if (n > 0) put_count(r, track_words((enum track_kind)k), n);
    }
}

static void put_spans(struct result *r, const struct trace *t) {
    static const char *const words[SPAN_KINDS] = {
        "other host regions", "framework ops",     "annotations",
        "API calls",          "Python frames",     "runtime spans",
        "kernels",            "copies",            "memsets",
        "device waits",       "profiler overhead",
    };
    uint64_t by_kind[SPAN_KINDS] = {0}, derived = 0;
    for (size_t i = 0; i < t->spans.n; i++) {
        if (t->spans.flags[i] & SPAN_DERIVED) derived++;
        else by_kind[t->spans.kind[i]]++;
    }
    put_count(r, "spans", t->spans.n);
    for (int k = 0; k < SPAN_KINDS; k++)
        if (by_kind[k] > 0) put_count(r, words[k], by_kind[k]);
    if (derived > 0) put_count(r, "derived spans (not counted)", derived);
    put_count(r, "launch links", t->links.n);
    put_count(r, "memory events", t->mem.n);
    put_count(r, "counters", t->ncounters);
    if (t->samples.n > 0) put_count(r, "counter samples", t->samples.n);
}

static void put_meta(struct result *r, const struct trace *t) {
    for (size_t i = 0; i < t->nmeta; i++) {
        const char *key = strs_text(&t->strs, t->meta[i].key);
        put_text(r, key, strs_text(&t->strs, t->meta[i].value));
    }
}

static void put_missing(struct result *r, const struct trace *t) {
    static const enum missing_what all[] = {MISSING_DEVICE, MISSING_MEMORY,
                                            MISSING_SHAPES, MISSING_STACKS};
    for (size_t i = 0; t->nsources > 0 && i < sizeof all / sizeof *all; i++)
        missing_say(r, t, all[i]);
}

static int run(const struct trace *t, const struct opts *o, struct result *r,
               struct ops_err *e) {
    static const struct column cols[] = {
        {"metric", NULL, NULL, "What the row is about.", COL_TEXT, COL_KEY},
        {"value", NULL, NULL, "The number, where there is one.", COL_FLOAT,
         COL_DETAIL},
        {"unit", NULL, NULL, "The unit of the number.", COL_TEXT, COL_DETAIL},
        {"text", "", NULL, "The same in words.", COL_TEXT, 0},
    };
    struct scope s;
    TRY(scope_init(&s, t, o, e));
    result_init(r, "info", "What is in it");
    result_from_trace(r, t);
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        result_col(r, cols[i]);
    r->in_order = true;
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

extern const struct analysis analysis_info;
const struct analysis analysis_info = {
    .name = "info",
    .help = "what is in a profile: format, hosts, devices, tracks, spans, "
            "steps; what was skipped or not recorded",
    .row = "one fact about the profile",
    .all_rows = true,
    .run = run,
};
