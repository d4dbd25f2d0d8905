# SPDX-License-Identifier: Apache-2.0
"""Attention with a bias by distance (ALiBi) and a dropout of 0, written out."""
import kit

META = dict(framework="torch", hint="slow-attention",
            repair="scaled_dot_product_attention with attn_mask")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, long, many, batch = (1024, 16, 1024, 5, 8) if kit.on_gpu() \
        else (64, 4, 512, 2, 2)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.qkv = nn.Linear(wide, 3 * wide)
            self.out = nn.Linear(wide, wide)
            self.up, self.down = (nn.Linear(wide, 2 * wide),
                                  nn.Linear(2 * wide, wide))

        def forward(self, x, bias):
            q, k, v = self.qkv(self.n1(x)).unflatten(
                -1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            bias = bias.to(q.dtype)
            if fixed:
                a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias,
                                                   dropout_p=0.0)
            else:
                s = torch.matmul(q, k.mT) * (wide // heads) ** -0.5
                p = F.softmax(s + bias, dim=-1)
                a = torch.matmul(F.dropout(p, 0.0, self.training), v)
            x = x + self.out(a.transpose(1, 2).flatten(2))
            return x + self.down(F.gelu(self.up(self.n2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(many))
            at = torch.arange(long)
            far = (at[:, None] - at).abs()
            slope = 2.0 ** (-8 / heads * torch.arange(1, heads + 1))
            self.register_buffer("bias", -slope[:, None, None] * far)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x, self.bias[None])
            return x

    torch.manual_seed(0)
    x = torch.randn(batch, long, wide)
    return kit.torch_train(Model().to(kit.device()),
                           kit.torch_fixed_batch(x, x),
                           lambda out, y: out.float().square().mean(),
                           autocast=kit.on_gpu())
