#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What may not change a result. Profiles of tests/data are written again with
one thing changed that is no property of the program, and every analysis must
answer as before, to the last digit:

shift     all times hours later, and the clock that they count from, too: only
          moments (start_us, *_at_us, ...) move, by exactly that
rename    threads and streams with other numbers, in another order, and other
          names: see NAMES for what is made of a name
shuffle   the events in another order (those at the same place and time keep
          theirs: among equals a file's order is information)
plain     inflated instead of gz, or gz instead of plain
threads   one thread instead of two
ranks     the files of the ranks in another order

Rows are compared as a set: the order of equal rows follows the file.

usage: properties_check.py      program: $OPSCOPE or build/opscope
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from decimal import Decimal

from lib import varint, wire_fields as fields

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
OPSCOPE = os.environ.get("OPSCOPE", "build/opscope")
HOURS_US = Decimal(5 * 3600 * 10**6)
HOURS_NS = 7 * 3600 * 10**9

PROFILES = ["torch_cnn/torch_cnn.pt.trace.json.gz",
            "torch_cpu/torch_cpu.pt.trace.json.gz",
            "torch_graphs/torch_graphs.pt.trace.json.gz",
            "faults/leak.pt.trace.json.gz",
            "jax_mlp/vm.xplane.pb",
            "tf_graph/vm.xplane.pb"]
RANKS = ["torch_ddp/torch_ddp_rank0.pt.trace.json.gz",
         "torch_ddp/torch_ddp_rank1.pt.trace.json.gz"]

# Beside each analysis with no options.
MORE = [("steps", "--by", "device"), ("kernels", "--group", "shape"),
        ("ops", "--group", "shapes,stack,module"), ("launch", "--by", "call"),
        ("memory", "--by", "category"), ("memory", "--by", "op"),
        ("memory", "--by", "time"), ("allocs", "--peak"),
        ("tree", "--by", "op"), ("tree", "--by", "module"),
        ("tree", "--by", "code"), ("roofline", "--by", "kernel"),
        ("critical", "--steps", "0..31")]

# Moments: they move with the clock. Others end in _at_us.
MOMENTS = {"start_us", "alloc_us", "free_us", "at_us"}

# (analysis, column) in which a thread's or stream's name or number is shown.
NAMES = {("tracks", "name"), ("tracks", "tid"), ("tracks", "pid"),
         ("tracks", "thread"), ("trace", "track"), ("trace", "args")}
# The note on threads with two names, of which the new ones have one.
NAMED_TWICE = "duplicate-track-name"


def analyses():
    path = os.path.join(HERE, "..", "..", "src", "analyze", "analyses.def")
    with open(path, encoding="utf-8") as f:
        names = re.findall(r"^X\((\w+)", f.read(), re.M)
    return [(n,) for n in names] + [m for m in MORE if m[0] in names]


def run(words, paths, *more):
    """The result, less what says where it came from; or the failure."""
    out = subprocess.run([OPSCOPE, words[0], *paths, *words[1:], *more,
                          "--format", "json"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if out.returncode != 0:  # such as --steps that the profile does not have
        text = out.stderr.decode()
        for p in paths:
            text = text.replace(p, "PATH")
        return {"error": text}
    r = json.loads(out.stdout, parse_float=Decimal)
    for s in r["sources"]:
        del s["path"]
        s["epoch_unix_ns"] = int(s["epoch_unix_ns"] or 0)
    rounded(r)
    r["columns"] = [c["name"] for c in r["columns"]]
    return r


def rounded(r):
    """Floats to 12 digits: what is added up in another order differs in the
    last ones. Times and counts are integers and stay exact."""
    at = [i for i, c in enumerate(r["columns"])
          if c["type"] in ("float", "percent")]
    mixed = r["analysis"] in ("info", "overview")  # a column of all units
    for row in r["rows"]:
        for i in range(len(row)) if mixed else at:
            if isinstance(row[i], (Decimal, float)):
                row[i] = "%.12g" % row[i]


def moment(column):
    return column in MOMENTS or column.endswith("_at_us")


def without(r, analysis, columns):
    """Rows as a sorted list of texts, less these columns."""
    keep = [i for i, c in enumerate(r["columns"])
            if (analysis, c) not in columns]
    return sorted(repr([row[i] for i in keep]) for row in r["rows"])


def moved(r, by_us, by_ns):
    """What the result must be when all times are so much later."""
    if "error" in r:
        return r
    r = json_copy(r)
    at = [i for i, c in enumerate(r["columns"]) if moment(c)]
    for row in r["rows"]:
        for i in at:
            if row[i] is not None:
                row[i] += by_us
    for s in r["sources"]:
        s["epoch_unix_ns"] += by_ns
    return r


def json_copy(r):
    return {**r, "rows": [list(row) for row in r["rows"]],
            "sources": [dict(s) for s in r["sources"]]}


def paths_out(text):
    """Facts of `info` and `overview` name the file itself, and its size."""
    if text.startswith("['file size'"):
        return ""
    return re.sub(r"[^\s'\"]*/[^\s'\"]*(trace\.json|\.pb)(\.gz)?", "PATH",
                  text)


def parts(value):
    """Sentences and facts in an order of our own."""
    return sorted(map(str, value)) if isinstance(value, list) else [value]


def difference(words, want, got, columns=frozenset()):
    """A sentence, or None when the two are the same."""
    if "error" in want or "error" in got:
        return None if want.get("error") == got.get("error") else \
            "%s, then %s" % (want.get("error"), got.get("error"))
    if want["columns"] != got["columns"]:
        return "other columns"
    for key in ("total_rows", "sources", "remarks", "missing", "notes"):
        a, b = parts(want[key]), parts(got[key])
        if columns:
            a = [x for x in a if NAMED_TWICE not in str(x)]
        if a != b:
            return "%s: %s, then %s" % (
                key, [x for x in a if x not in b], [x for x in b if x not in a])
    a = [paths_out(x) for x in without(want, words[0], columns)]
    b = [paths_out(x) for x in without(got, words[0], columns)]
    if a == b:
        return None
    only = [x for x in a if x not in b][:1], [x for x in b if x not in a][:1]
    return "rows %s, then %s" % only


# Kineto's JSON: numbers keep the digits that they have in the file.

def load(path):
    with gzip.open(path) as f:
        return json.loads(f.read(), parse_float=lambda s: "@@" + s)


def dump(profile, path):
    text = json.dumps(profile)
    with open(path, "w", encoding="utf-8") as f:
        f.write(re.sub(r'"@@([^"]*)"', r"\1", text))


def number(x):
    return Decimal(x[2:]) if isinstance(x, str) else Decimal(x)


def kineto_shift(profile):
    profile["baseTimeNanoseconds"] += HOURS_NS
    for e in profile["traceEvents"]:
        if "ts" in e:
            e["ts"] = "@@%s" % (number(e["ts"]) + HOURS_US)


def new_numbers(events):
    """(pid, tid) to another tid: reversed, and far from the old ones."""
    tids = sorted({(e["pid"], e["tid"]) for e in events
                   if isinstance(e.get("tid"), int) and e["tid"] > 0
                   and isinstance(e.get("pid"), int)})
    return {k: 900001 - 13 * i for i, k in enumerate(tids)}


def kineto_rename(profile):
    events = profile["traceEvents"]
    to = new_numbers(events)
    for e in events:
        key = e.get("pid"), e.get("tid")
        args = e.get("args", {})
        if isinstance(args.get("stream"), int) and "device" in args:
            args["stream"] = to.get((args["device"], args["stream"]),
                                    args["stream"])
        if key not in to:
            continue
        e["tid"] = to[key]
        if e.get("name") == "thread_name":
            args["name"] = renamed(args["name"], to[key])
        if e.get("name") == "thread_sort_index":
            args["sort_index"] = to[key]


def renamed(name, tid):
    """Another name. That of a DataLoader's thread is how it is known."""
    if "pt_data" in name:
        return re.sub(r"\d+", str(tid), name)
    return ("stream %d " if name.startswith("stream") else "worker %d") % tid


def kineto_shuffle(profile):
    rng = random.Random(1)
    place = {}

    def key(e):
        k = str(e.get("pid")), str(e.get("tid")), str(e.get("ts"))
        return place.setdefault(k, rng.random())

    profile["traceEvents"].sort(key=key)


# XSpace: fields of protobuf, rewritten in place.

def put_varint(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)
    return bytes(out)


def message(b, change):
    """The message with each field as change(number, value) gives it."""
    out = []
    for num, wire, v in fields(b):
        v = change(num, v)
        out.append(put_varint(num << 3 | wire))
        if wire == 0:
            out.append(put_varint(v))
        else:
            out.append(put_varint(len(v)) + v if wire == 2 else v)
    return b"".join(out)


def lines(space, change):
    """Every XLine (plane 1, line 3) through change(number, value)."""
    return message(space, lambda n, plane: plane if n != 1 else
                   message(plane, lambda m, line: line if m != 3 else
                           message(line, change)))


def xspace_shift(space):
    ns = int(HOURS_US * 1000)
    return lines(space, lambda n, v: v + ns if n == 3 else v)


def xspace_rename(space):
    """Line ids (1), display ids (10) and names (2, 11) of host threads; other
    planes' lines have names that are their meaning ("XLA Ops")."""
    def plane(b):
        name = next((v for n, _, v in fields(b) if n == 2), b"")
        if not name.startswith(b"/host:CPU"):
            return b
        return message(b, lambda n, v: message(v, line) if n == 3 else v)

    def line(n, v):
        if n in (1, 10):
            return (900001 - v) % (1 << 31)
        return re.sub(rb"/\d+$", b"/777", v) if n in (2, 11) else v
    return message(space, lambda n, v: plane(v) if n == 1 else v)


class Check:
    def __init__(self, name, paths, folder):
        self.name, self.paths, self.folder = name, paths, folder
        self.base = {w: run(w, paths) for w in analyses()}
        self.good = True

    def same(self, what, paths, *more, by_us=0, by_ns=0, columns=frozenset()):
        wrong = []
        for words, want in self.base.items():
            got = run(words, paths, *more)
            if by_us or by_ns:
                want = moved(want, by_us, by_ns)
            d = difference(words, want, got, columns)
            if d is not None:
                wrong.append("%s: %s" % (" ".join(words), d[:600]))
        name = "properties_check %s %s" % (what, self.name)
        print("not ok %s: %s" % (name, "; ".join(wrong)) if wrong
              else "ok %s" % name, flush=True)
        self.good &= not wrong

    def rewritten(self, change):
        """The paths of the files, each changed."""
        out = []
        for path in self.paths:
            profile = load(path)
            change(profile)
            out.append(os.path.join(self.folder, os.path.basename(path)[:-3]))
            dump(profile, out[-1])
        return out

    def packed_otherwise(self):
        out = []
        for path in self.paths:
            name = os.path.basename(path)
            was_gz = name.endswith(".gz")
            out.append(os.path.join(self.folder, name[:-3] if was_gz
                                    else name + ".gz"))
            with (gzip.open if was_gz else open)(path, "rb") as f, \
                    (open if was_gz else gzip.open)(out[-1], "wb") as o:
                o.write(f.read())
        return out

    def space(self, change):
        with open(self.paths[0], "rb") as f:
            changed = change(f.read())
        out = os.path.join(self.folder, "changed.xplane.pb")
        with open(out, "wb") as f:
            f.write(changed)
        return [out]

    def all(self):
        self.same("plain", self.packed_otherwise())
        self.same("threads", self.paths, "--threads", "1")
        if self.paths[0].endswith(".pb"):
            self.same("shift", self.space(xspace_shift), by_us=HOURS_US)
            self.same("rename", self.space(xspace_rename), columns=NAMES)
            return
        self.same("shift", self.rewritten(kineto_shift), by_us=HOURS_US,
                  by_ns=HOURS_NS)
        self.same("rename", self.rewritten(kineto_rename), columns=NAMES)
        self.same("shuffle", self.rewritten(kineto_shuffle))
        if len(self.paths) > 1:
            self.same("ranks", self.paths[::-1])


def main():
    good = True
    sets = [(p.split("/")[0] if "faults" not in p else "faults/leak", [p])
            for p in PROFILES] + [("torch_ddp", RANKS)]
    only = sys.argv[1:]
    for name, files in sets:
        if only and name not in only:
            continue
        paths = [os.path.join(DATA, f) for f in files]
        with tempfile.TemporaryDirectory() as folder:
            check = Check(name, paths, folder)
            check.all()
            good &= check.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
