# SPDX-License-Identifier: Apache-2.0
"""Blocks with RMS norm, rotary embedding and a gated layer, op by op."""
import kit

META = dict(framework="torch", hint="unfused-pointwise", device="cuda",
            warm=4, repair="torch.compile")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, long, many = 1024, 16, 2048, 4

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(wide))

        def forward(self, x):
            y = x.float()
            y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
            return (y * self.w).to(x.dtype)

    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = Norm(), Norm()
            self.qkv = nn.Linear(wide, 3 * wide, bias=False)
            self.out = nn.Linear(wide, wide, bias=False)
            self.gate = nn.Linear(wide, 2 * wide, bias=False)
            self.up = nn.Linear(wide, 2 * wide, bias=False)
            self.down = nn.Linear(2 * wide, wide, bias=False)

        def forward(self, x, cos, sin):
            b, n, _ = x.shape
            q, k, v = (t.view(b, n, heads, -1).transpose(1, 2)
                       for t in self.qkv(self.n1(x)).chunk(3, -1))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, n, wide))
            y = self.n2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(many))
            t = torch.outer(torch.arange(long),
                            1e4 ** -torch.arange(0, 1, 2 * heads / wide))
            t = torch.cat([t, t], -1)
            self.register_buffer("cos", t.cos())
            self.register_buffer("sin", t.sin())

        def forward(self, x):
            for block in self.blocks:
                x = block(x, self.cos, self.sin)
            return x

    torch.manual_seed(0)
    model = Model().to(kit.device(), torch.bfloat16)
    x = torch.randn(4, long, wide).bfloat16()
    return kit.torch_train(torch.compile(model) if fixed else model,
                           kit.torch_fixed_batch(x, x),
                           lambda out, y: out.float().square().mean())
