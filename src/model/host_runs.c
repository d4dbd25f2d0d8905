/* SPDX-License-Identifier: Apache-2.0
 * Runs of compiled programs that the host executes beside the thread that
 * called them: XLA on a CPU. The call only hands the program over, so the
 * caller runs ahead as it does of a device, and a step is over when what was
 * called in it is.
 *
 * A run's ops carry the program's name and a number. Numbers of a program are
 * given out as it is called, so its k-th number is that of its k-th call, if
 * there are as many of both and no run begins before its call. Each program
 * counts for itself, from anywhere: of two that have one name (for arguments of
 * other shapes) the runs go by their begin. Where no call names the only
 * program there is, all calls are taken for its. Where nothing of this holds it
 * cannot be told which call a run is of, and ops stay in the step in which they
 * begin. */
#include "model/seal.h"

#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/args.h"
#include "names/pattern.h"
#include <ctype.h>
#include <stdlib.h>

/* A run: its ops are hints [first, end) of those sorted by number. */
struct run {
    size_t first, end;
    int64_t ts, stop;
    uint64_t name;   /* of its program, hashed */
    int64_t program; /* tells those of one name apart */
    row_id call;     /* found by runs_match() */
};

/* What one source has. */
struct host_runs {
    const struct sort_key *ops; /* of all sources */
    struct run *runs;
    size_t n, cap;
    struct sort_key *calls; /* (name of the program, start, row) */
    size_t ncalls, cap_calls;
};

/* Returns what a program is known by that JAX compiled from a function of that
 * name: letters, digits and underlines of it. 0: it has none. */
static uint64_t program_name(struct bytes function) {
    char name[256];
    size_t n = function.n < sizeof name ? function.n : sizeof name;
    for (size_t i = 0; i < n; i++)
        name[i] = isalnum(function.p[i]) ? (char)function.p[i] : '_';
    return n == 0 ? 0 : hash_bytes(name, n);
}

/* The name of the run's program is that of its module, "jit_update". */
static void name_run(const struct trace *t, struct run *r, row_id op) {
    static const char prefix[] = "jit_";
    struct bytes b = args_get(t, op, "hlo_module").text;
    if (!BYTES_STARTS(b, "jit_")) return;
    r->name = program_name(
        (struct bytes){b.p + sizeof prefix - 1, b.n - sizeof prefix + 1});
    r->program = args_int(t, op, "program_id", 0);
}

/* The name of a call's program is that of the function around it,
 * "PjitFunction(update)". */
static uint64_t name_of_call(const struct trace *t, row_id r) {
    enum { CLIMB = 16 };
    static const char call[] = "PjitFunction(";
    for (int i = 0; r != ROW_NONE && i < CLIMB; i++, r = t->spans.parent[r]) {
        struct bytes b = strs_bytes(&t->strs, t->spans.name[r]);
        size_t n = sizeof call - 1;
        if (BYTES_STARTS(b, "PjitFunction(") && b.p[b.n - 1] == ')')
            return program_name((struct bytes){b.p + n, b.n - n - 1});
    }
    return 0;
}

/* Adds the run whose ops begin at hint i. Returns the hint behind them. */
static size_t add_run(const struct trace *t, struct host_runs *h, size_t i,
                      size_t nops) {
    struct run *r = &h->runs[h->n++];
    *r = (struct run){i, i, INT64_MAX, INT64_MIN, 0, 0, ROW_NONE};
    name_run(t, r, h->ops[i].row);
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
                (struct sort_key){name_of_call(t, r),
                                  sort_signed(t->spans.ts[r]), r};
            end = span_end(t, r);
        }
    }
    return sort_keys(h->calls, h->ncalls);
}

/* Compares runs by their program's name, then by number: they lie by number in
 * the list of ops. */
static int by_number(const void *a, const void *b) {
    const struct run *x = a, *y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_begin(const void *a, const void *b) {
    const struct run *x = a, *y = b;
    if (x->ts != y->ts) return x->ts < y->ts ? -1 : 1;
    return by_number(a, b);
}

/* Puts the runs of each name in the order of their calls. */
static void order_runs(struct host_runs *h) {
    if (h->n == 0) return;
    qsort(h->runs, h->n, sizeof *h->runs, by_number);
    for (size_t i = 0, end; i < h->n; i = end) {
        bool several = false;
        for (end = i; end < h->n && h->runs[end].name == h->runs[i].name; end++)
            several |= h->runs[end].program != h->runs[i].program;
        if (several) qsort(h->runs + i, end - i, sizeof *h->runs, by_begin);
    }
}

/* Gives the n runs from that one on the calls of the same places. */
static bool runs_match(const struct trace *t, struct host_runs *h, size_t run,
                       size_t n, size_t call, size_t ncalls) {
    if (n != ncalls) return false;
    for (size_t i = 0; i < n; i++)
        if (h->runs[run + i].ts < t->spans.ts[h->calls[call + i].row])
            return false;
    for (size_t i = 0; i < n; i++)
        h->runs[run + i].call = h->calls[call + i].row;
    return true;
}

/* Finds the calls of the runs of each name. Returns whether all were. */
static bool match_by_name(const struct trace *t, struct host_runs *h) {
    size_t c = 0;
    bool all = true;
    for (size_t i = 0, end; i < h->n; i = end) {
        uint64_t name = h->runs[i].name;
        for (end = i; end < h->n && h->runs[end].name == name;) end++;
        while (c < h->ncalls && h->calls[c].hi < name) c++;
        size_t from = c;
        while (c < h->ncalls && h->calls[c].hi == name) c++;
        all &= runs_match(t, h, i, end - i, from, c - from);
    }
    return all;
}

/* The same where there is one program and its calls do not name it. */
static bool match_all(const struct trace *t, struct host_runs *h) {
    for (size_t i = 0; i < h->ncalls; i++) {
        h->calls[i].hi = h->calls[i].lo;
        h->calls[i].lo = h->calls[i].row;
    }
    return h->n > 0 && h->runs[0].name == h->runs[h->n - 1].name &&
           sort_keys(h->calls, h->ncalls) &&
           runs_match(t, h, 0, h->n, 0, h->ncalls);
}

/* Finds the calls, spans whose name fits, of as many runs as can be told, and
 * counts these. Returns false if out of memory. */
static bool find_calls(const struct trace *t, uint32_t source,
                       const char *pattern, struct host_runs *h,
                       size_t *found) {
    *found = 0;
    for (size_t i = 0; i < h->n; i++) h->runs[i].call = ROW_NONE;
    if (!list_calls(t, source, pattern, h)) return false;
    if (!match_by_name(t, h)) match_all(t, h);
    for (size_t i = 0; i < h->n; i++) *found += h->runs[i].call != ROW_NONE;
    return true;
}

/* The executable's own call has a run of its own; on several devices the
 * function's has. Returns false if out of memory. */
static bool find_best_calls(const struct trace *t, uint32_t source,
                            struct host_runs *h) {
    static const char *const names[] = {"*Executable::ExecuteHelper*",
                                        "PjitFunction(*"};
    size_t own, functions;
    order_runs(h);
    if (!find_calls(t, source, names[0], h, &own)) return false;
    if (own == h->n) return true;
    if (!find_calls(t, source, names[1], h, &functions)) return false;
    return functions >= own || find_calls(t, source, names[0], h, &own);
}

/* Gives the ops of each run whose call is known the step of that. */
static void assign_runs(struct trace *t, uint32_t source,
                        const struct host_runs *h, int64_t *of,
                        int64_t *before) {
    const struct source *s = &t->sources[source];
    for (size_t i = 0; i < h->n; i++) {
        const struct run *r = &h->runs[i];
        row_id call = r->call;
        if (call == ROW_NONE) continue;
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
    h->n = 0;
    for (size_t i = first; i < end;) {
        if (!VEC_ROOM(h->runs, h->n, h->cap)) return false;
        i = add_run(t, h, i, end);
    }
    if (!find_best_calls(t, source, h)) return false;
    assign_runs(t, source, h, of, before);
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
                                   sort_signed(t->run_hints.v[i].number), r};
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
