# SPDX-License-Identifier: Apache-2.0
"""A jitted training step of a transformer in bf16, its state donated."""
META = dict(framework="jax", hint=None, device="cuda", repair="(tuned)")


def make(fixed):
    import functools

    import jax
    import jax.numpy as jnp
    wide, heads, long, many, batch, words = 1024, 8, 1024, 6, 8, 8192
    kind = "cudnn" if jax.default_backend() == "gpu" else None

    def weight(key, a, b):
        return (jax.random.normal(key, (a, b)) * a ** -0.5).astype(jnp.bfloat16)
    keys = jax.random.split(jax.random.key(0), 4 * many + 2)
    params = {"embed": weight(keys[0], words, wide), "blocks": [
        {"qkv": weight(keys[4 * i + 1], wide, 3 * wide),
         "out": weight(keys[4 * i + 2], wide, wide),
         "up": weight(keys[4 * i + 3], wide, 4 * wide),
         "down": weight(keys[4 * i + 4], 4 * wide, wide)} for i in range(many)]}
    ids = jax.random.randint(keys[-1], (batch, long), 0, words)

    def norm(x):
        y = x.astype(jnp.float32)
        y = y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)
        return y.astype(x.dtype)

    def loss(params, ids):
        x = params["embed"][ids]
        for p in params["blocks"]:
            q, k, v = jnp.split((norm(x) @ p["qkv"]).reshape(
                batch, long, 3 * heads, wide // heads), 3, 2)
            a = jax.nn.dot_product_attention(q, k, v, is_causal=True,
                                             implementation=kind)
            x = x + a.reshape(x.shape) @ p["out"]
            x = x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]
        out = (norm(x) @ params["embed"].T)[:, :-1].astype(jnp.float32)
        right = jnp.take_along_axis(out, ids[:, 1:, None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(out, -1) - right)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train(params, speed, ids):
        grads = jax.grad(loss)(params, ids)
        speed = jax.tree.map(lambda s, g: 0.9 * s + g, speed, grads)
        return jax.tree.map(lambda p, s: p - 1e-3 * s, params, speed), speed
    state = [params, jax.tree.map(jnp.zeros_like, params)]

    def step():
        state[:] = train(*state, ids)
        return state
    return step
