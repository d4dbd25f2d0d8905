# SPDX-License-Identifier: Apache-2.0
"""A BERT-like encoder with a vocabulary, in full fp32."""
import kit

META = dict(framework="torch", hint="low-precision-off", device="cuda",
            repair="TF32")


def make(fixed):
    import torch
    import torch.nn.functional as F
    from torch import nn
    wide, heads, long, many, words = 768, 12, 384, 8, 8192

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = nn.MultiheadAttention(wide, heads, batch_first=True)
            self.n1, self.n2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
            self.up, self.down = (nn.Linear(wide, 4 * wide),
                                  nn.Linear(4 * wide, wide))

        def forward(self, x):
            x = self.n1(x + self.attend(x, x, x, need_weights=False)[0])
            return self.n2(x + self.down(F.gelu(self.up(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(words, wide)
            self.place = nn.Parameter(torch.randn(long, wide) * 0.02)
            self.norm = nn.LayerNorm(wide)
            self.layers = nn.Sequential(*(Layer() for _ in range(many)))
            self.head = nn.Linear(wide, words)

        def forward(self, ids):
            return self.head(self.layers(self.norm(self.word(ids) +
                                                   self.place)))

    torch.manual_seed(0)
    model = Bert().to(kit.device())
    ids = torch.randint(0, words, (12, long))
    train = kit.torch_train(
        model, kit.torch_fixed_batch(ids, ids),
        lambda out, y: F.cross_entropy(out.flatten(0, 1), y.flatten()))

    def step():
        torch.backends.cuda.matmul.allow_tf32 = fixed
        torch.backends.cudnn.allow_tf32 = fixed
        return train()
    return step
