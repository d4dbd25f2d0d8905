/* SPDX-License-Identifier: Apache-2.0
 * A pickle is a program for a machine with a stack and a memo: push a value,
 * begin a list, take all above the last mark into it. This is that machine
 * with every instruction left out that could load, call or build an object.
 *
 * Loops: a list can be put into itself through the memo. Here a box that was
 * put into another (or into itself) is closed, and taking more into it is
 * refused. A box that may still take something in is thus inside nothing, so
 * that no loop can come to be, and its depth is known for good when it closes.
 * Writers fill a box before they put it anywhere; only for data that contains
 * itself do they not.
 *
 * A file that was cut: what stands above each mark goes into the box below it,
 * as it would have. */
#include "import/snapshot/pickle.h"

#include "base/array.h"
#include "base/vec.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum {
    MAX_TEXT = 1 << 28,   /* bytes of one text; real ones have some thousand */
    MAX_NUMBER = 64,      /* digits of a number written as text */
    MAX_DEPTH = 200,      /* boxes in boxes; a snapshot has 6 */
    MAX_KEYS = 64,        /* keys that pickle_get looks at */
    MAX_GROWTH = 40,      /* bytes of memory for one of the file ... */
    ANY_GROWTH = 1 << 20, /* ... and so many for any file */
};

/* The instructions that are followed, named as in Python's pickletools. */
/* clang-format off */
enum op {
    OP_MARK = '(',       OP_STOP = '.',        OP_PROTO = 0x80,
    OP_FRAME = 0x95,     OP_NONE = 'N',        OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_INT = 'I',        OP_BININT = 'J',      OP_BININT1 = 'K',
    OP_BININT2 = 'M',    OP_LONG = 'L',        OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,     OP_FLOAT = 'F',       OP_BINFLOAT = 'G',
    OP_STRING = 'S',     OP_BINSTRING = 'T',   OP_SHORT_BINSTRING = 'U',
    OP_UNICODE = 'V',    OP_BINUNICODE = 'X',  OP_SHORT_BINUNICODE = 0x8c,
    OP_BINBYTES = 'B',   OP_BINBYTES8 = 0x8e,  OP_SHORT_BINBYTES = 'C',
    OP_BINUNICODE8 = 0x8d, OP_BYTEARRAY8 = 0x96,
    OP_EMPTY_LIST = ']', OP_EMPTY_TUPLE = ')', OP_EMPTY_DICT = '}',
    OP_LIST = 'l',       OP_TUPLE = 't',       OP_DICT = 'd',
    OP_TUPLE1 = 0x85,    OP_TUPLE2 = 0x86,     OP_TUPLE3 = 0x87,
    OP_APPEND = 'a',     OP_APPENDS = 'e',
    OP_SETITEM = 's',    OP_SETITEMS = 'u',
    OP_PUT = 'p',        OP_BINPUT = 'q',      OP_LONG_BINPUT = 'r',
    OP_GET = 'g',        OP_BINGET = 'h',      OP_LONG_BINGET = 'j',
    OP_MEMOIZE = 0x94,
};
/* clang-format on */

/* Instructions that are known and refused. */
static const struct refused {
    uint8_t op;
    const char *name;
} refused[] = {
    {'c', "GLOBAL"},     {'i', "INST"},         {0x93, "STACK_GLOBAL"},
    {'R', "REDUCE"},     {'b', "BUILD"},        {'o', "OBJ"},
    {0x81, "NEWOBJ"},    {0x92, "NEWOBJ_EX"},   {'P', "PERSID"},
    {'Q', "BINPERSID"},  {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},      {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    {'0', "POP"},        {'1', "POP_MARK"},     {'2', "DUP"},
};

struct machine {
    struct pickle *p;
    const uint8_t *begin, *cur, *end;
    size_t at; /* offset of the instruction at hand */
    struct pickle_value *stack;
    size_t n, cap;
    size_t *marks;
    size_t nmarks, cap_marks;
    struct pickle_value *memo;
    size_t nmemo, cap_memo;
    size_t memoized; /* MEMOIZEs and PUTs so far */
    size_t most;     /* memory that it may take */
    struct ops_err *e;
};

static int bad(struct machine *m, const char *what) {
    return fail(m->e, OPS_EFORMAT, "damaged pickle: %s at offset %zu", what,
                m->at);
}

/* Reads the next n bytes. Returns false if the file ends before them. */
static bool pickle_take(struct machine *m, size_t n, const uint8_t **out) {
    if ((size_t)(m->end - m->cur) < n) {
        m->p->cut = true;
        return false;
    }
    *out = m->cur;
    m->cur += n;
    return true;
}

/* Reads a little-endian number of n bytes. */
static bool take_uint(struct machine *m, size_t n, uint64_t *out) {
    const uint8_t *b;
    *out = 0;
    if (!pickle_take(m, n, &b)) return false;
    for (size_t i = n; i-- > 0;) *out = *out << 8 | b[i];
    return true;
}

/* Reads the rest of the line, without its end. */
static bool take_line(struct machine *m, struct bytes *out) {
    size_t left = (size_t)(m->end - m->cur);
    const uint8_t *nl = left ? memchr(m->cur, '\n', left) : NULL;
    if (nl == NULL) {
        m->p->cut = true;
        return false;
    }
    *out = (struct bytes){m->cur, (size_t)(nl - m->cur)};
    m->cur = nl + 1;
    return true;
}

static int push(struct machine *m, struct pickle_value v) {
    if (!VEC_ROOM(m->stack, m->n, m->cap)) return fail_oom(m->e);
    m->stack[m->n++] = v;
    return 0;
}

static int push_int(struct machine *m, int64_t v) {
    return push(m, (struct pickle_value){.type = PICKLE_INT, .i = v});
}

static int push_bool(struct machine *m, bool v) {
    return push(m, (struct pickle_value){.type = PICKLE_BOOL, .i = v});
}

static int push_text(struct machine *m, struct bytes b) {
    if (b.n > MAX_TEXT) return bad(m, "a text longer than 256 MiB");
    return push(m, (struct pickle_value){.type = PICKLE_TEXT,
                                         .text = b.p,
                                         .n = (uint32_t)b.n});
}

/* Reads a text; its length, a number of so many bytes, stands before it. */
static int op_text(struct machine *m, size_t width) {
    uint64_t n;
    const uint8_t *b;
    if (!take_uint(m, width, &n)) return 0;
    if (n > MAX_TEXT)
        return fail(m->e, OPS_EFORMAT,
                    "damaged pickle: a text of %llu bytes at offset %zu, the "
                    "most is 256 MiB",
                    (unsigned long long)n, m->at);
    return pickle_take(m, (size_t)n, &b)
               ? push_text(m, (struct bytes){b, (size_t)n})
               : 0;
}

/* Reads a text on a line of its own, in quotes or not (protocol 0). Escapes
 * stay as they are: no name that matters here has any. */
static int op_line(struct machine *m) {
    struct bytes b;
    if (!take_line(m, &b)) return 0;
    if (b.n >= 2 && (b.p[0] == '\'' || b.p[0] == '"') && b.p[b.n - 1] == b.p[0])
        b = (struct bytes){b.p + 1, b.n - 2};
    return push_text(m, b);
}

/* Reads the digits of a line as a terminated text. */
static int take_digits(struct machine *m, char out[MAX_NUMBER + 1],
                       bool *have) {
    struct bytes b;
    *have = take_line(m, &b);
    if (!*have) return 0;
    if (b.n == 0 || b.n > MAX_NUMBER)
        return bad(m, "a number that is too long");
    memcpy(out, b.p, b.n);
    out[b.n] = '\0';
    return 0;
}

/* Reads an integer in decimal: 12, 12L, or 00 and 01 for the bools of INT. */
static int op_decimal(struct machine *m, bool bools) {
    char text[MAX_NUMBER + 1], *end;
    bool have;
    TRY(take_digits(m, text, &have));
    if (!have) return 0;
    if (bools && (strcmp(text, "00") == 0 || strcmp(text, "01") == 0))
        return push_bool(m, text[1] == '1');
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*end == 'L') end++;
    if (*end != '\0' || end == text || errno != 0)
        return bad(m, "an integer that cannot be read");
    return push_int(m, v);
}

static int op_float_text(struct machine *m) {
    char text[MAX_NUMBER + 1], *end;
    bool have;
    TRY(take_digits(m, text, &have));
    if (!have) return 0;
    double f = strtod(text, &end);
    if (*end != '\0' || end == text)
        return bad(m, "a number that cannot be read");
    return push(m, (struct pickle_value){.type = PICKLE_FLOAT, .f = f});
}

/* Reads a double of eight bytes, the highest first. */
static int op_binfloat(struct machine *m) {
    const uint8_t *b;
    if (!pickle_take(m, 8, &b)) return 0;
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | b[i];
    struct pickle_value v = {.type = PICKLE_FLOAT};
    memcpy(&v.f, &bits, sizeof bits);
    return push(m, v);
}

static int op_int(struct machine *m, size_t width) {
    uint64_t v;
    if (!take_uint(m, width, &v)) return 0;
    return push_int(m, width == 4 ? (int32_t)(uint32_t)v : (int64_t)v);
}

/* Reads an integer of any length in two's complement, whose length stands
 * before it; up to 64 bits, signed or not, are kept. */
static int op_long(struct machine *m, size_t width) {
    uint64_t n, v = 0;
    const uint8_t *b;
    if (!take_uint(m, width, &n)) return 0;
    if (n > 9)
        return fail(m->e, OPS_EFORMAT,
                    "damaged pickle: an integer of %llu "
                    "bytes at offset %zu, the most is 8",
                    (unsigned long long)n, m->at);
    if (!pickle_take(m, (size_t)n, &b)) return 0;
    if (n == 9 && b[8] != 0) return bad(m, "an integer of more than 64 bits");
    for (size_t i = n < 8 ? n : 8; i-- > 0;) v = v << 8 | b[i];
    if (n > 0 && n < 8 && b[n - 1] & 0x80) v |= ~UINT64_C(0) << 8 * n;
    bool over = n == 9 && v >> 63;
    return push(m,
                (struct pickle_value){.type = over ? PICKLE_UINT : PICKLE_INT,
                                      .i = (int64_t)v});
}

static bool is_box(const struct pickle_value *v) {
    return v->type == PICKLE_LIST || v->type == PICKLE_DICT;
}

/* Makes room for n more. The arena keeps the block that was outgrown: that is
 * as much again at the most, since a box grows by half. */
static bool box_room(struct machine *m, struct pickle_box *b, size_t n) {
    if (b->cap - b->n >= n) return true;
    size_t cap = b->cap == 0 ? n : vec_next_cap(b->cap, b->n + n);
    struct pickle_value *v = arena_alloc(&m->p->arena, cap * sizeof *v);
    if (v == NULL) return false;
    if (b->n > 0) memcpy(v, b->v, b->n * sizeof *v);
    b->v = v;
    b->cap = cap;
    return true;
}

/* Moves the last n values of the stack into a box. */
static int fill_box(struct machine *m, struct pickle_box *b, size_t n) {
    assert(n <= m->n);
    const struct pickle_value *v = n > 0 ? &m->stack[m->n - n] : NULL;
    for (size_t i = 0; i < n; i++) {
        if (!is_box(&v[i])) continue;
        v[i].box->placed = true;
        if (b->depth <= v[i].box->depth) b->depth = v[i].box->depth + 1;
    }
    if (b->placed)
        return fail(m->e, OPS_EFORMAT,
                    "pickle: the list or dict of offset "
                    "%zu contains itself or changes after it was used, at "
                    "offset %zu",
                    b->at, m->at);
    if (b->depth > MAX_DEPTH)
        return fail(m->e, OPS_EFORMAT,
                    "pickle: more than %d lists or dicts "
                    "inside each other at offset %zu",
                    MAX_DEPTH, m->at);
    if (!box_room(m, b, n)) return fail_oom(m->e);
    if (n > 0) memcpy(b->v + b->n, v, n * sizeof *v);
    b->n += n;
    m->n -= n;
    return 0;
}

/* Returns how many values can be taken off: those above the last mark. */
static size_t above(const struct machine *m) {
    return m->n - (m->nmarks ? m->marks[m->nmarks - 1] : 0);
}

/* Makes a new list (or tuple) or dict of the last n values. */
static int op_box(struct machine *m, uint8_t type, size_t n) {
    if (above(m) < n) return bad(m, "the stack is empty");
    if (type == PICKLE_DICT && n % 2) return bad(m, "a key without a value");
    struct pickle_box *b = arena_alloc(&m->p->arena, sizeof *b);
    if (b == NULL) return fail_oom(m->e);
    *b = (struct pickle_box){.at = m->at, .depth = 1, .mark = PICKLE_NO_MARK};
    TRY(fill_box(m, b, n));
    return push(m, (struct pickle_value){.type = type, .box = b});
}

/* Takes the last mark away and tells how many values stand above it. */
static int pop_mark(struct machine *m, size_t *n) {
    *n = 0;
    if (m->nmarks == 0) return bad(m, "no mark");
    *n = above(m);
    m->nmarks--;
    return 0;
}

static int op_marked(struct machine *m, uint8_t type) {
    size_t n;
    TRY(pop_mark(m, &n));
    return op_box(m, type, n);
}

/* Puts the last n values into the list or dict below them. */
static int op_add(struct machine *m, uint8_t type, size_t n) {
    if (above(m) < n + 1) return bad(m, "the stack is empty");
    struct pickle_value *to = &m->stack[m->n - n - 1];
    if (to->type != type)
        return bad(m, type == PICKLE_DICT ? "an entry for what is no dict"
                                          : "an item for what is no list");
    if (type == PICKLE_DICT && n % 2) return bad(m, "a key without a value");
    return fill_box(m, to->box, n);
}

static int op_add_marked(struct machine *m, uint8_t type) {
    size_t n;
    TRY(pop_mark(m, &n));
    return op_add(m, type, n);
}

/* All writers number slots from 0 on; a slot far beyond what was stored would
 * only cost memory. */
static int memo_put(struct machine *m, uint64_t slot) {
    if (above(m) == 0) return bad(m, "the stack is empty");
    if (slot > 2 * m->memoized + 1024)
        return fail(m->e, OPS_EFORMAT,
                    "damaged pickle: memo slot %llu at "
                    "offset %zu, where %zu are in use",
                    (unsigned long long)slot, m->at, m->memoized);
    if (slot >= m->cap_memo) {
        size_t cap = vec_next_cap(m->cap_memo, (size_t)slot + 1);
        if (!vec_resize(&m->memo, cap, sizeof *m->memo)) return fail_oom(m->e);
        m->cap_memo = cap;
    }
    enum { UNSET = 0xff };
    while (m->nmemo <= slot)
        m->memo[m->nmemo++] = (struct pickle_value){.type = UNSET};
    m->memo[slot] = m->stack[m->n - 1];
    m->memoized++;
    return 0;
}

static int memo_get(struct machine *m, uint64_t slot) {
    if (slot >= m->nmemo || m->memo[slot].type > PICKLE_DICT)
        return fail(m->e, OPS_EFORMAT,
                    "damaged pickle: nothing is stored in "
                    "memo slot %llu, wanted at offset %zu",
                    (unsigned long long)slot, m->at);
    return push(m, m->memo[slot]);
}

/* Runs GET, PUT and their kin: the slot is a number of so many bytes, or (0) a
 * line. */
static int op_memo(struct machine *m, size_t width,
                   int (*then)(struct machine *, uint64_t)) {
    uint64_t slot;
    if (width > 0) return take_uint(m, width, &slot) ? then(m, slot) : 0;
    char text[MAX_NUMBER + 1], *end;
    bool have;
    TRY(take_digits(m, text, &have));
    if (!have) return 0;
    slot = strtoull(text, &end, 10);
    if (*end != '\0' || text[0] == '-') return bad(m, "no memo slot");
    return then(m, slot);
}

/* Copies what may be printed. */
static void put_name(char *to, size_t cap, struct bytes b) {
    size_t n = 0;
    for (size_t i = 0; i < b.n && n + 1 < cap; i++)
        to[n++] = b.p[i] > ' ' && b.p[i] < 0x7f ? (char)b.p[i] : '?';
    to[n] = '\0';
}

/* Finds the module and the name that an instruction wants to load. Returns
 * false if it has none. */
static bool wanted(struct machine *m, uint8_t op, struct bytes *module,
                   struct bytes *name) {
    if (op == 'c' || op == 'i')
        return take_line(m, module) && take_line(m, name);
    if (op != 0x93 || m->n < 2) return false;
    *module = pickle_text(&m->stack[m->n - 2]);
    *name = pickle_text(&m->stack[m->n - 1]);
    return true;
}

static int refuse(struct machine *m, uint8_t op) {
    struct bytes module, name;
    char a[80], b[80];
    if (wanted(m, op, &module, &name)) {
        put_name(a, sizeof a, module);
        put_name(b, sizeof b, name);
        return fail(m->e, OPS_EFORMAT,
                    "refuses to load \"%s.%s\", which this "
                    "pickle asks for at offset %zu: only plain data is read",
                    a, b, m->at);
    }
    for (size_t i = 0; i < COUNT(refused); i++)
        if (refused[i].op == op)
            return fail(m->e, OPS_EFORMAT,
                        "refuses the pickle instruction "
                        "%s at offset %zu: only plain data is read",
                        refused[i].name, m->at);
    return fail(m->e, OPS_EFORMAT,
                "damaged pickle: 0x%02x at offset %zu is "
                "no instruction",
                op, m->at);
}

/* Runs one instruction. Where the file ends inside it, p->cut is set and
 * nothing was pushed. */
static int step(struct machine *m, uint8_t op) {
    uint64_t v;
    switch (op) {
    case OP_PROTO:
        if (!take_uint(m, 1, &v)) return 0;
        return v <= 5 ? 0 : bad(m, "a protocol newer than 5");
    /* the number says how much a reader may fetch at once; all of it is here */
    case OP_FRAME: take_uint(m, 8, &v); return 0;
    case OP_MARK:
        if (!VEC_ROOM(m->marks, m->nmarks, m->cap_marks)) return fail_oom(m->e);
        m->marks[m->nmarks++] = m->n;
        return 0;
    case OP_NONE: return push(m, (struct pickle_value){.type = PICKLE_NONE});
    case OP_NEWTRUE: return push_bool(m, true);
    case OP_NEWFALSE: return push_bool(m, false);
    case OP_INT: return op_decimal(m, true);
    case OP_LONG: return op_decimal(m, false);
    case OP_BININT: return op_int(m, 4);
    case OP_BININT1: return op_int(m, 1);
    case OP_BININT2: return op_int(m, 2);
    case OP_LONG1: return op_long(m, 1);
    case OP_LONG4: return op_long(m, 4);
    case OP_FLOAT: return op_float_text(m);
    case OP_BINFLOAT: return op_binfloat(m);
    case OP_STRING:
    case OP_UNICODE: return op_line(m);
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINUNICODE:
    case OP_SHORT_BINBYTES: return op_text(m, 1);
    case OP_BINSTRING:
    case OP_BINUNICODE:
    case OP_BINBYTES: return op_text(m, 4);
    case OP_BINUNICODE8:
    case OP_BINBYTES8:
    case OP_BYTEARRAY8: return op_text(m, 8);
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE: return op_box(m, PICKLE_LIST, 0);
    case OP_EMPTY_DICT: return op_box(m, PICKLE_DICT, 0);
    case OP_LIST:
    case OP_TUPLE: return op_marked(m, PICKLE_LIST);
    case OP_DICT: return op_marked(m, PICKLE_DICT);
    case OP_TUPLE1: return op_box(m, PICKLE_LIST, 1);
    case OP_TUPLE2: return op_box(m, PICKLE_LIST, 2);
    case OP_TUPLE3: return op_box(m, PICKLE_LIST, 3);
    case OP_APPEND: return op_add(m, PICKLE_LIST, 1);
    case OP_APPENDS: return op_add_marked(m, PICKLE_LIST);
    case OP_SETITEM: return op_add(m, PICKLE_DICT, 2);
    case OP_SETITEMS: return op_add_marked(m, PICKLE_DICT);
    case OP_MEMOIZE: return memo_put(m, m->memoized);
    case OP_PUT: return op_memo(m, 0, memo_put);
    case OP_BINPUT: return op_memo(m, 1, memo_put);
    case OP_LONG_BINPUT: return op_memo(m, 4, memo_put);
    case OP_GET: return op_memo(m, 0, memo_get);
    case OP_BINGET: return op_memo(m, 1, memo_get);
    case OP_LONG_BINGET: return op_memo(m, 4, memo_get);
    default: return refuse(m, op);
    }
}

/* Puts together what the file would have, had it gone on: each box takes what
 * stands above its mark; of an odd number the last, a key, is let go. */
static int fold(struct machine *m) {
    while (m->nmarks > 0) {
        size_t n;
        TRY(pop_mark(m, &n));
        if (above(m) <= n) { /* the box itself was to come of the mark */
            m->n -= n;
            continue;
        }
        const struct pickle_value *to = &m->stack[m->n - n - 1];
        if (to->type == PICKLE_DICT && n % 2) {
            m->n--;
            n--;
        }
        if (is_box(to) && !to->box->placed) TRY(fill_box(m, to->box, n));
        else m->n -= n;
    }
    return 0;
}

static int run_pickle(struct machine *m) {
    while (m->cur < m->end) {
        uint8_t op = *m->cur;
        m->at = (size_t)(m->cur - m->begin);
        m->cur++;
        if (op == OP_STOP) {
            if (m->n != 1 || m->nmarks > 0)
                return bad(m, "the end comes before the data are complete");
            return 0;
        }
        TRY(step(m, op));
        if (m->p->cut) break;
        /* a single byte can make a list, or name one again */
        size_t used = m->p->arena.used + m->cap_marks * sizeof *m->marks +
                      (m->cap + m->cap_memo) * sizeof *m->stack;
        if (used > m->most)
            return fail(m->e, OPS_ELIMIT,
                        "a pickle of %zu bytes that takes more than "
                        "%zu bytes of memory at offset %zu: no snapshot does",
                        (size_t)(m->end - m->begin), m->most, m->at);
    }
    m->p->cut = true;
    m->at = (size_t)(m->end - m->begin);
    TRY(fold(m));
    return m->n > 0 ? 0 : bad(m, "nothing was read before its end");
}

int pickle_read(struct pickle *p, struct bytes b, struct ops_err *e) {
    *p = (struct pickle){0};
    if (b.n == 0) b.p = (const uint8_t *)"";
    struct machine m = {
        .p = p, .begin = b.p, .cur = b.p, .end = b.p + b.n, .e = e};
    m.most = b.n < SIZE_MAX / MAX_GROWTH - ANY_GROWTH
                 ? MAX_GROWTH * b.n + ANY_GROWTH
                 : SIZE_MAX;
    int rc = run_pickle(&m);
    struct pickle_value *root = NULL;
    if (rc == 0) {
        root = arena_alloc(&p->arena, sizeof *root);
        if (root == NULL) rc = fail_oom(e);
        else *root = m.stack[0];
    }
    p->root = root;
    free(m.stack);
    free(m.marks);
    free(m.memo);
    if (rc != 0) pickle_free(p);
    return rc;
}

void pickle_free(struct pickle *p) {
    arena_free(&p->arena);
    *p = (struct pickle){0};
}

const struct pickle_value *pickle_get(const struct pickle_value *v,
                                      const char *key) {
    if (v == NULL || v->type != PICKLE_DICT) return NULL;
    size_t n = strlen(key), keys = v->box->n / 2;
    for (size_t i = 0; i < keys && i < MAX_KEYS; i++) {
        const struct pickle_value *k = &v->box->v[2 * i];
        if (k->type == PICKLE_TEXT && k->n == n && memcmp(k->text, key, n) == 0)
            return k + 1;
    }
    return NULL;
}
