# SPDX-License-Identifier: Apache-2.0
"""Causal self-attention written out: two products with a softmax between."""
import kit

META = dict(framework="torch", hint="slow-attention",
            repair="scaled_dot_product_attention")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, long, many = (1024, 16, 2048, 6) if kit.on_gpu() \
        else (64, 4, 768, 2)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(wide)
            self.qkv = nn.Linear(wide, 3 * wide)
            self.out = nn.Linear(wide, wide)
            mask = torch.triu(torch.ones(long, long, dtype=torch.bool), 1)
            self.register_buffer("mask", mask)

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = (t.view(b, n, heads, -1).transpose(1, 2)
                       for t in self.qkv(self.norm(x)).chunk(3, -1))
            if fixed:
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                s = q @ k.transpose(-2, -1) / (wide // heads) ** 0.5
                s = s.masked_fill(self.mask, float("-inf"))
                a = torch.softmax(s, -1) @ v
            return x + self.out(a.transpose(1, 2).reshape(b, n, wide))

    torch.manual_seed(0)
    model = nn.Sequential(*(Attention() for _ in range(many)),
                          nn.Linear(wide, 10)).to(kit.device())
    x = torch.randn(2, long, wide)
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           lambda out, y: out.float().pow(2).mean(),
                           autocast=kit.on_gpu())
