/* SPDX-License-Identifier: Apache-2.0
 * The tables of HLO, and the way from a span to its instruction. Spans refer to
 * instructions by what struct launch keeps of them, module and name, once per
 * category and not once per span: the answer is worked out at the seal, for
 * each category, and a lookup is one index. */
#include "model/hlo/hlo.h"

#include "base/array.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "model/args.h"
#include "model/hlo/hlo_impl.h"
#include "model/trace_fill.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct hlo *hlo_table(struct trace *t) {
    if (t->hlo == NULL) t->hlo = calloc(1, sizeof *t->hlo);
    if (t->hlo == NULL) t->oom = true;
    return t->hlo;
}

void hlo_free(struct hlo *h) {
    if (h == NULL) return;
    free(h->modules);
    free(h->comps);
    free(h->instrs);
    free(h->called);
    map_free(&h->by_name);
    map_free(&h->by_label);
    map_free(&h->by_cat);
    free(h);
}

/* Makes room for n more in each table that grows. */
static bool reserve(struct hlo *a, const struct hlo *b) {
    return vec_resize(&a->modules, a->cap_modules = a->nmodules + b->nmodules,
                      sizeof *a->modules) &&
           vec_resize(&a->comps, a->cap_comps = a->ncomps + b->ncomps,
                      sizeof *a->comps) &&
           vec_resize(&a->instrs, a->cap_instrs = a->ninstrs + b->ninstrs,
                      sizeof *a->instrs) &&
           vec_resize(&a->called, a->cap_called = a->ncalled + b->ncalled,
                      sizeof *a->called);
}

static uint32_t later(uint32_t index, size_t by) {
    return index == ROW_NONE ? ROW_NONE : index + (uint32_t)by;
}

void hlo_append(struct trace *ta, const struct trace *tb,
                const uint32_t *source, const uint32_t *str) {
    const struct hlo *b = tb->hlo;
    if (b == NULL) return;
    struct hlo *a = hlo_table(ta);
    if (a == NULL || !reserve(a, b)) {
        ta->oom = true;
        return;
    }
    for (size_t i = 0; i < b->ninstrs; i++) {
        struct hlo_instr in = b->instrs[i];
        str_id *texts[] = {&in.name,    &in.opcode, &in.category, &in.target,
                           &in.op_name, &in.file,   &in.shape};
        for (size_t k = 0; k < COUNT(texts); k++) *texts[k] = str[*texts[k]];
        in.module += (uint32_t)a->nmodules;
        in.comp += (uint32_t)a->ncomps;
        in.called += (uint32_t)a->ncalled;
        a->instrs[a->ninstrs + i] = in;
    }
    for (size_t i = 0; i < b->ncalled; i++)
        a->called[a->ncalled + i] = later(b->called[i], a->ncomps);
    for (size_t i = 0; i < b->ncomps; i++) {
        struct hlo_comp c = b->comps[i];
        a->comps[a->ncomps + i] =
            (struct hlo_comp){str[c.name], later(c.first, a->ninstrs),
                              later(c.end, a->ninstrs),
                              later(c.module, a->nmodules)};
    }
    for (size_t i = 0; i < b->nmodules; i++) {
        struct hlo_module m = b->modules[i];
        m.name = str[m.name];
        m.label = str[m.label];
        m.source = source[m.source];
        m.entry = later(m.entry, a->ncomps);
        a->modules[a->nmodules + i] = m;
    }
    a->ninstrs += b->ninstrs;
    a->ncalled += b->ncalled;
    a->ncomps += b->ncomps;
    a->nmodules += b->nmodules;
}

/* The mark that two modules of a source have this name. */
#define NOT_ONE (MAP_NONE - 1)

/* Returns a name in a module or a source, or a category in a source, as one
 * number. */
static uint64_t name_key(uint32_t where, uint32_t name) {
    return (uint64_t)where << 32 | name;
}

uint32_t hlo_find(const struct hlo *h, uint32_t module, str_id name) {
    return map_get(&h->by_name, name_key(module, name));
}

/* Indexes modules, which are told apart by their label; a name alone must be
 * the only one in its source, else it stands for none. */
static bool index_labels(struct trace *t) {
    struct hlo *h = t->hlo;
    for (size_t i = 0; i < h->nmodules; i++) {
        const struct hlo_module *m = &h->modules[i];
        char text[32];
        snprintf(text, sizeof text, "(%" PRIu64 ")", m->program);
        str_id id = trace_str(t, bytes_of(text));
        if (t->oom ||
            !map_set(&h->by_label, name_key(m->source, id), (uint32_t)i))
            return false;
    }
    for (size_t i = 0; i < h->nmodules; i++) {
        const struct hlo_module *m = &h->modules[i];
        uint32_t *at = map_at(&h->by_label, name_key(m->source, m->name));
        if (at == NULL) return false;
        *at = *at == MAP_NONE ? (uint32_t)i : NOT_ONE;
    }
    for (size_t i = 0; i < h->nmodules; i++) {
        const struct hlo_module *m = &h->modules[i];
        if (!map_set(&h->by_label, name_key(m->source, m->label), (uint32_t)i))
            return false;
    }
    return true;
}

uint32_t hlo_module_of(const struct trace *t, uint32_t source,
                       struct bytes label) {
    str_id want = label.n > 0 ? strs_find(&t->strs, label) : STR_NONE;
    if (want == STR_NONE) return ROW_NONE;
    uint32_t m = map_get(&t->hlo->by_label, name_key(source, want));
    return m >= t->hlo->nmodules ? ROW_NONE : m;
}

/* Keeps the instruction that the launch facts of a category name. */
static bool index_cat(struct trace *t, uint32_t source, uint32_t cat) {
    struct launch l;
    if (!launch_of_cat(t, cat, &l) || l.hlo_op.n == 0) return true;
    uint32_t m = hlo_module_of(t, source, l.module);
    str_id name = strs_find(&t->strs, l.hlo_op);
    if (m == ROW_NONE || name == STR_NONE) return true;
    uint32_t at = hlo_find(t->hlo, m, name);
    return at == MAP_NONE ||
           map_set(&t->hlo->by_cat, name_key(source, cat), at);
}

bool *hlo_sources(const struct trace *t) {
    bool *has = calloc(t->nsources + 1, sizeof *has);
    for (size_t i = 0; has != NULL && i < t->hlo->nmodules; i++)
        has[t->hlo->modules[i].source] = true;
    return has;
}

/* Indexes the instruction of every category, for every source that has spans of
 * it: sources and categories may both be many, so that not all pairs are looked
 * at. */
static bool index_cats(struct trace *t) {
    uint32_t *seen = calloc(t->ncats, sizeof *seen); /* in source - 1 */
    bool *has = hlo_sources(t);
    bool ok = seen != NULL && has != NULL;
    for (size_t i = 0; ok && i < t->ntracks; i++) {
        const struct track *tr = &t->tracks[i];
        if (!has[tr->source]) continue;
        for (row_id r = tr->first; ok && r < tr->end; r++) {
            uint32_t cat = span_cat(t, r);
            if (seen[cat] == tr->source + 1) continue;
            seen[cat] = tr->source + 1;
            ok = index_cat(t, tr->source, cat);
        }
    }
    free(seen);
    free(has);
    return ok;
}

bool hlo_seal(struct trace *t) {
    struct hlo *h = t->hlo;
    if (h == NULL || h->ninstrs == 0) return true;
    for (size_t i = 0; i < h->ninstrs; i++) {
        const struct hlo_instr *in = &h->instrs[i];
        if (!map_set(&h->by_name, name_key(in->module, in->name), (uint32_t)i))
            return false;
    }
    return index_labels(t) && hlo_place_graphs(t) && index_cats(t);
}

const struct hlo_instr *hlo_of_span(const struct trace *t, row_id row) {
    const struct hlo *h = t->hlo;
    if (h == NULL) return NULL;
    uint32_t source = t->tracks[t->spans.track[row]].source;
    uint32_t at = map_get(&h->by_cat, name_key(source, span_cat(t, row)));
    return at == MAP_NONE ? NULL : &h->instrs[at];
}

size_t hlo_source_text(const struct trace *t, const struct hlo_instr *i,
                       char *out, size_t cap) {
    if (cap == 0) return 0;
    out[0] = 0;
    if (i->file == 0) return 0;
    return cut_fmt(out, cap, "%s:%u", strs_text(&t->strs, i->file), i->line);
}

/* Returns the span before it on its track that is not part of another: XLA on
 * the CPU marks the end of each op with a little span inside. */
static row_id row_before(const struct trace *t, row_id row) {
    enum { NEAR = 4 };
    const struct spans *s = &t->spans;
    for (row_id k = 1; k <= NEAR && k <= row; k++) {
        if (s->track[row - k] != s->track[row]) return ROW_NONE;
        if (s->depth[row - k] <= s->depth[row]) return row - k;
    }
    return ROW_NONE;
}

bool hlo_is_first(const struct trace *t, row_id row,
                  const struct hlo_instr *i) {
    const struct spans *s = &t->spans;
    if (i->launch != HLO_LAUNCHES_LIBRARY && i->launch != HLO_LAUNCHES_ANY)
        return true;
    row_id before = row_before(t, row);
    if (before == ROW_NONE || hlo_of_span(t, before) != i) return true;
    /* on a device the same kernel again is another execution; on the host all
     * have the name of the instruction, but executions have a number */
    if (s->kind[row] != SPAN_OP) return s->name[before] == s->name[row];
    return args_int(t, before, "run_id", -1) != args_int(t, row, "run_id", -2);
}

bool hlo_scope_next(struct bytes *rest, struct bytes *scope) {
    size_t n = 0, open = 0;
    if (rest->n == 0 || rest->p[0] == ';') return false;
    for (; n < rest->n; n++) {
        uint8_t c = rest->p[n];
        if (c == '(' || c == '[') open++;
        if ((c == ')' || c == ']') && open > 0) open--;
        if (open == 0 && (c == '/' || c == ';')) break;
    }
    *scope = (struct bytes){rest->p, n};
    size_t used = n + (n < rest->n && rest->p[n] == '/');
    *rest = (struct bytes){rest->p + used, rest->n - used};
    return true;
}
