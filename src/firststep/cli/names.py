"""Flags for dataset and backbone names, whose help lists the registered names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import tyro

from firststep.data import DATASETS

SHIPPED_BACKBONES = (
    *("conv4", "conv6", "resnet10", "resnet18", "efficientnet-lite0", "efficientnet-lite2", "mlp"),
)
"""Names in ``firststep.backbones.BACKBONES``, which the help cannot read: it would wait for torch. A test
compares the two."""


def any_of(names: Iterable[str]) -> str:
    """Return ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def backbone_names() -> tuple[str, ...]:
    """Return the names of all backbones, including those registered by modules of the user."""
    loaded = sys.modules.get("firststep.backbones")
    return SHIPPED_BACKBONES if loaded is None else tuple(loaded.BACKBONES)


DatasetName = Annotated[str, tyro.conf.arg(help=f"Dataset: {any_of(DATASETS)}.")]
BackboneName = Annotated[str, tyro.conf.arg(help=f"Network: {any_of(backbone_names())}.")]
