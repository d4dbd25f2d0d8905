# SPDX-License-Identifier: Apache-2.0
"""What a program recorded, held against the diary that it kept by itself.

For each kind of record of each act: what certainly had to be recorded is there
or counted as lost, and no more is there than was tried, none of it twice, all
of it in the profile of the process and on the line of the thread that did it.
Profiles are read by tests/rec/recording.py (the protobuf package) and by
opscope, and both must agree; event files by the few lines below."""

import collections
import glob
import json
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "rec"))
import recording  # noqa: E402

# As in storm.h.
ACTS, BODIES, FAULTS, KINDS = 4096, 1024, 256, 4
HEAD = 8
DIARY_WORDS = HEAD + 4 * FAULTS + 4 * BODIES + 2 * KINDS * ACTS
DIARY_BYTES = 8 * DIARY_WORDS
FAULT_NAMES = [
    "", "a call changed errno", "a call changed the signal mask",
    "a child of a recording program does not record",
    "ops_start() said 0 and nothing is recorded",
    "ops_stop() came back and something is recorded",
    "a handler ran in a thread that is not the program's",
    "the log folder is gone and ops_problem() is empty",
    "ops_start() failed and nothing stands in its way",
    "a call changed the cancellation state",
]
NUMBERS = 100000
NAME = re.compile(r"^s(\d+)\.(\d)$")
# Records that are not accounted for.
OTHERS = {"of a plugin", "behind the end", "flow"}
# Kinds of an act that count something else than records.
COUNTS = {"raise": {1}, "timer": {1}, "pending": {1}, "jump": {3},
          "badend": {0}}
HANDLERS = {"raise", "timer", "pending"}
# Acts whose records may come from other threads than their own.
MANY_THREADS = {"keyed", "crowd", "cancel", "plugin", "gather", "pipe", "fill"} | \
    HANDLERS
MANY_PROCESSES = {"gather", "pipe", "keyed"}
# What `ops` shows in another way: scopes in scopes of the same name are one,
# work of devices is shown where nothing on the host launched it.
NOT_OPS = {"deep", "longjmp", "jump", "device", "tracer"}


class Finding:
    """What is wrong: its kind is the same for the same defect."""

    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    def __str__(self):
        return f"{self.kind}: {self.text}"


class Diary:
    def __init__(self, path):
        with open(path, "rb") as f:
            words = struct.unpack(f"<{DIARY_WORDS}Q", f.read(DIARY_BYTES))
        self.gone, self.hostile, nfaults = words[0], words[1], words[2]
        at = HEAD
        self.faults = [words[at + 4 * i:at + 4 * i + 4]
                       for i in range(min(nfaults, FAULTS))]
        at += 4 * FAULTS
        self.body = [words[at + 4 * i:at + 4 * i + 4] for i in range(BODIES)]
        at += 4 * BODIES
        self.tried, self.done = {}, {}
        for i in range(ACTS):
            w = words[at + 2 * KINDS * i:at + 2 * KINDS * (i + 1)]
            if any(w):
                self.tried[i], self.done[i] = w[:KINDS], w[KINDS:]

    def pids(self):
        return {b[0] for b in self.body if b[0]}


class Losses:
    """What the profiles of a process say was lost, by reason."""

    REASONS = (("full", "full"), ("handler", "handler"), ("deep", "deep"),
               ("argument", "argument"), ("begin", "unmatched"))

    def __init__(self):
        self.n = collections.Counter()  # on lines of threads
        self.beside = 0  # told for the whole process

    def add(self, why, count):
        for word, reason in self.REASONS:
            if word in why:
                self.n[reason] += count
                return
        self.n["other: " + why] += count

    def rest(self):
        """What no thread's line tells of."""
        return self.beside

    def records(self):
        """How many records that explains, at most."""
        return self.beside + sum(
            n for why, n in self.n.items()
            if why not in ("argument", "unmatched"))

    def all(self):
        return self.rest() + sum(self.n.values())


class Account:
    """All that was read back."""

    def __init__(self):
        self.whole = collections.Counter()   # (act, kind)
        self.cut = collections.Counter()
        self.numbers = collections.defaultdict(collections.Counter)
        self.pids = collections.defaultdict(set)
        self.tids = collections.defaultdict(set)
        self.lost = collections.defaultdict(Losses)  # by pid
        self.named = collections.Counter()   # by name, as `ops` has it
        self.strange = []
        self.files = 0

    def add(self, key, pid, tid, number, cut):
        (self.cut if cut else self.whole)[key] += 1
        self.pids[key].add(pid)
        if tid is not None:
            self.tids[key].add((pid, tid))
        if number is not None and not cut:
            self.numbers[key][number] += 1


class Line:
    """Where an event stands."""

    def __init__(self, account, pid, plane, line):
        self.a, self.pid = account, pid
        self.name = line.name.decode(errors="replace")
        self.host = plane == "/host:CPU"
        self.counters = self.name == "_counters_"
        thread = self.host and not self.counters and \
            not self.name.startswith("async")
        self.tid = line.id & 0xffffffff if thread else None

    def add(self, key, number, cut):
        self.a.add(key, self.pid, self.tid, number, cut)


def read_special(at, name, stats, cut):
    """What has no name of its own, but numbers that tell whose it is."""
    a = at.a
    if name == "literal" and cut and "act" not in stats:
        return  # killed between the scope and its argument: whose is not known
    if name == "literal":
        at.add((stats.get("act", 0), 0), stats.get("seq"), cut)
    elif name in ("step", "epoch"):
        number = stats.get(name + "_num", 0)
        at.add((number // NUMBERS, 0), number % NUMBERS, cut)
    elif name in ("MemoryAllocation", "MemoryDeallocation"):
        addr = stats.get("addr", 0)
        at.add((addr >> 24, int(name == "MemoryDeallocation")),
               addr >> 4 & 0xfffff, cut)
    elif name == "opscope: dropped":
        a.lost[at.pid].add(stats.get("why", "?"), stats.get("count", 0))
    elif name not in OTHERS and not (at.counters and ": " in name):
        a.strange.append(f"{name} on {at.name} of {at.pid}")


def read_line(at, plane, line, keys):
    """keys: by number of a name, the act and kind that it stands for. Scopes
    without arguments are counted and no more: there are many."""
    plain = collections.Counter()
    for e in line.events:
        key = keys.get(e.metadata_id)
        if key is not None and not e.stats:
            plain[e.metadata_id] += 1
            continue
        stats = {plane.stat.get(x.metadata_id): plane.value(x)
                 for x in e.stats}
        cut = "unfinished" in stats
        if key is None:
            meta = plane.names.get(e.metadata_id)
            read_special(at, meta.name.decode(errors="replace")
                         if meta else "", stats, cut)
            continue
        number = stats.get("counter_value" if at.counters else
                           "seq" if at.host else "correlation_id")
        at.add(key, number, cut)
        if at.host and not at.counters:  # `ops` has the host's, async too
            at.a.named[f"s{key[0]}.{key[1]}"] += 1
    for number, n in plain.items():
        key = keys[number]
        at.add(key, None, False)
        at.a.whole[key] += n - 1
        if at.host and not at.counters:
            at.a.named[f"s{key[0]}.{key[1]}"] += n


def read_profile(a, path):
    space = recording.xspace_count.load("Space", path)
    planes = [recording.xspace_count.Plane(p) for p in space.planes]
    host = next((p for p in planes if p.name == "/host:CPU"), None)
    facts = {} if host is None else {
        host.stat.get(x.metadata_id): host.value(x) for x in host.p.stats}
    if "opscope_version" not in facts:
        return  # what `opscope record` saw
    pid = facts["process_id"]
    for p in planes:
        keys = {}
        for number, meta in p.names.items():
            m = NAME.match(meta.name.decode(errors="replace"))
            if m:
                keys[number] = (int(m[1]), int(m[2]))
        for line in p.p.lines:
            read_line(Line(a, pid, p.name, line), p, line, keys)
    a.lost[pid].beside += facts.get("dropped_traces", 0)
    a.files += 1


def varint(b, i):
    v = shift = 0
    while True:
        c = b[i]
        i += 1
        v |= (c & 0x7f) << shift
        shift += 7
        if c < 0x80:
            return v, i


def fields(b):
    i = 0
    while i < len(b):
        tag, i = varint(b, i)
        if tag & 7 == 0:
            v, i = varint(b, i)
        else:
            if tag & 7 == 2:
                n, i = varint(b, i)
            else:
                n = 8 if tag & 7 == 1 else 4
            v, i = b[i:i + n], i + n
        yield tag >> 3, v


def read_scalars(path):
    """(tag, step, value) of an event file: records with a length before and
    a checksum behind."""
    with open(path, "rb") as f:
        data = f.read()
    i = 0
    while i + 12 <= len(data):
        n = struct.unpack_from("<Q", data, i)[0]
        event = dict(fields(data[i + 12:i + 12 + n]))
        i += 12 + n + 4
        if 5 not in event:
            continue
        value = dict(fields(dict(fields(event[5]))[1]))
        yield (value[1].decode(), event.get(2, 0),
               struct.unpack("<f", value[2])[0] if 2 in value else 0.0)


def read_all(logs):
    """All profiles that are closed, and all curves."""
    a = Account()
    for path in sorted(glob.glob(os.path.join(
            logs, "plugins", "profile", "storm", "*.xplane.pb"))):
        try:
            read_profile(a, path)
        except Exception as x:  # whatever a reader finds wrong with it
            a.strange.append(f"{os.path.basename(path)} cannot be read: "
                             f"{type(x).__name__} {x}")
    for path in sorted(glob.glob(os.path.join(logs, "events.out.tfevents*"))):
        try:
            for tag, step, value in read_scalars(path):
                m = NAME.match(tag)
                if m:
                    a.add((int(m[1]), int(m[2])), 0, None, step, False)
                    if value != step:
                        a.strange.append(f"scalar {tag} {step} is {value}")
                elif tag not in OTHERS:
                    a.strange.append(f"scalar {tag}")
        except (IndexError, struct.error, KeyError) as x:
            a.strange.append(f"{os.path.basename(path)}: {x}")
    return a


class Judge:
    def __init__(self, script, diary, checks_off=()):
        self.s, self.d, self.off = script, diary, set(checks_off)
        self.verb = {a.id: a for a in script.acts()}
        self.body = script.body_of()
        self.found = []
        text = script.text()
        self.flight = "flight=1" in text or "FLIGHT" in text
        self.small = "ring=" in text or "memory=" in text or \
            "RING_BYTES" in text
        self.tight = self.small or diary.hostile or bool(
            script.verbs() & {"closeall", "fill", "dupover", "limit"})

    def bad(self, kind, *words):
        self.found.append(Finding(kind, " ".join(map(str, words))))

    # --- what the program saw itself --------------------------------------

    def faults(self):
        for act, what, a, b in self.d.faults:
            if act == 0 and what == 0:
                continue  # killed while it was written
            where = self.verb.get(act)
            self.bad(f"fault {what}", FAULT_NAMES[what],
                     f"({a}, {b}) in act {act}",
                     where.verb if where else "")

    # --- one act ----------------------------------------------------------

    def records(self):
        """(act, kind) -> tried, done, of everything that makes records."""
        for act, tried in self.d.tried.items():
            verb = self.verb[act].verb if act in self.verb else ""
            for kind in range(KINDS):
                if tried[kind] and kind not in COUNTS.get(verb, ()):
                    yield (act, kind), tried[kind], self.d.done[act][kind]

    def one(self, a, key, tried):
        act, kind = key
        what = f"act {act}.{kind} {self.verb[act].verb}"
        there = a.whole[key] + (0 if self.flight else a.cut[key])
        if there > tried:
            self.bad("surplus", what, f"{there} there, {tried} tried")
        twice = [n for n, c in a.numbers[key].items() if c > 1]
        if twice and self.verb[act].verb not in ("plugin", "jump"):
            self.bad("doubled", what, "number", twice[0], "is there",
                     a.numbers[key][twice[0]], "times")
        self.place(a, key, what)

    def place(self, a, key, what):
        verb, body = self.verb[key[0]].verb, self.body[key[0]]
        pid, tid = self.d.body[body][:2]
        if verb == "scalar" or self.d.body[body][2] != 1:
            return
        if verb not in MANY_PROCESSES and a.pids[key] - {pid}:
            self.bad("wrong process", what, f"of process {pid} is in "
                     f"profiles of {a.pids[key]}")
        if verb not in MANY_THREADS and a.tids[key] - {(pid, tid)}:
            self.bad("wrong thread", what, f"of thread {tid} is on lines of "
                     f"{a.tids[key]}")

    # --- a process --------------------------------------------------------

    def pid_of(self, a, key):
        verb = self.verb[key[0]].verb
        if verb in MANY_PROCESSES:
            return None
        return self.d.body[self.body[key[0]]][0]

    def sums(self, a):
        """What is missing is explained by what was counted as lost."""
        missing = collections.defaultdict(list)
        spare = collections.Counter()
        for key, tried, done in self.records():
            pid = self.pid_of(a, key)
            if done > a.whole[key]:
                missing[pid].append((key, done - a.whole[key]))
            spare[pid] += max(tried - a.whole[key], 0)
        for pid, list_ in missing.items():
            n = sum(x for _, x in list_)
            lost = sum(l.records() for p, l in a.lost.items()
                       if pid in (p, None))
            if n > lost:
                (act, kind), one = list_[0]
                self.bad("missing", f"{n} records of process {pid}, {lost} "
                         f"of them counted; {one} of act {act}.{kind}",
                         self.verb[act].verb)

    def reasons(self, a):
        """Nothing is lost without a reason."""
        handled = sum(t[k] for i, t in self.d.tried.items()
                      for k in COUNTS.get(self.verb[i].verb, ())
                      if self.verb[i].verb != "badend")
        lost = collections.Counter()
        for losses in a.lost.values():
            lost.update(losses.n)
            lost["rest"] += losses.rest()
        verbs = self.s.verbs()
        if lost["handler"] > handled:
            self.bad("lost", f"{lost['handler']} calls counted as from "
                     f"handlers, which made {handled}")
        # a handler that came while its thread was getting a ring
        lost["rest"] -= min(lost["rest"], handled)
        if lost["full"] and not self.tight:
            self.bad("lost", lost["full"], "records: a ring was full")
        # exit handlers of a child that a thread made run in that thread when it
        # has ended already
        ends = any(x.args.get("how") == "return" for x in self.s.acts())
        if lost["rest"] and not self.tight and not ends and \
                "keyed" not in verbs and "atexit" not in verbs:
            self.bad("lost", lost["rest"], "records of no thread")
        if lost["deep"] and "deep" not in verbs:
            self.bad("lost", lost["deep"], "scopes: nested too deep")
        for why, n in lost.items():
            if why.startswith("other") and not self.tight:
                self.bad("lost", n, why)

    def account(self, a):
        for key, tried, done in self.records():
            if key[0] in self.verb:
                self.one(a, key, tried)
        for key in set(a.whole) | set(a.cut):
            if key[0] not in self.d.tried or not self.d.tried[key[0]][key[1]]:
                self.bad("strange", f"act {key[0]}.{key[1]} was never tried")
        for text in a.strange[:3]:
            self.bad("strange", text)
        # A flight recorder gives the memory of threads that have ended to
        # others when it gets no more.
        if self.d.gone or self.flight and self.tight:
            return
        self.sums(a)
        self.reasons(a)

    # --- opscope's own view -----------------------------------------------

    def same_losses(self, a, notes):
        """What `opscope` says was lost is what the profiles say."""
        told = sum(n["count"] for n in notes if n["id"] == "recorder-dropped")
        lost = sum(x.all() for x in a.lost.values())
        if told != lost and "loss_note" not in self.off:
            self.bad("loss note", f"opscope tells of {told} lost, the "
                     f"profiles of {lost}")

    def same_as_opscope(self, a, ops):
        """ops: name -> calls."""
        skip = {x.id for x in self.s.acts() if x.verb in NOT_OPS}
        for name in set(ops) | set(a.named):
            m = NAME.match(name)
            if m is None or int(m[1]) in skip:
                continue
            if ops.get(name, 0) != a.named[name]:
                self.bad("opscope", f"`ops` has {ops.get(name, 0)} of "
                         f"{name}, the profiles {a.named[name]}")
                return


def table(opscope, env, *argv):
    """Rows of a result as dictionaries, and its notes; or a text that says
    what happened, and None."""
    p = subprocess.run([opscope, *argv, "--format", "json"], env=env,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=120)
    if p.returncode != 0:
        return f"status {p.returncode}: " + p.stderr.decode(
            errors="replace").strip()[:300], None
    d = json.loads(p.stdout)
    names = [c["name"] for c in d["columns"]]
    return [dict(zip(names, row)) for row in d["rows"]], d["notes"]


def ops_calls(rows):
    n = collections.Counter()
    for r in rows:
        if NAME.match(r["name"] or ""):
            n[r["name"]] += r["calls"]
    return n


def scalar_points(rows):
    n = collections.Counter()
    for r in rows:
        if NAME.match(r["tag"] or ""):
            n[r["tag"]] += r["points"]
    return n
