#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recording beside worker processes and threads: nothing crashes, nothing waits
for ever, and the files hold what their process did. Each case is a program of
its own, since spawned workers import it."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

OPSCOPE = os.environ.get("OPSCOPE", os.path.join(lib.ROOT, "build",
                                                 "opscope"))
WORKER = """
import multiprocessing, os, signal, sys, threading, time
import opscope

def work(n):
    for _ in range(n):
        with opscope.scope("child", n=n):
            opscope.scalar("s", 1, 2.0)
    return os.getpid()

def own(folder):
    with opscope.profile(folder) as p:
        opscope.step(7)
        work(5)
    assert [r.step for r in p.steps()] == [7]
    assert p.ops(name="child")[0].calls == 5
    assert not p.ops(name="parent")

def die():
    with opscope.scope("dies"):
        os.kill(os.getpid(), signal.SIGKILL)

def joined(p):
    p.join(120)
    if p.exitcode is None:
        p.kill()
        raise AssertionError("a worker hangs")
    return p.exitcode

def main(method):
    context = multiprocessing.get_context(method)
"""


def _program(body, method, record=False):
    """Runs the body with workers of that method. Returns what it printed."""
    if not os.path.exists(os.path.join(lib.PACKAGE, "opscope",
                                       "_opscope.abi3.so")):
        raise lib.Skip("the extension is not built")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as f:
            f.write(WORKER + body + "\nif __name__ == '__main__':\n"
                    "    main(sys.argv[1])\n    print('fine')\n")
        argv = [sys.executable, "-B", "-W", "ignore", path, method]
        if record:
            argv = [OPSCOPE, "record", "-q", "-o", "recorded", "--", *argv]
        p = subprocess.run(argv, cwd=folder, text=True, timeout=400,
                           env={**os.environ, "PYTHONPATH": lib.PACKAGE,
                                "TMPDIR": folder},
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert p.returncode == 0 and p.stdout.endswith("fine\n"), (
            p.returncode, p.stderr[-600:])
        if not record:
            return None
        return subprocess.run([OPSCOPE, "ops", "recorded", "--format", "csv",
                               "--columns", "name,calls"], cwd=folder,
                              check=True, text=True,
                              stdout=subprocess.PIPE).stdout


POOL = """
    with opscope.profile("logs") as prof:
        for i in range(3):
            opscope.step(i)
            with opscope.scope("parent"), context.Pool(2) as pool:
                assert os.getpid() not in pool.map(work, [10] * 4)
                pool.close()
                pool.join()
    calls = {r.name: r.calls for r in prof.ops()}
    assert calls == {"parent": 3, "step": 3}, calls
    assert [r.step for r in prof.steps()] == [0, 1, 2]
    files = os.listdir(prof.folder)
    assert len(files) == 1 and "_%d." % os.getpid() in files[0], files
"""


def test_workers_of_a_pool_leave_the_profile_alone_fork():
    _program(POOL, "fork")


def test_workers_of_a_pool_leave_the_profile_alone_spawn():
    _program(POOL, "spawn")


def test_workers_of_a_pool_leave_the_profile_alone_forkserver():
    _program(POOL, "forkserver")


OWN = """
    with opscope.profile("logs") as prof:
        opscope.step(0)
        with opscope.scope("parent"):
            for n in range(2):
                p = context.Process(target=own, args=("own-%d" % n,))
                p.start()
                assert joined(p) == 0
    assert {r.name: r.calls for r in prof.ops()} == {"parent": 1, "step": 1}
"""


def test_a_worker_may_record_for_itself_fork():
    _program(OWN, "fork")


def test_a_worker_may_record_for_itself_spawn():
    _program(OWN, "spawn")


def test_a_worker_may_record_for_itself_forkserver():
    _program(OWN, "forkserver")


KILLED = """
    with opscope.profile("logs") as prof:
        for i in range(4):
            opscope.step(i)
            p = context.Process(target=die)
            p.start()
            assert joined(p) == -signal.SIGKILL
    assert [r.step for r in prof.steps()] == [0, 1, 2, 3]
    assert not prof.ops(name="dies")
"""


def test_a_worker_that_is_killed_costs_the_parent_nothing():
    _program(KILLED, "fork")


THREADS = """
    sys.setswitchinterval(1e-5)
    end, counts = threading.Event(), [0] * 4

    def loop(k):
        while not end.is_set():
            with opscope.scope("outer"):
                with opscope.scope("of thread %d" % k, k=k):
                    counts[k] += 1

    with opscope.profile("logs") as prof:
        opscope.step(0)
        threads = [threading.Thread(target=loop, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for n in range(12):
            p = context.Process(target=work, args=(50,))
            p.start()
            assert joined(p) == 0
        end.set()
        for t in threads:
            t.join(120)
            assert not t.is_alive()
    calls = {r.name: r.calls for r in prof.ops()}
    assert calls["outer"] == sum(counts), (calls, counts)
    for k in range(4):
        assert calls["of thread %d" % k] == counts[k], (calls, counts)
    assert "child" not in calls
"""


def test_threads_in_scopes_while_workers_are_made_fork():
    _program(THREADS, "fork")


def test_threads_in_scopes_while_workers_are_made_spawn():
    _program(THREADS, "spawn")


RECORDED = """
    opscope.step(0)
    with opscope.scope("parent"), context.Pool(2) as pool:
        pool.map(work, [10] * 4)
        pool.close()
        pool.join()
    opscope.step_end()
"""


def _recorded(method):
    calls = dict(x.split(",") for x in _program(
        RECORDED, method, record=True).splitlines()[1:])
    assert calls["parent"] == "1", calls
    return calls


def test_a_program_with_workers_under_record_fork():
    # who was forked after the first step records like its parent
    assert _recorded("fork").get("child", "40") == "40"


def test_a_program_with_workers_under_record_spawn():
    _recorded("spawn")


READ = """
    p = opscope.open(%r)
    want = p.ops()["calls"]
    results, threads = [], []
    for _ in range(4):
        t = threading.Thread(target=lambda: results.append(p.ops()["calls"]))
        t.start()
        threads.append(t)
        child = context.Process(target=print, args=(len(p.steps()),))
        child.start()
        assert joined(child) == 0
    for t in threads:
        t.join()
    assert results == [want] * 4
""" % os.path.join(lib.ROOT, "tests", "data", "torch_cnn",
                   "torch_cnn.pt.trace.json.gz")


def test_reading_goes_on_while_workers_are_forked():
    _program(READ, "fork")


NOT_OWN = """
    with opscope.profile("logs", steps="0..1") as prof:
        for i in range(4):
            opscope.step(i)
            with opscope.scope("x"):
                pass
        opscope.step_end()
    assert prof.ops(name="x")[0].calls >= 2
    assert prof.overview() and prof.hints() is not None
"""


def test_a_script_that_profiles_and_prints_runs_under_record_too():
    _program(NOT_OWN, "fork")
    assert "x," in _program(NOT_OWN, "fork", record=True)


if __name__ == "__main__":
    sys.exit(lib.run(sys.modules[__name__]))
