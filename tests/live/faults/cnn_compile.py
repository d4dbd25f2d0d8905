# SPDX-License-Identifier: Apache-2.0
"""A small CNN that is well kept but not compiled."""
import kit

META = dict(framework="torch", hint="unfused-pointwise", device="cuda",
            warm=5, repair="torch.compile")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 192, 4, 4), nn.BatchNorm2d(192), nn.SiLU(),
        nn.Conv2d(192, 192, 3, padding=1), nn.BatchNorm2d(192), nn.SiLU(),
        nn.Conv2d(192, 384, 3, 2, 1), nn.BatchNorm2d(384), nn.SiLU(),
        nn.Conv2d(384, 384, 3, padding=1), nn.BatchNorm2d(384), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(384, 10))
    model = model.to(kit.device(), memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(96, 3, 192, 192).contiguous(
        memory_format=torch.channels_last)
    return kit.torch_train(
        torch.compile(model) if fixed else model,
        kit.torch_fixed_batch(x, torch.randint(0, 10, (96,))),
        nn.functional.cross_entropy, optimizer=opt, autocast=True)
