# SPDX-License-Identifier: Apache-2.0
"""A stream of samples without a length, made by workers that are spawned."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        for i in range(worker.id, 200, worker.num_workers):
            yield torch.full((32,), float(i % 7)), i % 4


def main():
    torch.manual_seed(0)
    loader = DataLoader(Stream(), batch_size=4, num_workers=2,
                        multiprocessing_context="spawn")
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    steps = 0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print("loss %.3f after steps %d" % (loss.item(), steps))


if __name__ == "__main__":
    main()
