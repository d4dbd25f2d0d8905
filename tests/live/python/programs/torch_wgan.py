# SPDX-License-Identifier: Apache-2.0
"""A GAN whose critic steps five times for each step of its generator. It pauses
while the file that is its argument waits to be taken."""

import os
import sys
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
C = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
opt_g = torch.optim.RMSprop(G.parameters(), lr=1e-4)
opt_c = torch.optim.RMSprop(C.parameters(), lr=1e-4)
for i in range(60):
    for _ in range(5):
        opt_c.zero_grad()
        made = G(torch.randn(16, 8)).detach()
        loss_c = C(made).mean() - C(torch.randn(16, 16)).mean()
        loss_c.backward()
        opt_c.step()
    opt_g.zero_grad()
    loss_g = -C(G(torch.randn(16, 8))).mean()
    loss_g.backward()
    opt_g.step()
    if len(sys.argv) > 1:
        time.sleep(0.02)
        if i == 20:
            open(sys.argv[1], "w").close()
print("C %.4f G %.4f after steps 60" % (loss_c.item(), loss_g.item()))
