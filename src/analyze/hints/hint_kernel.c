/* SPDX-License-Identifier: Apache-2.0
 * Kernels that could be faster: low-precision-off (matrix products in full
 * fp32, neither TF32 nor 16 bit) and unfused-pointwise (one pass over memory
 * after another). */
#include "analyze/hints/hint.h"

#include "analyze/cost/device_peak.h"
#include "base/array.h"
#include "base/sum.h"
#include "names/kernel_names.h"
#include <stdio.h>

static void repair_precision(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    if (c->peak == NULL) return;
    double slow = device_peak_flops(c->peak, DTYPE_FP32, false);
    double fast = device_peak_flops(c->peak, DTYPE_TF32, true);
    if (slow <= 0 || fast <= 0) return;
    /* how many times faster a full fp32 matrix kernel becomes */
    double gain = fast * HINT_MATRIX_PERCENT / 100 / slow;
    if (gain <= 1) return;
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        row_id row = s->d.works[w].row;
        if (c->t->spans.kind[row] != SPAN_KERNEL ||
            s->trial.work[w] == WORK_GONE)
            continue;
        /* is it a product of matrices in fp32, on units that are not made for
         * it? */
        struct kernel_kind k = kernel_kind_of(
            strs_bytes(&c->t->strs, c->t->spans.name[row]));
        if (!k.matrix || k.tensor || k.dtype != DTYPE_FP32) continue;
        int64_t now = s->trial.work[w];
        int64_t then = (int64_t)((double)now / gain);
        if (then < HINT_KERNEL_FLOOR_NS * PS_PER_NS)
            then = HINT_KERNEL_FLOOR_NS * PS_PER_NS;
        if (then >= now) continue;
        s->trial.work[w] = then;
        hint_saw(f, row, now);
    }
}

static void say_precision(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48], n[48];
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s a step, the longest %.160s",
             hint_count(c, f->count, "kernel", "kernels", n),
             hint_time(c, f->time, a), hint_name(c, f->row));
}

const struct hint_rule hint_low_precision_off = {
    .id = "low-precision-off",
    .title = "matrix products run in full fp32, not on the matrix units",
    .in_place = true,
    .confidence = "simulated",
    .assumes = "TF32 at 70 % of the device's peak for it",
    .see = "roofline",
    .advice[FW_TORCH] =
        "torch.set_float32_matmul_precision('high') and "
        "torch.backends.cudnn.allow_tf32 = True; or bf16: with "
        "torch.autocast('cuda', dtype=torch.bfloat16): loss = ...",
    .advice[FW_TF] =
        "tf.config.experimental.enable_tensor_float_32_execution(True), "
        "or tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')",
    .advice[FW_JAX] = "jax.config.update('jax_default_matmul_precision', "
                      "'tensorfloat32'), or compute in jnp.bfloat16",
    .advice[FW_OTHER] =
        "cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH), or "
        "16-bit types",
    .repair = repair_precision,
    .say = say_precision,
};

static enum kernel_fusable fusable(const struct hint_case *c, row_id row) {
    if (c->t->spans.kind[row] != SPAN_KERNEL) return FUSE_NOT;
    return kernel_fusable(strs_bytes(&c->t->strs, c->t->spans.name[row]));
}

/* Joins works [first, end) into one that takes as long as the longest. */
static void join_chain(const struct hint_case *c, struct hint_step *s,
                       uint32_t first, uint32_t end, struct hint_found *f) {
    int64_t sum = 0, most = 0, n = 0;
    for (uint32_t w = first; w < end; w++) {
        int64_t d = s->trial.work[w];
        if (d == WORK_GONE) continue;
        sat_inc(&sum, d);
        n += fusable(c, s->d.works[w].row) == FUSE_POINTWISE;
        if (d > most) most = d;
    }
    if (n < HINT_CHAIN) return;
    for (uint32_t w = first; w < end; w++) s->trial.work[w] = WORK_GONE;
    for (uint32_t w = first + 1; w < end; w++) {
        /* an op that launched only this work is not called any more */
        uint32_t piece = s->d.works[w].piece;
        size_t next;
        BOUND(next, 1, s->nops, s->ops[next].first <= piece);
        const struct step_op *p = &s->ops[next - 1];
        if (p->row == ROW_NONE || p->kernels > 1 || p->waits || p->copies)
            continue;
        hint_remove(s, p->first, p->end, false);
        s->trial.host[piece] = 0;
    }
    s->trial.work[first] = most;
    f->other += end - first;
    hint_saw(f, s->d.works[first].row, sum - most);
}

static void repair_pointwise(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    uint32_t first = 0;
    for (uint32_t w = 0; w <= s->d.nworks; w++) {
        bool in = w < s->d.nworks && fusable(c, s->d.works[w].row) &&
                  s->d.works[w].lane == s->d.works[first].lane;
        if (in && w > first) continue;
        if (w > first) join_chain(c, s, first, w, f);
        first = w;
        if (!in && w < s->d.nworks && !fusable(c, s->d.works[w].row))
            first = w + 1;
    }
}

static void say_pointwise(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48];
    snprintf(w->evidence, sizeof w->evidence,
             "%lld kernels a step stand in chains with %d or more pointwise "
             "ones; joined they would take %s a step less on the device",
             (long long)(f->other / (int64_t)c->nsteps), (int)HINT_CHAIN,
             hint_time(c, f->time, a));
}

const struct hint_rule hint_unfused_pointwise = {
    .id = "unfused-pointwise",
    .title = "chains of pointwise kernels pass over memory again and again",
    .confidence = "simulated",
    .assumes = "a joined chain takes as long as its longest kernel",
    .see = "kernels",
    .advice[FW_TORCH] =
        "model = torch.compile(model): the chain becomes one kernel",
    .advice[FW_TF] = "@tf.function(jit_compile=True) around the chain",
    .advice[FW_JAX] = "put the chain under one jax.jit",
    .advice[FW_OTHER] = "write the chain as one kernel",
    .repair = repair_pointwise,
    .say = say_pointwise,
};
