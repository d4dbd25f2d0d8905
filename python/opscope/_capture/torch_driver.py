# SPDX-License-Identifier: Apache-2.0
"""PyTorch: what repeats in a program, and torch's own profiler around some of
it.

Steps are told by what every training program calls: optimizer.step(), the next
batch of a DataLoader; and, where neither is seen, a compiled function or a CUDA
graph that is run again. These calls are wrapped at their classes, so that the
program's own objects stay as they are. A program that has no optimizer is told
by its calls of backward() and of models (torch_calls.py); one whose optimizers
step inside of backward(), by its end. Code that torch.compile traces never sees
the engine: there a wrapper is the call it wraps and nothing else.

The trace is that of torch.profiler, driven by hand: prepared a step ahead,
started and stopped between steps, each step marked as torch's own schedule
marks it. A program that profiles itself is noticed by the same classes: its
profiler has the right of way, and what it exports is told to the engine."""

import contextlib
import errno
import functools
import gzip
import importlib
import json
import os
import shutil
import sys
import threading
import weakref

from . import stand_ins
from .numbering import Numbers
from .quiet import Quiet
from .torch_calls import Calls
from .torch_roles import Roles

SUFFIX = ".pt.trace.json.gz"
STEP = "ProfilerStep#%d"     # as torch marks steps
BEFORE = "opscope: before the first step"
HISTORY_ENTRIES = 1000000   # of the allocator, while a window wants memory
WARNS_EVERY = 1000          # blocks that torch frees and did not see allocated


def wrap(owner, name, make):
    """Replaces owner.name by make(owner.name), once. Says whether it is
    there. A method that a class inherits is left to the class that has it."""
    old = vars(owner).get(name)
    if old is None:
        return False
    static = isinstance(old, staticmethod)
    plain = old.__func__ if static else old
    if getattr(plain, "_opscope", False):
        return True
    new = functools.wraps(plain)(make(plain))
    new._opscope = True
    setattr(owner, name, staticmethod(new) if static else new)
    return True


def pack(source, target):
    """Writes `source` as gzip to `target`, which is there when it is whole."""
    part = target + ".part"
    try:
        with open(source, "rb") as f, gzip.open(part, "wb", 1) as g:
            shutil.copyfileobj(f, g, 1 << 20)
        os.replace(part, target)
    finally:
        remove(part)


def remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def export(profiler, target, names=()):
    """Writes a finished profiler's trace to `target`, which ends in .gz.
    torch writes text; a name that ends otherwise than a profile's is never
    taken for one if the process dies meanwhile. `names` are of regions: an old
    and a new one each."""
    text = target[:-len(".gz")] + ".part"
    try:
        profiler.export_chrome_trace(text)
        if not os.path.exists(text):    # torch says so on stderr alone
            raise OSError(no_room(text) or "torch wrote nothing")
        if names:
            rename(text, names)
        pack(text, target)
    finally:
        for left in (text, text + ".tmp", text + ".new"):
            remove(left)


def no_room(path):
    """Says that the disk is full, or None."""
    disk = os.statvfs(os.path.dirname(path))
    if disk.f_bavail * disk.f_frsize < 1 << 16:
        return os.strerror(errno.ENOSPC)
    return None


def rename(text, names):
    """Gives regions of a trace other names."""
    pairs = [(json.dumps(a).encode(), json.dumps(b).encode())
             for a, b in names]
    with open(text, "rb") as f, open(text + ".new", "wb") as g:
        for line in f:
            for old, new in pairs:
                line = line.replace(old, new)
            g.write(line)
    os.replace(text + ".new", text)


def activities(torch):
    """All that torch can record here. Its list has CUDA wherever it was built
    with it, and it warns where there is no such device."""
    from torch.profiler import ProfilerActivity
    found = set(torch.profiler.supported_activities())
    cuda = getattr(ProfilerActivity, "CUDA", None)
    if cuda in found and not (torch.cuda.is_initialized()
                              or torch.cuda.is_available()):
        found.discard(cuda)
    return found


class AtEnd:
    """Calls a function when it goes: kept in a thread's own storage, when that
    thread ends."""

    def __init__(self, function):
        self._function = function

    def __del__(self):
        self._function()


def has_modes(torch):
    """Are any of the program's modes on? To disable none takes its time."""
    try:
        return bool(torch._C._len_torch_dispatch_stack()
                    or torch._C._len_torch_function_stack()
                    or torch._ops._len_torch_dispatch_stack_pre_dispatch())
    except AttributeError:
        return True     # another version: nobody knows


def apart(method):
    """A method in which the program's own modes (FlopCounterMode, a default
    device) see and change nothing."""
    @functools.wraps(method)
    def inner(driver, *args):
        if not has_modes(driver.torch):
            return method(driver, *args)
        torch, modes = driver.torch, contextlib.ExitStack()
        try:
            from torch.utils._python_dispatch import _disable_current_modes
            modes.enter_context(_disable_current_modes())
            modes.enter_context(torch._C.DisableTorchFunction())
        except (ImportError, AttributeError):
            pass    # another version: the program's modes see us
        with modes:
            return method(driver, *args)
    return inner


class Driver:
    name = "torch"

    def __init__(self, engine):
        self.engine = engine
        self.torch = None
        self._numbers = Numbers()
        self._in_step = threading.local()   # .depth: step() calls under way
        self._profiler = None       # ours: prepared, running or being written
        self._running = False
        self._thread = None         # the one that started it
        self._of_thread = threading.local()
        self._marker = None
        self._blocks = []           # memory that torch is to free unseen
        self._names = []            # of regions, and what they turned out as
        self._history = False       # we record what the allocator does
        self._where = None          # (rank, world), once it was known
        self._asks = 8              # signals at which that is asked
        self._theirs = weakref.WeakSet()    # the program's running profilers
        self._exporting = threading.local()
        self._unsaved = None        # the program's last trace, not exported
        self._worker = None         # the module that knows a loader's worker
        self._frames = None         # torch._C._dynamo.eval_frame
        self._calls = None
        self._loader = None, None   # the first one, and what it is known by
        self._roles = Roles(None)   # of optimizers, in what the engine saw
        self._awaited = {}          # optimizers that are to step, by number
        self._trained = set()       # numbers of parameters that have one
        self._late = False          # one stepped in the backward() under way
        self._steady = None         # of the optimizer that marks the steps
        self._in_graph = _outside   # the backward() that runs, or -1
        self._captured = None       # what stepped in the CUDA graph being made
        self.compiling = _never

    def forked(self, engine):
        """In a child of fork(): what is traced is traced in the parent."""
        self.engine = engine
        self._profiler = self._marker = self._thread = self._where = None
        self._running = self._history = False
        self._asks, self._blocks = 8, []
        self._theirs, self._unsaved = weakref.WeakSet(), None
        self._in_step.depth = 0
        self._late, self._steady = False, None
        self._awaited.clear()
        self._trained.clear()

    # --- hooks ------------------------------------------------------------

    def attach(self, torch):
        self.torch = torch
        self._in_graph = getattr(torch._C, "_current_graph_task_id", _outside)
        for part in (self._attach_compiler, self._attach_optimizers,
                     self._attach_loaders, self._attach_graphs,
                     self._attach_calls,
                     self._attach_profilers):
            try:
                part(torch)
            except Exception as e:
                self.engine.problem(
                    "torch %s: %s: %s (steps or profilers of this kind are "
                    "not seen)" % (torch.__version__, type(e).__name__, e))

    def _tell(self, what, kind, thing):
        """Tells the engine, behind whatever may go wrong there. Nothing of it
        is to be traced by torch.compile, nor called while a CUDA graph is
        being captured, nor in a loader's worker, nor inside of backward():
        there torch keeps a state of its own for each thread, and a tracer that
        was begun would be gone behind it."""
        if self._worker is not None and self._worker._worker_info is not None:
            return
        if self._is_capturing() or self._in_graph() != -1:
            return
        frames = (self._frames if "torch._dynamo.eval_frame" in sys.modules
                  else None)
        before = frames.set_eval_frame(None) if frames else None
        try:
            key = self.name, self._numbers.of(thing)
            if kind == "optimizer":
                key = self._role(key[1])
            if self._asks:
                self._asks -= 1
                self.rank()
            getattr(self.engine, what)(kind, key)
        except Exception as e:
            self.engine.problem("torch: a step was not seen: %s: %s"
                                % (type(e).__name__, e))
        finally:
            if before:
                frames.set_eval_frame(before)

    def _is_capturing(self):
        cuda = self.torch.cuda
        if not getattr(cuda, "_initialized", True):
            return False    # one look, where is_initialized() is a call
        try:
            return cuda.is_initialized() and cuda.is_current_stream_capturing()
        except Exception:
            return False

    def _attach_compiler(self, torch):
        """Finds the ways to keep torch.compile out of our hooks, and counts
        calls of what it compiled. Nothing is imported for it: dynamo takes
        longer to load than many programs run."""
        compiler = getattr(torch, "compiler", None)
        self.compiling = getattr(compiler, "is_compiling", None) or _never
        dynamo = getattr(torch._C, "_dynamo", None)
        self._frames = getattr(dynamo, "eval_frame", None)
        if self._frames is not None:
            for function in (Driver._tell, Driver._optimizer_stepped,
                             getattr(type(self.engine), "again", _never)):
                self._skip(function.__code__)

        if hasattr(torch, "compile"):
            wrap(torch, "compile", lambda compile_function: (
                stand_ins.told_first(compile_function, self._watch_compiled)))

    def _skip(self, code):
        """Has dynamo run this code as it is, and all that it calls."""
        f = self._frames
        try:
            if hasattr(f, "skip_code"):
                f.skip_code(code)
            else:
                skip = f._FrameAction.SKIP
                f.set_code_exec_strategy(code,
                                         f._FrameExecStrategy(skip, skip))
        except Exception:
            pass    # set_eval_frame in _tell does most of it

    def _watch_compiled(self, *_):
        """Has each compiled function tell when it is called, by a list that
        dynamo keeps for what surrounds such a call."""
        try:
            from torch._dynamo.eval_frame import OptimizeContext
        except Exception:
            return

        def made(context, *_, **__):
            hooks = getattr(context, "enter_exit_hooks", None)
            if isinstance(hooks, list):
                hooks.append(self._surround(context))
        wrap(OptimizeContext, "__init__",
             lambda init: stand_ins.made(init, made))

    def _surround(self, context):
        thing = weakref.ref(context)

        def ended():
            self._tell("ended", "call", thing())

        def begins():
            lead = getattr(self.engine, "lead", None)
            if lead is not None and lead.kind == "optimizer":
                return _never   # no call is a step of what an optimizer trains
            self._tell("begins", "call", thing())
            return ended
        return begins

    def _attach_optimizers(self, torch):
        """optimizer.step() of every class. torch wraps the step of a class
        when the first one of it is made: its wrapper is wrapped again, so that
        the step is over outside of the region that it marks. Where some were
        made before we came, their step may have been taken away by then
        (learning-rate schedulers do): they still run torch's own hook."""
        # torch.optim takes the name away again
        module = importlib.import_module("torch.optim.optimizer")
        optimizer = module.Optimizer
        if not wrap(optimizer, "profile_hook_step", lambda hook: (
                lambda step: self._outer(hook(step)))):
            wrap(optimizer, "_hook_for_profile", self._hooking)
        late = False
        for cls in _subclasses(optimizer):
            step = vars(cls).get("step")
            if step is not None and getattr(step, "hooked", False) \
                    and not getattr(step, "_opscope", False):
                cls.step = self._outer(step)
                cls.step.hooked = late = True
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if late and register is not None:
            register(self._post_hook())

        wrap(optimizer, "__init__", lambda init: (
            stand_ins.made(init, self._optimizer_made)))

    def _outer(self, inner):
        """The step of a class, and a word when it is over."""
        step = functools.wraps(inner)(stand_ins.step(
            inner, self.compiling, self._in_step, self._optimizer_stepped))
        step._opscope = True
        return step

    def _hooking(self, hook):
        """torch before 2.0 has the wrapper inside of what hooks a class."""
        def _hook_for_profile(opt):
            hook(opt)
            cls = type(opt)
            if not getattr(cls.step, "_opscope", False):
                cls.step = self._outer(cls.step)
                cls.step.hooked = True
        return _hook_for_profile

    def _post_hook(self):
        compiling, stepped = self.compiling, self._optimizer_stepped

        def step_is_over(opt, args, kwargs):
            if not compiling():
                stepped(opt)
        return step_is_over

    def _optimizer_stepped(self, opt):
        """An optimizer stepped; the call that has it inside tells it, or the
        backward() whose hook called it."""
        steady = self._steady
        if steady is not None:
            same, number, again, source = steady
            if (same() is opt and self._roles.steady == number
                    and not getattr(self._in_step, "depth", 0)
                    and self._in_graph() == -1 and not self._is_capturing()
                    and again(source)):
                return
        if getattr(self._in_step, "depth", 0):
            if opt is not self._in_step.outer:
                self._await_no_more(opt)
        elif self._in_graph() != -1:
            self._await_no_more(opt)
            self._late = True
            if self._calls is not None:
                self._calls.watch_backward()
        else:
            if self._calls is not None and not self._calls.is_off:
                self._calls.off()
            if self._is_capturing():
                self._captured = weakref.ref(opt)
            self._tell("ended", "optimizer", opt)
            if self._roles.steady is not None:
                self._settle(opt)

    def _settle(self, opt):
        """If this one marks the steps, its next ones go the short way."""
        engine, roles = self.engine, self._roles
        number = self._numbers.of(opt)
        lead = getattr(engine, "lead", None)
        if (lead is not None and roles.steady == number
                and roles.engine is engine and hasattr(engine, "again")
                and lead.key == (self.name, roles.steady_key)):
            self._steady = weakref.ref(opt), number, engine.again, lead

    def _backward_ended(self):
        """Optimizers that stepped inside of it are one: there may be one for
        each parameter."""
        if self._late and self._in_graph() == -1:
            self._late = False
            self._tell("ended", "optimizer", self)

    def _optimizer_made(self, opt, *_, **__):
        if self._calls is not None:
            self._calls.only_ends()
        ready = getattr(self.engine, "ready", None)
        if ready is None or (self._worker is not None
                             and self._worker._worker_info is not None):
            return
        try:
            ready(self._await(opt))
        except Exception as e:
            self.engine.problem("torch: %s: %s" % (type(e).__name__, e))

    def _await(self, opt):
        """How many optimizers more are to step, 1 or 0: of those that share
        parameters (one inside another, one of several to choose from) it is
        enough that one does, and one that goes on where another one ended is
        none more."""
        mine = {self._numbers.of(group["params"][0])
                for group in opt.param_groups if group["params"]}
        number = self._numbers.of(opt)
        is_other = (self._roles_now().made(number, opt)
                    and not mine & self._trained)
        self._trained |= mine
        if is_other:
            self._awaited[number] = weakref.ref(
                opt, lambda _: self._await_no_more(None, number))
        return int(is_other)

    def _roles_now(self):
        """Another engine, of a child or of the next block that is profiled,
        counts from the beginning."""
        if self._roles.engine is not self.engine:
            self._roles = Roles(self.engine)
        return self._roles

    def _role(self, number):
        """The key under which this optimizer's steps are counted."""
        roles = self._roles
        if number == roles.steady and roles.engine is self.engine:
            return self.name, roles.steady_key
        self._awaited.pop(number, None)
        role, was_others = self._roles_now().key(number)
        key = self.name, role
        if was_others and hasattr(self.engine, "withdraw"):
            self.engine.withdraw("optimizer", key)
        return key

    def _await_no_more(self, opt, number=None):
        """This one is gone, or steps inside of something that is told."""
        number = self._numbers.of(opt) if number is None else number
        if self._awaited.pop(number, None) is not None and hasattr(
                self.engine, "spares"):
            self.engine.spares()

    def _attach_loaders(self, torch):
        """Each batch that a DataLoader is asked for. All iterators of a loader
        count as one: an epoch makes a new one."""
        from torch.utils.data import dataloader
        base = dataloader._BaseDataLoaderIter
        self._worker = dataloader._utils.worker

        def made(it, loader, *_, **__):
            it._opscope_loader = weakref.ref(loader)
            it._opscope_batches = _batches(it)
        wrap(base, "__init__", lambda init: stand_ins.made(init, made))
        wrap(base, "__next__", lambda fetch: stand_ins.next_batch(
            fetch, self.compiling, self._batch_begins, self._batch_is_there))

    def _batch_begins(self, it):
        """A loader is asked for a batch. Returns what _batch_is_there() is to
        know."""
        loader = getattr(it, "_opscope_loader", None)
        loader = loader() if loader is not None else None
        loader = self._role_of_loader(it if loader is None else loader)
        known = getattr(it, "_opscope_batches", None)
        if known is not None and it._num_yielded >= known:
            self._tell("ended", "loader", loader)
            return None             # it says that the epoch is over
        self._tell("begins", "loader", loader)
        ours = not self._running    # torch's tracer has the wait in its trace
        if ours:
            self._tell_wait("input_begins")
        return loader, ours

    def _role_of_loader(self, loader):
        """A loader that is made anew for each epoch or file goes on where the
        one before it ended, which is gone by then. Returns what they are known
        by."""
        last, role = self._loader
        if last is None or (last() is not loader and last() is None):
            role = role or Role()
            self._loader = weakref.ref(loader), role
        return role if self._loader[0]() is loader else loader

    def _tell_wait(self, what):
        try:
            getattr(self.engine, what)()
        except Exception as e:
            self.engine.problem("a wait for a batch was not told: %s: %s"
                                % (type(e).__name__, e))

    def _batch_is_there(self, asked, is_end):
        if asked is None:
            return
        loader, ours = asked
        if is_end and hasattr(self.engine, "withdraw"):
            self._tell("withdraw", "loader", loader)
        if ours:
            self._tell_wait("input_ended")

    def _attach_calls(self, torch):
        """Calls of backward() and of models, until there is an optimizer. torch
        marks the class of the first one that is made."""
        self._calls = Calls(torch, self._called, self._backward_ended)
        if self._frames is not None:
            for code in self._calls.codes():
                self._skip(code)
        module = importlib.import_module("torch.optim.optimizer")
        if any(getattr(vars(cls).get("step"), "hooked", False)
               for cls in _subclasses(module.Optimizer)):
            self._calls.off()

    def _called(self, kind, thing):
        if self.compiling():
            return
        if self._in_graph() != -1:
            return      # a part of the backward() under way
        lead = getattr(self.engine, "lead", None)
        if lead is not None and lead.count > 3 and lead.kind != kind and (
                lead.kind not in ("backward", "model")):
            self._calls.off()       # steps are known by something better
            return
        self._tell("begins", kind, thing)
        if thing is self._calls:
            self._tell("trains", kind, thing)

    def _attach_graphs(self, torch):
        """A captured CUDA graph that is run again is a call; one in which an
        optimizer stepped is a step of that optimizer."""
        graph = getattr(torch.cuda, "CUDAGraph", None)
        if not isinstance(graph, type):
            return

        def captured(g):
            g._opscope_steps, self._captured = self._captured, None

        def begins(g):
            steps = getattr(g, "_opscope_steps", None)
            optimizer = steps() if steps is not None else None
            if optimizer is None:
                self._tell("begins", "call", g)
            return optimizer

        def ended(g, optimizer):
            if optimizer is None:
                self._tell("ended", "call", g)
            else:
                self._tell("ended", "optimizer", optimizer)
        wrap(graph, "capture_end",
             lambda end: stand_ins.told_first(end, captured))
        wrap(graph, "replay",
             lambda replay: stand_ins.surrounded(replay, begins, ended))

    # --- the program's own profiler -----------------------------------------

    def _attach_profilers(self, torch):
        low, high = torch.autograd.profiler, torch.profiler.profiler
        for cls in (high._KinetoProfile, high.profile):
            wrap(cls, "start", self._before("torch.profiler.profile"))
            wrap(cls, "stop", self._after)
        for name in ("emit_nvtx", "emit_itt"):
            if hasattr(low, name):
                cls = getattr(low, name)
                wrap(cls, "__enter__",
                     self._before("torch.autograd.profiler." + name))
                wrap(cls, "__exit__", self._after)
        wrap(low.profile, "_prepare_trace",
             self._before("torch.autograd.profiler.profile"))
        wrap(low.profile, "__exit__", self._after)
        wrap(high._KinetoProfile, "export_chrome_trace", self._adopting)
        wrap(low.profile, "export_chrome_trace", self._adopting)

    def _is_ours(self, profiler):
        ours = self._profiler
        return ours is not None and (
            profiler is ours or profiler is getattr(ours, "profiler", None))

    def _before(self, what):
        def make(begin):
            def start(profiler, *args, **kwargs):
                if not self._is_ours(profiler):
                    self._foreign(profiler, what)
                return begin(profiler, *args, **kwargs)
            return start
        return make

    def _foreign(self, profiler, what):
        try:
            first = not self._theirs
            self._theirs.add(profiler)
            if first:
                self.engine.foreign(self, what)
                self.cancel()
        except Exception as e:
            self.engine.problem("torch: %s: %s" % (type(e).__name__, e))

    def _after(self, end):
        def stop(profiler, *args, **kwargs):
            try:
                return end(profiler, *args, **kwargs)
            finally:
                if not self._is_ours(profiler):
                    self._foreign_over(profiler)
        return stop

    def _foreign_over(self, profiler):
        try:
            if (getattr(profiler, "kineto_results", None) is not None
                    and self.engine.takes_leftovers()):
                self._unsaved = profiler
            self._theirs.discard(profiler)
            if not self._theirs:
                self.engine.foreign_over(self)
        except Exception as e:
            self.engine.problem("torch: %s: %s" % (type(e).__name__, e))

    def _adopting(self, export_trace):
        """What the program exports is the engine's too. One export calls
        another, with a temporary file: the outer one is told."""
        local = self._exporting

        def export_chrome_trace(profiler, path, *args, **kwargs):
            if self._is_ours(profiler) or getattr(local, "inside", False):
                return export_trace(profiler, path, *args, **kwargs)
            local.inside = True
            try:
                out = export_trace(profiler, path, *args, **kwargs)
            finally:
                local.inside = False
            if self._unsaved is profiler or self._unsaved is getattr(
                    profiler, "profiler", None):
                self._unsaved = None
            if not getattr(profiler, "opscope_writes", False):
                self._adopt(path)
            return out
        return export_chrome_trace

    def _adopt(self, path):
        try:
            self.engine.adopt(os.path.abspath(os.fspath(path)))
        except Exception as e:
            self.engine.problem(
                "a profile that the program wrote could not be taken over: "
                "%s: %s" % (type(e).__name__, e))

    def leftover(self, stem):
        """At the end of the program: if it profiled itself and exported
        nothing (it printed a table), its last trace is written. Returns the
        paths."""
        profiler, self._unsaved = self._unsaved, None
        if profiler is None:
            return []
        target = stem + SUFFIX
        self._exporting.inside = True
        try:
            export(profiler, target)
        finally:
            self._exporting.inside = False
        return [target]

    # --- our own --------------------------------------------------------------

    @apart
    def prepare(self):
        """Warms the tracer up: on a GPU it takes its time to begin."""
        if self._profiler is not None or self._theirs:
            return
        want = self.engine.want
        self._profiler = self.torch.profiler._KinetoProfile(
            activities=activities(self.torch),
            record_shapes=bool(want.shapes),
            profile_memory=bool(want.memory),
            with_stack=bool(want.stacks))
        try:
            with Quiet():
                self._profiler.prepare_trace()
        except BaseException:
            self._profiler = None
            raise

    @apart
    def start(self, step):
        if self._theirs:
            raise RuntimeError("the program's own profiler runs")
        if self._running:
            raise RuntimeError("it runs already")
        self.prepare()
        if self.engine.want.memory:
            self._history_begins()
            self._blocks = [self.torch.empty(1, device="cpu")
                            for _ in range(WARNS_EVERY)]
        # torch looks its regions up when the first one begins and ends: that
        # is to be no part of the first step
        with self.torch.autograd.profiler.record_function("opscope"):
            pass
        try:
            with Quiet() as quiet:
                self._profiler.start_trace()
                self._use_up_warning(quiet)
        except BaseException:
            self._profiler = None
            self._history_over(None)
            raise
        self._running, self._thread = True, threading.get_ident()
        if threading.current_thread() is not threading.main_thread():
            self._of_thread.end = AtEnd(self._thread_over)

    def _thread_over(self):
        if self._running and threading.get_ident() == self._thread and hasattr(
                self.engine, "thread_over"):
            try:
                self.engine.thread_over()
            except Exception as e:
                self.engine.problem("torch: %s: %s" % (type(e).__name__, e))

    def _use_up_warning(self, quiet):
        """torch warns at one in so many blocks that it frees and did not see
        allocated. That line is written in here, where nobody sees it; the
        other blocks stay until the tracer is off."""
        while self._blocks and not quiet.has(b"Memory block of unknown"):
            self._blocks.pop()

    def mark(self, step):
        self._mark(STEP % step)

    @apart
    def _mark(self, name):
        self.unmark()
        if self._running:
            self._marker = self.torch.autograd.profiler.record_function(name)
            self._marker.__enter__()

    @apart
    def unmark(self):
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.__exit__(None, None, None)

    def mark_before(self):
        """Marks what comes before the first signal of a step: it may turn out
        to be one."""
        self._mark(BEFORE)

    def before_is(self, step):
        """Says before stop() that it was this step."""
        self._names.append((BEFORE, STEP % step))

    def unfinished(self, step):
        """Says before stop() that this step, marked last, did not end."""
        self._names.append((STEP % step,
                            "opscope: step %d, which did not end" % step))

    @apart
    def stop(self, stem):
        """Ends the trace and writes it. Returns the paths."""
        names, self._names = self._names, []
        if not self._running:
            self.cancel()
            return []
        if threading.get_ident() != self._thread:
            raise RuntimeError("it was started by another thread, which alone "
                               "can stop it")
        self.unmark()
        self.rank()
        paths = []
        try:
            self._running = False
            target = stem + SUFFIX
            with Quiet():
                self._profiler.stop_trace()
                self._blocks = []
                export(self._profiler, target, names)
            paths.append(target)
        finally:
            self._profiler = None
            paths += self._history_over(stem)
        return paths

    @apart
    def cancel(self):
        """Takes back a prepare() that no start() followed. torch's own way is
        to start and to stop."""
        profiler = self._profiler
        if profiler is None or self._running:
            return
        try:
            profiler.start_trace()
            profiler.stop_trace()
        finally:
            self._profiler = None

    def _history_begins(self):
        """Has the GPU's allocator note what it does, with the Python lines:
        the trace has neither these nor what is reserved. If the program does
        so itself it is left alone."""
        torch = self.torch
        asked = getattr(torch._C, "_cuda_isHistoryEnabled", None)
        if asked is None or not torch.cuda.is_initialized():
            return
        try:
            if asked():
                return
            torch.cuda.memory._record_memory_history(
                "all", context="alloc", stacks="python",
                max_entries=HISTORY_ENTRIES)
            self._history = True
        except Exception as e:
            self.engine.problem("torch: the allocator's history could not be "
                                "recorded: %s: %s" % (type(e).__name__, e))

    def _history_over(self, stem):
        if not self._history:
            return []
        self._history = False
        memory = self.torch.cuda.memory
        try:
            if stem is not None:
                part = stem + ".pickle.part"
                try:
                    memory._dump_snapshot(part)
                    os.replace(part, stem + ".pickle")
                finally:
                    remove(part)
            memory._record_memory_history(None)
            return [stem + ".pickle"] if stem is not None else []
        except Exception as e:
            self.engine.problem("torch: the allocator's history could not be "
                                "written: %s: %s" % (type(e).__name__, e))
            return []

    def _devices(self):
        """The kinds of devices that are in use, each with a queue of its
        own."""
        for name in ("cuda", "xpu"):
            device = getattr(self.torch, name, None)
            if device is None or not getattr(device, "is_initialized",
                                             _never)():
                continue
            if name != "cuda" or not self._is_capturing():
                yield device

    def has_queue(self):
        return any(True for _ in self._devices())

    def sync(self):
        for device in self._devices():
            for i in _in_use(device):
                device.synchronize(i)

    def rank(self):
        """(rank, world), as soon as torch.distributed knew it: at the end of a
        program it may have forgotten."""
        try:
            dist = self.torch.distributed
            if dist.is_available() and dist.is_initialized():
                self._where = dist.get_rank(), dist.get_world_size()
        except Exception:
            pass
        return self._where


class Role:
    """What loaders are known by of which one goes on where another ended."""


def _in_use(device):
    """Which devices of a kind hold memory: to wait for one that the program
    does not use would take some of it."""
    reserved = getattr(device, "memory_reserved", None)
    now = device.current_device()
    if reserved is None:
        return [now]
    return [i for i in range(device.device_count()) if i == now or reserved(i)]


def _never():
    return False


def _outside():
    return -1


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def _batches(it):
    """How many batches an epoch has, or None if only its end tells."""
    try:
        return len(it._index_sampler)
    except Exception:
        return None
