# SPDX-License-Identifier: Apache-2.0
"""Every batch's predictions are brought to the host to count hits."""
import kit

META = dict(framework="torch", device="cuda",
            hint={"host-sync", "copy-blocking", "copy-pageable"},
            repair="hits are counted on the device")


def make(fixed):
    import torch
    from torch import nn
    rows, wide, classes = 2048, 512, 8192
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(wide, wide), nn.GELU(),
                          nn.Linear(wide, classes)).to(kit.device())
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(rows, wide, device=kit.device())
    y = torch.randint(0, classes, (rows,), device=kit.device())
    hits = torch.zeros((), device=kit.device())
    y_host = y.cpu()
    state = {"hits": 0}

    def step():
        opt.zero_grad(set_to_none=True)
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        if fixed:
            hits.add_((out.detach().argmax(-1) == y).sum())
        else:
            state["hits"] += int((out.detach().cpu().argmax(-1)
                                  == y_host).sum())
        loss.backward()
        opt.step()
        return loss
    return step
