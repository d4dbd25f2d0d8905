/* SPDX-License-Identifier: Apache-2.0
 * kernel_dtype: names as they occur. Most were recorded on an H200 (CUDA 13)
 * while products, convolutions and attention of one known type ran; those of
 * older and other devices are from public profiles. */
#include "tiny.h"

#include "names/kernel_names.h"

/* 'm' matrix work, 't' on matrix units as well, '-' neither */
static const struct {
    char kind;
    enum dtype type;
    const char *name;
} names[] = {
    /* full fp32: what low-precision-off is about */
    {'m', DTYPE_FP32,
     "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_"
     "warpsize4x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas"},
    {'m', DTYPE_FP32,
     "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>("
     "cutlass_80_simt_sgemm_128x256_8x4_nt_align1::Params)"},
    {'m', DTYPE_FP32,
     "void sgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>(float*, float "
     "const*, float const*, int, int)"},
    {'m', DTYPE_FP32, "ampere_sgemm_128x64_tn"},
    {'m', DTYPE_FP32, "volta_sgemm_32x128_nn"},
    {'m', DTYPE_FP32, "ampere_scudnn_128x64_relu_xregs_large_nn_v1"},
    {'m', DTYPE_FP32,
     "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, "
     "false, false, true>(int, int, int, float const*)"},
    {'m', DTYPE_FP32,
     "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)"},
    {'m', DTYPE_FP32,
     "void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int)"},
    {'m', DTYPE_FP32,
     "sm80_xmma_gemm_cf32cf32_f32f32_cf32_nn_n_tilesize32x32x8_stage3_"
     "warpsize2x2x1_ffma_aligna8_alignc8_execute_kernel__5x_cublas"},
    {'m', DTYPE_FP32, "Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1_NLCA1"},
    {'t', DTYPE_FP32,
     "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::"
     "AttentionKernel<float, cutlass::arch::Sm80, true, 64, 64, 64>::Params)"},
    /* TF32 */
    {'t', DTYPE_TF32,
     "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize128x256x32_"
     "warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas"},
    {'t', DTYPE_TF32,
     "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_"
     "tilesize128x64x32_stage5_warpsize2x2x1_g1_tensor16x8x8_execute_kernel"},
    {'t', DTYPE_TF32,
     "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_"
     "align4>(cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4::Params)"},
    {'t', DTYPE_TF32,
     "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_"
     "tf32_256x64_16x4_nhwc_align4>(...)"},
    {'t', DTYPE_TF32,
     "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolution"
     "INS1_11threadblock22ImplicitGemmMultistageINS_4gemm9GemmShapeILi64ELi64E"
     "Li32EEENS4_52Conv2dWgradOutputGradientTileAccessIteratorOptimizedINS_11"
     "MatrixShapeILi64ELi32EEENS_10tfloat32_tENS_9transform"},
    {'t', DTYPE_TF32, "cutlass_tensorop_s1688tf32gemm_256x128_16x3_nn_align4"},
    {'t', DTYPE_TF32, "nvjet_sm100_sss_128x128_32x6_2x1_2cta_v_bz_TNN"},
    /* 16 bits */
    {'t', DTYPE_BF16, "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_bias_TNT"},
    {'t', DTYPE_BF16, "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNN"},
    {'t', DTYPE_FP16, "nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_bias_NNT"},
    {'t', DTYPE_FP16, "nvjet_sm90_hss_320x128_64x3_1x2_h_bz_coopB_TNT"},
    {'t', DTYPE_BF16,
     "sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_"
     "nhwc_tilesize64x64x64_warpgroupsize1x1x1_g1_execute_split_k_kernel"},
    {'t', DTYPE_FP16,
     "sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f16f16_f16f32_f32_"
     "nhwckrsc_nhwc_tilesize128x16x64_stage1_warpsize4x1x1_g1_tensor16x8x16"},
    {'t', DTYPE_BF16,
     "void cutlass::Kernel2<cutlass_75_tensorop_s1688gemm_bf16_64x64_nn_"
     "align1>(cutlass_75_tensorop_s1688gemm_bf16_64x64_nn_align1::Params)"},
    {'t', DTYPE_FP16,
     "void cutlass::Kernel2<cutlass_75_wmma_tensorop_f16_s161616gemm_f16_"
     "32x32_64x1_nn_align1>(...)"},
    {'t', DTYPE_FP16, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"},
    {'t', DTYPE_FP16, "volta_h884gemm_64x128_ldg8_nn"},
    {'t', DTYPE_FP16, "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn"},
    {'t', DTYPE_FP16, "ampere_fp16_s16816gemm_fp16_128x64_ldg8_relu_f2f_tn"},
    {'t', DTYPE_BF16, "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn"},
    {'t', DTYPE_FP16, "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_f2f_exp"},
    {'t', DTYPE_BF16,
     "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, "
     "128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<64, 128, "
     "128, 4, cutlass::bfloat16_t> >, false, true>(...)"},
    {'t', DTYPE_FP16,
     "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<"
     "Flash_bwd_kernel_traits<64, 128, 128, 8, cutlass::half_t> >(...)"},
    {'t', DTYPE_FP16,
     "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_"
     "64x128x64_4x1x1_cga1x1x1_kernel0_0"},
    {'t', DTYPE_BF16,
     "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0"},
    {'t', DTYPE_FP16, "Cijk_Alik_Bljk_HHS_BH_MT256x128x32_MI16x16x16x1_SN"},
    /* 16 bits on plain units */
    {'m', DTYPE_BF16,
     "void precomputed_convolve_sgemm<__nv_bfloat16, 128, 6, 7, 3, 3, 5, 1, "
     "false>(int, int, int, __nv_bfloat16 const*)"},
    /* the others */
    {'t', DTYPE_FP8, "nvjet_sm90_qqtst_64x8_128x16_2x4_h_bz_algo2_TNT"},
    {'t', DTYPE_FP8, "deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u>"},
    {'t', DTYPE_INT8,
     "void cutlass::Kernel2<cutlass_80_wmma_tensorop_i161616gemm_s8_"
     "forwardCompat_128x128_32x2_nn_align4>(...)"},
    {'t', DTYPE_FP64,
     "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_32x32_16x5_nn_"
     "align1>(cutlass_80_tensorop_d884gemm_32x32_16x5_nn_align1::Params)"},
    {'t', DTYPE_FP64,
     "sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize128x64x16_stage3_"
     "warpsize2x2x1_tensor16x8x8_execute_kernel__5x_cublas"},
    {'m', DTYPE_FP64,
     "void implicit_convolve_dgemm<128, 6, 7, 3, 3, 5, 1, false, true, true>("
     "int, int, int, double const*)"},
    {'m', DTYPE_UNKNOWN, "triton_tem_fused_addmm_relu_t_0"},
    {'m', DTYPE_UNKNOWN, "gemm_fusion_dot_2"},
    /* no product, though the name has one's words */
    {'-', DTYPE_FP32,
     "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, "
     "float, false, float, float, float, true, false, false, false>(...)"},
    {'-', DTYPE_UNKNOWN,
     "void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel"
     "<xmma__5x_cudnn::implicit_gemm::wgrad_indexed::Warp_specialized_params>"},
    {'-', DTYPE_FP32,
     "void cutlass__5x_cudnn::Kernel<cutlass__5x_cudnn::reduction::kernel::"
     "ReduceSplitK<cutlass__5x_cudnn::MatrixShape<4, 128>, float>"},
    {'-', DTYPE_BF16,
     "void cudnn::winograd_nonfused::winogradWgradData4x4<float, "
     "__nv_bfloat16>(...)"},
    {'-', DTYPE_FP32,
     "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, "
     "float, float, float, float, false, true, false, false, 9>"},
    {'-', DTYPE_FP32,
     "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel"
     "<3, float, int>(...)"},
    {'-', DTYPE_BF16,
     "void pytorch_flash::flash_bwd_dot_do_o_kernel<true, "
     "Flash_bwd_kernel_traits<64, 128, 128, 8, cutlass::bfloat16_t> >"},
    {'-', DTYPE_UNKNOWN, "triton_poi_fused_addmm_relu_threshold_backward_7"},
    {'-', DTYPE_FP32,
     "void at::native::vectorized_elementwise_kernel<4, at::native::"
     "CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"},
    {'-', DTYPE_UNKNOWN, "dgrad2d_c1_k1_nhwc_specialized"}, /* depthwise */
    {'-', DTYPE_UNKNOWN, "wgrad2d_c1_k1_nhwc_reduce"},
    {'-', DTYPE_FP32,
     "void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>(void*)"},
    {'-', DTYPE_UNKNOWN, "ncclDevKernel_AllReduce_Sum_f3"},
    {'-', DTYPE_UNKNOWN, "wrapped_subtract"},
    {'-', DTYPE_UNKNOWN, ""},
};

static void names_as_they_occur(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct kernel_kind k = kernel_kind_of(bytes_of(names[i].name));
        char kind = !k.matrix ? '-' : k.tensor ? 't' : 'm';
        if (kind != names[i].kind || k.dtype != names[i].type)
            print_error("%s: %c %s\n", names[i].name, kind,
                        dtype_name(k.dtype));
        assert_int_equal(kind, names[i].kind);
        assert_int_equal(k.dtype, names[i].type);
    }
}

static void the_op_decides_what_a_name_leaves_open(void **state) {
    (void)state;
    struct bytes triton = bytes_of("triton_tem_fused_mm_0");
    assert_true(kernel_kind_of(triton).matrix);
    assert_int_equal(kernel_kind_dtype(kernel_kind_of(triton), DTYPE_BF16),
                     DTYPE_BF16);
    /* TF32 or not: nobody knows */
    assert_int_equal(kernel_kind_dtype(kernel_kind_of(triton), DTYPE_FP32),
                     DTYPE_UNKNOWN);
    struct bytes sdpa = bytes_of("cudnn_generated_fort_native_sdpa_f16_k");
    assert_int_equal(kernel_kind_dtype(kernel_kind_of(sdpa), DTYPE_BF16),
                     DTYPE_BF16);
    assert_int_equal(kernel_kind_dtype(kernel_kind_of(sdpa), DTYPE_FP16),
                     DTYPE_FP16);
    struct bytes sgemm = bytes_of("ampere_sgemm_128x64_tn");
    assert_int_equal(kernel_kind_dtype(kernel_kind_of(sgemm), DTYPE_BF16),
                     DTYPE_FP32);
    struct bytes adam = bytes_of("multi_tensor_apply_kernel<double>");
    assert_int_equal(kernel_kind_dtype(kernel_kind_of(adam), DTYPE_FP32),
                     DTYPE_FP32);
}

/* Names are input: any bytes, any length. */
static void hostile_names(void **state) {
    (void)state;
    static uint8_t b[10000];
    for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)(i * 31);
    kernel_kind_of((struct bytes){b, sizeof b});
    kernel_kind_of((struct bytes){b, 0});
    assert_false(kernel_kind_of(bytes_of("nvjet")).matrix &&
                 kernel_kind_of(bytes_of("nvjet_")).dtype != DTYPE_UNKNOWN);
    kernel_kind_of(bytes_of("nvjet_sm90"));
    kernel_kind_of(bytes_of("Cijk_a_b"));
    kernel_kind_of(bytes_of("Cijk_a_b_"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_as_they_occur),
        cmocka_unit_test(the_op_decides_what_a_name_leaves_open),
        cmocka_unit_test(hostile_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
