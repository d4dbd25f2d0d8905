/* SPDX-License-Identifier: Apache-2.0
 * opscope.scope: a region of the program, as a context manager and a decorator.
 *
 * A scope that is entered while an event loop runs may be left after other tasks
 * had the thread: it is a span of its own then, which may overlap others (see
 * ops_async), and never ends somebody else's scope. All others are scopes of
 * their thread, and known each, since generators leave them in any order; one
 * that is left on another thread (by a generator that went on there) stays open
 * to the end of its own. */
#include "native.h"

#include <stddef.h>
#include <string.h>

enum { INLINE_ENTRIES = 2 };

/* One time that the scope was entered and not left. */
struct entry {
    struct ops_async async;  /* gen 0: a scope of the thread */
    uint64_t thread;         /* that entered it */
    struct ops_scope_ known; /* if it is recorded */
    bool unrecorded;         /* begun outside of a window: its end is told */
};

struct scope {
    PyObject_HEAD PyObject *name, *args; /* a str; a dict or NULL */
    uint32_t id;                         /* of the name; 0: not looked up yet */
    int kind;
    unsigned depth, room; /* entries in use, and allocated besides */
    struct entry first[INLINE_ENTRIES], *more;
};

static PyObject *get_running_loop; /* asyncio's, once that is imported */

/* Returns the calling thread's number, which no later one gets: those that
 * pthread_self() gives are used again. */
static uint64_t this_thread(void) {
    static uint64_t last;
    static __thread uint64_t number;
    if (UNLIKELY(number == 0))
        number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return number;
}

/* Looks whether the program uses asyncio by now: a look into a dict, so that
 * the first task's first scope is seen to be one. */
static void look_for_asyncio(void) {
    static PyObject *name;
    if (name == NULL) name = PyUnicode_InternFromString("asyncio.events");
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed, as what is in */
    PyObject *events = name && modules ? PyDict_GetItemWithError(modules, name)
                                       : NULL;
    if (events != NULL)
        get_running_loop = PyObject_GetAttrString(events, "_get_running_loop");
    PyErr_Clear();
}

static bool in_event_loop(void) {
    if (UNLIKELY(get_running_loop == NULL)) look_for_asyncio();
    if (get_running_loop == NULL) return false;
    PyObject *loop = PyObject_CallObject(get_running_loop, NULL);
    bool runs = loop != NULL && loop != Py_None;
    Py_XDECREF(loop);
    PyErr_Clear();
    return runs;
}

/* Returns the entry of that depth; NULL if there is no memory for it. */
static struct entry *entry_at(struct scope *s, unsigned depth) {
    if (LIKELY(depth < INLINE_ENTRIES)) return &s->first[depth];
    depth -= INLINE_ENTRIES;
    if (depth >= s->room) {
        unsigned room = s->room ? 2 * s->room : 8;
        struct entry *more = PyMem_Realloc(s->more, room * sizeof *more);
        if (more == NULL) return NULL;
        s->more = more;
        s->room = room;
    }
    return &s->more[depth];
}

static uint32_t name_of(struct scope *s) {
    if (UNLIKELY(s->id == 0 && s->name != NULL)) {
        PyObject *text = native_utf8(s->name, "the name of a scope");
        if (text == NULL) {
            PyErr_Clear();
            return 0;
        }
        s->id = ops_intern_(PyBytes_AsString(text), (uint32_t)s->kind);
        Py_DECREF(text);
    }
    return s->id;
}

/* Returns false with an exception that ends the program. */
static bool put_args(const struct scope *s) {
    PyObject *key, *value, *args = s->args;
    Py_ssize_t at = 0;
    bool goes_on = true;
    Py_INCREF(args); /* a value's __str__ may do anything */
    while (goes_on && PyDict_Next(args, &at, &key, &value))
        goes_on = record_arg(key, value);
    Py_DECREF(args);
    return goes_on;
}

/* Returns false with an exception that ends the program: it was entered, and
 * is to be left. */
static bool scope_enter(struct scope *s, bool async) {
    struct entry *e = entry_at(s, s->depth);
    if (UNLIKELY(e == NULL)) return true;
    s->depth++;
    e->async.gen = 0;
    e->thread = this_thread();
    e->known = ops_scope_none_();
    e->unrecorded = false;
    trace_settle();
    if (LIKELY(!OPS_ON_())) {
        if (UNLIKELY(OPS_STATE_() != 0) && !async) {
            ops_begin_off_();
            e->unrecorded = true;
        }
        return true;
    }
    uint32_t id = name_of(s);
    if (async || in_event_loop()) {
        e->async = ops_async_begin_(id);
    } else {
        e->known = ops_begin_known_(id);
        if (UNLIKELY(s->args != NULL)) return put_args(s);
    }
    return true;
}

/* Returns the entry that is to be left, of several: the last one of this thread,
 * since threads that are inside of one scope leave it in any order. Of one that
 * was entered elsewhere (by a generator that went on here) it is the last of
 * all. It becomes the last one. */
static struct entry *own_entry(struct scope *s) {
    uint64_t here = this_thread();
    unsigned last = s->depth - 1, i = last;
    while (i > 0 && entry_at(s, i)->thread != here) i--;
    if (entry_at(s, i)->thread != here) i = last;
    struct entry own = *entry_at(s, i);
    for (; i < last; i++) *entry_at(s, i) = *entry_at(s, i + 1);
    *entry_at(s, last) = own;
    return entry_at(s, last);
}

static void scope_leave(struct scope *s) {
    if (s->depth == 0) return; /* left more often than entered */
    struct entry *e = LIKELY(s->depth == 1) ? entry_at(s, 0) : own_entry(s);
    s->depth--;
    if (UNLIKELY(e->async.gen != 0)) {
        ops_async_end(&e->async);
        return;
    }
    /* it is not to be found on another thread: a generator went on there, or was
     * dropped there */
    if (OPS_STATE_() == 0 || e->thread != this_thread()) return;
    trace_settle();
    if (LIKELY(e->known.which != 0)) ops_end_known_(e->known, true);
    else if (e->unrecorded) ops_end_();
    trace_settle();
}

static PyObject *enter(PyObject *self, PyObject *none) {
    (void)none;
    if (UNLIKELY(!scope_enter((struct scope *)self, false))) {
        scope_leave((struct scope *)self);
        return NULL;
    }
    Py_INCREF(self);
    return self;
}

static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args, (void)n;
    scope_leave((struct scope *)self);
    Py_RETURN_NONE;
}

/* Returns an awaitable that is done at once. */
static PyObject *done(PyObject *value) {
    static PyObject *make;
    if (make == NULL) {
        PyObject *m = PyImport_ImportModule("opscope._decorate");
        make = m ? PyObject_GetAttrString(m, "done") : NULL;
        Py_XDECREF(m);
    }
    if (make == NULL) return NULL;
    return PyObject_CallFunctionObjArgs(make, value, NULL);
}

static PyObject *async_enter(PyObject *self, PyObject *none) {
    (void)none;
    scope_enter((struct scope *)self, true);
    return done(self);
}

static PyObject *async_leave(PyObject *self, PyObject *const *args,
                             Py_ssize_t n) {
    (void)args, (void)n;
    scope_leave((struct scope *)self);
    return done(Py_None);
}

/* Decorates a function. */
static PyObject *decorate(PyObject *self, PyObject *args, PyObject *names) {
    PyObject *function;
    static char *known[] = {"function", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, names, "O:scope", known, &function))
        return NULL;
    PyObject *m = PyImport_ImportModule("opscope._decorate");
    if (m == NULL) return NULL;
    PyObject *out = PyObject_CallMethod(m, "decorated", "OO", self, function);
    Py_DECREF(m);
    return out;
}

static PyObject *again(PyObject *self, PyObject *none) {
    struct scope *s = (struct scope *)self;
    PyObject *type = (PyObject *)Py_TYPE(self);
    (void)none;
    if (s->name == NULL) {
        PyErr_SetString(PyExc_TypeError, "the scope has no name");
        return NULL;
    }
    PyObject *args = Py_BuildValue("(Oi)", s->name, s->kind);
    PyObject *new = args ? PyObject_Call(type, args, s->args) : NULL;
    Py_XDECREF(args);
    return new;
}

/* Takes what was given by that name out of the arguments. Returns it, borrowed
 * from `names`; NULL if there is none, or with an exception. */
static PyObject *taken(PyObject *rest, PyObject *names, const char *name) {
    PyObject *given = rest ? PyDict_GetItemString(names, name) : NULL;
    if (given == NULL || PyDict_DelItemString(rest, name) != 0) return NULL;
    return given;
}

static int init(PyObject *self, PyObject *args, PyObject *names) {
    struct scope *s = (struct scope *)self;
    PyObject *name = NULL, *kind = NULL, *rest = NULL;
    int number = 0;
    if (!PyArg_ParseTuple(args, "|UO:scope", &name, &kind)) return -1;
    if (names != NULL && PyDict_Size(names) > 0 &&
        (rest = PyDict_Copy(names)) == NULL)
        return -1;
    if (name == NULL) name = taken(rest, names, "name");
    if (kind == NULL) kind = taken(rest, names, "kind");
    if (!PyErr_Occurred() && (name == NULL || !PyUnicode_Check(name)))
        PyErr_SetString(PyExc_TypeError, "a scope has a name, a text (str)");
    else if (kind != NULL) number = record_kind(kind);
    if (PyErr_Occurred()) {
        Py_XDECREF(rest);
        return -1;
    }
    PyObject *old[] = {s->name, s->args};
    Py_INCREF(name);
    s->name = name;
    s->args = rest;
    s->kind = number;
    s->id = 0;
    Py_XDECREF(old[0]);
    Py_XDECREF(old[1]);
    return 0;
}

static int visit_all(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct scope *)self)->args); /* may hold whom it describes */
    return 0;
}

static int clear(PyObject *self) {
    Py_CLEAR(((struct scope *)self)->args);
    return 0;
}

static void drop(PyObject *self) {
    struct scope *s = (struct scope *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    while (s->depth > 0) scope_leave(s); /* of a generator that was dropped */
    Py_XDECREF(s->name);
    Py_XDECREF(s->args);
    PyMem_Free(s->more);
    freefunc f = (freefunc)PyType_GetSlot(type, Py_tp_free);
    f(self);
    Py_DECREF(type);
}

static PyObject *scope_repr(PyObject *self) {
    PyObject *name = ((struct scope *)self)->name;
    return PyUnicode_FromFormat("opscope.scope(%R)", name ? name : Py_None);
}

PyDoc_STRVAR(scope_doc,
             "scope(name, kind=0, **args)\n--\n\n"
             "A region of the program: `with opscope.scope('forward'):`, "
             "`async with`,\nor a decorator of a function, a coroutine or a "
             "generator. kind: 'op', 'input',\n'comm', 'copy', 'wait', "
             "'phase'. args are shown with it.");

static PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(leave), METH_FASTCALL, NULL},
    {"__aenter__", async_enter, METH_NOARGS, NULL},
    {"__aexit__", METHOD(async_leave), METH_FASTCALL, NULL},
    {"_again", again, METH_NOARGS, "Another scope of the same name."},
    {0},
};

/* A span without a block, for who must begin and end it in different
 * functions: the handle is a bytes object. */
PyDoc_STRVAR(async_begin_doc,
             "async_begin(name, kind=0, /)\n--\n\n"
             "Begins a span that async_end() of what this returns ends.");
static PyObject *async_begin(PyObject *self, PyObject *args) {
    PyObject *name, *kind = NULL;
    int k = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "U|O:async_begin", &name, &kind)) return NULL;
    if (kind != NULL && (k = record_kind(kind)) < 0) return NULL;
    PyObject *text = native_utf8(name, "the name");
    if (text == NULL) return NULL;
    struct ops_async a = ops_async_none_();
    if (OPS_ON_())
        a = ops_async_begin_(ops_intern_(PyBytes_AsString(text), (uint32_t)k));
    Py_DECREF(text);
    return PyBytes_FromStringAndSize((const char *)&a, sizeof a);
}

PyDoc_STRVAR(async_end_doc, "async_end(handle, /)\n--\n\nEnds it.");
static PyObject *async_end(PyObject *self, PyObject *handle) {
    struct ops_async a;
    (void)self;
    if (!PyBytes_Check(handle) || PyBytes_Size(handle) != sizeof a) {
        PyErr_SetString(PyExc_TypeError, "that is no handle of async_begin()");
        return NULL;
    }
    memcpy(&a, PyBytes_AsString(handle), sizeof a);
    ops_async_end(&a);
    Py_RETURN_NONE;
}

/* --- opscope.scope() ------------------------------------------------------ */

/* Scopes of a name alone are kept and handed out again, so that `with
 * opscope.scope("x")` makes no object: several may be inside of one at once,
 * since all that it holds is how often. In an event loop each is its own. */
enum { KEPT_NAMES = 4096 };
static PyObject *scope_type, *kept; /* kept: name -> scope */

static PyObject *scope_new(PyObject *self, PyObject *const *args, Py_ssize_t n,
                           PyObject *names) {
    (void)self;
    bool plain = n == 1 && names == NULL && PyUnicode_Check(args[0]) &&
                 !(OPS_ON_() && in_event_loop());
    if (LIKELY(plain)) {
        PyObject *s = PyDict_GetItemWithError(kept, args[0]);
        if (LIKELY(s != NULL)) {
            Py_INCREF(s);
            return s;
        }
        if (PyErr_Occurred()) return NULL;
    }
    PyObject *given = PyTuple_New(n), *named = names ? PyDict_New() : NULL;
    bool ok = given != NULL && (names == NULL || named != NULL);
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        Py_INCREF(args[i]);
        ok = PyTuple_SetItem(given, i, args[i]) == 0;
    }
    for (Py_ssize_t i = 0; ok && names && i < PyTuple_Size(names); i++)
        ok = PyDict_SetItem(named, PyTuple_GetItem(names, i), args[n + i]) == 0;
    PyObject *s = ok ? PyObject_Call(scope_type, given, named) : NULL;
    Py_XDECREF(given);
    Py_XDECREF(named);
    if (s != NULL && plain && PyDict_Size(kept) < KEPT_NAMES &&
        PyDict_SetItem(kept, args[0], s) != 0)
        Py_CLEAR(s);
    return s;
}

PyMethodDef scope_methods[] = {
    {"scope", METHOD(scope_new), METH_FASTCALL | METH_KEYWORDS, scope_doc},
    {"async_begin", async_begin, METH_VARARGS, async_begin_doc},
    {"async_end", async_end, METH_O, async_end_doc},
    {0},
};

int scope_ready(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, (void *)scope_doc},
        {Py_tp_init, init},
        {Py_tp_dealloc, drop},
        {Py_tp_traverse, visit_all},
        {Py_tp_clear, clear},
        {Py_tp_methods, methods},
        {Py_tp_call, decorate},
        {Py_tp_repr, scope_repr},
        {0, NULL},
    };
    static PyType_Spec spec = {.name = "opscope.Scope",
                               .basicsize = sizeof(struct scope),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                               .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    kept = PyDict_New();
    if (type == NULL || kept == NULL) return -1;
    scope_type = type;
    Py_INCREF(type);
    if (PyModule_AddObject(module, "Scope", type) == 0) return 0;
    Py_DECREF(type);
    return -1;
}
