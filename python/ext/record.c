/* SPDX-License-Identifier: Apache-2.0
 * The recorder's calls as functions of Python. They cost little when nothing is
 * recorded, and raise only where an argument has the wrong type: what cannot be
 * recorded is dropped and counted by the recorder. */
#include "native.h"

#include <string.h>

/* Under OPSCOPE=1 the recorder starts when it is loaded. In a Python program the
 * first step starts it, or start(): a loader's worker has none, and needs none.
 * Taking the variable away meanwhile would disturb a getenv() of another
 * thread. */
OPS_API const char ops_starts_itself_[] = "the extension of Python";

/* --- names ---------------------------------------------------------------- */

/* Gives the number of a name, 0 with an exception if it is no text. */
static uint32_t name_id(PyObject *name, uint32_t kind, const char *what) {
    PyObject *bytes = native_utf8(name, what);
    if (bytes == NULL) return 0;
    uint32_t id = ops_intern_(PyBytes_AsString(bytes), kind);
    Py_DECREF(bytes);
    return id;
}

int record_kind(PyObject *kind) {
    static const char *const names[] = {"op",   "input", "comm",
                                        "copy", "wait",  "phase"};
    int n = (int)(sizeof names / sizeof *names);
    if (PyUnicode_Check(kind)) {
        for (int i = 0; i < n; i++)
            if (PyUnicode_CompareWithASCIIString(kind, names[i]) == 0) return i;
    } else {
        long i = PyLong_AsLong(kind);
        if (i >= 0 && i < n) return (int)i;
        if (i == -1 && PyErr_Occurred()) return -1;
    }
    PyErr_SetString(PyExc_ValueError, "kind is 'op', 'input', 'comm', 'copy', "
                                      "'wait' or 'phase', or their number");
    return -1;
}

/* --- start and stop ------------------------------------------------------- */

PyDoc_STRVAR(start_doc,
             "start(logdir, options='')\n--\n\n"
             "Starts recording into logdir. options: as in a URL,\n"
             "'run=first&steps=100..102'. Raises Error if nothing can be "
             "recorded.");
static PyObject *record_start(PyObject *self, PyObject *args, PyObject *names) {
    static char *known[] = {"logdir", "options", NULL};
    PyObject *logdir = NULL;
    const char *options = "";
    char why[OPS_PROBLEM_MAX];
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O&|s:start", known,
                                     PyUnicode_FSConverter, &logdir, &options))
        return NULL;
    int rc;
    Py_BEGIN_ALLOW_THREADS;
    rc = ops_fn_start(PyBytes_AsString(logdir), options);
    Py_END_ALLOW_THREADS;
    Py_DECREF(logdir);
    if (rc == 0) Py_RETURN_NONE;
    ops_problem(why, sizeof why);
    return native_raise(OPS_EIO, why[0] != 0 ? why : "nothing can be recorded");
}

PyDoc_STRVAR(stop_doc, "stop()\n--\n\nCloses the profile.");
static PyObject *record_stop(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    Py_BEGIN_ALLOW_THREADS;
    ops_stop();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(flush_doc, "flush()\n--\n\n"
                        "Waits until all that was recorded is in the files.");
static PyObject *record_flush(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    Py_BEGIN_ALLOW_THREADS;
    ops_flush();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(dump_doc, "dump()\n--\n\n"
                       "Closes the file so far and goes on in a new one.");
static PyObject *record_dump(PyObject *self, PyObject *none) {
    char why[OPS_PROBLEM_MAX];
    int rc;
    (void)self, (void)none;
    Py_BEGIN_ALLOW_THREADS;
    rc = ops_dump();
    Py_END_ALLOW_THREADS;
    if (rc == 0) Py_RETURN_NONE;
    ops_problem(why, sizeof why);
    return native_raise(OPS_EIO, why);
}

PyDoc_STRVAR(recording_doc, "recording()\n--\n\nIs a window open?");
static PyObject *record_recording(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyBool_FromLong(ops_recording());
}

PyDoc_STRVAR(started_doc,
             "started()\n--\n\n"
             "Was recording started and not stopped, window or not?");
static PyObject *record_started(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyBool_FromLong(OPS_STATE_() != 0);
}

PyDoc_STRVAR(problem_doc,
             "problem()\n--\n\n"
             "What stands in the way of recording, as a sentence, or None.");
static PyObject *record_problem(PyObject *self, PyObject *none) {
    char why[OPS_PROBLEM_MAX];
    (void)self, (void)none;
    if (ops_problem(why, sizeof why) == 0) Py_RETURN_NONE;
    return native_text(why);
}

/* --- steps ---------------------------------------------------------------- */

/* A number that only counts: what does not fit is cut, not refused. */
static bool as_number(PyObject *o, int64_t *n) {
    PyObject *index = PyNumber_Index(o);
    int overflow;
    if (index == NULL) return false;
    *n = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow != 0) *n = overflow > 0 ? INT64_MAX : INT64_MIN;
    return true;
}

PyDoc_STRVAR(step_doc, "step(number, /)\n--\n\n"
                       "Begins a step; the step before on this thread ends.");
static PyObject *record_step(PyObject *self, PyObject *number) {
    int64_t n;
    (void)self;
    if (!as_number(number, &n)) return NULL; /* recording or not */
    ops_step(n);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(epoch_doc, "epoch(number, /)\n--\n\n"
                        "Begins an epoch; the epoch and the step before end.");
static PyObject *record_epoch(PyObject *self, PyObject *number) {
    int64_t n;
    (void)self;
    if (!as_number(number, &n)) return NULL;
    ops_epoch(n);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(step_end_doc, "step_end()\n--\n\nEnds the open step.");
static PyObject *record_step_end(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    ops_step_end();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(epoch_end_doc, "epoch_end()\n--\n\nEnds the open epoch.");
static PyObject *record_epoch_end(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    ops_epoch_end();
    Py_RETURN_NONE;
}

/* --- scopes by hand, instants, counters ----------------------------------- */

PyDoc_STRVAR(begin_doc, "begin(name, kind=0, /)\n--\n\n"
                        "Begins a scope of this thread; end() ends it.");
static PyObject *record_begin(PyObject *self, PyObject *args) {
    PyObject *name, *kind = NULL;
    int k = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O|O:begin", &name, &kind)) return NULL;
    if (kind != NULL && (k = record_kind(kind)) < 0) return NULL;
    trace_settle();
    if (OPS_ON_()) {
        uint32_t id = name_id(name, (uint32_t)k, "the name of a scope");
        if (id == 0 && PyErr_Occurred()) return NULL;
        ops_begin_by_hand_(id);
    } else {
        ops_begin_skip_();
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(end_doc, "end()\n--\n\n"
                      "Ends the innermost scope that begin() began.");
static PyObject *record_end(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    trace_settle();
    ops_end();
    Py_RETURN_NONE;
}

static void put_arg(uint32_t id, PyObject *value) {
    int overflow = 0;
    if (PyLong_Check(value)) {
        int64_t n = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow == 0) {
            ops_arg_int_(id, n);
            return;
        }
    }
    if (PyFloat_Check(value)) {
        ops_arg_num_(id, PyFloat_AsDouble(value));
        return;
    }
    PyObject *text = PyObject_Str(value);
    PyObject *bytes = text != NULL ? native_utf8(text, "the value") : NULL;
    if (bytes != NULL) ops_arg_text_(id, PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    Py_XDECREF(text);
}

bool record_arg(PyObject *key, PyObject *value) {
    uint32_t id = name_id(key, OPS_KEY_, "the key of an argument");
    if (!PyErr_Occurred()) put_arg(id, value);
    return native_drop_error();
}

PyDoc_STRVAR(arg_doc, "arg(key, value, /)\n--\n\n"
                      "Adds an argument to the innermost open scope.");
static PyObject *record_arg_call(PyObject *self, PyObject *args) {
    PyObject *key, *value;
    (void)self;
    if (!PyArg_ParseTuple(args, "UO:arg", &key, &value)) return NULL;
    trace_settle();
    if (OPS_ON_() && !record_arg(key, value)) return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(instant_doc, "instant(name, /)\n--\n\nMarks a moment.");
static PyObject *record_instant(PyObject *self, PyObject *name) {
    (void)self;
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError,
                            "the name of an instant is a text (str)");
    if (!OPS_ON_()) Py_RETURN_NONE;
    uint32_t id = name_id(name, OPS_KIND_OP, "the name of an instant");
    if (id == 0 && PyErr_Occurred()) return NULL;
    ops_instant_(id);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(counter_doc, "counter(name, value)\n--\n\n"
                          "Records the value of a counter now.");
static PyObject *record_counter(PyObject *self, PyObject *args,
                                PyObject *names) {
    static char *known[] = {"name", "value", NULL};
    PyObject *name;
    double v;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, names, "Ud:counter", known, &name,
                                     &v))
        return NULL;
    if (!OPS_ON_()) Py_RETURN_NONE;
    uint32_t id = name_id(name, OPS_COUNT_, "the name of a counter");
    if (id == 0 && PyErr_Occurred()) return NULL;
    ops_counter_(id, v);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(scalar_doc,
             "scalar(tag, step, value)\n--\n\n"
             "Adds a point of a curve, for TensorBoard and `opscope scalars`.");
static PyObject *record_scalar(PyObject *self, PyObject *args,
                               PyObject *names) {
    static char *known[] = {"tag", "step", "value", NULL};
    PyObject *tag, *step;
    double v;
    int64_t n;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, names, "UOd:scalar", known, &tag,
                                     &step, &v))
        return NULL;
    if (!as_number(step, &n)) return NULL;
    if (OPS_STATE_() == 0) Py_RETURN_NONE;
    uint32_t id = name_id(tag, OPS_TAG_, "the tag of a scalar");
    if (id == 0 && PyErr_Occurred()) return NULL;
    ops_scalar_(id, n, v);
    Py_RETURN_NONE;
}

/* --- memory, identity ----------------------------------------------------- */

PyDoc_STRVAR(alloc_doc, "alloc(address, bytes, tag, /)\n--\n\n"
                        "Records an allocation.");
static PyObject *record_alloc(PyObject *self, PyObject *args) {
    unsigned long long addr, bytes;
    PyObject *tag;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKU:alloc", &addr, &bytes, &tag)) return NULL;
    if (!OPS_ON_()) Py_RETURN_NONE;
    uint32_t id = name_id(tag, OPS_TAG_, "the tag of an allocation");
    if (id == 0 && PyErr_Occurred()) return NULL;
    ops_alloc_(addr, bytes, id);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(free_doc, "free(address, /)\n--\n\n"
                       "Records that an allocation was given back.");
static PyObject *record_free(PyObject *self, PyObject *args) {
    unsigned long long addr;
    (void)self;
    if (!PyArg_ParseTuple(args, "K:free", &addr)) return NULL;
    ops_free((void *)(uintptr_t)addr);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(set_rank_doc, "set_rank(rank, world, /)\n--\n\n"
                           "Says which rank this process is.");
static PyObject *record_set_rank(PyObject *self, PyObject *args) {
    int rank, world;
    (void)self;
    if (!PyArg_ParseTuple(args, "ii:set_rank", &rank, &world)) return NULL;
    ops_set_rank(rank, world);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(thread_name_doc, "thread_name(name, /)\n--\n\n"
                              "Names the calling thread in the profile.");
static PyObject *record_thread_name(PyObject *self, PyObject *name) {
    (void)self;
    PyObject *bytes = native_utf8(name, "the name of a thread");
    if (bytes == NULL) return NULL;
    ops_thread_name(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(now_doc, "now()\n--\n\n"
                      "The clock of the profile: monotonic nanoseconds.");
static PyObject *record_now(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyLong_FromUnsignedLongLong(ops_now());
}

PyMethodDef record_methods[] = {
    {"start", METHOD(record_start), METH_VARARGS | METH_KEYWORDS, start_doc},
    {"stop", record_stop, METH_NOARGS, stop_doc},
    {"flush", record_flush, METH_NOARGS, flush_doc},
    {"dump", record_dump, METH_NOARGS, dump_doc},
    {"recording", record_recording, METH_NOARGS, recording_doc},
    {"started", record_started, METH_NOARGS, started_doc},
    {"problem", record_problem, METH_NOARGS, problem_doc},
    {"step", record_step, METH_O, step_doc},
    {"step_end", record_step_end, METH_NOARGS, step_end_doc},
    {"epoch", record_epoch, METH_O, epoch_doc},
    {"epoch_end", record_epoch_end, METH_NOARGS, epoch_end_doc},
    {"begin", record_begin, METH_VARARGS, begin_doc},
    {"end", record_end, METH_NOARGS, end_doc},
    {"arg", record_arg_call, METH_VARARGS, arg_doc},
    {"instant", record_instant, METH_O, instant_doc},
    {"counter", METHOD(record_counter), METH_VARARGS | METH_KEYWORDS,
     counter_doc},
    {"scalar", METHOD(record_scalar), METH_VARARGS | METH_KEYWORDS, scalar_doc},
    {"alloc", record_alloc, METH_VARARGS, alloc_doc},
    {"free", record_free, METH_VARARGS, free_doc},
    {"set_rank", record_set_rank, METH_VARARGS, set_rank_doc},
    {"thread_name", record_thread_name, METH_O, thread_name_doc},
    {"now", record_now, METH_NOARGS, now_doc},
    {NULL, NULL, 0, NULL},
};
