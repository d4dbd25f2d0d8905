/* SPDX-License-Identifier: Apache-2.0
 * What names say: one real spelling at least for each class, and names that
 * look like one but are not. */
#include "names/name_class.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint16_t class_of(const char *s) { return name_classify(bytes_of(s)); }

static void real_names_are_known(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint16_t class;
    } v[] = {
        {"ProfilerStep#12", CLASS_STEP},
        {"Profiled batch", CLASS_STEP},
        {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
         CLASS_INPUT},
        {"Iterator::Prefetch", CLASS_INPUT | CLASS_ITERATOR},
        {"IteratorGetNext:IteratorGetNext", CLASS_INPUT},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage"
         "<4096ul>)",
         CLASS_COMM},
        {"nccl:all_reduce", CLASS_COMM},
        {"gloo:all_reduce", CLASS_COMM | CLASS_COMM_CPU},
        {"c10d::allreduce_", CLASS_COMM},
        {"all-reduce.17", CLASS_COMM_HLO},
        {"barrier-cores.5", CLASS_COMM_HLO},
        {"recv-done.2", CLASS_COMM_HLO},
        {"cudaLaunchKernelExC", CLASS_LAUNCH},
        {"cuLaunchKernelEx", CLASS_LAUNCH},
        {"cudaGraphLaunch", CLASS_LAUNCH | CLASS_GRAPH},
        {"hipExtModuleLaunchKernel", CLASS_LAUNCH},
        {"cudaMemcpyAsync", CLASS_COPY},
        {"cudaMemsetAsync", CLASS_COPY},
        {"cudaStreamSynchronize", CLASS_SYNC},
        {"cudaMalloc", CLASS_ALLOC},
        {"Optimizer.step#Adam.step", CLASS_OPTIMIZER},
        {"autograd::engine::evaluate_function: MmBackward0", CLASS_BACKWARD},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
         CLASS_TENSOR_CORE},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>",
         CLASS_TENSOR_CORE},
        {"nvjet_tst_128x64_64x8", CLASS_TENSOR_CORE},
        {"EagerExecute: MatMul", CLASS_WRAPPER},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        assert_int_equal(class_of(v[i].name), v[i].class);
}

static void what_only_looks_like_one_is_not(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const v[] = {
        "", "aten::mm", "my ProfilerStep#1", "cudaEventRecord",
        "void at::native::vectorized_elementwise_kernel<4>", "forward",
        "reduce_kernel", "xIterator::Map", "send", "recv",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        assert_int_equal(class_of(v[i]), 0);
    /* xmma kernels exist for plain fp32 units, too */
    assert_int_equal(class_of("sm80_xmma_gemm_f32f32_ffma_tn"), 0);
}

static void a_very_long_name_takes_no_time(void **state) {
    (void)state;
    enum { BIG = 1 << 20 };
    char *s = malloc(BIG + 1);
    assert_non_null(s);
    memset(s, 'k', BIG);
    s[BIG] = '\0';
    memcpy(s, "cudaLaunch", 10);
    assert_int_equal(class_of(s), CLASS_LAUNCH);
    memcpy(s + BIG - 9, "Backward0", 9);
    assert_int_equal(class_of(s), CLASS_LAUNCH | CLASS_BACKWARD);
    free(s);
}

static void queues_wait_copy_and_work(void **state) {
    (void)state;
    assert_int_equal(queue_word_of(bytes_of("event_wait")), QUEUE_WAIT);
    assert_int_equal(queue_word_of(bytes_of("event_record")), QUEUE_WAIT);
    assert_int_equal(queue_word_of(bytes_of("dma_request")), QUEUE_COPY);
    assert_int_equal(queue_word_of(bytes_of("pe_exe")), QUEUE_WORK);
    assert_int_equal(queue_word_of(bytes_of("")), QUEUE_WORK);
}

static void step_numbers_stand_at_the_end(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t n;
    } v[] = {
        {"ProfilerStep#12", 12},
        {"train 7", 7},
        {"train", -1},
        {"7", -1},
        {"x7", -1},
        {"step #0", 0},
        {"#", -1},
        {"", -1},
        {"a 123456789012345678", INT64_C(123456789012345678)},
        {"a 1234567890123456789", -1},
        {"a 9 b", -1},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        assert_int_equal(name_step_number(bytes_of(v[i].name)), v[i].n);
}

static void steps_are_grouped_as_torch_does(void **state) {
    (void)state;
    assert_int_equal(name_group_prefix(bytes_of("ProfilerStep#3")), 12);
    assert_int_equal(name_group_prefix(bytes_of("aten::mm")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_names_are_known),
        cmocka_unit_test(what_only_looks_like_one_is_not),
        cmocka_unit_test(a_very_long_name_takes_no_time),
        cmocka_unit_test(queues_wait_copy_and_work),
        cmocka_unit_test(step_numbers_stand_at_the_end),
        cmocka_unit_test(steps_are_grouped_as_torch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
