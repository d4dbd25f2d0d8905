/* SPDX-License-Identifier: Apache-2.0
 * Points that a program could not write: its event files do not know of them,
 * but the profile that it closed beside them does. */
#ifndef SCALARS_PROFILE_LOSS_H
#define SCALARS_PROFILE_LOSS_H

#include <stdint.h>

/* Returns how many points of curves the profile at path says were lost. It is 0
 * where it says nothing, cannot be read, or is not the recorder's. Lines of
 * events are passed over unread. */
uint64_t profile_scalars_lost(const char *path);

#endif
