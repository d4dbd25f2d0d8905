# SPDX-License-Identifier: Apache-2.0
"""An activation and a normalisation written out op by op."""
import kit

META = dict(framework="torch", hint="unfused-pointwise", warm=4,
            repair="torch.compile")


def make(fixed):
    import torch
    from torch import nn
    rows, wide = (65536, 1024) if kit.on_gpu() else (2048, 256)

    class Act(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(wide))

        def forward(self, x):
            y = 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x ** 3)))
            y = (y - y.mean(-1, keepdim=True)) / \
                torch.sqrt(y.var(-1, keepdim=True) + 1e-5)
            return x + y * self.scale

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(wide, wide), Act(), Act(), Act(),
                          nn.Linear(wide, 8)).to(kit.device())
    x = torch.randn(rows, wide)
    return kit.torch_train(torch.compile(model) if fixed else model,
                           kit.torch_fixed_batch(x, x),
                           lambda out, y: out.square().mean())
