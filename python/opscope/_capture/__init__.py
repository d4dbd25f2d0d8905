# SPDX-License-Identifier: Apache-2.0
"""Tracing programs as they are: the engine of this process and its drivers.

A driver is one file, <framework>_driver.py with a class Driver, and a line in
DRIVERS."""

import atexit
import importlib
import os
import sys

from . import frames, keras_hook
from .core import Engine, Want, host_name
from .direct import Direct
from .window import Window

__all__ = ["Direct", "Engine", "Want", "engine", "hooked", "host_name",
           "begin", "finish",
           "Window"]

DRIVERS = {
    "torch": ".torch_driver",
    "tensorflow": ".tf_driver",
    "jax": ".jax_driver",
}

KERAS = ("keras", "tf_keras")

_engine = None
_drivers = {}   # by framework: attached once, their hooks stay
_told_of_forks = False  # is _forget() called in children?
_is_recorded = False    # by `opscope record`, not by a call of the program


def engine():
    """The engine of this process, or None."""
    return _engine


def begin(logdir, run, want):
    """Makes the engine, and attaches to the frameworks that are there."""
    global _engine
    from opscope import _opscope
    _engine = Engine(_opscope, logdir, run, want)
    _look_at_forks()
    for name in DRIVERS:
        module = sys.modules.get(name)
        if module is not None and getattr(
                getattr(module, "__spec__", None), "_initializing",
                False) is False:
            _attach(name, module)
    for name in KERAS:
        if name in sys.modules:
            keras_hook.watch(name, engine)
    return _engine


def _look_at_forks():
    global _told_of_forks
    if not _told_of_forks:
        _told_of_forks = True
        os.register_at_fork(after_in_child=_forget)


def _forget():
    """A child of fork() has nothing of its parent's engine. Under `opscope
    record` it gets one of its own, which does nothing before a first step: most
    children are workers and have none."""
    global _engine
    if _engine is None:
        return
    old, _engine = _engine, None
    old.forked()
    if _is_recorded and old.drivers:
        _engine = Engine(old.native, old.logdir, old.run, old.want)
        _engine.is_child = True
        _engine.drivers = list(old.drivers)
    for d in old.drivers:
        d.forked(_engine or old)


def _attach(name, module):
    """Gives the framework's driver to the engine. A driver attaches once in a
    process: its hooks stay, and tell whichever engine it has."""
    driver = _drivers.get(name)
    if driver is None:
        kind = importlib.import_module(DRIVERS[name], __name__)
        driver = _drivers[name] = kind.Driver(_engine)
        _engine.add_driver(driver, module)
    elif driver not in _engine.drivers:     # it may be imported once more
        driver.engine = _engine
        _engine.drivers.append(driver)


def hooked(module):
    """A framework was imported in a program under `opscope record`."""
    global _engine, _is_recorded
    if _engine is None:
        logdir, run = (os.environ.get("OPSCOPE_LOGDIR"),
                       os.environ.get("OPSCOPE_RUN"))
        if not logdir or not run:
            return
        from opscope import _opscope
        _engine = Engine(_opscope, logdir, run, Want.from_environment())
        _is_recorded = True
        frames.hide()
        _look_at_forks()
    if module.__name__ in KERAS:
        keras_hook.watch(module.__name__, engine)
        return
    _attach(module.__name__, module)
    # registered after the framework's own: it runs before they end
    atexit.unregister(finish)
    atexit.register(finish)


def finish():
    """Ends what is being traced. Returns the engine that did it, or None."""
    global _engine
    e, _engine = _engine, None
    if e is not None:
        e.end(at_exit=_is_recorded)
    return e
