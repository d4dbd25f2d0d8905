# SPDX-License-Identifier: Apache-2.0
"""smoke.py PROFILE...: all that the package does without a framework, in a
few seconds, by whatever Python runs it. test_versions.py runs it by each."""

import asyncio
import ctypes
import pickle
import sys
import tempfile

import opscope


class Stream(ctypes.Structure):
    """Arrow's C stream, as its specification lays it out."""


class Array(ctypes.Structure):
    pass


Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
    ("private_data", ctypes.c_void_p)]
Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream),
                                  ctypes.POINTER(Array))),
    ("get_last_error", ctypes.c_void_p),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("private_data", ctypes.c_void_p)]


def texts(column):
    """The texts of an Arrow column of large_utf8, None where it is null."""
    n = column.length
    valid = ctypes.cast(column.buffers[0], ctypes.POINTER(ctypes.c_uint8))
    at = ctypes.cast(column.buffers[1], ctypes.POINTER(ctypes.c_int64))
    base = column.buffers[2]
    return [ctypes.string_at(base + at[i], at[i + 1] - at[i]).decode()
            if valid[i // 8] >> i % 8 & 1 else None for i in range(n)]


def drained(capsule, rows=None):
    """Reads the first column of a stream and gives all back, as a reader in C
    does."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    stream = Stream.from_address(pointer(capsule, b"arrow_array_stream"))
    batch, end = Array(), Array()
    assert stream.get_next(stream, batch) == 0
    assert stream.get_next(stream, end) == 0 and not end.release
    stream.release(stream)      # the batch outlives it
    assert not stream.release
    assert rows is None or batch.length == rows
    got = texts(batch.children[0].contents)
    batch.release(batch)
    assert not batch.release
    return got


def take(result):
    """The texts of the first column of a result, by Arrow's interface."""
    return drained(result.__arrow_c_stream__(), len(result))


def reads(path):
    with opscope.open(path) as p:
        for table in opscope.analyses():
            r = getattr(p, table["name"])(top=5)
            assert len(r) <= 5 and r.json() and r.csv() and str(r)
            assert r._repr_html_() and len(r.dicts()) == len(r)
            if r.columns[0].type == "text":
                assert take(r) == r[r.columns[0].name]
    assert len(r) == 0 or r[0] == tuple(r.dicts()[0].values())


def records(folder):
    @opscope.scope("work")
    def work(n):
        return n and work(n - 1)

    async def task():
        async with opscope.scope("task"):
            await asyncio.sleep(0)

    with opscope.profile(folder) as prof:
        for i in range(3):
            opscope.step(i)
            with opscope.scope("outer", size=i, text="a", real=0.5):
                work(2)
            asyncio.run(task())
            opscope.scalar(tag="loss", step=i, value=1 / (i + 1))
            opscope.counter("queue", i)
        opscope.instant("done")
    calls = dict(zip(prof.ops()["name"], prof.ops()["calls"]))
    assert calls["outer"] == 3 and calls["work"] == 9, calls
    assert [r.step for r in prof.steps()] == [0, 1, 2]
    assert prof.folder and not prof.problems, prof.problems


def refuses():
    for wrong in (lambda: opscope.open("/nowhere"),
                  lambda: opscope.start("x", steps="5..3"),
                  lambda: opscope.open(PROFILES[0]).ops(20),
                  lambda: opscope.open(PROFILES[0]).ops(tpo=3)):
        try:
            wrong()
        except opscope.Error as e:
            assert len(str(e)) > 10 and isinstance(e.code, int)
            assert str(pickle.loads(pickle.dumps(e))) == str(e)
            continue
        raise AssertionError("nothing was raised")


PROFILES = sys.argv[1:]
if __name__ == "__main__":
    for profile in PROFILES:
        reads(profile)
    with tempfile.TemporaryDirectory() as logs:
        records(logs)
    refuses()
    assert "IPython" not in sys.modules and "numpy" not in sys.modules
    print("fine")
