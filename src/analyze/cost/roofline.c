/* SPDX-License-Identifier: Apache-2.0
 * roofline: what each op or kernel could reach at best, and what it does.
 *
 * Work is counted where it is known: torch's ops by the shapes of their inputs
 * (op_cost.h), XLA's by the HLO in the profile (hlo.h). Time is that of the
 * kernels: copies and fills are `copies`' affair. The data type of a product
 * is what its kernel computes in (kernel_names.h), not what the op was given:
 * fp32 tensors may be multiplied in TF32.
 *
 * Where there is no device, the ops of the host are counted, the innermost
 * that has a formula. */
#include "analyze/analyze.h"
#include "analyze/cost/device_peak.h"
#include "analyze/cost/op_cost.h"
#include "analyze/cost/roof_flops.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/missing.h"
#include "base/array.h"
#include "base/map.h"
#include "base/sum.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/format.h"
#include "model/hlo/hlo.h"
#include "names/kernel_names.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const struct opt roofline_opts[] = {
    {.name = "by",
     .type = OPT_CHOICE,
     .arg = "op|kernel",
     .dflt = "op",
     .help = "one row per operation, or per device kernel"},
    {.name = "device-peak",
     .type = OPT_TEXT,
     .arg = "LIST",
     .help = "peaks in FLOP/s and bytes/s instead of the table's: "
             "bf16=989e12,tf32=494e12,fp32=67e12,bw=4.8e12"},
    {0},
};

/* ---- sums of work ---- */

/* Work is charged call by call with the peak of its own device and type, so
 * that a row may hold calls of several types and devices and still have one
 * roof:
 *
 *   compute_s  seconds that the operations take at the peaks
 *   memory_s   seconds that the bytes take at the memory's peak
 *
 * The larger of the two is the least that the work can take, and says what
 * binds it; against the time it took, that is the percentage of the roof. One
 * call of a row that misses a count would make its rates wrong if its time were
 * counted and its work not: such calls are summed apart. */

/* One piece of work; -1 stands for a count that is not known. */
struct roof_work {
    int64_t flops, bytes, time; /* time in ps */
    enum dtype type;            /* that it computes in */
    bool matrix;                /* products of matrices */
};

struct roof_sum {
    int64_t calls, time, flops, bytes;
};

struct roof {
    int64_t calls, time;          /* of all work */
    struct roof_sum both;         /* of that with both counts known */
    struct roof_sum flops, bytes; /* of that with one alone */
    double compute_s, memory_s;   /* of both */
    double matrix_s;              /* compute_s of products of matrices */
    bool no_peak;                 /* some of both has no peak */
    int64_t type_time[DTYPE_N];
};

static void roof_sum_add(struct roof_sum *s, const struct roof_work *w) {
    s->calls++;
    sat_inc(&s->time, w->time);
    if (w->flops > 0) sat_inc(&s->flops, w->flops);
    if (w->bytes > 0) sat_inc(&s->bytes, w->bytes);
}

static void roof_add(struct roof *r, const struct roof_work *w,
                     const struct device_peak *p) {
    assert(w->type < DTYPE_N && w->time >= 0);
    r->calls++;
    sat_inc(&r->time, w->time);
    sat_inc(&r->type_time[w->type], w->time);
    if (w->flops < 0 && w->bytes < 0) return;
    if (w->bytes < 0) {
        roof_sum_add(&r->flops, w);
        return;
    }
    if (w->flops < 0) {
        roof_sum_add(&r->bytes, w);
        return;
    }
    roof_sum_add(&r->both, w);
    /* A product whose type is not known has no peak; work that is no product
     * runs on the vector units whatever its type. Where their peak is not known
     * (TPUs), that of the matrix units stands for it: too high, but memory
     * limits such work long before. */
    double peak = w->flops <= 0 ? 1
                  : w->matrix && w->type == DTYPE_UNKNOWN
                      ? 0
                      : device_peak_flops(p, w->type, w->matrix);
    if (peak <= 0 && !w->matrix) peak = p->flops[DTYPE_BF16];
    if (peak <= 0 || p->bytes_per_s <= 0) {
        r->no_peak = true;
        return;
    }
    r->compute_s += (double)w->flops / peak;
    r->memory_s += (double)w->bytes / p->bytes_per_s;
    if (w->matrix) r->matrix_s += (double)w->flops / peak;
}

static bool has_roof(const struct roof *r) {
    return r->both.calls > 0 && !r->no_peak &&
           (r->compute_s > 0 || r->memory_s > 0);
}

/* Returns the percentage of the roof that binds it; -1 if it is not known. */
static double roof_of_peak(const struct roof *r) {
    if (!has_roof(r) || r->both.time <= 0) return -1;
    double least = r->compute_s > r->memory_s ? r->compute_s : r->memory_s;
    return 100 * least / ((double)r->both.time * 1e-12);
}

/* ---- rows ---- */

struct roof_row {
    struct bytes name; /* borrowed from the trace */
    struct bytes op;   /* the framework's op, where the row is an instruction */
    struct roof roof;
};

/* The kernels that one call of an op launched. */
struct launched {
    int64_t time;
    row_id best; /* the longest, a product before all others */
    int64_t best_time;
    uint32_t kernels, products;
};

/* What is known of a name, looked up once. */
struct name_fact {
    struct kernel_kind kind;
    const struct cost_rule *rule;
    uint32_t row; /* its row + 1; 0: none yet */
    bool kind_seen, rule_seen;
};

struct roofline {
    const struct trace *t;
    struct selection selection;
    struct host_tree tree;
    bool by_kernel;
    struct roof_row *v;
    size_t n, cap;
    struct name_fact *facts;   /* by str_id */
    struct launched *launched; /* one per op's call that launched some */
    size_t nlaunched, cap_launched;
    uint32_t *slot;            /* by host row: its number in launched + 1 */
    struct map by_instr;       /* module's label and instruction -> row */
    uint32_t alone;            /* row of kernels with no launch + 1 */
    struct device_peak *peaks; /* by device; the last is the host's */
    bool *used;                /* by device: some work ran there */
    double matrix_s;           /* of all products in steps, at the peaks */
    int64_t matrix_time, matrix_known; /* ps of kernels of products */
    flops_take *take;                  /* who else is told of FLOPs, or NULL */
    void *ctx;
};

static struct name_fact *fact_of(struct roofline *x, str_id name) {
    struct name_fact *f = &x->facts[name];
    if (!f->kind_seen) {
        f->kind = kernel_kind_of(strs_bytes(&x->t->strs, name));
        f->kind_seen = true;
    }
    return f;
}

static const struct cost_rule *rule_of(struct roofline *x, str_id name) {
    struct name_fact *f = &x->facts[name];
    if (!f->rule_seen) {
        f->rule = op_cost_rule(strs_bytes(&x->t->strs, name));
        f->rule_seen = true;
    }
    return f->rule;
}

static uint32_t device_of(const struct roofline *x, row_id r) {
    uint32_t d = x->t->tracks[x->t->spans.track[r]].device;
    return d < x->t->ndevices ? d : (uint32_t)x->t->ndevices;
}

static struct roof_row *add_row(struct roofline *x, struct bytes name) {
    if (!VEC_ROOM(x->v, x->n, x->cap)) return NULL;
    x->v[x->n] = (struct roof_row){.name = name};
    return &x->v[x->n++];
}

/* Returns the row of a name; NULL if out of memory. */
static struct roof_row *row_of(struct roofline *x, str_id name) {
    struct name_fact *f = &x->facts[name];
    if (f->row > 0) return &x->v[f->row - 1];
    struct roof_row *r = add_row(x, strs_bytes(&x->t->strs, name));
    if (r) f->row = (uint32_t)x->n;
    return r;
}

/* Returns the row of an instruction: names repeat from program to program. */
static struct roof_row *row_of_instr(struct roofline *x,
                                     const struct hlo_instr *i) {
    const struct strs *s = &x->t->strs;
    str_id label = x->t->hlo->modules[i->module].label;
    uint32_t *at = map_at(&x->by_instr, (uint64_t)label << 32 | i->name);
    if (!at) return NULL;
    if (*at != MAP_NONE) return &x->v[*at];
    struct roof_row *r = add_row(x, strs_bytes(s, i->name));
    if (!r) return NULL;
    *at = (uint32_t)(x->n - 1);
    r->op = strs_bytes(s, i->op_name);
    return r;
}

/* Charges work; row is the span whose step and device count, of the op or the
 * kernel that it belongs to. */
static bool charge(struct roofline *x, struct roof_row *to, row_id of,
                   row_id row, const struct roof_work *w) {
    uint32_t d = device_of(x, row);
    if (!to) return false;
    if (x->take && w->flops > 0) x->take(x->ctx, of, w->flops);
    double before = to->roof.matrix_s;
    roof_add(&to->roof, w, &x->peaks[d]);
    x->used[d] = true;
    if (!w->matrix || x->t->spans.step[row] == ROW_NONE) return true;
    x->matrix_s += to->roof.matrix_s - before;
    sat_inc(&x->matrix_time, w->time);
    if (w->flops >= 0) sat_inc(&x->matrix_known, w->time);
    return true;
}

/* Returns what a product of XLA computes in: its kernel's name may say it, and
 * the HLO says whether more than TF32 was asked for. If not, a generated kernel
 * takes TF32 where the device has it. */
static enum dtype type_of_instr(const struct roofline *x, row_id row,
                                const struct hlo_instr *i,
                                struct kernel_kind k) {
    enum dtype d = i->math <= DTYPE_UINT8 ? (enum dtype)i->math : DTYPE_UNKNOWN;
    if (k.matrix && k.dtype != DTYPE_UNKNOWN) return kernel_kind_dtype(k, d);
    if (!i->matrix || d != DTYPE_FP32 || i->full_f32) return d;
    const double *peak = x->peaks[device_of(x, row)].flops;
    if (peak[DTYPE_TF32] > 0) return DTYPE_TF32;
    /* a TPU takes fp32 as bf16 unless told otherwise */
    return peak[DTYPE_FP32] <= 0 && peak[DTYPE_BF16] > 0 ? DTYPE_BF16 : d;
}

static bool charge_instr(struct roofline *x, row_id row,
                         const struct hlo_instr *i) {
    const struct spans *sp = &x->t->spans;
    struct name_fact *f = fact_of(x, sp->name[row]);
    /* A library may launch several kernels for one instruction, which all carry
     * its name: the first takes the cost, the others their time. */
    bool first = hlo_is_first(x->t, row, i);
    struct roof_row *to = x->by_kernel ? row_of(x, sp->name[row])
                                       : row_of_instr(x, i);
    if (!to) return false;
    if (!first && !x->by_kernel && to->roof.calls > 0) {
        sat_inc(&to->roof.time, sp->dur[row]);
        sat_inc(&to->roof.both.time, to->roof.both.calls ? sp->dur[row] : 0);
        return true;
    }
    struct roof_work w = {.flops = first ? i->flops : -1,
                          .bytes = first ? hlo_bytes(i) : -1,
                          .time = sp->dur[row],
                          .matrix = i->matrix,
                          .type = type_of_instr(x, row, i, f->kind)};
    return charge(x, to, row, row, &w);
}

static struct launched *launched_by(const struct roofline *x, row_id op) {
    assert(x->slot[op] > 0);
    return &x->launched[x->slot[op] - 1];
}

/* Notes a kernel with the op that launched it; false if out of memory. */
static bool note_launched(struct roofline *x, row_id op, row_id kernel) {
    if (x->slot[op] == 0) {
        if (!VEC_ROOM(x->launched, x->nlaunched, x->cap_launched)) return false;
        x->launched[x->nlaunched++] = (struct launched){0};
        x->slot[op] = (uint32_t)x->nlaunched;
    }
    struct launched *l = launched_by(x, op);
    int64_t dur = x->t->spans.dur[kernel];
    bool product = fact_of(x, x->t->spans.name[kernel])->kind.matrix;
    bool better = product ? l->products == 0 || dur > l->best_time
                          : l->products == 0 && dur > l->best_time;
    if (l->kernels == 0 || better) {
        l->best = kernel;
        l->best_time = dur;
    }
    sat_inc(&l->time, dur);
    l->kernels++;
    l->products += product;
    return true;
}

/* Charges a kernel of which no op and no instruction is known. Ops of a TPU
 * carry their cost as arguments. */
static bool charge_alone(struct roofline *x, row_id row, row_id launch) {
    const struct trace *t = x->t;
    uint32_t d = device_of(x, row);
    struct name_fact *f = fact_of(x, t->spans.name[row]);
    struct roof_work w = {.flops = -1,
                          .bytes = -1,
                          .time = t->spans.dur[row],
                          .type = f->kind.dtype,
                          .matrix = f->kind.matrix};
    if (d < t->ndevices && t->devices[d].kind == DEVICE_TPU) {
        w.flops = args_int(t, row, "flops", -1);
        w.bytes = args_int(t, row, "bytes_accessed", -1);
        /* its one peak is that of bf16 products */
        w.type = DTYPE_BF16;
        w.matrix = true;
    }
    const struct source *s = &t->sources[t->tracks[t->spans.track[row]].source];
    if (launch == ROW_NONE && !x->by_kernel && source_is_torchs(s)) {
        /* it was launched before the window began: one row, not one per
         * kernel */
        if (x->alone == 0 && add_row(x, bytes_of("(no launch recorded)")))
            x->alone = (uint32_t)x->n;
        return charge(x, x->alone ? &x->v[x->alone - 1] : NULL, row, row, &w);
    }
    if (w.flops < -1) w.flops = -1;
    if (w.bytes < -1) w.bytes = -1;
    return charge(x, row_of(x, t->spans.name[row]), row, row, &w);
}

/* Reads what the program itself says that the scope did. Returns false if it
 * says nothing. */
static bool told_cost(const struct trace *t, row_id row, struct roof_work *w) {
    if (!(t->spans.flags[row] & SPAN_COSTED)) return false;
    w->flops = args_int(t, row, "flops", -1);
    w->bytes = args_int(t, row, "bytes", -1);
    if (w->flops < 0) w->flops = -1;
    if (w->bytes < 0) w->bytes = -1;
    return w->flops >= 0 || w->bytes >= 0;
}

/* Finds what a call of an op costs, and the type that its products run in. */
static void cost_of(struct roofline *x, row_id op, row_id kernel,
                    struct roof_work *w, int *parts) {
    const struct trace *t = x->t;
    const struct cost_rule *rule = rule_of(x, t->spans.name[op]);
    struct kernel_kind k = {0};
    struct op_cost c;
    if (kernel != ROW_NONE) k = fact_of(x, t->spans.name[kernel])->kind;
    *w = (struct roof_work){.flops = -1,
                            .bytes = -1,
                            .type = k.dtype,
                            .matrix = k.matrix};
    *parts = 1;
    if (told_cost(t, op, w)) return;
    uint32_t source = t->tracks[t->spans.track[op]].source;
    if (!rule || !t->sources[source].has_shapes) return;
    if (!op_cost_of(t, op, rule, k.dtype, &c)) return;
    w->flops = c.flops;
    w->bytes = c.bytes;
    w->matrix = c.matrix;
    w->type = kernel == ROW_NONE ? c.type : kernel_kind_dtype(k, c.type);
    *parts = c.parts;
}

/* Charges one call of an op with all its kernels, of which best stands for all;
 * it is ROW_NONE on the host alone. at: whose step and device count. */
static bool charge_op(struct roofline *x, row_id op, row_id at, row_id best,
                      int64_t time) {
    struct roof_work w;
    int parts;
    cost_of(x, op, best, &w, &parts);
    w.time = time;
    str_id name = x->t->spans.name[op], key = x->tree.key[name];
    bool own = best == ROW_NONE || key == NAME_UNSEEN || key == NAME_DROP;
    return charge(x, row_of(x, own ? name : key), op, at, &w);
}

/* Charges one kernel of an op's call: a product takes the op's cost, or its
 * part where the op makes several; another kernel does only if it is alone. */
static bool charge_kernel(struct roofline *x, row_id op, row_id kernel) {
    const struct spans *sp = &x->t->spans;
    const struct launched *l = launched_by(x, op);
    struct kernel_kind k = fact_of(x, sp->name[kernel])->kind;
    struct roof_work w;
    int parts;
    cost_of(x, op, kernel, &w, &parts);
    bool whole = l->kernels == 1 || (k.matrix && l->products == 1);
    if (!whole) {
        bool part = k.matrix && parts > 1 && l->products == (uint32_t)parts;
        w.flops = part && w.flops >= 0 ? w.flops / parts : -1;
        w.bytes = part && w.bytes >= 0 ? w.bytes / parts : -1;
        w.matrix = k.matrix;
    }
    w.time = sp->dur[kernel];
    return charge(x, row_of(x, sp->name[kernel]), kernel, kernel, &w);
}

/* Returns the op that launched a kernel; ROW_NONE if the kernel stands for
 * itself: an instruction of XLA, or one that no op launched. */
static row_id op_of_kernel(const struct roofline *x, row_id r, row_id launch) {
    if (launch == ROW_NONE || hlo_of_span(x->t, r)) return ROW_NONE;
    row_id op = host_tree_launcher(&x->tree, launch);
    return op != ROW_NONE && x->t->spans.kind[op] == SPAN_OP ? op : ROW_NONE;
}

/* Takes the first look at a kernel: it is charged if it stands for itself, else
 * noted with its op. */
static bool take_kernel(struct roofline *x, row_id r, row_id launch) {
    const struct hlo_instr *i = hlo_of_span(x->t, r);
    row_id op = op_of_kernel(x, r, launch);
    if (op != ROW_NONE) return note_launched(x, op, r);
    return i ? charge_instr(x, r, i) : charge_alone(x, r, launch);
}

/* Takes the second look, when all kernels of each op are known. */
static bool share_kernel(struct roofline *x, row_id r, row_id launch) {
    row_id op = op_of_kernel(x, r, launch);
    return op == ROW_NONE || charge_kernel(x, op, r);
}

/* Looks at all kernels in row order, with the links. */
static bool each_kernel(struct roofline *x,
                        bool (*look)(struct roofline *, row_id, row_id)) {
    const struct trace *t = x->t;
    size_t l = 0;
    for (size_t i = 0; i < t->ntracks; i++) {
        if (t->tracks[i].kind != TRACK_STREAM) continue;
        uint32_t d = t->tracks[i].device;
        bool tpu = d < t->ndevices && t->devices[d].kind == DEVICE_TPU;
        for (row_id r = t->tracks[i].first; r < t->tracks[i].end; r++) {
            if (t->spans.kind[r] != SPAN_KERNEL || !span_is_device_work(t, r) ||
                !select_has(&x->selection, r))
                continue;
            /* an op of a TPU with others in it is a loop: the others have the
             * time */
            if (tpu && r + 1 < t->spans.n && t->spans.parent[r + 1] == r)
                continue;
            if (!look(x, r, next_launch(t, r, &l))) return false;
        }
    }
    return true;
}

enum inside { INSIDE_RULED = 1, INSIDE_MATRIX = 2, COVERED = 4 };

/* Finds what stands inside each op, from the leaves up. */
static void look_inside(struct roofline *x, const struct track *tr,
                        uint8_t *inside) {
    const struct spans *sp = &x->t->spans;
    for (row_id r = tr->end; r-- > tr->first;) {
        row_id up = x->tree.up[r];
        if (x->tree.rep[r] != r || up == ROW_NONE) continue;
        const struct cost_rule *rule = sp->kind[r] == SPAN_OP
                                           ? rule_of(x, sp->name[r])
                                           : NULL;
        inside[up] |= inside[r] & (INSIDE_RULED | INSIDE_MATRIX);
        struct roof_work w;
        if (rule || hlo_of_span(x->t, r) || told_cost(x->t, r, &w))
            inside[up] |= INSIDE_RULED;
        if (rule && op_cost_is_matrix(rule)) inside[up] |= INSIDE_MATRIX;
    }
}

/* Does the op count? It may call others that have a formula, too: the innermost
 * counts, but what a product calls (a copy of its bias) is part of the
 * product. */
static bool host_counts(struct roofline *x, row_id r, uint8_t inside) {
    const struct cost_rule *rule = NULL;
    if (x->tree.rep[r] != r || !select_has(&x->selection, r)) return false;
    if (hlo_of_span(x->t, r)) return !(inside & INSIDE_RULED);
    if (x->t->spans.kind[r] == SPAN_OP) rule = rule_of(x, x->t->spans.name[r]);
    struct roof_work w;
    if (!rule) return !(inside & INSIDE_RULED) && told_cost(x->t, r, &w);
    return op_cost_is_matrix(rule) ? !(inside & INSIDE_MATRIX)
                                   : !(inside & INSIDE_RULED);
}

static int host_ops(struct roofline *x, struct ops_err *e) {
    uint8_t *inside = calloc(x->t->spans.n + 1, sizeof *inside);
    bool ok = inside != NULL;
    for (size_t i = 0; ok && i < x->t->ntracks; i++) {
        const struct track *tr = &x->t->tracks[i];
        if (!host_tree_has(&x->tree, (uint32_t)i)) continue;
        look_inside(x, tr, inside);
        /* parents stand before their children: one that is charged covers
         * them */
        for (row_id r = tr->first; ok && r < tr->end; r++) {
            row_id up = x->tree.up[r];
            if (up != ROW_NONE && (inside[up] & COVERED)) inside[r] |= COVERED;
            if ((inside[r] & COVERED) || !host_counts(x, r, inside[r]))
                continue;
            inside[r] |= COVERED;
            const struct hlo_instr *instr = hlo_of_span(x->t, r);
            ok = instr ? charge_instr(x, r, instr)
                       : charge_op(x, r, r, ROW_NONE, x->t->spans.dur[r]);
        }
    }
    free(inside);
    return ok ? 0 : fail_oom(e);
}

static int find_peaks(struct roofline *x, const char *text, struct ops_err *e) {
    size_t n = x->t->ndevices + 1;
    x->peaks = calloc(n, sizeof *x->peaks);
    x->used = calloc(n, sizeof *x->used);
    if (!x->peaks || !x->used) return fail_oom(e);
    for (uint32_t d = 0; d < n; d++) {
        struct ops_err bad;
        uint32_t device = d < x->t->ndevices ? d : ROW_NONE;
        if (!device_peak_of(x->t, device, text, &x->peaks[d], &bad) &&
            bad.code != 0) {
            *e = bad;
            return bad.code;
        }
    }
    return 0;
}

static bool has_device(const struct trace *t) {
    for (size_t i = 0; i < t->ntracks; i++)
        if (t->tracks[i].kind == TRACK_STREAM &&
            t->tracks[i].first < t->tracks[i].end)
            return true;
    return false;
}

/* Charges all work in the selection; peaks: as --device-peak, or NULL. */
static int roofline_gather(struct roofline *x, const char *peaks,
                           struct ops_err *e) {
    const struct trace *t = x->t;
    TRY(find_peaks(x, peaks, e));
    TRY(host_tree_get(&x->tree, t, e));
    x->facts = calloc(t->strs.n + 1, sizeof *x->facts);
    x->slot = calloc(t->spans.n + 1, sizeof *x->slot);
    if (!x->facts || !x->slot) return fail_oom(e);
    if (!has_device(t)) return host_ops(x, e);
    bool ok = each_kernel(x, take_kernel);
    if (x->by_kernel)
        return ok && each_kernel(x, share_kernel) ? 0 : fail_oom(e);
    for (row_id r = 0; ok && r < t->spans.n; r++) {
        if (x->slot[r] == 0) continue;
        const struct launched *l = launched_by(x, r);
        ok = charge_op(x, r, l->best, l->best, l->time);
    }
    return ok ? 0 : fail_oom(e);
}

static void roofline_columns(struct result *r, const struct roofline *x) {
    unsigned name = x->by_kernel ? COL_KEY | COL_SYMBOL : COL_KEY;
    const struct column cols[] = {
        {"name", x->by_kernel ? "kernel" : "operation", NULL,
         "the operation or kernel; of XLA, the instruction", COL_TEXT, name},
        {"calls", NULL, NULL, "how often it ran", COL_INT, COL_LESS},
        {"device_us", "time", "us",
         "time of its kernels; where there is no device, its time on the host",
         COL_TIME, COL_MAIN},
        {"dtype", "type", NULL,
         "the data type that most of its time computes in", COL_TEXT, 0},
        {"flops", NULL, NULL,
         "floating-point operations, a multiply and an add being two", COL_INT,
         COL_DETAIL},
        {"bytes", NULL, "bytes",
         "what it must at least read and write, each tensor once", COL_BYTES,
         COL_SIZE | COL_DETAIL},
        {"intensity", "FLOP/byte", NULL, "flops / bytes", COL_FLOAT, 0},
        {"gflops", "GFLOP/s", NULL, "10^9 operations per second", COL_FLOAT, 0},
        {"gb_per_s", "rate", "GB/s", "10^9 bytes per second", COL_FLOAT, 0},
        {"bound", NULL, NULL,
         "what limits it at best: compute (its intensity is over the ridge), "
         "memory, or unknown",
         COL_TEXT, COL_ANSWER},
        {"of_peak_pct", "of roof", "%",
         "reached, of what the device allows at this intensity: the peak of "
         "its type, or bandwidth x intensity",
         COL_PERCENT, COL_BAR | COL_ANSWER},
        {"peak_gflops", "peak GFLOP/s", NULL, "the device's peak for its type",
         COL_FLOAT, COL_DETAIL},
        {"ridge", NULL, NULL,
         "FLOP/byte from which on compute limits: peak / bandwidth", COL_FLOAT,
         COL_DETAIL},
        {"counted_us", "counted", "us",
         "time of the calls whose flops or bytes are known, which the rates "
         "are of",
         COL_TIME, COL_DETAIL},
        {"op", "framework op", NULL, "the framework's op that XLA made it from",
         COL_TEXT, COL_DETAIL},
    };
    result_cols(r, cols, COUNT(cols));
}

static void put_roof(struct result *r, const struct roof_row *v) {
    const struct roof *f = &v->roof;
    /* sums of calls with both counts, else of those with one count */
    const struct roof_sum *s = f->both.calls > 0    ? &f->both
                               : f->flops.calls > 0 ? &f->flops
                                                    : &f->bytes;
    bool flops = s != &f->bytes && s->calls > 0;
    bool bytes = s != &f->flops && s->calls > 0, roof = has_roof(f);
    double time = (double)s->time, pct = roof_of_peak(f);
    /* FLOP/s and bytes/s of its roofs, means over its work; 0 if not known */
    double peak = roof && f->compute_s > 0
                      ? (double)f->both.flops / f->compute_s
                      : 0;
    double width = roof && f->memory_s > 0 ? (double)f->both.bytes / f->memory_s
                                           : 0;
    int type = DTYPE_UNKNOWN; /* the one with most time */
    for (int i = 0; i < DTYPE_N; i++)
        if (f->type_time[i] > f->type_time[type]) type = i;
    result_row(r);
    cell_str(r, "name", v->name);
    cell_int(r, "calls", f->calls);
    cell_int(r, "device_us", f->time);
    cell_text(r, "dtype", type ? dtype_name((enum dtype)type) : NULL);
    if (flops) cell_int(r, "flops", s->flops);
    if (bytes) cell_int(r, "bytes", s->bytes);
    if (flops && bytes && s->bytes > 0)
        cell_float(r, "intensity", (double)s->flops / (double)s->bytes);
    if (flops && time > 0)
        cell_float(r, "gflops", (double)s->flops / time * 1e3);
    if (bytes && time > 0)
        cell_float(r, "gb_per_s", (double)s->bytes / time * 1e3);
    cell_text(r, "bound",
              !roof                         ? "unknown"
              : f->compute_s >= f->memory_s ? "compute"
                                            : "memory");
    if (pct >= 0) cell_float(r, "of_peak_pct", pct);
    if (peak > 0) cell_float(r, "peak_gflops", peak / 1e9);
    if (peak > 0 && width > 0) cell_float(r, "ridge", peak / width);
    if (s->calls > 0) cell_int(r, "counted_us", s->time);
    if (v->op.n > 0) cell_str(r, "op", v->op);
}

/* Writes "bf16 989 TFLOP/s, ..." of what the device has, for a remark. */
static void peak_words(const struct device_peak *p, char *buf, size_t n) {
    static const enum dtype shown[] = {DTYPE_FP8,  DTYPE_BF16, DTYPE_FP16,
                                       DTYPE_TF32, DTYPE_FP32, DTYPE_FP64};
    size_t at = 0;
    buf[0] = 0;
    for (size_t i = 0; i < COUNT(shown); i++) {
        double v = p->flops[shown[i]];
        if (v <= 0 || at >= n) continue;
        if (shown[i] == DTYPE_FP16 && p->flops[DTYPE_BF16] == v) continue;
        at += (size_t)snprintf(buf + at, n - at, "%s %.4g, ",
                               dtype_name(shown[i]), v / 1e12);
    }
    if (at >= 2 && at < n) buf[at - 2] = 0;
}

/* Says which peaks were used, once per model of device, and which are not
 * known. */
static void say_peaks(struct result *r, const struct roofline *x) {
    const struct trace *t = x->t;
    const char *fix = "give it: --device-peak bf16=989e12,fp32=67e12,bw=4.8e12"
                      " (FLOP/s and bytes/s)";
    struct map told = {0}; /* models of devices */
    for (size_t d = 0; d <= t->ndevices && !r->oom; d++) {
        const struct device_peak *p = &x->peaks[d];
        str_id model = d < t->ndevices ? t->devices[d].model : 0;
        if (!x->used[d] || map_get(&told, model) != MAP_NONE) continue;
        if (!map_set(&told, model, 1)) r->oom = true;
        const char *name = d == t->ndevices ? "the host's CPU"
                           : model          ? strs_text(&t->strs, model)
                                   : strs_text(&t->strs, t->devices[d].label);
        char words[160];
        peak_words(p, words, sizeof words);
        if (p->source && words[0] && p->bytes_per_s > 0)
            result_remark(r,
                          "Peaks of %s, in TFLOP/s: %s; memory %.4g GB/s "
                          "(%s).",
                          name, words, p->bytes_per_s / 1e9, p->source);
        else
            result_missing(r, "the device's peak",
                           d == t->ndevices
                               ? "no table has the peaks of this host's CPU"
                               : "no table has this device, and the profile "
                                 "does not tell its units and clock",
                           fix);
    }
    map_free(&told);
}

/* How much of the time has its work counted. */
struct counted {
    int64_t time, known;          /* ps */
    size_t unknown, over;         /* rows with no count, and over 100 % */
    const struct roof_row *worst; /* the longest of unknown */
};

/* Says what is not counted, and why. */
static void say_unknown(struct result *r, const struct roofline *x,
                        const struct counted *c) {
    char what[200], name[80];
    if (c->unknown == 0) return;
    bool torch = false, shapes = true, own = false;
    for (size_t i = 0; i < x->t->nsources; i++) {
        const struct source *s = &x->t->sources[i];
        own |= s->by_opscope;
        torch |= source_is_torchs(s);
        if (source_is_torchs(s) && !s->has_shapes) shapes = false;
    }
    const char *one = x->by_kernel ? "kernel" : "operation";
    const char *many = x->by_kernel ? "kernels" : "operations";
    cut_fmt(name, sizeof name, "%.*s%s", CUT_BYTES(60, c->worst->name),
            c->worst->name.n > 60 ? "..." : "");
    snprintf(what, sizeof what, "FLOPs of %zu %s (most time: %s)", c->unknown,
             c->unknown == 1 ? one : many, name);
    if (own)
        result_missing(r, what, "the program's scopes do not tell them",
                       "ops_arg_int(\"flops\", n) and ops_arg_int(\"bytes\", "
                       "n) inside of the scope");
    else if (torch && !shapes) missing_say(r, x->t, MISSING_SHAPES);
    else if (torch)
        result_missing(r, what,
                       x->by_kernel
                           ? "no formula has them, or their op launched "
                             "several kernels and does not say who did what"
                           : "no formula has them, or some of their calls' "
                             "shapes",
                       "read them as time alone; what compiled code computes "
                       "is not in the profile");
    else if (x->t->notes[NOTE_GRAPH_KERNEL_UNPLACED] > 0)
        result_missing(r, what,
                       "kernels of CUDA graphs do not say which instruction of "
                       "their program's HLO they are, and these fit none",
                       missing_advice(x->t, ADVICE_GRAPH));
    else
        result_missing(r, what,
                       "the profile has no HLO for them, and TensorFlow's ops "
                       "record no shapes",
                       "profile a program that XLA compiled (JAX, "
                       "jit_compile=True): its HLO comes with the profile");
}

/* Returns the steps' time, once for each device of their source that was used;
 * -1 if out of memory. */
static int64_t step_time(const struct roofline *x, bool *whole) {
    const struct trace *t = x->t;
    int64_t sum = 0, part;
    int64_t *devices = calloc(t->nsources + 1, sizeof *devices);
    *whole = false;
    if (devices == NULL) return -1;
    for (size_t d = 0; d < t->ndevices; d++)
        devices[t->devices[d].source] += x->used[d];
    for (size_t i = 0; i < t->nsteps; i++) {
        uint32_t source = t->steps[i].source;
        if (!x->selection.step_in[i]) continue;
        if (__builtin_mul_overflow(devices[source], t->steps[i].dur, &part))
            part = INT64_MAX;
        sat_inc(&sum, part);
        *whole |= t->sources[source].step_rule == STEPS_WHOLE;
    }
    free(devices);
    return sum;
}

/* Says how much of the steps the products would take at the peaks: only where
 * nearly all of them are counted, or it would be too low without saying so. */
static void say_mfu(struct result *r, const struct roofline *x) {
    bool whole;
    int64_t time = step_time(x, &whole);
    if (time < 0) r->oom = true;
    if (x->matrix_s <= 0 || time <= 0 || !has_device(x->t)) return;
    double known = (double)x->matrix_known / (double)x->matrix_time;
    if (known < 0.95) {
        result_remark(r,
                      "No model FLOPs utilisation: the FLOPs of %.0f %% of "
                      "the time of matrix products are known; it takes 95.",
                      100 * known);
        return;
    }
    result_remark(r,
                  "Model FLOPs utilisation (MFU): %.2f %%. The matrix "
                  "products would take %.4g of %.4g ms of %s at the peaks of "
                  "their types; scores that attention works out again count "
                  "as work.",
                  100 * x->matrix_s / ((double)time * 1e-12), x->matrix_s * 1e3,
                  (double)time * 1e-9, whole ? "the window" : "steps");
}

static void roofline_say(struct result *r, const struct roofline *x) {
    struct counted c = {0};
    for (size_t i = 0; i < x->n; i++) {
        const struct roof *f = &x->v[i].roof;
        int64_t known = sat_add(f->both.time, f->flops.time);
        sat_inc(&c.time, f->time);
        sat_inc(&c.known, known);
        if (roof_of_peak(f) > 100) c.over++;
        if (known == f->time && f->both.calls + f->flops.calls > 0) continue;
        c.unknown++;
        if (!c.worst || f->time > c.worst->roof.time) c.worst = &x->v[i];
    }
    say_peaks(r, x);
    if (x->n == 0 && x->t->spans.n > 0) {
        missing_say(r, x->t, MISSING_SHAPES);
        result_remark(r, "No kernel and no operation with a known formula: "
                         "there is nothing to put under a roof.");
    }
    if (c.time > 0)
        result_remark_n(r, x->n,
                        "FLOPs are known for %.1f %% of the time shown, %zu "
                        "of %zu row[|s].",
                        100.0 * (double)c.known / (double)c.time,
                        x->n - c.unknown, x->n);
    if (c.over > 0)
        result_remark(r,
                      "%zu %s over 100 %%: bytes count as if all came from "
                      "memory, and what is in the L2 cache comes faster; "
                      "convolutions count as by the direct method, and "
                      "Winograd's and FFT's need fewer operations.",
                      c.over, c.over == 1 ? "row is" : "rows are");
    say_mfu(r, x);
    say_unknown(r, x, &c);
}

/* Frees all but the selection. */
static void roofline_free(struct roofline *x) {
    map_free(&x->by_instr);
    free(x->v);
    free(x->facts);
    free(x->launched);
    free(x->slot);
    free(x->peaks);
    free(x->used);
}

int roof_flops_each(const struct trace *t, const struct selection *in,
                    flops_take *take, void *ctx, struct ops_err *e) {
    struct roofline x = {.t = t, .selection = *in, .take = take, .ctx = ctx};
    int rc = roofline_gather(&x, NULL, e);
    roofline_free(&x);
    return rc;
}

static int roofline_run(const struct trace *t, const struct opts *o,
                        struct result *r, struct ops_err *e) {
    struct roofline x = {.t = t,
                         .by_kernel = strcmp(opts_text(o, "by"), "kernel") ==
                                      0};
    result_init(r, "roofline", "Roofline");
    result_from_trace(r, t);
    int rc = select_init(&x.selection, t, o, e);
    if (rc == 0) rc = roofline_gather(&x, opts_text(o, "device-peak"), e);
    roofline_columns(r, &x);
    for (size_t i = 0; rc == 0 && i < x.n; i++) put_roof(r, &x.v[i]);
    if (rc == 0) roofline_say(r, &x);
    if (rc == 0) rc = result_done(r, e);
    select_free(&x.selection);
    roofline_free(&x);
    return rc;
}

const struct analysis analysis_roofline = {
    .name = "roofline",
    .help = "how near each op comes to what the device can do, and what limits "
            "it",
    .row = "one operation or kernel",
    .opts = roofline_opts,
    .run = roofline_run,
};
