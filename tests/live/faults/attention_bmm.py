# SPDX-License-Identifier: Apache-2.0
"""Inference with attention by baddbmm, over three-dimensional tensors."""
import kit

META = dict(framework="torch", hint="slow-attention",
            repair="scaled_dot_product_attention")


def make(fixed):
    import torch
    import torch.nn.functional as F
    heads, long, wide = (16, 4096, 64) if kit.on_gpu() else (4, 768, 32)
    torch.manual_seed(0)
    weights = [torch.randn(heads * wide, 3 * heads * wide).to(kit.device()) / 16
               for _ in range(2)]
    bias = torch.zeros(1, long, long)
    bias[:, :, :64] = -1e4
    x, bias = (t.to(kit.device()) for t in (torch.randn(long, heads * wide),
                                            bias))
    if kit.on_gpu():
        x, bias = x.bfloat16(), bias.bfloat16()
        weights = [w.bfloat16() for w in weights]

    def attend(q, k, v):
        if fixed:  # over four dimensions: with three torch has no fused kernel
            return F.scaled_dot_product_attention(
                q[None], k[None], v[None], attn_mask=bias[None])[0]
        s = torch.baddbmm(bias.expand(heads, -1, -1), q, k.transpose(1, 2),
                          alpha=wide ** -0.5)
        return torch.bmm(s.softmax(-1), v)

    @torch.no_grad()
    def step():
        h = x
        for w in weights:
            q, k, v = (h @ w).view(long, 3, heads, wide).permute(1, 2, 0, 3)
            h = attend(q, k, v).transpose(0, 1).reshape(long, heads * wide)
        return h
    return step
