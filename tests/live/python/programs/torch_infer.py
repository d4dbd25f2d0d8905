# SPDX-License-Identifier: Apache-2.0
"""Inference over a DataLoader: no optimizer, no worker processes."""

import os
import statistics
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(50 * 16, 3, 32, 32))
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                      nn.Linear(256, 10)).eval()
steps, times, votes = 0, [], torch.zeros(10, dtype=torch.long)
last = time.perf_counter()
with torch.inference_mode():
    for (x,) in DataLoader(data, batch_size=16):
        votes += torch.bincount(model(x).argmax(1), minlength=10)
        steps += 1
        now = time.perf_counter()
        times.append(now - last)
        last = now

print("votes %d after steps %d" % (int(votes.sum()), steps))
if os.environ.get("BARE"):
    print("bare_us %.1f" % (1e6 * statistics.median(times)))
