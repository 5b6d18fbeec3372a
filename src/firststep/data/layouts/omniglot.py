"""Omniglot: images_background and images_evaluation, each Alphabet/characterNN/*.png."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from firststep.data.layouts.classes import by_official_split
from firststep.data.layouts.layout import Layout, all_or_none, pictures_and_rest, subfolders
from firststep.data.official import official
from firststep.data.pictures import FilePictures, Pictures
from firststep.data.source import Source, collect

HALVES = ("images_background", "images_evaluation")


def _parts(root: Path) -> list[Path]:
    return all_or_none(*(root / half for half in HALVES))


def _read(root: Path) -> Source:
    pairs: list[tuple[str, Pictures]] = []
    odd: list[str] = []
    for half in HALVES:
        for alphabet in subfolders(root / half):
            for character in subfolders(alphabet):
                pictures, rest = pictures_and_rest(character)
                pairs.append((f"{alphabet.name}/{character.name}", FilePictures(pictures)))
                odd += rest
    facts = official("omniglot")
    assert facts is not None
    splits, extra = by_official_split(pairs, facts.classes)
    notes = [f"not in the official split, left out: {', '.join(extra)}"] if extra else []
    return Source(
        "unpacked images_background/ and images_evaluation/",
        {split: collect(classes) for split, classes in splits.items()},
        odd=tuple(odd),
        notes=tuple(notes),
    )


def with_rotations(source: Source) -> Source:
    """Every character turned by a quarter, a half and three quarters as classes of their own."""
    splits: dict[str, dict[str, Pictures]] = {}
    for split, classes in source.splits.items():
        turned: dict[str, Pictures] = {}
        for name, pictures in classes.items():
            assert isinstance(pictures, FilePictures)
            turned[name] = pictures
            for turns in (1, 2, 3):
                turned[f"{name}@{90 * turns}"] = replace(pictures, turned=turns)
        splits[split] = turned
    return replace(source, splits=splits)


LAYOUTS = (Layout("images_background/ and images_evaluation/ (or their .zip)", _parts, _read),)
