"""Omniglot: images_background and images_evaluation, each Alphabet/characterNN/*.png."""

from __future__ import annotations

from pathlib import Path

from firststep.data import official_splits
from firststep.data.layouts.class_folders import by_official_split
from firststep.data.layouts.layout import Layout, all_or_none, images_and_rest, subfolders
from firststep.data.source import ClassImages, FileImages, Source, collect

HALVES = ("images_background", "images_evaluation")


def _parts(root: Path) -> list[Path]:
    return all_or_none(*(root / half for half in HALVES))


def _read(root: Path) -> Source:
    pairs: list[tuple[str, ClassImages]] = []
    odd: list[str] = []
    for half in HALVES:
        for alphabet in subfolders(root / half):
            for character in subfolders(alphabet):
                images, rest = images_and_rest(character)
                pairs.append((f"{alphabet.name}/{character.name}", FileImages(images)))
                odd += rest
    splits, extra = by_official_split(pairs, official_splits.omniglot().classes)
    notes = [f"not in the official split, left out: {', '.join(extra)}"] if extra else []
    return Source(
        "unpacked images_background/ and images_evaluation/",
        {split: collect(classes) for split, classes in splits.items()},
        odd=tuple(odd),
        notes=tuple(notes),
    )


LAYOUTS = (Layout("images_background/ and images_evaluation/ (or their .zip)", _parts, _read),)
