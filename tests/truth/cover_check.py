#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`coverage` and `compile` against counts of their own.

coverage, every profile in tests/data: the reasons partition what they explain
(ops, memory, device time). PyTorch's JSON is counted again, from the events:
ops, ops with device work (kernel -> launching call -> ops around it), ops with
an allocation inside, device time with and without an op, launching calls.

compile: the captures in tests/data/compile come from programs of which it is
known what they compile; times are added up from the raw spans.

usage: cover_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import glob
import gzip
import json
import os
import re
import sys
from decimal import Decimal

import functools

import lib
from lib import say

rows = functools.partial(lib.rows, whole=Decimal)

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
PROFILE = re.compile(r"\.xplane\.pb|trace\.json|run_?metadata.*\.pb", re.I)
NOT_PROFILES = re.compile(r"/xprof/|/tfprof/|key_averages")
BOOKKEEPING = {"profiler::_record_function_enter", "aten::is_leaf",
               "profiler::_record_function_enter_new", "aten::output_nr",
               "profiler::_record_function_exit", "aten::_version"}
LAUNCH = re.compile(r"^(cudaLaunch|cuLaunch|cudaGraphLaunch|cuGraphLaunch|"
                    r"cudaMemcpy|cudaMemset|cuMemcpy|cuMemset)(?!HostFunc)")


def near(a, b):
    return abs(a - b) <= Decimal("0.0005")


def check_partition(cov):
    wrong = []
    for head, rest in (("ops with device time", "no device time"),
                       ("ops with memory", "no memory"),
                       ("device time that belongs", "device time, no op")):
        part = [r for r in cov if r["what"].startswith((head, rest))]
        if not part:
            continue
        whole = part[0]["expected"]
        total = sum(r["have"] for r in part)
        if whole is None:
            whole = 0
        if not near(total, whole):
            wrong.append("%s: parts sum to %s of %s" % (head, total, whole))
    return wrong


# ---- PyTorch's JSON, counted again ----

def events_of(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as f:
        doc = json.loads(f.read().decode("utf-8", "replace"), strict=False,
                         parse_float=Decimal)
    return [e for e in doc["traceEvents"] if e.get("ph") in ("X", "i")]


def nest(events):
    """Parents by time, per thread; ops, regions and calls alone."""
    kept = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"}
    threads = {}
    for e in events:
        if e["ph"] == "X" and e.get("cat") in kept:
            e["end"] = e["ts"] + e["dur"]
            threads.setdefault((e["pid"], e["tid"]), []).append(e)
    for list_ in threads.values():
        list_.sort(key=lambda e: (e["ts"], -e["dur"]))
        stack = []
        for e in list_:
            while stack and stack[-1]["end"] < e["end"]:
                stack.pop()
            e["up"] = stack[-1] if stack else None
            stack.append(e)
    return threads


def up_kept(e):
    p = e["up"]
    while p is not None and p["name"] in BOOKKEEPING:
        p = p["up"]
    return p


def merged(threads):
    """Calls seen twice: an only child of its parent's name."""
    children = {}
    for list_ in threads.values():
        for e in list_:
            p = up_kept(e)
            if e["name"] not in BOOKKEEPING and p is not None:
                children[id(p)] = children.get(id(p), 0) + 1
    out = set()
    for list_ in threads.values():
        for e in list_:
            p = up_kept(e)
            if p is not None and p["name"] == e["name"] and \
                    children[id(p)] == 1:
                out.add(id(e))
    return out


def count_kineto(path):
    events = events_of(path)
    threads = nest(events)
    twice = merged(threads)
    calls = {}
    for list_ in threads.values():
        for e in list_:
            if e["cat"].startswith("cuda_"):
                calls[e["args"].get("correlation")] = e
    device = [e for e in events if e.get("cat") in
              ("kernel", "gpu_memcpy", "gpu_memset")]
    n = {"device": sum(e["dur"] for e in device), "owned": 0, "lone": 0,
         "launches": 0}
    hit = set()
    for e in device:
        call = calls.get(e["args"].get("correlation"))
        if call is None:
            n["lone"] += e["dur"]
            continue
        p, op = call, False
        while p is not None:
            hit.add(id(p))
            op |= p["cat"] == "cpu_op"
            p = p["up"]
        n["owned"] += e["dur"] if op else 0
    touched = set()
    mark_memory(events, threads, touched)
    ops = [e for l in threads.values() for e in l
           if e["cat"] == "cpu_op" and e["name"] not in BOOKKEEPING
           and id(e) not in twice]
    n["ops"] = len(ops)
    n["hit"] = sum(id(e) in hit for e in ops)
    n["touched"] = sum(id(e) in touched for e in ops)
    n["launches"] = sum(1 for l in threads.values() for e in l
                        if e["cat"].startswith("cuda_") and
                        LAUNCH.match(e["name"]))
    return n


def mark_memory(events, threads, touched):
    mem = {}
    for e in events:
        if e["ph"] == "i" and e["name"] == "[memory]":
            mem.setdefault((e["pid"], e["tid"]), []).append(e["ts"])
    for where, times in mem.items():
        list_ = threads.get(where, [])
        times.sort()
        i, stack = 0, []
        for ts in times:
            while i < len(list_) and list_[i]["ts"] <= ts:
                stack = [s for s in stack if s["end"] > list_[i]["ts"]]
                stack.append(list_[i])
                i += 1
            for s in stack:
                if s["end"] > ts:
                    touched.add(id(s))


def check_kineto(path, cov):
    n, wrong = count_kineto(path), []
    by = {r["what"]: r for r in cov}

    def same(what, col, want):
        got = by[what][col] if what in by else 0
        if not near(Decimal(got or 0), Decimal(want)):
            wrong.append("%s: %s, counted %s" % (what, got, want))

    same("ops with device time", "have", n["hit"])
    same("ops with device time", "expected", n["ops"])
    same("ops with memory", "have", n["touched"])
    same("device time that belongs to an op", "expected", n["device"])
    same("device time that belongs to an op", "have", n["owned"])
    same("device time, no op: launch not recorded", "have", n["lone"])
    same("launching calls with device work", "expected", n["launches"])
    return wrong


def union_within(spans_, start, end):
    """Length of the union of sorted spans inside [start, end)."""
    total, at = Decimal(0), start
    for a, b in spans_:
        a, b = max(a, at), min(b, end)
        if b > a:
            total += b - a
            at = b
    return total


def check_steps(path, cov):
    """Step time that is explained: by `steps` (all but `other`), and on the
    host by the union of the raw events."""
    by, wrong = {r["what"]: r for r in cov}, []
    steps = rows("steps", path)
    got = by["step time with any event"]
    want = sum(s["dur_us"] - s["other_us"] for s in steps)
    if not near(got["have"], want):
        wrong.append("any event: %s, steps say %s" % (got["have"], want))
    if "trace.json" not in path:
        return wrong
    host = sorted((e["ts"], e["end"]) for l in nest(events_of(path)).values()
                  for e in l if not e["name"].startswith("ProfilerStep#"))
    want = sum(union_within(host, s["start_us"], s["start_us"] + s["dur_us"])
               for s in steps)
    got = by["step time with a host event"]["have"]
    if not near(got, want):
        wrong.append("host: %s, union %s" % (got, want))
    return wrong


# ---- compile ----

def spans(path):
    out = rows("trace", path, "--top", "0")
    out = [s for s in out if s["kind"] not in ("python", "kernel")]
    for s in out:
        s["end"] = s["start_us"] + s["dur_us"]
    return out


def table(path):
    return {(r["name"], r["kind"]): r for r in rows("compile", path)}


def compare(got, want):
    wrong = []
    for key, (count, again, total) in want.items():
        r = got.get(key)
        if r is None:
            wrong.append("no row %s" % (key,))
        elif (r["count"], r["recompiles"]) != (count, again):
            wrong.append("%s: %s, %s again" % (key, r["count"],
                                               r["recompiles"]))
        elif not near(r["total_us"], total):
            wrong.append("%s: %s us, added up %s" % (key, r["total_us"],
                                                     total))
    return wrong


def named(all_, name):
    return [s for s in all_ if s["name"] == name]


def check_torch(path):
    all_ = spans(path)
    dynamo = sorted(named(all_, "dynamo"), key=lambda s: s["start_us"])
    back = named(all_, "entire_backward_compile")
    first, rest = dynamo[0], dynamo[1:]  # other() is compiled first
    want = {
        ("frame 1", "compile"): (1, 0, first["dur_us"]),
        ("frame 0", "compile"): (2, 2, sum(s["dur_us"] for s in rest)),
        ("frame 0 (backward)", "compile"):
            (2, 2, sum(s["dur_us"] for s in back)),
        ("TorchDynamo Cache Lookup", "guard check"):
            (5, None, sum(s["dur_us"] for s in
                          named(all_, "TorchDynamo Cache Lookup")))}
    got = table(path)
    wrong = compare(got, want)
    why = got[("frame 0", "compile")]["reason"] or ""
    if "[12, 16], before [8, 16]" not in why or "a guard on a value" not in why:
        wrong.append("reason is %r" % why)
    return wrong


def inside(all_, outer, name):
    return [s for s in named(all_, name) if s["track"] == outer["track"] and
            outer["start_us"] <= s["start_us"] < outer["end"]]


def check_jax(path):
    all_ = spans(path)
    want = {}
    for f, again in (("f", 2), ("other", 0), ("multiply", 0), ("subtract", 0)):
        sums, count = [Decimal(0)] * 3, 0
        last = Decimal(-1)
        for call in sorted(named(all_, "PjitFunction(%s)" % f),
                           key=lambda s: (s["start_us"], -s["dur_us"])):
            if call["end"] <= last:
                continue  # recorded twice
            last = call["end"]
            low = inside(all_, call, "lower_sharding_computation")
            comp = inside(all_, call, "backend_compile_and_load")
            if not low:
                continue
            count += 1
            sums[0] += low[0]["start_us"] - call["start_us"]
            sums[1] += low[0]["dur_us"]
            sums[2] += comp[0]["dur_us"]
        for i, kind in enumerate(("trace", "lower", "compile")):
            want[(f, kind)] = (count, again, sums[i])
    return compare(table(path), want)


def check_tf(path):
    all_ = spans(path)
    want = {}
    for f in ("step", "fast"):
        calls = [s for s in named(all_, f)
                 if "tf_function_call" in (s["args"] or "")]
        got = [g for c in calls
               for g in inside(all_, c, "tf.function-graph_building")]
        want[(f, "trace")] = (2, 2, sum(g["dur_us"] for g in got))
    total = Decimal(0)
    for c in named(all_, "fast"):
        for n in ("HLO passes through layout assignment",
                  "HLO passes after layout assignment",
                  "CpuCompiler::RunBackend"):
            total += sum(s["dur_us"] for s in inside(all_, c, n))
    want[("fast", "compile")] = (2, 2, total)
    return compare(table(path), want)


def check_bound(path):
    """All that compiles must fit into the window."""
    total = sum(r["total_us"] for r in rows("compile", path))
    info = {r["metric"]: r for r in rows("info", path)}
    window = info["time window"]["value"]
    return [] if total <= window else ["%s us of %s" % (total, window)]


def main():
    ok = True
    paths = sorted(glob.glob(os.path.join(DATA, "**", "*"), recursive=True))
    for path in paths:
        if not PROFILE.search(path) or NOT_PROFILES.search(path):
            continue
        name = os.path.relpath(path, DATA)
        cov = rows("coverage", path)
        ok &= say("cover_check partition " + name, check_partition(cov))
        ok &= say("cover_check compile fits " + name, check_bound(path))
        ok &= say("cover_check steps " + name, check_steps(path, cov))
        if "trace.json" in path:
            ok &= say("cover_check count " + name, check_kineto(path, cov))
    for check, name in ((check_torch, "torch.pt.trace.json.gz"),
                        (check_jax, "jax.xplane.pb.gz"),
                        (check_tf, "tf.xplane.pb.gz")):
        path = os.path.join(DATA, "compile", name)
        ok &= say("cover_check compile " + name, check(path))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
