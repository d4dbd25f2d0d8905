/* SPDX-License-Identifier: Apache-2.0
 * A result for Arrow's readers (pandas, polars, DuckDB, pyarrow): one batch, by
 * the C stream interface. Columns are built once, when they are asked for;
 * readers take the memory as it is. No call of Python's is made here once the
 * capsule is handed out: a reader need not hold the lock.
 *
 * Text is utf8 with 64-bit offsets, counts and bytes are int64, times are
 * microseconds in float64, the rest float64 or bool. */
#include "native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The interface's structs; their layout is its contract. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
enum { NULLABLE = 2 };

struct stream {
    struct table *t;
    bool given; /* the one batch */
};

/* --- the schema ----------------------------------------------------------- */

static const char *format_of(enum ops_col_type t) {
    switch (t) {
    case OPS_COL_TEXT: return "U";
    case OPS_COL_INT:
    case OPS_COL_BYTES: return "l";
    case OPS_COL_BOOL: return "b";
    default: return "g";
    }
}

static void schema_release(struct ArrowSchema *s) {
    for (int64_t i = 0; i < s->n_children; i++) {
        struct ArrowSchema *c = s->children[i];
        if (c != NULL && c->release != NULL) c->release(c);
        free(c);
    }
    free(s->children);
    free(s->private_data); /* the name */
    s->release = NULL;
}

static bool schema_make(struct ArrowSchema *s, const char *format,
                        const char *name, size_t children) {
    *s = (struct ArrowSchema){.format = format,
                              .flags = children ? 0 : NULLABLE,
                              .release = schema_release};
    s->private_data = strdup(name);
    s->name = s->private_data;
    s->children = calloc(children + 1, sizeof *s->children);
    if (s->children != NULL) s->n_children = (int64_t)children;
    return s->name != NULL && s->children != NULL;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out) {
    const struct ops_result *r = ((struct stream *)self->private_data)->t->r;
    size_t n = ops_result_cols(r);
    bool ok = schema_make(out, "+s", "", n);
    for (size_t c = 0; ok && c < n; c++) {
        struct ArrowSchema *s = calloc(1, sizeof *s);
        out->children[c] = s;
        ok = s != NULL && schema_make(s, format_of(ops_result_col_type(r, c)),
                                      ops_result_col_name(r, c), 0);
    }
    if (ok) return 0;
    schema_release(out);
    return ENOMEM;
}

/* --- columns -------------------------------------------------------------- */

static void array_release(struct ArrowArray *a) {
    for (int64_t i = 0; i < a->n_children; i++) {
        struct ArrowArray *c = a->children[i];
        if (c != NULL && c->release != NULL) c->release(c);
        free(c);
    }
    for (int64_t i = 0; a->buffers != NULL && i < a->n_buffers; i++)
        free((void *)(uintptr_t)a->buffers[i]);
    free(a->children);
    free(a->buffers);
    a->release = NULL;
}

static bool array_make(struct ArrowArray *a, size_t rows, size_t buffers,
                       size_t children) {
    *a = (struct ArrowArray){.length = (int64_t)rows, .release = array_release};
    a->buffers = calloc(buffers, sizeof *a->buffers);
    a->children = calloc(children + 1, sizeof *a->children);
    if (a->buffers != NULL) a->n_buffers = (int64_t)buffers;
    if (a->children != NULL) a->n_children = (int64_t)children;
    return a->buffers != NULL && a->children != NULL;
}

/* Buffers are never empty: some readers refuse a NULL. */
static void *buffer(struct ArrowArray *a, int which, size_t bytes) {
    void *p = calloc(1, bytes + 64);
    a->buffers[which] = p;
    return p;
}

static void set_bit(uint8_t *bits, size_t i) {
    bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << (i % 8));
}

static bool put_valid(struct ArrowArray *a, const struct ops_result *r,
                      size_t col) {
    size_t n = (size_t)a->length;
    uint8_t *bits = buffer(a, 0, n / 8 + 1);
    for (size_t i = 0; bits != NULL && i < n; i++) {
        if (ops_result_cell_is_null(r, i, col)) a->null_count++;
        else set_bit(bits, i);
    }
    return bits != NULL;
}

static bool put_texts(struct ArrowArray *a, const struct ops_result *r,
                      size_t col) {
    size_t n = (size_t)a->length, bytes = 0;
    int64_t *at = buffer(a, 1, (n + 1) * sizeof *at);
    if (at == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        const char *s = ops_result_cell_text(r, i, col);
        bytes += s != NULL ? strlen(s) : 0;
        at[i + 1] = (int64_t)bytes;
    }
    char *text = buffer(a, 2, bytes);
    for (size_t i = 0; text != NULL && i < n; i++) {
        const char *s = ops_result_cell_text(r, i, col);
        if (s != NULL) memcpy(text + at[i], s, (size_t)(at[i + 1] - at[i]));
    }
    return text != NULL;
}

static bool put_numbers(struct ArrowArray *a, const struct ops_result *r,
                        size_t col, enum ops_col_type type) {
    size_t n = (size_t)a->length;
    void *v = buffer(a, 1, n * 8);
    if (v == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        if (ops_result_cell_is_null(r, i, col)) continue;
        if (type == OPS_COL_BOOL) {
            if (ops_result_cell_int(r, i, col) != 0) set_bit(v, i);
        } else if (type == OPS_COL_INT || type == OPS_COL_BYTES) {
            ((int64_t *)v)[i] = ops_result_cell_int(r, i, col);
        } else {
            ((double *)v)[i] = ops_result_cell_double(r, i, col);
        }
    }
    return true;
}

static bool column_make(struct ArrowArray *a, const struct ops_result *r,
                        size_t col) {
    enum ops_col_type type = ops_result_col_type(r, col);
    bool text = type == OPS_COL_TEXT;
    return array_make(a, ops_result_rows(r), text ? 3 : 2, 0) &&
           put_valid(a, r, col) &&
           (text ? put_texts(a, r, col) : put_numbers(a, r, col, type));
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out) {
    struct stream *s = self->private_data;
    const struct ops_result *r = s->t->r;
    size_t n = ops_result_cols(r);
    if (s->given) { /* the end is an array that was released */
        *out = (struct ArrowArray){0};
        return 0;
    }
    bool ok = array_make(out, ops_result_rows(r), 1, n);
    for (size_t c = 0; ok && c < n; c++) {
        out->children[c] = calloc(1, sizeof **out->children);
        ok = out->children[c] != NULL && column_make(out->children[c], r, c);
    }
    if (!ok) {
        array_release(out);
        return ENOMEM;
    }
    s->given = true;
    return 0;
}

static const char *last_error(struct ArrowArrayStream *self) {
    (void)self;
    return "out of memory";
}

static void stream_release(struct ArrowArrayStream *self) {
    struct stream *s = self->private_data;
    table_drop(s->t);
    free(s);
    self->release = NULL;
}

static void capsule_drop(PyObject *capsule) {
    struct ArrowArrayStream *s = PyCapsule_GetPointer(capsule,
                                                      "arrow_array_stream");
    if (s == NULL) {
        PyErr_Clear();
        return;
    }
    if (s->release != NULL) s->release(s);
    free(s);
}

PyObject *arrow_stream(struct table *t) {
    struct ArrowArrayStream *a = calloc(1, sizeof *a);
    struct stream *s = calloc(1, sizeof *s);
    if (a == NULL || s == NULL) {
        free(a);
        free(s);
        return PyErr_NoMemory();
    }
    __atomic_add_fetch(&t->users, 1, __ATOMIC_RELAXED);
    s->t = t;
    *a = (struct ArrowArrayStream){get_schema, get_next, last_error,
                                   stream_release, s};
    PyObject *capsule = PyCapsule_New(a, "arrow_array_stream", capsule_drop);
    if (capsule == NULL) {
        stream_release(a);
        free(a);
    }
    return capsule;
}
