/* SPDX-License-Identifier: Apache-2.0
 * C++ symbols in words, by libiberty (the demangler of binutils and gdb). The
 * symbol itself is looked up first: the same kernel comes again and again. */
#include "model/demangle.h"

#include <stdlib.h>

/* The whole of libiberty's interface that is used; its header clashes with
 * libc's. */
char *cplus_demangle_v3(const char *mangled, int options);

enum {
    DEMANGLE_PARAMS = 1 << 0,
    DEMANGLE_ANSI = 1 << 1,
    LONGEST = 16384, /* a symbol beyond this is shown as it is */
};

str_id demangle_intern(struct trace *t, struct bytes symbol) {
    str_id raw = trace_str(t, symbol);
    uint32_t *known = map_at(&t->demangled, raw);
    if (known == NULL) {
        t->oom = true;
        return raw;
    }
    if (*known != MAP_NONE) return *known;
    *known = raw;
    if (symbol.n > LONGEST) return raw;
    char *text = cplus_demangle_v3(strs_text(&t->strs, raw),
                                   DEMANGLE_PARAMS | DEMANGLE_ANSI);
    if (text == NULL) return raw;
    str_id id = trace_str(t, bytes_of(text));
    free(text);
    map_set(&t->demangled, raw, id);
    return id;
}
