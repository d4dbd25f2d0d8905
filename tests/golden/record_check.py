#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `opscope record` saw of a program, read by XProf: every lifetime with
its name, begin and length as `opscope trace` has them.

usage: record_check.py      program: $OPSCOPE or build/opscope
"""
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
PROGRAM = """
import os, threading, time
v = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(3)]
for t in v: t.start()
if os.fork() == 0:
    time.sleep(0.2)
    os._exit(0)
os.wait()
for t in v: t.join()
"""

try:
    from xprof.convert import raw_to_tool_data
except ImportError:
    print("ok record_check # skip the xprof package is not installed")
    sys.exit(0)


def by_xprof(path):
    data, _ = raw_to_tool_data.xspace_to_tool_data([path], "trace_viewer", {})
    return collections.Counter(
        (e["name"], round(e["ts"] * 1e6), round(e["dur"] * 1e6))
        for e in json.loads(data)["traceEvents"] if e.get("ph") == "X")


def by_opscope(path):
    out = subprocess.run([OPSCOPE, "trace", path, "--format", "json"],
                         check=True, capture_output=True, text=True).stdout
    r = json.loads(out)
    at = {c["name"]: i for i, c in enumerate(r["columns"])}
    return collections.Counter(
        (row[at["name"]], round(row[at["start_us"]] * 1e6),
         round(row[at["dur_us"]] * 1e6)) for row in r["rows"])


def main():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([OPSCOPE, "record", "-q", "-o", d, "--", sys.executable,
                        "-c", PROGRAM], check=True)
        path, = glob.glob(d + "/plugins/profile/*/*_record.xplane.pb")
        a, b = by_xprof(path), by_opscope(path)
    # a process and its four threads, its child
    good = a == b and sum(b.values()) >= 6
    print("ok record_check" if good else
          f"not ok record_check: xprof {a - b}, opscope {b - a}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
