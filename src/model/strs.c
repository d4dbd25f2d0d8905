/* SPDX-License-Identifier: Apache-2.0
 * Interned strings: an open-addressing table of ids over text in an arena.
 * Only new text is checked for UTF-8: known text was checked before. */
#include "model/strs.h"

#include "base/hash.h"
#include "base/text/utf8.h"
#include "base/vec.h"
#include <assert.h>
#include <stdlib.h>

/* Returns the slot that holds b's id, or the free one where it belongs. */
static size_t find_slot(const struct strs *s, struct bytes b, uint64_t hash) {
    assert(s->nslots > s->n); /* a free slot ends every search */
    size_t mask = s->nslots - 1, i = hash & mask;
    for (;; i = (i + 1) & mask) {
        uint32_t id = s->slots[i];
        if (id == 0) return i;
        id--;
        if (s->hash[id] == hash && s->len[id] == b.n &&
            (b.n == 0 || memcmp(s->text[id], b.p, b.n) == 0))
            return i;
    }
}

/* Makes room for one more id, in the columns and in the table. */
static bool make_room(struct strs *s) {
    if (s->n == s->cap) {
        size_t cap = vec_next_cap(s->cap, s->n + 1);
        if (!vec_resize(&s->text, cap, sizeof *s->text) ||
            !vec_resize(&s->len, cap, sizeof *s->len) ||
            !vec_resize(&s->hash, cap, sizeof *s->hash))
            return false;
        s->cap = cap;
    }
    if ((s->n + 1) * 2 <= s->nslots) return true;
    size_t nslots = s->nslots ? s->nslots * 2 : 64;
    uint32_t *slots = calloc(nslots, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t id = 0; id < s->n; id++) {
        size_t i = s->hash[id] & (nslots - 1);
        while (slots[i] != 0) i = (i + 1) & (nslots - 1);
        slots[i] = (uint32_t)id + 1;
    }
    free(s->slots);
    s->slots = slots;
    s->nslots = nslots;
    return true;
}

/* Stores text of the arena that is not there yet and is clean. */
static str_id add(struct strs *s, struct bytes b, uint64_t hash) {
    if (s->n >= STR_NONE - 1 || b.n > UINT32_MAX - 1 || !make_room(s))
        return STR_NONE;
    str_id id = (str_id)s->n;
    s->text[id] = (const char *)b.p;
    s->len[id] = (uint32_t)b.n;
    s->hash[id] = hash;
    s->slots[find_slot(s, b, hash)] = id + 1;
    s->n++;
    return id;
}

bool strs_init(struct strs *s) {
    *s = (struct strs){0};
    struct bytes empty = {(const uint8_t *)"", 0};
    if (make_room(s) && add(s, empty, hash_bytes("", 0)) == 0) return true;
    strs_free(s);
    return false;
}

void strs_free(struct strs *s) {
    arena_free(&s->arena);
    free(s->text);
    free(s->len);
    free(s->hash);
    free(s->slots);
    *s = (struct strs){0};
}

str_id strs_find(const struct strs *s, struct bytes b) {
    if (b.n == 0) return 0; /* b.p may be NULL */
    uint32_t id = s->slots[find_slot(s, b, hash_bytes(b.p, b.n))];
    return id ? id - 1 : STR_NONE;
}

/* Returns the id of clean text, stored if new. */
static str_id intern_clean(struct strs *s, struct bytes b) {
    uint64_t hash = hash_bytes(b.p, b.n);
    uint32_t id = s->slots[find_slot(s, b, hash)];
    if (id) return id - 1;
    b.p = (const uint8_t *)arena_copy(&s->arena, b.p, b.n);
    return b.p == NULL ? STR_NONE : add(s, b, hash);
}

/* Text in a mapped file may change at any time: the copy that is kept is the
 * one that is looked at. */
str_id strs_intern(struct strs *s, struct bytes b) {
    if (b.n == 0) return 0; /* b.p may be NULL */
    uint32_t id = s->slots[find_slot(s, b, hash_bytes(b.p, b.n))];
    if (id) return id - 1;
    b.p = (const uint8_t *)arena_copy(&s->arena, b.p, b.n);
    if (b.p == NULL) return STR_NONE;
    if (!utf8_clean(b)) {
        if (b.n > (SIZE_MAX - 1) / 3) return STR_NONE;
        uint8_t *clean = malloc(b.n * 3 + 1);
        if (clean == NULL) return STR_NONE;
        size_t n = utf8_mend(b, clean, &s->mended);
        id = intern_clean(s, (struct bytes){clean, n});
        free(clean);
        return id;
    }
    return add(s, b, hash_bytes(b.p, b.n));
}
