# SPDX-License-Identifier: Apache-2.0
"""A training loop that profiles itself by opscope.torch.profile, into a folder
of its own."""

import sys

import torch
from torch import nn

import opscope.torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with opscope.torch.profile(
        schedule=opscope.torch.schedule(wait=1, warmup=1, active=3, repeat=1),
        logdir=sys.argv[1]) as prof:
    for i in range(20):
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        prof.step()
print("loss %.4f, files %d" % (loss.item(), len(prof.paths)))
