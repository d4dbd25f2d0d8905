#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of every profile in tests/data. The seven phases must sum to the step,
exactly, on the decimals that are printed. The traces in tests/data/faults come
with the step time of the same program measured without a profiler (.json): where
the device is the bottleneck the median step must come near it.

usage: steps_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import glob
import json
import os
import re
import statistics
import sys
from decimal import Decimal

import lib
from lib import say

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
PHASES = ["compute_us", "comm_us", "copy_us", "input_us", "launch_us",
          "host_us", "other_us"]
# The device is the bottleneck: the step as recorded is the step.
DEVICE_BOUND = {"fp32", "tuned", "copies", "attention_bmm", "pointwise_chain"}
NOT_PROFILES = re.compile(r"tfevents|key_averages|/faults/[a-z0-9_]+\.json$|"
                          r"\.txt$|README|\.md$|/xprof/|/tfprof/")
PROFILE = re.compile(r"\.xplane\.pb|trace\.json|run_?metadata", re.I)


def steps(path, *more):
    """The rows of `opscope steps`, or None when it is no profile."""
    try:
        return lib.rows("steps", path, *more, whole=Decimal), ""
    except lib.Failed as e:
        return None if e.status == 2 else [], str(e)


def check_sums(path, name):
    wrong = []
    for more in ([], ["--by", "device"]):
        rows, why = steps(path, *more)
        if rows is None and not PROFILE.search(path):
            return None  # beside the profiles lie other tools' files
        if rows is None:
            return say("steps_check phases " + name, [why])
        if not rows:
            wrong.append(why or "no step at all")
        for r in rows:
            if any(r[p] is None or r[p] < 0 for p in PHASES):
                wrong.append("step %s has a phase that is negative or missing"
                             % r["step"])
            elif sum(r[p] for p in PHASES) != r["dur_us"]:
                wrong.append("step %s: phases sum to %s, dur_us is %s" % (
                    r["step"], sum(r[p] for p in PHASES), r["dur_us"]))
            busy = r["device_busy_pct"]
            if busy is not None and not 0 <= busy <= 100:
                wrong.append("step %s is %s %% busy" % (r["step"], busy))
    return say("steps_check phases " + name, wrong)


def check_fault(fault):
    """Recording does not slow a program whose device is busy. (What it costs
    others bare_check.py looks at.)"""
    with open(os.path.join(DATA, "faults", fault + ".json")) as f:
        want = json.load(f)["faulty_ms"]
    rows, _ = steps(os.path.join(DATA, "faults", fault + ".pt.trace.json.gz"))
    got = statistics.median(float(r["dur_us"]) for r in rows) / 1000
    off = got / want - 1
    return say("steps_check fault " + fault, [] if abs(off) <= 0.10 else [
        "median dur_us is %.3f ms, the bare program's step %.3f: %+.0f %%"
        % (got, want, 100 * off)])


def main():
    good, seen = True, 0
    for path in sorted(glob.glob(os.path.join(DATA, "**", "*"),
                                 recursive=True)):
        name = os.path.relpath(path, DATA)
        if not os.path.isfile(path) or NOT_PROFILES.search(path):
            continue
        ok = check_sums(path, name)
        if ok is None:
            continue
        seen += 1
        good &= ok
    for fault in sorted(DEVICE_BOUND):
        good &= check_fault(fault)
    if seen == 0:
        print("not ok steps_check: no profile in tests/data")
    return 0 if good and seen else 1


if __name__ == "__main__":
    sys.exit(main())
