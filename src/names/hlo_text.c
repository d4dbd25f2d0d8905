/* SPDX-License-Identifier: Apache-2.0
 * Words of HLO, read as far as they are needed: see hlo_text.h. Texts come
 * from files: each is read once, from left to right, up to a limit. */
#include "names/hlo_text.h"

#include "base/array.h"
#include "base/hash.h"
#include "names/pattern.h"
#include <string.h>

enum { LONGEST = 1 << 14 }; /* of a text; shapes stand at its beginning */

bool hlo_is_transfer(struct bytes name, struct bytes category) {
    /* clang-format off */
    static const char *const names[] = {
        "copy-start*", "copy-done*", "slice-start*", "slice-done*",
        "dynamic-slice-start*", "dynamic-slice-done*",
        "dynamic-update-slice-start*", "dynamic-update-slice-done*",
        "infeed*", "outfeed*", NULL,
    };
    static const char *const categories[] = {
        "copy-start", "copy-done", "infeed", "outfeed", "host send*",
        "host recv*", NULL,
    };
    /* clang-format on */
    return pattern_in(names, name) || pattern_in(categories, category);
}

/* Returns where in name a mark stands that a number may follow, or NULL. */
static const uint8_t *find_mark(struct bytes name, const char *mark) {
    size_t n = strlen(mark);
    const uint8_t *p = name.n < n ? NULL : memmem(name.p, name.n, mark, n);
    if (p == NULL) return NULL;
    size_t rest = name.n - (size_t)(p - name.p) - n;
    return rest == 0 || p[n] == '.' ? p : NULL;
}

enum hlo_half hlo_half_of(struct bytes name, uint64_t *key) {
    static const char *const marks[] = {NULL, "-start", "-done"};
    *key = 0;
    for (int h = HLO_START; h <= HLO_DONE; h++) {
        const uint8_t *p = find_mark(name, marks[h]);
        if (p == NULL) continue;
        const uint8_t *behind = p + strlen(marks[h]);
        *key = hash_pair(hash_bytes(name.p, (size_t)(p - name.p)),
                         hash_bytes(behind,
                                    (size_t)(name.p + name.n - behind)));
        return (enum hlo_half)h;
    }
    return HLO_WHOLE;
}

static bool is_word(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Reads "8,128]" behind the bracket of a shape: how many elements that is;
 * -1 if it is no shape. *p is left behind it. */
static int64_t read_dims(const uint8_t **p, const uint8_t *end) {
    int64_t elements = 1, v = 0;
    bool digits = false;
    for (; *p < end; ++*p) {
        uint8_t c = **p;
        if (c >= '0' && c <= '9') {
            if (v > INT64_MAX / 100) return -1;
            v = v * 10 + (c - '0');
            digits = true;
        } else if (c == ',' || c == ']') {
            if (digits && __builtin_mul_overflow(elements, v, &elements))
                return -1;
            v = 0;
            digits = false;
            if (c == ']') {
                ++*p;
                return elements;
            }
        } else if (c != '<' && c != '=' && c != ' ') { /* a bound: "<=8" */
            return -1;
        }
    }
    return -1;
}

/* Reads "{1,0:T(8,128)S(5)}" behind a shape: does it lie in the host's memory,
 * whose space has the number 5? *p is left behind it. */
static bool read_layout(const uint8_t **p, const uint8_t *end) {
    if (*p == end || **p != '{') return false;
    const uint8_t *close = memchr(*p, '}', (size_t)(end - *p));
    if (close == NULL) close = end;
    bool host = memmem(*p, (size_t)(close - *p), "S(5)", 4) != NULL;
    *p = close < end ? close + 1 : end;
    return host;
}

/* Adds an array to the result; elements or bytes that nobody knows make the
 * sums unknown. */
static void add_array(struct hlo_result *r, int n, enum dtype type,
                      int64_t elements, bool host) {
    int64_t bytes;
    bool known = type != DTYPE_UNKNOWN && elements >= 0 &&
                 !__builtin_mul_overflow(elements, dtype_bits(type), &bytes);
    if (known) bytes = bytes / 8 + (bytes % 8 > 0);
    else bytes = -1;
    if (n == 0) {
        *r = (struct hlo_result){.elements = 0, .type = type, .host = {-1, -1}};
        r->first_bytes = bytes;
    }
    if (n < 2) r->host[n] = host;
    r->last_elements = elements;
    r->last_bytes = bytes;
    if (!known || r->bytes < 0 ||
        __builtin_add_overflow(r->bytes, bytes, &r->bytes) ||
        __builtin_add_overflow(r->elements, elements, &r->elements))
        r->bytes = r->elements = -1;
}

struct hlo_result hlo_shape_of(struct bytes text) {
    struct hlo_result r = {-1, -1, -1, -1, -1, DTYPE_UNKNOWN, {-1, -1}};
    if (text.n > LONGEST) text.n = LONGEST;
    const uint8_t *p = text.p, *end = text.p + text.n;
    bool tuple = p < end && *p == '(';
    for (int n = 0; p < end;) {
        while (p < end && (*p == '(' || *p == ' ' || *p == ',')) p++;
        const uint8_t *from = p;
        while (p < end && is_word(*p)) p++;
        if (p == end || *p != '[' || p == from) break; /* the opcode, or ')' */
        enum dtype type = dtype_of_any(
            (struct bytes){from, (size_t)(p - from)});
        p++;
        int64_t elements = read_dims(&p, end);
        add_array(&r, n++, type, elements, read_layout(&p, end));
        if (!tuple || elements < 0) break;
    }
    return r;
}

struct hlo_result hlo_result_of(struct bytes text) {
    if (text.n > LONGEST) text.n = LONGEST;
    const uint8_t *p = text.n < 3 ? NULL : memmem(text.p, text.n, " = ", 3);
    if (p == NULL) return hlo_shape_of((struct bytes){text.p, 0});
    p += 3;
    return hlo_shape_of((struct bytes){p, text.n - (size_t)(p - text.p)});
}

int64_t hlo_group_size(struct bytes text) {
    static const char mark[] = "replica_groups=";
    if (text.n > LONGEST) text.n = LONGEST;
    const uint8_t *p = memmem(text.p, text.n, mark, sizeof mark - 1);
    const uint8_t *end = text.p + text.n;
    if (p == NULL) return -1;
    p += sizeof mark - 1;
    /* {{0,1},{2,3}}: the numbers of the first; [2,4]<=[8]: two of four */
    bool iota = p < end && *p == '[';
    int64_t n = 0, v = 0;
    for (bool digit = false; p < end; p++) {
        bool now = *p >= '0' && *p <= '9';
        if (now && !digit) n++;
        if (now) v = (digit ? v : 0) * 10 + (*p - '0');
        if (v > 1 << 30) return -1;
        digit = now;
        if (*p == (iota ? ']' : '}') || *p == ';') break;
    }
    if (iota) return n == 2 && v > 0 ? v : -1;
    return n > 0 ? n : -1;
}
