/* SPDX-License-Identifier: Apache-2.0
 * memory-pressure: the allocator gives memory back to the device and asks for
 * it again in every step. Repaired, it keeps what it has: the calls go. */
#include "analyze/hint.h"

#include "model/opclass.h"
#include "model/trace.h"
#include <stdio.h>

static void repair(const struct hint_case *c, struct hint_step *s,
                   struct hint_found *f) {
    const struct trace *t = c->t;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        uint32_t row = s->d.line.v[i].row;
        if (row == ROW_NONE || t->spans.kind[row] != SPAN_API ||
            !(t->name_class[t->spans.name[row]] & NAME_ALLOC))
            continue;
        hint_saw(f, row, s->trial.host[i]);
        s->trial.host[i] = 0;
    }
}

static void say(const struct hint_case *c, const struct hint_found *f,
                struct hint_words *w) {
    char a[48], where[HINT_TEXT];
    snprintf(w->title, sizeof w->title,
             "the allocator asks the device for memory in every step");
    snprintf(w->evidence, sizeof w->evidence,
             "%lld calls in %zu steps, %s a step, the longest %.60s%s",
             (long long)f->count, c->nsteps, hint_time(c, f->time, a),
             hint_name(c, f->row), hint_where(c, f->row, where));
    snprintf(w->repair, sizeof w->repair,
             "no torch.cuda.empty_cache() in the loop; memory nearly full: a "
             "smaller batch, activation checkpointing, or "
             "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

const struct hint_rule hint_memory_pressure = {
    .id = "memory-pressure",
    .in_place = true,
    .confidence = "simulated",
    .assumes = "what the allocator holds is enough for every step",
    .see = "memory",
    .repair = repair,
    .say = say,
};
