# SPDX-License-Identifier: Apache-2.0
"""A residual CNN in NCHW under autocast."""
import kit

META = dict(framework="torch", hint="slow-layout", device="cuda",
            repair="channels_last")


def make(fixed):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(c, c // 4, 1, bias=False), nn.BatchNorm2d(c // 4),
                nn.ReLU(), nn.Conv2d(c // 4, c // 4, 3, padding=1, bias=False),
                nn.BatchNorm2d(c // 4), nn.ReLU(),
                nn.Conv2d(c // 4, c, 1, bias=False), nn.BatchNorm2d(c))

        def forward(self, x):
            return torch.relu(x + self.body(x))

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 256, 7, 4, 3),
                          *(Block(256) for _ in range(12)),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(256, 100)).to(kit.device())
    x = torch.randn(64, 3, 224, 224)
    if fixed:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 100, (64,))),
        nn.functional.cross_entropy, autocast=True)
