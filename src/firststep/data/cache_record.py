"""``dataset.json``: what a cache holds, and the check that it still holds that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from firststep.data import preprocessing
from firststep.data.pixel_checks import DAMAGED, PixelChecks, sha256
from firststep.data.preprocessing import Preprocessing
from firststep.data.source import SPLITS
from firststep.errors import FirststepError
from firststep.utils import check_format, read_bytes, read_json, replacing, to_record, write_text

FORMAT = "firststep-dataset-3"
FILE = "dataset.json"


@dataclass(frozen=True, kw_only=True)
class SplitRecord:
    """One split: images in ``<split>.u8``, class after class, and their checksums in ``<split>.crc32``."""

    classes: list[str]
    counts: list[int]
    """number of images per class"""
    sha256: str
    """SHA-256 of all pixels, part of the fingerprint"""
    checks: str
    """SHA-256 of the file of checksums"""


@dataclass(frozen=True, kw_only=True)
class CacheRecord:
    """The findings of a cache's construction."""

    dataset: str
    version: int
    """version of the preprocessing"""
    preprocessing: Preprocessing
    layout: str
    notes: list[str]
    ignored: list[str]
    """files that are not part of the dataset"""
    differences: list[str]
    """differences from the official data"""
    broken: list[str]
    """images that were left out"""
    splits: dict[str, SplitRecord]
    fingerprint: str
    key: str
    """name of the cache's folder"""
    format: str = FORMAT

    @property
    def image_bytes(self) -> int:
        return self.preprocessing.image_size**2 * self.preprocessing.channels


def fingerprint(record: CacheRecord) -> str:
    """Return 16 hex digits that change whenever a pixel, a class name, a count or the preprocessing does."""
    splits = {
        name: {"classes": split.classes, "counts": split.counts, "sha256": split.sha256}
        for name, split in record.splits.items()
    }
    parts = [record.dataset, record.version, record.preprocessing.describe(), splits]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def write_cache_record(folder: Path, record: CacheRecord) -> None:
    # ASCII, because names of files may hold bytes that are not text.
    write_text(folder / FILE, json.dumps(asdict(record), indent=1, ensure_ascii=True) + "\n")


def write_checks(folder: Path, split: str, sums: np.ndarray) -> str:
    """Write the checksums of a split and return the digest of the file."""
    content = sums.astype("<u4").tobytes()
    with replacing(folder / f"{split}.crc32") as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read_checks(folder: Path, split: str, record: SplitRecord) -> PixelChecks:
    content = read_bytes(folder / f"{split}.crc32")
    if hashlib.sha256(content).hexdigest() != record.checks or len(content) != 4 * sum(record.counts):
        raise FirststepError(f"{folder / f'{split}.crc32'} is damaged")
    return PixelChecks(folder, split, np.frombuffer(content, "<u4"))


def read_cache(folder: Path, dataset: str, recipe: Preprocessing, verify: bool = False) -> CacheRecord | None:
    """Return the record of a complete, undamaged cache of this dataset, or None if it has to be made.

    ``verify`` compares all pixels, which takes a few seconds per gigabyte.
    """
    try:
        content = read_json(folder / FILE)
        check_format(content, str(folder / FILE), FORMAT)
        record = to_record(content, CacheRecord, str(folder / FILE))
        if (folder / DAMAGED).exists() or not _consistent(record, folder, dataset, recipe):
            return None
        for name, split in record.splits.items():
            pixels = folder / f"{name}.u8"
            if pixels.stat().st_size != sum(split.counts) * record.image_bytes:
                return None
            read_checks(folder, name, split)
            if verify and sha256(pixels) != split.sha256:
                return None
    except (FirststepError, OSError):
        return None  # whatever it is, it can be made again
    return record


def _consistent(record: CacheRecord, folder: Path, dataset: str, recipe: Preprocessing) -> bool:
    return (
        (record.dataset, record.version, record.preprocessing) == (dataset, preprocessing.VERSION, recipe)
        and record.key == folder.name
        and record.fingerprint == fingerprint(record)
        and set(record.splits) <= set(SPLITS)
        and all(
            len(split.classes) == len(split.counts) == len(set(split.classes))
            and min(split.counts, default=0) >= 0
            for split in record.splits.values()
        )
    )
