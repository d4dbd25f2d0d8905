/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the stepstats importer and all that follows it. */
#define FUZZ_IMPORTER "stepstats"
#include "fuzz_importer.h"
