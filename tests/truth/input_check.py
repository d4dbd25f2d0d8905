#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Input stages of every profile in tests/data. What is exposed must sum to the
input phase of `steps`, exactly, on the decimals that are printed, in every
single step, too; self times on the step's thread must sum to the time of the
outermost waits. Stages of tf.data must have the calls, totals and self times
that XProf's own table of input ops has, and the user's function must be charged
as an independent count over the raw spans finds it.

usage: input_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import glob
import json
import os
import re
import sys
from collections import defaultdict
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
STAGES = {  # as goldens count them: exposed ms per step over all steps
    "tf_graph": "22.200", "tf_graph_fast": "0.255"}


def check_sums(path, name):
    steps, stages, wrong = rows("steps", path), rows("input", path), []
    want = sum(s["input_us"] for s in steps)
    got = sum(s["exposed_us"] for s in stages)
    if got != want:
        wrong.append("exposed sums to %s, the input phase is %s" % (got, want))
    for s in steps[:4]:
        one = rows("input", path, "--steps", "%d..%d" % (s["step"], s["step"]))
        same = sum(x["input_us"] for x in steps if x["step"] == s["step"])
        got = sum(x["exposed_us"] for x in one)
        if got != same:
            wrong.append("step %s: exposed %s, input phase %s" % (
                s["step"], got, same))
    for s in stages:
        if s["exposed_us"] < 0 or s["self_us"] < s["exposed_us"]:
            wrong.append("%s: exposed %s of self %s" % (
                s["stage"], s["exposed_us"], s["self_us"]))
        if s["hidden_us"] != s["self_us"] - s["exposed_us"]:
            wrong.append("%s: hidden is %s" % (s["stage"], s["hidden_us"]))
    # roots and all below them on the step's thread: nothing lost or doubled
    own = [s for s in stages if s["thread"] == "step"]
    names = {s["stage"] for s in own}
    top = sum(s["call_us"] for s in own if s["parent"] not in names)
    selfs = sum(s["self_us"] for s in own)
    if top != selfs:
        wrong.append("the waits take %s, their parts sum to %s" % (top, selfs))
    return say("input_check sums " + name, wrong)


def check_xprof(case, path):
    """XProf's table: opName, count, timeInMs, ..., selfTimeInMs."""
    with open(os.path.join(DATA, case, "input_pipeline_analyzer.json")) as f:
        table = json.load(f, parse_float=Decimal)[2]
    cols = [c["id"] for c in table["cols"]]
    ours = {s["stage"]: s for s in rows("input", path)}
    wrong = []
    for row in table["rows"]:
        x = dict(zip(cols, [c["v"] for c in row["c"]]))
        s = ours.pop(x["opName"], None)
        if s is None:
            wrong.append("no stage %s" % x["opName"])
            continue
        alone = s["self_us"] - (s["total_us"] - s["call_us"])
        for what, a, b in (("calls", s["calls"], x["count"]),
                           ("call_us", s["call_us"], 1000 * x["timeInMs"]),
                           ("self", alone, 1000 * x["selfTimeInMs"])):
            if a != b:
                wrong.append("%s: %s is %s, XProf %s" % (
                    x["opName"], what, a, b))
    left = [n for n in ours if n.startswith("Iterator::")]
    if not table["rows"]:
        wrong.append("XProf's table is empty")
    return say("input_check xprof " + case, wrong + [
        "XProf has no stage %s" % n for n in left])


def check_function(case, path):
    """Runs of user functions: those that are waited for by their own spans,
    the others by the executor's spans with their id."""
    spans, runs, sums = rows("trace", path, "--top", "0"), set(), Decimal(0)
    pyfunc = Decimal(0)
    for s in spans:
        if s["name"] == "InstantiatedCapturedFunction::RunAsync":
            runs.add(json.loads(s["args"])["id"])
        elif s["name"].startswith("InstantiatedCapturedFunction::"):
            sums += s["dur_us"]
    ends = defaultdict(Decimal)
    for s in spans:
        if s["name"] == "ExecutorState::Process" and \
                json.loads(s["args"])["id"] in runs and \
                s["start_us"] >= ends[s["track"]]:
            sums += s["dur_us"]
            ends[s["track"]] = s["start_us"] + s["dur_us"]
        if s["name"] == "PyFunc:PyFunc":
            pyfunc += s["dur_us"]
    stages = rows("input", path)
    got = sum(s["function_us"] or 0 for s in stages)
    wrong = [] if got == sums else [
        "functions take %s, counted %s" % (got, sums)]
    maps = sum(s["self_us"] for s in stages if s["kind"] == "map")
    if maps < pyfunc:
        wrong.append("the maps have %s, their PyFunc alone takes %s" % (
            maps, pyfunc))
    if not runs and any(s["total_us"] != s["call_us"] for s in stages):
        wrong.append("a wait is counted twice")
    return say("input_check function " + case, wrong)


def check_exposed(case, path):
    steps = rows("steps", path)
    got = sum(s["exposed_us"] for s in rows("input", path))
    ms = "%.3f" % (got / len(steps) / 1000)
    return say("input_check exposed " + case, [] if ms == STAGES[case] else [
        "%s ms per step, XProf's rule gives %s" % (ms, STAGES[case])])


def main():
    good, seen = True, 0
    for path in sorted(glob.glob(os.path.join(DATA, "**", "*"),
                                 recursive=True)):
        name = os.path.relpath(path, DATA)
        if not os.path.isfile(path) or not PROFILE.search(path) or \
                NOT_PROFILES.search(path):
            continue
        good &= check_sums(path, name)
        seen += 1
        case = name.split(os.sep)[0]
        table = os.path.join(DATA, case, "input_pipeline_analyzer.json")
        if path.endswith(".xplane.pb") and os.path.exists(table):
            good &= check_xprof(case, path)
        if case in ("tf_graph", "tf_graph_fast", "tf_keras") and \
                path.endswith(".xplane.pb"):
            good &= check_function(case, path)
        if case in STAGES and path.endswith(".xplane.pb"):
            good &= check_exposed(case, path)
    if seen == 0:
        print("not ok input_check: no profile in tests/data")
    return 0 if good and seen else 1


if __name__ == "__main__":
    sys.exit(main())
