# SPDX-License-Identifier: Apache-2.0
"""Gradient descent by hand: no module and no optimizer."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
w = torch.randn(64, 64, requires_grad=True)
b = torch.zeros(64, requires_grad=True)
x, y = torch.randn(128, 64), torch.randn(128, 64)
for i in range(50):
    loss = ((x @ w + b).tanh() - y).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad = None
print("loss %.4f after steps 50" % loss.item())
