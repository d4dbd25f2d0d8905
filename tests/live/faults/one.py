#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One program of this folder, in a process of its own: measures its step
without a profiler, faulty and repaired in turns, then captures both.

usage: one.py NAME OUT [--sets] [--lock FILE] [--seconds S]
writes OUT/NAME.json and the profiles OUT/NAME.*, OUT/NAME.fixed.*; with --sets
also OUT/NAME.SET.*, where the profiler was asked for more or less of the
faulty one. With --lock
a program that waits for its turn has its framework loaded already. --seconds is
how long each of the six turns of faulty and repaired takes."""
import argparse
import contextlib
import fcntl
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


def capture(step, fw, path, options, seconds):
    """Captures marked steps, after some that empty what other steps left
    full, as the buffers of an input pipeline."""
    block(step, fw, seconds)
    with fw.capture(path, options):
        for i in range(fw.SKIP + fw.STEPS):
            with fw.mark(i):
                # A step is waited for, as where its time was measured.
                fw.wait(step())


def measure(program, fw, seconds):
    """The steps, and what each takes without a profiler."""
    both = {"before": program.make(False)}
    if program.META["hint"] is not None:
        both["after"] = program.make(True)
    for step in both.values():
        for _ in range(program.META.get("warm", WARM)):
            fw.wait(step())
    times = {k: [] for k in both}
    for _ in range(ROUNDS):
        for k, step in both.items():
            times[k] += block(step, fw, seconds)
    return both, times


def main():
    p = argparse.ArgumentParser()
    p.add_argument("name")
    p.add_argument("out")
    p.add_argument("--sets", action="store_true")
    p.add_argument("--lock")
    p.add_argument("--seconds", type=float, default=BLOCK_S)
    a = p.parse_args()
    program = importlib.import_module(a.name)
    fw = kit.FRAMEWORKS[program.META["framework"]]()
    path = os.path.join(a.out, a.name)
    with contextlib.ExitStack() as turn:
        if a.lock:
            fw.load()
            f = turn.enter_context(open(a.lock, "w"))
            fcntl.flock(f, fcntl.LOCK_EX)
        both, times = measure(program, fw, a.seconds)
        for kind, step in both.items():
            for name, options in fw.SETS.items():
                if name == "usual" or (a.sets and kind == "before"):
                    capture(step, fw, path + (".fixed" if kind == "after" else
                                              "") +
                            ("" if name == "usual" else "." + name), options,
                            a.seconds)
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
