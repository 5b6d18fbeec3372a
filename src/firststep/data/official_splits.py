"""Published splits and counts, and the comparison of data with them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any

from firststep.data.source import Source


@dataclass(frozen=True)
class OfficialSplits:
    """The published classes and counts of a dataset.

    Examples:
        >>> from firststep.data import DATASETS
        >>> official = DATASETS["cifar-fs"].official()
        >>> {split: len(names) for split, names in official.classes.items()}
        {'train': 64, 'val': 16, 'test': 20}
        >>> official.images_per_class
        600
    """

    classes: dict[str, list[str]]
    """class names per split"""
    images_per_class: int | None = None
    """number of images per class, if all classes have the same"""
    images: dict[str, int] = field(default_factory=dict)
    """otherwise the number of images per split, or under "all" of all splits together"""
    superclass: dict[str, str] = field(default_factory=dict)
    """superclass per class, if the split is by superclass"""
    prefix_ends_with: str | None = None
    """the character that ends the listed part of a name, if ``classes`` lists only the start of each name"""

    def listed_name(self, name: str) -> str:
        """Return the part of a class's name on disk that ``classes`` lists."""
        return name.split(self.prefix_ends_with)[0] if self.prefix_ends_with else name

    def split_of(self, name: str) -> str | None:
        """Return the split of a class by its name on disk."""
        return self._splits.get(self.listed_name(name))

    @cached_property
    def _splits(self) -> dict[str, str]:
        return {name: split for split, names in self.classes.items() for name in names}


@cache
def shipped_split(file: str) -> Any:
    """Return the content of a file in ``splits/``."""
    return json.loads(resources.files("firststep.data").joinpath("splits", f"{file}.json").read_text("utf-8"))


def differences(official: OfficialSplits, source: Source) -> list[str]:
    """Return one line per class or count that differs from what was published."""
    lines: list[str] = []
    for split, expected in official.classes.items():
        classes = source.splits.get(split, {})
        if source.named:
            found = {
                official.listed_name(name.split("@")[0]) for name in classes
            }  # rotated classes count as one
            lines += _listed(split, "missing", sorted(set(expected) - found))
            lines += _listed(split, "not in the official split", sorted(found - set(expected)))
        elif len(classes) != len(expected):
            lines.append(f"{split}: {len(classes)} classes instead of {len(expected)}")
        if official.images_per_class is not None:
            others = [f"{n} has {len(p)}" for n, p in classes.items() if len(p) != official.images_per_class]
            lines += _listed(split, f"not of {official.images_per_class} images", others)
    for split, expected_images in official.images.items():
        counted = [split] if split in source.splits else list(source.splits)
        images = sum(len(p) for name in counted for p in source.splits[name].values())
        if images != expected_images:
            lines.append(f"{split}: {images} images instead of {expected_images}")
    return lines


def _listed(split: str, what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    return [f"{split}: {len(names)} class{'es' if len(names) > 1 else ''} {what}: {shortened(names)}"]


def shortened(names: list[str], most: int = 8) -> str:
    """Return the names in one line; beyond ``most`` of them only their number."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
