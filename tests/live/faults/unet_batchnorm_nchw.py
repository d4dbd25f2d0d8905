# SPDX-License-Identifier: Apache-2.0
"""A U-Net with batch norm and transposed convolutions, in NCHW."""
import kit

META = dict(framework="torch", hint={"slow-layout"}, device="cuda",
            repair="channels_last")


def make(fixed):
    import torch
    from torch import nn
    widths = 64, 128, 256, 512

    def twice(a, b):
        return nn.Sequential(
            nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b),
            nn.ReLU(), nn.Conv2d(b, b, 3, padding=1, bias=False),
            nn.BatchNorm2d(b), nn.ReLU())

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(
                twice(a, b) for a, b in zip((3,) + widths, widths))
            pairs = list(zip(widths[:0:-1], widths[-2::-1]))
            self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2)
                                    for a, b in pairs)
            self.join = nn.ModuleList(twice(2 * b, b) for _, b in pairs)
            self.out = nn.Conv2d(widths[0], 4, 1)

        def forward(self, x):
            kept = []
            for i, down in enumerate(self.down):
                x = down(nn.functional.max_pool2d(x, 2) if i else x)
                kept.append(x)
            kept.pop()
            for up, join in zip(self.up, self.join):
                x = join(torch.cat([kept.pop(), up(x)], 1))
            return self.out(x)

    torch.manual_seed(0)
    model = Unet().to(kit.device())
    x = torch.randn(12, 3, 256, 256)
    if fixed:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 4, (12, 256, 256))),
        nn.functional.cross_entropy, autocast=True)
