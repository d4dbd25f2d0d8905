# SPDX-License-Identifier: Apache-2.0
"""A small GPT whose every block is checkpointed, with memory to spare."""
import kit

META = dict(framework="torch", hint="recompute", repair="no checkpoints")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.utils.checkpoint import checkpoint
    wide, long, many = (1024, 1024, 8) if kit.on_gpu() else (192, 128, 4)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
            self.up, self.down = (nn.Linear(wide, 4 * wide),
                                  nn.Linear(4 * wide, wide))

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = (t.view(b, n, 4, -1).transpose(1, 2)
                       for t in self.qkv(self.n1(x)).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, n, wide))
            return x + self.down(F.gelu(self.up(self.n2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(1000, wide)
            self.blocks = nn.ModuleList(Block() for _ in range(many))
            self.head = nn.Linear(wide, 1000)

        def forward(self, x):
            x = self.embed(x)
            for block in self.blocks:
                x = block(x) if fixed else \
                    checkpoint(block, x, use_reentrant=False)
            return self.head(x)

    torch.manual_seed(0)
    model = Model().to(kit.device())
    x = torch.randint(0, 1000, (8, long))
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, x),
        lambda out, y: F.cross_entropy(out.view(-1, 1000), y.view(-1)),
        autocast=kit.on_gpu())
