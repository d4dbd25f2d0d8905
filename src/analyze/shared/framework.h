/* SPDX-License-Identifier: Apache-2.0
 * Which framework's program a profile is of: what recording costs it, and in
 * which words advice is given, depend on it. */
#ifndef ANALYZE_SHARED_FRAMEWORK_H
#define ANALYZE_SHARED_FRAMEWORK_H

#include <stdint.h>

struct trace;

enum framework { FW_TORCH, FW_TF, FW_JAX, FW_OTHER, FRAMEWORKS };

/* By the source's format and, where two write the same one, by what only one
 * of them records. */
enum framework framework_of(const struct trace *t, uint32_t source);

#endif
