# SPDX-License-Identifier: Apache-2.0
"""Each batch is copied from pinned memory in the stream that then needs it."""
import kit

META = dict(framework="torch", hint="copy-blocking", device="cuda",
            repair="the next batch is copied in another stream")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    host = [torch.randn(256, 3, 160, 160).pin_memory() for _ in range(2)]
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 4), nn.ReLU(),
                          nn.Conv2d(64, 128, 3, 2), nn.ReLU(),
                          nn.Conv2d(128, 128, 3), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(128, 10)).to(
                              kit.device(), memory_format=torch.channels_last)
    y = torch.randint(0, 10, (256,), device=kit.device())
    side = torch.cuda.Stream()
    state = {"n": 0, "next": None}

    def fetch():
        state["n"] += 1
        return host[state["n"] % 2].to(kit.device(), non_blocking=True)

    def batch():
        if not fixed:
            return fetch(), y
        here = torch.cuda.current_stream()
        if state["next"] is None:
            state["next"] = fetch()
        here.wait_stream(side)
        x = state["next"]
        x.record_stream(here)
        with torch.cuda.stream(side):
            state["next"] = fetch()
        return x, y
    return kit.torch_train(model, batch, nn.functional.cross_entropy,
                           autocast=True)
