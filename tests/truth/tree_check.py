#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tree, stacks and python against counts of our own and figures of others.

- every profile in tests/data, every --by: self + children = total, to the last
  digit; the roots' device time is that of all device work
- stacks: own times sum to all device work (by device), or to the union of each
  thread's spans (by host), counted from the JSON
- torch_cnn: device time of modules, forward, as torch's TensorBoard plugin
  showed it; forward and backward by a walk over the JSON
- scopes of TensorFlow: own time and calls of every op as XProf has them
- python: calls, total and own time of every function by a walk over the JSON

usage: tree_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import bisect
import collections
import csv
import glob
import gzip
import json
import os
import re
import sys
import tempfile
from decimal import Decimal

import lib
from lib import say

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
PROFILE = re.compile(r"\.xplane\.pb|trace\.json|run_?metadata", re.I)
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
API = {"cuda_runtime", "cuda_driver"}
# device time of the forward pass, us, by the plugin's own parser
PLUGIN = {"CNN_0": 1513.5, "CNN_0/Sequential_0": 1443.4,
          "CNN_0/Sequential_0/Conv2d_0": 133.7,
          "CNN_0/Sequential_0/Block_0": 543.6, "CNN_0/Linear_0": 55.5,
          "CrossEntropyLoss_0": 12.3}


def ask(analysis, path, *more):
    """The rows, or None when it is no profile."""
    try:
        return lib.rows(analysis, path, *more)
    except lib.Failed as e:
        if e.status != 2:
            raise
        return None


def ns(text):
    return int(Decimal(text).scaleb(3))


class Torch:
    """X events of a Kineto file, times in ns."""

    def __init__(self, path):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt") as f:
            data = json.load(f, parse_float=str)
        self.x = collections.defaultdict(list)  # by category
        self.flows = collections.defaultdict(dict)
        for e in data["traceEvents"]:
            if e.get("cat") == "fwdbwd":
                self.flows[e["id"]][e["ph"]] = (e["tid"], ns(e["ts"]))
            if e.get("ph") != "X":
                continue
            at = ns(e["ts"])
            self.x[e["cat"]].append((at, at + ns(e.get("dur", 0)), e["name"],
                                     e["tid"], e.get("args", {})))

    def nest(self, cats, keep=lambda e: True):
        """Lists [event, parent, children] per thread, by containment."""
        by_tid = collections.defaultdict(list)
        for cat in cats:
            for e in self.x[cat]:
                if keep(e):
                    by_tid[e[3]].append([e, None, []])
        for nodes in by_tid.values():
            nodes.sort(key=lambda n: (n[0][0], -n[0][1]))
            stack = []
            for n in nodes:
                while stack and stack[-1][0][1] < n[0][1]:
                    stack.pop()
                if stack:
                    n[1] = stack[-1]
                    stack[-1][2].append(n)
                stack.append(n)
        return by_tid


def at(nodes, starts, ts):
    """The innermost node that contains ts."""
    i = bisect.bisect_right(starts, ts) - 1
    n = nodes[i] if i >= 0 else None
    while n is not None and n[0][1] < ts:
        n = n[1]
    return n


def us(v):
    return Decimal(v).scaleb(-3)


# ---- sums ----

def check_sums(path, name):
    wrong, whole = [], None
    kernels = ask("kernels", path)
    copies = ask("copies", path)
    if kernels is not None:
        whole = (sum(r["total_us"] for r in kernels) +
                 sum(r["total_us"] for r in copies))
    for by in ("scope", "module", "op", "code"):
        rows = ask("tree", path, "--by", by)
        if rows is None:
            return None
        last, sums = {}, {}
        for i, r in enumerate(rows):
            last[r["depth"]] = i
            sums[i] = [0, 0]
            if r["depth"] == 0:
                continue
            parent = last[r["depth"] - 1]
            if not r["path"].startswith(rows[parent]["path"] + "/"):
                wrong.append("--by %s: %s stands under %s" % (
                    by, r["path"], rows[parent]["path"]))
            sums[parent][0] += r["host_us"] or 0
            sums[parent][1] += r["device_us"] or 0
        for i, r in enumerate(rows):
            own = r["host_self_us"] or 0
            if own + sums[i][0] != (r["host_us"] or 0):
                wrong.append("--by %s: host of %s" % (by, r["path"]))
            if (r["device_self_us"] or 0) + sums[i][1] != (r["device_us"] or 0):
                wrong.append("--by %s: device of %s" % (by, r["path"]))
            if own < 0 or (r["device_self_us"] or 0) < 0:
                wrong.append("--by %s: %s is negative" % (by, r["path"]))
        roots = sum(r["device_us"] or 0 for r in rows if r["depth"] == 0)
        # kernels of a TPU nest: only there a sum of spans is not the whole
        if whole is not None and roots != whole:
            wrong.append("--by %s: roots have %s us of the device's %s" % (
                by, roots, whole))
    stacks = ask("stacks", path, "--by", "device")
    if whole is not None and sum(r["self_us"] for r in stacks) != whole:
        wrong.append("stacks have %s us of the device's %s" % (
            sum(r["self_us"] for r in stacks), whole))
    return say("sums " + name, wrong)


# ---- torch ----

def check_host_stacks(t, path, name):
    cats = ["cpu_op", "user_annotation", "python_function", *API]
    dropped = re.compile(r"ProfilerStep#|profiler::_record_function|"
                         r"aten::(is_leaf|output_nr|_version)$")
    union = 0
    by_tid = collections.defaultdict(list)
    for cat in cats:
        for e in t.x[cat]:
            if not dropped.match(e[2]):
                by_tid[e[3]].append((e[0], e[1]))
    for spans in by_tid.values():
        end = None
        for a, b in sorted(spans):
            if end is None or a > end:
                union += b - a
                end = b
            elif b > end:
                union += b - end
                end = b
    got = sum(r["self_us"] for r in ask("stacks", path, "--by", "host"))
    return say("host stacks " + name, [] if got == us(union) else [
        "own times sum to %s us, threads have %s" % (got, us(union))])


def check_device_stacks(t, path, name):
    want = sum(e[1] - e[0] for c in DEVICE for e in t.x[c])
    if want == 0:
        return True
    got = sum(r["self_us"] for r in ask("stacks", path))
    return say("device stacks " + name, [] if got == us(want) else [
        "own times sum to %s us, the device has %s" % (got, us(want))])


def stable(name):
    return re.sub(r" at 0x[0-9a-fA-F]+>$", ">", name)


def check_python(t, path, name):
    calls, total, own = (collections.Counter() for _ in range(3))
    for nodes in t.nest(["python_function", "cpu_op", *API]).values():
        frames = {id(n) for n in nodes
                  if n[0][4].get("Python id") is not None}
        for n in nodes:
            if id(n) not in frames:
                continue
            f, dur = stable(n[0][2]), n[0][1] - n[0][0]
            calls[f] += 1
            own[f] += dur - sum(c[0][1] - c[0][0] for c in n[2])
            up = n[1]
            while up is not None and stable(up[0][2]) != f:
                up = up[1]
            if up is None:
                total[f] += dur
    wrong, seen = [], set()
    for r in ask("python", path):
        f = r["function"] if r["file"] is None else "%s(%d): %s" % (
            r["file"], r["line"], r["function"])
        seen.add(f)
        for column, want in (("calls", calls[f]), ("total_us", us(total[f])),
                             ("self_us", us(own[f]))):
            if r[column] != want:
                wrong.append("%s of %s is %s, the file has %s" % (
                    column, f, r[column], want))
    wrong += ["%s is missing" % f for f in calls if f not in seen]
    return say("python " + name, wrong)


class Modules:
    """Which module an op of the JSON belongs to."""

    def __init__(self, t):
        self.frames = t.nest(["python_function"])
        self.starts = {k: [n[0][0] for n in v] for k, v in self.frames.items()}

    def path(self, tid, ts):
        if tid not in self.frames:
            return None
        n, parts = at(self.frames[tid], self.starts[tid], ts), []
        while n is not None:
            if n[0][2].startswith("nn.Module: "):
                parts.insert(0, n[0][2][len("nn.Module: "):])
            n = n[1]
        return "/".join(parts) or None


def check_modules(t, path, name):
    """Device time by module: containment on the launching thread, else the
    arrow from the forward op; a gradient that is added up goes with the step
    before it."""
    mods = Modules(t)
    ops = t.nest(["cpu_op"])
    starts = {k: [n[0][0] for n in v] for k, v in ops.items()}
    forward = {v["f"]: v["s"] for v in t.flows.values() if len(v) == 2}
    owner = {}
    for tid, nodes in ops.items():
        last = None
        for n in nodes:
            if n[1] is not None:
                continue
            found, todo = None, [n]
            while todo and found is None:
                m = todo.pop()
                found = forward.get((tid, m[0][0]))
                todo += m[2]
            if found is None and "AccumulateGrad" in n[0][2]:
                found = last
            if found is not None:
                last = found
                owner[id(n)] = mods.path(*found)
    call = {e[4].get("correlation"): e for c in API for e in t.x[c]}
    want = collections.Counter()
    back = collections.Counter()
    for e in (e for c in DEVICE for e in t.x[c]):
        api = call.get(e[4].get("correlation"))
        where, folded = None, False
        if api is not None:
            where = mods.path(api[3], api[0])
            n = at(ops.get(api[3], []), starts.get(api[3], []), api[0])
            while n is not None and n[1] is not None:
                n = n[1]
            if n is not None and id(n) in owner:
                where, folded = owner[id(n)], True
        parts = (where or "(no scope)").split("/")
        for i in range(len(parts)):
            p = "/".join(parts[:i + 1])
            want[p] += e[1] - e[0]
            back[p] += e[1] - e[0] if folded else 0
    wrong = []
    for r in ask("tree", path, "--by", "module"):
        p = r["path"]
        if r["device_us"] is None:
            continue
        if r["device_us"] != us(want.pop(p, 0)):
            wrong.append("device_us of %s is %s" % (p, r["device_us"]))
        if r["backward_device_us"] != us(back[p]):
            wrong.append("backward_device_us of %s is %s, not %s" % (
                p, r["backward_device_us"], us(back[p])))
    wrong += ["%s is missing" % p for p, v in want.items() if v]
    return say("modules " + name, wrong)


def check_numbers(path, name):
    """Without the arrows, autograd's numbers must give the same tree."""
    with gzip.open(path, "rt") as f:
        data = json.load(f, parse_float=str)
    data["traceEvents"] = [e for e in data["traceEvents"]
                           if e.get("cat") != "fwdbwd"]
    text = re.sub(r'("(?:ts|dur)": )"([0-9.]+)"', r"\1\2", json.dumps(data))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write(text)
        f.flush()
        got = ask("tree", f.name, "--by", "module")
    want = ask("tree", path, "--by", "module")
    return say("no arrows " + name, [
        "%s differs" % a["path"] for a, b in zip(want, got) if a != b] + (
        ["%d rows, not %d" % (len(got), len(want))]
        if len(got) != len(want) else []))


def check_plugin(path):
    rows = {r["path"]: r for r in ask("tree", path, "--by", "module")}
    wrong = []
    for p, want in PLUGIN.items():
        r = rows.get(p)
        got = r and r["device_us"] - r["backward_device_us"]
        if r is None or r["calls"] != 4 or abs(float(got) - want) > 0.05:
            wrong.append("%s: %s us, the plugin shows %s in 4 calls" % (
                p, got, want))
    return say("torch's plugin", wrong)


def check_parameters(t, path, name):
    """Every parameter gets its gradient added up once a step."""
    size = 0
    steps = {e[2] for e in t.x["user_annotation"]
             if e[2].startswith("ProfilerStep#")}
    for e in t.x["cpu_op"]:
        if e[2] != "torch::autograd::AccumulateGrad" or \
                "Input Dims" not in e[4]:
            continue
        dims, n = e[4]["Input Dims"][0], 1
        for d in dims:
            n *= int(d)
        size += n
    rows = ask("tree", path, "--by", "module")
    got = sum(r["parameters"] or 0 for r in rows if r["depth"] == 0)
    if not steps or size == 0:
        return True
    return say("parameters " + name, [] if got * len(steps) == size else [
        "%d, gradients have %d" % (got, size // len(steps))])


def fold(name):
    """The path of a TensorFlow op, the backward pass with the forward."""
    if name.startswith("Iterator::"):
        return name.replace("::", "/")
    parts = name.split("/")
    back = "gradient_tape" in parts
    return "/".join(p[:-5] if back and p.endswith("_grad") else p
                    for p in parts if p and p != "gradient_tape")


def fold_jax(name):
    """The same for an op of JAX: transpose(jvp(x)) is x on the way back."""
    parts = []
    for p in name.split("/"):
        m = True
        while m:
            m = re.fullmatch(r"(transpose|jvp)\((.*)\)", p)
            p = m[2] if m else p
        parts.append(p)
    return "/".join(p for p in parts if p)


def check_xprof_device(path, table, name):
    """Device time of JAX's scopes. XProf needs the op on every kernel, so its
    table is that of the edited file."""
    own = collections.Counter()
    with open(table) as f:
        for r in csv.DictReader(f):
            if r["Host/device"] == "Device" and r["Operation Type"] != "IDLE":
                own[fold_jax(r["Operation Name"])] += float(
                    r["Total self-time (us)"])
    rows = {r["path"]: r for r in ask("tree", path, "--by", "scope")}
    wrong = [] if own else ["the table is empty"]
    for p, v in own.items():
        got = rows[p]["device_self_us"] if p in rows else None
        if got is None or abs(float(got) - v) > 0.002:
            wrong.append("%s: %s us, XProf has %s" % (p, got, v))
    return say("xprof device " + name, wrong)


def check_xprof(path, table, name):
    """Own time and calls of each op: XProf's table of framework ops."""
    own, calls = collections.Counter(), collections.Counter()
    with open(table) as f:
        for r in csv.DictReader(f):
            if r["Host/device"] == "Host" and r["Operation Type"] != "IDLE":
                p = fold(r["Operation Name"])
                own[p] += float(r["Total self-time (us)"])
                calls[p] += float(r["#Occurrences"])
    if not own:
        return True
    rows = {r["path"]: r for r in ask("tree", path, "--by", "scope")}
    wrong = []
    for p in own:
        r = rows.get(p)
        if r is None or abs(float(r["host_self_us"]) - own[p]) > 0.002:
            wrong.append("%s: own time %s, XProf has %s" % (
                p, r and r["host_self_us"], own[p]))
        elif r["calls"] != calls[p]:
            wrong.append("%s: %s calls, XProf has %s" % (p, r["calls"],
                                                         calls[p]))
    return say("xprof " + name, wrong)


def check_torch(path, name):
    t = Torch(path)
    good = check_device_stacks(t, path, name)
    good &= check_host_stacks(t, path, name)
    if t.x["python_function"]:
        good &= check_python(t, path, name)
        good &= check_modules(t, path, name)
        good &= check_parameters(t, path, name)
    return good


def main():
    good, seen = True, 0
    for path in sorted(glob.glob(os.path.join(DATA, "**", "*"),
                                 recursive=True)):
        name = os.path.relpath(path, DATA)
        if not os.path.isfile(path) or not PROFILE.search(path):
            continue
        ok = check_sums(path, name)
        if ok is None:
            continue
        seen += 1
        good &= ok
        if ".pt.trace.json" in path:
            good &= check_torch(path, name)
        table = os.path.join(os.path.dirname(path), "framework_op_stats.csv")
        if os.path.exists(table) and name.startswith("tf_"):
            good &= check_xprof(path, table, name)
        if name.startswith("jax_mlp"):
            good &= check_xprof_device(path, table.replace(
                "jax_mlp/", "jax_mlp_hlo/"), name)
        if "torch_cnn" in path:
            good &= check_plugin(path)
            good &= check_numbers(path, name)
    if seen == 0:
        print("not ok tree_check: no profile in tests/data")
    return 0 if good and seen else 1


if __name__ == "__main__":
    sys.exit(main())
