# SPDX-License-Identifier: Apache-2.0
"""A CNN in checkpointed segments (the older, reentrant way)."""
import kit

META = dict(framework="torch", hint="recompute", repair="no checkpoints")


def make(fixed):
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint_sequential
    wide, size = (256, 64) if kit.on_gpu() else (32, 32)
    torch.manual_seed(0)
    layers = []
    for _ in range(8):
        layers += [nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU()]
    body = nn.Sequential(*layers)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, wide, 3, padding=1)
            self.body = body
            self.head = nn.Linear(wide, 10)

        def forward(self, x):
            x = self.stem(x)
            x = self.body(x) if fixed else checkpoint_sequential(
                self.body, 4, x, use_reentrant=True)
            return self.head(x.mean((2, 3)))

    model = Model().to(kit.device())
    return kit.torch_train(
        model, kit.torch_fixed_batch(torch.randn(8, 3, size, size),
                                     torch.randint(0, 10, (8,))),
        nn.functional.cross_entropy, autocast=kit.on_gpu())
