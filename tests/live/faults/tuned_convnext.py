# SPDX-License-Identifier: Apache-2.0
"""ConvNeXt blocks, channels last, bf16, compiled, a fused optimizer."""
import kit

META = dict(framework="torch", hint=None, device="cuda", warm=5,
            repair="(tuned)")


def make(fixed):
    import torch
    from torch import nn
    wide, many, batch = 512, 9, 64

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.deep = nn.Conv2d(wide, wide, 7, padding=3, groups=wide)
            self.norm = nn.LayerNorm(wide)
            self.up, self.down = (nn.Linear(wide, 4 * wide),
                                  nn.Linear(4 * wide, wide))
            self.scale = nn.Parameter(torch.full((wide,), 1e-2))

        def forward(self, x):
            y = self.norm(self.deep(x).permute(0, 2, 3, 1))
            y = self.scale * self.down(nn.functional.gelu(self.up(y)))
            return x + y.permute(0, 3, 1, 2)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, wide, 8, 8),
                          *(Block() for _ in range(many)),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.LayerNorm(wide), nn.Linear(wide, 1000))
    model = torch.compile(model.to(kit.device(),
                                   memory_format=torch.channels_last))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(batch, 3, 224, 224).contiguous(
        memory_format=torch.channels_last)
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 1000, (batch,))),
        nn.functional.cross_entropy, optimizer=opt, autocast=True)
