"""Open a dataset: find it, check it, decode it once into a cache, and map it from there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firststep.data import preprocessing, reading
from firststep.data.cache import (
    ProgressCallback,
    cache_root,
    image_count,
    only_builder,
    publish,
    remove_leftovers,
    workspace,
    write_splits,
)
from firststep.data.cache_record import CacheRecord, fingerprint, read_cache
from firststep.data.dataset import CachedDataset
from firststep.data.dataset_info import DATASETS, DatasetInfo, get_dataset_info
from firststep.data.disk_space import require_space
from firststep.data.layouts.layout import Located
from firststep.data.official_splits import differences
from firststep.data.preprocessing import Preprocessing
from firststep.data.reading import ReadOptions
from firststep.data.regular_files import expanded, readable_or_refused
from firststep.errors import FirststepError


def open_dataset(
    name: str,
    path: Path | str | None = None,
    *,
    image_size: int | None = None,
    channels: int | None = None,
    normalisation: str = "usual",
    seed: int | None = None,
    rotations: bool = False,
    skip_broken: bool = False,
    partial: bool = False,
    cache: Path | str | None = None,
    verify: bool = False,
    progress: ProgressCallback | None = None,
) -> CachedDataset:
    """Open a dataset by name and make its cache if there is none yet.

    Args:
        path: folder or archive that holds it; not for generated datasets such as glyphs.
        image_size: side in pixels; default the dataset's usual size.
        channels: 1 or 3; folder only.
        normalisation: ``usual``, or ``symmetric`` for weights that were pretrained so; see ``Preprocessing``.
        seed: seed of the drawing (glyphs), or of the split if there is none on disk (folder); default 0.
        rotations: add quarter turns as classes; omniglot only.
        skip_broken: leave out images that cannot be decoded instead of stopping.
        partial: accept data that differs from the official classes and counts.
        cache: folder of the cache, instead of beside the data or the user's cache folder.
        verify: compare all pixels of the cache with what was stored, a few seconds per gigabyte. Otherwise
            each image is compared when it is first used. A damaged cache is made again.
        progress: called with the task, the work done and the total.

    Examples:
        >>> open_dataset("glyphs").fingerprint
        '0c69e71b7d812657'
    """
    info = get_dataset_info(name)
    _refuse_options_without_effect(info, path, channels=channels, seed=seed, rotations=rotations or None)
    options = ReadOptions(seed=seed or 0, rotations=rotations)
    recipe = Preprocessing(
        image_size=image_size if image_size is not None else info.image_size,
        channels=channels or info.channels,
        ink=info.ink,
        normalisation=normalisation,
    )
    chosen = Path(cache) if cache is not None else None
    if info.generated is not None:
        found = None
        identity: list[Any] = list(info.generated.identity(options.seed))
        root = cache_root(None, chosen)
    else:
        assert path is not None
        with readable_or_refused():
            found = reading.find(info, expanded(path).absolute())
            identity = list(reading.source_files(found))
        root = cache_root(found.root, chosen)
    if info.version > 1:
        identity.append(f"version {info.version}")
    key = _key(name, recipe, options, identity)
    request = _Request(info, found, options, recipe, root / key, skip_broken, partial, progress)
    record = _read_or_build(request, verify)
    _refuse_faulty(record, request)
    return CachedDataset(root / key, record)


@dataclass(frozen=True)
class _Request:
    """The dataset to open, and its options."""

    info: DatasetInfo
    found: Located | None
    options: ReadOptions
    recipe: Preprocessing
    cache: Path
    """final folder of the cache"""
    skip_broken: bool
    partial: bool
    progress: ProgressCallback | None

    def report(self, task: str) -> None:
        if self.progress:
            self.progress(task, 0, 0)


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
    """Return the name of the cache. It depends on modification times, because hashing all files is slow."""
    parts = [preprocessing.VERSION, name, recipe.describe(), vars(options), identity]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{name}-{recipe.image_size}px-{digest[:16]}"


def _read_or_build(request: _Request, verify: bool) -> CacheRecord:
    cache, name, recipe = request.cache, request.info.name, request.recipe
    if verify and cache.exists():
        request.report("checking the cache")
    record = read_cache(cache, name, recipe, verify)
    if record is not None:
        remove_leftovers(cache.parent)  # a build may have been killed after its cache was complete
        return record
    with only_builder(cache.parent, cache.name, request.progress):
        record = read_cache(cache, name, recipe, verify)  # another process may have built it meanwhile
        if record is None:
            if cache.exists():
                request.report(f"the cache {cache} is damaged and is made again")
            record = _build(request)
    return record


def _build(request: _Request) -> CacheRecord:
    info, cache = request.info, request.cache
    with workspace(cache.parent, cache.name) as temporary:
        unpacked, decoded = temporary / "unpacked", temporary / "decoded"
        unpacked.mkdir()
        decoded.mkdir()
        request.report("reading")
        if request.found is not None:
            source = reading.read(info, request.found, request.options, unpacked)
        else:
            assert info.generated is not None
            source = info.generated.source(request.options.seed)
        record = CacheRecord(
            dataset=info.name,
            version=preprocessing.VERSION,
            preprocessing=request.recipe,
            layout=source.layout,
            notes=list(source.notes),
            ignored=list(source.ignored),
            differences=differences(info.official(), source) if info.official else [],
            broken=[],
            splits={},
            fingerprint="",
            key=cache.name,
        )
        _refuse_faulty(record, request)
        images = image_count(source)
        if not images:
            raise FirststepError(f"{info.name}: no images found ({source.layout})")
        require_space(cache.parent, images * (record.image_bytes + 4), f"the cache of {images} images")
        splits, broken = write_splits(decoded, source, request.recipe, request.skip_broken, request.progress)
        record = replace(record, splits=splits, broken=broken)
        record = replace(record, fingerprint=fingerprint(record))
        publish(decoded, cache, record)
        return record


class DatasetMismatchError(FirststepError):
    """Data that differs from the official data; ``lines`` lists all differences.

    Examples:
        >>> from firststep.data import DatasetMismatchError
        >>> issubclass(DatasetMismatchError, fs.FirststepError)
        True
    """

    def __init__(self, message: str, lines: list[str]) -> None:
        super().__init__(message)
        self.lines = lines


def _refuse_faulty(record: CacheRecord, request: _Request) -> None:
    if record.differences and not request.partial:
        lines = record.differences
        more = f" (and {len(lines) - 1} more such differences)" if len(lines) > 1 else ""
        raise DatasetMismatchError(
            f"{record.dataset} ({record.layout}) differs from the official data: {lines[0]}{more}; "
            "to use it as it is pass `partial=True`",
            lines,
        )
    if record.broken and not request.skip_broken:
        raise FirststepError(
            f"{record.broken[0]} is a broken image, one of {len(record.broken)}; "
            "repair or remove it, or pass `skip_broken=True`"
        )
