/* SPDX-License-Identifier: Apache-2.0
 * The flight recorder's dump: rings are read while their threads go on
 * overwriting them. */
#ifndef REC_FLIGHT_H
#define REC_FLIGHT_H

#include "ring/drain.h"

/* Encodes what the rings hold since the last dump, and what is open, into the
 * pass; the caller commits. A ring is copied, and what may have been
 * overwritten meanwhile is left out. */
void flight_pass(struct drain *d);

#endif
