# SPDX-License-Identifier: Apache-2.0
"""torch.profiler.profile under its own argument names, with what people miss in
it: a trace can be exported as often as one likes, and is kept in a run's folder
that every opscope command and TensorBoard find.

    with opscope.torch.profile(schedule=opscope.torch.schedule(
            wait=1, warmup=1, active=3), profile_memory=True) as prof:
        for batch in loader:
            train(batch)
            prof.step()
    print(prof.key_averages().table())
    prof.export_chrome_trace("trace.json")
    print(prof.open().hints())"""

import functools
import gzip
import os
import shutil

from . import _capture, recording
from ._capture import torch_driver
from ._opscope import Error

__all__ = ["profile", "schedule"]


def _torch():
    try:
        import torch
    except ImportError:
        raise Error("opscope.torch needs PyTorch: pip install torch") \
            from None
    return torch


def schedule(*args, **kwargs):
    """torch.profiler.schedule."""
    return _torch().profiler.schedule(*args, **kwargs)


def _check_activities(torch, given):
    """torch takes anything, and says what is wrong when it starts."""
    if given is None or isinstance(given, dict):
        return
    kind = torch.profiler.ProfilerActivity
    try:
        right = all(isinstance(a, kind) for a in given) and len(list(given))
    except TypeError:
        right = False
    if not right:
        raise Error("activities is a list such as "
                    "[torch.profiler.ProfilerActivity.CPU], not %r"
                    % (given,))


class profile:
    """Profiles a block, or a function that it decorates, by torch.profiler."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None,
                 record_shapes=False, profile_memory=False, with_stack=False,
                 with_flops=False, with_modules=False, logdir="logs",
                 run=None, **more):
        torch = _torch()
        if schedule is not None and not callable(schedule):
            raise Error("schedule is what opscope.torch.schedule(wait=..., "
                        "warmup=..., active=...) gives, or a function of the "
                        "step's number")
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise Error("on_trace_ready is a function of the profiler")
        _check_activities(torch, activities)
        try:
            self.logdir = os.path.abspath(os.fspath(logdir))
        except TypeError:
            raise Error("logdir is the path of a folder, not %r"
                        % (logdir,)) from None
        self._arguments = dict(
            activities=activities, schedule=schedule,
            on_trace_ready=on_trace_ready, record_shapes=record_shapes,
            profile_memory=profile_memory, with_stack=with_stack,
            with_flops=with_flops, with_modules=with_modules, logdir=logdir,
            run=run, **more)
        self.folder, self.paths = None, []
        self._run, self._told = run, on_trace_ready
        self._running = False
        try:
            self._inner = torch.profiler.profile(
                activities=activities, schedule=schedule,
                on_trace_ready=self._ready, record_shapes=record_shapes,
                profile_memory=profile_memory, with_stack=with_stack,
                with_flops=with_flops, with_modules=with_modules, **more)
        except (AssertionError, TypeError, ValueError) as e:
            raise Error("torch %s: %s" % (torch.__version__, e)) from None
        self._inner.opscope_writes = True   # what is exported is told in here

    # --- as torch's -----------------------------------------------------------

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            with profile(**self._arguments) as p:
                value = function(*args, **kwargs)
            self.folder, self.paths, self._inner = p.folder, p.paths, p._inner
            return value
        return inner

    def start(self):
        self._running = True
        self._inner.start()

    def stop(self):
        self._running = False
        self._inner.stop()

    def step(self):
        self._inner.step()

    def __getattr__(self, name):
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._inner, name)

    # --- what is kept ---------------------------------------------------------

    def _ready(self, inner):
        """torch has a trace: it is exported once, to a file of ours."""
        if self.folder is None:
            run = self._run or recording._new_run(self.logdir)
            self.folder = os.path.join(self.logdir, "plugins", "profile", run)
            os.makedirs(self.folder, exist_ok=True)
        stem = os.path.join(self.folder, "%s_%d.step%d" % (
            _capture.host_name(), os.getpid(), max(inner.step_num, 1)))
        path, k = stem + ".pt.trace.json.gz", 1
        while os.path.exists(path):
            k += 1
            path = "%s-%d.pt.trace.json.gz" % (stem, k)
        torch_driver.export(inner, path)
        self.paths.append(path)
        engine = _capture.engine()
        if engine is not None:      # `opscope record`, or a block around
            engine.adopt(path)
        if self._told is not None:
            self._told(self)

    def export_chrome_trace(self, path, **more):
        """Writes the last trace to path, .json or .json.gz, as often as one
        likes. What torch takes besides (its own handlers pass it on) is about
        how it is exported, which is done already."""
        if not self.paths:
            raise Error("no trace is there yet: the profiler %s"
                        % ("records until its schedule's active steps are "
                           "over, or stop()" if self._running
                           else "has recorded nothing"))
        path = os.fspath(path)
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        if path.endswith(".gz"):
            shutil.copyfile(self.paths[-1], path)
            return
        with gzip.open(self.paths[-1], "rb") as g, open(path, "wb") as f:
            shutil.copyfileobj(g, f, 1 << 20)

    def open(self):
        """What was recorded, as opscope.open() gives it."""
        from .reading import open as open_profile
        if not self.paths:
            raise Error("nothing was recorded yet")
        return open_profile(self.paths[-1] if len(self.paths) == 1
                            else self.paths)

    def overview(self):
        return self.open().overview()

    def hints(self):
        return self.open().hints()
