# SPDX-License-Identifier: Apache-2.0
"""Recording this process: profile, start, stop, step and their neighbours.

A program under `opscope record` is set up already: then start() and stop() leave
things as they are, and step() says where its steps begin."""

import contextlib
import functools
import inspect
import operator
import os
import threading
import time

from . import _capture, _opscope
from ._analyses import Analyses, option_text

__all__ = ["profile", "start", "stop", "step", "step_end", "epoch", "scalar",
           "counter", "instant"]

counter = _opscope.counter
scalar = _opscope.scalar
instant = _opscope.instant
epoch = _opscope.epoch

_folder = None      # of the recording that start() began
_lock = threading.RLock()   # start() and stop() of several threads
_told = None        # what else is told of steps: an opscope.Profiler's step


def _forked():
    """A child of fork() records nothing of its parent's, and may start its
    own."""
    global _folder, _lock
    _folder = None
    _lock = threading.RLock()   # another thread of the parent may hold it


os.register_at_fork(after_in_child=_forked)


def _is_recorded():
    """Does the program run under `opscope record`? That says what and where
    to record."""
    return bool(os.environ.get("OPSCOPE") == "1"
                and os.environ.get("OPSCOPE_RUN"))


def _new_run(logdir):
    """A run's name that nobody has: TensorBoard's form of the time."""
    name = time.strftime("%Y_%m_%d_%H_%M_%S")
    base = os.path.join(logdir, "plugins", "profile")
    for k in range(1, 1000):
        run = name if k == 1 else "%s-%d" % (name, k)
        try:
            os.makedirs(os.path.join(base, run))
            return run
        except FileExistsError:
            continue
    raise _opscope.Error("%s: no free name for a run" % base)


def start(logdir="logs", *, steps=None, memory=False, shapes=False,
          stacks=False, run=None):
    """Starts recording into logdir/plugins/profile/<run>.

    Frameworks that are imported, now or later, are traced: from now on until
    stop(), or, with steps ("100..102", "1,10,100", "every 500"), in these
    steps. memory, shapes and stacks ask their tracers for more."""
    if _is_recorded():
        if _capture.engine() is None:
            _opscope.start(logdir)  # the environment says where to
        return None
    if steps is not None:
        steps = option_text(steps)
        try:
            _capture.Window(steps)
        except ValueError as e:
            raise _opscope.Error("steps=%s" % e) from None
    want = _capture.Want(steps, 0.0, memory, shapes, stacks,
                         everything=steps is None)
    with _lock:
        return _start(os.path.abspath(os.fsdecode(logdir)), run, want)


def _start(logdir, run, want):
    global _folder
    if _folder is not None:
        raise _opscope.Error("a recording into %s is going on: stop() it "
                             "first" % _folder)
    try:
        os.makedirs(logdir, exist_ok=True)
        run = run or _new_run(logdir)
    except OSError as e:
        raise _opscope.Error("%s: %s" % (logdir, e.strerror)) from None
    engine = _capture.begin(logdir, run, want)
    engine._start_recorder()
    problem = _opscope.problem()
    if not _opscope.recording() and problem:
        _capture.finish()
        raise _opscope.Error(problem)
    _folder = engine.folder
    if want.everything:
        engine.open_now()
    return _folder


def stop():
    """Ends the recording that start() began. Returns the run's folder, or
    None if there was none."""
    global _folder
    with _lock:
        if _folder is None:
            return None
        folder, _folder = _folder, None
        _capture.finish()
        return folder


def is_on(folder):
    """Is this the recording that goes on?"""
    return folder is not None and folder == _folder


def step(number):
    """Says that step `number` begins; the one before it ends."""
    number = operator.index(number)
    if _told is not None:
        _told(number)
    engine = _capture.engine()
    if engine is not None:
        engine.explicit(number)
        return
    if _is_recorded() and not _opscope.started():
        start()
    _opscope.step(number)


def tell_steps(told):
    """Has step() call this as well, or nothing for None."""
    global _told
    _told = told


def step_end():
    """Says that the step is over, before something that belongs to none."""
    engine = _capture.engine()
    if engine is not None:
        engine.explicit_end()
    else:
        _opscope.step_end()


class profile(Analyses):
    """Records a block, or a function that it decorates:

        with opscope.profile("logs", steps="100..102") as prof:
            train()
        print(prof.overview())

    After the block, prof.folder is the run's folder, and every analysis is a
    method."""

    def __init__(self, logdir="logs", *, steps=None, memory=False,
                 shapes=False, stacks=False, run=None):
        self.logdir = logdir
        self.options = {"steps": steps, "memory": memory, "shapes": shapes,
                        "stacks": stacks, "run": run}
        self.folder = None
        self.problems = []
        self._opened = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()
        return False

    def start(self):
        self._opened = None
        self.folder = start(self.logdir, **self.options)
        self._engine = _capture.engine()
        return self

    def stop(self):
        if is_on(self.folder):
            stop()
            self.problems = list(self._engine.problems)
        return self.folder

    def step(self, number=None):
        """Says that a step begins: the number given, or the next one."""
        if number is None:
            engine = _capture.engine()
            number = (engine.step if engine else 0) + 1
        step(number)

    @contextlib.contextmanager
    def _once(self):
        """One call of what it decorates."""
        p = profile(self.logdir, **self.options)
        try:
            with p:
                yield
        finally:
            self.folder, self.problems = p.folder, p.problems
            self._opened = None

    def __call__(self, function):
        if inspect.isgeneratorfunction(function) \
                or inspect.isasyncgenfunction(function):
            raise _opscope.Error(
                "profile decorates functions and coroutines: a generator runs "
                "only while somebody asks it; profile who does")
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def inner(*args, **kwargs):
                with self._once():
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def inner(*args, **kwargs):
                with self._once():
                    return function(*args, **kwargs)
        return inner

    def open(self):
        """What was recorded, as opscope.open() gives it. In a program under
        `opscope record` that is the whole run so far."""
        from .reading import open as open_profile
        if self.folder is None and _is_recorded():
            _opscope.flush()
            return open_profile(os.path.join(
                os.environ["OPSCOPE_LOGDIR"], "plugins", "profile",
                os.environ["OPSCOPE_RUN"]))
        if self.folder is None:
            raise _opscope.Error("nothing was recorded yet")
        if self._opened is None:
            self._opened = open_profile(self.folder)
        return self._opened

    def run(self, analysis, **options):
        """Runs an analysis by its name on what was recorded."""
        return self.open().run(analysis, **options)

    def __getattr__(self, name):
        """What a profile that was opened has. Asking for anything else opens
        none, and raises what hasattr() expects."""
        from .reading import Profile
        if name.startswith("_") or not (hasattr(Profile, name)
                                        or name == "paths"):
            raise AttributeError("%s has no '%s'" % (
                type(self).__name__, name))
        return getattr(self.open(), name)
