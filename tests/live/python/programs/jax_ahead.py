# SPDX-License-Identifier: Apache-2.0
"""JAX as most people write it: nothing waits for a step, the loss is looked at
now and then. Its own clock measures 150 steps."""

import os
import time

import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
weights = [0.05 * jax.random.normal(key, (192, 192)) for _ in range(4)]
x = jax.random.normal(key, (96, 192))


def loss_of(weights, x):
    for w in weights:
        x = jnp.maximum(x @ w, 0.0)
    return jnp.mean(x ** 2)


@jax.jit
def update(weights, x):
    loss, grads = jax.value_and_grad(loss_of)(weights, x)
    return [w - 0.01 * g for w, g in zip(weights, grads)], loss


begin = end = 0.0
for i in range(1, 301):
    weights, loss = update(weights, x)
    if i % 50 == 0:
        float(loss)
    if i == 100:
        begin = time.perf_counter()
    if i == 250:
        end = time.perf_counter()
print("loss %.4f after steps %d" % (loss, i))
if os.environ.get("BARE"):
    print("bare_us %.1f" % (1e6 * (end - begin) / 150))
