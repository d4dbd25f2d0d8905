/* SPDX-License-Identifier: Apache-2.0
 * tree: one row per scope of the program, in the order of the tree, siblings by
 * time: what scope_tree.h counted, and which kind of scope it was. */
#include "analyze/analyze.h"
#include "analyze/code/scope_tree.h"
#include "analyze/shared/missing.h"

#include "base/array.h"
#include "base/text/glob.h"
#include <stdlib.h>
#include <string.h>

static const struct opt tree_opts[] = {
    {.name = "by",
     .type = OPT_CHOICE,
     .arg = "scope|module|op|code",
     .help = "what the tree is made of: name scopes and regions, nn.Modules, "
             "operations, lines of Python (default: the best there is)"},
    {.name = "scope",
     .type = OPT_TEXT,
     .arg = "GLOB",
     .help = "only scopes whose path matches, and all inside of them"},
    {0},
};

/* How many bytes of paths one result may hold; see PATH_DEPTH_MAX. */
enum { PATH_MOST = 16 << 10, TEXT_MOST = 256 << 20 };

struct tree {
    struct scope_tree s;
    const char *glob; /* --scope, or NULL */
    bool *in;         /* by node: shown by --scope */
    struct sink path; /* scratch: the path of one node */
    size_t texts;     /* bytes of paths so far */
    bool shapes;
};

static void tree_columns(struct result *r, const struct tree *x) {
    unsigned dev = x->s.device ? COL_MAIN : 0;
    unsigned host = x->s.device ? 0 : COL_MAIN;
    /* clang-format off */
    const struct column cols[] = {
        {"path", NULL, NULL, "the scope with all scopes around it, outermost "
         "first, slashes between", COL_TEXT, COL_KEY | COL_DETAIL},
        {"name", "scope", NULL, "the scope's own name", COL_TEXT,
         COL_KEY | COL_INDENT},
        {"depth", NULL, NULL, "how many scopes are around it", COL_INT,
         COL_DETAIL},
        {"calls", NULL, NULL, "how often it ran; of a name scope, how many "
         "operations ran in it", COL_INT, 0},
        {"host_us", "host", "us", "time on the host, in it and inside of it",
         COL_TIME, host},
        {"host_self_us", "host self", "us",
         "time on the host less that of the scopes inside of it", COL_TIME,
         x->s.device ? COL_DETAIL : 0},
        {"device_us", "device", "us",
         "time of the device work launched in it and inside of it; work that "
         "runs at the same time counts each", COL_TIME, dev},
        {"device_self_us", "device self", "us",
         "time of the device work launched in it, in no scope inside of it",
         COL_TIME, 0},
        {"bytes", NULL, "bytes", "memory allocated in it and inside of it: on "
         "the device where that was recorded, else on the host", COL_BYTES,
         COL_SIZE},
        {"flops", NULL, "FLOP", "floating-point operations in it and inside "
         "of it, the backward pass with its forward, as `roofline` counts "
         "them", COL_INT, 0},
        {"parameters", "params", NULL, "weights of it and of what is inside "
         "of it, as seen at its first call", COL_INT, 0},
        {"backward_host_us", "bwd host", "us", "of host_us, the backward pass",
         COL_TIME, COL_DETAIL},
        {"backward_device_us", "bwd device", "us",
         "of device_us, the backward pass", COL_TIME, 0},
    };
    /* clang-format on */
    result_cols(r, cols, COUNT(cols));
}

static void put_scope(struct result *r, struct tree *x, uint32_t node,
                      const char *path) {
    const struct paths *p = &x->s.paths;
    const struct path_node *v = &p->v[node];
    int64_t self[PATH_VALUES], total[PATH_VALUES];
    for (int i = 0; i < PATH_VALUES; i++) {
        self[i] = paths_self(p, node, i);
        total[i] = paths_total(p, node, i);
    }
    /* a scope that is known from device work alone has no figures of the
     * host */
    bool dev = x->s.device, host = v->has & (1u << PATH_HOST);
    bool bytes = x->s.memory && (host || (v->has & (1u << PATH_BYTES)));
    int64_t calls = self[PATH_CALLS] ? self[PATH_CALLS] : total[PATH_CALLS];
    result_row(r);
    cell_text(r, "path", path);
    cell_text(r, "name", paths_name(&x->s.paths, node));
    cell_int(r, "depth", v->depth);
    if (node != NO_SCOPE) cell_int(r, "calls", calls);
    if (host) {
        cell_int(r, "host_us", total[PATH_HOST]);
        cell_int(r, "host_self_us", self[PATH_HOST]);
        cell_int(r, "backward_host_us", total[PATH_HOST_BACK]);
    }
    if (dev) {
        cell_int(r, "device_us", total[PATH_DEVICE]);
        cell_int(r, "device_self_us", self[PATH_DEVICE]);
        cell_int(r, "backward_device_us", total[PATH_DEVICE_BACK]);
    }
    if (bytes) cell_int(r, "bytes", total[PATH_BYTES]);
    if (v->has & (1u << PATH_FLOPS)) cell_int(r, "flops", total[PATH_FLOPS]);
    if (v->has & (1u << PATH_PARAMS))
        cell_int(r, "parameters", total[PATH_PARAMS]);
}

/* Did nothing run in it in the chosen steps, or is nothing outside scopes? */
static bool is_empty(const struct paths *p, uint32_t node) {
    for (int i = 0; i < PATH_VALUES; i++)
        if (paths_total(p, node, i) != 0) return false;
    return true;
}

static int tree_rows(struct result *r, struct tree *x, struct ops_err *e) {
    const struct paths *p = &x->s.paths;
    enum path_value by = x->s.device ? PATH_DEVICE : PATH_HOST;
    uint32_t *order = paths_order(p, by);
    x->in = calloc(p->n + 1, sizeof *x->in);
    if (order == NULL || x->in == NULL) {
        free(order);
        return fail_oom(e);
    }
    for (size_t i = 0; i < p->n; i++) {
        const struct path_node *v = &p->v[order[i]];
        /* A made-up file may have a million nodes at the end of long paths:
         * beyond a bound the name has to do. */
        size_t most = x->texts < TEXT_MOST ? PATH_MOST : 0;
        x->path.n = 0;
        paths_text(p, order[i], "/", most, &x->path);
        sink_putc(&x->path, '\0');
        x->texts += x->path.n;
        const char *path = x->path.broken ? "" : x->path.buf;
        x->in[order[i]] = x->glob == NULL ||
                          (v->parent != PATH_NONE && x->in[v->parent]) ||
                          glob_match(x->glob, path);
        if (x->in[order[i]] && !is_empty(p, order[i]))
            put_scope(r, x, order[i], path);
        if (x->path.broken) r->oom = true; /* a path without text misleads */
    }
    free(order);
    return 0;
}

/* What the tree is made of, as --by names it, in words; and why it is that. */
static const struct {
    const char *name, *kind, *why;
} ways[] = {
    [BY_SCOPE] = {"scope", "name scopes and the regions that the program named",
                  "the operations' names spell them"},
    [BY_MODULE] = {"module", "nn.Modules",
                   "the profile has the frames of modules"},
    [BY_OP] = {"op", "operations and regions, as they were called",
               "the profile has neither modules nor name scopes"},
    [BY_CODE] = {"code", "lines of Python code", "asked for"},
};

static void say_by(struct result *r, const struct tree *x, bool asked) {
    bool folded = false;
    for (size_t i = 0; i < x->s.paths.n; i++)
        folded |= paths_self(&x->s.paths, i, PATH_HOST_BACK) != 0 ||
                  paths_self(&x->s.paths, i, PATH_DEVICE_BACK) != 0;
    if (!asked)
        result_remark(r, "Scopes here are %s: %s; --by shows others.",
                      ways[x->s.by].kind, ways[x->s.by].why);
    if (folded)
        result_remark(r, "The backward pass counts in the scope of its "
                         "forward operation (columns backward_*_us say how "
                         "much).");
    if (x->s.paths.n > 1 && !is_empty(&x->s.paths, NO_SCOPE) && x->glob == NULL)
        result_remark(r, "(no scope) is all work in none of them.");
}

static void say_parameters(struct result *r, const struct tree *x) {
    bool torch = false;
    for (uint32_t i = 0; i < x->s.t->nsources; i++)
        torch |= framework_of(x->s.t, i) == FW_TORCH;
    for (size_t i = 0; i < x->s.paths.n; i++)
        if (x->s.paths.v[i].has & (1u << PATH_PARAMS)) return;
    if (missing_own(x->s.t)) return; /* a C program has no modules */
    if (x->s.by != BY_MODULE)
        result_lacks(r, "parameters",
                     "weights are known of nn.Modules only, from the "
                     "inputs of their layers' operations",
                     torch ? "profile with with_stack=True and "
                             "record_shapes=True, then --by module"
                           : NULL);
    else
        result_missing(r, "parameters",
                       x->shapes ? "no operation of a layer with weights was "
                                   "called: compiled code has none"
                                 : "the ops' input shapes were not recorded",
                       x->shapes ? "profile the program uncompiled, too"
                                 : "profile with record_shapes=True");
}

/* Says why a tree that was asked for is empty. */
static void say_empty(struct result *r, const struct tree *x) {
    if (x->glob != NULL && r->nrows == 0) {
        result_remark(r, "No scope matches '%s'.", x->glob);
        return;
    }
    if (x->s.paths.n > 1) return;
    if (x->s.by == BY_MODULE || x->s.by == BY_CODE)
        missing_say(r, x->s.t, MISSING_STACKS);
    result_remark(r, "There are no %s in this profile%s.", ways[x->s.by].kind,
                  is_empty(&x->s.paths, NO_SCOPE) ? " (nor any other work)"
                                                  : "");
}

static int tree_run(const struct trace *t, const struct opts *o,
                    struct result *r, struct ops_err *e) {
    struct tree x = {.glob = opts_text(o, "scope")};
    struct selection scope;
    const char *asked = opts_text(o, "by");
    enum scope_by by = scope_tree_best(t);
    for (size_t i = 0; asked != NULL && i < COUNT(ways); i++)
        if (strcmp(asked, ways[i].name) == 0) by = (enum scope_by)i;
    TRY(select_init(&scope, t, o, e));
    result_init(r, "tree", "Scopes");
    result_from_trace(r, t);
    sink_memory(&x.path);
    int rc = scope_tree_init(&x.s, t, &scope, by, e);
    if (rc == 0) {
        missing_too(r, t, MISSING_DEVICE);
        missing_too(r, t, MISSING_MEMORY);
        if (t->hlo == NULL) x.shapes = missing_too(r, t, MISSING_SHAPES);
        tree_columns(r, &x);
        r->in_order = r->top_largest = true;
        rc = tree_rows(r, &x, e);
    }
    if (rc == 0) {
        say_by(r, &x, asked != NULL);
        say_parameters(r, &x);
        say_empty(r, &x);
        rc = result_done(r, e);
    }
    sink_free(&x.path);
    free(x.in);
    scope_tree_free(&x.s);
    select_free(&scope);
    return rc;
}

const struct analysis analysis_tree = {
    .name = "tree",
    .help = "time and memory of each module, name scope, region or code line",
    .row = "one name scope, module or region",
    .opts = tree_opts,
    .run = tree_run,
};
