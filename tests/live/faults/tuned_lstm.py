# SPDX-License-Identifier: Apache-2.0
"""nn.LSTM with wide cells: nothing is wrong with it."""
import kit

META = dict(framework="torch", hint=None, repair="(tuned)")


def make(fixed):
    import torch
    from torch import nn
    wide, long, batch = (4096, 32, 1024) if kit.on_gpu() else (192, 32, 32)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(wide, wide)
            self.head = nn.Linear(wide, 10)

        def forward(self, x):
            return self.head(self.rnn(x)[0][-1])

    torch.manual_seed(0)
    return kit.torch_train(
        Net().to(kit.device()),
        kit.torch_fixed_batch(torch.randn(long, batch, wide),
                              torch.randint(0, 10, (batch,))),
        nn.functional.cross_entropy, autocast=kit.on_gpu())
