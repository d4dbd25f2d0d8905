#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of every profile in tests/data, to the byte.

sums        at each allocator's peak, the parts by op, category, scope, module
            and stack sum to peak_bytes, and so do the blocks of allocs --peak;
            the highest point of --by time is the peak, its last one is
            live_at_end_bytes, and so is the sum of the blocks never freed.
replay      peaks of torch's files, counted here from the [memory] events.
categories  every block of torch_stack against torch's own memory profiler
            (export_memory_timeline, which follows tensors by their ids), by
            time and size. Where the two differ, and why, is in MAY_DIFFER.
modules     the backward pass's blocks at the peak of torch_cnn, by the module
            of their forward op.
snapshot    the peak of torch_cnn's memory snapshot, by what its stacks say.
leaks       faults/leak keeps 16 MiB in each step, the others nothing: also
            counted here, by address.

usage: mem_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import collections
import glob
import gzip
import json
import os
import pickle
import re
import sys
from decimal import Decimal

import lib
from lib import say

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
PROFILE = re.compile(r"\.xplane\.pb|trace\.json|run_?metadata|\.pickle", re.I)
KEYS = ["op", "category", "scope", "module", "stack"]
CATEGORIES = {"parameter", "gradient", "optimizer", "activation", "input",
              "temporary", "before-window", "unknown"}
# torch's categories in the order of its files
TORCH = ["parameter", "optimizer", "input", "temporary", "activation",
         "gradient", "autograd detail", "unknown"]
# (torch's, ours): why they may differ
MAY_DIFFER = {
    ("autograd detail", "temporary"):
        "gradients of activations: torch has a category for them, we do not",
    ("unknown", "temporary"):
        "scratch inside one op (mkldnn): torch sees no tensor in it",
    ("input", "temporary"):
        "an optimizer's scalars: torch calls input what does not depend on a "
        "gradient, even if it lives for one op",
    ("gradient", "temporary"):
        "the gradient of the loss's own input: torch marks what a node hands "
        "on as gradient, though it dies in the backward pass",
}


def run(name, path, *more):
    doc, rows = lib.table(name, path, *more)
    for row in rows:
        for k, v in row.items():  # integers over 2^53 are strings
            if k.endswith("bytes") and isinstance(v, str):
                row[k] = int(v)
    return doc, rows


def add_up(rows, column="bytes"):
    sums = collections.Counter()
    for r in rows:
        sums[r["device"], r["allocator"]] += r[column]
    return sums


def check_sums(path, name):
    _, memory = run("memory", path)
    peak = add_up(memory, "peak_bytes")
    wrong = []
    for key in KEYS:
        _, rows = run("memory", path, "--by", key)
        got = add_up(rows)
        if got != peak:
            wrong.append("--by %s sums to %s, the peaks are %s"
                         % (key, dict(got), dict(peak)))
        if key == "category":
            odd = {r["category"] for r in rows} - CATEGORIES
            # a program that records itself names its own (ops_alloc's tag)
            if odd and "/record/" not in path:
                wrong.append("no such category: %s" % odd)
    _, rows = run("allocs", path, "--peak")
    if add_up(rows) != peak:
        wrong.append("allocs --peak sums to %s" % dict(add_up(rows)))
    at_end = add_up(memory, "live_at_end_bytes")
    _, rows = run("allocs", path)
    left = add_up([r for r in rows if r["free_us"] is None])
    if any(left[k] != v for k, v in at_end.items()):
        wrong.append("blocks never freed sum to %s, live at end are %s"
                     % (dict(left), dict(at_end)))
    for points in ("2", "10", "1000000"):
        _, rows = run("memory", path, "--by", "time", "--points", points)
        top, last, count = {}, {}, collections.Counter()
        for r in rows:
            k = r["device"], r["allocator"]
            top[k] = max(top.get(k, 0), r["allocated_bytes"])
            last[k] = r["allocated_bytes"]
            count[k] += 1
        if top != dict(peak) or last != dict(at_end):
            wrong.append("--by time: highest %s, last %s" % (top, last))
        if any(n > int(points) for n in count.values()):
            wrong.append("--by time: more than %s points" % points)
    say("sums " + name, wrong)
    return len(memory) > 0, not wrong


def load(path):
    f = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
    with f:
        return json.load(f)["traceEvents"]


def torch_memory(events):
    """(device, time, bytes, address, total) of each memory event, by time."""
    out = []
    for e in events:
        if e.get("name") == "[memory]":
            a = e["args"]
            gpu = a["Device Type"] != 0
            out.append(("GPU %d" % a["Device Id"] if gpu else "host", e["ts"],
                        a["Bytes"], a["Addr"], a["Total Allocated"]))
    return sorted(out, key=lambda m: m[1])


def add_shared(events):
    """The level after each event of a device. Shared memory is reported with a total
    of 0, beside the allocator's own: it is counted by address and added."""
    told, shared, steps = 0, {}, []
    before = 0  # blocks that are freed here and were not allocated here
    for _, _, size, addr, total in events:
        if size > 0 and total == 0:
            shared[addr] = size
        elif size < 0 and total == 0 and (addr in shared or told + size != 0):
            before += 0 if shared.pop(addr, None) else -size
        else:
            told = total
        steps.append((told, sum(shared.values()), before))
    return [t + s + before - b for t, s, b in steps]


def check_replay(path, name):
    mine, events = {}, collections.defaultdict(list)
    for e in torch_memory(load(path)):
        events[e[0]].append(e)
    for device, of in events.items():
        mine[device] = max(add_shared(of))
    _, rows = run("memory", path)
    got = {r["device"]: r["peak_bytes"] for r in rows}
    return say("replay " + name, [] if got == dict(mine) else
               ["peaks are %s, counted here %s" % (got, dict(mine))])


def check_categories():
    base = os.path.join(DATA, "torch_stack", "torch_stack.")
    with gzip.open(base + "memory_timeline.raw.gz") as f:
        raw = json.load(f)
    r, rows = run("allocs", base + "pt.trace.json.gz")
    epoch = int(r["sources"][0]["epoch_unix_ns"])
    ours = {(epoch + int(a["alloc_us"] * 1000), a["bytes"]): a["category"]
            for a in rows if a["alloc_us"] is not None}
    wrong, same, total, pairs = [], 0, 0, collections.Counter()
    for ts, action, size, category in raw:
        if action != 2:  # CREATE
            continue
        pair = TORCH[category], ours.pop((ts, size), "missing")
        pairs[pair] += 1
        total += size
        # what is nowhere called differently counts as the same
        same += size if pair[0] == pair[1] or pair in MAY_DIFFER else 0
        if pair[0] != pair[1] and pair not in MAY_DIFFER:
            wrong.append("torch says %s, we say %s" % pair)
    if ours:
        wrong.append("%d blocks are unknown to torch" % len(ours))
    for category in ("activation", "gradient", "input"):
        mine = sum(n for (t, o), n in pairs.items() if o == category)
        right = pairs[category, category]
        if mine != right:
            wrong.append("%d of %d blocks that we call %s are something else"
                         % (mine - right, mine, category))
    if sum(pairs.values()) < 200 or same != total:
        wrong.append("%d blocks compared" % sum(pairs.values()))
    return say("categories torch_stack", wrong)


def spans_by_thread(events, wanted):
    out = collections.defaultdict(list)
    for e in events:
        if e.get("ph") == "X" and wanted(e):
            out[e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"]))
    return out


def around(spans, ts):
    """Names of the spans around an instant, outermost first."""
    return [s for s in sorted(spans, key=lambda s: (s[0], -s[1]))
            if s[0] <= ts < s[1]]


def check_modules():
    """Blocks of the backward pass by the module of their forward op: here by
    the arrows (fwdbwd) that torch draws, there by sequence numbers."""
    path = os.path.join(DATA, "torch_cnn", "torch_cnn.pt.trace.json.gz")
    events = load(path)
    ops = spans_by_thread(events, lambda e: e.get("cat") == "cpu_op")
    frames = spans_by_thread(
        events, lambda e: e["name"].startswith("nn.Module: "))
    start = {e["id"]: e for e in events
             if e.get("cat") == "fwdbwd" and e["ph"] == "s"}
    arrows = [(e["tid"], e["ts"], start[e["id"]]) for e in events
              if e.get("cat") == "fwdbwd" and e["ph"] == "f"]
    _, memory = run("memory", path)
    peak = {r["device"]: r["peak_at_us"] for r in memory}["GPU 0"]
    mine, alive = collections.Counter(), {}
    for e in sorted((e for e in events if e.get("name") == "[memory]"
                     and e["args"]["Device Type"] == 1),
                    key=lambda e: e["ts"]):
        if Decimal(str(e["ts"])) > peak:
            break
        a = e["args"]
        if a["Bytes"] > 0:
            alive[a["Addr"]] = e
        elif a["Addr"] in alive:
            del alive[a["Addr"]]
    for e in alive.values():
        tid, ts = e["tid"], e["ts"]
        # the arrow ends somewhere in the outermost op, the backward node
        for node in around(ops[tid], ts)[:1]:
            for at, when, forward in arrows:
                if at == e["tid"] and node[0] <= when < node[1]:
                    tid, ts = forward["tid"], forward["ts"]
        inside = around(frames[tid], ts)
        mine[inside[-1][2][11:] if inside else None] += e["args"]["Bytes"]
    _, rows = run("memory", path, "--by", "module")
    got = {r["module"]: r["bytes"] for r in rows if r["device"] == "GPU 0"
           and r["module"] != "before-window"}
    return say("modules torch_cnn", [] if got == dict(mine) else
               ["%s, counted here %s" % (got, dict(mine))])


def snapshot_phase(frames):
    """What a stack of a snapshot says, innermost frame first."""
    for f in frames:
        name, file = f["name"], f["filename"]
        if "WorkspaceForHandle" in name or "BlasLtWorkspace" in name:
            return "workspace"
        if "torch/optim/" in file:
            return "optimizer"
        if ("autograd::Engine" in name or "run_backward" in name or
                (name == "backward" and "torch/autograd/" in file)):
            return "backward"
        if "torch/nn/modules/" in file and name in (
                "__init__", "_apply", "convert", "reset_parameters"):
            return "parameter"
        if name == "_call_impl":
            return "activation"
    return "other"


def check_snapshot():
    """A memory snapshot, replayed here: the peak and what its stacks say."""
    path = os.path.join(DATA, "torch_cnn", "torch_cnn.snapshot.pickle.gz")
    with gzip.open(path) as f:
        events = pickle.load(f)["device_traces"][0]
    live, now, peak, at_peak = {}, 0, 0, {}
    for e in events:
        if e["action"] == "alloc":
            size = -(-e["size"] // 512) * 512
            live[e["addr"]] = size, snapshot_phase(e["frames"])
            now += size
            if now > peak:
                peak, at_peak = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])[0]
    mine = collections.Counter(phase for _, phase in at_peak.values())
    _, rows = run("memory", path, "--by", "category")
    got = collections.Counter({r["category"]: r["blocks"] for r in rows})
    # what the backward pass holds is either; a workspace is no tensor
    wrong = ["%d blocks are %s, counted here %d" % (got[k], k, mine[k])
             for k in ("parameter", "optimizer", "activation")
             if got[k] != mine[k]]
    if got["temporary"] + got["gradient"] != mine["backward"]:
        wrong.append("the backward pass holds %d" % mine["backward"])
    if got["unknown"] != mine["workspace"] + mine["other"]:
        wrong.append("unknown is %d" % got["unknown"])
    # a few blocks were not split down to what was asked for
    total = sum(r["bytes"] for r in rows)
    if not peak <= total <= 1.02 * peak:
        wrong.append("the peak is %d, counted here %d" % (total, peak))
    return say("snapshot torch_cnn", wrong)


def torch_steps(events):
    marks = sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                   if e.get("cat") == "user_annotation"
                   and e["name"].startswith("ProfilerStep#"))
    return [(a, marks[i + 1][0] if i + 1 < len(marks) else z)
            for i, (a, z) in enumerate(marks)]


def left_behind(path):
    """Bytes that each step allocated and nobody freed, per device."""
    events = load(path)
    steps, alive = torch_steps(events), {}
    for device, ts, size, addr, _ in torch_memory(events):
        if size > 0:
            alive[device, addr] = ts, size
        else:
            alive.pop((device, addr), None)
    left = collections.defaultdict(lambda: [0] * len(steps))
    for (device, _), (ts, size) in alive.items():
        for i, (a, z) in enumerate(steps):
            if a <= ts < z:
                left[device][i] += size
    return left


def check_leaks(path, name):
    _, rows = run("leaks", path)
    grows = {}
    for device, left in left_behind(path).items():
        # gradients and results of the last step are not yet replaced
        if len(left) >= 3 and all(n > 0 for n in left[:-1]):
            grows[device] = min(left[:-1])
    got = collections.Counter()
    for r in rows:
        got[r["device"]] += r["bytes_per_step"]
    return say("leaks " + name, [] if dict(got) == grows else
               ["per step %s, counted here %s" % (dict(got), grows)])


def main():
    good, with_memory = True, 0
    for path in sorted(glob.glob(os.path.join(DATA, "**", "*"),
                                 recursive=True)):
        name = os.path.relpath(path, DATA)
        if not os.path.isfile(path) or not PROFILE.search(name):
            continue
        some, ok = check_sums(path, name)
        good &= ok
        with_memory += some
        if some and ".pt.trace.json" in name:
            good &= check_replay(path, name)
            good &= check_leaks(path, name)
    good &= check_categories()
    good &= check_modules()
    good &= check_snapshot()
    if with_memory < 10:
        print("not ok mem_check: only %d profiles with memory" % with_memory)
    return 0 if good and with_memory >= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
