/* SPDX-License-Identifier: Apache-2.0
 * slow-op for an optimizer that goes one tensor at a time. Repaired, it updates
 * all of them in a few kernels. An update that is written by hand counts, too:
 * many ops in a row that work in place, without a gradient. */
#include "analyze/hints/hint.h"

#include "analyze/cost/op_cost.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "model/args.h"
#include "model/trace.h"
#include "names/kernel_names.h"
#include "names/op_names.h"
#include <stdio.h>

/* Could the op be a part of an update by hand: pointwise, with no gradient? */
static bool may_update(const struct hint_case *c, const struct hint_step *s,
                       const struct step_op *p) {
    if (p->input || p->waits > 0) return false;
    if (p->row == ROW_NONE)
        return hint_host(s, p->first, p->end) < HINT_PAUSE_US * PS_PER_US;
    if (c->t->spans.kind[p->row] != SPAN_OP) return false;
    struct bytes name = hint_bytes(c->t, p->row);
    if (op_is_view(name) || op_only_allocates(name)) return true;
    const struct cost_rule *rule = op_is_aten(name) ? op_cost_rule(name) : NULL;
    return rule != NULL && op_cost_is_pointwise(rule) &&
           args_int(c->t, p->row, "Sequence number", -1) < 0;
}

/* Is the op a part of a model's forward or backward? */
static bool has_gradient(const struct hint_case *c, const struct step_op *p) {
    if (p->row == ROW_NONE) return false;
    return args_int(c->t, p->row, "Sequence number", -1) >= 0 ||
           BYTES_STARTS(hint_bytes(c->t, p->row), "autograd::engine::") ||
           BYTES_STARTS(hint_bytes(c->t, p->row), "torch::autograd::");
}

/* A step that is handed a closure has the model's forward and backward in it:
 * the update is what comes behind them. */
static void leave_closure_out(const struct hint_case *c, struct hint_step *s) {
    for (size_t i = s->nops; i-- > 0;) {
        if (!s->ops[i].optimizer || !has_gradient(c, &s->ops[i])) continue;
        while (s->ops[i].optimizer) {
            s->ops[i].optimizer = false;
            if (i == 0) return;
            i--;
        }
        i++;
    }
}

void hint_optimizer_read(struct hint_case *c) {
    for (size_t n = 0; n < c->nsteps; n++) {
        struct hint_step *s = &c->steps[n];
        leave_closure_out(c, s);
        for (size_t i = 0, end; i < s->nops; i = end + 1) {
            int64_t updates = 0;
            for (end = i; end < s->nops && may_update(c, s, &s->ops[end]);
                 end++)
                updates += s->ops[end].row != ROW_NONE &&
                           op_is_in_place(hint_bytes(c->t, s->ops[end].row));
            for (size_t k = i; updates >= HINT_TENSOR_OPS && k < end; k++)
                s->ops[k].optimizer = true;
        }
    }
}

/* What the optimizer of a step is made of. */
struct update {
    int64_t kernels, joined; /* kernels, or ops without a device; of these over
                                many tensors */
    int64_t host, device;    /* ps */
    row_id dearest;          /* the op that takes the host longest */
};

static void count_works(const struct hint_case *c, const struct hint_step *s,
                        const struct step_op *p, struct update *u) {
    for (uint32_t w = p->work; w < p->work_end; w++) {
        row_id row = s->d.works[w].row;
        if (c->t->spans.kind[row] != SPAN_KERNEL) continue;
        u->kernels++;
        u->joined += kernel_is_joined(hint_bytes(c->t, row));
        if (s->trial.work[w] != WORK_GONE)
            sat_inc(&u->device, s->trial.work[w]);
    }
}

static struct update update_of(const struct hint_case *c,
                               const struct hint_step *s) {
    struct update u = {.dearest = ROW_NONE};
    int64_t most = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (!p->optimizer) continue;
        int64_t takes = hint_host(s, p->first, p->end);
        sat_inc(&u.host, takes);
        if (p->row != ROW_NONE && takes > most) {
            u.dearest = p->row;
            most = takes;
        }
        if (s->d.nworks > 0) {
            count_works(c, s, p, &u);
        } else if (p->row != ROW_NONE) {
            u.kernels++;
            u.joined += op_is_joined(hint_bytes(c->t, p->row));
        }
    }
    return u;
}

/* Lets one kernel do the work of all; the host launches it once. */
static void join_kernels(struct hint_step *s, const struct update *u) {
    bool first = true;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        for (uint32_t k = p->first; p->optimizer && k < p->end; k++) {
            s->trial.host[k] = 0;
            for (uint32_t w = s->d.stops[k].first; w < s->d.stops[k].end; w++) {
                s->trial.work[w] = first ? u->device / HINT_FUSED_SHARE
                                         : WORK_GONE;
                if (first) s->trial.host[k] = HINT_JOINED_US * PS_PER_US;
                first = false;
            }
        }
    }
}

/* Does the same without a device: small ops go, of large ones the passes over
 * memory that a joined one makes stay. */
static void join_host(struct hint_step *s) {
    uint32_t first = UINT32_MAX;
    for (size_t i = 0; i < s->nops; i++) {
        const struct step_op *p = &s->ops[i];
        if (!p->optimizer) continue;
        if (first == UINT32_MAX) first = p->first;
        bool large = p->row != ROW_NONE && hint_host(s, p->first, p->end) >=
                                               HINT_SMALL_OP_US * PS_PER_US;
        for (uint32_t k = p->first; k < p->end; k++)
            s->trial.host[k] = large ? s->trial.host[k] / HINT_FUSED_SHARE : 0;
    }
    sat_inc(&s->trial.host[first], HINT_JOINED_US * PS_PER_US);
}

static void repair_optimizer(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    struct update u = update_of(c, s);
    /* most of it is joined already: what is left are odd tensors */
    if (u.kernels - u.joined < HINT_TENSOR_OPS || u.joined * 2 > u.kernels)
        return;
    if (s->d.nworks > 0) join_kernels(s, &u);
    else join_host(s);
    f->other += u.kernels;
    hint_saw(f, u.dearest, u.host);
}

static void say_optimizer(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48];
    int64_t kernels = f->other / (int64_t)c->nsteps;
    bool device = c->nsteps > 0 && c->steps[0].d.nworks > 0;
    snprintf(w->evidence, sizeof w->evidence,
             "%lld %s and %s of host time a step inside the optimizer, "
             "most in %.*s; few or none work on many tensors at once",
             (long long)kernels, device ? "kernels" : "ops",
             hint_time(c, f->time, a), CUT(80, hint_name(c, f->row)));
}

const struct hint_rule hint_slow_optimizer = {
    .id = "slow-op",
    .title = "the optimizer updates one tensor at a time",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "joined, the update costs the host 0.2 ms and the device a "
               "quarter of its kernels now",
    .see = "ops",
    .advice[FW_TORCH] =
        "torch.optim.AdamW(params, lr, fused=True) (or foreach=True): "
        "all tensors in a few kernels; by hand: torch._foreach_add_(params, "
        "steps) and its like",
    .advice[FW_OTHER] = "update all tensors in one kernel: keep them in one "
                        "piece of memory, or hand it a list of them",
    .repair = repair_optimizer,
    .say = say_optimizer,
};
