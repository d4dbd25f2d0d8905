# SPDX-License-Identifier: Apache-2.0
"""A GAN: each turn steps the discriminator, then the generator."""

import os
import statistics
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
G = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64))
D = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
loss_of = nn.BCEWithLogitsLoss()
real, fake = torch.ones(32, 1), torch.zeros(32, 1)
steps, times = 0, []
for i in range(50):
    begin = time.perf_counter()
    data = torch.randn(32, 64) + 1.0
    made = G(torch.randn(32, 16))
    opt_d.zero_grad()
    loss_d = loss_of(D(data), real) + loss_of(D(made.detach()), fake)
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_g = loss_of(D(made), real)
    loss_g.backward()
    opt_g.step()
    steps += 1
    times.append(time.perf_counter() - begin)

print("D %.3f G %.3f after steps %d" % (loss_d.item(), loss_g.item(), steps))
if os.environ.get("BARE"):
    # without those that warm up, and the traced ones with the step behind them
    counted = times[3:29] + times[33:]
    print("bare_us %.1f" % (1e6 * statistics.median(counted)))
