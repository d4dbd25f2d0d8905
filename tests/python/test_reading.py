#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading by Python: the same numbers as the command line and as a count of the
raw file, errors as sentences, tables for Arrow, pandas and numpy."""

import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

sys.path.insert(0, lib.PACKAGE)
try:
    import opscope
    import smoke
except ImportError as e:
    opscope, WHY = None, str(e)

TRACE = os.path.join(lib.ROOT, "tests", "data", "torch_cnn",
                     "torch_cnn.pt.trace.json.gz")
OPSCOPE = os.environ.get("OPSCOPE", os.path.join(lib.ROOT, "build",
                                                 "opscope"))


def _open(path=TRACE):
    if opscope is None:
        raise lib.Skip("the extension is not built: %s" % WHY)
    return opscope.open(path)


def _command(*words):
    out = subprocess.run([OPSCOPE, *words, "--format", "json"], check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def test_rows_are_those_of_the_command_line():
    p = _open()
    for analysis in ("ops", "steps", "kernels", "memory", "hints", "trace"):
        doc = _command(analysis, TRACE)
        r = p.run(analysis)
        assert [c.name for c in r.columns] == [
            c["name"] for c in doc["columns"]], analysis
        assert len(r) == len(doc["rows"]), analysis
        for mine, theirs in zip(r, doc["rows"]):
            for a, b in zip(mine, theirs):
                # to the last bit; JSON has large integers as texts
                assert a == b or str(a) == b, (analysis, a, b)


def test_calls_equal_a_count_of_the_raw_file():
    r = _open().ops(top=0)
    with gzip.open(TRACE, "rt") as f:
        events = json.load(f)["traceEvents"]
    counted, stacks = {}, {}
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    for e in sorted(ops, key=lambda e: (e["ts"], -e["dur"])):
        around = stacks.setdefault(e["tid"], [])
        while around and around[-1][0] <= e["ts"]:
            around.pop()
        # torch takes a call of the same name right inside for the same call
        if not around or around[-1][1] != e["name"]:
            counted[e["name"]] = counted.get(e["name"], 0) + 1
        around.append((e["ts"] + e["dur"], e["name"]))
    mine = {row.name: row.calls for row in r if row.kind == "op"}
    assert mine == counted, set(mine.items()) ^ set(counted.items())


def test_times_are_exact_in_picoseconds():
    r = _open().ops(top=5)
    for us, ps in zip(r["host_us"], r.ps("host_us")):
        assert abs(us * 1e6 - ps) < 1, (us, ps)
    try:
        r.ps("name")
        raise AssertionError("texts are no times")
    except opscope.Error:
        pass


def test_every_analysis_is_a_method_with_its_help():
    p = _open()
    names = [a["name"] for a in opscope.analyses()]
    assert "ops" in names and "hints" in names
    for n in names:
        method = getattr(opscope.Profile, n)
        assert "A row is" in method.__doc__, n
    import inspect
    assert "top" in inspect.signature(p.ops).parameters


def test_options_are_those_of_the_command_line():
    p = _open()
    assert len(p.ops(top=3)) == 3
    assert p.ops(top=3).total_rows > 3
    assert all("conv" in r.name for r in p.ops(name="*conv*"))
    assert {r.step for r in p.steps(steps=range(3, 5))} <= {3, 4}


def test_what_is_wrong_is_a_sentence():
    p = _open()
    for call, word in ((lambda: p.ops(tpo=3), "top"),
                       (lambda: p.run("nonsense"), "nonsense"),
                       (lambda: opscope.open("/nowhere"), "/nowhere"),
                       (lambda: p.ops()["nope"], "no column")):
        try:
            call()
        except opscope.Error as e:
            assert word in str(e), str(e)
            continue
        raise AssertionError("nothing was raised: %s" % word)


def test_a_closed_profile_says_so_and_its_results_live_on():
    p = _open()
    r = p.ops(top=2)
    p.close()
    assert len(r) == 2 and r[0].name
    try:
        p.ops()
        raise AssertionError("a closed profile was read")
    except opscope.Error as e:
        assert "closed" in str(e)


def test_a_result_is_a_sequence_of_rows():
    r = _open().ops(top=4)
    assert len(list(r)) == len(r) == 4
    assert r[-1] == r[3] and r[1:3] == [r[1], r[2]]
    assert r.dicts()[0]["name"] == r[0].name == r["name"][0]
    for bad in (4, -5):
        try:
            r[bad]
            raise AssertionError(bad)
        except IndexError:
            pass


def test_rows_are_data_for_other_processes():
    r = _open().ops(top=3)
    again = pickle.loads(pickle.dumps(r.rows()))
    assert again == r.rows() and again[0].name == r[0].name
    assert again[0]._fields == r[0]._fields


def test_a_row_is_found_by_any_kind_of_integer():
    class Number:           # as numpy has them
        def __init__(self, i):
            self.i = i

        def __index__(self):
            return self.i
    r = _open().ops(top=3)
    assert r[Number(1)] == r[1] and r[Number(-1)] == r[2]
    for bad in (1.5, None, b"name", (0,)):
        try:
            r[bad]
        except TypeError as e:
            assert "integer" in str(e), e
            continue
        raise AssertionError("it was taken: %r" % (bad,))


def test_text_json_and_csv_are_the_commands():
    r = _open().ops(top=2)
    assert json.loads(r.json())["analysis"] == "ops"
    assert r.csv().startswith("name,")
    assert "aten::" in str(r) and str(r) == repr(r)


def test_html_escapes_what_a_file_says():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "t.json")
        with open(path, "w") as f:
            json.dump({"traceEvents": [
                {"ph": "X", "name": "<script>alert(1)</script>", "ts": 1,
                 "dur": 2, "pid": 1, "tid": 1, "cat": "cpu_op"}]}, f)
        page = _open(path).ops()._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


NAMES = [b"a\\u0000b", b"<img src=x onerror=alert(1)>", b"\xff\xfe",
         b"\xed\xa0\x80", b"\\ud800", b"\xf0\x9f\x98\x80", b"cut \xe2\x82",
         b"\x1b[31mred", b"a\xc0\xafb", b"", b"'; --", b"x" * 5000]


def hostile(folder):
    """Writes a trace whose names are no UTF-8, or would do harm."""
    events = [b'{"ph":"X","name":"%s","ts":%d,"dur":2,"pid":1,"tid":1,'
              b'"cat":"cpu_op"}' % (name, 10 * i)
              for i, name in enumerate(NAMES)]
    path = os.path.join(folder, "t.json")
    with open(path, "wb") as f:
        f.write(b'{"traceEvents":[' + b",".join(events) + b"]}")
    return path


def test_names_that_are_no_utf8_become_text_everywhere():
    with tempfile.TemporaryDirectory() as folder:
        p = _open(hostile(folder))
    r = p.trace(top=0)
    got = set(r["name"])
    assert len(r) == len(NAMES) and "\U0001f600" in got, got
    assert any("\ufffd" in name for name in got), got
    for text in [str(r), r.json(), r.csv(), r._repr_html_(), *got]:
        text.encode("utf-8")
    assert "<img" not in r._repr_html_()
    assert {row["name"] for row in r.dicts()} == got
    ops = p.ops(top=0)      # by Arrow's interface they are UTF-8
    assert smoke.take(ops) == ops["name"] and set(ops["name"]) <= got


def test_arrow_gives_each_piece_back_once():
    r = _open().ops(top=0)
    for _ in range(3):      # as often as somebody asks
        assert smoke.take(r) == r["name"]
    capsule = r.__arrow_c_stream__()
    names = r["name"]
    del r
    import gc
    gc.collect()
    assert smoke.drained(capsule) == names      # it outlives the result
    del capsule
    unused = _open().ops().__arrow_c_stream__()
    del unused              # nobody took it: the capsule gives it back


def test_reading_keeps_no_memory():
    def once():
        with _open() as p:
            r = p.ops(top=0)
            smoke.take(r), r.json(), r.dicts(), r.columns, r.notes, r.sources
            r._repr_html_(), opscope.analyses()
            for wrong in ("nonsense", "ops"):
                try:
                    p.run(wrong, tpo=1)
                except opscope.Error:
                    pass

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096
    for _ in range(5):
        once()
    before = resident()
    for _ in range(40):
        once()
    grown = resident() - before
    assert grown < 8 << 20, "%d bytes" % grown


class Beside:
    """Counts in another thread, which runs only when this one lets it: Python
    takes the lock from nobody within ten seconds."""

    def __enter__(self):
        self.count, self.end = 0, threading.Event()
        self.was = sys.getswitchinterval()
        sys.setswitchinterval(10)
        self.thread = threading.Thread(target=self._work)
        self.thread.start()
        return self

    def _work(self):
        while not self.end.is_set():
            self.count += 1
            time.sleep(0.0001)

    def __exit__(self, *exc):
        self.end.set()
        sys.setswitchinterval(self.was)
        self.thread.join()

    def counts_during(self, call):
        """Does it count while this is called? A busy machine gets several
        chances."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            before = self.count
            call()
            if self.count > before:
                return True
        return False


def test_other_threads_go_on_while_it_works():
    p = _open()

    def spin():
        until = time.perf_counter() + 0.05
        while time.perf_counter() < until:
            pass
    with Beside() as beside:
        time.sleep(0.01)
        before = beside.count
        spin()
        assert beside.count == before, "the test itself lets others go on"
        raw = opscope._opscope.Profile
        assert beside.counts_during(lambda: raw([TRACE])), "opening"
        assert beside.counts_during(lambda: raw.run(p, "critical")), "running"
        table = raw.run(p, "trace", "top=0")
        assert beside.counts_during(table.json), "printing"


def test_a_profile_serves_several_threads():
    p = _open()
    want = p.ops()["calls"]
    wrong = []

    def work():
        for _ in range(5):
            if p.ops()["calls"] != want:
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


if __name__ == "__main__":
    sys.exit(lib.run(sys.modules[__name__]))
