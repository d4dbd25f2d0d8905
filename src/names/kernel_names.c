/* SPDX-License-Identifier: Apache-2.0
 * Kernel names, understood by the words in them.
 *
 *   sm80_xmma_gemm_f32f32_tf32f32_f32_...     types of A and B in memory, of
 *                                             the product and of the sum
 *   ..._f32f32_f32f32_f32_..._ffma_...        plain fp32: no matrix unit
 *   cutlass_80_tensorop_s1688gemm_...         s: sum in fp32; 16x8x8 is the
 *                                             matrix unit's shape; with no
 *                                             type named, fp32 taken as TF32
 *   cutlass_80_tensorop_bf16_s16816gemm_bf16  types named
 *   cutlass_80_simt_sgemm_..., ampere_sgemm_  plain fp32
 *   nvjet_sm90_tst_128x64_...                 t bf16, h fp16, s fp32, d fp64,
 *                                             q and r fp8, o fp4: the first
 *                                             letter is A's type
 *   Cijk_Ailk_Bljk_BBS_BH_...                 AMD: B bf16, H fp16, S fp32,
 *                                             D fp64 of A first
 *
 * cuBLAS documents none of this; the words were collected by running products
 * and convolutions of every type and looking (tests/unit/test_kernel_dtype.c
 * has the names). The surprise: one program's fp32 products use TF32 kernels
 * and plain ones side by side, because small or odd shapes have no TF32
 * kernel. */
#include "names/kernel_names.h"

#include "base/array.h"
#include "names/name_class.h"
#include "names/pattern.h"
#include <ctype.h>

enum { HEAD = 2048 }; /* longer names repeat themselves */

/* clang-format off */
/* Kernels beside products: sums of their parts, changes of layout, transforms.
 * Also those with a matrix only by name: products with a vector, outer
 * products, depthwise convolutions (one channel each: nothing to multiply
 * with). */
static const char *const helpers[] = {
    "splitkreduce", "reducesplitk", "splitk_reduce", "epilogue::impl",
    "nchwtonhwc", "nhwctonchw", "tensortransform", "init_device_workspace",
    "winogradwgrad", "winogradforward", "winograddgrad", "generatewinograd",
    "dot_do_o", "convert_dq", "convert_dkv", "clear_dkvaccum",
    "splitkv_combine", "flash_fwd_splitkv_combine", "flip_filter", "fft2d_",
    "fft1d_", "precompute_indices", "scalepackedtensor", "converttensor",
    "settensor", "computeoffsets", "computebofsets", "im2col", "col2im", "gemv",
    "gemmk1", "dot_kernel", "depthwise", "grouped_direct", "dwconv", "_c1_k1",
    "reduce_wgrad", "elementwise", "reduce_kernel", "layer_norm", "softmax_",
    "nccl", "rccl", "memcpy", "memset", "scal_kernel", "bn_fw", "bn_bw",
    "kernel_conv_filter", "postgsu", NULL,
};

/* Words of products. They are looked for after the helpers. */
static const char *const products[] = {
    "gemm", "nvjet", "xmma_", "tensorop", "cutlass_", "cijk_", "wmma",
    "convolve", "dgrad", "wgrad", "fprop", "implicitgemm", "scudnn", "884cudnn",
    "1688cudnn", "16816cudnn", "8816cudnn", "winograd", "conv2d", "conv3d",
    "igemm", "miopen", "matmul", "fmha", "flash_fwd", "flash_bwd", "flashattn",
    "flash::", "_sdpa_", "attentionkernel", "attentionbackwardkernel",
    "attn_fwd", "attn_bwd", "flash_attention", "triton_tem_", "triton_mm",
    "fused_moe", "marlin", "mfma", "fused_attention", "flex_attention",
    "mha_fwd", "mha_bwd", NULL,
};

/* Words that tell of matrix units. */
static const char *const units[] = {
    "tensorop", "_tensor16x", "_tensor8x", "_tensor64x", "wmma", "hmma",
    "wgmma", "nvjet", "s884", "h884", "d884", "z884", "s1688", "h1688", "c1688",
    "d1688", "i8816", "s16816", "h16816", "d16816", "z16816", "i16832",
    "i16864", "s161616", "h161616", "i161616", "flash_fwd", "flash_bwd",
    "flash::", "flashattn", "_sdpa_", "fmha", "attentionkernel",
    "attentionbackwardkernel", "mfma", "xdl", "_mi16x16", "_mi32x32", "_mi4x4",
    "marlin", "umma", "gtcx", "tfloat32", "warpgroupsize", NULL,
};

/* Types as words; the first that is there decides: a kernel that names a narrow
 * type and fp32 multiplies the narrow one and sums in fp32. */
static const struct pattern types[] = {
    {DTYPE_TF32, NAMES("tf32", "tfloat32", "xf32", "c1688")},
    {DTYPE_FP4, NAMES("e2m1", "nvf4", "nvfp4", "mxfp4")},
    {DTYPE_FP8, NAMES("e4m3", "e5m2", "fp8", "float8")},
    {DTYPE_BF16, NAMES("bf16", "bfloat16", "bhalf")},
    {DTYPE_INT8, NAMES("gemm_s8", "gemm_u8", "_i8i8", "int8", "i8816", "i16832",
        "i161616", "signed char")},
    {DTYPE_FP16, NAMES("f16", "fp16", "float16", "half", "hgemm", "h884",
        "h1688", "h16816", "h161616", "s884", "s161616", "s16816")},
    {DTYPE_FP64, NAMES("f64", "double", "dgemm", "zgemm", "d884", "z884",
        "d16816", "d1688")},
    {DTYPE_TF32, NAMES("s1688")},
    {DTYPE_FP32, NAMES("sgemm", "cgemm", "scudnn", "f32", "fp32", "float")},
};
/* clang-format on */

/* From here on t is a name in lower case, with a NUL behind it. */
static enum dtype type_by_word(struct bytes t) {
    return (enum dtype)words_first(types, COUNT(types), t, DTYPE_UNKNOWN);
}

static enum dtype type_of_letter(char c) {
    static const char letters[] = "tbhsdqroi";
    static const uint8_t of[] = {
        DTYPE_BF16, DTYPE_BF16, DTYPE_FP16, DTYPE_FP32, DTYPE_FP64,
        DTYPE_FP8,  DTYPE_FP8,  DTYPE_FP4,  DTYPE_INT8,
    };
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? (enum dtype)of[at - letters] : DTYPE_UNKNOWN;
}

/* Reads nvjet[_sm90]_tst_...: matrix units have no plain fp32, so s is TF32. */
static enum dtype nvjet_type(struct bytes t) {
    const char *p = strstr((const char *)t.p, "nvjet_");
    if (!p) return DTYPE_UNKNOWN;
    p += 6;
    if (strncmp(p, "sm", 2) == 0 && isdigit((unsigned char)p[2])) {
        p += strcspn(p, "_");
        if (*p) p++;
    }
    size_t n = strcspn(p, "_");
    if (n < 3 || n > 6) return DTYPE_UNKNOWN;
    enum dtype d = type_of_letter(*p);
    return d == DTYPE_FP32 ? DTYPE_TF32 : d;
}

/* Reads Cijk_<A's indices>_<B's>_<types>_...: Tensile, for AMD's BLAS. */
static enum dtype tensile_type(struct bytes t) {
    const char *p = strstr((const char *)t.p, "cijk_");
    if (!p) return DTYPE_UNKNOWN;
    for (int i = 0; i < 3; i++) {
        p += strcspn(p, "_");
        if (!*p) return DTYPE_UNKNOWN;
        p++;
    }
    if (strncmp(p, "f8", 2) == 0 || strncmp(p, "b8", 2) == 0) return DTYPE_FP8;
    if (strncmp(p, "sx", 2) == 0 || strncmp(p, "s_mx", 4) == 0)
        return DTYPE_TF32;
    enum dtype d = type_of_letter(*p);
    bool known = *p == 'b' || *p == 'h' || *p == 's' || *p == 'd' || *p == 'i';
    return known ? d : DTYPE_UNKNOWN;
}

static enum dtype matrix_type(struct bytes t, bool tensor) {
    enum dtype d = nvjet_type(t);
    if (d == DTYPE_UNKNOWN) d = tensile_type(t);
    if (d != DTYPE_UNKNOWN) return d;
    d = type_by_word(t);
    /* Attention in f32 takes three TF32 products to reach the precision of one
     * in fp32, so it counts as full fp32. Other fp32 on NVIDIA's matrix units
     * is TF32 whether the name says so or not; AMD's units do have fp32. */
    bool nvidia = !word_in("cijk_", t) && !word_in("xdl", t) &&
                  !word_in("mfma", t) && !word_in("gtcx", t) &&
                  !word_in("fmha", t);
    if (d == DTYPE_FP32 && tensor && nvidia) return DTYPE_TF32;
    if (d == DTYPE_UNKNOWN && tensor && word_in("tensorop", t))
        return DTYPE_TF32;
    return d;
}

/* Returns the beginning of a name in lower case, in text. */
static struct bytes lower(uint8_t text[HEAD + 1], struct bytes name) {
    struct bytes t = {text, name.n < HEAD ? name.n : HEAD};
    for (size_t i = 0; i < t.n; i++) {
        int c = tolower(name.p[i]);
        text[i] = c ? (uint8_t)c : ' ';
    }
    text[t.n] = 0;
    return t;
}

struct kernel_kind kernel_kind_of(struct bytes name) {
    uint8_t text[HEAD + 1];
    struct bytes t = lower(text, name);
    struct kernel_kind k = {false, false, DTYPE_UNKNOWN};
    /* Attention's own kernels have words of the helpers in their names. */
    bool generated = word_in("triton_", t) && !word_in("triton_tem_", t) &&
                     !word_in("triton_mm", t);
    k.matrix = !generated && !words_in(helpers, t) && words_in(products, t);
    if (!k.matrix) {
        k.dtype = type_by_word(t);
        if (k.dtype == DTYPE_TF32) k.dtype = DTYPE_FP32;
        /* Optimizers take their scalars as double. */
        if (k.dtype == DTYPE_FP64 && word_in("float", t)) k.dtype = DTYPE_FP32;
        return k;
    }
    bool plain = word_in("ffma", t) || word_in("simt", t);
    k.tensor = !plain && words_in(units, t);
    k.dtype = matrix_type(t, k.tensor);
    /* These types run on no other unit, or the library uses no other. */
    bool only = k.dtype == DTYPE_TF32 || k.dtype == DTYPE_FP8 ||
                k.dtype == DTYPE_FP4;
    bool narrow = k.dtype == DTYPE_BF16 || k.dtype == DTYPE_FP16;
    if (only || (narrow && !plain && word_in("cutlass", t))) k.tensor = true;
    return k;
}

enum dtype kernel_kind_dtype(struct kernel_kind k, enum dtype op) {
    /* A name may have double for a scalar argument. */
    if (!k.matrix && op != DTYPE_UNKNOWN) return op;
    /* cuDNN writes f16 for both 16-bit types */
    if (k.dtype == DTYPE_FP16 && op == DTYPE_BF16) return op;
    if (k.dtype != DTYPE_UNKNOWN) return k.dtype;
    if (k.matrix && op == DTYPE_FP32) return DTYPE_UNKNOWN;
    return op;
}

bool kernel_is_joined(struct bytes name) {
    static const char *const words[] = {"multi_tensor", "fused", "triton",
                                        NULL};
    return words_in(words, name);
}

/* clang-format off */
static const struct pattern fusable[] = {
    {FUSE_NOT, NAMES("multi_tensor_apply", "triton")},
    {FUSE_STATS, NAMES("RowwiseMoments", "ComputeInternalGradients",
        "GammaBetaBackward", "batch_norm_collect_statistics",
        "batch_norm_backward_kernel", "batch_norm_backward_reduce",
        "bn_fw_tr_", "bn_bw_")},
    {FUSE_POINTWISE, NAMES("elementwise_kernel", "elementwise_grid_stride",
        "fused_dropout", "CatArrayBatchedCopy", "upsample_", "FusedParams",
        "batch_norm_transform_input", "batch_norm_backward_elemt", "triu_tril",
        "nchwToNhwc", "nhwcToNchw")},
    {FUSE_REDUCE, NAMES("reduce_kernel", "softmax", "SoftMax", "layer_norm",
        "LayerNorm", "rms_norm", "RMSNorm", "nll_loss")},
};
/* clang-format on */

enum kernel_fusable kernel_fusable(struct bytes name) {
    return (enum kernel_fusable)words_first(fusable, COUNT(fusable), name,
                                            FUSE_NOT);
}

bool kernel_is_layout(struct bytes name) {
    return word_in("nchwToNhwc", name) || word_in("nhwcToNchw", name);
}

bool kernel_is_slow_nchw(struct bytes name) {
    static const char *const words[] = {
        "batch_norm_collect_statistics_kernel",
        "batch_norm_transform_input_kernel",
        "batch_norm_backward_kernel",
        "batch_norm_backward_reduce_kernel",
        "batch_norm_backward_elemt_kernel",
        "max_pool_forward_nchw",
        "max_pool_backward_nchw",
        NULL,
    };
    return words_in(words, name);
}

bool kernel_is_helper(struct bytes name) {
    static const char *const words[] = {"splitK",         "splitk",
                                        "reduce_kernel",  "reduceKernel",
                                        "nchwToNhwc",     "nhwcToNchw",
                                        "transpose",      "memset",
                                        "Memset",         "convertTensor",
                                        "im2col",         "pad_",
                                        "computeOffsets", "scalePackedTensor",
                                        "setZero",        NULL};
    return words_in(words, name);
}

/* clang-format off */
static const struct pattern copies[] = {
    {COPY_H2D, NAMES("HtoD", "H2D", "HToD", "HostToDevice",
        "HOST_TO_DEVICE")},
    {COPY_D2H, NAMES("DtoH", "D2H", "DToH", "DeviceToHost",
        "DEVICE_TO_HOST")},
    {COPY_P2P, NAMES("PtoP", "P2P", "PToP", "PeerToPeer")},
    {COPY_D2D, NAMES("DtoD", "D2D", "DToD", "DeviceToDevice",
        "DEVICE_TO_DEVICE")},
    {COPY_H2H, NAMES("HtoH", "H2H", "HToH")},
    {COPY_H2D, NAMES("h2d")},
    {COPY_D2H, NAMES("d2h")},
    {COPY_D2D, NAMES("d2d")},
    {COPY_P2P, NAMES("p2p")},
    {COPY_MEMSET, NAMES("Memset", "memset")},
};
/* clang-format on */

enum copy_kind copy_kind_of(struct bytes name) {
    return (enum copy_kind)words_first(copies, COUNT(copies), name, COPY_OTHER);
}

/* ---- classes ---- */

/* clang-format off */
/* Words of a name without its parameters, in lower case; the first row with one
 * that is there decides. So what is particular stands before what is general:
 * implicit_convolve_sgemm is a convolution, and torch's elementwise kernels are
 * many things, by what stands in their brackets. */
static const struct pattern classes[] = {
    {KERNEL_COLLECTIVE, NAMES("nccl", "rccl", "cross_device_reduce",
        "all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter",
        "reducescatter", "alltoall", "all_to_all", "nvshmem")},
    {KERNEL_ATTENTION, NAMES("fmha", "flash_fwd", "flash_bwd", "flash::",
        "flashattn", "flash_attn", "flash_attention", "_sdpa_",
        "attentionkernel", "attentionbackwardkernel", "attn_fwd", "attn_bwd",
        "fused_attention", "flex_attention", "paged_attention", "mha_fwd",
        "mha_bwd", "compute_dot_do_o", "convert_dq_to", "splitkv_combine")},
    {KERNEL_REDUCTION, NAMES("splitkreduce", "splitk_reduce", "reducesplitk",
        "reduce_wgrad")},
    {KERNEL_COPY, NAMES("nchwtonhwc", "nhwctonchw", "memcpy", "memset",
        "catarraybatchedcopy", "direct_copy_kernel", "float16_copy_kernel",
        "native::copy<", "batch_transpose", "transpose_readwrite",
        "transposekernel", "swapdimension")},
    {KERNEL_CONVOLUTION, NAMES("convolve", "dgrad", "wgrad", "fprop",
        "implicitgemm", "scudnn", "884cudnn", "1688cudnn", "16816cudnn",
        "winograd", "conv2d", "conv3d", "conv1d", "depthwise", "im2col",
        "col2im", "miopensp3asmconv", "miopenconv", "igemm_fwd_gtc",
        "igemm_bwd_gtc", "igemm_wrw_gtc", "kernel_grouped_conv")},
    {KERNEL_NORMALIZATION, NAMES("bn_fw", "bn_bw", "batch_norm", "batchnorm",
        "layer_norm", "layernorm", "rms_norm", "rmsnorm", "group_norm",
        "groupnorm", "instance_norm", "gammabetabackward", "rowwisemoments")},
    {KERNEL_SOFTMAX, NAMES("softmax")},
    {KERNEL_GEMM, NAMES("gemm", "nvjet", "cijk_", "gemv", "matmul", "marlin")},
    {KERNEL_POOLING, NAMES("max_pool", "maxpool", "avg_pool", "avgpool",
        "pooling_fw", "pooling_bw", "adaptive_average")},
    {KERNEL_OPTIMIZER, NAMES("fusedoptimizer", "fusedadam", "fusedsgd",
        "fused_adam", "fused_sgd", "multi_tensor_adam", "adamfunctor")},
    {KERNEL_REDUCTION, NAMES("lpnorm")},
    {KERNEL_INDEXING, NAMES("embedding", "index_elementwise", "index_select",
        "indexselect", "index_put", "indexing_backward", "gather", "scatter")},
    {KERNEL_REDUCTION, NAMES("reduce", "reduction", "dot_kernel")},
    {KERNEL_POINTWISE, NAMES("elementwise", "pointwise", "multi_tensor_apply",
        "_gpu_dt_", "tensorcwise", "biasnhwc", "biasnchw", "fused_dropout")},
};

/* What Inductor calls its kernels: by the loop, then by what is fused in it. */
static const struct pattern triton_reductions[] = {
    {KERNEL_NORMALIZATION, NAMES("_norm_", "_norm", "var_mean")},
    {KERNEL_SOFTMAX, NAMES("softmax")},
    {KERNEL_REDUCTION, NAMES("triton_")},
};
static const struct pattern triton_templates[] = {
    {KERNEL_ATTENTION, NAMES("attention")},
    {KERNEL_CONVOLUTION, NAMES("convolution")},
    {KERNEL_GEMM, NAMES("mm_", "_mm", "matmul")},
};

/* Names of XLA: the instruction, perhaps with what its fusion ends in, and a
 * number behind it. Patterns of whole names. */
static const struct pattern hlo_classes[] = {
    {KERNEL_CONVOLUTION, NAMES("convolution*", "cudnn-conv*")},
    {KERNEL_GEMM, NAMES("dot", "dot.*", "dot_general*", "gemm_fusion*",
        "cublas-*", "triton_gemm*")},
    {KERNEL_SOFTMAX, NAMES("triton_softmax*")},
    {KERNEL_REDUCTION, NAMES("reduce", "reduce.*", "reduce_*",
        "input_reduce_fusion*", "loop_reduce_fusion*", "wrapped_reduce*")},
    {KERNEL_COPY, NAMES("copy", "copy.*", "copy_*", "copy-start*",
        "copy-done*", "transpose*", "input_transpose_fusion*",
        "loop_transpose_fusion*", "loop_copy_fusion*", "wrapped_copy*",
        "wrapped_transpose*", "wrapped_concatenate*", "wrapped_slice*",
        "loop_concatenate_fusion*", "loop_slice_fusion*", "concatenate*",
        "slice.*", "dynamic-slice*", "loop_dynamic_slice_fusion*",
        "dynamic-update-slice*", "loop_dynamic_update_slice_fusion*",
        "bitcast*", "input_concatenate_fusion*", "input_slice_fusion*")},
    {KERNEL_INDEXING, NAMES("gather*", "scatter*", "loop_gather_fusion*",
        "loop_scatter_fusion*", "input_scatter_fusion*", "wrapped_gather*",
        "wrapped_scatter*")},
    {KERNEL_POINTWISE, NAMES("loop_*", "wrapped_add*",
        "wrapped_subtract*", "wrapped_multiply*", "wrapped_divide*",
        "wrapped_maximum*", "wrapped_minimum*", "wrapped_exp*", "wrapped_log*",
        "wrapped_tanh*", "wrapped_sqrt*", "wrapped_rsqrt*", "wrapped_negate*",
        "wrapped_power*", "wrapped_compare*", "wrapped_select*",
        "wrapped_convert*", "wrapped_and*", "wrapped_or*", "wrapped_not*",
        "wrapped_abs*", "wrapped_broadcast*", "wrapped_iota*")},
};
/* clang-format on */

/* Returns the name without the parameters at its end: f<a>(b) becomes f<a>. */
static struct bytes without_parameters(struct bytes t) {
    size_t i = t.n;
    int depth = 0;
    if (t.n == 0 || t.p[t.n - 1] != ')') return t;
    do {
        i--;
        depth += (t.p[i] == ')') - (t.p[i] == '(');
    } while (i > 0 && depth > 0);
    return i > 0 ? (struct bytes){t.p, i} : t;
}

/* Returns the class of what Inductor wrote: triton_<loop>_fused_<ops>. */
static enum kernel_class triton_class(struct bytes t) {
    if (word_in("triton_poi_", t)) return KERNEL_POINTWISE;
    if (word_in("triton_red_", t) || word_in("triton_per_", t))
        return (enum kernel_class)words_first(triton_reductions,
                                              COUNT(triton_reductions), t,
                                              KERNEL_REDUCTION);
    if (word_in("triton_tem_", t) || word_in("triton_mm", t))
        return (enum kernel_class)words_first(triton_templates,
                                              COUNT(triton_templates), t,
                                              KERNEL_OTHER);
    return KERNEL_OTHER;
}

enum kernel_class kernel_class_of(struct bytes name) {
    uint8_t text[HEAD + 1];
    struct bytes t = without_parameters(lower(text, name));
    if (name_classify(name) & (CLASS_COMM | CLASS_COMM_HLO))
        return KERNEL_COLLECTIVE;
    enum kernel_class c = (enum kernel_class)pattern_first(hlo_classes,
                                                           COUNT(hlo_classes),
                                                           t, KERNEL_OTHER);
    if (c != KERNEL_OTHER) return c;
    if (BYTES_STARTS(t, "triton_")) return triton_class(t);
    return (enum kernel_class)words_first(classes, COUNT(classes), t,
                                          KERNEL_OTHER);
}

const char *kernel_class_name(enum kernel_class c) {
    static const char *const names[KERNEL_CLASSES] = {
        "other",     "gemm",    "convolution", "attention", "normalization",
        "softmax",   "pooling", "optimizer",   "reduction", "indexing",
        "pointwise", "copy",    "collective",
    };
    return names[c];
}
