# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: steps by what is called from Python (functions, sessions,
iterators, optimizers; Keras has a file of its own), traces by its profiler's
session.

TensorFlow 2.21 takes no notice of python_tracer_level: the Python functions
that --stacks asks for are recorded by opscope's own recorder. Host memory is in
a trace as far as TensorFlow's allocator tells of it: tf_memory.py."""

import functools
import os
import shutil
import sys
import tempfile
import threading
import weakref

from . import files
from .calls import around, told_after, told_before, watch_parts
from .numbering import number_of
from .quiet import Quiet
from .tf_memory import HostMemory

HARDWARE_TRACE = 2      # of RunOptions.trace_level


class _Inside(threading.local):
    """Where a thread is: in a call that counts, and which; in a tape."""
    depth, key, tapes = 0, None, 0


class Driver:
    name = "tensorflow"
    is_unknown = False
    python_by_recorder = True

    def __init__(self, engine):
        self.engine = engine
        self.tf = None
        self._session = None
        self._folder = None
        self._marker = None
        self._ours = False
        self._inside = _Inside()
        self._train_ops = set()             # names, in graphs of version 1
        self._marking = False               # a marker is ours
        self._program_marks = None          # the program's last marker
        self._metadata = []                 # RunMetadata of traced runs
        self._tracing = False
        self._theirs = None                 # log folder of their profiler
        self._sizes = weakref.WeakKeyDictionary()   # of datasets, in batches
        self._memory = None
        self._warm = False
        self._of_parent = []    # of a parent's tracing, never to be ended

    def forked(self, engine):
        """In a child of fork(): what is traced is traced in the parent. Its
        session stays in reach: to end it here would be to wait for threads
        that are not."""
        self._of_parent += self._session, self._marker, self._memory
        self.engine = engine
        self._session = self._folder = self._marker = self._memory = None
        self._theirs = self._program_marks = None
        self._tracing, self._marking, self._metadata = False, False, []
        self._inside = _Inside()

    # --- steps --------------------------------------------------------------

    def attach(self, tf):
        self.tf = tf
        self._is_eager = getattr(tf, "executing_eagerly", lambda: False)
        watch_parts(self, tf, functions=self._watch_functions,
                    sessions=self._watch_sessions,
                    iterators=self._watch_iterators, tapes=self._watch_tapes,
                    optimizers=self._watch_v1_optimizers,
                    markers=self._watch_markers,
                    profiler=self._watch_profiler)

    def _enter(self, key, function, args, kwargs):
        """A call that may be a step: the outermost of its thread is."""
        inside = self._inside
        if inside.depth or inside.tapes or not self._is_eager():
            return None
        self.engine.begins("call", key)
        inside.depth, inside.key = 1, key
        return key, function, args, kwargs

    def _leave(self, key, error, value):
        self._inside.depth = 0
        self.engine.ended("call", key)

    def _watch_functions(self):
        from tensorflow.python.eager.polymorphic_function import \
            concrete_function, polymorphic_function
        self._watch_calls(polymorphic_function.Function)
        # a signature of a saved model, and what get_concrete_function gave
        self._watch_calls(concrete_function.ConcreteFunction)

    def _watch_calls(self, cls):
        inner = cls.__call__

        def before(args, kwargs):
            key = self.name, number_of(args[0])
            return self._enter(key, inner, args, kwargs)
        cls.__call__ = around(inner, before, self._leave)

    def _watch_sessions(self):
        from tensorflow.python.client import session
        inner = session.BaseSession.run

        def before(args, kwargs):
            return self._enter_run(inner, *args, **(kwargs or {}))
        session.BaseSession.run = around(inner, before, self._leave_run)

    def _enter_run(self, inner, session, fetches, feed_dict=None, options=None,
                   run_metadata=None):
        """A session's run: a call whose name is what is fetched. Inside of
        the window it is asked for its statistics, unless the program asks for
        its own."""
        inside = self._inside
        if inside.depth:
            return None
        names = _fetched(fetches)
        trained = tuple(n for n in names if n in self._train_ops)
        key = (self.name, trained or names, "runs of a session")
        self.engine.begins("call", key)
        if trained:
            self.engine.trains("call", key)
        hardware = getattr(options, "trace_level", 0) >= HARDWARE_TRACE
        if hardware:    # it starts the one tracer that there is
            self.engine.foreign(self, "RunOptions.trace_level")
        ours = self._tracing and options is None and run_metadata is None \
            and self._memory is not None and not self._memory.is_whole
        if ours:
            # more than this level would start that tracer again, and fail
            v1 = self.tf.compat.v1
            options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
            run_metadata = v1.RunMetadata()
        inside.depth, inside.key = 1, key
        return ((key, ours, hardware, run_metadata), inner,
                (session, fetches, feed_dict, options, run_metadata), None)

    def _leave_run(self, token, error, value):
        key, ours, hardware, metadata = token
        self._leave(key, error, value)
        if error is not None:
            return
        if ours:
            self._metadata.append((self.engine.step, metadata))
        elif hardware and metadata is not None:
            self._adopt_metadata(metadata)

    def _adopt_metadata(self, metadata):
        """Takes the statistics that the program asked for itself."""
        try:
            path = self.engine._free_name(max(self.engine.step, 1),
                                          ".run_metadata.pb")
            self.engine.paths.append(files.write_whole(
                path, metadata.SerializeToString()))
        except Exception as e:
            self.engine.problem("tensorflow: %s" % e)

    def _watch_iterators(self):
        from tensorflow.python.data.ops import iterator_ops
        from tensorflow.python.framework import errors
        self._over = (StopIteration, errors.OutOfRangeError)
        # next() and get_next() both come here
        self._watch_next(iterator_ops.OwnedIterator, "_next_internal")
        try:
            from tensorflow.python.distribute import input_lib
            self._watch_next(input_lib.DistributedIteratorBase, "__next__")
        except (ImportError, AttributeError):
            pass

    def _watch_next(self, cls, name):
        inner = getattr(cls, name)

        def before(args, kwargs):
            return self._enter_next(inner, args)
        setattr(cls, name, around(inner, before, self._leave_next))

    def _enter_next(self, inner, args):
        """A batch of a loop in Python. All iterators of a dataset count as
        one: an epoch makes a new one. The call behind the last batch begins
        no step. While TensorFlow traces, it tells itself of the wait."""
        inside, iterator = self._inside, args[0]
        if inside.depth or not self._is_eager():
            return None
        dataset = getattr(iterator, "_dataset", None)
        count = getattr(iterator, "_opscope_count", 0)
        key = self.name, id(iterator if dataset is None else dataset)
        if dataset is not None and self._size(dataset) == count:
            self.engine.ended("loader", key)
            return None
        self.engine.begins("loader", key)
        waits = not self._tracing
        if waits:
            self.engine.input_begins()
        inside.depth, inside.key = 1, None
        return (key, iterator, dataset, count, waits), inner, args, None

    def _leave_next(self, token, error, value):
        key, iterator, dataset, count, waits = token
        self._inside.depth = 0
        if waits:
            self.engine.input_ended()
        if error is None:
            iterator._opscope_count = count + 1
        elif issubclass(error, self._over):
            self.engine.withdraw("loader", key)
            if dataset is not None:
                self._sizes[dataset] = count

    def _size(self, dataset):
        """How many batches it has; a negative number where nobody knows. To
        ask is an op, which is no part of a trace."""
        size = self._sizes.get(dataset)
        if size is None and not self._tracing:
            try:
                size = int(dataset.cardinality())
            except Exception:
                size = -1
            self._sizes[dataset] = size
        return size

    def _watch_tapes(self):
        from tensorflow.python.eager import backprop
        cls = backprop.GradientTape
        cls.__enter__ = told_before(cls.__enter__, self._tape_begins)
        cls.__exit__ = told_before(cls.__exit__, self._tape_ends)

    def _tape_begins(self, tape):
        """A tape of a loop of one's own is its step, where nothing better is
        there; one in a function tells that it trains."""
        inside, e = self._inside, self.engine
        tape._opscope_key = None
        if inside.depth:
            e.trains("call", inside.key)
            return
        if inside.tapes or not self._is_eager():
            return
        if not e.step:
            e.ready(0)
        at = sys._getframe(2)
        key = (self.name, (at.f_code.co_filename, at.f_lineno),
               "gradient tapes")
        e.begins("call", key)
        e.trains("call", key)
        tape._opscope_key, inside.tapes = key, 1

    def _tape_ends(self, tape):
        key = getattr(tape, "_opscope_key", None)
        if key is not None:
            tape._opscope_key, self._inside.tapes = None, 0
            self.engine.ended("call", key)

    def _watch_v1_optimizers(self):
        cls = self.tf.compat.v1.train.Optimizer

        def applied(optimizer, value):
            if self._is_eager():
                self.engine.ended("optimizer", (self.name,
                                                number_of(optimizer)))
            elif getattr(value, "name", None):
                self._train_ops.add(value.name)
        cls.apply_gradients = told_after(cls.apply_gradients, applied)

    def _watch_markers(self):
        """A program that marks its steps for a profiler says what they are.
        Keras 2 marks batches, by a number that begins anew in each epoch: there
        the batches are the steps, and in our trace its marks are regions."""
        from tensorflow.python.profiler import trace
        cls = trace.Trace
        init = cls.__init__

        def is_theirs():
            lead = self.engine.lead
            return (self._theirs is None
                    and not (lead is not None and lead.kind == "batch"))

        def before(args, kwargs):
            if not kwargs or "step_num" not in kwargs or self._marking:
                return None
            if "epoch_num" in kwargs:
                return (None, init, args, _without_step(kwargs)) \
                    if self._tracing else None
            if is_theirs():
                self._program_marks = args[0]
                self.engine.explicit(int(kwargs["step_num"]))
            return None

        def ends(marker):
            if marker is self._program_marks:
                self.engine.explicit_end()
        cls.__init__ = around(init, before, None)
        cls.__exit__ = told_after(cls.__exit__, lambda m, _: ends(m))

    # --- the program's own profiler ---------------------------------------

    def _watch_profiler(self):
        from tensorflow.python.profiler import profiler_v2
        start, stop = profiler_v2.start, profiler_v2.stop
        driver = self

        @functools.wraps(start)
        def new_start(logdir, options=None):
            # Keras warms the profiler up with an empty folder
            before = driver._theirs
            if not driver._ours and logdir:
                driver._they_start(logdir)
            try:
                return start(logdir, options)
            except BaseException:
                driver._theirs = before     # what ran until now still does
                raise

        @functools.wraps(stop)
        def new_stop(save=True):
            is_saved = False
            try:
                value = stop(save)
                is_saved = save
                return value
            finally:
                driver._they_stopped(is_saved)
        profiler_v2.start, profiler_v2.stop = new_start, new_stop
        public = self.tf.profiler.experimental
        for name, new in (("start", new_start), ("stop", new_stop)):
            setattr(public, name, new)

    def _they_start(self, logdir):
        try:
            self._theirs = logdir
            self.engine.foreign(self, "tf.profiler")
        except Exception as e:
            self.engine.problem("tensorflow: %s" % e)

    def _they_stopped(self, is_saved):
        """Their profiler is off, also where its profile could not be
        written."""
        try:
            logdir, self._theirs = self._theirs, None
            if logdir and is_saved:
                path = files.newest_below(str(logdir), ".xplane.pb")
                if path:
                    self.engine.adopt(path)
            if logdir:
                self.engine.foreign_over(self)
        except Exception as e:
            self.engine.problem("tensorflow: %s" % e)

    # --- tracing --------------------------------------------------------------

    def prepare(self):
        """The first session of a process loads what it needs, on a machine
        with a GPU a second long."""
        from tensorflow.python.profiler.internal import _pywrap_profiler
        if not self._warm:
            self._warm = True
            with Quiet():
                _pywrap_profiler.ProfilerSession().start("", {})

    def start(self, step):
        from tensorflow.python.profiler.internal import _pywrap_profiler
        # what its own stop() gives is another format: it is exported to a
        # folder of ours, and the one file that counts is taken out
        os.makedirs(self.engine.folder, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix=".tf-", dir=self.engine.folder)
        session = _pywrap_profiler.ProfilerSession()
        if self.engine.want.memory:
            self._memory = HostMemory(self.tf)
        try:
            with Quiet():
                session.start(self._folder, {})
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._memory_over()
            raise
        self._session, self._metadata = session, []
        self._tracing = True

    def mark(self, step):
        self.unmark()
        if self._program_marks is not None:
            return
        self._marking = True
        try:
            self._marker = self.tf.profiler.experimental.Trace(
                "train", step_num=step, _r=1)
            self._marker.__enter__()
        finally:
            self._marking = False

    def unmark(self):
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.__exit__(None, None, None)

    def stop(self, stem):
        session, self._session = self._session, None
        self._tracing = False
        if session is None:
            return []
        paths = [stem + ".xplane.pb"]
        try:
            with Quiet():
                session.export_to_tb()
            found = files.newest_below(self._folder, ".xplane.pb")
            if found is None:
                raise RuntimeError("TensorFlow wrote no profile")
            os.rename(found, paths[0])
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._memory_over(told=bool(self._metadata))
        kept, self._metadata = self._metadata, []
        if kept:
            # of the last run: what ops asked for and held
            paths.append(files.write_whole(
                stem + ".run_metadata.pb", kept[-1][1].SerializeToString()))
        return paths

    def _memory_over(self, told=False):
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()
            if memory.lacks and not told and not self._has_gpu():
                self.engine.problem(memory.lacks)

    # --- the device and the job --------------------------------------------

    def _has_gpu(self):
        """Asks nothing of a TensorFlow that is not set up yet: that would set
        it up, before the program says how."""
        from tensorflow.python.eager import context
        c = context.context_safe()
        return bool(c is not None and getattr(c, "_initialized", False)
                    and self.tf.config.list_logical_devices("GPU"))

    def has_queue(self):
        return self._has_gpu()

    def sync(self):
        try:
            if self._has_gpu():
                self.tf.test.experimental.sync_devices()
        except Exception:
            pass

    def rank(self):
        import json
        try:
            config = json.loads(os.environ["TF_CONFIG"])
            roles = config["cluster"]
            task = config["task"]
            order = [r for r in ("chief", "master", "worker") if r in roles]
            before = sum(len(roles[r]) for r in
                         order[:order.index(task["type"])])
            return (before + int(task["index"]),
                    sum(len(roles[r]) for r in order))
        except (KeyError, ValueError, TypeError):
            return None


def _without_step(kwargs):
    """A marker's arguments without what makes it a step."""
    return {k: v for k, v in kwargs.items() if k not in ("step_num", "_r")}


def _fetched(fetches):
    """The names of what a session is asked for. A monitored session asks for
    more than its caller, and not the same in each run."""
    if isinstance(fetches, str):
        return (fetches,)
    if isinstance(fetches, dict):
        fetches = ([fetches["caller"]] if "caller" in fetches
                   else fetches.values())
    if isinstance(fetches, (list, tuple)) or not hasattr(fetches, "name"):
        try:
            return tuple(n for f in fetches for n in _fetched(f))
        except TypeError:
            return (type(fetches).__name__,)
    return (str(fetches.name),)
