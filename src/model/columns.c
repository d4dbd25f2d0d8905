/* SPDX-License-Identifier: Apache-2.0
 * Columns by what people call them. Headings have a unit that depends on the
 * values ("total ms" here, "total s" there): any unit that such a column may
 * have is taken. */
#include "model/columns.h"

#include "base/array.h"
#include "base/text/cut.h"
#include "base/text/suggest.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HEADING_MAX = 96 };

static const char *const tails[] = {"_us", "_bytes", "_pct"};

/* Returns the length of the name without its unit. */
static size_t bare_length(const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < COUNT(tails); i++) {
        size_t tail = strlen(tails[i]);
        if (n > tail && strcmp(name + n - tail, tails[i]) == 0) return n - tail;
    }
    return n;
}

void column_heading(const struct column *c, char *buf, size_t n) {
    if (c->title != NULL) {
        snprintf(buf, n, "%s", c->title);
        return;
    }
    snprintf(buf, n, "%.*s", (int)bare_length(c->name), c->name);
    for (char *p = buf; *p != '\0'; p++)
        if (*p == '_') *p = ' ';
    if (strcmp(buf, "bytes") == 0) snprintf(buf, n, "size");
}

static bool is_same(const char *word, const char *text, size_t n) {
    return strlen(word) == n && strncasecmp(word, text, n) == 0;
}

/* May this unit stand above the column? */
static bool has_unit(const struct column *c, const char *unit, size_t n) {
    static const char *const times[] = {"ns", "us", "µs", "ms", "s"};
    static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    const char *own = c->unit != NULL ? c->unit : "";
    switch (c->type) {
    case COL_TIME:
        for (size_t i = 0; i < COUNT(times); i++)
            if (is_same(times[i], unit, n)) return true;
        return false;
    case COL_BYTES:
        for (size_t i = 0; i < COUNT(sizes); i++)
            if (is_same(sizes[i], unit, n)) return true;
        return false;
    case COL_PERCENT: return is_same("%", unit, n);
    case COL_INT:
        if (*own != '\0' && n > 0 && memchr("KMGTP", *unit, 5) != NULL &&
            is_same(own, unit + 1, n - 1))
            return true;
        return *own != '\0' && is_same(own, unit, n);
    default: return *own != '\0' && is_same(own, unit, n);
    }
}

/* How well a text names a column; 0: not at all. */
static int match(const struct column *c, const char *text, size_t n) {
    char heading[HEADING_MAX];
    column_heading(c, heading, sizeof heading);
    size_t k = strlen(heading);
    int shown = !(c->flags & COL_DETAIL);
    if (strlen(c->name) == n && memcmp(c->name, text, n) == 0) return 6;
    if (bare_length(c->name) == n && memcmp(c->name, text, n) == 0) return 5;
    if (k == 0) return 0;
    if (is_same(heading, text, n)) return 3 + shown;
    if (n > k + 1 && text[k] == ' ' && strncasecmp(heading, text, k) == 0 &&
        has_unit(c, text + k + 1, n - k - 1))
        return 1 + shown;
    return 0;
}

int result_match_col(const struct result *r, const char *text, size_t n) {
    int best = -1, quality = 0;
    for (size_t c = 0; c < r->ncols; c++) {
        int q = match(&r->cols[c], text, n);
        if (q <= quality) continue;
        quality = q;
        best = (int)c;
    }
    return best;
}

int result_no_col(const struct result *r, const char *text, size_t n,
                  struct ops_err *e) {
    char list[320] = "", word[64], near[80] = "";
    size_t used = 0;
    struct bytes asked = {(const uint8_t *)text, n};
    cut_fmt(word, sizeof word, "%.*s", CUT_BYTES(48, asked));
    struct suggest s = suggest_for(word);
    for (size_t c = 0; c < r->ncols; c++) {
        const char *name = r->cols[c].name;
        suggest_try(&s, name);
        if (used + strlen(name) + 8 > sizeof list) {
            snprintf(list + used, sizeof list - used, ", ...");
            used = sizeof list;
        }
        if (used == sizeof list) continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 c > 0 ? ", " : "", name);
    }
    if (suggest_best(&s) != NULL)
        snprintf(near, sizeof near, "did you mean '%s'? ", suggest_best(&s));
    return fail(e, OPS_EUSAGE, "'%s' has no column '%s'; %sit has %s",
                r->analysis, word, near, list);
}

int result_choose(struct result *r, const char *list, struct ops_err *e) {
    uint8_t pick[RESULT_COLS];
    bool in[RESULT_COLS] = {false};
    size_t n = 0;
    int profile = result_find_col(r, "profile");
    bool whose = profile == 0;
    for (const char *s = list;; s++) {
        s += strspn(s, " ");
        size_t all = strcspn(s, ","), k = all;
        while (k > 0 && s[k - 1] == ' ') k--;
        int c = result_match_col(r, s, k);
        if (c < 0) return result_no_col(r, s, k, e);
        if (!in[c]) pick[n++] = (uint8_t)c;
        in[c] = true;
        r->cols[c].flags |= COL_ASKED;
        s += all;
        if (*s == '\0') break;
    }
    if (whose && !in[0]) {
        memmove(pick + 1, pick, n++);
        pick[0] = 0;
    }
    return result_pick(r, pick, n, e);
}
