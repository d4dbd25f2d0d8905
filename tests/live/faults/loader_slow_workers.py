# SPDX-License-Identifier: Apache-2.0
"""A DataLoader without workers whose samples are decoded as JPEG's are."""
import kit

META = dict(framework="torch", hint="input-bound",
            repair="samples decoded beforehand")


def make(fixed):
    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset
    size, batch, wide, many = (192, 32, 512, 6) if kit.on_gpu() \
        else (96, 16, 6, 1)
    rng = np.random.default_rng(0)
    packed = rng.integers(-8, 8, (64, 3, size // 8, size // 8, 8, 8), np.int16)
    table = rng.integers(4, 32, (8, 8)).astype(np.float32)
    at = np.arange(8)
    wave = np.cos(np.pi / 16 * at[:, None] * (2 * at + 1)).astype(np.float32)
    colour = np.array([[1, 0, 1.4], [1, -0.34, -0.71], [1, 1.77, 0]], "f")

    def decode(i):
        """Scaled, transformed back by 8x8 blocks, from YCbCr to RGB."""
        x = wave.T @ (packed[i % 64] * table) @ wave / 16
        x = x.swapaxes(2, 3).reshape(3, -1)
        x = np.clip(colour @ x + 128, 0, 255) / 128 - 1
        return torch.from_numpy(x.reshape(3, size, size))

    class Samples(Dataset):
        ready = [torch.stack([decode(b * batch + i) for i in range(batch)])
                 for b in range(2)] if fixed else None

        def __len__(self):
            return 1 << 20

        def __getitem__(self, i):  # the repaired set gives whole batches
            return self.ready[i % 2] if fixed else decode(i)

    class Mixer(nn.Module):
        def __init__(self, tokens):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(tokens), nn.LayerNorm(wide)
            self.a, self.b = (nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(),
                                            nn.Linear(2 * n, n))
                              for n in (tokens, wide))

        def forward(self, x):
            x = x + self.a(self.n1(x))
            return x + self.b(self.n2(x.mT)).mT

    torch.manual_seed(0)
    it = iter(DataLoader(Samples(), batch_size=None if fixed else batch))
    model = nn.Sequential(
        nn.Conv2d(3, wide, 8, 8), nn.Flatten(2),
        *(Mixer((size // 8) ** 2) for _ in range(many)),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        nn.Linear(wide, 10)).to(kit.device())
    target = torch.randint(0, 10, (batch,), device=kit.device())
    return kit.torch_train(
        model, lambda: (next(it).to(kit.device()), target),
        nn.functional.cross_entropy, autocast=kit.on_gpu())
