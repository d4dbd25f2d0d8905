/* SPDX-License-Identifier: Apache-2.0
 * low-precision-off: matrix products in full fp32, neither TF32 nor 16 bit. */
#include "analyze/hints/hint.h"

#include "analyze/cost/device_peak.h"
#include "base/array.h"
#include "base/text/cut.h"
#include "names/kernel_names.h"
#include <stdio.h>

/* Returns how many times faster a full fp32 matrix kernel becomes in that
 * type; 0 if the device does not have it, or its peaks are not known. */
static double precision_gain(const struct hint_case *c, enum dtype type) {
    if (c->peak == NULL) return 0;
    double slow = device_peak_flops(c->peak, DTYPE_FP32, false);
    double fast = device_peak_flops(c->peak, type, true);
    if (slow <= 0 || fast <= 0) return 0;
    return fast * HINT_MATRIX_PERCENT / 100 / slow;
}

/* The types that the matrix units have for such products: what is the least to
 * change first, or DTYPE_UNKNOWN; then what gives more, if there is any. */
static enum dtype precision_first(const struct hint_case *c) {
    const enum dtype types[] = {DTYPE_TF32, DTYPE_BF16, DTYPE_FP16};
    for (size_t i = 0; i < COUNT(types); i++)
        if (precision_gain(c, types[i]) > 1) return types[i];
    return DTYPE_UNKNOWN;
}

static enum dtype precision_more(const struct hint_case *c) {
    bool more = precision_first(c) == DTYPE_TF32 &&
                precision_gain(c, DTYPE_BF16) > 1;
    return more ? DTYPE_BF16 : DTYPE_UNKNOWN;
}

/* Is it in the optimizer's step, which stays in fp32? */
static bool in_optimizer(const struct hint_step *s, uint32_t w) {
    const struct step_op *p = hint_op_at(s, s->d.works[w].piece);
    return p != NULL && p->optimizer;
}

/* Lets products of matrices in full fp32 run in that type; where it has 16
 * bits, pointwise kernels move half as much. */
static void lower_precision(const struct hint_case *c, struct hint_step *s,
                            enum dtype type, struct hint_found *f) {
    double gain = precision_gain(c, type);
    if (gain <= 1) return;
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        row_id row = s->d.works[w].row;
        struct bytes name = strs_bytes(&c->t->strs, c->t->spans.name[row]);
        if (c->t->spans.kind[row] != SPAN_KERNEL ||
            s->trial.work[w] == WORK_GONE)
            continue;
        struct kernel_kind k = s->moved[w].kind;
        bool product = k.matrix && !k.tensor && k.dtype == DTYPE_FP32;
        bool halved = type != DTYPE_TF32 && k.dtype == DTYPE_FP32 &&
                      kernel_fusable(name) == FUSE_POINTWISE &&
                      !in_optimizer(s, w);
        if (!product && !halved) continue;
        int64_t now = s->trial.work[w];
        int64_t then = (int64_t)((double)now / (product ? gain : 2));
        if (then < HINT_KERNEL_FLOOR_NS * PS_PER_NS)
            then = HINT_KERNEL_FLOOR_NS * PS_PER_NS;
        if (then >= now) continue;
        s->trial.work[w] = then;
        if (product) hint_saw(f, row, now);
    }
}

static void repair_precision(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    lower_precision(c, s, precision_first(c), f);
}

static void also_precision(const struct hint_case *c, struct hint_step *s,
                           struct hint_found *f) {
    lower_precision(c, s, precision_more(c), f);
}

static void say_precision(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48], n[48], also[64] = "";
    enum dtype type = precision_first(c);
    if (f->also > f->save)
        snprintf(also, sizeof also, ", bf16 %.0f %%", hint_percent(c, f->also));
    snprintf(w->evidence, sizeof w->evidence,
             "%s saves %.0f %%%s; %s, %s a step, the longest %.*s",
             type == DTYPE_TF32 ? "TF32" : dtype_name(type),
             hint_percent(c, f->save), also,
             hint_count(c, f->count, "kernel", "kernels", n),
             hint_time(c, f->time, a), CUT(160, hint_name(c, f->row)));
    if (type != DTYPE_TF32 && c->framework == FW_TORCH)
        snprintf(w->repair, sizeof w->repair,
                 "with torch.autocast('cuda', dtype=torch.%s): loss = ...%s",
                 type == DTYPE_FP16 ? "float16" : "bfloat16",
                 type == DTYPE_FP16 ? ", with torch.amp.GradScaler" : "");
}

const struct hint_rule hint_low_precision_off = {
    .id = "low-precision-off",
    .title = "matrix products run in full fp32, not on the matrix units",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "products at 70 % of the device's peak for the type; with 16 "
               "bits, pointwise kernels outside the optimizer in half the "
               "time",
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
    .also = also_precision,
    .say = say_precision,
};
