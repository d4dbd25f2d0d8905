# SPDX-License-Identifier: Apache-2.0
"""Gradient descent by hand: no module and no optimizer. --penalty adds one on
the gradient of the input, --checkpoint runs forward again inside of
backward()."""

import sys

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.set_num_threads(1)
w = torch.randn(64, 64, requires_grad=True)
b = torch.zeros(64, requires_grad=True)
x, y = torch.randn(128, 64), torch.randn(128, 64)
penalty, again = "--penalty" in sys.argv, "--checkpoint" in sys.argv
x.requires_grad_(penalty or again)


def model(x):
    return (x @ w + b).tanh()


for i in range(50):
    out = checkpoint(model, x, use_reentrant=True) if again else model(x)
    loss = (out - y).square().mean()
    if penalty:
        slope, = torch.autograd.grad(loss, x, create_graph=True)
        loss = loss + slope.square().sum()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad = None
print("loss %.4f after steps 50" % loss.item())
