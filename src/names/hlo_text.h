/* SPDX-License-Identifier: Apache-2.0
 * HLO as XLA's devices write it into a profile: an instruction's name, its
 * category and, where it is recorded, its whole text,
 *
 *     %copy-done.3 = f32[8,128]{1,0:T(8,128)S(5)} copy-done(%copy-start.3)
 *
 * What is wanted of it: whether it moves memory, how much, and for whom. */
#ifndef NAMES_HLO_TEXT_H
#define NAMES_HLO_TEXT_H

#include "base/bytes.h"
#include "names/dtype.h"
#include <stdbool.h>
#include <stdint.h>

/* Does the instruction only move memory while others run: start such a
 * transfer, or wait for its end? category may be empty. */
bool hlo_is_transfer(struct bytes name, struct bytes category);

/* The two halves of an instruction that runs beside others. */
enum hlo_half { HLO_WHOLE, HLO_START, HLO_DONE };

/* Returns which half a name is: "all-reduce-start.3", "copy-done". *key is the
 * same for both halves of one instruction and differs from that of others. */
enum hlo_half hlo_half_of(struct bytes name, uint64_t *key);

/* What an instruction's result is: arrays, added up. */
struct hlo_result {
    int64_t elements, bytes; /* of all arrays; -1: not told */
    int64_t first_bytes;     /* of the first array alone, or -1 */
    int64_t last_elements, last_bytes;
    enum dtype type; /* of the first array, or DTYPE_UNKNOWN */
    int host[2];     /* do the first two arrays lie in the host's memory? 1, 0,
                        or -1: there is none */
};

/* Read a shape, "f32[8,128]" or "(f32[8], s8[64]{0})"; and the result of an
 * instruction's text: what stands behind " = ". */
struct hlo_result hlo_shape_of(struct bytes text);
struct hlo_result hlo_result_of(struct bytes text);

/* Returns how many devices take part in a collective, by "replica_groups=" of
 * its text; -1 if it does not say. */
int64_t hlo_group_size(struct bytes text);

#endif
