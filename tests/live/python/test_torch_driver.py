#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch driver against the PyTorch that is installed, with a small engine
in place of opscope's own: it counts every optimizer step as a step, and has the
driver trace some of them. Says `ok NAME`, `not ok NAME: why` or `ok NAME # skip
why` for each test, and ends with status 1 if one failed."""

import atexit
import collections
import contextlib
import functools
import gc
import glob
import gzip
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import types
import warnings

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def load_driver():
    sys.path.insert(0, os.path.join(ROOT, "build", "python"))
    return importlib.import_module("opscope._capture.torch_driver")


driver = None


class Want:
    memory = shapes = stacks = False


class Engine:
    """Counts steps by what ends them, and traces those of a range."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="opscope-torch-")
        atexit.register(shutil.rmtree, self.folder, True)
        self.reset()

    def reset(self, first=0, last=0, **want):
        self.want = Want()
        for key, value in want.items():
            setattr(self.want, key, value)
        self.first, self.last, self.step = first, last, 1
        self.signals = collections.Counter()
        self.problems, self.paths, self.events = [], [], []
        self.inputs = 0
        self.open = False
        if driver is not None:
            driver._roles.engine = None     # as for an engine that is new
        return self

    def problem(self, text):
        self.problems.append(text)

    def ready(self, optimizers=1):
        self.signals["ready"] += optimizers

    def spares(self):
        self.signals["spared"] += 1

    def begins(self, kind, key):
        self.signals[kind, key] += 1

    def ended(self, kind, key):
        if kind != "optimizer":
            self.signals["end", kind, key] += 1
            return
        self.signals[kind, key] += 1
        self.step += 1
        n = self.step
        if n == self.first - 1:
            driver.prepare()
        elif n == self.first:
            driver.sync()
            driver.start(n)
            self.open = True
            driver.mark(n)
        elif self.open and n <= self.last:
            driver.mark(n)
        elif self.open:
            self.close()

    def withdraw(self, kind, key):
        self.signals[kind, key] -= 1

    def steps_of(self, kind):
        return [self.signals[kind, key] for key in self.keys(kind)]

    def close(self):
        self.open = False
        driver.unmark()
        driver.sync()
        self.paths += driver.stop(os.path.join(
            self.folder, "host_1.step%d-%d" % (self.first, time.time_ns())))

    def input_begins(self):
        self.inputs += 1

    def input_ended(self):
        self.inputs -= 1

    def foreign(self, who, what):
        self.events.append(("foreign", what))
        self.first = 0      # as the engine does: theirs has the right of way
        if self.open:
            self.close()

    def takes_leftovers(self):
        return any(e[0] == "foreign" for e in self.events)

    def foreign_over(self, who):
        self.events.append(("over",))

    def adopt(self, path):
        self.events.append(("adopt", path))

    def count(self, kind):
        return sum(n for key, n in self.signals.items()
                   if isinstance(key, tuple) and key[0] == kind)

    def keys(self, kind):
        return [key[1] for key in self.signals
                if isinstance(key, tuple) and key[0] == kind]


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def same(what, got, wanted):
    if got != wanted:
        raise Failed("%s: %r, not %r" % (what, got, wanted))


def true(what, value):
    if not value:
        raise Failed(what)


def events(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as f:
        return json.load(f)["traceEvents"]


def ops(all_events):
    """How often each op was recorded."""
    return collections.Counter(e["name"] for e in all_events
                               if e.get("cat") == "cpu_op")


def markers(all_events):
    return sorted(e["name"] for e in all_events
                  if e.get("cat") == "user_annotation"
                  and e["name"].startswith("ProfilerStep#"))


class Loop:
    """A small training loop."""

    def __init__(self, optimizer=None, width=64, device="cpu"):
        torch.manual_seed(0)
        self.device = device
        self.model = nn.Sequential(nn.Linear(32, width), nn.ReLU(),
                                   nn.Linear(width, 4)).to(device)
        make = optimizer or (lambda p: torch.optim.AdamW(p))
        self.optimizer = make(self.model.parameters())

    def step(self):
        x = torch.randn(16, 32, device=self.device)
        loss = self.model(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def run(self, n):
        for _ in range(n):
            self.step()


def by_torch(loop, first, last):
    """Op counts of steps first to last by torch's own profiler. Its marker is
    moved after the step as the driver's is: both are between two steps."""
    from torch.profiler import ProfilerActivity, profile
    loop.run(first - 1)
    p = profile(activities=[ProfilerActivity.CPU])
    p.start()
    for n in range(first, last + 1):
        with torch.autograd.profiler.record_function("ProfilerStep#%d" % n):
            loop.step()
    p.stop()
    path = os.path.join(engine.folder, "own-%d.json" % time.time_ns())
    p.export_chrome_trace(path)
    return ops(events(path))


def traced(loop, first=4, last=6, steps=10, **want):
    engine.reset(first, last, **want)
    loop.run(steps)
    same("problems", engine.problems, [])
    true("a file", engine.paths)
    return events(engine.paths[0])


# --- tests ------------------------------------------------------------------

def test_markers():
    same("markers", markers(traced(Loop())),
         ["ProfilerStep#%d" % n for n in (4, 5, 6)])
    same("left over", glob.glob(engine.folder + "/*.part"), [])


def test_op_counts():
    got = ops(traced(Loop()))
    engine.reset()
    same("ops", dict(got), dict(by_torch(Loop(), 4, 6)))


def test_nesting():
    """A step holds the whole of its optimizer's region."""
    all_events = [e for e in traced(Loop()) if e.get("ph") == "X"]
    steps = [e for e in all_events if e["name"].startswith("ProfilerStep#")
             and e["cat"] == "user_annotation"]
    inside = [e for e in all_events
              if e["name"].startswith("Optimizer.step#")
              and e["cat"] == "user_annotation"]
    same("optimizer regions", len(inside), 3)
    for o in inside:
        true("it lies in a step", any(
            s["ts"] <= o["ts"] and o["ts"] + o["dur"] <= s["ts"] + s["dur"]
            for s in steps))


def test_memory_and_shapes():
    plain = traced(Loop())
    true("no memory unasked", not any(e.get("name") == "[memory]"
                                      for e in plain))
    rich = traced(Loop(), memory=True, shapes=True)
    true("memory", sum(e.get("name") == "[memory]" for e in rich) > 10)
    true("shapes", any(e["name"] == "aten::addmm" and e["args"].get(
        "Input Dims") for e in rich if e.get("cat") == "cpu_op"))


def test_stacks():
    rich = traced(Loop(), stacks=True)
    frames = [e["name"] for e in rich if e.get("cat") == "python_function"]
    true("Python frames", frames)
    true("modules", any("nn.Module: Linear" in f for f in frames))
    true("the program's own", any("test_torch_driver.py" in f
                                  for f in frames))


def test_two_windows():
    loop = Loop()
    a = markers(traced(loop, 4, 5))
    b = markers(traced(loop, 3, 3))
    same("first", a, ["ProfilerStep#4", "ProfilerStep#5"])
    same("second", b, ["ProfilerStep#3"])


def test_prepared_only():
    engine.reset(first=8, last=9)
    Loop().run(6)       # step 7 prepared, 8 never comes
    same("paths", driver.stop(os.path.join(engine.folder, "none")), [])
    same("markers", len(markers(traced(Loop()))), 3)


def test_optimizers():
    """Whatever kind: one signal a step, one key an optimizer."""
    o = torch.optim
    kinds = {
        "SGD": lambda p: o.SGD(p, lr=0.1),
        "foreach": lambda p: o.Adam(p, foreach=True),
        "fused": lambda p: o.Adam(p, fused=True),
        "LBFGS": None,
        "RMSprop": lambda p: o.RMSprop(p)}
    for name, make in kinds.items():
        engine.reset()
        if name == "LBFGS":
            w = nn.Parameter(torch.ones(3))
            opt = o.LBFGS([w], max_iter=3)

            def closure():
                opt.zero_grad()
                loss = (w * w).sum()
                loss.backward()
                return loss
            for _ in range(5):
                opt.step(closure)
        else:
            try:
                loop = Loop(make)
            except RuntimeError:
                continue
            loop.run(5)
        same(name, (engine.count("optimizer"), len(engine.keys("optimizer")),
                    engine.signals["ready"], engine.problems),
             (5, 1, 1, []))


def test_optimizers_of_torch_before_2():
    """There each optimizer hooks its class, by a wrapper that nobody sees."""
    class Old:
        def step(self):
            return "stepped"

        def _hook_for_profile(self):
            cls, inner = type(self), type(self).step
            if not getattr(inner, "hooked", None):
                cls.step = functools.wraps(inner)(lambda opt: inner(opt))
                cls.step.hooked = True

    class Older(Old):
        def step(self):
            return super().step()

    engine.reset()
    load_driver().wrap(Old, "_hook_for_profile", driver._hooking)
    for cls in (Old, Older, Older):
        opt = cls()
        opt._hook_for_profile()
        same(cls.__name__, opt.step(), "stepped")
    same("steps", engine.count("optimizer"), 3)


def test_optimizers_that_are_gone_are_not_waited_for():
    engine.reset()
    w, v = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    made = [torch.optim.SGD([p], lr=0.1) for p in (w, w, v)]
    same("waited for", engine.signals["ready"], 2)
    made[0].step()
    del made
    gc.collect()
    same("spared", engine.signals["spared"], 1)     # the other one stepped


def test_optimizers_one_after_the_other_are_one():
    """Made at one place, or gone when the next one steps."""
    def fold(make):
        w = nn.Parameter(torch.ones(3))
        optimizer = make([w])
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(3):
            (w * w).sum().backward()
            optimizer.step()
            schedule.step()
        return optimizer

    def other_place(parameters):
        return torch.optim.Adam(parameters)

    engine.reset()
    kept = [fold(torch.optim.SGD) for _ in range(3)]
    same("of folds", sorted(engine.steps_of("optimizer")), [9])
    gc.disable()
    try:
        del kept
        gc.collect()
        fold(other_place)
    finally:
        gc.enable()
    same("behind one that is gone", engine.steps_of("optimizer"), [12])


def test_optimizers_in_turns_are_not_one():
    """Made by one line, before either steps or when it is first needed."""
    parts = [nn.Parameter(torch.ones(3)) for _ in range(2)]

    def make(w):
        return torch.optim.SGD([w])
    for early in (True, False):
        engine.reset()
        made = [make(w) for w in parts] if early else []
        for _ in range(5):
            for i, w in enumerate(parts):
                if i == len(made):
                    made.append(make(w))
                (w * w).sum().backward()
                made[i].step()
        same("early" if early else "late",
             sorted(engine.steps_of("optimizer")), [5, 5] if early else [4, 5])


def test_an_inner_loop_is_not_the_step():
    engine.reset()
    w = nn.Parameter(torch.ones(3))
    outer = torch.optim.Adam([w])
    for _ in range(4):
        for _ in range(3):
            fast = nn.Parameter(w.detach().clone())
            inner = torch.optim.SGD([fast])
            for _ in range(2):
                (fast * fast).sum().backward()
                inner.step()
        (w * w).sum().backward()
        outer.step()
    same("steps", sorted(engine.steps_of("optimizer")), [4, 24])
    same("waited for", engine.signals["ready"] - engine.signals["spared"], 2)


def test_scheduler_and_scaler():
    loop = Loop()
    schedule = torch.optim.lr_scheduler.StepLR(loop.optimizer, 2)
    scaler = torch.amp.GradScaler("cpu") if hasattr(
        torch.amp, "GradScaler") else None
    engine.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(6):
            loss = loop.model(torch.randn(16, 32)).square().mean()
            loop.optimizer.zero_grad()
            if scaler:
                scaler.scale(loss).backward()
                scaler.step(loop.optimizer)
                scaler.update()
            else:
                loss.backward()
                loop.optimizer.step()
            schedule.step()
    same("steps", engine.count("optimizer"), 6)


def test_made_before():
    """An optimizer that was there before the driver, its step taken by a
    learning-rate scheduler: run in another process."""
    code = """
import sys, torch
sys.path.insert(0, %r)
import test_torch_driver as t
w = torch.nn.Parameter(torch.ones(3))
a, b = torch.optim.SGD([w], lr=0.1), torch.optim.Adam([w])
s = torch.optim.lr_scheduler.StepLR(b, 2)
t.attach()
for _ in range(4):
    (w * w).sum().backward(); a.step(); b.step(); s.step()
print(sorted(t.engine.signals.values()), t.engine.problems)
""" % os.path.dirname(os.path.abspath(__file__))
    same("signals", python("-c", code).stdout.strip(), "[4, 4] []")


def test_what_is_gone_is_forgotten():
    engine.reset()
    for _ in range(5):
        loop = Loop()
        loop.run(2)
        del loop
        gc.collect()
    same("keys", len(engine.keys("optimizer")), 1)
    true("what is gone is forgotten", len(driver._numbers._known) < 20)


def batches(workers=0, iterable=False, **options):
    from torch.utils.data import DataLoader, IterableDataset, TensorDataset

    class Stream(IterableDataset):
        def __iter__(self):
            return iter([torch.ones(3)] * 12)
    data = Stream() if iterable else TensorDataset(torch.randn(12, 3))
    return DataLoader(data, batch_size=2, num_workers=workers, **options)


def test_loader():
    for workers, iterable, options in (
            (0, False, {}), (0, True, {}), (1, False, {}),
            (1, False, {"persistent_workers": True}),
            (1, False, {"multiprocessing_context": "spawn"})):
        engine.reset()
        loader = batches(workers, iterable, **options)
        n = 0
        for _ in range(2):
            for _ in loader:
                n += 1
        label = "%d workers, %s" % (workers, options or iterable)
        same(label, (engine.count("loader"), len(engine.keys("loader")),
                     engine.inputs, engine.problems), (n, 1, 0, []))
        true("twelve batches", n == 12)


def test_loader_breaks():
    """An error of the data set comes through, and inputs are balanced."""
    from torch.utils.data import DataLoader, Dataset

    class Bad(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            raise KeyError("nothing here")
    engine.reset()
    try:
        next(iter(DataLoader(Bad())))
    except KeyError:
        pass
    else:
        raise Failed("the error was lost")
    same("inputs", engine.inputs, 0)


def test_foreign():
    from torch.profiler import profile, schedule, tensorboard_trace_handler
    engine.reset()
    loop = Loop()
    where = os.path.join(engine.folder, "own")
    with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=2),
                 on_trace_ready=tensorboard_trace_handler(
                     where, use_gzip=True)) as p:
        for _ in range(8):
            loop.step()
            p.step()
    kinds = [e[0] for e in engine.events]
    same("order", kinds, ["foreign", "adopt", "adopt", "over"])
    for e in engine.events[1:3]:
        true("a whole file", events(e[1]))
    same("nothing is left over", driver.leftover("x"), [])


def test_foreign_autograd():
    engine.reset()
    with torch.autograd.profiler.profile() as p:
        Loop().run(2)
    path = os.path.join(engine.folder, "auto.json")
    p.export_chrome_trace(path)
    same("events", engine.events,
         [("foreign", "torch.autograd.profiler.profile"), ("over",),
          ("adopt", path)])


def test_foreign_ends_ours():
    from torch.profiler import profile
    engine.reset(first=3, last=100)
    loop = Loop()
    loop.run(5)
    with profile() as p:
        loop.run(2)
    true("its own table", len(p.key_averages()) > 3)
    same("ours up to then", markers(events(engine.paths[0])),
         ["ProfilerStep#%d" % n for n in (3, 4, 5, 6)])
    engine.first = 0
    paths = driver.leftover(os.path.join(engine.folder, "left"))
    true("a trace that was never exported", ops(events(paths[0])))


def test_foreign_while_prepared():
    from torch.profiler import profile
    engine.reset(first=4, last=5)
    loop = Loop()
    loop.run(2)
    with profile() as p:
        loop.run(1)
    engine.first = 0
    true("its own table", len(p.key_averages()) > 3)
    same("problems", engine.problems, [])
    driver._unsaved = None


def test_compile():
    """A compiled step has no break and no second compilation by the driver;
    its calls are told."""
    if not hasattr(torch, "compile"):
        raise Skipped("this torch has no torch.compile")
    import torch._dynamo as dynamo
    from torch._dynamo.utils import counters
    for compiled_optimizer in (False, True):
        dynamo.reset()
        counters.clear()
        engine.reset()
        loop = Loop(lambda p: torch.optim.SGD(p, lr=0.1))
        x = torch.randn(16, 32)
        for p in loop.model.parameters():
            p.grad = torch.ones_like(p)

        @torch.compile(backend="eager", fullgraph=True)
        def forward(x):
            return loop.model(x).square().mean()

        # torch itself breaks the graph around what switches gradients off
        @torch.compile(backend="eager")
        def update():
            loop.optimizer.step()
        for _ in range(6):
            loss = forward(x)
            loss.backward()
            if compiled_optimizer:
                update()
            else:
                loop.optimizer.step()
        if not compiled_optimizer:
            same("graph breaks", dict(counters["graph_break"]), {})
            same("graphs", counters["stats"]["unique_graphs"], 1)
            same("optimizer steps", engine.count("optimizer"), 6)
        calls = [engine.signals["call", k] for k in engine.keys("call")]
        same("calls", calls, [6, 6] if compiled_optimizer else [6])
    engine.lead = types.SimpleNamespace(kind="optimizer", count=6)
    try:
        forward(x)
    finally:
        del engine.lead
    same("calls beside an optimizer", sum(
        engine.signals["call", k] for k in engine.keys("call")), 12)


def test_compile_with_breaks():
    """A step in a function that breaks is compiled as it would be without the
    driver, and costs no compilation more."""
    if not hasattr(torch, "compile"):
        raise Skipped("this torch has no torch.compile")
    import torch._dynamo as dynamo
    from torch._dynamo.utils import counters
    dynamo.reset()
    counters.clear()
    engine.reset()
    loop = Loop(lambda p: torch.optim.SGD(p, lr=0.1))

    @torch.compile(backend="eager")
    def train(x):
        loss = loop.model(x).square().mean()
        loop.optimizer.zero_grad()
        loss.backward()
        loop.optimizer.step()
        return loss
    for _ in range(3):
        train(torch.randn(16, 32))
    before = counters["stats"]["unique_graphs"]
    for _ in range(9):
        train(torch.randn(16, 32))
    same("compilations later on", counters["stats"]["unique_graphs"], before)
    true("each call is told", 12 in [engine.signals["call", k]
                                     for k in engine.keys("call")])
    same("problems", engine.problems, [])


def test_cuda():
    if not torch.cuda.is_available():
        raise Skipped("no CUDA device")
    all_events = traced(Loop(device="cuda"), memory=True)
    true("kernels", any(e.get("cat") == "kernel" for e in all_events))
    same("files", sorted(p.split(".", 2)[-1] for p in engine.paths),
         ["pickle", "pt.trace.json.gz"])
    stream, g = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    loop = Loop(lambda p: torch.optim.Adam(p, capturable=True),
                device="cuda")
    with torch.cuda.stream(stream):
        loop.run(3)
    torch.cuda.synchronize()
    engine.reset()
    with torch.cuda.graph(g):
        loop.step()
    same("steps while a graph is captured", engine.count("optimizer"), 0)
    for _ in range(5):
        g.replay()
    same("replays", engine.count("optimizer"), 5)


def test_a_graph_in_which_an_optimizer_stepped_is_its_step():
    class Graph:
        def capture_end(self):
            pass

        def replay(self):
            return "ran"
    fake = types.SimpleNamespace(cuda=types.SimpleNamespace(CUDAGraph=Graph))
    driver._attach_graphs(fake)
    engine.reset()
    loop, is_capturing = Loop(), driver._is_capturing
    loop.run(2)
    graphs = [Graph(), Graph()]
    driver._is_capturing = lambda: True
    try:
        loop.step()
    finally:
        driver._is_capturing = is_capturing
    for g in graphs:        # nothing stepped in the second one
        g.capture_end()
    same("while it was captured", engine.count("optimizer"), 2)
    same("value", [g.replay() for g in graphs for _ in range(3)], ["ran"] * 6)
    same("steps", engine.count("optimizer"), 5)
    same("calls", engine.count("call"), 3)


def test_quiet():
    """The tracer writes nothing to the program's stderr."""
    code = """
import sys
sys.path.insert(0, %r)
import test_torch_driver as t
t.attach()
t.traced(t.Loop())
""" % os.path.dirname(os.path.abspath(__file__))
    same("stderr", python("-c", code).stderr, "")


def test_ranks():
    """Two gloo processes: each knows its rank, also after the end of the
    group, and its trace has it."""
    code = """
import os, sys
sys.path.insert(0, %r)
import test_torch_driver as t
import torch, torch.distributed as dist
t.attach()
dist.init_process_group("gloo", init_method="file://" + sys.argv[2],
                        rank=int(sys.argv[1]), world_size=2)
t.traced(t.Loop())
dist.destroy_process_group()
import gzip, json
with gzip.open(t.engine.paths[0]) as f:
    info = json.load(f)["distributedInfo"]
print(t.driver.rank(), info["rank"], info["world_size"])
""" % os.path.dirname(os.path.abspath(__file__))
    meet = os.path.join(engine.folder, "meet-%d" % time.time_ns())
    runs = [subprocess.Popen([sys.executable, "-c", code, str(r), meet],
                             stdout=subprocess.PIPE, text=True)
            for r in range(2)]
    same("ranks", [r.communicate()[0].strip() for r in runs],
         ["(0, 2) 0 2", "(1, 2) 1 2"])


def test_overhead():
    """What a step costs more with the hooks: one optimizer, one batch."""
    loop, loader = Loop(), batches()
    engine.reset()

    def spin(n):
        begin = time.perf_counter_ns()
        for _ in range(n):
            loop.optimizer.step()
        return (time.perf_counter_ns() - begin) / n
    stepped = []
    original = driver._tell
    rounds = []
    for _ in range(7):
        driver._tell = original
        on = spin(200)
        begin = time.perf_counter_ns()
        for _ in range(2000):
            driver._tell("ended", "nothing", loop)
        rounds.append((time.perf_counter_ns() - begin) / 2000)
        stepped.append(on)
    cost, step = min(rounds), min(stepped)
    print("# a signal takes %.2f us, beside an optimizer step of %.0f us"
          % (cost / 1e3, step / 1e3))
    true("a signal under 5 us", cost < 5000)
    del loader


# --- opscope.torch ----------------------------------------------------------

def public():
    try:
        import opscope.torch
    except ImportError as e:
        raise Skipped("opscope is not built: %s" % e)
    return opscope.torch


def test_profile_exports():
    module = public()
    from opscope import Error
    engine.reset()
    logs = os.path.join(engine.folder, "logs-%d" % time.time_ns())
    out = os.path.join(engine.folder, "copy")
    loop, ready = Loop(), []
    with module.profile(schedule=module.schedule(wait=1, warmup=1, active=2,
                                                 repeat=1),
                        on_trace_ready=ready.append, logdir=logs,
                        record_shapes=True) as prof:
        try:
            prof.export_chrome_trace(out + ".json")
        except Error as e:
            true("a sentence: %s" % e, " " in str(e))
        else:
            raise Failed("an export of nothing")
        for _ in range(8):
            loop.step()
            prof.step()
        prof.export_chrome_trace(out + ".json")
        prof.export_chrome_trace(out + "2.json.gz")
    prof.export_chrome_trace(out + "3.json")
    same("called", ready, [prof])
    same("files", len(prof.paths), 1)
    true("in the run's folder", prof.paths[0].startswith(
        os.path.join(logs, "plugins", "profile")))
    first = events(out + ".json")
    same("markers", markers(first), ["ProfilerStep#2", "ProfilerStep#3"])
    same("copies", [events(out + "2.json.gz"), events(out + "3.json")],
         [first, first])
    true("key_averages", any(e.key == "aten::addmm"
                             for e in prof.key_averages()))
    true("with shapes", any(e.input_shapes for e in prof.key_averages(
        group_by_input_shape=True)))


def test_profile_plain():
    """Without a schedule, as a decorator, and started by hand."""
    module = public()
    engine.reset()
    logs = os.path.join(engine.folder, "plain-%d" % time.time_ns())
    loop = Loop()
    with module.profile(logdir=logs) as prof:
        loop.run(2)
    same("one file", len(prof.paths), 1)
    p = module.profile(logdir=logs)
    p.start()
    loop.run(2)
    p.stop()
    same("one file", len(p.paths), 1)
    true("another run", p.folder != prof.folder)

    @module.profile(logdir=logs)
    def work(n):
        loop.run(n)
        return n
    same("value", work(2), 2)
    same("twice", work(3), 3)


def test_profile_with_the_handler_of_torch():
    module = public()
    engine.reset()
    board = os.path.join(engine.folder, "board-%d" % time.time_ns())
    with module.profile(
            on_trace_ready=torch.profiler.tensorboard_trace_handler(board),
            logdir=os.path.join(engine.folder, "handled")) as prof:
        Loop().run(2)
    same("files", (len(prof.paths), len(os.listdir(board))), (1, 1))


def test_profile_arguments():
    module = public()
    from opscope import Error
    for bad in ({"schedule": 5}, {"on_trace_ready": "log"},
                {"activities": ["CPU"]}, {"activities": []},
                {"activities": 5}, {"logdir": 7}, {"record_shape": True}):
        try:
            module.profile(**bad)
        except Error as e:
            true("a sentence for %r: %s" % (bad, e), str(e).count(" ") > 2)
        else:
            raise Failed("%r was taken" % bad)


def python(*args):
    env = dict(os.environ)
    env.pop("KINETO_LOG_LEVEL", None)
    done = subprocess.run([sys.executable] + list(args), env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Failed("status %d: %s" % (done.returncode, done.stderr[-600:]))
    return done


def attach():
    global engine, driver
    engine = Engine()
    driver = load_driver().Driver(engine)
    driver.attach(torch)


def main(names):
    if torch is None:
        print("ok torch_driver # skip torch is not installed")
        return 0
    attach()
    torch.set_num_threads(1)
    failed = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or not isinstance(
                test, types.FunctionType) or (names and name not in names):
            continue
        label = name[len("test_"):]
        try:
            test()
            print("ok torch_%s" % label)
        except Skipped as e:
            print("ok torch_%s # skip %s" % (label, e))
        except Exception as e:
            failed += 1
            print("not ok torch_%s: %s: %s" % (label, type(e).__name__, e))
            if os.environ.get("VERBOSE"):
                import traceback
                traceback.print_exc()
        sys.stdout.flush()
        engine.open = False
        if driver._running:
            with contextlib.suppress(Exception):
                driver.stop(os.path.join(engine.folder, "aborted"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
