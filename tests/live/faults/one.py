#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One program of this folder, in a process of its own: measures its step
without a profiler, faulty and repaired in turns, then captures both.

usage: one.py NAME OUT [--stack]
writes OUT/NAME.json and the profiles OUT/NAME.*, OUT/NAME.fixed.*"""
import argparse
import importlib
import json
import os
import statistics
import sys
import time

import kit

WARM, ROUNDS, BLOCK_S = 3, 6, 0.5


def block(step, fw, seconds):
    """Seconds of each step, each waited for, for at least so long."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        fw.wait(step())
        times.append(time.perf_counter() - start)
    return times


def capture(step, fw, path, stack):
    """Captures marked steps, after some that empty what other steps left
    full, as the buffers of an input pipeline."""
    block(step, fw, BLOCK_S)
    with fw.capture(path, stack):
        for i in range(fw.STEPS):
            with fw.mark(i):
                # A step is waited for, as where its time was measured.
                fw.wait(step())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("name")
    p.add_argument("out")
    p.add_argument("--stack", action="store_true")
    a = p.parse_args()
    program = importlib.import_module(a.name)
    meta = program.META
    fw = kit.FRAMEWORKS[meta["framework"]]()
    both = {"before": program.make(False)}
    if meta["hint"] is not None:
        both["after"] = program.make(True)
    for step in both.values():
        for _ in range(meta.get("warm", WARM)):
            fw.wait(step())
    times = {k: [] for k in both}
    for _ in range(ROUNDS):
        for k, step in both.items():
            times[k] += block(step, fw, BLOCK_S)
    path = os.path.join(a.out, a.name)
    capture(both["before"], fw, path, a.stack)
    if "after" in both:
        capture(both["after"], fw, path + ".fixed", a.stack)
    ms = {k: 1e3 * statistics.median(v) for k, v in times.items()}
    out = {"bare_ms": round(ms["before"], 4), "steps": len(times["before"])}
    if "after" in ms:
        out["fixed_ms"] = round(ms["after"], 4)
        out["gain"] = round(1 - ms["after"] / ms["before"], 4)
    with open(path + ".json", "w") as f:
        json.dump(out, f)
        f.write("\n")


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
