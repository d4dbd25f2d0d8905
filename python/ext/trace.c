/* SPDX-License-Identifier: Apache-2.0
 * Every call of a Python function as a scope "$file.py:LINE function", the form
 * that TensorFlow's own tracer of Python writes. From 3.12 on by
 * sys.monitoring, before by sys.setprofile; the callbacks are in C. */
#include "native.h"

#include <string.h>

enum { TOOL = 3 }; /* of sys.monitoring's six: 0 to 2 and 5 have owners */

static PyObject *ids; /* a code object's address -> (number of its name, it) */
static PyObject *callbacks[3]; /* start, end, profile */
unsigned trace_generation;

enum { KNOWN = 256 }; /* frames of a thread: deeper ones end from the top */

/* The frames that the thread has open, and of which switching-on. */
static __thread struct ops_scope_ known[KNOWN];
static __thread unsigned depth, depth_of;

/* Ends the innermost frame. Returns false where scopes are open inside of it,
 * and they are to be over first. */
static bool end_frame(bool anywhere) {
    unsigned at = depth - 1;
    if (at >= KNOWN && OPS_STATE_() != 0) ops_end_();
    if (at < KNOWN && !ops_end_known_(known[at], anywhere)) return false;
    depth = at;
    return true;
}

/* Other threads than that which switched it off had frames open then, whose
 * ends nobody saw. */
void trace_settle_(void) {
    if (depth_of == trace_generation) return;
    while (depth > 0 && end_frame(false)) continue;
    if (depth == 0) depth_of = trace_generation;
}

/* What the thread still has open of an older switching-on ends now. */
static void fix_thread(void) {
    if (depth_of == trace_generation) return;
    while (depth > 0) end_frame(true);
    depth_of = trace_generation;
}

static PyObject *attribute(PyObject *of, const char *name) {
    PyObject *v = PyObject_GetAttrString(of, name);
    if (v == NULL) PyErr_Clear();
    return v;
}

/* Is the file one of opscope's own? */
static bool is_ours(const char *file) {
    return strstr(file, "/opscope/_capture/") != NULL ||
           strstr(file, "/opscope/recording.py") != NULL;
}

/* Returns the file's name without its folders, as TensorFlow has it, as a new
 * object; NULL for a file of ours or without a name. */
static PyObject *short_name(PyObject *file) {
    PyObject *bytes = file && PyUnicode_Check(file)
                          ? native_utf8(file, "a name")
                          : NULL;
    if (bytes == NULL) return NULL;
    const char *path = PyBytes_AsString(bytes), *slash = strrchr(path, '/');
    PyObject *name = is_ours(path) ? NULL
                                   : native_text(slash ? slash + 1 : path);
    Py_DECREF(bytes);
    return name;
}

/* Makes the name of a code object; 0 for code of ours. */
static uint32_t new_id(PyObject *code) {
    PyObject *path = attribute(code, "co_filename");
    PyObject *file = short_name(path);
    PyObject *line = attribute(code, "co_firstlineno");
    PyObject *name = attribute(code, "co_qualname"); /* 3.11 */
    if (name == NULL) name = attribute(code, "co_name");
    PyObject *text = file && line && name
                         ? PyUnicode_FromFormat("$%S:%S %S", file, line, name)
                         : NULL;
    PyObject *bytes = text ? native_utf8(text, "a name") : NULL;
    uint32_t id = bytes ? ops_intern_(PyBytes_AsString(bytes), OPS_KIND_OP) : 0;
    PyErr_Clear();
    Py_XDECREF(path);
    Py_XDECREF(file);
    Py_XDECREF(line);
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return id;
}

/* Code objects are told apart by where they are, and kept: two of them are
 * equal to Python if their lines and names are, in whatever files. */
static uint32_t id_of(PyObject *code) {
    PyObject *where = PyLong_FromVoidPtr(code);
    PyObject *kept = where ? PyDict_GetItemWithError(ids, where) : NULL;
    uint32_t id;
    if (LIKELY(kept != NULL)) {
        id = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(kept, 0));
    } else {
        PyErr_Clear();
        id = new_id(code);
        kept = where ? Py_BuildValue("(IO)", id, code) : NULL;
        if (kept != NULL) PyDict_SetItem(ids, where, kept);
        Py_XDECREF(kept);
        PyErr_Clear();
    }
    Py_XDECREF(where);
    return id;
}

static void begins(PyObject *code) {
    if (!(trace_generation & 1)) return;
    fix_thread();
    uint32_t id = OPS_ON_() ? id_of(code) : 0;
    if (depth < KNOWN)
        known[depth] = id != 0 ? ops_begin_known_(id) : ops_scope_none_();
    else if (id != 0) ops_begin_by_hand_(id);
    else if (OPS_STATE_() != 0) ops_begin_off_(); /* its end finds this one */
    depth++;
}

static void ends(void) {
    if (!(trace_generation & 1)) return;
    fix_thread();
    if (depth > 0) end_frame(true); /* else it was called before we looked */
}

/* sys.monitoring's callbacks: (code, offset, ...). */
static PyObject *on_start(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self;
    if (n > 0) begins(args[0]);
    Py_RETURN_NONE;
}

static PyObject *on_end(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)self, (void)args, (void)n;
    ends();
    Py_RETURN_NONE;
}

/* sys.setprofile's: (frame, event, arg). */
static PyObject *on_profile(PyObject *self, PyObject *const *args,
                            Py_ssize_t n) {
    (void)self;
    if (n < 2) Py_RETURN_NONE;
    if (PyUnicode_CompareWithASCIIString(args[1], "call") == 0) {
        PyObject *code = attribute(args[0], "f_code");
        if (code != NULL) begins(code);
        Py_XDECREF(code);
    } else if (PyUnicode_CompareWithASCIIString(args[1], "return") == 0) {
        ends();
    }
    Py_RETURN_NONE;
}

static PyMethodDef inner[] = {
    {"on_start", METHOD(on_start), METH_FASTCALL, NULL},
    {"on_end", METHOD(on_end), METH_FASTCALL, NULL},
    {"on_profile", METHOD(on_profile), METH_FASTCALL, NULL},
    {0},
};

/* Switches by sys.monitoring. Returns 1, 0 if there is none, or -1. */
static int by_monitoring(bool on) {
    static const char *const begin[] = {"PY_START", "PY_RESUME", "PY_THROW"};
    static const char *const end[] = {"PY_RETURN", "PY_YIELD", "PY_UNWIND"};
    PyObject *m = PySys_GetObject("monitoring"), *r; /* borrowed */
    if (m == NULL) return 0;
    if (on) {
        r = PyObject_CallMethod(m, "use_tool_id", "is", TOOL, "opscope");
        if (r == NULL) return -1;
        Py_DECREF(r);
    }
    PyObject *events = PyObject_GetAttrString(m, "events");
    long mask = 0;
    for (int i = 0; i < 6 && events != NULL; i++) {
        const char *name = i < 3 ? begin[i] : end[i - 3];
        PyObject *bit = PyObject_GetAttrString(events, name);
        if (bit == NULL) break;
        mask |= PyLong_AsLong(bit);
        r = PyObject_CallMethod(m, "register_callback", "iOO", TOOL, bit,
                                on ? callbacks[i < 3 ? 0 : 1] : Py_None);
        Py_DECREF(bit);
        Py_XDECREF(r);
        if (r == NULL) break;
    }
    Py_XDECREF(events);
    if (PyErr_Occurred()) return -1;
    r = PyObject_CallMethod(m, "set_events", "il", TOOL, on ? mask : 0L);
    Py_XDECREF(r);
    if (r == NULL) return -1;
    if (!on) {
        r = PyObject_CallMethod(m, "free_tool_id", "i", TOOL);
        Py_XDECREF(r);
        if (r == NULL) return -1;
    }
    return 1;
}

/* Does another one than us watch this thread by sys.setprofile? -1: an
 * exception. */
static int is_watched(void) {
    PyObject *get = PySys_GetObject("getprofile"); /* borrowed */
    PyObject *there = get ? PyObject_CallObject(get, NULL) : NULL;
    int other = there != NULL && there != Py_None && there != callbacks[2];
    if (get == NULL) PyErr_SetString(PyExc_RuntimeError, "no sys.getprofile");
    else if (there == NULL) other = -1;
    Py_XDECREF(there);
    return get == NULL ? -1 : other;
}

static int by_profile(bool on) {
    static const char *const modules[] = {"threading", "sys"};
    int other = is_watched();
    if (other < 0) return -1;
    if (other && on) {
        native_raise(OPS_EUSAGE, "the program itself uses sys.setprofile");
        return -1;
    }
    if (other) return 0; /* it came after us: it stays */
    for (int i = 0; i < 2; i++) {
        PyObject *m = PyImport_ImportModule(modules[i]);
        PyObject *r = m ? PyObject_CallMethod(m, "setprofile", "O",
                                              on ? callbacks[2] : Py_None)
                        : NULL;
        Py_XDECREF(m);
        Py_XDECREF(r);
        if (r == NULL) return -1;
    }
    return 0;
}

PyDoc_STRVAR(trace_python_doc,
             "trace_python(on, /)\n--\n\n"
             "Records every call of a Python function, of all threads, from "
             "now on, or no more.");
static PyObject *trace_python(PyObject *self, PyObject *flag) {
    int on = PyObject_IsTrue(flag);
    (void)self;
    if (on < 0) return NULL;
    if (on == (int)(trace_generation & 1)) Py_RETURN_NONE;
    if (ids == NULL) ids = PyDict_New();
    for (int i = 0; i < 3 && ids != NULL; i++)
        if (callbacks[i] == NULL)
            callbacks[i] = PyCFunction_NewEx(&inner[i], NULL, NULL);
    if (ids == NULL || callbacks[2] == NULL) return NULL;
    trace_generation++;
    trace_settle(); /* what this thread has open ends here */
    int rc = by_monitoring(on);
    if (rc == 0) rc = by_profile(on);
    if (rc < 0) {
        trace_generation++;
        return NULL;
    }
    if (!on) PyDict_Clear(ids); /* code would be kept for good */
    Py_RETURN_NONE;
}

PyMethodDef trace_methods[] = {
    {"trace_python", trace_python, METH_O, trace_python_doc},
    {0},
};
