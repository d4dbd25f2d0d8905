# SPDX-License-Identifier: Apache-2.0
"""A mean for each class, each by a mask whose size the host must know."""
import kit

META = dict(framework="torch", hint="host-sync", device="cuda",
            repair="one index_add for all classes")


def make(fixed):
    import torch
    from torch import nn
    wide, classes, rows = 512, 40, 8192
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(),
                          nn.Linear(wide, 64)).to(kit.device())
    x = torch.randn(rows, wide)
    y = torch.randint(0, classes, (rows,))
    want = torch.randn(classes, 64, device=kit.device())

    def loss(out, y):
        if fixed:
            count = torch.bincount(y, minlength=classes).clamp(min=1)
            sums = torch.zeros_like(want).index_add(0, y, out)
            return (sums / count[:, None] - want).square().mean()
        parts = [(out[y == c].mean(0) - want[c]).square().mean()
                 for c in range(classes)]
        return torch.stack(parts).mean()
    return kit.torch_train(model, kit.torch_fixed_batch(x, y), loss)
