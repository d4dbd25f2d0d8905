#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `opscope record` costs a Python program, and how true its bare step is.

Each program of python_steps.py runs by turns: alone, under record with no step
traced, with its framework's own profiler, and under record with the same steps
traced. Its own clock times all of them in the same way; of several rounds the
least median of each counts, so that a busy machine does less harm. What record
tells of the bare step is held against the program's own clock in the same process,
too: two processes may differ by more than is asked. Printed are ratios; needs the
environment that `./dev python` makes. --cuda runs PyTorch's and JAX's on a GPU.

    tests/bench/python.py [--rounds N] [--cuda] [KIND...]"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(ROOT, "build", "opscope"))
PROGRAM = os.path.join(HERE, "python_steps.py")
KINDS = ("torch-eager", "torch-compiled", "torch-input", "torch-ahead",
         "tf-eager", "tf-function", "jax-jit")
STEPS, FIRST, LAST = 400, 200, 219
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
         "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1",
         "PYTHONDONTWRITEBYTECODE": "1"}
CUDA = {"BENCH_DEVICE": "cuda", "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "0"}
settings = QUIET


def run(kind, window, before=()):
    """The program's own times, in ns."""
    p = subprocess.run([*before, sys.executable, PROGRAM, kind, str(STEPS),
                        *map(str, window)], env={**os.environ, **settings},
                       text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if p.returncode:
        raise SystemExit("%s: %s" % (kind, p.stderr[-500:]))
    return json.loads(p.stdout.splitlines()[-1])


def recorded(kind, steps, folder):
    shutil.rmtree(folder, ignore_errors=True)
    times = run(kind, (0, 0), (OPSCOPE, "record", "-q", "-o", folder,
                               "--steps", steps, "--"))
    return times


def bare_told(folder):
    p = subprocess.run([OPSCOPE, "steps", folder, "--format", "json"],
                       text=True, stdout=subprocess.PIPE, check=True)
    doc = json.loads(p.stdout)
    at = [c["name"] for c in doc["columns"]].index("bare_measured_us")
    return doc["rows"][0][at] * 1000.0


def outside(times):
    """Steps after the warm-up that nobody traced."""
    return statistics.median(times[20:FIRST - 3] + times[LAST + 3:])


def same_steps(times):
    """Those of which record tells: beside a GPU the ones before the capture."""
    after = [] if settings is CUDA else times[LAST + 3:]
    return statistics.median(times[20:FIRST - 3] + after)


def inside(times):
    """Traced steps, without those at which the tracer is switched."""
    return statistics.median(times[FIRST:LAST - 1])


def measure(kind, rounds, folder):
    alone, off, own, on, told, window = [], [], [], [], [], []
    same = []
    for _ in range(rounds):
        alone.append(outside(run(kind, (0, 0))))
        off.append(outside(recorded(kind, "1000000", folder)))
        own.append(inside(run(kind, (FIRST, LAST))))
        times = recorded(kind, "%d..%d" % (FIRST, LAST), folder)
        window.append(outside(times))
        on.append(inside(times))
        told.append(bare_told(folder))
        same.append(100 * (told[-1] / same_steps(times) - 1))
    bare = min(alone)
    return {"bare_us": bare / 1e3, "off_pct": 100 * (min(off) / bare - 1),
            "beside_pct": 100 * (min(window) / bare - 1),
            "told_pct": 100 * (min(told) / bare - 1),
            "same_pct": statistics.median(same),
            "own_us": min(own) / 1e3,
            "on_pct": 100 * (min(on) / min(own) - 1)}


def scopes():
    """with lock, and with scope off and on, in ns each."""
    code = (
        "import sys, tempfile, threading, timeit, opscope\n"
        "lock = threading.Lock()\n"
        "def cost(s):\n"
        "    return min(timeit.repeat(s, globals=globals(), number=20000,\n"
        "                             repeat=25)) / 20000 * 1e9\n"
        "held = cost('with lock: pass')\n"
        "off = cost('with opscope.scope(\"x\"): pass')\n"
        "with tempfile.TemporaryDirectory() as d:\n"
        "    opscope._opscope.start(d)\n"
        "    on = cost('with opscope.scope(\"x\"): pass')\n"
        "    opscope._opscope.stop()\n"
        "print(held, off, on)\n")
    p = subprocess.run([sys.executable, "-c", code], text=True, check=True,
                       env={**os.environ, "PYTHONPATH": os.path.join(
                           ROOT, "build", "python")}, stdout=subprocess.PIPE)
    return [float(x) for x in p.stdout.split()]


def main():
    global settings
    args, kinds = sys.argv[1:], KINDS
    rounds = 5
    if args[:1] == ["--rounds"]:
        rounds, args = int(args[1]), args[2:]
    if args[:1] == ["--cuda"]:
        settings, args = CUDA, args[1:]
        kinds = [k for k in KINDS if not k.startswith("tf-")]
    held, off, on = scopes()
    print("scope, in `with lock` (%.0f ns): off %.2f (asked 1), on %.2f "
          "(asked 1.5)" % (held, off / held, on / held))
    row = "%-15s %9s %8s %8s %8s %12s %11s %8s"
    print(row % ("program", "bare us", "off %", "beside %", "told %",
                 "own clock %", "profiler us", "on %"))
    print(row % ("asked", "", "< 1", "< 1", "+-2", "+-2", "", "< 5"))
    folder = tempfile.mkdtemp()
    try:
        for kind in args or kinds:
            m = measure(kind, rounds, os.path.join(folder, "logs"))
            print("%-15s %9.1f %8.2f %8.2f %8.2f %12.2f %11.1f %8.2f" % (
                kind, m["bare_us"], m["off_pct"], m["beside_pct"],
                m["told_pct"], m["same_pct"], m["own_us"], m["on_pct"]),
                flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
