# SPDX-License-Identifier: Apache-2.0
"""A transformer with all that is usually advised."""
import kit

META = dict(framework="torch", hint=None, device="cuda", warm=5,
            repair="(tuned)")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, long, many = 2048, 16, 1024, 4

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
            self.up, self.down = (nn.Linear(wide, 4 * wide),
                                  nn.Linear(4 * wide, wide))

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = (t.view(b, n, heads, -1).transpose(1, 2)
                       for t in self.qkv(self.n1(x)).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, n, wide))
            return x + self.down(F.gelu(self.up(self.n2(x))))

    torch.manual_seed(0)
    model = nn.Sequential(*(Block() for _ in range(many)))
    model = torch.compile(model.to(kit.device(), torch.bfloat16))
    opt = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(16, long, wide).bfloat16()
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           lambda out, y: out.float().square().mean(),
                           optimizer=opt)
