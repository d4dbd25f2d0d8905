/* SPDX-License-Identifier: Apache-2.0
 * The table of presenters. */
#include "present/present.h"

#include <string.h>

const struct presenter *const presenters[] = {
#define X(name) &presenter_##name,
#include "present/presenters.def"
#undef X
    NULL,
};

const struct presenter *presenter_find(const char *name) {
    for (size_t i = 0; presenters[i] != NULL; i++)
        if (strcmp(presenters[i]->name, name) == 0) return presenters[i];
    return NULL;
}
