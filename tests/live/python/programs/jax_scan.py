# SPDX-License-Identifier: Apache-2.0
"""A recurrent network by lax.scan, fed by a generator in numpy."""
import os
import time

import jax
import jax.numpy as jnp
import numpy as np

import by_hand

STEPS = 40


def batches():
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        yield rng.normal(size=(16, 32, 64)).astype("float32")


def forward(w, xs):
    def cell(h, x):
        h = jnp.tanh(x @ w["x"] + h @ w["h"])
        return h, h
    last, _ = jax.lax.scan(cell, jnp.zeros((32, 64)), xs)
    return jnp.mean(last ** 2)


@jax.jit
def update(w, xs):
    loss, g = jax.value_and_grad(forward)(w, xs)
    return jax.tree_util.tree_map(lambda p, d: p - 0.01 * d, w, g), loss


w = {"x": jnp.eye(64) * 0.1, "h": jnp.eye(64) * 0.1}
times, begin = [], time.perf_counter()
for step, xs in enumerate(batches(), 1):
    by_hand.jax_at(step)
    w, loss = update(w, xs)
    value = float(loss)
    now = time.perf_counter()
    times.append(now - begin)
    begin = now
print("loss %.3f steps %d" % (value, STEPS))
if os.environ.get("BARE"):
    print("bare_us %.3f" % (1e6 * sorted(times)[STEPS // 2]))
