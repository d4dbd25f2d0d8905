#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `opscope ops` says of XLA's instructions against other sources.

A decoder of its own reads the programs in the profiles and places the kernels
of each CUDA graph launch, in start order, on the schedule. XProf's tables of
the same profile, in which the HLO op of every kernel was set by hand, must
show the same rows: times, framework ops, source lines, FLOPs of matrix work.
What whole programs cost is held against XLA's own cost analysis.

usage: hlo_check.py      program: $OPSCOPE or build/opscope
"""
import csv
import gzip
import json
import os
import re
import sys
from decimal import Decimal

import lib
from lib import varint

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "xprof")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
faults = []
checked = 0


def same(what, got, want):
    global checked
    checked += 1
    if got != want:
        faults.append(f"{what}: {got}, expected {want}")


def run(analysis, case):
    return lib.rows(analysis, os.path.join(DATA, case + ".xplane.pb.gz"))


def table(case, name):
    with open(os.path.join(DATA, f"{case}.{name}.csv")) as f:
        return list(csv.DictReader(f))


# Protobuf, as far as it is needed: a message is a list of (number, value).

def fields(b):
    return list(lib.fields(b))


def every(b, num):
    return [v for n, v in fields(b) if n == num]


def last(b, num, dflt=b""):
    return (every(b, num) or [dflt])[-1]


def numbers(b, num):
    out = []
    for v in every(b, num):
        if isinstance(v, int):
            out.append(v)
            continue
        i = 0
        while i < len(v):
            n, i = varint(v, i)
            out.append(n)
    return out


class Program:
    """A module: instructions of its entry in schedule order."""

    def __init__(self, proto):
        module = last(proto, 1)
        entry = last(module, 6, 0)
        schedule = {last(e, 1, 0): numbers(last(e, 2), 1)
                    for e in every(last(module, 7), 1)}
        frames = last(module, 17)
        self.files = every(frames, 1)
        self.places = [(last(p, 1, 0), last(p, 3, 0))
                       for p in every(frames, 3)]
        self.frames = [last(f, 1, 0) for f in every(frames, 4)]
        self.by_id = {last(i, 35, 0): i for c in every(module, 3)
                      for i in every(c, 2)}
        self.entry = [self.by_id[i] for i in schedule[entry]]
        self.by_name = {last(i, 1).decode(): i for i in self.entry}

    def launches(self):
        return [last(i, 1).decode() for i in self.entry
                if last(i, 2) in (b"fusion", b"custom-call")]

    def origin(self, name):
        meta = last(self.by_name[name], 7)
        op = last(meta, 2).decode() or None
        frame = last(meta, 15, 0)
        if not frame:
            return op, None
        file, line = self.places[self.frames[frame - 1] - 1]
        return op, f"{self.files[file - 1].decode()}:{line}"

    def dims(self, instr):
        shape = last(instr, 3)
        return numbers((every(shape, 4) or [shape])[0], 3)

    def dot_flops(self, name):
        i = self.by_name[name]
        if last(i, 2) != b"dot":
            return None
        lhs = self.dims(self.by_id[numbers(i, 36)[0]])
        n = 2
        for d in self.dims(i):
            n *= d
        for d in numbers(last(i, 30), 1):
            n *= lhs[d]
        return n


def planes(case):
    with gzip.open(os.path.join(DATA, case + ".xplane.pb.gz")) as f:
        for p in every(f.read(), 1):
            yield last(p, 2).decode(), p


def names_of(plane, num):
    return {last(e, 1, 0): last(last(e, 2), 2).decode()
            for e in every(plane, num)}


def programs(case):
    out = {}
    for name, p in planes(case):
        if name != "/host:metadata":
            continue
        for e in every(p, 4):
            meta = last(e, 2)
            for s in every(meta, 5):
                if last(s, 6):
                    out[last(meta, 2).decode()] = last(s, 6)
    return out


def events(case, prefix):
    """(name, start, duration, stats) of every event of such planes."""
    for name, p in planes(case):
        if not name.startswith(prefix):
            continue
        stats, kinds = names_of(p, 5), names_of(p, 4)
        for line in every(p, 3):
            base = last(line, 3, 0) * 1000
            for e in every(line, 4):
                facts = {}
                for s in every(e, 4):
                    for num, v in fields(s):
                        if num != 1:
                            v = stats.get(v) if num == 7 else v
                            facts[stats.get(last(s, 1, 0))] = v
                yield (kinds[last(e, 1, 0)], base + last(e, 2, 0),
                       last(e, 3, 0), facts)


def rows(case, kind):
    return {o["name"]: o for o in run("ops", case) if o["kind"] == kind}


def check_graph(case):
    """The kernels of a graph launch are the schedule, in start order."""
    graphs = {}
    for name, start, dur, facts in events(case, "/device:GPU"):
        if "kernel_details" in facts:
            module = f"{facts['hlo_module']}({facts['program_id']})"
            graphs.setdefault((module, facts["correlation_id"]),
                              []).append((start, name, dur))
    want = {}
    for (module, launch), kernels in graphs.items():
        instrs = Program(programs(case)[module]).launches()
        same(f"{case}: kernels of launch {launch}", len(kernels), len(instrs))
        for (_, name, dur), instr in zip(sorted(kernels), instrs):
            flat = re.sub(r"[^A-Za-z0-9_]", "_", instr)
            if re.sub(r"(_+\d+)+$", "", name) != re.sub(r"(_+\d+)+$", "",
                                                        flat):
                same(f"{case}: {name} is of a library",
                     "custom-call" in instr or "matmul" in instr, True)
            calls, total = want.get(instr, (0, 0))
            want[instr] = calls + 1, total + dur
    ours = rows(case, "device")
    same(f"{case}: instructions", sorted(ours), sorted(want))
    for name, (calls, total) in want.items():
        same(f"{case}: {name} calls", ours[name]["calls"], calls)
        same(f"{case}: {name} time", ours[name]["device_self_us"],
             Decimal(total).scaleb(-6))


def check_xprof(case, theirs):
    """The same rows as XProf where it was told the instruction."""
    ours = rows(case, "device")
    scopes = {}
    for o in ours.values():
        scopes[o["scope"]] = scopes.get(o["scope"], 0) + o["device_self_us"]
    for row in table(theirs, "hlo_stats"):
        at, o = f"{case}: {row['HLO op name']}", ours[row["HLO op name"]]
        same(at + " self", o["device_self_us"],
             Decimal(row["Total self time (us)"]))
        same(at + " scope", o["scope"], row["Framework op name"].rstrip(":"))
        place = re.search(r"title='([^\n]*):\d+\n", row["Source Info"])
        same(at + " source", o["source"], place.group(1))
        same(at + " program", o["program"].endswith(f"({row['Program id']})"),
             True)
        if row["HLO op category"] == "custom-call":
            flops = float(row["Model GFLOP/s"]) * float(
                row["Avg. time (us)"]) * 1e3
            same(at + " flops", o["flops"], 6 * round(flops))
    for row in table(theirs, "framework_op_stats"):
        if row["Host/device"] == "Device" and row["Operation Type"] != "IDLE":
            same(f"{case}: scope {row['Operation Name']}",
                 scopes[row["Operation Name"]],
                 Decimal(row["Total self-time (us)"]))


def check_cpu(case):
    """XLA on the CPU: where each of its ops comes from."""
    ours, seen = rows(case, "op"), set()
    for _, _, _, facts in events(case, "/host:CPU"):
        if "hlo_op" not in facts:
            continue
        name = facts["hlo_op"]
        module = f"{facts['hlo_module']}({facts['program_id']})"
        if (module, name) in seen:
            continue
        seen.add((module, name))
        program = Program(programs(case)[module])
        op, source = program.origin(name)
        at, o = f"{case}: {name}", ours[name]
        same(at + " program", o["program"], module)
        if op:
            same(at + " scope", o["scope"], op)
            same(at + " source", o["source"], source)
        flops = program.dot_flops(name)
        if flops is not None:
            same(at + " flops", o["flops"], flops * o["calls"])
    same(f"{case}: ops", len(seen), 30)


def check_costs(case):
    """XLA's own cost analysis of whole programs, run twice. It counts
    transcendentals apart, one pass of a loop, and FFTs and sorts by rules of
    its own."""
    with open(os.path.join(DATA, case + ".cost_analysis.json")) as f:
        theirs = json.load(f)
    ours = {}
    for o in run("ops", case):
        if o["program"]:
            name = o["program"].split("(")[0].removeprefix("jit_t_")
            ours[name] = ours.get(name, 0) + (o["flops"] or 0)
    for name, cost in theirs.items():
        want = cost["flops"] + (cost["transcendentals"] or 0)
        if name == "scan":  # 7 times round; the test of the loop has no event
            want = 7 * (want - 1)
        if name not in ("fft", "srt"):
            same(f"{case}: {name} flops", ours[name], 2 * want)
    sorts = [o for o in run("ops", case) if o["name"].startswith("sort.")]
    # each copies its input first, which is no second sort
    same(f"{case}: sorts", [(o["calls"], o["flops"]) for o in sorts],
         [(4, 2 * 256 * 100 * n) for n in (8, 8)])


def main():
    for case in ("jax_mlp", "jax_mlp_hlo"):
        check_graph(case)
        check_xprof(case, "jax_mlp_hlo")
    check_cpu("jax_cpu")
    check_costs("jax_ops")
    print(f"{checked} figures of HLO, {len(faults)} differ")
    lib.say("figures", faults if checked else "none")
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
