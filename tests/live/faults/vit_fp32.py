# SPDX-License-Identifier: Apache-2.0
"""A vision transformer in full fp32."""
import kit

META = dict(framework="torch", hint="low-precision-off", device="cuda",
            repair="TF32")


def make(fixed):
    import torch
    from torch import nn
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True,
                                       dropout=0.0, norm_first=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.TransformerEncoder(layer, 8),
                          nn.Linear(768, 10)).to(kit.device())
    x = torch.randn(32, 197, 768)
    train = kit.torch_train(model, kit.torch_fixed_batch(x, x),
                            lambda out, y: out.square().mean())

    def step():
        torch.backends.cuda.matmul.allow_tf32 = fixed
        torch.backends.cudnn.allow_tf32 = fixed
        return train()
    return step
