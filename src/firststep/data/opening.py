"""Opening a dataset: find it, check it, decode it once into a cache, and map it from there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
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
from firststep.data.cache_record import FORMAT, CacheRecord, fingerprint, read_cache
from firststep.data.dataset import Dataset
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
) -> Dataset:
    """Open a dataset by name, making its cache if there is none yet.

    path: the folder or archive that holds it; not for glyphs.
    image_size: side in pixels; the dataset's usual size if left out.
    channels: 1 or 3; folder only, else the dataset's own.
    normalisation: usual, or symmetric for weights that were pretrained so; see ``Preprocessing``.
    seed: glyphs, of the drawing; folder, of the split where there is none on disk. 0 if left out.
    rotations: omniglot, quarter turns as extra classes.
    skip_broken: leave out images that cannot be decoded instead of stopping.
    partial: accept data that differs from the official classes and counts.
    cache: where the cache goes, instead of beside the data or the user's cache folder.
    verify: compare all pixels of the cache with what was stored, a few seconds for each gigabyte; otherwise
        every image is compared when it is first used. A damaged cache is made again.

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
    final = root / key
    if verify and progress and final.exists():
        progress("checking the cache", 0, 0)
    record = read_cache(final, name, recipe, verify)
    if record is not None:
        remove_leftovers(root)  # a builder may have been killed after its cache was complete
    else:
        with only_builder(root, key, progress):
            record = read_cache(final, name, recipe, verify)
            if record is None:
                if progress and final.exists():
                    progress(f"the cache {final} is damaged and is made again", 0, 0)
                record = _build(info, found, options, recipe, root, key, skip_broken, partial, progress)
    _refuse_faulty(record, skip_broken, partial)
    return Dataset(name, record.fingerprint, recipe, final, record)


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
) -> CacheRecord:
    with workspace(root, key) as temporary:
        unpacked, decoded = temporary / "unpacked", temporary / "decoded"
        unpacked.mkdir()
        decoded.mkdir()
        if progress:
            progress("reading", 0, 0)
        if found is not None:
            source = reading.read(info, found, options, unpacked)
        else:
            assert info.generated is not None
            source = info.generated.source(options.seed)
        record = CacheRecord(
            dataset=info.name,
            version=preprocessing.VERSION,
            preprocessing=recipe,
            layout=source.layout,
            notes=list(source.notes),
            odd=list(source.odd),
            differences=differences(info.official(), source) if info.official else [],
            broken=[],
            splits={},
            fingerprint="",
            key=key,
            format=FORMAT,
        )
        _refuse_faulty(record, skip_broken, partial)
        images = image_count(source)
        if not images:
            raise FirststepError(f"{info.name}: no images found ({source.layout})")
        require_space(root, images * (record.image_bytes + 4), f"the cache of {images} images")
        splits, broken = write_splits(decoded, source, recipe, skip_broken, progress)
        record = replace(record, splits=splits, broken=broken)
        record = replace(record, fingerprint=fingerprint(record))
        publish(decoded, root / key, record)
        return record


class DatasetMismatchError(FirststepError):
    """Data that differs from the official data; ``lines`` lists every difference.

    Examples:
        >>> from firststep.data import DatasetMismatchError
        >>> issubclass(DatasetMismatchError, fs.FirststepError)
        True
    """

    def __init__(self, message: str, lines: list[str]) -> None:
        super().__init__(message)
        self.lines = lines


def _refuse_faulty(record: CacheRecord, skip_broken: bool, partial: bool) -> None:
    if record.differences and not partial:
        lines = record.differences
        more = f" (and {len(lines) - 1} more such differences)" if len(lines) > 1 else ""
        raise DatasetMismatchError(
            f"{record.dataset} ({record.layout}) differs from the official data: {lines[0]}{more}; "
            "to use it as it is pass `partial=True`",
            lines,
        )
    if record.broken and not skip_broken:
        raise FirststepError(
            f"{record.broken[0]} is a broken image, one of {len(record.broken)}; "
            "repair or remove it, or pass `skip_broken=True`"
        )
