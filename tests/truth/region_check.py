#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows by name. The instances of regions in PyTorch's profiles are found
here with nothing but the json module, by docs/rules.md: which spans lie in
them, which device work was launched in them, where each begins and ends. What
`trace`, `kernels` and `steps` say with --region is held against that. The same
for a profile in which instances overlap, nest and lie on several threads.

usage: region_check.py [FILE...]      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import fnmatch
import glob
import json
import os
import sys
import tempfile
from decimal import Decimal

import kineto_count
import lib

HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver",
        "python_function")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
LARGEST = 1 << 20  # bytes of a file that is looked at


class Span:
    def __init__(self, ev):
        self.name, self.cat = ev["name"], ev["cat"]
        self.ts, self.dur = kineto_count.ns(ev["ts"]), kineto_count.ns(ev["dur"])
        self.end = self.ts + self.dur
        self.where = ev["pid"], ev["tid"]
        self.id = ev.get("args", {}).get("correlation")


def spans_of(path):
    host, device = [], []
    for ev in kineto_count.load(path)["traceEvents"]:
        if ev.get("ph") == "X" and ev.get("cat") in HOST:
            host.append(Span(ev))
        elif ev.get("ph") == "X" and ev.get("cat") in DEVICE:
            device.append(Span(ev))
    return host, device


def instances(host, pattern):
    """The outermost annotations that match, by start: `outer/inner` is an inner
    somewhere in an outer of the same thread."""
    parts = pattern.split("/")
    found = []
    threads = collections.defaultdict(list)
    for s in host:
        if s.cat == "user_annotation":
            threads[s.where].append(s)
    for spans in threads.values():
        spans.sort(key=lambda s: (s.ts, -s.dur))
        until = -1
        for i, s in enumerate(spans):
            around = [o for o in spans[:i] if o.end >= s.end]
            at = 0  # outer parts that were found, from outside
            for o in around:
                if at < len(parts) - 1 and fnmatch.fnmatchcase(o.name,
                                                               parts[at]):
                    at += 1
            if s.end <= until or at < len(parts) - 1 or \
                    not fnmatch.fnmatchcase(s.name, parts[-1]):
                continue
            found.append(s)
            until = s.end
    return sorted(found, key=lambda s: (s.ts, -s.dur))


class Window:
    """What lies in the instances, and where they begin and end."""

    def __init__(self, host, device, found):
        self.of = [[] for _ in found]
        self.steps = []
        calls = {s.id: s for s in host if s.id and s.cat.startswith("cuda")}
        inside = {}
        for s in host:
            own = [i for i, x in enumerate(found) if x.where == s.where and
                   x.ts <= s.ts < x.end or s is x]
            others = [i for i, x in enumerate(found) if x.ts <= s.ts < x.end]
            # that of its own thread, else the one that began first
            for i in (own or others)[:1]:
                self.of[i].append(s)
                inside[id(s)] = i
        loose, works = [], collections.defaultdict(list)
        for d in device:
            call = calls.get(d.id)
            if call is None:
                loose.append(d)
            elif id(call) in inside:
                self.of[inside[id(call)]].append(d)
                works[inside[id(call)]].append(d)
        until = 0
        for i, x in enumerate(found):
            start, end = x.ts, x.end
            if works[i]:
                before = [d.end for d in device if d.id in calls and
                          calls[d.id].ts < x.ts]
                waits = min([max(before, default=0)] +
                            [d.ts for d in works[i]])
                start = max(start, waits)
                end = max([end] + [d.end for d in works[i]])
            start = max(start, until)
            end = max(start, end)
            self.steps.append((start, end - start, x.dur))
            until = end
        for d in loose:
            for i, (start, dur, _) in enumerate(self.steps):
                if start <= d.ts < start + dur:
                    self.of[i].append(d)


def counted(spans):
    return collections.Counter((s.cat, s.name, s.dur) for s in spans)


def told(path, pattern, *more):
    rows = lib.rows("trace", path, "--region", pattern, *more, whole=Decimal)
    return collections.Counter(
        (r["cat"], r["name"], int(r["dur_us"] * 1000)) for r in rows
        if r["cat"] in HOST + DEVICE)


def unlike(have, want):
    """The first names whose counts differ."""
    return ["%s: %d, not %d" % (k[1], have[k], want[k])
            for k in sorted(set(have) | set(want)) if have[k] != want[k]][:3]


def check_region(path, host, device, pattern):
    found = instances(host, pattern)
    window = Window(host, device, found)
    everything = [s for spans in window.of for s in spans]
    wrong = unlike(told(path, pattern), counted(everything))
    for i in {0, len(found) - 1}:
        wrong += ["instance %d: %s" % (i, w) for w in
                  unlike(told(path, pattern, "--instance", str(i)),
                         counted(window.of[i]))]
    kernels = [s for s in everything if s.cat == "kernel"]
    rows = lib.rows("kernels", path, "--region", pattern, whole=Decimal)
    if sum(r["calls"] for r in rows) != len(kernels) or \
            sum(r["total_us"] for r in rows) * 1000 != \
            sum(s.dur for s in kernels):
        wrong.append("kernels has other calls or times")
    rows = lib.rows("steps", path, "--region", pattern, whole=Decimal)
    have = [(int((r["start_us"] - rows[0]["start_us"]) * 1000),
             int(r["dur_us"] * 1000), int(r["marker_us"] * 1000)) for r in rows]
    want = [(a - window.steps[0][0], b, c) for a, b, c in window.steps]
    wrong += ["step %d: start, length and marker %s, not %s" % (i, h, w)
              for i, (h, w) in enumerate(zip(have, want)) if h != w][:3]
    if len(have) != len(want):
        wrong.append("%d steps, not %d" % (len(have), len(want)))
    return wrong


def patterns_of(host):
    names = collections.Counter(
        s.name for s in host if s.cat == "user_annotation" and
        not set(s.name) & set("*?[]\\/") and not s.name.startswith("Profiler"))
    some = [n for n, _ in names.most_common(3)]
    return some + ["ProfilerStep#*/" + n for n in some[:1]
                   if instances(host, "ProfilerStep#*/" + n)] + \
        ["ProfilerStep#*"] * any(s.name.startswith("ProfilerStep#")
                                 for s in host)


def check_file(path):
    name = os.path.relpath(path, lib.DATA)
    host, device = spans_of(path)
    wrong = []
    some = patterns_of(host)
    for pattern in some:
        wrong += ["%s: %s" % (pattern, w)
                  for w in check_region(path, host, device, pattern)]
    if some:
        lib.say(name, wrong)


# ---- made by hand: answers are written down, not worked out ----

def event(name, tid, ts, dur, cat="cpu_op", **args):
    return {"ph": "X", "pid": 1, "tid": tid, "ts": ts, "dur": dur, "cat": cat,
            "name": name, "args": args}


def region(name, tid, ts, dur):
    return event(name, tid, ts, dur, "user_annotation")


def launch(number, ts, start, dur, tid=1):
    """A call at ts, and its kernel."""
    return [event("cudaLaunchKernel", tid, ts, 1, "cuda_runtime",
                  correlation=number),
            dict(event("k%d" % number, 7, start, dur, "kernel", device=0,
                       stream=7, correlation=number), pid=0)]


THREADS = [
    # a thread of its own: two requests of one worker, one of another between
    region("request", 1, 100, 100), event("a", 1, 110, 10),
    region("request", 2, 150, 100), event("b", 2, 160, 10),
    event("b", 2, 210, 10),
    region("request", 1, 300, 50), event("a", 1, 310, 10),
    event("c", 3, 160, 10), event("c", 3, 240, 5), event("c", 3, 270, 5),
    # inside of itself, and between instances
    region("request", 1, 320, 20), event("a", 1, 325, 5),
    event("a", 1, 280, 5),
]

LATE = [
    # the device is behind: work from before the second instance runs until 400
    region("fwd", 1, 100, 10), *launch(1, 105, 110, 90),
    *launch(2, 120, 200, 200), event("bwd", 1, 115, 20),
    region("fwd", 1, 150, 10), *launch(3, 155, 400, 50),
    # an idle device: it begins with its span
    region("fwd", 1, 600, 10), *launch(4, 605, 620, 30),
    # work of another stream that ends only after its own
    *launch(5, 700, 700, 500), region("fwd", 1, 750, 10),
    *launch(6, 755, 800, 20),
]

NESTED = [
    region("measure", 1, 0, 100), region("forward", 1, 10, 20),
    event("x", 1, 12, 5), region("warmup", 1, 200, 100),
    region("forward", 1, 210, 20), event("x", 1, 212, 5),
    region("measure", 1, 400, 100), region("inner", 1, 405, 80),
    region("forward", 1, 410, 20), event("x", 1, 412, 5),
    region("a/b", 1, 600, 10), event("y", 1, 602, 5),
]


def made(folder, name, events):
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"traceEvents": events, "schemaVersion": 1,
                   "deviceProperties": []}, f)
    return path


def steps(path, pattern, *more):
    return [(int(r["step"]), int(r["start_us"]), int(r["dur_us"]),
             int(r["marker_us"]))
            for r in lib.rows("steps", path, "--region", pattern, *more)]


def calls(path, pattern, *more):
    return {r["name"]: int(r["calls"])
            for r in lib.rows("ops", path, "--region", pattern, *more)
            if r["kind"] == "op"}


def same(have, want):
    return [] if have == want else ["%s, not %s" % (have, want)]


def check_made(folder):
    path = made(folder, "threads", THREADS)
    lib.say("threads: an instant counts once, an op in its own thread's",
            same(steps(path, "request"), [(0, 100, 100, 100),
                                          (1, 200, 50, 100), (2, 300, 50, 50)])
            + same(calls(path, "request"), {"a": 3, "b": 2, "c": 2})
            + same(calls(path, "request", "--instance", "0"),
                   {"a": 1, "c": 1})
            + same(calls(path, "request", "--instance", "1"),
                   {"b": 2, "c": 1})
            + same(calls(path, "request", "--instance", "2"), {"a": 2}))
    path = made(folder, "late", LATE)
    lib.say("device: an instance begins behind what was launched before",
            same(steps(path, "fwd"), [(0, 100, 100, 10), (1, 400, 50, 10),
                                      (2, 600, 50, 10), (3, 800, 20, 10)])
            + same({r["name"] for r in lib.rows("kernels", path, "--region",
                                                "fwd")},
                   {"k1", "k3", "k4", "k6"}))
    path = made(folder, "nested", NESTED)
    lib.say("names: by themselves, by what is around, with slashes of their own",
            same(len(steps(path, "forward")), 3)
            + same([s[1] for s in steps(path, "measure/forward")], [10, 410])
            + same([s[1] for s in steps(path, "measure/*/forward")], [410])
            + same([s[1] for s in steps(path, "m*")], [0, 400])
            + same(calls(path, "a/b"), {"y": 1})
            + same(calls(path, "measure/forward", "--instance", "1"),
                   {"x": 1})
            + same([s[0] for s in steps(path, "forward", "--instance", "1..")],
                   [1, 2]))


def main():
    files = sys.argv[1:] or sorted(
        p for p in glob.glob(os.path.join(lib.DATA, "**", "*.json*"),
                             recursive=True)
        if "pt.trace" in p and os.path.getsize(p) < LARGEST)
    for path in files:
        check_file(path)
    with tempfile.TemporaryDirectory() as folder:
        check_made(folder)
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
