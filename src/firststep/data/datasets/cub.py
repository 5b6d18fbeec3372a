"""Caltech-UCSD Birds: images/001.Name/*.jpg, or the same folders under train/ and test/."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from firststep.data.dataset_info import DatasetInfo, PublishedFile, register_dataset
from firststep.data.layouts.class_folders import official_source, read_classes
from firststep.data.layouts.layout import Layout, split_folders, subfolders
from firststep.data.official_splits import OfficialSplits
from firststep.data.source import Source

CLASS = re.compile(r"\d{3}\..+")


@cache
def _official() -> OfficialSplits:
    """Return the split by number, which begins the names of folders (001.Black_footed_Albatross).

    Every second class trains; the others validate and test in turn.
    """
    first_and_step = {"train": (1, 2), "val": (2, 4), "test": (4, 4)}
    classes = {
        split: [f"{i:03d}" for i in range(first, 201, step)]
        for split, (first, step) in first_and_step.items()
    }
    return OfficialSplits(classes, images={"all": 11_788}, prefix_ends_with=".")


def _holds_birds(folder: Path) -> bool:
    return folder.is_dir() and any(CLASS.fullmatch(sub.name) for sub in subfolders(folder))


def _images(root: Path) -> list[Path]:
    return [root / "images"] if _holds_birds(root / "images") else []


def _train_and_test(root: Path) -> list[Path]:
    return [folder for folder in split_folders(root).values() if _holds_birds(folder)]


def _read(folders: list[Path], layout: str) -> Source:
    return official_source(layout, *read_classes(folders), _official())


register_dataset(
    DatasetInfo(
        name="cub",
        about="Caltech-UCSD Birds 200-2011, 41 to 60 a class (split of Chen et al. 2019)",
        splits="100 / 50 / 50",
        home="https://www.vision.caltech.edu/datasets/cub_200_2011",
        licence="non-commercial research",
        image_size=84,
        files=(PublishedFile(name="CUB_200_2011.tgz", md5="97eceeb196236b17998738112f37df78"),),
        layouts=(
            Layout(
                "CUB_200_2011/images/001.Name/*.jpg (or its .tgz)",
                _images,
                lambda root: _read(_images(root), "images/ of CUB_200_2011"),
            ),
            Layout(
                "{train,test}/001.Name/*.jpg",
                _train_and_test,
                lambda root: _read(_train_and_test(root), "class folders in train/ and test/, merged"),
            ),
        ),
        official=_official,
    )
)
