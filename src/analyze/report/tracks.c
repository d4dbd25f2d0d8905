/* SPDX-License-Identifier: Apache-2.0
 * tracks: where things ran. One row per thread, per thread's Python frames and
 * per stream: what `trace --track` takes, and where the events are. */
#include "analyze/analyze.h"

#include "base/array.h"

static const char *const kind_words[] = {
    [TRACK_THREAD] = "thread", [TRACK_PYTHON] = "python",
    [TRACK_STREAM] = "stream", [TRACK_DERIVED] = "derived",
    [TRACK_ASYNC] = "async",   [TRACK_OTHER] = "other",
};

static const struct column tracks_cols[] = {
    {"name", "track", NULL, "The thread or stream.", COL_TEXT, COL_KEY},
    {"kind", NULL, NULL,
     "thread, python (frames of a thread), stream, "
     "derived (made from others), async, other.",
     COL_TEXT, 0},
    {"host", NULL, NULL, "The machine and rank.", COL_TEXT, COL_DETAIL},
    {"device", NULL, NULL, "The device, for streams.", COL_TEXT, 0},
    {"pid", NULL, NULL, "The process, as recorded.", COL_INT, COL_DETAIL},
    {"tid", NULL, NULL, "The thread or stream, as recorded.", COL_INT,
     COL_DETAIL},
    {"spans", NULL, NULL, "How many spans it has.", COL_INT, 0},
    {"busy_us", "busy", "us", "Time in which at least one of them ran.",
     COL_TIME, COL_MAIN},
    {"start_us", "first", "us", "When its first span begins.", COL_TIME,
     COL_STAMP},
};

/* Puts the row of a track; none where no span of it counts. */
static int put_track(struct result *r, const struct selection *in,
                     const struct track *tr, struct ops_err *e) {
    const struct trace *t = in->t;
    struct intervals busy = {0};
    bool ok = true;
    int64_t n = 0;
    row_id first = ROW_NONE;
    for (row_id i = tr->first; ok && i < tr->end; i++) {
        if (!select_has(in, i)) continue;
        if (n++ == 0) first = i;
        if (t->spans.dur[i] > 0)
            ok = intervals_extend(&busy, t->spans.ts[i], span_end(t, i));
    }
    if (n == 0) return ok ? 0 : fail_oom(e);
    intervals_union(&busy);
    result_row(r);
    cell_str(r, "name", strs_bytes(&t->strs, tr->name));
    cell_text(r, "kind", kind_words[tr->kind]);
    cell_text(r, "host", label_source(r, t, tr->source));
    if (tr->device != ROW_NONE)
        cell_text(r, "device", label_device(r, t, tr->source, tr->device));
    cell_int(r, "pid", tr->pid);
    cell_int(r, "tid", tr->tid);
    cell_int(r, "spans", n);
    cell_int(r, "busy_us", intervals_length(&busy));
    cell_int(r, "start_us", t->spans.ts[first]);
    intervals_free(&busy);
    return ok ? 0 : fail_oom(e);
}

static int tracks_run(const struct trace *t, const struct opts *o,
                      struct result *r, struct ops_err *e) {
    struct selection s;
    TRY(select_init(&s, t, o, e));
    result_init(r, "tracks", "Threads and streams");
    result_from_trace(r, t);
    result_cols(r, tracks_cols, COUNT(tracks_cols));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (s.source_in[tr->source]) rc = put_track(r, &s, tr, e);
    }
    select_free(&s);
    return rc != 0 ? rc : result_done(r, e);
}

const struct analysis analysis_tracks = {
    .name = "tracks",
    .help = "the threads and streams of a profile, and how busy each was",
    .row = "one thread, one thread's Python frames, or one stream",
    .run = tracks_run,
};
