#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds kernels, copies, memory and allocs against counts made straight from
torch's files, by a few lines of Python that know nothing of opscope.

usage: torch_counts.py      program: $OPSCOPE or build/opscope
"""
import collections
import gzip
import json
import math
import os
import sys
import tempfile
from decimal import Decimal

import lib
from lib import rows as run

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
FILES = ["torch_cnn/torch_cnn", "torch_ddp/torch_ddp_rank0",
         "torch_ddp/torch_ddp_rank1", "torch_graphs/torch_graphs",
         "torch_compiled/torch_compiled", "torch_cpu/torch_cpu",
         "torch_stack/torch_stack"]
faults = []
checked = 0


def same(what, got, want):
    global checked
    checked += 1
    if got != want:
        faults.append(f"{what}: {got}, counted {want}")


def union(intervals):
    out = []
    for s, e in sorted(intervals):
        if out and s <= out[-1][1]:
            out[-1][1] = max(e, out[-1][1])
        else:
            out.append([s, e])
    return out


def exposed(s, e, busy):
    return (e - s) - sum(max(Decimal(0), min(e, b) - max(s, a))
                         for a, b in busy)


def check_device(name, events, path):
    kernels = [e for e in events if e.get("cat") == "kernel"]
    ours = run("kernels", path)
    same(name + " kernels", sum(k["calls"] for k in ours), len(kernels))
    same(name + " kernel time", sum(k["total_us"] for k in ours),
         sum(Decimal(e["dur"]) for e in kernels))
    # several launch shapes of a name: split, they still sum up
    split = run("kernels", path, "--group", "shape")
    shapes = {(e["name"], tuple(e["args"]["grid"]), tuple(e["args"]["block"]),
               e["args"]["registers per thread"], e["args"]["shared memory"])
              for e in kernels}
    same(name + " shapes", len(split), len(shapes))
    same(name + " variants", sum(k["variants"] for k in ours), len(shapes))
    busy = union((Decimal(e["ts"]), Decimal(e["ts"]) + Decimal(e["dur"]))
                 for e in kernels)
    copies = [e for e in events
              if e.get("cat") in ("gpu_memcpy", "gpu_memset")]
    ours = run("copies", path)
    same(name + " copies", sum(c["calls"] for c in ours), len(copies))
    same(name + " copy time", sum(c["total_us"] for c in ours),
         sum(Decimal(e["dur"]) for e in copies))
    same(name + " copy bytes", sum(c["bytes"] for c in ours),
         sum(e["args"]["bytes"] for e in copies))
    same(name + " exposed", sum(c["exposed_us"] for c in ours), sum(
        exposed(Decimal(e["ts"]), Decimal(e["ts"]) + Decimal(e["dur"]), busy)
        for e in copies))


def check_memory(name, events, path):
    by_device = {}
    for e in events:
        if e.get("name") == "[memory]":
            a = e["args"]
            key = "host" if a["Device Type"] == 0 else f"GPU {a['Device Id']}"
            by_device.setdefault(key, []).append(
                (Decimal(e["ts"]), int(a["Bytes"]), a["Addr"],
                 int(a["Total Allocated"]), int(a["Total Reserved"])))
    ours = {m["device"]: m for m in run("memory", path)}
    same(name + " allocators", sorted(ours), sorted(by_device))
    allocs, peak = run("allocs", path), run("allocs", path, "--peak")
    for device, list_ in by_device.items():
        list_.sort(key=lambda m: m[0])
        at, m = f"{name} {device}", ours[device]
        same(at + " peak", m["peak_bytes"], max(e[3] for e in list_))
        same(at + " reserved", m["reserved_bytes"],
             max(e[4] for e in list_) or None)
        same(at + " allocs", m["allocs"], sum(e[1] > 0 for e in list_))
        same(at + " frees", m["frees"], sum(e[1] < 0 for e in list_))
        same(at + " end", m["live_at_end_bytes"], list_[-1][3])
        same(at + " live at peak",
             sum(a["bytes"] for a in peak if a["device"] == device),
             m["peak_bytes"])
        live = {}
        for _, size, addr, _, _ in list_:
            if size > 0:
                live[addr] = size
            else:
                live.pop(addr, None)
        still = [a for a in allocs if a["device"] == device
                 and a["alloc_us"] is not None and a["free_us"] is None]
        same(at + " blocks at end", len(still), len(live))
        same(at + " bytes at end", sum(a["bytes"] for a in still),
             sum(live.values()))


def flops_of(e):
    """What torch's with_flops counts for an op, from its recorded shapes; None
    for ops that it does not count, and for convolutions."""
    shapes = e.get("args", {}).get("Input Dims")
    if shapes is None or e.get("cat") != "cpu_op":
        return None
    if e["name"] in ("aten::mul", "aten::add"):
        return math.prod(shapes[0])  # of the first input, whatever the other
    at = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1,
          "aten::baddbmm": 1}.get(e["name"])
    return None if at is None else \
        2 * math.prod(shapes[at]) * shapes[at + 1][-1]


def calls(events):
    """The ops, one for each call: torch takes an op of the same name right
    inside of another (mul by a number is a mul by a tensor) for the same."""
    threads = collections.defaultdict(list)
    for e in events:
        if e.get("cat") == "cpu_op" and e.get("ph") == "X":
            threads[e["pid"], e["tid"]].append(e)
    for ops in threads.values():
        around = []
        for e in sorted(ops, key=lambda e: (Decimal(e["ts"]),
                                            -Decimal(e["dur"]))):
            while around and around[-1][0] <= Decimal(e["ts"]):
                around.pop()
            if not around or around[-1][1] != e["name"]:
                yield e
            around.append((Decimal(e["ts"]) + Decimal(e["dur"]), e["name"]))


def check_flops(name, events, path):
    by_name, by_shape = collections.Counter(), collections.Counter()
    for e in calls(events):
        n = flops_of(e)
        if n is not None:
            by_name[e["name"]] += n
            by_shape[e["name"], json.dumps(e["args"]["Input Dims"])] += n
    ours = {o["name"]: o["flops"] for o in run("ops", path)
            if o["flops"] is not None and o["name"] != "aten::conv2d"}
    same(name + " flops", ours, dict(by_name))
    ours = {(o["name"], o["shapes"]): o["flops"]
            for o in run("ops", path, "--group", "shapes")
            if o["flops"] is not None and o["name"] != "aten::conv2d"}
    same(name + " flops by shape", ours, dict(by_shape))


def check_no_header(name, doc, events):
    """The old profiler of autograd does not say in the header what it recorded:
    the events tell."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, name + ".pt.trace.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({k: v for k, v in doc.items()
                       if k not in ("record_shapes", "with_flops",
                                    "profile_memory")}, f, default=str)
        check_flops(name + " without its header", events, path)


# known figures of these files: kernels, their time, peak and reserved bytes
FINGERPRINTS = {
    "torch_cnn": (708, "6018.144", 186639872, 243269632),
    "torch_ddp_rank0": (618, "3534.724", 146706432, 169869312),
    "torch_ddp_rank1": (618, "3512.980", 146706432, 169869312),
}


def check_fingerprint(name, path):
    calls, time, peak, reserved = FINGERPRINTS[name]
    kernels = run("kernels", path)
    gpu = [m for m in run("memory", path) if m["device"] == "GPU 0"][0]
    same(name + " print", (sum(k["calls"] for k in kernels),
                           sum(k["total_us"] for k in kernels),
                           gpu["peak_bytes"], gpu["reserved_bytes"]),
         (calls, Decimal(time), peak, reserved))


def main():
    for file in FILES:
        path = os.path.join(DATA, file + ".pt.trace.json.gz")
        name = os.path.basename(file)
        with gzip.open(path, "rt") as f:
            doc = json.load(f, parse_float=Decimal)
            events = doc["traceEvents"]
        check_device(name, events, path)
        check_memory(name, events, path)
        check_flops(name, events, path)
        check_no_header(name, doc, events)
        if name in FINGERPRINTS:
            check_fingerprint(name, path)
    print(f"{checked} figures held against counts, {len(faults)} differ")
    lib.say("figures", faults if checked else "none")
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
