/* SPDX-License-Identifier: Apache-2.0
 * C++ symbols in words, by libiberty (the demangler of binutils and gdb). The
 * symbol itself is looked up first: the same kernel comes again and again.
 *
 * A symbol of 250 bytes can stand for a gigabyte of text (each substitution
 * doubles it), and the demangler has no limit: it is left by longjmp when the
 * text gets too long. It keeps all it has on the stack, so nothing leaks. */
#include "import/chrome/demangle.h"

#include "model/trace_fill.h"
#include <setjmp.h>
#include <stdlib.h>

/* The whole of libiberty's interface that is used; its header clashes with
 * libc's. */
int cplus_demangle_v3_callback(const char *mangled, int options,
                               void (*put)(const char *, size_t, void *),
                               void *ctx);

enum {
    DEMANGLE_PARAMS = 1 << 0,
    DEMANGLE_ANSI = 1 << 1,
    LONGEST = 16384, /* a symbol or text beyond this is shown as it is */
};

struct words {
    char text[LONGEST];
    size_t n;
    jmp_buf too_long;
};

static void put(const char *s, size_t n, void *ctx) {
    struct words *w = ctx;
    if (n > sizeof w->text - w->n) longjmp(w->too_long, 1);
    memcpy(w->text + w->n, s, n);
    w->n += n;
}

/* False: no C++ symbol, or too long in words. */
static bool demangle(const char *symbol, struct words *w) {
    w->n = 0;
    if (setjmp(w->too_long) != 0) return false;
    return cplus_demangle_v3_callback(symbol, DEMANGLE_PARAMS | DEMANGLE_ANSI,
                                      put, w) != 0;
}

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
    struct words *w = malloc(sizeof *w);
    if (w == NULL) {
        t->oom = true;
        return raw;
    }
    str_id id = raw;
    if (demangle(strs_text(&t->strs, raw), w))
        id = trace_str(t, (struct bytes){(uint8_t *)w->text, w->n});
    free(w);
    map_set(&t->demangled, raw, id);
    return id;
}
