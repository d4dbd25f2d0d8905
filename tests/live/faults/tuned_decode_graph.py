# SPDX-License-Identifier: Apache-2.0
"""Eight tokens decoded one by one, each a replay of a CUDA graph."""
import kit

META = dict(framework="torch", hint=None, device="cuda", repair="(tuned)")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, room, many, batch, words = 4096, 32, 512, 4, 8, 8192

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.RMSNorm(wide), nn.RMSNorm(wide)
            self.qkv = nn.Linear(wide, 3 * wide, bias=False)
            self.out = nn.Linear(wide, wide, bias=False)
            self.up = nn.Linear(wide, 4 * wide, bias=False)
            self.down = nn.Linear(4 * wide, wide, bias=False)
            kept = torch.zeros(batch, heads, room, wide // heads)
            self.register_buffer("keys", kept)
            self.register_buffer("values", kept.clone())

        def forward(self, x, at, mask):
            q, k, v = self.qkv(self.n1(x)).view(
                batch, 1, 3, heads, -1).permute(2, 0, 3, 1, 4)
            self.keys.index_copy_(2, at, k)
            self.values.index_copy_(2, at, v)
            a = F.scaled_dot_product_attention(q, self.keys, self.values, mask)
            x = x + self.out(a.transpose(1, 2).reshape(batch, 1, wide))
            return x + self.down(F.gelu(self.up(self.n2(x))))

    torch.manual_seed(0)
    with torch.device(kit.device()):
        blocks = nn.ModuleList(Block() for _ in range(many)).bfloat16()
        embed = nn.Embedding(words, wide).bfloat16()
        ids = torch.zeros(batch, 1, dtype=torch.long)
        at, all_at = torch.zeros(1, dtype=torch.long), torch.arange(room)

    @torch.compile
    def token(ids, at):
        x, mask = embed(ids), (all_at <= at)[None, None, None]
        for block in blocks:
            x = block(x, at, mask)
        return (x @ embed.weight.T).argmax(-1)

    @torch.no_grad()
    def decode():
        ids.copy_(token(ids, at))
        at.add_(1)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            decode()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        decode()

    def step():
        at.fill_(room - 8)
        for _ in range(8):
            graph.replay()
    return step
