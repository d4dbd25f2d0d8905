# SPDX-License-Identifier: Apache-2.0
"""A vision transformer in bf16, compiled, with a fused optimizer."""
import kit

META = dict(framework="torch", hint=None, device="cuda", warm=5,
            repair="(tuned)")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, many, batch = 1024, 16, 6, 128

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
            self.patch = nn.Linear(3 * 14 * 14, wide)
            self.place = nn.Parameter(torch.randn(256, wide) * 0.02)
            self.blocks = nn.Sequential(*(Block() for _ in range(many)))
            self.norm, self.head = nn.LayerNorm(wide), nn.Linear(wide, 1000)

        def forward(self, x):
            x = x.view(batch, 3, 16, 14, 16, 14).permute(0, 2, 4, 1, 3, 5)
            x = self.patch(x.reshape(batch, 256, -1)) + self.place
            return self.head(self.norm(self.blocks(x)).mean(1))

    torch.manual_seed(0)
    model = torch.compile(Vit().to(kit.device(), torch.bfloat16))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(batch, 3, 224, 224).bfloat16()
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 1000, (batch,))),
        lambda out, y: F.cross_entropy(out.float(), y), optimizer=opt)
