"""The order of an image batch in memory."""

from __future__ import annotations

import torch
from torch import Tensor


def channels_innermost(images: Tensor) -> Tensor:
    """The same images with all channels of a pixel side by side in memory, an order that layers then keep.

    Convolutions need no reordering before and after, and what goes channel by channel (batch norm, pooling)
    uses vector instructions along it.
    """
    if images.dim() != 4:
        return images
    images = images.contiguous(memory_format=torch.channels_last)
    if images.shape[1] == 1:
        # One channel is both orders at once; its stride tells the layers which of them is meant.
        images = images.as_strided(images.shape, (images[0].numel(), 1, images.shape[3], 1))
    return images
