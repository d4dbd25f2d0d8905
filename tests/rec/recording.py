# SPDX-License-Identifier: Apache-2.0
"""Builds and runs live.c, reads what it recorded with the protobuf package, and
holds it against the program's own diary. For rec_diary.py (the file alone) and
tests/live/test_xprof.py (the same file, as XProf shows it)."""

import collections
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
TRUTH = os.path.join(ROOT, "tests", "truth")
sys.path.insert(0, TRUTH)
import xspace_count  # noqa: E402  (its descriptors of XSpace)

# The recorder reads two clocks within 50 to 100 ns of each other, twice, 2 ms
# apart, to know the counter's rate, and looks again only 16 ms later: until
# then it may be off by eight times that. A busy machine gets some more.
CLOCK_PS = 5 * 10**6


def build(tmp):
    """The program, against the library of this build; None: there is none."""
    lib = os.path.join(BUILD, "libopscope-record.a")
    if not os.path.exists(lib):
        return None
    sanitizers = os.path.basename(BUILD).split("-")[1:]
    if sanitizers and sanitizers[0] in ("address", "thread", "undefined"):
        sanitizers = ["-fsanitize=" + ",".join(sanitizers)]
    else:
        sanitizers = []
    exe = os.path.join(tmp, "live")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-std=gnu11",
                    "-D_GNU_SOURCE", "-I" + os.path.join(ROOT, "include"),
                    *sanitizers, "-o", exe, os.path.join(HERE, "live.c"),
                    os.path.join(HERE, "soft_device.c"), lib, "-pthread",
                    "-lm"], check=True)
    return exe


def text_of(s):
    """The diary tells bytes as characters with their numbers; a profile has
    UTF-8, with a question mark for each byte that is none."""
    raw, out = s.encode("latin-1"), ""
    while raw:
        try:
            return out + raw.decode()
        except UnicodeDecodeError as x:
            out += raw[:x.start].decode() + "?"
            raw = raw[x.start + 1:]
    return out


def read_diary(path):
    with open(path) as f:
        notes = [json.loads(line) for line in f]
    for n in notes:
        n["name"] = text_of(n["name"])
        if n.get("args", {}).get("long") == "LONG":
            # 240 bytes at most, and no character is cut
            n["args"]["long"] = "x" + 119 * "\u00e9"
    return notes


def part_of(path):
    """What a .part holds: its plane, up to the length that stands before."""
    with open(path, "rb") as f:
        data = f.read()
    size = sum((b & 0x7f) << 7 * i for i, b in enumerate(data[1:6]))
    return data[:6 + size]


class Event:
    def __init__(self, plane, line, e, name, stats):
        self.plane, self.line, self.name = plane, line.name.decode(), name
        self.line_id = line.id
        self.start = line.timestamp_ns * 1000 + e.offset_ps
        self.dur, self.stats = e.duration_ps, stats

    @property
    def end(self):
        return self.start + self.dur


class Recording:
    """All events of an XSpace, times in ps since the session's start."""

    def __init__(self, data):
        space = xspace_count.MESSAGE["Space"]()
        space.ParseFromString(data)
        self.planes = [xspace_count.Plane(p) for p in space.planes]
        self.events = [Event(p.name, line, e, name, stats)
                       for p in self.planes
                       for line, e, name, stats in p.events()]
        self.facts = {}
        for p in self.planes:
            self.facts[p.name] = {p.stat[s.metadata_id]: p.value(s)
                                  for s in p.p.stats}

    def host(self):
        return [e for e in self.events if e.plane == "/host:CPU"]


class Compare:
    """Collects what differs."""

    def __init__(self, recording, diary):
        self.r, self.diary, self.wrong = recording, diary, []
        self.left = set(map(id, recording.events))
        host = recording.facts["/host:CPU"]
        self.mono = host["start_monotonic_ns"] * 1000
        self.worst = 0

    def bad(self, *words):
        self.wrong.append(" ".join(map(str, words)))

    def within(self, what, ps, low_ns, high_ns):
        """Between two readings of the program's own clock."""
        t = ps + self.mono
        off = max(low_ns * 1000 - t, t - high_ns * 1000, 0)
        self.worst = max(self.worst, off)
        if off > CLOCK_PS:
            self.bad(what, "is", off / 1e6, "us outside of its bounds")

    def pairs(self, what, events, notes):
        """The nth event and the nth note of one name on one thread."""
        if len(events) != len(notes):
            self.bad(what, len(events), "recorded,", len(notes), "done")
        events = sorted(events, key=lambda e: e.start)
        notes = sorted(notes, key=lambda n: n["t"][0])
        for e, n in zip(events, notes):
            self.left.discard(id(e))
            self.within(what + " start", e.start, n["t"][0], n["t"][1])
            if n["t"][3]:
                self.within(what + " end", e.end, n["t"][2], n["t"][3])
            elif e.dur:
                self.bad(what, "has a length")
            yield e, n

    def stats(self, what, e, want):
        if e.stats != want:
            self.bad(what, e.stats, "not", want)

    def notes(self, *whats):
        groups = collections.defaultdict(list)
        for n in self.diary:
            if n["what"] in whats:
                groups[n["what"], n.get("thread"), n["name"],
                       n.get("tid")].append(n)
        return groups


def want_stats(n):
    """What an event's stats should be, by its note."""
    want = dict(n.get("args", {}))
    if n["what"] in ("scope", "instant"):
        want["opscope_kind"] = n["kind"] or "op"
    if "corr" in n and n["what"] == "scope":
        want["correlation_id"] = n["corr"]
    if "flow_out" in n:
        want["flow"] = n["flow_out"] << 2 | 2
    if "flow_in" in n:
        want["flow"] = n["flow_in"] << 2 | 1
    if n["what"] == "step":
        want.update(step_num=n["number"], _r=1)
    if n["what"] == "epoch":
        want["epoch_num"] = n["number"]
    if n["what"] == "alloc":
        want.update(addr=n["addr"], allocation_bytes=n["bytes"],
                    requested_bytes=n["bytes"], allocator_name="program",
                    tf_op=n["tag"])
    if n["what"] == "free":
        want.update(addr=n["addr"], allocator_name="program")
    if n["what"] == "counter":
        want["counter_value"] = n["value"]
    return want


def check_threads(c):
    on = collections.defaultdict(list)
    for e in c.r.host():
        on[e.line, e.name].append(e)
    name_of = {"alloc": "MemoryAllocation", "free": "MemoryDeallocation"}
    for (what, thread, name, tid), notes in c.notes(
            "scope", "instant", "step", "epoch", "alloc", "free").items():
        shown = name_of.get(what, name)
        events = on["%s/%d" % (thread, tid), shown]
        for e, n in c.pairs("%s %s" % (what, shown), events, notes):
            c.stats(shown, e, want_stats(n))
            if e.line_id != tid:
                c.bad(shown, "is on line", e.line_id)


def check_counters(c):
    for (_, _, name, _), notes in c.notes("counter").items():
        events = [e for e in c.r.host()
                  if e.line == "_counters_" and e.name == name]
        for e, n in c.pairs("counter " + name, events, notes):
            c.stats(name, e, want_stats(n))
    # the machine's own, which the program knows nothing of
    for e in c.r.host():
        if e.line == "_counters_" and ": " in e.name:
            c.left.discard(id(e))


def check_async(c):
    lanes = collections.defaultdict(list)
    flows = set()
    for (_, _, name, _), notes in c.notes("async").items():
        events = [e for e in c.r.host() if e.name == name]
        for e, n in c.pairs("async " + name, events, notes):
            lanes[e.line].append(e)
            flow = e.stats.pop("flow")
            c.stats(name, e, {"opscope_kind": n["kind"], "_a": 1})
            if flow & 3 != 3 or flow in flows:
                c.bad(name, "flow", flow)
            flows.add(flow)
    for line, events in lanes.items():
        events.sort(key=lambda e: e.start)
        if not line.startswith("async") or any(
                a.end > b.start for a, b in zip(events, events[1:])):
            c.bad("spans on", line, "overlap")


def check_own_device(c):
    """The program's own numbers: equal, to the picosecond."""
    events = [e for e in c.r.events if e.plane == "/device:CUSTOM:npu 1"]
    events.sort(key=lambda e: e.start)
    notes = [n for n in c.diary if n["what"] == "device"]
    if len(events) != len(notes):
        c.bad("npu 1:", len(events), "recorded,", len(notes), "done")
    for e, n in zip(events, notes):
        c.left.discard(id(e))
        want = {"opscope_kind": "kernel"}
        if n["corr"]:
            want["correlation_id"] = n["corr"]
        c.stats("npu_op", e, want)
        if (e.start + c.mono, e.dur, e.line) != (
                n["t"][0] * 1000, (n["t"][2] - n["t"][0]) * 1000, n["queue"]):
            c.bad("npu_op", e.start, e.dur, e.line, "not", n)


def soft_windows(c):
    """By correlation: from before the launch to after the next wait."""
    scopes = [n for n in c.diary if n["what"] == "scope"]
    waits = sorted(n["t"][3] for n in scopes if n["name"] == "synchronize")
    return {n["corr"]: (n["t"][0], next(w for w in waits if w > n["t"][0]))
            for n in scopes if n.get("corr")}


def check_soft_device(c):
    """What the device says it did, on the host's clock."""
    plane = "/device:CUSTOM:soft 0"
    events = [e for e in c.r.events if e.plane == plane]
    fates = [n for n in c.diary if n["what"] == "soft"]
    kept = [f for f in fates if f["traced"] and not f["lost"]]
    lost = sum(f["lost"] for f in fates)
    have = collections.Counter(
        (e.line, e.name, e.stats.get("correlation_id", 0),
         e.stats["opscope_kind"], e.stats.get("bytes", -1)) for e in events)
    want = collections.Counter((f["queue"], f["name"], f["corr"], f["kind"],
                                f["bytes"]) for f in kept)
    if have != want:
        c.bad("soft 0:", have - want, "recorded,", want - have, "done")
    if lost == 0 or c.r.facts[plane].get("dropped_traces") != lost:
        c.bad("soft 0 lost", lost, "but the profile says", c.r.facts[plane])
    if c.r.facts[plane].get("model") != "threads of the host":
        c.bad("soft 0: facts", c.r.facts[plane])
    windows = soft_windows(c)
    lines = collections.defaultdict(list)
    for e in events:
        c.left.discard(id(e))
        lines[e.line].append(e)
        corr = e.stats.get("correlation_id")
        if corr is None:
            continue
        c.within(e.name + " start", e.start, *windows[corr])
        c.within(e.name + " end", e.end, *windows[corr])
    for line, events in lines.items():
        events.sort(key=lambda e: e.start)
        over = max((a.end - b.start for a, b in zip(events, events[1:])),
                   default=0)
        if over > CLOCK_PS:
            c.bad("kernels of", line, "overlap by", over, "ps")


def check_facts(c, whole):
    host = c.r.facts["/host:CPU"]
    for key in ("process_id", "scope_cost_ps", "clock_resolution_ps",
                "start_unix_ns"):
        if not host.get(key, 0) > 0:
            c.bad("fact", key, host.get(key))
    if host.get("host_name") != "testhost" or host.get("clock") not in (
            "tsc", "monotonic"):
        c.bad("facts", host)
    if not whole:
        return
    times = c.r.facts["Task Environment"]
    if times["profile_start_time"] != host["start_unix_ns"] or times[
            "profile_stop_time"] * 1000 < host["start_unix_ns"] * 1000 + max(
                e.end for e in c.r.events):
        c.bad("profile times", times)
    most = next(n["most"] for n in c.diary if n["what"] == "cpu")
    if not 0 < host["flusher_cpu_ns"] < most:
        c.bad("the flusher took", host["flusher_cpu_ns"], "ns of CPU, all but "
              "the main thread", most)
    if host.get("events_recorded") != len(c.r.events):
        c.bad(len(c.r.events), "events in the file, and it says",
              host.get("events_recorded"))


def compare(recording, diary, whole=True):
    """Event for event: what differs. whole: the program has stopped; else the
    devices are in files of their own."""
    c = Compare(recording, diary)
    check_threads(c)
    check_counters(c)
    check_async(c)
    if whole:
        check_own_device(c)
        check_soft_device(c)
    check_facts(c, whole)
    for e in c.r.events:
        if id(e) in c.left:
            c.bad("nobody did", e.line, e.name, e.start, e.stats)
    return c


class Live:
    """A run of the program in a folder: start(), and stop() for the end."""

    def __init__(self, exe, tmp):
        self.logdir = os.path.join(tmp, "logs")
        self.diary_path = os.path.join(tmp, "diary")
        self.p = subprocess.Popen([exe, self.logdir, self.diary_path, "hold"],
                                  stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.p.stdout.readline()

    def files(self, end):
        return sorted(glob.glob(os.path.join(
            self.logdir, "plugins", "profile", "live", "*" + end)))

    def stop(self):
        self.p.communicate(b"\n", timeout=120)
        if self.p.returncode != 0:
            raise RuntimeError("live ended with %d" % self.p.returncode)
        return read_diary(self.diary_path)
