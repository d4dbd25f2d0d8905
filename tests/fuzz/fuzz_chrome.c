/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the chrome importer and all that follows it. */
#define FUZZ_IMPORTER "chrome"
#include "fuzz_importer.h"
