# SPDX-License-Identifier: Apache-2.0
"""What every micro step of JAX gives out is fetched to be summed up."""
META = dict(framework="jax", hint="host-sync", device="cuda",
            repair="kept on the device")


def make(fixed):
    import jax
    import jax.numpy as jnp
    import numpy as np
    wide, rows, classes, micro = 768, 256, 512, 8
    keys = jax.random.split(jax.random.key(0), 6)
    params = {"in": jax.random.normal(keys[0], (wide, wide)) * 0.03,
              "mid": jax.random.normal(keys[1], (3, wide, wide)) * 0.03,
              "out": jax.random.normal(keys[2], (wide, classes)) * 0.03}
    xs = list(jax.random.normal(keys[3], (micro, rows, wide)))
    ys = list(jax.random.randint(keys[4], (micro, rows), 0, classes))

    @jax.jit
    def train(params, x, y):
        def loss(params):
            h = jax.nn.silu(x @ params["in"])
            for w in params["mid"]:
                h = h + jax.nn.silu(h @ w)
            out = jax.nn.log_softmax(h @ params["out"])
            return -jnp.take_along_axis(out, y[:, None], -1).mean(), out
        (value, out), grads = jax.value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 1e-2 * g, params, grads), \
            {"loss": value, "hits": (out.argmax(-1) == y).sum()}
    state = {"params": params}

    def step():
        kept = []
        for x, y in zip(xs, ys):
            state["params"], told = train(state["params"], x, y)
            if not fixed:
                told = {"loss": np.asarray(told["loss"]),
                        "hits": jax.device_get(told["hits"])}
            kept.append(told)
        return state["params"], kept
    return step
