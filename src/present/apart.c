/* SPDX-License-Identifier: Apache-2.0
 * Texts that look alike are sorted: neighbours have the longest beginning in
 * common. Where the first and the last of a range part, all of them show a
 * window; then the range falls into smaller ones, which part further on:
 *
 *     sm80_xmma_gemm_f32_tilesize64x64_warps2     window: 64x64
 *     sm80_xmma_gemm_f32_tilesize128x64_warps2    window: 128x64, 2
 *     sm80_xmma_gemm_f32_tilesize128x64_warps4    window: 128x64, 4
 *
 * What room the windows leave goes to the beginning of the text. */
#include "present/apart.h"

#include "base/arena.h"
#include "base/io/sink.h"
#include "present/width.h"
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOWS = 6,     /* of a text; what needs more gets a number */
    DEPTH = 32,      /* of ranges inside of ranges, for the same reason */
    REACH = 12,      /* letters of a word beside the one that differs */
    LOOK_AT = 4096,  /* bytes of a text: longer ones repeat themselves */
    LEAST_WIDTH = 8, /* there is no room for windows below */
    LONG_HEAD = 16,  /* letters of a path's first part that are worth leaving */
};

struct window {
    size_t from, to; /* bytes */
};

/* One of the texts that look alike. */
struct alike {
    const char *text; /* what is cut */
    struct cut *cut;  /* the first of those that are the same */
    struct window w[WINDOWS];
    size_t nw;
};

static int by_shown(const void *pa, const void *pb) {
    const struct cut *a = *(struct cut *const *)pa;
    const struct cut *b = *(struct cut *const *)pb;
    int d = strcmp(a->shown, b->shown);
    return d != 0 ? d : strcmp(a->full, b->full);
}

static int by_full(const void *pa, const void *pb) {
    const struct cut *a = *(struct cut *const *)pa;
    const struct cut *b = *(struct cut *const *)pb;
    return strcmp(a->full, b->full);
}

static int by_text(const void *pa, const void *pb) {
    const struct alike *a = pa, *b = pb;
    return strcmp(a->text, b->text);
}

static size_t common(const char *a, const char *b) {
    size_t n = 0;
    while (a[n] != '\0' && a[n] == b[n]) n++;
    return n;
}

static bool is_inside(const char *s, size_t at) {
    return ((uint8_t)s[at] & 0xc0) == 0x80;
}

/* Makes the text show the word around the byte at which it differs. */
static void add_window(struct alike *x, size_t at) {
    const char *s = x->text;
    size_t from = at, to = at + (s[at] != '\0');
    while (from > 0 && at - from < REACH && isalnum((uint8_t)s[from - 1]))
        from--;
    while (s[to] != '\0' && to - at < REACH && isalnum((uint8_t)s[to])) to++;
    while (from > 0 && is_inside(s, from)) from--;
    while (is_inside(s, to)) to++;
    struct window *last = x->nw > 0 ? &x->w[x->nw - 1] : NULL;
    if (last != NULL && from <= last->to) {
        if (to > last->to) last->to = to;
    } else if (x->nw < WINDOWS) {
        x->w[x->nw++] = (struct window){from, to};
    }
}

/* Finds the windows of n texts that are sorted and differ. */
static void find_windows(struct alike *v, size_t n, int depth) {
    if (n < 2 || depth == DEPTH) return;
    size_t at = common(v[0].text, v[n - 1].text), first = 0;
    for (size_t i = 0; i < n; i++) add_window(&v[i], at);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && v[i].text[at] == v[first].text[at]) continue;
        find_windows(v + first, i - first, depth + 1);
        first = i;
    }
}

/* Writes (out may be NULL) the first `head` bytes, the windows from number
 * `from` on, and dots between them. Returns the columns that this takes at
 * most. */
static size_t put_windows(struct sink *out, const struct alike *x, size_t head,
                          size_t from, const char *dots) {
    const char *s = x->text;
    size_t all = strlen(s), ndots = text_width(dots), at = head, used = head;
    if (out != NULL) text_put_n(out, s, head);
    for (size_t i = from; i <= x->nw; i++) {
        bool end = i == x->nw;
        struct window w = end ? (struct window){all, all} : x->w[i];
        if (w.to < at || (end && at == all)) continue;
        if (w.from < at) w.from = at;
        /* dots where fewer letters stand would be a waste */
        bool skip = w.from - at > ndots;
        size_t begin = skip ? w.from : at;
        used += (skip ? ndots : 0) + w.to - begin;
        if (out != NULL && skip) sink_puts(out, dots);
        if (out != NULL) text_put_n(out, s + begin, w.to - begin);
        at = w.to;
    }
    return used;
}

/* Is it a path, as of an op in its scopes, and no sentence or stack? */
static bool is_path(const char *s) {
    return strchr(s, '/') != NULL && strchr(s, ' ') == NULL;
}

/* Makes a path show its end, too, where there is room: what it leads to. */
static void add_end(struct alike *x, const char *dots) {
    struct alike more = *x;
    size_t n = strlen(x->text);
    if (!is_path(x->text)) return;
    add_window(&more, n - 1);
    if (put_windows(NULL, &more, 0, 0, dots) <= x->cut->width) *x = more;
}

/* Returns the text with its windows and as much of its beginning as there is
 * room for; NULL if memory ran out. */
static const char *cut_to_windows(const struct alike *x, const char *dots,
                                  struct arena *a) {
    size_t width = x->cut->width, from = 0, head = strlen(x->text);
    while (from < x->nw && put_windows(NULL, x, 0, from, dots) > width) from++;
    if (head > width) head = width;
    while (head > 0 && (is_inside(x->text, head) ||
                        put_windows(NULL, x, head, from, dots) > width))
        head--;
    struct sink out;
    sink_memory(&out);
    put_windows(&out, x, head, from, dots);
    const char *text = out.broken ? NULL : arena_copy(a, out.buf, out.n);
    sink_free(&out);
    return text;
}

/* Returns what is looked at of a text: its beginning; of a symbol without what
 * tells least. NULL if memory ran out. */
static const char *look_at(const char *s, bool symbol, struct arena *a) {
    size_t n = strnlen(s, LOOK_AT);
    if (!symbol || s[n] != '\0') return arena_copy(a, s, n);
    struct sink out;
    sink_memory(&out);
    symbol_put_bare(&out, s);
    const char *text = out.broken ? NULL : arena_copy(a, out.buf, out.n);
    sink_free(&out);
    return text;
}

/* Fills v with what is looked at of m texts and sorts it. Returns 1 if all of
 * them differ, 0 if not, -1 if memory ran out. */
static int look(struct alike *v, size_t m, bool symbol, struct arena *a) {
    for (size_t i = 0; i < m; i++) {
        v[i].text = look_at(v[i].cut->full, symbol, a);
        if (v[i].text == NULL) return -1;
    }
    qsort(v, m, sizeof *v, by_text);
    for (size_t i = 1; i < m; i++)
        if (strcmp(v[i - 1].text, v[i].text) == 0) return 0;
    return 1;
}

/* Cuts n texts anew that look alike; p is sorted by their full texts. This and
 * those below return false if memory ran out. */
static bool tell_apart(struct cut **p, size_t n, bool symbols, const char *dots,
                       struct arena *a) {
    struct alike *v = calloc(n, sizeof *v);
    size_t m = 0;
    for (size_t i = 0; v != NULL && i < n; i++)
        if (i == 0 || strcmp(p[i - 1]->full, p[i]->full) != 0)
            v[m++].cut = p[i];
    int differ = v != NULL ? look(v, m, symbols, a) : -1;
    if (differ == 0 && symbols) differ = look(v, m, false, a);
    if (differ > 0) find_windows(v, m, 0);
    for (size_t i = 0; differ > 0 && i < m; i++) {
        add_end(&v[i], dots);
        const char *text = cut_to_windows(&v[i], dots, a);
        if (text != NULL) v[i].cut->shown = text;
        else differ = -1;
    }
    for (size_t i = 1; i < n; i++)
        if (strcmp(p[i - 1]->full, p[i]->full) == 0)
            p[i]->shown = p[i - 1]->shown;
    free(v);
    return differ >= 0;
}

/* Numbers n texts that still look alike. */
static bool number(struct cut **p, size_t n, const char *dots,
                   struct arena *a) {
    size_t k = 0;
    const char *shown = p[0]->shown;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(p[i - 1]->full, p[i]->full) == 0) {
            p[i]->shown = p[i - 1]->shown;
            continue;
        }
        char tail[24];
        size_t ntail = (size_t)snprintf(tail, sizeof tail, "~%zu", ++k);
        struct sink out;
        sink_memory(&out);
        size_t room = p[i]->width > ntail ? p[i]->width - ntail : 0;
        text_put_fit(&out, shown, room, dots);
        sink_puts(&out, tail);
        const char *text = out.broken ? NULL : arena_copy(a, out.buf, out.n);
        sink_free(&out);
        if (text == NULL) return false;
        p[i]->shown = text;
    }
    return true;
}

/* Finds the run of texts from number i on that look alike; p is sorted by what
 * is shown. Returns true if they differ; *end is the text behind it. */
static bool run_differs(struct cut *const *p, size_t n, size_t i, size_t *end) {
    size_t k = i + 1;
    while (k < n && strcmp(p[k]->shown, p[i]->shown) == 0) k++;
    *end = k;
    return strcmp(p[i]->full, p[k - 1]->full) != 0 &&
           p[i]->width >= LEAST_WIDTH;
}

/* Cuts each run anew, by itself. */
static bool runs_apart(struct cut **p, size_t n, bool symbols, const char *dots,
                       struct arena *a) {
    qsort(p, n, sizeof *p, by_shown);
    for (size_t i = 0, end; i < n; i = end) {
        if (!run_differs(p, n, i, &end)) continue;
        for (size_t k = i; k < end; k++) p[k]->alike = true;
        if (!tell_apart(p + i, end - i, symbols, dots, a)) return false;
    }
    return true;
}

/* What one run made of its texts may be what another made of its own: then all
 * of them are cut anew together. */
static bool all_apart(struct cut **p, size_t n, bool symbols, const char *dots,
                      struct arena *a) {
    size_t k = 0;
    bool any = false;
    qsort(p, n, sizeof *p, by_shown);
    for (size_t i = 0, end; i < n; i = end) {
        if (!run_differs(p, n, i, &end)) continue;
        for (size_t j = i; j < end; j++) p[j]->alike = true;
        any = true;
    }
    if (!any) return true;
    for (size_t i = 0; i < n; i++)
        if (p[i]->alike) {
            struct cut *now = p[i];
            p[i] = p[k];
            p[k++] = now;
        }
    qsort(p, k, sizeof *p, by_full);
    return tell_apart(p, k, symbols, dots, a);
}

/* Returns the bytes of a path's first part, its slash counted; 0 if it is no
 * path or that is too short to save anything. */
static size_t head_of(const char *s) {
    const char *slash = is_path(s) ? strchr(s, '/') : NULL;
    size_t n = slash != NULL ? (size_t)(slash - s) + 1 : 0;
    return n >= LONG_HEAD && slash[1] != '\0' ? n : 0;
}

/* Leaves out the first part of paths that several of them share: TensorFlow
 * writes StatefulPartitionedCall/ before the name of most ops. */
static bool drop_heads(struct cut **p, size_t n, const char *dots,
                       struct arena *a) {
    size_t room = text_width(dots) + 1;
    qsort(p, n, sizeof *p, by_full);
    for (size_t i = 0, end; i < n; i = end) {
        size_t head = head_of(p[i]->full);
        for (end = i + 1; head > 0 && end < n; end++)
            if (strncmp(p[i]->full, p[end]->full, head) != 0) break;
        if (strcmp(p[i]->full, p[end - 1]->full) == 0) continue;
        for (size_t k = i; k < end; k++) {
            if (p[k]->width < room + LEAST_WIDTH) continue;
            struct sink out;
            sink_memory(&out);
            sink_puts(&out, dots);
            sink_putc(&out, '/');
            size_t from = out.n;
            sink_puts(&out, p[k]->full + head);
            /* from here on this is what is cut */
            p[k]->full = out.broken ? NULL : arena_copy(a, out.buf, out.n);
            out.n = from;
            if (p[k]->full != NULL)
                text_put_fit(&out, p[k]->full + from, p[k]->width - room, dots);
            p[k]->shown = out.broken ? NULL : arena_copy(a, out.buf, out.n);
            sink_free(&out);
            if (p[k]->full == NULL || p[k]->shown == NULL) return false;
        }
    }
    return true;
}

bool cuts_apart(struct cut *v, size_t n, bool symbols, const char *dots,
                struct arena *a) {
    struct cut **p = malloc((n + 1) * sizeof *p);
    size_t k = 0;
    if (p == NULL) return false;
    for (size_t i = 0; i < n; i++)
        if (v[i].full != NULL) p[k++] = &v[i];
    bool ok = drop_heads(p, k, dots, a) && runs_apart(p, k, symbols, dots, a) &&
              all_apart(p, k, symbols, dots, a);
    qsort(p, k, sizeof *p, by_shown);
    for (size_t i = 0, end; ok && i < k; i = end) {
        if (run_differs(p, k, i, &end)) ok = number(p + i, end - i, dots, a);
    }
    free(p);
    return ok;
}
