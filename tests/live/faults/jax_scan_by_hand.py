# SPDX-License-Identifier: Apache-2.0
"""A recurrence in JAX as a Python loop of ops."""
META = dict(framework="jax", hint="not-jitted", repair="jax.jit")


def make(fixed):
    import jax
    import jax.numpy as jnp
    w = jax.random.normal(jax.random.key(1), (32, 32)) * 0.1
    xs = jax.random.normal(jax.random.key(2), (40, 8, 32))

    def run(w, xs):
        h = jnp.zeros((8, 32))
        for t in range(xs.shape[0]):
            h = jax.nn.sigmoid(h @ w + xs[t])
        return h.sum()
    run = jax.jit(run) if fixed else run
    return lambda: run(w, xs)
