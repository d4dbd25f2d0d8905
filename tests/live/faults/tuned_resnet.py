# SPDX-License-Identifier: Apache-2.0
"""Residual blocks, channels last, bf16, compiled, a fused optimizer."""
import kit

META = dict(framework="torch", hint=None, device="cuda", warm=5,
            repair="(tuned)")


def make(fixed):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a = nn.Conv2d(c, c, 3, padding=1, bias=False)
            self.b = nn.Conv2d(c, c, 3, padding=1, bias=False)
            self.na, self.nb = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

        def forward(self, x):
            y = self.nb(self.b(torch.relu(self.na(self.a(x)))))
            return torch.relu(x + y)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 256, 7, 4, 3),
                          *(Block(256) for _ in range(6)),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(256, 100))
    model = torch.compile(model.to(kit.device(),
                                   memory_format=torch.channels_last))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(128, 3, 224, 224).contiguous(
        memory_format=torch.channels_last)
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 100, (128,))),
        nn.functional.cross_entropy, optimizer=opt, autocast=True)
