# SPDX-License-Identifier: Apache-2.0
"""The allocator's memory is given back after every step."""
import kit

META = dict(framework="torch", hint="memory-pressure", device="cuda",
            repair="no torch.cuda.empty_cache() in the loop")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    layers = []
    for _ in range(16):
        layers += [nn.Linear(1536, 1536), nn.GELU(), nn.LayerNorm(1536)]
    model = nn.Sequential(*layers).to(kit.device(), torch.bfloat16)
    x = torch.randn(16384, 1536).bfloat16()
    train = kit.torch_train(model, kit.torch_fixed_batch(x, x),
                            lambda out, y: (out - y).float().square().mean())

    def step():
        loss = train()
        if not fixed:
            torch.cuda.empty_cache()
        return loss
    return step
