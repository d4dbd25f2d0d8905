/* SPDX-License-Identifier: Apache-2.0
 * Lists of ops by the question that is asked about them. */
#include "names/op_names.h"

#include "base/array.h"
#include "names/pattern.h"
#include <ctype.h>
#include <limits.h>

/* Are these the characters of a node's name, or of its type? */
static bool is_name(struct bytes b, bool type) {
    for (size_t i = 0; i < b.n; i++) {
        uint8_t c = b.p[i];
        bool first = type ? c == '_' || isupper(c)
                          : isalnum(c) || c == '.' || c == '_';
        bool later = type ? isalnum(c) : c != 0 && strchr("/>-", c) != NULL;
        if (!first && (i == 0 || !later)) return false;
    }
    return b.n > 0;
}

bool name_split_tf(struct bytes full, struct bytes *name, struct bytes *type) {
    if (full.n == 0) return false;
    const uint8_t *colon = memchr(full.p, ':', full.n);
    if (colon == NULL) return false;
    struct bytes left = {full.p, (size_t)(colon - full.p)};
    struct bytes right = {colon + 1, full.n - left.n - 1};
    if (!is_name(left, false) || !is_name(right, true)) return false;
    *name = left;
    *type = right;
    return true;
}

struct bytes name_op_type(struct bytes full) {
    struct bytes name, type;
    if (name_split_tf(full, &name, &type)) return type;
    if (BYTES_STARTS(full, "Iterator::")) return bytes_of("Dataset");
    return (struct bytes){full.p, 0};
}

/* The lists are set by hand. */
/* clang-format off */
bool op_is_view(struct bytes name) {
    static const char *const torch[] = {
        "view", "t", "transpose", "transpose_", "as_strided", "as_strided_",
        "reshape", "_reshape_alias", "_unsafe_view", "view_as", "expand",
        "expand_as", "permute", "slice", "select", "narrow", "unsqueeze",
        "unsqueeze_", "squeeze", "squeeze_", "detach", "detach_", "alias",
        "flatten", "unflatten", "split", "split_with_sizes", "chunk", "unbind",
        "unfold", "diagonal", "movedim", "swapaxes", "numpy_T", "mT", "T",
        "lift_fresh", "resolve_conj", "resolve_neg", "view_as_real",
        "view_as_complex", "real", "imag", "contiguous", "tensor_split",
        "broadcast_to", "adjoint", "to", "type_as", NULL};
    static const char *const tf[] = {
        "Reshape", "Identity", "IdentityN", "ExpandDims", "Squeeze",
        "StopGradient", "PreventGradient", "ReadVariableOp", NULL};
    if (BYTES_STARTS(name, "aten::"))
        return pattern_in(torch, (struct bytes){name.p + 6, name.n - 6});
    if (BYTES_IS(name, "detach") || BYTES_IS(name, "detach_")) return true;
    return pattern_in(tf, name_op_type(name));
}

bool op_only_allocates(struct bytes name) {
    static const char *const list[] = {
        "aten::empty", "aten::empty_strided", "aten::empty_like",
        "aten::new_empty", "aten::new_empty_strided", "aten::resize_",
        "aten::resize_as_", "aten::set_", "aten::set_data", "aten::size",
        "aten::stride", "aten::numel", "aten::dim", "aten::result_type",
        "aten::can_cast", "aten::is_pinned", "aten::pin_memory",
        "aten::_has_compatible_shallow_copy_type", "aten::_pin_memory",
        "aten::record_stream", "aten::requires_grad_", "aten::retain_grad",
        NULL};
    return pattern_in(list, name);
}

bool op_is_bookkeeping(struct bytes name) {
    static const char *const tf[] = {
        "NoOp", "_Arg", "_Retval", "Const", "Shape", "VarHandleOp", NULL};
    static const char *const torch[] = {
        "autograd::*", "torch::autograd::*", "profiler::*",
        "TorchDynamo Cache*", "Pregraph bytecode*", "AOTDispatcher Runtime*",
        "PythonDispatchMode*", "*Backward0", "*Backward1", NULL};
    return pattern_in(tf, name_op_type(name)) || pattern_in(torch, name);
}

bool op_is_custom(struct bytes name) {
    static const char *const own[] = {
        "aten", "prims", "prim", "c10d", "c10d_functional", "autograd",
        "torch", "profiler", "nccl", "gloo", "quantized", "inductor",
        "_c10d_functional", "cudnn", "mkldnn", "sparse", "rngprims",
        "higher_order", "onednn", "fbgemm", "xla", "symm_mem", NULL};
    const uint8_t *p = memmem(name.p, name.n, "::", 2);
    if (p == NULL || p == name.p) return false;
    size_t n = (size_t)(p - name.p);
    if (BYTES_STARTS(name, "torch.")) return false; /* its Python side */
    for (size_t i = 0; i < n; i++)
        if (name.p[i] == ' ' || name.p[i] == '(') return false;
    return !pattern_in(own, (struct bytes){name.p, n});
}

bool op_is_mark(struct bytes name) {
    static const char *const list[] = {
        "[memory]", "[OutOfMemory]", "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr",
        "aten::_version", NULL};
    return pattern_in(list, name);
}

bool op_feeds_a_look(struct bytes name) {
    static const char *const list[] = {
        "aten::abs", "aten::max", "aten::min", "aten::amax", "aten::amin",
        "aten::sum", "aten::mean", "aten::norm", "aten::linalg_vector_norm",
        "aten::isnan", "aten::isinf", "aten::isfinite", "aten::any",
        "aten::all", "aten::eq", "aten::ne", "aten::lt", "aten::le",
        "aten::gt", "aten::ge", "aten::logical_or", "aten::logical_and",
        "aten::logical_not", "aten::bitwise_or", "aten::bitwise_and",
        "aten::bitwise_not", "aten::argmax", "aten::argmin", "aten::std",
        "aten::var", "aten::count_nonzero", "aten::detach", "detach",
        "aten::select", "aten::slice", "aten::squeeze", "aten::to",
        "aten::float", "aten::div", "aten::mul", "aten::sub", "aten::pow",
        "aten::sqrt", "aten::topk", "aten::sort", "aten::unsqueeze",
        "aten::view", "aten::reshape", "aten::expand", "aten::t",
        "aten::is_nonzero", "aten::softmax", "aten::sigmoid", "aten::stack",
        "aten::cat", NULL};
    return pattern_in(list, name);
}

bool op_makes_tensor(struct bytes name) {
    static const char *const list[] = {
        "aten::empty", "aten::empty_strided", "aten::zeros", "aten::ones",
        "aten::full", "aten::rand", "aten::randn", "aten::randint",
        "aten::arange", "aten::linspace", "aten::eye", "aten::randperm", NULL};
    return pattern_in(list, name);
}

bool op_copies_tensor(struct bytes name) {
    static const char *const list[] = {
        "aten::_to_copy", "aten::to", "aten::copy_", "aten::_copy_from",
        "aten::pin_memory", "aten::_pin_memory", NULL};
    return pattern_in(list, name);
}

/* A row's value says which input is the size and which the type, as digits. */
static const struct pattern makers[] = {
    {0x01, NAMES("aten::empty", "aten::zeros", "aten::ones", "aten::rand",
        "aten::randn")},
    {0x02, NAMES("aten::empty_strided", "aten::full")},
    {0x12, NAMES("aten::new_empty", "aten::new_zeros")},
    {0x13, NAMES("aten::new_empty_strided")},
};

/* The outermost op of each layer in torch.nn (the ops inside it get the same
 * weights again). Positions are those in the signatures of native_functions. */
static const struct pattern layers[] = {
    {2 | 4, NAMES("aten::linear", "aten::conv1d", "aten::conv2d",
        "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d",
        "aten::conv_transpose3d", "aten::batch_norm", "aten::instance_norm")},
    {2, NAMES("aten::prelu")},
    {4 | 8, NAMES("aten::layer_norm", "aten::group_norm", "aten::bilinear")},
    {1, NAMES("aten::embedding", "aten::embedding_bag")},
    {4, NAMES("aten::rms_norm", "aten::lstm", "aten::gru", "aten::rnn_tanh",
        "aten::rnn_relu")},
    {4 | 8 | 16 | 32, NAMES("aten::lstm_cell", "aten::gru_cell",
        "aten::rnn_tanh_cell", "aten::rnn_relu_cell")},
};
/* clang-format on */

bool op_size_inputs(struct bytes name, int *size, int *type) {
    unsigned at = pattern_first(makers, COUNT(makers), name, UINT_MAX);
    *size = (int)(at >> 4);
    *type = (int)(at & 15);
    return at != UINT_MAX;
}

unsigned op_weight_inputs(struct bytes name) {
    if (!BYTES_STARTS(name, "aten::")) return 0;
    return pattern_first(layers, COUNT(layers), name, 0);
}

bool name_is_accumulate(struct bytes name) {
    return word_in("AccumulateGrad", name);
}

const char *const op_thin[2] = {"aten::t", "aten::transpose"};
