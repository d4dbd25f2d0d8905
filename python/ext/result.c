/* SPDX-License-Identifier: Apache-2.0
 * A result: a table that stands alone. Python's side of it (reading.py) makes
 * it a sequence of rows; here are its cells. */
#include "native.h"

#include <stdlib.h>

struct result {
    PyObject_HEAD struct table *t;
};

static PyTypeObject *result_type;

void table_drop(struct table *t) {
    if (t == NULL || __atomic_sub_fetch(&t->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    ops_result_free(t->r);
    free(t);
}

PyObject *result_new(struct ops_result *r) {
    struct table *t = malloc(sizeof *t);
    struct result *self = NULL;
    if (t != NULL) {
        *t = (struct table){r, 1};
        allocfunc make = (allocfunc)PyType_GetSlot(result_type, Py_tp_alloc);
        self = (struct result *)make(result_type, 0);
    } else {
        PyErr_NoMemory();
    }
    if (self == NULL) {
        ops_result_free(r);
        free(t);
        return NULL;
    }
    self->t = t;
    return (PyObject *)self;
}

/* Nobody but result_new() makes one. */
static PyObject *no_new(PyTypeObject *type, PyObject *args, PyObject *names) {
    (void)type, (void)args, (void)names;
    PyErr_SetString(PyExc_TypeError, "results come from Profile.run()");
    return NULL;
}

static struct ops_result *of(PyObject *self) {
    return ((struct result *)self)->t->r;
}

/* --- cells ---------------------------------------------------------------- */

static PyObject *cell(const struct ops_result *r, size_t row, size_t col) {
    if (ops_result_cell_is_null(r, row, col)) Py_RETURN_NONE;
    switch (ops_result_col_type(r, col)) {
    case OPS_COL_TEXT: return native_text(ops_result_cell_text(r, row, col));
    case OPS_COL_INT:
    case OPS_COL_BYTES:
        return PyLong_FromLongLong(ops_result_cell_int(r, row, col));
    case OPS_COL_BOOL:
        return PyBool_FromLong(ops_result_cell_int(r, row, col) != 0);
    default: return PyFloat_FromDouble(ops_result_cell_double(r, row, col));
    }
}

static bool has_col(const struct ops_result *r, Py_ssize_t col) {
    if (col >= 0 && (size_t)col < ops_result_cols(r)) return true;
    PyErr_SetString(PyExc_IndexError, "there is no such column");
    return false;
}

PyDoc_STRVAR(row_doc, "row($self, i, /)\n--\n\nThe cells of a row, a tuple.");
static PyObject *result_row(PyObject *self, PyObject *number) {
    const struct ops_result *r = of(self);
    Py_ssize_t i = PyLong_AsSsize_t(number);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (i < 0 || (size_t)i >= ops_result_rows(r)) {
        PyErr_SetString(PyExc_IndexError, "there is no such row");
        return NULL;
    }
    size_t n = ops_result_cols(r);
    PyObject *out = PyTuple_New((Py_ssize_t)n);
    for (size_t c = 0; out != NULL && c < n; c++) {
        PyObject *v = cell(r, (size_t)i, c);
        if (v == NULL || PyTuple_SetItem(out, (Py_ssize_t)c, v) != 0)
            Py_CLEAR(out);
    }
    return out;
}

/* Makes a list of a column by a function of its cells. */
static PyObject *column_by(PyObject *self, PyObject *number,
                           PyObject *(*make)(const struct ops_result *r,
                                             size_t row, size_t col)) {
    const struct ops_result *r = of(self);
    Py_ssize_t col = PyLong_AsSsize_t(number);
    if ((col == -1 && PyErr_Occurred()) || !has_col(r, col)) return NULL;
    size_t n = ops_result_rows(r);
    PyObject *out = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; out != NULL && i < n; i++) {
        PyObject *v = make(r, i, (size_t)col);
        if (v == NULL || PyList_SetItem(out, (Py_ssize_t)i, v) != 0)
            Py_CLEAR(out);
    }
    return out;
}

PyDoc_STRVAR(column_doc,
             "column($self, i, /)\n--\n\nThe cells of a column, a list.");
static PyObject *result_column(PyObject *self, PyObject *number) {
    return column_by(self, number, cell);
}

static PyObject *cell_ps(const struct ops_result *r, size_t row, size_t col) {
    if (ops_result_cell_is_null(r, row, col)) Py_RETURN_NONE;
    return PyLong_FromLongLong(ops_result_cell_ps(r, row, col));
}

PyDoc_STRVAR(ps_doc, "ps($self, i, /)\n--\n\n"
                     "The times of a column in picoseconds, exactly.");
static PyObject *result_ps(PyObject *self, PyObject *number) {
    Py_ssize_t col = PyLong_AsSsize_t(number);
    if ((col == -1 && PyErr_Occurred()) || !has_col(of(self), col)) return NULL;
    if (ops_result_col_type(of(self), (size_t)col) != OPS_COL_TIME)
        return native_raise(OPS_EUSAGE, "the column holds no times");
    return column_by(self, number, cell_ps);
}

/* --- what stands around them ---------------------------------------------- */

/* Appends what is made, and drops the list if that failed. */
static PyObject *with(PyObject *list, PyObject *item) {
    if (item == NULL || (list != NULL && PyList_Append(list, item) != 0))
        Py_CLEAR(list);
    Py_XDECREF(item);
    return list;
}

static PyObject *get_columns(PyObject *self, void *unused) {
    static const char *const types[] = {"text",  "int",     "float", "time",
                                        "bytes", "percent", "bool"};
    const struct ops_result *r = of(self);
    PyObject *out = PyList_New(0);
    (void)unused;
    for (size_t c = 0; out != NULL && c < ops_result_cols(r); c++)
        out = with(out, Py_BuildValue("(sszz)", ops_result_col_name(r, c),
                                      types[ops_result_col_type(r, c)],
                                      ops_result_col_unit(r, c),
                                      ops_result_col_help(r, c)));
    return out;
}

static PyObject *get_remarks(PyObject *self, void *unused) {
    const struct ops_result *r = of(self);
    PyObject *out = PyList_New(0);
    (void)unused;
    for (size_t i = 0; out != NULL && i < ops_result_remark_count(r); i++)
        out = with(out, native_text(ops_result_remark_text(r, i)));
    return out;
}

static PyObject *get_missing(PyObject *self, void *unused) {
    const struct ops_result *r = of(self);
    PyObject *out = PyList_New(0);
    (void)unused;
    for (size_t i = 0; out != NULL && i < ops_result_missing_count(r); i++)
        out = with(out, Py_BuildValue(
                            "{s:N,s:N,s:N}", "what",
                            native_text(ops_result_missing_what(r, i)), "why",
                            native_text(ops_result_missing_why(r, i)), "fix",
                            native_text(ops_result_missing_fix(r, i))));
    return out;
}

static PyObject *get_notes(PyObject *self, void *unused) {
    const struct ops_result *r = of(self);
    PyObject *out = PyList_New(0);
    (void)unused;
    for (size_t i = 0; out != NULL && i < ops_result_note_count(r); i++)
        out = with(out,
                   Py_BuildValue(
                       "{s:s,s:K,s:N}", "id", ops_result_note_id(r, i), "count",
                       (unsigned long long)ops_result_note_times(r, i), "text",
                       native_text(ops_result_note_text(r, i))));
    return out;
}

static PyObject *get_sources(PyObject *self, void *unused) {
    const struct ops_result *r = of(self);
    PyObject *out = PyList_New(0);
    (void)unused;
    for (size_t i = 0; out != NULL && i < ops_result_source_count(r); i++) {
        int64_t rank = ops_result_source_rank(r, i);
        PyObject *number;
        if (rank >= 0) number = PyLong_FromLongLong(rank);
        else {
            Py_INCREF(Py_None);
            number = Py_None;
        }
        const char *path = ops_result_source_path(r, i);
        out = with(out, Py_BuildValue("{s:N,s:s,s:N,s:N}", "path",
                                      PyUnicode_DecodeFSDefault(path), "format",
                                      ops_result_source_format(r, i), "host",
                                      native_text(ops_result_source_host(r, i)),
                                      "rank", number));
    }
    return out;
}

static PyObject *get_total(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(ops_result_total_rows(of(self)));
}

static PyObject *as_text(PyObject *self,
                         char *(*make)(const struct ops_result *, size_t *)) {
    size_t n;
    char *text;
    struct ops_result *r = of(self);
    Py_BEGIN_ALLOW_THREADS;
    text = make(r, &n);
    Py_END_ALLOW_THREADS;
    if (text == NULL) return PyErr_NoMemory();
    PyObject *out = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    ops_text_free(text);
    return out;
}
static PyObject *result_json(PyObject *self, PyObject *none) {
    (void)none;
    return as_text(self, ops_result_json);
}
static PyObject *result_csv(PyObject *self, PyObject *none) {
    (void)none;
    return as_text(self, ops_result_csv);
}
static PyObject *result_text(PyObject *self, PyObject *none) {
    (void)none;
    return as_text(self, ops_result_text);
}

static PyObject *result_stream(PyObject *self, PyObject *args,
                               PyObject *names) {
    static char *known[] = {"requested_schema", NULL};
    PyObject *schema = NULL; /* it may be left unanswered */
    if (!PyArg_ParseTupleAndKeywords(args, names, "|O:__arrow_c_stream__",
                                     known, &schema))
        return NULL;
    return arrow_stream(((struct result *)self)->t);
}

static Py_ssize_t result_length(PyObject *self) {
    return (Py_ssize_t)ops_result_rows(of(self));
}

static void result_drop(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    table_drop(((struct result *)self)->t);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

int result_ready(PyObject *module) {
    static PyMethodDef methods[] = {
        {"row", result_row, METH_O, row_doc},
        {"column", result_column, METH_O, column_doc},
        {"ps", result_ps, METH_O, ps_doc},
        {"json", result_json, METH_NOARGS,
         "json($self, /)\n--\n\nAs --format json."},
        {"csv", result_csv, METH_NOARGS,
         "csv($self, /)\n--\n\nAs --format csv."},
        {"text", result_text, METH_NOARGS,
         "text($self, /)\n--\n\nAs a terminal has it."},
        {"__arrow_c_stream__", METHOD(result_stream),
         METH_VARARGS | METH_KEYWORDS, "The table for Arrow's readers."},
        {0},
    };
    static PyGetSetDef members[] = {
        {"columns", get_columns, NULL, "(name, type, unit, help) of each.",
         NULL},
        {"remarks", get_remarks, NULL, "Sentences below the table.", NULL},
        {"missing", get_missing, NULL, "What was not recorded.", NULL},
        {"notes", get_notes, NULL, "What was skipped or inferred.", NULL},
        {"sources", get_sources, NULL, "The files.", NULL},
        {"total_rows", get_total, NULL, "Before top= cut them.", NULL},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A table."},
        {Py_tp_dealloc, result_drop},
        {Py_tp_methods, methods},
        {Py_tp_getset, members},
        {Py_sq_length, result_length},
        {Py_tp_new, no_new},
        {0, NULL},
    };
    static PyType_Spec spec = {.name = "opscope._opscope.Table",
                               .basicsize = sizeof(struct result),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    result_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (result_type == NULL) return -1;
    Py_INCREF(result_type);
    if (PyModule_AddObject(module, "Table", (PyObject *)result_type) == 0)
        return 0;
    Py_DECREF(result_type);
    return -1;
}
