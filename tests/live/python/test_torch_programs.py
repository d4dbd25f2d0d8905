#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs of many kinds under `opscope record`: the right steps, as
many calls of each op as under torch.profiler, the program's own output, and no
sentence that is not so."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

TEN = ("--steps", "10..12")


class Recorded:
    """A program of the folder under `opscope record`, in a `with` block."""

    def __init__(self, program, *options, args=(), env=None, python=()):
        lib.need_package()
        lib.need("torch")
        self.program, self.options, self.env = program, options, env
        self.args, self.python = args, python

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        args = [a.replace("FOLDER", self.folder) for a in self.args]
        run = lib.Run(self.folder, [
            sys.executable, *self.python,
            os.path.join(lib.PROGRAMS, self.program), *args], self.options,
            self.env)
        run.steps = [r["step"] for r in run.rows("steps")]
        return run

    def __exit__(self, *exc):
        shutil.rmtree(self.folder, ignore_errors=True)


def _alone(program, *args):
    return subprocess.run(
        [sys.executable, os.path.join(lib.PROGRAMS, program), *args],
        env={**os.environ, **lib.SMALL}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=tempfile.gettempdir(), timeout=600)


def _same(what, got, expected):
    assert got == expected, "%s: %r, not %r" % (what, got, expected)


def _calls(rows):
    return {r["name"]: r["calls"] for r in rows
            if not r["name"].startswith("ProfilerStep")}


def _without_unpacking(calls):
    """A loader's batches are unpacked when they come out of the queue, the
    one that is waited for or not: so often is a matter of luck."""
    unpacked = calls.pop("aten::set_", 0)
    return {**calls, "aten::empty": calls.get("aten::empty", 0) - unpacked}


def _is_as_by_hand(program, calls_of=lambda calls: calls, optimizers=1):
    """The same ops, as often, as with torch.profiler around the same steps,
    each of so many optimizer's steps."""
    with Recorded(program, "-q", *TEN) as run:
        _same("steps", run.steps, [10, 11, 12])
        ours = calls_of(_calls(run.rows("ops")))
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        done = _alone("torch_by_hand.py", trace,
                      str(9 * optimizers + 1), str(12 * optimizers),
                      os.path.join(lib.PROGRAMS, program))
        assert done.returncode == 0, done.stderr[-300:]
        theirs = calls_of(_calls(lib.rows_of(lib.result("ops", trace))))
    other = {k: (ours.get(k), theirs.get(k)) for k in set(ours) | set(theirs)
             if ours.get(k) != theirs.get(k)}
    assert not other, "calls, ours and by hand: %s" % other
    assert len(ours) > 20, ours


def test_as_many_calls_as_by_hand_in_a_loop_with_a_loader():
    _is_as_by_hand("torch_loader.py", _without_unpacking)


def test_as_many_calls_as_by_hand_in_a_plain_loop():
    _is_as_by_hand("torch_thread.py")


def test_as_many_calls_as_by_hand_of_two_optimizers():
    _is_as_by_hand("torch_gan.py", optimizers=2)


def test_as_many_calls_as_by_hand_of_a_compiled_model():
    _is_as_by_hand("torch_compile.py")


def _is_unchanged(program, *args, options=TEN):
    """Its output and its status are the same as without opscope."""
    alone = _alone(program, *args)
    with Recorded(program, "-q", *options, args=args) as run:
        _same("status", run.status, alone.returncode)
        _same("stdout", run.out, alone.stdout)
        _same("stderr", run.err, alone.stderr)
        return run.steps


def test_spawned_workers_of_a_loader_say_nothing():
    with Recorded("torch_spawn_loader.py", *TEN) as run:
        _same("steps", run.steps, [10, 11, 12])
        assert "no step was recognised" not in run.err, run.err


def test_forked_processes_that_train_are_traced():
    with Recorded("torch_forked.py", *TEN) as run:
        _same("steps", run.steps, [10, 11, 12] * 2)
        assert "no step was recognised" not in run.err, run.err
        assert "steps 40" in run.out, run.out


def test_an_update_by_hand_is_told_by_backward():
    with Recorded("torch_manual.py") as run:
        assert 3 <= len(run.steps) <= 10, run.steps
        assert "of 50 (steps are calls of backward)" in run.err, run.err
        assert all(r["calls"] % len(run.steps) == 0 for r in run.rows("ops")
                   if r["name"] in ("aten::mm", "aten::tanh")), run.steps


def test_inference_in_a_plain_loop_is_told_by_the_model():
    with Recorded("torch_serve.py") as run:
        assert "of 51 (steps are calls of a model)" in run.err, run.err
        convolved = [r["calls"] for r in run.rows("ops")
                     if r["name"] == "aten::conv2d"]
        _same("convolutions", convolved, [len(run.steps)])


def test_a_traceback_out_of_a_model_has_no_frame_of_ours():
    _same("steps", _is_unchanged("torch_serve.py", "--fail"), [10, 11, 12])


def test_tracebacks_have_no_frame_of_ours():
    for where in ("loader", "closure", "thread", "backward"):
        _same("steps", _is_unchanged("torch_fails.py", where), [10, 11, 12])


def test_a_thread_that_trains_and_asks_for_memory_is_quiet():
    _same("steps", _is_unchanged("torch_thread.py", options=(
        *TEN, "--memory", "--shapes", "--stacks")), [10, 11, 12])


def test_modes_of_the_program_do_not_see_us():
    _same("steps", _is_unchanged("torch_modes.py", options=(
        *TEN, "--memory")), [10, 11, 12])


def test_what_comes_behind_the_last_step_is_none():
    with Recorded("torch_thread.py", "--steps", "38..90") as run:
        _same("steps", run.steps, [38, 39, 40])
        assert "inside the window" in run.err, run.err


def test_two_steps_are_two():
    with Recorded("torch_thread.py", args=("2",)) as run:
        _same("steps", run.steps, [2])
        assert "after step 2," in run.err and "--steps 1..2" in run.err, (
            run.err)


def test_a_closure_is_no_update_of_one_tensor_at_a_time():
    with Recorded("torch_thread.py", "-q", *TEN) as run:
        _same("hints", [r["title"] for r in run.rows("hints")
                        if r["id"] == "slow-op"], [])


def test_a_capture_on_demand():
    with Recorded("torch_wgan.py", "--steps", "demand", args=(
            "FOLDER/logs/opscope.capture",)) as run:
        assert len(run.steps) == 3 and 21 <= run.steps[0] <= 40, run.steps
        assert not os.path.exists(os.path.join(run.logs, "opscope.capture"))


def test_nobody_asks_for_a_capture():
    with Recorded("torch_manual.py", "--steps", "demand") as run:
        assert "nobody asked for a capture in 50 steps" in run.err, run.err


def test_the_rarer_of_two_optimizers_is_the_step():
    with Recorded("torch_wgan.py") as run:
        assert re.search(r"steps \d+ to \d+ of 60 ", run.err), run.err
        _same("calls of RMSprop", [
            r["calls"] for r in run.rows("ops")
            if r["name"] == "Optimizer.step#RMSprop.step"],
            [6 * len(run.steps)])


def _steps_of_optimizers(kind, calls, window=TEN, steps=(10, 11, 12)):
    """One update is one step; `calls` is how often one calls a layer."""
    with Recorded("torch_optimizers.py", "-q", *window, args=(kind,)) as run:
        _same("status of " + kind, run.status, 0)
        _same("steps of " + kind, run.steps, list(steps))
        _same("layers of " + kind, [
            r["calls"] for r in run.rows("ops") if r["name"] == "aten::linear"],
            [calls * len(steps)])
        return run.rows("ops"), run.rows("steps")


def test_optimizers_inside_of_backward_are_one():
    ops, steps = _steps_of_optimizers("hooks", 2)
    _same("calls of SGD", [r["calls"] for r in ops if r["name"] ==
                           "Optimizer.step#SGD.step"], [4 * 3])
    _same("bare", {r["bare_is"] for r in steps} - {"recorded"}, {"measured"})


def test_an_optimizer_inside_of_another_one_is_not_waited_for():
    _steps_of_optimizers("sam", 4)


def test_an_optimizer_that_is_not_used_is_not_waited_for():
    _steps_of_optimizers("choice", 2)
    _steps_of_optimizers("spare", 2)


def test_an_optimizer_that_joins_in_late_changes_no_numbers():
    _steps_of_optimizers("late", 2, ("--steps", "10,30..31"), (10, 30, 31))


def test_optimizers_in_turns_are_counted_on():
    _steps_of_optimizers("turns", 2, ("--steps", "10,35"), (10, 35))


def test_of_two_threads_that_train_one_is_followed():
    with Recorded("torch_optimizers.py", "-q", *TEN, args=("threads",)) as run:
        _same("steps", run.steps, [10, 11, 12])


def test_a_penalty_on_gradients_is_no_step():
    with Recorded("torch_manual.py", *TEN, args=("--penalty",)) as run:
        _same("steps", run.steps, [10, 11, 12])
        _same("layers", [r["calls"] for r in run.rows("ops")
                         if r["name"] == "aten::tanh"], [3])


def test_a_backward_inside_of_backward_is_no_step():
    _same("steps", _is_unchanged("torch_manual.py", "--checkpoint"),
          [10, 11, 12])


def test_an_evaluation_before_training_is_no_step():
    for late in ((), ("--late",)):
        with Recorded("torch_eval_first.py", *TEN, args=late) as run:
            _same("steps", run.steps, [10, 11, 12])
            _same("captures", len([f for f in run.files() if ".step" in f]), 1)
            _same("optimizer steps", [
                r["calls"] for r in run.rows("ops")
                if r["name"] == "Optimizer.step#Adam.step"], [3])
            assert run.rows("steps")[0]["bare_measured_steps"] < 80, run.err


def test_optimizers_that_follow_each_other_are_counted_on():
    with Recorded("torch_eval_first.py", args=("--folds",)) as run:
        assert " of 120 (steps are optimizer steps)" in run.err, run.err


def test_python_I_is_said_to_leave_opscope_out():
    with Recorded("torch_manual.py", *TEN, python=("-uI",)) as run:
        _same("status", run.status, 0)
        assert "python -I leaves opscope out" in run.err, run.err


def test_coverage_advises_whoever_uses_record():
    with Recorded("torch_loader.py", "-q", *TEN) as run:
        text = str(run.rows("coverage"))
        assert "opscope record --memory" in text, text
        for other in ("OPS_SCOPE", "ops_alloc", "HLO", "ProfilerActivity",
                      "take a profile in the program"):
            assert other not in text, other


def test_what_opscopes_own_profile_writes_is_taken():
    with Recorded("torch_own.py", args=("FOLDER/own",),
                  env={"PYTHONPATH": lib.PACKAGE}) as run:
        _same("status", run.status, 0)
        assert "files 1" in run.out, run.out
        _same("steps", run.steps, [2, 3, 4])
        _same("traced", [r["calls"] for r in run.rows("ops")
                         if r["name"] == "aten::linear"], [3])


def test_lightning():
    lib.need("lightning")
    with Recorded("torch_lightning.py", *TEN) as run:
        _same("steps", run.steps, [10, 11, 12])
        assert "after steps 40" in run.out, run.out


def test_the_trainer_of_hugging_face():
    lib.need("transformers", "accelerate")
    with Recorded("torch_trainer.py", *TEN) as run:
        _same("steps", run.steps, [10, 11, 12])
        assert "after steps 30" in run.out, run.out


def test_a_full_disk_is_said_and_left_as_it_was():
    if os.geteuid() != 0:
        raise lib.Skip("only root makes a small file system")
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "none",
                           folder], stderr=subprocess.DEVNULL).returncode:
            raise lib.Skip("no file system can be mounted here")
        try:
            run = lib.Run(folder, [sys.executable, os.path.join(
                lib.PROGRAMS, "torch_wgan.py")], ("--steps", "10..40"),
                cwd=tempfile.gettempdir())
            _same("status", run.status, 0)
            assert "No space left on device" in run.err, run.err
            assert "Failed to write" not in run.err, run.err
            _same("left", [f for f in run.files() if ".part" in f], [])
        finally:
            subprocess.run(["umount", folder])


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
