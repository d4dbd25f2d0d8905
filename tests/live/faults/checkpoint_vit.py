# SPDX-License-Identifier: Apache-2.0
"""A wide vision transformer, every block of which is checkpointed."""
import kit

META = dict(framework="torch", hint="recompute", repair="no checkpoints")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.utils.checkpoint import checkpoint
    wide, heads, many, batch, size = (1280, 16, 8, 32, 224) if kit.on_gpu() \
        else (128, 4, 4, 4, 112)
    tokens = (size // 14) ** 2 + 1

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.qkv = nn.Linear(wide, 3 * wide)
            self.out = nn.Linear(wide, wide)
            self.feed = nn.Sequential(nn.Linear(wide, 4 * wide), nn.GELU(),
                                      nn.Linear(4 * wide, wide))

        def forward(self, x):
            q, k, v = self.qkv(self.n1(x)).unflatten(
                -1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v)
            x = x + self.out(a.transpose(1, 2).flatten(2))
            return x + self.feed(self.n2(x))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, wide, 14, 14)
            self.first = nn.Parameter(torch.zeros(1, 1, wide))
            self.place = nn.Parameter(torch.randn(tokens, wide) * 0.02)
            self.blocks = nn.ModuleList(Block() for _ in range(many))
            self.norm, self.head = nn.LayerNorm(wide), nn.Linear(wide, 1000)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(batch, -1, -1), x], 1) + self.place
            for block in self.blocks:
                x = block(x) if fixed else \
                    checkpoint(block, x, use_reentrant=False)
            return self.head(self.norm(x[:, 0]))

    torch.manual_seed(0)
    return kit.torch_train(
        Vit().to(kit.device()),
        kit.torch_fixed_batch(torch.randn(batch, 3, size, size),
                              torch.randint(0, 1000, (batch,))),
        F.cross_entropy, autocast=kit.on_gpu())
