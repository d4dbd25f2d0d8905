# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training on two gloo ranks. It starts them itself, or runs as
one of them under torchrun --nproc-per-node 2."""

import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 40


def train(rank, world, meeting):
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    if meeting:     # a file: a port that is free now may be taken by then
        dist.init_process_group("gloo", init_method="file://" + meeting,
                                rank=rank, world_size=world)
    else:
        dist.init_process_group("gloo")
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    times = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    dist.barrier()
    if rank == 0:
        print("loss %.3f after steps %d" % (loss.item(), STEPS))
        if os.environ.get("BARE"):
            print("bare_us %.1f" % (1e6 * statistics.median(times)),
                  flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), None)
    else:
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(train, args=(2, os.path.join(folder, "meeting")),
                     nprocs=2)
