# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts that asks each expert for its rows by nonzero."""
import kit

META = dict(framework="torch", hint="host-sync", device="cuda",
            repair="all experts in one batched product")


def make(fixed):
    import torch
    from torch import nn
    wide, experts, rows = 512, 16, 4096

    class Moe(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(wide, experts)
            self.w = nn.Parameter(torch.randn(experts, wide, wide) * 0.02)

        def forward(self, x):
            pick = self.gate(x).argmax(-1)
            if fixed:
                order = pick.argsort()
                share = x[order].view(experts, rows // experts, wide)
                out = torch.bmm(share, self.w).view(rows, wide)
                return torch.empty_like(x).index_copy(0, order, out)
            out = torch.zeros_like(x)
            for e in range(experts):
                mine = (pick == e).nonzero().squeeze(1)
                out = out.index_add(0, mine, x[mine] @ self.w[e])
            return out

    torch.manual_seed(0)
    model = nn.Sequential(*(Moe() for _ in range(6))).to(kit.device())
    x = torch.randn(rows, wide)
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           nn.functional.mse_loss)
