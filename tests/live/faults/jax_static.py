# SPDX-License-Identifier: Apache-2.0
"""A jitted step with a static argument that is another in each step."""
META = dict(framework="jax", hint="recompile",
            repair="the argument traced, not static")


def make(fixed):
    import functools
    import jax
    import jax.numpy as jnp
    keys = jax.random.split(jax.random.PRNGKey(0), 6)
    ws = [jax.random.normal(k, (128, 128)) * 0.1 for k in keys]
    x = jax.random.normal(keys[0], (64, 128))
    turn = [0]

    def loss(ws, scale):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w) * scale
        return jnp.mean(h * h)
    run = jax.jit(jax.grad(loss)) if fixed else \
        functools.partial(jax.jit, static_argnums=1)(jax.grad(loss))

    def step():
        turn[0] += 1
        return run(ws, 1.0 + 1e-4 * turn[0])
    return step
