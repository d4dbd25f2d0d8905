# SPDX-License-Identifier: Apache-2.0
"""Sessions of tf.compat.v1: every run of a graph, with TensorFlow's own
account of it (RunMetadata), which has the memory of each node, too.

RunMetadata of several runs, one behind the other, is one RunMetadata with the
devices of all of them: so each run is appended to the mark's file."""

import functools

SUFFIX = ".run_metadata.pb"


class SessionRuns:
    """on() to off(): each Session.run of the graph (of any, if that is None)
    is traced, and handed to take() as bytes."""

    def __init__(self, tf, graph, take):
        self.tf, self.graph, self.take = tf, graph, take
        self.seen = graph       # the graph that ran last
        self._cls = self._run = None

    def on(self):
        from tensorflow.python.client import session
        if self._cls is None:
            self._cls = session.BaseSession
            self._run = self._cls.run
            self._cls.run = self._hook(self._run)

    def off(self):
        if self._cls is not None:
            self._cls.run, self._cls = self._run, None

    def _hook(self, run):
        @functools.wraps(run)
        def traced(session, fetches, feed_dict=None, options=None,
                   run_metadata=None):
            if self.graph is not None and session.graph is not self.graph:
                return run(session, fetches, feed_dict, options, run_metadata)
            asked, told = self._asked(options), run_metadata
            if told is None:
                told = self.tf.compat.v1.RunMetadata()
            out = run(session, fetches, feed_dict, asked, told)
            try:
                self.seen = session.graph
                self.take(bytes_of(told))
            except Exception:       # the program's run is what counts
                pass
            return out
        return traced

    def _asked(self, options):
        """The program's options, with tracing on. More than the software's
        level would start the one tracer that there is, which a CPU has no
        use for and which fails where another one runs."""
        RunOptions = self.tf.compat.v1.RunOptions
        asked = RunOptions()
        if options is not None:
            asked.CopyFrom(options)
        level = RunOptions.FULL_TRACE if _has_gpu(self.tf) \
            else RunOptions.SOFTWARE_TRACE
        asked.trace_level = max(asked.trace_level, level)
        return asked


def _has_gpu(tf):
    try:
        return bool(tf.config.list_physical_devices("GPU"))
    except Exception:
        return False


def bytes_of(run_metadata):
    """The steps of a RunMetadata, without its graphs."""
    steps = type(run_metadata)()
    steps.step_stats.CopyFrom(run_metadata.step_stats)
    return steps.SerializeToString()
