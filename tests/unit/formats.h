/* SPDX-License-Identifier: Apache-2.0
 * The formats by name, for traces that tests make by hand. */
#ifndef UNIT_FORMATS_H
#define UNIT_FORMATS_H

#include "import/import.h"
#include <assert.h>
#include <string.h>

static inline const struct format *format_named(const char *name) {
    for (size_t i = 0; importers[i] != NULL; i++)
        if (strcmp(importers[i]->format.name, name) == 0)
            return &importers[i]->format;
    assert(!"a format of that name");
    return NULL;
}

#endif
