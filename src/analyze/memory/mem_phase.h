/* SPDX-License-Identifier: Apache-2.0
 * What the program was doing, by the names of spans and frames: the one place
 * where memory's analyses look at names. */
#ifndef ANALYZE_MEMORY_MEM_PHASE_H
#define ANALYZE_MEMORY_MEM_PHASE_H

#include "base/bytes.h"
#include <stdbool.h>
#include <stdint.h>

struct trace;

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

/* Of a span, by its name and kind alone; MEM_NOWHERE: the name does not say. */
enum mem_phase mem_phase_of_span(const struct trace *t, uint32_t row);

/* Of an op named by a source with no span around it (TensorFlow). */
enum mem_phase mem_phase_of_name(struct bytes name);

/* What of the framework a text names: one bit for each thing that is known.
 * Many frames share a text; this part needs to read it all. */
uint32_t mem_phase_marks(struct bytes text);

/* Of a frame: the marks of its file (or of all that is known in one text), and
 * its function with its marks. */
enum mem_phase mem_phase_of_frame(uint32_t file, uint32_t marks,
                                  struct bytes function);

/* The same of a frame in one text: "torch/optim/sgd.py(80): step",
 * "nn.Module: Linear_0", "$api.py:12 jit". */
enum mem_phase mem_phase_of_text(struct bytes frame);

/* Does this op make a tensor of no other one (aten::empty, aten::randn)? */
bool mem_makes_tensor(struct bytes op);

/* Does this op only make room for a tensor that its caller fills? */
bool mem_makes_room(struct bytes op);

/* Does this op copy a tensor elsewhere (aten::_to_copy)? */
bool mem_copies_tensor(struct bytes op);

#endif
