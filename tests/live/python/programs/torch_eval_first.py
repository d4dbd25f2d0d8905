# SPDX-License-Identifier: Apache-2.0
"""Training that evaluates first, and after each epoch. --late makes the
optimizer behind the first evaluation, --folds a new one for each of three
models that are trained one after the other."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(160, 16)), batch_size=4)
check = DataLoader(TensorDataset(torch.randn(400, 16)), batch_size=4)


def evaluate(model):
    with torch.no_grad():
        return sum(model(x).sum().item() for (x,) in check)


def fit(epochs, late=False):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    if late:
        evaluate(model)
    optimizer = torch.optim.Adam(model.parameters())
    if not late:
        evaluate(model)
    for _ in range(epochs):
        for (x,) in train:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        evaluate(model)
    return loss.item()


if "--folds" in sys.argv:
    losses = [fit(1) for _ in range(3)]
else:
    losses = [fit(2, "--late" in sys.argv)]
print("losses", [round(x, 4) for x in losses])
