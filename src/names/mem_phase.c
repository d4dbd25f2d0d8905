/* SPDX-License-Identifier: Apache-2.0
 * Names of regions, ops and frames that belong to one phase of training, as
 * rows. torch's optimizer regions and backward nodes are told by name_class.c;
 * TensorFlow puts the phase into the path of the op; frames are told by their
 * file in the framework. */
#include "names/mem_phase.h"

#include "base/array.h"
#include "names/pattern.h"
#include <assert.h>

/* XLA's runtime. */
static const struct pattern runtime[] = {
    {MEM_INPUT, NAMES("BufferFromHost", "DevicePut", "H2D")},
    {MEM_PROGRAM,
     NAMES("LoadedExecutable_Execute", "Executable::Execute", "PjitFunction(")},
};

/* TensorFlow's op names are paths, "gradient_tape/dense/MatMul:MatMul". */
static const struct pattern ops[] = {
    {MEM_BACKWARD, NAMES("gradient_tape/", "gradients/")},
    {MEM_OPTIMIZER, NAMES(":Apply", ":ResourceApply")},
    {MEM_INIT, NAMES("/Initializer/", ":VarHandleOp", ":VariableV2")},
    {MEM_INPUT, NAMES(":IteratorGetNext")},
};

/* A part of the framework that a frame is in, and the functions there that
 * count (NULL: all of them). */
static const struct frame_row {
    const char *file, *function; /* a word, a whole name */
    enum mem_phase phase;
} frame_rows[] = {
    {"WorkspaceForHandle", NULL, MEM_WORKSPACE},
    {"BlasLtWorkspace", NULL, MEM_WORKSPACE},
    {"torch/optim/", "zero_grad", MEM_ZERO_GRAD},
    {"torch/optim/", NULL, MEM_OPTIMIZER},
    {"run_backward", NULL, MEM_BACKWARD},
    {"autograd::Engine", NULL, MEM_BACKWARD},
    {"torch/autograd/function.py", "apply", MEM_BACKWARD},
    {"torch/autograd/__init__.py", "backward", MEM_BACKWARD},
    {"torch/utils/data/", NULL, MEM_INPUT},
    {"torch/nn/init.py", NULL, MEM_INIT},
    {"torch/nn/modules/", "__init__", MEM_INIT},
    {"torch/nn/modules/", "reset_parameters", MEM_INIT},
    {"torch/nn/modules/module.py", "_apply", MEM_INIT},
    {"torch/nn/modules/module.py", "convert", MEM_INIT},
    {"torch/nn/modules/module.py", "_call_impl", MEM_FORWARD},
    {"nn.Module: ", NULL, MEM_FORWARD},
};

enum mem_phase mem_phase_of_op(struct bytes name) {
    return (enum mem_phase)words_first(ops, COUNT(ops), name, MEM_NOWHERE);
}

enum mem_phase mem_phase_of_runtime(struct bytes name) {
    return (enum mem_phase)words_first(runtime, COUNT(runtime), name,
                                       MEM_NOWHERE);
}

static_assert(COUNT(frame_rows) <= 32, "marks are bits of 32");

uint32_t mem_phase_marks(struct bytes text) {
    uint32_t marks = 0;
    for (size_t i = 0; i < COUNT(frame_rows); i++)
        if (word_in(frame_rows[i].file, text)) marks |= UINT32_C(1) << i;
    return marks;
}

enum mem_phase mem_phase_of_frame(uint32_t file, uint32_t marks,
                                  struct bytes function) {
    for (size_t i = 0; i < COUNT(frame_rows); i++) {
        const struct frame_row *f = &frame_rows[i];
        uint32_t here = f->function ? file : file | marks;
        if (!(here & UINT32_C(1) << i)) continue;
        if (f->function &&
            !bytes_eq(function, f->function, strlen(f->function)))
            continue;
        return f->phase;
    }
    return MEM_NOWHERE;
}

enum mem_phase mem_phase_of_text(struct bytes frame) {
    struct bytes function = frame;
    for (size_t i = frame.n; i > 0; i--) {
        if (frame.p[i - 1] != ' ') continue;
        function = (struct bytes){frame.p + i, frame.n - i};
        break;
    }
    /* the function's name is a part of the text */
    return mem_phase_of_frame(mem_phase_marks(frame), 0, function);
}
