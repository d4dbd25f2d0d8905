# SPDX-License-Identifier: Apache-2.0
"""A model of torch's, with a loss that JAX computes beside it."""
import jax
import jax.numpy as jnp
import numpy
import torch

STEPS = 20
model = torch.nn.Linear(32, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


@jax.jit
def penalty(w):
    return jnp.sum(jnp.tanh(w @ w.T))


for i in range(STEPS):
    loss = model(torch.ones(16, 32)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    float(penalty(numpy.asarray(model.weight.detach())))
print("steps %d" % STEPS)
