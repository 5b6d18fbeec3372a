"""Conv4 and Conv6: convolutional few-shot networks with four and six blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.backbones.initialise import convolution, initialise, linear
from firststep.backbones.norm import BatchStatisticsNorm
from firststep.backbones.registry import DEFAULT_FILTERS, register_backbone

POOLED_BLOCKS = 4  # only the first four blocks halve the image


def smallest_conv_image(depth: int) -> int:
    """Return the smallest image size; one pixel of it is left after the pooling."""
    return int(2 ** min(depth, POOLED_BLOCKS))


def conv_features(depth: int, image_size: int, filters: int | None) -> int:
    """Return the length of the flattened features."""
    final_size = image_size // smallest_conv_image(depth)
    return (DEFAULT_FILTERS if filters is None else filters) * final_size**2


class ConvBlock(nn.Module):
    """A 3x3 convolution, batch norm, ReLU and, if ``pooled``, 2x2 max-pooling."""

    def __init__(self, in_channels: int, out_channels: int, pool: bool) -> None:
        super().__init__()
        self.conv = convolution(in_channels, out_channels, 3, padding=1, bias=True)
        self.norm = BatchStatisticsNorm(out_channels)
        self.pool = pool

    def forward(self, images: Tensor) -> Tensor:
        images = self.norm(self.conv(images))
        # ReLU is monotone, so pooling first gives the same function for a quarter of the work.
        return F.relu(F.max_pool2d(images, 2) if self.pool else images)


class Conv(nn.Module):
    """``depth`` convolution blocks and a linear classifier on the flattened features.

    Args:
        depth: number of blocks; 4 and 6 are the paper's.
        filters: number of channels in every block.
        ways: number of classes.
        image_size: height and width of the (square) images, at least 16.
        channels: number of channels of the images.
        generator: source of the initial values; default a generator with seed 0.

    Examples:
        >>> from firststep.backbones import Conv
        >>> sum(parameter.numel() for parameter in Conv(depth=4, filters=64).parameters())
        121093
    """

    # Define the parameter subsets `emb` and `ebn`: see firststep.network.
    embedding: str
    embedding_norm: str

    def __init__(
        self,
        depth: int = 4,
        *,
        filters: int = 64,
        ways: int = 5,
        image_size: int = 84,
        channels: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        if image_size < smallest_conv_image(depth):
            raise ValueError(
                f"image_size must be at least {smallest_conv_image(depth)} for {depth} blocks, "
                f"because the first {POOLED_BLOCKS} each halve it; it is {image_size}"
            )
        self.blocks = nn.Sequential(
            *(
                ConvBlock(channels if i == 0 else filters, filters, pool=i < POOLED_BLOCKS)
                for i in range(depth)
            )
        )
        self.classifier = linear(conv_features(depth, image_size, filters), ways)
        self.embedding = f"blocks.{depth - 1}.conv"
        self.embedding_norm = f"blocks.{depth - 1}.norm"
        initialise(self, generator)

    def features(self, images: Tensor) -> Tensor:
        return self.blocks(images).flatten(1)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.features(images))


@register_backbone(
    "conv4",
    title="Conv4",
    features=partial(conv_features, 4),
    image_size=84,
    smallest_image=smallest_conv_image(4),
    has_filters=True,
)
def conv4(**options: Any) -> Conv:
    """Return the network of four blocks."""
    return Conv(4, **options)


@register_backbone(
    "conv6",
    title="Conv6",
    features=partial(conv_features, 6),
    image_size=84,
    smallest_image=smallest_conv_image(6),
    has_filters=True,
)
def conv6(**options: Any) -> Conv:
    """Return the network of six blocks."""
    return Conv(6, **options)
