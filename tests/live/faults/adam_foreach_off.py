# SPDX-License-Identifier: Apache-2.0
"""Adam one tensor at a time, on blocks of attention and convolution."""
import kit

META = dict(framework="torch", hint={"slow-op", "launch-bound"},
            repair="fused=True")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, long, batch, many = (384, 384, 16, 24) if kit.on_gpu() \
        else (32, 16, 2, 24)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2, self.n3 = (nn.LayerNorm(wide) for _ in range(3))
            self.qkv = nn.Linear(wide, 3 * wide)
            self.out = nn.Linear(wide, wide)
            self.gate = nn.Linear(wide, 2 * wide)
            self.deep = nn.Conv1d(wide, wide, 15, padding=7, groups=wide)
            self.mix = nn.Linear(wide, wide)
            self.up, self.down = (nn.Linear(wide, 4 * wide),
                                  nn.Linear(4 * wide, wide))

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2)
                       for t in self.qkv(self.n1(x)).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v)
            x = x + self.out(a.transpose(1, 2).flatten(2))
            y = F.glu(self.gate(self.n2(x))).transpose(1, 2)
            x = x + self.mix(F.silu(self.deep(y)).transpose(1, 2))
            return x + self.down(F.silu(self.up(self.n3(x))))

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(80, wide), *(Block() for _ in range(many)),
                          nn.Linear(wide, 32)).to(kit.device())
    opt = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False,
                           fused=fixed)
    return kit.torch_train(
        model, kit.torch_fixed_batch(torch.randn(batch, long, 80),
                                     torch.randint(0, 32, (batch, long))),
        lambda out, y: F.cross_entropy(out.flatten(0, 1), y.flatten()),
        optimizer=opt, autocast=kit.on_gpu())
