# SPDX-License-Identifier: Apache-2.0
"""beside.py BEFORE NOW [--quick] [--rounds N] [--only WORDS]

Two builds side by side in one run: every work is measured by turns, first one
build, then the other, N times over, and the least time of each counts. Ends with
status 1 when a row of NOW takes over 3 % more than BEFORE and more than the
clock can be trusted for (0.3 ms, 1 ns a call).

Both folders are builds in which `make -f tests/bench/bench.mk bench-programs`
was run. The grown files are those of `./dev bench`."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types

import run

LIMIT = 1.03
CALLS = ("scope", "scope2", "counter", "instant", "arg", "alloc", "step")


class Side:
    """What one build takes: the least seconds of each work."""

    def __init__(self, build, args):
        self.bench = run.Bench(types.SimpleNamespace(
            build=build, quick=args.quick))
        self.least = {}

    def take(self, work, seconds):
        self.least[work] = min(seconds, self.least.get(work, seconds))


def of_import(side, paths):
    for kind, path in paths.items():
        for work in ("import1", "import2"):
            m = side.bench.measure(work, path, 1)
            side.take(f"{work}, {kind}, CPU", m["cpu"])


def of_analyses(side, paths):
    for kind, path in paths.items():
        out = subprocess.run(
            [os.path.join(side.bench.build, "bench", "bench"), "analyses",
             path, "2"], stdout=subprocess.PIPE, check=True)
        for line in out.stdout.splitlines()[:-1]:
            m = json.loads(line)
            side.take(f"{m['analysis']}, {kind}", m["cpu"])
            if "first" in m:
                side.take(f"{m['analysis']}, {kind}, first", m["first"])


def of_commands(side, paths):
    for kind, path in paths.items():
        m = side.bench.command("overview", path, times=1)
        side.take(f"opscope overview, {kind}", m["best"])
        side.take(f"opscope overview, {kind}, CPU", m["cpu"])
    m = side.bench.command("ops", side.bench.cnn, times=5)
    side.take("opscope ops, small", m["best"])


def of_recorder(side, _):
    for work in CALLS:
        logs = tempfile.mkdtemp(dir=side.bench.dir)
        out = subprocess.run(
            [os.path.join(side.bench.build, "bench", "rec_bench"), work, logs,
             "101"], stdout=subprocess.PIPE, check=True)
        shutil.rmtree(logs, ignore_errors=True)
        side.take(f"{work}, recorded", json.loads(out.stdout)["best"] * 1e-9)


def main():
    p = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    p.add_argument("before")
    p.add_argument("now")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default="")
    args = p.parse_args()
    works = {"import": of_import, "analyses": of_analyses,
             "commands": of_commands, "recorder": of_recorder}
    chosen = args.only.replace(",", " ").split() or list(works)
    sides = [Side(args.before, args), Side(args.now, args)]
    files = sides[1].bench
    big = {k: files.file(k, files.big) for k in ("kineto", "xspace")}
    spans = {k: files.file(k, run.SIZES[k][1 if args.quick else 0])
             for k in ("kineto", "xspace")}
    for i in range(args.rounds):
        for name in chosen:
            for side in (sides if i % 2 else sides[::-1]):
                works[name](side, spans if name == "analyses" else big)
    slower = 0
    print(f"{'work':<40} {'before':>12} {'now':>12} {'ratio':>7}")
    for work, now in sides[1].least.items():
        before = sides[0].least.get(work)
        if before is None:
            continue
        grain = 1e-9 if work.endswith("recorded") else 3e-4
        bad = now > before * LIMIT and now - before > grain
        slower += bad
        unit, by = ("ns", 1e9) if work.endswith("recorded") else ("ms", 1e3)
        print(f"{work:<40} {before * by:>9.2f} {unit} {now * by:>9.2f} {unit} "
              f"{now / max(before, 1e-12):>7.3f}{'  SLOWER' if bad else ''}")
    print(f"{slower} of {len(sides[1].least)} rows are over 3 % slower")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
