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

bool op_is_thin(struct bytes name) {
    static const char *const tf[] = {
        "Shape", "ShapeN", "Size", "Rank", "Reshape", "Identity", "ExpandDims",
        "Squeeze", "ReadVariableOp", "BroadcastGradientArgs", "NoOp",
        "StopGradient", "PreventGradient", NULL};
    struct bytes type = name_op_type(name);
    return pattern_in(tf, type.n > 0 ? type : name);
}

bool op_is_custom(struct bytes name) {
    static const char *const own[] = {
        "aten", "prims", "prim", "c10d", "c10d_functional", "autograd",
        "torch", "profiler", "nccl", "gloo", "quantized", "inductor",
        "_c10d_functional", "cudnn", "mkldnn", "sparse", "rngprims",
        "higher_order", "onednn", "fbgemm", "xla", "symm_mem",
        "Iterator", /* of tf.data */ NULL};
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

bool op_takes_host_data(struct bytes name) {
    static const char *const list[] = {
        "aten::lift_fresh", "aten::from_numpy", "aten::pin_memory",
        "aten::_pin_memory", NULL};
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

bool name_is_backward(struct bytes name) {
    while (name.n > 0 && byte_is_digit(name.p[name.n - 1])) name.n--;
    return bytes_ends(name, "Backward");
}

int op_thin(struct bytes name) {
    static const struct {
        const char *text;
        bool more; /* something stands behind it */
    } names[THIN_OPS] = {
        [THIN_DETACH] = {"aten::detach", false},
        [THIN_TO] = {"aten::to", false},
        [THIN_T] = {"aten::t", false},
        [THIN_TRANSPOSE] = {"aten::transpose", false},
        [THIN_ITEM] = {"aten::item", false},
        [THIN_RESHAPE] = {"aten::reshape", false},
        [THIN_EMPTY_LIKE] = {"aten::empty_like", false},
        [THIN_ACCUMULATE] = {"torch::autograd::AccumulateGrad", false},
        [THIN_T_BACKWARD] = {"TBackward0", false},
        [THIN_EAGER_EXECUTE] = {"EagerExecute:", true},
        [THIN_EAGER_KERNEL] = {"EagerKernelExecute", true},
        [THIN_PJIT] = {"PjitFunction(", true},
    };
    for (int i = 0; i < THIN_OPS; i++) {
        size_t n = strlen(names[i].text);
        if (name.n < n || (name.n > n && !names[i].more)) continue;
        if (memcmp(name.p, names[i].text, n) == 0) return i;
    }
    return -1;
}

bool op_is_checkpoint(struct bytes name) {
    static const char *const list[] = {"CheckpointFunction",
                                       "CheckpointFunctionBackward",
                                       "_NoopSaveInputs", NULL};
    return pattern_in(list, name);
}

bool op_lacks_nhwc(struct bytes name) {
    static const char *const list[] = {"aten::native_group_norm*",
                                       "aten::instance_norm*",
                                       "aten::upsample_*",
                                       "aten::_upsample_*",
                                       "aten::reflection_pad*",
                                       "aten::replication_pad*",
                                       "aten::grid_sampler*",
                                       "aten::pixel_shuffle",
                                       "aten::pixel_unshuffle",
                                       "aten::im2col*",
                                       "aten::col2im*",
                                       "aten::channel_shuffle",
                                       NULL};
    return pattern_in(list, name);
}

/* clang-format off */
static const struct pattern attention[] = {
    {PART_PRODUCT, NAMES("aten::matmul", "aten::bmm", "aten::baddbmm",
        "aten::einsum", "BmmBackward", "BaddbmmBackward")},
    {PART_SOFTMAX, NAMES("aten::softmax", "aten::_softmax",
        "SoftmaxBackward")},
    {PART_BETWEEN, NAMES("aten::mul", "aten::div", "aten::add", "aten::sub",
        "aten::masked_fill", "aten::where", "aten::dropout",
        "aten::native_dropout", "aten::feature_dropout", "aten::_to_copy",
        "aten::clone", "aten::copy", "aten::float", "aten::triu",
        "aten::tril", "aten::ones", "aten::zeros", "aten::full",
        "aten::full_like", "aten::zeros_like", "aten::new_zeros",
        "aten::scalar_tensor", "aten::arange", "aten::eq", "aten::ne",
        "aten::lt", "aten::gt", "aten::ge", "aten::le", "aten::logical_not",
        "aten::bitwise_not", "aten::rsub", "aten::sqrt",
        "aten::repeat", "MulBackward", "DivBackward", "AddBackward",
        "SubBackward", "MaskedFillBackward", "WhereBackward",
        "NativeDropoutBackward", "ToCopyBackward", "ViewBackward",
        "UnsafeViewBackward", "ReshapeAliasBackward", "ExpandBackward",
        "TransposeBackward", "PermuteBackward", "UnsqueezeBackward",
        "SqueezeBackward", "CloneBackward", "SliceBackward",
        "SelectBackward", "AsStridedBackward", "RepeatBackward")},
    {PART_BESIDE, NAMES("*AccumulateGrad")},
};
/* clang-format on */

enum attention_part op_attention_part(struct bytes name) {
    struct bytes plain = name;
    if (name_is_engine_call(plain)) {
        plain.p += sizeof NAME_ENGINE_CALL - 1;
        plain.n -= sizeof NAME_ENGINE_CALL - 1;
    }
    while (plain.n > 0 && byte_is_digit(plain.p[plain.n - 1])) plain.n--;
    if (op_is_in_place(plain)) plain.n--;
    unsigned part = pattern_first(attention, COUNT(attention), plain,
                                  PART_NONE);
    if (part == PART_NONE && (op_is_view(name) || op_only_allocates(name)))
        part = PART_BETWEEN;
    return (enum attention_part)part;
}

bool op_is_batched_product(struct bytes name) {
    return BYTES_IS(name, "aten::bmm") || BYTES_IS(name, "aten::baddbmm");
}

bool op_asks_for_shape(struct bytes name) {
    static const char *const list[] = {"aten::nonzero",
                                       "aten::nonzero_numpy",
                                       "aten::argwhere",
                                       "aten::where",
                                       "aten::masked_select",
                                       "aten::index",
                                       "aten::index_put",
                                       "aten::index_put_",
                                       "aten::_index_put_impl_",
                                       "aten::unique_dim",
                                       "aten::_unique",
                                       "aten::_unique2",
                                       "aten::unique_consecutive",
                                       "aten::repeat_interleave",
                                       "aten::bincount",
                                       NULL};
    return pattern_in(list, name);
}

bool op_is_rows_gradient(struct bytes name) {
    static const char *const list[] = {"*IndexBackward0",
                                       "*IndexAddBackward0",
                                       "*IndexPutBackward0",
                                       "*IndexSelectBackward0",
                                       "*IndexCopyBackward0",
                                       "*MaskedSelectBackward0",
                                       "*GatherBackward0",
                                       "*ScatterAddBackward0",
                                       NULL};
    return pattern_in(list, name);
}

bool op_is_update(struct bytes name) {
    static const char *const list[] = {"*AssignVariableOp",
                                       "*AssignSubVariableOp",
                                       "*AssignAddVariableOp",
                                       "*ResourceApply*",
                                       "*ResourceSparseApply*",
                                       "*ResourceScatter*",
                                       NULL};
    return pattern_in(list, name);
}

bool name_is_housekeeping(struct bytes name) {
    static const char *const list[] = {"TFE_DeleteTensorHandle",
                                       "Wait for donation holds",
                                       "Wait for usage holds",
                                       "ThreadpoolListener::*",
                                       "PythonRefManager::CollectGarbage",
                                       NULL};
    return pattern_in(list, name);
}

bool name_is_evaluation(struct bytes name) {
    static const char *const list[] = {"eval", "Eval",    "valid", "Valid",
                                       "test", "predict", NULL};
    return words_in(list, name);
}
