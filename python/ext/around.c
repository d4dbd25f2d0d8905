/* SPDX-License-Identifier: Apache-2.0
 * around(function, before, after): a function of a framework that tells of its
 * calls.
 *
 * A wrapper in Python is a frame: it stands in the tracebacks that a program
 * prints, and a warning that counts frames points at the wrong line. This one is
 * no frame. before(args, kwargs) and after(token, error, value) run beside the
 * call, never around it, and what they raise is dropped, but for what ends a program
 * (Ctrl-C).
 *
 * before() returns None, and the call is made as it is; or (token, function,
 * args, kwargs), and that call is made in its place. Where token is not None,
 * after() gets it, with the class of the exception or None, and what was
 * returned or None. */
#include "native.h"

#include <stddef.h>
#include <structmember.h>

struct around {
    PyObject_HEAD PyObject *function, *before, *after;
    PyObject *dict, *weak; /* attributes; weak references */
};

/* Was it made by its constructor? If not: an exception. */
static bool is_made(const struct around *a) {
    if (a->function != NULL) return true;
    PyErr_SetString(PyExc_TypeError, "around() was not called");
    return false;
}

/* Tells that the call has ended. An exception of the call stays. */
static bool tell_end(struct around *a, PyObject *token, PyObject *value) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *none = PyObject_CallFunctionObjArgs(a->after, token,
                                                  type ? type : Py_None,
                                                  value ? value : Py_None,
                                                  NULL);
    Py_XDECREF(none);
    bool fine = native_drop_error();
    if (type != NULL) PyErr_Restore(type, error, trace);
    return fine;
}

/* Is it (token, function, args, kwargs)? */
static bool is_call(PyObject *said) {
    if (!PyTuple_Check(said) || PyTuple_Size(said) != 4) return false;
    PyObject *with = PyTuple_GetItem(said, 3);
    return PyTuple_Check(PyTuple_GetItem(said, 2)) &&
           (with == Py_None || PyDict_Check(with));
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *names) {
    struct around *a = (struct around *)self;
    if (!is_made(a)) return NULL;
    PyObject *said = PyObject_CallFunctionObjArgs(a->before, args,
                                                  names ? names : Py_None,
                                                  NULL);
    if (said == NULL && !native_drop_error()) return NULL;
    if (said == NULL || !is_call(said)) {
        Py_XDECREF(said);
        return PyObject_Call(a->function, args, names);
    }
    PyObject *token = PyTuple_GetItem(said, 0);
    PyObject *with = PyTuple_GetItem(said, 3);
    PyObject *value = PyObject_Call(PyTuple_GetItem(said, 1),
                                    PyTuple_GetItem(said, 2),
                                    with == Py_None ? NULL : with);
    if (token != Py_None && !tell_end(a, token, value)) Py_CLEAR(value);
    Py_DECREF(said);
    return value;
}

/* As a method of a class, it gets the instance first. */
static PyObject *bind(PyObject *self, PyObject *object, PyObject *type) {
    static PyObject *method;
    (void)type;
    if (object == NULL || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    if (method == NULL) {
        PyObject *types = PyImport_ImportModule("types");
        method = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
        Py_XDECREF(types);
        if (method == NULL) return NULL;
    }
    return PyObject_CallFunctionObjArgs(method, self, object, NULL);
}

static int init(PyObject *self, PyObject *args, PyObject *names) {
    struct around *a = (struct around *)self;
    PyObject *f, *before, *after;
    static char *known[] = {"function", "before", "after", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, names, "OOO:around", known, &f,
                                     &before, &after))
        return -1;
    Py_INCREF(f);
    Py_INCREF(before);
    Py_INCREF(after);
    Py_XDECREF(a->function);
    Py_XDECREF(a->before);
    Py_XDECREF(a->after);
    a->function = f;
    a->before = before;
    a->after = after;
    return 0;
}

/* Its attributes; functools.wraps() puts some there. */
static PyObject *attributes(PyObject *self, void *none) {
    struct around *a = (struct around *)self;
    (void)none;
    if (a->dict == NULL) a->dict = PyDict_New();
    Py_XINCREF(a->dict);
    return a->dict;
}

/* A copy of a function is that function; who unpickles it gets one that tells
 * nobody. */
static PyObject *same(PyObject *self, PyObject *memo) {
    (void)memo;
    Py_INCREF(self);
    return self;
}

static PyObject *reduce(PyObject *self, PyObject *none) {
    (void)none;
    if (!is_made((struct around *)self)) return NULL;
    PyObject *m = PyImport_ImportModule("functools");
    PyObject *partial = m ? PyObject_GetAttrString(m, "partial") : NULL;
    Py_XDECREF(m);
    if (partial == NULL) return NULL;
    return Py_BuildValue("(N(O))", partial, ((struct around *)self)->function);
}

static PyObject *around_repr(PyObject *self) {
    struct around *a = (struct around *)self;
    return is_made(a) ? PyObject_Repr(a->function) : NULL;
}

static int visit_all(PyObject *self, visitproc visit, void *arg) {
    struct around *a = (struct around *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(a->function);
    Py_VISIT(a->before);
    Py_VISIT(a->after);
    Py_VISIT(a->dict);
    return 0;
}

static int clear(PyObject *self) {
    struct around *a = (struct around *)self;
    Py_CLEAR(a->function);
    Py_CLEAR(a->before);
    Py_CLEAR(a->after);
    Py_CLEAR(a->dict);
    return 0;
}

static void drop(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((struct around *)self)->weak != NULL) PyObject_ClearWeakRefs(self);
    clear(self);
    freefunc f = (freefunc)PyType_GetSlot(type, Py_tp_free);
    f(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(doc, "around(function, before, after)\n--\n\n"
                  "A function that tells of its calls and is no frame.");

int around_ready(PyObject *module) {
    static PyMemberDef members[] = {
        {"__dictoffset__", T_PYSSIZET, offsetof(struct around, dict), READONLY,
         NULL},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(struct around, weak),
         READONLY, NULL},
        {0},
    };
    static PyMethodDef methods[] = {
        {"__copy__", same, METH_NOARGS, NULL},
        {"__deepcopy__", same, METH_O, NULL},
        {"__reduce__", reduce, METH_NOARGS, NULL},
        {0},
    };
    static PyGetSetDef computed[] = {
        {"__dict__", attributes, NULL, NULL, NULL},
        {0},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, (void *)doc},
        {Py_tp_init, init},
        {Py_tp_dealloc, drop},
        {Py_tp_traverse, visit_all},
        {Py_tp_clear, clear},
        {Py_tp_members, members},
        {Py_tp_getset, computed},
        {Py_tp_methods, methods},
        {Py_tp_repr, around_repr},
        {Py_tp_call, call},
        {Py_tp_descr_get, (void *)bind},
        {0, NULL},
    };
    static PyType_Spec spec = {.name = "opscope.around",
                               .basicsize = sizeof(struct around),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                               .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    if (type == NULL) return -1;
    if (PyModule_AddObject(module, "around", type) == 0) return 0;
    Py_DECREF(type);
    return -1;
}
