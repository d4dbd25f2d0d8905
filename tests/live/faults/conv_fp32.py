# SPDX-License-Identifier: Apache-2.0
"""Convolutions in full fp32, channels last."""
import kit

META = dict(framework="torch", hint="low-precision-off", device="cuda",
            repair="TF32")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    body = []
    for _ in range(6):
        body += [nn.Conv2d(192, 192, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(nn.Conv2d(3, 192, 5, 2), *body,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(192, 10))
    model = model.to(kit.device(), memory_format=torch.channels_last)
    x = torch.randn(32, 3, 128, 128).contiguous(
        memory_format=torch.channels_last)
    train = kit.torch_train(
        model, kit.torch_fixed_batch(x, torch.randint(0, 10, (32,))),
        nn.functional.cross_entropy)

    def step():
        torch.backends.cuda.matmul.allow_tf32 = fixed
        torch.backends.cudnn.allow_tf32 = fixed
        return train()
    return step
