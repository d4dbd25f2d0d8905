/* SPDX-License-Identifier: Apache-2.0
 * Tables of facts, as `info` and `overview` are: metric, value, unit, text. */
#ifndef ANALYZE_REPORT_FACTS_H
#define ANALYZE_REPORT_FACTS_H

#include "model/result.h"

struct trace;

/* Adds the four columns; rows stay in the order in which they are put. */
void facts_columns(struct result *r);

/* Puts one fact: value may be absent (have false); text is for people. */
void facts_put(struct result *r, const char *metric, bool have, double value,
               const char *unit, const char *text);

/* Put facts of common kinds. */
void facts_text(struct result *r, const char *metric, const char *text);
void facts_count(struct result *r, const char *metric, uint64_t n);
void facts_time(struct result *r, const char *metric, int64_t ps);
void facts_bytes(struct result *r, const char *metric, int64_t n);
void facts_words(struct result *r, const char *metric, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns a number that the source tells of the whole program ("cpu_us"); -1 if
 * it does not. */
int64_t facts_told(const struct trace *t, uint32_t source, const char *key);

/* Says, by device, whether it did anything: ran work, held memory, was counted.
 * A profile of one GPU of eight lists all eight. The caller frees it; NULL if
 * memory ran out. */
bool *facts_devices(const struct trace *t);

#endif
