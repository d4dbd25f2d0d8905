/* SPDX-License-Identifier: Apache-2.0
 * host-sync: the program asks the device for a number and waits for it.
 * Repaired, the number stays on the device: the op that asks goes, with the ops
 * that only feed it (x.abs().max().item(): abs and max, too). An op only feeds
 * it if it stands right before it, reduces or compares, and no gradient flows
 * through it. Of a plain synchronising call only the waiting goes. */
#include "analyze/hints/hint.h"

#include "analyze/shared/kernel_args.h"
#include "base/array.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "model/trace.h"
#include "names/op_names.h"
#include <stdio.h>

/* Does a gradient flow through the op or one inside it? Then the source drew an
 * arrow from forward to backward. */
static bool has_gradient(const struct trace *t, row_id row) {
    size_t i;
    BOUND(i, 0, t->flows.n, t->flows.from[i] < row);
    if (i == t->flows.n) return false;
    row_id from = t->flows.from[i];
    return t->spans.track[from] == t->spans.track[row] &&
           t->spans.ts[from] < span_end(t, row);
}

/* Returns the bytes that the op brings back from the device; -1 if none. */
static int64_t bytes_back(const struct hint_step *s, const struct step_op *p) {
    int64_t sum = -1;
    for (uint32_t w = p->work; w < p->work_end; w++) {
        const struct copy_args *a = &s->copies[w];
        if (a->kind == COPY_KINDS) continue;
        if (a->kind != COPY_D2H) return -1;
        sum = sat_add(sum < 0 ? 0 : sum, a->bytes > 0 ? a->bytes : 0);
    }
    return sum;
}

/* Removes the ops that only feed the asking op at ops[k]. */
static void remove_feeders(const struct hint_case *c, struct hint_step *s,
                           size_t k) {
    uint32_t track = c->t->spans.track[s->ops[k].row];
    while (k-- > 0) {
        const struct step_op *p = &s->ops[k];
        if (p->row == ROW_NONE) {
            if (hint_host(s, p->first, p->end) < HINT_PAUSE_US * PS_PER_US) {
                hint_remove(s, p->first, p->end, false);
                continue;
            }
            return;
        }
        struct bytes name = strs_bytes(&c->t->strs, c->t->spans.name[p->row]);
        if (c->t->spans.track[p->row] != track || p->waits > 0 ||
            !op_feeds_a_look(name) || has_gradient(c->t, p->row))
            return;
        hint_remove(s, p->first, p->end, true);
    }
}

static void repair_sync(const struct hint_case *c, struct hint_step *s,
                        struct hint_found *f) {
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (p->waits == 0 || p->row == ROW_NONE) continue;
        int64_t back = bytes_back(s, p), waited = 0;
        if (back >= HINT_SMALL_COPY_BYTES || (back < 0 && p->copies > 0))
            continue; /* a copy: another rule's */
        bool asks = back >= 0 && p->kernels == 0;
        for (uint32_t k = p->first; k < p->end; k++) {
            const struct stop *stop = &s->d.stops[k];
            if (stop->wait == DEP_NONE) continue;
            waited += s->d.line.v[k].dur;
            if (asks || stop->first < stop->end) continue;
            /* only the waiting goes: the kernels around it are wanted */
            s->trial.go[k] = true;
            s->trial.host[k] = 0;
        }
        if (asks) {
            hint_remove(s, p->first, p->end, true);
            remove_feeders(c, s, i);
        }
        hint_saw(f, p->row, waited);
        if (back >= 0) f->other++;
    }
}

static void say_sync(const struct hint_case *c, const struct hint_found *f,
                     struct hint_words *w) {
    char a[48], n[48], where[HINT_TEXT];
    double per = (double)f->count / (double)c->nsteps;
    snprintf(w->title, sizeof w->title,
             "the program waits for the device %.*f time%s a step",
             per < 10 && per != (double)(int)per ? 1 : 0, per,
             per == 1 ? "" : "s");
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s a step in the waiting calls, the dearest in %.*s%s",
             hint_count(c, f->count, "wait", "waits", n),
             hint_time(c, f->time, a), CUT(120, hint_name(c, f->row)),
             hint_where(c, f, where));
}

const struct hint_rule hint_host_sync = {
    .id = "host-sync",
    .effort = EFFORT_PLACE,
    .clears = true,
    .confidence = "simulated",
    .assumes = "the values are not needed in the same step; ops that only "
               "feed them go, too",
    .see = "idle",
    .advice[FW_TORCH] =
        "keep it on the device: losses.append(loss.detach()) and "
        ".item() once every 100 steps; torch.where in place of "
        "`if tensor:`; no torch.cuda.synchronize() in the loop",
    .advice[FW_TF] = "do not call .numpy() or float(tensor) in the loop: keep "
                     "tensors, and read them once every 100 steps",
    .advice[FW_JAX] =
        "do not call float(x), x.item() or block_until_ready() in the "
        "loop: keep arrays, and read them once every 100 steps",
    .advice[FW_OTHER] = "wait for the device once every 100 steps, not in each",
    .repair = repair_sync,
    .say = say_sync,
};
