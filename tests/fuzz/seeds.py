#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""seeds.py DATA OUT: seeds for each fuzz target from the real profiles in DATA.

Fuzzers want small seeds: JSON keeps its head, a few events of every kind and
its tail; protobufs are cut (every importer must live with that)."""

import gzip
import json
import os
import pickle
import sys
import zlib

SMALL = 48 << 10


def inflated(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return None
    return data


def thin(text):
    """A trace with three events of every (ph, cat)."""
    try:
        doc = json.loads(text)
    except ValueError:
        return text[:SMALL]
    events = doc if isinstance(doc, list) else doc.get("traceEvents", [])
    seen, keep = {}, []
    for e in events if isinstance(events, list) else []:
        if not isinstance(e, dict):
            continue
        key = (str(e.get("ph")), str(e.get("cat")))
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= 3:
            keep.append(e)
    if isinstance(doc, dict):
        doc["traceEvents"] = keep
    else:
        doc = keep
    return json.dumps(doc).encode()


def snapshots(data):
    """A memory snapshot with few of everything, in every protocol. (Python's
    own reader runs what a pickle asks for: this is our own test data.)"""
    doc = pickle.loads(data)
    doc["segments"] = doc["segments"][:3]
    doc["device_traces"] = [t[:6] + t[-40:] for t in doc["device_traces"]]
    doc["external_annotations"] = doc["external_annotations"][:12]
    for entry in [e for t in doc["device_traces"] for e in t]:
        entry["frames"] = entry.get("frames", [])[:4]
    return [pickle.dumps(doc, protocol=p) for p in (0, 2, 4, 5)]


def target(path, data):
    """Which importers a file is a seed for."""
    if "tfevents" in os.path.basename(path):
        return ["tfevents"]
    if path.endswith(".pb") and "xplane" not in path:
        return ["stepstats"]
    if "xplane" in path or "xspace" in path:
        return ["xspace"]
    if "run_metadata" in path.lower() or "stepstats" in path.lower():
        return ["stepstats"]
    if data[:1].strip() in (b"{", b"[", b""):
        return ["kineto", "chrome"]
    return []


def programs(data):
    """The planes of an XSpace that hold XLA's programs, cut: they stand at the
    end of large files, where no cut would reach them."""
    at = 0
    while at < len(data):
        head, size, shift = at, 0, 0
        at += 1
        while at < len(data):
            size |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                break
        if b"/host:metadata" in data[at:at + 64]:
            yield data[head:at + size][:SMALL]
        at += size


def events(data):
    """An event file as fuzz_tfevents takes it: as it is, and as the bodies of
    its records, for which the target makes the checksums; with the importer and
    without. Large records (graphs) are left out."""
    yield b"\0" + data[:SMALL]
    yield b"\2" + data[:SMALL]
    bodies, at = [], 0
    while at + 16 <= len(data):
        size = int.from_bytes(data[at:at + 8], "little")
        body = data[at + 12:at + 12 + size]
        if size < 4096:
            bodies.append(len(body).to_bytes(2, "little") + body)
        at += size + 16
    yield b"\1" + b"".join(bodies)[:SMALL]
    yield b"\3" + b"".join(bodies)[:SMALL]


def put(out, name, key, data):
    folder = os.path.join(out, "fuzz_" + name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, key), "wb") as f:
        f.write(data)


def main(root, out):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            key = os.path.relpath(path, root).replace(os.sep, "_")
            data = inflated(path)
            if data is None:
                continue
            if name.endswith((".pickle", ".pickle.gz")):
                for i, small in enumerate(snapshots(data)):
                    for t in ("snapshot", "join"):
                        put(out, t, "%s.%d" % (key, i), small)
                continue
            for t in target(path, data):
                if t in ("kineto", "chrome"):
                    put(out, t, key, thin(data))
                elif t == "tfevents":
                    for i, small in enumerate(events(data)):
                        put(out, t, "%s.%d" % (key, i), small)
                else:
                    put(out, t, key, data[:SMALL])
                if t == "xspace":
                    for plane in programs(data):
                        put(out, t, key + ".programs", plane)
    text = b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2}]}\n' * 40
    packed = gzip.compress(text)
    put(out, "file", "plain", text)
    put(out, "file", "gzip", packed)
    put(out, "file", "members", packed + packed + b"\0" * 9)
    put(out, "file", "nested", gzip.compress(packed))
    put(out, "file", "skippable", b"\x50\x2a\x4d\x18\x02\0\0\0ab"
        b"\x28\xb5\x2f\xfd\x04\x00\x19\x00\x00abc\x20\x48\xfd\x3e")
    for t in ("kineto", "chrome", "xspace", "stepstats", "snapshot",
              "tfevents"):
        put(out, t, "empty", b"")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
