/* SPDX-License-Identifier: Apache-2.0
 * device_peak: names as drivers write them find their row and no other; what
 * no row knows is worked out; --device-peak has the last word. */
#include "tiny.h"

#include "analyze/cost/device_peak.h"
#include <math.h>

static void near(double got, double want, double by) {
    assert_true(fabs(got - want) <= by);
}

static void named(const char *model, double bf16_tera, double gb_per_s) {
    struct device_peak p;
    assert_true(device_peak_by_name(bytes_of(model), 0, &p));
    assert_non_null(p.source);
    near(p.flops[DTYPE_BF16], bf16_tera * 1e12, 1e6);
    near(p.bytes_per_s, gb_per_s * 1e9, 1e3);
}

static void names_find_their_row(void **state) {
    (void)state;
    named("NVIDIA H200", 989.4, 4800);
    named("NVIDIA H200 NVL", 835.5, 4800);
    named("NVIDIA H100 80GB HBM3", 989.4, 3350);
    named("NVIDIA H100 PCIe", 756, 2039);
    named("NVIDIA H100 NVL", 835.5, 3900);
    named("NVIDIA H20", 148, 4000);
    named("NVIDIA GH200 480GB", 989.4, 4000);
    named("NVIDIA GH200 144G HBM3e", 989.4, 4900);
    named("NVIDIA A100-SXM4-40GB", 312, 1555);
    named("NVIDIA A100-SXM4-80GB", 312, 2039);
    named("NVIDIA A100 80GB PCIe", 312, 1935);
    named("A100-SXM4-40GB", 312, 1555);
    named("NVIDIA A10", 125, 600);
    named("NVIDIA A10G", 70, 600);
    named("NVIDIA L4", 121, 300);
    named("NVIDIA L40", 181, 864);
    named("NVIDIA L40S", 362, 864);
    named("NVIDIA B200", 2250, 7700);
    named("NVIDIA GB200", 2500, 8000);
    named("NVIDIA GeForce RTX 3090", 71.2, 936);
    named("NVIDIA GeForce RTX 3090 Ti", 80, 1008);
    named("NVIDIA GeForce RTX 4070 Ti SUPER", 88.2, 672);
    named("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 503.8, 1792);
    named("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 438.9,
          1792);
    named("AMD Instinct MI300X", 1307.4, 5300);
    named("AMD Instinct MI250X", 191.5, 1638);
    named("TPU v5 lite", 197, 819);
    named("TPU v5p", 459, 2765);
    named("TPU v6e", 918, 1640);
    named("Tesla T4", 0, 320);
    named("Tesla V100-SXM2-16GB", 0, 900);
}

static void types_have_their_own_peaks(void **state) {
    (void)state;
    struct device_peak p;
    assert_true(device_peak_by_name(bytes_of("NVIDIA H200"), 132, &p));
    near(p.flops[DTYPE_TF32] * 2, p.flops[DTYPE_BF16], 1e6);
    near(device_peak_flops(&p, DTYPE_FP32, true), 67e12, 1e6);
    near(device_peak_flops(&p, DTYPE_BF16, false), 67e12, 1e6);
    near(device_peak_flops(&p, DTYPE_FP64, true), 67e12, 1e6);
    near(device_peak_flops(&p, DTYPE_FP64, false), 33.5e12, 1e6);
    assert_int_equal(dtype_bits(DTYPE_BF16), 16);
    assert_int_equal(dtype_bits(DTYPE_TF32), 32);
    assert_true(device_peak_by_name(bytes_of("AMD Instinct MI210"), 0, &p));
    near(device_peak_flops(&p, DTYPE_FP32, true), 45.3e12, 1e6);
}

/* No row is out of proportion: a slip of a digit would be. */
static void rows_are_plausible(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int units;
        double v[10], bw, link;
        const char *source;
    } rows[] = {
#define X(words, units, a, b, c, d, e, f, g, h, i, j, bw, link, source)        \
    {words, units, {a, b, c, d, e, f, g, h, i, j}, bw, link, source},
#include "analyze/cost/device_peaks.def"
#undef X
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const double *v = rows[k].v;
        struct device_peak p;
        /* the row is reached by its own words */
        assert_true(device_peak_by_name(bytes_of(rows[k].words), 0, &p));
        assert_string_equal(p.source, rows[k].source);
        assert_true(v[0] <= v[2] || v[2] == 0); /* fp64 <= fp32 */
        assert_true(v[4] <= v[5]);              /* tf32 <= fp16 */
        assert_true(v[6] == 0 || v[5] == 0 || v[6] <= v[5]);
        assert_true(v[7] == 0 || (v[7] > 1.9 * v[6] && v[7] < 2.1 * v[6]));
        assert_true(rows[k].bw >= 80 && rows[k].bw <= 8000);
        double best = v[6] > v[5] ? v[6] : v[5] > v[2] ? v[5] : v[2];
        assert_true(best * 1e3 / rows[k].bw > 10); /* ridge, FLOP/byte */
        assert_true(best * 1e3 / rows[k].bw < 800);
    }
}

static void slices_and_strangers(void **state) {
    (void)state;
    struct device_peak p;
    /* MIG 1g: 14 of 108 SMs */
    assert_true(
        device_peak_by_name(bytes_of("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), 14,
                            &p));
    near(p.flops[DTYPE_BF16], 312e12 * 14 / 108, 1e6);
    assert_non_null(strstr(p.source, "14 of 108"));
    assert_false(
        device_peak_by_name(bytes_of("NVIDIA GeForce RTX 4090 Laptop GPU"), 76,
                            &p));
    assert_false(device_peak_by_name(bytes_of("NVIDIA A1000"), 0, &p));
    assert_false(device_peak_by_name(bytes_of(""), 0, &p));
    assert_null(p.source);
}

static uint32_t device(struct trace *t, const char *model) {
    uint32_t d = trace_device(t, 0, DEVICE_GPU, 0);
    t->devices[d].model = trace_str(t, bytes_of(model));
    return d;
}

static void unknown_names_are_worked_out(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t d = device(t, "NVIDIA Graphics Device");
    struct device_peak p;
    struct ops_err e;
    assert_false(device_peak_of(t, d, NULL, &p, &e));
    assert_int_equal(e.code, 0);
    t->devices[d].units = 132;
    t->devices[d].clock_hz = 1980000000;
    t->devices[d].cc_major = 9;
    t->devices[d].bandwidth_bytes_per_s = 4814304000000;
    assert_true(device_peak_of(t, d, NULL, &p, &e));
    /* XProf's figures for the same device */
    near(p.flops[DTYPE_FP16], 1070530.56e9, 1);
    near(p.bytes_per_s, 4814.304e9, 1);
    assert_string_equal(p.source, "132 units x 1.98 GHz, compute capability "
                                  "9.0; memory: the profile");
    near(p.flops[DTYPE_FP16] / p.bytes_per_s, 222.365, 0.001);
    t->devices[d].model = trace_str(t, bytes_of("AMD Radeon Graphics"));
    assert_true(device_peak_of(t, d, NULL, &p, &e));
    near(p.flops[DTYPE_FP16], 0, 0);
    assert_string_equal(p.source, "the profile's own figure");
    assert_true(device_peak_of(t, ROW_NONE, "fp32=1e12", &p, &e));
    assert_false(device_peak_of(t, ROW_NONE, NULL, &p, &e));
    trace_free(t);
}

static void a_tpu_core_says_what_it_can(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t d = trace_device(t, 0, DEVICE_TPU, 0);
    struct device_peak p;
    struct ops_err e;
    t->devices[d].model = trace_str(t, bytes_of("TPU v3"));
    assert_true(device_peak_of(t, d, NULL, &p, &e));
    near(p.flops[DTYPE_BF16], 123e12, 1);
    t->devices[d].peak_flops = 61500000000000;
    t->devices[d].bandwidth_bytes_per_s = 450000000000;
    assert_true(device_peak_of(t, d, NULL, &p, &e));
    near(p.flops[DTYPE_BF16], 61.5e12, 1);
    near(p.bytes_per_s, 450e9, 1);
    trace_free(t);
}

static void override_has_the_last_word(void **state) {
    (void)state;
    struct trace *t = tiny_new(true, false);
    uint32_t d = device(t, "NVIDIA H200");
    struct device_peak p;
    struct ops_err e;
    assert_true(device_peak_of(t, d, "bf16=500e12, tf32=250T,bw=4e12,link=55G",
                               &p, &e));
    near(p.flops[DTYPE_BF16], 500e12, 1);
    near(p.flops[DTYPE_TF32], 250e12, 1);
    near(p.flops[DTYPE_FP32], 67e12, 1);
    near(p.bytes_per_s, 4e12, 1);
    near(p.link_bytes_per_s, 55e9, 1);
    assert_string_equal(p.source, "--device-peak");
    static const char *const bad[] = {"bf17=1", "bf16",     "bf16=", "bw=x",
                                      "bw=-1",  "bw=1e400", "bw=1Z", "int64=1",
                                      "bw=nan", "bf16=1=2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(device_peak_of(t, d, bad[i], &p, &e));
        assert_int_equal(e.code, OPS_EUSAGE);
    }
    trace_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_find_their_row),
        cmocka_unit_test(types_have_their_own_peaks),
        cmocka_unit_test(rows_are_plausible),
        cmocka_unit_test(slices_and_strangers),
        cmocka_unit_test(unknown_names_are_worked_out),
        cmocka_unit_test(a_tpu_core_says_what_it_can),
        cmocka_unit_test(override_has_the_last_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
