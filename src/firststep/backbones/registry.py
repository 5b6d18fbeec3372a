"""The backbones by name. A new entry is tested the moment it is registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from firststep.backbones.conv import Conv
from firststep.backbones.resnet import ResNet


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """A network that can be built for any number of classes and any image."""

    build: Callable[..., nn.Module]
    """Takes ways, image_size, channels, generator and, where ``has_filters``, filters."""
    has_filters: bool
    """Whether its width is the user's to choose."""
    image_size: int
    """The paper's image size for it."""


BACKBONES: dict[str, Backbone] = {
    "conv4": Backbone(build=partial(Conv, 4), has_filters=True, image_size=84),
    "conv6": Backbone(build=partial(Conv, 6), has_filters=True, image_size=84),
    "resnet10": Backbone(build=partial(ResNet, (1, 1, 1, 1)), has_filters=False, image_size=224),
    "resnet18": Backbone(build=partial(ResNet, (2, 2, 2, 2)), has_filters=False, image_size=224),
}


def build_backbone(
    name: str,
    *,
    ways: int = 5,
    image_size: int | None = None,
    channels: int = 3,
    filters: int | None = None,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """The network of that name; ``image_size`` defaults to the paper's, ``filters`` (Conv only) to 64."""
    if name not in BACKBONES:
        raise ValueError(f"unknown backbone {name!r}; there are {', '.join(BACKBONES)}")
    backbone = BACKBONES[name]
    if filters is not None and not backbone.has_filters:
        raise ValueError(f"filters cannot be chosen for {name}: its widths are fixed")
    width = {"filters": 64 if filters is None else filters} if backbone.has_filters else {}
    size = backbone.image_size if image_size is None else image_size
    return backbone.build(ways=ways, image_size=size, channels=channels, generator=generator, **width)
