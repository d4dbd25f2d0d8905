/* SPDX-License-Identifier: Apache-2.0
 * Fuzzes the snapshot importer, with the pickle reader under it, and all that
 * follows it. */
#define FUZZ_IMPORTER "snapshot"
#include "fuzz_importer.h"
