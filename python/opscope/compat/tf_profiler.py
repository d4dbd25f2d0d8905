# SPDX-License-Identifier: Apache-2.0
"""The calls that tutorials on TensorFlow's profiler show.

    prof = opscope.Profiler("logs")
    options = opscope.ProfileOptionBuilder.time_and_memory()
    prof.start()
    for step in range(1, 101):
        train(step)
        if step in (1, 10, 100):
            prof.profile(options, step=step)    # a mark
    prof.stop()
    print(prof.profile_operations(options), prof.compare())
    prof.save("p")

The forms of tf.compat.v1.profiler work as well: Profiler(sess.graph) with
add_step(step, run_metadata), profile(graph, run_meta=...), advise(graph)."""

import contextlib

from .errors import Error, OptionError
from .options import ProfileOptionBuilder, ProfileOptions
from .pieces import tensorflow
from .profiler import Profiler, active

__all__ = ["Error", "OptionError", "ProfileOptionBuilder", "ProfileOptions",
           "Profiler", "advise", "profile"]


class _Block(contextlib.ContextDecorator):
    """profile("train"): a block, or a function that it decorates. In a
    program whose Profiler records it is a mark of that one."""

    def __init__(self, name, log_dir):
        self.name, self.log_dir, self.profiler = name, log_dir, None
        self._is_own = False

    def _recreate_cm(self):
        return _Block(self.name, self.log_dir)

    def __enter__(self):
        running = active()
        self._is_own = running is None
        self.profiler = running or Profiler(self.log_dir)
        if self._is_own:
            self.profiler.start()
        else:
            self.profiler.profile(name="before " + self.name)
        return self.profiler

    def __exit__(self, *exc):
        if self._is_own:
            self.profiler.stop(self.name)
        elif self.profiler.is_running:
            self.profiler.profile(name=self.name)
        return False


COMMANDS = {"scope": "profile_name_scope", "op": "profile_operations",
            "graph": "profile_graph", "code": "profile_python"}


def profile(graph=None, run_meta=None, op_log=None, cmd="scope",
            options=None, *, log_dir="logs"):
    """with profile("train") as prof: records a block, as a mark of that name,
    into log_dir.

    profile(graph, run_meta=..., cmd="scope", options=...) is that of
    tf.compat.v1.profiler: the result of a graph and of one run of it. cmd is
    scope, op, graph or code."""
    if isinstance(graph, str):
        if (run_meta, op_log, cmd, options) != (None, None, "scope", None):
            raise Error("profile(%r) is a block: options are given to its "
                        "results, such as prof.profile_operations(options)"
                        % graph)
        return _Block(graph, log_dir)
    if cmd not in COMMANDS:
        raise Error("profile: cmd is one of %s, not %r" %
                    (", ".join(COMMANDS), cmd))
    return getattr(_of_run(graph, run_meta, op_log), COMMANDS[cmd])(options)


def advise(graph=None, run_meta=None, options=None):
    """opscope's hints on one run of a graph."""
    return _of_run(graph, run_meta, None).advise(options)


def _of_run(graph, run_meta, op_log):
    """A Profiler of a graph, or of the default one, and of one run."""
    if graph is None:
        graph = tensorflow().compat.v1.get_default_graph()
    prof = Profiler(op_log=op_log, graph=graph)
    if run_meta is not None:
        prof.add_step(0, run_meta)
    return prof
