/* SPDX-License-Identifier: Apache-2.0
 * Peaks: a name is cut into words (letters and digits: "A100-SXM4-80GB" is
 * A100, SXM4, 80GB) and the first row of the table fits whose words are all
 * there, so that A10 never takes A100 for itself. A device that the table does
 * not know is worked out from its compute capability: units x clock x
 * operations per unit and cycle, as NVIDIA's programming guide lists them.
 *
 * Two things surprise. A slice of a GPU (MIG, an AMD partition) carries the
 * whole one's name: it has fewer units, and its share of the peak. And a
 * laptop's GPU carries the name of the desktop's, which it is not. */
#include "analyze/cost/device_peak.h"

#include "base/array.h"
#include "base/err.h"
#include "base/text/cut.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define TERA 1e12
#define GIGA 1e9

struct peak_row {
    const char *words;
    int units;
    double fp64, fp64m, fp32, fp32m, tf32, fp16, bf16, fp8, fp4, int8;
    double gb_per_s, link;
    const char *source;
};

static const struct peak_row rows[] = {
#define X(...) {__VA_ARGS__},
#include "analyze/cost/device_peaks.def"
#undef X
};

/* Reads the next word of letters and digits. Returns false at the end. */
static bool next_word(struct bytes *rest, struct bytes *word) {
    while (rest->n > 0 && !isalnum(*rest->p)) {
        rest->p++;
        rest->n--;
    }
    *word = (struct bytes){rest->p, 0};
    while (rest->n > 0 && isalnum(*rest->p)) {
        rest->p++;
        rest->n--;
        word->n++;
    }
    return word->n > 0;
}

static bool has_word(struct bytes model, struct bytes word) {
    struct bytes w;
    while (next_word(&model, &w))
        if (w.n == word.n &&
            strncasecmp((const char *)w.p, (const char *)word.p, w.n) == 0)
            return true;
    return false;
}

/* Fills in the row's rates, each by * unit FLOP/s. */
static void put_rates(const struct peak_row *r, double by, double unit,
                      struct device_peak *out) {
    *out = (struct device_peak){.matrix_fp64 = by * r->fp64m * unit,
                                .matrix_fp32 = by * r->fp32m * unit};
    out->flops[DTYPE_FP64] = by * r->fp64 * unit;
    out->flops[DTYPE_FP32] = by * r->fp32 * unit;
    out->flops[DTYPE_TF32] = by * r->tf32 * unit;
    out->flops[DTYPE_FP16] = by * r->fp16 * unit;
    out->flops[DTYPE_BF16] = by * r->bf16 * unit;
    out->flops[DTYPE_FP8] = by * r->fp8 * unit;
    out->flops[DTYPE_FP4] = by * r->fp4 * unit;
    out->flops[DTYPE_INT8] = by * r->int8 * unit;
}

bool device_peak_by_name(struct bytes model, int64_t units,
                         struct device_peak *out) {
    *out = (struct device_peak){0};
    if (has_word(model, bytes_of("Laptop"))) return false;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct peak_row *r = &rows[i];
        struct bytes rest = bytes_of(r->words), w;
        bool fits = true;
        while (fits && next_word(&rest, &w)) fits = has_word(model, w);
        if (!fits) continue;
        /* Salvaged parts of one name differ by a few units: only a plain slice
         * is scaled. */
        bool slice = units > 0 && units < r->units && units * 10 < r->units * 9;
        double part = slice ? (double)units / r->units : 1;
        put_rates(r, part, TERA, out);
        out->bytes_per_s = part * r->gb_per_s * GIGA;
        out->link_bytes_per_s = r->link * GIGA;
        out->source = r->source;
        if (slice) {
            snprintf(out->text, sizeof out->text, "%s, %d of %d units",
                     r->source, (int)units, r->units);
            out->source = out->text;
        }
        return true;
    }
    return false;
}

/* Operations per unit and cycle by compute capability, a multiply and an add
 * being two; a capability that is not listed is as the one before it. Matrix
 * rates of 8.6, 8.9 and 12.0 are the professional cards', which only GeForce
 * cards (all in the table) halve. */
static const struct peak_row per_cycle[] = {
    /* units: the capability, 10 x major + minor */
    {"", 50, 4, 0, 256, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
    {"", 60, 64, 0, 128, 0, 0, 256, 0, 0, 0, 0, 0, 0, NULL},
    {"", 61, 8, 0, 256, 0, 0, 0, 0, 0, 0, 1024, 0, 0, NULL},
    {"", 70, 64, 0, 128, 0, 0, 1024, 0, 0, 0, 0, 0, 0, NULL},
    {"", 75, 4, 0, 128, 0, 0, 1024, 0, 0, 0, 2048, 0, 0, NULL},
    {"", 80, 64, 128, 128, 0, 1024, 2048, 2048, 0, 0, 4096, 0, 0, NULL},
    {"", 86, 4, 0, 256, 0, 512, 1024, 1024, 0, 0, 2048, 0, 0, NULL},
    {"", 89, 4, 0, 256, 0, 512, 1024, 1024, 2048, 0, 2048, 0, 0, NULL},
    {"", 90, 128, 256, 256, 0, 2048, 4096, 4096, 8192, 0, 8192, 0, 0, NULL},
    {"", 100, 128, 128, 256, 0, 4096, 8192, 8192, 16384, 32768, 16384, 0, 0,
     NULL},
    {"", 103, 4, 4, 256, 0, 4096, 8192, 8192, 16384, 49152, 512, 0, 0, NULL},
    {"", 120, 4, 0, 256, 0, 512, 1024, 1024, 2048, 4096, 2048, 0, 0, NULL},
};

static bool peak_by_clock(const struct device *d, struct device_peak *out) {
    const struct peak_row *k = NULL;
    int cc = d->cc_major * 10 + d->cc_minor;
    for (size_t i = 0; i < COUNT(per_cycle); i++)
        if (per_cycle[i].units <= cc) k = &per_cycle[i];
    if (!k || d->cc_minor > 9 || d->units <= 0 || d->clock_hz <= 0)
        return false;
    double cycles = (double)d->units * (double)d->clock_hz;
    put_rates(k, cycles, 1, out);
    snprintf(out->text, sizeof out->text,
             "%d units x %.2f GHz, compute capability %d.%d", (int)d->units,
             (double)d->clock_hz / GIGA, d->cc_major, d->cc_minor);
    out->source = out->text;
    return true;
}

static const char own_figure[] = "the profile's own figure";

/* Says that the memory's figure is not from where the others are. */
static void say_memory(struct device_peak *out) {
    if (out->source == own_figure) return;
    char rest[sizeof out->text];
    snprintf(rest, sizeof rest, "%s", out->source);
    snprintf(out->text, sizeof out->text, "%.*s; memory: the profile",
             CUT(70, rest));
    out->source = out->text;
}

static bool peak_recorded(const struct trace *t, uint32_t device,
                          struct device_peak *out) {
    if (device == ROW_NONE) return false;
    assert(device < t->ndevices);
    const struct device *d = &t->devices[device];
    struct bytes model = strs_bytes(&t->strs, d->model);
    bool known = device_peak_by_name(model, d->units, out);
    /* Compute capabilities are NVIDIA's: AMD's numbers mean something else. */
    bool amd = has_word(model, bytes_of("AMD")) ||
               has_word(model, bytes_of("Radeon")) ||
               has_word(model, bytes_of("Instinct")) ||
               BYTES_STARTS(model, "gfx");
    if (!known && d->kind == DEVICE_GPU && !amd) known = peak_by_clock(d, out);
    /* A TPU's plane is one core of a chip, and says what that can do. */
    if (d->kind == DEVICE_TPU && d->peak_flops > 0) {
        double part = known && out->flops[DTYPE_BF16] > 0
                          ? (double)d->peak_flops / out->flops[DTYPE_BF16]
                          : 1;
        out->flops[DTYPE_BF16] = (double)d->peak_flops;
        out->flops[DTYPE_INT8] *= part;
        out->flops[DTYPE_FP8] *= part;
        if (!known) out->source = own_figure;
        known = true;
    }
    /* The memory's own clock and width say it best: one name has come with
     * several memories. */
    if (d->bandwidth_bytes_per_s > 0) {
        out->bytes_per_s = (double)d->bandwidth_bytes_per_s;
        if (!known) out->source = own_figure;
        else say_memory(out);
        known = true;
    }
    return known;
}

/* Returns the number in "989e12", "989T", "4.8e12", if it is > 0; else -1. It
 * ends at a comma or at the end. */
static double value_at(const char *text, const char **end) {
    static const char units[] = "KMGTP";
    char *stop;
    errno = 0;
    double v = strtod(text, &stop);
    if (stop == text || errno == ERANGE || !isfinite(v) || v <= 0) return -1;
    const char *unit = *stop ? strchr(units, toupper((unsigned char)*stop))
                             : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++) v *= 1e3;
        stop++;
    }
    while (*stop == ' ') stop++;
    if ((*stop && *stop != ',') || !isfinite(v)) return -1;
    *end = stop;
    return v;
}

static int override_peaks(const char *text, struct device_peak *p,
                          struct ops_err *e) {
    const char *s = text;
    while (*s) {
        while (*s == ' ' || *s == ',') s++;
        size_t n = strcspn(s, "=,");
        struct bytes key = {(const uint8_t *)s, n};
        if (n == 0) break;
        enum dtype d = dtype_by_name(key);
        double *to = BYTES_IS(key, "bw")     ? &p->bytes_per_s
                     : BYTES_IS(key, "link") ? &p->link_bytes_per_s
                     : d == DTYPE_UNKNOWN || d > DTYPE_INT8 ? NULL
                                                            : &p->flops[d];
        if (!to)
            return fail(e, OPS_EUSAGE,
                        "--device-peak: '%.*s' is none of fp64, fp32, tf32, "
                        "fp16, bf16, fp8, fp4, int8, bw, link",
                        CUT_BYTES(40, key));
        *to = s[n] == '=' ? value_at(s + n + 1, &s) : -1;
        if (*to < 0)
            return fail(e, OPS_EUSAGE,
                        "--device-peak: '%.*s' needs a value in FLOP/s or "
                        "bytes/s, such as bf16=989e12 or bw=4.8e12",
                        CUT_BYTES(40, key));
        if (to == &p->flops[DTYPE_FP64]) p->matrix_fp64 = 0;
        if (to == &p->flops[DTYPE_FP32]) p->matrix_fp32 = 0;
        p->source = "--device-peak";
    }
    return 0;
}

bool device_peak_of(const struct trace *t, uint32_t device,
                    const char *override_text, struct device_peak *out,
                    struct ops_err *e) {
    *out = (struct device_peak){0};
    *e = (struct ops_err){0};
    bool known = peak_recorded(t, device, out);
    if (!override_text) return known;
    if (override_peaks(override_text, out, e) != 0) return false;
    return out->source != NULL;
}

double device_peak_flops(const struct device_peak *p, enum dtype d,
                         bool matrix) {
    assert(d < DTYPE_N);
    if (d == DTYPE_UINT8) d = DTYPE_INT8; /* the same units */
    if (d == DTYPE_FP64)
        return matrix && p->matrix_fp64 > 0 ? p->matrix_fp64 : p->flops[d];
    if (!matrix) return p->flops[DTYPE_FP32];
    if (d == DTYPE_FP32 && p->matrix_fp32 > 0) return p->matrix_fp32;
    return p->flops[d];
}
