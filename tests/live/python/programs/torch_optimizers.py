# SPDX-License-Identifier: Apache-2.0
"""Forty updates with optimizers as few programs have them:
    hooks    one for each parameter, which steps inside of backward()
    sam      one that steps another one inside of its own step
    choice   one of two that were made for the same model
    spare    one beside another one that never steps
    late     the second one begins after step 20
    threads  two threads with a model each
    turns    two that step twenty times each, in turns of twenty"""

import sys
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
kind = sys.argv[1]
SGD = torch.optim.SGD


class Sam(torch.optim.Optimizer):
    """Steps at a point near by (sharpness-aware minimisation)."""

    def __init__(self, params):
        super().__init__(params, {"rho": 0.05})
        self.base = SGD(self.param_groups, lr=0.01)

    @torch.no_grad()
    def step(self, closure):
        params = [p for g in self.param_groups for p in g["params"]]
        old = [p.clone() for p in params]
        for p in params:
            p.add_(p.grad, alpha=0.05)
        with torch.enable_grad():
            closure()
        for p, was in zip(params, old):
            p.copy_(was)
        self.base.step()


def made():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def train(model, step):
    for i in range(40):
        model.zero_grad()
        loss = model(torch.ones(8, 16)).square().mean()
        loss.backward()
        step(i, loss)


model, other = made(), made()
if kind == "hooks":
    of = {p: SGD([p], lr=0.01) for p in model.parameters()}
    for p in of:
        p.register_post_accumulate_grad_hook(lambda p: of[p].step())
    train(model, lambda i, loss: None)
elif kind == "sam":
    sam = Sam(model.parameters())

    def again():
        model.zero_grad()
        model(torch.ones(8, 16)).square().mean().backward()
    train(model, lambda i, loss: sam.step(again))
elif kind == "choice":
    both = {"sgd": SGD(model.parameters(), lr=0.01),
            "adam": torch.optim.Adam(model.parameters())}
    train(model, lambda i, loss: both["adam"].step())
elif kind == "threads":
    def one():
        mine = made()
        opt = SGD(mine.parameters(), lr=0.01)
        train(mine, lambda i, loss: (opt.step(), time.sleep(0.002)))
    threads = [threading.Thread(target=one) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
else:
    head, body = list(model.parameters())[2:], list(model.parameters())[:2]
    first = SGD(head, lr=0.01)
    second = SGD(other.parameters() if kind == "spare" else body, lr=0.01)

    def step(i, loss):
        if kind != "turns" or i // 20 % 2 == 0:
            first.step()
        if (kind == "late" and i >= 20) or (kind == "turns" and i // 20 % 2):
            second.step()
    train(model, step)
print("after steps 40: %.6f" % sum(p.sum().item() for p in model.parameters()))
