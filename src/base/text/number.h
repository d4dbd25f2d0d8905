/* SPDX-License-Identifier: Apache-2.0
 * Numbers as text. Times and sizes are integers and stay so: no digit ever
 * goes through a double. */
#ifndef BASE_TEXT_NUMBER_H
#define BASE_TEXT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { NUMBER_MAX = 40 }; /* room for any of these */

/* Returns v without its sign, that of INT64_MIN, too. */
static inline uint64_t magnitude(int64_t v) {
    return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

/* A unit to show integers in: value / unit, with so many decimals. */
struct scale {
    int64_t unit;
    int decimals;
    const char *name; /* "ms", "MiB" */
};

/* Return the unit in which values up to `most` (>= 0) read well, for times in
 * ps and sizes in bytes. micro is "us" where only ASCII is allowed; zeros have
 * it, too, as the columns' names do. */
struct scale scale_time(uint64_t most, const char *micro);
struct scale scale_bytes(uint64_t most);

/* Returns the unit for plain counts such as flops: K, M, G, T, P. */
struct scale scale_count(uint64_t most);

/* Writes v / unit, rounded half away from zero; a value that is not 0 but would
 * round to 0 is written as "<0.001". Returns buf. */
char *number_scaled(int64_t v, struct scale s, char buf[NUMBER_MAX]);

/* Writes ps as microseconds with exactly so many decimals, 0 to 6. */
char *number_us(int64_t ps, int decimals, char buf[NUMBER_MAX]);

/* Writes the shortest text that reads back as the same double; v must be
 * finite. Returns buf. */
char *number_float(double v, char buf[NUMBER_MAX]);

/* Write one figure alone for people: ps as "1.23 ms", bytes as "1.50 GiB", into
 * buf of n bytes. Return buf. */
char *human_time(int64_t ps, char *buf, size_t n);
char *human_bytes(int64_t bytes, char *buf, size_t n);

/* Writes a range of times in one unit, "1.23 to 2.10 ms"; one figure where both
 * read the same. Returns buf. */
char *human_times(int64_t low, int64_t high, char *buf, size_t n);

#endif
