/* SPDX-License-Identifier: Apache-2.0
 * Strings and the check of foreign JSON before it is passed on. */
#include "export/json_text.h"

#include "base/utf8.h"
#include <stdio.h>

static bool is_hex(uint8_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
           (c >= 'A' && c <= 'F');
}

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Length of the good escape at p (a backslash), of n bytes; 0: none. */
static size_t escape_len(const uint8_t *p, size_t n) {
    if (n < 2) return 0;
    if (p[1] != 'u') return strchr("\"\\/bfnrt", p[1]) && p[1] ? 2 : 0;
    for (size_t i = 2; i < 6; i++)
        if (i >= n || !is_hex(p[i])) return 0;
    return 6;
}

/* What stands for the byte c that cannot stand for itself. */
static void put_byte(struct sink *out, uint8_t c) {
    char buf[8];
    const char *s = c == '"'    ? "\\\""
                    : c == '\\' ? "\\\\"
                    : c == '\n' ? "\\n"
                    : c == '\t' ? "\\t"
                    : c == '\r' ? "\\r"
                                : NULL;
    if (c >= 0x80) s = "\\ufffd";
    if (s == NULL) {
        snprintf(buf, sizeof buf, "\\u%04x", c);
        s = buf;
    }
    sink_puts(out, s);
}

/* Runs of good bytes are written in one go. */
static void put_string(struct sink *out, struct bytes b, bool raw) {
    size_t from = 0, i = 0;
    sink_putc(out, '"');
    while (i < b.n) {
        uint8_t c = b.p[i];
        size_t n = 1;
        if (c == '\\') n = raw ? escape_len(b.p + i, b.n - i) : 0;
        else if (c >= 0x80) n = utf8_len(b.p + i, b.n - i);
        else if (c < 0x20 || c == '"' || c == 0x7f) n = 0;
        if (n == 0) {
            sink_write(out, b.p + from, i - from);
            put_byte(out, c);
            from = ++i;
        } else {
            i += n;
        }
    }
    if (i > from) sink_write(out, b.p + from, i - from); /* p may be NULL */
    sink_putc(out, '"');
}

void json_put(struct sink *out, struct bytes b) { put_string(out, b, false); }

void json_put_raw(struct sink *out, struct bytes raw) {
    put_string(out, raw, true);
}

/* The strict reader: p moves on, or false. */
struct strict {
    const uint8_t *p, *end;
};

static uint8_t at(const struct strict *s) {
    return s->p < s->end ? *s->p : 0;
}

static void blanks(struct strict *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' ||
                             *s->p == '\r'))
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
    if (!is_digit(at(s))) return false;
    while (is_digit(at(s))) s->p++;
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

/* A value that holds no others. */
static bool scalar(struct strict *s) {
    uint8_t c = at(s);
    if (c == '"') return string(s);
    if (c == '-' || is_digit(c)) return number(s);
    return word(s, "true") || word(s, "false") || word(s, "null");
}

/* The key and colon before a value of an object. */
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

static unsigned times_seen(struct json_keys *k, struct bytes key) {
    unsigned n = 0;
    for (unsigned i = 0; i < k->n; i++)
        n += k->seen[i].n == key.n && memcmp(k->seen[i].p, key.p, key.n) == 0;
    if (k->n < sizeof k->seen / sizeof *k->seen) k->seen[k->n++] = key;
    return n;
}

void json_put_key(struct sink *s, struct json_keys *k, struct bytes key,
                  bool raw) {
    char again[256];
    unsigned n = times_seen(k, key);
    if (n > 0) {
        int len = key.n < 200 ? (int)key.n : 200;
        snprintf(again, sizeof again, "%.*s (%u)", len, (const char *)key.p,
                 n + 1);
        key = bytes_of(again);
    }
    if (raw) json_put_raw(s, key);
    else json_put(s, key);
}
