/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the xspace importer and all that follows it. */
#define FUZZ_IMPORTER "xspace"
#include "fuzz_importer.h"
