/* SPDX-License-Identifier: Apache-2.0
 * C++ symbols in words. */
#ifndef IMPORT_CHROME_DEMANGLE_H
#define IMPORT_CHROME_DEMANGLE_H

#include "model/trace.h"

/* The id of the demangled symbol, or of the symbol itself when it is none.
 * Not quick: meant for names that are long but few. */
str_id demangle_intern(struct trace *t, struct bytes symbol);

#endif
