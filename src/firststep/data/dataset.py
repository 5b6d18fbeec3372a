"""Opening a dataset: find it, check it, decode it once into a cache, and map it from there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firststep.data import cache, preprocessing, reading
from firststep.data.cache import ProgressCallback
from firststep.data.dataset_info import DATASETS, DatasetInfo, get_dataset_info
from firststep.data.layouts.layout import Located
from firststep.data.official_splits import differences
from firststep.data.preprocessing import Preprocessing
from firststep.data.reading import ReadOptions
from firststep.errors import FirststepError


@dataclass(frozen=True)
class Split:
    """The images of one split, class after class."""

    dataset: str
    """the dataset's name, part of what names an episode"""
    name: str
    classes: list[str]
    counts: list[int]
    """images of each class"""
    images: np.ndarray
    """uint8 [N, H, W, C], mapped from disk"""
    preprocessing: Preprocessing

    def starts(self) -> list[int]:
        """The row of each class's first image."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(int).tolist()


@dataclass(frozen=True)
class Dataset:
    name: str
    fingerprint: str
    """a hash of every decoded pixel, the class names and the preprocessing: equal means equal data"""
    preprocessing: Preprocessing
    folder: Path
    """the cache"""
    record: dict[str, Any]
    """what was found when the cache was made: layout, notes, odd files, differences, counts"""

    @property
    def channels(self) -> int:
        return self.preprocessing.channels

    @property
    def image_size(self) -> int:
        return self.preprocessing.image_size

    @property
    def mean(self) -> tuple[float, ...]:
        return self.preprocessing.mean

    @property
    def std(self) -> tuple[float, ...]:
        return self.preprocessing.std

    @property
    def splits(self) -> list[str]:
        return list(self.record["splits"])

    def split(self, name: str) -> Split:
        if name not in self.record["splits"]:
            raise FirststepError(f"{self.name} has no split {name!r}; it has {', '.join(self.splits)}")
        facts = self.record["splits"][name]
        size = self.image_size
        shape = (sum(facts["counts"]), size, size, self.channels)
        if shape[0] == 0:
            images = np.empty(shape, dtype=np.uint8)  # an empty file cannot be mapped
        else:
            images = np.memmap(self.folder / f"{name}.u8", np.uint8, "r", shape=shape)
        return Split(self.name, name, facts["classes"], facts["counts"], images, self.preprocessing)


def open_dataset(
    name: str,
    path: Path | str | None = None,
    *,
    image_size: int | None = None,
    channels: int | None = None,
    seed: int | None = None,
    rotations: bool = False,
    skip_broken: bool = False,
    partial: bool = False,
    cache_folder: Path | str | None = None,
    progress: ProgressCallback | None = None,
) -> Dataset:
    """Open a dataset by name, making its cache if there is none yet.

    path: the folder or archive that holds it; not for glyphs.
    image_size: side in pixels; the dataset's usual size if left out.
    channels: 1 or 3; folder only, else the dataset's own.
    seed: glyphs, of the drawing; folder, of the split where there is none on disk. 0 if left out.
    rotations: omniglot, quarter turns as extra classes.
    skip_broken: leave out images that cannot be decoded instead of stopping.
    partial: accept data that differs from the official classes and counts.
    cache_folder: where the cache goes, instead of beside the data or the user's cache folder.
    """
    info = get_dataset_info(name)
    _refuse_options_without_effect(info, path, channels=channels, seed=seed, rotations=rotations or None)
    options = ReadOptions(seed=seed or 0, rotations=rotations)
    recipe = Preprocessing(
        image_size=image_size if image_size is not None else info.image_size,
        channels=channels or info.channels,
        ink=info.ink,
    )
    chosen = Path(cache_folder) if cache_folder is not None else None
    if info.generated is not None:
        found = None
        identity: list[Any] = list(info.generated.identity(options.seed))
        root = cache.cache_root(None, chosen)
    else:
        assert path is not None
        found = reading.find(info, Path(path).expanduser().absolute())
        identity = list(reading.source_files(found))
        root = cache.cache_root(found.root, chosen)
    if info.version > 1:
        identity.append(f"version {info.version}")
    key = _key(name, recipe, options, identity)
    final = root / key
    image_bytes = recipe.image_size**2 * recipe.channels
    record = cache.read_record(final, image_bytes)
    if record is None:
        with cache.only_builder(root, key, progress):
            record = cache.read_record(final, image_bytes)
            if record is None:
                record = _build(info, found, options, recipe, root, key, skip_broken, partial, progress)
    _refuse_faulty(name, record, skip_broken, partial)
    return Dataset(name, record["fingerprint"], recipe, final, record)


def _refuse_options_without_effect(info: DatasetInfo, path: Path | str | None, **options: Any) -> None:
    if info.generated is not None and path is not None:
        raise FirststepError(f"{info.name} is generated, not read from files: leave the path out")
    if info.generated is None and path is None:
        raise FirststepError(f"{info.name} needs the path of its files; {reading.how_to_get(info)}")
    for option, value in options.items():
        if value is not None and option not in info.options:
            having = [name for name, other in DATASETS.items() if option in other.options]
            raise FirststepError(f"{option} is for {' and '.join(having)} only, not for {info.name}")


def _key(name: str, recipe: Preprocessing, options: ReadOptions, identity: Any) -> str:
    """Names the cache: source files and preprocessing. Times of change are cheap to compare, hashes not."""
    parts = [preprocessing.VERSION, name, recipe.describe(), vars(options), identity]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{name}-{recipe.image_size}px-{digest[:16]}"


def _build(
    info: DatasetInfo,
    found: Located | None,
    options: ReadOptions,
    recipe: Preprocessing,
    root: Path,
    key: str,
    skip_broken: bool,
    partial: bool,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    with cache.workspace(root, key) as workspace:
        unpacked, decoded = workspace / "unpacked", workspace / "decoded"
        unpacked.mkdir()
        decoded.mkdir()
        if progress:
            progress("reading", 0, 0)
        if found is not None:
            source = reading.read(info, found, options, unpacked)
        else:
            assert info.generated is not None
            source = info.generated.source(options.seed)
        record: dict[str, Any] = {
            "dataset": info.name,
            "version": preprocessing.VERSION,
            "preprocessing": recipe.describe(),
            "layout": source.layout,
            "notes": list(source.notes),
            "odd": list(source.odd),
            "differences": differences(info.official(), source) if info.official else [],
            "broken": [],
        }
        _refuse_faulty(info.name, record, skip_broken, partial)
        if not any(len(p) for classes in source.splits.values() for p in classes.values()):
            raise FirststepError(f"{info.name}: no images found ({source.layout})")
        record |= cache.write_splits(decoded, source, recipe, skip_broken, progress)
        record["fingerprint"] = fingerprint(record)
        cache.publish(decoded, root / key, record)
        return record


def fingerprint(record: dict[str, Any]) -> str:
    """16 hex digits that change whenever a pixel, a class name, a count or the recipe does."""
    parts = [record[part] for part in ("dataset", "version", "preprocessing", "splits")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class DatasetMismatchError(FirststepError):
    """Data that differs from the official data; ``lines`` lists every difference."""

    def __init__(self, message: str, lines: list[str]) -> None:
        super().__init__(message)
        self.lines = lines


def _refuse_faulty(name: str, record: dict[str, Any], skip_broken: bool, partial: bool) -> None:
    if record["differences"] and not partial:
        lines = record["differences"]
        more = f" (and {len(lines) - 1} more such differences)" if len(lines) > 1 else ""
        raise DatasetMismatchError(
            f"{name} ({record['layout']}) differs from the official data: {lines[0]}{more}; "
            "to use it as it is pass --partial",
            lines,
        )
    if record["broken"] and not skip_broken:
        raise FirststepError(
            f"{record['broken'][0]} is a broken image, one of {len(record['broken'])}; "
            "repair or remove it, or pass --skip-broken"
        )
