# SPDX-License-Identifier: Apache-2.0
"""nn.LSTM of a middling size, whose kernels are launched one by one."""
import kit

META = dict(framework="torch", hint="launch-bound", device="cuda",
            repair="torch.cuda.make_graphed_callables")


def make(fixed):
    import torch
    from torch import nn
    wide, long, batch = 768, 96, 64

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(wide, wide)
            self.head = nn.Linear(wide, 10)

        def forward(self, x):
            return self.head(self.rnn(x)[0][-1])

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    model = Net().to(kit.device())
    x = torch.randn(long, batch, wide, device=kit.device())
    y = torch.randint(0, 10, (batch,), device=kit.device())
    run = torch.cuda.make_graphed_callables(model, (x,)) if fixed else model
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    return kit.torch_train(run, lambda: (x, y), nn.functional.cross_entropy,
                           optimizer=opt)
