/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the kineto importer and all that follows it. */
#define FUZZ_IMPORTER "kineto"
#include "fuzz_importer.h"
