# SPDX-License-Identifier: Apache-2.0
"""Images normalised in numpy on the training thread before each step."""
import kit

META = dict(framework="torch", hint="input-bound",
            repair="batches made beforehand")


def make(fixed):
    import numpy as np
    import torch
    from torch import nn
    size, batch = (224, 64) if kit.on_gpu() else (64, 16)
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 255, (batch, size, size, 3), dtype=np.uint8)
    mean = np.array([0.485, 0.456, 0.406])
    dev = np.array([0.229, 0.224, 0.225])

    def load():
        x = (raw / 255.0 - mean) / dev
        x = x[:, :, ::-1] if rng.random() < 0.5 else x
        return torch.from_numpy(
            np.ascontiguousarray(x.transpose(0, 3, 1, 2), np.float32))

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(),
                          nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten(),
                          nn.LazyLinear(10)).to(kit.device())
    ready = load().to(kit.device())
    model(ready)
    target = torch.randint(0, 10, (batch,), device=kit.device())
    return kit.torch_train(
        model, lambda: (ready if fixed else load().to(kit.device()), target),
        nn.functional.cross_entropy)
