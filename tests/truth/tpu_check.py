#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TPU profiles against what was written into them (tpu_file.py): waiting for a
copy is no computing, memory by device with what programs set aside, launches,
collectives by their HLO, steps that nobody marked.

usage: tpu_check.py      program: $OPSCOPE or build/opscope
"""
import os
import sys
import tempfile

import tpu_file
from lib import rows, say, status, table
from tpu_file import EVERY_US, OPS, RUN_US

DEVICES, RUNS = 4, 3


def time_of(*names):
    return sum(op[3] for op in OPS if op[0].startswith(names))


def differ(what, got, want):
    return [] if got == want else ["%s: %s, should be %s" % (what, got, want)]


def check_steps(path):
    wrong = []
    copy = time_of("copy-")
    comm = time_of("all-", "barrier")
    for s in rows("steps", path):
        compute = RUN_US - 1 - copy - comm  # the loop only holds other ops
        wrong += differ("compute", s["compute_us"], compute)
        wrong += differ("comm", s["comm_us"], comm)
        wrong += differ("copy", s["copy_us"], copy)
        wrong += differ("step", s["step"] in (0, 1, 2), True)
    say("waiting for a copy is no computing, in a loop or not", wrong)
    facts = {r["metric"]: r["text"] for r in rows("info", path)}
    wrong = differ("steps", "no marker" in facts["steps found"], True)
    modules = [r for r in rows("info", path) if r["metric"] == "hlo_module"]
    wrong += differ("modules", len(modules), 2)
    say("runs of a program are said to be no markers", wrong)


def check_kernels(path):
    wrong = []
    got = {(r["name"], r["device"]): r for r in rows("kernels", path)}
    wrong += differ("rows", len(got), len(OPS) * DEVICES)
    for name, _, _, dur, _ in OPS:
        for d in range(DEVICES):
            r = got.get((name, "TPU %d" % d))
            if r is None:
                wrong.append("no row for %s" % name)
                continue
            wrong += differ(name, (r["calls"], r["total_us"]),
                            (RUNS, RUNS * dur))
    say("every op has a row, transfers and waits, too", wrong)


def check_copies(path):
    got = rows("copies", path)
    calls = DEVICES * RUNS
    wrong = differ("rows", len(got), 1)
    r = got[0]
    wrong += differ("kind", r["kind"], "h2d")
    wrong += differ("calls", r["calls"], calls)
    wrong += differ("bytes", r["bytes"], calls * 4 * 1024 * 1024)
    wrong += differ("total", r["total_us"], calls * 500)
    wrong += differ("exposed", r["exposed_us"],
                    calls * (500 - time_of("fusion")))
    say("a start and its done are one transfer, with its bytes", wrong)


def check_comm(path):
    got = {r["kind"]: r for r in rows("comm", path)}
    calls = DEVICES * RUNS
    wrong = differ("kinds", sorted(got), ["all_gather", "all_reduce",
                                         "barrier"])
    reduce, gather = got["all_reduce"], got["all_gather"]
    wrong += differ("reduced", reduce["bytes"], calls * 8192 * 4)
    wrong += differ("of", reduce["group_size"], 4)
    wrong += differ("type", reduce["dtype"], "fp32")
    wrong += differ("gathered", gather["bytes"], calls * 64 * 256 * 2)
    wrong += differ("of", gather["group_size"], 2)
    wrong += differ("barrier", got["barrier"]["total_us"], calls * 39)
    say("collectives have the shapes of their HLO", wrong)


def check_memory(path, held, name):
    got = {r["device"]: r for r in rows("memory", path)}
    wrong = differ("devices", sorted(got), ["TPU %d" % d
                                           for d in range(DEVICES)])
    for d, want in enumerate(held):
        r = got.get("TPU %d" % d, {})
        wrong += differ("TPU %d" % d,
                        {"peak": r.get("peak_bytes"),
                         "live": r.get("live_at_end_bytes"),
                         "allocs": r.get("allocs"), "frees": r.get("frees"),
                         "capacity": r.get("capacity_bytes")}, want)
    say("memory by device, with what programs set aside: " + name, wrong)


def check_launches(path):
    got = rows("launch", path)
    calls = DEVICES * RUNS
    wrong = differ("launches", sum(r["launches"] for r in got), calls)
    links = [r["value"] for r in rows("info", path)
             if r["metric"] == "launch links"]
    wrong += differ("links", links, [calls * len(OPS)])
    say("the host's launches are joined with the programs", wrong)


def check_roofline(path):
    got = rows("roofline", path)
    wrong = ["%s: %s %%" % (r["name"], r["of_peak_pct"]) for r in got
             if r["of_peak_pct"] is not None and r["of_peak_pct"] > 100]
    wrong += ["a row for %s" % r["name"] for r in got
              if r["name"].startswith("copy-")]
    say("nothing is faster than the device", wrong)


def check_critical(path):
    got = rows("critical", path)
    path_us = {}
    for r in got:
        path_us[r["kind"]] = path_us.get(r["kind"], 0) + r["on_path_us"]
    wrong = differ("sum", sum(path_us.values()), EVERY_US)
    wrong += differ("copy", path_us.get("copy"), time_of("copy-"))
    wrong += differ("python", path_us.get("python"), None)
    doc, hints = table("hints", path)
    wrong += differ("hints", len(hints), 0)
    say("the path of a step stays on the device", wrong)


def check_marked(path):
    got = [s["step"] for s in rows("steps", path)]
    wrong = differ("steps", got, [40, 41, 42])
    facts = {r["metric"]: r["text"] for r in rows("info", path)}
    wrong += differ("rule", facts["steps found"].startswith("by the markers"),
                    True)
    say("a line of steps marks them", wrong)


def main():
    with tempfile.TemporaryDirectory() as dir:
        path = os.path.join(dir, "tpu.xplane.pb")
        held = tpu_file.write(path, DEVICES, RUNS)
        check_steps(path)
        check_kernels(path)
        check_copies(path)
        check_comm(path)
        check_memory(path, held, "sizes")
        check_launches(path)
        check_roofline(path)
        check_critical(path)
        tpu_file.write(path, DEVICES, RUNS, steps=True)
        check_marked(path)
        held = tpu_file.write(path, DEVICES, RUNS, sizes=False)
        check_memory(path, held, "levels alone")
    return status()


if __name__ == "__main__":
    sys.exit(main())
