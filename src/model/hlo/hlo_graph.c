/* SPDX-License-Identifier: Apache-2.0
 * Kernels that XLA launched as one CUDA graph get their instructions back.
 *
 * XLA records runs of its schedule as graphs ("command buffers"), and every
 * kernel of a graph is then marked with the name of the graph: no instruction
 * has that name, and XProf shows nothing. But a graph is an unbroken part of
 * the schedule, and the kernels of a launch start in that order; names say the
 * same again, as far as the compiler made them (hlo_align.c). So each launch
 * (all kernels of one correlation id) is read against the schedule of its
 * module. Launches of the same kernels are read once. What does not fit stays
 * as it is, and is counted.
 *
 * A few bytes can describe calls of calls without end, and launches that each
 * take long to read. So all walks together have a budget, in proportion to
 * what the trace holds; what is left when it is spent is counted, too. */
#include "model/hlo/hlo.h"

#include "base/hash.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/hlo/hlo_impl.h"
#include "model/trace_fill.h"
#include "names/kernel_names.h"

#include <stdlib.h>

/* What a graph may be a part of: the instructions that launch, from one
 * computation on, with those of the computations that it runs. */
struct program {
    uint32_t comp;
    uint32_t *instr;       /* in hlo->instrs */
    struct align_instr *s; /* the same, for hlo_align() */
    size_t n, cap, cap_s;
    struct map bases; /* base -> how many have it */
};

/* A launch that was read: equal ones are not read again. */
struct reading {
    uint32_t program;
    size_t first, n; /* in names and found */
};

/* The instruction of a kernel of a reading, and what it made of a category the
 * last time: mostly the same again. */
struct placed {
    uint32_t instr; /* or ALIGN_NONE */
    uint32_t from, to;
};

/* A kernel's name as the alignment wants it, worked out once per name. */
struct kernel_name {
    uint32_t name, base;
    bool helper;
};

struct graphs {
    struct trace *t;
    struct pending {
        uint32_t source; /* plus 1: whose; another's is out of date */
        uint32_t comp;   /* computation + 1, or 0 */
    } * pending;         /* by category */
    size_t ncats;        /* categories when it began: later ones are ours */
    uint64_t calls;      /* steps left for following calls */
    uint64_t steps;      /* and for reading launches */
    size_t *from, *to;   /* by source: its part of the halves of links */
    struct strs names;   /* as the compiler writes them */
    struct program *programs;
    size_t nprograms, cap_programs;
    struct map by_comp; /* computation -> program */
    struct reading *readings;
    size_t nreadings, cap_readings;
    struct map by_hash;
    str_id *seq;
    size_t nseq, cap_seq; /* names of kernels, all readings */
    struct placed *found;
    size_t cap_found; /* the same for each */
    struct sort_key *rows;
    size_t nrows, cap_rows; /* (launch, start), row */
    struct map new_cats;    /* (category, instruction) -> category */
    struct map by_text;     /* name of a kernel -> kernels */
    struct kernel_name *kernels;
    size_t nkernels, cap_kernels;
    bool oom;
};

/* Takes n off a budget. Returns false if there is not so much left. */
static bool spend(uint64_t *left, uint64_t n) {
    if (n > *left) return false;
    *left -= n;
    return true;
}

/* Finds the number of a name, and of what is left of it without the numbers
 * behind it: "loop_add_fusion_3" and "loop_add_fusion". */
static void name_ids(struct graphs *g, struct bytes b, uint32_t *name,
                     uint32_t *base) {
    char text[256]; /* as the compiler writes it in the names of kernels */
    size_t n = b.n < sizeof text ? b.n : sizeof text, end = n;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = b.p[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                    (c >= 'A' && c <= 'Z') || c == '_';
        text[i] = word ? (char)c : '_';
    }
    *name = strs_intern(&g->names, (struct bytes){(uint8_t *)text, n});
    for (;;) {
        size_t at = end;
        while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
        if (at == end || at < 2 || text[at - 1] != '_') break;
        while (at > 1 && text[at - 1] == '_') at--;
        end = at;
    }
    *base = strs_intern(&g->names, (struct bytes){(uint8_t *)text, end});
    if (*name == STR_NONE || *base == STR_NONE) g->oom = true;
}

/* Counts one more of the key; *now becomes the count. Returns false if out of
 * memory. */
static bool count_one(struct map *m, uint32_t key, uint32_t *now) {
    uint32_t *at = map_at(m, key);
    if (at == NULL) return false;
    *at = *at == MAP_NONE ? 1 : *at + 1;
    *now = *at;
    return true;
}

static void program_add(struct graphs *g, struct program *p, uint32_t at) {
    const struct hlo_instr *i = &g->t->hlo->instrs[at];
    struct align_instr s = {.launch = i->launch};
    name_ids(g, strs_bytes(&g->t->strs, i->name), &s.name, &s.base);
    size_t n = p->n;
    uint32_t now;
    if (g->oom || !VEC_ROOM(p->instr, n, p->cap) ||
        !VEC_ROOM(p->s, n, p->cap_s) || !count_one(&p->bases, s.base, &now)) {
        g->oom = true;
        return;
    }
    p->instr[n] = at;
    p->s[n] = s;
    p->n++;
}

/* Lists all that launches, in schedule order, bodies where they are called. Of
 * a program that cannot be followed to its end nothing is kept: kernels must
 * not be compared with a part of it. */
static void program_fill(struct graphs *g, struct program *p) {
    enum { DEEPEST = 32 };
    const struct hlo *h = g->t->hlo;
    struct {
        uint32_t at, end, callee;
    } stack[DEEPEST];
    size_t depth = 1;
    stack[0].at = h->comps[p->comp].first;
    stack[0].end = h->comps[p->comp].end;
    stack[0].callee = 0;
    while (depth > 0 && !g->oom) {
        if (!spend(&g->calls, 1)) {
            trace_note(g->t, NOTE_PROGRAM_CUT, 1);
            p->n = 0;
            return;
        }
        uint32_t at = stack[depth - 1].at;
        if (at == stack[depth - 1].end) {
            depth--;
            continue;
        }
        const struct hlo_instr *i = &h->instrs[at];
        if (i->launch == HLO_LAUNCHES_BODY &&
            stack[depth - 1].callee < i->ncalled && depth < DEEPEST) {
            uint32_t c = h->called[i->called + stack[depth - 1].callee++];
            stack[depth].at = h->comps[c].first;
            stack[depth].end = h->comps[c].end;
            stack[depth++].callee = 0;
            continue;
        }
        stack[depth - 1].at++;
        stack[depth - 1].callee = 0;
        if (i->launch != HLO_LAUNCHES_NONE && i->launch != HLO_LAUNCHES_BODY)
            program_add(g, p, at);
    }
}

/* Returns the program that begins with this computation; ROW_NONE if out of
 * memory. */
static uint32_t program_of(struct graphs *g, uint32_t comp) {
    uint32_t at = map_get(&g->by_comp, comp);
    if (at != MAP_NONE) return at;
    if (!VEC_ROOM(g->programs, g->nprograms, g->cap_programs) ||
        !map_set(&g->by_comp, comp, (uint32_t)g->nprograms)) {
        g->oom = true;
        return ROW_NONE;
    }
    struct program *p = &g->programs[g->nprograms];
    *p = (struct program){.comp = comp};
    program_fill(g, p);
    return (uint32_t)g->nprograms++;
}

static struct kernel_name kernel_name(struct graphs *g, str_id name) {
    struct bytes b = strs_bytes(&g->t->strs, name);
    struct kernel_name k = {0};
    uint32_t *at = map_at(&g->by_text, name);
    if (at != NULL && *at != MAP_NONE) return g->kernels[*at];
    if (at == NULL || !VEC_ROOM(g->kernels, g->nkernels, g->cap_kernels)) {
        g->oom = true;
        return k;
    }
    k.helper = kernel_is_helper(b);
    name_ids(g, b, &k.name, &k.base);
    *at = (uint32_t)g->nkernels;
    g->kernels[g->nkernels++] = k;
    return k;
}

/* How many kernels of a launch have a name, a base, and how many different
 * names a base has. */
struct counts {
    struct map names, bases, different;
};

static bool count_names(struct counts *c, const struct align_kernel *k,
                        size_t n) {
    uint32_t now;
    for (size_t i = 0; i < n; i++) {
        if (!k[i].generated) continue;
        if (!count_one(&c->bases, k[i].base, &now) ||
            !count_one(&c->names, k[i].name, &now) ||
            (now == 1 && !count_one(&c->different, k[i].base, &now)))
            return false;
    }
    return true;
}

/* Places kernels of a graph that ran side by side, where order does not help: a
 * name is enough if only one instruction can have it, or if all instructions of
 * its base have a kernel of their own. */
static void place_by_name(const struct program *p, const struct counts *c,
                          const struct align_kernel *k, uint32_t *out) {
    uint32_t have = map_get(&p->bases, k->base);
    bool only = have == 1;
    bool each = map_get(&c->bases, k->base) == have &&
                map_get(&c->different, k->base) == have;
    if (!k->generated || (!only && !each)) return;
    for (size_t j = 0; j < p->n; j++)
        if (only ? p->s[j].base == k->base : p->s[j].name == k->name)
            *out = (uint32_t)j;
}

static void place_by_names(struct graphs *g, const struct program *p,
                           const struct align_kernel *k, size_t n,
                           uint32_t *out) {
    enum { COMPARISONS = 1 << 24 };
    struct counts c = {0};
    if (p->n > 0 && n > COMPARISONS / p->n) return;
    if (!spend(&g->steps, n * p->n)) return;
    if (!count_names(&c, k, n)) g->oom = true;
    for (size_t i = 0; i < n && !g->oom; i++)
        place_by_name(p, &c, &k[i], &out[i]);
    map_free(&c.names);
    map_free(&c.bases);
    map_free(&c.different);
}

/* Reads a launch: seq[first, first + n) against the program. */
static void read_launch(struct graphs *g, const struct reading *r) {
    const struct program *p = &g->programs[r->program];
    struct align_kernel *k = vec_alloc(r->n, sizeof *k);
    uint32_t *out = vec_alloc(r->n, sizeof *out);
    size_t placed = 0;
    if (k == NULL || out == NULL) {
        free(k);
        free(out);
        g->oom = true;
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        struct kernel_name kn = kernel_name(g, g->seq[r->first + i]);
        bool generated = map_get(&p->bases, kn.base) != MAP_NONE;
        k[i] = (struct align_kernel){kn.name, kn.base, generated, kn.helper};
        out[i] = ALIGN_NONE;
    }
    if (spend(&g->steps, hlo_align_cost(r->n, p->n)) &&
        !hlo_align(k, r->n, p->s, p->n, out))
        g->oom = true;
    for (size_t i = 0; i < r->n; i++) placed += out[i] != ALIGN_NONE;
    if (placed == 0 && !g->oom) place_by_names(g, p, k, r->n, out);
    for (size_t i = 0; i < r->n; i++)
        g->found[r->first + i] = (struct placed){
            out[i] == ALIGN_NONE ? ALIGN_NONE : p->instr[out[i]], 0, 0};
    free(k);
    free(out);
}

/* Returns the reading of the launch whose kernels were just put behind seq. */
static const struct reading *reading_of(struct graphs *g, uint32_t program,
                                        size_t n) {
    size_t first = g->nseq - n;
    uint64_t hash = hash_pair(hash_bytes(g->seq + first, n * sizeof *g->seq),
                              program);
    uint32_t at = map_get(&g->by_hash, hash);
    if (at != MAP_NONE) {
        const struct reading *r = &g->readings[at];
        size_t bytes = n * sizeof *g->seq;
        if (r->program == program && r->n == n &&
            memcmp(g->seq + r->first, g->seq + first, bytes) == 0) {
            g->nseq = first;
            return r;
        }
    }
    if (!VEC_ROOM(g->readings, g->nreadings, g->cap_readings) ||
        !map_set(&g->by_hash, hash, (uint32_t)g->nreadings) ||
        (g->cap_found < g->nseq &&
         !vec_grow_(&g->found, &g->cap_found, g->nseq, sizeof *g->found))) {
        g->oom = true;
        return NULL;
    }
    g->readings[g->nreadings] = (struct reading){program, first, n};
    read_launch(g, &g->readings[g->nreadings]);
    return &g->readings[g->nreadings++];
}

/* Returns the category of a kernel, its HLO op replaced; the old one if there
 * is no room for more. */
static uint32_t new_cat(struct graphs *g, uint32_t old, uint32_t instr) {
    uint32_t *at = map_at(&g->new_cats, (uint64_t)old << 32 | instr);
    struct launch l;
    if (at == NULL) {
        g->oom = true;
        return old;
    }
    if (*at != MAP_NONE) return *at;
    *at = old;
    if (!launch_of_cat(g->t, old, &l)) return old;
    l.hlo_op = strs_bytes(&g->t->strs, g->t->hlo->instrs[instr].name);
    uint32_t cat = launch_cat(g->t, &l);
    if (cat != 0) *at = cat;
    return *at;
}

static bool is_kernel(const struct trace *t, row_id r) {
    return t->spans.kind[r] == SPAN_KERNEL;
}

/* Returns the only instruction between two of a program, both left out, that is
 * not tied to a kernel of its name; or ALIGN_NONE. */
static uint32_t between(const struct graphs *g, const struct program *p,
                        uint32_t a, uint32_t b) {
    const struct hlo *h = g->t->hlo;
    uint32_t found = ALIGN_NONE;
    bool inside = false;
    for (size_t j = 0; j < p->n; j++) {
        if (p->instr[j] == b) return found;
        uint8_t launch = h->instrs[p->instr[j]].launch;
        if (inside &&
            (launch == HLO_LAUNCHES_MAYBE || launch == HLO_LAUNCHES_ANY)) {
            if (found != ALIGN_NONE) return ALIGN_NONE;
            found = p->instr[j];
        }
        if (p->instr[j] == a) inside = true;
    }
    return ALIGN_NONE;
}

/* Places copies and fills of a launch, v[0, n) in start order; found has the
 * kernels' instructions. One that runs where the schedule has one instruction
 * left that launched no kernel is that one's. */
static void place_copies(struct graphs *g, const struct reading *r,
                         const struct sort_key *v, size_t n) {
    struct trace *t = g->t;
    const struct placed *found = g->found + r->first;
    for (size_t i = 0, k = 0; i < n; i++) {
        if (is_kernel(t, v[i].row)) {
            k++;
            continue;
        }
        uint32_t at = ALIGN_NONE;
        if (k > 0 && k < r->n && found[k - 1].instr != ALIGN_NONE &&
            found[k].instr != ALIGN_NONE &&
            spend(&g->steps, g->programs[r->program].n))
            at = between(g, &g->programs[r->program], found[k - 1].instr,
                         found[k].instr);
        row_id row = v[i].row;
        if (at != ALIGN_NONE)
            span_set_cat(&t->spans, row, new_cat(g, span_cat(t, row), at));
    }
}

/* Places one launch: v[0, n), in start order. */
static void one_launch(struct graphs *g, uint32_t comp, struct sort_key *v,
                       size_t n) {
    struct trace *t = g->t;
    uint32_t program = program_of(g, comp);
    size_t kernels = 0, lost = 0;
    for (size_t i = 0; i < n && !g->oom; i++) {
        if (!is_kernel(t, v[i].row)) continue;
        if (!VEC_ROOM(g->seq, g->nseq, g->cap_seq)) g->oom = true;
        else g->seq[g->nseq++] = t->spans.name[v[i].row];
        kernels++;
    }
    if (g->oom || kernels == 0) return;
    const struct reading *r = reading_of(g, program, kernels);
    if (r == NULL || g->oom) return;
    for (size_t i = 0, k = 0; i < n; i++) {
        if (!is_kernel(t, v[i].row)) continue;
        struct placed *p = &g->found[r->first + k++];
        uint32_t cat = span_cat(t, v[i].row);
        if (p->instr == ALIGN_NONE) {
            lost++;
            continue;
        }
        if (cat != p->from) {
            p->from = cat;
            p->to = new_cat(g, cat, p->instr);
        }
        lost += p->to == p->from; /* no room for more categories */
        span_set_cat(&t->spans, v[i].row, p->to);
    }
    if (n > kernels) place_copies(g, r, v, n);
    trace_note(t, NOTE_GRAPH_KERNEL_PLACED, kernels - lost);
    trace_note(t, NOTE_GRAPH_KERNEL_UNPLACED, lost);
}

/* Returns where the kernels of a category are to be looked for: in the whole
 * module when no instruction has the name, in the body of one that only calls.
 * 0 if they have their instruction, or there is no module. */
static uint32_t pending_comp(const struct trace *t, uint32_t source,
                             uint32_t cat) {
    const struct hlo *h = t->hlo;
    struct launch l;
    if (!launch_of_cat(t, cat, &l) || l.hlo_op.n == 0) return 0;
    uint32_t m = hlo_module_of(t, source, l.module);
    if (m == ROW_NONE || h->modules[m].entry == ROW_NONE) return 0;
    str_id name = strs_find(&t->strs, l.hlo_op);
    uint32_t at = name == STR_NONE ? MAP_NONE : hlo_find(h, m, name);
    if (at == MAP_NONE) return h->modules[m].entry + 1;
    const struct hlo_instr *i = &h->instrs[at];
    if (i->launch != HLO_LAUNCHES_BODY || i->ncalled != 1) return 0;
    return h->called[i->called] + 1;
}

static uint32_t pending_of(const struct graphs *g, uint32_t source,
                           row_id row) {
    uint32_t cat = span_cat(g->t, row);
    uint32_t d = g->t->tracks[g->t->spans.track[row]].device;
    if (cat >= g->ncats) return 0;
    /* ops of other devices bear the names of their instructions */
    if (d != ROW_NONE && g->t->devices[d].kind != DEVICE_GPU) return 0;
    struct pending *p = &g->pending[cat];
    if (p->source != source + 1)
        *p = (struct pending){source + 1, pending_comp(g->t, source, cat)};
    return p->comp;
}

/* Takes the device rows of one source that wait for their instruction, from *at
 * on, with their launch and start, as long as the launch is the same or, with
 * all, to the end. */
static void take_rows(struct graphs *g, uint32_t source, size_t *at, bool all) {
    const struct half_links *d = &g->t->device_halves;
    for (g->nrows = 0; *at < g->to[source]; ++*at) {
        const struct half_link *h = &d->v[*at];
        if (h->source != source || !pending_of(g, source, h->row)) continue;
        if (!all && g->nrows > 0 && g->rows[0].hi != h->key) return;
        if (!VEC_ROOM(g->rows, g->nrows, g->cap_rows)) {
            g->oom = true;
            return;
        }
        int64_t ts = g->t->spans.ts[h->row];
        g->rows[g->nrows++] = (struct sort_key){h->key, sort_signed(ts),
                                                h->row};
    }
}

/* Do the launches of a source stand one behind the other, in order? Most
 * files have them so, and the rows of all need not be held at once. */
static bool launches_in_order(const struct graphs *g, uint32_t source) {
    const struct half_links *d = &g->t->device_halves;
    const struct half_link *last = NULL;
    for (size_t i = g->from[source]; i < g->to[source]; i++) {
        const struct half_link *h = &d->v[i];
        if (h->source != source || !pending_of(g, source, h->row)) continue;
        if (last != NULL &&
            (h->key < last->key ||
             (h->key == last->key &&
              g->t->spans.ts[h->row] < g->t->spans.ts[last->row])))
            return false;
        last = h;
    }
    return true;
}

/* Places the launches of one source. */
static void source_launches(struct graphs *g, uint32_t source) {
    size_t at = g->from[source];
    bool all = !launches_in_order(g, source);
    for (;;) {
        take_rows(g, source, &at, all);
        if (g->nrows == 0 || g->oom) return;
        if (all && !sort_keys(g->rows, g->nrows)) g->oom = true;
        struct sort_key *v = g->rows; /* equal ids stand together */
        for (size_t i = 0, end; i < g->nrows && !g->oom; i = end) {
            uint32_t comp = pending_of(g, source, v[i].row);
            end = i + 1;
            while (end < g->nrows && v[end].hi == v[i].hi &&
                   pending_of(g, source, v[end].row) == comp)
                end++;
            one_launch(g, comp - 1, v + i, end - i);
        }
    }
}

/* Finds where each source's rows lie, one source behind the other: each is
 * walked in its own part. */
static bool find_parts(struct graphs *g) {
    const struct half_links *d = &g->t->device_halves;
    g->from = calloc(g->t->nsources, sizeof *g->from);
    g->to = calloc(g->t->nsources, sizeof *g->to);
    if (g->from == NULL || g->to == NULL) return false;
    for (size_t i = 0; i < d->n; i++) {
        uint32_t s = d->v[i].source;
        if (g->to[s] == 0) g->from[s] = i;
        g->to[s] = i + 1;
    }
    return true;
}

static void graphs_free(struct graphs *g) {
    for (size_t i = 0; i < g->nprograms; i++) {
        free(g->programs[i].instr);
        free(g->programs[i].s);
        map_free(&g->programs[i].bases);
    }
    free(g->programs);
    free(g->readings);
    free(g->seq);
    free(g->rows);
    free(g->found);
    free(g->pending);
    free(g->from);
    free(g->to);
    map_free(&g->by_comp);
    map_free(&g->by_hash);
    map_free(&g->new_cats);
    map_free(&g->by_text);
    free(g->kernels);
    strs_free(&g->names);
}

bool hlo_place_graphs(struct trace *t) {
    /* Real programs run each of their parts once or a few times, and real
     * launches are a few different ones. */
    enum { CALLS = 16, STEPS = 1 << 10 };
    enum { LEAST_CALLS = 1 << 16, LEAST_STEPS = 1 << 24 };
    uint64_t instrs = t->hlo->ninstrs, rows = t->device_halves.n;
    struct graphs g = {.t = t,
                       .ncats = t->ncats,
                       .calls = LEAST_CALLS + CALLS * instrs,
                       .steps = LEAST_STEPS + STEPS * (instrs + rows)};
    bool *has = hlo_sources(t);
    g.pending = calloc(t->ncats, sizeof *g.pending);
    bool ok = has && g.pending && strs_init(&g.names) && find_parts(&g);
    for (uint32_t s = 0; ok && s < t->nsources; s++) {
        if (!has[s]) continue;
        source_launches(&g, s);
        ok = !g.oom && !t->oom;
    }
    graphs_free(&g);
    free(has);
    return ok;
}
