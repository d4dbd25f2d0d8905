/* SPDX-License-Identifier: Apache-2.0
 * slow-attention: attention that is written out. A product makes a matrix of
 * scores, ops scale, mask and drop them and take their softmax, each with a
 * pass over that matrix, and a product uses it up; backward does the same the
 * other way round. A fused kernel never writes the scores to memory.
 *
 * It is found by names: two products of batches of matrices, one softmax and,
 * between them, only what a fused kernel does, too. Repaired, all that is no
 * product goes. The products take what they take now or, where shapes tell
 * their FLOPs and the device's peak is known, what a fused kernel comes to; in
 * backward a quarter more, for the scores are computed again. */
#include "analyze/hints/hint.h"

#include "analyze/cost/device_peak.h"
#include "analyze/cost/op_cost.h"
#include "analyze/shared/op_inputs.h"
#include "base/err.h"
#include "base/sum.h"
#include "base/text/number.h"
#include "base/vec.h"
#include "model/trace.h"
#include "names/op_names.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    /* Products of a fused backward for each product of one that is written
     * out: five for four. */
    FUSED_PRODUCTS = 5,
    PLAIN_PRODUCTS = 4,
};

/* An op of the line, as a person would name it. */
struct item {
    row_id row;     /* ROW_NONE: a pause */
    uint32_t first; /* its first piece */
    enum attention_part part;
    bool backward;
};

/* Finds the op of a piece: the outermost one of aten; in backward the node,
 * unless forward runs again in it. product: the product that it is part of. */
static struct item item_of(const struct trace *t, const struct hint_step *s,
                           uint32_t i, row_id *product) {
    struct item it = {.row = ROW_NONE, .first = i};
    bool again = s->again != NULL && s->again[i] != AGAIN_NOT;
    row_id row = s->d.line.v[i].row;
    *product = ROW_NONE;
    for (int n = 0; row != ROW_NONE && n < HINT_CLIMB; n++) {
        struct bytes name = hint_bytes(t, row);
        if (t->spans.kind[row] == SPAN_OP) {
            if (op_is_batched_product(name)) *product = row;
            if (name_is_backward(name) || name_is_accumulate(name)) {
                if (again) break;
                row_id up = t->spans.parent[row];
                bool call = up != ROW_NONE && !name_is_engine_call(name) &&
                            name_is_engine_call(hint_bytes(t, up));
                it.backward = true;
                it.row = call ? up : row;
                break;
            }
            if (op_is_aten(name)) it.row = row;
        }
        row = t->spans.parent[row];
    }
    return it;
}

/* How far the search has come. */
struct search {
    const struct trace *t;
    struct hint_step *s;
    struct attention a; /* the one under way, if seen > 0 */
    int seen;           /* 1: a product, 2: and a softmax */
    row_id product;     /* whose FLOPs were counted last */
};

static void count_product(struct search *k, row_id row) {
    struct op_cost cost;
    if (row == k->product) return;
    k->product = row;
    const struct cost_rule *rule = op_cost_rule(hint_bytes(k->t, row));
    if (rule == NULL || !op_cost_of(k->t, row, rule, DTYPE_UNKNOWN, &cost) ||
        cost.flops < 0) {
        k->a.flops = -1;
        return;
    }
    if (k->a.flops >= 0) k->a.flops += (double)cost.flops;
    k->a.type = (uint8_t)cost.type;
}

static int64_t score_bytes(const struct trace *t, row_id softmax) {
    struct op_inputs in;
    if (!op_inputs_of(t, softmax, &in) || in.n < 1 || in.v[0].numel <= 0)
        return -1;
    int bits = dtype_bits(in.v[0].type);
    if (bits <= 0 || in.v[0].numel > SIZE_LIMIT / bits) return -1;
    return in.v[0].numel * bits / 8;
}

/* Is there a product of batches in pieces [first, end)? */
static bool has_product(const struct search *k, uint32_t first, uint32_t end) {
    row_id product = ROW_NONE;
    for (uint32_t i = first; product == ROW_NONE && i < end; i++)
        item_of(k->t, k->s, i, &product);
    return product != ROW_NONE;
}

/* Marks the pieces of the attention that was found, and keeps it. */
static bool keep(struct search *k, uint32_t end) {
    struct hint_step *s = k->s;
    const struct attention *a = &k->a;
    if (!VEC_ROOM(s->attentions, s->nattentions, s->cap_attentions))
        return false;
    if (s->parts == NULL) s->parts = calloc(s->d.line.n + 1, sizeof *s->parts);
    if (s->parts == NULL) return false;
    k->a.end = end;
    k->a.bytes = score_bytes(k->t, a->softmax);
    for (uint32_t i = a->first; i < end; i++) {
        row_id product;
        struct item it = item_of(k->t, s, i, &product);
        s->parts[i] = PART_BETWEEN;
        if (product != ROW_NONE) {
            s->parts[i] = PART_PRODUCT;
            count_product(k, product);
        } else if (it.row != ROW_NONE &&
                   op_attention_part(hint_bytes(k->t, it.row)) == PART_BESIDE) {
            s->parts[i] = PART_BESIDE;
        }
    }
    s->attentions[s->nattentions++] = k->a;
    return true;
}

/* Goes on with the op of pieces [it->first, end). */
static bool search_on(struct search *k, const struct item *it, uint32_t end) {
    if (it->row == ROW_NONE || it->part == PART_BETWEEN ||
        it->part == PART_BESIDE)
        return true;
    bool same = k->seen > 0 && it->backward == k->a.backward;
    if (it->part == PART_SOFTMAX && same && k->seen == 1) {
        k->seen = 2;
        k->a.softmax = it->row;
        return true;
    }
    bool product = it->part == PART_PRODUCT && has_product(k, it->first, end);
    bool found = product && same && k->seen == 2;
    if (found) {
        k->seen = 0;
        return keep(k, end);
    }
    k->seen = product;
    k->product = ROW_NONE;
    k->a = (struct attention){.first = it->first, .backward = it->backward};
    return true;
}

static bool find(const struct trace *t, struct hint_step *s) {
    struct search k = {.t = t, .s = s};
    struct item now = {.row = ROW_NONE};
    for (uint32_t i = 0; i <= s->d.line.n; i++) {
        row_id product;
        struct item it = {.row = ROW_NONE, .first = i};
        if (i < s->d.line.n) it = item_of(t, s, i, &product);
        if (i < s->d.line.n && i > 0 && it.row == now.row) continue;
        if (!search_on(&k, &now, i)) return false;
        now = it;
        if (now.row != ROW_NONE)
            now.part = op_attention_part(hint_bytes(t, now.row));
    }
    return true;
}

int hint_attention_read(struct hint_case *c, struct ops_err *e) {
    for (size_t i = 0; i < c->nsteps; i++)
        if (!find(c->t, &c->steps[i])) return fail_oom(e);
    return 0;
}

static int64_t backward_part(int64_t ps) {
    return sat_add(ps, ps / PLAIN_PRODUCTS * (FUSED_PRODUCTS - PLAIN_PRODUCTS));
}

/* Returns what a fused kernel takes on the device where the products take that
 * long. */
static int64_t fused_time(const struct hint_case *c, const struct attention *a,
                          int64_t products) {
    double flops = a->flops, peak = 0;
    if (a->backward) {
        products = backward_part(products);
        flops = flops / PLAIN_PRODUCTS * FUSED_PRODUCTS;
    }
    /* In fp32 a fused kernel makes up each product of three in TF32 and comes
     * to no more than the vector units would: 20 and 28 TFLOP/s on an H200,
     * whose products in TF32 are faster than that. */
    bool full = a->type == DTYPE_FP32;
    if (c->peak != NULL)
        peak = device_peak_flops(c->peak, (enum dtype)a->type, !full);
    if (flops <= 0 || peak <= 0) return products;
    double ps = flops / (peak * HINT_ATTENTION_PERCENT / 100) * PS_PER_S;
    if (full && ps < (double)DUR_LIMIT) return (int64_t)ps;
    return ps < (double)products ? (int64_t)ps : products;
}

/* What the parts of an attention take in the trial. */
struct cost {
    int64_t products, rest; /* on the device, or of the host without one */
    uint32_t work;          /* its first work, or DEP_NONE */
};

static struct cost cost_of(const struct hint_step *s,
                           const struct attention *a) {
    struct cost k = {.work = DEP_NONE};
    bool device = s->d.nworks > 0;
    for (uint32_t i = a->first; i < a->end; i++) {
        int64_t takes = device ? 0 : s->trial.host[i];
        if (s->parts[i] == PART_BESIDE) continue;
        const struct stop *p = &s->d.stops[i];
        for (uint32_t w = p->first; w < p->end; w++) {
            if (s->trial.work[w] == WORK_GONE) continue;
            if (k.work == DEP_NONE) k.work = w;
            sat_inc(&takes, s->trial.work[w]);
        }
        sat_inc(s->parts[i] == PART_PRODUCT ? &k.products : &k.rest, takes);
    }
    return k;
}

/* Makes one op of it: what launches its first product stays. */
static void fuse(struct hint_step *s, const struct attention *a, uint32_t work,
                 int64_t takes) {
    bool called = false;
    for (uint32_t i = a->first; i < a->end; i++) {
        const struct stop *p = &s->d.stops[i];
        if (s->parts[i] == PART_BESIDE) continue;
        bool first = work != DEP_NONE && p->first <= work && work < p->end;
        if (called) s->trial.host[i] = 0;
        if (!first) s->trial.go[i] = true;
        called |= first;
        for (uint32_t w = p->first; w < p->end; w++)
            s->trial.work[w] = w == work ? takes : WORK_GONE;
    }
}

/* Does the same without a device: products stay, all else goes. */
static void fuse_host(struct hint_step *s, const struct attention *a) {
    for (uint32_t i = a->first; i < a->end; i++) {
        if (s->parts[i] == PART_BESIDE) continue;
        if (s->parts[i] != PART_PRODUCT) s->trial.host[i] = 0;
        else if (a->backward)
            s->trial.host[i] = backward_part(s->trial.host[i]);
    }
}

static void repair_attention(const struct hint_case *c, struct hint_step *s,
                             struct hint_found *f) {
    for (size_t n = 0; n < s->nattentions; n++) {
        const struct attention *a = &s->attentions[n];
        struct cost k = cost_of(s, a);
        int64_t all = sat_add(k.products, k.rest);
        int64_t then = k.work == DEP_NONE && a->backward
                           ? backward_part(k.products)
                           : k.products;
        if (k.work != DEP_NONE) then = fused_time(c, a, k.products);
        if (all <= 0) continue; /* another repair took it */
        if (k.work != DEP_NONE) fuse(s, a, k.work, then);
        else fuse_host(s, a);
        sat_inc(&f->other, k.rest);
        if (a->bytes > f->bytes) f->bytes = a->bytes;
        hint_saw(f, a->softmax, all);
    }
}

static void say_attention(const struct hint_case *c, const struct hint_found *f,
                          struct hint_words *w) {
    char a[48], b[48], n[48], size[64] = "", where[HINT_TEXT];
    if (f->bytes > 0) {
        snprintf(size, sizeof size, "; its scores are ");
        human_bytes(f->bytes, size + strlen(size), 40);
    } else {
        w->confidence = "assumed";
    }
    snprintf(w->evidence, sizeof w->evidence,
             "%s (gradients counted), %s a step, of which %s in softmax, "
             "scale, mask and copies%s%s",
             hint_count(c, f->count, "attention", "attentions", n),
             hint_time(c, f->time, a), hint_time(c, f->other, b), size,
             hint_where(c, f, where));
}

const struct hint_rule hint_slow_attention = {
    .id = "slow-attention",
    .title = "attention is written out: product, softmax, product",
    .effort = EFFORT_PLACE,
    .confidence = "simulated",
    .assumes = "a fused kernel takes as long as the products alone, on a "
               "device whose peak is known as its FLOPs at 40 % of the peak",
    .see = "ops",
    .advice[FW_OTHER] = "one fused kernel of attention",
    .advice[FW_TORCH] =
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask="
        "mask or is_causal=True, dropout_p=p), with q, k, v of [batch, heads, "
        "tokens, width]; nn.MultiheadAttention: need_weights=False",
    .repair = repair_attention,
    .say = say_attention,
};
