# SPDX-License-Identifier: Apache-2.0
"""Reading profiles: open() gives a Profile, whose methods are the analyses, and
each gives a Result, a table that stands alone."""

import collections
import functools
import html
import importlib
import operator
import os
from urllib.parse import quote

from . import _opscope
from ._analyses import Analyses, option_text
from ._opscope import Error

__all__ = ["open", "analyses", "Profile", "Result", "Column"]

Column = collections.namedtuple("Column", "name type unit help")


def analyses():
    """The analyses: name, help, what a row is, and the options of each."""
    return _opscope.analyses()


def open(path, *more, run=None, threads=0):
    """Opens a profile: a file of any known format, a run's folder, a log
    folder (its newest run, or `run`), or several of them.

    Ranks of one job become one profile; others stand side by side, and
    results then begin with a column "profile"."""
    paths = [path] if isinstance(path, (str, bytes, os.PathLike)) \
        else list(path)
    return Profile(paths + list(more), run=run, threads=threads)


def _options(given):
    """Keyword arguments as ops_run takes them; None is not given."""
    parts = []
    for name, value in given.items():
        if value is not None:
            name = name.rstrip("_").replace("_", "-")   # from_ is `from`
            parts.append("%s=%s" % (quote(name),
                                    quote(option_text(value), safe="",
                                          errors="replace")))
    return "&".join(parts)


class Profile(Analyses, _opscope.Profile):
    """A profile that was opened. Every analysis is a method of it."""

    def __init__(self, paths, run=None, threads=0):
        super().__init__(paths, run=run, threads=threads)
        self.paths = [os.fspath(p) for p in paths]

    def run(self, analysis, **options):
        """Runs an analysis by its name."""
        return Result(super().run(analysis, _options(options)), analysis)

    def sql(self, query):
        """SQL over profiles is not in this version."""
        raise Error("this version of opscope has no SQL yet; "
                    "p.ops().to_pandas() and Arrow's readers do part of it")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
        return False

    def __repr__(self):
        return "opscope.open(%s)" % ", ".join(repr(p) for p in self.paths)

    def __str__(self):
        return str(self.run("overview"))

    def _repr_html_(self):
        return self.run("overview")._repr_html_()


def _module(name):
    """What a conversion needs, imported."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise Error("this needs %s, and %s: pip install %s"
                    % (name, e, name)) from None


@functools.lru_cache(256)
def _row_of(names):
    """The class of rows with these names. A row is plain data, and can be sent
    to another process, which makes the class anew."""
    def reduced(row):
        return _row_again, (names, tuple(row))
    kind = collections.namedtuple("Row", names, rename=True)
    kind.__reduce__ = reduced
    return kind


def _row_again(names, cells):
    return _row_of(names)(*cells)


class Result:
    """A table: rows are tuples with names, in the order in which they are
    shown. r[0] is a row, r["host_us"] a column, for row in r goes over rows.
    What was not recorded is None."""

    def __init__(self, table, analysis):
        self._table = table
        self.analysis = analysis
        self.columns = [Column(*c) for c in table.columns]
        self._at = {c.name: i for i, c in enumerate(self.columns)}
        self._row = _row_of(tuple(self._at))

    def __len__(self):
        return len(self._table)

    def __getitem__(self, what):
        if isinstance(what, str):
            return self._table.column(self._index(what))
        if isinstance(what, slice):
            return [self[i] for i in range(*what.indices(len(self)))]
        i = operator.index(what)    # numpy's integers as well
        i = i + len(self) if i < 0 else i
        return self._row(*self._table.row(i))

    def _index(self, name):
        try:
            return self._at[name]
        except KeyError:
            raise Error("%s has no column '%s'; it has %s" % (
                self.analysis, name, ", ".join(self._at))) from None

    def __iter__(self):
        for i in range(len(self)):
            yield self._row(*self._table.row(i))

    def rows(self):
        """All rows, a list of named tuples."""
        return list(self)

    def dicts(self):
        """All rows, a list of dicts."""
        names = list(self._at)
        return [dict(zip(names, self._table.row(i)))
                for i in range(len(self))]

    def ps(self, name):
        """A column of times in picoseconds, exactly."""
        return self._table.ps(self._index(name))

    @property
    def total_rows(self):
        """How many rows there are without top."""
        return self._table.total_rows

    @property
    def remarks(self):
        """Sentences below the table."""
        return self._table.remarks

    @property
    def missing(self):
        """What was not recorded, why, and how to record it."""
        return self._table.missing

    @property
    def notes(self):
        """What was skipped, mended or inferred, with counts."""
        return self._table.notes

    @property
    def sources(self):
        """The files that it was made from."""
        return self._table.sources

    def json(self):
        """As `--format json` prints it."""
        return self._table.json()

    def csv(self):
        """As `--format csv` prints it."""
        return self._table.csv()

    def text(self):
        """As a terminal of 120 columns shows it."""
        return self._table.text()

    __str__ = text

    def __repr__(self):
        return self.text()

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def to_arrow(self):
        """A pyarrow.Table, without a copy of its own."""
        return _module("pyarrow").table(self)

    def to_numpy(self):
        """A dict of arrays by column: numbers that were not recorded are nan
        (integers with such ones become floats), texts are objects."""
        numpy = _module("numpy")
        out = {}
        for i, c in enumerate(self.columns):
            v = self._table.column(i)
            if c.type == "text":
                out[c.name] = numpy.array(v, dtype=object)
            elif c.type in ("int", "bytes", "bool") and None not in v:
                out[c.name] = numpy.array(
                    v, dtype=bool if c.type == "bool" else "int64")
            else:
                out[c.name] = numpy.array(
                    [float("nan") if x is None else float(x) for x in v],
                    dtype="float64")
        return out

    def to_pandas(self):
        """A pandas.DataFrame; integers that may lack a value are Int64."""
        pandas = _module("pandas")
        data = {}
        kinds = {"int": "Int64", "bytes": "Int64", "bool": "boolean",
                 "text": object}
        for i, c in enumerate(self.columns):
            v = self._table.column(i)
            data[c.name] = pandas.array(v, dtype=kinds[c.type]) \
                if c.type in ("int", "bytes", "bool") else pandas.Series(
                    v, dtype=kinds.get(c.type, "float64"))
        return pandas.DataFrame(data, columns=[c.name for c in self.columns])

    def _repr_html_(self):
        return _html(self)


# --- in a notebook ---------------------------------------------------------

HTML_ROWS = 100


def _shown(column, value):
    if value is None:
        return "-"
    if column.type == "bool":
        return "yes" if value else "no"
    if column.type == "float" or column.type in ("time", "percent"):
        return "{:,.3f}".format(value)
    if column.type in ("int", "bytes"):
        return "{:,}".format(value)
    return str(value)


def _escaped(text):
    """What a file said, so that a page shows it and does nothing else; marks
    that steer a terminal or turn a line around are '?', as on a screen."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    return html.escape(text, True)


def _html(result):
    """The table as HTML, nothing of it unescaped."""
    cols = [(i, c) for i, c in enumerate(result.columns)
            if any(v is not None for v in result._table.column(i)[:HTML_ROWS])]
    out = ["<div class='opscope'><table><caption style='text-align:left'>"
           "<b>%s</b></caption><thead><tr>" % _escaped(result.analysis)]
    for _, c in cols:
        out.append("<th title='%s'>%s%s</th>" % (
            _escaped(c.help or ""), _escaped(c.name),
            " (%s)" % _escaped(c.unit) if c.unit and not c.name.endswith(
                "_" + c.unit) else ""))
    out.append("</tr></thead><tbody>")
    for n in range(min(len(result), HTML_ROWS)):
        row = result._table.row(n)
        out.append("<tr>")
        for i, c in cols:
            side = "left" if c.type == "text" else "right"
            out.append("<td style='text-align:%s'>%s</td>" % (
                side, _escaped(_shown(c, row[i]))))
        out.append("</tr>")
    out.append("</tbody></table>")
    if len(result) > HTML_ROWS:
        out.append("<p>%d of %d rows</p>" % (HTML_ROWS, len(result)))
    below = list(result.remarks)
    below += ["not recorded: %s: %s" % (m["what"], m["why"])
              for m in result.missing]
    below += ["%d: %s" % (n["count"], n["text"]) for n in result.notes]
    if below:
        out.append("<ul>%s</ul>" % "".join(
            "<li>%s</li>" % _escaped(t) for t in below))
    out.append("</div>")
    return "".join(out)
