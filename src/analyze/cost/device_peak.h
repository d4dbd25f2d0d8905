/* SPDX-License-Identifier: Apache-2.0
 * What a device can do at best, per data type, without sparsity: by the name
 * that the profile gives it (device_peaks.def, from the vendors' datasheets),
 * else worked out from its architecture, units and clock, else not known. */
#ifndef ANALYZE_COST_DEVICE_PEAK_H
#define ANALYZE_COST_DEVICE_PEAK_H

#include "model/trace.h"
#include "names/dtype.h"

/* 0 stands for what is not known, or what the device does not have. */
struct device_peak {
    double flops[DTYPE_N];   /* FLOP/s; the vector units' for fp64 and fp32, the
                              matrix units' for all others */
    double matrix_fp64;      /* of the matrix units, where they take fp64 ... */
    double matrix_fp32;      /* ... and plain fp32 (AMD) */
    double bytes_per_s;      /* the device's memory */
    double link_bytes_per_s; /* host to device, one direction: what the link
                                can do; a pinned copy comes to some 85 % */
    const char *source;      /* where the figures are from; NULL: not known */
    char text[96];           /* what source points to when it is composed */
};

/* Finds the peaks of a device (ROW_NONE: the host). override_text,
 * "bf16=989e12, bw=4.8e12", replaces what it names; it may be NULL. Returns
 * true if something is known; false if nothing is, or the override is wrong:
 * then e is filled, which is zeroed first. out->source may point into *out: do
 * not copy the struct. */
bool device_peak_of(const struct trace *t, uint32_t device,
                    const char *override_text, struct device_peak *out,
                    struct ops_err *e);

/* Does the same for a name as it stands in a trace; units: SMs or CUs in use
 * (0: all), which makes the figures those of a part of the device. */
bool device_peak_by_name(struct bytes model, int64_t units,
                         struct device_peak *out);

/* Returns the FLOP/s for work in that type; matrix: on the matrix units. 0 if
 * not known. Work that is no matrix work runs on the vector units, in fp32 at
 * most. */
double device_peak_flops(const struct device_peak *p, enum dtype d,
                         bool matrix);

#endif
