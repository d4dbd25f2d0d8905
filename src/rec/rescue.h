/* SPDX-License-Identifier: Apache-2.0
 * Runs that were killed earlier: the next program that records into the same
 * log folder closes their profiles, so that no ring stays in /dev/shm for
 * ever. */
#ifndef REC_RESCUE_H
#define REC_RESCUE_H

/* Looks at the runs in a log folder, at most 256 of them, and finishes each
 * pointer whose writer is dead. Returns how many. What cannot be finished is
 * left as it is. */
unsigned rescue_folder(const char *logdir);

#endif
