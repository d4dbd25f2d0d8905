# SPDX-License-Identifier: Apache-2.0
"""A result whose rows were put together here, from several of opscope's own:
marks side by side, scopes of eager ops.

It is an opscope.Result, over rows in Python instead of rows in C. Cells are
plain values; None is what was not recorded. Two tables are equal when their
columns and rows are: so a saved profile can be held against the one that it
was saved from."""

import csv
import io
import json

from opscope.reading import Column as _Column
from opscope.reading import Result

UNITS = {"time": "us", "bytes": "bytes", "percent": "%"}
TEXT_ROWS = 40


def Column(name, type="int", help=None, unit=None):
    """A column; types are text, int, float, time, bytes and percent."""
    return _Column(name, type, unit or UNITS.get(type), help)


class _Rows:
    """What Result asks its table in C for."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.remarks, self.missing, self.notes = [], [], []
        self.sources, self.total_rows = [], len(rows)
        self.title, self.shown = None, None

    def __len__(self):
        return len(self.rows)

    def row(self, i):
        if not 0 <= i < len(self.rows):
            raise IndexError("there are %d rows" % len(self.rows))
        return tuple(self.rows[i])

    def column(self, i):
        return [row[i] for row in self.rows]

    def ps(self, i):
        return [None if row[i] is None else int(round(row[i] * 1000000))
                for row in self.rows]

    def csv(self):
        out = io.StringIO()
        w = csv.writer(out, lineterminator="\r\n")
        w.writerow([c.name for c in self.columns])
        for row in self.rows:
            w.writerow(["" if v is None else v for v in row])
        return out.getvalue()

    def text(self):
        """The columns asked for that have a value in some row."""
        at = [i for i, c in enumerate(self.columns)
              if (self.shown is None or c.name in self.shown)
              and any(row[i] is not None for row in self.rows)]
        rows = self.rows[:TEXT_ROWS]
        cells = [[self.columns[i].name for i in at]] + [
            [text_of(row[i], self.columns[i].type) for i in at]
            for row in rows]
        return "\n".join([self.title, ""] + _lines(
            cells, [self.columns[i].type for i in at]) + self._foot())

    def _foot(self):
        lines = [] if self.rows else ["(no rows)"]
        if min(TEXT_ROWS, len(self.rows)) < self.total_rows:
            lines.append("%d of %d rows" % (min(TEXT_ROWS, len(self.rows)),
                                            self.total_rows))
        if self.remarks or self.missing or self.notes:
            lines.append("")
        lines += self.remarks
        lines += ["not recorded: %s: %s" % (m["what"], m["why"])
                  for m in self.missing]
        return lines + ["note: %d %s" % (n["count"], n["text"])
                        for n in self.notes]

    def __arrow_c_stream__(self, requested_schema=None):
        import pyarrow
        kinds = {"text": pyarrow.string(), "int": pyarrow.int64(),
                 "bytes": pyarrow.int64()}
        return pyarrow.table({
            c.name: pyarrow.array(self.column(i), kinds.get(
                c.type, pyarrow.float64()))
            for i, c in enumerate(self.columns)}).__arrow_c_stream__(
                requested_schema)


class Table(Result):
    """What these calls return: an opscope.Result."""

    def __init__(self, analysis, columns, rows, title=None, like=None,
                 shown=None, total=None):
        super().__init__(_Rows(list(columns), [list(r) for r in rows]),
                         analysis)
        self._table.title, self._table.shown = title or analysis, shown
        if total is not None:
            self._table.total_rows = total
        if like is not None:
            for what in ("missing", "notes", "sources"):
                self._table.__dict__[what] = list(getattr(like, what))

    def names(self):
        return [c.name for c in self.columns]

    def remark(self, *texts):
        """Adds sentences below the table, each once."""
        for text in texts:
            if text not in self._table.remarks:
                self._table.remarks.append(text)
        return self

    def json(self):
        t = self._table
        return json.dumps({
            "analysis": self.analysis, "sources": t.sources,
            "columns": [c._asdict() for c in t.columns], "rows": t.rows,
            "total_rows": t.total_rows, "remarks": t.remarks,
            "missing": t.missing, "notes": t.notes})

    def __eq__(self, other):
        if not isinstance(other, Table):
            return NotImplemented
        return (self.analysis == other.analysis and
                self.names() == other.names() and
                self._table.rows == other._table.rows)

    __hash__ = None


def text_of(value, type):
    """A cell as the text of a table has it."""
    if value is None:
        return "-"
    if type == "bytes":
        return size_text(value)
    if isinstance(value, float):
        return "%.3f" % value if type == "time" else "%.4g" % value
    return str(value)


def size_text(value):
    """Bytes with the unit that fits."""
    sign, n = "-" if value < 0 else "", abs(value)
    if n < 1024:
        return "%s%d B" % (sign, n)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        n /= 1024.0
        if n < 1024:
            break
    return "%s%.2f %s" % (sign, n, unit)


def _lines(cells, types):
    """Columns under each other: texts to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(types))]
    return ["  ".join(
        cell.ljust(widths[i]) if types[i] == "text" else cell.rjust(widths[i])
        for i, cell in enumerate(row)).rstrip() for row in cells]
