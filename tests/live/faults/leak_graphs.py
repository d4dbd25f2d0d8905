# SPDX-License-Identifier: Apache-2.0
"""A list that keeps each step's loss together with its graph."""
import kit

META = dict(framework="torch", hint="memory-leak", any_saving=True,
            repair="loss.detach()")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    first = nn.Linear(256, 512).to(kit.device())
    model = nn.Sequential(nn.ReLU(), nn.Linear(512, 10)).to(kit.device())
    x = torch.randn(256, 256, device=kit.device())
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []

    def step():
        opt.zero_grad()
        hidden = first(x)
        loss = model(hidden).square().mean()
        loss.backward()
        opt.step()
        kept.append(loss.detach() if fixed else (loss, hidden))
        del kept[:-2000]
        return loss
    return step
