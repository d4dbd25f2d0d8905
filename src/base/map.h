/* SPDX-License-Identifier: Apache-2.0
 * Hash map from 64-bit keys to 32-bit values: open addressing, linear probing,
 * no deletion. Zeroed is empty. Which keys share a slot nobody can foresee
 * (hash.h), so that keys may come from files as they are. */
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

/* The value of key, or MAP_NONE. */
uint32_t map_get(const struct map *m, uint64_t key);

/* Where the value of key stands, MAP_NONE in it when new; valid until the next
 * call. NULL: out of memory. */
uint32_t *map_at(struct map *m, uint64_t key);

/* Stores; an old value is replaced. False: out of memory. */
bool map_set(struct map *m, uint64_t key, uint32_t value);

void map_free(struct map *m);

#endif
