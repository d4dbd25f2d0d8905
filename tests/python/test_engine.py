#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The engine without a framework: which steps it finds, which it traces, and
what it does when things go wrong. A fake recorder and a fake driver write down
what they are asked for."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import lib  # noqa: E402


def _load():
    """opscope._capture by itself: the extension is not needed for it."""
    folder = os.path.join(lib.ROOT, "python", "opscope")
    package = types.ModuleType("opscope")
    package.__path__ = [folder]
    sys.modules["opscope"] = package
    import opscope._capture.core as engine
    from opscope._capture import choice
    return engine, choice


engine, choice = _load()


class Recorder:
    """Takes the place of opscope._opscope."""

    def __init__(self):
        self.steps, self.open, self.spans = [], None, []
        self.began = False

    def start(self, logdir, options):
        self.began = True

    def stop(self):
        pass

    def step(self, n):
        self.step_end()
        self.open = n

    def step_end(self):
        if self.open is not None:
            self.steps.append(self.open)
        self.open = None

    def instant(self, name):
        self.spans.append(name)

    def async_begin(self, name, kind=0):
        self.asyncs = getattr(self, "asyncs", [])
        self.asyncs.append([name, self.open, len(self.steps), None])
        return self.asyncs[-1]

    def async_end(self, span):
        span[3] = len(self.steps)

    def laps(self):
        """How many steps were in each stretch between idle devices."""
        return [end - begin for name, _, begin, end in
                getattr(self, "asyncs", ())
                if "idle device" in name and end is not None]

    def begin(self, name, kind=0):
        pass

    def end(self):
        pass

    def trace_python(self, on):
        pass

    def set_rank(self, rank, world):
        pass


class Driver:
    name = "fake"
    queue = False       # does work wait in a queue of its device?

    def __init__(self):
        self.log, self.fails = [], False

    def attach(self, module):
        pass

    def prepare(self):
        self.log.append("prepare")

    def start(self, step):
        if self.fails:
            raise RuntimeError("no tracer here")
        self.log.append("start %d" % step)

    def mark(self, step):
        self.log.append("mark %d" % step)

    def unmark(self):
        self.log.append("unmark")

    def unfinished(self, step):
        self.log.append("unfinished %d" % step)

    def stop(self, stem):
        self.log.append("stop")
        with open(stem + ".xplane.pb", "w"):
            pass
        return [stem + ".xplane.pb"]

    def has_queue(self):
        return self.queue

    def sync(self):
        self.log.append("sync")

    def rank(self):
        return None


def made(**want):
    """An engine with a fake recorder, a fake driver and a clock that a case
    turns."""
    folder = tempfile.TemporaryDirectory()
    e = engine.Engine(Recorder(), folder.name, "run", engine.Want(**want))
    e.keep = folder
    d = Driver()
    e.add_driver(d, None)
    clock = [1000]
    engine._now = lambda: clock[0]
    e.clock = clock
    return e, d


def turn(e, signals, times=1, ms=10):
    """Goes through a loop's turn: signals are (how, kind, key)."""
    for _ in range(times):
        for how, kind, key in signals:
            e.clock[0] += ms * 1_000_000 // len(signals)
            getattr(e, how)(kind, key)


ADAM = ("ended", "optimizer", 1)


def marks(d):
    return [int(x.split()[1]) for x in d.log if x.startswith("mark")]


def test_optimizer_steps_that_were_asked_for_are_traced():
    e, d = made(steps="10..12")
    turn(e, [ADAM], 20)
    assert marks(d) == [10, 11, 12], d.log
    assert d.log[:4] == ["prepare", "sync", "start 10", "mark 10"], d.log
    assert d.log[-3:] == ["unmark", "sync", "stop"], d.log
    assert os.path.basename(e.paths[0]).endswith(".step10.xplane.pb")


def test_the_short_way_is_that_of_all_signals():
    """Whoever marks the steps may tell of them by again() wherever that says
    yes: nothing else is different."""
    def program(short, **want):
        e, d = made(**want)
        taken = 0
        for i in range(60):
            e.clock[0] += 10_000_000
            if i % 3 == 0:
                e.begins("loader", "validation")
            if i in (20, 21, 22):
                e.ended("optimizer", 2)
            if short and e.lead is not None and e.lead.key == 1 and e.again(
                    e.lead):
                taken += 1
            else:
                e.ended("optimizer", 1)
        state = [e.native.steps, e.step, d.log, e.taken, [
            (s.kind, s.key, s.count, s.last, s.last_before, s.alone)
            for s in e.sources.values()]]
        e.end()
        return state, taken
    for want in ({"steps": "10..12"}, {"steps": "1000"}, {"steps": "every 7"},
                 {}, {"everything": True}):
        plain, _ = program(False, **want)
        short, taken = program(True, **want)
        assert short == plain, (want, short, plain)
        if want.get("steps") == "1000":
            assert taken > 50, taken
    e, _ = made(steps="1000")
    turn(e, [ADAM], 5)
    e.lead.thread += 1
    assert not e.again(e.lead), "another thread's"


def test_a_window_ends_where_numbers_begin_anew():
    """A program's own numbers may begin anew in each epoch, before the window
    is over, and before the fifth."""
    for epoch in (7, 4):
        e, d = made()
        for i in range(100):
            e.clock[0] += 10_000_000
            e.explicit(i % epoch)
        assert 3 <= len(marks(d)) <= 10, (epoch, d.log)
        assert d.log.count("stop") == 1, (epoch, d.log)


def test_what_breaks_leaves_a_whole_recording():
    e, d = made(steps="10..90")
    turn(e, [ADAM], 20)

    def breaks(*args):
        raise RuntimeError("no such thing")
    e._is_over = breaks
    e._next = 0
    turn(e, [ADAM], 20)
    assert d.log[-1] == "stop" and len(e.paths) == 1, d.log
    assert any("no such thing" in p for p in e.problems), e.problems
    stopped = []
    e.native.stop = lambda: stopped.append(True)
    e.choice.over = breaks
    try:
        e.end()
    except RuntimeError:
        pass
    assert stopped and len(e.native.steps) >= 39, e.native.steps


def test_a_device_that_fails_ends_no_tracing():
    e, d = made(steps="30..31")
    d.queue, fails = True, []

    def sync():
        if len(fails) < 2:
            fails.append(True)
            raise RuntimeError("a computation failed")
    d.sync = sync
    turn(e, [ADAM], 40)
    assert len(fails) == 2 and marks(d) == [30, 31], d.log
    assert not e.problems, e.problems


def test_what_is_taken_over_stays_as_it_was():
    """torch's export writes into the same file again."""
    e, _ = made()
    path = os.path.join(e.logdir, "t.json")
    for text in ("first", "second"):
        with open(path, "w") as f:
            f.write(text)
        e.adopt(path)
    found = []
    for p in e.paths:
        with open(p) as f:
            found.append(f.read())
    assert found == ["first", "second"], found


def test_too_many_loaders_are_said_and_marks_still_count():
    e, _ = made(steps="1000")
    for i in range(300):
        turn(e, [("begins", "loader", i)])
    assert any("opscope.step" in p for p in e.problems), e.problems
    e.explicit(5)
    e.explicit(6)
    assert e.step == 6, e.step


def test_sentences_may_hold_any_name():
    from opscope._capture.notes import Notes
    with tempfile.TemporaryDirectory() as folder:
        notes = Notes(folder)
        notes._is_recorded = True
        notes.problem("make the file l\udcff")
        with open(os.path.join(folder, "%d.notes" % os.getpid())) as f:
            assert f.read() == "make the file l\\udcff\n"


def test_ranks_of_other_hosts_are_of_one_job():
    from opscope._capture.ranks import job_name
    mine = job_name({})
    assert mine == "%d" % os.getppid()
    assert job_name({"TORCHELASTIC_RUN_ID": "none"}) == mine
    slurm = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}
    assert job_name(slurm) == job_name({**slurm, "PWD": "/x"}) == "77_0"
    assert "/" not in job_name({"TORCHELASTIC_RUN_ID": "../../x"})


def test_exceptions_of_any_kind_are_printed():
    import dataclasses
    from opscope._capture import frames

    @dataclasses.dataclass(frozen=True)
    class Frozen(Exception):
        code: int

    class Odd(Exception):
        exceptions = 3
    for error in (Frozen(1), Odd("x"), ValueError("y")):
        try:
            raise error
        except Exception as e:
            frames.clean(e)
            assert e.__traceback__ is not None


def test_separate_steps_are_separate_captures():
    e, d = made(steps="2,10,15")
    turn(e, [ADAM], 20)
    assert marks(d) == [2, 10, 15], d.log
    assert d.log.count("stop") == 3 and len(set(e.paths)) == 3, e.paths


def test_the_first_step_can_be_had_where_the_driver_says_ready():
    e, d = made(steps="1,3")
    e.ready()
    turn(e, [ADAM], 5)
    assert marks(d) == [1, 3], d.log


def test_every_takes_one_of_so_many():
    e, d = made(steps="every 5")
    turn(e, [ADAM], 17)
    assert marks(d) == [5, 10, 15], d.log


def test_seconds_make_no_range_longer():
    e, d = made(steps="2..3,6", seconds=60)
    turn(e, [ADAM], 10)
    assert marks(d) == [2, 3, 6], d.log


def test_a_gan_has_one_step_a_turn():
    e, d = made(steps="10..11")
    turn(e, [("ended", "optimizer", "d"), ("ended", "optimizer", "g")], 20)
    e.end()
    assert marks(d) == [10, 11], d.log
    assert e.lead.key == "g"
    assert 19 <= e.step <= 21, e.step


def test_of_five_to_one_the_rarer_optimizer_is_the_step():
    e, d = made(steps="6..7")
    e.ready()
    e.ready()
    turn(e, [("ended", "optimizer", "d")] * 5 + [("ended", "optimizer", "g")],
         12)
    assert e.lead.key == "g" and e.step == 13, (e.lead.key, e.step)
    assert marks(d) == [6, 7], d.log


def test_the_first_step_of_a_gan_is_a_whole_turn():
    e, d = made(steps="1,3")
    e.ready()
    e.ready()
    turn(e, [("begins", "loader", "x"), ("ended", "optimizer", "d"),
             ("ended", "optimizer", "g")], 6)
    assert marks(d) == [1, 3], d.log
    assert e.lead.key == "g" and e.step == 7, e.step


def test_an_optimizer_that_never_steps_holds_nothing_up():
    e, d = made(steps="70..71")
    e.ready()
    turn(e, [("begins", "loader", "x")], 100)
    assert marks(d) == [70, 71], (d.log, e.step)


def test_an_optimizer_that_need_not_be_waited_for_holds_nothing_up():
    e, d = made(steps="3..4")
    e.ready(2)
    e.spares()
    turn(e, [ADAM], 8)
    assert marks(d) == [3, 4], d.log


def test_a_wanted_step_does_not_go_by_while_optimizers_are_waited_for():
    e, d = made(steps="12..13")
    e.ready(2)
    turn(e, [ADAM], 20)
    assert marks(d) == [12, 13], d.log


def test_an_optimizer_that_joins_in_late_takes_nothing_over():
    e, d = made(steps="40")
    turn(e, [ADAM], 20)
    turn(e, [ADAM, ("ended", "optimizer", "late")], 30)
    assert e.lead.key == ADAM[2] and e.step == 51, (e.lead.key, e.step)
    assert marks(d) == [40], d.log


def test_optimizers_that_take_over_from_each_other_are_counted_on():
    e, d = made(steps="1000")
    for _ in range(3):
        turn(e, [ADAM], 100)
        turn(e, [("ended", "optimizer", "other")], 100)
    assert e.step == 601, e.step


def test_a_step_in_which_another_one_took_over_did_not_end():
    e, d = made(steps="8..12")
    turn(e, [ADAM], 10)
    turn(e, [("ended", "optimizer", "other")], 20)
    assert "unfinished 11" in d.log and 11 not in e.taken, d.log
    assert any("within step 11" in p for p in e.problems), e.problems


def test_the_only_step_of_a_window_did_not_end():
    e, d = made(steps="8..12")
    turn(e, [ADAM], 7)
    e.end()
    assert "unfinished 8" in d.log and not e.taken, d.log
    assert len(e.problems) == 1, e.problems


def test_a_critic_of_a_hundred_steps_a_turn_takes_nothing_over():
    e, d = made(steps="1000")
    e.ready(2)
    turn(e, [("ended", "optimizer", "c")] * 100
         + [("ended", "optimizer", "g")], 20)
    assert e.lead.key == "g" and e.step == 21, (e.lead.key, e.step)


def test_of_two_threads_that_train_the_first_is_followed():
    e, d = made(steps="30")
    turn(e, [ADAM], 4)
    for _ in range(40):
        other = threading.Thread(target=turn, args=(
            e, [("ended", "optimizer", "other")], 1))
        other.start()
        other.join()
        turn(e, [ADAM], 1)
    assert e.lead.key == ADAM[2] and marks(d) == [30], (e.lead.key, d.log)


def test_optimizers_lead_loaders_and_accumulation_is_one_step():
    e, d = made(steps="5..6")
    e.ready()
    turn(e, [("begins", "loader", "train")] * 4 + [ADAM], 10)
    assert e.lead.kind == "optimizer" and e.step == 11, e.step
    assert marks(d) == [5, 6], d.log


def test_a_validation_loader_is_no_step_while_training_goes_on():
    e, d = made(steps="100")
    for _ in range(3):
        turn(e, [("begins", "loader", "train")], 10)
        turn(e, [("begins", "loader", "val")], 2)
    assert e.step == 30 and e.lead.key == "train", (e.step, e.lead.key)


def test_batches_of_keras_lead_calls_of_functions():
    e, d = made(steps="3..4")
    turn(e, [("begins", "call", "f"), ("ended", "call", "f")], 3)
    turn(e, [("begins", "batch", "m"), ("begins", "call", "f"),
             ("ended", "call", "f"), ("ended", "batch", "m")], 10)
    assert e.lead.kind == "batch", e.lead.kind


def test_the_dearest_function_is_the_step():
    e, d = made(steps="100")
    for i in range(30):
        for key, ms in (("cheap", 1), ("train", 20)):
            e.begins("call", key)
            e.clock[0] += ms * 1_000_000
            e.ended("call", key)
    assert e.lead.key == "train" and e.step == 30, (e.lead.key, e.step)


def test_a_call_that_prepares_shifts_no_step():
    """A session initializes its variables, then runs; the n-th run is n."""
    e, d = made(steps="10..11")
    for key in ["init"] + ["run"] * 9:
        turn(e, [("begins", "call", key), ("ended", "call", key)])
    assert marks(d) == [], d.log
    turn(e, [("begins", "call", "run"), ("ended", "call", "run")])
    assert marks(d) == [10] and e.step == 10, d.log


def test_without_steps_a_few_are_taken_when_they_are_even():
    e, d = made()
    for ms in (900, 400, 100, 50, 20, 11, 10, 10, 10, 10, 10, 10):
        turn(e, [ADAM], 1, ms)
    turn(e, [ADAM], 30)
    got = marks(d)
    assert 3 <= len(got) <= 10 and got[0] >= 9, got
    assert d.log.count("start %d" % got[0]) == 1 and d.log.count("stop") == 1


def test_ranks_of_one_job_choose_the_same_steps():
    both = [made(), made()]
    one, other = both[0][0], both[1][0]
    os.makedirs(one.folder)
    other.folder = other.choice.folder = one.folder
    for k, (e, d) in enumerate(both):
        d.rank = lambda k=k: (k, 2)
    for i in range(30):
        for k, (e, d) in enumerate(both):   # the second one is even at last
            e.begins("batch", "m")
            one.clock[0] += 10_000_000 * (1 + (k and i % 2 and i < 20) * 9)
            e.ended("batch", "m")
    assert marks(both[0][1]) == marks(both[1][1]) != [], (
        marks(both[0][1]), marks(both[1][1]))
    assert marks(both[0][1])[0] < 15, marks(both[0][1])
    one.end()
    other.end()
    assert not [f for f in os.listdir(one.folder) if "window" in f]


def test_uneven_steps_are_taken_in_the_end_and_said():
    e, d = made()
    for i in range(60):
        turn(e, [ADAM], 1, 10 if i % 2 else 40)
    assert marks(d) and marks(d)[0] <= choice.LAST_CHOICE, d.log
    assert e.choice.uneven


def test_an_end_inside_of_the_window_writes_what_there_is():
    e, d = made(steps="5..50")
    turn(e, [ADAM], 10)
    e.end()
    assert d.log[-1] == "stop" and len(e.paths) == 1
    assert any("inside the window" in p for p in e.problems), e.problems
    assert "unfinished 11" in d.log and e.taken == list(range(5, 11)), d.log
    assert e.native.spans[-1] == engine.NO_STEP, e.native.spans


def test_a_loaders_end_is_that_of_its_last_step():
    fetch, call = ("begins", "loader", 1), ("ended", "call", 1)
    e, d = made(steps="2..50")
    turn(e, [fetch, call], 4)
    turn(e, [fetch, ("withdraw", "loader", 1)])     # of unknown length
    assert e.native.spans == [engine.NO_STEP] and e.native.open is None
    turn(e, [fetch, call], 4)
    turn(e, [("ended", "loader", 1)])               # of known length
    assert e.native.open is None and d.log[-1] == "unmark", d.log
    e.end(at_exit=True)
    assert e.taken == list(range(2, 9)), e.taken
    assert e.native.spans[1:] == [engine.STEP_OVER % 0], e.native.spans


def test_at_the_exit_a_step_with_no_end_is_cut():
    for signals, told in (
            ([("begins", "loader", 1)], [engine.STEP_CUT]),
            ([("begins", "batch", 1), ("ended", "batch", 1)],
             [engine.STEP_OVER % 1000000000]),
            ([("begins", "call", 1), ("ended", "call", 1)],
             [engine.STEP_OVER % 1000000000, engine.STEP_CUT])):
        e, _ = made(steps="2..50")
        turn(e, signals, 4)
        e.clock[0] += 1000000000
        e.end(at_exit=True)
        assert e.native.spans == told, (signals, e.native.spans)


def test_an_evaluation_before_training_is_no_step():
    """Ten batches are asked for, eight come: the window does not hang on a
    loader that is at its end, and training counts from 1."""
    e, d = made(steps="5..14")
    turn(e, [("begins", "loader", "check")], 8)
    turn(e, [("begins", "loader", "train"), ADAM], 30)
    assert marks(d)[-10:] == list(range(5, 15)), d.log
    assert e.taken == list(range(5, 15)) and len(e.paths) == 1, e.paths
    assert e.native.spans[-1] == engine.ANEW and e.step == 31, e.step


def test_who_computes_is_traced_and_hears_of_the_wait():
    """TensorFlow loads the data, JAX trains."""
    e, d = made(steps="10..11")
    d.name, jax = "tensorflow", Driver()
    jax.name = "jax"
    jax.input_begins = lambda: jax.log.append("waits")
    e.add_driver(jax, None)
    for _ in range(20):
        turn(e, [("begins", "loader", ("tensorflow", 1))])
        e.input_begins()
        e.input_ended()
        turn(e, [("begins", "call", ("jax", 2)), ("ended", "call",
                                                  ("jax", 2))])
    assert e.lead.kind == "loader" and marks(jax) == [10, 11], jax.log
    assert not marks(d) and jax.log.count("waits") == 2, (d.log, jax.log)


def test_the_first_steps_stay_when_their_optimizer_leads():
    """A loop with a tape: nobody made the optimizer known before its second
    step ended. The steps until then were steps of training."""
    tape = [("begins", "call", "tape"), ("ended", "call", "tape"), ADAM]
    for steps, want in (("1..3", [1, 2, 3]), ("1,10,20", [1, 10, 20])):
        e, d = made(steps=steps)
        e.ready(0)
        turn(e, tape, 30)
        assert marks(d) == e.taken == want, (steps, d.log)
        assert all(os.path.exists(p) for p in e.paths), e.paths
        assert engine.ANEW not in e.native.spans and e.step == 31


def test_two_batches_of_an_evaluation_are_no_steps():
    e, d = made(steps="1..3")
    turn(e, [("begins", "loader", "check")], 2)
    turn(e, [("begins", "loader", "train"), ADAM], 10)
    assert engine.ANEW in e.native.spans, e.native.spans
    assert e.taken == [3], d.log


def test_models_are_no_steps_once_there_is_an_optimizer():
    e, d = made(steps="5..6")
    turn(e, [("begins", "model", "m")], 3)
    assert e.lead.kind == "model" and e.step == 3
    e.ready()
    turn(e, [ADAM], 10)
    assert marks(d) == [5, 6] and e.step == 11, d.log


def test_a_request_on_demand_is_seen_by_all_ranks_and_removed():
    ranks = [made(steps="demand") for _ in range(2)]
    path = ranks[1][0].demand.path = ranks[0][0].demand.path
    for n in range(20):
        for e, _ in ranks:
            e.demand._polled = -choice.POLL_NS
            turn(e, [ADAM], 1)
        if n == 5:
            open(path, "w").close()
    assert [len(marks(d)) for _, d in ranks] == [3, 3], [
        d.log for _, d in ranks]
    assert not os.path.exists(path)


def test_a_mark_that_fails_is_told_and_the_program_goes_on():
    e, d = made(steps="10..14")

    def mark(step):
        raise RuntimeError("no mark here")
    d.mark = mark
    turn(e, [ADAM], 20)
    assert e.step == 21 and e.taken == list(range(10, 15)), e.taken
    assert any("no mark here" in p for p in e.problems), e.problems


def test_a_tracer_that_fails_is_told_and_the_program_goes_on():
    e, d = made(steps="5..6")
    d.fails = True
    turn(e, [ADAM], 10)
    e.end()
    assert e.step == 11 and not e.paths
    assert any("no tracer here" in p for p in e.problems), e.problems


def test_a_program_that_profiles_itself_is_left_alone():
    e, d = made(steps="5..6")
    turn(e, [ADAM], 3)
    e.foreign(d, "fake.profile")
    turn(e, [ADAM], 10)
    assert not [x for x in d.log if x.startswith("start")], d.log


EVAL = [("begins", "call", ("fake", "eval")), ("ended", "call",
                                               ("fake", "eval"))]
TRAIN = [("begins", "call", ("fake", "train")),
         ("trains", "call", ("fake", "train")),
         ("ended", "call", ("fake", "train"))]


def test_an_evaluation_before_training_is_no_capture_of_it():
    e, d = made(steps="5..6")
    turn(e, EVAL, 12)
    assert e.taken == [5, 6] and len(e.paths) == 1, (e.taken, e.paths)
    old = e.paths[0]
    turn(e, TRAIN, 12)
    e.end()
    assert e.taken == [5, 6] and len(e.paths) == 1, (e.taken, e.paths)
    assert engine.ANEW in e.native.spans and not os.path.exists(old) \
        or old == e.paths[0], (old, e.paths)
    assert e.count() == 12, e.count()


def test_a_helper_that_is_called_in_turn_costs_no_capture():
    e, d = made(steps="1,5")
    turn(e, EVAL + TRAIN, 8)
    e.end()
    assert e.taken == [1, 5] and len(e.paths) == 2, (e.taken, e.paths)
    assert engine.ANEW not in e.native.spans


def test_each_epoch_may_train_in_a_thread_of_its_own():
    e, d = made(steps="4..5")
    hold = []       # a number of a thread that is not given out again
    for _ in range(3):
        t = threading.Thread(target=turn, args=(e, [ADAM], 3))
        t.start()
        t.join()
        hold.append(t)
        blocked = threading.Event()
        other = threading.Thread(target=blocked.wait, args=(60,))
        other.start()
        hold.append((blocked, other))
    e.end()
    for blocked, other in hold[1::2]:
        blocked.set()
        other.join()
    assert e.taken == [4, 5], e.taken
    assert e.count() == 9, e.count()


def test_signals_of_another_thread_are_no_steps():
    e, d = made(steps="100")
    turn(e, [ADAM], 5)
    t = threading.Thread(target=turn, args=(e, [ADAM], 5))
    t.start()
    t.join()
    assert e.step == 6, e.step


def test_explicit_steps_have_the_numbers_that_were_given():
    e, d = made(steps="100..101")
    for i in range(95, 110):
        e.clock[0] += 1000
        e.explicit(i)
    assert marks(d) == [100, 101], d.log


def test_a_capture_on_demand_comes_when_it_is_asked_for():
    e, d = made(steps="demand")
    turn(e, [ADAM], 20, 50)
    assert not marks(d)
    with open(os.path.join(e.logdir, "opscope.capture"), "w"):
        pass
    turn(e, [ADAM], 20, 50)
    assert len(marks(d)) == 3, d.log
    assert not os.path.exists(os.path.join(e.logdir, "opscope.capture"))


def test_the_next_wanted_step_is_that_of_asking_for_each():
    from opscope._capture.window import FOREVER, Window
    for text in ("3..5, 9", "1,10,100", "every 7 for 3", "every 5, 12..13",
                 "50..", "..4", "0"):
        w = Window(text)
        for x in range(120):
            want = next((n for n in range(x + 1, 400) if w.wants(n, 0)),
                        FOREVER)
            assert w.next_after(x) == want, (text, x, w.next_after(x), want)


def test_steps_that_are_counted_anew_are_traced_again():
    e, d = made(steps="3..4")
    for epoch in range(2):
        for n in range(1, 20):
            e.explicit(n)
    e.end()
    assert marks(d) == [3, 4, 3, 4], d.log


def test_steps_that_were_not_reached_are_said():
    for steps, said in (("1,10,100", "after step 12, before 100 of"),
                        ("2,50..60,70..", "before 50..60, 70.. of"),
                        ("5..50", None), ("every 5", None), ("3", None)):
        e, _ = made(steps=steps)
        turn(e, [("begins", "call", 1), ("ended", "call", 1)], 12)
        e.end(at_exit=True)
        text = engine.what_was_missed(e)
        assert said in text if said else text is None, (steps, text)


def test_every_step_goes_to_the_recorder():
    e, d = made(steps="4")
    turn(e, [ADAM], 9)
    assert e.native.steps == [2, 3, 4, 5, 6, 7, 8, 9], e.native.steps
    assert e.native.began


def test_a_device_with_a_queue_is_waited_for_a_few_times():
    e, d = made(steps="1000")
    d.queue = True
    turn(e, [ADAM], 600)
    assert e.native.laps() == [8, 16, 32, 64, 64, 64], e.native.laps()
    waits = [s for s in e.native.asyncs if "waits for the device" in s[0]]
    assert len(waits) == 6 and d.log.count("sync") == 12, d.log
    # between two steps: what a wait takes is in none
    assert all(s[1] is None for s in e.native.asyncs), e.native.asyncs


def test_nobody_waits_where_no_device_has_a_queue():
    e, d = made(steps="1000")
    turn(e, [ADAM], 600)
    assert not e.native.laps() and "sync" not in d.log, d.log


def test_a_window_ends_a_stretch_and_is_in_none():
    e, d = made(steps="40..42")
    d.queue = True
    turn(e, [ADAM], 600)
    assert e.native.laps()[:4] == [8, 16, 13, 64], e.native.laps()
    assert d.log.index("sync") < d.log.index("start 40")


CHATTER = """\
I0000 00:00:1758 123 profiler_session.cc:103] Profiler session initializing.
2026-01-02 03:04:05.678901: I external/local_tsl/tsl/profiler/lib/\
profiler_session.cc:70] Profiler session collecting data.
ERROR:2026-01-02 03:04:05 1:1 CudaDeviceProperties.cpp:26] \
cudaGetDeviceCount failed with code 35
[rank1]:[W1119 20:16:08.362416985 CPUAllocator.cpp:245] Memory block of \
unknown size was allocated before the profiling started
[W1119 20:14:36.651049668 collection.cpp:664] Warning: Torch-Compiled \
Region: 2/0 (function operator())
"""
OTHERS = """\
2026-01-02 03:04:05.678901: I tensorflow/core/util/port.cc:113] oneDNN is on
ERROR: the program's own
[rank1]:[W1119 20:16:08.362416985 reducer.cpp:245] the program's own
"""


def test_what_tracers_say_of_themselves_is_not_shown():
    code = ("import os\nfrom opscope._capture.quiet import Quiet\n"
            "with Quiet():\n    os.write(2, %r)\n"
            % (CHATTER + OTHERS).encode())
    p = subprocess.run([sys.executable, "-c", "import types, sys\n"
                        "o = types.ModuleType('opscope')\n"
                        "o.__path__ = [%r]\nsys.modules['opscope'] = o\n"
                        % sys.modules["opscope"].__path__[0] + code],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stderr.decode() == OTHERS, p.stderr


def test_a_program_that_clears_its_environment_is_told_of_all_the_same():
    from opscope._capture.notes import Notes
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OPSCOPE"] = "1"
        try:
            notes = Notes(folder)
        finally:
            del os.environ["OPSCOPE"]
        notes.problem("a sentence")
        assert len(os.listdir(folder)) == 1, os.listdir(folder)


def test_what_a_fork_leaves_of_an_engine_waits_for_nobody():
    """A thread that is not in the child may have held the lock."""
    e, d = made(steps="2..9")
    loop = [("begins", "loader", 1), ("ended", "loader", 1)]
    heard = []

    def program():
        turn(e, loop, 5)
        e.begins("loader", 1)
        holder = threading.Thread(target=e._lock.acquire)
        holder.start()
        holder.join()
        e.forked()
        heard.append((d.log[:], e.native.steps[:]))
        e.ended("loader", 1)
        turn(e, loop, 5)
        e.withdraw("loader", 1)
        e.input_begins()
        e.explicit(7)
        e.explicit_end()
        e.end()
        heard.append((d.log, e.native.steps))
    t = threading.Thread(target=program, daemon=True)
    t.start()
    t.join(60)
    assert not t.is_alive() and heard[0] == heard[1], heard


def test_drivers_hear_of_a_fork_whoever_began_the_recording():
    from opscope import _capture
    for is_recorded in False, True:
        e, d = made()
        told = []
        d.forked = told.append
        _capture._engine, _capture._is_recorded = e, is_recorded
        _capture._forget()
        assert len(told) == 1 and told[0]._ended != is_recorded, told
        assert _capture.engine() is (told[0] if is_recorded else None)
        assert not is_recorded or told[0].drivers == [d]
    _capture._engine, _capture._is_recorded = None, False


def _train_to_the_exit(path):
    e, d = made(steps="2..9")

    def stop():
        with open(path, "w") as f:
            f.write("\n".join(d.log + e.native.spans))
        e.keep.cleanup()        # nor does what would remove it at the exit
    e.native.stop = stop
    turn(e, [("begins", "call", 1), ("ended", "call", 1)], 4)
    globals()["kept"] = e       # as the package keeps it


def test_a_process_that_multiprocessing_forked_ends_what_it_began():
    """Also where the engine was made in it: it exits without atexit."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "told")
        p = multiprocessing.get_context("fork").Process(
            target=_train_to_the_exit, args=(path,))
        p.start()
        p.join(120)
        assert p.exitcode == 0, p.exitcode
        with open(path) as f:
            told = f.read().splitlines()
        assert "stop" in told and told[-1] == engine.STEP_CUT, told


def test_windows_are_read_as_the_recorder_reads_them():
    from opscope._capture.window import Window
    w = Window("3..5, 9, every 100 for 2, 10s..20s")
    assert [n for n in range(12) if w.wants(n, 0)] == [0, 1, 3, 4, 5, 9]
    assert w.wants(101, 0) and not w.wants(102, 0)
    assert w.wants(50, 10.0) and not w.wants(50, 20.0)
    for bad in ("", "a", "5..3", "every", "every 0", "3.5", "10s", "1,,2",
                "every 10s", "1..2s", "every 2 for 3", "1 2"):
        try:
            Window(bad)
        except ValueError:
            continue
        raise AssertionError("%r was taken" % bad)


if __name__ == "__main__":
    sys.exit(lib.run(sys.modules[__name__]))
