/* SPDX-License-Identifier: Apache-2.0
 * Classes of kernels, by names as libraries write them. Those of tests/data are
 * in tests/truth/kernel_class_check.py. */
#include "names/kernel_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* clang-format off */
static const struct {
    const char *name, *class;
} cases[] = {
    {"nvjet_sm90_tst_128x64_64x8_1x2_h_bz_bias_TNT", "gemm"},
    {"void gemv2T_kernel_val<int, int, float, float>(cublasGemvParams)",
     "gemm"},
    {"Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT64x16x16", "gemm"},
    {"dot_general.3", "gemm"},
    {"void implicit_convolve_sgemm<float, float, 1024>(int, int)",
     "convolution"},
    {"sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc",
     "convolution"},
    {"void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel"
     "<1, float, int>(int)", "convolution"},
    {"convolution.12", "convolution"},
    {"fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
     "attention"},
    {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(int)",
     "attention"},
    {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel"
     "<float, float>(int)", "normalization"},
    {"void cudnn::bn_fw_tr_1C11_singleread<float, 512>(int)", "normalization"},
    {"void (anonymous namespace)::softmax_warp_forward<float>(float*)",
     "softmax"},
    {"void at::native::(anonymous namespace)::max_pool_forward_nchw<float>(int)",
     "pooling"},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
     "FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4> >()",
     "optimizer"},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
     "TensorListMetadata<1>, BinaryOpScalarFunctor<float, 1, 1, 0> >()",
     "pointwise"},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
     "TensorListMetadata<1>, LpNormFunctor<float, 2> >()", "reduction"},
    {"void at::native::reduce_kernel<512, 1, ReduceOp<float> >(ReduceOp)",
     "reduction"},
    {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)",
     "reduction"},
    {"input_reduce_fusion_2", "reduction"},
    {"void at::native::(anonymous namespace)::embedding_backward_feature_kernel"
     "<float>(long const*)", "indexing"},
    {"void at::native::index_elementwise_kernel<128, 4, gpu_index>(long)",
     "indexing"},
    {"void at::native::vectorized_elementwise_kernel<4, FillFunctor<float> >()",
     "pointwise"},
    {"Mul_GPU_DT_FLOAT_DT_FLOAT_kernel", "pointwise"},
    {"loop_add_fusion.7", "pointwise"},
    {"void at::native::elementwise_kernel<128, 2, gpu_kernel_impl_nocast<"
     "direct_copy_kernel_cuda(TensorIteratorBase&)::{lambda()#3}> >(int)",
     "copy"},
    {"void cudnn::engines_precompiled::nchwToNhwcKernel<float>(int)", "copy"},
    {"copy-start.3", "copy"},
    {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)",
     "collective"},
    {"all-reduce.1", "collective"},
    {"triton_poi_fused__to_copy_native_layer_norm_7", "pointwise"},
    {"triton_per_fused_add_native_layer_norm_backward_6", "normalization"},
    {"triton_red_fused__log_softmax_0", "softmax"},
    {"triton_red_fused_sum_4", "reduction"},
    {"triton_tem_fused_addmm_3", "gemm"},
    {"triton_tem_fused_7", "other"},
    {"at::cuda::(anonymous namespace)::spin_kernel(long)", "other"},
    {"my_kernel(float*)", "other"},
    /* words of parameters say nothing of the kernel */
    {"my_kernel(gemm_params, softmax_params)", "other"},
    {"fusion.16", "other"},
    {"custom-call.2", "other"},
    {"", "other"},
    {")", "other"},
};
/* clang-format on */

static void names_say_what_kernels_do(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes name = bytes_of(cases[i].name);
        const char *got = kernel_class_name(kernel_class_of(name));
        if (strcmp(got, cases[i].class) != 0)
            fail_msg("%s: %s, not %s", cases[i].name, got, cases[i].class);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_what_kernels_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
