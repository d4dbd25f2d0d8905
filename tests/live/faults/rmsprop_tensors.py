# SPDX-License-Identifier: Apache-2.0
"""RMSprop with momentum, one tensor at a time, over many small layers."""
import kit

META = dict(framework="torch", hint={"launch-bound", "slow-op"},
            repair="foreach=True")


def make(fixed):
    import torch
    from torch import nn
    wide, many = (384, 40) if kit.on_gpu() else (32, 32)
    torch.manual_seed(0)
    layers = []
    for _ in range(many):
        layers += [nn.Linear(wide, wide), nn.SiLU()]
    model = nn.Sequential(*layers, nn.Linear(wide, 4)).to(kit.device())
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9,
                              centered=True, foreach=fixed)
    x = torch.randn(64, wide)
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           lambda out, y: out.square().mean(), optimizer=opt)
