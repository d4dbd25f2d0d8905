#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scalars and the importer tfevents against TensorBoard: every point of every
tag that its EventAccumulator gave for the same files (truth.json), the table's
figures worked out here from those points, and the RunMetadata inside an event
file against the same RunMetadata saved alone.

usage: scalars_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import csv
import glob
import io
import json
import math
import os
import subprocess
import sys

import lib
from lib import say

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "tfevents")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
good = True


def ask(*args):
    doc, rows = lib.table(*args, real=float)
    return rows, doc


def check_points(truth):
    got = {}
    for row in ask("scalars", DATA, "--points")[0]:
        value = row["odd"] if row["value"] is None else row["value"]
        got.setdefault(row["run"], {}).setdefault(row["tag"], []).append(
            [row["step"], row["wall_time"], value])
    wrong = ["%s %s" % (run, tag) for run in truth for tag in truth[run]
             if got.get(run, {}).get(tag) != truth[run][tag]]
    wrong += ["%s %s is not in TensorBoard" % (run, tag) for run in got
              for tag in got[run] if tag not in truth.get(run, {})]
    say("every point of %d tags is TensorBoard's"
        % sum(map(len, truth.values())), wrong)


def same(a, b):
    return a == b if a is None or b is None else math.isclose(
        a, b, rel_tol=1e-12, abs_tol=1e-300)


def figures(points, window):
    values = [v for _, _, v in points if not isinstance(v, str)]
    last = points[-1][2]
    took = points[-1][1] - points[0][1]
    tail = values[-window:]
    return {"points": len(points), "first_step": points[0][0],
            "last_step": points[-1][0],
            "last": None if isinstance(last, str) else last,
            "min": min(values), "max": max(values),
            "mean": sum(tail) / len(tail),
            "per_s": (len(points) - 1) / took if took > 0 else None,
            "odd": len(points) - len(values)}


def check_table(truth):
    rows = {(r["run"], r["tag"]): r
            for r in ask("scalars", DATA, "--window", "5")[0]
            if r["kind"] == "scalar"}
    wrong = []
    for run in truth:
        for tag, points in truth[run].items():
            want = figures(points, 5)
            have = rows.pop((run, tag), {})
            wrong += ["%s %s %s: %s is not %s" % (run, tag, k, have.get(k), v)
                      for k, v in want.items() if not same(have.get(k), v)]
    wrong += ["%s %s is too much" % k for k in rows]
    say("the table's figures follow from the points", wrong)


def check_remarks():
    remarks = " | ".join(ask("scalars", DATA)[1]["remarks"])
    want = ["sick in torch is NaN since step 9",
            "tf1 was started again from step 10: 4 points of 2 tags",
            "torch_restart was started again from step 12: 16 points of 2"]
    say("restarts and NaN are remarks",
        ["no '%s' in %s" % (w, remarks) for w in want if w not in remarks])


def check_run_metadata():
    events = glob.glob(os.path.join(DATA, "tf1", "*tfevents*"))[0]
    def plain(rows):
        return sorted((r["name"], r["dur_us"], r["args"] or "") for r in rows)
    alone = []
    for step in (3, 9):
        path = os.path.join(DATA, "tf1", "run_metadata_%d.pb" % step)
        alone += ask("trace", path)[0]
    inside = ask("trace", events)[0]
    wrong = [] if plain(alone) == plain(inside) and alone else ["they differ"]
    # a node of no length before the others stands before the step
    steps = {r["step"] for r in inside if r["dur_us"] > 0}
    if steps != {3, 9}:
        wrong.append("steps are %s" % steps)
    say("RunMetadata inside a file are those outside: %d spans" % len(alone),
        wrong)


def check_counters(truth):
    events = glob.glob(os.path.join(DATA, "tensorboardX", "*tfevents*"))[0]
    rows = {r["name"]: r for r in ask("counters", events)[0]}
    wrong = []
    for tag, points in truth["tensorboardX"].items():
        row = rows.pop(tag, {})
        values = [v for _, _, v in points]
        for k, v in {"samples": len(values), "min": min(values),
                     "max": max(values), "last": values[-1]}.items():
            if row.get(k) != v:
                wrong.append("%s %s: %s is not %s" % (tag, k, row.get(k), v))
    say("scalars are counters of the trace", wrong + list(rows))


def check_csv(truth):
    out = subprocess.run([OPSCOPE, "scalars", DATA, "--points", "--run", "tf2",
                          "--tag", "loss", "--steps", "3..7", "--format",
                          "csv"], check=True, stdout=subprocess.PIPE).stdout
    rows = list(csv.DictReader(io.StringIO(out.decode())))
    want = [p for p in truth["tf2"]["loss"] if 3 <= p[0] <= 7]
    say("--run, --tag and --steps choose", [] if
        [[int(r["step"]), float(r["wall_time"]), float(r["value"])]
         for r in rows] == want else [str(rows)])


def main():
    with open(os.path.join(DATA, "truth.json")) as f:
        truth = json.load(f)
    check_points(truth)
    check_table(truth)
    check_remarks()
    check_run_metadata()
    check_counters(truth)
    check_csv(truth)
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
