# SPDX-License-Identifier: Apache-2.0
"""The tree of name scopes of a mark.

Of graphs `opscope tree --by scope` has it. Eager ops carry no scope in their
names; there the regions that scopes.py drew say where an op ran, and the tree
is put together from `opscope tree --by op`: a node of a graph under the scopes
of its name, an eager op under the regions around it."""

SELF = ("host_self_us", "device_self_us", "self_bytes")
TOTAL = {"host_us": "host_self_us", "device_us": "device_self_us",
         "bytes": "self_bytes"}
BACKWARD = ("gradient_tape/", "gradients/")


KEEP = ("path", "name", "depth", "calls", "host_us", "host_self_us",
        "device_us", "device_self_us", "bytes", "flops", "parameters")
EAGER = ("Eager operations stand under the tf.name_scope in which they ran, "
         "those of graphs under the scopes of their names.")


def scope_rows(mark):
    """(rows, remarks) of the mark's scopes."""
    if mark.scopes:
        rows = from_ops(mark.read("tree", by="op"), set(mark.scopes))
    else:
        rows = [{k: r.get(k) for k in KEEP}
                for r in mark.read("tree", by="scope").dicts()]
    if not mark.memory_is_whole:    # no event is not the same as no memory
        for r in rows:
            r["bytes"] = r["bytes"] or None
    return rows, [EAGER] if mark.scopes else []


def from_ops(t, regions):
    """Walks the rows, each below its caller, and lays them into scopes."""
    nodes, stack = {}, []
    for row in _with_own_bytes(t.dicts()):
        del stack[row["depth"]:]
        around = stack[-1] if stack else ""
        path = _place(row["name"], around)
        stack += [path] * (row["depth"] + 1 - len(stack))
        node = nodes.setdefault(path, {"calls": 0})
        if row["name"] not in regions:
            node["calls"] += row["calls"] or 0
        for c in SELF:
            if row[c] is not None:
                node[c] = node.get(c, 0) + row[c]
    return totals(nodes)


def _place(name, around):
    """The path of a row. Graph nodes are named by their full path,
    scope/op:Type, wherever they ran."""
    graph, _, _ = name.partition(":")
    for prefix in BACKWARD:
        if graph.startswith(prefix):
            graph = graph[len(prefix):]
    if "/" in graph and ":" in name:
        return graph
    return "%s/%s" % (around, graph) if around else graph


def _with_own_bytes(rows):
    """Rows of a tree have the bytes of all inside of them; takes those of
    the rows right below off."""
    for i, row in enumerate(rows):
        inside, k = 0, i + 1
        while k < len(rows) and rows[k]["depth"] > row["depth"]:
            if rows[k]["depth"] == row["depth"] + 1:
                inside += rows[k]["bytes"] or 0
            k += 1
        row["self_bytes"] = None if row["bytes"] is None \
            else max(0, row["bytes"] - inside)
    return rows


def totals(nodes):
    """Adds own values up to the scopes around, and lays out the rows."""
    for path in list(nodes):
        while "/" in path:
            path = path.rpartition("/")[0]
            nodes.setdefault(path, {"calls": 0})
    total = {path: dict.fromkeys(list(TOTAL) + ["calls"]) for path in nodes}
    for path, node in nodes.items():
        up = path
        while True:
            sums = total[up]
            sums["calls"] = (sums["calls"] or 0) + node["calls"]
            for c, own in TOTAL.items():
                if node.get(own) is not None:
                    sums[c] = (sums[c] or 0) + node[own]
            if "/" not in up:
                break
            up = up.rpartition("/")[0]
    out = []
    for path in sorted(nodes):
        own = nodes[path]
        out.append(dict(total[path], path=path, depth=path.count("/"),
                        name=path.rpartition("/")[2], flops=None,
                        parameters=None,
                        host_self_us=own.get("host_self_us", 0.0),
                        device_self_us=own.get("device_self_us")))
    return out
