# SPDX-License-Identifier: Apache-2.0
"""Gradients of four small batches make one step of the optimizer."""

import os
import statistics
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(40 * 4 * 8, 64),
                     torch.randint(0, 10, (40 * 4 * 8,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=40)
steps, times = 0, []
last = time.perf_counter()
for i, (x, y) in enumerate(loader, 1):
    loss = nn.functional.cross_entropy(model(x), y) / ACCUMULATE
    loss.backward()
    if i % ACCUMULATE == 0:
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        steps += 1
        now = time.perf_counter()
        times.append(now - last)
        last = now

print("loss %.3f after steps %d" % (loss.item() * ACCUMULATE, steps))
if os.environ.get("BARE"):
    print("bare_us %.1f" % (1e6 * statistics.median(times)))
