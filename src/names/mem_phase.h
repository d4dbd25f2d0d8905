/* SPDX-License-Identifier: Apache-2.0
 * What the program was doing when memory was allocated, by the names of ops,
 * regions and frames. */
#ifndef NAMES_MEM_PHASE_H
#define NAMES_MEM_PHASE_H

#include "base/bytes.h"
#include <stdint.h>

enum mem_phase {
    MEM_NOWHERE, /* no op, region or stack tells */
    MEM_INIT,    /* building a model or moving it to a device */
    MEM_INPUT,   /* loading or copying in a batch, or making a tensor of no
                      other one */
    MEM_FORWARD, /* an op that is none of the others */
    MEM_BACKWARD,
    MEM_OPTIMIZER, /* the optimizer's step */
    MEM_ZERO_GRAD,
    MEM_PROGRAM,   /* XLA runs a compiled program: forward, backward and
                      optimizer in one */
    MEM_WORKSPACE, /* a library gets its scratch memory, whoever calls it */
    MEM_PHASES,
};

/* Return the phase of an op by its name, and of what XLA's runtime does;
 * MEM_NOWHERE if the name does not say. */
enum mem_phase mem_phase_of_op(struct bytes name);
enum mem_phase mem_phase_of_runtime(struct bytes name);

/* Returns which parts of the framework a text names, a bit for each part that
 * is known. Many frames share a text, and only this reads all of it. */
uint32_t mem_phase_marks(struct bytes text);

/* Returns the phase of a frame. file: the marks of its file (or of all that is
 * known in one text); marks: those of its function. */
enum mem_phase mem_phase_of_frame(uint32_t file, uint32_t marks,
                                  struct bytes function);

/* Does the same for a frame in one text: "torch/optim/sgd.py(80): step",
 * "nn.Module: Linear_0", "$api.py:12 jit". */
enum mem_phase mem_phase_of_text(struct bytes frame);

#endif
