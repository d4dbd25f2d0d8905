# SPDX-License-Identifier: Apache-2.0
"""A compiled model, trained. BACKEND takes another backend than inductor."""

import os
import statistics
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)) * 0.5)


model = torch.compile(Net(), backend=os.environ.get("BACKEND", "inductor"))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps, times = 0, []
for i in range(60):
    begin = time.perf_counter()
    x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
    times.append(time.perf_counter() - begin)

print("loss %.3f after steps %d" % (loss.item(), steps))
if os.environ.get("BARE"):
    print("bare_us %.1f" % (1e6 * statistics.median(times)))
