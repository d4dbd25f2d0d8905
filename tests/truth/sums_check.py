#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts that sum to wholes, to the last digit, on every profile in tests/data.
Phases, idle causes, input stages, memory, collectives, trees and coverage have
checks of their own (steps_check.py and its neighbours); here is the rest:

critical   the rows of each step sum to the step, every step
steps      each begins where the one before it ends
groups     a table split further sums to the table: ops, kernels, launch
ranks      the means of a rank times its steps are the sums over its steps

usage: sums_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import glob
import os
import re
import sys
from collections import defaultdict
from decimal import Decimal

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
PROFILE = re.compile(r"\.xplane\.pb|trace\.json|run_?metadata", re.I)
RANKS = ["torch_ddp/torch_ddp_rank0.pt.trace.json.gz",
         "torch_ddp/torch_ddp_rank1.pt.trace.json.gz"]
AT_A_TIME = 32  # steps that critical walks at most
# analysis, one way to split it, another, columns whose sums must agree
GROUPS = [
    ("kernels", [], ["--group", "shape"], ["calls", "total_us"]),
    ("ops", [], ["--group", "shapes,stack,module"],
     ["calls", "host_self_us", "device_self_us", "host_self_bytes",
      "device_self_bytes"]),
    ("launch", [], ["--by", "call"], ["launches", "launch_us", "kernels"]),
]


def rows(analysis, paths, *more):
    doc, table = lib.table(analysis, paths, *more)
    texts = {c["name"] for c in doc["columns"] if c["type"] == "text"}
    return [{k: v if k in texts else number(v) for k, v in row.items()}
            for row in table]


def number(v):
    """Integers over 2^53 are strings."""
    return Decimal(v) if isinstance(v, (str, int)) and \
        not isinstance(v, bool) else v


def total(table, column):
    return sum((r[column] for r in table if r[column] is not None),
               Decimal(0))


def by_step(table, column):
    sums = defaultdict(Decimal)
    for r in table:
        sums[r["host"], r["step"]] += r[column]
    return {k: v for k, v in sums.items() if v != 0}


def check_critical(paths):
    """A chunk of steps at a time, each sum against the step itself."""
    steps = rows("steps", paths)
    numbers = sorted({s["step"] for s in steps})
    got = {}
    for i in range(0, len(numbers), AT_A_TIME):
        some = numbers[i:i + AT_A_TIME]
        path = rows("critical", paths, "--steps", "%d..%d" % (some[0],
                                                             some[-1]))
        got.update(by_step(path, "on_path_us"))
    want = by_step(steps, "dur_us")
    return ["step %s of %s: the path takes %s, the step %s" % (
        k[1], k[0], got.get(k), want.get(k))
        for k in sorted(set(want) | set(got), key=str)
        if got.get(k) != want.get(k)]


def check_steps(paths):
    """One behind the other; in what opscope's own recorder wrote there may be
    something between them that is no step (an epoch's border, a window)."""
    own = all("/record/" in p for p in paths)
    end, wrong = {}, []
    for s in rows("steps", paths):
        before = end.get(s["host"], s["start_us"])
        if s["start_us"] < before or (s["start_us"] != before and not own):
            wrong.append("step %s begins at %s, the one before ends at %s" % (
                s["step"], s["start_us"], end[s["host"]]))
        end[s["host"]] = s["start_us"] + s["dur_us"]
    return wrong


def check_groups(paths):
    wrong = []
    for name, one, other, columns in GROUPS:
        a, b = rows(name, paths, *one), rows(name, paths, *other)
        for c in columns:
            if total(a, c) != total(b, c):
                wrong.append("%s: %s is %s, split %s" % (
                    name, c, total(a, c), total(b, c)))
    return wrong


def check_ranks(paths):
    """Means have six decimals: a rank's sum may be off by half a one per
    step."""
    wrong = []
    table = rows("ranks", paths)
    steps = rows("steps", paths)
    for column, whole in (("step_mean_us", "dur_us"),
                          ("compute_us", "compute_us"),
                          ("comm_us", "comm_us")):
        got = sum((r[column] * r["steps"] for r in table), Decimal(0))
        off = abs(got - total(steps, whole))
        if off > Decimal("0.000001") * max(1, len(steps)):
            wrong.append("%s: %s over all steps, steps has %s" % (
                column, got, total(steps, whole)))
    return wrong


CHECKS = {"critical": check_critical, "steps": check_steps,
          "groups": check_groups, "ranks": check_ranks}


def main():
    files = sorted(glob.glob(os.path.join(DATA, "**", "*"), recursive=True))
    sets = [[f] for f in files if os.path.isfile(f) and PROFILE.search(f)
            and "/xprof/" not in f]
    sets.append([os.path.join(DATA, f) for f in RANKS])
    good = len(sets) > 10
    if not good:
        print("not ok sums_check: few profiles in tests/data")
    for paths in sets:
        name = " ".join(os.path.relpath(p, DATA) for p in paths)
        for what, check in CHECKS.items():
            try:
                wrong = check(paths)
            except (RuntimeError, KeyError, TypeError) as e:
                wrong = ["%s: %s" % (type(e).__name__, e)]
            label = "sums_check %s %s" % (what, name)
            print("not ok %s: %s" % (label, "; ".join(wrong[:4])) if wrong
                  else "ok %s" % label)
            good &= not wrong
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
