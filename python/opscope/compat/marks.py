# SPDX-License-Identifier: Apache-2.0
"""A mark: what was recorded from the last mark (or start()) to a moment that
the program chose, and how much memory it held then.

The time and the memory of operations are in the mark's files and are read by
opscope when they are asked for; what was measured at the moment itself is
kept here."""

import collections

from .table import Table


class Mark:
    """files: what TensorFlow recorded up to here; memory: of the process and
    the allocators; live: groups of live tensors, variables and arrays."""

    FIELDS = ("index", "step", "name", "seconds", "began_unix_ns", "memory",
              "live", "scopes", "problems", "source")

    def __init__(self, index, step=None, name=None, files=(), seconds=None,
                 began_unix_ns=None, memory=None, live=None, scopes=(),
                 problems=(), source="trace"):
        self.index, self.step, self.name = index, step, name
        self.files, self.seconds = list(files), seconds
        self.began_unix_ns = began_unix_ns
        self.memory, self.live = memory or {}, live
        self.scopes, self.problems = list(scopes), list(problems)
        self.source = source        # trace, run_metadata, file, none
        self._tables = {}

    @property
    def key(self):
        """How columns call it: its name, its step, or its number."""
        if self.name:
            return self.name
        return "step%d" % self.step if self.step is not None \
            else "mark%d" % self.index

    def __repr__(self):
        return "<mark %s: %s, %s bytes live in Python>" % (
            self.key, self.source, self.live_bytes())

    @property
    def memory_is_whole(self):
        """Was every allocation told? Else an operation without one may have
        had small ones, and its memory is not known."""
        return self.source == "run_metadata" or \
            bool(self.memory.get("whole"))

    def read(self, analysis, **options):
        """A table of one of opscope's analyses, of this mark alone."""
        at = (analysis, tuple(sorted(options.items())))
        if at not in self._tables:
            self._tables[at] = read(self.files, analysis, **options)
        return self._tables[at]

    def live_bytes(self, kind=None):
        """Bytes of live objects, of one kind or all; None where they were
        not looked at."""
        if self.live is None:
            return None
        return sum(g["bytes"] for g in self.live
                   if kind is None or g["kind"] == kind)

    def as_dict(self):
        return {f: getattr(self, f) for f in self.FIELDS}


def keys(marks):
    """The names of marks; several of one name are told apart."""
    out = []
    for m in marks:
        out.append(m.key if m.key not in out
                   else "%s_%d" % (m.key, m.index))
    return out


def read(paths, analysis, **options):
    """Runs an analysis over files. Marks without files have empty tables."""
    if not paths:
        return Table(analysis, [], [])
    import opscope
    with opscope.open(paths) as profile:
        return profile.run(analysis, **options)


OPS = ("op", "device")      # kinds of rows that are operations
MEMORY = ("bytes", "peak_bytes", "kept_bytes")


def op_rows(mark, shapes=False):
    """(rows, table) of the operations of a mark: those of a graph by node,
    with what each allocated."""
    t = mark.read("ops", **({"group": "shapes"} if shapes else {}))
    memory = _allocated(mark)
    nothing = dict.fromkeys(MEMORY, 0) if memory and mark.memory_is_whole \
        else {}
    out = []
    for r in t.dicts():
        if r["kind"] not in OPS:
            continue
        name, type_ = r["name"], r.get("type")
        row = dict(name=name, type=type_, kind=r["kind"], calls=r["calls"],
                   shapes=r.get("shapes"), **dict.fromkeys(MEMORY))
        for c in ("host_us", "host_self_us", "device_us", "device_self_us",
                  "flops"):
            row[c] = r.get(c)
        full = "%s:%s" % (name, type_) if type_ else name
        row.update(memory.get(full) or memory.get(name) or nothing)
        out.append(row)
    _one_each(out)
    return out, t


def _one_each(rows):
    """Memory is known by operation: of one that has several rows, by shape,
    each row's is not."""
    seen = collections.Counter(r["name"] for r in rows)
    for r in rows:
        if seen[r["name"]] > 1:
            r.update(dict.fromkeys(MEMORY))


def _allocated(mark):
    """What each operation allocated, kept, and had at a time at most."""
    events = {}
    for r in mark.read("allocs").dicts():
        if r["category"] == "before-window" or r["op"] is None:
            continue
        events.setdefault(r["op"], []).append(r)
    return {op: _sum(rows) for op, rows in events.items()}


def _sum(rows):
    """Bytes in all, at the end and at the peak of one op's blocks."""
    changes = []
    for r in rows:
        changes.append((r["alloc_us"] or 0, 1, r["bytes"]))
        if r["free_us"] is not None:
            changes.append((r["free_us"], 0, -r["bytes"]))
    level = peak = 0
    for _, _, change in sorted(changes):
        level += change
        peak = max(peak, level)
    return {"bytes": sum(r["bytes"] for r in rows), "peak_bytes": peak,
            "kept_bytes": sum(r["bytes"] for r in rows
                              if r["free_us"] is None)}
