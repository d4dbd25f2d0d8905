# SPDX-License-Identifier: Apache-2.0
"""Inference in a plain loop: neither loader nor optimizer. With --fail a part
of the model fails at the end."""

import sys

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.fail = nn.Linear(8 * 14 * 14, 10), False

    def forward(self, x):
        if self.fail:
            raise ValueError("no such class")
        return self.out(x)


torch.manual_seed(0)
torch.set_num_threads(1)
head = Head()
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(),
                      head).eval()
total = 0
with torch.inference_mode():
    for i in range(50):
        total += model(torch.randn(4, 3, 16, 16)).argmax(1).sum().item()
    print("total %d after steps 50" % total, flush=True)
    head.fail = "--fail" in sys.argv
    model(torch.randn(4, 3, 16, 16))
