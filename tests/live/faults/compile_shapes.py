# SPDX-License-Identifier: Apache-2.0
"""torch.compile with a new batch size every other step."""
import kit

META = dict(framework="torch", hint="recompile", warm=4,
            repair="batches padded to one size")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    torch._dynamo.config.cache_size_limit = 4096
    if hasattr(torch._dynamo.config, "recompile_limit"):
        torch._dynamo.config.recompile_limit = 4096
        torch._dynamo.config.accumulated_recompile_limit = 1 << 20
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(),
                          nn.Linear(64, 10)).to(kit.device())
    run = torch.compile(model, dynamic=False,
                        backend="inductor" if fixed else "aot_eager")
    state = {"n": 0}

    def step():
        state["n"] += 1
        rows = 32 if fixed else 32 + state["n"] // 2
        return run(torch.randn(rows, 64, device=kit.device())).sum()
    return step
