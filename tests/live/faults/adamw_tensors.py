# SPDX-License-Identifier: Apache-2.0
"""AdamW one tensor at a time, on many small blocks."""
import kit

META = dict(framework="torch", hint={"launch-bound", "slow-op"},
            repair="fused=True")


def make(fixed):
    import torch
    from torch import nn
    wide, many = (256, 48) if kit.on_gpu() else (32, 40)
    torch.manual_seed(0)
    layers = []
    for _ in range(many):
        layers += [nn.Linear(wide, wide), nn.LayerNorm(wide), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(wide, 10)).to(kit.device())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False,
                            fused=fixed)
    return kit.torch_train(
        model, kit.torch_fixed_batch(torch.randn(16, wide),
                                     torch.randint(0, 10, (16,))),
        nn.functional.cross_entropy, optimizer=opt)
