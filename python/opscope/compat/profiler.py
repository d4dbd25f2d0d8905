# SPDX-License-Identifier: Apache-2.0
"""The Profiler: records between start() and stop(), piece by piece, and gives
the results of what it recorded, or of what was loaded."""

import atexit
import copy
import operator
import os
import re
import sys
import tempfile
import threading
import warnings

from opscope._capture import engine, host_name
from opscope.recording import _new_run, tell_steps

from . import compare as _compare
from . import modeled, models, results, saved, sessions
from .errors import Error
from .marks import Mark
from .options import ProfileOptions, options_of
from .output import put_out
from .pieces import Pieces, sentence, tensorflow

_active = None      # the Profiler that records


def active():
    """The Profiler that records, or None."""
    return _active


def _is_graph(what):
    return hasattr(what, "get_operations") and hasattr(what, "as_graph_def")


class Profiler:
    """Records between start() and stop(), with a mark at each profile().

    log_dir: where the captures go, or a tf.compat.v1 graph: then what
    sessions run of it is recorded, or what add_step() is told. A program that
    has eager execution off needs no graph: all sessions are followed. With a
    graph and no log_dir captures go when the profiler does: save() them."""

    def __init__(self, log_dir=None, op_log=None, *, graph=None):
        if _is_graph(log_dir):
            if graph is not None:
                raise Error("Profiler: the graph is given twice")
            log_dir, graph = None, log_dir
        if log_dir is not None and not isinstance(log_dir, (str,
                                                            os.PathLike)):
            raise Error("Profiler: log_dir is a folder's name, or a graph, "
                        "not %r" % (log_dir,))
        if graph is not None and not _is_graph(graph):
            raise Error("Profiler: graph is a tf.Graph, such as sess.graph, "
                        "not %r" % (graph,))
        self._passing = None    # a folder that goes with the profiler
        if log_dir is None and graph is not None:
            self._passing = tempfile.TemporaryDirectory(prefix="opscope-")
            log_dir = self._passing.name
        self.log_dir = os.path.abspath(os.fspath(log_dir or "logs"))
        self.graph, self.folder, self.marks = graph, None, []
        self._remarks = [] if op_log is None else [
            "op_log is not used: types and FLOPs are TensorFlow's own."]
        self._known = None      # of a saved profile: {"nodes", "variables"}
        self._model = None
        self._pieces = None
        self._step, self._calls = None, 0
        self._pid = os.getpid()
        self._lock = threading.RLock()

    # --- recording --------------------------------------------------------

    @property
    def is_running(self):
        return self._pieces is not None and self._pieces.running

    def start(self):
        """Starts to record. Returns the profiler."""
        global _active
        with self._lock:
            if self.is_running:
                return self
            tf = tensorflow()
            if self._known is not None:     # what was loaded is not ours
                self.marks, self._known, self.folder = [], None, None
            self._pieces = Pieces(self._run_folder(), tf, self.graph)
            self._pieces.begin()
            _active = self
            tell_steps(self.step)
            atexit.register(self.stop)
        return self

    def stop(self, name=None):
        """Ends recording; what came since the last mark is a mark, too.
        Returns the folder with the captures."""
        global _active
        name = _name(name)
        with self._lock:
            if self.is_running and os.getpid() == self._pid:
                if self.marks and self._pieces.is_empty:
                    self._pieces.drop()
                else:
                    self._mark(None, name or ("end" if self.marks else "all"))
                atexit.unregister(self.stop)
            if _active is self:
                _active = None
                tell_steps(None)
        return self.folder

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()
        return False

    def _run_folder(self):
        if self.folder is None:
            try:
                self.folder = os.path.join(self.log_dir, "plugins", "profile",
                                           _new_run(self.log_dir))
            except OSError as e:
                raise Error("%s: %s" % (self.log_dir, e.strerror)) from None
        return self.folder

    def step(self, number):
        """Says that step `number` begins: the trace has it, and the next
        mark. opscope.step() says it, too."""
        self._step = _step_number(number)
        if self.is_running:
            self._pieces.step(self._step)

    # --- marks ------------------------------------------------------------

    def profile(self, options=None, step=None, name=None):
        """A mark now: time and memory since the last one, or since start().

        The step is `step`, options["step"], or what step() said. With
        options["profile_steps"] all other steps are passed over; if no step
        is known they are counted by the calls of this. Returns the Mark, or
        None for a step that was passed over."""
        o, name = options_of(options), _name(name)
        with self._lock:
            self._calls += 1
            step = self._step_of(step, o)
            if o["profile_steps"] and step not in o["profile_steps"]:
                if not self.is_running:
                    self.start()
                return None
            if not self.is_running:
                self.start()
                self._pieces.problem("start() was not called before: nothing "
                                     "of the time until then is recorded")
            mark = self._mark(step, name)
            self._pieces.begin()
        if o["output"] != "none":
            put_out(results.operations([mark], self._nodes(),
                                       _without_step(o)), [mark], o)
        return mark

    def _step_of(self, step, o):
        if step is not None:
            return _step_number(step)
        if o["step"] != -1:
            return o["step"]
        if self._step is None and engine() is not None and engine().step:
            return engine().step
        if self._step is None and o["profile_steps"]:
            return self._calls
        return self._step

    def _mark(self, step, name):
        """Ends the piece that runs: the Mark of it."""
        index = len(self.marks) + 1
        mark = Mark(index, step=step, name=name)
        stem = "%s_%d.%s" % (host_name(), self._pid, re.sub(
            r"[^A-Za-z0-9_-]", "_", mark.key))
        mark = Mark(index, step=step, name=name, **self._pieces.end(stem))
        if mark.source == "none":
            self._warn(mark.problems)
        self.marks.append(mark)
        return mark

    @staticmethod
    def _warn(problems):
        """Says what is missing at once, on stderr."""
        try:
            for text in problems:
                warnings.warn("opscope: " + text, RuntimeWarning,
                              stacklevel=4)
        except Warning:     # a program that makes errors of warnings
            pass

    def add_step(self, step, run_meta):
        """A mark of what a Session.run told: its RunMetadata."""
        if not hasattr(run_meta, "step_stats"):
            raise Error("add_step: run_meta is a tf.compat.v1.RunMetadata "
                        "that a Session.run filled, not %r" % (run_meta,))
        step = _step_number(step)
        if not run_meta.step_stats.dev_stats:
            raise Error("add_step: the RunMetadata is empty: give "
                        "Session.run(..., options=tf.compat.v1.RunOptions("
                        "trace_level=tf.compat.v1.RunOptions.FULL_TRACE), "
                        "run_metadata=run_meta)")
        with self._lock:
            index = len(self.marks) + 1
            path = os.path.join(self._run_folder(), "%s_%d.step%d-%d%s" % (
                host_name(), self._pid, step, index, sessions.SUFFIX))
            try:
                with open(path, "wb") as f:
                    f.write(sessions.bytes_of(run_meta))
            except OSError as e:
                raise Error("%s: %s" % (path, e.strerror)) from None
            mark = Mark(index, step=step, files=[path], source="run_metadata")
            self.marks.append(mark)
        return mark

    # --- what is known without a run --------------------------------------

    def _graph(self):
        """The graph of sessions: given, or the one that ran last."""
        if self.graph is None and self._pieces is not None and \
                self._pieces.runs is not None:
            return self._pieces.runs.seen
        return self.graph

    def _look(self):
        """{"nodes", "variables"}: of what was loaded, or as they are now. A
        program that has not imported TensorFlow has none."""
        if self._known is not None:
            return self._known
        tf = sys.modules.get("tensorflow")
        if tf is None:
            return _unknown("TensorFlow is not imported")
        try:
            graph = self._graph()
            if self._model is not None:
                graphs = [models.model_graph(tf, self._model)]
            else:
                graphs = [graph] if graph is not None else models.functions()
            return {"nodes": [n for g in graphs if g is not None
                              for n in models.nodes(g)],
                    "variables": models.variables(tf, self._model, graph)}
        except Exception as e:
            return _unknown(sentence(e))

    def _nodes(self):
        return self._look()["nodes"]

    # --- results ----------------------------------------------------------

    def _result(self, make, options, looks=True):
        """A table: of the marks, what is known, and options."""
        o = options_of(options)
        known = self._look() if looks else {}
        t = make(known, o)
        if known.get("problem"):
            t.remark(known["problem"])
        t.remark(*self._remarks)
        return put_out(t, results.picked(self.marks, o), o)

    def profile_operations(self, options=None):
        """Time and memory of each type of operation."""
        return self._result(lambda known, o: results.operations(
            self.marks, known["nodes"], o), options)

    def profile_name_scope(self, options=None):
        """Time and memory of name scopes, each below the one around it; with
        trainable_variables_parameter() or float_operation() their parameters
        or FLOPs."""
        o = options_of(options)
        if modeled.is_asked(o):
            return self.profile_model(o)
        return self._result(lambda known, o: results.name_scopes(
            self.marks, o), o, looks=False)

    def profile_graph(self, options=None):
        """Nodes of the graph, with shapes and with what each took."""
        return self._result(lambda known, o: results.graph(
            self.marks, known["nodes"], o), options)

    def profile_python(self, options=None):
        """Lines of Python, with what the nodes that they made took."""
        return self._result(lambda known, o: results.python(
            self.marks, known["nodes"], o), options)

    def profile_model(self, options=None, model=None):
        """Parameters, bytes and FLOPs of a Keras model, of the graph, or of
        all variables that are alive, with the time of their scopes."""
        if model is not None:
            if not hasattr(model, "trainable_variables"):
                raise Error("profile_model: model is a Keras model, or "
                            "anything with trainable_variables, not %r" %
                            (model,))
            self._model = model
        return self._result(lambda known, o: modeled.model(
            self.marks, known["variables"], known["nodes"], o), options)

    def compare(self, options=None, by=None):
        """The marks side by side. by: memory, tensor, op or scope; all but
        scopes if it is not given."""
        return self._result(lambda known, o: _compare.compare(
            self.marks, o, by), options, looks=False)

    def advise(self, options=None):
        """opscope's hints on what was recorded. TensorFlow's names of
        checkers are accepted, and hints are not chosen by them."""
        return results.advice(self.marks, ProfileOptions())

    # --- files ------------------------------------------------------------

    def save(self, path):
        """Saves the marks into the folder `path`. Returns its name."""
        with self._lock:
            return saved.save(path, self.marks, self._look())

    def load_profile(self, path):
        """Takes the marks of a saved profile in place of its own; any other
        profile that opscope reads is one mark. Returns the profiler."""
        with self._lock:
            if self.is_running:
                raise Error("load_profile: stop() the recording first")
            marks, known = saved.load(path)
            self.marks, self._known = marks, known
            self._model, self._pieces = None, None
        return self

    def profile_and_save(self, path, name=None, options=None):
        """A mark of that name now, and save(); after stop() there is nothing
        to mark, and what was recorded is saved. Returns the folder's name."""
        if self.is_running or not self.marks:
            self.profile(options, name=name)
        return self.save(path)

    def __repr__(self):
        return "<opscope.Profiler of %s: %s>" % (self.log_dir, ", ".join(
            m.key for m in self.marks) or "no marks")


def _unknown(why):
    return {"nodes": [], "variables": [],
            "problem": "Graphs and variables are not known: %s." % why}


def _step_number(step):
    try:
        return operator.index(step)
    except TypeError:
        raise Error("step is the number of a step, not %r" %
                    (step,)) from None


def _name(name):
    if name is not None and not isinstance(name, str):
        raise Error("name is a text that marks are called by, not %r" %
                    (name,))
    return name


def _without_step(o):
    """The options for the one mark that was just made."""
    o = copy.copy(o)
    o.update(step=-1, profile_steps=None)
    return o
