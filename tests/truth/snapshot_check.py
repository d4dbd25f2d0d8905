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
import sys
import tempfile
from decimal import Decimal

from lib import say, status, table

HERE = os.path.dirname(os.path.abspath(__file__))
CNN = os.path.join(HERE, "..", "data", "torch_cnn", "torch_cnn")
SNAPSHOT, TRACE = CNN + ".snapshot.pickle.gz", CNN + ".pt.trace.json.gz"
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
BLOCK = 512
bad = 0


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("%s.%s" % (module, name))


def differ(pairs):
    return ["%s is %s, not %s" % (what, have, want)
            for what, have, want in pairs if have != want]


def blocks(doc):
    return [b for s in doc["segments"] for b in s["blocks"]]


def active(doc):
    return {b["address"]: b["size"] for b in blocks(doc)
            if b["state"] != "inactive"}


def start_of(doc, grow):
    """What there was before the first entry: addresses of blocks in use, with
    their sizes where they stay, and segments."""
    blocks_, guessed, segments = dict(active(doc)), set(), {
        s["address"]: s["total_size"] for s in doc["segments"]}
    for e in reversed(doc["device_traces"][0]):
        if e["action"] == "alloc":
            blocks_.pop(e["addr"], None)
            guessed.discard(e["addr"])
        elif e["action"] == "free_completed":
            blocks_[e["addr"]] = rounded(doc, e["size"])
            guessed.add(e["addr"])
        elif e["action"] == "segment_alloc":
            segments.pop(e["addr"], None)
        elif e["action"] == "segment_free":
            segments[e["addr"]] = e["size"]
    for a in guessed if not grow else ():
        blocks_[a] = whole_block(a, blocks_[a], blocks_, segments)
    return blocks_, segments


def whole_block(addr, size, blocks_, segments):
    """The size of the block that the allocator gives: a rest of up to 1 MiB
    is not split off a large one."""
    ends = [a for a in blocks_ if a > addr] + [
        a + n for a, n in segments.items() if a <= addr < a + n]
    rest = min(ends, default=addr + size) - addr - size
    if size > 1 << 20 and 0 <= rest <= 1 << 20:
        return size + rest
    return size


def rounded(doc, size):
    """To 512 bytes, or to a part of the power of two below."""
    parts = doc.get("allocator_settings", {}).get(
        "roundup_power2_divisions", {})
    mib = max(size, 1) >> 20
    parts = parts.get(str(1 << max(mib.bit_length() - 1, 0)), 0)
    if parts > 1 and size > BLOCK * parts:
        step = (1 << size.bit_length() - 1) // parts
        return -(-size // step) * step
    return -(-max(size, 1) // BLOCK) * BLOCK


def replay(doc):
    """(time, level) after each allocation and free of device 0, and the level
    before them."""
    grow = doc.get("allocator_settings", {}).get("expandable_segments")
    blocks_, segments = start_of(doc, grow)
    level = base = sum(blocks_.values())
    last = {e["addr"]: i for i, e in enumerate(doc["device_traces"][0])
            if e["action"] in ("alloc", "free_completed")}
    at_end, out = active(doc), []
    for i, e in enumerate(doc["device_traces"][0]):
        addr = e.get("addr")
        if e["action"] == "segment_alloc":
            segments[addr] = e["size"]
        elif e["action"] == "segment_free":
            segments.pop(addr, None)
        elif e["action"] == "alloc":
            size = rounded(doc, e["size"])
            if addr in at_end and last[addr] == i:
                size = at_end[addr]
            elif not grow:
                size = whole_block(addr, size, blocks_, segments)
            blocks_[addr] = size
            level += size
            out.append((e["time_us"], level))
        elif e["action"] == "free_completed":
            level -= blocks_.pop(addr)
            out.append((e["time_us"], level))
    return out, base


def check_memory(name, path, doc):
    levels, base = replay(doc)
    entries = doc["device_traces"][0]
    first = min(e["time_us"] for e in entries + doc["external_annotations"])
    top = max(level for _, level in levels)
    at = next(t for t, level in levels if level == top)
    count = collections.Counter(e["action"] for e in entries)
    held = sum(s["total_size"] for s in doc["segments"])
    most = held
    for e in reversed(entries):
        held += e["size"] * ((e["action"] == "segment_free") -
                             (e["action"] in ("segment_alloc", "segment_map")))
        most = max(most, held)
    _, rows = table("memory", path)
    r = rows[0]
    say(name, differ([
        ("rows", len(rows), 1), ("device", r["device"], "GPU 0"),
        ("peak", r["peak_bytes"], top), ("peak at", r["peak_at_us"],
                                         at - first),
        ("reserved", r["reserved_bytes"], most),
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
            differ([("rows", events_only(rows), events_only(alone)),
                    ("notes", notes, []),
                    ("sources", len(r["sources"]), 2)]))
    _, alone = table("segments", SNAPSHOT)
    _, rows = table("segments", TRACE, SNAPSHOT)
    say("snapshot_check joined segments", differ([("rows", rows, alone)]))


def events_only(rows):
    """What the other of the two does not know apart: segments, capacity."""
    return [{k: v for k, v in r.items()
             if not k.startswith("segment") and k != "capacity_bytes"}
            for r in rows]


def check_stats():
    """What torch.cuda.memory_stats() said when the snapshot was written; its
    peak counts from the beginning of the history, or earlier (late)."""
    folder = os.path.join(HERE, "..", "data", "torch_snapshots")
    for name in ("ring", "late", "expandable", "oom", "streams"):
        path = os.path.join(folder, name)
        with open(path + ".stats.json") as f:
            stats = json.load(f)
        with gzip.open(path + ".snapshot.pickle.gz") as f:
            doc = Plain(f).load()
        want = stats["at_dump"]
        r = check_memory("snapshot_check %s" % name,
                         path + ".snapshot.pickle.gz", doc)
        _, rows = table("segments", path + ".snapshot.pickle.gz")
        pairs = [
            ("peak", r["peak_bytes"], want["active_bytes.all.peak"]),
            ("end", r["live_at_end_bytes"], want["active_bytes.all.current"]),
            ("reserved", r["reserved_bytes"], want["reserved_bytes.all.peak"]),
            ("held", sum(x["bytes"] for x in rows),
             want["reserved_bytes.all.current"]),
            ("allocated", sum(x["allocated_bytes"] for x in rows),
             want["allocated_bytes.all.current"])]
        if name == "late":
            pairs.append(("before", r["before_window_bytes"],
                          stats["at_start"]["active_bytes.all.current"]))
        say("snapshot_check %s as the allocator counts" % name, differ(pairs))
        trace = path + ".pt.trace.json.gz"
        if not os.path.exists(trace):
            continue
        j, rows = table("memory", trace, path + ".snapshot.pickle.gz")
        alone = table("memory", trace)[1]
        if name == "expandable":  # profiled without memory
            alone = [dict(r, peak_at_us=0)]
            rows = [dict(x, peak_at_us=0, peak_step=r["peak_step"])
                    for x in rows]
        ids = [n["id"] for n in j["notes"]]
        say("snapshot_check %s joined" % name, differ([
            ("rows", events_only(rows), events_only(alone)),
            ("unmatched", [i for i in ids if "not-in" in i], [])]))


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
        differ([("peak", r["peak_bytes"], 186639872),
                ("reserved", r["reserved_bytes"], 243269632)]))
    check_segments(doc)
    check_live(doc)
    check_forms(doc, r)
    check_join(doc)
    check_ranks()
    check_stats()
    return status()


if __name__ == "__main__":
    sys.exit(main())
