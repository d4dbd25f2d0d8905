# SPDX-License-Identifier: Apache-2.0
"""Metrics in plain Python after every step."""
import kit

META = dict(framework="torch", hint="python-overhead",
            repair="metrics every 100 steps")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(),
                          nn.Linear(256, 10)).to(kit.device())
    train = kit.torch_train(
        model, kit.torch_fixed_batch(torch.randn(64, 128),
                                     torch.randint(0, 10, (64,))),
        nn.functional.cross_entropy)
    words = ["token%d" % (i * 7919 % 997) for i in range(6000)]
    state = {"n": 0}

    def step():
        loss = train()
        state["n"] += 1
        if not fixed or state["n"] % 100 == 0:
            seen = {}
            for w in words:
                seen[w] = seen.get(w, 0) + 1
            state["rare"] = sorted(seen, key=seen.get)[:10]
        return loss
    return step
