# SPDX-License-Identifier: Apache-2.0
"""A training step of JAX without jit."""
META = dict(framework="jax", hint="not-jitted", repair="jax.jit")


def make(fixed):
    import jax
    import jax.numpy as jnp
    keys = jax.random.split(jax.random.key(0), 6)
    ws = [jax.random.normal(k, (48, 48)) * 0.1 for k in keys]
    x = jnp.ones((16, 48))

    def loss(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return jnp.mean(x ** 2)

    def train(ws, x):
        grads = jax.grad(loss)(ws, x)
        return [w - 1e-2 * g for w, g in zip(ws, grads)]
    train = jax.jit(train) if fixed else train
    state = {"ws": ws}

    def step():
        state["ws"] = train(state["ws"], x)
        return state["ws"]
    return step
