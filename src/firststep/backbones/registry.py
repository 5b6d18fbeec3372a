"""The registry of backbones; tests run over every entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from firststep.backbones import efficientnet, mlp
from firststep.backbones.conv import Conv, conv_features, smallest_conv_image
from firststep.backbones.resnet import SMALLEST_IMAGE, ResNet, resnet_features
from firststep.utils.registry import Registry

DEFAULT_FILTERS = 64


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """A network for any number of classes and any image size, with its properties.

    Examples:
        >>> conv4 = fs.BACKBONES["conv4"]
        >>> conv4.title, conv4.image_size, conv4.features(84, 64)
        ('Conv4', 84, 1600)
    """

    title: str
    """Name in tables and figures, such as ``"Conv4"``."""
    build: Callable[..., nn.Module]
    """Function of ways, image_size, channels, generator and, if ``has_filters``, filters."""
    features: Callable[[int, int | None], int]
    """(image size, filters) → number of features at the classifier's input."""
    has_filters: bool
    """Whether the width can be chosen."""
    image_size: int
    """Image size in the paper."""
    smallest_image: int
    """Smallest accepted image size."""
    normalisation: str = "usual"
    """Normalisation of its images: a name in ``firststep.data.NORMALISATIONS``."""
    body: Callable[[], nn.Module] | None = None
    """The frozen part, if any: images to features, with the ``digest`` of its weights. The network also
    accepts these features, so that they are computed once and not in every episode."""


def _conv(depth: int) -> Backbone:
    return Backbone(
        title=f"Conv{depth}",
        build=partial(Conv, depth),
        features=partial(conv_features, depth),
        has_filters=True,
        image_size=84,
        smallest_image=smallest_conv_image(depth),
    )


def _resnet(layers: int, blocks: tuple[int, ...]) -> Backbone:
    return Backbone(
        title=f"ResNet{layers}",
        build=partial(ResNet, blocks),
        features=resnet_features,
        has_filters=False,
        image_size=224,
        smallest_image=SMALLEST_IMAGE,
    )


def _efficientnet_lite(variant: int, image_size: int) -> Backbone:
    return Backbone(
        title=f"EfficientNet-Lite{variant}",
        build=partial(efficientnet.EfficientNetLite, variant),
        features=lambda image_size, filters: efficientnet.FEATURES,
        has_filters=False,
        image_size=image_size,
        smallest_image=efficientnet.SMALLEST_IMAGE,
        normalisation="symmetric",
        body=partial(efficientnet.EfficientNetLiteBody, variant),
    )


_mlp = Backbone(
    title="MLP",
    build=mlp.image_mlp,
    features=lambda image_size, filters: filters or DEFAULT_FILTERS,
    has_filters=True,
    image_size=28,
    smallest_image=mlp.SMALLEST_IMAGE,
)

BACKBONES: Registry[Backbone] = Registry(
    "backbone",
    conv4=_conv(4),
    conv6=_conv(6),
    resnet10=_resnet(10, (1, 1, 1, 1)),
    resnet18=_resnet(18, (2, 2, 2, 2)),
    **{
        "efficientnet-lite0": _efficientnet_lite(0, 224),
        "efficientnet-lite2": _efficientnet_lite(2, 260),
    },
    mlp=_mlp,
)
"""Add your own with ``BACKBONES.register("name", Backbone(...))``.

Examples:
    >>> list(fs.BACKBONES)
    ['conv4', 'conv6', 'resnet10', 'resnet18', 'efficientnet-lite0', 'efficientnet-lite2', 'mlp']
"""


LARGEST = 2**16
"""Largest accepted number of classes, channels, filters or pixels per side."""


def build_backbone(
    name: str,
    *,
    ways: int = 5,
    image_size: int | None = None,
    channels: int = 3,
    filters: int | None = None,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """Build the named network; ``image_size`` defaults to the paper's, ``filters`` (Conv only) to 64.

    Examples:
        >>> conv4 = fs.build_backbone("conv4", ways=3, image_size=32, filters=8)
        >>> conv4(torch.rand(6, 3, 32, 32)).shape
        torch.Size([6, 3])
    """
    backbone = BACKBONES[name]
    if filters is not None and not backbone.has_filters:
        raise ValueError(f"filters cannot be chosen for {name}: its widths are fixed")
    width = {"filters": DEFAULT_FILTERS if filters is None else filters} if backbone.has_filters else {}
    size = backbone.image_size if image_size is None else image_size
    # Far beyond what can be computed; for some larger values torch raises obscure errors.
    sizes = {"ways": ways, "image_size": size, "channels": channels, "filters": filters}
    for option, value in sizes.items():
        if value is not None and not 1 <= value <= LARGEST:
            raise ValueError(f"{option} must be between 1 and {LARGEST}, not {value}")
    return backbone.build(ways=ways, image_size=size, channels=channels, generator=generator, **width)
