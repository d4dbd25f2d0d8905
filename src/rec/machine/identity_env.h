/* SPDX-License-Identifier: Apache-2.0
 * The variables of the environment that a profile keeps: those of launchers,
 * of visible devices and of thread pools. Ended by NULL. */
#ifndef REC_MACHINE_IDENTITY_ENV_H
#define REC_MACHINE_IDENTITY_ENV_H

extern const char *const identity_env[];

#endif
