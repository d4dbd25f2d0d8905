/* SPDX-License-Identifier: Apache-2.0
 * Names of regions, ops and frames that belong to one phase of training, as
 * rows. torch names its optimizer's regions and its backward nodes itself;
 * TensorFlow puts the phase into the path of the op; frames tell by their file
 * in the framework. */
#include "analyze/memory/mem_phase.h"

#include "model/span_class.h"
#include <assert.h>

struct row {
    const char *text;
    enum mem_phase phase;
};

static bool has(struct bytes in, const char *text) {
    size_t n = strlen(text);
    return in.n >= n && memmem(in.p, in.n, text, n) != NULL;
}

static bool is_one_of(struct bytes b, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(b, list[i], strlen(list[i]))) return true;
    return false;
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* XLA's runtime; the innermost that is known decides. */
static const struct row runtime_rows[] = {
    {"BufferFromHost", MEM_INPUT},
    {"DevicePut", MEM_INPUT},
    {"H2D", MEM_INPUT},
    {"LoadedExecutable_Execute", MEM_PROGRAM},
    {"Executable::Execute", MEM_PROGRAM},
    {"PjitFunction(", MEM_PROGRAM},
};

/* TensorFlow's op names are paths, "gradient_tape/dense/MatMul:MatMul". */
static const struct row op_rows[] = {
    {"gradient_tape/", MEM_BACKWARD}, {"gradients/", MEM_BACKWARD},
    {":Apply", MEM_OPTIMIZER},        {":ResourceApply", MEM_OPTIMIZER},
    {"/Initializer/", MEM_INIT},      {":VarHandleOp", MEM_INIT},
    {":VariableV2", MEM_INIT},        {":IteratorGetNext", MEM_INPUT},
};

/* Where in the framework a frame is, and which functions there count (NULL:
 * all). */
static const struct frame_row {
    const char *file, *function;
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

static enum mem_phase lookup(const struct row *rows, size_t n,
                             struct bytes name) {
    for (size_t i = 0; i < n; i++)
        if (has(name, rows[i].text)) return rows[i].phase;
    return MEM_NOWHERE;
}

enum mem_phase mem_phase_of_name(struct bytes name) {
    return lookup(op_rows, COUNT(op_rows), name);
}

enum mem_phase mem_phase_of_span(const struct trace *t, uint32_t r) {
    struct bytes name = strs_bytes(&t->strs, t->spans.name[r]);
    uint16_t class = span_class(t, r);
    if (class & NAME_BACKWARD) return MEM_BACKWARD;
    if (class & NAME_OPTIMIZER)
        return BYTES_STARTS(name, "Optimizer.zero_grad") ? MEM_ZERO_GRAD
                                                         : MEM_OPTIMIZER;
    if (class & NAME_INPUT) return MEM_INPUT;
    if (t->spans.kind[r] == SPAN_RUNTIME)
        return lookup(runtime_rows, COUNT(runtime_rows), name);
    /* torch's own names have no '/': most ops end here */
    if (t->spans.kind[r] == SPAN_OP && memchr(name.p, '/', name.n))
        return mem_phase_of_name(name);
    return MEM_NOWHERE;
}

static_assert(COUNT(frame_rows) <= 32, "marks are bits of 32");

uint32_t mem_phase_marks(struct bytes text) {
    uint32_t marks = 0;
    for (size_t i = 0; i < COUNT(frame_rows); i++)
        if (has(text, frame_rows[i].file)) marks |= UINT32_C(1) << i;
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
    /* the function is a part of the text */
    return mem_phase_of_frame(mem_phase_marks(frame), 0, function);
}

bool mem_makes_room(struct bytes op) {
    return BYTES_STARTS(op, "aten::empty") ||
           BYTES_STARTS(op, "aten::new_empty");
}

bool mem_makes_tensor(struct bytes op) {
    static const char *const list[] = {
        "aten::empty",  "aten::empty_strided", "aten::zeros", "aten::ones",
        "aten::full",   "aten::rand",          "aten::randn", "aten::randint",
        "aten::arange", "aten::linspace",      "aten::eye",   "aten::randperm",
    };
    return is_one_of(op, list, COUNT(list));
}

bool mem_copies_tensor(struct bytes op) {
    static const char *const list[] = {
        "aten::_to_copy",   "aten::to",         "aten::copy_",
        "aten::_copy_from", "aten::pin_memory", "aten::_pin_memory",
    };
    return is_one_of(op, list, COUNT(list));
}
