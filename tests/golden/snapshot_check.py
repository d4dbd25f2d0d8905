#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory snapshot of tests/data against Python's own reading of it: levels
replayed entry by entry, segments and blocks as they stand in it, the same in
every protocol of pickle and with the oldest entries lost; and how its
allocations match those of the trace beside it.

usage: snapshot_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
CNN = os.path.join(HERE, "..", "data", "torch_cnn", "torch_cnn")
SNAPSHOT, TRACE = CNN + ".snapshot.pickle.gz", CNN + ".pt.trace.json.gz"
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
BLOCK = 512
bad = 0


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("%s.%s" % (module, name))


def say(name, wrong):
    global bad
    bad += bool(wrong)
    print("not ok %s: %s" % (name, "; ".join(wrong)) if wrong
          else "ok %s" % name)


def differ(pairs):
    return ["%s is %s, not %s" % (what, have, want)
            for what, have, want in pairs if have != want]


def table(analysis, *paths):
    p = subprocess.run([OPSCOPE, analysis, *paths, "--format", "json"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode != 0:
        sys.exit("not ok snapshot_check: %s" % p.stderr.decode())
    r = json.loads(p.stdout, parse_float=Decimal)
    names = [c["name"] for c in r["columns"]]
    return r, [dict(zip(names, row)) for row in r["rows"]]


def blocks(doc):
    return [b for s in doc["segments"] for b in s["blocks"]]


def active(doc):
    return {b["address"]: b["size"] for b in blocks(doc)
            if b["state"] != "inactive"}


def replay(doc):
    """(time, level) after each allocation and free of device 0, going back
    from the blocks that are in use at the end."""
    entries = [e for e in doc["device_traces"][0]
               if e["action"] in ("alloc", "free_completed")]
    at_end, later, size = active(doc), set(), {}
    for i in reversed(range(len(entries))):  # what each entry adds
        e = entries[i]
        rounded = -(-max(e["size"], 1) // BLOCK) * BLOCK
        if e["action"] == "free_completed":
            size[i] = -rounded
        elif e["addr"] in at_end and e["addr"] not in later:
            size[i] = at_end[e["addr"]]
        else:
            size[i] = rounded
        later.add(e["addr"])
    level, out = sum(at_end.values()), []
    for i in reversed(range(len(entries))):
        out.append((entries[i]["time_us"], level))
        level -= size[i]
    return out[::-1], level


def check_memory(name, path, doc):
    levels, base = replay(doc)
    entries = doc["device_traces"][0]
    first = min(e["time_us"] for e in entries + doc["external_annotations"])
    top = max(level for _, level in levels)
    at = next(t for t, level in levels if level == top)
    count = collections.Counter(e["action"] for e in entries)
    grow = sum(e["size"] for e in entries if e["action"] == "segment_alloc")
    held = sum(s["total_size"] for s in doc["segments"])
    wrong = [] if count["segment_free"] == 0 and grow <= held else ["segments"]
    _, rows = table("memory", path)
    r = rows[0]
    say(name, wrong + differ([
        ("rows", len(rows), 1), ("device", r["device"], "GPU 0"),
        ("peak", r["peak_bytes"], top), ("peak at", r["peak_at_us"],
                                         at - first),
        ("reserved", r["reserved_bytes"], held),
        ("allocs", r["allocs"], count["alloc"]),
        ("frees", r["frees"], count["free_completed"]),
        ("live at end", r["live_at_end_bytes"], sum(active(doc).values())),
        ("before", r["before_window_bytes"], base)]))
    return r


def check_segments(doc):
    _, rows = table("segments", SNAPSHOT)
    have = sorted(
        (int(r["address"], 16), r["bytes"], r["allocated_bytes"],
         r["active_bytes"], r["requested_bytes"], r["largest_free_bytes"],
         r["blocks"], r["free_blocks"], r["pool"]) for r in rows)
    want = []
    for s in doc["segments"]:
        free = [b["size"] for b in s["blocks"] if b["state"] == "inactive"]
        want.append((s["address"], s["total_size"], s["allocated_size"],
                     s["active_size"], s["requested_size"],
                     max(free, default=0), len(s["blocks"]), len(free),
                     s["segment_type"]))
    say("snapshot_check segments", differ([("rows", have, sorted(want))]))


def check_live(doc):
    """Allocations that were not freed are the blocks in use at the end."""
    _, rows = table("allocs", SNAPSHOT)
    have = sorted(r["bytes"] for r in rows if r["free_us"] is None)
    say("snapshot_check live blocks",
        differ([("sizes", have, sorted(active(doc).values()))]))


def check_forms(doc, want):
    """The same data, written otherwise: protocols, and a shorter ring."""
    with tempfile.TemporaryDirectory() as tmp:
        for protocol in (2, 3, 4, 5):
            path = os.path.join(tmp, "p%d.pickle" % protocol)
            with open(path, "wb") as f:
                pickle.dump(doc, f, protocol=protocol)
            r = table("memory", path)[1][0]
            say("snapshot_check protocol %d" % protocol,
                differ([(k, r[k], want[k]) for k in want]))
        whole, _ = replay(doc)
        for n in (1, 500, 2000):
            entries = doc["device_traces"][0][-n:]
            short = dict(doc, device_traces=[entries],
                         external_annotations=[])
            path = os.path.join(tmp, "ring%d.pickle" % n)
            with open(path, "wb") as f:
                pickle.dump(short, f)
            kept = sum(e["action"] in ("alloc", "free_completed")
                       for e in entries)
            r = check_memory("snapshot_check ring of %d" % n, path, short)
            say("snapshot_check ring of %d is the end of the whole" % n,
                differ([("peak", r["peak_bytes"],
                         max(level for _, level in whole[-kept:]))]))


def common(doc, events):
    """How many of the trace's allocations the snapshot has, and how far the
    clocks are apart, in us."""
    by_addr = collections.defaultdict(list)
    for e in doc["device_traces"][0]:
        if e["action"] == "alloc":
            by_addr[e["addr"]].append(e)
    apart = []
    for addr, ns in events:
        us = Decimal(ns) / 1000
        near = [abs(us - e["time_us"]) for e in by_addr[addr]]
        apart.append(min(near, default=Decimal(10**9)))
    return apart


def check_join(doc):
    with gzip.open(TRACE, "rt") as f:
        trace = json.load(f, parse_float=Decimal)
    base = trace["baseTimeNanoseconds"]
    device = [e for e in trace["traceEvents"] if e.get("name") == "[memory]"
              and e["args"]["Device Type"] == 1]
    allocs = [(e["args"]["Addr"], base + int(e["ts"] * 1000)) for e in device
              if e["args"]["Bytes"] > 0]
    apart = common(doc, allocs)
    say("snapshot_check trace and snapshot agree",
        differ([("allocations", len(allocs), 644),
                ("nearer than 10 us", sum(a < 10 for a in apart), 644)]))
    alone = table("memory", TRACE)[1]
    for name, paths in (("two files", (TRACE, SNAPSHOT)),
                        ("the other way round", (SNAPSHOT, TRACE)),
                        ("the folder", (os.path.dirname(CNN),))):
        r, rows = table("memory", *paths)
        notes = [n["id"] for n in r["notes"] if "snapshot" in n["id"]
                 or "not-in-trace" in n["id"]]
        say("snapshot_check joined by " + name,
            differ([("rows", rows, alone), ("notes", notes, []),
                    ("sources", len(r["sources"]), 2)]))
    _, alone = table("segments", SNAPSHOT)
    _, rows = table("segments", TRACE, SNAPSHOT)
    say("snapshot_check joined segments", differ([("rows", rows, alone)]))


def made_of(trace):
    """A snapshot as it could have been taken of the process of a trace."""
    base, entries = trace["baseTimeNanoseconds"], []
    for e in trace["traceEvents"]:
        if e.get("name") != "[memory]" or e["args"]["Device Type"] != 1:
            continue
        a = e["args"]
        entries.append({
            "action": "alloc" if a["Bytes"] > 0 else "free_completed",
            "addr": a["Addr"], "size": abs(a["Bytes"]), "stream": 0,
            "time_us": (base + int(e["ts"] * 1000)) // 1000,
            "frames": [{"name": "f", "filename": "a.py", "line": 1}]})
    entries.sort(key=lambda x: x["time_us"])
    return {"segments": [], "device_traces": [entries]}


def check_ranks():
    """Every rank finds its own snapshot, though no name says which it is."""
    ddp = os.path.join(HERE, "..", "data", "torch_ddp")
    with tempfile.TemporaryDirectory() as tmp:
        for rank in (0, 1):
            name = "torch_ddp_rank%d.pt.trace.json.gz" % rank
            with gzip.open(os.path.join(ddp, name), "rt") as f:
                trace = json.load(f, parse_float=Decimal)
            os.symlink(os.path.abspath(os.path.join(ddp, name)),
                       os.path.join(tmp, name))
            with open(os.path.join(tmp, "ab"[1 - rank] + ".pickle"),
                      "wb") as f:
                pickle.dump(made_of(trace), f)
        _, alone = table("memory", ddp)
        r, rows = table("memory", tmp)
        ids = [n["id"] for n in r["notes"]]
        say("snapshot_check ranks", differ([
            ("rows", rows, alone), ("sources", len(r["sources"]), 4),
            ("unmatched", "alloc-not-in-snapshot" in ids, False)]))


def main():
    with gzip.open(SNAPSHOT) as f:
        doc = Plain(f).load()
    r = check_memory("snapshot_check memory", SNAPSHOT, doc)
    say("snapshot_check known figures",
        differ([("peak", r["peak_bytes"], 185329152),
                ("reserved", r["reserved_bytes"], 243269632)]))
    check_segments(doc)
    check_live(doc)
    check_forms(doc, r)
    check_join(doc)
    check_ranks()
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
