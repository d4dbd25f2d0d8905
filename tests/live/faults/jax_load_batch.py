# SPDX-License-Identifier: Apache-2.0
"""Batches made in numpy between two steps of JAX, in a region of their own."""
META = dict(framework="jax", hint="input-bound",
            repair="batches made beforehand")


def make(fixed):
    import jax
    import jax.numpy as jnp
    import numpy as np
    rng = np.random.default_rng(0)
    w = jax.random.normal(jax.random.key(0), (512, 256)) * 0.05

    @jax.jit
    def train(w, x):
        def loss(w):
            return jnp.mean(jnp.tanh(x @ w) ** 2)
        return w - 1e-3 * jax.grad(loss)(w)

    def load():
        x = rng.standard_normal((128, 512))
        return np.sort(x, -1).astype("f")
    state = {"w": w, "x": load()}

    def step():
        with jax.profiler.TraceAnnotation("load_batch"):
            x = state["x"] if fixed else load()
        state["w"] = train(state["w"], x)
        return state["w"]
    return step
