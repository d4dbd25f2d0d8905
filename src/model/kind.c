/* SPDX-License-Identifier: Apache-2.0
 * The words for kinds and flags. */
#include "model/kind.h"

#include "model/trace.h"

static const char *const kinds[SPAN_KINDS] = {
    [SPAN_OTHER] = "other",           [SPAN_OP] = "op",
    [SPAN_ANNOTATION] = "annotation", [SPAN_API] = "api",
    [SPAN_PYTHON] = "python",         [SPAN_RUNTIME] = "runtime",
    [SPAN_KERNEL] = "kernel",         [SPAN_COPY] = "copy",
    [SPAN_MEMSET] = "memset",         [SPAN_SYNC] = "sync",
    [SPAN_OVERHEAD] = "overhead",
};

/* By bit number of enum span_flag. */
static const char *const flags_by_bit[8] = {
    NULL, NULL, "derived", "step", "open", "eager", NULL, NULL,
};

const char *kind_name(uint8_t kind) {
    return kinds[kind < SPAN_KINDS ? kind : SPAN_OTHER];
}

const char *flag_name(unsigned i) { return i < 8 ? flags_by_bit[i] : NULL; }

/* Takes the next word off. */
static struct bytes next_word(struct bytes *b) {
    while (b->n > 0 && *b->p == ' ') {
        b->p++;
        b->n--;
    }
    struct bytes w = {b->p, 0};
    while (b->n > 0 && *b->p != ' ') {
        b->p++;
        b->n--;
        w.n++;
    }
    return w;
}

static bool is(struct bytes w, const char *s) {
    return s != NULL && bytes_eq(w, s, strlen(s));
}

bool kind_parse(struct bytes words, uint8_t *kind, uint8_t *flags) {
    struct bytes w = next_word(&words);
    uint8_t k = 0;
    while (k < SPAN_KINDS && !is(w, kinds[k])) k++;
    if (k == SPAN_KINDS) return false;
    *kind = k;
    *flags = 0;
    while ((w = next_word(&words)).n > 0)
        for (unsigned i = 0; i < 8; i++)
            if (is(w, flags_by_bit[i])) *flags |= (uint8_t)(1u << i);
    return true;
}
