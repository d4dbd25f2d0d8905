#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program recorded, against what it did by its own account
(tests/rec/live.c): every event of the file, read with the protobuf package, is
one that the program wrote down, with its name, kind, arguments and thread, and
begins and ends between the clock readings that the program took around the
call. Then the same through opscope itself, and the unfinished file of the
program while it runs.

usage: rec_diary.py      build: $BUILD or build
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from decimal import Decimal

from lib import say, status

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(ROOT, "build", "opscope"))
good = True


def ps(us):
    return int(us * 1000000)


def exported(path):
    """Every event that opscope gives on, as (name, start, length) in ps;
    counters as (value, start)."""
    out = path + ".trace.json"
    subprocess.run([OPSCOPE, "convert", path, out], check=True,
                   stdout=subprocess.PIPE)
    with open(out) as f:
        doc = json.load(f, parse_float=Decimal)
    spans, counters, ends = Counter(), Counter(), {}
    for e in doc["traceEvents"]:
        if e["ph"] == "C":
            for v in e["args"].values():
                counters[float(v), ps(e["ts"])] += 1
        elif e["ph"] == "e":
            ends[e["id"]] = ps(e["ts"])
    for e in doc["traceEvents"]:
        if e["ph"] not in "Xib":
            continue
        start = ps(e["ts"])
        name = "epoch" if e.get("cat") == "ops_epoch" else e["name"]
        dur = ends[e["id"]] - start if e["ph"] == "b" else ps(e.get("dur", 0))
        spans[name, start, dur] += 1
    return spans, counters


def check_import(path, recording):
    """Recorded is imported, event for event, to the picosecond."""
    spans, counters = Counter(), Counter()
    for e in recording.events:
        if e.line == "_counters_":
            counters[float(e.stats["counter_value"]), e.start] += 1
        else:
            name = "[memory]" if e.name.startswith("Memory") else e.name
            spans[name, e.start, e.dur] += 1
    have = exported(path)
    return ["%s: %s not exported, %s not recorded" %
            (what, list((w - h).items())[:3], list((h - w).items())[:3])
            for what, h, w in zip(("spans", "counters"), have,
                                  (spans, counters)) if h != w]


def main():
    if importlib.util.find_spec("google.protobuf") is None:
        print("ok rec_diary # skip the protobuf package is not installed")
        return 0
    sys.path.insert(0, os.path.join(ROOT, "tests", "rec"))
    import recording as rec
    with tempfile.TemporaryDirectory() as tmp:
        exe = rec.build(tmp)
        if exe is None:
            print("ok rec_diary # skip no recorder in this build")
            return 0
        live = rec.Live(exe, tmp)
        part = rec.part_of(live.files("_%d.xplane.pb.part" % live.p.pid)[0])
        diary = live.stop()
        with open(live.files(".xplane.pb")[0], "rb") as f:
            whole = f.read()
        c = rec.compare(rec.Recording(whole), diary)
        say("the file, event for event", c.wrong)
        print("# furthest outside of its bounds: %.3f us" % (c.worst / 1e6))
        say("the file of the running program",
            rec.compare(rec.Recording(part), diary, whole=False).wrong)
        left = [p for p in live.files("") if not p.endswith(".xplane.pb")]
        say("nothing else is left", left)
        say("as opscope reads it", check_import(live.logdir, c.r))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
