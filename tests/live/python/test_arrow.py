#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results in the hands of those who read Arrow's C stream, and of numpy: the
values are those of JSON, to the last bit; what was not recorded is null; all
memory comes back, once."""

import ctypes
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

sys.path.insert(0, lib.PACKAGE)
sys.path.insert(0, os.path.join(lib.ROOT, "tests", "python"))
try:
    import opscope
    import smoke
    import test_reading
except ImportError:
    opscope = None

PROFILES = ("torch_cnn/torch_cnn.pt.trace.json.gz", "tf_keras/vm.xplane.pb",
            "jax_mlp/vm.xplane.pb", "torch_ddp")


def _results(*needs):
    """Every analysis of some profiles, with what JSON says of it."""
    lib.need_package()
    lib.need(*needs)
    for path in PROFILES:
        with opscope.open(os.path.join(lib.ROOT, "tests", "data", path)) as p:
            for table in opscope.analyses():
                r = p.run(table["name"])
                rows = json.loads(r.json())["rows"]
                yield r, {c.name: [row[i] for row in rows]
                          for i, c in enumerate(r.columns)}


def _same(mine, json_value):
    """JSON has large integers as texts."""
    return mine == json_value or (
        isinstance(mine, int) and str(mine) == json_value)


def _check(r, columns, want):
    """Compares {name: list} with JSON's."""
    assert list(columns) == list(want), (list(columns), list(want))
    for name, values in columns.items():
        assert len(values) == len(want[name]), (r.analysis, name)
        for a, b in zip(values, want[name]):
            assert _same(a, b), (r.analysis, name, a, b)


def test_pyarrow_takes_every_result():
    seen = 0
    for r, want in _results("pyarrow"):
        import pyarrow
        t = pyarrow.table(r)
        t.validate(full=True)
        _check(r, t.to_pydict(), want)
        assert r.to_arrow().equals(t)
        for name, column in zip(t.column_names, t.columns):
            assert column.null_count == want[name].count(None), name
            seen += column.null_count
        reader = pyarrow.RecordBatchReader.from_stream(r)
        assert reader.read_all().equals(t)
    assert seen > 1000      # there was something to be null


def test_polars_takes_every_result():
    for r, want in _results("polars"):
        import polars
        frame = polars.DataFrame(r)
        _check(r, frame.to_dict(as_series=False), want)
        assert frame.null_count().sum_horizontal().sum() == sum(
            v.count(None) for v in want.values())


def test_pandas_takes_every_result():
    for r, want in _results("pandas"):
        import pandas
        frames = [r.to_pandas()]
        if hasattr(pandas.DataFrame, "from_arrow"):
            frames.append(pandas.DataFrame.from_arrow(r))
        for frame in frames:
            assert list(frame) == list(want) and len(frame) == len(r)
            for name in frame:
                for a, b in zip(frame[name], want[name]):
                    assert pandas.isna(a) if b is None else _same(
                        getattr(a, "item", lambda v=a: v)(), b) or (
                        float(a) == float(b)), (r.analysis, name, a, b)


def test_duckdb_takes_every_result():
    for r, want in _results("duckdb"):
        import duckdb
        with duckdb.connect() as db:
            got = db.sql("select * from r")
            rows = got.fetchall()
            _check(r, {c: [row[i] for row in rows]
                       for i, c in enumerate(got.columns)}, want)


def test_duckdb_sums_what_we_sum():
    lib.need_package()
    lib.need("duckdb")
    import duckdb
    with opscope.open(os.path.join(lib.ROOT, "tests", "data",
                                   PROFILES[0])) as p:
        ops = p.ops()
    with duckdb.connect() as db:
        (n, calls), = db.sql("select count(*), sum(calls) from ops "
                             "where name like 'aten::%'").fetchall()
    mine = [x.calls for x in ops if x.name.startswith("aten::")]
    assert (n, calls) == (len(mine), sum(mine))


def test_numpy_has_nan_where_nothing_was_recorded():
    for r, want in _results("numpy"):
        import numpy
        for name, values in r.to_numpy().items():
            for a, b in zip(values, want[name]):
                if b is None:
                    assert a is None or numpy.isnan(a), (name, a)
                else:
                    assert _same(getattr(a, "item", lambda v=a: v)(), b) or (
                        float(a) == float(b)), (r.analysis, name, a, b)


class Counting:
    """A result whose stream and batches count how often each is released. A
    release that the reader calls is ours, and goes on to the real one."""

    def __init__(self, result):
        self.result, self.streams, self.arrays = result, [], []
        self.keep = []

    def _released(self, made, real, counts):
        kind = type(made)

        def release(at):
            counts[n] += 1
            pointer = ctypes.cast(at, ctypes.POINTER(kind))
            pointer.contents.release = real
            pointer.contents.release(pointer)
        counts.append(0)
        n = len(counts) - 1
        return release

    def __arrow_c_stream__(self, requested_schema=None):
        capsule = self.result.__arrow_c_stream__(requested_schema)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object,
                                                      ctypes.c_char_p]
        stream = smoke.Stream.from_address(get(capsule, b"arrow_array_stream"))
        kinds = dict(smoke.Stream._fields_), dict(smoke.Array._fields_)
        release = kinds[0]["release"](self._released(
            stream, kinds[0]["release"](ctypes.cast(
                stream.release, ctypes.c_void_p).value), self.streams))
        real_next = kinds[0]["get_next"](ctypes.cast(
            stream.get_next, ctypes.c_void_p).value)

        def get_next(at, out):
            rc = real_next(at, out)
            if rc == 0 and out.contents.release:
                array = kinds[1]["release"](self._released(
                    out.contents, kinds[1]["release"](ctypes.cast(
                        out.contents.release, ctypes.c_void_p).value),
                    self.arrays))
                self.keep.append(array)
                out.contents.release = array
            return rc
        get_next = kinds[0]["get_next"](get_next)
        self.keep += [release, get_next, capsule]
        stream.release, stream.get_next = release, get_next
        return capsule


def _reads_once(read):
    import gc
    with opscope.open(os.path.join(lib.ROOT, "tests", "data",
                                   PROFILES[0])) as p:
        counting = Counting(p.ops())
    taken = read(counting)
    del taken
    gc.collect()
    capsules = [k for k in counting.keep if not callable(k)]
    assert capsules
    counting.keep = [k for k in counting.keep if callable(k)]
    del capsules
    gc.collect()
    assert set(counting.streams) == {1}, counting.streams
    assert not counting.arrays or set(counting.arrays) == {1}, counting.arrays
    return len(counting.arrays)


def test_what_a_reader_takes_comes_back_once():
    lib.need_package()
    lib.need("pyarrow", "polars")
    import polars
    import pyarrow
    assert _reads_once(pyarrow.table) == 1
    assert _reads_once(polars.DataFrame) == 1
    # a reader that takes the stream and nothing of it
    assert _reads_once(pyarrow.RecordBatchReader.from_stream) == 0
    assert _reads_once(lambda r: r.__arrow_c_stream__()) == 0


def test_names_that_are_no_utf8_are_valid_for_every_reader():
    lib.need_package()
    lib.need("pyarrow", "polars", "pandas")
    import polars
    import pyarrow
    with tempfile.TemporaryDirectory() as folder:
        with opscope.open(test_reading.hostile(folder)) as p:
            r = p.ops(top=0)
    t = pyarrow.table(r)
    t.validate(full=True)
    assert t["name"].to_pylist() == r["name"]
    assert polars.DataFrame(r)["name"].to_list() == r["name"]
    assert list(r.to_pandas()["name"]) == r["name"]
    page = r.to_pandas()._repr_html_() + r._repr_html_()
    assert "<img" not in page


def test_an_empty_result_is_an_empty_table():
    lib.need_package()
    lib.need("pyarrow", "polars", "pandas")
    import polars
    import pyarrow
    with opscope.open(os.path.join(lib.ROOT, "tests", "data",
                                   PROFILES[0])) as p:
        r = p.ops(name="no such op")
    assert len(r) == 0
    assert pyarrow.table(r).num_rows == len(polars.DataFrame(r)) == 0
    assert pyarrow.table(r).column_names == list(r.to_pandas())


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
