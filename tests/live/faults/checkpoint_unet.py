# SPDX-License-Identifier: Apache-2.0
"""An encoder and decoder of convolutions, each stage checkpointed."""
import kit

META = dict(framework="torch", hint="recompute", repair="no checkpoints")


def make(fixed):
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint
    base, batch, size = (96, 8, 256) if kit.on_gpu() else (12, 2, 64)
    widths = base, 2 * base, 4 * base

    def stage(a, b):
        return nn.Sequential(*(
            layer for i in range(3) for layer in
            (nn.Conv2d(b if i else a, b, 3, padding=1), nn.ReLU())))

    def run(body, x):
        return body(x) if fixed else checkpoint(body, x, use_reentrant=False)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, base, 3, padding=1)
            self.down = nn.ModuleList(
                stage(a, b) for a, b in zip((base,) + widths, widths))
            self.up = nn.ModuleList(
                stage(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1]))
            self.out = nn.Conv2d(base, 3, 1)

        def forward(self, x):
            x, kept = self.stem(x), []
            for body in self.down:
                if kept:
                    x = nn.functional.max_pool2d(x, 2)
                x = run(body, x)
                kept.append(x)
            kept.pop()
            for body in self.up:
                x = nn.functional.interpolate(x, scale_factor=2)
                x = run(body, torch.cat([x, kept.pop()], 1))
            return self.out(x)

    torch.manual_seed(0)
    model = Model().to(kit.device(), memory_format=torch.channels_last)
    x = torch.randn(batch, 3, size, size).contiguous(
        memory_format=torch.channels_last)
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           nn.functional.mse_loss, autocast=kit.on_gpu())
