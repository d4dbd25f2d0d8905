# SPDX-License-Identifier: Apache-2.0
"""A jitted training step: nothing is wrong with it."""
META = dict(framework="jax", hint=None, repair="(tuned)")


def make(fixed):
    import jax
    import jax.numpy as jnp
    keys = jax.random.split(jax.random.key(0), 4)
    ws = [jax.random.normal(k, (384, 384)) * 0.05 for k in keys]
    x = jnp.ones((256, 384))

    @jax.jit
    def train(ws, x):
        def loss(ws):
            y = x
            for w in ws:
                y = jax.nn.relu(y @ w)
            return jnp.mean(y ** 2)
        return [w - 1e-2 * g for w, g in zip(ws, jax.grad(loss)(ws))]
    state = {"ws": ws}

    def step():
        state["ws"] = train(state["ws"], x)
        return state["ws"]
    return step
