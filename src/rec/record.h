/* SPDX-License-Identifier: Apache-2.0
 * What the session and the end of a thread need of the calls. */
#ifndef REC_RECORD_H
#define REC_RECORD_H

#include <stdint.h>

struct ring_map;

/* Returns what a scope costs, in ps; measured on a ring of its own. */
uint64_t record_cost_ps(const struct ring_map *v);
/* Closes the step and epoch of the calling thread, and scopes that are known to
 * have been left. A step in which a scope is open stays open: both end with the
 * session, at one time. */
void record_close_steps(void);
/* Closes the scopes, step and epoch of a thread that ends. */
void record_close_all(void);

#endif
