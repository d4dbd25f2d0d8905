# SPDX-License-Identifier: Apache-2.0
"""JAX: a step is a call of a compiled function from Python, traces come from
JAX's own profiler. How such calls are seen is in jax_calls.py.

The program's own use of the profiler goes first: opscope leaves the tracer to
it, and takes the file that it wrote. A backend that the program did not start
is not started either: it would take a GPU's memory, and jax.distributed could
not be set up any more."""

import functools
import os
import shutil
import sys
import tempfile

from . import files, frames, jax_calls
from .calls import around, told_after, watch_parts
from .core import INPUT_WAIT
from .quiet import Quiet


class Driver:
    name = "jax"
    is_unknown = False

    def __init__(self, engine):
        self.jax = None
        self.is_pending = False     # to be started once JAX is in use
        self._late = None
        self._engine = engine
        self._marker = self._wait = None
        self._is_guess = False          # the marker may be around no step
        self._unsaid = []               # markers that are not to be recorded
        self._annotation = None         # JAX's class of marks
        self._program_marks = None      # the program's last marker
        self._ours = False
        self._frames = ""              # names of ours, as a trace has them
        self._folder = None
        self._their_folder = None
        self._their_files = set()
        self._of_parent = []    # of a parent's tracing, never to be ended

    @property
    def engine(self):
        return self._engine

    @engine.setter
    def engine(self, engine):
        self._engine = engine
        self.is_pending = False
        if self._late is not None:
            self._late.on()

    def forked(self, engine):
        """In a child of fork(): what is traced is traced in the parent. Its
        session stays in reach: to end it here would be to wait for threads
        that are not. The child may trace by one of its own."""
        state = getattr(sys.modules.get("jax._src.profiler"),
                        "_profile_state", None)
        self._of_parent += (self._marker, self._wait, self._unsaid,
                            getattr(state, "profile_session", None))
        if self._folder is not None and hasattr(state, "reset"):
            state.reset()
        self._folder = self._their_folder = None
        self._marker = self._wait = self._program_marks = None
        self._unsaid, self._is_guess, self._ours = [], False, False
        self.engine = engine

    # --- steps --------------------------------------------------------------

    def attach(self, jax):
        self.jax = jax
        is_new = getattr(getattr(jax, "__spec__", None), "_initializing",
                         False)
        watch_parts(self, jax, calls=self._watch_calls,
                    markers=self._watch_markers,
                    profiler=self._watch_profiler)
        self._hide()
        if not is_new:      # the program may have compiled functions by now
            self._late = jax_calls.LateCalls(self)
            self._late.on()

    def _watch_calls(self):
        jax, src = self.jax, sys.modules.get
        lax = getattr(jax, "lax", None)
        if src("jax._src.pjit") is None and not hasattr(jax, "make_jaxpr"):
            raise AttributeError("jax has no jit that is known")
        for module, name, watch in (
                (jax, "jit", jax_calls.watch),
                (jax, "pmap", jax_calls.watch),
                (src("jax._src.pjit"), "pjit", jax_calls.watch),
                (jax, "grad", jax_calls.watch_gradient),
                (jax, "value_and_grad", jax_calls.watch_gradient),
                (jax, "vmap", jax_calls.watch_vectorized),
                (lax, "scan", jax_calls.watch_loop),
                (lax, "fori_loop", jax_calls.watch_loop),
                (lax, "while_loop", jax_calls.watch_loop)):
            inner = getattr(module, name, None)
            if inner is not None:
                setattr(module, name, watch(inner, self))
        stages = src("jax._src.stages")
        if stages is not None:
            jax_calls.watch_compiled(stages, self)

    def _hide(self):
        """Keeps our frames out of JAX's tracebacks and of where it says that
        an operation comes from."""
        for name in ("traceback_util", "source_info_util"):
            util = sys.modules.get("jax._src." + name)
            exclude = getattr(util, "register_exclusion", None)
            if exclude is not None:
                exclude(jax_calls.__file__)

    def _watch_markers(self):
        """A program that marks its steps for the profiler says what they
        are."""
        self._annotation = self.jax.profiler.TraceAnnotation
        cls = self.jax.profiler.StepTraceAnnotation

        def made(args, kwargs):
            # a marker that was made before the tracer ran is none
            number = (kwargs or {}).get("step_num")
            if number is not None and self._their_folder is None:
                self._program_marks = args[0]
                self.engine.explicit(int(number))

        def left(marker, value):
            if marker is self._program_marks:
                self.engine.explicit_end()
        cls.__init__ = around(cls.__init__, made, None)
        cls.__exit__ = told_after(cls.__exit__, left)

    def is_at_top(self):
        """Does a call happen now, or is a function only traced?"""
        core = sys.modules.get("jax._src.core")
        try:
            return core.trace_state_clean()
        except Exception:
            return True

    # --- the program's own profiler ---------------------------------------

    def _watch_profiler(self):
        profiler = self.jax.profiler
        inner = sys.modules.get("jax._src.profiler", profiler)
        start, stop = profiler.start_trace, profiler.stop_trace
        driver = self

        @functools.wraps(start)
        def new_start(log_dir, *args, **kwargs):
            before = driver._their_folder, driver._their_files
            if not driver._ours:
                driver._they_start(log_dir)
            try:
                return start(log_dir, *args, **kwargs)
            except BaseException:
                # what ran until now still does
                driver._their_folder, driver._their_files = before
                raise

        @functools.wraps(stop)
        def new_stop(*args, **kwargs):
            try:
                return stop(*args, **kwargs)
            finally:
                if not driver._ours:
                    driver._they_stopped()
        for module in (profiler, inner):
            module.start_trace, module.stop_trace = new_start, new_stop

    def _they_start(self, log_dir):
        try:
            self._their_folder = os.fspath(log_dir)
            self._their_files = set(_profiles_below(self._their_folder))
            self.engine.foreign(self, "jax.profiler")
        except Exception as e:
            self.engine.problem("jax: %s" % e)

    def _they_stopped(self):
        try:
            folder, self._their_folder = self._their_folder, None
            if folder is None:
                return
            for path in _profiles_below(folder):
                if path not in self._their_files:
                    self.engine.adopt(path)
            self.engine.foreign_over(self)
        except Exception as e:
            self.engine.problem("jax: %s" % e)

    # --- tracing --------------------------------------------------------------

    def prepare(self):
        if not self._frames:
            self._frames = frames.names()

    def _options(self):
        """Options, where this version of JAX has them."""
        make = getattr(self.jax.profiler, "ProfileOptions", None)
        if make is None:
            return {}
        options = make()
        # its Python tracer stays on, as JAX has it: what waits for a device
        # shows in it alone
        options.host_tracer_level = 2
        return {"profiler_options": options}

    def _is_in_use(self):
        """Has the program started a backend?"""
        bridge = sys.modules.get("jax._src.xla_bridge")
        if hasattr(bridge, "backends_are_initialized"):
            return bridge.backends_are_initialized()
        return bool(getattr(bridge, "_backends", True))

    def start(self, step):
        others = [d for d in getattr(self.engine, "drivers", ())
                  if d is not self]
        if others and not self._is_in_use():
            self.is_pending = True
            return
        self._start()

    def start_pending(self):
        """A function is called at last, and the tracer was to be on."""
        self.is_pending = False
        try:
            self._start()
        except Exception as e:
            self.engine.problem("jax: its tracer could not be started: %s" % e)

    def _start(self):
        os.makedirs(self.engine.folder, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix=".jax-",
                                        dir=self.engine.folder)
        self._ours, is_on = True, False
        try:
            with Quiet():
                self.jax.profiler.start_trace(self._folder,
                                              **self._options())
            is_on = True
            with self._annotation(frames.LISTED, frames=self._frames):
                pass
        except BaseException:
            folder, self._folder = self._folder, None
            try:
                if is_on:   # nobody would stop it, and the program could not
                    self._stop_tracer()     # trace any more
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            self._ours = False

    def mark(self, step):
        """Written for JAX's tracer of Python, which sees each call. The marker
        is what a StepTraceAnnotation is, without its frame of Python."""
        self._leave(is_step=self._engine.lead.ends if self._is_guess
                    else True)
        if self._engine.want.memory:
            self._tell_memory()
        if self._program_marks is None:
            self._begin_marker(step)

    def _begin_marker(self, step):
        marker = self._marker = self._annotation("train", _r=1, step_num=step)
        marker.__enter__()

    def _leave(self, is_step):
        """Ends the marker. One that is never left is not recorded: it is kept
        until the tracer is off."""
        marker, self._marker = self._marker, None
        self._is_guess = False
        if marker is None:
            return
        if is_step:
            marker.__exit__(None, None, None)
        else:
            self._unsaid.append(marker)

    def mark_before(self):
        """The window is open before a step was seen: where steps are told by
        their ends the first one goes on already."""
        if self._program_marks is None and self._folder is not None:
            self._begin_marker(1)
            self._is_guess = True

    def unfinished(self, step):
        """What was marked last turned out as no step."""
        self._leave(is_step=False)

    def _tell_memory(self):
        """Counters of what is allocated as a step begins: allocations are
        traced on devices whose allocator tells of them, so on no CPU."""
        count = getattr(getattr(self.engine, "native", None), "counter", None)
        if count is None or not self._is_in_use():
            return
        try:
            count("jax: bytes of live arrays",
                  sum(a.nbytes for a in self.jax.live_arrays()))
            for d in self.jax.local_devices():
                stats = d.memory_stats() or {}
                for name in ("bytes_in_use", "peak_bytes_in_use"):
                    if name in stats:
                        count("jax: %s:%d %s" % (d.platform, d.id, name),
                              stats[name])
        except Exception as e:
            self.engine.problem("jax: its memory could not be told: %s" % e)

    def unmark(self):
        self._leave(is_step=not self._is_guess)

    def input_begins(self):
        """The program waits for a batch that another framework loads."""
        if self._folder is not None:
            self._wait = self.jax.profiler.TraceAnnotation(INPUT_WAIT)
            self._wait.__enter__()

    def input_ended(self):
        wait, self._wait = self._wait, None
        if wait is not None:
            wait.__exit__(None, None, None)

    def stop(self, stem):
        self.is_pending = False
        if self._folder is None:
            return []
        folder, self._folder = self._folder, None
        self._ours = True
        path = stem + ".xplane.pb"
        try:
            data = self._stop_tracer()
            if data is not None:
                return [files.write_whole(path, data)]
            found = files.newest_below(folder, ".xplane.pb")
            if found is None:
                raise RuntimeError("JAX wrote no profile")
            os.rename(found, path)
            return [path]
        finally:
            self._ours = False
            self._unsaid.clear()
            shutil.rmtree(folder, ignore_errors=True)

    def _stop_tracer(self):
        """Stops JAX's tracer. Returns the trace as bytes, or None where JAX
        wrote a file."""
        with Quiet():
            data = self._stop_session()
            if data is None:
                self.jax.profiler.stop_trace()
        return data

    def _stop_session(self):
        """The trace as bytes, without the JSON that JAX would write beside
        it; None where this version does not give them."""
        inner = sys.modules.get("jax._src.profiler")
        state = getattr(inner, "_profile_state", None)
        session = getattr(state, "profile_session", None)
        if session is None or not hasattr(session, "stop") or \
                not hasattr(state, "reset"):
            return None
        with state.lock:
            try:
                data = session.stop()
            finally:    # a session that is left is in the program's way
                state.reset()
                clear = getattr(inner, "clear_metadata", None)
                if clear is not None:
                    clear()
        return data if isinstance(data, bytes) else None

    # --- the device and the job --------------------------------------------

    def has_queue(self):
        """XLA has one on every device, a CPU is one."""
        return self._is_in_use()

    def sync(self):
        """Waits for what the program has launched. No operation of our own:
        it would be compiled, and be part of the trace."""
        if not self._is_in_use():
            return
        for wait in (self._wait_for_effects, self._wait_for_arrays):
            try:
                wait()
            except Exception:
                pass    # a failed computation is the program's to see

    def _wait_for_effects(self):
        barrier = getattr(self.jax, "effects_barrier", None)
        if barrier is not None:
            barrier()

    def _wait_for_arrays(self):
        for array in self.jax.live_arrays():
            if not array.is_deleted():
                array.block_until_ready()

    def rank(self):
        state = sys.modules.get("jax._src.distributed")
        state = getattr(state, "global_state", None)
        if state is None or getattr(state, "client", None) is None:
            return None
        return state.process_id, state.num_processes


def _profiles_below(folder):
    """The profiles below a folder."""
    return [os.path.join(where, name) for where, _, names in os.walk(folder)
            for name in names if name.endswith(".xplane.pb")]
