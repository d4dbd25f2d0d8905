#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The calls of the package, in programs with the real frameworks: torch's
profiler under our name, callbacks of Keras, Lightning and Hugging Face, JAX's
trace. Each runs in a process of its own."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

_python = lib.python

TORCH = """
import os, torch, opscope
m = torch.nn.Linear(32, 32); o = torch.optim.SGD(m.parameters(), lr=0.1)
def step():
    o.zero_grad(); m(torch.ones(4, 32)).sum().backward(); o.step()
"""


def test_torch_profile_with_a_schedule_exports_as_often_as_one_likes():
    _python(TORCH + """
with opscope.torch.profile(schedule=opscope.torch.schedule(
        wait=1, warmup=1, active=3, repeat=1), profile_memory=True,
        record_shapes=True) as prof:
    for _ in range(8):
        step(); prof.step()
for name in ("a.json", "b.json.gz", "a.json"):
    prof.export_chrome_trace(name)
    assert [r.step for r in opscope.open(name).steps()] == [2, 3, 4]
assert "aten::mm" in prof.key_averages().table() or \\
    "aten::addmm" in prof.key_averages().table()
calls = {e.key: e.count for e in prof.key_averages()}
mine = {r.name: r.calls for r in prof.open().ops(top=0)}
assert mine["aten::addmm"] == calls["aten::addmm"], (mine, calls)
assert any(r.host_bytes for r in prof.open().ops())
""", "torch")


def test_torch_profile_says_what_is_wrong():
    _python(TORCH + """
p = opscope.torch.profile()
for bad in (lambda: p.export_chrome_trace("x.json"),
            lambda: opscope.torch.profile(schedule=3),
            lambda: opscope.torch.profile(nonsense=1)):
    try:
        bad()
    except opscope.Error as e:
        assert len(str(e)) > 10
        continue
    raise AssertionError("nothing was raised")
""", "torch")


def test_profile_of_a_block_of_torch_and_of_some_steps():
    _python(TORCH + """
with opscope.profile("all") as p:
    for i in range(5):
        opscope.step(i); step()
assert [r.step for r in p.steps()] == [0, 1, 2, 3, 4], p.steps()
assert p.ops(name="aten::addmm")[0].calls == 5
with opscope.profile("some", steps="6..8", memory=True) as p:
    for i in range(12):
        step()
s = p.steps()
assert [r.step for r in s] == [6, 7, 8], s
assert s[0].bare_measured_steps > 0
assert p.folder and not p.problems, p.problems
""", "torch")


def test_a_forked_child_has_a_profile_of_its_own():
    """Its parent's tracer is on, of which it has nothing."""
    _python("""
import multiprocessing, torch, opscope
torch.set_num_threads(1)
def train(n):
    m = torch.nn.Linear(8, 1)
    o = torch.optim.SGD(m.parameters(), lr=.1)
    for _ in range(n):
        o.zero_grad(); m(torch.ones(4, 8)).sum().backward(); o.step()
def child():
    with opscope.profile("child", steps="3..5") as p:
        train(10)
    assert not p.problems, p.problems
    assert [r.step for r in p.steps()] == [3, 4, 5], p.steps()
    assert p.ops(name="aten::addmm")[0].calls == 3
with opscope.profile("parent") as p:
    train(5)
    w = multiprocessing.get_context("fork").Process(target=child)
    w.start()
    w.join()
    assert w.exitcode == 0, w.exitcode
    train(5)
assert p.ops(name="aten::addmm")[0].calls == 10
""", "torch")


def test_the_callback_of_keras():
    _python("""
import numpy as np, tensorflow as tf, opscope
m = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
m.compile("sgd", "mse")
cb = opscope.keras.Callback("logs", profile_batch="10,12")
m.fit(np.ones((320, 4)), np.ones((320, 1)), batch_size=8, epochs=1, verbose=0,
      callbacks=[cb])
assert [r.step for r in cb.open().steps()] == [10, 11, 12]
assert not cb.problems, cb.problems
for bad in ("a", (5, 3), -1, (1, 2, 3), True, 2.5):
    try:
        opscope.keras.Callback("x", bad)
    except opscope.Error:
        continue
    raise AssertionError(bad)
assert opscope.keras.batches_of(100) == (100, 100)
assert opscope.keras.batches_of([3, 5]) == (3, 5)
assert opscope.keras.batches_of(0) is None
""", "tensorflow")


def test_a_callback_of_keras_whose_fit_died_makes_way():
    """In a notebook: training is interrupted, the cell runs again. The
    traceback holds the callback of the first time."""
    _python("""
import numpy as np, tensorflow as tf, opscope
m = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
m.compile("sgd", "mse")
def fit(*callbacks):
    m.fit(np.ones((320, 4)), np.ones((320, 1)), batch_size=8, epochs=1,
          verbose=0, callbacks=list(callbacks))
def steps(callback):
    return [r.step for r in callback.open().steps()]
class Stops(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 10:
            raise KeyboardInterrupt
first = opscope.keras.Callback("first", profile_batch="10,12")
try:
    fit(first, Stops())
    raise AssertionError("it did not stop")
except KeyboardInterrupt:
    pass
second = opscope.keras.Callback("second", profile_batch="20,22")
fit(second)
assert steps(second) == [20, 21, 22], steps(second)
assert steps(first)[:1] == [10], steps(first)
# a callback that is through leaves the recording of others alone
with opscope.profile("third", steps="5..6") as third:
    fit(second)
    assert opscope.recording.is_on(third.folder)
assert [r.step for r in third.steps()] == [5, 6], third.steps()
""", "tensorflow")


def test_the_trace_of_jax():
    _python("""
import jax, jax.numpy as jnp, opscope
f = jax.jit(lambda x: jnp.sum(x @ x))
x = jnp.ones((64, 64)); f(x).block_until_ready()
with opscope.jax.trace("logs") as t:
    for i in range(5):
        t.step(i); f(x).block_until_ready()
assert [r.step for r in t.steps()] == [0, 1, 2, 3, 4], t.steps()
# what jit gives can do what it could
assert f.lower(x) and jax.grad(lambda y: f(y))(x).shape == (64, 64)
assert jax.vmap(f)(jnp.ones((2, 8, 8))).shape == (2,)
""", "jax")


def test_calls_that_jax_compiled_before_are_steps():
    """Their begins cannot be seen: each is a step all the same, and what
    follows the last one is none."""
    _python("""
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jnp.sum(x @ x))
x = jnp.ones((64, 64)); f(x).block_until_ready()
import opscope
for calls in (1, 4):
    with opscope.jax.trace("logs") as t:
        for i in range(calls):
            y = f(x)
        y.block_until_ready()
    all_of_it = list(range(1, calls + 1))
    assert [r.step for r in t.steps() if not r.cut] == all_of_it, t.steps()
    assert {r.step for r in t.trace(top=0)
            if r.name.startswith("PjitFunction")} == set(all_of_it)
with opscope.jax.trace("few", steps="3..4") as t:
    for i in range(6):
        y = f(x)
assert [r.step for r in t.steps()] == [3, 4] and not t.problems, t.steps()
with opscope.jax.trace("first", steps="1") as t:
    for i in range(6):
        y = f(x)
assert any("before it could be seen" in p for p in t.problems), t.problems
with opscope.jax.trace("none") as t:
    pass
assert not [r for r in t.steps() if r.step == 1], t.steps()
""", "jax")


def test_the_callback_of_lightning():
    _python("""
import torch, opscope, lightning as L
class M(L.LightningModule):
    def __init__(self):
        super().__init__(); self.l = torch.nn.Linear(8, 1)
    def training_step(self, b, i): return self.l(b[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(
    torch.ones(160, 8)), batch_size=8)
cb = opscope.lightning.Callback("logs", steps="10..12")
L.Trainer(max_epochs=1, logger=False, enable_checkpointing=False,
          enable_progress_bar=False, accelerator="cpu",
          callbacks=[cb]).fit(M(), data)
assert [r.step for r in cb.open().steps()] == [10, 11, 12], cb.open().steps()
""", "torch", "lightning")


def test_the_callback_of_hugging_face():
    _python("""
import torch, opscope
from transformers import Trainer, TrainerCallback, TrainingArguments
class M(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.l = torch.nn.Linear(8, 1)
    def forward(self, x, labels=None):
        out = self.l(x); return {"loss": (out - labels).pow(2).mean()}
data = [{"x": torch.ones(8), "labels": torch.ones(1)} for _ in range(160)]
cb = opscope.transformers.Callback("logs", steps="10..12")
args = TrainingArguments(output_dir="o", per_device_train_batch_size=8,
    num_train_epochs=1, report_to=[], use_cpu=True, save_strategy="no",
    disable_tqdm=True)
def train(*callbacks):
    Trainer(model=M(), args=args, train_dataset=data,
            callbacks=list(callbacks)).train()
train(cb)
assert [r.step for r in cb.open().steps()] == [10, 11, 12], cb.open().steps()
class Dies(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        raise KeyboardInterrupt
dead = opscope.transformers.Callback("dead")
try:
    train(dead, Dies())
    raise AssertionError("it did not die")
except KeyboardInterrupt:
    pass
cb = opscope.transformers.Callback("again", steps="5..6")
train(cb)
assert [r.step for r in cb.open().steps()] == [5, 6], cb.open().steps()
""", "torch", "transformers", "accelerate")


if __name__ == "__main__":
    sys.exit(lib.main(sys.modules[__name__]))
