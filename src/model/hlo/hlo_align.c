/* SPDX-License-Identifier: Apache-2.0
 * An alignment of two sequences by dynamic programming. The cheapest reading
 * wins; what cannot be has no price at all.
 *
 *     at[i][j]  the first i kernels are placed, instruction j is next
 *     in[i][j]  the same, and kernel i - 1 belongs to instruction j
 *
 * Only a band around the diagonal is worked out: kernels and instructions
 * differ by the few that launch several or none, or that ran outside. The
 * cheapest way is read back twice, once leaning to each side: where both agree
 * there is no other way of that price. */
#include "model/hlo/hlo_impl.h"

#include "base/vec.h"
#include "model/hlo/hlo.h"

#include <assert.h>

enum { NEVER = 1 << 28, CELLS_MAX = 1 << 22, SLACK = 64 };

/* Prices. A name that differs in its number is common: the compiler uses one
 * kernel for all equal fusions. */
enum {
    SAME_NAME = 0,
    SAME_BASE = 2,
    LIBRARY = 1,
    ANYTHING = 2,
    HELPER = 3,
    ONE_MORE = 3,
    PREPARED = 2,
    LEFT_OUT = 1
};

struct table {
    const struct align_kernel *k;
    const struct align_instr *s;
    size_t n, m;
    ptrdiff_t low; /* row i holds columns i + low .. i + low + width - 1 */
    size_t width;
    uint32_t *at, *in;
    uint32_t *musts; /* instructions before j that must launch something */
};

static bool must(const struct align_instr *s) {
    return s->launch == HLO_LAUNCHES_ONE || s->launch == HLO_LAUNCHES_LIBRARY;
}

/* Returns the price of placing a kernel as the first of an instruction. */
static uint32_t match(const struct align_kernel *k,
                      const struct align_instr *s) {
    if (k->name == s->name) return SAME_NAME;
    if (k->generated) return k->base == s->base ? SAME_BASE : NEVER;
    if (s->launch == HLO_LAUNCHES_LIBRARY) return k->helper ? HELPER : LIBRARY;
    return s->launch == HLO_LAUNCHES_ANY ? ANYTHING : NEVER;
}

/* Returns the price of placing kernel i as a further one: the real work may
 * follow what prepared it. */
static uint32_t further(const struct align_kernel *k, size_t i,
                        const struct align_instr *s) {
    k += i;
    if (s->launch == HLO_LAUNCHES_LIBRARY && !k->generated)
        return k->helper ? 0 : i > 0 && k[-1].helper ? PREPARED : ONE_MORE;
    if (s->launch != HLO_LAUNCHES_ANY) return NEVER;
    return !k->generated || k->base == s->base ? ONE_MORE : NEVER;
}

static uint32_t skip(const struct align_instr *s) {
    return must(s) ? NEVER : LEFT_OUT;
}

static bool cell(const struct table *t, size_t i, size_t j, size_t *at) {
    ptrdiff_t w = (ptrdiff_t)j - (ptrdiff_t)i - t->low;
    if (w < 0 || w >= (ptrdiff_t)t->width || j > t->m) return false;
    *at = i * t->width + (size_t)w;
    return true;
}

static uint32_t get(const struct table *t, const uint32_t *v, size_t i,
                    size_t j) {
    size_t at;
    return cell(t, i, j, &at) ? v[at] : NEVER;
}

static uint32_t plus(uint32_t a, uint32_t b) {
    return a >= NEVER || b >= NEVER ? NEVER : a + b;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void fill_cell(struct table *t, size_t i, size_t j) {
    size_t here;
    if (!cell(t, i, j, &here)) return;
    uint32_t in = NEVER, at = i == 0 ? t->musts[j] : (uint32_t)NEVER;
    if (i > 0 && j < t->m) {
        in = plus(get(t, t->at, i - 1, j), match(&t->k[i - 1], &t->s[j]));
        in = least(in, plus(get(t, t->in, i - 1, j),
                            further(t->k, i - 1, &t->s[j])));
    }
    if (j > 0) {
        at = least(at, plus(get(t, t->at, i, j - 1), skip(&t->s[j - 1])));
        at = least(at, get(t, t->in, i, j - 1));
    }
    t->in[here] = in;
    t->at[here] = at;
}

/* Returns the instruction where the cheapest reading ends; of equals the first
 * or the last; m if there is none. */
static size_t best_end(const struct table *t, bool late) {
    size_t best = t->m;
    uint32_t price = NEVER;
    for (size_t j = 0; j < t->m; j++) {
        uint32_t p = plus(get(t, t->in, t->n, j), /* of one that ends in j */
                          t->musts[t->m] - t->musts[j + 1]);
        if (p >= NEVER || p > price || (p == price && !late)) continue;
        price = p;
        best = j;
    }
    return best;
}

/* Goes one step back from at[i][j], over instructions that launched nothing;
 * late decides which way comes first. Returns the instruction of kernel i -
 * 1. */
static size_t step_back(const struct table *t, size_t i, size_t j, bool late) {
    for (;;) {
        uint32_t here = get(t, t->at, i, j);
        assert(j > 0 && here < NEVER);
        bool placed = get(t, t->in, i, j - 1) == here;
        bool skipped = plus(get(t, t->at, i, j - 1), skip(&t->s[j - 1])) ==
                       here;
        assert(placed || skipped);
        j--;
        if (placed && (late || !skipped)) return j;
    }
}

static void read_back(const struct table *t, bool late, uint32_t *out) {
    size_t j = best_end(t, late);
    for (size_t i = t->n; i > 0; i--) {
        uint32_t here = get(t, t->in, i, j);
        out[i - 1] = (uint32_t)j;
        if (i == 1) return;
        bool first = plus(get(t, t->at, i - 1, j),
                          match(&t->k[i - 1], &t->s[j])) == here;
        bool more = plus(get(t, t->in, i - 1, j),
                         further(t->k, i - 1, &t->s[j])) == here;
        assert(first || more);
        if (first && !(late && more)) j = step_back(t, i - 1, j, late);
    }
}

static bool place(struct table *t, uint32_t *out) {
    for (size_t i = 0; i <= t->n; i++) {
        ptrdiff_t from = (ptrdiff_t)i + t->low;
        size_t end = (size_t)(from + (ptrdiff_t)t->width);
        if (from < 0) from = 0;
        for (size_t j = (size_t)from; j < end && j <= t->m; j++)
            fill_cell(t, i, j);
    }
    if (best_end(t, false) == t->m) return true;
    uint32_t *other = vec_alloc(t->n, sizeof *other);
    if (other == NULL) return false;
    read_back(t, false, out);
    read_back(t, true, other);
    for (size_t i = 0; i < t->n; i++)
        if (out[i] != other[i]) out[i] = ALIGN_NONE;
    free(other);
    return true;
}

/* Returns the columns of the band. */
static size_t width_of(size_t n, size_t m) {
    return (n > m ? n - m : m - n) + 2 * SLACK + 1;
}

size_t hlo_align_cost(size_t n, size_t m) {
    size_t width = width_of(n, m);
    return n + 1 > CELLS_MAX / width ? m : m + (n + 1) * width;
}

bool hlo_align(const struct align_kernel *k, size_t n,
               const struct align_instr *s, size_t m, uint32_t *out) {
    for (size_t i = 0; i < n; i++) out[i] = ALIGN_NONE;
    if (n == 0 || m == 0) return true;
    struct table t = {.k = k,
                      .s = s,
                      .n = n,
                      .m = m,
                      .low = -(ptrdiff_t)((n > m ? n - m : 0) + SLACK),
                      .width = width_of(n, m)};
    if (n + 1 > CELLS_MAX / t.width) return true;
    t.at = vec_alloc((n + 1) * t.width, sizeof *t.at);
    t.in = vec_alloc((n + 1) * t.width, sizeof *t.in);
    t.musts = vec_alloc(m + 1, sizeof *t.musts);
    bool ok = t.at != NULL && t.in != NULL && t.musts != NULL;
    if (ok) {
        t.musts[0] = 0;
        for (size_t j = 0; j < m; j++)
            t.musts[j + 1] = t.musts[j] + must(&s[j]);
        ok = place(&t, out);
    }
    free(t.at);
    free(t.in);
    free(t.musts);
    return ok;
}
