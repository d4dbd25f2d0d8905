/* SPDX-License-Identifier: Apache-2.0
 * Private to the HLO files of model: lookups at the seal. */
#ifndef MODEL_HLO_HLO_IMPL_H
#define MODEL_HLO_HLO_IMPL_H

#include "base/bytes.h"
#include <stdbool.h>

struct trace;
struct hlo;

/* Returns the module that spans call so: "jit_step(8623)", or the name alone if
 * no other has it; ROW_NONE if there is none. */
uint32_t hlo_module_of(const struct trace *t, uint32_t source,
                       struct bytes label);

/* Returns the instruction of that name, or MAP_NONE. */
uint32_t hlo_find(const struct hlo *h, uint32_t module, uint32_t name);

/* Returns, by source, whether it carries compiled programs. The caller frees
 * it; NULL if out of memory. */
bool *hlo_sources(const struct trace *t);

/* Gives kernels of CUDA graphs the category of their own instruction. Returns
 * false if out of memory. */
bool hlo_place_graphs(struct trace *t);

#endif
