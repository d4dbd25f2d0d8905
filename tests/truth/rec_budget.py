#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of the recorder costs, in instructions, counted by callgrind:
the same on every machine, busy or not. A change that makes one longer has to
change the number here, in the open. And the cost that the profile itself tells
of (fact scope_cost_ps) against the time that scopes take in a loop.

The path is compiled here, by gcc and by clang with the options of the Makefile,
and counted through a shared library, as most programs use it. Each bound is
what gcc 12 and clang 14 make of it on x86-64, and a twentieth for other
versions of them.

usage: rec_budget.py     build: $BUILD or build, for all but the path
prints `ok NAME`, `not ok NAME: why` or `ok NAME # skip why`
"""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import lib
from lib import say, skip

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(BUILD, "opscope"))
FLAGS = ["-O2", "-g", "-std=gnu11", "-fPIC", "-fvisibility=hidden",
         "-fno-omit-frame-pointer", "-D_GNU_SOURCE", '-DOPS_VERSION="0"',
         "-I" + os.path.join(ROOT, "src"), "-I" + os.path.join(ROOT, "include")]
# Off is the load of the word, its test and the branch, in a function that has
# its own to do about the scope's place on the stack. A scope is two calls:
# twice the state (before and after `busy`), its frame, where it was begun (a
# look whether that one is open already: 8 of them, which the clock hides), one
# slot. A counter is
# one call and two slots; an instant one slot. An allocation has three slots,
# copied by a loop that gcc does not unroll.
BOUNDS = {
    "gcc": {"off": 3, "scope": 130, "counter": 72, "instant": 58,
            "alloc": 156, "arg": 446},
    "clang": {"off": 6, "scope": 123, "counter": 69, "instant": 61,
              "alloc": 84, "arg": 445},
}
SLACK = 0.05


def build(cc, tmp):
    """The path by this compiler, the rest as it was built."""
    path = os.path.join(tmp, "record-%s.o" % cc)
    lib = os.path.join(tmp, "lib%s.so" % cc)
    exe = os.path.join(tmp, "budget-" + cc)
    rest = [os.path.join(BUILD, "obj", room, os.path.basename(c)[:-2] + ".o")
            for room in ("ring", "rec", "rec/machine")
            for c in glob.glob(os.path.join(ROOT, "src", room, "*.c"))
            if os.path.basename(c) != "record.c"]
    rest += [os.path.join(BUILD, "obj", "base", "text", name)
             for name in ("json.o", "utf8.o")]
    subprocess.run([cc, *FLAGS, "-c", "-o", path,
                    os.path.join(ROOT, "src", "rec", "record.c")], check=True)
    subprocess.run([cc, "-shared", "-o", lib, path, *rest, "-pthread", "-lm"],
                   check=True)
    subprocess.run([cc, *FLAGS[:3], "-D_GNU_SOURCE", FLAGS[-1], "-o", exe,
                    os.path.join(ROOT, "tests", "rec", "budget.c"), lib],
                   check=True)
    return exe


def total(exe, work, n, tmp):
    """Instructions of n calls and of the loop around them."""
    out = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         "--toggle-collect=collected", exe, work, str(n),
         os.path.join(tmp, "logs")], stderr=subprocess.PIPE,
        check=True).stderr.decode()
    return int(re.search(r"Collected : (\d+)", out).group(1))


class Counted:
    """Instructions of one call: what more calls cost more. By chance a call
    finds the recorder's thread asleep and wakes it, which only adds: of several
    runs the least is the path itself."""

    def __init__(self, exe, work, tmp):
        self.args = exe, work, tmp
        self.least = {1000: None, 3000: None}

    def again(self):
        exe, work, tmp = self.args
        for n, old in self.least.items():
            new = total(exe, work, n, tmp)
            self.least[n] = new if old is None else min(old, new)
        return (self.least[3000] - self.least[1000]) / 2000


def check_budget(cc, tmp):
    exe = build(cc, tmp)
    loop = Counted(exe, "nothing", tmp)
    loop.again()
    nothing = loop.again()
    for work, bound in BOUNDS[cc].items():
        most = bound * (1 + SLACK)
        calls = Counted(exe, work, tmp)
        for _ in range(24):
            n = calls.again() - nothing
            if n <= most:
                break
        say("%s %s" % (cc, work), n > most and
            "%.1f instructions, not %d" % (n, bound))


def told_cost(logs):
    """ns, as the profile has it."""
    doc, _ = lib.table("info", logs, real=float)
    return float({r[0]: r[3] for r in doc["rows"]}["scope_cost_ps"]) / 1000


def check_told(tmp):
    """Both are the least of many, so that a busy machine is in neither; where
    it never let a batch through undisturbed, the other tries tell."""
    exe = build("gcc" if shutil.which("gcc") else "clang", tmp)
    tries, near = [], 0
    for i in range(5):
        logs = os.path.join(tmp, "told%d" % i)
        out = subprocess.run([exe, "time", "300", logs], check=True,
                             stdout=subprocess.PIPE).stdout
        tries.append((told_cost(logs), float(out)))
        near += 0.5 <= tries[-1][0] / tries[-1][1] <= 2
    print("# %d of %d tries agree" % (near, len(tries)))
    say("the cost that the profile tells of", near < 3 and
        "told and taken, in ns: %s" % tries)


def main():
    sanitized = os.path.basename(BUILD).split("-")[1:2]
    if sanitized and sanitized[0] in ("address", "thread", "undefined"):
        skip("all", "built with sanitizers, which add to every call")
        return 0
    if not glob.glob(os.path.join(BUILD, "obj", "rec", "record.o")):
        skip("all", "no objects of the recorder in " + BUILD)
        return 0
    with tempfile.TemporaryDirectory() as tmp:
        check_told(tmp)
        for cc in BOUNDS:
            if platform.machine() != "x86_64":
                skip(cc, "the bounds are those of x86-64")
            elif not shutil.which("valgrind"):
                skip(cc, "valgrind is not installed")
            elif not shutil.which(cc):
                skip(cc, cc + " is not installed")
            else:
                check_budget(cc, tmp)
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
