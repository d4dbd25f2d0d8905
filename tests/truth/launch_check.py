#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`launch --by call` of every Kineto profile in tests/data, counted again here
from the JSON alone: launches and time per driver call, delay from the call's
start to the work's start, the stream's queue as HTA defines it (launched and
not started), kernels, those shorter than their launch, and graphs.

usage: launch_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import bisect
import collections
import glob
import gzip
import json
import os
import subprocess
import sys
from decimal import Decimal

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
# What HTA says of the same files: it drops the last step and knows four calls;
# rows of its launch statistics, GPU events, longest queue of stream 7 (the
# launch itself included).
HTA = {"torch_cnn": (561, 564, 6), "torch_ddp_rank0": (550, 552, 19),
       "torch_ddp_rank1": (546, 548, 19)}
HTA_CALLS = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync",
             "cudaMemsetAsync")


def ours(path, *more):
    return {next(iter(r.values())): r
            for r in lib.rows("launch", path, "--by", "call", *more)}


def rank(values, pct):
    values = sorted(values)
    return values[max(-(-len(values) * pct // 100), 1) - 1]


def load(path):
    with gzip.open(path, "rb") as f:
        events = json.loads(f.read(), parse_float=Decimal)["traceEvents"]
    spans = [e for e in events if e.get("ph") == "X"]
    calls = {e["args"]["correlation"]: e for e in spans
             if e.get("cat") in ("cuda_runtime", "cuda_driver")
             and "correlation" in e.get("args", {})}
    by_call = collections.defaultdict(list)
    for e in spans:
        if e.get("cat") in WORK:
            c = calls.get(e["args"].get("correlation"))
            if c is not None:
                by_call[id(c)].append(e)
    calls = {id(c): c for c in calls.values()}
    return [(calls[k], sorted(v, key=lambda e: e["ts"]))
            for k, v in by_call.items()]


def queue_before(launches):
    """By launch: how many on its stream were launched before, not started."""
    streams = collections.defaultdict(list)
    for i, (call, work) in enumerate(launches):
        where = (work[0]["pid"], work[0]["tid"])
        streams[where].append((call["ts"], work[0]["ts"], i))
    depth = {}
    for v in streams.values():
        v.sort()
        starts = sorted(s for _, s, _ in v)
        for n, (ts, _, i) in enumerate(v):
            depth[i] = max(n - bisect.bisect_right(starts, ts), 0)
    return depth


def count(launches):
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    depth = queue_before(launches)
    for i, (call, work) in enumerate(launches):
        g = rows[call["name"]]
        kernels = [e for e in work if e["cat"] == "kernel"]
        g["dur"].append(call["dur"])
        g["delay"].append(work[0]["ts"] - call["ts"])
        g["queue"].append(depth[i])
        g["kernels"].append(len(kernels))
        g["short"].append(sum(int(e["dur"] * 1000) <
                              int(call["dur"] * 1000000) // len(work) / 1000
                              for e in kernels))
        g["graph"].append(len(kernels) if "GraphLaunch" in call["name"] else 0)
    return {name: {"launches": len(g["dur"]), "launch_us": sum(g["dur"]),
                   "delay_p50_us": rank(g["delay"], 50),
                   "delay_p95_us": rank(g["delay"], 95),
                   "queue_p50": rank(g["queue"], 50),
                   "queue_min": min(g["queue"]), "queue_max": max(g["queue"]),
                   "kernels": sum(g["kernels"]),
                   "short_kernels": sum(g["short"]),
                   "graph_kernels": sum(g["graph"])}
            for name, g in rows.items()}


def check_hta(path, name, launches, wrong):
    """Our queue is HTA's less the launch itself."""
    rows, events, most = HTA[name]
    depth = queue_before(launches)
    longest = 1 + max(d for i, d in depth.items()
                      if launches[i][1][0]["args"]["stream"] == 7)
    steps = subprocess.run([OPSCOPE, "steps", path, "--format", "csv"],
                           stdout=subprocess.PIPE, check=True, text=True)
    last = int(steps.stdout.split()[-1].split(",")[1])
    got = ours(path, "--steps", "..%d" % (last - 1))
    have = (sum(got[c]["launches"] for c in HTA_CALLS if c in got),
            sum(r["launches"] for r in got.values()), longest)
    if have != (rows, events, most):
        wrong.append("launches, events, longest queue %s, HTA says %s"
                     % (have, HTA[name]))


def check(path):
    name = os.path.relpath(path, DATA)
    launches, got, wrong = load(path), ours(path), []
    want = count(launches)
    if set(got) != set(want):
        wrong.append("calls %s, expected %s" % (sorted(got), sorted(want)))
    for call in set(got) & set(want):
        for col, v in want[call].items():
            if got[call][col] != v:
                wrong.append("%s of %s is %s, expected %s"
                             % (col, call, got[call][col], v))
    case = os.path.basename(path).split(".")[0]
    if case in HTA:
        check_hta(path, case, launches, wrong)
    print("not ok launch_check %s: %s" % (name, "; ".join(wrong)) if wrong
          else "ok launch_check %s" % name)
    return not wrong


def main():
    paths = sorted(glob.glob(os.path.join(DATA, "**", "*.pt.trace.json.gz"),
                             recursive=True))
    good = [check(p) for p in paths]
    if not good:
        print("not ok launch_check: no profile in tests/data")
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
