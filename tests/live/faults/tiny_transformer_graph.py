# SPDX-License-Identifier: Apache-2.0
"""Inference of a small gated transformer over short texts, op by op."""
import kit

META = dict(framework="torch", hint="launch-bound", device="cuda",
            repair="CUDA graph")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, long, many, batch = 192, 6, 64, 20, 4

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.qkv = nn.Linear(wide, 3 * wide)
            self.out = nn.Linear(wide, wide)
            self.gate, self.down = (nn.Linear(wide, 4 * wide),
                                    nn.Linear(2 * wide, wide))

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2)
                       for t in self.qkv(self.n1(x)).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v)
            x = x + self.out(a.transpose(1, 2).flatten(2))
            a, b = self.gate(self.n2(x)).chunk(2, -1)
            return x + self.down(F.silu(a) * b)

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(1000, wide), *(Block() for _ in range(many)),
        nn.LayerNorm(wide), nn.Linear(wide, 1000)).to(kit.device()).eval()
    ids = torch.randint(0, 1000, (batch, long), device=kit.device())
    if fixed:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(3):
                model(ids)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            model(ids)

    @torch.no_grad()
    def step():
        return graph.replay() if fixed else model(ids)
    return step
