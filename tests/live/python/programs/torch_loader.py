# SPDX-License-Identifier: Apache-2.0
"""A training loop with a DataLoader of two workers and named regions."""

import os
import statistics
import time

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 40 * 32

    def __getitem__(self, i):
        x = torch.full((128,), float(i % 17))
        return x * x, i % 10


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Squares(), batch_size=32, num_workers=2)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    times, steps = [], 0
    last = time.perf_counter()
    for x, y in loader:
        with record_function("forward"):
            loss = loss_of(model(x), y)
        with record_function("backward"):
            optimizer.zero_grad()
            loss.backward()
        with record_function("update"):
            optimizer.step()
        steps += 1
        now = time.perf_counter()
        times.append(now - last)
        last = now
    print("loss %.3f after steps %d" % (loss.item(), steps))
    if os.environ.get("BARE"):
        print("bare_us %.1f" % (1e6 * statistics.median(times)))


if __name__ == "__main__":
    main()
