# SPDX-License-Identifier: Apache-2.0
"""Donated buffers, an Adam written by hand, nobody waits for a result; an
evaluation that is called as often as the training."""
from functools import partial

import jax
import jax.numpy as jnp

import by_hand

STEPS = 50


def loss_of(p, x):
    return jnp.mean((jax.nn.relu(x @ p["w"]) @ p["v"]) ** 2)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(p, state, x):
    g = jax.grad(loss_of)(p, x)
    m = jax.tree_util.tree_map(lambda a, b: 0.9 * a + 0.1 * b, state["m"], g)
    v = jax.tree_util.tree_map(lambda a, b: 0.99 * a + 0.01 * b * b,
                               state["v"], g)
    p = jax.tree_util.tree_map(
        lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v)
    return p, {"m": m, "v": v}


evaluate = jax.jit(loss_of)
p = {"w": jnp.ones((64, 128)) * 0.1, "v": jnp.ones((128, 1)) * 0.1}
state = {k: jax.tree_util.tree_map(jnp.zeros_like, p) for k in "mv"}
x = jnp.ones((32, 64))
value = evaluate(p, x)
for i in range(1, STEPS + 1):
    by_hand.jax_at(i)
    p, state = train_step(p, state, x)
    value = evaluate(p, x)
print("steps %d" % STEPS)
