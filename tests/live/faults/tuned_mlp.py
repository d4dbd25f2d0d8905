# SPDX-License-Identifier: Apache-2.0
"""Large products and nothing else: nothing is wrong with it."""
import kit

META = dict(framework="torch", hint=None, repair="(tuned)")


def make(fixed):
    import torch
    from torch import nn
    torch.backends.cuda.matmul.allow_tf32 = True
    rows, wide = (8192, 4096) if kit.on_gpu() else (256, 512)
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(wide, wide) for _ in range(4)))
    model = model.to(kit.device())
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(rows, wide)
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           nn.functional.mse_loss, optimizer=opt,
                           autocast=kit.on_gpu())
