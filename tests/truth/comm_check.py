#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""comm and ranks against counts straight from the files: collectives matched
by (name, shape, order), unions of times, lateness, bytes, bandwidth; against
what the programs really did (one rank slept in every step); and what must not
change: one rank's clock moved, all clocks moved, threads renumbered, files in
another order.

usage: comm_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import glob
import gzip
import json
import os
import sys
import tempfile
from collections import defaultdict
from decimal import Decimal

import lib
from lib import say

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
SIZE = {"float": 4, "long int": 8, "c10::BFloat16": 2}
good = True


def run(analysis, paths, *more):
    doc, table = lib.table(analysis, paths, *more, whole=Decimal)
    return table, doc


def load(path):
    with (gzip.open if path.endswith("gz") else open)(path, "rt") as f:
        return json.load(f, parse_float=Decimal)


def collectives(doc):
    """(name, shape) -> [(start, end, bytes)] in ns, by start."""
    out = defaultdict(list)
    for e in doc["traceEvents"]:
        if e.get("ph") != "X" or e.get("cat") != "user_annotation" or \
                not e["name"].startswith("gloo:"):
            continue
        a, start = e["args"], int(e["ts"] * 1000)
        dims, types = a.get("Input Dims"), a.get("Input type")
        size = None
        if dims:
            size = 0
            for shape, kind in zip(dims, types):
                n = 1
                for d in shape:
                    n *= d
                size += n * SIZE[kind]
        out[e["name"], str(dims)].append(
            (start, start + int(e["dur"] * 1000), size))
    for v in out.values():
        v.sort()
    return out


def union(spans):
    total, until = 0, None
    for a, b in sorted(spans):
        if until is not None and a < until:
            a = until
        if b > a:
            total += b - a
        until = b if until is None else max(until, b)
    return total


def us(ns):
    return Decimal(ns) / 1000


def check_rows(case, paths, skip=()):
    """Every row of comm, and each rank's waiting and lateness."""
    docs = [collectives(load(p)) for p in paths]
    steps = [sum(e.get("name", "").startswith("ProfilerStep#") and
                 e.get("cat") == "user_annotation"
                 for e in load(p)["traceEvents"]) for p in paths]
    rows, _ = run("comm", paths)
    rows = {r["name"]: r for r in rows}
    wrong = []
    late = [[] for _ in paths]
    wait = [[] for _ in paths]
    moved = defaultdict(lambda: [0, 0])
    for key in docs[0]:
        if (key in skip) or any(len(d[key]) != len(docs[0][key])
                                for d in docs):
            continue
        for same in zip(*(d[key] for d in docs)):
            starts = sorted(s[0] for s in same)
            least = min(s[1] - s[0] for s in same)
            for r, (a, b, size) in enumerate(same):
                wait[r].append((key[0], a, min(b, starts[-1])))
                if a == starts[-1]:
                    late[r].append((starts[-2], a))
                if size is not None:
                    moved[key[0]][0] += size
                    moved[key[0]][1] += least
    for name in sorted({k[0] for d in docs for k in d}):
        mine = [[s for k in d if k[0] == name for s in d[k]] for d in docs]
        row = rows[name]
        calls = sum(len(m) for m in mine)
        total = us(sum(union((a, b) for a, b, _ in m) for m in mine))
        if row["calls"] != calls:
            wrong.append("%s: %s calls, not %d" % (name, row["calls"], calls))
        if row["total_us"] != total:
            wrong.append("%s: total %s, not %s" % (name, row["total_us"],
                                                   total))
        sizes = [s[2] for m in mine for s in m if s[2] is not None]
        whole = name not in ("gloo:barrier", "gloo:all_gather")
        if whole and row["bytes"] != sum(sizes):
            wrong.append("%s: %s bytes, not %d" % (name, row["bytes"],
                                                   sum(sizes)))
        if name in ("gloo:send", "gloo:recv") or skip:
            continue
        waits = us(sum(union((a, b) for n, a, b in w if n == name)
                       for w in wait))
        if row["wait_us"] != waits:
            wrong.append("%s: waits %s, not %s" % (name, row["wait_us"],
                                                   waits))
        factor = 2 * (len(paths) - 1) / len(paths) \
            if name == "gloo:all_reduce" else 1
        rate = factor * moved[name][0] / moved[name][1]
        if abs(float(row["bus_gb_per_s"]) / rate - 1) > 1e-9:
            wrong.append("%s: bus %s, not %s" % (name, row["bus_gb_per_s"],
                                                 rate))
    ranks, _ = run("ranks", paths)
    for r, row in enumerate(ranks):
        for col, spans in (("late_us", late[r]),
                           ("wait_us", [w[1:] for w in wait[r]])):
            want = us(union(spans)) / steps[r]
            if abs(row[col] - want) > Decimal("0.001"):
                wrong.append("rank %d: %s is %s, not %s" % (r, col, row[col],
                                                            want))
    say(case + " rows", wrong)
    return ranks


def check_straggler(case, ranks, who, least_ms):
    """who slept least_ms in every step; the machine adds to that."""
    wrong = []
    for i, row in enumerate(ranks):
        if bool(row["straggler"]) != (i == who):
            wrong.append("rank %d: straggler is %s" % (i, row["straggler"]))
    late = float(ranks[who]["late_us"]) / 1000
    if not 0.75 * least_ms <= late <= 2.5 * least_ms:
        wrong.append("late by %.3f ms, slept %s" % (late, least_ms))
    say(case + " straggler", wrong)


def check_sums(path_sets):
    """exposed + overlapped = wait + move = total, everywhere."""
    for name, paths in path_sets:
        wrong = []
        for r in run("comm", paths)[0]:
            parts = [r[c] for c in ("exposed_us", "overlapped_us")]
            if min(parts) < 0 or sum(parts) != r["total_us"]:
                wrong.append("%s: %s of %s" % (r["name"], parts,
                                               r["total_us"]))
            if r["wait_us"] is not None and (
                    min(r["wait_us"], r["move_us"]) < 0 or
                    r["wait_us"] + r["move_us"] != r["total_us"]):
                wrong.append("%s: waits %s" % (r["name"], r["wait_us"]))
        say("sums " + name, wrong)


def check_steps(paths):
    """What comm calls exposed is what steps call communication: in this job
    no two kinds run at once."""
    wrong = []
    for rank in range(len(paths)):
        only = ["--rank", "%d..%d" % (rank, rank)]
        a = sum(r["exposed_us"] for r in run("comm", paths, *only)[0])
        b = sum(r["comm_us"] for r in run("steps", paths, *only)[0])
        if a != b:
            wrong.append("rank %d: %s exposed, steps have %s" % (rank, a, b))
    say("exposed as in steps", wrong)


def moved(path, folder, by, turn_threads=False):
    doc = load(path)
    tids = {e["tid"] for e in doc["traceEvents"]
            if str(e.get("name")).startswith("gloo:")
            and e.get("cat") == "user_annotation"}
    other = dict(zip(sorted(tids), sorted(tids, reverse=True)))
    for e in doc["traceEvents"]:
        if "ts" in e:
            e["ts"] += by
        if turn_threads and e.get("tid") in other:
            e["tid"] = other[e["tid"]]
    out = os.path.join(folder, os.path.basename(path)[:-3])
    with open(out, "w") as f:
        json.dump(doc, f, default=float)
    return out


def same_rows(a, b):
    return [r for r in a] == [r for r in b]


def check_unchanged(paths):
    before = {a: run(a, paths)[0] for a in ("comm", "ranks")}
    wrong = []
    for a in before:
        if not same_rows(run(a, paths[::-1])[0], before[a]):
            wrong.append("%s differs when the files change places" % a)
    say("order of files", wrong)
    with tempfile.TemporaryDirectory() as tmp:
        wrong = []
        shifted = [moved(p, tmp, Decimal("2048.5"), True) for p in paths]
        for a in before:
            if not same_rows(run(a, shifted)[0], before[a]):
                wrong.append("%s differs" % a)
        say("all clocks moved, threads renumbered", wrong)
    for by in (Decimal("5000.25"), Decimal("-12000")):
        with tempfile.TemporaryDirectory() as tmp:
            wrong = []
            one = [paths[0], moved(paths[1], tmp, by)]
            rows, doc = run("ranks", one)
            error = rows[1]["clock_error_us"]
            if abs(rows[1]["clock_offset_us"] - by) > error:
                wrong.append("offset %s +- %s" % (rows[1]["clock_offset_us"],
                                                  error))
            for r, was in zip(rows, before["ranks"]):
                if r["straggler"] != was["straggler"] or \
                        abs(r["late_us"] - was["late_us"]) > error:
                    wrong.append("rank %s: late %s, was %s" % (
                        r["rank"], r["late_us"], was["late_us"]))
            if not any("Clocks" in x for x in doc["remarks"]):
                wrong.append("nothing is said of the clocks")
            say("one clock moved by %s us" % by, wrong)


def main():
    ddp = sorted(glob.glob(os.path.join(DATA, "torch_ddp", "*.json.gz")))
    four = sorted(glob.glob(os.path.join(DATA, "torch_gloo4", "*.json.gz")))
    tf = sorted(glob.glob(os.path.join(DATA, "tf_workers", "*.pb")))
    ranks = check_rows("torch_ddp", ddp)
    check_straggler("torch_ddp", ranks, 1, 15.7)
    check_steps(ddp)
    check_unchanged(ddp)
    # two groups of two ranks each, which gloo does not tell apart
    ranks = check_rows("torch_gloo4", four,
                       skip={("gloo:all_reduce", "[[3000]]"),
                             ("gloo:send", "[[77]]"), ("gloo:recv", "[[77]]")})
    check_straggler("torch_gloo4", ranks, 2, 12)
    check_straggler("tf_workers", run("ranks", tf)[0], 1, 20)
    files = [p for pattern in ("*.json.gz", "*.xplane.pb", "*.xplane.pb.gz")
             for p in glob.glob(os.path.join(DATA, "**", pattern),
                                recursive=True)
             if "key_averages" not in p and "memory_timeline" not in p]
    check_sums([("torch_ddp", ddp), ("torch_gloo4", four), ("tf_workers", tf)] +
               [(os.path.relpath(p, DATA), [p]) for p in sorted(files)])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
