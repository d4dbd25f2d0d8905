/* SPDX-License-Identifier: Apache-2.0
 * JSON pull reader: walks text in place, allocates nothing, recurses nowhere.
 * It is lenient where real writers break the rules (commas too many or too few,
 * NaN, bare words) and counts each such place in `mended`. Raw control
 * characters in strings are let through: who keeps a string counts them.
 *
 * The text must have 64 readable zero bytes behind it (see file.h).
 *
 *     json_enter(&j, '{')
 *     while (json_key(&j, &key)) ... one value reader or json_skip(&j)
 */
#ifndef BASE_TEXT_JSON_H
#define BASE_TEXT_JSON_H

#include "base/bytes.h"
#include <stdbool.h>

struct json {
    const uint8_t *p, *end;
    uint64_t mended; /* broken rules that were passed over */
    bool bad;        /* the text makes no sense at p; only the caller can
                        decide how to go on */
    bool first;      /* a bracket was just entered: no comma is due yet */
};

/* A string as it stands between its quotes. */
struct json_str {
    struct bytes raw;
    bool escaped; /* has backslashes: json_unescape before use */
};

/* A number, exactly: value = digits * 10^-scale, or f when not exact. */
struct json_num {
    enum { JSON_NAN, JSON_EXACT, JSON_FLOAT } kind;
    int64_t digits;
    int scale; /* decimals behind the point, 0 to 19 */
    double f;
    bool quoted; /* it was written as a string */
};

static inline struct json json_reader(struct bytes b) {
    /* p is NULL where there is nothing, and nothing may be added to that */
    const uint8_t *p = b.n > 0 ? b.p : (const uint8_t *)"";
    return (struct json){p, p + b.n, 0, false, false};
}

/* Passes over blanks, tabs, line ends and other control characters, but not
 * NUL: a file that is cut while it is read reads as NULs, which are no
 * blanks. */
static inline void json_space(struct json *j) {
    while ((uint8_t)(*j->p - 1) < ' ' && j->p < j->end) j->p++;
}

/* Returns the next byte that is not blank; 0 at the end. */
static inline uint8_t json_peek(struct json *j) {
    json_space(j);
    return j->p < j->end ? *j->p : 0;
}

/* Steps into an object or list. Returns false if none is next. */
static inline bool json_enter(struct json *j, uint8_t bracket) {
    if (json_peek(j) != bracket) return false;
    j->p++;
    j->first = true;
    return true;
}

/* Reads the next key of the object that was entered, and passes the colon.
 * Returns false at the closing brace (passed), or at damage (bad). */
bool json_key(struct json *j, struct json_str *key);

/* Is there another element in the list that was entered? Returns false at the
 * closing bracket (passed), or at damage or the end (bad). */
bool json_item(struct json *j);

/* Reads a string. Returns false if none is next; then nothing is moved. */
bool json_string(struct json *j, struct json_str *out);

/* Returns the number that is next, also one in quotes. Anything else is skipped
 * and gives JSON_NAN. */
struct json_num json_number(struct json *j);

/* Passes over any value, however deep, in one go; a cut one sets bad. */
void json_skip(struct json *j);

/* Passes over the rest of an object of which some keys were read. */
void json_skip_rest(struct json *j);

/* Undoes escapes into out (room for raw.n bytes); returns the length. Lone
 * surrogates become U+FFFD, unknown escapes stand for themselves; both are
 * counted in *mended. */
size_t json_unescape(struct bytes raw, uint8_t *out, uint64_t *mended);

/* Gives the number as an integer, the fraction cut. Returns false if it is no
 * number or does not fit. */
bool json_to_int(const struct json_num *n, int64_t *out);
double json_to_double(const struct json_num *n);

#endif
