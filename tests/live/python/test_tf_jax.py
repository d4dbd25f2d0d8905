#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More programs of TensorFlow, Keras and JAX as people write them, unchanged,
under `opscope record`: the right steps, the ops that the framework's own
profiler counts in them, the program's own output, and words that fit."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

STEPS = ("--steps", "10..12")
# a pipeline runs ahead on threads of its own: who knows how far
# (PyFunc runs a generator, GatherV2 takes the rows of a batch for Keras)
PIPELINE = re.compile(r"^(Iterator::|\[|PyFunc$|GatherV2)")


def _need(program):
    lib.need_package()
    lib.need("jax" if program.startswith("jax") else "tensorflow")


@contextlib.contextmanager
def _recorded(program, options=STEPS, env=None):
    """A program of the folder, or text of one, under record."""
    folder = tempfile.mkdtemp()
    try:
        path = os.path.join(lib.PROGRAMS, program)
        if "\n" in program:
            path = os.path.join(folder, "p.py")
            with open(path, "w") as f:
                f.write(program)
        yield lib.Run(folder, [sys.executable, path], options, env)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _numbers(run):
    return [r["step"] for r in run.rows("steps")]


def _counts(rows):
    """How often each op ran, without marks and the pipeline's threads."""
    counts = {}
    for r in rows:
        if r["kind"] == "op" and not PIPELINE.match(r["name"]):
            counts[r["name"]] = counts.get(r["name"], 0) + r["calls"]
    return counts


def _by_hand(program):
    """The ops of steps 10 to 12, by the framework's own profiler."""
    folder = tempfile.mkdtemp()
    try:
        lib.bare(program, {"BY_HAND": folder})
        return _counts(lib.rows_of(lib.result("ops", folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_as_by_hand(program, counts):
    alone = _by_hand(program)
    differ = {n: (counts.get(n), alone.get(n))
              for n in sorted(set(counts) | set(alone))
              if counts.get(n) != alone.get(n)}
    assert counts and not differ, "record, by hand: %s" % differ


def _check(program, same, says=()):
    _need(program)
    with _recorded(program) as run:
        assert run.status == 0, (run.status, run.err[-400:])
        assert re.match(r"steps \d+\n$", run.out), run.out[-200:]
        assert _numbers(run) == [10, 11, 12], (_numbers(run), run.err[-300:])
        rows = run.rows("ops")
        none = [o["name"] for o in rows if o["host_us"] is None]
        assert rows and not none, "ops without time: %s" % none[:5]
        for text in says:
            assert text in run.err, run.err
        counts = _counts(rows)
    if same:
        _is_as_by_hand(program, counts)


def _has_the_profilers_ops(program, says=()):
    """The same ops, as often, as by the framework's own profiler around the
    same steps."""
    _need(program)
    with _recorded(program) as run:
        assert run.status == 0, (run.status, run.err[-400:])
        assert re.search(r"\bsteps \d+\n$", run.out), run.out[-200:]
        steps = run.rows("steps")
        got = [r["step"] for r in steps]
        assert got == [10, 11, 12], (got, run.err[-300:])
        assert steps[0]["bare_is"] in ("measured", "recorded"), steps[0]
        assert steps[0]["bare_measured_steps"] > 0, steps[0]
        for text in says:
            assert text in run.err, run.err
        rows = run.rows("ops")
        none = [o["name"] for o in rows if o["host_us"] is None]
        assert not none, "ops without time: %s" % none[:5]
        counts = _counts(rows)
    _is_as_by_hand(program, counts)


def _add_cases():
    for program, says in (("tf_keras_fit.py", []), ("tf_eager.py", []),
                          ("tf_function.py", []), ("tf_v1.py", []),
                          ("tf_data.py", ["input-bound"]),
                          ("jax_jit.py", []), ("jax_scan.py", [])):
        globals()["test_%s_has_the_profilers_ops" % program[:-3]] = (
            lambda p=program, s=says: _has_the_profilers_ops(p, s))


_add_cases()


def test_an_eager_loop_without_optimizer_has_the_profilers_ops():
    _check("tf_module.py", True)


def test_an_eager_gan_has_the_profilers_ops():
    _check("tf_eager_gan.py", True, ["not-jitted"])


def test_a_function_and_its_validation_have_the_profilers_ops():
    _check("tf_function_eval.py", True)


def test_fit_on_a_generator_has_the_profilers_ops():
    _check("tf_keras_generator.py", True, ["input-bound"])


def test_a_donating_jit_and_its_evaluation_have_the_profilers_ops():
    _check("jax_donate.py", True)


def test_a_jitted_method_with_a_static_choice_has_the_profilers_ops():
    _check("jax_static.py", True)


def test_a_scan_that_nobody_compiled_has_steps():
    _check("jax_scan_alone.py", True)


def test_torch_and_jax_in_one_program_both_have_their_ops():
    _need("jax_in_torch.py")
    lib.need("torch")
    with _recorded("jax_in_torch.py") as run:
        assert run.status == 0, (run.status, run.err[-400:])
        assert _numbers(run) == [10, 11, 12], (_numbers(run), run.err[-300:])
        calls = {r["name"]: r["calls"] for r in run.rows("ops", "--top", "0")}
        assert calls.get("aten::addmm") == 3, calls
        assert any("tanh" in n for n in calls), calls


def test_a_monitored_session_has_one_kind_of_step():
    _check("tf_v1_monitored.py", False)


def test_validation_is_no_step_in_later_epochs():
    _need("tf_function_eval.py")
    with _recorded("tf_function_eval.py", ("--steps", "35..37")) as run:
        assert _numbers(run) == [35, 36, 37], _numbers(run)
        names = {r["name"] for r in run.rows("ops", "--top", "0")}
        assert not any("mean" in n.lower() and "Assign" in n for n in names), \
            "validation was traced"


def test_a_step_of_several_batches_is_said():
    _need("tf_keras_generator.py")
    with _recorded("tf_keras_generator.py", ("--steps", "3..4"),
                   {"AT_ONCE": "5"}) as run:
        assert _numbers(run) == [3, 4], _numbers(run)
        assert "steps_per_execution is 5" in run.err, run.err


def test_a_programs_own_marks_are_its_steps():
    _need("tf_marks.py")
    with _recorded("tf_marks.py", ("--steps", "110..112")) as run:
        assert _numbers(run) == [110, 111, 112], _numbers(run)


# As the fit() of Keras 2 marks its batches.
MARKS_OF_KERAS_2 = """
import tensorflow as tf
w = tf.Variable(tf.random.normal([64, 64]) * 0.1)
@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
    w.assign_sub(1e-6 * tape.gradient(loss, w))
for epoch in range(3):
    for i in range(15):
        with tf.profiler.experimental.Trace(
                "train", epoch_num=epoch, step_num=i, batch_size=8, _r=1):
            train(tf.ones([8, 64]))
"""


def test_marks_that_begin_anew_in_each_epoch_do_not_number_the_steps():
    _need("tensorflow")
    with _recorded(MARKS_OF_KERAS_2, ("--steps", "14..17")) as run:
        assert _numbers(run) == [14, 15, 16, 17], (_numbers(run),
                                                   run.err[-300:])


# Twenty batches of which nobody knows beforehand that they are twenty, and work
# behind the last one.
UNTIL_THE_END = """
import tensorflow as tf
w = tf.Variable(tf.ones([64, 64]))
@tf.function
def step(x):
    return w.assign_sub(tf.matmul(x, w) * 1e-3)
def rows():
    for _ in range(160):
        yield [0.5] * 64
data = tf.data.Dataset.from_generator(
    rows, output_signature=tf.TensorSpec([64], tf.float32))
for x in data.batch(8):
    step(tf.matmul(x, x, transpose_a=True))
tf.linalg.det(w)
"""


def test_what_follows_the_last_step_is_in_none():
    _need("tensorflow")
    with _recorded(UNTIL_THE_END, ("--steps", "15..30")) as run:
        rows = run.rows("steps")
        assert [r["step"] for r in rows] == list(range(15, 21)), (
            _numbers(run), run.err[-300:])
        inside = [r["name"] for r in run.rows("ops", "--steps", "20")]
        assert "MatMul" in str(inside), inside
        assert "MatrixDeterminant" not in str(inside), inside


def test_what_follows_the_last_optimizer_step_is_in_none():
    _need("tf_eager.py")
    with _recorded("tf_eager.py", ("--steps", "35..500")) as run:
        assert _numbers(run) == list(range(35, 41)), (_numbers(run),
                                                      run.err[-300:])


def test_the_first_steps_of_an_eager_loop_are_traced():
    _need("tf_eager.py")
    for steps, want in (("1,10,20", [1, 10, 20]), ("1..3", [1, 2, 3])):
        with _recorded("tf_eager.py", ("--steps", steps)) as run:
            assert _numbers(run) == want, (_numbers(run), run.err[-300:])


# tf.data fuses this map with the batch behind it, and calls that MapAndBatch.
ONE_AT_A_TIME = """
import time
import tensorflow as tf
def slow(n):
    time.sleep(0.02)
    return n.numpy()
def load(n):
    return tf.ensure_shape(tf.py_function(slow, [n], tf.int64), [])
w = tf.Variable(1.0)
@tf.function
def step(x):
    return w.assign_add(tf.reduce_sum(tf.cast(x, tf.float32)))
for x in tf.data.Dataset.range(30).map(load).batch(1).prefetch(1):
    step(x)
"""

SEVERAL_DEVICES = """
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    w = tf.Variable(tf.ones([4, 4]))
@tf.function
def step(x):
    return strategy.run(lambda x: tf.reduce_sum(tf.matmul(x, w)), args=(x,))
data = tf.data.Dataset.from_tensor_slices(tf.ones([240, 4])).batch(8)
for x in strategy.experimental_distribute_dataset(data):
    step(x)
"""


# What Keras makes of a PyDataset is such a pipeline.
FROM_A_GENERATOR = """
import time
import tensorflow as tf
def rows():
    for i in range(30):
        time.sleep(0.02)
        yield float(i)
w = tf.Variable(1.0)
@tf.function
def step(x):
    return w.assign_add(tf.reduce_sum(x))
data = tf.data.Dataset.from_generator(
    rows, output_signature=tf.TensorSpec([], tf.float32))
for x in data.batch(1).prefetch(1):
    step(x)
"""


def test_a_python_generator_is_said_to_be_one():
    _need("tensorflow")
    with _recorded(FROM_A_GENERATOR, ("--steps", "10..20")) as run:
        hints = [r for r in run.rows("hints") if r["id"] == "input-bound"]
        assert hints and "Python generator" in hints[0]["do"], hints


def test_a_map_behind_a_quick_generator_is_not_said_to_be_the_generator():
    _need("tensorflow")
    program = ONE_AT_A_TIME.replace(
        "tf.data.Dataset.range(30)", "tf.data.Dataset.from_generator("
        "lambda: iter(range(30)), output_signature=tf.TensorSpec([], "
        "tf.int64))")
    with _recorded(program, ("--steps", "10..20")) as run:
        hints = [r for r in run.rows("hints") if r["id"] == "input-bound"]
        assert hints and "map(fn" in hints[0]["do"], hints
        assert "Python generator" not in hints[0]["do"], hints


def test_a_map_that_makes_one_element_at_a_time_is_said_to_be_one():
    _need("tensorflow")
    with _recorded(ONE_AT_A_TIME) as run:
        do = [r["do"] for r in run.rows("hints") if r["id"] == "input-bound"]
        assert do and "num_parallel_calls" in do[0], do
        assert "in parallel" not in do[0], do


def test_the_iterator_of_several_devices_is_no_python_generator():
    _need("tensorflow")
    with _recorded(SEVERAL_DEVICES) as run:
        assert _numbers(run) == [10, 11, 12], _numbers(run)
        assert "::Generator" in str(run.rows("input"))
        assert "Python generator" not in str(run.rows("hints"))


JAX_FED_BY_TF = """
import time
import jax, jax.numpy as jnp, tensorflow as tf
def slow(n):
    time.sleep(0.02)
    return tf.ones([32, 64])
data = tf.data.Dataset.range(40).map(
    lambda n: tf.py_function(slow, [n], tf.float32))
@jax.jit
def train(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
w = jnp.ones((64, 64))
for x in data.as_numpy_iterator():
    w = train(w, x)
"""


def test_jax_fed_by_tensorflow_has_the_ops_of_jax():
    _need("tensorflow")
    _need("jax")
    with _recorded(JAX_FED_BY_TF) as run:
        assert _numbers(run) == [10, 11, 12], (_numbers(run), run.err[-300:])
        counts = _counts(run.rows("ops", "--top", "0"))
        assert any(n.startswith("dot") for n in counts), counts
        hints = {r["id"]: r["do"] for r in run.rows("hints")}
        assert "num_parallel_calls" in hints["input-bound"], hints
        waits = [r["input_us"] for r in run.rows("steps")]
        assert min(waits) > 15000, waits


def test_an_eager_loop_with_memory_and_stacks():
    _need("tf_module.py")
    with _recorded("tf_module.py", (*STEPS, "--memory", "--shapes",
                                    "--stacks")) as run:
        rows = run.rows("ops")
        assert any(r["host_bytes"] for r in rows), "no host memory"
        assert not [r["name"] for r in rows if r["name"].startswith("$")]
        assert any(r["function"] == "Linear.__call__"
                   for r in run.rows("python"))
        frames = [r for r in run.rows("coverage")
                  if r["what"] == "Python frames"]
        assert frames[0]["have"] == 1 and not frames[0]["fix"], frames


def test_steps_apart_are_shown_in_the_order_of_time():
    _need("jax")
    with _recorded("jax_static.py", ("--steps", "2,10,30")) as run:
        assert _numbers(run) == [2, 10, 30], _numbers(run)


GROWS_LATER = """
import tensorflow as tf
v = tf.Variable(tf.ones([1024, 1024]))
optimizer = tf.keras.optimizers.SGD(0.01)
for i in range(1, 31):
    rows = 512 if i < 15 else 2048
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(tf.ones([rows, 1024]), v))
    optimizer.apply_gradients([(tape.gradient(loss, v), v)])
"""


def test_peaks_of_steps_apart_say_of_which_step_they_are():
    _need("tensorflow")
    with _recorded(GROWS_LATER, ("--steps", "10,20", "--memory")) as run:
        peaks = [r["text"] for r in run.rows("overview")
                 if r["metric"] == "memory peak"]
        for step in (10, 20):
            assert [p for p in peaks if p.endswith("in step %d" % step)], peaks


def test_a_range_is_not_taken_longer_than_its_seconds():
    _need("jax")
    with _recorded("jax_static.py", ("--steps", "10..", "--seconds",
                                     "0.000001")) as run:
        assert _numbers(run) == [10], _numbers(run)


RAISES = {
    "tensorflow": """
import tensorflow as tf
w = tf.Variable(tf.ones([4, 4]))
@tf.function(autograph=False)
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(x, w))
    w.assign_sub(0.1 * tape.gradient(loss, w))
for i in range(40):
    step(tf.ones([2, 4 if i < 11 else 3]))
""",
    "keras": """
import keras, numpy
class Stops(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 11:
            raise RuntimeError("stops")
model = keras.Sequential([keras.layers.Dense(4)])
model.compile("sgd", "mse")
model.fit(numpy.ones((640, 4)), numpy.ones((640, 4)), batch_size=16,
          verbose=0, callbacks=[Stops()])
""",
    "jax": """
import warnings
import jax, jax.numpy as jnp
@jax.jit
def step(w, x):
    warnings.warn("traced", stacklevel=2)
    return w - 0.1 * jax.grad(lambda w: jnp.sum(x @ w))(w)
w = jnp.ones((4, 4))
for i in range(40):
    w = step(w, jnp.ones((2, 4 if i < 11 else 3)))
""",
}


def _raises(framework):
    """What a program prints as it dies is what it prints alone."""
    _need(framework)
    code = RAISES[framework]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.py")
        with open(path, "w") as f:
            f.write(code)
        alone = subprocess.run(
            [sys.executable, path], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, **lib.SMALL})
        run = lib.Run(folder, [sys.executable, path], (*STEPS, "-q"))
        assert run.status == alone.returncode == 1, run.status
        assert run.out == alone.stdout, run.out
        assert run.err == alone.stderr, (run.err[-700:], alone.stderr[-700:])
        assert _numbers(run)[:2] == [10, 11], _numbers(run)


def test_what_is_raised_in_a_function_of_tensorflow_is_printed_alike():
    _raises("tensorflow")


def test_what_is_raised_in_a_callback_of_keras_is_printed_alike():
    _raises("keras")


def test_what_is_raised_in_a_function_of_jax_is_printed_alike():
    _raises("jax")


KILLED = """
import os, signal
import jax, jax.numpy as jnp
@jax.jit
def step(w):
    return w - 0.1 * jax.grad(lambda w: jnp.sum(w ** 2))(w)
w = jnp.ones((4, 4))
for i in range(1, 41):
    w = step(w)
    if i == 20:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_program_gets_words_for_python():
    _need("jax")
    with _recorded(KILLED, ("--steps", "15..30")) as run:
        assert run.status == 137, run.status
        assert len(_numbers(run)) >= 19, _numbers(run)
        text = str(run.rows("coverage"))
        assert "tracer-died" in text and "ops_alloc" not in text, text
        assert not any("traced by" in r["name"] for r in run.rows("ops"))
        assert "cannot be told" in str(run.doc("hints")["remarks"])


def test_frameworks_that_are_not_known_are_said_and_run():
    lib.need_package()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tensorflow", "jax"):
            os.mkdir(os.path.join(folder, name))
            with open(os.path.join(folder, name, "__init__.py"), "w") as f:
                f.write("__version__ = '0.0.1'\ndef jit(f): return f\n")
        path = os.path.join(folder, "p.py")
        with open(path, "w") as f:
            f.write("import tensorflow, jax\n"
                    "print(sum(map(jax.jit(abs), range(9))))\n")
        run = lib.Run(folder, [sys.executable, path], ("--no-overview",))
        assert run.status == 0 and run.out == "36\n", (run.out, run.err)
        for name in ("tensorflow", "jax"):
            told = [line for line in run.err.splitlines()
                    if line.startswith("opscope: %s 0.0.1" % name)]
            assert len(told) == 1, run.err


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
