/* SPDX-License-Identifier: Apache-2.0
 * Hash map from 64-bit keys to 32-bit values: open addressing, linear probing,
 * no deletion. A zeroed map is empty. Nobody can foresee which keys share a
 * slot (hash.h), so that keys may come from files as they are. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX /* not found; never a stored value */

struct map {
    struct map_slot *slots; /* cap of them; NULL when empty */
    size_t n, cap;          /* cap is 0 or a power of two */
};

/* Returns the value of key, or MAP_NONE. */
uint32_t map_get(const struct map *m, uint64_t key);

/* Returns the place of key's value, with MAP_NONE in it when the key is new,
 * valid until the next call; NULL if out of memory. */
uint32_t *map_at(struct map *m, uint64_t key);

/* Stores a value; an old one is replaced. Returns false if out of memory. */
bool map_set(struct map *m, uint64_t key, uint32_t value);

/* Sets at, a variable of the caller (uint32_t *), to the value of the key for
 * which `same`, an expression in *at, is true, or to MAP_NONE in a new place;
 * to NULL when out of memory. Equal hashes of things that differ do no harm:
 *
 *     uint32_t *at;
 *     MAP_SLOT(at, &by_name, hash_bytes(s, n), strcmp(names[*at], s) == 0);
 */
#define MAP_SLOT(at, map, hash, same)                                          \
    do {                                                                       \
        uint64_t key_ = (hash);                                                \
        (at) = map_at((map), key_);                                            \
        while ((at) != NULL && *(at) != MAP_NONE && !(same))                   \
            (at) = map_at((map), key_ = map_next_key(key_));                   \
    } while (0)

/* Returns the key under which the next thing of an equal hash stands. */
uint64_t map_next_key(uint64_t key);

void map_free(struct map *m);

#endif
