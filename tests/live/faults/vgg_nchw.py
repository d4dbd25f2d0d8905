# SPDX-License-Identifier: Apache-2.0
"""A plain convolutional network under autocast, in NCHW."""
import kit

META = dict(framework="torch", hint="slow-layout", device="cuda",
            repair="channels_last")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    layers, width = [], 3
    for c in (64, 128, 256, 512):
        for _ in range(2):
            layers += [nn.Conv2d(width, c, 3, padding=1), nn.BatchNorm2d(c),
                       nn.ReLU()]
            width = c
        layers.append(nn.MaxPool2d(2))
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(512, 10)).to(kit.device())
    x = torch.randn(48, 3, 160, 160)
    if fixed:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    return kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 10, (48,))),
        nn.functional.cross_entropy, autocast=True)
