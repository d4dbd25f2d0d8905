#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `opscope ops`, `kernels`, `copies` and `memory` against XProf's tables.

XProf's CSV answers lie beside the profiles in tests/data/xprof. Where XProf
has nothing or something wrong, the right figures stand here: counted from the
files by hand.

usage: xprof_tables.py      program: $OPSCOPE or build/opscope
"""
import csv
import os
import sys
from decimal import Decimal

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "xprof")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
faults = []
checked = 0


def run(analysis, case, *more):
    return lib.rows(analysis, os.path.join(DATA, case + ".xplane.pb.gz"),
                    *more)


def table(case, name):
    with open(os.path.join(DATA, f"{case}.{name}.csv")) as f:
        return list(csv.DictReader(f))


def same(what, got, want):
    """Equal to what XProf prints: whole nanoseconds."""
    global checked
    checked += 1
    equal = got == want
    if isinstance(want, Decimal) and got is not None:
        equal = abs(Decimal(got) - want) <= Decimal("0.001")
    if not equal:
        faults.append(f"{what}: {got}, expected {want}")


def check_ops(case):
    """Every host op: calls, total and self time."""
    ours = {(o["name"], o["type"]): o for o in run("ops", case)}
    for row in table(case, "framework_op_stats"):
        kind, name = row["Operation Type"], row["Operation Name"]
        if kind == "IDLE" or row["Host/device"] != "Host":
            continue
        # a PjRt function that XProf takes for an op name:Type
        if name == "ThenExecuteCallback":
            continue
        o = ours.get((name, kind))
        if o is None:
            faults.append(f"{case}: no op {name} of type {kind}")
            continue
        at = f"{case}: {name}"
        same(at + " calls", Decimal(o["calls"]), Decimal(row["#Occurrences"]))
        same(at + " total", o["host_us"], Decimal(row["Total time (us)"]))
        same(at + " self", o["host_self_us"],
             Decimal(row["Total self-time (us)"]))


def check_kernels(case):
    """XProf has a row per launch shape."""
    ours = run("kernels", case, "--group", "shape")
    theirs = table(case, "kernel_stats")
    same(f"{case}: kernels", len(ours), len(theirs))
    columns = {"Registers per thread": "registers",
               "Shared Mem bytes": "shared_bytes",
               "Theoretical Occupancy %": "occupancy_pct",
               "Occurrences": "calls", "Total Duration (μs)": "total_us",
               "Min Duration (μs)": "min_us", "Max Duration (μs)": "max_us"}
    for row in theirs:
        fits = [k for k in ours if k["name"] == row["Kernel Name"]
                and k["grid"] == row["Grid dim"]
                and k["block"] == row["Block dim"]]
        at = f"{case}: {row['Kernel Name'][:60]}"
        same(at + " rows", len(fits), 1)
        for head, col in columns.items() if fits else ():
            same(f"{at} {col}", Decimal(fits[0][col]), Decimal(row[head]))
        if fits:
            same(at + " tensor_core", fits[0]["tensor_core"],
                 row["Kernel uses TensorCore"] == "True")


def check_hlo(case):
    """The ops that XLA wrote on the kernels."""
    ours = {o["name"]: o for o in run("ops", case) if o["kind"] == "device"}
    theirs = table(case, "hlo_stats")
    same(f"{case}: device ops", len(ours), len(theirs))
    for row in theirs:
        o = ours.get(row["HLO op name"], {"calls": 0, "device_self_us": None})
        at = f"{case}: {row['HLO op name']}"
        same(at + " calls", Decimal(o["calls"]), Decimal(row["#Occurrences"]))
        same(at + " self", o["device_self_us"],
             Decimal(row["Total self time (us)"]))


def check_where_xprof_fails():
    # XProf loses eager ops: 68 executions of 25 types in each of 5 steps
    eager = [o for o in run("ops", "tf_eager") if o["kind"] == "op"]
    by = {o["name"]: o for o in eager}
    same("tf_eager: types", len(eager), 25)
    same("tf_eager: executions", sum(o["calls"] for o in eager), 340)
    for name, calls, ms in (("Conv2D", 5, "18.458393"),
                            ("MaxPoolGrad", 5, "10.092811"),
                            ("ReluGrad", 10, "9.076985"),
                            ("Relu", 10, "7.678692")):
        same(f"tf_eager: {name} calls", by[name]["calls"], calls)
        same(f"tf_eager: {name}", by[name]["host_us"], Decimal(ms) * 1000)
    # ... and the ops of XLA on the CPU
    hlo = [o for o in run("ops", "jax_cpu") if o["kind"] == "op"]
    by = {o["name"]: o for o in hlo}
    same("jax_cpu: HLO ops", len(hlo), 30)
    same("jax_cpu: executions", sum(o["calls"] for o in hlo), 150)
    same("jax_cpu: time", sum(o["host_us"] for o in hlo), Decimal("5538.540"))
    same("jax_cpu: dot", by["dot"]["host_us"], Decimal("2061.597"))


def check_jax_mlp():
    copies = run("copies", "jax_mlp")
    same("jax_mlp: kinds of copies", [c["kind"] for c in copies], ["h2d"])
    same("jax_mlp: copies", copies[0]["calls"], 12)
    same("jax_mlp: bytes", copies[0]["bytes"], 9756672)
    same("jax_mlp: copy time", copies[0]["total_us"], Decimal("265.889"))
    kernels = run("kernels", "jax_mlp")
    same("jax_mlp: kernel calls", sum(k["calls"] for k in kernels), 150)
    same("jax_mlp: kernel time", sum(k["total_us"] for k in kernels),
         Decimal("901.695"))
    memory = {m["allocator"]: m for m in run("memory", "jax_mlp")}
    gpu, host = memory["GPU_0_bfc"], memory["xla_gpu_host_bfc"]
    same("jax_mlp: peak", gpu["peak_bytes"], 119954432)
    same("jax_mlp: lifetime peak", gpu["peak_life_bytes"], 234979840)
    same("jax_mlp: events", (gpu["allocs"], gpu["frees"]), (66, 66))
    same("jax_mlp: host events", (host["allocs"], host["frees"]), (12, 12))
    live = run("allocs", "jax_mlp", "--peak")
    same("jax_mlp: live at the peak",
         sum(a["bytes"] for a in live if a["allocator"] == "GPU_0_bfc"),
         119954432)


def main():
    for case in ("tf_graph", "tf_graph_fast", "tf_keras", "tf_custom",
                 "jax_mlp", "jax_mlp_hlo"):
        check_ops(case)
    for case in ("jax_mlp", "jax_mlp_hlo"):
        check_kernels(case)
    check_hlo("jax_mlp_hlo")
    check_where_xprof_fails()
    check_jax_mlp()
    print(f"{checked} figures held against XProf's, {len(faults)} differ")
    lib.say("figures", faults if checked else "none")
    return lib.status()


if __name__ == "__main__":
    sys.exit(main())
