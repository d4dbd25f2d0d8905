/* SPDX-License-Identifier: Apache-2.0
 * Names that are cut and still differ. */
#include "present/apart.h"

#include "base/arena.h"
#include "base/io/sink.h"
#include "present/width.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Cuts n names as a column of that width does. */
static void cut_all(struct cut *v, const char *const *names, size_t n,
                    size_t width, bool symbols, struct arena *a) {
    for (size_t i = 0; i < n; i++) {
        struct sink s;
        sink_memory(&s);
        if (symbols) symbol_put_fit(&s, names[i], width, "…");
        else text_put_fit(&s, names[i], width, "…");
        v[i] = (struct cut){.full = names[i],
                            .shown = arena_copy(a, s.buf, s.n),
                            .width = width};
        sink_free(&s);
        if (text_width(names[i]) <= width) v[i].full = NULL;
    }
    assert_true(cuts_apart(v, n, symbols, "…", a));
}

/* Are all cuts as wide as they may be, and alike exactly where the names are
 * the same? */
static void assert_apart(const char *const *names, size_t n, size_t width,
                         bool symbols) {
    struct arena a = {0};
    struct cut *v = calloc(n, sizeof *v);
    assert_non_null(v);
    cut_all(v, names, n, width, symbols, &a);
    for (size_t i = 0; i < n; i++) {
        if (text_width(v[i].shown) > width)
            fail_msg("over %zu: %s", width, v[i].shown);
        for (size_t k = 0; k < i; k++)
            if ((strcmp(names[i], names[k]) == 0) !=
                (strcmp(v[i].shown, v[k].shown) == 0))
                fail_msg("%zu: %s\n%s\n%s", width, v[i].shown, names[i],
                         names[k]);
    }
    free(v);
    arena_free(&a);
}

static void kernels_of_one_library_differ(void **state) {
    (void)state;
    /* clang-format off */
    static const char *const names[] = {
        "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_"
        "nhwc_tilesize64x64x32_warpgroupsize1x1x1_g1_execute_split_k_kernel",
        "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_"
        "nhwc_tilesize64x64x32_warpgroupsize1x1x1_g1_execute_segment_k_kernel",
        "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_"
        "nhwc_tilesize128x64x32_warpgroupsize1x1x1_g1_execute_split_k_kernel",
        "sm90_xmma_dgrad_implicit_gemm_indexed_f32f32_tf32f32_f32_nhwckrsc_"
        "nhwc_tilesize256x64x32_warpgroupsize1x1x1_g1_strided_execute_kernel",
        "sm90_xmma_dgrad_implicit_gemm_indexed_f32f32_tf32f32_f32_nhwckrsc_"
        "nhwc_tilesize256x64x32_warpgroupsize1x1x1_g1_strided_execute_kernel",
        "void at::native::vectorized_elementwise_kernel<4, at::native::"
        "FillFunctor<int>, std::array<char*, 1ul> >(int, at::native::"
        "FillFunctor<int>, std::array<char*, 1ul>)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::"
        "CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::"
        "CUDAFunctor_add<float>, std::array<char*, 3ul>)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::"
        "CUDAFunctor_add<double>, std::array<char*, 3ul> >(int, at::native::"
        "CUDAFunctor_add<double>, std::array<char*, 3ul>)",
    };
    /* clang-format on */
    for (size_t w = 16; w < 200; w++) {
        assert_apart(names, sizeof names / sizeof *names, w, true);
        assert_apart(names, sizeof names / sizeof *names, w, false);
    }
}

static void what_differs_is_shown(void **state) {
    (void)state;
    static const char *const names[] = {
        "gemm_f32_nhwckrsc_nhwc_tilesize64x64_warps2_execute_kernel",
        "gemm_f32_nhwckrsc_nhwc_tilesize128x64_warps2_execute_kernel",
        "gemm_f32_nhwckrsc_nhwc_tilesize128x64_warps4_execute_kernel",
    };
    struct arena a = {0};
    struct cut v[3];
    cut_all(v, names, 3, 32, false, &a);
    assert_string_equal(v[0].shown, "gemm_f32_nhwckrsc…tilesize64x64…");
    assert_string_equal(v[1].shown, "gemm_f32_…tilesize128x64_warps2…");
    assert_string_equal(v[2].shown, "gemm_f32_…tilesize128x64_warps4…");
    arena_free(&a);
}

/* Names made to be alike: each begins with the one before it, or they differ
 * only in what a screen shows as the same, or far behind. */
static void whatever_they_are_they_differ(void **state) {
    (void)state;
    enum { N = 120, LONG = 6000 };
    char **names = calloc(N, sizeof *names);
    assert_non_null(names);
    for (size_t i = 0; i < N; i++) {
        names[i] = malloc(LONG + 2);
        assert_non_null(names[i]);
        memset(names[i], 'x', LONG);
        if (i % 3 == 0) snprintf(names[i] + 40 + i, 8, "y");
        else if (i % 3 == 1) {
            names[i][LONG] = (char)(1 + i % 31);
            names[i][LONG + 1] = '\0';
            names[i][50] = (char)('a' + i % 7);
        } else
            snprintf(names[i], LONG, "日本語日本語日本語日本語日本語%zu本", i);
    }
    for (size_t w = 12; w < 60; w += 5)
        assert_apart((const char *const *)names, N, w, w % 2);
    for (size_t i = 0; i < N; i++) free(names[i]);
    free(names);
}

/* The first part that paths share is left out, and not that of a single one. */
static void shared_heads_are_left_out(void **state) {
    (void)state;
    const char *names[] = {
        "StatefulPartitionedCall/net_1/conv_1/Relu",
        "StatefulPartitionedCall/gradient_tape/net_1/conv_1/ReluGrad",
        "SomethingElseThatIsLong/net_1/convolution/Relu",
        "StatefulPartitionedCall/"};
    struct arena a = {0};
    struct cut v[4];
    cut_all(v, names, 4, 22, false, &a);
    assert_string_equal(v[0].shown, "…/net_1/conv_1/Relu");
    assert_memory_equal(v[1].shown, "…/gradient", strlen("…/gradient"));
    assert_memory_equal(v[2].shown, "Something", strlen("Something"));
    assert_memory_equal(v[3].shown, "Stateful", strlen("Stateful"));
    for (size_t w = 8; w < 70; w++) assert_apart(names, 4, w, false);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_one_library_differ),
        cmocka_unit_test(what_differs_is_shown),
        cmocka_unit_test(whatever_they_are_they_differ),
        cmocka_unit_test(shared_heads_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
