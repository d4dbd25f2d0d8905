# SPDX-License-Identifier: Apache-2.0
"""The results of a profiler's marks: operations, scopes, graph, Python's
lines. Each takes the rows of the marks that `step` and `profile_steps` name,
adds them up, applies the options and says in its remarks what it could not
do. What is known without a run is in modeled.py."""

from . import rows as _rows
from .errors import Error
from .marks import op_rows, read
from .table import Table
from .tree import scope_rows, totals

OPS = ("name", "type", "kind", "nodes", "calls", "host_us", "host_self_us",
       "device_us", "device_self_us", "bytes", "peak_bytes", "kept_bytes",
       "flops", "share_pct", "shapes", "inputs", "outputs")
SCOPES = ("path", "name", "depth", "calls", "host_us", "host_self_us",
          "device_us", "device_self_us", "bytes", "flops", "parameters")
GRAPH = ("graph", "name", "type", "depth", "calls", "host_us", "device_us",
         "bytes", "kept_bytes", "output_bytes", "flops", "inputs", "outputs")
CODE = ("path", "name", "depth", "calls", "host_us", "host_self_us",
        "device_us", "device_self_us", "bytes")


def picked(marks, o):
    """The marks of options["step"], or of options["profile_steps"]; else
    all."""
    if o["step"] == -1:
        steps = o["profile_steps"]
        return [m for m in marks if not steps or m.step in steps]
    out = [m for m in marks if m.step == o["step"]]
    if not out:
        raise Error("there is no mark of step %d; there are %s" % (
            o["step"], ", ".join(m.key for m in marks) or "none"))
    return out


def made(analysis, columns, rows, o, title, like=None, always=()):
    """The table: the `top` of the rows, and what no table can give. Its text
    shows what `select` names, and what is in `always`."""
    few = _rows.first(rows, o)
    t = Table(analysis, [_rows.COLUMNS[c] for c in columns],
              [[r.get(c) for c in columns] for r in few], title=title,
              like=like, shown=[*_rows.shown(o, columns), *always],
              total=len(rows))
    return t.remark(*_rows.unmet(o))


def about(t, marks, remarks=()):
    """What the marks themselves have to say."""
    if len(marks) > 1:
        t.remark("All of %s together; options['step'] picks one, compare() "
                 "sets them side by side." % ", ".join(m.key for m in marks))
    if not marks:
        t.remark("Nothing was recorded, or no mark of the steps asked for: "
                 "start(), then profile() or stop().")
    return problems(t, marks).remark(*remarks)


def problems(t, marks):
    """What went wrong, and at which marks."""
    said = {}
    for m in marks:
        for text in m.problems:
            said.setdefault(text, []).append(m.key)
    return t.remark(*("%s: %s" % (", ".join(at), text)
                      for text, at in said.items()))


def operations(marks, nodes, o):
    """Operations of the marks by type; with show_input_output each node of a
    graph for itself, with what it takes and gives."""
    marks, remarks, like = picked(marks, o), [], None
    detailed = o["show_input_output"] or "input_shapes" in o["select"]
    lists = []
    for m in marks:
        rows, table = op_rows(m, detailed)
        lists.append(rows)
        # what lacks is told of a mark in which something ran
        like = table if rows or like is None else like
    rows = _rows.add_up(lists, ("name", "type", "kind", "shapes"))
    _know(rows, nodes, remarks)
    if not marks:       # what is known without a run
        rows = [_node_row(n, {}) for n in nodes]
    if detailed and not any(r.get("shapes") or r.get("inputs")
                            for r in rows):
        remarks.append("Shapes were not recorded: TensorFlow has them of the "
                       "nodes of graphs, not of eager operations.")
    rows = _rows.by_type(_rows.by_name(rows, o, "name"), o, remarks)
    if not detailed:
        rows = _by_type(rows)
    rows = _rows.by_least(_rows.share(rows), o, remarks)
    t = made("operations", OPS, _rows.order(rows, o), o, "Operations", like)
    return about(t, marks, remarks)


def _by_type(rows):
    """Nodes of one type become one row, named by it."""
    for r in rows:
        r["nodes"] = 1 if r["type"] else None
        r["name"] = r["type"] or r["name"]
        r["type"] = None
        r["inputs"] = r["outputs"] = None
    return _rows.add_up([rows], ("name", "kind"))


def only(nodes, remarks):
    """{name: node}, of the names that stand for one node alone."""
    out, twice = {}, set()
    for n in nodes:
        twice.update({n["name"]} if n["name"] in out else ())
        out[n["name"]] = n
    for name in twice:
        del out[name]
    if twice:
        remarks.append("%d names stand for nodes of several graphs: what ran "
                       "under them is not told apart." % len(twice))
    return out


def _know(rows, nodes, remarks):
    """Adds what the graph knows: FLOPs, and what a node takes and gives."""
    known = only(nodes, remarks)
    for r in rows:
        n = known.get(r["name"])
        if n is None:
            continue
        r["inputs"] = ", ".join(n["inputs"])
        r["outputs"] = ", ".join(n["outputs"])
        if r["flops"] is None and n["flops"] is not None:
            r["flops"] = n["flops"] * r["calls"]


def name_scopes(marks, o):
    """The tree of name scopes of the marks."""
    marks, lists, remarks = picked(marks, o), [], []
    for m in marks:
        rows, said = scope_rows(m)
        lists.append(rows)
        remarks += said
    all_rows = _rows.own_values(_rows.add_up(lists, ("path",)))
    rows = _rows.by_type(_rows.by_name(all_rows, o, "path"), o, remarks)
    if o["account_displayed_op_only"] and len(rows) < len(all_rows):
        _rows.total_again(rows)
        remarks.append("Totals are of the rows that names select alone "
                       "(account_displayed_op_only).")
    rows = [r for r in rows if r["depth"] < o["max_depth"]]
    rows = _rows.by_least(rows, o, remarks)
    t = made("name_scope", SCOPES, _rows.order_tree(rows, o), o,
             "Name scopes")
    return about(t, marks, remarks)


def _by_node(marks):
    """{node name: row} of what ran."""
    lists = [op_rows(m)[0] for m in marks]
    return {r["name"]: r for r in _rows.add_up(lists, ("name",))}


def graph(marks, nodes, o):
    """Nodes of the graphs, with what was recorded of each."""
    marks, remarks = picked(marks, o), []
    ran, known = _by_node(marks), only(nodes, remarks)
    names = {n["name"] for n in nodes}
    rows = [_node_row(n, ran if n["name"] in known else {}) for n in nodes]
    _depths(rows)
    left = [r for name, r in ran.items() if name not in names]
    if not nodes:
        remarks.append("No graph is known: give Profiler(graph=...), or "
                       "profile a tf.function; these are the operations that "
                       "ran.")
    elif left:
        remarks.append("Rows without a graph ran in none of them: eager "
                       "operations, and nodes that TensorFlow made when it "
                       "optimized a graph.")
    rows += left
    if not o["show_input_output"]:
        for r in rows:
            r["inputs"] = r["outputs"] = None
    rows = [r for r in rows if (r.get("depth") or 0) < o["max_depth"]]
    rows = _rows.by_least(_rows.by_type(_rows.by_name(
        rows, o, "name"), o, remarks), o, remarks)
    t = made("graph", GRAPH, _rows.order(rows, o), o, "Graph")
    return about(t, marks, remarks)


def _node_row(n, ran):
    out = dict(n, inputs=", ".join(n["inputs"]), takes=n["inputs"],
               outputs=", ".join(n["outputs"]))
    r = ran.get(n["name"], {})
    for c in ("calls", "host_us", "device_us", "bytes", "kept_bytes"):
        out[c] = r.get(c)
    return out


def _depths(rows):
    """depth: the most nodes from one without inputs to this one. Nodes stand
    behind what they take; a loop's way back counts for nothing."""
    depth = {}
    for r in rows:
        up = [depth.get((r["graph"], i.split(":")[0]), -1)
              for i in r["takes"]]
        r["depth"] = depth[r["graph"], r["name"]] = max(up or [-1]) + 1


def python(marks, nodes, o):
    """Lines of Python that made the nodes of a graph, with what these took
    when they ran."""
    marks, remarks, lines = picked(marks, o), [], {}
    ran = _by_node(marks)
    for name, n in only(nodes, remarks).items():
        r = ran.get(name)
        if r is None or not n["code"]:
            continue
        line = lines.setdefault("/".join(n["code"]), {"calls": 0})
        for c, own in (("calls", "calls"), ("bytes", "self_bytes"),
                       ("host_self_us", "host_self_us"),
                       ("device_self_us", "device_self_us")):
            if r[c] is not None:
                line[own] = line.get(own, 0) + r[c]
    if marks and not lines:
        remarks.append("No line is known: TensorFlow knows those that made "
                       "the nodes of a graph, not those that called an eager "
                       "operation; `opscope record --stacks` records these.")
    rows = [r for r in totals(lines) if r["depth"] < o["max_depth"]]
    rows = _rows.by_least(_rows.by_name(rows, o, "path"), o, remarks)
    t = made("python", CODE, _rows.order_tree(rows, o), o,
             "Lines of Python that made the graph")
    return about(t, marks, remarks)


def advice(marks, o):
    """opscope's hints on what was recorded."""
    files = [f for m in picked(marks, o) for f in m.files]
    if not files:
        raise Error("nothing was recorded that advise() could look at: "
                    "start(), then profile() or stop(); or add_step()")
    return read(files, "hints")
