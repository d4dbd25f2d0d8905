# SPDX-License-Identifier: Apache-2.0
"""Convolutions in channels_last: nothing is wrong with it."""
import kit

META = dict(framework="torch", hint=None, repair="(tuned)")


def make(fixed):
    import torch
    from torch import nn
    wide, size, batch = (512, 224, 64) if kit.on_gpu() else (32, 48, 8)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, wide, 3, 2), nn.ReLU(),
                          nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(wide, 10))
    model = model.to(kit.device(), memory_format=torch.channels_last)
    x = torch.randn(batch, 3, size, size).contiguous(
        memory_format=torch.channels_last)
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 10, (batch,))),
        nn.functional.cross_entropy, autocast=kit.on_gpu())
