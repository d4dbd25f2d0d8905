/* SPDX-License-Identifier: Apache-2.0
 * Blocks are summed by the text of their key; what is left of the level gets
 * a row of its own, so that the sum is the level by construction. */
#include "analyze/memory/mem_holders.h"

#include "analyze/memory/live.h"
#include "analyze/memory/mem_category.h"
#include "base/sum.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

void mem_holders_free(struct mem_holders *h) {
    if (h->texts.text) strs_free(&h->texts);
    free(h->v);
    free(h->of);
    *h = (struct mem_holders){0};
}

const char *mem_holder_key(const struct mem_holders *h, size_t i) {
    assert(i < h->n);
    str_id key = h->v[i].key;
    return key == 0 ? NULL : strs_text(&h->texts, key);
}

static bool grow_of(struct mem_holders *h, size_t need) {
    if (need <= h->cap_of) return true;
    size_t cap = vec_next_cap(h->cap_of, need);
    if (!vec_resize(&h->of, cap, sizeof *h->of)) return false;
    memset(h->of + h->cap_of, 0, (cap - h->cap_of) * sizeof *h->of);
    h->cap_of = cap;
    return true;
}

static bool add(struct mem_holders *h, struct bytes key, int64_t bytes,
                int64_t blocks) {
    str_id id = key.n == 0 ? 0 : strs_intern(&h->texts, key);
    if (id == STR_NONE || !grow_of(h, (size_t)id + 1)) return false;
    if (h->of[id] == 0) {
        if (!VEC_ROOM(h->v, h->n, h->cap)) return false;
        h->v[h->n++] = (struct mem_holder){.key = id};
        h->of[id] = (uint32_t)h->n;
    }
    struct mem_holder *to = &h->v[h->of[id] - 1];
    sum_add(&to->bytes, bytes);
    sum_add(&to->blocks, blocks);
    sum_add(&h->total, bytes);
    return true;
}

static bool add_block(struct mem_holders *h, const struct mem_blocks *b,
                      size_t i, enum mem_key by) {
    char buf[MEM_TEXT_MAX];
    size_t k = b->l->first + i;
    struct mem_site at = mem_site_of(b->sites, k);
    struct bytes key = {(const uint8_t *)buf, 0};
    if (by == MEM_BY_CATEGORY) key = mem_block_label(b, i, &at);
    else key.n = mem_site_text(b->sites, &at, k, by, buf, sizeof buf);
    return add(h, key, b->l->t->mem.bytes[k], 1);
}

static bool add_before(struct mem_holders *h, const struct mem_blocks *b,
                       size_t i, enum mem_key by) {
    enum { SHOWN = 5 };
    char buf[MEM_TEXT_MAX];
    const struct trace *t = b->l->t;
    const struct mem_before *old = &t->before[b->l->before_first + i];
    struct bytes key = {(const uint8_t *)buf, 0};
    if (by == MEM_BY_CATEGORY)
        key = bytes_of(
            mem_category_name(mem_before_category(b->sites, old->stack)));
    else if (by == MEM_BY_STACK)
        key.n = stack_text(t, old->stack, SHOWN, buf, sizeof buf);
    if (key.n == 0) key = bytes_of("before-window");
    return add(h, key, old->bytes, 1);
}

static int larger_first(const void *pa, const void *pb) {
    const struct mem_holder *a = pa, *b = pb;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return a->key < b->key ? -1 : a->key > b->key;
}

static bool add_all(struct mem_holders *h, const struct mem_blocks *b,
                    uint32_t after, enum mem_key by) {
    const struct live *l = b->l;
    struct live_rest rest = live_rest(l, after);
    h->gone = rest.gone + rest.gone_before > 0;
    for (size_t i = 0; after != LIVE_NONE && i <= after; i++)
        if (live_holds(l, i, after, &rest) && !add_block(h, b, i, by))
            return false;
    for (size_t i = 0; i < l->nbefore; i++)
        if (live_holds_before(l, i, after, &rest) && !add_before(h, b, i, by))
            return false;
    if (rest.before != 0 && !add(h, bytes_of("before-window"), rest.before, 0))
        return false;
    const char *lost = by == MEM_BY_CATEGORY ? "unknown" : "unrecorded";
    return rest.lost == 0 || add(h, bytes_of(lost), rest.lost, 0);
}

int mem_holders_init(struct mem_holders *h, const struct mem_blocks *b,
                     uint32_t after, enum mem_key by, struct ops_err *e) {
    *h = (struct mem_holders){0};
    if (!strs_init(&h->texts) || !add_all(h, b, after, by)) {
        mem_holders_free(h);
        return fail_oom(e);
    }
    if (h->n > 1) qsort(h->v, h->n, sizeof *h->v, larger_first);
    free(h->of); /* rows have moved */
    h->of = NULL;
    h->cap_of = 0;
    return 0;
}
