# SPDX-License-Identifier: Apache-2.0
"""A DataLoader without workers over a data set that decodes each sample."""
import kit

META = dict(framework="torch", hint="input-bound",
            repair="samples decoded beforehand")


def make(fixed):
    import zlib

    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset
    rng = np.random.default_rng(0)
    packed = [zlib.compress((rng.random((3, 48, 48)) * 16).astype(np.uint8)
                            .tobytes()) for _ in range(64)]

    def decode(i):
        x = np.frombuffer(zlib.decompress(packed[i % 64]), np.uint8)
        return torch.from_numpy(x.reshape(3, 48, 48).astype(np.float32) / 16)

    class Samples(Dataset):
        ready = [decode(i) for i in range(64)] if fixed else None

        def __len__(self):
            return 1 << 20

        def __getitem__(self, i):
            return self.ready[i % 64] if fixed else decode(i)

    class Batches:
        """The loader of the repaired program gives whole batches."""
        def __iter__(self):
            whole = torch.stack(Samples.ready[:32])
            while True:
                yield whole

    torch.manual_seed(0)
    it = iter(Batches() if fixed else DataLoader(Samples(), batch_size=32))
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Flatten(),
                          nn.Linear(8 * 23 * 23, 10)).to(kit.device())
    target = torch.randint(0, 10, (32,), device=kit.device())
    return kit.torch_train(
        model, lambda: (next(it).to(kit.device()), target),
        nn.functional.cross_entropy)
