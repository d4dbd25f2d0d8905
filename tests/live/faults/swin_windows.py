# SPDX-License-Identifier: Apache-2.0
"""Attention in windows, with norms, rotary embedding and GELU by hand."""
import kit

META = dict(framework="torch", hint={"unfused-pointwise"}, device="cuda",
            warm=4, repair="torch.compile")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, side, window, many, batch = 384, 12, 64, 8, 4, 16
    parts = side // window

    def norm(x, w):
        y = x.float()
        y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + 1e-6)
        return (y * w).to(x.dtype)

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x * x * x)))

    def rotate(x, cos, sin):
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos],
                           -1).flatten(-2)

    class Block(nn.Module):
        def __init__(self, shift):
            super().__init__()
            self.shift = shift
            self.w1, self.w2 = (nn.Parameter(torch.ones(wide))
                                for _ in range(2))
            self.g1, self.g2 = (nn.Parameter(torch.full((wide,), 0.1))
                                for _ in range(2))
            self.qkv = nn.Linear(wide, 3 * wide)
            self.out = nn.Linear(wide, wide)
            self.up, self.down = (nn.Linear(wide, 4 * wide),
                                  nn.Linear(4 * wide, wide))
            t = torch.outer(torch.arange(window ** 2),
                            100 ** -torch.arange(0, 1, 2 * heads / wide))
            self.register_buffer("cos", t.cos())
            self.register_buffer("sin", t.sin())

        def forward(self, x):
            y = norm(x, self.w1).roll((self.shift, self.shift), (1, 2))
            y = y.view(batch, parts, window, parts, window, wide)
            y = y.transpose(2, 3).reshape(-1, window ** 2, wide)
            q, k, v = self.qkv(y).unflatten(-1, (3, heads, -1)).permute(
                2, 0, 3, 1, 4)
            q, k = (rotate(t, self.cos, self.sin) for t in (q, k))
            y = F.scaled_dot_product_attention(q, k, v)
            y = self.out(y.transpose(1, 2).flatten(2))
            y = y.view(batch, parts, parts, window, window, wide)
            y = y.transpose(2, 3).reshape(batch, side, side, wide)
            x = x + self.g1 * y.roll((-self.shift, -self.shift), (1, 2))
            y = self.down(gelu(self.up(norm(x, self.w2))))
            return x + self.g2 * y

    torch.manual_seed(0)
    model = nn.Sequential(*(Block(window // 2 * (i % 2)) for i in range(many)))
    model = model.to(kit.device(), torch.bfloat16)
    x = torch.randn(batch, side, side, wide).bfloat16()
    return kit.torch_train(torch.compile(model) if fixed else model,
                           kit.torch_fixed_batch(x, x),
                           lambda out, y: out.float().square().mean())
