/* SPDX-License-Identifier: Apache-2.0
 * XStat: {1 metadata_id, one of 2 double, 3 uint64, 4 int64, 5 string,
 * 6 bytes, 7 reference to a stat name used as a string}. */
#include "import/xspace/xspace.h"

#include <stdlib.h>

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
