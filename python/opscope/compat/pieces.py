# SPDX-License-Identifier: Apache-2.0
"""Recording, piece after piece: what lies between two marks is a file of its
own.

Of a program of TensorFlow 2 a piece is TensorFlow's own trace (the driver
switches its tracer off and on at a mark). Of a tf.compat.v1 graph it is what
TensorFlow tells of each Session.run, with the memory of every node.

Nothing here raises into the program: what does not work is a sentence that
the mark carries, and its memory is measured all the same."""

import os
import time

from opscope import _capture
from opscope._capture.tf_memory import uses_onednn

from . import memory
from .errors import Error
from .scopes import EagerScopes
from .sessions import SUFFIX, SessionRuns


class Pieces:
    """begin() a piece, end() it with what a Mark is made of."""

    def __init__(self, folder, tf, graph=None):
        self.folder, self.tf = folder, tf
        self.running, self.problems = False, []
        self.scopes = EagerScopes()
        self.runs = self._driver = None
        if not tf.executing_eagerly() or (
                graph is not None and not graph.building_function):
            self.runs = SessionRuns(tf, graph, self._take)
        self._part = os.path.join(folder, ".runs-%d" % os.getpid())
        self._began = self._began_unix = None
        self._taken = 0

    @property
    def is_empty(self):
        """Is it known that nothing ran since begin()?"""
        return self.runs is not None and not self._taken

    def problem(self, text):
        if text not in self.problems:
            self.problems.append(text)

    # --- tracing ------------------------------------------------------------

    def begin(self):
        """Starts to record; memory peaks count from here."""
        self.running = True
        memory.forget_peak()
        self._begin_runs() if self.runs is not None else self._begin_trace()
        self._began, self._began_unix = time.perf_counter(), time.time_ns()

    def _begin_trace(self):
        try:
            self._driver = _driver(self.folder, self.tf, self.problem)
            self._tell_engine("foreign", self._driver, "opscope.Profiler")
            self._driver.start(None)
        except Exception as e:
            self.problem("TensorFlow's tracer could not be switched on (%s): "
                         "no operation's time is in this mark. Only one "
                         "profiler can use it at a time: stop the other one"
                         % sentence(e))
            self._driver = None
            return
        self.scopes.on()

    def _begin_runs(self):
        self._taken = 0
        try:
            self.runs.on()
        except Exception as e:
            self.problem("the runs of sessions cannot be followed: %s" %
                         sentence(e))

    def _take(self, told):
        """An account of a run; the first makes the file anew."""
        with open(self._part, "ab" if self._taken else "wb") as f:
            f.write(told)
        self._taken += 1

    def step(self, number):
        """Step `number` begins: the trace gets a marker."""
        if self.running and self._driver is not None:
            try:
                self._driver.mark(number)
            except Exception as e:
                self.problem("step %s could not be marked: %s" %
                             (number, sentence(e)))

    # --- marks ---------------------------------------------------------------

    def end(self, stem):
        """Ends the piece and measures. The fields of a Mark."""
        seconds = time.perf_counter() - self._began
        told = {"process": memory.process(),
                "allocators": memory.allocators(self.tf),
                "whole": not uses_onednn()}
        files, source = self._close(os.path.join(self.folder, stem))
        out = dict(files=files, seconds=seconds, memory=told, source=source,
                   scopes=self.scopes.names() if source == "trace" else [],
                   began_unix_ns=self._began_unix, live=self._live(),
                   problems=self.problems)
        self.problems = []
        memory.forget_allocator_peaks(self.tf, told["allocators"])
        return out

    def drop(self):
        """Ends a piece that is empty."""
        self.running = False
        self.runs.off()

    def _close(self, stem):
        """Stops recording. The files written, and what they are."""
        self.running = False
        if self.runs is not None:
            self.runs.off()
            return self._close_runs(_free(stem, SUFFIX))
        self.scopes.off()
        if self._driver is None:
            return [], "none"
        try:
            self._driver.unmark()
            files = self._driver.stop(_free(stem, ".xplane.pb"))
        except Exception as e:
            self.problem("TensorFlow's trace could not be written: %s" %
                         sentence(e))
            return [], "none"
        for path in files:
            self._tell_engine("adopt", path)
        return files, "trace"

    def _close_runs(self, stem):
        if not self._taken:
            self.problem("no Session.run of %s came before the mark" % (
                "this graph" if self.runs.graph is not None else "a graph"))
            return [], "none"
        try:
            os.replace(self._part, stem + SUFFIX)
        except OSError as e:
            self.problem("the account of the runs could not be written: %s" %
                         sentence(e))
            return [], "none"
        return [stem + SUFFIX], "run_metadata"

    def _live(self):
        try:
            return memory.live()
        except Exception as e:
            self.problem("live tensors could not be counted: %s" %
                         sentence(e))
            return []

    def _tell_engine(self, what, *args):
        """Under `opscope record` its engine steps back, and takes the
        files."""
        engine = _capture.engine()
        if engine is not None:
            try:
                getattr(engine, what)(*args)
            except Exception as e:
                self.problem(sentence(e))


def tensorflow():
    """The module."""
    try:
        import tensorflow as tf
        return tf
    except Exception as e:
        raise Error("opscope.Profiler records TensorFlow programs, and "
                    "TensorFlow cannot be imported (%s): pip install "
                    "tensorflow. Saved profiles are read without it"
                    % sentence(e)) from None


def _driver(folder, tf, problem):
    """The driver of `opscope record`, without its engine."""
    from opscope._capture.tf_driver import Driver
    direct = _capture.Direct(folder, _capture.Want(memory=True,
                                                   everything=True))
    direct.problem = problem
    driver = Driver(direct)
    driver.tf = tf
    return driver


def _free(stem, suffix):
    """A stem that no file has yet."""
    n, out = 1, stem
    while os.path.exists(out + suffix):
        n += 1
        out = "%s-%d" % (stem, n)
    return out


def sentence(e):
    """The first line of an exception's text."""
    text = str(e).strip().splitlines()
    return text[0] if text else type(e).__name__
