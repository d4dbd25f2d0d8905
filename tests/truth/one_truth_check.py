#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One truth on all screens: every command on every profile of tests/data, and
what two of them say of the same thing is the same.

steps     how many there are and how long: overview, info, ranks; their phases
          sum to them, also on overview
idle      the devices' idle time is the steps' less what they were busy
input     what the steps wait for their input: overview, input, idle
device    time of device work: ops, tree, and kernels with copies
flops     of the whole profile: tree and roofline; ops where torch's own table,
          which leaves out the backward pass, is not what it follows
memory    peaks: overview, allocs --peak
comm      exposed communication: comm, ranks
critical  the path of a step is as long as the step
python    Python's own time: its remark and its rows
bare      the step without its profiler: overview, hints

usage: one_truth_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import os
import re
import sys
from decimal import Decimal

import lib
from lib import DATA, say

PROFILE = re.compile(r"\.xplane\.pb(\.gz|\.zst)?$|trace\.json|run_metadata.*pb$|"
                     r"\.pickle(\.gz)?$")
JOBS = ["torch_ddp", "torch_gloo4", "tf_workers", "record"]
ASKED = ["overview", "info", "steps", "idle", "input", "critical", "hints",
         "ops", "kernels", "copies", "tree", "roofline", "memory", "comm",
         "ranks", "python"]
TINY = Decimal("0.000001")  # microseconds: a picosecond


class Screen:
    """All commands on one profile, each asked once."""

    def __init__(self, paths):
        self.paths, self.docs = paths, {}

    def get(self, name, *opts):
        key = (name,) + opts
        if key not in self.docs:
            self.docs[key] = lib.table(name, self.paths, *opts)
        return self.docs[key]

    def rows(self, name, *opts):
        return self.get(name, *opts)[1]

    def remarks(self, name, *opts):
        return " ".join(self.get(name, *opts)[0]["remarks"])

    def facts(self, metric):
        return [r for r in self.rows("overview") if r["metric"] == metric]


def total(rows, column):
    return sum(Decimal(r[column] or 0) for r in rows)


def differ(what, a, b, by=TINY):
    return [] if abs(Decimal(a) - Decimal(b)) <= by else [
        "%s: %s and %s" % (what, a, b)]


PHASES = ["compute", "comm", "copy", "input", "launch", "host", "other"]
METRICS = ["compute", "communication", "copies", "input pipeline", "launching",
           "host work", "other"]


def whole_steps(s):
    """Those that the recording does not cut; all of them if it cuts all."""
    rows = s.rows("steps")
    return [r for r in rows if not r["cut"]] or rows


def median(rows, column):
    v = sorted(r[column] for r in rows)
    return v[(len(v) - 1) // 2]


def check_steps(s):
    rows, wrong = s.rows("steps"), []
    for r in rows:
        wrong += differ("phases of step %s" % r["step"],
                        sum(r[p + "_us"] for p in PHASES), r["dur_us"])
    told = s.facts("step time")
    if not rows or not told:
        return wrong
    whole = whole_steps(s)
    wrong += differ("median", told[0]["value"], median(whole, "dur_us"))
    n = re.search(r"of (\d+) steps", told[0]["text"])
    wrong += differ("steps", n[1] if n else 1, len(whole))
    counts = [r for r in s.rows("info") if r["metric"] == "steps"]
    wrong += differ("steps in info", total(counts, "value"), len(rows))
    shown = [r for r in s.rows("overview") if any(
        r["metric"].startswith(m) for m in METRICS) and r["unit"] == "us"]
    divided = shown and total(shown, "value") * 100 / total(shown, "share_pct")
    if shown:
        wrong += differ("phases on overview", total(shown, "share_pct"), 100,
                        Decimal("0.0001"))
        by_host = collections.defaultdict(list)
        for r in whole:
            by_host[r["host"]].append(r)
        typical = [median(v, "dur_us") for v in by_host.values()]
        wrong += differ("the step that overview divides", divided,
                        sum(typical) / len(typical), Decimal("0.01"))
    return wrong


def check_idle(s):
    busy = collections.Counter()
    whole = collections.Counter()
    for r in s.rows("steps", "--by", "device"):
        if r["device_busy_pct"] is None:
            continue
        busy[r["device"]] += r["dur_us"] * r["device_busy_pct"] / 100
        whole[r["device"]] += r["dur_us"]
    idle = collections.Counter()
    for r in s.rows("idle"):
        idle[r["device"]] += r["total_us"]
    wrong = []
    for d in whole:
        wrong += differ("idle of %s" % d, idle[d], whole[d] - busy[d],
                        whole[d] / 10**9 + TINY * 10)
    return wrong


def check_input(s):
    rows, wrong = s.rows("steps"), []
    mine = total(rows, "input_us")
    wrong += differ("input and steps", total(s.rows("input"), "exposed_us"),
                    mine, TINY * (len(rows) + 1) * 10)
    told = s.facts("is it the input?")
    if told and told[0]["value"] is not None and total(rows, "dur_us") > 0:
        others = sum(r["waited_pct"] or 0 for r in s.rows("input"))
        wrong += differ("overview and steps", told[0]["value"], others +
                        100 * mine / total(rows, "dur_us"), Decimal("0.0001"))
    by_device = s.rows("steps", "--by", "device")
    if any(r["device_busy_pct"] is not None for r in by_device):
        wrong += differ("idle and steps", total(s.rows("idle"), "input_us"),
                        sum(r["input_us"] for r in by_device
                            if r["device_busy_pct"] is not None),
                        TINY * (len(by_device) + 1))
    return wrong


def check_device(s):
    """Device time of all work, whoever launched it."""
    alone = re.search(r"device spans, ([\d.]+) us, were launched by no",
                      s.remarks("ops"))
    ops = total(s.rows("ops"), "device_self_us") + Decimal(
        alone[1] if alone else 0)
    roots = [r for r in s.rows("tree") if r["depth"] == 0]
    tree = total(roots, "device_us")
    work = total(s.rows("kernels"), "self_us") + total(
        s.rows("copies"), "total_us")
    if ops == tree == 0:
        return []
    near = Decimal("0.001")  # the remark has three decimals
    return differ("ops and tree", ops, tree, near) + differ(
        "ops and kernels with copies", ops, work, near)


def check_flops(s):
    roots = [r for r in s.rows("tree") if r["depth"] == 0]
    tree = total(roots, "flops")
    roofline = total(s.rows("roofline"), "flops")
    wrong = differ("tree and roofline", tree, roofline, 0)
    formats = {x["format"] for x in s.get("ops")[0]["sources"]}
    if "kineto" not in formats:
        wrong += differ("ops and roofline", total(s.rows("ops"), "flops"),
                        roofline, 0)
    return wrong


def check_memory(s):
    wrong, peaks = [], [r["peak_bytes"] for r in s.rows("memory")]
    for r in s.facts("memory peak"):
        if r["value"] is not None and int(r["value"]) not in peaks:
            wrong.append("overview says %s, memory %s" % (r["value"], peaks))
    if peaks:
        wrong += differ("allocs --peak", total(
            s.rows("allocs", "--peak"), "bytes"), sum(peaks), 0)
    return wrong


def check_comm(s):
    rows, ranks, wrong = s.rows("steps"), s.rows("ranks"), []
    for r in ranks:
        if r["device"] is not None and len(ranks) > 1 and any(
                x["rank"] == r["rank"] and x is not r for x in ranks):
            continue  # several devices of a rank: steps have their mean
        mine = [x for x in rows if x["host"] == r["host"] or len(ranks) == 1]
        if not mine or r["steps"] != len(mine):
            continue
        near = Decimal("0.001")
        wrong += differ("mean step of rank %s" % r["rank"], r["step_mean_us"],
                        total(mine, "dur_us") / len(mine), near)
        for p in ("compute_us", "comm_us"):
            if r[p] is not None:
                wrong += differ("%s of rank %s" % (p, r["rank"]), r[p],
                                total(mine, p) / len(mine), near)
    return wrong


def check_critical(s):
    path = collections.Counter()
    for r in s.rows("critical"):
        path[r["host"], r["step"]] += r["on_path_us"]
    wrong = []
    for r in s.rows("steps"):
        for key in ((r["host"], r["step"]), (None, r["step"])):
            if key in path:
                wrong += differ("path of step %s" % r["step"], path.pop(key),
                                r["dur_us"])
                break
    return wrong + ["path of step %s, which is none" % k[1] for k in path]


def check_python(s):
    told = re.search(r"takes ([\d.]+) % of the step", s.remarks("python"))
    if not told:
        return []
    return differ("shares", told[1], total(s.rows("python"),
                                           "share_of_step_pct"),
                  Decimal("0.1"))


def check_bare(s):
    rows = [r for r in whole_steps(s) if r["bare_us"] is not None]
    if not rows:
        return []
    wrong, bare = [], median(rows, "bare_us")
    near = Decimal("0.001")  # a table has the decimals of its profile
    for r in s.facts("without the profiler"):
        wrong += differ("overview", r["value"], bare, near)
    of_host = collections.defaultdict(list)
    for r in rows:
        of_host[r["host"]].append(r)
    for r in s.rows("hints")[:1]:  # of a job they look at one rank's steps
        each = [median(v, "bare_us") for v in of_host.values()]
        # with its part of what other steps compile
        again = "other steps compile" in s.remarks("hints")
        if r["step_us"] is not None and not any(
                abs(r["step_us"] - b) <= near or
                (again and r["step_us"] > b) for b in each):
            wrong.append("hints: %s, steps %s" % (r["step_us"], each))
    return wrong


CHECKS = [check_steps, check_idle, check_input, check_device, check_flops,
          check_memory, check_comm, check_critical, check_python, check_bare]


def profiles():
    for folder, _, files in sorted(os.walk(DATA)):
        for f in sorted(files):
            if PROFILE.search(f):
                yield [os.path.join(folder, f)]
    for job in JOBS:
        folder = os.path.join(DATA, job)
        yield [os.path.join(folder, f) for f in sorted(os.listdir(folder))
               if PROFILE.search(f)]


def main():
    only = sys.argv[1:]
    for paths in [[p] for p in only] or profiles():
        name = os.path.relpath(paths[0], DATA)
        if len(paths) > 1:
            name = os.path.dirname(name) + "/*"
        s, wrong = Screen(paths), []
        for check in CHECKS:
            part = check.__name__.replace("check_", "")
            wrong += ["%s: %s" % (part, w) for w in check(s)]
        say(name, wrong)
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
