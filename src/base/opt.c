/* SPDX-License-Identifier: Apache-2.0
 * Options: values are kept as the text that was given, checked once when set
 * and read again by type. Texts are a few bytes long, so that parsing them
 * twice costs less than a second representation would. */
#include "base/opt.h"

#include "base/text/cut.h"
#include "base/text/number.h"
#include "base/text/suggest.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void opts_init(struct opts *o, const struct opt *a, const struct opt *b,
               const struct opt *c) {
    *o = (struct opts){.tables = {a, b, c}};
}

const struct opt *opts_find(const struct opts *o, const char *name) {
    for (size_t i = 0; i < 3; i++)
        for (const struct opt *p = o->tables[i]; p && p->name; p++)
            if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

const struct opt *opts_find_letter(const struct opts *o, char letter) {
    if (letter == '\0') return NULL;
    for (size_t i = 0; i < 3; i++)
        for (const struct opt *p = o->tables[i]; p && p->name; p++)
            if (p->letter == letter) return p;
    return NULL;
}

/* Reads a whole number; a sign is allowed, nothing may stand behind it. */
static bool parse_int(const char *s, int64_t *out) {
    if (*s == '\0' || isspace((unsigned char)*s)) return false;
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || end == s || *end != '\0') return false;
    *out = v;
    return true;
}

static bool parse_float(const char *s, double *out) {
    if (*s == '\0' || isspace((unsigned char)*s)) return false;
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end != '\0' || !isfinite(v)) return false;
    *out = v;
    return true;
}

/* Returns what a unit stands for: M and MiB are 2^20, MB is 10^6; else 0. */
static double byte_unit(const char *s) {
    static const char letters[] = "KMGTP";
    if (*s == '\0' || strcmp(s, "B") == 0) return 1;
    const char *at = strchr(letters, toupper((unsigned char)*s));
    if (at == NULL) return 0;
    int power = (int)(at - letters) + 1;
    s++;
    if (*s == '\0' || strcasecmp(s, "ib") == 0) return pow(1024, power);
    return strcasecmp(s, "b") == 0 ? pow(1000, power) : 0;
}

static bool parse_bytes(const char *s, int64_t *out) {
    if (!isdigit((unsigned char)*s) && *s != '.') return false;
    if (s[0] == '0' && tolower((unsigned char)s[1]) == 'x') return false;
    char *end;
    double v = strtod(s, &end);
    if (end == s || !isfinite(v)) return false;
    while (*end == ' ') end++;
    double unit = byte_unit(end);
    if (unit == 0 || v * unit >= 9.2e18) return false;
    *out = (int64_t)(v * unit);
    return true;
}

/* Reads microseconds as decimal text into ps, by integers: 12.000001 is exact.
 * Digits past the picosecond are dropped. */
static bool parse_us(const char *s, int64_t *out) {
    bool neg = *s == '-';
    if (*s == '-' || *s == '+') s++;
    int64_t v = 0;
    int digits = 0, decimals = -1; /* decimals seen; -1: before the point */
    for (; *s != '\0'; s++) {
        if (*s == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (!isdigit((unsigned char)*s)) return false;
        digits++;
        if (decimals >= 6) continue;
        if (v > (INT64_MAX - 9) / 10) return false;
        v = v * 10 + (*s - '0');
        if (decimals >= 0) decimals++;
    }
    if (digits == 0) return false;
    for (int i = decimals < 0 ? 0 : decimals; i < 6; i++) {
        if (v > INT64_MAX / 10) return false;
        v *= 10;
    }
    *out = neg ? -v : v;
    return true;
}

/* Reads one side of a range; empty text is the open end. */
static bool parse_bound(const char *s, size_t n, int64_t open, int64_t *out) {
    char buf[24];
    if (n == 0) {
        *out = open;
        return true;
    }
    if (n >= sizeof buf) return false;
    memcpy(buf, s, n);
    buf[n] = '\0';
    return parse_int(buf, out);
}

static bool parse_range(const char *s, int64_t *lo, int64_t *hi) {
    const char *dots = strstr(s, "..");
    if (dots == NULL) {
        if (!parse_int(s, lo)) return false;
        *hi = *lo;
        return true;
    }
    if (dots == s && dots[2] == '\0') return false;
    return parse_bound(s, (size_t)(dots - s), INT64_MIN, lo) &&
           parse_bound(dots + 2, strlen(dots + 2), INT64_MAX, hi) && *lo <= *hi;
}

/* Is s one of "a|b|c"? */
static bool is_choice(const char *choices, const char *s) {
    size_t n = strlen(s);
    for (const char *p = choices; n > 0 && p != NULL;) {
        const char *bar = strchr(p, '|');
        size_t len = bar ? (size_t)(bar - p) : strlen(p);
        if (len == n && memcmp(p, s, n) == 0) return true;
        p = bar ? bar + 1 : NULL;
    }
    return false;
}

static bool flag_value(const char *s, bool *out) {
    *out = strcmp(s, "1") == 0 || strcmp(s, "true") == 0;
    return *out || strcmp(s, "0") == 0 || strcmp(s, "false") == 0;
}

static bool is_limited(const struct opt *p) {
    return p->limits.least != 0 || p->limits.most != 0;
}

enum { WANTED_MAX = 2 * NUMBER_MAX + 32 }; /* room for what wanted() writes */

/* Returns what a value of this type looks like, for the error; buf has room
 * for WANTED_MAX. */
static const char *wanted(const struct opt *p, char *buf) {
    if (is_limited(p)) {
        char least[NUMBER_MAX], most[NUMBER_MAX];
        bool end = isfinite(p->limits.most);
        number_float(p->limits.least, least);
        if (end) number_float(p->limits.most, most);
        snprintf(buf, WANTED_MAX, "a %snumber %s%s%s%s",
                 p->type == OPT_INT ? "whole " : "", end ? "from " : "of ",
                 least, end ? " to " : " or more", end ? most : "");
        return buf;
    }
    switch (p->type) {
    case OPT_FLAG: return "no value, or 0 or 1";
    case OPT_INT: return "a whole number of up to 18 digits";
    case OPT_FLOAT: return "a number";
    case OPT_CHOICE: return p->arg;
    case OPT_BYTES: return "a size such as 4096, 1M or 2.5GiB";
    case OPT_US: return "microseconds such as 12.5";
    case OPT_RANGE:
        return "a range, the smaller first, such as 3..7, 3.., ..7 or 5";
    case OPT_TEXT: break;
    }
    return p->arg ? p->arg : "a text";
}

static bool within(const struct opt *p, double v) {
    return !is_limited(p) || (v >= p->limits.least && v <= p->limits.most);
}

static bool value_ok(const struct opt *p, const char *s) {
    int64_t a, b;
    double f;
    bool flag;
    switch (p->type) {
    case OPT_FLAG: return flag_value(s, &flag);
    case OPT_INT: return parse_int(s, &a) && within(p, (double)a);
    case OPT_FLOAT: return parse_float(s, &f) && within(p, f);
    case OPT_CHOICE: return is_choice(p->arg, s);
    case OPT_BYTES: return parse_bytes(s, &a);
    case OPT_US: return parse_us(s, &a) && within(p, (double)a / 1e6);
    case OPT_RANGE: return parse_range(s, &a, &b);
    case OPT_TEXT: break;
    }
    return true;
}

int opts_set(struct opts *o, const char *name, const char *value,
             struct ops_err *e) {
    const struct opt *p = opts_find(o, name);
    char buf[WANTED_MAX];
    if (p == NULL) {
        struct suggest s = suggest_for(name);
        for (size_t i = 0; i < 3; i++)
            for (const struct opt *k = o->tables[i]; k && k->name; k++)
                suggest_try(&s, k->name);
        const char *near = suggest_best(&s);
        if (near == NULL)
            return fail(e, OPS_EUSAGE, "unknown option '--%s'", name);
        return fail(e, OPS_EUSAGE,
                    "unknown option '--%s'; did you mean '--%s'?", name, near);
    }
    if (value == NULL) {
        if (p->type != OPT_FLAG)
            return fail(e, OPS_EUSAGE, "option '--%s' needs a value: %s", name,
                        wanted(p, buf));
        value = "1";
    }
    if (!value_ok(p, value))
        return fail(e, OPS_EUSAGE, "option '--%s': '%.*s' is not %s%s", name,
                    CUT(100, value), p->type == OPT_CHOICE ? "one of " : "",
                    wanted(p, buf));
    size_t i = 0;
    while (i < o->n && o->given[i].opt != p) i++;
    assert(i < OPTS_MAX); /* the tables together have fewer rows */
    o->given[i].opt = p;
    o->given[i].text = value;
    if (i == o->n) o->n++;
    return 0;
}

/* Returns the given text of a row, or NULL. */
static const char *given_text(const struct opts *o, const struct opt *p) {
    for (size_t i = 0; i < o->n; i++)
        if (o->given[i].opt == p) return o->given[i].text;
    return NULL;
}

bool opts_given(const struct opts *o, const char *name) {
    const struct opt *p = opts_find(o, name);
    assert(p != NULL);
    return given_text(o, p) != NULL;
}

/* Returns the text that counts: given, or the default, or NULL. */
static const char *value_of(const struct opts *o, const char *name,
                            enum opt_type type) {
    const struct opt *p = opts_find(o, name);
    assert(p != NULL && (p->type == type || type == OPT_TEXT));
    const char *s = given_text(o, p);
    return s ? s : p->dflt;
}

bool opts_flag(const struct opts *o, const char *name) {
    const char *s = value_of(o, name, OPT_FLAG);
    bool v = false;
    return s && flag_value(s, &v) && v;
}

int64_t opts_int(const struct opts *o, const char *name) {
    const char *s = value_of(o, name, OPT_INT);
    int64_t v = 0;
    return s && parse_int(s, &v) ? v : 0;
}

double opts_float(const struct opts *o, const char *name) {
    const char *s = value_of(o, name, OPT_FLOAT);
    double v = 0;
    return s && parse_float(s, &v) ? v : 0;
}

const char *opts_text(const struct opts *o, const char *name) {
    return value_of(o, name, OPT_TEXT);
}

int64_t opts_bytes(const struct opts *o, const char *name) {
    const char *s = value_of(o, name, OPT_BYTES);
    int64_t v = 0;
    return s && parse_bytes(s, &v) ? v : 0;
}

int64_t opts_ps(const struct opts *o, const char *name) {
    const char *s = value_of(o, name, OPT_US);
    int64_t v = 0;
    return s && parse_us(s, &v) ? v : 0;
}

bool opts_range(const struct opts *o, const char *name, int64_t *lo,
                int64_t *hi) {
    const char *s = value_of(o, name, OPT_RANGE);
    return s != NULL && parse_range(s, lo, hi);
}
