# SPDX-License-Identifier: Apache-2.0
"""A loop over GRU cells in place of nn.GRU, two layers."""
import kit

META = dict(framework="torch", hint={"launch-bound", "python-overhead"},
            repair="nn.GRU")


def make(fixed):
    import torch
    from torch import nn
    wide, long, batch = (256, 80, 32) if kit.on_gpu() else (24, 40, 4)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList(nn.GRUCell(wide, wide)
                                       for _ in range(2))
            self.rnn = nn.GRU(wide, wide, 2)
            self.head = nn.Linear(wide, 8)

        def forward(self, x):
            if fixed:
                return self.head(self.rnn(x)[0][-1])
            h = [x.new_zeros(batch, wide) for _ in self.cells]
            for t in range(long):
                y = x[t]
                for i, cell in enumerate(self.cells):
                    y = h[i] = cell(y, h[i])
            return self.head(y)

    torch.manual_seed(0)
    model = Net().to(kit.device())
    opt = torch.optim.SGD((model.rnn if fixed else model.cells).parameters(),
                          lr=1e-2)
    return kit.torch_train(
        model, kit.torch_fixed_batch(torch.randn(long, batch, wide),
                                     torch.randint(0, 8, (batch,))),
        nn.functional.cross_entropy, optimizer=opt)
