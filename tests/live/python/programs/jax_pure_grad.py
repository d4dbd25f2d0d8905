# SPDX-License-Identifier: Apache-2.0
"""A jitted step with static arguments, and another function for evaluation
every ten steps."""
import os
import time
from functools import partial

import jax
import jax.numpy as jnp

STEPS = 50


@partial(jax.jit, static_argnums=2)
def step(w, x, scale):
    loss, g = jax.value_and_grad(
        lambda w: jnp.mean(jnp.square(x @ w)) * scale)(w)
    return w - 0.01 * g, loss


@jax.jit
def evaluate(w, x):
    return jnp.max(jnp.abs(x @ w))


w, x = jnp.ones((256, 256)) * 0.01, jnp.ones((512, 256))
times = []
for i in range(STEPS):
    begin = time.perf_counter()
    w, loss = step(w, x, 2)
    loss.block_until_ready()
    times.append(time.perf_counter() - begin)
    if i % 10 == 9:
        float(evaluate(w, x))
print("loss %.3f steps %d" % (float(loss), STEPS))
if os.environ.get("BARE"):
    print("bare_us %.3f" % (1e6 * sorted(times)[STEPS // 2]))
