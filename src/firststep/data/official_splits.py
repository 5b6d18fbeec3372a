"""The published splits and counts, shipped with the package, and the comparison of data with them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from firststep.data.source import SPLITS, Source


@dataclass(frozen=True)
class OfficialSplits:
    """What a dataset should contain.

    Examples:
        >>> from firststep.data import DATASETS
        >>> official = DATASETS["cifar-fs"].official()
        >>> {split: len(names) for split, names in official.classes.items()}
        {'train': 64, 'val': 16, 'test': 20}
        >>> official.images_per_class
        600
    """

    classes: dict[str, list[str]]
    """class names of each split"""
    images_per_class: int | None = None
    """where every class has the same number"""
    images: dict[str, int] = field(default_factory=dict)
    """images of a split, or of "all", where the classes have different numbers"""
    superclass: dict[str, str] = field(default_factory=dict)
    """of each class, where the split is by superclass"""
    prefix_ends_with: str | None = None
    """where ``classes`` lists only the beginnings of the names on disk: what ends them"""

    def listed_name(self, name: str) -> str:
        """The part of a class's name on disk that ``classes`` lists; rotated classes count as one."""
        name = name.split("@")[0]
        return name.split(self.prefix_ends_with)[0] if self.prefix_ends_with else name


@cache
def _shipped(file: str) -> Any:
    return json.loads(resources.files("firststep.data").joinpath("splits", f"{file}.json").read_text("utf-8"))


@cache
def omniglot() -> OfficialSplits:
    """The Vinyals split; classes are called Alphabet/characterNN."""
    classes = {
        split: [
            f"{alphabet}/{character}"
            for alphabets in halves.values()
            for alphabet, characters in alphabets.items()
            for character in characters
        ]
        for split, halves in _shipped("omniglot_vinyals").items()
    }
    return OfficialSplits(classes, images_per_class=20)


@cache
def cifar_fs() -> OfficialSplits:
    return OfficialSplits(_shipped("cifar_fs"), images_per_class=600)


@cache
def fc100() -> OfficialSplits:
    return OfficialSplits(
        _shipped("fc100"), images_per_class=600, superclass=_shipped("cifar100_superclasses")
    )


@cache
def mini_imagenet() -> OfficialSplits:
    return OfficialSplits(_shipped("mini_imagenet"), images_per_class=600)


@cache
def tiered_imagenet() -> OfficialSplits:
    by_split = _shipped("tiered_imagenet")
    return OfficialSplits(
        {split: list(classes) for split, classes in by_split.items()},
        images={"train": 448_695, "val": 124_261, "test": 206_209},
        superclass={wnid: above for classes in by_split.values() for wnid, above in classes.items()},
    )


def cub_split(number: int) -> str:
    """Of class 1..200: every second class trains, the others validate and test in turn."""
    return "train" if number % 2 == 1 else ("val" if number % 4 == 2 else "test")


@cache
def cub() -> OfficialSplits:
    """By number, with which the names of the folders begin (001.Black_footed_Albatross)."""
    classes: dict[str, list[str]] = {split: [] for split in SPLITS}
    for number in range(1, 201):
        classes[cub_split(number)].append(f"{number:03d}")
    return OfficialSplits(classes, images={"all": 11_788}, prefix_ends_with=".")


def differences(facts: OfficialSplits, source: Source) -> list[str]:
    """What is missing, extra or of another number than published: one line each, empty if nothing is."""
    lines: list[str] = []
    for split, expected in facts.classes.items():
        classes = source.splits.get(split, {})
        if source.named:
            found = {facts.listed_name(name) for name in classes}
            lines += _listed(split, "missing", sorted(set(expected) - found))
            lines += _listed(split, "not in the official split", sorted(found - set(expected)))
        elif len(classes) != len(expected):
            lines.append(f"{split}: {len(classes)} classes instead of {len(expected)}")
        if facts.images_per_class is not None:
            odd = [f"{n} has {len(p)}" for n, p in classes.items() if len(p) != facts.images_per_class]
            lines += _listed(split, f"not of {facts.images_per_class} images", odd)
    for split, expected_images in facts.images.items():
        counted = [split] if split in source.splits else list(source.splits)
        images = sum(len(p) for name in counted for p in source.splits[name].values())
        if images != expected_images:
            lines.append(f"{split}: {images} images instead of {expected_images}")
    return lines


def _listed(split: str, what: str, names: list[str], most: int = 8) -> list[str]:
    if not names:
        return []
    shown = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
    return [f"{split}: {len(names)} class{'es' if len(names) > 1 else ''} {what}: {shown}"]
