/* SPDX-License-Identifier: Apache-2.0
 * python-overhead: long stretches of Python in which nothing was recorded, and
 * that are a habit of the program (hint_pause.c). */
#include "analyze/hints/hint.h"

#include "analyze/shared/phases.h"
#include "analyze/shared/pystack.h"
#include "base/text/cut.h"
#include "model/span_class.h"
#include "model/trace.h"
#include "names/frame_name.h"
#include <stdio.h>

enum { CLIMB = 64 }; /* frames that are looked at */

/* Does the program wait at that piece for what runs elsewhere, as its Python
 * frames tell? */
static bool is_waiting(const struct hint_case *c, const struct piece *p) {
    uint32_t thread = phases_step_thread(c->t, c->source);
    if (thread == ROW_NONE || p->dur < HINT_PAUSE_US * PS_PER_US / 8)
        return false;
    row_id r = pystack_at(c->frames, thread, p->ts + p->dur / 2);
    for (int i = 0; r != ROW_NONE && i < CLIMB; i++, r = c->t->spans.parent[r])
        if (frame_name_waits(strs_bytes(&c->t->strs, c->t->spans.name[r])))
            return true;
    return false;
}

/* Is that piece not code of the program's own: an exchange or a compiler's
 * work, a wait, or only the way to an op, which has a rule of its own? */
static bool is_others(const struct hint_case *c, const struct hint_step *s,
                      uint32_t k) {
    return hint_is_no_python(c, s, k) ||
           (s->jitted != NULL && s->jitted[k] == 0) ||
           is_waiting(c, &s->d.line.v[k]);
}

/* Is that row an op, or is one around it? XLA runs its ops inside of executors,
 * which are no ops. */
static bool is_in_op(const struct trace *t, row_id r) {
    for (int i = 0; r != ROW_NONE && i < HINT_CLIMB;
         i++, r = t->spans.parent[r])
        if (t->spans.kind[r] == SPAN_OP) return true;
    return false;
}

/* Does a pause of that step tell something? Where no op was recorded at all it
 * does not. What JAX compiled may run on a device alone: there its calls stand
 * for the ops, if frames of Python tell which of them is waited for. */
static bool has_ops(const struct hint_case *c, const struct hint_step *s) {
    const struct trace *t = c->t;
    uint32_t thread = phases_step_thread(t, c->source);
    bool calls = c->framework == FW_JAX && thread != ROW_NONE &&
                 c->frames->python[thread] != ROW_NONE;
    for (uint32_t i = 0; i < s->d.line.n; i++) {
        row_id row = s->d.line.v[i].row;
        if (row != ROW_NONE && calls && t->spans.kind[row] == SPAN_RUNTIME)
            return true;
        if (is_in_op(t, row)) return true;
    }
    return false;
}

static void repair_python(const struct hint_case *c, struct hint_step *s,
                          struct hint_found *f) {
    bool device = s->d.nworks > 0;
    /* a C program's code outside its scopes is just not recorded */
    if (!has_ops(c, s) || c->t->sources[c->source].by_opscope) return;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (p->row != ROW_NONE || p->once || p->input || (p->lead && device))
            continue;
        int64_t host = hint_host(s, p->first, p->end);
        for (uint32_t k = p->first; k < p->end; k++)
            if (is_others(c, s, k)) host -= hint_host(s, k, k + 1);
        if (host < HINT_PAUSE_US * PS_PER_US) continue;
        uint32_t most = hint_longest(s, p->first, p->end);
        for (uint32_t k = p->first; k < p->end; k++)
            if (!is_others(c, s, k)) hint_remove(s, k, k + 1, false);
        hint_saw_piece(f, s, most, s->d.line.v[most].row, host);
    }
}

static void say_python(const struct hint_case *c, const struct hint_found *f,
                       struct hint_words *w) {
    char a[48], n[48], where[HINT_TEXT];
    const char *name = hint_name(c, f->row);
    /* not every program that records itself is written in Python */
    bool python = c->framework != FW_OTHER;
    bool waits = hint_is_within(c, f, frame_name_takes);
    snprintf(w->title, sizeof w->title, "%s a step go by %sbetween the ops",
             hint_time(c, f->time, a),
             waits    ? "waiting for a queue "
             : python ? "in Python "
                      : "");
    snprintf(w->evidence, sizeof w->evidence,
             "%s of more than %d µs each in which no op and no call was "
             "recorded%s%.*s%s",
             hint_count(c, f->count, "pause", "pauses", n), (int)HINT_PAUSE_US,
             *name ? ", the longest in " : "", CUT(80, name),
             hint_where(c, f, where));
    const char *see = *where ? "`opscope python` lists the functions"
                      : c->framework == FW_TORCH
                          ? "record with Python stacks (with_stack=True) "
                            "to see which it is"
                      : c->framework == FW_TF
                          ? "opscope record --stacks shows which it is"
                      : python ? "record Python's frames "
                                 "(python_tracer_level=1) to see which it is"
                               : "record scopes around its parts to see which "
                                 "it is";
    if (waits)
        snprintf(w->repair, sizeof w->repair,
                 "what fills the queue does not keep up: several threads or "
                 "processes that fill it, or less to do for an item (once for "
                 "all epochs what is the same in each); %s",
                 see);
    else
        snprintf(w->repair, sizeof w->repair,
                 "move that code out of the loop or into another thread; %s",
                 see);
}

const struct hint_rule hint_python_overhead = {
    .id = "python-overhead",
    .confidence = "assumed",
    .assumes = "the code in the pauses can be moved out of the step",
    .see = "python",
    .repair = repair_python,
    .say = say_python,
};
