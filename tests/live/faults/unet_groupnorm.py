# SPDX-License-Identifier: Apache-2.0
"""A U-Net with group norm in NCHW: channels_last makes it slower, compilation
faster. Nothing may be promised for the layout."""
import kit

META = dict(framework="torch", hint="unfused-pointwise", device="cuda",
            warm=4, repair="torch.compile")


def make(fixed):
    import torch
    from torch import nn

    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1),
                             nn.GroupNorm(8, b), nn.SiLU())

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1, self.d2, self.d3 = block(3, 64), block(64, 128), \
                block(128, 256)
            self.u2, self.u1 = block(256 + 128, 128), block(128 + 64, 64)
            self.out = nn.Conv2d(64, 3, 1)
            self.up = nn.Upsample(scale_factor=2, mode="bilinear")

        def forward(self, x):
            a = self.d1(x)
            b = self.d2(nn.functional.avg_pool2d(a, 2))
            c = self.d3(nn.functional.avg_pool2d(b, 2))
            b = self.u2(torch.cat([self.up(c), b], 1))
            return self.out(self.u1(torch.cat([self.up(b), a], 1)))

    torch.manual_seed(0)
    model = Unet().to(kit.device())
    x = torch.randn(16, 3, 256, 256)
    return kit.torch_train(torch.compile(model) if fixed else model,
                           kit.torch_fixed_batch(x, x),
                           nn.functional.mse_loss, autocast=True)
