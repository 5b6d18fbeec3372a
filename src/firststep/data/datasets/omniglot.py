"""Omniglot: images_background and images_evaluation, each with Alphabet/characterNN/*.png."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from firststep.data.dataset_info import DatasetInfo, PublishedFile, register_dataset
from firststep.data.layouts.class_folders import official_source
from firststep.data.layouts.layout import Layout, all_or_none, images_and_rest, subfolders
from firststep.data.official_splits import OfficialSplits, shipped_split
from firststep.data.source import ClassImages, FileImages, Source

HALVES = ("images_background", "images_evaluation")
URL = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"


@cache
def _official() -> OfficialSplits:
    """Return the split of Vinyals; classes are called Alphabet/characterNN."""
    classes = {
        split: [
            f"{alphabet}/{character}"
            for alphabets in halves.values()
            for alphabet, characters in alphabets.items()
            for character in characters
        ]
        for split, halves in shipped_split("omniglot_vinyals").items()
    }
    return OfficialSplits(classes, images_per_class=20)


def _parts(root: Path) -> list[Path]:
    return all_or_none(*(root / half for half in HALVES))


def _read(root: Path) -> Source:
    pairs: list[tuple[str, ClassImages]] = []
    ignored: list[str] = []
    for half in HALVES:
        for alphabet in subfolders(root / half):
            for character in subfolders(alphabet):
                images, rest = images_and_rest(character)
                pairs.append((f"{alphabet.name}/{character.name}", FileImages(images)))
                ignored += rest
    return official_source("unpacked images_background/ and images_evaluation/", pairs, ignored, _official())


register_dataset(
    DatasetInfo(
        name="omniglot",
        about="handwritten characters of 50 alphabets, 20 a class",
        splits="1028 / 172 / 423 (Vinyals)",
        home="https://github.com/brendenlake/omniglot",
        licence="MIT",
        image_size=28,
        channels=1,
        ink=True,
        files=(
            PublishedFile(
                name="images_background.zip",
                md5="68d2efa1b9178cc56df9314c21c6e718",
                url=URL + "images_background.zip",
            ),
            PublishedFile(
                name="images_evaluation.zip",
                md5="6b91aef0f799c5bb55b94e3f2daec811",
                url=URL + "images_evaluation.zip",
            ),
        ),
        layouts=(Layout("images_background/ and images_evaluation/ (or their .zip)", _parts, _read),),
        official=_official,
        options=("rotations",),
    )
)
