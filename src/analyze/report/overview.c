/* SPDX-License-Identifier: Apache-2.0
 * overview: one screen. It reads the results of other analyses, and says the
 * few things of each that matter first: how long is a step, where does it go,
 * is it the input, who holds the memory, what to do about it. */
#include "analyze/analyze.h"

#include "analyze/report/facts.h"
#include "analyze/shared/missing.h"
#include "analyze/steps/bare.h"
#include "base/array.h"
#include "base/facts.h"
#include "base/par.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "model/format.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TOP_OPS = 3,
    TOP_HINTS = 3,
    TOP_HOLDERS = 3,
    /* A step that takes so many times the median gets a remark. */
    OUTLIER = 3,
    /* Percent of a step below which a part of it is lost in the noise, and
     * from which on it is what the step waits for. */
    FELT = 5,
    MUCH = 20,
    /* A device that is busy for less of the step waits for the host. */
    HALF = 50,
    NAME_MAX_SHOWN = 90, /* characters of a kernel's name */
};

/* The results that it reads, each with an option or without. */
enum { STEPS, OPS, KERNELS, MEMORY, HOLDERS, INPUT, HINTS, PROCESSES, PARTS };
static const struct {
    const char *analysis, *opt, *value;
} sources[PARTS] = {
    [STEPS] = {"steps", NULL, NULL},
    [OPS] = {"ops", NULL, NULL},
    [KERNELS] = {"kernels", NULL, NULL},
    [MEMORY] = {"memory", NULL, NULL},
    [HOLDERS] = {"memory", "by", "category"},
    [INPUT] = {"input", NULL, NULL},
    [HINTS] = {"hints", NULL, NULL},
    [PROCESSES] = {"processes", NULL, NULL},
};

/* Puts a fact that is a share of a whole, which text draws as a bar. */
static void put_share(struct result *r, const char *metric, double value,
                      const char *unit, const char *text, double share,
                      const char *of) {
    facts_put(r, metric, true, value, unit, text);
    cell_float(r, "share_pct", share);
    cell_text(r, "share_of", of);
}

/* Is the row of a step that the window cuts, while others are whole? */
static bool is_cut(const struct result *steps, size_t row) {
    struct cell c = subresult_cell(steps, row, "cut");
    if (c.null || c.i == 0) return false;
    for (size_t i = 0; i < steps->nrows; i++) {
        c = subresult_cell(steps, i, "cut");
        if (!c.null && c.i == 0) return true;
    }
    return false;
}

/* What is said of many values. */
enum { LEAST, MEDIAN, P95, MOST, STEPS_SEEN, SPREAD };

/* Finds the spread of a time column of whole steps; where it is null, that of
 * another column counts (NULL: none). Returns false if there is no value, or no
 * memory, which into then knows. p95 is the least value that 95 % do not
 * exceed. */
static bool spread_or(struct result *into, const struct result *r,
                      const char *name, const char *other,
                      int64_t out[SPREAD]) {
    int64_t *v = malloc((r->nrows + 1) * sizeof *v);
    size_t n = 0;
    if (v == NULL) into->oom = true;
    for (size_t i = 0; v != NULL && i < r->nrows; i++) {
        struct cell c = subresult_cell(r, i, name);
        if (c.null && other != NULL) c = subresult_cell(r, i, other);
        if (!c.null && !is_cut(r, i)) v[n++] = c.i;
    }
    out[STEPS_SEEN] = (int64_t)n;
    if (n > 0) {
        qsort(v, n, sizeof *v, sort_by_value);
        out[LEAST] = v[0];
        out[MEDIAN] = v[(n - 1) / 2]; /* a step that exists */
        out[P95] = v[(n * 95 + 99) / 100 - 1];
        out[MOST] = v[n - 1];
    }
    free(v);
    return n > 0;
}

static bool spread(struct result *into, const struct result *r,
                   const char *name, int64_t out[SPREAD]) {
    return spread_or(into, r, name, NULL, out);
}

/* Says what the step takes without its profiler, if that shows. */
static void put_bare(struct result *r, const struct result *steps,
                     int64_t recorded) {
    int64_t bare[SPREAD], low[SPREAD], high[SPREAD], measured[SPREAD];
    int64_t of[SPREAD], laps[SPREAD];
    char mid[96], was[48], how[240] = "", *text;
    if (!spread(r, steps, "bare_us", bare)) return;
    human_time(recorded, was, sizeof was);
    if (spread(r, steps, "bare_measured_us", measured)) {
        struct bare_measured m = {.step = measured[MEDIAN], .laps = -1};
        human_time(m.step, mid, sizeof mid);
        if (spread(r, steps, "bare_measured_steps", of) &&
            spread(r, steps, "bare_measured_low_us", low) &&
            spread(r, steps, "bare_measured_high_us", high)) {
            m.steps = of[MEDIAN];
            m.low = low[MEDIAN];
            m.high = high[MEDIAN];
            if (spread(r, steps, "bare_measured_laps", laps))
                m.laps = laps[MEDIAN];
            bare_measured_text(&m, how, sizeof how);
        }
        if (bare_is_handing_over(&m, recorded))
            text = arena_fmt(&r->arena, "%s, measured%s; %s to hand it over",
                             mid, how, was);
        else if (m.step < recorded)
            text = arena_fmt(&r->arena, "%s, measured%s", mid, how);
        else
            text = arena_fmt(&r->arena,
                             "measured bare %s%s, recorded %s: profiled "
                             "steps were not slower",
                             mid, how, was);
    } else if (recorded - bare[MEDIAN] <= recorded / 100 * FELT) {
        return;
    } else if (spread(r, steps, "bare_low_us", low) &&
               spread_or(r, steps, "bare_low_us", "bare_us", low) &&
               spread_or(r, steps, "bare_high_us", "bare_us", high)) {
        char best[48];
        human_time(bare[MEDIAN], best, sizeof best);
        human_times(low[MEDIAN], high[MEDIAN], mid, sizeof mid);
        text = arena_fmt(&r->arena,
                         "some %s (%s): the rest is the profiler's own cost",
                         best, mid);
    } else {
        human_time(bare[MEDIAN], mid, sizeof mid);
        text = arena_fmt(&r->arena, "%s: the rest is the profiler's own cost",
                         mid);
    }
    facts_put(r, "without the profiler", true, (double)bare[MEDIAN] / PS_PER_US,
              "us", text);
}

static void put_steps(struct result *r, const struct result *steps) {
    int64_t dur[SPREAD];
    char lo[48], mid[48], hi[48];
    if (!spread(r, steps, "dur_us", dur)) {
        facts_count(r, "steps", steps->nrows);
        return;
    }
    human_time(dur[LEAST], lo, sizeof lo);
    human_time(dur[MEDIAN], mid, sizeof mid);
    human_time(dur[MOST], hi, sizeof hi);
    size_t n = (size_t)dur[STEPS_SEEN];
    const char *cut = n < steps->nrows ? "; the recording cuts another" : "";
    char *text = n == 1 ? arena_fmt(&r->arena, "%s, one step%s", mid, cut)
                        : arena_fmt(&r->arena,
                                    "%s median of %zu steps (%s to %s)%s", mid,
                                    n, lo, hi, cut);
    facts_put(r, "step time", true, (double)dur[MEDIAN] / PS_PER_US, "us",
              text);
    if (n > 1) facts_time(r, "step time, p95", dur[P95]);
    put_bare(r, steps, dur[MEDIAN]);
}

/* Returns the row of the step whose length is the median one: that is a typical
 * step, which a sum over all steps with a slow first one among them is not. Of
 * two that are equally near it is the longer: not the first, which the order of
 * the ranks would decide. */
static size_t median_row(const struct result *steps, size_t from, size_t to,
                         int64_t median) {
    size_t best = from;
    int64_t least = INT64_MAX, dur = 0;
    for (size_t i = from; i < to; i++) {
        struct cell d = subresult_cell(steps, i, "dur_us");
        if (d.null || is_cut(steps, i)) continue;
        int64_t off = d.i > median ? d.i - median : median - d.i;
        if (off > least || (off == least && d.i <= dur)) continue;
        least = off;
        dur = d.i;
        best = i;
    }
    return best;
}

/* Says what compute means where no device was recorded. */
static void put_no_device(struct result *r, const struct trace *t) {
    int64_t launches = missing_launches(t);
    const char *text = "no device was recorded: compute is the ops of the host";
    if (launches > 0)
        text =
            arena_fmt(&r->arena,
                      "%lld call%s launched device work, of which nothing is "
                      "in the profile: it was cut, or the device was not "
                      "recorded; compute is the ops of the host",
                      (long long)launches, launches == 1 ? "" : "s");
    facts_put(r, "device busy", false, 0, "%", text);
}

/* The typical steps: of each rank or host its median one. */
struct typical {
    size_t *rows; /* of `steps` */
    size_t n;
    int64_t whole; /* their lengths together */
};

/* Finds them; rows of a rank stand together. False if memory ran out. */
static bool find_typical(struct typical *f, const struct result *steps) {
    int64_t *v = malloc((steps->nrows + 1) * sizeof *v);
    *f = (struct typical){malloc((steps->nrows + 1) * sizeof *f->rows), 0, 0};
    size_t end = 0;
    for (size_t i = 0; v && f->rows && i < steps->nrows; i = end) {
        struct cell host = subresult_cell(steps, i, "host");
        size_t n = 0;
        for (end = i; end < steps->nrows; end++) {
            struct cell h = subresult_cell(steps, end, "host");
            struct cell d = subresult_cell(steps, end, "dur_us");
            if (h.null != host.null || (!h.null && strcmp(h.s, host.s) != 0))
                break;
            if (!d.null && !is_cut(steps, end)) v[n++] = d.i;
        }
        if (n == 0) continue;
        qsort(v, n, sizeof *v, sort_by_value);
        size_t row = median_row(steps, i, end, v[(n - 1) / 2]);
        f->rows[f->n++] = row;
        sat_inc(&f->whole, subresult_cell(steps, row, "dur_us").i);
    }
    free(v);
    return v != NULL && f->rows != NULL;
}

/* Puts a phase of the typical steps: of several ranks the mean, and from where
 * to where their shares go. */
static void put_phase(struct result *r, const struct result *steps,
                      const struct typical *f, const char *col,
                      const char *metric) {
    int64_t sum = 0;
    double least = 100, most = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct cell c = subresult_cell(steps, f->rows[i], col);
        struct cell d = subresult_cell(steps, f->rows[i], "dur_us");
        if (c.null) return;
        sat_inc(&sum, c.i);
        double share = d.i > 0 ? 100.0 * (double)c.i / (double)d.i : 0;
        if (share < least) least = share;
        if (share > most) most = share;
    }
    if (sum == 0 || f->whole <= 0) return;
    char time[48], range[64] = "";
    human_time(sum / (int64_t)f->n, time, sizeof time);
    if (f->n > 1 && most - least >= 1)
        snprintf(range, sizeof range, ", mean of %zu: %.1f to %.1f %%", f->n,
                 least, most);
    put_share(r, metric, (double)sum / (double)f->n / PS_PER_US, "us",
              arena_fmt(&r->arena, "%s%s", time, range),
              100.0 * (double)sum / (double)f->whole, "step");
}

/* Says where the median step went; of a job, the mean of each rank's. */
static void put_phases(struct result *r, const struct trace *t,
                       const struct result *steps) {
    static const struct {
        const char *col, *metric;
    } phases[] = {
        {"compute_us", "compute"},
        {"comm_us", "communication"},
        {"copy_us", "copies"},
        {"input_us", "input pipeline"},
        {"launch_us", "launching"},
        {"host_us", "host work"},
        {"other_us", "other (Python, idle)"},
    };
    struct typical f;
    if (!find_typical(&f, steps)) r->oom = true;
    for (size_t k = 0; !r->oom && f.n > 0 && k < COUNT(phases); k++) {
        const char *metric = phases[k].metric;
        if (strcmp(phases[k].col, "other_us") == 0 && missing_own(t))
            metric = "other (no scope open)";
        put_phase(r, steps, &f, phases[k].col, metric);
    }
    double busy = 0;
    size_t known = 0;
    for (size_t i = 0; !r->oom && i < f.n; i++) {
        struct cell c = subresult_cell(steps, f.rows[i], "device_busy_pct");
        known += !c.null;
        if (!c.null) busy += c.f;
    }
    if (f.n > 0 && known == 0) put_no_device(r, t);
    if (known > 0)
        put_share(r, "device busy", busy / (double)known, "%",
                  f.n > 1 ? "of the median step, mean over the ranks"
                          : "of the median step",
                  busy / (double)known, "step");
    free(f.rows);
}

/* Is the row one of an op proper? */
static bool is_op(const struct result *from, size_t row) {
    struct cell kind = subresult_cell(from, row, "kind");
    return !kind.null && strcmp(kind.s, "op") == 0;
}

/* Finds the rows with the largest values of that column, of ops alone where
 * there are some (regions and driver calls count where there are none). Returns
 * how many there are. */
static size_t find_top(const struct result *from, const char *col,
                       size_t rows[TOP_OPS]) {
    bool kinds = result_find_col(from, "kind") >= 0, only_ops = false;
    size_t n = 0;
    int64_t values[TOP_OPS];
    for (size_t i = 0; kinds && !only_ops && i < from->nrows; i++)
        only_ops = is_op(from, i);
    for (size_t i = 0; i < from->nrows; i++) {
        struct cell v = subresult_cell(from, i, col);
        if (v.null || v.i <= 0 || (only_ops && !is_op(from, i))) continue;
        size_t at = n; /* of equal ones the first stays first */
        while (at > 0 && values[at - 1] < v.i) at--;
        if (at == TOP_OPS) continue;
        if (n < TOP_OPS) n++;
        memmove(values + at + 1, values + at, (n - at - 1) * sizeof *values);
        memmove(rows + at + 1, rows + at, (n - at - 1) * sizeof *rows);
        values[at] = v.i;
        rows[at] = i;
    }
    return n;
}

static int64_t sum_column(const struct result *from, const char *col) {
    int64_t sum = 0;
    for (size_t i = 0; i < from->nrows; i++) {
        struct cell v = subresult_cell(from, i, col);
        if (!v.null) sat_inc(&sum, v.i);
    }
    return sum;
}

/* Puts "12.3 ms in 240 calls: aten::mm", and its share of that time of all. */
static void put_top(struct result *r, const char *metric,
                    const struct result *from, const char *time,
                    const char *of) {
    int64_t all = sum_column(from, time);
    size_t top[TOP_OPS], n_top = find_top(from, time, top);
    for (size_t k = 0; k < n_top; k++) {
        size_t i = top[k];
        struct cell name = subresult_cell(from, i, "name");
        struct cell us = subresult_cell(from, i, time);
        struct cell calls = subresult_cell(from, i, "calls");
        char total[48];
        human_time(us.i, total, sizeof total);
        long long n = !calls.null ? (long long)calls.i : 0;
        const char *text = !name.null ? name.s : "?";
        put_share(r, metric, (double)us.i / PS_PER_US, "us",
                  arena_fmt(&r->arena, "%s in %lld call%s: %.*s%s", total, n,
                            n == 1 ? "" : "s", CUT(NAME_MAX_SHOWN, text),
                            strlen(text) > NAME_MAX_SHOWN ? "..." : ""),
                  all > 0 ? 100.0 * (double)us.i / (double)all : 0, of);
    }
}

/* Says what the device is busy with; what the host is, where the device mostly
 * is not. */
static void put_tops(struct result *r, const struct result *ops,
                     const struct result *kernels, const struct result *steps) {
    bool device = sum_column(ops, "device_self_us") > 0;
    int64_t dur[SPREAD];
    struct cell busy = {.null = true};
    if (spread(r, steps, "dur_us", dur))
        busy = subresult_cell(steps,
                              median_row(steps, 0, steps->nrows, dur[MEDIAN]),
                              "device_busy_pct");
    if (!device || (!busy.null && busy.f < HALF))
        put_top(r, "top op, host", ops, "host_work_us", "host time");
    if (device && (busy.null || busy.f >= HALF))
        put_top(r, "top op, device", ops, "device_self_us", "device time");
    /* where ops have the device's time, its kernels say little more */
    if (!device) put_top(r, "top kernel", kernels, "total_us", "device time");
}

/* Does an earlier row say the same of a device of the same name? A file with
 * several runs has such rows. */
static bool was_told(const struct result *memory, size_t row) {
    enum { LOOK_BACK = 64 };
    struct cell device = subresult_cell(memory, row, "device");
    struct cell peak = subresult_cell(memory, row, "peak_bytes");
    for (size_t i = row > LOOK_BACK ? row - LOOK_BACK : 0; i < row; i++) {
        struct cell name = subresult_cell(memory, i, "device");
        struct cell bytes = subresult_cell(memory, i, "peak_bytes");
        if (!name.null && !device.null && strcmp(name.s, device.s) == 0 &&
            !bytes.null && bytes.i == peak.i)
            return true;
    }
    return false;
}

/* Does another row tell of another peak of a device of that name? Captures of
 * several steps have one each. */
static bool is_repeated(const struct result *memory, size_t row) {
    enum { LOOK_AROUND = 64 };
    struct cell device = subresult_cell(memory, row, "device");
    struct cell peak = subresult_cell(memory, row, "peak_bytes");
    size_t i = row > LOOK_AROUND ? row - LOOK_AROUND : 0;
    for (; i < memory->nrows && i < row + LOOK_AROUND && !device.null; i++) {
        struct cell name = subresult_cell(memory, i, "device");
        struct cell other = subresult_cell(memory, i, "peak_bytes");
        if (!name.null && strcmp(name.s, device.s) == 0 && !other.null &&
            other.i != peak.i)
            return true;
    }
    return false;
}

static void put_memory(struct result *r, const struct result *memory) {
    int64_t most = 0; /* what holds next to nothing beside it is noise */
    for (size_t i = 0; i < memory->nrows; i++) {
        struct cell peak = subresult_cell(memory, i, "peak_bytes");
        if (!peak.null && peak.i > most) most = peak.i;
    }
    for (size_t i = 0; i < memory->nrows; i++) {
        struct cell device = subresult_cell(memory, i, "device");
        struct cell peak = subresult_cell(memory, i, "peak_bytes");
        struct cell held = subresult_cell(memory, i, "reserved_bytes");
        if (peak.null || peak.i < most / 100 || was_told(memory, i)) continue;
        struct cell step = subresult_cell(memory, i, "peak_step");
        char a[48], b[48] = "", in[48] = "";
        human_bytes(peak.i, a, sizeof a);
        if (!held.null) human_bytes(held.i, b, sizeof b);
        if (!step.null && is_repeated(memory, i))
            snprintf(in, sizeof in, ", in step %lld", (long long)step.i);
        char *text = arena_fmt(&r->arena, "%s on %s%s%s%s", a,
                               !device.null ? device.s : "?", in,
                               !held.null ? ", reserved " : "", b);
        facts_put(r, "memory peak", true, (double)peak.i, "bytes", text);
    }
    if (memory->nrows == 0)
        facts_put(r, "memory peak", false, 0, "bytes", NULL);
}

/* Remarks on a step that is far from the median one. */
static void remark_outlier(struct result *r, const struct result *steps) {
    int64_t dur[SPREAD];
    if (!spread(r, steps, "dur_us", dur) || dur[MEDIAN] <= 0 ||
        dur[MOST] / OUTLIER < dur[MEDIAN])
        return;
    for (size_t i = 0; i < steps->nrows; i++) {
        struct cell d = subresult_cell(steps, i, "dur_us");
        struct cell n = subresult_cell(steps, i, "step");
        if (d.null || n.null || d.i != dur[MOST]) continue;
        char text[48];
        human_time(d.i, text, sizeof text);
        result_remark(r,
                      "Step %lld took %s, %.0f times the median: totals "
                      "include it; --steps A..B leaves it out.",
                      (long long)n.i, text, (double)d.i / (double)dur[MEDIAN]);
        return;
    }
}

/* Says how much of all steps waited for input: what was recorded as such, as in
 * `input`; in `steps` what another thread waits (model.fit) is host. A hint may
 * know of more, by what it takes for granted: that is said apart, as what it
 * is. */
static void put_input(struct result *r, const struct result *input,
                      const struct result *steps, const struct result *hints) {
    int64_t wait = 0, all = 0;
    for (size_t i = 0; i < steps->nrows; i++) {
        struct cell c = subresult_cell(steps, i, "input_us");
        struct cell d = subresult_cell(steps, i, "dur_us");
        if (c.null || d.null) continue;
        sat_inc(&wait, c.i);
        sat_inc(&all, d.i);
    }
    if (all <= 0) return;
    double pct = 100.0 * (double)wait / (double)all, guess = 0, others = 0;
    bool none = wait == 0; /* no stage but copies, which any program has */
    for (size_t i = 0; i < input->nrows; i++) {
        struct cell c = subresult_cell(input, i, "waited_pct");
        struct cell kind = subresult_cell(input, i, "kind");
        if (kind.null || strcmp(kind.s, "copy") != 0) none = false;
        if (!c.null) others += c.f; /* than the step's thread */
    }
    pct += others;
    for (size_t i = 0; i < hints->nrows; i++) {
        struct cell id = subresult_cell(hints, i, "id");
        struct cell share = subresult_cell(hints, i, "save_pct");
        if (!id.null && !share.null && strcmp(id.s, "input-bound") == 0)
            guess = share.f;
    }
    const char *text = "the step does not wait for its input";
    if (pct >= MUCH) text = "the step waits for its input";
    else if (pct >= FELT) text = "the step waits for its input a little";
    else if (none) text = "no input pipeline was recorded";
    if (others >= FELT)
        text = arena_fmt(&r->arena, "%s, in another thread", text);
    bool more = guess > pct + FELT; /* than what was recorded */
    if (more && !none && pct < FELT)
        text = "the step does not wait for what was recorded as its input";
    if (more)
        text = arena_fmt(&r->arena,
                         "%s; by a guess, what is not marked is input, and a "
                         "step without it takes %.1f %% less: see hints",
                         text, guess);
    if (none && others < FELT)
        facts_put(r, "is it the input?", false, 0, "%", text);
    else put_share(r, "is it the input?", pct, "%", text, pct, "all steps");
}

/* Puts "activation 1.2 GiB, parameter 300 MiB": who holds the first device's
 * peak. */
static void put_holders(struct result *r, const struct result *holders) {
    struct cell first = subresult_cell(holders, 0, "device");
    char *text = NULL;
    size_t n = 0;
    for (size_t i = 0; i < holders->nrows && n < TOP_HOLDERS; i++) {
        struct cell device = subresult_cell(holders, i, "device");
        struct cell what = subresult_cell(holders, i, "category");
        struct cell bytes = subresult_cell(holders, i, "bytes");
        if (device.null || first.null || what.null || bytes.null ||
            bytes.i <= 0 || strcmp(device.s, first.s) != 0)
            continue;
        if (text != NULL && strstr(text, what.s) != NULL) continue;
        char size[48];
        human_bytes(bytes.i, size, sizeof size);
        text = arena_fmt(&r->arena, "%s%s%s %s", text ? text : "",
                         text ? ", " : "", what.s, size);
        n++;
    }
    if (text != NULL) facts_words(r, "held by", "%s", text);
}

static void put_hints(struct result *r, const struct result *hints) {
    for (size_t i = 0; i < hints->nrows && i < TOP_HINTS; i++) {
        struct cell id = subresult_cell(hints, i, "id");
        struct cell title = subresult_cell(hints, i, "title");
        struct cell save = subresult_cell(hints, i, "save_us");
        struct cell share = subresult_cell(hints, i, "save_pct");
        const char *when = i == 0 ? "do first" : "then";
        if (id.null || title.null) continue;
        if (save.null || share.null) { /* nobody can tell what it gives */
            facts_words(r, when, "%s: %s", id.s, title.s);
            continue;
        }
        struct cell step = subresult_cell(hints, i, "step_us");
        char time[48], of[48] = "";
        human_time(save.i, time, sizeof time);
        if (!step.null) human_time(step.i, of, sizeof of);
        char *text = arena_fmt(&r->arena, "%s: %s; saves %s of %s", id.s,
                               title.s, time, of);
        put_share(r, when, (double)save.i / PS_PER_US, "us", text, share.f,
                  "bare step");
    }
    if (hints->nrows > 0 || hints->nremarks == 0) return;
    /* its last remark says why there is none */
    facts_words(r, "do first", "%s", hints->remarks[hints->nremarks - 1]);
}

/* Says what was not recorded, in a line; `coverage` says how to record it. */
static void put_missing(struct result *r) {
    char *text = NULL;
    for (size_t i = 0; i < r->nmissing; i++)
        text = arena_fmt(&r->arena, "%s%s%s", text ? text : "",
                         text ? "; " : "", r->missing[i].what);
    facts_words(r, "cannot tell", "%s%s",
                text ? text : "nothing of this: all of it was recorded",
                text ? " (`opscope coverage` says why, and what to do)" : "");
}

/* What the parts miss is missing here, too, but each thing only once. */
static void take_missing(struct result *r, const struct result *from) {
    for (size_t i = 0; i < from->nmissing; i++) {
        bool known = false;
        for (size_t k = 0; !known && k < r->nmissing; k++)
            known = strcmp(r->missing[k].what, from->missing[i].what) == 0;
        if (!known)
            result_lacks(r, from->missing[i].what, from->missing[i].why,
                         from->missing[i].fix);
    }
}

/* Returns, by source, the largest sample of a counter of that name, or -1. The
 * caller frees it; NULL if memory ran out. */
static double *peaks_of(const struct trace *t, const char *counter) {
    str_id name = strs_find(&t->strs, bytes_of(counter));
    double *most = malloc((t->nsources + 1) * sizeof *most);
    for (size_t i = 0; most != NULL && i < t->nsources; i++) most[i] = -1;
    for (size_t i = 0; most != NULL && name != STR_NONE && i < t->samples.n;
         i++) {
        const struct counter *c = &t->counters[t->samples.counter[i]];
        if (c->name == name && t->samples.value[i] > most[c->source])
            most[c->source] = t->samples.value[i];
    }
    return most;
}

/* Says what record saw of the program: how long, how much CPU, how much
 * memory. */
static void put_outside(struct result *r, const struct trace *t,
                        uint32_t source, double rss) {
    int64_t run = facts_told(t, source, FACT_RUN_NS);
    int64_t cpu = facts_told(t, source, FACT_CPU_US);
    int64_t cpus = facts_told(t, source, FACT_CPUS);
    const char *argv = trace_meta_get(t, source, FACT_ARGV);
    char time[48];
    if (run > 0 && run < INT64_MAX / PS_PER_NS) {
        human_time(run * PS_PER_NS, time, sizeof time);
        facts_put(r, "program", true, (double)run / 1e3, "us",
                  arena_fmt(&r->arena, "%s: %.*s%s", time,
                            CUT(NAME_MAX_SHOWN, argv ? argv : "?"),
                            argv && strlen(argv) > NAME_MAX_SHOWN ? "..."
                                                                  : ""));
    }
    if (run > 0 && cpu >= 0 && cpu < INT64_MAX / PS_PER_US) {
        human_time(cpu * PS_PER_US, time, sizeof time);
        double busy = (double)cpu * 1e3 / (double)run;
        bool can_be = cpus > 0 && busy <= (double)cpus;
        char *text = cpus > 0 && !can_be
                         ? arena_fmt(&r->arena,
                                     "%s, more than %lld CPU%s in that time",
                                     time, (long long)cpus,
                                     cpus == 1 ? " gives" : "s give")
                         : arena_fmt(&r->arena, "%s: %.2f of %lld CPU%s busy",
                                     time, busy, (long long)cpus,
                                     cpus == 1 ? "" : "s");
        if (can_be)
            put_share(r, "CPU time", (double)cpu, "us", text,
                      100 * busy / (double)cpus, "all CPUs");
        else facts_put(r, "CPU time", true, (double)cpu, "us", text);
    }
    if (rss >= 0 && rss < 9e18) {
        human_bytes((int64_t)rss, time, sizeof time);
        facts_put(r, "memory, resident", true, rss, "bytes",
                  arena_fmt(&r->arena, "%s at most, of all processes", time));
    }
}

/* Says what the recorder's own sampler saw, where nobody looked on from
 * outside. */
static void put_resident(struct result *r, const struct trace *t) {
    double most = 0;
    double *peak = peaks_of(t, "memory: peak RSS (bytes)");
    if (peak == NULL) r->oom = true;
    for (uint32_t i = 0; peak != NULL && i < t->nsources; i++) {
        if (t->sources[i].process_view) {
            free(peak);
            return;
        }
        double rss = t->sources[i].by_opscope ? peak[i] : -1;
        if (rss > 0 && rss < 1e15) most += rss;
    }
    free(peak);
    char text[48];
    if (most <= 0) return;
    human_bytes((int64_t)most, text, sizeof text);
    facts_put(r, "memory, resident", true, most, "bytes",
              arena_fmt(&r->arena, "%s at most", text));
}

/* Says what a thread was in the middle of when its program ended without
 * closing the recording: where to look after a crash. */
static void put_open_scopes(struct result *r, const struct trace *t) {
    enum { THREADS = 4, SCOPES = 6 };
    int threads = 0;
    if (t->notes[NOTE_UNFINISHED] == 0) return;
    for (size_t i = 0; i < t->ntracks && threads < THREADS; i++) {
        const struct track *tr = &t->tracks[i];
        char path[256];
        size_t n = 0;
        int scopes = 0;
        for (row_id k = tr->first; k < tr->end && scopes < SCOPES; k++) {
            if (!(t->spans.flags[k] & SPAN_OPEN)) continue;
            n += cut_fmt(path + n, sizeof path - n, "%s%.*s",
                         scopes++ > 0 ? " > " : "",
                         CUT(60, strs_text(&t->strs, t->spans.name[k])));
        }
        if (scopes == 0) continue;
        threads++;
        facts_words(r, "open at the end", "%s: %s",
                    strs_text(&t->strs, tr->name), path);
    }
}

/* Says which processes used the CPU, where nobody tells what for. */
static void put_processes(struct result *r, const struct result *from) {
    int64_t threads = sum_column(from, "threads");
    facts_words(r, "processes", "%zu seen, with %lld thread%s", from->nrows,
                (long long)threads, threads == 1 ? "" : "s");
    int64_t all = sum_column(from, FACT_CPU_US);
    size_t top[TOP_OPS], n_top = find_top(from, FACT_CPU_US, top);
    for (size_t k = 0; k < n_top; k++) {
        size_t i = top[k];
        struct cell name = subresult_cell(from, i, "name");
        struct cell pid = subresult_cell(from, i, "pid");
        struct cell cpu = subresult_cell(from, i, FACT_CPU_US);
        struct cell end = subresult_cell(from, i, "end");
        char time[48];
        human_time(cpu.i, time, sizeof time);
        put_share(r, "top process, CPU", (double)cpu.i / PS_PER_US, "us",
                  arena_fmt(&r->arena, "%s: %s/%lld%s%s", time,
                            !name.null ? name.s : "?",
                            !pid.null ? (long long)pid.i : 0,
                            !end.null ? ", " : "", !end.null ? end.s : ""),
                  all > 0 ? 100.0 * (double)cpu.i / (double)all : 0,
                  "CPU time");
    }
}

/* The order in which the parts are run: long ones first, and no two neighbours
 * that wait for the same memo of the trace. `steps` makes the phases while
 * `ops` makes the tree of the host. */
static const int order[PARTS] = {STEPS, OPS,    HINTS,   KERNELS,
                                 INPUT, MEMORY, HOLDERS, PROCESSES};

/* The parts that are still to be run; two threads take them one by one. */
struct parts {
    const struct trace *t;
    const struct opts *o;
    struct subresult *all;
    atomic_int next; /* in `order` */
};

/* One of the threads, and why it stopped early. */
struct runner {
    struct parts *parts;
    int rc;
    struct ops_err e;
};

static bool run_parts(void *ctx) {
    struct runner *w = ctx;
    struct parts *p = w->parts;
    int k;
    while (w->rc == 0 && (k = atomic_fetch_add(&p->next, 1)) < PARTS) {
        int i = order[k];
        w->rc = subresult_run(&p->all[i], sources[i].analysis, sources[i].opt,
                              sources[i].value, p->t, p->o, &w->e);
    }
    return w->rc == 0;
}

/* Runs all of them, in two threads for a large trace: it is const, and each
 * result is its own. */
static int run_all(const struct trace *t, const struct opts *o,
                   struct subresult p[PARTS], struct ops_err *e) {
    enum { MANY_ROWS = 100000 };
    struct parts parts = {.t = t, .o = o, .all = p};
    struct runner a = {.parts = &parts}, b = {.parts = &parts};
    if (par_both((struct work){run_parts, &a}, (struct work){run_parts, &b},
                 t->spans.n < MANY_ROWS ? 1 : t->threads))
        return 0;
    const struct runner *bad = a.rc != 0 ? &a : &b;
    return fail(e, bad->rc, "%s", bad->e.text);
}

/* Puts the devices that did something. */
static bool put_devices(struct result *r, const struct trace *t) {
    bool *used = facts_devices(t);
    for (size_t i = 0; used != NULL && i < t->ndevices; i++) {
        const char *model = strs_text(&t->strs, t->devices[i].model);
        if (used[i])
            facts_words(r, "device", "%s%s%s",
                        strs_text(&t->strs, t->devices[i].label),
                        *model ? ", " : "", model);
    }
    bool ok = used != NULL;
    free(used);
    return ok;
}

static int overview_fill(const struct trace *t, const struct opts *o,
                         struct result *r, struct subresult p[PARTS],
                         struct ops_err *e) {
    TRY(run_all(t, o, p, e));
    facts_columns(r);
    result_col(r, (struct column){"share_pct", "share", "%",
                                  "Phases and hints: share of a step; ops and "
                                  "kernels: share of the time "
                                  "of all of them.",
                                  COL_PERCENT, COL_BAR});
    result_col(r, (struct column){"share_of", "of", NULL,
                                  "What it is a share of: step (the median "
                                  "one), all steps, bare step (without the "
                                  "profiler's own cost), host or device time "
                                  "of all ops.",
                                  COL_TEXT, 0});
    for (size_t i = 0; i < t->nsources; i++)
        facts_words(r, "profile", "%s (%s)", t->sources[i].path,
                    t->sources[i].format->name);
    if (!put_devices(r, t)) return fail_oom(e);
    double *rss = peaks_of(t, "rss_bytes");
    if (rss == NULL) return fail_oom(e);
    bool only_outside = t->nsources > 0; /* did nobody record itself? */
    for (uint32_t i = 0; i < t->nsources; i++) {
        if (t->sources[i].process_view) put_outside(r, t, i, rss[i]);
        else only_outside = false;
    }
    free(rss);
    if (only_outside) {
        put_processes(r, &p[PROCESSES].r);
        result_missing(r, "steps, ops, memory by tag, hints",
                       "no process of the program recorded anything itself",
                       missing_inside_fix(t));
        put_missing(r);
        return result_done(r, e);
    }
    put_steps(r, &p[STEPS].r);
    put_phases(r, t, &p[STEPS].r);
    put_input(r, &p[INPUT].r, &p[STEPS].r, &p[HINTS].r);
    put_tops(r, &p[OPS].r, &p[KERNELS].r, &p[STEPS].r);
    put_resident(r, t);
    put_open_scopes(r, t);
    put_memory(r, &p[MEMORY].r);
    put_holders(r, &p[HOLDERS].r);
    put_hints(r, &p[HINTS].r);
    remark_outlier(r, &p[STEPS].r);
    for (int i = 0; i < PROCESSES; i++) take_missing(r, &p[i].r);
    put_missing(r);
    return result_done(r, e);
}

static int overview_run(const struct trace *t, const struct opts *o,
                        struct result *r, struct ops_err *e) {
    struct subresult p[PARTS] = {0};
    result_init(r, "overview", "Overview");
    result_from_trace(r, t);
    int rc = overview_fill(t, o, r, p, e);
    for (int i = 0; i < PARTS; i++) subresult_free(&p[i]);
    return rc;
}

const struct analysis analysis_overview = {
    .name = "overview",
    .help = "one screen: step time, where it goes, memory, what to do first",
    .row = "one fact about the run",
    .all_rows = true,
    .run = overview_run,
};
