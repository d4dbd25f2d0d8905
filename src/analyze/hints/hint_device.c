/* SPDX-License-Identifier: Apache-2.0
 * The device is busy, but not full: small-batch (kernels with too few blocks
 * for it), low-occupancy (too few warps to hide the time that memory takes). */
#include "analyze/hints/hint.h"

#include "analyze/shared/kernel_args.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "model/trace.h"
#include "names/kernel_names.h"
#include <stdio.h>

static bool runs_kernel(const struct hint_case *c, const struct hint_step *s,
                        uint32_t w) {
    return s->trial.work[w] != WORK_GONE &&
           c->t->spans.kind[s->d.works[w].row] == SPAN_KERNEL;
}

/* Returns the blocks of the kernel for each unit (SM, CU) of its device; a
 * negative number if not known. */
static double blocks_per_unit(const struct trace *t, row_id row,
                              const struct kernel_args *a) {
    uint32_t d = t->tracks[t->spans.track[row]].device;
    if (d == ROW_NONE || t->devices[d].units <= 0 || a->grid[0] <= 0) return -1;
    return (double)a->grid[0] * (double)a->grid[1] * (double)a->grid[2] /
           (double)t->devices[d].units;
}

/* Does a kernel have too few blocks to fill half of the device? */
static bool is_half_empty(const struct trace *t, row_id row) {
    struct kernel_args a = kernel_args_of(t, row);
    double fill = blocks_per_unit(t, row, &a);
    return fill >= 0 && fill * 100 < HINT_WAVE_PERCENT;
}

/* Halves the kernels that is() takes, if they are so much of the device's
 * time. */
static void halve_kernels(const struct hint_case *c, struct hint_step *s,
                          bool (*is)(const struct trace *t, row_id row),
                          int64_t percent, struct hint_found *f) {
    int64_t all = 0, taken = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && taken < all / 100 * percent) return;
        for (uint32_t w = 0; w < s->d.nworks; w++) {
            row_id row = s->d.works[w].row;
            if (!runs_kernel(c, s, w)) continue;
            if (pass == 0) sat_inc(&all, s->trial.work[w]);
            if (!is(c->t, row)) continue;
            if (pass == 0) {
                sat_inc(&taken, s->trial.work[w]);
                continue;
            }
            hint_saw(f, row, s->trial.work[w]);
            s->trial.work[w] /= 2;
        }
    }
}

static void repair_batch(const struct hint_case *c, struct hint_step *s,
                         struct hint_found *f) {
    /* one large kernel that fills the device decides that nothing is small */
    halve_kernels(c, s, is_half_empty, 50, f);
}

static void say_batch(const struct hint_case *c, const struct hint_found *f,
                      struct hint_words *w) {
    char a[48], n[48];
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s a step, with fewer blocks than half of the device's "
             "units, the longest %.*s",
             hint_count(c, f->count, "kernel", "kernels", n),
             hint_time(c, f->time, a), CUT(120, hint_name(c, f->row)));
}

const struct hint_rule hint_small_batch = {
    .id = "small-batch",
    .title = "kernels fill less than half of the device: a batch twice as "
             "large would take the same time",
    .confidence = "assumed",
    .assumes = "the saving is per sample, with twice as many in a step",
    .see = "kernels",
    .advice[FW_OTHER] =
        "double the batch size, or accumulate fewer gradients, until the "
        "step gets longer",
    .repair = repair_batch,
    .say = say_batch,
};

/* Is it thin: no product of matrices (those live well with few warps), with
 * enough blocks, and still few warps? */
static bool is_thin(const struct trace *t, row_id row) {
    struct kernel_args a = kernel_args_of(t, row);
    if (a.occupancy_pct < 0 || a.occupancy_pct >= HINT_OCCUPANCY_PERCENT ||
        blocks_per_unit(t, row, &a) < 2)
        return false;
    struct bytes name = strs_bytes(&t->strs, t->spans.name[row]);
    return !kernel_kind_of(name).matrix;
}

static void repair_occupancy(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    halve_kernels(c, s, is_thin, HINT_THIN_PERCENT, f);
}

static void say_occupancy(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48], n[48], registers[48] = "", shared[48] = "";
    struct kernel_args k = kernel_args_of(c->t, f->row);
    if (k.registers >= 0)
        snprintf(registers, sizeof registers, ", %lld registers a thread",
                 (long long)k.registers);
    if (k.shared_bytes >= 0)
        snprintf(shared, sizeof shared, ", %lld bytes of shared memory",
                 (long long)k.shared_bytes);
    snprintf(w->evidence, sizeof w->evidence,
             "%s, %s a step; %.*s: occupancy %.0f %%%s%s",
             hint_count(c, f->count, "kernel", "kernels", n),
             hint_time(c, f->time, a), CUT(120, hint_name(c, f->row)),
             k.occupancy_pct, registers, shared);
}

const struct hint_rule hint_low_occupancy = {
    .id = "low-occupancy",
    .title = "kernels run with too few warps to hide the time of memory",
    .confidence = "assumed",
    .assumes = "twice the warps make such a kernel twice as fast",
    .see = "kernels",
    .advice[FW_OTHER] =
        "fewer registers or less shared memory a block: "
        "__launch_bounds__, smaller tiles (Triton: fewer num_warps or a "
        "smaller BLOCK)",
    .repair = repair_occupancy,
    .say = say_occupancy,
};
