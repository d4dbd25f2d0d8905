/* SPDX-License-Identifier: Apache-2.0
 * The extension module opscope._opscope: what its files share.
 *
 * It is written against the limited API of CPython 3.9, so that one file serves
 * every later version. The reader (libopscope.a) is inside; the recorder is the
 * shared library libopscope-record.so.0 beside it, which is the same for all
 * that is loaded into the process: a custom op in C that was linked with it
 * records into the same profile.
 *
 * The module lives in the main interpreter only, so plain statics are enough;
 * the interpreter's lock guards them. */
#ifndef OPSCOPE_NATIVE_H
#define OPSCOPE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <opscope/opscope.h>
#include <opscope/record.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* These flags came into the limited API with 3.10; 3.9 has them with the same
 * values and the same meaning. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
typedef PyObject *(*fast_function)(PyObject *self, PyObject *const *args,
                                   Py_ssize_t n);
typedef PyObject *(*fast_function_with_names)(PyObject *self,
                                              PyObject *const *args,
                                              Py_ssize_t n, PyObject *names);
/* A method table wants one type for all of them. */
#define METHOD(f) ((PyCFunction)(void (*)(void))(f))

/* --- module.c ------------------------------------------------------------- */

extern PyObject *native_error; /* opscope.Error */

/* Raises opscope.Error with that code and sentence. Returns NULL. */
PyObject *native_raise(int code, const char *text);
/* Returns the bytes of a str in UTF-8 as a bytes object, or NULL with an
 * exception. What UTF-8 cannot say (lone surrogates) becomes '?'. */
PyObject *native_utf8(PyObject *text, const char *what);
/* Makes a str; what is no UTF-8 is replaced. NULL gives None. */
PyObject *native_text(const char *text);

/* Drops an exception that is no end of the program (Ctrl-C, exit). Returns
 * whether none is left. */
bool native_drop_error(void);

/* --- record.c ------------------------------------------------------------- */

extern PyMethodDef record_methods[];
/* Adds an argument to the innermost open scope: numbers as numbers, anything
 * else as its text. Drops what a text raises; false: the program is to end. */
bool record_arg(PyObject *key, PyObject *value);
/* Gives the number of a kind: 0 to 5, or a name ("input"). -1: an exception. */
int record_kind(PyObject *kind);

/* --- scope.c -------------------------------------------------------------- */

extern PyMethodDef scope_methods[];
int scope_ready(PyObject *module); /* 0, or -1 with an exception */

/* --- around.c ------------------------------------------------------------- */

int around_ready(PyObject *module);

/* --- trace.c -------------------------------------------------------------- */

extern PyMethodDef trace_methods[];
extern unsigned trace_generation; /* of switching on: odd while it is on */
void trace_settle_(void);
/* Ends what the tracer has open on this thread and sees no end of any more. To
 * be called before and after a scope begins or ends. */
static inline void trace_settle(void) {
    if (UNLIKELY(trace_generation != 0)) trace_settle_();
}

/* --- profile.c, result.c, arrow.c ----------------------------------------- */

extern PyMethodDef profile_methods[];
int profile_ready(PyObject *module);
int result_ready(PyObject *module);
/* Makes a Result, which owns r from now on, also when it fails. */
PyObject *result_new(struct ops_result *r);

/* A result with a count of its users, which need not hold the lock. */
struct table {
    struct ops_result *r;
    int users;
};
void table_drop(struct table *t);
/* Returns a capsule "arrow_array_stream" over the table. */
PyObject *arrow_stream(struct table *t);

#endif
