# SPDX-License-Identifier: Apache-2.0
"""An epoch in a lax.scan that nobody compiled."""
import jax
import jax.numpy as jnp

import by_hand

STEPS = 40


def body(w, x):
    loss, g = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.01 * g, loss


w, xs = jnp.ones((32, 8)), jnp.ones((20, 16, 32))
for epoch in range(1, STEPS + 1):
    by_hand.jax_at(epoch)
    w, losses = jax.lax.scan(body, w, xs)
    float(losses.mean())
print("steps %d" % STEPS)
