# SPDX-License-Identifier: Apache-2.0
"""What a model is made of: parameters, bytes and FLOPs by scope, known
without a run, and beside them what was recorded of the scope."""

from . import rows as _rows
from .results import about, made, picked
from .tree import scope_rows

COLUMNS = ("path", "name", "depth", "variables", "parameters", "trainable",
           "bytes", "flops", "calls", "host_us", "device_us", "shape",
           "dtype")


def is_asked(o):
    """Do the options ask for this and for nothing that a run tells?
    trainable_variables_parameter() and float_operation() do."""
    return set(o["select"]) <= {"params", "float_ops", "op_types"} or \
        o["account_type_regexes"] == ["_trainable_variables"]


def model(marks, variables, nodes, o):
    """The table."""
    marks, remarks = picked(marks, o), []
    if o["account_type_regexes"] == ["_trainable_variables"]:
        variables = [v for v in variables if v["trainable"]]
        nodes = []
    rows = {}
    for v in variables:
        _add_variable(rows, v)
    for n in nodes:
        _add_flops(rows, n)
    _explain(variables, nodes, o, remarks)
    _add_times(rows, marks)
    out = [r for r in rows.values() if r["depth"] < o["max_depth"]]
    out = _rows.by_least(_rows.by_name(out, o, "path"), o, remarks)
    t = made("model", COLUMNS, _rows.order_tree(out, o), o, "Model",
             always=("parameters", "flops", "shape"))
    return about(t, marks, remarks) if marks else t.remark(*remarks)


def _explain(variables, nodes, o, remarks):
    if not variables:
        remarks.append("No variables are known: give profile_model(options, "
                       "model=...) or Profiler(graph=...).")
    unknown = sum(v["elements"] is None for v in variables)
    if unknown:
        remarks.append("%d variables of unknown shape are not in the sums."
                       % unknown)
    if any(n["flops"] is not None for n in nodes):
        remarks.append("FLOPs are TensorFlow's own count of one run of the "
                       "graph, of the ops that it knows.")
    elif "float_ops" in o["select"]:
        remarks.append("No FLOPs are known: TensorFlow counts those of the "
                       "nodes of a graph whose shapes are known; give "
                       "profile_model(options, model=...), Profiler(graph="
                       "...), or profile a tf.function.")


def _row(rows, path):
    if path not in rows:
        rows[path] = dict.fromkeys(COLUMNS)
        rows[path].update(path=path, name=path.rpartition("/")[2],
                          depth=path.count("/"))
    return rows[path]


def _add(row, **values):
    for c, v in values.items():
        if v is not None:
            row[c] = (row[c] or 0) + v


def _add_variable(rows, v):
    leaf = _row(rows, v["name"])
    leaf["shape"] = "[%s]" % ",".join("?" if n is None else str(n)
                                      for n in v["shape"])
    leaf["dtype"] = v["dtype"]
    elements = v["elements"]
    for path in _rows.around(v["name"]):
        _add(_row(rows, path), variables=1, parameters=elements,
             bytes=v["bytes"], trainable=elements if v["trainable"] else
             None if elements is None else 0)


def _add_flops(rows, node):
    if node["flops"] is not None:
        for path in _rows.around(node["name"]):
            _add(_row(rows, path), flops=node["flops"])


def _add_times(rows, marks):
    lists = [scope_rows(m)[0] for m in marks]
    for s in _rows.add_up(lists, ("path",)):
        if s["path"] in rows:
            for c in ("calls", "host_us", "device_us"):
                rows[s["path"]][c] = s[c]
