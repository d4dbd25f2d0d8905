# SPDX-License-Identifier: Apache-2.0
"""Inference of a decoder: attention to itself and to a padded memory, both
written out."""
import kit

META = dict(framework="torch", hint="slow-attention",
            repair="scaled_dot_product_attention")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, n, m, many, batch = (512, 16, 1024, 2048, 6, 8) \
        if kit.on_gpu() else (64, 4, 384, 768, 2, 2)

    class Attend(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(wide)
            self.q, self.k, self.v, self.out = (nn.Linear(wide, wide)
                                                for _ in range(4))

        def forward(self, x, memory, mask):
            y = self.norm(x)
            memory = y if memory is None else memory
            q, k, v = (lin(t).view(batch, -1, heads, wide // heads)
                       .transpose(1, 2) for lin, t in
                       ((self.q, y), (self.k, memory), (self.v, memory)))
            if fixed:
                a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask,
                                                   is_causal=mask is None)
            else:
                if mask is None:
                    mask = torch.ones(n, n, dtype=torch.bool,
                                      device=x.device).tril()
                s = torch.matmul(q, k.transpose(2, 3)) / (wide // heads) ** 0.5
                s = s.masked_fill(~mask, float("-inf"))
                a = torch.matmul(torch.softmax(s, -1), v)
            return x + self.out(a.transpose(1, 2).reshape(batch, -1, wide))

    torch.manual_seed(0)
    layers = nn.ModuleList(nn.ModuleList(
        (Attend(), Attend(), nn.Sequential(
            nn.LayerNorm(wide), nn.Linear(wide, 2 * wide), nn.ReLU(),
            nn.Linear(2 * wide, wide)))) for _ in range(many))
    layers = layers.to(kit.device()).eval()
    x, memory, sizes = (t.to(kit.device()) for t in (
        torch.randn(batch, n, wide), torch.randn(batch, m, wide),
        torch.randint(m // 2, m, (batch, 1, 1, 1))))
    there = torch.arange(m, device=kit.device()) < sizes

    @torch.no_grad()
    def step():
        torch.backends.cuda.matmul.allow_tf32 = True
        y = x
        for mine, cross, feed in layers:
            y = cross(mine(y, None, None), memory, there)
            y = y + feed(y)
        return y
    return step
