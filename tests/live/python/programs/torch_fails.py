# SPDX-License-Identifier: Apache-2.0
"""Programs that end by an exception: in the data of a loader, in a closure of
an optimizer, in a thread, in backward(). The argument says where."""

import sys
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, i):
        if i == 50 and where == "loader":
            raise ValueError("sample %d is broken" % i)
        return torch.ones(4)


def train():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(DataLoader(Data(), batch_size=2)):
        def closure():
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            if i == 25 and where in ("closure", "thread"):
                try:
                    [].pop()
                except IndexError as e:
                    raise ValueError("step %d is broken" % i) from e
            if i == 25 and where == "backward":
                loss.backward()
            return loss
        optimizer.step(closure)
    print("steps", i)


where = sys.argv[1]
if where == "thread":
    thread = threading.Thread(target=train, name="trainer")
    thread.start()
    thread.join()
else:
    train()
