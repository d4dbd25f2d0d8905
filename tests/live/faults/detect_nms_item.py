# SPDX-License-Identifier: Apache-2.0
"""A detector that decides about every box of every image on the host."""
import kit

META = dict(framework="torch", hint="host-sync", device="cuda",
            repair="torch.where over all images")


def make(fixed):
    import torch
    from torch import nn
    images, top, size = 12, 32, 384
    torch.manual_seed(0)
    layers, width = [], 3
    for c in (64, 128, 256, 256):
        layers += [nn.Conv2d(width, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU(),
                   nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU()]
        width = c
    model = nn.Sequential(*layers, nn.Conv2d(width, 5, 1)).eval().to(
        kit.device(), torch.bfloat16, memory_format=torch.channels_last)
    x = torch.randn(images, 3, size, size).to(
        kit.device(), torch.bfloat16, memory_format=torch.channels_last)
    axis = torch.arange(size // 16, device=kit.device()) * 16.0 + 8
    grid = torch.cartesian_prod(axis, axis)

    def boxes_of(out):
        """The best boxes of each image, and which of them cover which."""
        out = out.float().flatten(2).transpose(1, 2)
        score, best = out[..., 0].sigmoid().topk(top)
        middle = grid + 8 * out[..., 1:3].tanh()
        half = 24 * out[..., 3:].exp().clamp(max=4)
        boxes = torch.cat([middle - half, middle + half], -1)
        boxes = boxes.gather(1, best[..., None].expand(-1, -1, 4))
        area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
        a, b = boxes[:, :, None], boxes[:, None]
        both = (torch.minimum(a[..., 2:], b[..., 2:]) -
                torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
        cover = both / (area[:, :, None] + area[:, None] - both) > 0.4
        return boxes, score, cover.triu(1)

    @torch.no_grad()
    def step():
        boxes, score, cover = boxes_of(model(x))
        keep = torch.ones_like(score, dtype=torch.bool)
        if fixed:
            keep = torch.where(score[:, :1] < 0.1, False, keep)
            for i in range(top):
                keep = torch.where(keep[:, i:i + 1] & cover[:, i], False, keep)
        else:
            for n in range(images):
                if score[n, 0].item() < 0.1:
                    keep[n] = False
                    continue
                for i in range(top):
                    if bool(keep[n, i]):
                        keep[n] &= ~cover[n, i]
        return boxes * keep[..., None]
    return step
