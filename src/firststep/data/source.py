"""What reading a dataset gives, before any picture is decoded."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from firststep.data.pictures import Pictures
from firststep.errors import FirststepError

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Source:
    """For each split its classes, each a name and its pictures."""

    layout: str
    """one line: what was recognised on disk"""
    splits: Mapping[str, Mapping[str, Pictures]]
    odd: tuple[str, ...] = field(default=())
    """files that are not part of the dataset and were left alone"""
    notes: tuple[str, ...] = field(default=())
    """what a user should know, one line each"""
    parallel: bool = True
    """False where pictures are made by Python code, in which threads only get in each other's way"""
    named: bool = True
    """False where the files number their classes instead of naming them"""

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for split, classes in self.splits.items():
            for name in classes:
                key = unicodedata.normalize("NFC", name).casefold()
                if key in seen:
                    both = f"{seen[key]!r} and '{split}: {name}'"
                    raise FirststepError(f"two classes have the same name: {both}; rename or merge one")
                seen[key] = f"{split}: {name}"


def collect(pairs: list[tuple[str, Pictures]]) -> dict[str, Pictures]:
    """Classes in the order of their names; an equal name twice is an error and not a lost class."""
    classes: dict[str, Pictures] = {}
    for name, pictures in sorted(pairs, key=lambda pair: pair[0]):
        if name in classes:
            raise FirststepError(f"two classes have the same name: {name!r}; rename or merge one")
        classes[name] = pictures
    return classes
