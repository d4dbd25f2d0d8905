#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts PyTorch profiles with nothing but the json module and holds
`opscope info`, `kernels`, `copies`, `memory` and `steps` against that: events
by category, sums and unions of durations to the nanosecond, memory peaks, step
numbers. Known fingerprints of some files are held against both.

usage: kineto_count.py [FILE...]      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import glob
import gzip
import json
import os
import re
import subprocess
import sys
from decimal import Decimal

import functools

import lib

run = functools.partial(lib.rows, whole=Decimal)

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")

# Counted by other people's scripts from the same files; times in ns.
FINGERPRINTS = {
    "torch_cnn": {
        "cpu_op": 2868, "user_annotation": 36, "python_function": 8250,
        "cuda_runtime": 1525, "cuda_driver": 4, "kernel": 708,
        "gpu_memcpy": 12, "gpu_memset": 32, "gpu_user_annotation": 20,
        "[memory]": 1352, "kernel sum": 6018144, "kernel union": 6013728,
        "busy union": 6180732, "device window": 56679935,
        "peak allocated": 186639872, "reserved": 243269632,
        "steps": [2, 3, 4, 5]},
    "torch_ddp_rank0": {
        "cpu_op": 3081, "user_annotation": 39, "cuda_runtime": 1633,
        "cuda_driver": 3, "kernel": 618, "gpu_memcpy": 189, "gpu_memset": 21,
        "gpu_user_annotation": 36, "[memory]": 1236, "kernel sum": 3534724,
        "kernel union": 3531301, "busy union": 4445526,
        "device window": 91363789, "peak allocated": 146706432,
        "reserved": 169869312, "steps": [2, 3, 4]},
    "torch_ddp_rank1": {
        "cpu_op": 3075, "user_annotation": 39, "cuda_runtime": 1615,
        "cuda_driver": 3, "kernel": 618, "gpu_memcpy": 183, "gpu_memset": 21,
        "gpu_user_annotation": 30, "[memory]": 1236, "kernel sum": 3512980,
        "kernel union": 3509492, "busy union": 4363663,
        "device window": 75289996, "peak allocated": 146706432,
        "reserved": 169869312, "steps": [2, 3, 4]},
}

# Files whose device work all lies inside the steps.
COVERED = {"torch_cnn", "torch_ddp_rank0", "torch_ddp_rank1"}


def ns(us):
    """Microseconds as written in the file, as whole nanoseconds."""
    value = Decimal(us) * 1000
    assert value == int(value), us
    return int(value)


def union(spans):
    total, last = 0, None
    for start, end in sorted(spans):
        if last is None or start > last:
            total += end - start
            last = end
        elif end > last:
            total += end - last
            last = end
    return total


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    if path.endswith(".gz"):
        data = gzip.decompress(data)
    elif path.endswith(".zst"):
        data = subprocess.run(["zstd", "-dcq", "--long=27"], input=data,
                              stdout=subprocess.PIPE, check=True).stdout
    # torch writes backslashes of source lines as they are
    text = data.decode("utf-8", "replace")
    text = re.sub(r'\\(?!["\\/bfnrtu])', r"\\\\", text)
    return json.loads(text, strict=False, parse_float=Decimal,
                      parse_int=Decimal)


def count(path):
    """What the file holds, by name of the thing."""
    got = collections.Counter()
    device = collections.defaultdict(list)
    peak, reserved, steps = {}, {}, set()
    for ev in load(path)["traceEvents"]:
        if ev.get("name") == "[memory]":
            got["[memory]"] += 1
            args = ev["args"]
            where = (int(args["Device Type"]), int(args["Device Id"]))
            if "Total Allocated" in args:
                level = int(args["Total Allocated"])
                peak[where] = max(peak.get(where, 0), level)
            if "Total Reserved" in args:
                level = int(args["Total Reserved"])
                reserved[where] = max(reserved.get(where, 0), level)
        if ev.get("ph") != "X":
            continue
        cat = ev.get("cat", "")
        got[cat] += 1
        if cat in ("kernel", "gpu_memcpy", "gpu_memset"):
            start = ns(ev["ts"])
            device[cat].append((start, start + ns(ev["dur"])))
        step = re.fullmatch(r"ProfilerStep#(\d+)", ev["name"])
        if step and cat == "user_annotation":
            steps.add(int(step.group(1)))
    got = dict(got)
    busy = [x for spans in device.values() for x in spans]
    for cat in ("kernel", "gpu_memcpy", "gpu_memset"):
        got[cat + " sum"] = sum(b - a for a, b in device[cat])
    got["kernel union"] = union(device["kernel"])
    got["busy union"] = union(busy)
    if busy:
        got["device window"] = (max(b for a, b in busy) -
                                min(a for a, b in busy))
    gpus = {w: v for w, v in peak.items() if w[0] == 1}
    got["peak allocated"] = max(gpus.values()) if gpus else None
    gpus = {w: v for w, v in reserved.items() if w[0] == 1}
    got["reserved"] = max(gpus.values()) if gpus else None
    got["steps"] = sorted(steps)
    return got


def ours(path):
    """The same things as opscope tells them."""
    info = {r["metric"]: r["value"] for r in run("info", path)}
    got = {
        "cpu_op": info.get("framework ops", 0),
        "user_annotation": info.get("annotations", 0),
        "python_function": info.get("Python frames", 0),
        "API calls": info.get("API calls", 0),
        "kernel": info.get("kernels", 0),
        "gpu_memcpy": info.get("copies", 0),
        "gpu_memset": info.get("memsets", 0),
        "gpu_user_annotation": info.get("derived spans (not counted)", 0),
        "[memory]": info.get("memory events", 0),
    }
    kernels, copies = run("kernels", path), run("copies", path)
    got["kernel calls"] = sum(r["calls"] for r in kernels)
    got["kernel sum"] = sum(ns(r["total_us"]) for r in kernels)
    fills = [r for r in copies if r["kind"] == "memset"]
    moves = [r for r in copies if r["kind"] != "memset"]
    got["gpu_memcpy sum"] = sum(ns(r["total_us"]) for r in moves)
    got["gpu_memset sum"] = sum(ns(r["total_us"]) for r in fills)
    memory = [r for r in run("memory", path)
              if r["device"].startswith("GPU")]
    got["peak allocated"] = max((r["peak_bytes"] for r in memory),
                                default=None)
    got["reserved"] = max((r["reserved_bytes"] for r in memory),
                          default=None)
    steps = run("steps", path)
    got["steps"] = sorted(int(r["step"]) for r in steps)
    return got, steps


def check_busy(want, steps):
    """Where the steps cover all device work, their busy time is its union."""
    busy = sum(r["device_busy_pct"] * r["dur_us"] / 100 for r in steps)
    return abs(busy * 1000 - want) <= 2 * len(steps)


def check(path):
    name = re.sub(r"\.pt\.trace\.json.*|\.json.*", "", os.path.basename(path))
    want, (got, steps) = count(path), ours(path)
    want["API calls"] = sum(want.get(c, 0)
                            for c in ("cuda_runtime", "cuda_driver"))
    want["kernel calls"] = want.get("kernel", 0)
    wrong = []
    for what, value in FINGERPRINTS.get(name, {}).items():
        if want.get(what) != value:
            wrong.append("this script counts %s %s, others %s"
                         % (what, want.get(what), value))
    for what in got:
        expected = want.get(what, 0)
        if what == "steps" and not expected:
            continue  # no markers: nothing to hold inferred steps against
        if got[what] != expected:
            wrong.append("%s is %s, not %s" % (what, got[what], expected))
    if name in COVERED and not check_busy(want["busy union"], steps):
        wrong.append("busy time of the steps is not %s" % want["busy union"])
    print("not ok kineto_count %s: %s" % (name, "; ".join(wrong)) if wrong
          else "ok kineto_count %s" % name)
    return not wrong


def check_job(folder):
    """Rows are of all ranks, those of --by rank of one: counted per file."""
    files = sorted(glob.glob(os.path.join(DATA, folder, "*.pt.trace.json*")))
    calls = [collections.Counter() for _ in files]
    times = [collections.Counter() for _ in files]
    for i, path in enumerate(files):
        for ev in load(path)["traceEvents"]:
            if ev.get("ph") == "X" and ev.get("cat") == "kernel":
                calls[i][ev["name"]] += 1
                times[i][ev["name"]] += ns(ev["dur"])
    wrong = []
    path = os.path.join(DATA, folder)
    rows = run("kernels", path)
    if len(rows) != len({r["name"] for r in rows}):
        wrong.append("a kernel has two rows")
    for r in rows:
        have = int(r["calls"]), ns(r["total_us"])
        want = [sum(c[r["name"]] for c in v) for v in (calls, times)]
        if have != tuple(want):
            wrong.append("%s has %s, not %s" % (r["name"], have, want))
    if len(rows) != len(set().union(*calls)):
        wrong.append("%d kernels" % len(rows))
    rows = run("kernels", path, "--by", "rank")
    if sum(len(c) for c in calls) != len(rows):
        wrong.append("%d rows by rank" % len(rows))
    # an op's rows by rank are what the rank's own file has
    for i, one in enumerate(files):
        have = {(r["name"], r["kind"]): r["calls"]
                for r in run("ops", path, "--by", "rank")
                if r["host"] and r["host"].endswith("rank %d" % i)}
        want = {(r["name"], r["kind"]): r["calls"] for r in run("ops", one)
                if r["kind"] != "memory"}
        if have != want:
            wrong.append("ops of rank %d differ from its file's" % i)
    print("not ok kineto_count job %s: %s" % (folder, "; ".join(wrong[:5]))
          if wrong else "ok kineto_count job %s" % folder)
    return not wrong


def main(argv):
    files = argv or sorted(
        p for p in glob.glob(os.path.join(DATA, "**", "*.pt.trace.json*"),
                             recursive=True))
    if not files:
        print("not ok kineto_count: no profile in tests/data")
        return 1
    good = all([check(p) for p in files])
    if not argv:
        good &= all([check_job(d) for d in ("torch_ddp", "torch_gloo4")])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
