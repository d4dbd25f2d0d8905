#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps without markers. Real profiles whose steps are marked are written again
without the marks: opscope must find as many steps as were marked, or say that it
cannot tell. The marks are the program's own word; opscope does not see them.

usage: unmarked_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when a wrong number is claimed
"""
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
MARK = re.compile(r"ProfilerStep#(\d+)$")


def without_marks(path, out):
    """Writes the profile without its marks; returns how many steps it had."""
    with gzip.open(path, "rb") as f:
        trace = json.load(f)
    marks, rest = set(), []
    for e in trace["traceEvents"]:
        m = MARK.match(str(e.get("name")))
        if m:
            marks.add(m.group(1))
        else:
            rest.append(e)
    trace["traceEvents"] = rest
    with open(out, "w", encoding="utf-8") as f:
        json.dump(trace, f)
    return len(marks)


def found(path):
    """What `info` says: the number of steps, and how they were found."""
    run = subprocess.run([OPSCOPE, "info", path, "--format", "json"],
                         capture_output=True, check=True)
    facts = {row[0]: row for row in json.loads(run.stdout)["rows"]}
    return facts["steps"][1], facts["steps found"][3]


def main():
    bad = told = 0
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "unmarked.pt.trace.json")
        for path in sorted(glob.glob(os.path.join(DATA, "*", "*.pt.trace.json.gz"))):
            name = os.path.basename(path).split(".pt.")[0]
            want = without_marks(path, out)
            if want == 0:
                continue
            steps, how = found(out)
            claimed = how.startswith("inferred")
            told += claimed
            if claimed and steps != want:
                print(f"not ok {name}: {want} were marked, {steps} found: {how}")
                bad += 1
            elif not claimed and not how.startswith("cannot be told"):
                print(f"not ok {name}: {how}")
                bad += 1
            else:
                print(f"ok {name}: {want} marked, "
                      f"{steps if claimed else 'none'} found")
    if told < 12:
        print(f"not ok told: only {told} could be told")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
