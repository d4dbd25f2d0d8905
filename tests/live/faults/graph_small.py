# SPDX-License-Identifier: Apache-2.0
"""Inference of many tiny layers, launched one by one."""
import kit

META = dict(framework="torch", hint="launch-bound", device="cuda",
            repair="CUDA graph")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(128, 128), nn.GELU())
                            for _ in range(60))).to(kit.device()).eval()
    x = torch.randn(32, 128, device=kit.device())
    with torch.no_grad():
        for _ in range(3):
            model(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        if fixed:
            with torch.cuda.graph(graph):
                model(x)

    @torch.no_grad()
    def step():
        return graph.replay() if fixed else model(x)
    return step
