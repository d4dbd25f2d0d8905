# SPDX-License-Identifier: Apache-2.0
"""A jitted training step in a loop."""
import os
import time

import jax
import jax.numpy as jnp

import by_hand

STEPS = 50


def loss_fn(params, x, y):
    h = jax.nn.relu(x @ params["w1"])
    return jnp.mean((h @ params["w2"] - y) ** 2)


@jax.jit
def train_step(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.01 * g, params,
                                  grads), loss


key = jax.random.PRNGKey(0)
params = {"w1": jax.random.normal(key, (256, 512)) * 0.05,
          "w2": jax.random.normal(key, (512, 10)) * 0.05}
x, y = jnp.ones((256, 256)), jnp.zeros((256, 10))
times = []
for step in range(STEPS):
    by_hand.jax_at(step + 1)
    begin = time.perf_counter()
    params, loss = train_step(params, x, y)
    loss.block_until_ready()
    times.append(time.perf_counter() - begin)
print("loss %.3f steps %d" % (float(loss), STEPS))
if os.environ.get("BARE"):
    print("bare_us %.3f" % (1e6 * sorted(times)[STEPS // 2]))
