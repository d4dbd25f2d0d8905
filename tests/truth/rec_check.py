#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of libopscope-record, counted by a reader of its own: a few lines
that walk the protobuf by docs/recorder/format.md, and sums by hand. What
opscope says of the same file must be the same.

usage: rec_check.py      program: $OPSCOPE or build/opscope
"""
import collections
import glob
import os
import struct
import sys
from decimal import Decimal

from lib import DATA, fields, say, status, table as opscope

FILES = sorted(glob.glob(os.path.join(DATA, "record", "*.pb")))


def message(b):
    """number -> all its values."""
    m = collections.defaultdict(list)
    for k, v in fields(b):
        m[k].append(v)
    return m


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def stats(values, names):
    """[(name, value)] of XStat messages."""
    out = []
    for s in values:
        m = message(s)
        key = names.get(m[1][0], "?")
        for k, v in m.items():
            if k == 2:
                out.append((key, struct.unpack("<d", v[0])[0]))
            elif k == 3:
                out.append((key, v[0]))
            elif k == 4:
                out.append((key, signed(v[0])))
            elif k == 5:
                out.append((key, v[0].decode()))
            elif k == 7:
                out.append((key, names[v[0]]))
    return out


class Event:
    pass


def plane_events(p):
    """Events of all lines with names, kinds and times in ps from the start."""
    stat_names, names = {}, {}
    for e in p[5]:
        m = message(message(e)[2][0])
        stat_names[m[1][0]] = m[2][0].decode()
    for e in p[4]:
        m = message(message(e)[2][0])
        kind = dict(stats(m[5], stat_names)).get("opscope_kind")
        names[m[1][0]] = (m[2][0].decode(), kind)
    for line in map(message, p[3]):
        for e in map(message, line[4]):
            x = Event()
            x.line = line[2][0].decode()
            x.name, x.kind = names[e[1][0]]
            x.ts = line[3][0] * 1000 + (e[2] or [0])[0] if line[3] else e[2][0]
            x.dur = e[3][0] if e[3] else None
            x.stats = stats(e[4], stat_names)
            x.arg = dict(x.stats)
            yield x


def facts(p):
    stat_names = {}
    for e in p[5]:
        m = message(message(e)[2][0])
        stat_names[m[1][0]] = m[2][0].decode()
    return dict(stats(p[6], stat_names))


def ps(us):
    return int(Decimal(us) * 1000000)


def check(name, got, want):
    return say(name, "" if got == want else f"{got!r} is not {want!r}")


def check_ops(path, host):
    want = {}
    for e in host:
        if e.kind is None or e.dur is None or e.line.startswith("async"):
            continue
        n, t, f = want.get(e.name, (0, 0, None))
        flops = e.arg.get("flops")
        if flops is not None:
            f = (f or 0) + flops
        want[e.name] = (n + 1, t + e.dur, f)
    _, rows = opscope("ops", path)
    got = {r["name"]: (r["calls"], ps(r["host_us"]), r["flops"]) for r in rows
           if r["name"] in want}
    check("rec_ops " + os.path.basename(path), got, want)


def check_steps(path, host):
    marks = sorted((e.arg["step_num"], e.ts, e.dur) for e in host
                   if e.name == "step" and e.kind is None)
    _, rows = opscope("steps", path)
    got = [(r["step"], ps(r["marker_us"])) for r in rows]
    check("rec_steps " + os.path.basename(path), got,
          [(n, d) for n, _, d in marks])
    _, rows = opscope("steps", path, "--by", "epoch")
    epochs = sorted((e.ts, e.ts + e.dur, e.arg["epoch_num"]) for e in host
                    if e.name == "epoch" and e.kind is None)
    want = [("epoch %d" % k, sum(a <= ts < b for _, ts, _ in marks))
            for a, b, k in epochs]
    check("rec_epochs " + os.path.basename(path),
          [(r["epoch"], r["steps"]) for r in rows], want)


def check_memory(path, host):
    live, level, peak, lost, at_peak = {}, 0, 0, 0, {}
    for e in sorted((e for e in host if e.name.startswith("Memory")),
                    key=lambda e: e.ts):
        addr = e.arg["addr"]
        if e.name == "MemoryAllocation":
            live[addr] = (e.arg["allocation_bytes"], e.arg["tf_op"])
            level += live[addr][0]
        elif addr in live:
            level -= live.pop(addr)[0]
        else:
            lost += 1
        if level > peak:
            peak = level
            at_peak = collections.Counter()
            for n, tag in live.values():
                at_peak[tag] += n
    r, rows = opscope("memory", path)
    note = {n["id"]: n["count"] for n in r["notes"]}
    check("rec_memory " + os.path.basename(path),
          (rows[0]["peak_bytes"], rows[0]["live_at_end_bytes"],
           note.get("free-without-alloc", 0)), (peak, level, lost))
    word = {"weights": "parameter", "activations": "activation"}
    _, rows = opscope("memory", path, "--by", "category")
    check("rec_category " + os.path.basename(path),
          {r["category"]: r["bytes"] for r in rows},
          {word.get(t, t): n for t, n in at_peak.items()})


def check_counters(path, host):
    want = collections.defaultdict(list)
    for e in sorted((e for e in host if e.line == "_counters_"),
                    key=lambda e: e.ts):
        want[e.name].append(e.arg["counter_value"])
    _, rows = opscope("counters", path)
    check("rec_counters " + os.path.basename(path),
          {r["name"]: (r["samples"], float(r["max"]), float(r["last"]))
           for r in rows},
          {k: (len(v), max(v), v[-1]) for k, v in want.items()})


def check_device(path, device, host):
    by_corr = {v: e.name for e in host for k, v in e.stats
               if k == "correlation_id"}
    want = collections.defaultdict(lambda: [0, 0])
    for e in device:
        assert e.arg.get("opscope_kind", e.kind) == "kernel"
        key = (e.name, by_corr[e.arg["correlation_id"]])
        want[key][0] += 1
        want[key][1] += e.dur
    _, rows = opscope("kernels", path)
    check("rec_kernels " + os.path.basename(path),
          {(r["name"], r["op"]): [r["calls"], ps(r["total_us"])]
           for r in rows}, dict(want))


def main():
    for path in FILES:
        with open(path, "rb") as f:
            planes = [message(v) for k, v in fields(f.read()) if k == 1]
        by_name = {p[2][0].decode(): p for p in planes}
        host = list(plane_events(by_name["/host:CPU"]))
        device = list(plane_events(by_name["/device:CUSTOM:npu 0"]))
        said = facts(by_name["/host:CPU"])
        r, _ = opscope("info", path)
        source = r["sources"][0]
        check("rec_facts " + os.path.basename(path),
              (source["rank"], source["host"], source["epoch_unix_ns"]),
              (said["rank"], said["host_name"], str(said["start_unix_ns"])))
        check("rec_events " + os.path.basename(path),
              said["events_recorded"], len(host) + len(device))
        check_ops(path, host)
        check_steps(path, host)
        check_memory(path, host)
        check_counters(path, host)
        check_device(path, device, host)
    return status()


if __name__ == "__main__":
    sys.exit(main())
