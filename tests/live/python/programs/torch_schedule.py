# SPDX-License-Identifier: Apache-2.0
"""A training loop that profiles itself, by torch.profiler with a schedule."""

import os
import statistics
import time

import torch
from torch import nn
from torch.profiler import (profile, schedule, tensorboard_trace_handler,
                            ProfilerActivity)

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_of = nn.CrossEntropyLoss()
steps, times = 0, []

with profile(activities=[ProfilerActivity.CPU],
             schedule=schedule(wait=10, warmup=2, active=3, repeat=2),
             on_trace_ready=tensorboard_trace_handler(
                 os.environ.get("TRACES", "./traces")),
             record_shapes=True) as prof:
    for i in range(40):
        begin = time.perf_counter()
        x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        steps += 1
        times.append(time.perf_counter() - begin)
        prof.step()

print("loss %.3f after steps %d" % (loss.item(), steps))
if os.environ.get("BARE"):
    print("bare_us %.1f" % (1e6 * statistics.median(times)))
