# SPDX-License-Identifier: Apache-2.0
"""A norm that is looked at (.item()) in every layer."""
import kit

META = dict(framework="torch", hint="host-sync", device="cuda",
            repair="clamped on the device")


def make(fixed):
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(512, 512)

        def forward(self, x):
            x = torch.relu(self.lin(x))
            if fixed:
                return x / x.detach().norm().clamp(min=10.0)
            size = x.norm().item()
            return x / max(size, 10.0)

    torch.manual_seed(0)
    model = nn.Sequential(*(Layer() for _ in range(24))).to(kit.device())
    x = torch.randn(256, 512)
    return kit.torch_train(model, kit.torch_fixed_batch(x, x),
                           nn.functional.mse_loss)
