# SPDX-License-Identifier: Apache-2.0
"""Each batch copied from pageable memory, waited for."""
import kit

META = dict(framework="torch", hint={"copy-pageable", "copy-blocking"},
            device="cuda", repair="pinned memory, non_blocking=True")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    host = torch.randn(512, 3, 128, 128)
    host = host.pin_memory() if fixed else host
    model = nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(),
                          nn.Conv2d(64, 64, 3, 2), nn.ReLU(), nn.Flatten(),
                          nn.LazyLinear(10)).to(kit.device())
    model(host[:2].to(kit.device()))
    target = torch.randint(0, 10, (512,), device=kit.device())
    return kit.torch_train(
        model, lambda: (host.to(kit.device(), non_blocking=fixed), target),
        nn.functional.cross_entropy, autocast=True)
