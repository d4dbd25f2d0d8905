# SPDX-License-Identifier: Apache-2.0
"""The loss of every micro step is brought to the host for a running mean."""
META = dict(framework="jax", hint="host-sync", device="cuda",
            repair="the mean is kept on the device")


def make(fixed):
    import jax
    import jax.numpy as jnp
    keys = jax.random.split(jax.random.key(0), 6)
    ws = [jax.random.normal(k, (256, 256)) * 0.05 for k in keys]
    xs = jax.random.normal(keys[0], (16, 64, 256))

    @jax.jit
    def train(ws, x):
        def loss(ws):
            y = x
            for w in ws:
                y = jnp.tanh(y @ w)
            return jnp.mean(y ** 2)
        value, grads = jax.value_and_grad(loss)(ws)
        return [w - 1e-3 * g for w, g in zip(ws, grads)], value
    state = {"ws": ws}

    def step():
        mean = 0.0
        for x in xs:
            state["ws"], loss = train(state["ws"], x)
            mean = 0.9 * mean + 0.1 * (loss if fixed else float(loss))
        return state["ws"]
    return step
