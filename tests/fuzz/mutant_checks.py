# SPDX-License-Identifier: Apache-2.0
"""What holds for everything that opscope prints, whatever it read. Each check
gives a list of sentences, empty when all is well."""

import csv
import io
import json
import os
import re
import sys
from collections import defaultdict
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "truth"))
import invariants  # of results of any profile, not only of mutants

csv.field_size_limit(1 << 30)

KEYS = ["opscope", "analysis", "sources", "columns", "rows", "total_rows",
        "remarks", "missing", "notes"]
PHASES = ["compute_us", "comm_us", "copy_us", "input_us", "launch_us",
          "host_us", "other_us"]
# Columns in which a value below zero has a meaning: one clock against another,
# memory net of what was freed, and what is left where a file's own totals and
# its events contradict each other.
SIGNED = {("ranks", "clock_offset_us"), ("launch", "delay_p50_us"),
          ("launch", "delay_p95_us"), ("ops", "host_bytes"),
          ("ops", "host_self_bytes"), ("ops", "device_bytes"),
          ("ops", "device_self_bytes"), ("allocs", "bytes"),
          ("memory", "bytes"), ("memory", "before_window_bytes"),
          ("memory", "live_at_end_bytes"), ("memory", "allocated_bytes")}
MOMENT = re.compile(r"^(start|alloc|free|at|first_at|worst_at|peak_at)_us$|"
                    r"_at_us$")
# Shares of a whole, which none can exceed. (Those of memory are of bytes that
# may be less than nothing.)
SHARES = {"share_pct", "device_busy_pct", "exposed_pct", "save_pct"}
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e"
                     "\u2066-\u2069]")
COLOR = re.compile("\x1b\\[[0-9;]*m")
LARGE = 2**61  # beyond it sums stop at the border of their type


class Bad(ValueError):
    pass


def constant(word):
    raise Bad("%s is not JSON" % word)


def pairs(items):
    out = dict(items)
    if len(out) != len(items):
        keys = [k for k, _ in items]
        raise Bad("a key twice: %r" % next(k for k in keys
                                          if keys.count(k) > 1))
    return out


def strict(data):
    return json.loads(data.decode("utf-8"), object_pairs_hook=pairs,
                      parse_constant=constant, parse_float=Decimal)


def valid(data):
    """Problems of JSON that has no table in it. Arguments of an event may come
    twice there, as they do where they are from."""
    try:
        json.loads(data.decode("utf-8"), parse_constant=constant)
    except RecursionError:
        return []  # what Python cannot read may be right
    except ValueError as e:
        return ["not strict JSON: %s" % str(e)[:200]]
    return []


class Table:
    """A result, read from its JSON."""

    def __init__(self, data):
        d = strict(data)
        if list(d) != KEYS:
            raise Bad("keys are %s" % list(d))
        self.document = d
        self.columns = [c["name"] for c in d["columns"]]
        self.types = [c["type"] for c in d["columns"]]
        self.rows = d["rows"]
        self.analysis = d["analysis"]
        if len(set(self.columns)) != len(self.columns):
            raise Bad("a column twice: %s" % self.columns)
        if any(len(r) != len(self.columns) for r in self.rows):
            raise Bad("a row with another number of cells")
        if d["total_rows"] < len(self.rows):
            raise Bad("%d rows of %d" % (len(self.rows), d["total_rows"]))
        self.numbers = None

    def dicts(self):
        """Rows by column, numbers as numbers: integers beyond 2^53 are
        texts."""
        if self.numbers is None:
            text = [t == "text" for t in self.types]
            self.numbers = [dict(zip(self.columns, (
                v if t or v is None or isinstance(v, bool) else Decimal(v)
                for v, t in zip(r, text)))) for r in self.rows]
        return self.numbers

    def is_large(self):
        return any(isinstance(v, Decimal) and abs(v) > LARGE // 10**6
                   for r in self.dicts() for v in r.values())


KIND = {"text": str, "int": (int, str), "float": (int, Decimal),
        "time": (int, Decimal), "bytes": (int, str), "percent": (int, Decimal),
        "bool": bool}


def table_problems(t, filtered):
    """Types of cells, signs and shares. An empty table says why it is."""
    out = []
    d = t.document
    if not (t.rows or filtered or d["remarks"] or d["missing"] or
            t.analysis == "trace"):
        out.append("no rows, and does not say why")
    for i, (name, kind) in enumerate(zip(t.columns, t.types)):
        for r in t.rows:
            v = r[i]
            if v is None:
                continue
            if not isinstance(v, KIND[kind]) or \
                    isinstance(v, bool) != (kind == "bool"):
                out.append("%s is %r, no %s" % (name, v, kind))
                break
            if kind in ("time", "bytes") and Decimal(v) < 0 and \
                    not MOMENT.search(name) and \
                    (t.analysis, name) not in SIGNED:
                out.append("%s is %s: less than nothing" % (name, v))
                break
            if name in SHARES and t.analysis != "memory" and \
                    not -Decimal("1e-6") <= v <= Decimal("100.000001"):
                out.append("%s is %s" % (name, v))
                break
            if name in ("calls", "count", "spans", "launches", "gaps",
                        "blocks") and kind == "int" and int(v) < 0:
                out.append("%s is %s: less than nothing" % (name, v))
                break
    return out


def trace_problems(t):
    """The arguments of a span are a JSON object of their own."""
    at = t.columns.index("args") if "args" in t.columns else None
    for r in t.rows if at is not None else []:
        if r[at] is None:
            continue
        try:
            d = json.loads(r[at], parse_constant=constant)
        except RecursionError:
            continue
        except ValueError as e:
            return ["args are not JSON: %s: %s" % (e, r[at][:80])]
        if not isinstance(d, dict):
            return ["args are no object: %s" % r[at][:80]]
    return []


# --- sums -------------------------------------------------------------------

def by(rows, keys, column):
    out = defaultdict(Decimal)
    for r in rows:
        out[tuple(r.get(k) for k in keys)] += r[column] or 0
    return out


def who(t):
    """Several profiles side by side have a column that tells them apart."""
    return ["profile"] if "profile" in t.columns else []


def steps_problems(t):
    for r in t.dicts():
        parts = [r[p] for p in PHASES]
        if None in parts:
            continue
        if min(parts) < 0:
            return ["step %s has a phase of %s" % (r["step"], min(parts))]
        if sum(parts) != r["dur_us"]:
            return ["step %s: phases sum to %s of %s" % (
                r["step"], sum(parts), r["dur_us"])]
    return []


def idle_problems(t):
    shares = by(t.dicts(), who(t) + ["device"], "share_pct")
    # devices may have one name: then it is so many hundreds
    return ["shares of %s sum to %s" % (k[-1], v) for k, v in shares.items()
            if abs(v - 100 * round(v / 100)) > Decimal("0.001")][:1]


def critical_problems(t, steps):
    """Against the steps of the same profile, where their numbers differ."""
    if steps is None or t.is_large() or steps.is_large():
        return []
    keys = who(t) + ["host", "step"]
    rows = [tuple(r.get(k) for k in keys) for r in steps.dicts()]
    want = by(steps.dicts(), keys, "dur_us")
    for k, v in by(t.dicts(), keys, "on_path_us").items():
        if rows.count(k) == 1 and v != want[k]:
            return ["step %s: the path takes %s, the step %s" % (
                k[-1], v, want[k])]
    return []


def memory_problems(t, whole):
    if whole is None or "bytes" not in t.columns or whole.is_large() or \
            t.is_large():
        return []
    keys = who(t) + ["device", "allocator"]
    want = by(whole.dicts(), keys, "peak_bytes")
    got = by(t.dicts(), keys, "bytes")
    return ["%s sums to %s, the peak is %s" % (k[-1], got[k], v)
            for k, v in want.items() if got[k] != v][:1]


def tree_problems(t):
    """A node's own time and its children's make its time."""
    last, sums, rows = {}, defaultdict(Decimal), t.dicts()
    for i, r in enumerate(rows):
        d = int(r["depth"])
        last[d] = i
        if d > 0 and d - 1 in last:
            for c in ("host_us", "device_us"):
                sums[last[d - 1], c] += r[c] or 0
    for i, r in enumerate(rows):
        for c, own in (("host_us", "host_self_us"),
                       ("device_us", "device_self_us")):
            if r[c] is not None and r[own] is not None and \
                    r[own] + sums[i, c] != r[c]:
                return ["%s of %s: own %s and children %s are not %s" % (
                    c, r["name"], r[own], sums[i, c], r[c])]
    return []


GROUPS = {"ops": ["calls", "host_self_us", "device_self_us"],
          "kernels": ["calls", "total_us"],
          "launch": ["launches", "launch_us", "kernels"]}


def group_problems(t, whole):
    """A table that is split further sums to the table."""
    if whole is None or t.is_large() or whole.is_large():
        return []
    for c in GROUPS[t.analysis]:
        a, b = [sum(r[c] for r in x.dicts() if r[c] is not None)
                for x in (whole, t)]
        if a != b:
            return ["%s sums to %s, in groups to %s" % (c, a, b)]
    return []


def sum_problems(tables):
    """tables: (verb, options) -> Table, options as a sorted tuple of pairs."""
    out = []
    for (verb, options), t in tables.items():
        names = {k for k, _ in options}
        found = []
        plain = tables.get((verb, ()))
        if verb == "steps" and not names - {"by", "steps", "region",
                                            "instance"}:
            found = steps_problems(t)
        elif verb == "idle" and not names:
            found = idle_problems(t)
        elif verb == "critical" and not names:
            found = critical_problems(t, tables.get(("steps", ())))
        elif verb == "memory" and names == {"by"}:
            found = memory_problems(t, plain)
        elif verb == "tree" and not names - {"by"} and not t.is_large():
            found = tree_problems(t)
        elif verb in GROUPS and names and not names - {"by", "group"}:
            found = group_problems(t, plain)
        out += [(verb, options, x) for x in found]
    return out + invariant_problems(tables)


def invariant_problems(tables):
    """What tests/truth/invariants.py has to say. Several profiles side by
    side are not what it expects."""
    out, docs = [], {}
    for (verb, options), t in tables.items():
        if who(t) or {k for k, _ in options} - {"by", "group"}:
            continue
        words = (verb,) + tuple(w for k, v in options for w in ("--" + k, v))
        docs[words] = t.document
        out += [(verb, options, "invariant: " + x)
                for x in invariants.problems_of(verb, t.document)]
    return out + [("together", (), "invariant: " + x)
                  for x in invariants.problems_together(docs)]


# --- other forms ------------------------------------------------------------

def csv_problems(data, table):
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        return ["CSV is not UTF-8: %s" % e.reason]
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as e:
        return ["no CSV: %s" % e]
    if not rows:
        return ["CSV without a header"]
    if any(len(r) != len(rows[0]) for r in rows):
        return ["CSV with rows of %s fields" % sorted({len(r) for r in rows})]
    if table is None:
        return []
    if rows[0] != table.columns:
        return ["CSV has other columns than JSON"]
    if len(rows) - 1 != len(table.rows):
        return ["CSV has %d rows, JSON %d" % (len(rows) - 1, len(table.rows))]
    for a, b in zip(rows[1:200], table.rows):
        for x, y, kind, name in zip(a, b, table.types, table.columns):
            if y is None and x != "":
                return ["%s is null in JSON, %r in CSV" % (name, x)]
            if y is not None and kind in ("int", "bytes") and \
                    str(y) != x:
                return ["%s is %s in JSON, %s in CSV" % (name, y, x)]
    return []


def text_problems(data, colored=False):
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        return ["text is not UTF-8: %s" % e.reason]
    if colored:
        text = COLOR.sub("", text)
    m = CONTROL.search(text)
    return ["control character %r in text" % m.group()] if m else []


def stderr_problems(code, err):
    """One sentence where it failed, nothing where it did not."""
    if code not in (0, 1, 2, 3, 4):
        return ["exit %d" % code]
    try:
        text = err.decode("utf-8")
    except UnicodeDecodeError:
        return ["stderr is not UTF-8"]
    if code in (0, 3):
        return ["exit %d, and stderr says %r" % (code, text[:100])] \
            if text else []
    if not re.fullmatch(r"opscope: [^\n]+\n", text):
        return ["exit %d with %d lines on stderr" % (code, text.count("\n"))]
    odd = [c for c in text[:-1] if not c.isprintable()]
    return ["%r on stderr" % odd[0]] if odd else []
