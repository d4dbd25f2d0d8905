/* SPDX-License-Identifier: Apache-2.0
 * Python pickles as plain data: None, bools, numbers, texts, lists, tuples and
 * dicts of protocols 0 to 5. Nothing else is read and nothing is ever run: a
 * pickle that wants to load or call something is refused, and the error says
 * what it wanted.
 *
 *     struct pickle p;
 *     TRY(pickle_read(&p, bytes, e));
 *     const struct pickle_value *v = pickle_get(p.root, "segments");
 *     for (size_t i = 0; i < pickle_count(v); i++) ... pickle_item(v, i) ...
 *     pickle_free(&p);
 *
 * What the pickle shares stays shared: a list that is referred to a thousand
 * times is one box. Whoever walks the data must count on that (a few bytes can
 * stand for any number of visits) and may use the boxes' mark to remember what
 * was made of one. Memory is at most 40 bytes for a byte of the file (a pickle
 * that wants more is refused), and about 3 in real ones. There are no loops:
 * see pickle.c. */
#ifndef IMPORT_SNAPSHOT_PICKLE_H
#define IMPORT_SNAPSHOT_PICKLE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include <stdbool.h>

enum pickle_type {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,  /* fits int64 */
    PICKLE_UINT, /* does not, but fits uint64 */
    PICKLE_FLOAT,
    PICKLE_TEXT, /* str or bytes, as they stand in the file */
    PICKLE_LIST, /* or tuple */
    PICKLE_DICT,
};

#define PICKLE_NO_MARK UINT32_MAX

/* A list's items, or a dict's keys and values in turn. */
struct pickle_box {
    struct pickle_value *v;
    size_t n, cap;
    size_t at;      /* offset in the file */
    uint32_t depth; /* of what is inside it; 1: no box is */
    uint32_t mark;  /* the walker's own; PICKLE_NO_MARK at first */
    bool placed;    /* is inside another, and may not change any more */
};

struct pickle_value {
    union {
        int64_t i; /* BOOL, INT; the bits of UINT */
        double f;
        const uint8_t *text; /* n bytes in the file */
        struct pickle_box *box;
    };
    uint32_t n;
    uint8_t type; /* enum pickle_type */
};

struct pickle {
    const struct pickle_value *root;
    bool cut;           /* the file ends early: root is what there was */
    struct arena arena; /* all boxes */
};

/* Reads the pickle at the start of b, which must outlive it; bytes behind its
 * end are not looked at. Returns OPS_EFORMAT with the offset if it is damaged
 * or wants more than plain data, OPS_ELIMIT if out of memory. On success the
 * caller frees. O(n). */
int pickle_read(struct pickle *p, struct bytes b, struct ops_err *e);
void pickle_free(struct pickle *p);

/* Returns the value of a text key among the first 64 of a dict (records have a
 * dozen; a made-up one must not cost a million for each visit). Returns NULL if
 * it is not there, or v is NULL or no dict. */
const struct pickle_value *pickle_get(const struct pickle_value *v,
                                      const char *key);

/* Returns the number of items of a list; 0 if v is NULL or no list. */
static inline size_t pickle_count(const struct pickle_value *v) {
    return v && v->type == PICKLE_LIST ? v->box->n : 0;
}

static inline const struct pickle_value *
pickle_item(const struct pickle_value *v, size_t i) {
    return &v->box->v[i];
}

/* Returns the text; an empty one if v is NULL or something else. */
static inline struct bytes pickle_text(const struct pickle_value *v) {
    if (v == NULL || v->type != PICKLE_TEXT)
        return (struct bytes){(const uint8_t *)"", 0};
    return (struct bytes){v->text, v->n};
}

/* Returns the integer; dflt if v is NULL or something else. */
static inline int64_t pickle_int(const struct pickle_value *v, int64_t dflt) {
    return v && (v->type == PICKLE_INT || v->type == PICKLE_BOOL) ? v->i : dflt;
}

#endif
