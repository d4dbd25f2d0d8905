/* SPDX-License-Identifier: Apache-2.0
 * One call of a row that misses a count would make its rates wrong if its time
 * were counted and its work not: such calls are summed apart. */
#include "analyze/cost/roof_sums.h"

#include "analyze/cost/device_peak.h"
#include "base/sum.h"
#include <assert.h>

static void add(struct roof_sum *s, const struct roof_work *w) {
    s->calls++;
    sum_add(&s->time, w->time);
    if (w->flops > 0) sum_add(&s->flops, w->flops);
    if (w->bytes > 0) sum_add(&s->bytes, w->bytes);
}

/* What is not known of a product's type has no peak; work that is no product
 * runs on the vector units whatever its type. Where their peak is not known
 * (TPUs), that of the matrix units stands for it: too high, but memory limits
 * such work long before. */
static double peak_of(const struct roof_work *w, const struct device_peak *p) {
    if (w->matrix && w->type == DTYPE_UNKNOWN) return 0;
    double v = device_peak_flops(p, w->type, w->matrix);
    return v <= 0 && !w->matrix ? p->flops[DTYPE_BF16] : v;
}

void roof_add(struct roof *r, const struct roof_work *w,
              const struct device_peak *p) {
    assert(w->type < DTYPE_N && w->time >= 0);
    r->calls++;
    sum_add(&r->time, w->time);
    sum_add(&r->type_time[w->type], w->time);
    if (w->flops < 0 && w->bytes < 0) return;
    if (w->bytes < 0) {
        add(&r->flops, w);
        return;
    }
    if (w->flops < 0) {
        add(&r->bytes, w);
        return;
    }
    add(&r->both, w);
    double peak = w->flops > 0 ? peak_of(w, p) : 1;
    if (peak <= 0 || p->bytes_per_s <= 0) {
        r->no_peak = true;
        return;
    }
    r->compute_s += (double)w->flops / peak;
    r->memory_s += (double)w->bytes / p->bytes_per_s;
    if (w->matrix) r->matrix_s += (double)w->flops / peak;
}

const struct roof_sum *roof_known(const struct roof *r) {
    if (r->both.calls > 0) return &r->both;
    return r->flops.calls > 0 ? &r->flops : &r->bytes;
}

static bool has_roof(const struct roof *r) {
    return r->both.calls > 0 && !r->no_peak &&
           (r->compute_s > 0 || r->memory_s > 0);
}

const char *roof_bound(const struct roof *r) {
    if (!has_roof(r)) return "unknown";
    return r->compute_s >= r->memory_s ? "compute" : "memory";
}

double roof_of_peak(const struct roof *r) {
    if (!has_roof(r) || r->both.time <= 0) return -1;
    double least = r->compute_s > r->memory_s ? r->compute_s : r->memory_s;
    return 100 * least / ((double)r->both.time * 1e-12);
}

double roof_peak_flops(const struct roof *r) {
    if (!has_roof(r) || r->compute_s <= 0) return 0;
    return (double)r->both.flops / r->compute_s;
}

double roof_peak_bytes(const struct roof *r) {
    if (!has_roof(r) || r->memory_s <= 0) return 0;
    return (double)r->both.bytes / r->memory_s;
}

enum dtype roof_type(const struct roof *r) {
    int best = DTYPE_UNKNOWN;
    for (int i = 0; i < DTYPE_N; i++)
        if (r->type_time[i] > r->type_time[best]) best = i;
    return (enum dtype)best;
}
