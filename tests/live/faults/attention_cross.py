# SPDX-License-Identifier: Apache-2.0
"""Cross-attention with an additive bias, by einsum."""
import kit

META = dict(framework="torch", hint="slow-attention",
            repair="scaled_dot_product_attention")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, n, m = (768, 12, 1024, 2048) if kit.on_gpu() \
        else (64, 2, 512, 1024)

    class Cross(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.kv = nn.Linear(wide, wide), nn.Linear(wide, 2 * wide)
            self.out = nn.Linear(wide, wide)
            self.bias = nn.Parameter(torch.zeros(n, m), requires_grad=False)

        def forward(self, pair):
            x, y = pair
            q = self.q(x).unflatten(-1, (heads, -1)).transpose(1, 2)
            k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2)
                    for t in self.kv(y).chunk(2, -1))
            if fixed:
                a = F.scaled_dot_product_attention(q, k, v,
                                                   self.bias.to(q.dtype))
            else:
                s = torch.einsum("bhnd,bhmd->bhnm", q, k)
                s = s * (wide // heads) ** -0.5 + self.bias
                a = torch.einsum("bhnm,bhmd->bhnd", F.softmax(s, -1), v)
            return self.out(a.transpose(1, 2).flatten(2))

    torch.manual_seed(0)
    model = Cross().to(kit.device())
    x, y = (torch.randn(4, n, wide).to(kit.device()),
            torch.randn(4, m, wide).to(kit.device()))
    return kit.torch_train(model, lambda: ((x, y), None),
                           lambda out, _: out.float().square().mean(),
                           autocast=kit.on_gpu())
