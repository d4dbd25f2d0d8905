# SPDX-License-Identifier: Apache-2.0
"""A jitted function that meets a new shape in each step."""
META = dict(framework="jax", hint="recompile", repair="one padded shape")


def make(fixed):
    import jax
    import jax.numpy as jnp
    w = jax.random.normal(jax.random.key(0), (64, 64))

    @jax.jit
    def train(w, x):
        def loss(w):
            return jnp.mean(jnp.tanh(x @ w) ** 2)
        return w - 1e-3 * jax.grad(loss)(w)
    import numpy as np
    state = {"n": 0}

    def step():
        state["n"] += 1
        rows = 64 if fixed else 64 + state["n"]
        return train(w, np.ones((rows, 64), "f"))
    return step
