#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Event files both ways, against what is installed here: what opscope's
recorder writes, TensorBoard reads, equal to the bit; what PyTorch, tensorboardX
and TensorFlow write now, opscope reads as TensorBoard does. A package that is
not there is a skipped case.

program: $OPSCOPE or build/opscope; prints `ok NAME`, `not ok NAME: why` or
`ok NAME # skip why`."""

import json
import logging
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(ROOT, "build", "opscope"))
sys.path.insert(0, HERE)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
good = True


def say(name, wrong):
    global good
    good &= not wrong
    print("not ok tensorboard %s: %s" % (name, "; ".join(wrong[:4])) if wrong
          else "ok tensorboard %s" % name, flush=True)


def skip(name, why):
    print("ok tensorboard %s # skip %s" % (name, why), flush=True)


def points_of(folder):
    """What opscope reads: {run: {tag: [[step, wall, value]]}}."""
    out = subprocess.run([OPSCOPE, "scalars", folder, "--points", "--format",
                          "json"], check=True, stdout=subprocess.PIPE).stdout
    doc = json.loads(out)
    names = [c["name"] for c in doc["columns"]]
    got = {}
    for row in doc["rows"]:
        row = dict(zip(names, row))
        value = row["odd"] if row["value"] is None else row["value"]
        got.setdefault(row["run"], {}).setdefault(row["tag"], []).append(
            [int(row["step"]), row["wall_time"], value])
    return got


def build_writer(tmp):
    exe = os.path.join(tmp, "write_events")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-D_GNU_SOURCE",
                    "-I" + os.path.join(ROOT, "src"), "-o", exe,
                    os.path.join(HERE, "write_events.c"),
                    *(os.path.join(ROOT, "src", "ring", x) for x in (
                        "eventfile.c", "proc.c", "open.c", "sys.c")), "-lm"],
                   check=True)
    return exe


def check_ours(tmp, scalars_of, plain):
    folder = os.path.join(tmp, "ours")
    out = subprocess.run([build_writer(tmp), folder], check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    want = {}
    for line in out.splitlines():
        tag, step, wall, value = line.split("\t")
        want.setdefault(tag, []).append(
            [int(step), float.fromhex(wall), plain(float.fromhex(value))])
    for reader, got in (("TensorBoard", scalars_of(folder)),
                        ("opscope", points_of(folder).get(".", {}))):
        wrong = ["%s: %d points, first %s" % (tag, len(got.get(tag, [])),
                                              got.get(tag, [])[:1])
                 for tag in want if got.get(tag) != want[tag]]
        wrong += ["%s is too much" % t for t in got if t not in want]
        say("%s reads what the recorder wrote: %d points"
            % (reader, sum(map(len, want.values()))), wrong)


def check_theirs(tmp, writers):
    for name in writers.WRITERS:
        out = os.path.join(tmp, "theirs", name)
        missing = writers.write_all(out, [name])
        if missing:
            skip("opscope reads what %s writes" % name, missing[name])
            continue
        want, got = writers.truth_of(out), points_of(out)
        wrong = ["%s %s" % (run, tag) for run in want for tag in want[run]
                 if got.get(run, {}).get(tag) != want[run][tag]]
        say("opscope reads what %s writes: %d tags"
            % (name, sum(map(len, want.values()))), wrong)


def main():
    logging.disable(logging.WARNING)
    try:
        import tensorboard  # noqa: F401
        import event_writers as writers
    except ImportError as x:
        skip("both ways", str(x))
        return 0
    with tempfile.TemporaryDirectory() as tmp:
        check_ours(tmp, writers.scalars_of, writers.plain)
        check_theirs(tmp, writers)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
