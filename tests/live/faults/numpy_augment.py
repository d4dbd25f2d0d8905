# SPDX-License-Identifier: Apache-2.0
"""Each image is cropped, flipped and normalised in numpy before its step."""
import kit

META = dict(framework="torch", hint="input-bound",
            repair="batches made beforehand")


def make(fixed):
    import numpy as np
    import torch
    from torch import nn
    full, size, batch, grow, many = (224, 192, 32, 48, 4) if kit.on_gpu() \
        else (160, 128, 16, 4, 1)
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 255, (4 * batch, full, full, 3), dtype=np.uint8)
    mean = np.array([124, 116, 104], np.float32)
    dev = np.array([58, 57, 57], np.float32)

    def load():
        out = np.empty((batch, 3, size, size), np.float32)
        for i, image in enumerate(raw[rng.integers(0, len(raw), batch)]):
            y, x = rng.integers(0, full - size, 2)
            image = image[y:y + size, x:x + size]
            if rng.random() < 0.5:
                image = image[:, ::-1]
            image = (image.astype(np.float32) - mean) / dev
            out[i] = image.transpose(2, 0, 1)
        return torch.from_numpy(out).to(kit.device())

    class Dense(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.norm = nn.BatchNorm2d(c)
            self.conv = nn.Conv2d(c, grow, 3, padding=1, bias=False)

        def forward(self, x):
            return torch.cat([x, self.conv(torch.relu(self.norm(x)))], 1)

    torch.manual_seed(0)
    layers, width = [nn.Conv2d(3, 2 * grow, 7, 4, 3)], 2 * grow
    for _ in range(2):
        for _ in range(many):
            layers.append(Dense(width))
            width += grow
        layers += [nn.Conv2d(width, width // 2, 1), nn.AvgPool2d(2)]
        width //= 2
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(width, 100))
    model = model.to(kit.device(), memory_format=torch.channels_last)
    ready = [load() for _ in range(4)]
    target = torch.randint(0, 100, (batch,), device=kit.device())

    def images():
        if not fixed:
            return load()
        ready.append(ready.pop(0))
        return ready[-1]
    return kit.torch_train(model, lambda: (images(), target),
                           nn.functional.cross_entropy, autocast=kit.on_gpu())
