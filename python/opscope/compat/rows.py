# SPDX-License-Identifier: Apache-2.0
"""What options do to rows: which are kept, in which order, how many.

Rows are dicts. The thresholds, `name`, `scope`, `top` and `order_by` mean what
--min-us, --min-bytes, --name, --scope, --top and --sort mean on the command
line; regular expressions and depths are TensorFlow's. They are applied here,
after marks were added up. A value that was not recorded (None) reaches no
threshold, and a remark says how many rows that left out."""

import fnmatch
import re

from .table import Column

COLUMNS = {c.name: c for c in (
    Column("path", "text", "the scope with all scopes around it"),
    Column("name", "text", "the operation, or the scope's own name"),
    Column("type", "text", "the operation's type, where its name is another"),
    Column("kind", "text", "op, annotation, function, memory, ..."),
    Column("depth", "int", "how many scopes are around it"),
    Column("nodes", "int", "how many nodes of graphs it stands for"),
    Column("calls", "int", "how often it ran; of a name scope, how many "
                           "operations ran in it"),
    Column("host_us", "time", "time on the host, callees included"),
    Column("host_self_us", "time", "time on the host less that of what it "
                                   "called"),
    Column("device_us", "time", "time of the device work launched in it"),
    Column("device_self_us", "time", "time of the device work that it "
                                     "launched itself"),
    Column("bytes", "bytes", "memory allocated in it, freed again or not"),
    Column("peak_bytes", "bytes", "most of that at any one time"),
    Column("kept_bytes", "bytes", "of that, what was not freed again before "
                                  "the mark"),
    Column("output_bytes", "bytes", "size of its outputs, from their shapes"),
    Column("flops", "int", "floating-point operations"),
    Column("parameters", "int", "elements of its variables"),
    Column("share_pct", "percent", "of the own time of all rows that names "
                                   "select"),
    Column("shapes", "text", "shapes of its inputs"),
    Column("inputs", "text", "what it takes"),
    Column("outputs", "text", "shapes of its outputs"),
    Column("graph", "text", "the graph or function that it is in"),
    Column("variables", "int", "how many variables"),
    Column("trainable", "int", "elements of its trainable variables"),
    Column("shape", "text", "the variable's shape"),
    Column("dtype", "text", "the type of its elements"),
)}

# threshold: (column, smallest value that means something)
LEAST = {"min_bytes": ("bytes", 2), "min_peak_bytes": ("peak_bytes", 1),
         "min_residual_bytes": ("kept_bytes", 1),
         "min_output_bytes": ("output_bytes", 1), "min_micros": ("micros", 2),
         "min_accelerator_micros": ("device_us", 1),
         "min_cpu_micros": ("host_us", 1), "min_params": ("parameters", 1),
         "min_float_ops": ("flops", 1), "min_occurrence": ("calls", 1)}

ORDER = {"name": "name", "bytes": "bytes", "peak_bytes": "peak_bytes",
         "residual_bytes": "kept_bytes", "output_bytes": "output_bytes",
         "micros": "micros", "accelerator_micros": "device_us",
         "cpu_micros": "host_us", "params": "parameters",
         "float_ops": "flops", "occurrence": "calls"}

SELECT = {"micros": ("host_us", "device_us"), "bytes": ("bytes",),
          "peak_bytes": ("peak_bytes",), "residual_bytes": ("kept_bytes",),
          "output_bytes": ("output_bytes",), "params": ("parameters",),
          "accelerator_micros": ("device_us",), "cpu_micros": ("host_us",),
          "float_ops": ("flops",), "occurrence": ("calls",),
          "op_types": ("type",), "input_shapes": ("shapes",)}

MEMORY = ("bytes", "peak_bytes", "kept_bytes")

SUMS = ("calls", "host_us", "host_self_us", "device_us", "device_self_us",
        "bytes", "kept_bytes", "flops", "nodes")


def value(row, column):
    """A cell; `micros` is the longer of host and device time."""
    if column == "micros":
        both = [v for v in (row.get("host_us"), row.get("device_us"))
                if v is not None]
        return max(both) if both else None
    return row.get(column)


def add_up(lists, key):
    """Rows of several marks, those of the same key added up; the peak is the
    highest of them, parameters are the same ones each time."""
    out = {}
    for rows in lists:
        for row in rows:
            k = tuple(row.get(c) for c in key)
            have = out.get(k)
            if have is None:
                out[k] = dict(row)
                continue
            for c in SUMS:
                if row.get(c) is not None:
                    have[c] = (have.get(c) or 0) + row[c]
            for c in ("peak_bytes", "parameters"):
                if row.get(c) is not None:
                    have[c] = max(have.get(c) or 0, row[c])
    return list(out.values())


def share(rows):
    """share_pct: of the own time of all rows, on the device if there is
    one."""
    device = any(r.get("device_self_us") for r in rows)
    c = "device_self_us" if device else "host_self_us"
    counted = [r for r in rows if r.get("kind") != "function"]
    total = sum(r.get(c) or 0 for r in counted)
    for r in rows:
        r["share_pct"] = 100.0 * (r.get(c) or 0) / total \
            if total and r.get("kind") != "function" else None
    return rows


def _matches(regexes, text):
    return any(re.fullmatch(x, text) for x in regexes)


def around(path):
    """a/b/c: a, a/b, a/b/c."""
    parts = path.split("/")
    return ["/".join(parts[:i + 1]) for i in range(len(parts))]


def _glob_scope(pattern, path):
    return any(fnmatch.fnmatchcase(p, pattern) for p in around(path))


def by_name(rows, o, key):
    """Regular expressions and patterns on names or paths. A path is matched
    as TensorFlow does it: by all of it, and start_name_regexes and
    trim_name_regexes by that of a scope around it, too."""
    start, trim = o["start_name_regexes"], o["trim_name_regexes"]
    show, hide = o["show_name_regexes"], o["hide_name_regexes"]
    out = []
    for row in rows:
        path = row[key] or ""
        paths = around(path)
        if start != [".*"] and not any(_matches(start, p) for p in paths):
            continue
        if trim and any(_matches(trim, p) for p in paths[:-1]):
            continue
        if show != [".*"] and not _matches(show, path):
            continue
        if hide and _matches(hide, path):
            continue
        if o["scope"] is not None and not _glob_scope(
                o["scope"], row.get("path") or path):
            continue
        if o["name"] is not None and not fnmatch.fnmatchcase(
                row.get("name") or "", o["name"]):
            continue
        out.append(row)
    return out


def by_type(rows, o, remarks):
    """account_type_regexes, where rows have types."""
    types = o["account_type_regexes"]
    if types == [".*"] or types == ["_trainable_variables"]:
        return rows
    if not any("type" in row for row in rows):
        remarks.append("account_type_regexes is not applied: types are known "
                       "of operations, not of scopes; profile_operations() "
                       "and profile_graph() apply it.")
        return rows
    return [r for r in rows if _matches(types, r.get("type") or r["name"])]


def by_least(rows, o, remarks):
    """The thresholds, all of which a row must reach. Both min_micros=1 and
    min_bytes=1, as time_and_memory() sets them, keep what has either."""
    if o["min_micros"] == 1 and o["min_bytes"] == 1:
        rows = [r for r in rows if (value(r, "micros") or 0) > 0 or
                (r.get("bytes") or 0) > 0]
    for key, (column, smallest) in LEAST.items():
        least = o[key]
        if least < smallest:
            continue
        unknown = [r for r in rows if value(r, column) is None]
        rows = [r for r in rows if value(r, column) is not None and
                value(r, column) >= least]
        if unknown:
            remarks.append("%s=%s leaves out %d rows of which it was not "
                           "recorded." % (key, least, len(unknown)))
    return rows


def _sort_key(column):
    def key(row):
        v = value(row, column)
        return (v is None, -v if v is not None else 0, str(row.get("name")))
    return key


def order(rows, o):
    """Flat rows in the order asked for."""
    c = ORDER[o["order_by"]]
    if c == "name":
        return sorted(rows, key=lambda r: (r.get("name") or "",
                                           str(r.get("shapes"))))
    return sorted(rows, key=_sort_key(c))


def order_tree(rows, o):
    """Rows of a tree: siblings in the order asked for, children below their
    parent."""
    c = ORDER[o["order_by"]]
    here = {r["path"] for r in rows}
    below = {}
    for r in rows:
        up = [p for p in around(r["path"])[:-1] if p in here]
        below.setdefault(up[-1] if up else None, []).append(r)
    out = []

    def lay(parent):
        for r in sorted(below.get(parent, ()), key=(
                lambda r: r["name"]) if c == "name" else _sort_key(c)):
            out.append(r)
            lay(r["path"])

    lay(None)
    return out


def first(rows, o):
    """The `top` rows that come first; of a tree the largest ones, which keep
    their order."""
    top = o["top"]
    if not top or len(rows) <= top:
        return rows
    if "path" not in rows[0]:
        return rows[:top]
    c = ORDER[o["order_by"]]
    best = sorted(rows, key=_sort_key("micros" if c == "name" else c))[:top]
    keep = {id(r) for r in best}
    return [r for r in rows if id(r) in keep]


def total_again(rows):
    """Totals of what is shown alone (account_displayed_op_only): own values
    added up over the rows that are left."""
    own = {}
    for r in rows:
        own[r["path"]] = (r.get("host_self_us"), r.get("device_self_us"),
                          r.get("self_bytes"), r.get("self_calls"))
    for r in rows:
        inside = [v for p, v in own.items()
                  if p == r["path"] or p.startswith(r["path"] + "/")]
        for i, c in enumerate(("host_us", "device_us", "bytes", "calls")):
            known = [v[i] for v in inside if v[i] is not None]
            if known:
                r[c] = sum(known)
    return rows


def own_values(rows):
    """Own bytes and calls of the rows of a tree: theirs less those of the
    rows right below."""
    inside = {}
    for r in rows:
        up = r["path"].rpartition("/")[0]
        for c in ("bytes", "calls"):
            inside[up, c] = inside.get((up, c), 0) + (r.get(c) or 0)
    for r in rows:
        for c in ("bytes", "calls"):
            if r.get(c) is not None:
                r["self_" + c] = max(0, r[c] - inside.get((r["path"], c), 0))
    return rows


def shown(o, columns):
    """Columns that the text shows: what `select` names, behind the name, and
    what rows were chosen or ordered by: a reader looks for that."""
    out = ["path" if "path" in columns else "name", "calls"]
    asked = list(o["select"]) + [o["order_by"]]
    asked += [key[len("min_"):] for key, (_, smallest) in LEAST.items()
              if o[key] >= smallest]
    for s in asked:
        out += SELECT.get(s, ())
    if o["show_memory"]:
        out += MEMORY
    if o["show_input_output"]:
        out += ["inputs", "outputs", "shapes"]
    return list(dict.fromkeys(out))


def unmet(o):
    """Remarks on what no result can give."""
    out = []
    for s in ("tensor_value", "device"):
        if s in o["select"]:
            out.append("select '%s' is not honoured: TensorFlow does not "
                       "record it for each operation." % s)
    return out
