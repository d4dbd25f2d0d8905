#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what opscope says of XSpace and RunMetadata files against a count of
its own, made with the protobuf package from descriptors written out below,
against XProf's tables that lie beside the profiles (where XProf is right), and
against figures that were checked by hand.

Where XProf has nothing or is wrong the right number is asserted and the reason
stands beside it.

usage: xspace_count.py [--count FILE...]   program: $OPSCOPE or build/opscope
       --count prints the independent count as JSON and compares nothing
"""
import csv
import json
import os
import sys
from decimal import Decimal

from lib import rows as run

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
CASES = ["tf_eager", "tf_graph", "tf_graph_fast", "tf_keras", "tf_custom",
         "jax_cpu", "jax_mlp", "jax_mlp_hlo"]

try:
    from google.protobuf import (descriptor_pb2, descriptor_pool,
                                 message_factory)
except ImportError:
    print("ok xspace_count # skip the protobuf package is not installed")
    sys.exit(0)

INT, UINT, TEXT, BYTES, DOUBLE = 3, 4, 9, 12, 1
# message -> (number, name, type, repeated); text as bytes: names need not be
# UTF-8. Map entries are messages {1 key, 2 value}.
SCHEMA = {
    "Stat": [(1, "metadata_id", INT, 0), (2, "double_value", DOUBLE, 0),
             (3, "uint64_value", UINT, 0), (4, "int64_value", INT, 0),
             (5, "str_value", BYTES, 0), (6, "bytes_value", BYTES, 0),
             (7, "ref_value", UINT, 0)],
    "Event": [(1, "metadata_id", INT, 0), (2, "offset_ps", INT, 0),
              (5, "num_occurrences", INT, 0), (3, "duration_ps", INT, 0),
              (4, "stats", "Stat", 1)],
    "Line": [(1, "id", INT, 0), (2, "name", BYTES, 0),
             (3, "timestamp_ns", INT, 0), (4, "events", "Event", 1),
             (11, "display_name", BYTES, 0)],
    "EventName": [(1, "id", INT, 0), (2, "name", BYTES, 0),
                  (4, "display_name", BYTES, 0), (5, "stats", "Stat", 1)],
    "StatName": [(1, "id", INT, 0), (2, "name", BYTES, 0)],
    "EventEntry": [(1, "key", INT, 0), (2, "value", "EventName", 0)],
    "StatEntry": [(1, "key", INT, 0), (2, "value", "StatName", 0)],
    "Plane": [(1, "id", INT, 0), (2, "name", BYTES, 0), (3, "lines", "Line", 1),
              (4, "event_metadata", "EventEntry", 1),
              (5, "stat_metadata", "StatEntry", 1), (6, "stats", "Stat", 1)],
    "Space": [(1, "planes", "Plane", 1), (2, "errors", BYTES, 1),
              (3, "warnings", BYTES, 1), (4, "hostnames", BYTES, 1)],
    "Record": [(1, "alloc_micros", INT, 0), (2, "alloc_bytes", INT, 0)],
    "Used": [(1, "allocator_name", BYTES, 0), (2, "total_bytes", INT, 0),
             (6, "allocation_records", "Record", 1)],
    "Node": [(1, "node_name", BYTES, 0), (2, "all_start_micros", INT, 0),
             (3, "op_start_rel_micros", INT, 0),
             (4, "op_end_rel_micros", INT, 0),
             (5, "all_end_rel_micros", INT, 0), (6, "memory", "Used", 1),
             (8, "timeline_label", BYTES, 0),
             (14, "op_start_rel_nanos", INT, 0),
             (15, "op_end_rel_nanos", INT, 0)],
    "Device": [(1, "device", BYTES, 0), (2, "node_stats", "Node", 1)],
    "StepStats": [(1, "dev_stats", "Device", 1)],
    "RunMetadata": [(1, "step_stats", "StepStats", 0)],
}
# Exactly one of these holds a stat's value, so that presence matters.
ONEOF = {"Stat": range(2, 8), "Event": (2, 5)}


def messages():
    fd = descriptor_pb2.FileDescriptorProto(name="x.proto", package="x",
                                            syntax="proto3")
    for name, fields in SCHEMA.items():
        m = fd.message_type.add(name=name)
        if name in ONEOF:
            m.oneof_decl.add(name="which")
        for num, field, kind, repeated in fields:
            f = m.field.add(name=field, number=num, label=3 if repeated else 1)
            if isinstance(kind, str):
                f.type, f.type_name = 11, ".x." + kind
            else:
                f.type = kind
            if num in ONEOF.get(name, ()):
                f.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(fd)
    get = getattr(message_factory, "GetMessageClass", None)
    if get is None:
        get = message_factory.MessageFactory(pool).GetPrototype
    return {n: get(pool.FindMessageTypeByName("x." + n)) for n in SCHEMA}


MESSAGE = messages()


def load(kind, path):
    m = MESSAGE[kind]()
    with open(path, "rb") as f:
        m.ParseFromString(f.read())
    return m


def us(ps):
    return Decimal(ps) / 1000000


class Plane:
    """A plane with its names looked up."""

    def __init__(self, p):
        self.p = p
        self.name = p.name.decode(errors="replace")
        self.stat = {e.key: e.value.name.decode(errors="replace")
                     for e in p.stat_metadata}
        self.names = {e.key: e.value for e in p.event_metadata}

    def value(self, s):
        which = s.WhichOneof("which")
        v = getattr(s, which)
        if which == "ref_value":
            return self.stat.get(v, "")
        return v.decode(errors="replace") if which == "str_value" else v

    def stats(self, e):
        meta = self.names.get(e.metadata_id)
        both = (list(meta.stats) if meta else []) + list(e.stats)
        return {self.stat.get(s.metadata_id): self.value(s) for s in both
                if s.WhichOneof("which")}

    def events(self):
        for line in self.p.lines:
            for e in line.events:
                meta = self.names.get(e.metadata_id)
                name = meta.name.decode(errors="replace") if meta else ""
                yield line, e, name, self.stats(e)


def add(table, key, dur):
    n, total = table.get(key, (0, 0))
    table[key] = (n + 1, total + dur)


def count(path):
    """The file in figures, straight from the messages."""
    c = {"events": 0, "instants": 0, "python": 0, "kernels": {}, "copies": {},
         "eager": {}, "hlo": {}, "steps": [], "memory": {}}
    for p in map(Plane, load("Space", path).planes):
        device = p.name.startswith("/device:")
        for line, e, name, stats in p.events():
            dur = e.duration_ps
            c["events"] += 1
            c["instants"] += dur == 0
            c["python"] += name.startswith("$")
            if device and "kernel_details" in stats:
                add(c["kernels"], name, dur)
            if device and "memcpy_details" in stats:
                add(c["copies"], name, dur)
            if device:
                continue
            if name.startswith("EagerLocalExecute: "):
                op = name.split(": ", 1)[1]
                # a call of a tf.function waits for ops recorded elsewhere
                if not op.startswith("__inference_"):
                    add(c["eager"], op, dur)
            if "hlo_op" in stats:
                add(c["hlo"], stats["hlo_op"], dur)
            if "step_num" in stats:
                at = line.timestamp_ns * 1000 + e.offset_ps
                c["steps"].append((at, stats["step_num"], dur))
            if name in ("MemoryAllocation", "MemoryDeallocation"):
                m = c["memory"].setdefault(stats["allocator_name"], {
                    "MemoryAllocation": 0, "MemoryDeallocation": 0,
                    "peak": 0, "life": 0, "capacity": 0})
                m[name] += 1
                m["peak"] = max(m["peak"], stats["bytes_allocated"])
                m["life"] = max(m["life"], stats["peak_bytes_in_use"])
                m["capacity"] = stats["bytes_allocated"] + \
                    stats["bytes_available"] + stats["bytes_reserved"]
    c["steps"].sort()
    return c


# ---- what opscope says ----

failed = 0


def check(name, have, want):
    global failed
    if have == want:
        print(f"ok {name}")
        return
    failed += 1
    print(f"not ok {name}: {have} instead of {want}")


def info(path):
    return {r["metric"]: r["value"] for r in run("info", path)}


def sums(table):
    return (sum(n for n, _ in table.values()),
            us(sum(d for _, d in table.values())))


def rows_sum(rows, calls, time):
    return (sum(r[calls] for r in rows),
            sum((Decimal(r[time]) for r in rows), Decimal(0)))


def check_count(case, path, c):
    """Everything that the messages alone tell."""
    i = info(path)
    check(f"{case} events", i["events in file"], c["events"])
    # allocations and frees stand in the table of memory events alone
    check(f"{case} spans and memory events",
          i["spans"] + i.get("memory events", 0), c["events"])
    check(f"{case} Python frames", i.get("Python frames", 0), c["python"])
    steps = run("steps", path)
    check(f"{case} steps", [s["step"] for s in steps],
          [n for _, n, _ in c["steps"]])
    check(f"{case} markers", [Decimal(s["marker_us"]) for s in steps],
          [us(d) for _, _, d in c["steps"]])
    ops = run("ops", path)
    for group in ("eager", "hlo"):
        have = {}
        for r in ops:
            if r["kind"] == "op" and r["name"] in c[group]:
                have[r["name"]] = (r["calls"], Decimal(r["host_us"]))
        check(f"{case} {group} ops", have,
              {k: (n, us(d)) for k, (n, d) in c[group].items()})
    kernels = run("kernels", path)
    check(f"{case} kernels",
          {r["name"]: (r["calls"], Decimal(r["total_us"])) for r in kernels},
          {k: (n, us(d)) for k, (n, d) in c["kernels"].items()})
    check(f"{case} copies", rows_sum(run("copies", path), "calls", "total_us"),
          sums(c["copies"]))
    memory = {r["allocator"]: r for r in run("memory", path)}
    check(f"{case} allocators", sorted(memory), sorted(c["memory"]))
    for name, m in c["memory"].items():
        r = memory.get(name, {})
        check(f"{case} memory of {name}",
              [r.get(k) for k in ("allocs", "frees", "peak_bytes",
                                  "peak_life_bytes", "capacity_bytes")],
              [m["MemoryAllocation"], m["MemoryDeallocation"], m["peak"],
               m["life"], m["capacity"]])
    return steps, ops, kernels


def table(case, name):
    with open(os.path.join(DATA, case, name), encoding="utf-8",
              newline="") as f:
        return list(csv.DictReader(f))


def three(v):
    """XProf prints three decimals."""
    return Decimal(v).quantize(Decimal("0.001"))


# The one framework op that XProf sees in the GPU files is a function of PjRt
# whose name looks like one (goldens: a bogus op).
BOGUS = {"ThenExecuteCallback"}


def check_xprof_ops(case, ops):
    """Host rows of XProf's framework_op_stats: calls, total and self time."""
    have = {(r["name"], r["type"] or ""): r for r in ops if r["kind"] == "op"}
    n = wrong = 0
    for row in table(case, "framework_op_stats.csv"):
        name, kind = row["Operation Name"], row["Operation Type"]
        if row["Host/device"] != "Host" or kind == "IDLE" or name in BOGUS:
            continue
        n += 1
        ours = have.get((name, kind))
        want = (int(Decimal(row["#Occurrences"])),
                three(row["Total time (us)"]),
                three(row["Total self-time (us)"]))
        got = ours and (ours["calls"], three(ours["host_us"]),
                        three(ours["host_self_us"]))
        if got != want:
            wrong += 1
            print(f"#   {name}: {got} instead of {want}")
    check(f"{case} {n} ops as in XProf", wrong, 0)
    for name in BOGUS:
        check(f"{case} {name} is no op",
              [r for r in ops if r["name"] == name and r["kind"] == "op"], [])
    return n


def check_xprof_kernels(case, kernels):
    have = {r["name"]: r for r in kernels}
    n = wrong = 0
    for row in table(case, "kernel_stats.csv"):
        r = have.get(row["Kernel Name"])
        n += 1
        want = [Decimal(row["Occurrences"]),
                three(row["Total Duration (μs)"]),
                three(row["Min Duration (μs)"]),
                three(row["Max Duration (μs)"]),
                Decimal(row["Registers per thread"]),
                Decimal(row["Shared Mem bytes"]), row["Grid dim"],
                row["Block dim"], Decimal(row["Theoretical Occupancy %"])]
        got = r and [r["calls"], three(r["total_us"]), three(r["min_us"]),
                     three(r["max_us"]), r["registers"], r["shared_bytes"],
                     r["grid"], r["block"], Decimal(r["occupancy_pct"])]
        # XProf keeps kernels of one name apart by launch shape and op.
        if r and r["variants"] > 1 or sum(
                k["Kernel Name"] == row["Kernel Name"]
                for k in table(case, "kernel_stats.csv")) > 1:
            continue
        if got != want:
            wrong += 1
            print(f"#   {row['Kernel Name'][:60]}: {got} instead of {want}")
    check(f"{case} {n} kernels as in XProf", wrong, 0)


# ---- figures checked by hand ----

MARKERS = {
    "tf_eager": "12590.203 16491.306 18789.162 18535.577 18483.219",
    "tf_keras": "9090.765 7751 6669.878 7493.478 6428.42 6909.703",
    "tf_custom": "5699.659 6308.832 6351.766 6108.004",
    "jax_cpu": "2773.642 2885.367 2175.646 1942.149 2425.135",
    "jax_mlp": "13433.441 10700.853 8221.119 7946.963 9285.836 11744.167",
}
# XProf shows no step of a Keras profile (its marker lacks _r): there are 6.
STEPS = {"tf_eager": range(0, 5), "tf_keras": range(9, 15),
         "tf_custom": range(20, 24), "tf_graph": range(0, 12),
         "tf_graph_fast": range(0, 12), "jax_cpu": range(0, 5),
         "jax_mlp": range(0, 6)}
EVENTS = {"tf_eager": 3929, "tf_graph": 4283, "tf_graph_fast": 4098,
          "tf_keras": 4481, "tf_custom": 2624, "jax_cpu": 721, "jax_mlp": 856}
# case -> op -> (calls, total us, self us or None)
OPS = {
    # XProf has no op at all for eager programs.
    "tf_eager": {"Conv2D": (5, "18458.393", None),
                 "MaxPoolGrad": (5, "10092.811", None),
                 "ReluGrad": (10, "9076.985", None),
                 "Relu": (10, "7678.692", None)},
    "tf_graph": {"Iterator::Root::ForeverRepeat[0]::Map":
                 (12, "265445.038", "264081.997"),
                 "PyFunc": (12, "257104.036", None),
                 "conv/Relu": (12, "18295.115", None)},
    "tf_graph_fast": {"PyFunc": (10, "202796.68", None)},
    "tf_keras": {"StatefulPartitionedCall/net_1/conv_1/Relu":
                 (6, "8244.111", None)},
    "tf_custom": {"conv/Relu": (4, "6463.25", None)},
    # XProf has no op for XLA on CPUs.
    "jax_cpu": {"dot": (5, "2061.597", None),
                "ynn_fusion.6": (5, "1481.748", None),
                "dot.1": (5, "962.878", None)},
}
# case -> (rows, calls, total us) of ops in XProf's table
XPROF_ROWS = {"tf_graph": 61, "tf_keras": 239, "tf_custom": 39}
EAGER = {"tf_eager": (25, 340, "68552.321")}
HLO = {"jax_cpu": (30, 150, "5538.54")}


def check_hand(case, c, steps, ops, nxprof):
    if case in EVENTS:
        check(f"{case} events by hand", c["events"], EVENTS[case])
    if case in STEPS:
        check(f"{case} step numbers", [s["step"] for s in steps],
              list(STEPS[case]))
    if case in MARKERS:
        check(f"{case} markers by hand",
              [Decimal(s["marker_us"]) for s in steps],
              [Decimal(v) for v in MARKERS[case].split()])
    for s in steps:
        parts = ("compute_us", "comm_us", "copy_us", "input_us", "launch_us",
                 "host_us", "other_us")
        if sum(Decimal(s[k]) for k in parts) != Decimal(s["dur_us"]):
            check(f"{case} phases of step {s['step']} sum up", False, True)
    by = {r["name"]: r for r in ops if r["kind"] == "op"}
    for name, (calls, total, own) in OPS.get(case, {}).items():
        r = by.get(name)
        got = r and (r["calls"], Decimal(r["host_us"]),
                     Decimal(r["host_self_us"]) if own else None)
        check(f"{case} {name}", got,
              (calls, Decimal(total), Decimal(own) if own else None))
    for figures, group in ((EAGER, "eager"), (HLO, "hlo")):
        if case in figures:
            names, calls, total = figures[case]
            check(f"{case} {group} by hand",
                  (len(c[group]),) + sums(c[group]),
                  (names, calls, Decimal(total)))
    if case in EAGER:  # and nothing else is an op
        check(f"{case} ops", (len(by),) + rows_sum(by.values(), "calls",
                                                   "host_us"),
              (25, 340, Decimal("68552.321")))
    if case in XPROF_ROWS:
        check(f"{case} rows of XProf", nxprof, XPROF_ROWS[case])
    types = {"tf_graph": ("conv/Relu", "_FusedConv2D")}
    if case in types:
        name, kind = types[case]
        check(f"{case} {name} ran as {kind}", by[name]["type"], kind)


def check_gpu(case, path, c):
    """jax_mlp, by hand; the edited copy has the same events."""
    check(f"{case} kernels by hand", (len(c["kernels"]),) + sums(c["kernels"]),
          (23, 150, Decimal("901.695")))
    copies = run("copies", path)
    check(f"{case} copies by hand",
          [(r["kind"], r["calls"], r["bytes"], Decimal(r["total_us"]))
           for r in copies], [("h2d", 12, 9756672, Decimal("265.889"))])
    gpu = [r for r in run("memory", path) if r["allocator"] == "GPU_0_bfc"][0]
    check(f"{case} memory by hand",
          [gpu["allocs"] + gpu["frees"], gpu["peak_bytes"],
           gpu["peak_life_bytes"], gpu["capacity_bytes"]],
          [132, 119954432, 234979840, 112583507968])
    check(f"{case} fragmentation at the peak",
          round(gpu["free_fragmentation_pct"], 4), Decimal("10.8651"))
    i = info(path)
    check(f"{case} memory events", i["memory events"], 156)
    check(f"{case} links", i["launch links"], 162)


# step -> (sum of op time, sum of all_end_rel), us
RUNS = {"001": (33531, 33620), "010": (5767, None), "100": (6133, 6187)}


def check_run(step):
    path = os.path.join(DATA, "tf_v1", f"run_metadata_{step}.pb")
    case = f"tf_v1 {step}"
    nodes = [n for d in load("RunMetadata", path).step_stats.dev_stats
             for n in d.node_stats]
    ops = [r for r in run("ops", path) if r["kind"] == "op"]
    times = sum(n.op_end_rel_micros - n.op_start_rel_micros for n in nodes)
    nanos = sum(n.op_end_rel_nanos - n.op_start_rel_nanos for n in nodes)
    exact = Decimal(nanos) / 1000
    check(f"{case} nodes", (len(nodes), len(ops), info(path)["spans"]),
          (66, 66, 66))
    # TensorFlow's tools add up microseconds; the file has nanoseconds as well
    check(f"{case} op time", (times, rows_sum(ops, "calls", "host_us")),
          (RUNS[step][0], (66, exact)))
    check(f"{case} ns and us", abs(exact - times) < len(nodes), True)
    if RUNS[step][1]:
        check(f"{case} all_end_rel", sum(n.all_end_rel_micros for n in nodes),
              RUNS[step][1])
    have = {r["name"]: (r["type"], Decimal(r["host_us"])) for r in ops}
    want = {}
    for n in nodes:
        label = n.timeline_label.decode()
        want[n.node_name.decode()] = (
            label.split(" = ", 1)[1].split("(", 1)[0],
            Decimal(n.op_end_rel_nanos - n.op_start_rel_nanos) / 1000)
    check(f"{case} types and times", have, want)
    # tfprof books the fused op on Relu
    check(f"{case} conv/Relu", have["conv/Relu"][0], "_FusedConv2D")
    used = [m for n in nodes for m in n.memory]
    allocs = run("allocs", path)
    check(f"{case} bytes allocated",
          (sum(m.total_bytes for m in used), sum(r["bytes"] for r in allocs)),
          (19398468, 19398468))
    # tfprof adds temporaries to totals that contain them already, and prints
    # 0 for nodes that recorded nothing
    check(f"{case} bytes of ops",
          {r["name"]: r["host_bytes"] for r in ops
           if r["host_bytes"] is not None},
          {n.node_name.decode(): sum(m.total_bytes for m in n.memory)
           for n in nodes if n.memory})
    check(f"{case} nodes with memory", sum(bool(n.memory) for n in nodes), 16)
    check(f"{case} Conv2DBackpropFilter",
          [r["host_bytes"] for r in ops
           if r["type"] == "Conv2DBackpropFilter"], [16567776])


def main():
    if sys.argv[1:2] == ["--count"]:
        for path in sys.argv[2:]:
            print(json.dumps({path: count(path)}, indent=1))
        return 0
    for case in CASES:
        path = os.path.join(DATA, case, "vm.xplane.pb")
        c = count(path)
        steps, ops, kernels = check_count(case, path, c)
        n = check_xprof_ops(case, ops)
        check_xprof_kernels(case, kernels)
        check_hand(case, c, steps, ops, n)
        if case.startswith("jax_mlp"):
            check_gpu(case, path, c)
    for step in RUNS:
        check_run(step)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
