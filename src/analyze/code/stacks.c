/* SPDX-License-Identifier: Apache-2.0
 * stacks: one row per call path, Python frames, framework ops and device
 * kernels in one stack, as a flame graph wants it: "a;b;c" and the time spent
 * there itself. Equal paths are one row; the own times of all rows sum to all
 * the time that was seen, exactly.
 *
 * By device, a kernel stands under the call path that launched it, whichever
 * time it ran at. By host, it is the time of the threads themselves. */
#include "analyze/analyze.h"
#include "analyze/code/paths.h"
#include "analyze/code/thread_walk.h"
#include "analyze/shared/host_tree.h"
#include "analyze/shared/kernel_args.h"
#include "analyze/shared/missing.h"
#include "analyze/shared/own.h"
#include "base/array.h"
#include "base/sort.h"
#include "base/sum.h"
#include "base/vec.h"
#include "model/format.h"
#include "model/hlo/hlo.h"
#include "model/span_class.h"
#include "names/frame_name.h"
#include <stdlib.h>
#include <string.h>

static const struct opt stacks_opts[] = {
    {.name = "by",
     .type = OPT_CHOICE,
     .arg = "host|device",
     .help = "which time: that of threads, or that of device work, under the "
             "calls that launched it (default: device, where there is one)"},
    {0},
};

/* One stack is cut at its outer end beyond this; and when all texts together
 * grow past the other (made-up files: real ones have a few MB), the smallest
 * rows become one. */
enum { STACK_MOST = 64 << 10, TEXT_MOST = 128 << 20 };

struct call_paths {
    const struct trace *t;
    struct selection selection;
    struct host_tree host;
    struct thread_walk walk;
    struct paths paths;
    uint32_t *part;  /* by str_id: the name as a frame, + 1; 0: not yet */
    uint32_t *users; /* by name in paths: 1 no, 2 a frame of the program's own
                        code; 0 not yet known */
    bool device;     /* --by */
    enum path_value value;
    wide whole; /* ps, of all rows */
};

/* Returns a name as a frame: characters that would end a frame or a line are
 * replaced. */
static str_id frame_id(struct call_paths *s, struct bytes name) {
    char buf[4096], stable[FRAME_NAME_MAX];
    struct bytes b = frame_name_stable(name, stable);
    if (b.n > sizeof buf) b.n = sizeof buf; /* strs mends a cut character */
    memcpy(buf, b.p, b.n);
    for (size_t i = 0; i < b.n; i++)
        if (buf[i] == ';' || (unsigned char)buf[i] < ' ') buf[i] = '_';
    str_id id = strs_intern(&s->paths.names,
                            (struct bytes){(const uint8_t *)buf, b.n});
    if (id != STR_NONE) return id;
    s->paths.oom = true;
    return 0;
}

static uint32_t child_of(struct call_paths *s, uint32_t outer, row_id r) {
    str_id name = s->t->spans.name[r];
    if (s->part[name] == 0)
        s->part[name] = frame_id(s, strs_bytes(&s->t->strs, name)) + 1;
    return paths_child_id(&s->paths, outer, s->part[name] - 1);
}

static bool on_wants(void *ctx, row_id r) {
    const struct call_paths *s = ctx;
    const struct trace *t = s->t;
    const struct spans *sp = &t->spans;
    if (sp->flags[r] & SPAN_INSTANT) return false;
    if (sp->kind[r] == SPAN_PYTHON) return true;
    return !span_is_step_mark(t, r) && s->host.key[sp->name[r]] != NAME_DROP;
}

static uint32_t on_enter(void *ctx, row_id r, uint32_t outer) {
    struct call_paths *s = ctx;
    const struct trace *t = s->t;
    bool thread = t->tracks[t->spans.track[r]].kind == TRACK_THREAD;
    row_id rep = thread ? s->host.rep[r] : r;
    if (rep != r && rep != ROW_NONE) return outer; /* seen twice */
    /* the launching call is no more than the kernel's way to the device */
    if (s->device && t->spans.kind[r] == SPAN_API) return outer;
    uint32_t node = child_of(s, outer, r);
    if (!s->device && select_has(&s->selection, r))
        paths_add(&s->paths, node, PATH_CALLS, 1);
    return node;
}

static void on_spend(void *ctx, row_id r, uint32_t node, int64_t from,
                     int64_t to) {
    struct call_paths *s = ctx;
    if (s->device || node == TOKEN_NONE || !select_has(&s->selection, r))
        return;
    paths_add(&s->paths, node, PATH_HOST, to - from);
}

/* Returns what XLA compiled a kernel from, as a frame of its own; 0 if it is
 * not known. */
static str_id compiled_from(struct call_paths *s, row_id d) {
    const struct hlo_instr *i = hlo_of_span(s->t, d);
    const struct track *tr = &s->t->tracks[s->t->spans.track[d]];
    if (!s->t->sources[tr->source].format->has_programs) return 0;
    struct bytes b = {0};
    if (i != NULL && i->op_name) b = strs_bytes(&s->t->strs, i->op_name);
    else if (i == NULL && s->t->spans.kind[d] == SPAN_KERNEL)
        b = kernel_framework_op(s->t, d);
    return b.n > 0 ? frame_id(s, b) : 0;
}

/* Counts a device span. Its node is the launching path, the op of XLA, the span
 * itself; a span inside another one (a loop of a TPU) stands under that. */
static bool count_work(void *ctx, row_id d, row_id launch, int64_t own) {
    struct call_paths *s = ctx;
    row_id p = s->t->spans.parent[d];
    uint32_t node = p == ROW_NONE ? PATH_NONE : s->walk.token[p];
    if (node == PATH_NONE) {
        if (launch != ROW_NONE) node = s->walk.token[launch];
        str_id op = compiled_from(s, d);
        if (op != 0) node = paths_child_id(&s->paths, node, op);
    }
    node = s->walk.token[d] = child_of(s, node, d);
    if (!select_has(&s->selection, d)) return true;
    paths_add(&s->paths, node, PATH_CALLS, 1);
    paths_add(&s->paths, node, PATH_DEVICE, own);
    return true;
}

static bool has_device_work(const struct trace *t) {
    for (size_t i = 0; i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (tr->kind != TRACK_STREAM) continue;
        for (row_id d = tr->first; d < tr->end; d++)
            if (span_is_device_work(t, d)) return true;
    }
    return false;
}

static int gather(struct call_paths *s, const struct opts *o,
                  struct ops_err *e) {
    const struct trace *t = s->t;
    TRY(select_init(&s->selection, t, o, e));
    TRY(host_tree_get(&s->host, t, e));
    s->part = calloc(t->strs.n + 1, sizeof *s->part);
    if (!s->part || !paths_init(&s->paths)) return fail_oom(e);
    s->walk = (struct thread_walk){.t = t,
                                   .ctx = s,
                                   .wants = on_wants,
                                   .enter = on_enter,
                                   .spend = on_spend,
                                   .python = true};
    TRY(thread_walk(&s->walk, e));
    if (s->device && !own_each_work(t, count_work, s)) return fail_oom(e);
    paths_sum_up(&s->paths);
    if (s->paths.oom) return fail_oom(e);
    for (size_t i = 0; i < s->paths.n; i++)
        s->whole += paths_self(&s->paths, i, s->value);
    s->users = calloc(s->paths.names.n + 1, sizeof *s->users);
    return s->users ? 0 : fail_oom(e);
}

static void put_columns(struct result *r, const struct call_paths *s) {
    /* clang-format off */
    const struct column cols[] = {
        {"stack", NULL, NULL, "the calls, outermost first, semicolons between",
         COL_TEXT, COL_KEY | COL_DETAIL | COL_BELOW},
        {"frame", NULL, NULL, "the innermost call, or the kernel", COL_TEXT,
         COL_KEY | COL_SYMBOL},
        {"self_us", "self", "us",
         s->device ? "time on the device" : "time spent there, in nothing "
                                            "that was called from there",
         COL_TIME, COL_MAIN},
        {"total_us", "total", "us", "self_us and that of all paths that go on "
         "from there", COL_TIME, COL_DETAIL},
        {"count", NULL, NULL, "how often that path ran", COL_INT, 0},
        {"share_pct", "share", "%", "self_us, of that of all paths",
         COL_PERCENT, COL_BAR},
        {"op", NULL, NULL, "the call around it", COL_TEXT, 0},
        {"caller", NULL, NULL, "the nearest Python function around it that is "
         "the program's own", COL_TEXT, 0},
    };
    /* clang-format on */
    result_cols(r, cols, COUNT(cols));
}

/* Returns the nearest frame of the program's own code, or NULL. */
static const char *caller_of(struct call_paths *s, uint32_t node) {
    for (uint32_t i = node; i != PATH_NONE; i = s->paths.v[i].parent) {
        uint32_t *known = &s->users[s->paths.v[i].name];
        if (*known == 0) {
            struct frame_name f = frame_name_split(
                strs_bytes(&s->paths.names, s->paths.v[i].name));
            *known = frame_name_is_users(&f) ? 2 : 1;
        }
        if (*known == 2) return paths_name(&s->paths, i);
    }
    return NULL;
}

static void put_row(struct result *r, const struct call_paths *s,
                    const char *stack, const char *frame, int64_t self,
                    int64_t total, int64_t count) {
    result_row(r);
    cell_text(r, "stack", stack);
    cell_text(r, "frame", frame);
    cell_int(r, "self_us", self);
    cell_int(r, "total_us", total);
    cell_int(r, "count", count);
    if (s->whole > 0)
        cell_float(r, "share_pct", 100.0 * (double)self / (double)s->whole);
}

static void put_node(struct result *r, struct call_paths *s, uint32_t node,
                     struct sink *text) {
    uint32_t parent = s->paths.v[node].parent;
    text->n = 0;
    paths_text(&s->paths, node, ";", STACK_MOST, text);
    sink_putc(text, '\0');
    if (text->broken) r->oom = true; /* a path without text misleads */
    put_row(r, s, text->broken ? "" : text->buf, paths_name(&s->paths, node),
            paths_self(&s->paths, node, s->value),
            paths_total(&s->paths, node, s->value),
            paths_self(&s->paths, node, PATH_CALLS));
    cell_text(r, "op",
              parent == PATH_NONE ? NULL : paths_name(&s->paths, parent));
    cell_text(r, "caller", caller_of(s, node));
}

/* Returns the numbers of the nodes that have time of their own, most first;
 * equal ones in the order of the tree, which is one of names. */
static struct sort_key *sort_nodes(const struct call_paths *s, size_t *n) {
    uint32_t *order = paths_order(&s->paths, s->value);
    struct sort_key *v = vec_alloc(s->paths.n + 1, sizeof *v);
    bool ok = order && v;
    *n = 0;
    for (size_t i = 0; ok && i < s->paths.n; i++) {
        int64_t self = paths_self(&s->paths, order[i], s->value);
        if (self == 0) continue;
        v[(*n)++] = (struct sort_key){~sort_signed(self), i, order[i]};
    }
    ok = ok && sort_keys(v, *n);
    free(order);
    if (ok) return v;
    free(v);
    return NULL;
}

static int put_rows(struct result *r, struct call_paths *s, struct ops_err *e) {
    size_t n, i, bytes = 0;
    struct sort_key *v = sort_nodes(s, &n);
    struct sink text;
    if (v == NULL) return fail_oom(e);
    sink_memory(&text);
    for (i = 0; i < n && bytes < TEXT_MOST; i++) {
        put_node(r, s, v[i].row, &text);
        bytes += text.n;
    }
    int64_t self = 0, count = 0;
    for (size_t k = i; k < n; k++) {
        sat_inc(&self, paths_self(&s->paths, v[k].row, s->value));
        sat_inc(&count, paths_self(&s->paths, v[k].row, PATH_CALLS));
    }
    if (i < n)
        put_row(r, s, "(other paths)", "(other paths)", self, self, count);
    sink_free(&text);
    free(v);
    return 0;
}

static void say(struct result *r, const struct call_paths *s, bool asked) {
    const struct trace *t = s->t;
    missing_say(r, t, MISSING_STACKS);
    if (asked && s->device && !has_device_work(t)) {
        missing_say(r, t, MISSING_DEVICE);
        result_remark(r, "No device work was recorded; --by host shows the "
                         "time of threads.");
    } else if (r->nrows == 0) {
        result_remark(r, "Nothing ran that has a call path.");
    } else {
        result_remark(r,
                      "The times are of %s; the whole paths are in the "
                      "column stack (-v, --format json or csv).",
                      s->device ? "device work, under the calls that launched "
                                  "it"
                                : "host threads, waiting included");
    }
}

static int run(const struct trace *t, const struct opts *o, struct result *r,
               struct ops_err *e) {
    struct call_paths s = {.t = t, .device = has_device_work(t)};
    const char *by = opts_text(o, "by");
    if (by != NULL) s.device = strcmp(by, "device") == 0;
    s.value = s.device ? PATH_DEVICE : PATH_HOST;
    result_init(r, "stacks", "Call paths");
    result_from_trace(r, t);
    int rc = gather(&s, o, e);
    if (rc == 0) {
        put_columns(r, &s);
        rc = put_rows(r, &s, e);
    }
    if (rc == 0) {
        say(r, &s, by != NULL);
        rc = result_done(r, e);
    }
    select_free(&s.selection);
    paths_free(&s.paths);
    free(s.walk.token);
    free(s.part);
    free(s.users);
    return rc;
}

const struct analysis analysis_stacks = {
    .name = "stacks",
    .help = "time of each call path, through Python, ops and kernels",
    .row = "one call path",
    .opts = stacks_opts,
    .run = run,
};
