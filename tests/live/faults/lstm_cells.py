# SPDX-License-Identifier: Apache-2.0
"""A recurrent net as a Python loop over cells."""
import kit

META = dict(framework="torch", hint={"launch-bound", "python-overhead"},
            repair="nn.LSTM")


def make(fixed):
    import torch
    from torch import nn
    wide, long, batch = (512, 128, 64) if kit.on_gpu() else (32, 96, 8)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(wide, wide)
            self.rnn = nn.LSTM(wide, wide)
            self.head = nn.Linear(wide, 10)

        def forward(self, x):
            if fixed:
                out, _ = self.rnn(x)
                return self.head(out[-1])
            h = c = x.new_zeros(batch, wide)
            for t in range(long):
                h, c = self.cell(x[t], (h, c))
            return self.head(h)

    torch.manual_seed(0)
    model = Net().to(kit.device())
    opt = torch.optim.SGD((model.rnn if fixed else model.cell).parameters(),
                          lr=1e-2)
    return kit.torch_train(
        model, kit.torch_fixed_batch(torch.randn(long, batch, wide),
                                     torch.randint(0, 10, (batch,))),
        nn.functional.cross_entropy, optimizer=opt)
