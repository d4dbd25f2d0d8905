/* SPDX-License-Identifier: Apache-2.0
 * input-bound: the step begins with waiting for its batch. Repaired, the batch
 * is made beside the step before: what the step's thread does for it goes,
 * but for the copies, which have rules of their own. */
#include "analyze/hints/hint.h"

#include "analyze/shared/phases.h"
#include "base/sum.h"
#include "model/span_class.h"
#include "model/trace.h"
#include <stdio.h>

/* Returns the stage or region that a span of the input pipeline is part of. */
static row_id stage_of(const struct trace *t, row_id row) {
    enum { CLIMB = 64 }; /* levels */
    uint32_t r = row;
    for (int i = 0; r != ROW_NONE && i < CLIMB; i++, r = t->spans.parent[r])
        if (!span_is_step_mark(t, r) &&
            (span_is_input(t, r) || t->spans.kind[r] == SPAN_ANNOTATION))
            return r;
    return row;
}

static void repair_input(const struct hint_case *c, struct hint_step *s,
                         struct hint_found *f) {
    /* A process with no steps that does nothing but input is a loader's worker:
     * nobody waits for it here. */
    bool whole = c->t->sources[c->source].step_rule == STEPS_WHOLE;
    bool worker = whole;
    for (size_t i = 0; worker && i < s->nops; i++)
        worker = s->ops[i].row == ROW_NONE || s->ops[i].input;
    if (worker) return;
    /* without a device every op is the CPU's, and a window that is no step
     * begins with anything: then only a pipeline is known as input */
    bool device = s->d.nworks > 0 && !whole;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (p->optimizer) continue;
        /* Is it work of the CPU before the first kernel: an op that launches
         * nothing, or a pause that no Python between ops explains? */
        bool launches = p->row != ROW_NONE &&
                        (p->kernels || p->copies || p->waits);
        bool cpu_work = device && p->lead && !launches &&
                        hint_host(s, p->first, p->end) >=
                            HINT_PAUSE_US * PS_PER_US;
        if (!p->input && !cpu_work) continue;
        uint32_t most = hint_longest(s, p->first, p->end);
        row_id row = stage_of(c->t, s->d.line.v[most].row);
        int64_t cut = hint_remove(s, p->first, p->end, false);
        if (cut > 0) hint_saw_piece(f, s, most, row, cut);
        if (!p->input) sat_inc(&f->other, cut);
    }
}

/* Returns a thread that makes batches beside the training already, or NULL. */
static const struct track *loader_of(const struct hint_case *c) {
    const struct trace *t = c->t;
    uint32_t own = phases_step_thread(t, c->source);
    for (uint32_t i = 0; i < t->ntracks; i++)
        if (t->tracks[i].source == c->source && i != own &&
            t->tracks[i].kind == TRACK_THREAD && phases_input_thread(t, i))
            return &t->tracks[i];
    return NULL;
}

static void say_input(const struct hint_case *c, const struct hint_found *f,
                      struct hint_words *w) {
    char a[48], b[48], where[HINT_TEXT];
    const char *name = hint_name(c, f->row);
    snprintf(w->title, sizeof w->title, "the step waits %s for its input",
             hint_time(c, f->time, a));
    snprintf(w->evidence, sizeof w->evidence,
             "%s a step%s, most of it in %.120s%s%s%s",
             hint_time(c, f->time, a),
             c->steps[0].d.nworks > 0 ? " before its first kernel" : "",
             *name ? name : "code with no event", hint_where(c, f, where),
             f->other ? "; of it " : "",
             f->other ? hint_time(c, f->other, b) : "");
    if (f->other)
        strncat(w->evidence, " in code that recorded nothing as input",
                sizeof w->evidence - strlen(w->evidence) - 1);
    const struct track *loader = c->framework == FW_OTHER ? loader_of(c) : NULL;
    if (loader != NULL)
        snprintf(w->repair, sizeof w->repair,
                 "%.80s makes the batches, but not as fast as they are trained "
                 "on: several such threads, larger reads, less to do for a "
                 "batch (once for all epochs what is the same in each)",
                 strs_text(&c->t->strs, loader->name));
}

const struct hint_rule hint_input_bound = {
    .id = "input-bound",
    .in_place = true,
    .confidence = "simulated",
    .assumes = "enough workers to have the next batch ready in time",
    .see = "input",
    .advice[FW_TORCH] = "let workers make the batches beside the training: "
                        "DataLoader(dataset, num_workers=8, pin_memory=True, "
                        "persistent_workers=True, prefetch_factor=4)",
    .advice[FW_TF] =
        "dataset.map(fn, num_parallel_calls=tf.data.AUTOTUNE)"
        ".batch(n).prefetch(tf.data.AUTOTUNE); dataset.cache() after "
        "what is the same in every epoch",
    .advice[FW_JAX] =
        "make the batches in other threads or processes, two ahead: "
        "grain.python.DataLoader(worker_count=8), or "
        "flax.jax_utils.prefetch_to_device(iterator, 2)",
    .advice[FW_OTHER] =
        ("make the next batch in another thread while this one is "
         "trained on, and hand it over through a queue"),
    .repair = repair_input,
    .say = say_input,
};
