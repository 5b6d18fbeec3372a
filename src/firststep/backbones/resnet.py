"""ResNet10 and ResNet18 with simple blocks, as in "A Closer Look at Few-shot Classification"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.backbones.initialise import convolution, initialise, linear
from firststep.backbones.norm import BatchStatisticsNorm
from firststep.backbones.registry import register_backbone

STAGE_WIDTHS = (64, 128, 256, 512)
SMALLEST_IMAGE = 32  # the network halves it five times


_FACTS: dict[str, Any] = {
    "features": lambda image_size, filters: STAGE_WIDTHS[-1],  # whatever the image size: global pooling
    "image_size": 224,
    "smallest_image": SMALLEST_IMAGE,
}


class SimpleBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; the shortcut is a 1x1 convolution where the channels change."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = convolution(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = BatchStatisticsNorm(out_channels)
        self.conv2 = convolution(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = BatchStatisticsNorm(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if in_channels != out_channels:
            self.shortcut = nn.Sequential(
                convolution(in_channels, out_channels, 1, stride=stride, bias=False),
                BatchStatisticsNorm(out_channels),
            )

    def forward(self, images: Tensor) -> Tensor:
        inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(images)))))
        return F.relu(inner + self.shortcut(images))


class ResNet(nn.Module):
    """A 7x7 stem, four stages of simple blocks, global average pooling and a linear classifier.

    Args:
        blocks: number of simple blocks in each of the four stages.
        ways: number of classes.
        image_size: accepted for uniformity with Conv; global pooling makes any size from 32 up work.
        channels: number of channels of the images.
        generator: source of the initial values; default a generator with seed 0.

    Examples:
        >>> from firststep.backbones import ResNet
        >>> sum(parameter.numel() for parameter in ResNet((1, 1, 1, 1)).parameters())
        4908357
    """

    embedding: str
    embedding_norm: str

    def __init__(
        self,
        blocks: Sequence[int],
        *,
        ways: int = 5,
        image_size: int = 224,
        channels: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if len(blocks) != len(STAGE_WIDTHS) or min(blocks) < 1:
            raise ValueError(f"blocks must be {len(STAGE_WIDTHS)} positive numbers, not {list(blocks)}")
        if image_size < SMALLEST_IMAGE:
            raise ValueError(
                f"image_size must be at least {SMALLEST_IMAGE}, because the network halves it five times, "
                f"not {image_size}"
            )
        self.stem_conv = convolution(channels, STAGE_WIDTHS[0], 7, stride=2, padding=3, bias=False)
        self.stem_norm = BatchStatisticsNorm(STAGE_WIDTHS[0])
        stages: list[nn.Module] = []
        width = STAGE_WIDTHS[0]
        for stage, (count, out) in enumerate(zip(blocks, STAGE_WIDTHS, strict=True)):
            for i in range(count):
                stages.append(SimpleBlock(width, out, stride=2 if stage > 0 and i == 0 else 1))
                width = out
        self.blocks = nn.Sequential(*stages)
        self.classifier = linear(width, ways)
        self.embedding = f"blocks.{len(stages) - 1}.conv2"
        self.embedding_norm = f"blocks.{len(stages) - 1}.norm2"
        initialise(self, generator)

    def features(self, images: Tensor) -> Tensor:
        # Pool before ReLU: the same function, as in ConvBlock.
        images = F.relu(F.max_pool2d(self.stem_norm(self.stem_conv(images)), 3, stride=2, padding=1))
        return self.blocks(images).mean((2, 3))

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.features(images))


@register_backbone("resnet10", title="ResNet10", **_FACTS)
def resnet10(**options: Any) -> ResNet:
    """Return the network of one block per stage."""
    return ResNet((1, 1, 1, 1), **options)


@register_backbone("resnet18", title="ResNet18", **_FACTS)
def resnet18(**options: Any) -> ResNet:
    """Return the network of two blocks per stage."""
    return ResNet((2, 2, 2, 2), **options)
