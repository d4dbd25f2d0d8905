/* SPDX-License-Identifier: Apache-2.0
 * Profiles and the table of analyses. Opening and running let other threads of
 * Python go on; Ctrl-C ends an opening. */
#include "native.h"

#include <string.h>

struct profile {
    PyObject_HEAD struct ops_profile *p; /* NULL: closed */
    int users; /* calls of run() that use it without the lock */
    bool closing;
};

static PyObject *raise_err(const struct ops_err *e) {
    return native_raise(e->code, e->text);
}

/* --- opening -------------------------------------------------------------- */

/* Did the user press Ctrl-C? The exception stays set. */
static bool goes_on(void *self, uint64_t done, uint64_t all) {
    (void)self, (void)done, (void)all;
    PyGILState_STATE lock = PyGILState_Ensure();
    bool ok = PyErr_CheckSignals() == 0;
    PyGILState_Release(lock);
    return ok;
}

/* The paths as C has them; `kept` holds them. Returns NULL with an
 * exception. */
static const char **paths_of(PyObject *kept, size_t *n) {
    *n = (size_t)PyList_Size(kept);
    const char **v = PyMem_Malloc((*n + 1) * sizeof *v);
    if (v == NULL) PyErr_NoMemory();
    for (size_t i = 0; v != NULL && i < *n; i++)
        v[i] = PyBytes_AsString(PyList_GetItem(kept, (Py_ssize_t)i));
    return v;
}

/* Makes a list of bytes of a path or a sequence of them. */
static PyObject *encoded(PyObject *paths) {
    PyObject *out = PyList_New(0), *all = NULL;
    if (PyUnicode_Check(paths) || PyBytes_Check(paths) ||
        PyObject_HasAttrString(paths, "__fspath__"))
        all = Py_BuildValue("(O)", paths);
    else all = PySequence_Tuple(paths);
    for (Py_ssize_t i = 0; out && all && i < PyTuple_Size(all); i++) {
        PyObject *b = NULL;
        bool ok = PyUnicode_FSConverter(PyTuple_GetItem(all, i), &b) &&
                  PyList_Append(out, b) == 0;
        Py_XDECREF(b);
        if (ok) continue;
        Py_CLEAR(out);
    }
    if (all == NULL) Py_CLEAR(out);
    Py_XDECREF(all);
    return out;
}

static int profile_init(PyObject *self, PyObject *args, PyObject *names) {
    static char *known[] = {"paths", "run", "threads", NULL};
    struct profile *p = (struct profile *)self;
    PyObject *paths;
    const char *run = NULL;
    struct ops_profile *made = NULL;
    struct ops_open_options o = {.progress = goes_on};
    struct ops_err e = {0};
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|zi:Profile", known, &paths,
                                     &run, &o.threads))
        return -1;
    if (p->p != NULL) {
        native_raise(OPS_EUSAGE, "the profile is open already");
        return -1;
    }
    o.run = run;
    PyObject *kept = encoded(paths);
    size_t n;
    const char **v = kept ? paths_of(kept, &n) : NULL;
    int rc = -1;
    if (v != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        rc = ops_open_with(&made, v, n, &o, &e);
        Py_END_ALLOW_THREADS;
        if (rc != 0 && !PyErr_Occurred()) raise_err(&e);
    }
    PyMem_Free(v);
    Py_XDECREF(kept);
    if (rc != 0) return -1;
    if (p->p == NULL) {
        p->p = made;
    } else { /* another thread opened it meanwhile */
        ops_close(made);
    }
    return 0;
}

/* --- running -------------------------------------------------------------- */

PyDoc_STRVAR(run_doc, "run($self, analysis, options='', /)\n--\n\n"
                      "Runs an analysis. options: as in a URL, 'top=20'.");
static PyObject *profile_run(PyObject *self, PyObject *args) {
    struct profile *p = (struct profile *)self;
    const char *name, *options = "";
    struct ops_result *r = NULL;
    struct ops_err e = {0};
    int rc;
    if (!PyArg_ParseTuple(args, "s|s:run", &name, &options)) return NULL;
    if (p->p == NULL || p->closing)
        return native_raise(OPS_EUSAGE, "the profile is closed");
    p->users++;
    Py_BEGIN_ALLOW_THREADS;
    rc = ops_run(p->p, name, options, &r, &e);
    Py_END_ALLOW_THREADS;
    if (--p->users == 0 && p->closing) {
        ops_close(p->p);
        p->p = NULL;
    }
    return rc == 0 ? result_new(r) : raise_err(&e);
}

PyDoc_STRVAR(close_doc, "close($self, /)\n--\n\nGives its memory back.");
static PyObject *profile_close(PyObject *self, PyObject *none) {
    struct profile *p = (struct profile *)self;
    (void)none;
    p->closing = true;
    if (p->users == 0 && p->p != NULL) {
        ops_close(p->p);
        p->p = NULL;
    }
    Py_RETURN_NONE;
}

static void profile_drop(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ops_close(((struct profile *)self)->p);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* --- what can be asked for ------------------------------------------------ */

/* Makes {name, type, arg, default, help} of an option. */
static PyObject *option_of(size_t i, size_t k) {
    static const char *const types[] = {
        [OPS_OPTION_FLAG] = "flag",     [OPS_OPTION_INT] = "int",
        [OPS_OPTION_FLOAT] = "float",   [OPS_OPTION_TEXT] = "text",
        [OPS_OPTION_CHOICE] = "choice", [OPS_OPTION_BYTES] = "bytes",
        [OPS_OPTION_US] = "us",         [OPS_OPTION_RANGE] = "range"};
    return Py_BuildValue("{s:s,s:s,s:z,s:z,s:z}", "name",
                         ops_analysis_option_name(i, k), "type",
                         types[ops_analysis_option_type(i, k)], "arg",
                         ops_analysis_option_arg(i, k), "default",
                         ops_analysis_option_default(i, k), "help",
                         ops_analysis_option_help(i, k));
}

PyDoc_STRVAR(analyses_doc,
             "analyses()\n--\n\n"
             "The table of analyses: name, help, what a row is, options.");
static PyObject *analyses(PyObject *self, PyObject *none) {
    PyObject *all = PyList_New(0);
    (void)self, (void)none;
    for (size_t i = 0; all != NULL && i < ops_analysis_count(); i++) {
        PyObject *options = PyList_New(0), *one = NULL;
        for (size_t k = 0; options && k < ops_analysis_option_count(i); k++) {
            PyObject *o = option_of(i, k);
            if (o == NULL || PyList_Append(options, o) != 0) Py_CLEAR(options);
            Py_XDECREF(o);
        }
        if (options != NULL)
            one = Py_BuildValue("{s:s,s:s,s:s,s:N}", "name",
                                ops_analysis_name(i), "help",
                                ops_analysis_help(i), "row",
                                ops_analysis_row(i), "options", options);
        if (one == NULL || PyList_Append(all, one) != 0) Py_CLEAR(all);
        Py_XDECREF(one);
    }
    return all;
}

PyMethodDef profile_methods[] = {
    {"analyses", analyses, METH_NOARGS, analyses_doc},
    {0},
};

int profile_ready(PyObject *module) {
    static PyMethodDef methods[] = {
        {"run", profile_run, METH_VARARGS, run_doc},
        {"close", profile_close, METH_NOARGS, close_doc},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A profile that was opened."},
        {Py_tp_init, profile_init},
        {Py_tp_dealloc, profile_drop},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    static PyType_Spec spec = {.name = "opscope._opscope.Profile",
                               .basicsize = sizeof(struct profile),
                               .flags = Py_TPFLAGS_DEFAULT |
                                        Py_TPFLAGS_BASETYPE,
                               .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    if (type == NULL) return -1;
    if (PyModule_AddObject(module, "Profile", type) == 0) return 0;
    Py_DECREF(type);
    return -1;
}
