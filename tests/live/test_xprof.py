#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the recorder writes, as XProf (TensorBoard's Profile plugin) shows it:
the run is listed, its tools open, and trace viewer, counters, steps and memory
hold every event of the file with its times, to the picosecond. The file itself
is held against the program's own account first (tests/rec/recording.py), so
that what is equal here is true. Without the package xprof all are skipped.

prints `ok NAME`, `not ok NAME: why` or `ok NAME # skip why`."""

import collections
import json
import os
import shutil
import sys
import tempfile
import types
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "rec"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
TOOLS = {"trace_viewer@", "overview_page", "input_pipeline_analyzer",
         "memory_profile"}
HIDDEN = ("MemoryAllocation", "MemoryDeallocation")  # in memory_profile only
good = True


def say(name, wrong):
    global good
    good &= not wrong
    print("not ok xprof %s: %s" % (name, "; ".join(wrong[:4])) if wrong
          else "ok xprof %s" % name, flush=True)


def ps(us):
    """XProf's doubles of microseconds stand for whole picoseconds."""
    return int(round(Decimal(us) * 1000000))


def tool(name, path):
    data, _ = raw_to_tool_data.xspace_to_tool_data([path], name, {})
    if not data:
        return None
    if isinstance(data, bytes):
        data = data.decode()
    return json.loads(data, parse_float=Decimal)


def differ(what, have, want):
    if have == want:
        return []
    return ["%s: shown and not recorded %s, recorded and not shown %s" % (
        what, list((have - want).items())[:3], list((want - have).items())[:3])]


def shown_name(e):
    """XProf names a step by its number."""
    return "step %d" % e.stats["step_num"] if "step_num" in e.stats else e.name


def check_trace_viewer(path, r):
    """Everything, counters among it, as events of rows."""
    doc = tool("trace_viewer", path)
    if doc is None:
        return ["no data"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in doc["traceEvents"]
            if e.get("name") == "thread_name"}
    have = collections.Counter(
        (rows[e["pid"], e["tid"]], e["name"], ps(e["ts"]), ps(e.get("dur", 0)))
        for e in doc["traceEvents"] if e.get("ph") in ("X", "i"))
    want = collections.Counter((e.line, shown_name(e), e.start, e.dur)
                               for e in r.events if e.name not in HIDDEN)
    return differ("trace_viewer", have, want)


def check_streaming(path, r):
    """The viewer that the plugin uses: spans in rows, asynchronous ones from b
    to e, counters as series."""
    doc = tool("trace_viewer@", path)
    if doc is None:
        return ["no data"]
    rows, ends = {}, {}
    spans, asyncs, counters = (collections.Counter() for _ in range(3))
    for e in doc["traceEvents"]:
        if e.get("name") == "thread_name":
            rows[e["pid"], e["tid"]] = e["args"]["name"]
        elif e.get("ph") == "e":
            ends[e["id"]] = ps(e["ts"])
    for e in doc["traceEvents"]:
        if e.get("ph") == "X":
            spans[rows[e["pid"], e["tid"]], e["name"], ps(e["ts"]),
                  ps(e["dur"])] += 1
        elif e.get("ph") == "b":
            asyncs[e["name"], ps(e["ts"]), ends[e["id"]]] += 1
        elif e.get("ph") == "C":
            for t, v in e["entries"]:
                counters[e["name"], ps(t), float(v)] += 1
    want = [collections.Counter() for _ in range(3)]
    for e in r.events:
        if "_a" in e.stats:
            want[1][e.name, e.start, e.end] += 1
        elif e.line == "_counters_":
            want[2][e.name, e.start, e.stats["counter_value"]] += 1
        elif e.name not in HIDDEN:
            # an instant is shown a picosecond long
            want[0][e.line, shown_name(e), e.start, e.dur or 1] += 1
    return (differ("spans", spans, want[0]) + differ("async", asyncs, want[1]) +
            differ("counters", counters, want[2]))


def check_flows(path, r):
    """Arrows: between threads by the program's ids, from each launch to its
    work on the device."""
    doc = tool("trace_viewer@", path)
    ends = collections.defaultdict(list)
    for e in doc["traceEvents"]:
        if e.get("ph") == "X" and "bind_id" in e:
            side = "out" if e.get("flow_out") else "in"
            ends[e["bind_id"]].append((side, e["name"], ps(e["ts"])))
    have = collections.Counter(tuple(sorted(v)) for v in ends.values())
    sides = collections.defaultdict(list)
    for e in r.events:
        corr, flow = e.stats.get("correlation_id"), e.stats.get("flow")
        if corr is not None:
            side = "out" if e.plane == "/host:CPU" else "in"
            sides["corr", corr].append((side, shown_name(e), e.start))
        elif flow is not None and "_a" not in e.stats:
            side = "out" if flow & 2 else "in"
            sides["flow", flow >> 2].append((side, e.name, e.start))
    want = collections.Counter(tuple(sorted(v)) for v in sides.values())
    return differ("arrows", have, want)


def check_overview(path, r):
    """Step times, one row for each step that has a scope in it."""
    doc = tool("overview_page", path)
    if doc is None:
        return ["no data"]
    names = [c["id"] for c in doc[1]["cols"]]
    have = {}
    for row in doc[1]["rows"]:
        cells = dict(zip(names, (c["v"] for c in row["c"])))
        have[int(cells["stepnum"].split()[-1])] = float(cells["stepTimeMs"])
    want = {e.stats["step_num"]: e.dur / 1e9 for e in r.events
            if "step_num" in e.stats}
    wrong = ["step %s takes %s ms, not %s" % (n, ms, want.get(n))
             for n, ms in have.items() if abs(want.get(n, -1) - ms) > 1e-6]
    # XProf leaves out the first and the last
    if not set(sorted(want)[1:-1]) <= set(have) <= set(want):
        wrong.append("steps %s, not %s" % (sorted(have), sorted(want)))
    return wrong


def check_memory(path, r):
    """Every allocation and free is there, with its bytes and tag. Totals are
    not: XProf takes them from the allocator, and has none of ours."""
    doc = tool("memory_profile", path)
    if doc is None:
        return ["no data"]
    have = collections.Counter()
    shots = doc["memoryProfilePerAllocator"]["program"]
    for s in shots["sampledTimelineSnapshots"]:
        a = s["activityMetadata"]
        freed = a["memoryActivity"] == "DEALLOCATION"
        have[freed, 0 if freed else int(a["allocationBytes"]),
             "" if freed else a["tfOpName"]] += 1
    want = collections.Counter(
        (e.name == "MemoryDeallocation", e.stats.get("allocation_bytes", 0),
         e.stats.get("tf_op", "")) for e in r.events if e.name in HIDDEN)
    return differ("snapshots", have, want)


def check_plugin(logdir, path):
    """The run and its tools, as the plugin's own page asks for them."""
    from xprof import profile_plugin
    context = types.SimpleNamespace(
        logdir=logdir, data_provider=None,
        flags=types.SimpleNamespace(master_tpu_unsecure_channel=""))
    plugin = profile_plugin.ProfilePlugin(context)
    runs = list(plugin.generate_runs())
    if runs != ["live"]:
        return ["runs %s" % runs]
    tools = set(plugin.generate_tools_of_run("live", os.path.dirname(path)))
    hosts = [h["hostname"] for h in plugin.host_impl("live", "trace_viewer@")]
    wrong = [] if TOOLS <= tools else ["tools %s" % sorted(tools)]
    if hosts != [os.path.basename(path).replace(".xplane.pb", "")]:
        wrong.append("hosts %s" % hosts)
    return wrong


def main():
    import recording as rec
    with tempfile.TemporaryDirectory() as tmp:
        exe = rec.build(tmp)
        live = rec.Live(exe, tmp)
        part = rec.part_of(live.files("_%d.xplane.pb.part" % live.p.pid)[0])
        diary = live.stop()
        path = live.files(".xplane.pb")[0]
        with open(path, "rb") as f:
            r = rec.Recording(f.read())
        say("the file is what the program did", rec.compare(r, diary).wrong)
        say("lists the run", check_plugin(live.logdir, path))
        say("trace_viewer", check_trace_viewer(path, r))
        say("trace_viewer@", check_streaming(path, r))
        say("arrows", check_flows(path, r))
        say("overview_page", check_overview(path, r))
        say("memory_profile", check_memory(path, r))
        # the file of a running program, under the name of a finished one
        half = os.path.join(tmp, "half", "plugins", "profile", "live")
        os.makedirs(half)
        half = os.path.join(half, "testhost.xplane.pb")
        with open(half, "wb") as f:
            f.write(part)
        r = rec.Recording(part)
        say("trace_viewer of a running program", check_trace_viewer(half, r))
        say("overview_page of a running program", check_overview(half, r))
        shutil.rmtree(os.path.join(tmp, "half"))
    return 0 if good else 1


if __name__ == "__main__":
    try:
        from xprof.convert import raw_to_tool_data
    except ImportError as x:
        print("ok xprof # skip the package xprof is not installed (%s)" % x)
        sys.exit(0)
    sys.exit(main())
