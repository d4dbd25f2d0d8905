/* SPDX-License-Identifier: Apache-2.0
 * Numbers as text, by integer arithmetic. */
#include "base/text/number.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Picoseconds in the units of people. */
#define NS  INT64_C(1000)
#define US  INT64_C(1000000)
#define MS  INT64_C(1000000000)
#define SEC INT64_C(1000000000000)

/* A unit serves up to 10,000 of it, so that a column of mixed sizes keeps its
 * small values readable. */
enum { UNIT_REACH = 10000 };

struct scale scale_time(uint64_t most, const char *micro) {
    if (most > 0 && most < (uint64_t)US) return (struct scale){NS, 3, "ns"};
    if (most < (uint64_t)US * UNIT_REACH) return (struct scale){US, 3, micro};
    if (most < (uint64_t)MS * UNIT_REACH) return (struct scale){MS, 3, "ms"};
    return (struct scale){SEC, 3, "s"};
}

/* Returns the unit, of a row of powers of `base`, that serves up to most. */
static struct scale power_scale(uint64_t most, int64_t base,
                                const char *const *names, size_t n) {
    struct scale s = {1, 0, names[0]};
    for (size_t i = 1; i < n && most / (uint64_t)s.unit >= UNIT_REACH; i++) {
        s.unit *= base;
        s.decimals = 2;
        s.name = names[i];
    }
    return s;
}

struct scale scale_bytes(uint64_t most) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return power_scale(most, 1024, names, 5);
}

struct scale scale_count(uint64_t most) {
    static const char *const names[] = {"", "K", "M", "G", "T", "P"};
    return power_scale(most, 1000, names, 6);
}

/* Writes the whole part, a point and decimals; the sign comes apart, as -0.5
 * has a whole part of 0. */
static void put_fixed(char *buf, bool neg, uint64_t whole, uint64_t part,
                      int decimals) {
    const char *sign = neg && (whole || part) ? "-" : "";
    if (decimals == 0)
        snprintf(buf, NUMBER_MAX, "%s%llu", sign, (unsigned long long)whole);
    else
        snprintf(buf, NUMBER_MAX, "%s%llu.%0*llu", sign,
                 (unsigned long long)whole, decimals, (unsigned long long)part);
}

/* Splits |v| / unit into whole and decimals, rounded half up. */
static void split(uint64_t v, uint64_t unit, int decimals, uint64_t *whole,
                  uint64_t *part) {
    uint64_t ten = 1;
    while (decimals-- > 0) ten *= 10;
    *whole = v / unit;
    *part = (v % unit * ten + unit / 2) / unit; /* no unit * ten over 2^63 */
    if (*part >= ten) {
        *part -= ten;
        ++*whole;
    }
}

char *number_scaled(int64_t v, struct scale s, char buf[NUMBER_MAX]) {
    uint64_t whole, part;
    split(magnitude(v), (uint64_t)s.unit, s.decimals, &whole, &part);
    if (v > 0 && whole == 0 && part == 0) {
        buf[0] = '<';
        put_fixed(buf + 1, false, s.decimals == 0, 1, s.decimals);
        return buf;
    }
    put_fixed(buf, v < 0, whole, part, s.decimals);
    return buf;
}

char *number_us(int64_t ps, int decimals, char buf[NUMBER_MAX]) {
    assert(decimals >= 0 && decimals <= 6);
    uint64_t whole, part;
    split(magnitude(ps), (uint64_t)US, decimals, &whole, &part);
    put_fixed(buf, ps < 0, whole, part, decimals);
    return buf;
}

char *number_float(double v, char buf[NUMBER_MAX]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, NUMBER_MAX, "%.*g", digits, v);
        if (strtod(buf, NULL) == v) break;
    }
    char *comma = strchr(buf, ','); /* a host program may have set a locale */
    if (comma != NULL) *comma = '.';
    return buf;
}

/* Writes a number and its unit, with at least three digits if it has them. */
static char *human(int64_t v, struct scale s, char *buf, size_t n) {
    char num[NUMBER_MAX];
    if (s.unit > 1) s.decimals = magnitude(v) / (uint64_t)s.unit >= 100 ? 1 : 2;
    snprintf(buf, n, "%s %s", number_scaled(v, s, num), s.name);
    return buf;
}

/* Returns the unit in which people say such a time. */
static struct scale time_unit(int64_t ps) {
    static const struct scale units[] = {
        {1, 0, "ps"},  {NS, 0, "ns"}, {US, 0, "µs"},
        {MS, 0, "ms"}, {SEC, 0, "s"},
    };
    size_t i = 4;
    while (i > 0 && magnitude(ps) < (uint64_t)units[i].unit) i--;
    return units[i];
}

char *human_time(int64_t ps, char *buf, size_t n) {
    if (ps == 0) {
        snprintf(buf, n, "0");
        return buf;
    }
    return human(ps, time_unit(ps), buf, n);
}

char *human_times(int64_t low, int64_t high, char *buf, size_t n) {
    char a[48], b[48];
    struct scale s = time_unit(high);
    human(low, s, a, sizeof a);
    human(high, s, b, sizeof b);
    if (strcmp(a, b) == 0) return human_time(high, buf, n);
    a[strlen(a) - strlen(s.name) - 1] = '\0'; /* the unit comes once */
    snprintf(buf, n, "%s to %s", a, b);
    return buf;
}

char *human_bytes(int64_t bytes, char *buf, size_t n) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    uint64_t abs = magnitude(bytes);
    struct scale s = {1, 0, names[0]};
    for (size_t i = 1; i < 6 && abs >= (uint64_t)s.unit * 1024; i++) {
        s.unit *= 1024;
        s.name = names[i];
    }
    return human(bytes, s, buf, n);
}
