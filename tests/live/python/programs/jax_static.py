# SPDX-License-Identifier: Apache-2.0
"""One jitted method with a static choice between training and evaluation, on
a class; batches from numpy."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import by_hand

STEPS = 50


class Trainer:
    rate = 0.1

    @partial(jax.jit, static_argnums=0, static_argnames=("train",))
    def step(self, w, x, *, train):
        def loss_of(w):
            return jnp.mean(jnp.tanh(x @ w) ** 2)
        if not train:
            return w, loss_of(w)
        loss, g = jax.value_and_grad(loss_of)(w)
        return w - self.rate * g, loss


trainer, w = Trainer(), jnp.eye(64) * 0.5
rng = np.random.default_rng(0)
for i in range(1, STEPS + 1):
    by_hand.jax_at(i)
    x = jax.device_put(rng.normal(size=(32, 64)).astype("float32"))
    w, loss = trainer.step(w, x, train=True)
    if i % 5 == 0:
        trainer.step(w, x, train=False)
print("steps %d" % STEPS)
