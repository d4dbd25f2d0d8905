/* SPDX-License-Identifier: Apache-2.0
 * Strings and values of JSON, and the check of foreign JSON before it is passed
 * on. */
#include "base/text/json_text.h"

#include "base/array.h"
#include "base/text/cut.h"
#include "base/text/plain.h"
#include "base/text/utf8.h"
#include <stdio.h>
#include <string.h>

/* Returns the length of the good escape at p (a backslash); 0 if it is bad. */
static size_t escape_len(const uint8_t *p, size_t n) {
    if (n < 2) return 0;
    if (p[1] != 'u') return strchr("\"\\/bfnrt", p[1]) && p[1] ? 2 : 0;
    for (size_t i = 2; i < 6; i++)
        if (i >= n || !(byte_is_digit(p[i]) || (p[i] >= 'a' && p[i] <= 'f') ||
                        (p[i] >= 'A' && p[i] <= 'F')))
            return 0;
    return 6;
}

/* Returns which half of a pair the escape at p is: 'h'igh, 'l'ow, or 0. */
static char half_of(const uint8_t *p, size_t n) {
    if (n < 6 || p[0] != '\\' || escape_len(p, n) != 6) return 0;
    if ((p[2] | 0x20) != 'd' || p[3] < '8') return 0;
    uint8_t c = p[3] | 0x20; /* '8', '9' stay; 'a'..'f' in lower case */
    return c == '8' || c == '9' || c == 'a' || c == 'b' ? 'h' : 'l';
}

void json_put_escape(struct sink *out, uint32_t c) {
    if (c == PLAIN_BAD) c = 0xfffd;
    if (c < 0x10000) sink_printf(out, "\\u%04x", (unsigned)c);
    else
        sink_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                    (unsigned)(0xdc00 | (c & 0x3ff)));
}

/* What the bytes are: text; text as it stood between quotes in JSON; or a whole
 * value, in which quotes and blanks stay as they are. */
enum form { TEXT, QUOTED, VALUE };

/* Writes the escape at p, of n bytes: as it is, or what it should have been.
 * Returns the bytes that were read. */
static size_t put_escaped(struct sink *out, const uint8_t *p, size_t n) {
    size_t k = escape_len(p, n);
    char half = half_of(p, n);
    if (k == 0) {
        sink_puts(out, "\\\\");
        return 1;
    }
    if (half == 'h' && half_of(p + 6, n - 6) == 'l') k = 12;
    else if (half != 0) {
        sink_puts(out, "\\ufffd");
        return 6;
    }
    sink_write(out, p, k);
    return k;
}

/* Writes one character that cannot stand as it is, or not always. Returns the
 * bytes that were read. */
static size_t put_odd(struct sink *out, const uint8_t *p, size_t n,
                      enum form form) {
    uint32_t c;
    size_t k = plain_take((const char *)p, n, &c);
    if (c == '\\' && form != TEXT) return put_escaped(out, p, n);
    if (c == '"' && form == VALUE) sink_putc(out, '"');
    else if (c == '"' || c == '\\') sink_printf(out, "\\%c", (int)c);
    else if (form == VALUE && c < 0x20) sink_putc(out, c == '\n' ? '\n' : ' ');
    else if (plain_char(c)) sink_write(out, p, k);
    else if (c == '\n') sink_puts(out, "\\n");
    else if (c == '\t') sink_puts(out, "\\t");
    else json_put_escape(out, c);
    return k;
}

/* Writes all of b; runs of plain bytes are written in one go. */
static void put_body(struct sink *out, struct bytes b, enum form form) {
    for (size_t i = 0; i < b.n;) {
        size_t from = i;
        while (i < b.n && b.p[i] >= 0x20 && b.p[i] < 0x7f && b.p[i] != '"' &&
               b.p[i] != '\\')
            i++;
        if (i > from) sink_write(out, b.p + from, i - from);
        if (i < b.n) i += put_odd(out, b.p + i, b.n - i, form);
    }
}

void json_put(struct sink *out, struct bytes b) {
    sink_putc(out, '"');
    put_body(out, b, TEXT);
    sink_putc(out, '"');
}

void json_put_raw(struct sink *out, struct bytes raw) {
    sink_putc(out, '"');
    put_body(out, raw, QUOTED);
    sink_putc(out, '"');
}

void json_put_value(struct sink *out, struct bytes raw) {
    if (json_is_strict(raw)) put_body(out, raw, VALUE);
    else json_put(out, raw);
}

/* The strict reader: each function moves p on, or returns false. */
struct strict {
    const uint8_t *p, *end;
};

static uint8_t at(const struct strict *s) { return s->p < s->end ? *s->p : 0; }

static void blanks(struct strict *s) {
    while (s->p < s->end &&
           (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool string(struct strict *s) {
    if (at(s) != '"') return false;
    s->p++;
    while (s->p < s->end && *s->p != '"') {
        size_t left = (size_t)(s->end - s->p), n = 1;
        if (*s->p < 0x20) return false;
        if (*s->p == '\\') n = escape_len(s->p, left);
        else if (*s->p >= 0x80) n = utf8_len(s->p, left);
        if (n == 0) return false;
        s->p += n;
    }
    if (s->p == s->end) return false;
    s->p++;
    return true;
}

static bool digits(struct strict *s) {
    if (!byte_is_digit(at(s))) return false;
    while (byte_is_digit(at(s))) s->p++;
    return true;
}

static bool number(struct strict *s) {
    if (at(s) == '-') s->p++;
    if (at(s) == '0') s->p++;
    else if (!digits(s)) return false;
    if (at(s) == '.') {
        s->p++;
        if (!digits(s)) return false;
    }
    if (at(s) != 'e' && at(s) != 'E') return true;
    s->p++;
    if (at(s) == '+' || at(s) == '-') s->p++;
    return digits(s);
}

static bool word(struct strict *s, const char *w) {
    size_t n = strlen(w);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, w, n) != 0) return false;
    s->p += n;
    return true;
}

/* Reads a value that holds no others. */
static bool scalar(struct strict *s) {
    uint8_t c = at(s);
    if (c == '"') return string(s);
    if (c == '-' || byte_is_digit(c)) return number(s);
    return word(s, "true") || word(s, "false") || word(s, "null");
}

/* Reads the key and the colon before a value of an object. */
static bool key(struct strict *s) {
    blanks(s);
    if (!string(s)) return false;
    blanks(s);
    if (at(s) != ':') return false;
    s->p++;
    return true;
}

bool json_is_strict(struct bytes b) {
    struct strict s = {b.p, b.p + b.n};
    uint64_t objects = 0; /* one bit a level: object or list */
    unsigned depth = 0;
    for (;;) {
        blanks(&s);
        uint8_t c = at(&s);
        bool empty = false;
        if (c == '{' || c == '[') {
            if (depth++ == 64) return false;
            objects = objects << 1 | (c == '{');
            s.p++;
            blanks(&s);
            empty = at(&s) == (c == '{' ? '}' : ']');
            if (!empty && c == '{' && !key(&s)) return false;
            if (!empty) continue;
        } else if (!scalar(&s)) {
            return false;
        }
        for (;; objects >>= 1, depth--) { /* what ends here, or goes on */
            blanks(&s);
            if (depth == 0) return s.p == s.end;
            bool object = objects & 1;
            if (at(&s) == ',' && !empty) break;
            if (at(&s) != (object ? '}' : ']')) return false;
            s.p++;
            empty = false;
        }
        s.p++;
        if ((objects & 1) && !key(&s)) return false;
    }
}

void json_put_key(struct sink *s, struct json_keys *k, struct bytes key,
                  bool raw) {
    char again[256];
    unsigned n = 0;
    for (unsigned i = 0; i < k->n; i++)
        n += k->seen[i].n == key.n &&
             (key.n == 0 || memcmp(k->seen[i].p, key.p, key.n) == 0);
    if (k->n < COUNT(k->seen)) {
        struct bytes *seen = &k->seen[k->n];
        *seen = key;
        if (key.n > 0 && key.n < sizeof k->copy[0])
            seen->p = memcpy(k->copy[k->n], key.p, key.n);
        k->n++;
    }
    if (n > 0) {
        cut_fmt(again, sizeof again, "%.*s (%u)", CUT_BYTES(200, key), n + 1);
        key = bytes_of(again);
    }
    if (raw) json_put_raw(s, key);
    else json_put(s, key);
}
