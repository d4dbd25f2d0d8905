/* SPDX-License-Identifier: Apache-2.0
 * Yardsticks: the least work that reading such a file can be, hand-written and
 * storing nothing. What opscope takes is told as a multiple of these, measured
 * in the same run: ratios travel between machines, seconds do not. */
#ifndef BENCH_YARD_H
#define BENCH_YARD_H

#include "base/bytes.h"

/* What was seen. It keeps the compiler from leaving the work out, and is
 * checked. */
struct yard {
    uint64_t events;
    uint64_t keys;    /* JSON: keys; XSpace: fields */
    uint64_t numbers; /* JSON: ts and dur read; XSpace: stats */
    uint64_t sum;     /* of the numbers */
};

/* Finds every string, tells keys from values, counts an event for each "ph",
 * reads the numbers of "ts" and "dur". Valid JSON only. On 1 or 2 threads. */
struct yard yard_json(struct bytes b, int threads);

/* Walks every field down to the stats, decodes every varint. */
struct yard yard_xspace(struct bytes b);

/* Reads one byte of every cache line. */
struct yard yard_touch(struct bytes b);

#endif
