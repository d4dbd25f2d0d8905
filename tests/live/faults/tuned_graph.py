# SPDX-License-Identifier: Apache-2.0
"""A small network's training step as one CUDA graph."""
import kit

META = dict(framework="torch", hint=None, device="cuda", repair="(tuned)")


def make(fixed):
    import torch
    from torch import nn
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU())
                            for _ in range(12))).to(kit.device())
    opt = torch.optim.Adam(model.parameters(), fused=True, capturable=True)
    x = torch.randn(2048, 1024, device=kit.device())

    def train():
        opt.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        opt.step()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train()
    return graph.replay
