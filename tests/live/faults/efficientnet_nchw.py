# SPDX-License-Identifier: Apache-2.0
"""Inverted bottlenecks, fused at first and depthwise later, in NCHW."""
import kit

META = dict(framework="torch", hint="slow-layout", device="cuda",
            repair="channels_last")


def make(fixed):
    import torch
    from torch import nn

    def conv(a, b, size, stride=1, groups=1):
        return nn.Sequential(
            nn.Conv2d(a, b, size, stride, size // 2, groups=groups,
                      bias=False), nn.BatchNorm2d(b), nn.SiLU())

    class Squeeze(nn.Module):
        def __init__(self, c, small):
            super().__init__()
            self.body = nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, small, 1), nn.SiLU(),
                nn.Conv2d(small, c, 1), nn.Sigmoid())

        def forward(self, x):
            return x * self.body(x)

    class Block(nn.Module):
        def __init__(self, a, b, stride, fused):
            super().__init__()
            c = 4 * a
            first = [conv(a, c, 3, stride)] if fused else \
                [conv(a, c, 1), conv(c, c, 3, stride, c), Squeeze(c, a // 4)]
            self.body = nn.Sequential(
                *first, nn.Conv2d(c, b, 1, bias=False), nn.BatchNorm2d(b))
            self.same = a == b and stride == 1

        def forward(self, x):
            return x + self.body(x) if self.same else self.body(x)

    torch.manual_seed(0)
    blocks, width = [], 32
    for c, many, fused in ((48, 4, True), (96, 4, True), (160, 6, False)):
        for i in range(many):
            blocks.append(Block(width, c, 1 if i else 2, fused))
            width = c
    model = nn.Sequential(conv(3, 32, 3, 2), *blocks, conv(width, 1024, 1),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(1024, 1000)).to(kit.device())
    x = torch.randn(96, 3, 256, 256)
    if fixed:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 1000, (96,))),
        nn.functional.cross_entropy, autocast=True)
