# SPDX-License-Identifier: Apache-2.0
"""A traceback that Python prints is the program's own: what our hooks are
wrapped around shows up in it without them. A program that has a hook of its
own for exceptions keeps it. So is a trace of Python functions: its readers are
told which frames are ours."""

import os
import sys
import threading
import types

LISTED = "opscope: frames of its own"   # as src/base/facts.h has it

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _is_ours(trace):
    return trace.tb_frame.f_code.co_filename.startswith(HERE)


def without_ours(trace):
    """The traceback without our frames."""
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    at = trace
    while at is not None:
        following = at.tb_next
        while following is not None and _is_ours(following):
            following = following.tb_next
        if following is not at.tb_next:
            at.tb_next = following
        at = following
    return trace


def clean(error):
    """Takes our frames out of an exception and of those behind it. Where that
    cannot be done they stay."""
    try:
        _clean(error)
    except Exception:
        pass


def _clean(error):
    seen, left = set(), [error]
    while left:
        e = left.pop()
        if not isinstance(e, BaseException) or id(e) in seen:
            continue
        seen.add(id(e))
        # not by its attribute: a class may refuse to have one set
        BaseException.with_traceback(e, without_ours(e.__traceback__))
        left += [e.__cause__, e.__context__]
        group = getattr(e, "exceptions", None)
        if isinstance(group, tuple):
            left += group


def hide():
    """Has uncaught exceptions printed so, in all threads."""
    plain, plain_thread = sys.__excepthook__, threading.excepthook

    def excepthook(kind, error, trace):
        clean(error)
        plain(kind, error, getattr(error, "__traceback__", trace))

    def thread_excepthook(args):
        clean(args.exc_value)
        plain_thread(threading.ExceptHookArgs((
            args.exc_type, args.exc_value,
            getattr(args.exc_value, "__traceback__", args.exc_traceback),
            args.thread)))
    if sys.excepthook is plain:
        sys.excepthook = excepthook
    if plain_thread is getattr(threading, "__excepthook__", plain_thread):
        threading.excepthook = thread_excepthook


def names():
    """Our frames as JAX's tracer spells them, "$file.py:12 function", with '|'
    between them: it leaves out the folder, by which others tell them."""
    found = set()
    for name, module in list(sys.modules.items()):
        if not getattr(module, "__file__", None) or not \
                module.__file__.startswith(HERE):
            continue
        found.update("$%s:%d %s" % (os.path.basename(code.co_filename),
                                    code.co_firstlineno, code.co_name)
                     for code in _codes(module.__loader__.get_code(name)))
    return "|".join(sorted(found))


def _codes(code):
    """A code object and all that is defined inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
