# SPDX-License-Identifier: Apache-2.0
"""Momentum by hand: four ops for each of many tensors."""
import kit

META = dict(framework="torch", hint={"launch-bound", "slow-op"},
            repair="torch._foreach_* over all tensors")


def make(fixed):
    import torch
    from torch import nn
    wide, many = (256, 60) if kit.on_gpu() else (24, 60)
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Sequential(nn.Linear(wide, wide), nn.Tanh())
          for _ in range(many)), nn.Linear(wide, 1)).to(kit.device())
    params = list(model.parameters())
    speed = [torch.zeros_like(p) for p in params]
    x = torch.randn(8, wide, device=kit.device())

    @torch.no_grad()
    def update():
        grads = [p.grad for p in params]
        if fixed:
            torch._foreach_mul_(speed, 0.9)
            torch._foreach_add_(speed, grads)
            torch._foreach_add_(params, speed, alpha=-1e-3)
            return
        for p, v, g in zip(params, speed, grads):
            v.mul_(0.9)
            v.add_(g)
            p.sub_(v * 1e-3)

    def step():
        for p in params:
            p.grad = None
        loss = model(x).pow(2).mean()
        loss.backward()
        update()
        return loss
    return step
