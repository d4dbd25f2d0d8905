/* SPDX-License-Identifier: Apache-2.0
 * The plain case costs one array access a span. The finer one reads the span's
 * arguments or Python frames and walks a chain of small hash maps:
 * (name, kind) -> with shapes -> with stack -> with module. */
#include "analyze/ops/op_groups.h"
#include "analyze/cost/op_cost.h"
#include "analyze/shared/host_tree.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/format.h"
#include "model/hlo/hlo.h"
#include <stdlib.h>

static int parse_by(const char *list, unsigned *by, struct ops_err *e) {
    static const char *const words[] = {"shapes", "stack", "module"};
    *by = 0;
    while (list && *list) {
        size_t n = strcspn(list, ","), i = 0;
        while (i < COUNT(words) &&
               (strlen(words[i]) != n || memcmp(words[i], list, n) != 0))
            i++;
        if (i == COUNT(words))
            return fail(e, OPS_EUSAGE,
                        "--group: '%.*s' is not known; it takes shapes, stack "
                        "and module, separated by commas",
                        CUT_BYTES(40,
                                  ((struct bytes){(const uint8_t *)list, n})));
        *by |= 1u << i; /* enum group_by */
        list += n + (list[n] == ',');
    }
    return 0;
}

int op_groups_init(struct op_groups *g, const struct trace *t, const char *list,
                   struct ops_err *e) {
    *g = (struct op_groups){.t = t};
    TRY(parse_by(list, &g->by, e));
    for (size_t i = 0; i < COUNT(g->slot); i++) {
        g->slot[i] = calloc(t->strs.n + 1, sizeof *g->slot[i]);
        if (!g->slot[i]) return fail_oom(e);
    }
    g->program = malloc((t->ncats + 1) * sizeof *g->program);
    if (!g->program || !strs_init(&g->texts)) return fail_oom(e);
    for (size_t i = 0; i <= t->ncats; i++) g->program[i] = STR_NONE;
    return g->by ? pystack_init(&g->stacks, t, e) : 0;
}

void op_groups_free(struct op_groups *g) {
    for (size_t i = 0; i < COUNT(g->slot); i++) free(g->slot[i]);
    for (int i = 0; i < 3; i++) map_free(&g->finer[i]);
    for (int i = 0; i < 2; i++) map_free(&g->in_program[i]);
    map_free(&g->in_rank);
    free(g->rank);
    free(g->program);
    strs_free(&g->texts);
    pystack_free(&g->stacks);
    free(g->v);
    *g = (struct op_groups){0};
}

const char *op_groups_text(const struct op_groups *g, str_id id) {
    return id == 0 ? NULL : strs_text(&g->texts, id);
}

/* Returns the number of a new group like that one; ROW_NONE if memory ran
 * out. */
static uint32_t add_group(struct op_groups *g, struct op_group like) {
    if (!VEC_ROOM(g->v, g->n, g->cap)) return ROW_NONE;
    like.order = (uint32_t)g->n;
    if (like.kind == SPAN_OP)
        like.rule = torch_flops_rule(strs_bytes(&g->t->strs, like.key));
    g->v[g->n] = like;
    return (uint32_t)g->n++;
}

bool op_groups_by_rank(struct op_groups *g) {
    const struct trace *t = g->t;
    struct map first = {0}; /* (host, rank) -> its first source */
    g->rank = malloc((t->nsources + 1) * sizeof *g->rank);
    bool ok = g->rank != NULL;
    for (uint32_t i = 0; ok && i < t->nsources; i++) {
        const struct source *s = &t->sources[i];
        g->rank[i] = i;
        if (s->rank < 0 && s->host == 0) continue;
        uint32_t *at = map_at(&first, hash_pair(s->host, (uint64_t)s->rank));
        ok = at != NULL;
        if (ok && *at == MAP_NONE) *at = i;
        if (ok) g->rank[i] = *at;
    }
    map_free(&first);
    return ok;
}

uint32_t op_groups_in_rank(struct op_groups *g, uint32_t group,
                           uint32_t source) {
    if (g->rank == NULL || group == ROW_NONE) return group;
    source = g->rank[source];
    uint32_t *at = map_at(&g->in_rank, (uint64_t)group << 32 | source);
    if (at == NULL) return ROW_NONE;
    if (*at != MAP_NONE) return *at;
    struct op_group like = g->v[group]; /* nothing was ever charged to it */
    like.place = source + 1;
    return *at = add_group(g, like);
}

/* Returns the program of XLA that a row belongs to, or 0; STR_NONE if out of
 * memory. It is read once per category. */
static str_id program_of(struct op_groups *g, row_id row) {
    uint32_t cat = span_cat(g->t, row);
    if (cat == 0) return 0;
    if (g->program[cat] != STR_NONE) return g->program[cat];
    struct launch l;
    str_id id = 0;
    if (launch_of_cat(g->t, cat, &l) && l.module.n > 0)
        id = strs_intern(&g->texts, l.module);
    return g->program[cat] = id;
}

uint32_t op_groups_device(struct op_groups *g, struct bytes name, row_id row) {
    str_id key = strs_intern(&g->texts, name), program = program_of(g, row);
    if (key == STR_NONE || program == STR_NONE) return ROW_NONE;
    uint32_t *at = map_at(&g->in_program[1], (uint64_t)program << 32 | key);
    if (!at) return ROW_NONE;
    if (*at != MAP_NONE) return *at;
    return *at = add_group(g, (struct op_group){.key = key,
                                                .kind = SPAN_KERNEL,
                                                .program = program,
                                                .hlo = hlo_of_span(g->t, row)});
}

uint32_t op_groups_async(struct op_groups *g, row_id row) {
    str_id name = g->t->spans.name[row];
    uint32_t *slot = &g->slot[COUNT(g->slot) - 1][name];
    if (*slot != 0) return *slot - 1;
    struct op_group like = {.key = name,
                            .kind = g->t->spans.kind[row],
                            .async = true};
    uint32_t id = add_group(g, like);
    if (id != ROW_NONE) *slot = id + 1;
    return id;
}

/* Goes one level finer; numbers of the last level that is wanted are groups. */
static uint32_t refine(struct op_groups *g, int level, uint32_t from,
                       str_id text, const struct op_group *like) {
    if (text == STR_NONE) return ROW_NONE;
    uint64_t key = (uint64_t)from << 32 | text;
    uint32_t *at = map_at(&g->finer[level], key);
    if (!at) return ROW_NONE;
    if (*at != MAP_NONE) return *at;
    bool last = (g->by >> (level + 1)) == 0;
    return *at = last ? add_group(g, *like) : g->nfiner++;
}

/* Returns the group of a row within a (name, kind) pair of number base. */
static uint32_t finer_group(struct op_groups *g, uint32_t base, row_id row,
                            struct op_group like) {
    enum { FRAMES = 5 };
    const struct spans *sp = &g->t->spans;
    uint32_t id = base;
    if (g->by & GROUP_SHAPES) {
        struct arg a = args_get(g->t, row, "Input Dims");
        if (a.type == ARG_NONE) a = args_get(g->t, row, "Input dims");
        if (a.type == ARG_NONE && (sp->flags[row] & SPAN_COSTED))
            a = args_get(g->t, row, "shape");
        if (a.type == ARG_JSON || a.type == ARG_TEXT)
            like.shapes = strs_intern(&g->texts, a.text);
        id = refine(g, 0, id, like.shapes, &like);
    }
    if (id != ROW_NONE && g->by & GROUP_STACK) {
        char buf[4096];
        size_t n = pystack_text(&g->stacks, sp->track[row], sp->ts[row], FRAMES,
                                buf, sizeof buf);
        if (n > 0)
            like.stack = strs_intern(&g->texts,
                                     (struct bytes){(uint8_t *)buf, n});
        id = refine(g, 1, id, like.stack, &like);
    }
    if (id != ROW_NONE && g->by & GROUP_MODULE) {
        row_id m = pystack_module(&g->stacks, sp->track[row], sp->ts[row]);
        if (m != ROW_NONE) {
            struct bytes b = strs_bytes(&g->t->strs, sp->name[m]);
            size_t skip = strlen("nn.Module: ");
            like.module = strs_intern(&g->texts,
                                      (struct bytes){b.p + skip, b.n - skip});
        }
        id = refine(g, 2, id, like.module, &like);
    }
    return id;
}

/* Is the row a call of a tf.function from Python? */
static bool is_function(const struct trace *t, row_id row) {
    uint32_t source = t->tracks[t->spans.track[row]].source;
    return t->spans.kind[row] == SPAN_ANNOTATION &&
           !source_is_torchs(&t->sources[source]) &&
           args_get(t, row, "tf_function_call").type != ARG_NONE;
}

uint32_t op_groups_of(struct op_groups *g, const struct host_tree *h,
                      row_id row) {
    const struct spans *sp = &g->t->spans;
    uint8_t kind = sp->kind[row];
    uint32_t *slots = g->slot[kind == SPAN_OP           ? 0
                              : kind == SPAN_ANNOTATION ? 1
                              : kind == SPAN_API        ? 2
                                                        : 3];
    str_id name = sp->name[row];
    if (span_cat(g->t, row) != 0 && kind == SPAN_OP) {
        struct op_group like = {.key = h->key[name],
                                .kind = SPAN_OP,
                                .program = program_of(g, row),
                                .hlo = hlo_of_span(g->t, row)};
        if (like.program == STR_NONE) return ROW_NONE;
        if (like.program != 0) {
            uint32_t *at = map_at(&g->in_program[0],
                                  (uint64_t)like.program << 32 | like.key);
            if (!at) return ROW_NONE;
            if (*at == MAP_NONE) *at = g->by ? g->nfiner++ : add_group(g, like);
            if (*at == ROW_NONE || !g->by) return *at;
            return finer_group(g, *at, row, like);
        }
    }
    uint32_t have = slots[name];
    if (have && !g->by) return have - 1;
    str_id key = h->key[name];
    struct op_group like = {.key = key,
                            .kind = kind,
                            .function = is_function(g->t, row)};
    if (!have && slots[key]) have = slots[name] = slots[key];
    if (!have) {
        uint32_t id = g->by ? g->nfiner++ : add_group(g, like);
        if (id == ROW_NONE) return ROW_NONE;
        have = slots[name] = slots[key] = id + 1;
    }
    if (!g->by) return have - 1;
    return finer_group(g, have - 1, row, like);
}
