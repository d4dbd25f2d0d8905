/* SPDX-License-Identifier: Apache-2.0
 * The module itself: its functions, its types, its exception. */
#include "native.h"

#include <string.h>

PyObject *native_error;

PyObject *native_raise(int code, const char *text) {
    PyObject *error = PyObject_CallFunction(native_error, "s", text);
    PyObject *number = PyLong_FromLong(code);
    if (error != NULL && number != NULL &&
        PyObject_SetAttrString(error, "code", number) == 0)
        PyErr_SetObject(native_error, error);
    Py_XDECREF(error);
    Py_XDECREF(number);
    return NULL;
}

PyObject *native_utf8(PyObject *text, const char *what) {
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "%s is a text (str)", what);
    return PyUnicode_AsEncodedString(text, "utf-8", "replace");
}

PyObject *native_text(const char *text) {
    if (text == NULL) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

bool native_drop_error(void) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return !PyErr_Occurred();
}

/* --- making it ------------------------------------------------------------ */

/* The recorder is one for the process, and so are the tables here. */
static int only_main_interpreter(void) {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
    PyErr_SetString(PyExc_ImportError,
                    "opscope does not work in sub-interpreters: import it in "
                    "the main interpreter of the process");
    return -1;
}

static int make_error(void) {
    static const char help[] =
        "What opscope could not do, as a sentence.\n\n"
        "code: -1 the system refused (open, read, write), -2 the bytes are "
        "not what they\nclaim to be, -3 not supported, -4 there is no such "
        "thing (analysis, option, path),\n-5 a limit was hit, -6 cancelled.";
    if (native_error != NULL) return 0;
    PyObject *none = PyDict_New(), *code = PyLong_FromLong(0);
    if (none != NULL && code != NULL &&
        PyDict_SetItemString(none, "code", code) == 0)
        native_error = PyErr_NewExceptionWithDoc("opscope.Error", help, NULL,
                                                 none);
    Py_XDECREF(none);
    Py_XDECREF(code);
    return native_error == NULL ? -1 : 0;
}

static int add(PyObject *module, const char *name, PyObject *what) {
    Py_INCREF(what);
    if (PyModule_AddObject(module, name, what) == 0) return 0;
    Py_DECREF(what);
    return -1;
}

static int module_exec(PyObject *module) {
    if (only_main_interpreter() != 0 || make_error() != 0) return -1;
    if (add(module, "Error", native_error) != 0 || scope_ready(module) != 0 ||
        around_ready(module) != 0 || result_ready(module) != 0 ||
        profile_ready(module) != 0)
        return -1;
    if (PyModule_AddFunctions(module, record_methods) != 0 ||
        PyModule_AddFunctions(module, scope_methods) != 0 ||
        PyModule_AddFunctions(module, trace_methods) != 0 ||
        PyModule_AddFunctions(module, profile_methods) != 0)
        return -1;
    return PyModule_AddStringConstant(module, "__version__", ops_version());
}

PyMODINIT_FUNC PyInit__opscope(void) {
    static PyModuleDef_Slot slots[] = {
        {Py_mod_exec, (void *)module_exec},
        {0, NULL},
    };
    static struct PyModuleDef def = {
        PyModuleDef_HEAD_INIT,
        .m_name = "_opscope",
        .m_doc = "opscope in C: the recorder of this process, and the reader "
                 "of profiles.",
        .m_slots = slots,
    };
    return PyModuleDef_Init(&def);
}
