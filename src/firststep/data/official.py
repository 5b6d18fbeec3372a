"""The published splits and counts, shipped with the package, and the comparison of data with them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from firststep.data.source import SPLITS, Source


@dataclass(frozen=True)
class Official:
    """What a dataset should contain."""

    classes: dict[str, list[str]]
    """class names of each split"""
    images_per_class: int | None = None
    """where every class has the same number"""
    images: dict[str, int] = field(default_factory=dict)
    """pictures of a split, or of "all", where the classes have different numbers"""
    superclass: dict[str, str] = field(default_factory=dict)
    """of each class, where the split is by superclass"""


@cache
def _facts(file: str) -> Any:
    return json.loads(resources.files("firststep.data").joinpath("splits", f"{file}.json").read_text("utf-8"))


@cache
def official(name: str) -> Official | None:
    """The published facts of a dataset; None for glyphs and for people's own folders."""
    if name == "omniglot":
        return Official(_omniglot_classes(), images_per_class=20)
    if name in ("cifar-fs", "fc100"):
        superclass = _facts("cifar100_superclasses") if name == "fc100" else {}
        return Official(_facts(name.replace("-", "_")), images_per_class=600, superclass=superclass)
    if name == "mini-imagenet":
        return Official(_facts("mini_imagenet"), images_per_class=600)
    if name == "tiered-imagenet":
        by_split = _facts("tiered_imagenet")
        return Official(
            {split: list(classes) for split, classes in by_split.items()},
            images={"train": 448_695, "val": 124_261, "test": 206_209},
            superclass={wnid: above for classes in by_split.values() for wnid, above in classes.items()},
        )
    if name == "cub":
        return Official(_cub_classes(), images={"all": 11_788})
    return None


def _omniglot_classes() -> dict[str, list[str]]:
    """The Vinyals split as Alphabet/characterNN."""
    return {
        split: [
            f"{alphabet}/{character}"
            for alphabets in halves.values()
            for alphabet, characters in alphabets.items()
            for character in characters
        ]
        for split, halves in _facts("omniglot_vinyals").items()
    }


def cub_split(number: int) -> str:
    """Of class 1..200: every second class trains, the others validate and test in turn."""
    return "train" if number % 2 == 1 else ("val" if number % 4 == 2 else "test")


def _cub_classes() -> dict[str, list[str]]:
    """By number; the names of the folders (001.Black_footed_Albatross) begin with it."""
    classes: dict[str, list[str]] = {split: [] for split in SPLITS}
    for number in range(1, 201):
        classes[cub_split(number)].append(f"{number:03d}")
    return classes


def class_key(dataset: str, name: str) -> str:
    """What of a class's name the official list knows."""
    return name.split(".")[0] if dataset == "cub" else name


def differences(dataset: str, source: Source) -> list[str]:
    """What is missing, extra or of another number than published: one line each, empty if all is right."""
    facts = official(dataset)
    if facts is None:
        return []
    lines: list[str] = []
    for split, expected in facts.classes.items():
        classes = source.splits.get(split, {})
        if source.named:
            found = {class_key(dataset, name.split("@")[0]) for name in classes}
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
