#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles of every kind, changed in their structure, through every command
that reads. What is changed, and how, are mutant_*.py; what must hold then is
mutant_checks.py; every.c runs the commands.

  mutate.py --seconds N [--jobs J] [--build DIR] [--seed S] [--kind K]
  mutate.py --seed N [--keep DIR] [--only I,J,...] [--build DIR]

A mutant is a number: it says which real profile is taken (those of tests/data,
cut down to a few events of each sort), what is done to it, and which options
the commands get. The first form makes mutants S, S + 1, ... (S: by the clock)
and reports what is wrong with any; the second makes one again, and leaves its
files in DIR. `--only` applies some of its mutations: a finding names those
that it needs, as far as could be found out quickly.

Each mutant goes through every analysis in JSON, CSV and text, some with other
options, through trace, scalars, watch and convert, and back from the export;
some through the command line as well. It must hold that
- nothing crashes, and no sanitizer has anything to say;
- a command takes less than 10 s of processor time for files under 5 MB;
- it takes less than 50 times the files' (unpacked) bytes of memory and 16 MB
  for itself, or less than 64 MB where that is more. Under a sanitizer four times as long, and
  twice as much of what malloc() gave out;
- JSON, CSV and text are what they claim to be; sums sum; exit codes are the
  documented ones, with one sentence on stderr;
- a second reading with another number of threads gives the same results.

Findings are kept in DIR/mutate/found/ of the build. Prints `ok NAME` or `not
ok NAME: why` for each kind of file; exit 1 when anything was found."""

import argparse
import multiprocessing
import multiprocessing.connection
import os
import re
import shutil
import sys
import tempfile
import time
import traceback

from mutant_kinds import KINDS, ROOT, Mutant, World
from mutant_runs import Examiner, Finding


class Found:
    """What a run has found: one example of each fault."""

    def __init__(self):
        self.counts, self.runs, self.first, self.often = {}, 0, {}, {}

    def add(self, kind, mutant, findings, runs):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.runs += runs
        new = []
        for f in findings:
            if f.key not in self.first:
                self.first[f.key] = (kind, mutant.seed, f)
                new.append(f)
            self.often[f.key] = self.often.get(f.key, 0) + 1
        return new


def examine(examiner, mutant):
    """Findings of a mutant in a folder of its own, which is removed."""
    with tempfile.TemporaryDirectory(prefix="opscope-mutate-") as tmp:
        return examiner.examine(mutant, os.path.join(tmp, "m"))


def minimize(examiner, world, mutant, finding, budget):
    """The steps that it needs: each is left out, if it goes without. (Without
    one, another may not know what to do.)"""
    keep = [s.index for s in mutant.chosen()]
    stop = time.monotonic() + budget
    for i in reversed(list(keep)):
        if time.monotonic() > stop:
            break
        less = Mutant(world, mutant.seed, [k for k in keep if k != i],
                      mutant.kind)
        try:
            if any(f.key == finding.key for f in examine(examiner, less)):
                keep.remove(i)
        except Exception:
            continue
    return keep


def save(world, mutant, only, finding, n):
    """The mutant and a word on it, in the build's folder."""
    folder = os.path.join(world.build, "mutate", "found", "%d.%d" % (
        mutant.seed, n))
    shutil.rmtree(folder, ignore_errors=True)
    least = Mutant(world, mutant.seed, only, mutant.kind)
    least.write(folder)
    with open(os.path.join(folder, "why.txt"), "a", encoding="utf-8",
              errors="backslashreplace") as f:
        f.write("%s\n%s\n" % (finding, least.describe()))
    return folder


def clean(s):
    return re.sub(r"[^ -~]", "?", s)


def worker(args, first, step, stop, conn):
    world = args.world
    examiner, found = Examiner(world), Found()
    seed = first
    while time.time() < stop:
        mutant = Mutant(world, seed, None, args.kind)
        before, start = examiner.runs, time.monotonic()
        try:
            findings = examine(examiner, mutant)
        except Exception:  # a fault of our own must not hide others
            findings = [Finding("mutate.py", traceback.format_exc()[-300:])]
        runs, took = examiner.runs - before, time.monotonic() - start
        for f in found.add(mutant.kind, mutant, findings, runs):
            only = None
            if took < 6:
                left = min(20, max(4, stop - time.time()))
                only = minimize(examiner, world, mutant, f, left)
            save(world, mutant, only, f, len(found.first))
            conn.send(("finding", mutant.kind, seed, only, f.key, str(f),
                       mutant.describe()))
        seed += step
    conn.send(("end", found.counts, found.runs, found.often))
    examiner.every.close()


def run(args):
    """All workers, then one line for each kind of file."""
    start = int(time.time() * 1000) if args.seed is None else args.seed
    stop = time.time() + args.seconds
    print("# mutants from seed %d on, %s" % (
        start, "sanitized" if args.world.sanitized else "plain"), flush=True)
    pipes, fork = [], multiprocessing.get_context("fork")
    for j in range(args.jobs):
        here, there = fork.Pipe(False)
        p = fork.Process(target=worker, args=(
            args, start + j, args.jobs, stop, there))
        p.start()
        there.close()
        pipes.append((p, here))
    counts, runs, often, bad = {}, 0, {}, {}
    waiting = {here: p for p, here in pipes}
    while waiting:
        for here in multiprocessing.connection.wait(list(waiting)):
            try:
                what, *rest = here.recv()
            except EOFError:
                del waiting[here]
                continue
            if what == "end":
                for k, v in rest[0].items():
                    counts[k] = counts.get(k, 0) + v
                runs += rest[1]
                for k, v in rest[2].items():
                    often[k] = often.get(k, 0) + v
            else:
                report(args, bad, *rest)
    for p, _ in pipes:
        p.join()
        if p.exitcode != 0:
            bad.setdefault("worker", ["a worker ended with %s" % p.exitcode])
    return summary(args, counts, runs, often, bad)


def report(args, bad, kind, seed, only, key, text, described):
    known = bad.setdefault(kind, [])
    need = "" if only is None else " --only %s" % ",".join(map(str, only))
    again = "tests/fuzz/mutate.py --build %s --seed %d%s" % (
        os.path.relpath(args.world.build, ROOT), seed, need)
    if args.kind:
        again += " --kind " + args.kind
    known.append("%s (%s)" % (clean(text), again))
    print("# found: %s\n#   %s\n#   %s --keep DIR" % (
        clean(text), clean(described), again), flush=True)


def summary(args, counts, runs, often, bad):
    for kind in sorted(set(counts) | set(bad)):
        name = "mutate %s, %d mutants" % (kind, counts.get(kind, 0))
        if kind in bad:
            print("not ok %s: %d faults; %s" % (name, len(bad[kind]),
                                                bad[kind][0]))
        else:
            print("ok %s" % name)
    total = sum(counts.values())
    print("# %d mutants, %d runs of commands, in %d s; %d faults" % (
        total, runs, args.seconds, sum(map(len, bad.values()))))
    for key, n in sorted(often.items(), key=lambda x: -x[1]):
        print("#   %d times: %s" % (n, clean(key)))
    return 1 if bad else 0


def one(args):
    """A single mutant, again."""
    mutant = Mutant(args.world, args.seed, args.only, args.kind)
    examiner = Examiner(args.world)
    with tempfile.TemporaryDirectory(prefix="opscope-mutate-") as tmp:
        findings = examiner.examine(mutant, os.path.join(tmp, "m"))
    if args.keep:
        mutant = Mutant(args.world, args.seed, args.only, args.kind)
        paths, size = mutant.write(args.keep)
        print("# %d bytes in %s" % (size, " ".join(map(clean, paths))))
    print("# %s: %s" % (mutant.kind, clean(mutant.describe())))
    examiner.every.close()
    seen = set()
    for f in findings:
        if f.key not in seen:
            print("not ok %d: %s" % (args.seed, clean(str(f))))
        seen.add(f.key)
    if not findings:
        print("ok %d: %d runs" % (args.seed, examiner.runs))
    return 1 if findings else 0


def main():
    ap = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--seconds", type=float)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--build", default=os.path.join(ROOT, "build"))
    ap.add_argument("--seed", type=int)
    ap.add_argument("--kind", choices=[k for k, _ in KINDS])
    ap.add_argument("--keep")
    ap.add_argument("--only", type=lambda s: [int(x) for x in s.split(",")
                                              if x])
    args = ap.parse_args()
    if args.seconds is None and args.seed is None:
        ap.error("--seconds N, or --seed N")
    sys.setrecursionlimit(20000)
    args.world = World(os.path.abspath(args.build))
    return run(args) if args.seconds is not None else one(args)


if __name__ == "__main__":
    sys.exit(main())
