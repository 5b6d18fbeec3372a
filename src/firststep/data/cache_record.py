"""``dataset.json``: what is in a cache, and whether that is still what was put there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from firststep.data import preprocessing
from firststep.data.pixel_checks import DAMAGED, PixelChecks, survey
from firststep.data.preprocessing import Preprocessing
from firststep.data.source import SPLITS
from firststep.errors import FirststepError
from firststep.utils import check_format, read_bytes, read_json, replacing, to_record, write_text

FORMAT, FORMAT_1 = "firststep-dataset-2", "firststep-dataset-1"
"""The first had no checksums of single images, and did not say its format."""
FILE = "dataset.json"


@dataclass(frozen=True, kw_only=True)
class SplitRecord:
    """One split: images in ``<split>.u8``, class after class, and their checksums in ``<split>.crc32``."""

    classes: list[str]
    counts: list[int]
    """images of each class"""
    sha256: str
    """of all pixels"""
    checks: str = ""
    """SHA-256 of the file of checksums; empty in format 1"""


@dataclass(frozen=True, kw_only=True)
class CacheRecord:
    """What was found when a cache was made."""

    dataset: str
    version: int
    """of the preprocessing"""
    preprocessing: Preprocessing
    layout: str
    notes: list[str]
    odd: list[str]
    """files that are not part of the dataset"""
    differences: list[str]
    """from the official data"""
    broken: list[str]
    """images that were left out"""
    splits: dict[str, SplitRecord]
    fingerprint: str
    key: str = ""
    """the name of the cache's folder; empty in format 1"""
    format: str = FORMAT_1

    @property
    def image_bytes(self) -> int:
        return self.preprocessing.image_size**2 * self.preprocessing.channels


def fingerprint(record: CacheRecord) -> str:
    """16 hex digits that change whenever a pixel, a class name, a count or the recipe does."""
    splits = {
        name: {"classes": split.classes, "counts": split.counts, "sha256": split.sha256}
        for name, split in record.splits.items()
    }
    parts = [record.dataset, record.version, record.preprocessing.describe(), splits]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def write_cache_record(folder: Path, record: CacheRecord) -> None:
    # ASCII: names of files may hold bytes that are no text.
    write_text(folder / FILE, json.dumps(asdict(record), indent=1, ensure_ascii=True) + "\n")


def write_checks(folder: Path, split: str, sums: np.ndarray) -> str:
    """The digest of what was written."""
    content = sums.astype("<u4").tobytes()
    with replacing(folder / f"{split}.crc32") as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read_checks(folder: Path, split: str, record: SplitRecord) -> PixelChecks | None:
    """None for a cache of format 1, whose pixels were all compared when it was opened."""
    if not record.checks:
        return None
    content = read_bytes(folder / f"{split}.crc32")
    if hashlib.sha256(content).hexdigest() != record.checks or len(content) != 4 * sum(record.counts):
        raise FirststepError(f"{folder / f'{split}.crc32'} is damaged")
    return PixelChecks(folder, split, np.frombuffer(content, "<u4"))


def read_cache(folder: Path, dataset: str, recipe: Preprocessing, verify: bool = False) -> CacheRecord | None:
    """The record of a complete, undamaged cache of this dataset, or None: it has to be made.

    ``verify`` compares all pixels, which takes a few seconds for each gigabyte.
    """
    try:
        content = read_json(folder / FILE)
        check_format(content, str(folder / FILE), FORMAT, FORMAT_1)
        record = to_record(content, CacheRecord, str(folder / FILE))
        if (folder / DAMAGED).exists() or not _consistent(record, folder, dataset, recipe):
            return None
        for split, facts in record.splits.items():
            if (folder / f"{split}.u8").stat().st_size != sum(facts.counts) * record.image_bytes:
                return None
            read_checks(folder, split, facts)
        if record.format == FORMAT_1:
            return _with_checks(folder, record)
        if verify and not all(
            survey(folder / f"{split}.u8", record.image_bytes)[0] == facts.sha256
            for split, facts in record.splits.items()
        ):
            return None
    except (FirststepError, OSError):
        return None  # whatever it is, it can be made again
    return record


def _consistent(record: CacheRecord, folder: Path, dataset: str, recipe: Preprocessing) -> bool:
    return (
        (record.dataset, record.version, record.preprocessing) == (dataset, preprocessing.VERSION, recipe)
        and record.key == (folder.name if record.format == FORMAT else "")
        and record.fingerprint == fingerprint(record)
        and set(record.splits) <= set(SPLITS)
        and all(
            len(split.classes) == len(split.counts) == len(set(split.classes))
            and min(split.counts, default=0) >= 0
            and bool(split.checks) == (record.format == FORMAT)
            for split in record.splits.values()
        )
    )


def _with_checks(folder: Path, record: CacheRecord) -> CacheRecord | None:
    """A cache of format 1 with its checksums added, once all its pixels have been compared."""
    splits = {}
    for name, split in record.splits.items():
        sha256, sums = survey(folder / f"{name}.u8", record.image_bytes)
        if sha256 != split.sha256:
            return None
        try:
            splits[name] = replace(split, checks=write_checks(folder, name, sums))
        except FirststepError:  # read-only: its pixels are then compared every time
            splits[name] = split
    new = replace(record, splits=splits, key=folder.name, format=FORMAT)
    if not all(split.checks for split in splits.values()):
        return record
    write_cache_record(folder, new)
    return new
