"""Conv4 and Conv6 with warp layers between their blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from firststep.backbones.conv import Conv
from firststep.backbones.initialise import convolution, initialise
from firststep.backbones.norm import BatchStatisticsNorm


class WarpLayer(nn.Module):
    """A 3x3 convolution with bias, then batch norm. It has no ReLU, because the next block has one."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = convolution(channels, channels, 3, padding=1, bias=True)
        self.norm = BatchStatisticsNorm(channels)

    def forward(self, images: Tensor) -> Tensor:
        return self.norm(self.conv(images))


class WarpedConv(nn.Module):
    """A Conv backbone with a warp layer after every block but the last.

    The layers of ``conv`` keep their names; the warp layers are ``warps.0``, ``warps.1``, ... Meta-learned
    layers that the inner loop does not change precondition the gradients that flow through them (Flennerhag
    et al., ICLR 2020). The paper's parameter count implies three warp layers between four blocks, each a
    convolution with bias and a batch norm. Their order and initial values for miniImageNet are not published:
    we use the order of the other blocks and initialise them like their convolutions.

    Args:
        conv: the network to warp; its layers are used, not copied.
        generator: source of the warp layers' initial values; default a generator with seed 0.

    Examples:
        >>> from firststep.backbones import WarpedConv
        >>> WarpedConv(network)(support_x).shape
        torch.Size([10, 5])
    """

    embedding: str
    embedding_norm: str
    outer_loop_only = ("warps",)
    """Submodules that the inner loop of Warp-MAML does not change."""

    def __init__(self, conv: Conv, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.blocks = conv.blocks
        self.classifier = conv.classifier
        self.embedding = conv.embedding
        self.embedding_norm = conv.embedding_norm
        channels = len(conv.get_parameter(f"{conv.embedding}.bias"))  # the same in all blocks
        self.warps = nn.Sequential(*(WarpLayer(channels) for _ in range(len(conv.blocks) - 1)))
        initialise(self.warps, generator)
        self.warps.to(conv.classifier.weight)

    def features(self, images: Tensor) -> Tensor:
        *blocks, last = self.blocks
        for block, warp_layer in zip(blocks, self.warps, strict=True):
            images = warp_layer(block(images))
        return last(images).flatten(1)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.features(images))


def warp(module: nn.Module, generator: torch.Generator | None = None) -> WarpedConv:
    """Insert warp layers between the blocks of a network; return the new network.

    Examples:
        >>> warped = fs.warp(network)
        >>> len(warped.blocks), len(warped.warps)
        (4, 3)
    """
    if not isinstance(module, Conv):
        raise ValueError(
            "warp layers (method warp-maml) are defined for the Conv backbones, conv4 and conv6, "
            f"between whose blocks they go; not for {type(module).__name__}"
        )
    return WarpedConv(module, generator)
