# SPDX-License-Identifier: Apache-2.0
"""Marks, one beside the other: a row for each measure of memory, kind of live
tensor, operation and scope, and for each mark its calls, time and bytes."""

from . import rows as _rows
from .errors import OptionError
from .marks import keys, op_rows
from .results import picked, problems
from .table import Column, Table
from .tree import scope_rows

BY = ("memory", "tensor", "op", "scope")
EACH = ("calls", "us", "bytes", "kept_bytes")


def compare(marks, o, by=None):
    """The table. by: one of BY; None is all but scopes."""
    if by is not None and by not in BY:
        raise OptionError("by is one of %s, not %r" % (", ".join(BY), by))
    marks = picked(marks, o)
    found = {}      # (what, name) -> {mark number: cell}
    for i, mark in enumerate(marks):
        for what in [by] if by else BY[:3]:
            for name, cell in _CELLS[what](mark, o):
                found.setdefault((what, name), {})[i] = cell
    rows = [_row(key, cells, marks) for key, cells in found.items()]
    rows = [r for r in rows if _is_wanted(r, o)]
    rows.sort(key=lambda r: (BY.index(r[0]), -(r[2] or 0), -_last(r), r[1]))
    names = keys(marks)
    t = Table("compare", _columns(names), rows[:o["top"] or None],
              title="Marks side by side: " + ", ".join(names),
              total=len(rows))
    t.remark("growth_bytes is what the last mark has more than the first; "
             "operations and scopes have none: theirs is what they allocated "
             "since the mark before (bytes), and what of that was not freed "
             "by then (kept_bytes).")
    return problems(t, marks)


def _columns(names):
    helps = {"calls": ("int", "calls, or live objects"),
             "us": ("time", "time since the mark before"),
             "bytes": ("bytes", "memory"),
             "kept_bytes": ("bytes", "of that, not freed by the mark")}
    return [Column("what", "text", ", ".join(BY)),
            Column("name", "text", "of the measure, tensors, operation or "
                                   "scope"),
            Column("growth_bytes", "bytes", "from the first to the last "
                                            "mark")] + [
        Column("%s_%s" % (c, key), helps[c][0], helps[c][1])
        for key in names for c in EACH]


def _row(key, cells, marks):
    """What a mark that looked at tensors did not see, was not there."""
    row, levels = [key[0], key[1], None], []
    for i, mark in enumerate(marks):
        gone = key[0] == "tensor" and mark.live is not None
        cell = cells.get(i, (0, None, 0, None) if gone else (None,) * 4)
        levels.append(cell[2])
        row += cell
    if key[0] in ("memory", "tensor") and len(marks) > 1 and \
            None not in (levels[0], levels[-1]):
        row[2] = levels[-1] - levels[0]
    return row


def _last(row):
    """What the last mark kept, or took, to order by."""
    return row[-1] or row[-3] or row[-2] or 0


def _is_wanted(row, o):
    """min_bytes, min_micros and min_occurrence, by the largest mark."""
    if row[0] == "memory":
        return True
    calls, us, size = (max([v or 0 for v in row[3 + i::len(EACH)]])
                       for i in range(3))
    return (size >= o["min_bytes"] or o["min_bytes"] < 2) and \
        (row[0] == "tensor" or us >= o["min_micros"]
         or o["min_micros"] < 2) and calls >= o["min_occurrence"]


def _memory(mark, o):
    process = mark.memory.get("process", {})
    yield "resident memory", _level(process.get("rss_bytes"))
    yield "resident memory, peak since the mark before", _level(
        process.get("rss_peak_bytes"))
    for device, m in sorted(mark.memory.get("allocators", {}).items()):
        yield "TensorFlow's allocator, %s" % device, _level(m["current"])
        yield "TensorFlow's allocator, %s, peak" % device, _level(m["peak"])
    for kind in ("tensor", "variable", "array"):
        if mark.live is None or kind != "array" and \
                mark.source == "run_metadata":
            continue        # what a session holds Python does not see
        n = sum(g["count"] for g in mark.live if g["kind"] == kind)
        yield "live %ss" % kind, (n, None, mark.live_bytes(kind), None)


def _level(size):
    return None, None, size, None


def live_name(g):
    """tensor float32[100,100] in list main.history."""
    text = "%s %s[%s]" % (g["kind"], g["dtype"],
                          ",".join(str(n) for n in g["shape"]))
    if not g["holder"]:
        return text
    return "%s %s%s" % (text, "" if g["kind"] == "variable" else "in ",
                        g["holder"])


def _tensors(mark, o):
    sums = {}
    for g in mark.live or ():
        have = sums.get(live_name(g), (0, None, 0, None))
        sums[live_name(g)] = (have[0] + g["count"], None,
                              have[2] + g["bytes"], None)
    return sums.items()


def _ops(mark, o):
    for r in _rows.by_name(op_rows(mark)[0], o, "name"):
        yield r["name"], (r["calls"], _rows.value(r, "micros"), r["bytes"],
                          r["kept_bytes"])


def _scopes(mark, o):
    for r in _rows.by_name(scope_rows(mark)[0], o, "path"):
        yield r["path"], (r["calls"], _rows.value(r, "micros"), r["bytes"],
                          None)


_CELLS = {"memory": _memory, "tensor": _tensors, "op": _ops,
          "scope": _scopes}
