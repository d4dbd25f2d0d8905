/* SPDX-License-Identifier: Apache-2.0
 * Runs of compiled programs that the host executes beside the thread that
 * called them: XLA on a CPU. The call only hands the program over, so the
 * caller runs ahead as it does of a device, and a step is over when what was
 * called in it is.
 *
 * A run's ops carry its number. Numbers are given out as calls are made, so the
 * k-th number is that of the k-th call, if there are as many of both and no run
 * begins before its call. Where that does not hold it cannot be told which call
 * a run is of, and ops stay in the step in which they begin. */
#include "model/seal.h"

#include "base/sort.h"
#include "base/vec.h"
#include "names/pattern.h"
#include <stdlib.h>

/* A run: its ops are hints [first, end) of those sorted by number. */
struct run {
    size_t first, end;
    int64_t ts, stop;
};

/* What one source has. */
struct host_runs {
    const struct sort_key *ops; /* of all sources */
    struct run *runs;
    size_t n, cap;
    struct sort_key *calls; /* by start */
    size_t ncalls, cap_calls;
};

/* Adds the run whose ops begin at hint i. Returns the hint behind them. */
static size_t add_run(const struct trace *t, struct host_runs *h, size_t i,
                      size_t nops) {
    struct run *r = &h->runs[h->n++];
    *r = (struct run){i, i, INT64_MAX, INT64_MIN};
    for (; r->end < nops && h->ops[r->end].hi == h->ops[i].hi &&
           h->ops[r->end].lo == h->ops[i].lo;
         r->end++) {
        row_id op = h->ops[r->end].row;
        if (t->spans.ts[op] < r->ts) r->ts = t->spans.ts[op];
        if (span_end(t, op) > r->stop) r->stop = span_end(t, op);
    }
    return r->end;
}

/* Lists the outermost spans of the source's threads whose name fits. Returns
 * false if out of memory. */
static bool list_calls(const struct trace *t, uint32_t source,
                       const char *pattern, struct host_runs *h) {
    h->ncalls = 0;
    for (size_t k = t->of_source.first[source];
         k < t->of_source.first[source + 1]; k++) {
        const struct track *tr = &t->tracks[t->of_source.v[k]];
        int64_t end = INT64_MIN;
        if (tr->kind != TRACK_THREAD) continue;
        for (row_id r = tr->first; r < tr->end; r++) {
            if (t->spans.ts[r] < end || t->spans.kind[r] == SPAN_OP ||
                !pattern_fits(pattern, strs_bytes(&t->strs, t->spans.name[r])))
                continue;
            if (!VEC_ROOM(h->calls, h->ncalls, h->cap_calls)) return false;
            h->calls[h->ncalls++] =
                (struct sort_key){sort_signed(t->spans.ts[r]), r, r};
            end = span_end(t, r);
        }
    }
    return sort_keys(h->calls, h->ncalls);
}

/* Is each run that of the call with the same place in its list? */
static bool runs_match(const struct trace *t, const struct host_runs *h) {
    if (h->ncalls != h->n) return false;
    for (size_t i = 0; i < h->n; i++)
        if (h->runs[i].ts < t->spans.ts[h->calls[i].row]) return false;
    return true;
}

/* Finds the call of each run; *told tells whether it can be. The executable's
 * own call has a run of its own; on several devices the function's has. */
static bool find_calls(const struct trace *t, uint32_t source,
                       struct host_runs *h, bool *told) {
    static const char *const names[] = {"*Executable::ExecuteHelper*",
                                        "PjitFunction(*"};
    *told = false;
    for (size_t i = 0; i < 2 && !*told; i++) {
        if (!list_calls(t, source, names[i], h)) return false;
        *told = runs_match(t, h);
    }
    return true;
}

/* Gives the ops of each run the step of its call. */
static void assign_runs(struct trace *t, uint32_t source,
                        const struct host_runs *h, int64_t *of,
                        int64_t *before) {
    const struct source *s = &t->sources[source];
    for (size_t i = 0; i < h->n; i++) {
        const struct run *r = &h->runs[i];
        row_id call = h->calls[i].row;
        uint32_t step = t->spans.step[call];
        int64_t *end = NULL;
        for (size_t k = r->first; k < r->end; k++)
            t->spans.step[h->ops[k].row] = step;
        if (step != ROW_NONE) end = &of[step];
        else if (t->spans.ts[call] < t->steps[s->step_first].marker_ts)
            end = &before[source];
        if (end != NULL && r->stop > *end) *end = r->stop;
    }
}

/* Returns the source of a row. */
static uint32_t source_of(const struct trace *t, row_id r) {
    return t->tracks[t->spans.track[r]].source;
}

/* Looks at one source, whose ops are [first, end). */
static bool source_runs(struct trace *t, uint32_t source, struct host_runs *h,
                        size_t first, size_t end, int64_t *of,
                        int64_t *before) {
    bool told;
    h->n = 0;
    for (size_t i = first; i < end;) {
        if (!VEC_ROOM(h->runs, h->n, h->cap)) return false;
        i = add_run(t, h, i, end);
    }
    if (!find_calls(t, source, h, &told)) return false;
    if (told) assign_runs(t, source, h, of, before);
    return true;
}

bool seal_host_runs(struct trace *t, int64_t *of, int64_t *before) {
    size_t n = t->run_hints.n, end;
    if (n == 0) return true;
    struct sort_key *ops = vec_alloc(n, sizeof *ops);
    struct host_runs h = {.ops = ops};
    if (ops == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        row_id r = t->run_hints.v[i].row;
        ops[i] = (struct sort_key){source_of(t, r),
                                   (uint64_t)t->run_hints.v[i].number, r};
    }
    bool ok = sort_keys(ops, n);
    for (size_t i = 0; ok && i < n; i = end) {
        uint32_t source = (uint32_t)ops[i].hi;
        const struct source *s = &t->sources[source];
        for (end = i; end < n && ops[end].hi == ops[i].hi;) end++;
        if (s->step_first < s->step_end && !s->has_device &&
            !trace_device_steps(t, source))
            ok = source_runs(t, source, &h, i, end, of, before);
    }
    free(ops);
    free(h.runs);
    free(h.calls);
    return ok;
}
