# SPDX-License-Identifier: Apache-2.0
"""Training in a thread, with a closure and an optimizer of the program's own;
says how many steps it took. An argument is how many it takes."""

import sys
import threading

import torch
from torch import nn


class Signs(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        with torch.enable_grad():
            loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad.sign(), alpha=-group["lr"])
        return loss


def train(steps):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = Signs(model.parameters())
    for _ in range(steps):
        x = torch.randn(8, 16)

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss
        loss = optimizer.step(closure)
    print("loss %.4f after steps %d" % (loss.item(), steps))


torch.set_num_threads(1)
thread = threading.Thread(target=train, args=(int((sys.argv + ["40"])[1]),))
thread.start()
thread.join()
