#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is true of every result, whatever the profile holds.

    problems_of(analysis, document) -> ["sentence", ...]      one result in JSON
    problems_together({words: document}) -> [...]             several of one run

No amount is negative but those that are signed; no share of a whole is over
100 %; shares that divide a whole sum to 100; parts sum to wholes, to the last
digit; texts are texts and numbers are numbers. Used by invariants_check.py over
real and hostile profiles, and by whoever mutates files. Run alone it checks
itself: a result with each fault must be found out.

usage: invariants.py
prints `ok NAME` or `not ok NAME: why`; exit 1 when anything differs
"""
import copy
import json
import re
import sys
from collections import defaultdict
from decimal import Decimal

# Moments may lie before the epoch; the rest of these count both ways.
MOMENT = re.compile(r"(^|_)(start|at|alloc|free)_us$")
SIGNED = {
    # allocated less freed while the op ran (torch's rule)
    ("ops", "host_bytes"), ("ops", "host_self_bytes"),
    ("ops", "device_bytes"), ("ops", "device_self_bytes"),
    # one clock before or behind another
    ("ranks", "clock_offset_us"), ("launch", "delay_p50_us"),
    ("launch", "delay_p95_us"),
    # values that somebody sampled or logged
    ("counters", "min"), ("counters", "mean"), ("counters", "max"),
    ("counters", "last"), ("counters", "total"), ("watch", "value"),
    ("scalars", "last"),
    ("scalars", "min"), ("scalars", "max"), ("scalars", "mean"),
    ("scalars", "value"), ("info", "value"), ("overview", "value"),
}
# Numbers that programs give; they are no amounts.
NUMBERS = {"step", "rank", "pid", "tid", "parent", "peak_step", "in_step",
           "line", "stream", "first_step", "last_step", "wall_time"}
# Percentages that are no share of a whole: they may be more than all of it.
# (a rank may come later than its steps are long)
UNBOUNDED = {("roofline", "of_peak_pct"), ("ranks", "late_pct")}
# Share columns whose rows divide one whole; by these columns, several.
DIVIDED = {
    "ops": ("share_pct", ()),
    "kernels": ("share_pct", ()),
    "stacks": ("share_pct", ()),
    "input": ("share_pct", ()),
    "launch": ("share_pct", ()),
    "idle": ("share_pct", ("device",)),
    "critical": ("share_pct", ("host", "step")),
}
PHASES = ("compute_us", "comm_us", "copy_us", "input_us", "launch_us",
          "host_us", "other_us")
# No more than: (analysis, part, whole)
WITHIN = [
    ("ops", "host_self_us", "host_us"),
    ("ops", "device_self_us", "device_us"),
    ("kernels", "self_us", "total_us"), ("kernels", "max_us", "total_us"),
    ("kernels", "min_us", "mean_us"), ("kernels", "mean_us", "max_us"),
    ("stacks", "self_us", "total_us"), ("tree", "host_self_us", "host_us"),
    ("tree", "device_self_us", "device_us"),
    ("tree", "backward_host_us", "host_us"),
    ("tree", "backward_device_us", "device_us"),
    ("python", "self_us", "total_us"), ("copies", "exposed_us", "total_us"),
    ("input", "hidden_us", "self_us"),
    ("idle", "worst_us", "total_us"), ("comm", "exposed_us", "total_us"),
    ("launch", "delay_p50_us", "delay_p95_us"),
    ("launch", "queue_min", "queue_p50"),
    ("launch", "queue_p50", "queue_max"),
    ("launch", "short_kernels", "kernels"),
    ("launch", "graph_kernels", "kernels"),
    ("counters", "min", "mean"), ("counters", "mean", "max"),
    ("scalars", "min", "max"),
    ("compile", "recompiles", "count"),
    ("steps", "bare_us", "dur_us"), ("steps", "bare_low_us", "bare_us"),
    ("steps", "bare_us", "bare_high_us"), ("steps", "bare_high_us", "dur_us"),
]
# Parts that sum to a whole in each row: (analysis, whole, parts)
SUMS = [("steps", "dur_us", PHASES),
        ("comm", "total_us", ("exposed_us", "overlapped_us")),
        ("comm", "total_us", ("wait_us", "move_us"))]
TOO_LARGE = "the largest that can be counted"
KEYS = {"opscope", "analysis", "sources", "columns", "rows", "total_rows",
        "remarks", "missing", "notes"}


def number(cell):
    """Integers over 2^53 are strings; floats that were read as such are
    taken by their shortest text."""
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, float):
        return Decimal(repr(cell))
    return Decimal(cell)


def table(doc):
    """Rows by column name, numbers as Decimal."""
    columns = doc["columns"]
    return [{c["name"]: v if c["type"] in ("text", "bool") else number(v)
             for c, v in zip(columns, row)} for row in doc["rows"]]


def parsed(text):
    """A result as opscope prints it, with every digit; ValueError where a
    strict parser would refuse it."""
    def refuse(word):
        raise ValueError(word)
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    doc = json.loads(text, parse_float=Decimal, parse_constant=refuse)
    json.dumps(doc, ensure_ascii=False, default=str).encode("utf-8")
    return doc


def fuzz(doc):
    """How far two sums may differ, as a share: not at all, unless the document
    was read by a parser that keeps 53 bits."""
    floats = any(isinstance(v, float) for row in doc["rows"] for v in row)
    return Decimal("1e-12") if floats else Decimal(0)


def differ(a, b, by):
    return abs(a - b) > max(abs(a), abs(b)) * by


def check_cell(column, v):
    kind = column["type"]
    if v is None:
        return None
    if kind == "text":
        good = isinstance(v, str)
    elif kind == "bool":
        good = isinstance(v, bool)
    elif kind in ("int", "bytes"):
        good = isinstance(v, int) and not isinstance(v, bool) and \
            abs(v) <= 1 << 53 or isinstance(v, str) and \
            re.fullmatch(r"-?\d+", v) is not None and abs(int(v)) > 1 << 53
    else:
        good = isinstance(v, (int, float, Decimal)) and \
            not isinstance(v, bool) and Decimal(v).is_finite()
    return None if good else "%s is %r, no %s" % (column["name"], v, kind)


def check_shape(doc):
    if set(doc) != KEYS:
        return ["the keys are %s" % sorted(doc)]
    wrong = []
    for row in doc["rows"]:
        if len(row) != len(doc["columns"]):
            wrong.append("a row has %d cells" % len(row))
            break
        wrong += filter(None, map(check_cell, doc["columns"], row))
    if doc["total_rows"] < len(doc["rows"]):
        wrong.append("%d rows of %s" % (len(doc["rows"]), doc["total_rows"]))
    return wrong


def check_signs(analysis, doc, rows):
    wrong = []
    for c in doc["columns"]:
        name = c["name"]
        if c["type"] in ("text", "bool") or name in NUMBERS or \
                MOMENT.search(name) or (analysis, name) in SIGNED:
            continue
        least = min((r[name] for r in rows if r[name] is not None), default=0)
        if least < 0:
            wrong.append("%s is %s" % (name, least))
        most = max((r[name] for r in rows if r[name] is not None), default=0)
        if c["type"] == "percent" and (analysis, name) not in UNBOUNDED and \
                most > Decimal("100.000001"):
            wrong.append("%s is %s" % (name, most))
    return wrong


def check_shares(analysis, doc, rows):
    column, by = DIVIDED.get(analysis, (None, ()))
    if column is None or doc["total_rows"] != len(rows):
        return []
    sums = defaultdict(Decimal)
    for r in rows:
        if r.get(column) is not None:
            sums[tuple(r.get(k) for k in by)] += r[column]
    # programs give a number to several steps, files a name to several devices
    keys = [tuple(v for c, v in r.items() if isinstance(v, str)) for r in rows]
    wholes = {k: 100 for k in sums}
    if analysis == "critical" or len(set(keys)) < len(keys):
        wholes = {k: 100 * max(1, round(s / 100)) for k, s in sums.items()}
    return ["%s sums to %s%s" % (column, s, " in %s" % (k,) if k else "")
            for k, s in sums.items()
            if abs(s - wholes[k]) > Decimal("0.00001") and s != 0]


def unit_of(doc, name):
    """Half of the last digit that the column shows: what rounding may do."""
    for c in doc["columns"]:
        if c["name"] == name and c["type"] == "time":
            shown = [str(row[doc["columns"].index(c)]) for row in doc["rows"]]
            return Decimal(1).scaleb(-min(
                (len(s.partition(".")[2]) for s in shown if s != "None"),
                default=6)) / 2
    return Decimal(0)


def check_rows(analysis, doc, rows):
    wrong, by = [], fuzz(doc)
    for who, part, whole in WITHIN:
        if who != analysis or not rows or part not in rows[0] or \
                whole not in rows[0]:
            continue
        off = unit_of(doc, part) + unit_of(doc, whole)
        for r in rows:
            a, b = r[part], r[whole]
            if a is None or b is None or \
                    a <= b + off + abs(b) * Decimal("1e-12"):
                continue
            wrong.append("%s %s is over %s %s" % (part, a, whole, b))
            break
    for who, whole, parts in SUMS:
        if who != analysis or not rows or whole not in rows[0] or \
                any(p not in rows[0] for p in parts):
            continue
        for r in rows:
            if r[whole] is None or any(r[p] is None for p in parts):
                continue
            if differ(sum(r[p] for p in parts), r[whole], by):
                wrong.append("%s sum to %s, %s is %s" % (
                    " + ".join(parts), sum(r[p] for p in parts), whole,
                    r[whole]))
                break
    return wrong


def check_tree(doc, rows):
    """Own and children make the total; rows stand in the order of the tree."""
    if doc["total_rows"] != len(rows):
        return []
    wrong, by = [], fuzz(doc)
    for total, own in (("host_us", "host_self_us"),
                       ("device_us", "device_self_us")):
        open_rows = []
        sums = {}
        for i, r in enumerate(rows):
            del open_rows[int(r["depth"]):]
            sums[i] = r[own] or 0
            if open_rows and r[total] is not None:
                sums[open_rows[-1]] += r[total]
            open_rows.append(i)
        wrong += ["%s of %s is %s, its parts are %s" % (
            total, r["path"][:80], r[total], sums[i])
            for i, r in enumerate(rows)
            if r[total] is not None and differ(sums[i], r[total], by)][:2]
    return wrong


def check_steps(doc, rows):
    """One behind the other, on each host and device. Not those that are a
    message each (StepStats): what these say of their times may be anything."""
    wrong, end, by = [], {}, fuzz(doc)
    if any(s.get("format") in ("stepstats", "tfevents")
           for s in doc.get("sources", [])) or \
            "start_us" not in [c["name"] for c in doc["columns"]]:
        return []
    for r in rows:
        key = r.get("host"), r.get("device")
        if "epoch" not in r and key in end and r["start_us"] < end[key] and \
                differ(r["start_us"], end[key], by):
            wrong.append("step %s begins before the one before it ends"
                         % r["step"])
        end[key] = r["start_us"] + r["dur_us"]
    return wrong


def check_bare(doc, rows):
    """No less than the device was busy; a range where it is an estimate; a
    figure that was measured is the same in all steps."""
    wrong, by = [], Decimal("1e-9")
    for r in rows:
        if r.get("bare_us") is None:
            continue
        busy = (r["device_busy_pct"] or 0) * r["dur_us"] / 100
        if r["bare_us"] < busy - unit_of(doc, "bare_us") * 2 - busy * by:
            wrong.append("step %s: bare %s, busy %s" % (
                r.get("step"), r["bare_us"], busy))
        if (r["bare_low_us"] is None) != (r["bare_is"] != "estimated") or \
                (r["bare_low_us"] is None) != (r["bare_high_us"] is None):
            wrong.append("step %s: a range without an estimate, or none with "
                         "one" % r.get("step"))
        if r["bare_is"] == "measured" and r["bare_measured_us"] is not None \
                and r["bare_us"] != r["bare_measured_us"]:
            wrong.append("step %s: measured, and not the measured figure"
                         % r.get("step"))
    return wrong[:3]


def check_input(doc, rows):
    """Own time is exposed or hidden. With --steps a wait may have begun in the
    step before, and more is exposed than own."""
    by = fuzz(doc)
    return ["%s: %s of %s is exposed, %s hidden" % (
        r["stage"], r["exposed_us"], r["self_us"], r["hidden_us"])
        for r in rows
        if differ(r["hidden_us"], max(r["self_us"] - r["exposed_us"], 0), by)]


def check_means(rows):
    """Where there are numbers there is a mean of them."""
    return ["%s has a least value and no mean" % (r.get("name") or r.get("tag"))
            for r in rows if r.get("kind", "scalar") == "scalar" and
            r["min"] is not None and r["mean"] is None]


def problems_of(analysis, doc):
    """What is wrong with a result: a list of sentences, empty where all is
    well. Options that leave rows out (--name, --min-us, --min-bytes) leave out
    parts of sums, too: not for those. `doc` is the JSON, as text or parsed; parse_float=Decimal, as
    parsed() does it, keeps every digit."""
    if isinstance(doc, (str, bytes)):
        try:
            doc = parsed(doc)
        except ValueError as e:
            return ["no JSON: %s" % e]
    wrong = check_shape(doc)
    if wrong:
        return wrong[:4]
    if analysis != doc["analysis"]:
        return ["it is the result of %s" % doc["analysis"]]
    rows = table(doc)
    wrong = check_signs(analysis, doc, rows)
    if any(TOO_LARGE in s for s in doc["remarks"]):
        return wrong  # sums have stopped, and the result says so
    wrong += check_shares(analysis, doc, rows)
    wrong += check_rows(analysis, doc, rows)
    if analysis == "tree":
        wrong += check_tree(doc, rows)
    if analysis == "steps":
        wrong += check_steps(doc, rows)
        wrong += check_bare(doc, rows)
    if analysis == "input":
        wrong += check_input(doc, rows)
    if analysis == "counters" or analysis == "scalars" and rows and \
            "mean" in rows[0]:
        wrong += check_means(rows)
    return wrong


def total(doc, column, **where):
    return sum((r[column] for r in table(doc) if r.get(column) is not None and
                all(r[k] == v for k, v in where.items())), Decimal(0))


def check_memory(docs, wrong):
    """Who held what at the peak sums to the peak, by whatever it is divided."""
    peaks = docs.get(("memory",))
    if peaks is None:
        return
    want = defaultdict(Decimal)  # several may have one name
    for r in table(peaks):
        if r["peak_bytes"] is not None:
            want[r["device"], r["allocator"]] += r["peak_bytes"]
    for words, doc in docs.items():
        if words[:2] != ("memory", "--by") or words[2] == "time":
            continue
        if "bytes" not in [c["name"] for c in doc["columns"]]:
            continue  # it says that nothing can be told
        have = defaultdict(Decimal)
        for r in table(doc):
            have[r["device"], r["allocator"]] += r["bytes"]
        for key, peak in want.items():
            if have.get(key, 0) != peak:
                wrong.append("%s: %s has %s, the peak is %s" % (
                    " ".join(words), key, have.get(key, 0), peak))


def check_idle(docs, wrong):
    """The causes of a device sum to what `steps` leaves it idle."""
    idle, steps = docs.get(("idle",)), docs.get(("steps", "--by", "device"))
    if idle is None or steps is None:
        return
    least, most = defaultdict(Decimal), defaultdict(Decimal)
    for r in table(steps):
        if r["device"] is None:
            continue
        rest = sum(r[p] for p in PHASES[3:])
        least[r["device"]] += rest
        most[r["device"]] += rest + r["comm_us"] + r["copy_us"]
    for device in least:
        have = total(idle, "total_us", device=device)
        if not least[device] <= have <= most[device]:
            wrong.append("idle: %s has %s, steps say %s to %s" % (
                device, have, least[device], most[device]))


def check_exposed(docs, wrong):
    """What the stages of the input pipeline expose is the steps' input."""
    stages, steps = docs.get(("input",)), docs.get(("steps",))
    if stages is None or steps is None:
        return
    a, b = total(stages, "exposed_us"), total(steps, "input_us")
    if a != b:
        wrong.append("input: %s is exposed, steps have %s" % (a, b))


def check_path(docs, wrong):
    """The critical path of a step is as long as the step."""
    path, steps = docs.get(("critical",)), docs.get(("steps",))
    if path is None or steps is None:
        return
    have, want = defaultdict(Decimal), defaultdict(list)
    for r in table(path):
        have[r["host"], r["step"]] += r["on_path_us"]
    for r in table(steps):  # a number may be given twice
        want[r["host"], r["step"]].append(r["dur_us"])
    wrong += ["critical: step %s is %s, the step %s" % (k, v, want[k])
              for k, v in have.items()
              if v not in want[k] and v != sum(want[k])]


def check_one_bare(docs, wrong):
    """overview and hints show the bare step of steps: its median, the lower
    one of two. Hints look at one host alone."""
    steps = docs.get(("steps",))
    if steps is None:
        return
    every = table(steps)
    if any(not r.get("cut") for r in every):  # cut ones are no measure
        every = [r for r in every if not r.get("cut")]
    rows = [r for r in every if r.get("bare_us") is not None]
    if not rows:
        return
    figures = sorted(r["bare_us"] for r in rows)
    unit = unit_of(steps, "bare_us") * 2
    for r in table(docs[("overview",)]) if ("overview",) in docs else []:
        if r["metric"] == "without the profiler" and abs(
                r["value"] - figures[(len(figures) - 1) // 2]) > unit:
            wrong.append("overview: bare %s, steps have %s" % (
                r["value"], figures[(len(figures) - 1) // 2]))
    hints = docs.get(("hints",))
    one = len({r["host"] for r in rows}) == 1 and \
        len(steps["sources"]) == 1 and len(rows) == len(every)
    for r in table(hints) if hints is not None and one else []:
        # with its part of what other steps compile
        if "other steps compile" in " ".join(hints["remarks"]) and \
                r["step_us"] > figures[(len(figures) - 1) // 2]:
            continue
        if abs(r["step_us"] - figures[(len(figures) - 1) // 2]) > unit:
            wrong.append("hints: a step of %s, steps have %s" % (
                r["step_us"], figures[(len(figures) - 1) // 2]))


def check_same(docs, wrong):
    """One figure by two names."""
    for a, x, b, y in (
            (("kernels",), "total_us", ("kernels", "--group", "shape"),
             "total_us"),
            (("kernels",), "self_us", ("kernels", "--group", "shape"),
             "self_us"),
            (("ops",), "host_self_us",
             ("ops", "--group", "shapes,stack,module"), "host_self_us"),
            (("ops",), "device_self_us",
             ("ops", "--group", "shapes,stack,module"), "device_self_us"),
            (("stacks", "--by", "host"), "self_us",
             ("stacks", "--by", "host"), "self_us")):
        if a in docs and b in docs and \
                total(docs[a], x) != total(docs[b], y):
            wrong.append("%s of %s is %s, %s of %s %s" % (
                x, " ".join(a), total(docs[a], x), y, " ".join(b),
                total(docs[b], y)))


def check_device(docs, wrong):
    """Kernels have in `stacks` what they have in `kernels`: no more than all
    device work, no less than theirs."""
    kernels = docs.get(("kernels",))
    stacks = docs.get(("stacks", "--by", "device"))
    if kernels is None or stacks is None:
        return
    if total(stacks, "self_us") < total(kernels, "self_us"):
        wrong.append("stacks --by device has %s, kernels %s" % (
            total(stacks, "self_us"), total(kernels, "self_us")))


def problems_together(docs):
    """The same for results of one profile: {("memory", "--by", "op"): doc}."""
    wrong = []
    good = {w: d for w, d in docs.items()
            if not any(TOO_LARGE in s for s in d["remarks"])}
    for check in (check_memory, check_idle, check_same, check_device,
                  check_exposed, check_path, check_one_bare):
        check(good, wrong)
    return wrong


# ---- itself ----

def made(analysis, columns, *rows):
    return {"opscope": "0", "analysis": analysis, "sources": [],
            "columns": [{"name": n, "type": t, "unit": None, "help": None}
                        for n, t in columns],
            "rows": [list(r) for r in rows], "total_rows": len(rows),
            "remarks": [], "missing": [], "notes": []}


OPS = [("name", "text"), ("calls", "int"), ("host_us", "time"),
       ("host_self_us", "time"), ("host_bytes", "bytes"),
       ("share_pct", "percent")]
TREE = [("path", "text"), ("depth", "int"), ("host_us", "time"),
        ("host_self_us", "time"), ("device_us", "time"),
        ("device_self_us", "time")]


def main():
    fine = made("ops", OPS, ["a", 2, 3.5, 1.25, -8, 25.0],
                ["b", 1, 9.0, 3.75, "9007199254740993", 75.0])
    tree = made("tree", TREE, ["a", 0, 3, 1, None, None],
                ["a/b", 1, 2, 2, None, None])
    faults = {
        "a negative time": lambda d: d["rows"][0].__setitem__(3, -1.0),
        "negative calls": lambda d: d["rows"][0].__setitem__(1, -1),
        "a share over 100": lambda d: d["rows"][0].__setitem__(5, 101.0),
        "shares that do not sum": lambda d: d["rows"][0].__setitem__(5, 20.0),
        "self over total": lambda d: d["rows"][0].__setitem__(3, 4.0),
        "a text for a number": lambda d: d["rows"][0].__setitem__(1, "x"),
        "a number for a text": lambda d: d["rows"][0].__setitem__(0, 7),
        "a large integer": lambda d: d["rows"][0].__setitem__(1, 1 << 54),
        "a short row": lambda d: d["rows"][0].pop(),
        "NaN": lambda d: d["rows"][0].__setitem__(2, float("nan")),
        "fewer rows than there are": lambda d: d.__setitem__("total_rows", 1),
        "another analysis": lambda d: d.__setitem__("analysis", "kernels"),
    }
    good = True
    for name, fault in faults.items():
        doc = copy.deepcopy(fine)
        fault(doc)
        found = bool(problems_of("ops", doc))
        print("%s invariants finds %s" % ("ok" if found else "not ok", name))
        good &= found
    broken = copy.deepcopy(tree)
    broken["rows"][1][2] = 1
    for what, ok in (("nothing in a good result", not problems_of("ops", fine)),
                     ("nothing in a good tree", not problems_of("tree", tree)),
                     ("a tree that does not sum", problems_of("tree", broken)),
                     ("no fault in JSON's own floats", not problems_of(
                         "ops", json.loads(json.dumps(fine)))),
                     ("no fault in text", not problems_of(
                         "ops", json.dumps(fine))),
                     ("half a surrogate", problems_of(
                         "ops", json.dumps(fine).replace("a", "\\ud800", 1))),
                     ("what is no JSON", problems_of("ops", "{,}"))):
        print("%s invariants finds %s" % ("ok" if ok else "not ok", what))
        good &= bool(ok)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
