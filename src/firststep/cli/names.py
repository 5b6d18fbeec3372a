"""Flags for dataset and backbone names, whose help lists the registered names."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib.resources import files as files_of
from typing import Annotated

import tyro

from firststep.data import DATASETS

DEFINITION = re.compile(r'^@register_backbone\(\s*"([^"]+)"', re.MULTILINE)


def any_of(names: Iterable[str]) -> str:
    """Return ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def backbone_names() -> tuple[str, ...]:
    """Return the names of all backbones, including those registered by modules of the user."""
    if loaded := sys.modules.get("firststep.backbones"):
        return tuple(loaded.BACKBONES)
    # Read the names in the definitions: the help does not wait for torch, which they import.
    folder = files_of("firststep").joinpath("backbones")
    texts = (file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".py"))
    return tuple(sorted(name for text in texts for name in DEFINITION.findall(text)))


DatasetName = Annotated[str, tyro.conf.arg(help=f"Dataset: {any_of(DATASETS)}.")]
BackboneName = Annotated[str, tyro.conf.arg(help=f"Network: {any_of(backbone_names())}.")]
