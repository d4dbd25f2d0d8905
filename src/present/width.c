/* SPDX-License-Identifier: Apache-2.0
 * Widths of characters, and shortening. */
#include "present/width.h"

#include "base/array.h"
#include "base/text/plain.h"
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct span32 {
    uint32_t lo, hi;
};

static bool within(const struct span32 *v, size_t n, uint32_t c) {
    for (size_t i = 0; i < n; i++)
        if (c >= v[i].lo && c <= v[i].hi) return true;
    return false;
}

/* Blocks of Unicode 15 that matter in names: combining marks (all else that
 * takes no room is not plain); East Asian wide, full-width forms, and
 * pictographs. */
static const struct span32 zero_wide[] = {
    {0x300, 0x36f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x20d0, 0x20ff}, {0xfe20, 0xfe2f},
};
static const struct span32 two_wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

/* Takes one character of the n bytes at s. Returns its length; *columns becomes
 * the columns that it takes as text_put writes it. */
static size_t width_take(const char *s, size_t n, size_t *columns) {
    uint32_t c;
    size_t k = plain_take(s, n, &c);
    *columns = 1;
    if (c < 0x300 || !plain_char(c)) return k;
    if (within(zero_wide, COUNT(zero_wide), c)) *columns = 0;
    else if (within(two_wide, COUNT(two_wide), c)) *columns = 2;
    return k;
}

size_t text_width_n(const char *s, size_t n) {
    size_t w = 0, columns;
    for (const char *end = s + n; s < end;) {
        size_t k = plain_run(s, (size_t)(end - s));
        s += k;
        w += k;
        if (s == end) break;
        s += width_take(s, (size_t)(end - s), &columns);
        w += columns;
    }
    return w;
}

size_t text_width(const char *s) { return text_width_n(s, strlen(s)); }

void text_put_n(struct sink *out, const char *s, size_t n) {
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c;
        k = plain_run(s + i, n - i);
        sink_write(out, s + i, k);
        i += k;
        if (i == n) break;
        k = plain_take(s + i, n - i, &c);
        if (plain_char(c)) sink_write(out, s + i, k);
        else sink_putc(out, '?');
    }
}

void text_put(struct sink *out, const char *s) {
    text_put_n(out, s, strlen(s));
}

/* Returns the end of the characters from the front that fit into width. */
static const char *head_end(const char *s, const char *end, size_t width) {
    for (size_t w = 0, columns, k; s < end; s += k) {
        k = width_take(s, (size_t)(end - s), &columns);
        w += columns;
        if (w > width) break;
    }
    return s;
}

/* Writes a word that is wider than a line, in pieces. Returns the column behind
 * it. */
static size_t put_long_word(struct sink *out, const char *s, size_t n,
                            size_t col, size_t indent, size_t limit) {
    for (const char *end = s + n; s < end;) {
        const char *cut = head_end(s, end, limit - col);
        size_t columns;
        if (cut == s) cut += width_take(s, (size_t)(end - s), &columns);
        text_put_n(out, s, (size_t)(cut - s));
        col += text_width_n(s, (size_t)(cut - s));
        s = cut;
        if (s == end) break;
        sink_putc(out, '\n');
        sink_repeat(out, " ", indent);
        col = indent;
    }
    return col;
}

void text_put_wrapped(struct sink *out, const char *s, size_t col,
                      size_t indent, size_t limit) {
    for (bool first = true; *s != '\0'; first = false) {
        size_t n = strcspn(s, " "), w = text_width_n(s, n);
        if (!first && col + 1 + w > limit) {
            sink_putc(out, '\n');
            sink_repeat(out, " ", indent);
            col = indent;
        } else if (!first) {
            sink_putc(out, ' ');
            col++;
        }
        if (w > limit - col && col < limit && indent < limit) {
            col = put_long_word(out, s, n, col, indent, limit);
        } else {
            text_put_n(out, s, n);
            col += w;
        }
        s += n + strspn(s + n, " ");
    }
    sink_putc(out, '\n');
}

enum { LEAST_NAME = 12 }; /* columns: less says nothing of a function of C */

/* Returns the name in "<built-in method run of X object>", which Python gives
 * functions of C; NULL if it is none. */
static const char *builtin_name(const char *s) {
    static const char *const before[] = {"<built-in method ",
                                         "<built-in function "};
    for (size_t i = 0; i < COUNT(before); i++)
        if (strncmp(s, before[i], strlen(before[i])) == 0)
            return s + strlen(before[i]);
    return NULL;
}

void text_put_fit(struct sink *out, const char *s, size_t width,
                  const char *cut) {
    size_t all = text_width(s), ndots = text_width(cut);
    if (all <= width) {
        text_put(out, s);
        return;
    }
    const char *name = builtin_name(s);
    if (name != NULL && width > ndots + LEAST_NAME) { /* all begin alike */
        sink_putc(out, '<');
        sink_puts(out, cut);
        text_put_fit(out, name, width - ndots - 1, cut);
        return;
    }
    if (width < ndots + 2) {
        text_put_n(out, s, (size_t)(head_end(s, s + strlen(s), width) - s));
        return;
    }
    size_t room = width - ndots, head = room - room * 2 / 5;
    const char *tail = s, *last = s + strlen(s);
    const char *end = head_end(s, last, head);
    for (size_t left = all, columns; left > room - head; left -= columns)
        tail += width_take(tail, (size_t)(last - tail), &columns);
    /* Next to dots that are there already no more are needed. */
    size_t n = strlen(cut);
    if ((size_t)(end - s) >= n && memcmp(end - n, cut, n) == 0) end -= n;
    if (strncmp(tail, cut, n) == 0) tail += n;
    text_put_n(out, s, (size_t)(end - s));
    sink_puts(out, cut);
    text_put(out, tail);
}

enum { NEST_MAX = 64 };

/* Returns what the bracket at s does to the depth: +1, -1 or 0. The arrows of
 * "->" and the names of operators are no brackets. */
static int bracket(const char *begin, const char *s) {
    static const char op[] = "operator";
    size_t before = (size_t)(s - begin), n = sizeof op - 1;
    if (*s == '(') return 1;
    if (*s == ')') return -1;
    if (*s != '<' && *s != '>') return 0;
    if (*s == '>' && before > 0 && s[-1] == '-') return 0;
    for (const char *p = s; p > begin && (size_t)(s - p) < 3; p--)
        if ((size_t)(p - begin) >= n && memcmp(p - n, op, n) == 0 &&
            strspn(p, "<>=-") > (size_t)(s - p))
            return 0;
    return *s == '<' ? 1 : -1;
}

/* Returns the deepest nesting; -1 if the brackets do not pair. */
static int nesting(const char *s) {
    int depth = 0, most = 0;
    for (const char *p = s; *p != '\0'; p++) {
        depth += bracket(s, p);
        if (depth < 0 || depth > NEST_MAX) return -1;
        if (depth > most) most = depth;
    }
    return depth == 0 ? most : -1;
}

/* Copies s without what is inside brackets of that depth (1 is the outermost):
 * f<a, g<b>>(c) becomes f<...>(...) at depth 1. */
static void collapse(struct sink *out, const char *s, int at, const char *cut) {
    static const char anon[] = "(anonymous namespace)";
    int depth = 0;
    for (const char *p = s; *p != '\0'; p++) {
        if (depth < at && strncmp(p, anon, sizeof anon - 1) == 0) {
            sink_write(out, p, sizeof anon - 1);
            p += sizeof anon - 2;
            continue;
        }
        int d = bracket(s, p);
        if (d < 0 && depth == at && p[-1] != '(' && p[-1] != '<')
            sink_puts(out, cut);
        if (d < 0) depth--;
        if (depth < at) sink_putc(out, *p);
        if (d > 0) depth++;
    }
}

/* Returns the length of a qualifier ("at::", "(anonymous namespace)::") at p; 0
 * if there is none. */
static size_t qualifier(const char *p) {
    static const char anon[] = "(anonymous namespace)::";
    if (strncmp(p, anon, sizeof anon - 1) == 0) return sizeof anon - 1;
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_");
    return n > 0 && p[n] == ':' && p[n + 1] == ':' ? n + 2 : 0;
}

/* Copies s without the qualifiers of names inside brackets of depth `from` and
 * deeper. */
static void unqualify(struct sink *out, const char *s, int from) {
    int depth = 0;
    bool word = false; /* inside a name: no qualifier begins here */
    for (const char *p = s; *p != '\0'; p++) {
        size_t n;
        while (depth >= from && !word && (n = qualifier(p)) > 0) p += n;
        if (*p == '\0') break;
        depth += bracket(s, p);
        word = strchr(" ,<>()*&:", *p) == NULL;
        sink_putc(out, *p);
    }
}

/* Writes the name without "void " before it and without its parameters. */
static void bare_name(struct sink *out, const char *s) {
    if (strncmp(s, "void ", 5) == 0) s += 5;
    size_t n = strlen(s);
    if (n > 0 && s[n - 1] == ')') {
        int depth = 0;
        size_t i = n;
        do depth += bracket(s, s + --i);
        while (i > 0 && depth < 0);
        if (i > 0 && s[i] == '(') n = i;
    }
    sink_write(out, s, n);
}

enum { STAGES = 3 + NEST_MAX };

/* Rewrites s at a stage of shortening: 0 bare, 1 and 2 fewer qualifiers, then
 * brackets collapse from the inside. Returns false past the last. */
static bool shorter(struct sink *out, struct sink *tmp, const char *s,
                    int stage, const char *cut) {
    tmp->n = out->n = 0;
    bare_name(tmp, s);
    sink_putc(tmp, '\0');
    if (tmp->broken) return false;
    int depth = nesting(tmp->buf) + 3 - stage;
    if (stage == 0) sink_puts(out, tmp->buf);
    else unqualify(out, tmp->buf, stage == 1 ? 1 : 0);
    sink_putc(out, '\0');
    if (stage < 3 || out->broken) return !out->broken;
    if (depth < 1) return false;
    tmp->n = 0;
    collapse(tmp, out->buf, depth, cut);
    sink_putc(tmp, '\0');
    out->n = 0;
    if (!tmp->broken) sink_puts(out, tmp->buf);
    sink_putc(out, '\0');
    return !tmp->broken && !out->broken;
}

void symbol_put_bare(struct sink *out, const char *s) {
    struct sink bare, tmp;
    sink_memory(&bare);
    sink_memory(&tmp);
    bool ok = nesting(s) > 0 && shorter(&bare, &tmp, s, 2, "");
    if (bare.broken || tmp.broken) out->broken = ENOMEM;
    else sink_puts(out, ok ? bare.buf : s);
    sink_free(&bare);
    sink_free(&tmp);
}

void symbol_put_fit(struct sink *out, const char *s, size_t width,
                    const char *cut) {
    if (text_width(s) <= width || nesting(s) < 1) {
        text_put_fit(out, s, width, cut);
        return;
    }
    struct sink now, before, tmp;
    sink_memory(&now);
    sink_memory(&before);
    sink_memory(&tmp);
    bool fits = false;
    int stage = 0;
    for (; stage < STAGES && !fits; stage++) {
        before.n = 0;
        sink_write(&before, now.buf, now.n);
        if (!shorter(&now, &tmp, s, stage, cut)) break;
        fits = text_width(now.buf) <= width;
    }
    /* When the last step threw away much more than it had to, the middle of the
     * text before that step tells more: kernels that differ only in their
     * template arguments stay apart. */
    bool waste = fits && stage > 3 && text_width(now.buf) * 3 < width * 2;
    const char *best = waste ? before.buf : now.buf;
    bool oom = now.broken || before.broken || tmp.broken;
    if (oom) out->broken = ENOMEM;
    else text_put_fit(out, best, width, cut);
    sink_free(&now);
    sink_free(&before);
    sink_free(&tmp);
}
