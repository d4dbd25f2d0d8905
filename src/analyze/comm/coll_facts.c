/* SPDX-License-Identifier: Apache-2.0
 * Messages are known from Kineto's collective arguments, or from the shapes of
 * the tensors handed over. */
#include "analyze/comm/collective.h"

#include "analyze/shared/op_inputs.h"
#include "base/sum.h"
#include "model/args.h"
#include "model/hlo/hlo.h"
#include "names/dtype.h"
#include "names/hlo_text.h"
#include <stddef.h>

struct coll_facts coll_facts_none(void) {
    return (struct coll_facts){.kind = COLL_OTHER,
                               .in_elems = -1,
                               .out_elems = -1,
                               .dims_elems = -1,
                               .dims_bytes = -1,
                               .group_size = -1,
                               .ratio = -1,
                               .seq = -1,
                               .src = -1,
                               .dst = -1};
}

/* Returns a x b, at most INT64_MAX; neither is negative. */
static int64_t times(int64_t a, int64_t b) {
    int64_t v;
    return __builtin_mul_overflow(a, b, &v) ? INT64_MAX : v;
}

/* What the arguments gave, before they are put together. */
struct pick {
    struct coll_facts *f;
    struct bytes name, dims, types; /* lists as JSON text */
    struct bytes dtype, group, group_ranks;
    struct bytes hlo; /* an instruction of XLA, its whole text */
};

static int64_t whole(const struct arg *a) {
    int64_t v = 0;
    switch (a->type) {
    case ARG_INT: return a->i;
    case ARG_UINT: return a->u > INT64_MAX ? -1 : (int64_t)a->u;
    case ARG_TEXT:
        if (a->text.n == 0 || a->text.n > 18) return -1;
        for (size_t i = 0; i < a->text.n; i++) {
            if (!byte_is_digit(a->text.p[i])) return -1;
            v = v * 10 + (a->text.p[i] - '0');
        }
        return v;
    default: return -1;
    }
}

#define NUMBER(key, field)                                                     \
    { key, sizeof key - 1, offsetof(struct coll_facts, field) }
#define TEXT(key, field)                                                       \
    { key, sizeof key - 1, offsetof(struct pick, field) }

/* An argument's key, and where its value goes. */
struct slot {
    const char *key;
    size_t n, to;
};

static const struct slot numbers[] = {
    NUMBER("In msg nelems", in_elems), NUMBER("Out msg nelems", out_elems),
    NUMBER("Group size", group_size),  NUMBER("Seq", seq),
    NUMBER("Src Rank", src),           NUMBER("Dst Rank", dst),
};

static const struct slot texts[] = {
    TEXT("Collective name", name),
    TEXT("Input Dims", dims),
    TEXT("Input type", types),
    TEXT("dtype", dtype),
    TEXT("Process Group Name", group),
    TEXT("Process Group Ranks", group_ranks),
    TEXT("long_name", hlo),
};

static bool pick_arg(void *ctx, struct bytes key, const struct arg *v) {
    struct pick *p = ctx;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!bytes_eq(key, numbers[i].key, numbers[i].n)) continue;
        int64_t *to = (int64_t *)((char *)p->f + numbers[i].to);
        if (*to < 0) *to = whole(v);
        return true;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!bytes_eq(key, texts[i].key, texts[i].n)) continue;
        struct bytes *to = (struct bytes *)((char *)p + texts[i].to);
        if (to->n == 0) *to = v->text;
        return true;
    }
    return true;
}

static bool grows(enum coll_kind k) {
    return k == COLL_ALL_GATHER || k == COLL_GATHER;
}

static bool shrinks(enum coll_kind k) {
    return k == COLL_REDUCE_SCATTER || k == COLL_SCATTER;
}

/* Learns how many ranks there are from what one rank hands over and what it
 * gets: what grows or shrinks does so by their number. */
static void add_ratio(struct coll_facts *f, int64_t a, int64_t b) {
    int64_t few = a < b ? a : b, many = a < b ? b : a;
    if (few > 0 && many > few && many % few == 0) f->ratio = many / few;
}

/* Adds elements and bytes of the tensors whose shapes and types were recorded.
 * A list of tensors has shapes but no type: then the bytes are not known. Of an
 * op that has both its output and its input, as those have that gather or
 * scatter, the input counts. */
static void add_dims(struct pick *p, enum coll_kind kind) {
    struct coll_facts *f = p->f;
    struct op_inputs in;
    int64_t elems = 0, bytes = 0, first = -1;
    int tensors = 0;
    bool two = grows(kind) || shrinks(kind);
    if (p->dims.n == 0) return;
    op_inputs_from(p->dims, p->types, (struct bytes){0}, &in);
    for (int i = 0; i < in.n; i++) {
        struct bytes name = op_inputs_string(p->types, i);
        enum dtype type = dtype_of_any(name);
        int64_t n = in.v[i].numel;
        if (!type && !BYTES_IS(name, "TensorList")) continue; /* a Scalar */
        int64_t size = type ? known_mul(n, dtype_bits(type) / 8) : -1;
        if (f->dtype.n == 0 && type) f->dtype = bytes_of(dtype_name(type));
        tensors++;
        if (two && type && tensors == 2 && first > 0 && n > 0) {
            add_ratio(f, first, n);
            bool input = grows(kind) ? n < first : n > first;
            if (input) elems = bytes = 0;
            else continue;
        }
        first = type && tensors == 1 ? n : -1;
        elems = known_add(elems, n);
        bytes = known_add(bytes, size);
    }
    if (tensors == 0 || f->dims_elems >= 0) return;
    f->dims_elems = elems;
    f->dims_bytes = bytes;
}

/* Adds what an instruction of XLA says: its result, and who takes part. A start
 * that has its operand in its result, too, has it first. */
static void add_hlo(struct pick *p, const struct trace *t, row_id row) {
    struct coll_facts *f = p->f;
    const struct hlo_instr *i = hlo_of_span(t, row);
    struct bytes name = strs_bytes(&t->strs, t->spans.name[row]);
    uint64_t key;
    if (p->hlo.n == 0 && i == NULL) return;
    struct hlo_result r = p->hlo.n > 0
                              ? hlo_result_of(p->hlo)
                              : hlo_shape_of(strs_bytes(&t->strs, i->shape));
    enum coll_kind kind = coll_kind_of(name);
    bool start = hlo_half_of(name, &key) == HLO_START;
    if (f->group_size < 0) f->group_size = hlo_group_size(p->hlo);
    if (r.type != DTYPE_UNKNOWN && f->dtype.n == 0)
        f->dtype = bytes_of(dtype_name(r.type));
    if (kind == COLL_BARRIER || r.bytes < 0) return;
    if (grows(kind) || shrinks(kind)) {
        if (f->out_elems < 0)
            f->out_elems = start ? r.last_elements : r.elements;
    } else if (f->dims_bytes < 0) {
        bool both = start && kind == COLL_PERMUTE;
        f->dims_elems = both ? -1 : r.elements;
        f->dims_bytes = both ? r.first_bytes : r.bytes;
    }
}

void coll_facts_add(struct coll_facts *f, const struct trace *t, row_id row) {
    struct pick p = {.f = f,
                     .dtype = f->dtype,
                     .group = f->group,
                     .group_ranks = f->group_ranks};
    args_each(t, row, pick_arg, &p);
    enum dtype type = dtype_of_any(p.dtype);
    f->dtype = type ? bytes_of(dtype_name(type)) : p.dtype;
    f->group = p.group;
    f->group_ranks = p.group_ranks;
    /* Sends, receives and all-to-all run in kernels of one name: what the
     * program asked for tells more. */
    enum coll_kind asked = coll_kind_of(p.name);
    if (asked == COLL_OTHER)
        asked = coll_kind_of(strs_bytes(&t->strs, t->spans.name[row]));
    bool vague = f->kind == COLL_OTHER || f->kind == COLL_SEND_RECV;
    if (vague && asked != COLL_OTHER) f->kind = asked;
    add_dims(&p, f->kind);
    add_hlo(&p, t, row);
    if (grows(f->kind) || shrinks(f->kind))
        add_ratio(f, f->in_elems, f->out_elems);
}

int64_t coll_elems(const struct coll_facts *f) {
    if (f->in_elems >= 0) return f->in_elems;
    return f->dims_elems >= 0 ? f->dims_elems : f->out_elems;
}

int64_t coll_bytes(const struct coll_facts *f) {
    enum dtype type = dtype_of_any(f->dtype);
    int64_t size = type ? dtype_bits(type) / 8 : -1;
    int64_t in = f->in_elems < 0 || size < 0 ? f->dims_bytes
                                             : times(f->in_elems, size);
    int64_t out = f->out_elems < 0 || size < 0 ? -1 : times(f->out_elems, size);
    if (f->kind == COLL_BARRIER) return -1;
    if (grows(f->kind) && out < 0 && in >= 0)
        return f->group_size > 0 ? times(in, f->group_size) : -1;
    if (grows(f->kind)) return out;
    if (shrinks(f->kind) && in < 0 && out >= 0)
        return f->group_size > 0 ? times(out, f->group_size) : -1;
    return in >= 0 ? in : out;
}

double coll_bus_factor(enum coll_kind k, int64_t n) {
    switch (k) {
    case COLL_ALL_REDUCE: return n > 0 ? 2 * (double)(n - 1) / (double)n : -1;
    case COLL_ALL_GATHER:
    case COLL_REDUCE_SCATTER:
    case COLL_ALL_TO_ALL:
    case COLL_GATHER:
    case COLL_SCATTER: return n > 0 ? (double)(n - 1) / (double)n : -1;
    case COLL_BARRIER:
    case COLL_OTHER: return -1;
    default: return 1;
    }
}
