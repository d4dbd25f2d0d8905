# SPDX-License-Identifier: Apache-2.0
"""A traceback that Python prints is the program's own: what our hooks are
wrapped around shows up in it without them. A program that has a hook of its
own for exceptions keeps it."""

import os
import sys
import threading

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
    """Takes our frames out of an exception and of those behind it."""
    seen, left = set(), [error]
    while left:
        e = left.pop()
        if not isinstance(e, BaseException) or id(e) in seen:
            continue
        seen.add(id(e))
        e.__traceback__ = without_ours(e.__traceback__)
        left += [e.__cause__, e.__context__]
        left += getattr(e, "exceptions", ())    # of a group


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
