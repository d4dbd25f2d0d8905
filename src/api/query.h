/* SPDX-License-Identifier: Apache-2.0
 * Query strings, "top=20&name=conv%2A": how options are written in URLs and in
 * the C interface. */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "base/err.h"
#include <stddef.h>

/* Takes the next "name=value" off *p (a writable, terminated string), undoes
 * %XX and '+' in place and moves *p behind it. Returns 1 if there was one
 * (*value is NULL without a '='), 0 if there are no more, OPS_EUSAGE at a bad
 * escape or %00, which no text can hold. Empty parts (a&&b) are passed over. */
int query_next(char **p, char **name, char **value, struct ops_err *e);

#endif
