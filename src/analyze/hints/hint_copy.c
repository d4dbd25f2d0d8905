/* SPDX-License-Identifier: Apache-2.0
 * copy-pageable, copy-blocking: copies that the program waits for. Memory that
 * is not pinned is copied twice, by the host, piece by piece, and the call
 * returns when it is done. Repaired, the copy comes out of pinned memory at the
 * link's speed and nobody waits: a batch that is copied before the step's
 * first kernel is copied beside the step before; any other copy keeps its
 * place in the stream. Where only the device waits for a copy, in its own
 * stream or in another, it runs beside the step before, too.
 *
 * cpu-fallback: data is copied out of the device, worked on by the CPU and
 * copied back. Repaired, the op runs on the device: both copies, the waiting
 * and the CPU's time go. */
#include "analyze/hints/hint.h"

#include "analyze/cost/device_peak.h"
#include "analyze/shared/kernel_args.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/text/number.h"
#include "model/trace.h"
#include <stdio.h>

/* Shortens a call that takes longer than one that only asks for a copy. */
static void shorten_call(struct hint_step *s, uint32_t piece) {
    if (s->trial.host[piece] > HINT_CALL_US * PS_PER_US)
        s->trial.host[piece] = HINT_CALL_US * PS_PER_US;
}

/* Repairs work w of p if it is such a copy; waits: the program waits for it.
 * Returns false if it is none, or nothing is wrong with it. */
static bool repair_copy(const struct hint_case *c, struct hint_step *s,
                        const struct step_op *p, uint32_t w, bool pageable,
                        bool waits, struct hint_found *f) {
    const struct copy_args *a = &s->copies[w];
    const struct work *k = &s->d.works[w];
    if (s->trial.work[w] == WORK_GONE || (!waits && !pageable)) return false;
    bool link = a->kind == COPY_H2D || a->kind == COPY_D2H;
    if (!link || a->bytes < HINT_SMALL_COPY_BYTES ||
        (a->pageable == 1) != pageable)
        return false;
    /* the call itself is long when the host copies */
    int64_t call = k->call == ROW_NONE ? 0 : c->t->spans.dur[k->call];
    int64_t step = s->d.line.end - s->d.line.ts; /* a call may outlast it */
    if (call > step) call = step;
    shorten_call(s, k->piece);
    if (pageable && c->peak != NULL && c->peak->link_bytes_per_s > 0) {
        /* the copy comes out of pinned memory and never takes longer than
         * now */
        double speed = c->peak->link_bytes_per_s * HINT_PINNED_PERCENT / 100;
        double ps = (double)a->bytes / speed * (double)PS_PER_S;
        if (ps < (double)s->trial.work[w]) s->trial.work[w] = (int64_t)ps;
    }
    if (p->lead && a->kind == COPY_H2D) s->trial.ahead[w] = true;
    sat_inc(&f->bytes, a->bytes);
    sat_inc(&f->other, k->dur);
    hint_saw(f, k->row, call > k->dur ? call : k->dur);
    return true;
}

static void repair_copies(const struct hint_case *c, struct hint_step *s,
                          bool pageable, struct hint_found *f) {
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (p->copies == 0) continue;
        /* The program waits in the copying call or in one after it. This is the
         * index behind the op's last piece that still waits, or first. */
        uint32_t waiting = p->end;
        while (waiting > p->first &&
               (s->d.stops[waiting - 1].wait == DEP_NONE ||
                s->trial.go[waiting - 1]))
            waiting--;
        for (uint32_t w = p->work; w < p->work_end; w++) {
            uint32_t piece = s->d.works[w].piece;
            bool waits = piece < waiting;
            if (!repair_copy(c, s, p, w, pageable, waits, f) || !waits)
                continue;
            for (uint32_t k = piece; k < p->end; k++) {
                if (s->d.stops[k].wait == DEP_NONE) continue;
                s->trial.go[k] = true;
                shorten_call(s, k);
            }
            waiting = 0; /* no call of the op waits any more */
        }
    }
}

static void repair_pageable(const struct hint_case *c, struct hint_step *s,
                            struct hint_found *f) {
    repair_copies(c, s, true, f);
}

static void repair_blocking(const struct hint_case *c, struct hint_step *s,
                            struct hint_found *f) {
    repair_copies(c, s, false, f);
}

static const char *const repairs[FRAMEWORKS] = {
    [FW_TORCH] = "DataLoader(..., pin_memory=True) or tensor.pin_memory() "
                 "once, then batch.to(device, non_blocking=True)",
    [FW_TF] = "dataset.prefetch(2) after "
              "dataset.apply(tf.data.experimental.copy_to_device('/gpu:0'))",
    [FW_JAX] = "jax.device_put of the next batch before this step's result "
               "is asked for",
    [FW_OTHER] = "allocate the host buffer with cudaHostAlloc, copy with "
                 "cudaMemcpyAsync on a second stream, one batch ahead",
};

/* The repairs for results that are copied back. */
static const char *const back_repairs[FRAMEWORKS] = {
    [FW_TORCH] = "keep results on the device (no .cpu() in the step), or "
                 "buffer.copy_(out, non_blocking=True) into a buffer of "
                 "torch.empty(..., pin_memory=True), read a step later",
    [FW_TF] = "do not call .numpy() on large tensors in the loop",
    [FW_JAX] = "no np.asarray(x) in the loop: x.copy_to_host_async(), read a "
               "step later",
    [FW_OTHER] = "copy back with cudaMemcpyAsync into pinned memory, and read "
                 "it a step later",
};

static void say_copies(const struct hint_case *c, const struct hint_found *f,
                       const char *what, struct hint_words *w) {
    char a[48], b[48], n[48], size[48];
    double gbps = f->other > 0 ? (double)f->bytes / (double)f->other * 1000 : 0;
    human_bytes(f->bytes / (int64_t)c->nsteps, size, sizeof size);
    snprintf(w->title, sizeof w->title, "%s a step are copied %s", size, what);
    snprintf(w->evidence, sizeof w->evidence,
             "%s (%.*s), %s a step in the copying calls, %s on the device at "
             "%.1f GB/s",
             hint_count(c, f->count, "copy", "copies", n),
             CUT(60, hint_name(c, f->row)), hint_time(c, f->time, a),
             hint_time(c, f->other, b), gbps);
    bool back = f->row != ROW_NONE &&
                copy_args_of(c->t, f->row).kind == COPY_D2H;
    snprintf(w->repair, sizeof w->repair, "%s",
             (back ? back_repairs : repairs)[c->framework]);
}

static void say_pageable(const struct hint_case *c, const struct hint_found *f,
                         struct hint_words *w) {
    say_copies(c, f, "from or to memory that is not pinned", w);
}

static void say_blocking(const struct hint_case *c, const struct hint_found *f,
                         struct hint_words *w) {
    say_copies(c, f, "while the program waits", w);
}

const struct hint_rule hint_copy_pageable = {
    .id = "copy-pageable",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "pinned memory at 85 % of the link; a batch is copied beside "
               "the step before",
    .see = "copies",
    .repair = repair_pageable,
    .say = say_pageable,
};

const struct hint_rule hint_copy_blocking = {
    .id = "copy-blocking",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "what is copied back is read a step later; a batch is copied "
               "beside the step before",
    .see = "copies",
    .repair = repair_blocking,
    .say = say_blocking,
};

/* Lets large copies between host and device run beside the step: nobody waits
 * for them on the host, but the device has nothing else to do. */
static void repair_exposed(const struct hint_case *c, struct hint_step *s,
                           struct hint_found *f) {
    if (c->host_exchange) return;
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        const struct copy_args *a = &s->copies[w];
        const struct step_op *p = hint_op_at(s, s->d.works[w].piece);
        bool link = a->kind == COPY_H2D || a->kind == COPY_D2H;
        if (!link || a->bytes < HINT_SMALL_COPY_BYTES || a->pageable == 1 ||
            s->trial.ahead[w] || s->trial.work[w] == WORK_GONE || p == NULL ||
            p->waits > 0)
            continue;
        row_id row = s->d.works[w].row;
        s->trial.ahead[w] = true;
        sat_inc(&f->bytes, a->bytes);
        sat_inc(&f->other, c->t->spans.dur[row]);
        hint_saw(f, row, c->t->spans.dur[row]);
    }
}

static void say_exposed(const struct hint_case *c, const struct hint_found *f,
                        struct hint_words *w) {
    char a[48], n[48], size[48];
    double gbps = f->other > 0 ? (double)f->bytes / (double)f->other * 1000 : 0;
    human_bytes(f->bytes / (int64_t)c->nsteps, size, sizeof size);
    snprintf(w->title, sizeof w->title,
             "%s a step are copied while nothing else runs on the device",
             size);
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s a step at %.1f GB/s, the longest %.*s",
             hint_count(c, f->count, "copy", "copies", n),
             hint_time(c, f->other, a), gbps, CUT(60, hint_name(c, f->row)));
}

const struct hint_rule hint_copy_exposed = {
    .id = "copy-blocking",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "the copies run on a stream of their own, beside the step "
               "before; the link is free meanwhile",
    .see = "copies",
    .advice[FW_TORCH] =
        "copy the next batch on a stream of its own: with torch.cuda.stream("
        "side): nxt = batch.to(device, non_blocking=True) from pinned memory; "
        "torch.cuda.current_stream().wait_stream(side) before it is used",
    .advice[FW_TF] =
        "dataset.apply(tf.data.experimental.prefetch_to_device('/gpu:0'))",
    .advice[FW_JAX] = "jax.device_put of the next batch before this step's "
                      "result is asked for",
    .advice[FW_OTHER] = "copy on a second stream, one batch ahead",
    .repair = repair_exposed,
    .say = say_exposed,
};

/* Does the op copy in that direction? */
static bool copies(const struct hint_step *s, const struct step_op *p,
                   enum copy_kind kind) {
    if (p->copies == 0) return false;
    for (uint32_t w = p->work; w < p->work_end; w++)
        if (s->copies[w].kind == kind) return true;
    return false;
}

static void repair_fallback(const struct hint_case *c, struct hint_step *s,
                            struct hint_found *f) {
    /* an exchange by the host takes data out and back, too */
    if (c->host_exchange) return;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *out = &s->ops[i];
        if (out->lead || out->row == ROW_NONE ||
            c->t->spans.kind[out->row] != SPAN_OP || !copies(s, out, COPY_D2H))
            continue;
        /* The way of the data ends with the op that copies back, with one that
         * launches kernels, or with the step. */
        bool back = false;
        int64_t cpu = 0, most = -1; /* ps of the host before that */
        row_id row = out->row;      /* the op that takes most of it */
        size_t end = i + 1;
        for (; end < s->nops; end++) {
            const struct step_op *p = &s->ops[end];
            if (p->kernels > 0 || p->input) break;
            back = copies(s, p, COPY_H2D);
            if (back) break;
            int64_t host = hint_host(s, p->first, p->end);
            sat_inc(&cpu, host);
            if (p->row == ROW_NONE || host <= most) continue;
            most = host;
            row = p->row;
        }
        if (back && cpu >= HINT_PAUSE_US * PS_PER_US) {
            hint_remove(s, out->first, s->ops[end].end, true);
            hint_saw(f, row, cpu);
            i = end;
        } else {
            i = end - 1; /* a later copy out would end there, too */
        }
    }
}

static void say_fallback(const struct hint_case *c, const struct hint_found *f,
                         struct hint_words *w) {
    char a[48], n[48], where[HINT_TEXT];
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s of CPU time a step between the copy out and the copy "
             "back, most in %.*s%s",
             hint_count(c, f->count, "time", "times", n),
             hint_time(c, f->time, a), CUT(100, hint_name(c, f->row)),
             hint_where(c, f, where));
}

const struct hint_rule hint_cpu_fallback = {
    .id = "cpu-fallback",
    .title = "data leaves the device, is worked on by the CPU and comes back",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "on the device the work takes no time worth counting",
    .see = "ops",
    .advice[FW_OTHER] =
        "keep the tensor on the device and use the device's op for it "
        "(no .cpu() or .numpy() inside the step)",
    .repair = repair_fallback,
    .say = say_fallback,
};
