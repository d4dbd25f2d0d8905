/* SPDX-License-Identifier: Apache-2.0
 * Hash map u64 -> u32; at most 5/8 full. */
#include "base/map.h"

#include "base/hash.h"
#include <assert.h>
#include <stdlib.h>

struct map_slot {
    uint64_t key;
    uint32_t value; /* MAP_NONE: the slot is free or just handed out */
    uint32_t used;
};

/* Returns the slot of key, or the free one where it would go. */
static struct map_slot *map_find(const struct map *m, uint64_t key) {
    assert(m->n < m->cap); /* a free slot ends every search */
    size_t mask = m->cap - 1, i = hash_u64(key) & mask;
    while (m->slots[i].used && m->slots[i].key != key) i = (i + 1) & mask;
    return &m->slots[i];
}

static bool map_grow(struct map *m) {
    struct map bigger = {.n = m->n, .cap = m->cap ? m->cap * 2 : 16};
    bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
    if (bigger.slots == NULL) return false;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].used) *map_find(&bigger, m->slots[i].key) = m->slots[i];
    free(m->slots);
    *m = bigger;
    return true;
}

uint32_t map_get(const struct map *m, uint64_t key) {
    if (m->cap == 0) return MAP_NONE;
    const struct map_slot *s = map_find(m, key);
    return s->used ? s->value : MAP_NONE;
}

uint32_t *map_at(struct map *m, uint64_t key) {
    if (m->n * 8 >= m->cap * 5 && !map_grow(m)) return NULL;
    struct map_slot *s = map_find(m, key);
    if (!s->used) {
        *s = (struct map_slot){key, MAP_NONE, 1};
        m->n++;
    }
    return &s->value;
}

bool map_set(struct map *m, uint64_t key, uint32_t value) {
    assert(value != MAP_NONE);
    uint32_t *at = map_at(m, key);
    if (at == NULL) return false;
    *at = value;
    return true;
}

uint64_t map_next_key(uint64_t key) { return hash_u64(key); }

void map_free(struct map *m) {
    free(m->slots);
    *m = (struct map){0};
}
