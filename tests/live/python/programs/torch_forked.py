# SPDX-License-Identifier: Apache-2.0
"""Two processes that are forked train a model each; the parent does not."""

import multiprocessing

import torch
from torch import nn


def train(seed, queue):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    queue.put(loss.item())


context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
workers = [context.Process(target=train, args=(i, queue)) for i in range(2)]
for w in workers:
    w.start()
for w in workers:
    w.join()
print("losses", sorted(round(queue.get(), 4) for _ in workers), "steps 40")
