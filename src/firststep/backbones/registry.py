"""The registry of backbones. A network registers itself at its definition; tests run over every entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

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
    image_size: int
    """Image size in the paper."""
    smallest_image: int
    """Smallest accepted image size."""
    has_filters: bool = False
    """Whether the width can be chosen."""
    normalisation: str = "usual"
    """Normalisation of its images: a name in ``firststep.data.NORMALISATIONS``."""
    body: Callable[[], nn.Module] | None = None
    """The frozen part, if any: images to features, with the ``digest`` of its weights. The network also
    accepts these features, so that they are computed once and not in every episode."""


BACKBONES: Registry[Backbone] = Registry("backbone")
"""The backbones by name; add your own with :func:`register_backbone`.

Examples:
    >>> list(fs.BACKBONES)
    ['conv4', 'conv6', 'resnet10', 'resnet18', 'efficientnet-lite0', 'efficientnet-lite2', 'mlp']
"""

Build = TypeVar("Build", bound=Callable[..., nn.Module])


def register_backbone(name: str, **facts: Any) -> Callable[[Build], Build]:
    """Register a class or function that builds a network as the backbone ``name``.

    The commands then know the network, show it in their help, and every test over ``BACKBONES`` runs it.

    Args:
        name: the name for ``--backbone``.
        **facts: fields of :class:`Backbone`, all but ``build``.

    Returns:
        A decorator for what builds a network that ends in a linear ``classifier``. It takes ways,
        image_size, channels, generator and, with ``has_filters``, filters.

    Examples:
        >>> from firststep.backbones import Conv, register_backbone
        >>> @register_backbone(
        ...     "conv2", title="Conv2", features=lambda size, filters: filters * (size // 4) ** 2,
        ...     has_filters=True, image_size=28, smallest_image=4,
        ... )
        ... def conv2(**options):
        ...     return Conv(2, **options)
        >>> fs.build_backbone("conv2", ways=3).classifier.out_features
        3
        >>> fs.BACKBONES.unregister("conv2")
    """

    def register(build: Build) -> Build:
        BACKBONES.register(name, Backbone(build=build, **facts))
        return build

    return register


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
