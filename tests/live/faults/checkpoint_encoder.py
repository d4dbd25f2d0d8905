# SPDX-License-Identifier: Apache-2.0
"""Every layer of an encoder is computed again in backward, the old way."""
import kit

META = dict(framework="torch", hint="recompute", repair="no checkpoints")


def make(fixed):
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint
    wide, heads, long, many = (1024, 16, 512, 10) if kit.on_gpu() \
        else (128, 4, 96, 4)
    torch.manual_seed(0)
    layers = nn.ModuleList(
        nn.TransformerEncoderLayer(wide, heads, 4 * wide, dropout=0.0,
                                   batch_first=True, activation="gelu")
        for _ in range(many)).to(kit.device())
    stem = nn.Linear(64, wide).to(kit.device())

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.layers = stem, layers

        def forward(self, x):
            x = self.stem(x)
            for layer in self.layers:
                x = layer(x) if fixed else checkpoint(layer, x,
                                                      use_reentrant=True)
            return x
    x = torch.randn(8, long, 64)
    return kit.torch_train(Model(), kit.torch_fixed_batch(x, x),
                           lambda out, y: out.float().square().mean(),
                           autocast=kit.on_gpu())
