#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as users write them, unchanged, under `opscope record`: the right
steps, every op with a time, the step's true length, the program's own output
and status, and what is left when it dies."""

import ast
import collections
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

# program, what it needs
PROGRAMS = {
    "torch_loader.py": "torch", "torch_gan.py": "torch",
    "torch_accumulate.py": "torch", "torch_infer.py": "torch",
    "torch_compile.py": "torch", "jax_pure_grad.py": "jax",
}   # those of TensorFlow and JAX beside it: test_tf_jax.py


def _run(program, options=(), env=None):
    """Records a program of the folder. The caller removes run.folder."""
    lib.need_package()
    lib.need(PROGRAMS.get(program, "torch"))
    run = None
    folder = tempfile.mkdtemp()
    run = lib.Run(folder, [sys.executable,
                           os.path.join(lib.PROGRAMS, program)],
                  options, env)
    run.folder = folder
    return run


def _remove(run):
    import shutil
    shutil.rmtree(run.folder, ignore_errors=True)


def _check(program, options=("--steps", "10..12"), steps=(10, 11, 12)):
    """What must be true of each."""
    run = _run(program, options)
    try:
        assert run.status == 0, (run.status, run.err[-400:])
        told = re.search(r"\bsteps (\d+)", run.out)
        assert told, "the program's own output is gone: %r" % run.out[-200:]
        rows = run.rows("steps")
        got = tuple(r["step"] for r in rows)
        assert got == steps, "steps %s, not %s; %s" % (got, steps,
                                                       run.err[-300:])
        assert rows[0]["bare_is"] in ("measured", "recorded"), rows[0]
        assert rows[0]["bare_measured_steps"] > 0, rows[0]
        ops = run.rows("ops")
        assert ops, "no op was recorded"
        none = [o["name"] for o in ops if not o["calls"] or (
            o["host_us"] is None and o["device_us"] is None)]
        assert not none, "ops without time: %s" % none[:5]
        assert "opscope:" in run.err, run.err[-200:]
        return run, rows
    except BaseException:
        _remove(run)
        raise


def _case(program):
    def case():
        run, _ = _check(program)
        _remove(run)
    return case


for _name in PROGRAMS:
    globals()["test_steps_10_to_12_of_" + _name[:-3]] = _case(_name)


def test_without_steps_some_are_chosen_and_said():
    run = _run("torch_gan.py")
    try:
        rows = run.rows("steps")
        assert 3 <= len(rows) <= 10, len(rows)
        assert re.search(r"traced steps \d+ to \d+ of \d+", run.err), run.err
    finally:
        _remove(run)


def test_waiting_for_a_batch_counts_once():
    run = _run("torch_loader.py", ("--steps", "10..12"))
    try:
        waits = [r["name"] for r in run.rows("ops")
                 if "waits for a batch" in r["name"]
                 or "enumerate(DataLoader)" in r["name"]]
        assert len(waits) == 1, waits
    finally:
        _remove(run)


def test_steps_1_10_and_20_are_three_captures_in_one_table():
    run = _run("torch_gan.py", ("--steps", "1,10,20"))
    try:
        got = [r["step"] for r in run.rows("steps")]
        assert got == [1, 10, 20], got
    finally:
        _remove(run)


def test_what_tutorials_write_for_steps():
    run = _run("torch_gan.py", ("--profile_options=profile_steps=5,7",))
    try:
        got = [r["step"] for r in run.rows("steps")]
        assert got == [5, 7], got
    finally:
        _remove(run)


def test_memory_shapes_and_stacks_of_torch_when_asked_for():
    run = _run("torch_gan.py", ("--steps", "10..11", "--memory", "--shapes",
                                "--stacks"))
    try:
        assert any(r["host_bytes"] for r in run.rows("ops"))
        assert any("[" in str(r) for r in run.rows("ops", "--group",
                                                    "shapes"))
        assert run.rows("python"), "no Python function"
    finally:
        _remove(run)


def _off_its_own_clock(program, options, env=()):
    """How far what record tells of the bare step is off what the program's own
    clock measured of the same steps, %."""
    run = _run(program, options, {"BARE": "1", **dict(env)})
    try:
        own = float(re.search(r"^bare_us ([\d.]+)", run.out, re.M).group(1))
        told = run.rows("steps")[0]["bare_measured_us"]
    finally:
        _remove(run)
    print("# %s: bare %.1f us, told %.1f" % (program, own, told))
    return abs(told - own) / own


def _is_what_the_program_measures(program, options, env=()):
    """In one process, on the same steps: what else the machine does is in
    both. (Against the program without record: ./dev bench.) A step of which the
    machine was taken away between the two clocks may be the median: one of
    three runs must hold."""
    off = []
    while not off or off[-1] >= 0.02 and len(off) < 3:
        off.append(_off_its_own_clock(program, options, env))
    assert off[-1] < 0.02, "off by %s" % off


def test_the_bare_step_is_that_of_the_programs_own_clock():
    lib.need("torch")
    _is_what_the_program_measures("torch_gan.py", ("--steps", "30..32"))


def test_a_program_that_runs_ahead_has_the_step_of_its_throughput():
    """JAX hands a step over in microseconds; its clock is read where it looks
    at the loss."""
    lib.need("jax")
    off = []
    while not off or off[-1] >= 0.05 and len(off) < 4:
        off.append(_off_its_own_clock("jax_ahead.py", ("--steps", "20..29")))
    # stretches of other steps than those of the clock: the machine is not even
    assert off[-1] < 0.05, "off by %s" % off


def test_traced_steps_last_until_what_they_called_is_over():
    """To hand these steps over takes a small part of what XLA's busiest thread
    then works on them."""
    lib.need("jax")
    run = _run("jax_ahead.py", ("--steps", "20..29"))
    try:
        rows, busy = run.rows("steps"), collections.Counter()
        for span in run.rows("trace"):
            if span["kind"] == "op" and not span["name"].startswith(
                    "opscope: "):
                busy[span["track"]] += span["dur_us"]
        steps, work = sum(r["dur_us"] for r in rows), max(busy.values())
        print("# steps %.0f us, XLA's busiest thread %.0f" % (steps, work))
        assert [r["step"] for r in rows] == list(range(20, 30)), rows
        assert steps > 0.9 * work, (steps, busy)
        assert rows[0]["bare_measured_laps"] >= 1, rows[0]
    finally:
        _remove(run)


def _functions(program, *options):
    """What `python` says of the steps: (function, file)."""
    run = _run(program, ("--steps", "10..12", *options))
    try:
        return {(r["function"], r["file"] or "") for r in run.rows("python")}
    finally:
        _remove(run)


def test_functions_of_torch_are_there_without_those_of_opscope():
    lib.need("torch")
    found = _functions("torch_gan.py", "--stacks")
    assert not [f for f in found if "opscope" in f[1]], found
    # called by a function of ours, in the place of torch's
    assert any(f == "step" and "torch/optim/" in where
               for f, where in found), found


def test_functions_of_jax_programs_are_there_without_those_of_opscope():
    """JAX names files without their folders."""
    lib.need("jax")
    found = _functions("jax_scan.py")
    ours = set()
    folder = os.path.join(lib.PACKAGE, "opscope", "_capture")
    for name in os.listdir(folder):
        if not name.endswith(".py"):
            continue
        with open(os.path.join(folder, name)) as f:
            ours.update((node.name, name) for node in ast.walk(ast.parse(
                f.read())) if isinstance(node, ast.FunctionDef)
                and not node.name.startswith("__"))
    assert len(ours) > 100, ours
    assert not ours & found, ours & found
    assert any(where == "jax_scan.py" for _, where in found), found


def test_a_program_that_runs_ahead_and_is_not_traced():
    lib.need("jax")
    run = _run("jax_ahead.py", ("--steps", "100000"))
    try:
        text = str(run.doc("steps")["remarks"])
        assert "runs ahead of its device" in text, text
        assert "to hand a step over" in text, text
    finally:
        _remove(run)


def test_output_and_status_are_the_programs_own():
    lib.need("torch")
    code = ("import sys, torch\nprint('out')\nprint('err', file=sys.stderr)\n"
            "print(sys.path[0:2], len(sys.argv))\nsys.exit(7)\n")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.py")
        with open(path, "w") as f:
            f.write(code)
        alone = subprocess.run([sys.executable, path], text=True,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        run = lib.Run(folder, [sys.executable, path], ("-q",))
        assert run.status == alone.returncode == 7, run.status
        assert run.out == alone.stdout, (run.out, alone.stdout)
        assert run.err == alone.stderr, (run.err, alone.stderr)


LOOP = """
import os, signal, sys, time
import torch
m = torch.nn.Linear(64, 64)
o = torch.optim.SGD(m.parameters(), lr=0.1)
for i in range(1, 41):
    o.zero_grad()
    m(torch.ones(8, 64)).sum().backward()
    o.step()
    time.sleep(0.002)
    if i == 20:
        %s
print("done")
"""


def _dies(how, options=("--steps", "15..30")):
    lib.need_package()
    lib.need("torch")
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "p.py")
    with open(path, "w") as f:
        f.write(LOOP % how)
    run = lib.Run(folder, [sys.executable, path], options)
    run.folder = folder
    return run


def _is_cut_profile(run):
    rows = run.rows("steps")
    assert rows[0]["step"] == 15 and 5 <= len(rows) <= 7, [
        r["step"] for r in rows]
    assert "inside the window" in run.err, run.err[-300:]


def test_an_exception_inside_of_the_window_leaves_what_was_traced():
    run = _dies("raise ValueError('oops')")
    try:
        assert run.status == 1 and "ValueError: oops" in run.err
        _is_cut_profile(run)
    finally:
        _remove(run)


def test_sys_exit_inside_of_the_window_leaves_what_was_traced():
    run = _dies("sys.exit(5)")
    try:
        assert run.status == 5
        _is_cut_profile(run)
    finally:
        _remove(run)


def test_an_interrupt_inside_of_the_window_leaves_what_was_traced():
    run = _dies("os.kill(os.getpid(), signal.SIGINT)")
    try:
        assert run.status in (130, 1), run.status
        _is_cut_profile(run)
    finally:
        _remove(run)


def test_a_kill_leaves_what_opscope_recorded_and_says_what_is_gone():
    run = _dies("os.kill(os.getpid(), signal.SIGKILL)")
    try:
        assert run.status == 137, run.status
        steps = [r["step"] for r in run.rows("steps")]
        assert 18 <= len(steps) <= 21, steps
        assert [r["cut"] for r in run.rows("steps")][-2:] == [False, True], (
            "the step in which it was killed is told as whole")
        gone = [r for r in run.rows("coverage")
                if "tracer" in str(r)]
        assert gone, "coverage does not tell that the tracer's data died"
    finally:
        _remove(run)


def test_a_script_that_profiles_itself_is_taken_as_it_is():
    run = _run("torch_schedule.py")
    try:
        assert run.status == 0, run.err[-300:]
        assert "profiles itself" in run.err, run.err
        assert len(run.rows("steps")) >= 1
    finally:
        _remove(run)


def test_two_ranks_choose_the_same_steps():
    run = _run("torch_ddp.py")
    try:
        steps = {}
        for r in run.rows("steps"):
            steps.setdefault(r["host"], []).append(r["step"])
        assert len(steps) == 2, steps
        first, second = steps.values()
        assert first == second, steps
    finally:
        _remove(run)


def test_two_ranks_become_one_trace_of_two():
    run = _run("torch_ddp.py", ("--steps", "10..12"))
    try:
        assert run.status == 0, (run.status, run.err[:400])
        ranks = {r["rank"] for r in run.rows("ranks")}
        assert ranks == {0, 1}, ranks
        steps = [r["step"] for r in run.rows("steps")]
        assert sorted(steps) == [10, 10, 11, 11, 12, 12], steps
    finally:
        _remove(run)


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
