/* SPDX-License-Identifier: Apache-2.0
 * Interned strings: each distinct text is kept once and known by a 32-bit id;
 * id 0 is "". Text is valid UTF-8 with no NUL: strs_intern mends what is
 * not. */
#ifndef MODEL_STRS_H
#define MODEL_STRS_H

#include "base/arena.h"
#include "base/bytes.h"
#include <stdbool.h>

typedef uint32_t str_id;
#define STR_NONE UINT32_MAX /* out of memory, or "no string" in a lookup */

struct strs {
    struct arena arena;
    const char **text; /* by id, NUL-terminated */
    uint32_t *len;     /* by id, bytes */
    uint64_t *hash;    /* by id */
    uint32_t *slots;   /* hash table of ids + 1; 0 is free */
    size_t n, cap, nslots;
    size_t mended; /* bytes that were not UTF-8 and became U+FFFD */
};

/* Makes s ready for use; strs_free undoes it. Returns false if out of
 * memory. */
bool strs_init(struct strs *s);
void strs_free(struct strs *s);

/* Returns the id of these bytes, stored if new. Bad UTF-8 becomes U+FFFD and
 * NUL becomes a blank, counted in mended. STR_NONE if out of memory. About 10
 * ns for a known short string. */
str_id strs_intern(struct strs *s, struct bytes b);

/* Returns the id if these bytes are known, else STR_NONE. Never allocates. */
str_id strs_find(const struct strs *s, struct bytes b);

static inline const char *strs_text(const struct strs *s, str_id id) {
    return id < s->n ? s->text[id] : "";
}

static inline struct bytes strs_bytes(const struct strs *s, str_id id) {
    if (id >= s->n) return (struct bytes){(const uint8_t *)"", 0};
    return (struct bytes){(const uint8_t *)s->text[id], s->len[id]};
}

#endif
