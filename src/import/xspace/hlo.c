/* SPDX-License-Identifier: Apache-2.0
 * The compiled programs that a profile carries:
 *
 *     HloProto { 1 module }
 *     module { 1 name, 3 computations, 5 id, 6 entry id, 7 schedule,
 *              17 stack frames }
 *     computation { 1 name, 2 instructions, 5 id, 6 root id, 7 is of a fusion }
 *
 * A module is read flat: all instructions into one array, in file order, where
 * a computation stands before those that call it. So costs are known when they
 * are asked for, in one pass and without recursion; a file in another order
 * has unknown costs, and nothing worse. Then the computations that run on
 * their own go into the trace's table, in the order of the schedule, and the
 * rest is forgotten. */
#include "import/xspace/hlo.h"

#include "base/array.h"
#include "base/pb.h"
#include "base/sum.h"
#include "base/vec.h"
#include "import/xspace/xspace.h"
#include "model/hlo/hlo.h"
#include "model/trace_fill.h"

#include <stdlib.h>

/* An instruction that is kept while a module is read takes some hundred bytes,
 * and can be written in eight. Real ones have a name, an opcode, a shape and a
 * number at the least: this is less than any has. */
enum { LEAST_BYTES = 24, ANY_MODULE = 4096 };

/* Windows cost what they say, not what they weigh; in a real module they say a
 * few thousand. Any file has this many steps, and so many more for each byte of
 * its modules; one module that spends less leaves the rest to those behind
 * it. */
enum { ANY_STEPS = 1 << 22, STEPS_PER_BYTE = 64 };

/* Adds the numbers of a repeated field to ids. */
static void add_ids(struct hlo_reader *r, const struct pb_field *f,
                    uint32_t *n) {
    const uint8_t *p = f->bytes.p, *end = p + f->bytes.n;
    uint64_t v = f->value;
    bool one = f->wire == PB_VARINT;
    if (!one && f->wire != PB_BYTES) return;
    while (one || (p != NULL && p < end)) {
        if (!one && (p = pb_varint(p, end, &v)) == NULL) return;
        if (r->nids >= UINT32_MAX) return;
        if (!VEC_ROOM(r->ids, r->nids, r->cap_ids)) {
            r->oom = true;
            return;
        }
        r->ids[r->nids++] = v;
        (*n)++;
        if (one) return;
    }
}

static void add_instr(struct hlo_reader *r, struct bytes b) {
    struct hlo_raw i = {.comp = (uint32_t)r->nbodies};
    struct pb in = pb_reader(b);
    struct pb_field f;
    if (r->nraw >= r->most) {
        trace_note(r->t, NOTE_INSTR_SKIPPED, 1);
        return;
    }
    /* by the number of the field */
    struct bytes *texts[] = {
        [1] = &i.name,    [2] = &i.opcode,    [3] = &i.shape,
        [7] = &i.meta,    [11] = &i.fusion,   [15] = &i.window,
        [16] = &i.conv,   [28] = &i.target,   [30] = &i.dot,
        [43] = &i.config, [51] = &i.precision};
    for (size_t k = 0; k < COUNT(texts); k++)
        if (texts[k] != NULL) texts[k]->p = b.p;
    /* operands and callees are two runs in ids: one field after the other */
    i.operand = (uint32_t)r->nids;
    while (pb_next(&in, &f)) {
        if (f.num == 36) add_ids(r, &f, &i.noperand);
        else if (f.wire == PB_BYTES && f.num < COUNT(texts) && texts[f.num])
            *texts[f.num] = f.bytes;
        if (f.wire != PB_VARINT) continue;
        if (f.num == 35) i.id = f.value;
        if (f.num == 61) i.batch_groups = (int64_t)f.value;
    }
    i.call = (uint32_t)r->nids;
    in = pb_reader(b);
    while (pb_next(&in, &f))
        if (f.num == 38) add_ids(r, &f, &i.ncall);
    if (i.name.n == 0 || i.opcode.n == 0) return;
    i.class = (uint8_t)hlo_class_of(i.opcode);
    i.size = hlo_shape_size(i.shape);
    if (!VEC_ROOM(r->raw, r->nraw, r->cap_raw) ||
        !map_set(&r->by_id, i.id, (uint32_t)r->nraw))
        r->oom = true;
    else r->raw[r->nraw++] = i;
}

static void add_body(struct hlo_reader *r, struct bytes b) {
    struct hlo_body c = {.name = {b.p, 0},
                         .first = (uint32_t)r->nraw,
                         .root = MAP_NONE,
                         .kept = ROW_NONE};
    struct pb in = pb_reader(b);
    struct pb_field f;
    while (pb_next(&in, &f)) {
        if (f.num == 1 && f.wire == PB_BYTES) c.name = f.bytes;
        if (f.num == 2 && f.wire == PB_BYTES) add_instr(r, f.bytes);
        if (f.wire != PB_VARINT) continue;
        if (f.num == 5) c.id = f.value;
        if (f.num == 6) c.root_id = f.value;
        if (f.num == 7) c.folded = f.value != 0;
    }
    c.end = (uint32_t)r->nraw;
    if (c.first == c.end) return;
    uint32_t root = map_get(&r->by_id, c.root_id);
    if (root != MAP_NONE && root >= c.first) c.root = root;
    if (!VEC_ROOM(r->bodies, r->nbodies, r->cap_bodies) ||
        !map_set(&r->body_by_id, c.id, (uint32_t)r->nbodies))
        r->oom = true;
    else r->bodies[r->nbodies++] = c;
}

const struct hlo_raw *hlo_operand(const struct hlo_reader *r,
                                  const struct hlo_raw *i, uint32_t k) {
    if (k >= i->noperand) return NULL;
    uint32_t at = map_get(&r->by_id, r->ids[i->operand + k]);
    return at == MAP_NONE || at >= r->nraw ? NULL : &r->raw[at];
}

const struct hlo_body *hlo_callee(const struct hlo_reader *r,
                                  const struct hlo_raw *i, uint32_t k) {
    if (k >= i->ncall) return NULL;
    uint32_t at = map_get(&r->body_by_id, r->ids[i->call + k]);
    /* only a computation that stands before counts: its cost is known, and
     * nothing is circular */
    return at == MAP_NONE || at >= i->comp ? NULL : &r->bodies[at];
}

/* Finds which instructions use each instruction as an operand, as runs in
 * users. */
static void find_users(struct hlo_reader *r) {
    r->first_user = calloc(r->nraw + 2, sizeof *r->first_user);
    r->users = malloc((r->nids + 1) * sizeof *r->users);
    if (r->first_user == NULL || r->users == NULL) {
        r->oom = true;
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < r->nraw; i++)
            for (uint32_t k = 0; k < r->raw[i].noperand; k++) {
                const struct hlo_raw *o = hlo_operand(r, &r->raw[i], k);
                if (o == NULL) continue;
                uint32_t *n = &r->first_user[o - r->raw + 1];
                if (pass == 0) n[1]++;
                else r->users[(*n)++] = i;
            }
        if (pass == 1) return;
        for (size_t i = 1; i < r->nraw + 2; i++)
            r->first_user[i] += r->first_user[i - 1];
    }
}

static void find_costs(struct hlo_reader *r) {
    for (size_t b = 0; b < r->nbodies; b++) {
        struct hlo_body *c = &r->bodies[b];
        struct hlo_cost sum = {0};
        for (uint32_t i = c->first; i < c->end; i++) {
            struct hlo_raw *in = &r->raw[i];
            hlo_cost_of(r, in);
            if (sum.flops < 0 || in->cost.flops < 0)
                sum.flops = -1; /* unknown */
            else sat_inc(&sum.flops, in->cost.flops);
            if (in->cost.matrix <= sum.matrix) continue;
            sum.matrix = in->cost.matrix;
            sum.math = in->cost.math;
            sum.full_f32 = in->cost.full_f32;
        }
        c->cost = sum;
        hlo_body_bytes(r, c);
    }
}

/* Finds which computations are a part of the instruction that calls them.
 * Callers come later in the file, so it is walked from its end. */
static void find_folded(struct hlo_reader *r) {
    for (size_t b = r->nbodies; b-- > 0;)
        for (uint32_t i = r->bodies[b].first; i < r->bodies[b].end; i++) {
            const struct hlo_raw *in = &r->raw[i];
            bool runs = in->class == HC_CALL || in->class == HC_FLOW ||
                        in->class == HC_DONE;
            if (runs && !r->bodies[b].folded) continue;
            for (uint32_t k = 0; k < in->ncall; k++) {
                const struct hlo_body *c = hlo_callee(r, in, k);
                if (c != NULL) r->bodies[c - r->bodies].folded = true;
            }
        }
}

/* Stack frames: { 1 files, 3 locations { 1 file, 3 line },
 * 4 frames { 1 location } }; all numbers count from 1. */
struct frames {
    struct frame_file {
        struct bytes name;
        bool own; /* not of an installed package */
    } * files;
    size_t nfiles, cap_files;
    struct place {
        uint64_t a, b;
    } * places, *frames;
    size_t nplaces, cap_places, nframes, cap_frames;
};

static struct place read_place(struct bytes b, uint32_t first,
                               uint32_t second) {
    struct place v = {0, 0};
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.wire != PB_VARINT) continue;
        if (f.num == first) v.a = f.value;
        if (f.num == second) v.b = f.value;
    }
    return v;
}

static bool read_frames(struct frames *s, struct bytes b) {
    struct pb r = pb_reader(b);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.wire != PB_BYTES) continue;
        if (f.num == 1) {
            if (!VEC_ROOM(s->files, s->nfiles, s->cap_files)) return false;
            s->files[s->nfiles++] =
                (struct frame_file){f.bytes,
                                    !hlo_has(f.bytes, "/site-packages/") &&
                                        !hlo_has(f.bytes, "/dist-packages/")};
        } else if (f.num == 3) {
            if (!VEC_ROOM(s->places, s->nplaces, s->cap_places)) return false;
            s->places[s->nplaces++] = read_place(f.bytes, 1, 3);
        } else if (f.num == 4) {
            if (!VEC_ROOM(s->frames, s->nframes, s->cap_frames)) return false;
            s->frames[s->nframes++] = read_place(f.bytes, 1, 2);
        }
    }
    return true;
}

/* OpMetadata { 2 op_name, 3 source file, 4 source line, 15 stack frame }. */
struct origin {
    struct bytes op, file;
    uint64_t line;
};

/* Finds the innermost frame that is not a package's own, or the innermost:
 * people know their own lines, not TensorFlow's. */
static void frame_place(const struct frames *s, uint64_t frame,
                        struct origin *o) {
    enum { DEEPEST = 64 };
    for (int i = 0; i < DEEPEST && frame > 0 && frame <= s->nframes; i++) {
        uint64_t place = s->frames[frame - 1].a;
        if (place == 0 || place > s->nplaces) return;
        uint64_t file = s->places[place - 1].a;
        if (file == 0 || file > s->nfiles) return;
        if (i == 0 || s->files[file - 1].own) {
            o->file = s->files[file - 1].name;
            o->line = s->places[place - 1].b;
        }
        if (s->files[file - 1].own) return;
        frame = s->frames[frame - 1].b;
    }
}

static struct origin read_origin(const struct frames *s, struct bytes meta) {
    struct origin o = {{meta.p, 0}, {meta.p, 0}, 0};
    struct pb r = pb_reader(meta);
    struct pb_field f;
    uint64_t frame = 0;
    while (pb_next(&r, &f)) {
        if (f.num == 2 && f.wire == PB_BYTES) o.op = f.bytes;
        if (f.num == 3 && f.wire == PB_BYTES) o.file = f.bytes;
        if (f.num == 4 && f.wire == PB_VARINT) o.line = f.value;
        if (f.num == 15 && f.wire == PB_VARINT) frame = f.value;
    }
    frame_place(s, frame, &o);
    return o;
}

/* Sets what a body ends with: the last op and the last line that its
 * instructions name. Once per body. */
static void ask_body(const struct hlo_reader *r, const struct frames *s,
                     struct hlo_body *b) {
    b->asked = true;
    for (uint32_t k = b->end; k-- > b->first;) {
        const struct hlo_raw *i = &r->raw[k];
        if (i->meta.n == 0 || BYTES_IS(i->opcode, "parameter")) continue;
        struct origin in = read_origin(s, i->meta);
        if (b->op.n == 0) b->op = in.op;
        if (b->file.n == 0 && in.file.n > 0) {
            b->file = in.file;
            b->line = in.line;
        }
        if (b->op.n > 0 && b->file.n > 0) return;
    }
}

/* Returns where an instruction comes from; a fusion that does not say comes
 * from what it ends with. */
static struct origin origin_of(struct hlo_reader *r, const struct frames *s,
                               const struct hlo_raw *i) {
    struct origin o = read_origin(s, i->meta);
    const struct hlo_body *callee = hlo_callee(r, i, 0);
    if (i->class != HC_FUSION || callee == NULL || (o.op.n > 0 && o.file.n > 0))
        return o;
    struct hlo_body *b = &r->bodies[callee - r->bodies];
    if (!b->asked) ask_body(r, s, b);
    if (o.op.n == 0) o.op = b->op;
    if (o.file.n == 0) {
        o.file = b->file;
        o.line = b->line;
    }
    return o;
}

/* Returns XProf's word for the instruction. */
static struct bytes category_of(const struct hlo_raw *i) {
    static const struct {
        const char *kind, *name;
    } fusions[] = {
        {"kLoop", "loop fusion"},
        {"kInput", "input fusion"},
        {"kOutput", "output fusion"},
        {"kCustom", "custom fusion"},
    };
    if (i->class == HC_FUSION)
        for (size_t k = 0; k < sizeof fusions / sizeof *fusions; k++)
            if (bytes_eq(i->fusion, fusions[k].kind, strlen(fusions[k].kind)))
                return bytes_of(fusions[k].name);
    if (i->class == HC_ELEM || i->class == HC_TRANS)
        return bytes_of("non-fusion elementwise");
    if (BYTES_IS(i->opcode, "transpose") || BYTES_IS(i->opcode, "copy") ||
        BYTES_IS(i->opcode, "reshape") ||
        BYTES_IS(i->opcode, "dynamic-reshape"))
        return bytes_of("data formatting");
    return i->opcode;
}

static enum hlo_launch launch_of(const struct hlo_reader *r,
                                 const struct hlo_raw *i) {
    const struct hlo_body *b = hlo_callee(r, i, 0);
    switch ((enum hlo_class)i->class) {
    case HC_FREE:
    case HC_DONE: return HLO_LAUNCHES_NONE;
    case HC_FUSION:
        /* A fusion is one kernel; but one that only fills or moves may be a
         * fill or a copy, and one that the backend hands to a library has that
         * one's kernels. */
        if (BYTES_IS(i->fusion, "kCustom") && !hlo_has(i->config, "__triton"))
            return HLO_LAUNCHES_ANY;
        return b == NULL || b->cost.flops == 0 ? HLO_LAUNCHES_MAYBE
                                               : HLO_LAUNCHES_ONE;
    case HC_CUSTOM:
        return hlo_is_library(i) ? HLO_LAUNCHES_LIBRARY : HLO_LAUNCHES_ANY;
    case HC_CALL:
    case HC_FLOW: return HLO_LAUNCHES_BODY;
    case HC_COMM:
    case HC_SORT:
    case HC_SCATTER:
    case HC_OTHER: return HLO_LAUNCHES_ANY;
    default: return HLO_LAUNCHES_MAYBE;
    }
}

/* A module on its way into the trace's table. */
struct keeping {
    struct hlo_reader *r;
    struct hlo *h;
    struct frames frames;
    struct map texts; /* where a shared text stands -> its str_id */
    struct map order; /* computation id -> index of its sequence */
    struct bytes *seqs;
    size_t nseqs, cap_seqs;
    uint32_t *to; /* instruction -> index in the table, or ROW_NONE */
    uint32_t module;
};

static str_id keep_text(struct keeping *k, struct bytes b) {
    return b.n > 0 ? trace_str(k->r->t, b) : 0;
}

/* Does the same for the op and the file of an origin: any number of
 * instructions may have theirs from one place, and however long it is, it is
 * looked up once. No two texts begin at one byte. */
static str_id keep_shared(struct keeping *k, struct bytes b) {
    if (b.n == 0) return 0;
    uint32_t *id = map_at(&k->texts, (uintptr_t)b.p);
    if (id == NULL) {
        k->r->oom = true;
        return 0;
    }
    if (*id == MAP_NONE) *id = keep_text(k, b);
    return *id;
}

static void keep_instr(struct keeping *k, uint32_t at) {
    struct hlo_raw *i = &k->r->raw[at];
    struct hlo *h = k->h;
    if (k->to[at] != ROW_NONE) return;
    if (!VEC_ROOM(h->instrs, h->ninstrs, h->cap_instrs)) {
        k->r->oom = true;
        return;
    }
    char shape[512];
    struct origin o = origin_of(k->r, &k->frames, i);
    size_t n = hlo_shape_text(i->shape, shape, sizeof shape);
    struct hlo_instr *to = &h->instrs[h->ninstrs];
    *to = (struct hlo_instr){
        .name = keep_text(k, i->name),
        .opcode = keep_text(k, i->opcode),
        .category = keep_text(k, category_of(i)),
        .target = keep_text(k, i->target),
        .op_name = keep_shared(k, o.op),
        .file = keep_shared(k, o.file),
        .shape = keep_text(k, (struct bytes){(uint8_t *)shape, n}),
        .line = o.line < UINT32_MAX ? (uint32_t)o.line : 0,
        .module = k->module,
        .comp = (uint32_t)h->ncomps,
        .flops = i->cost.flops,
        .read_bytes = i->cost.read,
        .written_bytes = i->cost.written,
        .math = (uint8_t)dtype_of_hlo(i->cost.math ? i->cost.math
                                                   : i->size.type),
        .launch = (uint8_t)launch_of(k->r, i),
        .matrix = i->cost.matrix > 0,
        .full_f32 = i->cost.full_f32,
    };
    k->to[at] = (uint32_t)h->ninstrs++;
}

/* Keeps the instructions of a computation: those that the schedule lists, then
 * those that it left out (all of them where there is no schedule). */
static void keep_body(struct keeping *k, struct hlo_body *c) {
    struct hlo *h = k->h;
    if (!VEC_ROOM(h->comps, h->ncomps, h->cap_comps)) {
        k->r->oom = true;
        return;
    }
    uint32_t first = (uint32_t)h->ninstrs, seq = map_get(&k->order, c->id);
    if (seq != MAP_NONE) {
        const uint8_t *p = k->seqs[seq].p, *end = p + k->seqs[seq].n;
        uint64_t id;
        while (p != NULL && p < end && !k->r->oom) {
            if ((p = pb_varint(p, end, &id)) == NULL) break;
            uint32_t at = map_get(&k->r->by_id, id);
            if (at != MAP_NONE && at >= c->first && at < c->end)
                keep_instr(k, at);
        }
        k->seqs[seq].n = 0; /* another of the same number has none */
    }
    for (uint32_t i = c->first; i < c->end && !k->r->oom; i++) keep_instr(k, i);
    c->kept = (uint32_t)h->ncomps;
    h->comps[h->ncomps++] = (struct hlo_comp){keep_text(k, c->name), first,
                                              (uint32_t)h->ninstrs, k->module};
}

/* Sets the callees, now that all have their places. */
static void keep_edges(struct keeping *k) {
    const struct hlo_reader *r = k->r;
    struct hlo *h = k->h;
    for (uint32_t at = 0; at < r->nraw; at++) {
        if (k->to[at] == ROW_NONE) continue;
        struct hlo_instr *i = &h->instrs[k->to[at]];
        i->called = (uint32_t)h->ncalled;
        for (uint32_t n = 0; n < r->raw[at].ncall; n++) {
            const struct hlo_body *c = hlo_callee(r, &r->raw[at], n);
            if (c == NULL || c->kept == ROW_NONE) continue;
            if (!VEC_ROOM(h->called, h->ncalled, h->cap_called)) goto oom;
            h->called[h->ncalled++] = c->kept;
            i->ncalled++;
        }
    }
    return;
oom:
    k->r->oom = true;
}

/* Reads HloScheduleProto { 1 map: computation id -> { 1 instruction ids } }. */
static void read_schedule(struct keeping *k, struct bytes b) {
    struct pb r = pb_reader(b);
    struct pb_field f, e, s;
    while (pb_next(&r, &f) && !k->r->oom) {
        if (f.num != 1 || f.wire != PB_BYTES) continue;
        struct pb entry = pb_reader(f.bytes);
        uint64_t id = 0;
        struct bytes seq = {f.bytes.p, 0};
        while (pb_next(&entry, &e)) {
            if (e.num == 1 && e.wire == PB_VARINT) id = e.value;
            if (e.num != 2 || e.wire != PB_BYTES) continue;
            struct pb in = pb_reader(e.bytes);
            while (pb_next(&in, &s))
                if (s.num == 1 && s.wire == PB_BYTES) seq = s.bytes;
        }
        if (!VEC_ROOM(k->seqs, k->nseqs, k->cap_seqs) ||
            !map_set(&k->order, id, (uint32_t)k->nseqs))
            k->r->oom = true;
        else k->seqs[k->nseqs++] = seq;
    }
}

/* A module's own fields. */
struct module {
    struct bytes name, label, body, schedule, frames;
    uint64_t entry, program;
};

static void keep_module(struct hlo_reader *r, const struct module *m,
                        uint32_t source) {
    struct keeping k = {.r = r, .h = hlo_table(r->t)};
    k.to = malloc((r->nraw + 1) * sizeof *k.to);
    if (k.h == NULL || k.to == NULL ||
        !VEC_ROOM(k.h->modules, k.h->nmodules, k.h->cap_modules) ||
        !read_frames(&k.frames, m->frames)) {
        r->oom = true;
    } else {
        for (size_t i = 0; i < r->nraw; i++) k.to[i] = ROW_NONE;
        k.module = (uint32_t)k.h->nmodules++;
        read_schedule(&k, m->schedule);
        for (size_t i = 0; i < r->nbodies && !r->oom; i++)
            if (!r->bodies[i].folded) keep_body(&k, &r->bodies[i]);
        keep_edges(&k);
        uint32_t entry = map_get(&r->body_by_id, m->entry);
        k.h->modules[k.module] = (struct hlo_module){
            keep_text(&k, m->name), keep_text(&k, m->label), m->program, source,
            entry == MAP_NONE || entry >= r->nbodies ? ROW_NONE
                                                     : r->bodies[entry].kept};
    }
    map_free(&k.order);
    map_free(&k.texts);
    free(k.seqs);
    free(k.to);
    free(k.frames.files);
    free(k.frames.places);
    free(k.frames.frames);
}

static void read_module(struct hlo_reader *r, struct module *m) {
    struct pb in = pb_reader(m->body);
    struct pb_field f;
    while (pb_next(&in, &f) && !r->oom) {
        if (f.num == 1 && f.wire == PB_BYTES) m->name = f.bytes;
        if (f.num == 3 && f.wire == PB_BYTES) add_body(r, f.bytes);
        if (f.num == 6 && f.wire == PB_VARINT) m->entry = f.value;
        if (f.num == 7 && f.wire == PB_BYTES) m->schedule = f.bytes;
        if (f.num == 17 && f.wire == PB_BYTES) m->frames = f.bytes;
    }
    if (!r->oom) find_users(r);
    if (r->oom) return;
    find_costs(r);
    find_folded(r);
}

void xspace_hlo(struct xspace *x, struct bytes label, uint64_t program,
                struct bytes proto) {
    x->hlo_bytes += proto.n;
    uint64_t steps = ANY_STEPS + STEPS_PER_BYTE * x->hlo_bytes - x->hlo_steps;
    struct hlo_reader r = {.t = x->t,
                           .steps = steps,
                           .most = ANY_MODULE + proto.n / LEAST_BYTES};
    if (r.most > UINT32_MAX / 2) r.most = UINT32_MAX / 2;
    struct module m = {.label = label,
                       .program = program,
                       .name = {proto.p, 0},
                       .body = {proto.p, 0},
                       .schedule = {proto.p, 0},
                       .frames = {proto.p, 0}};
    struct pb in = pb_reader(proto);
    struct pb_field f;
    while (pb_next(&in, &f))
        if (f.num == 1 && f.wire == PB_BYTES) m.body = f.bytes;
    read_module(&r, &m);
    if (!r.oom && r.nraw > 0) keep_module(&r, &m, x->source);
    x->hlo_steps += steps - r.steps;
    if (r.oom) x->oom = true;
    free(r.raw);
    free(r.bodies);
    free(r.ids);
    free(r.users);
    free(r.first_user);
    map_free(&r.by_id);
    map_free(&r.body_by_id);
}
