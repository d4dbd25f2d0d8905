# SPDX-License-Identifier: Apache-2.0
"""A small training program that times its own steps, for tests/bench/python.py:

    python_steps.py KIND STEPS FIRST LAST

KIND is one of PROGRAMS. With FIRST..LAST the framework's own profiler is on in
these steps (0: it never is). Prints the nanoseconds of each step as JSON. With
BENCH_DEVICE=cuda PyTorch's and JAX's run on a GPU."""

import json
import os
import sys
import tempfile
import time


DEVICE = os.environ.get("BENCH_DEVICE", "cpu")


class Torch:
    """An MLP with Adam; `compiled` by torch.compile; `input` behind a loader
    that is slower than the step. It looks at the loss every so many steps; in
    between the program runs ahead of a GPU."""

    def __init__(self, compiled=False, loader=False, wide=256, looks=1):
        import torch
        self.torch, self.looks, self.steps = torch, looks, 0
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(wide, 2 * wide), torch.nn.ReLU(),
            torch.nn.Linear(2 * wide, 2 * wide), torch.nn.ReLU(),
            torch.nn.Linear(2 * wide, 10)).to(DEVICE)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        how = {} if DEVICE == "cuda" else {"backend": "aot_eager"}
        self.call = torch.compile(self.model, **how) \
            if compiled else self.model
        self.batches = None
        if loader:
            self.batches = iter(torch.utils.data.DataLoader(
                _SlowRows(torch), batch_size=64))
        self.x = torch.randn(wide // 4, wide, device=DEVICE)

    def step(self):
        x = next(self.batches).to(DEVICE) if self.batches else self.x
        self.optimizer.zero_grad()
        loss = self.call(x).square().mean()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        if self.steps % self.looks == 0:
            loss.item()

    def profile(self):
        import torch.profiler as p
        kinds = [p.ProfilerActivity.CPU] + (
            [p.ProfilerActivity.CUDA] if DEVICE == "cuda" else [])
        self.p = p.profile(activities=kinds)
        self.p.start()

    def stop(self):
        self.p.stop()


class _SlowRows:
    def __init__(self, torch):
        self.row = torch.randn(256)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        if i % 64 == 0:
            time.sleep(0.004)
        return self.row


class TensorFlow:
    """The same in TensorFlow, eagerly or in a tf.function."""

    def __init__(self, graph=False):
        import tensorflow as tf
        self.tf = tf
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.w = [tf.Variable(tf.random.normal(s, stddev=0.05))
                  for s in ([256, 512], [512, 512], [512, 10])]
        self.x = tf.random.normal([64, 256])
        self.train = tf.function(self._train) if graph else self._train
        self.optimizer = tf.keras.optimizers.SGD(0.01)

    def _train(self, x):
        tf = self.tf
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.matmul(x, self.w[0]))
            h = tf.nn.relu(tf.matmul(h, self.w[1]))
            loss = tf.reduce_mean(tf.square(tf.matmul(h, self.w[2])))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.w),
                                           self.w))
        return loss

    def step(self):
        float(self.train(self.x))

    def profile(self):
        self.folder = tempfile.mkdtemp()
        self.tf.profiler.experimental.start(self.folder)

    def stop(self):
        import shutil
        self.tf.profiler.experimental.stop()
        shutil.rmtree(self.folder)


class Jax:
    """The same in JAX, jitted."""

    def __init__(self):
        import jax
        import jax.numpy as jnp
        self.jax = jax
        key = jax.random.PRNGKey(0)
        self.w = [0.05 * jax.random.normal(key, s)
                  for s in ((256, 512), (512, 512), (512, 10))]
        self.x = jax.random.normal(key, (64, 256))

        def loss(w, x):
            h = jnp.maximum(x @ w[0], 0)
            h = jnp.maximum(h @ w[1], 0)
            return jnp.mean((h @ w[2]) ** 2)

        @jax.jit
        def update(w, x):
            g = jax.grad(loss)(w, x)
            return [a - 0.01 * b for a, b in zip(w, g)]
        self.update = update

    def step(self):
        self.w = self.update(self.w, self.x)
        self.w[0].block_until_ready()

    def profile(self):
        self.folder = tempfile.mkdtemp()
        self.jax.profiler.start_trace(self.folder)

    def stop(self):
        import shutil
        self.jax.profiler.stop_trace()
        shutil.rmtree(self.folder)


def means(times, looks):
    """The program's own step where it looks at the device now and then: the
    mean of the steps between two looks."""
    if looks == 1:
        return times
    out = []
    for i in range(0, len(times), looks):
        part = times[i:i + looks]
        out += [sum(part) / len(part)] * len(part)
    return out


PROGRAMS = {
    "torch-eager": lambda: Torch(),
    "torch-compiled": lambda: Torch(compiled=True),
    "torch-input": lambda: Torch(loader=True),
    "torch-ahead": lambda: Torch(wide=4096 if DEVICE == "cuda" else 256,
                                 looks=50),
    "tf-eager": lambda: TensorFlow(),
    "tf-function": lambda: TensorFlow(graph=True),
    "jax-jit": lambda: Jax(),
}


def main():
    kind, steps, first, last = sys.argv[1], *map(int, sys.argv[2:5])
    program = PROGRAMS[kind]()
    times = []
    for i in range(1, steps + 1):
        if i == first:
            program.profile()
        begin = time.perf_counter_ns()
        program.step()
        times.append(time.perf_counter_ns() - begin)
        if i == last:
            program.stop()
    print(json.dumps(means(times, getattr(program, "looks", 1))))


if __name__ == "__main__":
    main()
