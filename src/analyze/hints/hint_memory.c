/* SPDX-License-Identifier: Apache-2.0
 * Memory: memory-leak (something is kept in every step), memory-pressure (the
 * allocator gives memory back to the device and asks for it again in every
 * step), memory-fragmentation (it holds much that it cannot use). The first
 * two cost time, too: the calls that ask for memory. */
#include "analyze/hints/hint.h"

#include "analyze/analyze.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "model/span_class.h"
#include <stdio.h>

/* Is piece i of the line a call that asks the device for memory? */
static bool asks(const struct hint_case *c, const struct hint_step *s,
                 uint32_t i) {
    row_id row = s->d.line.v[i].row;
    return row != ROW_NONE && c->t->spans.kind[row] == SPAN_API &&
           (span_class(c->t, row) & CLASS_ALLOC);
}

/* Do most steps ask? A program that starts asks once, and frees, for seconds:
 * with one step, or a window that is none, nobody can tell the two apart. */
static bool asks_in_most(const struct hint_case *c) {
    const struct source *from = &c->t->sources[c->source];
    size_t n = 0;
    if (from->step_rule == STEPS_WHOLE || from->step_end - from->step_first < 2)
        return false;
    for (size_t k = 0; k < c->nsteps; k++) {
        const struct hint_step *s = &c->steps[k];
        uint32_t i = 0;
        while (i < s->d.line.n && !asks(c, s, i)) i++;
        n += i < s->d.line.n;
    }
    return n * 2 > c->nsteps;
}

/* Takes the calls that ask the device for memory out of the step. */
static void repair_pressure(const struct hint_case *c, struct hint_step *s,
                            struct hint_found *f) {
    if (!asks_in_most(c)) return;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        if (!asks(c, s, i)) continue;
        hint_saw(f, s->d.line.v[i].row, s->trial.host[i]);
        s->trial.host[i] = 0;
    }
}

static void say_pressure(const struct hint_case *c, const struct hint_found *f,
                         struct hint_words *w) {
    char a[48], n[48], where[HINT_TEXT];
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s a step, the longest %.*s%s",
             hint_count(c, f->count, "call", "calls", n),
             hint_time(c, f->time, a), CUT(60, hint_name(c, f->row)),
             hint_where(c, f, where));
}

const struct hint_rule hint_memory_pressure = {
    .id = "memory-pressure",
    .title = "the allocator asks the device for memory in every step",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "what the allocator holds is enough for every step",
    .see = "memory",
    .advice[FW_TORCH] =
        "no torch.cuda.empty_cache() in the loop; memory nearly full: a "
        "smaller batch, activation checkpointing, or "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    .advice[FW_TF] =
        "let the allocator keep what it has (no TF_FORCE_GPU_ALLOW_GROWTH); "
        "memory nearly full: a smaller batch, or tf.recompute_grad",
    .advice[FW_JAX] =
        "let the allocator keep what it has (no XLA_PYTHON_CLIENT_ALLOCATOR="
        "platform); memory nearly full: a smaller batch, or jax.checkpoint",
    .advice[FW_OTHER] =
        "allocate once, before the loop, or from a pool: "
        "cudaMallocAsync() with a pool that keeps what is freed "
        "(cudaMemPoolAttrReleaseThreshold)",
    .repair = repair_pressure,
    .say = say_pressure,
};

/* Returns what all sites together keep in a step. */
static int64_t leak_grows(const struct hint_case *c) {
    int64_t grows = 0;
    for (size_t i = 0; c->leaks != NULL && i < c->leaks->nrows; i++) {
        struct cell per = subresult_cell(c->leaks, i, "bytes_per_step");
        if (!per.null) sat_inc(&grows, per.i);
    }
    return grows;
}

/* Returns the source's smallest device, of those whose memory is known;
 * ROW_NONE if it is of none. */
static uint32_t smallest_device(const struct hint_case *c) {
    uint32_t best = ROW_NONE;
    for (uint32_t i = 0; i < c->t->ndevices; i++) {
        const struct device *d = &c->t->devices[i];
        if (d->source == c->source && d->memory_bytes > 0 &&
            (best == ROW_NONE ||
             d->memory_bytes < c->t->devices[best].memory_bytes))
            best = i;
    }
    return best;
}

static void repair_leak(const struct hint_case *c, struct hint_step *s,
                        struct hint_found *f) {
    uint32_t d = smallest_device(c);
    int64_t room = d != ROW_NONE ? c->t->devices[d].memory_bytes
                                 : (int64_t)HINT_MEMORY_GIB << 30;
    /* would it fill a device before a long training ends? */
    if (leak_grows(c) <= room / HINT_LEAK_STEPS) return;
    repair_pressure(c, s, f); /* what is kept has to be asked for anew */
    hint_saw(f, ROW_NONE, 0);
}

/* Returns after how many more steps the device is full; -1 if its size or the
 * peak is not known, or what leaks is not the device's. */
static int64_t leak_steps_left(const struct hint_case *c) {
    uint32_t d = smallest_device(c);
    int64_t grows = leak_grows(c);
    struct cell where = subresult_cell(c->leaks, 0, "device");
    if (d == ROW_NONE || grows <= 0 || where.null) return -1;
    const char *label = strs_text(&c->t->strs, c->t->devices[d].label);
    if (strcmp(where.s, label) != 0) return -1;
    for (size_t i = 0; c->memory != NULL && i < c->memory->nrows; i++) {
        struct cell name = subresult_cell(c->memory, i, "device");
        struct cell peak = subresult_cell(c->memory, i, "peak_bytes");
        if (name.null || peak.null || strcmp(name.s, label) != 0) continue;
        int64_t left = c->t->devices[d].memory_bytes - peak.i;
        return left > 0 ? left / grows : 0;
    }
    return -1;
}

static void say_leak(const struct hint_case *c, const struct hint_found *f,
                     struct hint_words *w) {
    char a[48], each[48] = "?", all[48] = "?", time[80] = "", end[80] = "";
    struct cell op = subresult_cell(c->leaks, 0, "op");
    struct cell per = subresult_cell(c->leaks, 0, "bytes_per_step");
    struct cell sum = subresult_cell(c->leaks, 0, "total_bytes");
    struct cell stack = subresult_cell(c->leaks, 0, "stack");
    struct cell device = subresult_cell(c->leaks, 0, "device");
    int64_t left = leak_steps_left(c);
    if (!per.null) human_bytes(per.i, each, sizeof each);
    if (!sum.null) human_bytes(sum.i, all, sizeof all);
    if (left >= 0)
        snprintf(end, sizeof end, ", full after %lld more", (long long)left);
    snprintf(w->title, sizeof w->title, "memory grows by %s a step%s", each,
             end);
    if (f->time > 0)
        snprintf(time, sizeof time, "; %s a step in calls for memory",
                 hint_time(c, f->time, a));
    snprintf(w->evidence, sizeof w->evidence,
             "%s%zu site%s; the largest keeps %s a step%s%s from %.*s, %s by "
             "the end%s%.*s%s",
             f->save > 0 ? "" : "saves no time, but ends the program; ",
             c->leaks->nrows, c->leaks->nrows == 1 ? "" : "s", each,
             !device.null ? " on " : "", !device.null ? device.s : "",
             CUT(80, !op.null ? op.s : "an unknown op"), all,
             !stack.null ? ", allocated at " : "",
             CUT(300, !stack.null ? stack.s : ""), time);
}

const struct hint_rule hint_memory_leak = {
    .id = "memory-leak",
    .effort = EFFORT_PLACE,
    .always = true,
    .confidence = "measured",
    .assumes = "only the calls for new memory are counted as time; running "
               "out of memory is what it costs",
    .see = "leaks",
    .advice[FW_TORCH] =
        ("do not keep tensors across steps: loss.detach() or "
         "loss.item() in place of loss, del what is done with, bound "
         "the list or cache that it goes into"),
    .advice[FW_TF] =
        ("do not keep tensors across steps: float(loss) in place of "
         "loss, del what is done with, bound the list or cache that it "
         "goes into"),
    .advice[FW_JAX] =
        ("do not keep arrays across steps: float(loss) in place of "
         "loss, del what is done with, bound the list or cache that it "
         "goes into"),
    .advice[FW_OTHER] =
        ("free in a step what the step allocates, or bound the list "
         "or cache that it goes into"),
    .repair = repair_leak,
    .say = say_leak,
};

int hint_memory_read(struct hint_case *c, struct ops_err *e) {
    const struct trace *t = c->t;
    struct map devices = {0}; /* by label: the smallest device of that name
                                 whose memory is known */
    bool ok = true;
    c->fragmented = SIZE_MAX;
    for (size_t d = 0; ok && d < t->ndevices; d++) {
        if (t->devices[d].memory_bytes <= 0) continue;
        uint32_t *at = map_at(&devices, t->devices[d].label);
        ok = at != NULL;
        if (ok && (*at == MAP_NONE ||
                   t->devices[d].memory_bytes < t->devices[*at].memory_bytes))
            *at = (uint32_t)d;
    }
    for (size_t i = 0; ok && i < c->memory->nrows; i++) {
        struct cell pct = subresult_cell(c->memory, i, "fragmentation_pct");
        struct cell held = subresult_cell(c->memory, i, "reserved_bytes");
        struct cell name = subresult_cell(c->memory, i, "device");
        if (pct.null || held.null || name.null || pct.f < HINT_FRAGMENT_PERCENT)
            continue;
        str_id label = strs_find(&t->strs, bytes_of(name.s));
        uint32_t d = label == STR_NONE ? MAP_NONE : map_get(&devices, label);
        if (d == MAP_NONE || held.i <= t->devices[d].memory_bytes / 2) continue;
        c->fragmented = i;
        break;
    }
    map_free(&devices);
    return ok ? 0 : fail_oom(e);
}

static void repair_fragments(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    (void)s;
    if (c->fragmented != SIZE_MAX) hint_saw(f, ROW_NONE, 0);
}

static void say_fragments(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char held[48] = "?", used[48] = "?";
    size_t row = c->fragmented;
    struct cell h = subresult_cell(c->memory, row, "reserved_bytes");
    struct cell u = subresult_cell(c->memory, row, "peak_bytes");
    struct cell pct = subresult_cell(c->memory, row, "fragmentation_pct");
    if (!h.null) human_bytes(h.i, held, sizeof held);
    if (!u.null) human_bytes(u.i, used, sizeof used);
    (void)f;
    snprintf(w->evidence, sizeof w->evidence,
             "%s held, %s in use at the peak: %.0f %% is in pieces", held, used,
             !pct.null ? pct.f : 0);
}

const struct hint_rule hint_memory_fragmentation = {
    .id = "memory-fragmentation",
    .title = "the allocator holds much memory that it cannot use",
    .effort = EFFORT_PLACE,
    .always = true,
    .confidence = "measured",
    .assumes = "it costs room for a larger batch, not time",
    .see = "memory",
    .advice[FW_TORCH] =
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; batches of "
        "one shape (pad), or largest first",
    .advice[FW_TF] = "TF_GPU_ALLOCATOR=cuda_malloc_async; batches of one shape "
                     "(pad), or largest first",
    .advice[FW_OTHER] = "batches of one shape (pad), or largest first",
    .repair = repair_fragments,
    .say = say_fragments,
};
