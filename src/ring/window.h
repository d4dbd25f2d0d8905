/* SPDX-License-Identifier: Apache-2.0
 * Which steps, or which time since the start, are to be recorded: the language
 * of ops_options.steps, OPSCOPE_STEPS and `opscope record --steps`.
 *
 *     text   = part { "," part }           a part adds to what others ask for
 *     part   = "demand"
 *            | value                       that step
 *            | value ".." [value]          both ends included (steps)
 *            | ".." value                  from the beginning
 *            | "every" value ["for" value] 0, 50, 100, ...; of each 50 the
 *                                          first 3
 *     value  = digits                      a step
 *            | digits ["." digits] unit    a time: us ms s min h
 *
 * Spaces may stand anywhere between words. A range of times does not include
 * its end: "10s..20s" lasts 10 s. Both values of a part are steps or both are
 * times; different parts may differ. A time alone is no part (it has no
 * length), and "every 60s" needs its "for". */
#ifndef RING_WINDOW_H
#define RING_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WINDOW_PARTS = 64 };

/* Holds x if from <= x < to and, when every > 0, (x - from) % every < length. x
 * is a step, or nanoseconds. */
struct window_part {
    int64_t from, to; /* INT64_MAX: open */
    int64_t every, length;
    bool time;
};

struct window {
    struct window_part parts[WINDOW_PARTS];
    unsigned nparts;
    bool demand;
};

/* Returns 0, or -1 and a sentence in why[cap], which names the part that is
 * wrong. */
int window_parse(struct window *w, const char *text, char *why, size_t cap);

/* Steps below 0 are never wanted. */
bool window_wants_step(const struct window *w, int64_t step);
bool window_wants_time(const struct window *w, uint64_t ns_since_start);

/* Does any part speak of steps, or of time? */
bool window_uses_steps(const struct window *w);
bool window_uses_time(const struct window *w);

/* Returns the next moment after ns at which window_wants_time may answer
 * differently; UINT64_MAX if there is none. A thread can sleep until then. */
uint64_t window_next_ns(const struct window *w, uint64_t ns_since_start);

#endif
