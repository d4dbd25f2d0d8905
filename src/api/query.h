/* SPDX-License-Identifier: Apache-2.0
 * Query strings, "top=20&name=conv%2A": how options are written in URLs and in
 * the C interface. */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "base/err.h"
#include <stddef.h>

/* Takes the next "name=value" off *p (a writable, terminated string), undoes
 * %XX and '+' in place and moves *p behind it. 1: one was taken; *value is
 * NULL where no '=' stood. 0: there are no more. OPS_EUSAGE: a bad escape, or
 * %00, which no text can hold. Empty parts (a&&b) are passed over. */
int query_next(char **p, char **name, char **value, struct ops_err *e);

#endif
