/* SPDX-License-Identifier: Apache-2.0
 * slow-layout: convolutions whose data lies in NCHW. The matrix units want
 * NHWC, so that cuDNN turns the data round before a convolution and back after
 * it; and norms and pools have slow kernels in NCHW. Repaired, what only turns
 * data round goes, and those come near the memory's speed, where shapes tell
 * what they move. Ops that have no good kernel for NHWC would get slower: with
 * much of them nothing is promised. */
#include "analyze/hints/hint.h"

#include "analyze/cost/device_peak.h"
#include "analyze/cost/op_cost.h"
#include "base/err.h"
#include "base/map.h"
#include "base/sum.h"
#include "model/trace.h"
#include "names/kernel_names.h"
#include "names/op_names.h"
#include <stdio.h>
#include <stdlib.h>

static row_id op_around(const struct trace *t, row_id row) {
    for (int i = 0; row != ROW_NONE && i < HINT_CLIMB; i++) {
        if (t->spans.kind[row] == SPAN_OP) return row;
        row = t->spans.parent[row];
    }
    return ROW_NONE;
}

/* Returns what the device's memory needs for what the op moves; -1: not
 * known. */
static int64_t least_of(const struct hint_case *c, row_id op) {
    const struct trace *t = c->t;
    struct op_cost cost;
    if (op == ROW_NONE || c->peak == NULL || c->peak->bytes_per_s <= 0 ||
        !t->sources[c->source].has_shapes)
        return -1;
    const struct cost_rule *rule = op_cost_rule(
        strs_bytes(&t->strs, t->spans.name[op]));
    if (rule == NULL || !op_cost_of(t, op, rule, DTYPE_UNKNOWN, &cost) ||
        cost.bytes < 0)
        return -1;
    double ps = (double)cost.bytes / c->peak->bytes_per_s * PS_PER_S;
    return ps < (double)DUR_LIMIT ? (int64_t)ps : -1;
}

static bool read_moved(const struct hint_case *c, struct hint_step *s) {
    const struct trace *t = c->t;
    struct map named = {0}; /* name -> the first work that has it */
    s->moved = malloc((s->d.nworks + 1) * sizeof *s->moved);
    bool ok = s->moved != NULL;
    for (uint32_t w = 0; ok && w < s->d.nworks; w++) {
        row_id op = op_around(t, s->d.works[w].call);
        uint32_t name = t->spans.name[s->d.works[w].row];
        uint32_t *first = map_at(&named, name);
        bool same = w > 0 && s->moved[w - 1].op == op;
        ok = first != NULL;
        if (!ok) break;
        s->moved[w] = (struct moved){
            .op = op,
            .least = same ? s->moved[w - 1].least : least_of(c, op),
            .kind = *first == MAP_NONE
                        ? kernel_kind_of(strs_bytes(&t->strs, name))
                        : s->moved[*first].kind};
        if (*first == MAP_NONE) *first = w;
    }
    map_free(&named);
    return ok;
}

int hint_moved_read(struct hint_case *c, struct ops_err *e) {
    for (size_t i = 0; i < c->nsteps; i++)
        if (!read_moved(c, &c->steps[i])) return fail_oom(e);
    return 0;
}

static struct bytes kernel_name(const struct hint_case *c,
                                const struct hint_step *s, uint32_t w) {
    return strs_bytes(&c->t->strs, c->t->spans.name[s->d.works[w].row]);
}

static bool runs_kernel(const struct hint_case *c, const struct hint_step *s,
                        uint32_t w) {
    return s->trial.work[w] != WORK_GONE &&
           c->t->spans.kind[s->d.works[w].row] == SPAN_KERNEL;
}

/* Would too much get slower in NHWC? */
static bool suffers(const struct hint_case *c, const struct hint_step *s) {
    int64_t all = 0, slower = 0;
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        row_id op = s->moved[w].op;
        if (!runs_kernel(c, s, w)) continue;
        sat_inc(&all, s->trial.work[w]);
        if (op != ROW_NONE &&
            op_lacks_nhwc(strs_bytes(&c->t->strs, c->t->spans.name[op])))
            sat_inc(&slower, s->trial.work[w]);
    }
    return slower / HINT_SUFFER_PERCENT > all / 100;
}

/* Takes out what only turns data round. */
static void also_layout(const struct hint_case *c, struct hint_step *s,
                        struct hint_found *f) {
    if (suffers(c, s)) return;
    for (uint32_t w = 0; w < s->d.nworks; w++) {
        if (!runs_kernel(c, s, w) || !kernel_is_layout(kernel_name(c, s, w)))
            continue;
        hint_saw(f, s->d.works[w].row, s->trial.work[w]);
        s->trial.work[w] = WORK_GONE;
    }
}

/* Lets the slow kernels of works [first, end), all of one op, take what they
 * would in NHWC. */
static void speed_up(const struct hint_case *c, struct hint_step *s,
                     uint32_t first, uint32_t end, struct hint_found *f) {
    int64_t now = 0;
    for (uint32_t w = first; w < end; w++)
        if (runs_kernel(c, s, w) && kernel_is_slow_nchw(kernel_name(c, s, w)))
            sat_inc(&now, s->trial.work[w]);
    double then = (double)s->moved[first].least * 100 / HINT_NORM_PERCENT;
    if (s->moved[first].least < 0 || then >= (double)now) return;
    for (uint32_t w = first; w < end; w++)
        if (runs_kernel(c, s, w) && kernel_is_slow_nchw(kernel_name(c, s, w)))
            s->trial.work[w] = (int64_t)((double)s->trial.work[w] * then /
                                         (double)now);
    sat_inc(&f->other, now - (int64_t)then);
}

static void repair_layout(const struct hint_case *c, struct hint_step *s,
                          struct hint_found *f) {
    int64_t before = f->count;
    also_layout(c, s, f);
    if (f->count == before) return; /* the layout is right, or not wanted */
    for (uint32_t w = 0, end; w < s->d.nworks; w = end) {
        row_id op = s->moved[w].op;
        for (end = w + 1; end < s->d.nworks && s->moved[end].op == op;) end++;
        if (op != ROW_NONE) speed_up(c, s, w, end, f);
    }
}

static void say_layout(const struct hint_case *c, const struct hint_found *f,
                       struct hint_words *w) {
    char a[48], b[48], n[48], more[200];
    if (f->other > 0)
        snprintf(more, sizeof more,
                 "%.0f %% by themselves, the rest from norms and pools, which "
                 "are %s a step over what the memory needs",
                 hint_percent(c, f->also), hint_time(c, f->other, b));
    else
        snprintf(more, sizeof more,
                 "norms and pools gain as well: record shapes to see how much");
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s a step, only turn NCHW into NHWC and back: %s",
             hint_count(c, f->count, "kernel", "kernels", n),
             hint_time(c, f->time, a), more);
}

const struct hint_rule hint_slow_layout = {
    .id = "slow-layout",
    .title = "convolutions change the layout of their data back and forth",
    .effort = EFFORT_MODEL,
    .confidence = "simulated",
    .assumes = "convolutions take as long as now, norms and pools come to 30 % "
               "of the memory's bandwidth; off by a quarter either way, and "
               "wrong where an op of the model has no kernel for that layout",
    .see = "kernels",
    .advice[FW_TORCH] = "model = model.to(memory_format=torch.channels_last); "
                        "x = x.to(memory_format=torch.channels_last)",
    .advice[FW_TF] = "data_format='channels_last' in all layers (Keras: "
                     "keras.config.set_image_data_format('channels_last')), "
                     "images of [batch, height, width, channels]",
    .advice[FW_JAX] = "jax.lax.conv_general_dilated with dimension_numbers="
                      "('NHWC', 'HWIO', 'NHWC'), images of [batch, height, "
                      "width, channels]",
    .advice[FW_OTHER] = "keep all data of convolutions in NHWC "
                        "(CUDNN_TENSOR_NHWC) from the start",
    .repair = repair_layout,
    .also = also_layout,
    .say = say_layout,
};
