/* SPDX-License-Identifier: Apache-2.0
 * Reads the language of windows (grammar: window.h), and answers for a step or
 * a moment. Every part becomes one form, an interval that may be cut into
 * periods, so that asking is a loop of two comparisons and a division.
 *
 * Surprise: a step range includes its end and becomes end + 1 here, a time
 * range does not; from then on both are half-open. */
#include "ring/window.h"

#include "base/array.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where the reader stands, and where it says what is wrong. */
struct reader {
    const char *at;
    const char *part; /* the part being read, for messages */
    char *why;
    size_t cap;
};

struct value {
    int64_t n;
    bool time;
};

static const struct unit {
    const char *name;
    int64_t ns;
} units[] = {
    {"us", 1000},
    {"ms", 1000 * 1000},
    {"s", 1000 * 1000 * 1000},
    {"min", 60LL * 1000 * 1000 * 1000},
    {"h", 3600LL * 1000 * 1000 * 1000},
};

/* Says "'<the part>': ..." and returns -1. */
__attribute__((format(printf, 2, 3))) static int wrong(const struct reader *r,
                                                       const char *fmt, ...) {
    size_t n = strcspn(r->part, ",");
    while (n > 0 && r->part[n - 1] == ' ') n--;
    bool cut = n > 40;
    int used = snprintf(r->why, r->cap, "'%.*s%s': ", cut ? 40 : (int)n,
                        r->part, cut ? "..." : "");
    if (used < 0 || (size_t)used >= r->cap) return -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why + used, r->cap - (size_t)used, fmt, ap);
    va_end(ap);
    return -1;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_spaces(struct reader *r) {
    while (*r->at == ' ' || *r->at == '\t') r->at++;
}

/* Takes the word if it stands here, and not as the beginning of a longer
 * one. */
static bool take_word(struct reader *r, const char *word) {
    size_t n = strlen(word);
    skip_spaces(r);
    if (strncmp(r->at, word, n) != 0 || is_letter(r->at[n])) return false;
    r->at += n;
    return true;
}

static bool take_dots(struct reader *r) {
    skip_spaces(r);
    if (strncmp(r->at, "..", 2) != 0) return false;
    r->at += 2;
    return true;
}

/* Reads a step or a time; what is the word before it, for messages. */
static int take_value(struct reader *r, const char *what, struct value *v) {
    int64_t whole = 0, fraction = 0;
    bool point = false;
    skip_spaces(r);
    if (!is_digit(*r->at))
        return wrong(r, "a step or a time must follow %s", what);
    for (; is_digit(*r->at); r->at++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, *r->at - '0', &whole) ||
            whole == INT64_MAX)
            return wrong(r, "the number is too large");
    if (r->at[0] == '.' && is_digit(r->at[1])) {
        /* the fraction counts billionths; further digits are skipped */
        int64_t scale = 100 * 1000 * 1000;
        point = true;
        for (r->at++; is_digit(*r->at); r->at++, scale /= 10)
            fraction += (*r->at - '0') * scale;
    }
    const struct unit *u = NULL;
    for (size_t i = 0; i < COUNT(units) && u == NULL; i++)
        if (take_word(r, units[i].name)) u = &units[i];
    skip_spaces(r);
    if (!u && is_letter(*r->at) && strncmp(r->at, "for", 3) != 0)
        return wrong(r, "the units of time are us, ms, s, min and h");
    if (!u && point) return wrong(r, "a step is a whole number");
    v->time = u != NULL;
    v->n = whole;
    if (!u) return 0;
    /* fraction < 10^9 and ns <= 3.6 * 10^12: below 2^63 */
    if (__builtin_mul_overflow(whole, u->ns, &v->n) ||
        __builtin_add_overflow(v->n,
                               u->ns < 1000000
                                   ? fraction * u->ns / 1000000000
                                   : fraction * (u->ns / 1000000) / 1000,
                               &v->n) ||
        v->n == INT64_MAX)
        return wrong(r, "the time is too long");
    return 0;
}

/* Reads the part behind "every". */
static int take_period(struct reader *r, struct window_part *p) {
    struct value every, length = {1, false};
    if (take_value(r, "'every'", &every) != 0) return -1;
    if (take_word(r, "for")) {
        if (take_value(r, "'for'", &length) != 0) return -1;
    } else if (every.time) {
        return wrong(r, "say for how long: 'every 60s for 2s'");
    }
    if (every.time != length.time)
        return wrong(r, "one value is a time, the other a number of steps");
    if (every.n == 0 || length.n == 0) return wrong(r, "0 gives no period");
    if (length.n > every.n) return wrong(r, "it lasts longer than its period");
    *p = (struct window_part){0, INT64_MAX, every.n, length.n, every.time};
    return 0;
}

/* Reads a step, or a range with at least one end. */
static int take_range(struct reader *r, struct window_part *p) {
    struct value from = {0, false}, to;
    bool open = take_dots(r), both = false;
    if (open) {
        if (take_value(r, "'..'", &to) != 0) return -1;
        from.time = to.time;
    } else {
        if (take_value(r, "the comma", &from) != 0) return -1;
        if (!take_dots(r)) {
            if (from.time)
                return wrong(r, "a time is not a range: end it with '..', "
                                "or with '..' and a later time");
            to = from;
        } else {
            skip_spaces(r);
            both = is_digit(*r->at);
            to = (struct value){INT64_MAX, from.time};
            if (both && take_value(r, "'..'", &to) != 0) return -1;
        }
    }
    if (both && from.time != to.time)
        return wrong(r, "one end is a time, the other a step");
    if (!to.time && to.n != INT64_MAX) to.n++;
    if (from.n >= to.n) return wrong(r, "it ends before it begins");
    *p = (struct window_part){from.n, to.n, 0, 0, from.time};
    return 0;
}

static int take_part(struct reader *r, struct window *w) {
    skip_spaces(r);
    r->part = r->at;
    if (*r->at == '\0' || *r->at == ',') {
        snprintf(r->why, r->cap,
                 "a step, a range, 'every N' or 'demand' is "
                 "missing %s",
                 *r->at ? "before a comma" : "at the end");
        return -1;
    }
    if (take_word(r, "demand")) {
        w->demand = true;
    } else {
        if (w->nparts == WINDOW_PARTS)
            return wrong(r, "more than %d parts", WINDOW_PARTS);
        struct window_part *p = &w->parts[w->nparts++];
        if (take_word(r, "every")) {
            if (take_period(r, p) != 0) return -1;
        } else if (is_digit(*r->at) || strncmp(r->at, "..", 2) == 0) {
            if (take_range(r, p) != 0) return -1;
        } else {
            return wrong(r, "not a step, a range, 'every N' or 'demand'");
        }
    }
    skip_spaces(r);
    if (*r->at != '\0' && *r->at != ',')
        return wrong(r, "'%.20s' was not expected there", r->at);
    return 0;
}

int window_parse(struct window *w, const char *text, char *why, size_t cap) {
    struct reader r = {text, text, why, cap};
    if (cap > 0) why[0] = '\0';
    memset(w, 0, sizeof *w);
    for (;;) {
        if (take_part(&r, w) != 0) {
            memset(w, 0, sizeof *w);
            return -1;
        }
        if (*r.at == '\0') return 0;
        r.at++;
    }
}

static bool wants(const struct window *w, int64_t x, bool time) {
    for (unsigned i = 0; i < w->nparts; i++) {
        const struct window_part *p = &w->parts[i];
        if (p->time != time || x < p->from || x >= p->to) continue;
        if (p->every == 0 || (x - p->from) % p->every < p->length) return true;
    }
    return false;
}

bool window_wants_step(const struct window *w, int64_t step) {
    return wants(w, step, false);
}

bool window_wants_time(const struct window *w, uint64_t ns_since_start) {
    return ns_since_start < INT64_MAX &&
           wants(w, (int64_t)ns_since_start, true);
}

static bool uses(const struct window *w, bool time) {
    for (unsigned i = 0; i < w->nparts; i++)
        if (w->parts[i].time == time) return true;
    return false;
}

bool window_uses_steps(const struct window *w) { return uses(w, false); }
bool window_uses_time(const struct window *w) { return uses(w, true); }

/* Returns the first edge of the part that lies behind x. */
static int64_t next_border(const struct window_part *p, int64_t x) {
    if (x < p->from) return p->from;
    if (x >= p->to) return INT64_MAX;
    if (p->every == 0) return p->to;
    int64_t in = (x - p->from) % p->every;
    int64_t step = in < p->length ? p->length - in : p->every - in;
    return x < p->to - step ? x + step : p->to;
}

uint64_t window_next_ns(const struct window *w, uint64_t ns_since_start) {
    int64_t next = INT64_MAX;
    if (ns_since_start >= INT64_MAX) return UINT64_MAX;
    for (unsigned i = 0; i < w->nparts; i++) {
        if (!w->parts[i].time) continue;
        int64_t b = next_border(&w->parts[i], (int64_t)ns_since_start);
        if (b < next) next = b;
    }
    return next == INT64_MAX ? UINT64_MAX : (uint64_t)next;
}
