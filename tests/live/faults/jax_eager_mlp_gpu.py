# SPDX-License-Identifier: Apache-2.0
"""A classifier of JAX trained with momentum, without jit."""
META = dict(framework="jax", hint="not-jitted", repair="jax.jit")


def make(fixed):
    import jax
    import jax.numpy as jnp
    wide, rows, classes = 128, 64, 16
    keys = jax.random.split(jax.random.key(0), 8)
    sizes = [wide] * 6 + [classes]
    params = [{"w": jax.random.normal(k, (a, b)) * 0.1, "b": jnp.zeros(b)}
              for k, a, b in zip(keys, sizes, sizes[1:])]
    x = jax.random.normal(keys[6], (rows, wide))
    y = jax.random.randint(keys[7], (rows,), 0, classes)

    def loss(params, x, y):
        for p in params[:-1]:
            x = x - x.mean(-1, keepdims=True)
            x = jnp.tanh(x @ p["w"] + p["b"])
        x = x @ params[-1]["w"] + params[-1]["b"]
        right = jnp.take_along_axis(x, y[:, None], -1)[:, 0]
        return jnp.mean(jnp.log(jnp.exp(x).sum(-1)) - right)

    def train(params, speed, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        speed = jax.tree.map(lambda s, g: 0.9 * s + g, speed, grads)
        return jax.tree.map(lambda p, s: p - 1e-2 * s, params, speed), \
            speed, value
    train = jax.jit(train) if fixed else train
    state = {"params": params, "speed": jax.tree.map(jnp.zeros_like, params)}

    def step():
        state["params"], state["speed"], value = train(
            state["params"], state["speed"], x, y)
        return state, value
    return step
