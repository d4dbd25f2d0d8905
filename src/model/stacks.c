/* SPDX-License-Identifier: Apache-2.0
 * Call stacks that a source recorded with its memory events. A training step
 * allocates from the same few hundred places again and again: frames and whole
 * stacks are interned, and an event carries a number. */
#include "model/trace_fill.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/text/cut.h"
#include "base/vec.h"
#include "names/frame_name.h"
#include <assert.h>
#include <stdio.h>

uint32_t trace_frame(struct trace *t, str_id name, str_id file, int32_t line) {
    assert(!t->sealed && name < t->strs.n && file < t->strs.n);
    struct stacks *s = &t->stacks;
    uint32_t *at;
    MAP_SLOT(at, &s->frame_map,
             hash_pair((uint64_t)name << 32 | file, (uint32_t)line),
             s->frames[*at].name == name && s->frames[*at].file == file &&
                 s->frames[*at].line == line);
    if (at != NULL && *at != MAP_NONE) return *at;
    if (at == NULL || s->nframes >= ROW_NONE ||
        !VEC_ROOM(s->frames, s->nframes, s->cap_frames)) {
        t->oom = true;
        return ROW_NONE;
    }
    s->frames[s->nframes] = (struct frame){name, file, line};
    return *at = (uint32_t)s->nframes++;
}

static bool same_stack(const struct stacks *s, uint32_t k,
                       const uint32_t *frames, size_t n) {
    size_t first = s->first[k];
    return s->first[k + 1] - first == n &&
           memcmp(s->items + first, frames, n * sizeof *frames) == 0;
}

/* Is there room for n more items and one more stack? It is made if need be. */
static bool room(struct stacks *s, size_t n) {
    if (s->n >= ROW_NONE - 1) return false;
    if (s->n + 2 > s->cap &&
        !vec_grow_(&s->first, &s->cap, s->n + 2, sizeof *s->first))
        return false;
    s->first[s->n] = s->nitems;
    return s->nitems + n <= s->cap_items ||
           vec_grow_(&s->items, &s->cap_items, s->nitems + n, sizeof *s->items);
}

uint32_t trace_stack(struct trace *t, const uint32_t *frames, size_t n) {
    assert(!t->sealed);
    struct stacks *s = &t->stacks;
    if (n == 0 || t->oom) return ROW_NONE;
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        assert(frames[i] < s->nframes);
        h = hash_pair(h, frames[i]);
    }
    uint32_t *at;
    MAP_SLOT(at, &s->stack_map, h, same_stack(s, *at, frames, n));
    if (at != NULL && *at != MAP_NONE) return *at;
    if (at == NULL || !room(s, n)) {
        t->oom = true;
        return ROW_NONE;
    }
    memcpy(s->items + s->nitems, frames, n * sizeof *frames);
    s->nitems += n;
    *at = (uint32_t)s->n++;
    s->first[s->n] = s->nitems;
    return *at;
}

void trace_mem_stack(struct trace *t, row_id m, uint32_t stack) {
    struct mem_events *e = &t->mem;
    if (m == ROW_NONE || stack == ROW_NONE) return;
    assert(!t->sealed && m < e->n && stack < t->stacks.n);
    if (e->stack == NULL) {
        if (!vec_resize(&e->stack, e->cap, sizeof *e->stack)) {
            t->oom = true;
            return;
        }
        for (size_t i = 0; i < e->n; i++) e->stack[i] = ROW_NONE;
    }
    e->stack[m] = stack;
}

/* Returns the part of a path that tells: what is behind site-packages/ and the
 * like. What is before it is the same for all, and long. No path is longer than
 * the system's limit: any number of frames may share a longer text, and its end
 * is not searched for each. */
static struct bytes telling(struct bytes path) {
    enum { LONGEST = 4096 };
    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
    size_t search = path.n < LONGEST ? path.n : LONGEST, skip = 0;
    for (size_t i = 0; i < COUNT(roots) && skip == 0; i++) {
        size_t n = strlen(roots[i]);
        const uint8_t *at = search < n ? NULL
                                       : memmem(path.p, search, roots[i], n);
        if (at != NULL) skip = (size_t)(at - path.p) + n;
    }
    if (skip == 0 && BYTES_STARTS(path, "site-packages/")) skip = 14;
    return (struct bytes){path.p + skip, path.n - skip};
}

/* Appends as much of b as fits. Returns the new length. */
static size_t put(char *buf, size_t cap, size_t len, struct bytes b) {
    size_t n = cut_bytes_at(b, cap - 1 - len);
    if (n > 0) memcpy(buf + len, b.p, n);
    buf[len + n] = '\0';
    return len + n;
}

static size_t frame_text(const struct trace *t, const struct frame *f,
                         char *buf, size_t cap) {
    struct bytes name = strs_bytes(&t->strs, f->name);
    char line[24];
    size_t n = 0;
    if (f->line > 0) {
        snprintf(line, sizeof line, ":%d ", (int)f->line);
        n = put(buf, cap, n, telling(strs_bytes(&t->strs, f->file)));
        n = put(buf, cap, n, bytes_of(line));
    }
    return put(buf, cap, n, name);
}

size_t stack_text(const struct trace *t, uint32_t stack, int n, char *buf,
                  size_t cap) {
    const struct stacks *s = &t->stacks;
    size_t len = 0;
    assert(cap > 0);
    buf[0] = '\0';
    if (stack == ROW_NONE) return 0;
    assert(stack < s->n);
    size_t first = s->first[stack], end = s->first[stack + 1];
    bool lines = false;
    for (size_t i = first; i < end && !lines; i++)
        lines = s->frames[s->items[i]].line > 0;
    for (; !lines && first + 1 < end; first++) {
        str_id name = s->frames[s->items[first]].name;
        if (!frame_name_is_recorder(strs_bytes(&t->strs, name))) break;
    }
    for (size_t i = first; i < end && n > 0; i++) {
        const struct frame *f = &s->frames[s->items[i]];
        if (lines && f->line <= 0) continue;
        if (len > 0 && len + 4 < cap) {
            memcpy(buf + len, " < ", 4);
            len += 3;
        }
        len += frame_text(t, f, buf + len, cap - len);
        n--;
    }
    return len;
}
