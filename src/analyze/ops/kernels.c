/* SPDX-License-Identifier: Apache-2.0
 * kernels: one row per kernel name and device; where there are several ranks,
 * one per name over all of them (--by rank splits it). A kernel that was
 * launched in several shapes shows the shape with most time, and how many there
 * were; --group shape gives each a row of its own. --by class sums them by what
 * their names say they do. */
#include "analyze/analyze.h"
#include "analyze/ops/hlo_cols.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/own.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/hlo/hlo.h"
#include "model/span_class.h"
#include <stdio.h>
#include <stdlib.h>

static const struct opt kernels_opts[] = {
    {.name = "group",
     .type = OPT_CHOICE,
     .arg = "name|shape",
     .dflt = "name",
     .help = "one row per kernel name, or per name and launch shape"},
    {.name = "by",
     .type = OPT_CHOICE,
     .arg = "job|rank|class",
     .dflt = "job",
     .help = "of several ranks: one row for all of them, or one for each; or "
             "one per class of kernels: gemm, attention, ..."},
    {0},
};

struct kernel_group {
    str_id name;
    uint32_t device;   /* the first it ran on ... */
    uint32_t ndevices; /* ... and of a row of all ranks how many these are */
    enum kernel_class class;
    int64_t calls, total, self, min, max;
    int64_t kernels;             /* by class: names */
    int64_t tensor;              /* by class: time of those on matrix units */
    double occupancy_time;       /* sum of occupancy x duration */
    int64_t occupancy_dur;       /* duration of those that have one */
    const struct hlo_instr *hlo; /* the instruction of that op, or NULL */
    str_id program;              /* of XLA, in texts; 0: none */
    str_id op;                   /* launched most of its time; 0: not known */
    int64_t op_time;
    uint32_t variants;
    uint32_t best; /* variant with most time, ROW_NONE: none */
};

/* A launch shape within a group. */
struct variant {
    struct kernel_args a;
    uint32_t group;
    uint32_t next; /* another of the same hash; ROW_NONE ends */
    int64_t time;
};

/* Time of a group's kernels by the op that launched them. */
struct op_time {
    uint32_t group;
    str_id op;
    int64_t time;
};

struct kernels {
    const struct trace *t;
    struct selection selection;
    struct host_tree tree;
    struct kernel_group *v;
    size_t n, cap;
    struct variant *variants;
    size_t nvariants, cap_variants;
    struct op_time *ops;
    size_t nops, cap_ops;
    struct map by_name; /* (device, or ROW_NONE for all; name) -> group */
    struct map by_shape, by_op;
    struct map places; /* of over_ranks: (group, device) that was seen */
    struct map split;  /* --group shape: variant -> group */
    struct strs texts; /* op names that arguments gave */
    bool by_variant;   /* --group shape */
    bool over_ranks;   /* a row is of all ranks */
    bool no_occupancy; /* of some kernel the profiler did not know it */
    struct memo {
        struct kernel_args a;
        str_id op;               /* in texts; STR_NONE: not looked up yet */
        str_id program;          /* the same, for a program of XLA; 0: none */
        uint32_t group, variant; /* of the last kernel; ROW_NONE: none yet */
        bool have;
    } * memo;        /* by category: read once for all launches of a variant */
    str_id *text_of; /* by name of the trace: the same in texts; 0: not yet */
    wide whole;      /* ps, of all rows' own time */
};

/* Returns the variant of a group with that shape, made when new; ROW_NONE if
 * out of memory. */
static uint32_t variant_of(struct kernels *k, uint32_t group,
                           const struct kernel_args *a) {
    uint64_t h = group;
    for (int i = 0; i < 3; i++) {
        h = hash_pair(h, (uint64_t)a->grid[i]);
        h = hash_pair(h, (uint64_t)a->block[i]);
    }
    h = hash_pair(h, (uint64_t)a->registers);
    h = hash_pair(h, (uint64_t)a->shared_bytes);
    uint32_t *at = map_at(&k->by_shape, h);
    if (!at) return ROW_NONE;
    for (uint32_t i = *at; i != MAP_NONE; i = k->variants[i].next) {
        const struct kernel_args *b = &k->variants[i].a;
        if (k->variants[i].group == group &&
            memcmp(a->grid, b->grid, sizeof a->grid) == 0 &&
            memcmp(a->block, b->block, sizeof a->block) == 0 &&
            a->registers == b->registers && a->shared_bytes == b->shared_bytes)
            return i;
    }
    if (!VEC_ROOM(k->variants, k->nvariants, k->cap_variants)) return ROW_NONE;
    k->variants[k->nvariants] = (struct variant){*a, group, *at, 0};
    return *at = (uint32_t)k->nvariants++;
}

/* Returns the group at that place of a map, made when new; ROW_NONE if memory
 * ran out. */
static uint32_t group_at(struct kernels *k, uint32_t *at, str_id name,
                         uint32_t device) {
    if (at == NULL) return ROW_NONE;
    if (*at != MAP_NONE) return *at;
    if (!VEC_ROOM(k->v, k->n, k->cap)) return ROW_NONE;
    struct bytes text = strs_bytes(&k->t->strs, name);
    k->v[k->n] = (struct kernel_group){.name = name,
                                       .device = device,
                                       .class = kernel_class_of(text),
                                       .min = INT64_MAX,
                                       .best = ROW_NONE};
    return *at = (uint32_t)k->n++;
}

/* Counts the devices that a row of all ranks is of. */
static bool count_device(struct kernels *k, uint32_t g, uint32_t device) {
    if (!k->over_ranks) return true;
    uint32_t *seen = map_at(&k->places, (uint64_t)g << 32 | device);
    if (seen == NULL) return false;
    k->v[g].ndevices += *seen == MAP_NONE;
    *seen = 1;
    return true;
}

static bool charge_op(struct kernels *k, uint32_t g, str_id op, row_id r,
                      const struct memo *m) {
    if (op == 0) return true;
    if (op == STR_NONE || m->program == STR_NONE) return false;
    uint32_t *at = map_at(&k->by_op, (uint64_t)g << 32 | op);
    if (!at) return false;
    if (*at == MAP_NONE) {
        if (!VEC_ROOM(k->ops, k->nops, k->cap_ops)) return false;
        k->ops[k->nops] = (struct op_time){g, op, 0};
        *at = (uint32_t)k->nops++;
    }
    struct op_time *o = &k->ops[*at];
    sat_inc(&o->time, k->t->spans.dur[r]);
    if (o->time > k->v[g].op_time) {
        k->v[g].op_time = o->time;
        k->v[g].op = op;
        k->v[g].hlo = hlo_of_span(k->t, r);
        k->v[g].program = m->program;
    }
    return true;
}

/* Returns what the source wrote on the kernel, read once per category where
 * that says it all, else into *own. */
static struct memo *memo_of(struct kernels *k, row_id r, struct memo *own) {
    uint32_t cat = span_cat(k->t, r);
    struct launch l;
    struct memo *m = &k->memo[cat];
    if (m->have) return m;
    if (!launch_of_cat(k->t, cat, &l)) m = own;
    *m = (struct memo){
        kernel_args_of(k->t, r), STR_NONE, 0, ROW_NONE, ROW_NONE, m != own};
    if (m != own && l.module.n > 0)
        m->program = strs_intern(&k->texts, l.module);
    return m;
}

/* Returns the op of a kernel as an id in k->texts: the op that launched it,
 * else what the source wrote on it, else the annotation around the launch. */
static str_id op_of(struct kernels *k, row_id r, row_id launch,
                    struct memo *m) {
    const struct trace *t = k->t;
    row_id op = ROW_NONE;
    if (launch != ROW_NONE) op = host_tree_launcher_name(&k->tree, launch);
    if (op == ROW_NONE || t->spans.kind[op] == SPAN_ANNOTATION) {
        if (m->op == STR_NONE)
            m->op = strs_intern(&k->texts, kernel_hlo_op(t, r));
        if (m->op != 0) return m->op;
    }
    if (op == ROW_NONE || (t->spans.flags[op] & SPAN_STEPMARK) ||
        (span_class(t, op) & CLASS_STEP))
        return 0; /* a step launches nothing by itself */
    str_id name = t->spans.name[op];
    if (k->text_of[name] == 0)
        k->text_of[name] = strs_intern(&k->texts, strs_bytes(&t->strs, name));
    return k->text_of[name];
}

/* Does the row have a line here? On a TPU every op has, also one that only
 * starts a transfer or waits for it. */
static bool is_kernel(const struct trace *t, row_id r) {
    uint32_t d = t->tracks[t->spans.track[r]].device;
    return t->spans.kind[r] == SPAN_KERNEL ||
           (d < t->ndevices && t->devices[d].kind == DEVICE_TPU);
}

static bool count_kernel(void *ctx, row_id r, row_id launch, int64_t own) {
    struct kernels *k = ctx;
    const struct trace *t = k->t;
    if (!is_kernel(t, r) || !select_has(&k->selection, r)) return true;
    int64_t dur = t->spans.dur[r];
    uint32_t device = t->tracks[t->spans.track[r]].device;
    str_id name = t->spans.name[r];
    uint64_t place = k->over_ranks ? ROW_NONE : device;
    uint32_t *at = map_at(&k->by_name, place << 32 | name);
    uint32_t g = group_at(k, at, name, device);
    if (g == ROW_NONE) return false;
    struct memo alone, *m = memo_of(k, r, &alone);
    if (m->group != g) {
        m->group = g;
        m->variant = variant_of(k, g, &m->a);
    }
    uint32_t var = m->variant;
    if (var == ROW_NONE) return false;
    if (k->by_variant) g = group_at(k, map_at(&k->split, var), name, device);
    if (g == ROW_NONE || !count_device(k, g, device)) return false;
    struct kernel_group *v = &k->v[g];
    if (k->variants[var].time == 0) v->variants++;
    /* an instant must count as a variant too, hence the one */
    sat_inc(&k->variants[var].time, dur ? dur : 1);
    if (v->best == ROW_NONE ||
        k->variants[var].time > k->variants[v->best].time)
        v->best = var;
    v->calls++;
    sat_inc(&v->total, dur);
    sat_inc(&v->self, own);
    if (dur < v->min) v->min = dur;
    if (dur > v->max) v->max = dur;
    if (m->a.occupancy_pct >= 0) {
        v->occupancy_time += m->a.occupancy_pct * (double)dur;
        sat_inc(&v->occupancy_dur, dur);
    }
    k->no_occupancy |= m->a.occupancy_unknown;
    k->whole += own;
    return charge_op(k, g, op_of(k, r, launch, m), r, m);
}

static void kernels_put_columns(struct result *r, bool by_variant) {
    unsigned shape = by_variant ? COL_ASKED : COL_DETAIL;
    const struct column cols[] = {
        {"name", "kernel", NULL, "the kernel's function", COL_TEXT,
         COL_KEY | COL_SYMBOL},
        {"device", NULL, NULL,
         "where it ran; over all ranks: on how many devices", COL_TEXT, 0},
        {"class", NULL, NULL,
         "what its name says that it does: gemm, convolution, attention, "
         "normalization, softmax, pooling, optimizer, reduction, indexing, "
         "pointwise, copy, collective; other: it does not say",
         COL_TEXT, COL_LESS},
        {"op", NULL, NULL, "the operation that launched most of its time",
         COL_TEXT, COL_ANSWER},
        {"calls", NULL, NULL, "how often it ran", COL_INT, 0},
        {"total_us", "total", "us", "sum of its durations", COL_TIME, COL_MAIN},
        {"mean_us", "mean", "us", "duration of one", COL_TIME, COL_MEAN},
        {"min_us", "min", "us", "the shortest", COL_TIME, COL_DETAIL},
        {"max_us", "max", "us", "the longest", COL_TIME, COL_DETAIL},
        {"share_pct", "share", "%", "its own time, of that of all kernels",
         COL_PERCENT, COL_BAR},
        {"grid", NULL, NULL, "blocks in the launch", COL_TEXT, shape},
        {"block", NULL, NULL, "threads in a block", COL_TEXT, shape},
        {"registers", "regs", NULL, "registers per thread", COL_INT,
         COL_DETAIL},
        {"shared_bytes", "shared", "bytes",
         "shared memory per block, static and dynamic", COL_BYTES, COL_DETAIL},
        {"occupancy_pct", "occup.", "%",
         "occupancy as the profiler estimated it, mean by duration",
         COL_PERCENT, 0},
        {"tensor_core", "tensor", NULL,
         "does its name say that it uses matrix units?", COL_BOOL, 0},
        {"variants", NULL, NULL,
         "launch shapes seen; the shape shown is the one with most time",
         COL_INT, COL_DETAIL},
    };
    result_cols(r, cols, COUNT(cols));
    hlo_cols(r, COL_DETAIL);
    result_col(r, (struct column){"self_us", "self", "us",
                                  "sum of its durations less what ran inside "
                                  "of it, as the body of a loop does on a TPU",
                                  COL_TIME, COL_DETAIL});
}

static void put_dim3(struct result *r, const char *col, const int64_t d[3]) {
    char buf[72];
    if (d[0] < 0) return;
    snprintf(buf, sizeof buf, "%lld,%lld,%lld", (long long)d[0],
             (long long)d[1], (long long)d[2]);
    cell_text(r, col, buf);
}

static void kernels_put_row(struct result *r, const struct kernels *k,
                            const struct kernel_group *v) {
    const struct trace *t = k->t;
    const struct kernel_args *a = &k->variants[v->best].a;
    result_row(r);
    cell_str(r, "name", strs_bytes(&t->strs, v->name));
    if (v->ndevices > 1)
        cell_text(r, "device",
                  arena_fmt(&r->arena, "%u devices", (unsigned)v->ndevices));
    else if (v->device < t->ndevices)
        cell_text(r, "device",
                  label_device(r, t, t->devices[v->device].source, v->device));
    cell_text(r, "class", kernel_class_name(v->class));
    cell_text(r, "op", v->op ? strs_text(&k->texts, v->op) : NULL);
    cell_int(r, "calls", v->calls);
    cell_int(r, "total_us", v->total);
    cell_int(r, "mean_us", sat_add(v->total, v->calls / 2) / v->calls);
    cell_int(r, "min_us", v->min);
    cell_int(r, "max_us", v->max);
    if (k->whole > 0)
        cell_float(r, "share_pct", 100.0 * (double)v->self / (double)k->whole);
    put_dim3(r, "grid", a->grid);
    put_dim3(r, "block", a->block);
    if (a->registers >= 0) cell_int(r, "registers", a->registers);
    if (a->shared_bytes >= 0) cell_int(r, "shared_bytes", a->shared_bytes);
    if (v->occupancy_dur > 0)
        cell_float(r, "occupancy_pct",
                   v->occupancy_time / (double)v->occupancy_dur);
    cell_bool(r, "tensor_core",
              (t->name_class[v->name] & CLASS_TENSOR_CORE) != 0);
    cell_int(r, "variants", v->variants);
    hlo_cells(r, t, v->hlo,
              v->program ? strs_text(&k->texts, v->program) : NULL);
    cell_int(r, "self_us", v->self);
}

static void kernels_class_columns(struct result *r) {
    static const struct column cols[] = {
        {"class", NULL, NULL,
         "what the names of its kernels say that they do; other: they do not "
         "say",
         COL_TEXT, COL_KEY},
        {"device", NULL, NULL, "where they ran", COL_TEXT, 0},
        {"kernels", NULL, NULL, "how many names", COL_INT, 0},
        {"calls", NULL, NULL, "how often they ran", COL_INT, 0},
        {"total_us", "total", "us", "sum of their durations", COL_TIME,
         COL_MAIN},
        {"mean_us", "mean", "us", "duration of one", COL_TIME, COL_MEAN},
        {"min_us", "min", "us", "the shortest", COL_TIME, COL_DETAIL},
        {"max_us", "max", "us", "the longest", COL_TIME, COL_DETAIL},
        {"share_pct", "share", "%", "their own time, of that of all kernels",
         COL_PERCENT, COL_BAR},
        {"tensor_core_pct", "tensor", "%",
         "of their total, kernels whose names say that they use matrix units",
         COL_PERCENT, 0},
        {"self_us", "self", "us",
         "sum of their durations less what ran inside of them", COL_TIME,
         COL_DETAIL},
    };
    result_cols(r, cols, COUNT(cols));
}

/* Adds a kernel's figures to those of its class. */
static void class_add(struct kernel_group *c, const struct kernel_group *v,
                      bool tensor) {
    c->calls += v->calls;
    sat_inc(&c->total, v->total);
    sat_inc(&c->self, v->self);
    if (v->min < c->min) c->min = v->min;
    if (v->max > c->max) c->max = v->max;
    c->kernels++;
    if (tensor) sat_inc(&c->tensor, v->total);
}

static void class_put_row(struct result *r, const struct kernels *k,
                          const struct kernel_group *c) {
    const struct trace *t = k->t;
    result_row(r);
    cell_text(r, "class", kernel_class_name(c->class));
    if (c->device < t->ndevices && !k->over_ranks)
        cell_text(r, "device",
                  label_device(r, t, t->devices[c->device].source, c->device));
    cell_int(r, "kernels", c->kernels);
    cell_int(r, "calls", c->calls);
    cell_int(r, "total_us", c->total);
    cell_int(r, "mean_us", sat_add(c->total, c->calls / 2) / c->calls);
    cell_int(r, "min_us", c->min);
    cell_int(r, "max_us", c->max);
    if (k->whole > 0)
        cell_float(r, "share_pct", 100.0 * (double)c->self / (double)k->whole);
    if (c->total > 0)
        cell_float(r, "tensor_core_pct",
                   100.0 * (double)c->tensor / (double)c->total);
    cell_int(r, "self_us", c->self);
}

/* Puts a row for each class on each device, or over all ranks. */
static int kernels_put_classes(struct result *r, const struct kernels *k,
                               struct ops_err *e) {
    struct map by = {0};
    struct kernel_group *v = NULL;
    size_t n = 0, cap = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < k->n; i++) {
        const struct kernel_group *g = &k->v[i];
        if (g->calls == 0) continue;
        uint64_t place = k->over_ranks ? ROW_NONE : g->device;
        uint32_t *at = map_at(&by, place << 32 | g->class);
        ok = at != NULL && VEC_ROOM(v, n, cap);
        if (!ok) break;
        if (*at == MAP_NONE) {
            v[n] = (struct kernel_group){.class = g->class,
                                         .device = g->device,
                                         .min = INT64_MAX};
            *at = (uint32_t)n++;
        }
        class_add(&v[*at], g, k->t->name_class[g->name] & CLASS_TENSOR_CORE);
    }
    for (size_t i = 0; ok && i < n; i++) class_put_row(r, k, &v[i]);
    map_free(&by);
    free(v);
    return ok ? 0 : fail_oom(e);
}

static int kernels_gather(struct kernels *k, const struct opts *o,
                          struct ops_err *e) {
    bool by_class = strcmp(opts_text(o, "by"), "class") == 0;
    k->by_variant = strcmp(opts_text(o, "group"), "shape") == 0 && !by_class;
    k->over_ranks = k->t->nprocesses > 1 &&
                    strcmp(opts_text(o, "by"), "rank") != 0;
    k->memo = calloc(k->t->ncats + 1, sizeof *k->memo);
    k->text_of = calloc(k->t->strs.n + 1, sizeof *k->text_of);
    if (!k->memo || !k->text_of || !strs_init(&k->texts)) return fail_oom(e);
    TRY(select_init(&k->selection, k->t, o, e));
    TRY(host_tree_get(&k->tree, k->t, e));
    return own_each_work(k->t, count_kernel, k) ? 0 : fail_oom(e);
}

static int kernels_run(const struct trace *t, const struct opts *o,
                       struct result *r, struct ops_err *e) {
    struct kernels k = {.t = t};
    result_init(r, "kernels", "Device kernels");
    result_from_trace(r, t);
    missing_say(r, t, MISSING_DEVICE);
    bool by_class = strcmp(opts_text(o, "by"), "class") == 0;
    int rc = kernels_gather(&k, o, e);
    if (by_class) {
        kernels_class_columns(r);
        if (rc == 0) rc = kernels_put_classes(r, &k, e);
    } else {
        kernels_put_columns(r, k.by_variant);
        for (size_t i = 0; rc == 0 && i < k.n; i++)
            if (k.v[i].calls > 0) kernels_put_row(r, &k, &k.v[i]);
        if (k.no_occupancy)
            result_remark(r, "Occupancy is not known of some kernels: the "
                             "profiler wrote 0 although warps ran.");
    }
    if (k.over_ranks && k.n > 0)
        result_remark(r, "Rows are of all %zu processes%s.", t->nprocesses,
                      by_class ? "" : "; --by rank shows each rank");
    if (rc == 0) rc = result_done(r, e);
    select_free(&k.selection);
    strs_free(&k.texts);
    map_free(&k.by_name);
    map_free(&k.places);
    map_free(&k.by_shape);
    map_free(&k.by_op);
    map_free(&k.split);
    free(k.v);
    free(k.variants);
    free(k.ops);
    free(k.memo);
    free(k.text_of);
    return rc;
}

const struct analysis analysis_kernels = {
    .name = "kernels",
    .help = "time of each device kernel, its launch shape and who launched it",
    .row = "one device kernel name",
    .opts = kernels_opts,
    .run = kernels_run,
};
