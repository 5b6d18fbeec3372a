"""Opening a dataset: found, checked, decoded once into a cache, and mapped from there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firststep.data import cache, preprocessing, reading
from firststep.data.cache import Progress
from firststep.data.glyphs import glyph_identity, glyph_source
from firststep.data.official import differences
from firststep.data.preprocessing import Preprocessing
from firststep.data.reading import Options
from firststep.data.registry import Entry, entry
from firststep.errors import FirststepError


@dataclass(frozen=True)
class Split:
    """The pictures of one split, class after class."""

    dataset: str
    """the dataset's name, part of what names an episode"""
    name: str
    classes: list[str]
    counts: list[int]
    """pictures of each class"""
    images: np.ndarray
    """uint8 [N, H, W, C], mapped from disk"""
    preprocessing: Preprocessing

    def starts(self) -> list[int]:
        """The row of each class's first picture."""
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
    progress: Progress | None = None,
) -> Dataset:
    """Open a dataset by name, making its cache if there is none yet.

    path: the folder or archive that holds it; not for glyphs.
    image_size: side in pixels; the dataset's usual size if left out.
    channels: 1 or 3; folder only, else the dataset's own.
    seed: glyphs, of the drawing; folder, of the split where there is none on disk. 0 if left out.
    rotations: omniglot, quarter turns as extra classes.
    skip_broken: leave out pictures that cannot be decoded instead of stopping.
    partial: accept data that differs from the official classes and counts.
    cache_folder: where the cache goes, instead of beside the data or the user's cache folder.
    """
    facts = entry(name)
    _refuse_unfitting(name, path, channels, seed, rotations)
    options = Options(seed=seed or 0, rotations=rotations)
    recipe = Preprocessing(
        image_size=image_size if image_size is not None else facts.image_size,
        channels=channels or facts.channels,
        ink=facts.ink,
    )
    chosen = Path(cache_folder) if cache_folder is not None else None
    if path is None:
        found = None
        identity: Any = glyph_identity(options.seed)
        root = cache.cache_root(None, chosen)
    else:
        found = reading.find(facts, Path(path).expanduser().absolute())
        identity = reading.source_files(found)
        root = cache.cache_root(found.root, chosen)
    key = _key(name, recipe, options, identity)
    final = root / key
    picture_bytes = recipe.image_size**2 * recipe.channels
    record = cache.read_record(final, picture_bytes)
    if record is None:
        with cache.only_builder(root, key, progress):
            record = cache.read_record(final, picture_bytes)
            if record is None:
                record = _build(facts, found, options, recipe, root, key, skip_broken, partial, progress)
    _refuse_faulty(name, record, skip_broken, partial)
    return Dataset(name, record["fingerprint"], recipe, final, record)


def _refuse_unfitting(
    name: str, path: Path | str | None, channels: int | None, seed: int | None, rotations: bool
) -> None:
    """No option may be silently without effect."""
    if name == "glyphs" and path is not None:
        raise FirststepError("glyphs are drawn, not read: leave the path out")
    if name != "glyphs" and path is None:
        raise FirststepError(f"{name} needs the path of its files; {reading.how_to_get(entry(name))}")
    if channels is not None and name != "folder":
        raise FirststepError(f"channels can be chosen for folder only; {name} has its own")
    if seed is not None and name not in ("glyphs", "folder"):
        raise FirststepError(f"seed is for glyphs and folder only; the split of {name} is the official one")
    if rotations and name != "omniglot":
        raise FirststepError("rotations is for omniglot only")


def _key(name: str, recipe: Preprocessing, options: Options, identity: Any) -> str:
    """Names the cache: source files and preprocessing. Times of change are cheap to compare, hashes not."""
    parts = [preprocessing.VERSION, name, recipe.describe(), vars(options), identity]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{name}-{recipe.image_size}px-{digest[:16]}"


def _build(
    facts: Entry,
    found: Any,
    options: Options,
    recipe: Preprocessing,
    root: Path,
    key: str,
    skip_broken: bool,
    partial: bool,
    progress: Progress | None,
) -> dict[str, Any]:
    with cache.workspace(root, key) as workspace:
        unpacked, decoded = workspace / "unpacked", workspace / "decoded"
        unpacked.mkdir()
        decoded.mkdir()
        if progress:
            progress("reading", 0, 0)
        source = (
            glyph_source(options.seed) if found is None else reading.read(facts, found, options, unpacked)
        )
        record: dict[str, Any] = {
            "dataset": facts.name,
            "version": preprocessing.VERSION,
            "preprocessing": recipe.describe(),
            "layout": source.layout,
            "notes": list(source.notes),
            "odd": list(source.odd),
            "differences": differences(facts.name, source),
            "broken": [],
        }
        _refuse_faulty(facts.name, record, skip_broken, partial)
        if not any(len(p) for classes in source.splits.values() for p in classes.values()):
            raise FirststepError(f"{facts.name}: no pictures found ({source.layout})")
        record |= cache.write_splits(decoded, source, recipe, skip_broken, progress)
        record["fingerprint"] = fingerprint(record)
        cache.publish(decoded, root / key, record)
        return record


def fingerprint(record: dict[str, Any]) -> str:
    """16 hex digits that change whenever a pixel, a class name, a count or the recipe does."""
    parts = [record[part] for part in ("dataset", "version", "preprocessing", "splits")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class DifferentError(FirststepError):
    """Data that is not the official data; ``lines`` says everything in which it differs."""

    def __init__(self, message: str, lines: list[str]) -> None:
        super().__init__(message)
        self.lines = lines


def _refuse_faulty(name: str, record: dict[str, Any], skip_broken: bool, partial: bool) -> None:
    if record["differences"] and not partial:
        lines = record["differences"]
        more = f" (and {len(lines) - 1} more such differences)" if len(lines) > 1 else ""
        raise DifferentError(
            f"{name} ({record['layout']}) differs from the official data: {lines[0]}{more}; "
            "to use it as it is pass --partial",
            lines,
        )
    if record["broken"] and not skip_broken:
        raise FirststepError(
            f"{record['broken'][0]} is a broken picture, one of {len(record['broken'])}; "
            "repair or remove it, or pass --skip-broken"
        )
