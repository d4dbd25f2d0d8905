/* SPDX-License-Identifier: Apache-2.0
 * What was seen of a program from outside, as a profile of its own:
 * <run>/<host>_record.xplane.pb. */
#ifndef CAPTURE_PROFILE_H
#define CAPTURE_PROFILE_H

#include "base/err.h"
#include "capture/launch.h"

/* Writes it; a file that is there is never replaced: the next one is
 * "<host>_record_2". *path is the caller's to free. */
int profile_write(const struct tree *tree, const struct run_spec *l,
                  const struct launch_end *end, const struct rundir *dir,
                  char **path, struct ops_err *e);

#endif
