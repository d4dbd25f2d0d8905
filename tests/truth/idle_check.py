#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`idle` of every profile in tests/data. Per device the causes must sum to the
steps' length less the time in which the device worked, exactly, and gaps,
worst gap and the sum are counted again from the JSON of Kineto profiles. Who
was late is counted again, too: a gap whose next launch came after it began is
the host's. The faults' profiles must name their fault.

usage: idle_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import glob
import gzip
import json
import os
import sys
from decimal import Decimal

import functools

import lib

table = functools.partial(lib.rows, whole=Decimal)

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
IDLE_PHASES = ("input_us", "launch_us", "host_us", "other_us")
# Of the idle time, by what is known of how the program was made: input waits
# 12 of 17 ms; jax_mlp's load_batch; tuned and copies.fixed wait for no host.
LEAST = {"faults/input": ("input", 70), "faults/launch": ("host", 90),
         "faults/tuned": ("launch", 50), "faults/copies.fixed": ("launch", 50),
         "jax_mlp/vm": ("input", 85), "torch_ddp/torch_ddp_rank0":
         ("comm-wait", 60)}


def load(path):
    with gzip.open(path, "rb") as f:
        events = json.loads(f.read(), parse_float=Decimal)
    spans = [e for e in events["traceEvents"] if e.get("ph") == "X"]
    calls = {e["args"]["correlation"]: e for e in spans
             if e.get("cat") in ("cuda_runtime", "cuda_driver")
             and "correlation" in e.get("args", {})}
    return spans, calls


def gaps(work, steps, calls):
    """(start, end, launch or None, work before, work after), cut by steps."""
    edges, end, before = [], Decimal("-inf"), None
    for e in sorted(work, key=lambda e: e["ts"]):
        if e["ts"] > end:
            call = calls.get(e["args"].get("correlation"))
            edges.append((end, e["ts"], call, before, e))
        if e["ts"] + e["dur"] > end:
            end, before = e["ts"] + e["dur"], e
    edges.append((end, Decimal("inf"), None, before, None))
    for a, b in steps:
        for start, stop, call, x, y in edges:
            if start < b and stop > a:
                yield max(a, start), min(b, stop), call, x, y


def check_sums(path, rows, wrong):
    want = {}
    for r in table("steps", path, "--by", "device"):
        if r["device"] is None:
            continue
        # copies are the device's own; a collective may be a CPU's
        least = sum(r[p] for p in IDLE_PHASES)
        most = least + r["comm_us"]
        lo, hi, dur, busy = want.get(r["device"], (0, 0, 0, 0))
        want[r["device"]] = (lo + least, hi + most, dur + r["dur_us"],
                             busy + r["device_busy_pct"] * r["dur_us"] / 100)
    for device, (lo, hi, dur, busy) in want.items():
        mine = [r for r in rows if r["device"] == device]
        total = sum(r["total_us"] for r in mine)
        share = sum(r["share_pct"] for r in mine)
        # the percentage of steps is a double: good to a few ps
        if not lo <= total <= hi or abs(dur - busy - total) > Decimal("0.001"):
            wrong.append("%s: causes sum to %s, steps say %s (%s..%s)"
                         % (device, total, dur - busy, lo, hi))
        if mine and abs(share - 100) > Decimal("0.000001"):
            wrong.append("%s: shares sum to %s" % (device, share))
    if {r["device"] for r in rows} - set(want):
        wrong.append("devices that steps does not have")


def check_kineto(path, rows, wrong):
    spans, calls = load(path)
    work = [e for e in spans if e.get("cat") in WORK]
    if not work or len({e["pid"] for e in work}) != 1:
        return
    # start_us counts from the epoch, as ts does in the file
    steps = [(r["start_us"], r["start_us"] + r["dur_us"])
             for r in table("steps", path)]
    all_gaps = list(gaps(work, steps, calls))
    length = [b - a for a, b, _, _, _ in all_gaps]
    got = (sum(r["gaps"] for r in rows), sum(r["total_us"] for r in rows),
           max((r["worst_us"] for r in rows), default=0))
    if got != (len(length), sum(length), max(length, default=0)):
        wrong.append("gaps, total, worst %s, counted %s" % (
            got, (len(length), sum(length), max(length, default=0))))
    early = sum(b - a for a, b, c, _, _ in all_gaps
                if c is not None and c["ts"] < a)
    late_causes = sum(r["total_us"] for r in rows
                      if r["cause"] in ("input", "host", "sync", "start"))
    if late_causes > sum(length) - early:
        wrong.append("%s us are the host's, but %s of %s were launched in time"
                     % (late_causes, early, sum(length)))
    check_sync(path, rows, all_gaps, spans, wrong)
    check_hta(path, work, wrong)


def check_hta(path, work, wrong):
    """HTA's idle time of torch_cnn, its rounding off: between the first and
    the last GPU event, the last step left out."""
    if os.path.basename(path) != "torch_cnn.pt.trace.json.gz":
        return
    steps = table("steps", path)
    last = steps[-1]
    rows = table("idle", path, "--steps", "..%d" % (last["step"] - 1))
    there = [e for e in work if e["ts"] < last["start_us"]]
    head = min(e["ts"] for e in there) - steps[0]["start_us"]
    tail = last["start_us"] - max(e["ts"] + e["dur"] for e in there)
    got = sum(r["total_us"] for r in rows) - head - tail
    if got != Decimal("38073.309"):
        wrong.append("idle is %s us, HTA says 38073.309" % got)


def check_sync(path, rows, all_gaps, spans, wrong):
    """In faults/sync nearly every gap that begins in a wait is a sync's (in the
    others the host took long afterwards), and no other gap is."""
    if os.path.basename(path) != "sync.pt.trace.json.gz":
        return
    waits = [(e["ts"], e["ts"] + e["dur"]) for e in spans
             if e.get("cat") == "cuda_runtime" and "Synchronize" in e["name"]]
    want = sum(b - a for a, b, c, _, _ in all_gaps
               if c is not None and c["ts"] >= a
               and any(s <= a <= t for s, t in waits))
    got = sum(r["total_us"] for r in rows if r["cause"] == "sync")
    if not want * 85 / 100 <= got <= want:
        wrong.append("sync is %s us, %s of gaps begin in a wait" % (got, want))


def check(path):
    name = os.path.relpath(path, DATA)
    rows, wrong = table("idle", path), []
    check_sums(path, rows, wrong)
    if path.endswith(".pt.trace.json.gz"):
        check_kineto(path, rows, wrong)
    case = name.replace(".pt.trace.json.gz", "").replace(".xplane.pb", "")
    if case in LEAST:
        cause, least = LEAST[case]
        share = sum(r["share_pct"] for r in rows if r["cause"] == cause)
        if share < least:
            wrong.append("%s is %.1f %% of the idle time, expected %d or more"
                         % (cause, share, least))
    print("not ok idle_check %s: %s" % (name, "; ".join(wrong)) if wrong
          else "ok idle_check %s" % name)
    return not wrong


def main():
    paths = sorted(p for end in ("*.pt.trace.json.gz", "*.xplane.pb")
                   for p in glob.glob(os.path.join(DATA, "**", end),
                                      recursive=True))
    good = [check(p) for p in paths]
    if not good:
        print("not ok idle_check: no profile in tests/data")
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
