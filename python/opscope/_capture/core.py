# SPDX-License-Identifier: Apache-2.0
"""The engine: counts a program's steps, times all of them, and has some of them
traced by the framework's own profiler.

Drivers (torch_driver.py, ...) tell it what repeats; leader.py says which of
that is a step. Each step goes into opscope's own recorder, which costs some
ten nanoseconds and survives a kill: so a profile holds how long steps take
while nobody traces them. When a step that is wanted is about to begin, the
drivers switch their tracers on; between the end of a step and the begin of the
next one nothing is timed, so that switching is no part of any step.

Nothing here raises into the program or prints: what the user should know is a
sentence of problem(), which `opscope record` shows at the end."""

import os
import shutil
import sys
import threading
import time
import weakref
from urllib.parse import quote

from . import leader
from .choice import DEMAND_STEPS, Choice, Demand
from .laps import Laps
from .notes import Notes, what_was_missed, what_was_traced
from .window import FOREVER, Window

PATIENCE = 60           # signals, while a program's optimizers do not step
LEAST_PATIENCE = 8      # steps of one of them, where a wanted one is near
LOOK_AHEAD = 256        # steps, for the end of an open window
MOST_SOURCES = 256      # that are told apart
GONE = 3                # signals of another one: the leader is at work no more
NO_STEP = "opscope: no step begins here"    # as src/base/facts.h has these
STEP_OVER = "opscope: the step was over, ns ago: %d"
STEP_CUT = "opscope: the step is cut"
ANEW = "opscope: steps are counted anew"
INPUT_WAIT = "input: waits for a batch"

_now, _here = time.perf_counter_ns, threading.get_ident


class Want:
    """What the user asked for."""

    def __init__(self, steps=None, seconds=0.0, memory=False, shapes=False,
                 stacks=False, everything=False):
        self.steps, self.seconds = steps, seconds
        self.memory, self.shapes, self.stacks = memory, shapes, stacks
        self.everything = everything    # from start() to stop(), all of it

    @classmethod
    def from_environment(cls, env=os.environ):
        what = env.get("OPSCOPE_CAPTURE", "").split(",")
        try:
            seconds = float(env.get("OPSCOPE_SECONDS", "0") or 0)
        except ValueError:
            seconds = 0.0
        return cls(env.get("OPSCOPE_STEPS") or None, seconds,
                   "memory" in what, "shapes" in what, "stacks" in what)


def host_name():
    """The host's name as it stands in the names of files."""
    name = os.environ.get("OPSCOPE_HOST") or os.uname().nodename or "host"
    return "".join(c if c.isalnum() or c in "-._" else "_" for c in name)


def _end_at_exit(engine):
    """The process is about to exit: ends an engine, given weakly."""
    engine = engine()
    if engine is not None:
        engine.end(at_exit=True)


class Engine:
    """One per process. `native` is opscope._opscope, or a stand-in."""

    def __init__(self, native, logdir, run, want):
        self.native = native
        self.logdir, self.run = os.path.abspath(logdir), run
        self.folder = os.path.join(self.logdir, "plugins", "profile", run)
        self.want = want
        self.drivers = []
        self.window = Window(want.steps) if want.steps else None
        self.sources = {}       # (kind, key) -> Source
        self.lead = None        # the Source that marks steps
        self.step = 0           # the step that runs, or is about to; from 1
        self.paths = []         # profiles that were written
        self.taken = []         # steps that were traced
        self._began = 0         # ns, when the step that runs began
        self._next = 0          # before this step nothing is to be decided
        self._open = False      # is a window open?
        self._most = 0          # steps that it has; 0: asked of the window
        self._marked = 0        # steps of it that began
        self._deadline = 0      # ns at which it closes; 0: never
        self._first = 0         # its first step
        self._prepared = False
        self._chosen = False    # a window of its own choice was taken
        self._seen = 0          # steps, while one is to be chosen
        self._gave_up = False   # something broke: steps are only timed
        self._foreign = set()   # drivers whose tracer the program uses
        self._started = 0       # ns, when the first step was seen
        self._recording = False
        self._ended = False
        self._pid = os.getpid()
        self.is_child = False   # of fork(), and not of a new program
        self._stale = [], []    # paths and steps of what turned out as none
        self._traced_span = None
        self._expected = 0      # optimizers that were made and did not step
        self._waited = 0        # signals that came meanwhile
        self._ready = False     # the first step is open, and was not seen yet
        self._on = []           # drivers whose tracer runs
        self._passed = False    # the rest of a range is not wanted any more
        self._fed = None        # the loader that gave the last batch
        self.choice, self.demand = Choice(self.folder), Demand(self.logdir)
        self._notes = Notes(self.folder)
        self._laps = Laps(native)
        self._lock = threading.RLock()

    # --- what drivers call ------------------------------------------------

    def begins(self, kind, key):
        """A unit of work is about to begin."""
        source = self.sources.get((kind, key))
        if source is None:
            source = self._new_source(kind, key)
            if source is None:
                return
        elif not self._is_of_thread(source):
            return
        source.count += 1
        source.last = source.begun = _now()
        if kind == "loader":
            self._fed = source
        elif source.trains and self._fed is not None:
            self._fed.trains = True
        self._signal(source)

    def ended(self, kind, key):
        """A unit of work has just ended."""
        source = self.sources.get((kind, key))
        if source is None:
            if kind != "optimizer":
                return
            source = self._new_source(kind, key)
            if source is None:
                return
        elif not self._is_of_thread(source):
            return
        source.over = now = _now()
        if source.begun:
            if source.count > 1:
                source.spent += now - source.begun
            source.begun = 0
        if source.ends:
            source.count += 1
            source.last = now
            self._signal(source)
        elif source.kind == "loader" and source is self.lead and self._began:
            self._step_over()   # what follows an epoch is none of its steps

    def seen_over(self, kind, key):
        """A unit of work is over whose begin nobody could see."""
        if (kind, key) not in self.sources:
            source = self._new_source(kind, key)
            if source is None:
                return
            source.ends = True
            w = self.window
            if (self.lead is None and w is not None and not w.by_time
                    and w.wants(1, 0)):
                self.problem("step 1 was over before it could be seen: its "
                             "function was compiled before opscope was "
                             "started; from step 2 on they can be traced")
        self.ended(kind, key)

    def again(self, source):
        """Does what ended() does of the source that marks the steps, outside
        of windows and where nothing is to be decided: that is nearly always,
        and is to cost as little as can be. Says whether it did."""
        number = self.step + 1
        if (source is not self.lead or number >= self._next or self._open
                or self._expected or self._ready or self._ended
                or source.begun or source.thread != _here()):
            return False
        source.count += 1
        source.over = source.last_before = source.last = self._began = _now()
        self.step = number
        self.native.step(number)
        return True

    def trains(self, kind, key):
        """That unit of work computes gradients: of several it is the step."""
        source = self.sources.get((kind, key))
        if source is not None:
            source.trains = True

    def withdraw(self, kind, key):
        """The unit that was about to begin did not: the loader is at its
        end."""
        source = self.sources.get((kind, key))
        if source is None or not self._is_of_thread(source):
            return
        source.count -= 1
        source.begun = 0
        source.over = source.last
        if source is self.lead and self._began >= source.last:
            self._take_back()

    def _take_back(self):
        """The step that has just begun is none, and none begins."""
        with self._lock:
            self.native.instant(NO_STEP)
            self.native.step_end()
            if self._open:
                if self.taken[-1:] == [self.step]:
                    self.taken.pop()
                    self._marked -= 1
                self._unmark()
            self.step -= 1
            self._began = 0

    def ready(self, optimizers=1):
        """The program is about to train, by one optimizer more: steps are
        not counted before all that were made have stepped. If the very first
        step is wanted, this is the last moment to begin."""
        self._forget_weak()
        if self.lead is None and not self._ended:
            self._expected += optimizers
        if (self.step or self._open or self._ended or self.window is None
                or not self.window.wants(1, 0)):
            return
        with self._lock:
            self._start_recorder()
            self.step, self._ready = 1, True
            self._started = _now()
            try:
                self._open_window(1)
            except Exception as e:
                self.problem("opscope stopped tracing: %s" % e)
            self.native.step(1)
            self._began = _now()

    def spares(self):
        """One of the optimizers that were made need not be waited for."""
        self._expected = max(0, self._expected - 1)

    def _forget_weak(self):
        """The program is going to train by an optimizer: the models that it
        called until now were no steps."""
        for key in [k for k in self.sources if k[0] in leader.WEAK]:
            del self.sources[key]
        if self.lead is None or self.lead.kind not in leader.WEAK:
            return
        if self._open:
            self._close_window(in_step=True)
        self._anew()
        self.native.step_end()
        self.lead, self.step, self._began = None, 0, 0
        self.choice.forget_times()

    def input_begins(self):
        """The program waits for a batch, of a loader whose framework does not
        trace: who does hears of it."""
        if self._recording:
            self.native.begin(INPUT_WAIT, 1)
        if self._open:
            self._tell_drivers("input_begins")

    def input_ended(self):
        if self._open:
            self._tell_drivers("input_ended")
        if self._recording:
            self.native.end()

    def problem(self, text):
        self._notes.problem(text)

    @property
    def problems(self):
        return self._notes.problems

    def has_foreign(self):
        """Does the program use a framework's tracer itself?"""
        return bool(self._foreign)

    def takes_leftovers(self):
        """Will what the program traced and did not export be taken?"""
        return bool(self._foreign) and not self._ended

    def foreign(self, driver, what):
        """The program itself uses the framework's tracer."""
        if driver.name in self._foreign:
            return
        self._foreign.add(driver.name)
        if self._open:
            self._close_window(in_step=True)
        self.problem("the program profiles itself by %s: opscope leaves that "
                     "tracer alone and takes what it writes" % what)

    def foreign_over(self, driver):
        """Its tracer is free; opscope still leaves it alone: the program may
        start it again at any step."""

    def adopt(self, path):
        """Takes a profile that the program wrote into the run's folder."""
        try:
            name = os.path.basename(path)
            for suffix in (".pt.trace.json.gz", ".pt.trace.json",
                           ".xplane.pb", ".json.gz", ".json"):
                if name.endswith(suffix):
                    break
            else:
                return
            if suffix in (".json", ".json.gz"):
                suffix = ".pt.trace" + suffix
            to = self._free_name(max(self.step, 1), suffix)
            # a copy: the program may write the next one into the same file
            shutil.copyfile(path, to + ".tmp")
            os.rename(to + ".tmp", to)
            self.paths.append(to)
        except Exception as e:
            self.problem("a profile that the program wrote could not be taken "
                         "over: %s" % e)

    # --- steps --------------------------------------------------------------

    def explicit(self, number):
        """The program says itself that a step begins."""
        key = ("explicit", 0)
        source = self.sources.get(key)
        if source is None:
            source = self._new_source(*key)
            if source is None:
                return
        elif not self._is_of_thread(source):
            return
        source.count += 1
        source.last = _now()
        if self.lead is not source and not self._lead_by(source, number):
            return
        self._boundary(number, source.last)

    def explicit_end(self):
        """The program says itself that its step is over."""
        if self.lead is None or self.lead.kind != "explicit" or self._ended:
            return
        self._step_over()

    def _step_over(self):
        """The step that is open is over, and none begins."""
        with self._lock:
            if self._open:
                self.native.instant(STEP_OVER % 0)
            self.native.step_end()
            if self._began:
                self.choice.took(_now() - self._began)
            self._began = 0
            if self._open:
                self._unmark()

    def _new_source(self, kind, key):
        if self._ended or os.getpid() != self._pid:
            return None
        if len(self.sources) >= MOST_SOURCES and kind != "explicit":
            self.problem("more than %d loaders, functions and optimizers took "
                         "part: those that came later are not seen; mark the "
                         "steps with opscope.step(i)" % MOST_SOURCES)
            return None
        source = leader.Source(kind, key, threading.get_ident())
        self.sources[(kind, key)] = source
        self._start_recorder()
        return source

    def _is_of_thread(self, source):
        """Does the source belong to this thread? Where its own has ended it
        does from now on: a program may train each epoch in a new one."""
        here = threading.get_ident()
        if source.thread == here:
            return True
        new = leader.thread_of(here)
        if new is None or source.owner is None or source.owner.is_alive():
            return False
        source.thread, source.owner = here, new
        return True

    def _lead_by(self, source, number):
        """Makes it the leader, from that step on, unless a window hangs on
        another one that is still at work."""
        lead = self.lead
        if lead is not None and not leader.ends_its_steps(source, lead):
            trains = source.kind == "optimizer" != lead.kind or (
                # calls that go with those of the leader have its numbers
                source.trains and not lead.trains and source.kind == lead.kind
                and abs(number - self.step) > 1)
            if self._open:
                if source.alone < GONE and not trains:
                    return False
                self._close_window(in_step=True)
                if not trains:
                    self.problem("something else began to mark the steps "
                                 "within step %d: it is not in the profile"
                                 % self.step)
            if trains:
                self._anew()
        self.lead = source
        self.choice.forget_times()
        self._began = self._next = self._seen = 0
        return True

    def _anew(self):
        """What was taken for steps until now (the batches of an evaluation)
        was none: the program trains. Captures of it are kept until there is
        one of training."""
        self.native.instant(ANEW)
        self._stale = self.paths, self.taken
        self.paths, self.taken = [], []
        self._chosen = self.choice.uneven = False
        self._next = 0

    def _drop_stale(self):
        for path in self._stale[0]:
            try:
                os.unlink(path)
            except OSError:
                pass
        self._stale = [], []

    def _is_settled(self, source):
        """Can it be told by now what a step is? While optimizers that the
        program made have not stepped it cannot, unless they never do."""
        seen = sum(1 for kind, _ in self.sources if kind == "optimizer")
        self._waited += 1
        if (leader.TRUST[source.kind] > leader.TRUST["optimizer"]
                or seen >= self._expected or self._waited > PATIENCE
                or self._is_near(source)):
            self._expected = 0
        return not self._expected

    def _is_near(self, source):
        """Would a step that is wanted go by while optimizers are waited
        for?"""
        w = self.window
        return (w is not None and not w.by_time and source.ends
                and source.count >= LEAST_PATIENCE
                and w.next_after(source.count) <= source.count + 2)

    def _signal(self, source):
        lead = self.lead
        if source is lead and not self._expected and not self._ready:
            source.last_before = source.last
            self._boundary(self.step + 1, source.last)
            return
        if self._expected and not self._is_settled(source):
            source.last_before = source.last
            return
        if source is lead:
            number = self.step + 1
        else:
            # does it take turns with the leader? Then its count is the step
            in_turn = not source.led and (
                lead is None or lead.last > source.last_before
                or source.trains and not lead.trains
                and source.kind == lead.kind)
            leads = not self._ended and (lead is None
                                         or leader.takes_over(source, lead))
            if in_turn or lead is None or (
                    source.kind == "optimizer" != lead.kind):
                number = source.count + source.ends
            else:
                # after the leader: of an optimizer it is the second signal.
                # What ran less often than this one was a preparation
                number = self.step + (source.alone if source.ends else 1)
                number = max(number, source.count + source.ends)
            if not leads or not self._lead_by(source, number):
                source.last_before = source.last
                return
            source.led, source.alone = True, 0
        source.last_before = source.last
        if self._ready:     # its first step was opened before it was seen
            self._ready = False
            if number == self.step:
                return
        self._boundary(number, source.last)

    def _boundary(self, number, now):
        """Step `number` is about to begin, and the one before is over."""
        if self._ended:
            return
        if self.step < number < self._next:
            if self._open:      # a tracer of Python sees each call of ours
                self._mark(number)
            self.step = number
            self.native.step(number)
            self._began = now
            return
        with self._lock:
            native = self.native
            native.step_end()
            if self._began:
                self.choice.took(now - self._began)
            if not self._started:
                self._started = now
            self.step = number
            self._seen += 1
            try:
                if not self._gave_up:
                    self._decide(number, now)
            except Exception as e:
                self._give_up(e)
            native.step(number)
            self._began = _now()

    def _give_up(self, error):
        """What was traced until now is written; steps are timed still."""
        self._gave_up = True
        self.problem("opscope stopped tracing: %s: %s"
                     % (type(error).__name__, error))
        try:
            if self._open:
                self._close_window()
        except Exception as e:
            self.problem("%s: %s" % (type(e).__name__, e))
        self._open, self._next = False, FOREVER

    def _mark(self, number):
        """A step begins that is traced."""
        self.taken.append(number)
        self._marked += 1
        for d in self._on:
            try:
                d.mark(number)
            except Exception as e:
                self.problem("%s: a step could not be marked: %s"
                             % (d.name, e))

    def _unmark(self):
        """The step that was marked in the traces is over."""
        for d in self._on:
            try:
                d.unmark()
            except Exception as e:
                self.problem("%s: a step's mark could not be ended: %s"
                             % (d.name, e))

    def _decide(self, number, now):
        if self._open:
            if self._is_over(number, now):
                # its seconds are over: what is left of the range is not taken
                self._passed = bool(self._deadline and now >= self._deadline)
                self._close_window()
                self.choice.forget_times()
                self._began = 0
            else:
                self._next = self._open_until(number)
                self._mark(number)
                return
        if self._ended or not self.drivers:
            return
        if self._is_wanted(number, now):
            self._open_window(number)
            return
        if not self._prepared and self._is_wanted(number + 1, now):
            self._prepare()
            return
        self._laps.turn(number, self._in_use())
        self._next = min(self._quiet_until(number), self._laps.next)

    def _quiet_until(self, number):
        """The first step at which there is something to decide: steps before
        it are timed, and nothing else. The step before a wanted one is it:
        there the tracer is prepared."""
        if self.window is None:
            return FOREVER if self._chosen else 0
        if self.window.by_time or self.window.demand:
            return 0
        return self.window.next_after(number) - 1

    def _open_until(self, number):
        """The first step at which an open window may be over; `number` is
        about to be marked."""
        if self.want.everything:
            return FOREVER
        if self._deadline or self.window is not None and self.window.by_time:
            return 0
        if self._most:
            return number + self._most - self._marked
        over = number + 1
        while over < number + LOOK_AHEAD and self.window.wants(over, 0):
            over += 1
        return over

    def _is_over(self, number, now):
        if self.want.everything:
            return False
        if self._deadline and now >= self._deadline:
            return True
        if self._most:      # numbers may begin anew
            return self._marked >= self._most
        if self.window is None:
            return False
        return not self.window.wants(number, (now - self._started) / 1e9)

    def _is_wanted(self, number, now):
        if self.want.everything:
            return True
        if self.window is None:
            return not self._chosen and self.choice.is_here(
                number, self._seen, now - self._started, self.drivers)
        if self.window.wants(number, (now - self._started) / 1e9):
            return not self._passed
        self._passed = False
        return self.window.demand and self.demand.look(now)

    # --- the window -------------------------------------------------------

    def _prepare(self):
        self._prepared = True
        for d in self._in_use():
            try:
                d.prepare()
            except Exception as e:
                self.problem("%s: its tracer could not be prepared: %s"
                             % (d.name, e))

    def _in_use(self):
        """The drivers whose frameworks the program uses. One framework may
        import another for reasons of its own, and TensorFlow and JAX share
        one tracer: a key begins with the name of its driver."""
        seen = {key[0] for _, key in self.sources if isinstance(key, tuple)}
        used = [d for d in self.drivers if d.name in seen]
        if not used:
            used = list(self.drivers)
        names = {d.name for d in used}
        if {"tensorflow", "jax"} <= names:
            other = "tensorflow" if self._computes() == "jax" else "jax"
            used = [d for d in used if d.name != other]
        return [d for d in used if d.name not in self._foreign]

    def _computes(self):
        """Which of TensorFlow and JAX trains: that of the steps. Of batches,
        and of the program's own marks, nobody knows by themselves: the one
        whose calls take more time. TensorFlow may only load the data."""
        lead = self.lead
        if lead is not None and lead.kind not in ("loader", "explicit"):
            return lead.key[0] if isinstance(lead.key, tuple) else "tensorflow"
        spent = {"tensorflow": 0, "jax": 0}
        for (kind, key), source in self.sources.items():
            if kind != "loader" and isinstance(key, tuple) and key[0] in spent:
                spent[key[0]] += source.spent + source.count
        return max(spent, key=spent.get)

    def _open_window(self, number, mark=True):
        drivers = self._in_use()
        if not drivers:
            self._chosen = True
            return
        if not self._prepared:
            self._prepare()
        self._laps.end(drivers)
        self._most = self._marked = self._deadline = 0
        if self.window is None and not self.want.everything:
            self._most = self.choice.length()
        elif self.demand.is_asked:
            self._most = DEMAND_STEPS
        if self.want.seconds:
            self._deadline = _now() + int(self.want.seconds * 1e9)
            if self.window is None:
                self._most = 0
        self._open, self._first = True, number
        self._next = self._open_until(number)
        self._traced_begins(drivers)
        self._on = []
        for d in drivers:
            try:
                d.sync()
                d.start(number)
                self._on.append(d)
            except Exception as e:
                self.problem("%s: its tracer could not be started: %s: %s"
                             % (d.name, type(e).__name__, e))
        if self.want.stacks and any(getattr(d, "python_by_recorder", False)
                                    for d in self._on):
            try:
                self.native.trace_python(True)
            except Exception as e:      # a debugger, coverage
                self.problem("calls of Python functions are not recorded: %s"
                             % e)
        if mark:    # last: what comes behind it is in the step
            self._mark(number)

    def thread_over(self):
        """The thread in which a tracer was started is about to end: it alone
        can stop it."""
        if self._open and not self._ended and os.getpid() == self._pid:
            with self._lock:
                self._close_window(cut="thread that trains")

    def _close_window(self, cut=None, in_step=False):
        """Ends the window and writes what was traced. `cut` says what ended
        before it was over; `in_step`, that its last step did not end."""
        self._open, self._prepared, self._chosen = False, False, True
        self._next = 0
        if self.demand.is_asked:
            self.demand.answered()
        if self.want.stacks:
            try:
                self.native.trace_python(False)
            except Exception:
                pass
        self._name_ends(cut, in_step)
        for d in self._on:
            try:
                d.unmark()
                d.sync()
            except Exception as e:
                self.problem("%s: %s" % (d.name, e))
        for d in self._on:
            try:
                self.paths += d.stop(self._free_name(self._first, ""))
                self._drop_stale()
            except Exception as e:
                self.problem("%s: its trace could not be written: %s: %s"
                             % (d.name, type(e).__name__, e))
        self._traced_ended()
        if cut:
            self.problem("the %s ended inside the window: the profile holds "
                         "what was traced until then" % cut)

    def _name_ends(self, cut, in_step):
        """Where steps are told by their end, what came before the first signal
        was a step, and what comes behind the last one is none."""
        if self.lead is None or not (self.lead.ends or in_step):
            return
        if self.want.everything and self.taken[:1] == [2]:
            self.taken.insert(0, 1)
            self._tell_drivers("before_is", 1)
        if ((cut or in_step or self.want.everything) and self.taken
                and self.taken[-1] == self.step):
            self._tell_drivers("unfinished", self.taken.pop())

    def _tell_drivers(self, what, *args):
        for d in self._on:
            getattr(d, what, lambda *args: None)(*args)

    def _traced_begins(self, drivers):
        """Notes in the recorder's own file that the tracer runs: these steps
        are not the program's bare ones; if it never ends, its data are gone."""
        begin = getattr(self.native, "async_begin", None)
        if begin:
            self._traced_span = begin(
                "opscope: traced by %s"
                % ", ".join(d.name for d in drivers), 0)

    def _traced_ended(self):
        if self._traced_span is not None:
            self.native.async_end(self._traced_span)
            self._traced_span = None

    def _free_name(self, step, suffix):
        """A name in the run's folder that nobody has."""
        os.makedirs(self.folder, exist_ok=True)
        stem = os.path.join(self.folder, "%s_%d.step%d"
                            % (host_name(), os.getpid(), step))
        for k in range(1, 1000):
            name = stem if k == 1 else "%s-%d" % (stem, k)
            if suffix:
                if not os.path.exists(name + suffix):
                    return name + suffix
            elif not any(os.path.exists(name + s) for s in (
                    ".pt.trace.json.gz", ".xplane.pb")):
                return name
        return stem + suffix

    # --- the beginning and the end ------------------------------------------

    def add_driver(self, driver, module):
        self.drivers.append(driver)
        self._next = 0
        try:
            driver.attach(module)
        except Exception as e:
            self.problem("%s: opscope could not attach to it: %s: %s"
                         % (driver.name, type(e).__name__, e))

    def _start_recorder(self):
        """Starts opscope's own recorder at the first sign of a step. Its
        window is everything: --steps is about the framework's tracer."""
        if self._recording or self._ended:
            return
        self._recording = True
        self._end_with_process()
        try:    # the engine looks for the file of a demand
            self.native.start(self.logdir, "as_given=1&no_demand=1&no_fork=1"
                              "&run=" + quote(self.run))
        except Exception as e:
            self.problem("opscope's recorder could not be started: %s" % e)

    def _end_with_process(self):
        """multiprocessing ends a process that it made by fork() without
        atexit, whoever made the engine there; one that it spawned comes here
        a little earlier than to atexit."""
        util = sys.modules.get("multiprocessing.util")
        process = sys.modules.get("multiprocessing.process")
        if util is None or not (self.is_child or process.parent_process()):
            return
        # an engine that is gone by then leaves nothing behind
        util.Finalize(self, _end_at_exit, (weakref.ref(self),),
                      exitpriority=100)

    def open_now(self):
        """Opens the window before any step was seen (profile without
        steps)."""
        with self._lock:
            self._start_recorder()
            if not self._open and self.drivers:
                self._open_window(self.step or 1, mark=False)
                self._tell_drivers("mark_before")

    def _tell_last(self, at_exit):
        """Says of the step that is open where it ended. What comes behind a
        program's last one, up to its exit, belongs to none. A batch's end is
        that of its step; behind a call more of the step may come, and a loop
        may be left at any batch: where the program exits they are cut."""
        lead = self.lead
        if lead is None:
            return
        if lead.ends:
            self.native.instant(NO_STEP)
            return
        if not self._began or lead.kind == "explicit":
            return
        is_told = lead.over > lead.last
        is_whole = is_told and lead.kind == "batch"
        if is_told and (is_whole or at_exit):
            self.native.instant(STEP_OVER % (_now() - lead.over))
        if at_exit and not is_whole:
            self.native.instant(STEP_CUT)

    def end(self, at_exit=False):
        """The program, or what was to be profiled, is over."""
        if self._ended or os.getpid() != self._pid:
            return
        with self._lock:
            self._ended = True
            try:
                self._end(at_exit)
            finally:
                if self._recording:
                    self.native.stop()

    def _end(self, at_exit):
        if self._recording:
            self._laps.drop()
            self._tell_last(at_exit)
            self.native.step_end()
        if self._open:
            self._close_window(cut=None if self.want.everything else "program")
        self._take_leftovers()
        for d in self.drivers:
            try:
                where = d.rank()
                if where:
                    self.native.set_rank(*where)
                    break
            except Exception:
                pass
        self.choice.over()
        self._tell()

    def _take_leftovers(self):
        """Takes what a program's own profiler traced and nobody exported."""
        for d in self.drivers:
            take = getattr(d, "leftover", None)
            if take is None or d.name not in self._foreign:
                continue
            try:
                self.paths += take(self._free_name(max(self.step, 1), ""))
            except Exception as e:
                self.problem("%s: what the program traced could not be "
                             "written: %s" % (d.name, e))

    def count(self):
        """How many steps the program had: after the last end of one another
        has begun that is none."""
        n = self.step - bool(self.lead is not None and self.lead.ends)
        return max([n] + self.taken)

    def _tell(self):
        if not self.taken:
            self.taken = self._stale[1]
        self._notes.write_rest()
        for text in what_was_traced(self), what_was_missed(self):
            if text is not None:
                self._notes.write(text)

    def forked(self):
        """A child of fork(): it has no window and no tracer of ours, and none
        of the threads of which one may hold the lock. Whoever still calls
        this engine finds nothing to do."""
        self._ended, self._open, self._recording = True, False, False
        self._lock = threading.RLock()
        self.sources, self.lead, self._began, self._on = {}, None, 0, []
