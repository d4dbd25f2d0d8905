/* SPDX-License-Identifier: Apache-2.0
 * Stats, and what planes say of themselves in them: the device's figures,
 * versions, the process, the compiled modules. XStat: {1 metadata_id, one of
 * 2 double, 3 uint64, 4 int64, 5 string, 6 bytes, 7 reference to a stat name
 * used as a string}. */
#include "base/text/cut.h"
#include "import/xspace/xspace.h"
#include "model/trace_fill.h"

#include "base/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Does the wire type fit the field of XStat? */
static bool wire_fits(uint32_t num, uint32_t wire) {
    switch (num) {
    case XSTAT_METADATA_ID:
    case XVAL_UINT:
    case XVAL_INT:
    case XVAL_REF: return wire == PB_VARINT;
    case XVAL_DOUBLE: return wire == PB_FIXED64;
    case XVAL_STR:
    case XVAL_BYTES: return wire == PB_BYTES;
    default: return false;
    }
}

bool xstat_read(struct bytes body, uint64_t *id, struct xval *v) {
    struct pb r = pb_reader(body);
    struct pb_field f;
    *id = 0;
    *v = (struct xval){.type = XVAL_NONE};
    bool fits = true;
    while (pb_next(&r, &f)) {
        if (f.num > XVAL_REF) continue;
        if (!wire_fits(f.num, f.wire)) {
            fits = false;
        } else if (f.num == XSTAT_METADATA_ID) {
            *id = f.value;
        } else {
            v->type = (enum xtype)f.num;
            v->u = f.value;
            v->b = f.wire == PB_BYTES ? f.bytes : bytes_of("");
        }
    }
    return fits && !r.bad;
}

struct bytes xval_text(const struct xplane *p, const struct xval *v) {
    if (v->type == XVAL_STR || v->type == XVAL_BYTES) return v->b;
    if (v->type != XVAL_REF) return bytes_of("");
    uint32_t i = xids_get(&p->stat_ids, v->u);
    return i == MAP_NONE ? bytes_of("") : p->stats[i].name;
}

double xval_num(const struct xplane *p, const struct xval *v) {
    if (v->type == XVAL_DOUBLE) return pb_double(v->u);
    if (v->type == XVAL_UINT) return (double)v->u;
    if (v->type == XVAL_INT) return (double)(int64_t)v->u;
    char text[40];
    struct bytes b = xval_text(p, v);
    size_t n = b.n < sizeof text - 1 ? b.n : sizeof text - 1;
    if (n > 0) memcpy(text, b.p, n);
    text[n] = 0;
    return strtod(text, NULL);
}

int64_t xval_int(const struct xplane *p, const struct xval *v) {
    if (v->type == XVAL_UINT || v->type == XVAL_INT) return (int64_t)v->u;
    double d = xval_num(p, v);
    if (!(d > -9.2e18 && d < 9.2e18)) return 0;
    return (int64_t)d;
}

uint32_t xplane_fact(const struct xplane *p, size_t i, struct xval *v) {
    uint64_t id;
    if (!xstat_read(p->facts[i], &id, v)) return MAP_NONE;
    return xids_get(&p->stat_ids, id);
}

int64_t xplane_fact_int(const struct xplane *p, const char *name,
                        int64_t dflt) {
    struct xval v;
    for (size_t i = p->nfacts; i-- > 0;) {
        uint32_t s = xplane_fact(p, i, &v);
        if (s != MAP_NONE && bytes_eq(p->stats[s].name, name, strlen(name)))
            return xval_int(p, &v);
    }
    return dflt;
}

/* Returns a figure that fits an integer; else 0: not recorded. */
static double within(double v) { return v > 0 && v < 9e18 ? v : 0; }

static void device_fact(struct xspace *x, struct xplane *p, struct bytes name,
                        const struct xval *v) {
    struct device *d = &x->t->devices[p->device];
    int64_t i = xval_int(p, v);
    if (i < 0) i = 0;
    if (BYTES_IS(name, "clock_rate") && i < INT64_MAX / 1000)
        d->clock_hz = i * 1000;
    else if (BYTES_IS(name, "core_count")) d->units = i;
    else if (BYTES_IS(name, "memory_bandwidth")) d->bandwidth_bytes_per_s = i;
    else if (BYTES_IS(name, "memory_size")) d->memory_bytes = i;
    else if (BYTES_IS(name, "compute_cap_major")) d->cc_major = (int)(i % 1000);
    else if (BYTES_IS(name, "compute_cap_minor")) d->cc_minor = (int)(i % 1000);
    else if (BYTES_IS(name, "peak_hbm_bw_gigabytes_per_second"))
        d->bandwidth_bytes_per_s = (int64_t)within(xval_num(p, v) * 1e9);
    else if (BYTES_IS(name, "peak_teraflops_per_second"))
        d->peak_flops = (int64_t)within(xval_num(p, v) * 1e12);
    else if (BYTES_IS(name, "gpu_device_name") ||
             BYTES_IS(name, "device_type_string"))
        d->model = trace_str(x->t, xval_text(p, v));
}

void xplane_meta(struct xspace *x, const struct xplane *p, struct bytes name,
                 const struct xval *v) {
    char key[64], value[40] = "";
    if (name.n == 0 || name.n >= sizeof key || v->type == XVAL_BYTES) return;
    memcpy(key, name.p, name.n);
    key[name.n] = 0;
    if (v->type == XVAL_DOUBLE)
        snprintf(value, sizeof value, "%.15g", pb_double(v->u));
    else if (v->type == XVAL_INT)
        snprintf(value, sizeof value, "%" PRId64, (int64_t)v->u);
    else if (v->type == XVAL_UINT)
        snprintf(value, sizeof value, "%" PRIu64, v->u);
    trace_meta(x->t, x->source, key,
               value[0] != '\0' ? bytes_of(value) : xval_text(p, v));
}

/* Returns the program's number in "jit_step(8623)"; 0 if there is none. */
static uint64_t label_number(struct bytes b) {
    uint64_t v = 0;
    size_t at = b.n;
    while (at > 0 && b.p[at - 1] != '(') at--;
    for (; at > 0 && at < b.n && b.p[at] >= '0' && b.p[at] <= '9'; at++)
        v = v * 10 + (uint64_t)(b.p[at] - '0');
    return v;
}

/* Is this where a compiled module stands? Others hold the program before or
 * behind the compiler: MLIR, machine code. */
static bool is_hlo_stat(const struct xplane *p, uint64_t id) {
    static const char name[] = "hlo proto";
    uint32_t s = xids_get(&p->stat_ids, id);
    return s != MAP_NONE && p->stats[s].name.n == sizeof name - 1 &&
           strncasecmp((const char *)p->stats[s].name.p, name,
                       sizeof name - 1) == 0;
}

/* Keeps the compiled modules: name(program), and how large the stored HLO
 * is. */
static void module_facts(struct xspace *x, const struct xplane *p) {
    for (size_t i = 0; i < p->nnames; i++) {
        struct pb r = pb_reader(p->names[i].raw);
        struct pb_field f;
        struct bytes proto = {p->body.p, 0};
        while (pb_next(&r, &f)) {
            uint64_t id;
            struct xval v;
            if (f.num != XEVENTMETA_STATS || f.wire != PB_BYTES) continue;
            if (xstat_read(f.bytes, &id, &v) && v.type == XVAL_BYTES &&
                is_hlo_stat(p, id))
                proto = v.b;
        }
        char text[256];
        struct bytes n = p->names[i].name;
        if (proto.n == 0) continue;
        xspace_hlo(x, n, label_number(n), proto);
        cut_fmt(text, sizeof text, "%.*s %zu bytes", CUT_BYTES(200, n),
                proto.n);
        trace_meta(x->t, x->source, "hlo_module", bytes_of(text));
    }
}

void xplane_facts(struct xspace *x, struct xplane *p) {
    bool scopes = BYTES_STARTS(p->name, "/host:__ScopeRangeCallStack__");
    struct source *source = &x->t->sources[x->source];
    if (p->own) {
        xplane_own_facts(x, p);
        return;
    }
    for (size_t i = 0; i < p->nfacts; i++) {
        uint64_t id;
        struct xval v;
        if (!xstat_read(p->facts[i], &id, &v)) {
            if (!xplane_torn(x, p, p->facts[i]))
                trace_note(x->t, NOTE_BAD_FIELD, 1);
            continue;
        }
        uint32_t s = xids_get(&p->stat_ids, id);
        if (s == MAP_NONE) continue;
        struct bytes name = p->stats[s].name;
        if (BYTES_IS(name, FACT_PROCESS_ID)) {
            if (source->pid < 0) source->pid = xval_int(p, &v);
            /* merged planes of other processes carry theirs in the name */
            if (p->kind == XPLANE_HOST && p->pid == 0) p->pid = xval_int(p, &v);
        } else if (BYTES_IS(name, FACT_DROPPED) && xval_int(p, &v) > 0)
            trace_note(x->t, NOTE_DROPPED_AT_SOURCE, (uint64_t)xval_int(p, &v));
        else if (p->outside && BYTES_IS(name, FACT_HOST_NAME))
            source->host = trace_str(x->t, xval_text(p, &v));
        else if (p->device != ROW_NONE) device_fact(x, p, name, &v);
        else if (!scopes) xplane_meta(x, p, name, &v);
    }
    if (BYTES_IS(p->name, "/host:metadata")) module_facts(x, p);
}
