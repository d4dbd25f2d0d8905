/* SPDX-License-Identifier: Apache-2.0
 * Kineto writes one argument per fact; XSpace packs them in one text of
 * key:value pairs, separated by blanks or newlines. */
#include "analyze/shared/kernel_args.h"
#include "base/sum.h"
#include "model/args.h"
#include "model/hlo/hlo.h"
#include "names/hlo_text.h"
#include "names/pattern.h"
#include <stdlib.h>

/* Any number of spans may share one text. A real one has two hundred bytes or
 * so: of a longer one only the beginning is read, up to its last blank. */
enum { MOST = 1024 };

static struct bytes beginning(struct bytes b) {
    if (b.n <= MOST) return b;
    b.n = MOST;
    while (b.n > 0 && b.p[b.n - 1] != ' ' && b.p[b.n - 1] != '\n') b.n--;
    return b;
}

/* Reads a number with sign and fraction of at most 31 characters, or dflt. */
static double to_double(struct bytes b, double dflt) {
    char buf[32], *end;
    if (b.n == 0 || b.n >= sizeof buf) return dflt;
    memcpy(buf, b.p, b.n);
    buf[b.n] = '\0';
    double v = strtod(buf, &end);
    if (end == buf || !(v > -1e18 && v < 1e18)) return dflt;
    return v;
}

static int64_t to_int(struct bytes b, int64_t dflt) {
    int64_t v = 0;
    if (b.n == 0 || b.n > 18) return dflt;
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] < '0' || b.p[i] > '9') return dflt;
        v = v * 10 + (b.p[i] - '0');
    }
    return v;
}

/* Reads "[2, 1, 1]" or "2,1,1": all three numbers or none. */
static void to_dim3(struct bytes b, int64_t out[3]) {
    int64_t v[3];
    size_t i = 0;
    b = beginning(b);
    for (int k = 0; k < 3; k++) {
        while (i < b.n && (b.p[i] < '0' || b.p[i] > '9')) i++;
        size_t from = i;
        while (i < b.n && b.p[i] >= '0' && b.p[i] <= '9') i++;
        v[k] = to_int((struct bytes){b.p + from, i - from}, -1);
        if (v[k] < 0) return;
    }
    memcpy(out, v, sizeof v);
}

static bool is_blank(uint8_t c) { return c == ' ' || c == '\n' || c == '\t'; }

/* Takes the next key:value off the text. Returns false at the end. */
static bool next_pair(struct bytes *text, struct bytes *key,
                      struct bytes *value) {
    const uint8_t *p = text->p, *end = p + text->n;
    while (p < end && is_blank(*p)) p++;
    if (p >= end) return false;
    const uint8_t *from = p;
    while (p < end && !is_blank(*p)) p++;
    *text = (struct bytes){p, (size_t)(end - p)};
    const uint8_t *colon = memchr(from, ':', (size_t)(p - from));
    if (!colon) colon = p;
    *key = (struct bytes){from, (size_t)(colon - from)};
    if (colon < p) colon++;
    *value = (struct bytes){colon, (size_t)(p - colon)};
    return true;
}

void kernel_args_details(struct kernel_args *a, struct bytes text) {
    struct bytes key, v;
    text = beginning(text);
    while (text.n > 0 && next_pair(&text, &key, &v)) {
        if (BYTES_IS(key, "regs")) {
            a->registers = to_int(v, a->registers);
        } else if (BYTES_IS(key, "static_shared") ||
                   BYTES_IS(key, "dynamic_shared")) {
            int64_t n = to_int(v, 0);
            a->shared_bytes = sat_add(a->shared_bytes < 0 ? 0 : a->shared_bytes,
                                      n);
        } else if (BYTES_IS(key, "grid")) {
            to_dim3(v, a->grid);
        } else if (BYTES_IS(key, "block")) {
            to_dim3(v, a->block);
        } else if (BYTES_IS(key, "occ_pct")) {
            a->occupancy_pct = to_double(v, a->occupancy_pct);
        }
    }
}

static int64_t arg_to_int(const struct arg *a) {
    switch (a->type) {
    case ARG_INT:
    case ARG_BOOL: return a->i;
    case ARG_UINT: return a->u > INT64_MAX ? -1 : (int64_t)a->u;
    case ARG_FLOAT: return a->f >= 0 && a->f < 9e18 ? (int64_t)a->f : -1;
    default: return to_int(a->text, -1);
    }
}

/* Returns the value of a number that may have decimals; -1 if it is none. */
static double arg_to_double(const struct arg *v) {
    if (v->type == ARG_FLOAT) return v->f;
    if (v->type == ARG_TEXT || v->type == ARG_JSON)
        return to_double(v->text, -1);
    return (double)arg_to_int(v);
}

/* What is asked of a kernel's arguments, and what that is held against. */
struct picked {
    struct kernel_args a;
    double warps_per_sm; /* -1: not recorded */
};

static bool pick_kernel(void *ctx, struct bytes key, const struct arg *v) {
    struct picked *p = ctx;
    struct kernel_args *a = &p->a;
    if (BYTES_IS(key, "grid")) to_dim3(v->text, a->grid);
    else if (BYTES_IS(key, "block")) to_dim3(v->text, a->block);
    else if (BYTES_IS(key, "registers per thread"))
        a->registers = arg_to_int(v);
    else if (BYTES_IS(key, "shared memory")) a->shared_bytes = arg_to_int(v);
    else if (BYTES_IS(key, "est. achieved occupancy %") ||
             BYTES_IS(key, "theoretical_occupancy_pct"))
        a->occupancy_pct = arg_to_double(v);
    else if (BYTES_IS(key, "warps per SM")) p->warps_per_sm = arg_to_double(v);
    else if (BYTES_IS(key, "kernel_details")) kernel_args_details(a, v->text);
    return true;
}

/* Is it a 0 that stands for "could not be worked out"? The profilers write
 * whole per cent, and what ran had a warp. So 0 is true only where so few warps
 * ran that their share of the 64 that a multiprocessor holds (none holds more)
 * rounds to it. */
static bool is_unknown_occupancy(const struct picked *p) {
    enum { MOST_WARPS = 64 };
    if (p->a.occupancy_pct != 0) return false;
    return !(p->warps_per_sm >= 0 && p->warps_per_sm * 100 / MOST_WARPS < 0.5);
}

struct kernel_args kernel_args_of(const struct trace *t, row_id row) {
    struct picked p = {{{-1, -1, -1}, {-1, -1, -1}, -1, -1, -1, false}, -1};
    struct launch l;
    bool details = launch_of_cat(t, span_cat(t, row), &l);
    if (details) kernel_args_details(&p.a, l.details);
    /* older writers have the occupancy in a stat of its own */
    if (!details || p.a.occupancy_pct < 0) args_each(t, row, pick_kernel, &p);
    if (!(p.a.occupancy_pct <= 100)) p.a.occupancy_pct = -1;
    p.a.occupancy_unknown = is_unknown_occupancy(&p);
    if (p.a.occupancy_unknown) p.a.occupancy_pct = -1;
    return p.a;
}

static struct bytes text_arg(const struct trace *t, row_id row,
                             const char *key) {
    struct arg a = args_get(t, row, key);
    return a.type == ARG_TEXT ? a.text : (struct bytes){0};
}

/* Returns "jit(step)/dot_general:" without the colon; a kernel of a whole
 * program is marked "XlaModule:", which is no op. */
static struct bytes tf_op(const struct trace *t, row_id row) {
    struct launch l;
    struct bytes b = launch_of_cat(t, span_cat(t, row), &l)
                         ? l.tf_op
                         : text_arg(t, row, "tf_op");
    if (b.n > 0 && b.p[b.n - 1] == ':') b.n--;
    if (BYTES_IS(b, "XlaModule")) b.n = 0;
    return b;
}

static struct bytes hlo_op(const struct trace *t, row_id row) {
    struct launch l;
    if (launch_of_cat(t, span_cat(t, row), &l)) return l.hlo_op;
    return text_arg(t, row, "hlo_op");
}

struct bytes kernel_hlo_op(const struct trace *t, row_id row) {
    struct bytes b = hlo_op(t, row);
    return b.n > 0 ? b : tf_op(t, row);
}

struct bytes kernel_framework_op(const struct trace *t, row_id row) {
    struct bytes b = tf_op(t, row);
    return b.n > 0 ? b : hlo_op(t, row);
}

struct copy_args copy_args_from(struct bytes name, struct bytes details) {
    if (name.n > MOST) name.n = MOST;
    struct copy_args c = {copy_kind_of(name), -1, -1};
    bool host_side = c.kind == COPY_H2D || c.kind == COPY_D2H ||
                     c.kind == COPY_H2H;
    if (word_in("Pageable", name)) c.pageable = 1;
    else if (word_in("Pinned", name) || (!host_side && c.kind != COPY_OTHER))
        c.pageable = 0; /* of a copy that nobody knows, not that either */
    struct bytes key, v;
    details = beginning(details);
    while (details.n > 0 && next_pair(&details, &key, &v)) {
        bool side = BYTES_IS(key, "kind_src") || BYTES_IS(key, "kind_dst");
        if (side && BYTES_IS(v, "pageable")) c.pageable = 1;
        if (side && BYTES_IS(v, "pinned") && c.pageable < 0) c.pageable = 0;
        if (BYTES_IS(key, "size") || BYTES_IS(key, "num_bytes"))
            c.bytes = to_int(v, c.bytes);
    }
    return c;
}

struct copy_pick {
    struct bytes details;
    struct bytes direction; /* HOST_TO_DEVICE, as MTIA writes it */
    struct bytes hlo;       /* an instruction of XLA, its whole text */
    int64_t bytes, size;
};

static bool pick_copy(void *ctx, struct bytes key, const struct arg *v) {
    struct copy_pick *p = ctx;
    if (BYTES_IS(key, "bytes") || BYTES_IS(key, "Bytes"))
        p->bytes = arg_to_int(v);
    else if (BYTES_IS(key, "memcpy_details") || BYTES_IS(key, "Memset_details"))
        p->details = v->text;
    else if (BYTES_IS(key, "direction")) p->direction = v->text;
    else if (BYTES_IS(key, "long_name")) p->hlo = v->text;
    else if (BYTES_IS(key, "size")) p->size = arg_to_int(v);
    return true;
}

/* Reads what an instruction of XLA moves. The result of a start is where to,
 * where from; of a done where to: there the operand, which begins with the
 * same, tells where from. */
static void copy_args_hlo(struct copy_args *c, struct bytes text) {
    struct hlo_result r = hlo_result_of(text);
    if (r.first_bytes < 0) return;
    c->bytes = r.first_bytes;
    const uint8_t *p = memmem(text.p, text.n, "-done((", 7);
    if (r.host[1] < 0 && p != NULL) {
        struct bytes operand = {p + 6, text.n - (size_t)(p + 6 - text.p)};
        r.host[1] = hlo_shape_of(operand).host[1];
    }
    if (r.host[1] < 0) return; /* one end is known, the other is not */
    c->kind = r.host[0] == r.host[1] ? (r.host[0] ? COPY_H2H : COPY_D2D)
              : r.host[0]            ? COPY_D2H
                                     : COPY_H2D;
}

struct copy_args copy_args_of(const struct trace *t, row_id row) {
    struct copy_pick p = {.bytes = -1, .size = -1};
    args_each(t, row, pick_copy, &p);
    struct bytes name = strs_bytes(&t->strs, t->spans.name[row]);
    struct copy_args c = copy_args_from(name, p.details);
    if (c.bytes < 0) c.bytes = p.bytes;
    if (p.direction.n > 0) {
        if (c.kind == COPY_OTHER) c.kind = copy_kind_of(beginning(p.direction));
        if (c.bytes < 0) c.bytes = p.size;
    }
    const struct hlo_instr *i = hlo_of_span(t, row);
    if (p.hlo.n > 0) copy_args_hlo(&c, p.hlo);
    if (c.bytes < 0 && i != NULL)
        c.bytes = hlo_shape_of(strs_bytes(&t->strs, i->shape)).first_bytes;
    if (t->spans.kind[row] == SPAN_MEMSET) c.kind = COPY_MEMSET;
    return c;
}

const char *copy_kind_name(enum copy_kind k) {
    static const char *const names[] = {"h2d", "d2h",   "d2d",   "p2p",
                                        "h2h", "other", "memset"};
    return names[k];
}
