#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The step without its profiler, beside what it really takes. tests/data/bare
has profiles of small programs and, in truth.json, how long a step of the same
process took without the profiler, run in alternation with it
(tests/live/bare_steps.py made them); nothing was fitted to those that say so.
The traces of tests/data/faults have the step of the bare program, too.

What is held: the estimate is within 25 % of the truth (more where OFF says so,
30 % of programs that were repaired: their profile and their time were not taken
in alternation), its range holds it, all but one in twenty, to the 3 % by which
two runs of a program differ; and a measured bare step that a profile carries is
what is shown, in both formats.

usage: bare_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import glob
import gzip
import json
import os
import statistics
import sys
import tempfile

import lib

BARE = os.path.join(lib.DATA, "bare")
FAULTS = os.path.join(lib.DATA, "faults")
WITHIN, REPAIRED = 0.25, 0.30
# Programs that are off by more; the range holds the truth. Of 140 captures of
# programs that their host holds up, 31 are (docs/bare-step.md).
OFF = {"sync": 0.33}
RUNS = 1.03
MISSES = 1  # of 20, that the range does not hold


def estimates():
    """(name, truth, what a step tells, allowed), all in us."""
    with open(os.path.join(BARE, "truth.json")) as f:
        for name, truth in sorted(json.load(f).items()):
            rows = lib.rows("steps", os.path.join(BARE, name), real=float)
            row = next(r for r in rows if r["step"] == truth["step"])
            yield name, truth["bare_us"], row, WITHIN
    for path in sorted(glob.glob(os.path.join(FAULTS, "*.pt.trace*"))):
        name = os.path.basename(path)
        fixed = ".fixed" in name
        with open(os.path.join(FAULTS, name.split(".")[0] + ".json")) as f:
            want = json.load(f)["fixed_ms" if fixed else "faulty_ms"] * 1e3
        rows = lib.rows("steps", path, real=float)
        row = {c: statistics.median([r[c] for r in rows if r[c] is not None]
                                    or [None])
               for c in ("dur_us", "bare_us", "bare_low_us", "bare_high_us")}
        allowed = REPAIRED if fixed else OFF.get(name.split(".")[0], WITHIN)
        yield name, want, row, allowed


def check_estimates():
    outside, n = [], 0
    for name, want, row, allowed in estimates():
        got = float(row["bare_us"])
        off = got / want - 1
        lib.say("estimate " + name, "" if abs(off) <= allowed else
                "told %.0f us, it is %.0f: %+.0f %%" % (got, want, 100 * off))
        n += 1
        if row["bare_low_us"] is not None and not \
                float(row["bare_low_us"]) / RUNS <= want <= \
                float(row["bare_high_us"]) * RUNS:
            outside.append(name)
    lib.say("ranges", "" if len(outside) <= max(1, MISSES * n // 20) else
            "of %d not held by their range: %s" % (n, outside))


def field(number, data):
    """A field of bytes, in protobuf."""
    n, size = len(data), b""
    while n >= 128:
        size, n = size + bytes([n & 127 | 128]), n >> 7
    return bytes([number << 3 | 2]) + size + bytes([n]) + data


def with_measured(path, us, folder):
    """The profile with a measured bare step in it."""
    with gzip.open(path) as f:
        data = f.read()
    if ".xplane." in path:  # a plane with one stat: its name and a double
        import struct
        stat = b"\x08\x01\x11" + struct.pack("<d", us)
        name = b"\x08\x01" + field(2, b"opscope_bare_step_us")
        data += field(1, field(2, b"Task Environment") +
                      field(5, b"\x08\x01" + field(2, name)) + field(6, stat))
        out = os.path.join(folder, "m.xplane.pb")
    else:
        data = data.rstrip()
        assert data.endswith(b"}")
        data = data[:-1] + b', "opscope_bare_step_us": %s}' % repr(us).encode()
        out = os.path.join(folder, "m.pt.trace.json")
    with open(out, "wb") as f:
        f.write(data)
    return out


def check_measured(name):
    path = os.path.join(BARE, name)
    rows = lib.rows("steps", path, real=float)
    longest = max(r["dur_us"] for r in rows)
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        us = round(float(min(r["dur_us"] for r in rows)) / 2, 1)
        file = with_measured(path, us, folder)
        for r in lib.rows("steps", file, real=float):
            if r["bare_is"] != "measured" or float(r["bare_us"]) != us or \
                    r["bare_low_us"] is not None:
                wrong.append("step %s: %s us, %s" % (
                    r["step"], r["bare_us"], r["bare_is"]))
        text = [r["text"] for r in lib.rows("overview", file)
                if r["metric"] == "without the profiler"]
        if not text or "measured" not in text[0]:
            wrong.append("overview says %s" % text)
        file = with_measured(path, round(float(longest) * 2, 1), folder)
        for r in lib.rows("steps", file, real=float):
            if r["bare_is"] != "recorded" or r["bare_us"] != r["dur_us"]:
                wrong.append("a longer one: %s us, %s" % (
                    r["bare_us"], r["bare_is"]))
        text = [r["text"] for r in lib.rows("overview", file)
                if r["metric"] == "without the profiler"]
        if not text or "not slower" not in text[0]:
            wrong.append("of a longer one overview says %s" % text)
    lib.say("measured " + name, wrong)


def main():
    check_estimates()
    for name in ("torch.mlp.all.pt.trace.json.gz",
                 "tf.eager_mlp.usual.xplane.pb.gz",
                 "jax.loop.python0.xplane.pb.gz"):
        check_measured(name)
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
