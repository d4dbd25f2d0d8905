# SPDX-License-Identifier: Apache-2.0
"""A transformer whose experts pick their tokens by boolean masks, in a loop."""
import kit

META = dict(framework="torch", hint="host-sync", device="cuda",
            repair="tokens sorted by expert, one bmm")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, long, experts, many = 512, 8, 512, 12, 5
    rows = 8 * long
    room = 2 * rows // experts  # tokens an expert takes; the others pass by

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(wide, experts)
            self.up = nn.Parameter(torch.randn(experts, wide, 1024) * 0.02)
            self.down = nn.Parameter(torch.randn(experts, 1024, wide) * 0.02)

        def forward(self, x):
            score, pick = self.gate(x).softmax(-1).max(-1)
            pick, order = pick.sort(stable=True)
            each = torch.arange(experts, device=x.device)
            place = torch.arange(rows, device=x.device) - \
                torch.searchsorted(pick, each)[pick]
            x = x.index_select(0, order)
            if fixed:  # one row more, for what has no room
                slot = torch.where(place < room, pick * room + place,
                                   experts * room)
                full = x.new_zeros(experts * room + 1, wide)
                full = full.index_copy(0, slot, x)[:-1]
                y = torch.bmm(F.gelu(torch.bmm(full.view(experts, room, wide),
                                               self.up)), self.down)
                y = F.pad(y.flatten(0, 1), (0, 0, 0, 1)).index_select(0, slot)
            else:
                y = torch.zeros_like(x)
                for e in range(experts):
                    mask = (pick == e) & (place < room)
                    y[mask] = F.gelu(x[mask] @ self.up[e]) @ self.down[e]
            y = torch.zeros_like(y).index_copy(0, order, y)
            return y * score[:, None]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.qkv = nn.Linear(wide, 3 * wide)
            self.out = nn.Linear(wide, wide)
            self.experts = Experts()

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2)
                       for t in self.qkv(self.n1(x)).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v)
            x = x + self.out(a.transpose(1, 2).flatten(2))
            return x + self.experts(self.n2(x).view(rows, wide)).view_as(x)

    torch.manual_seed(0)
    model = nn.Sequential(*(Block() for _ in range(many)))
    model = model.to(kit.device(), torch.bfloat16)
    x = torch.randn(8, long, wide).bfloat16()
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           lambda out, y: (out - y).float().square().mean())
