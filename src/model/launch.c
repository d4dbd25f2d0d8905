/* SPDX-License-Identifier: Apache-2.0
 * Launch facts as text; a line break is what tells it from other categories,
 * and the facts themselves have none (one in a name becomes a blank). */
#include "model/launch.h"

#include <assert.h>
#include <stdlib.h>

static uint8_t *put_line(uint8_t *p, struct bytes b) {
    for (size_t i = 0; i < b.n; i++) *p++ = b.p[i] == '\n' ? ' ' : b.p[i];
    *p++ = '\n';
    return p;
}

uint16_t launch_cat(struct trace *t, const struct launch *l) {
    enum { LONGEST = 4096 };
    size_t n = l->hlo_op.n + l->tf_op.n + l->details.n + l->module.n;
    if (n == 0 || n > LONGEST) return 0;
    uint8_t *text = malloc(n + 4), *p = text;
    if (text == NULL) {
        t->oom = true;
        return 0;
    }
    p = put_line(p, l->hlo_op);
    p = put_line(p, l->tf_op);
    p = put_line(p, l->details);
    if (l->module.n > 0) p = put_line(p, l->module);
    uint16_t cat = trace_cat(t, (struct bytes){text, (size_t)(p - text) - 1});
    free(text);
    return cat;
}

/* Takes a line off the text. */
static struct bytes take_line(struct bytes *text) {
    const uint8_t *end = text->n ? memchr(text->p, '\n', text->n) : NULL;
    struct bytes line = {text->p, end ? (size_t)(end - text->p) : text->n};
    size_t used = line.n + (end != NULL);
    *text = (struct bytes){text->p + used, text->n - used};
    return line;
}

bool launch_of_cat(const struct trace *t, uint16_t cat, struct launch *out) {
    assert(cat < t->ncats);
    if (cat == 0) return false;
    struct bytes text = strs_bytes(&t->strs, t->cats[cat]);
    if (memchr(text.p, '\n', text.n) == NULL) return false;
    out->hlo_op = take_line(&text);
    out->tf_op = take_line(&text);
    out->details = take_line(&text);
    out->module = text;
    return true;
}
