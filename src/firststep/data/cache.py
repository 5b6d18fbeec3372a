"""Decoded images on disk: one uint8 file per split, written once and mapped into memory afterwards.

A cache folder gets its final name only when it is complete. The process that holds the lock builds it. The
next build removes what a killed one left behind.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

import numpy as np

from firststep.data.cache_record import CacheRecord, SplitRecord, write_cache_record, write_checks
from firststep.data.pictures import quiet
from firststep.data.pixel_checks import checksum
from firststep.data.preprocessing import Preprocessing
from firststep.data.regular_files import expanded
from firststep.data.source import ClassImages, Source
from firststep.errors import FirststepError
from firststep.utils import available_cores, locked, try_lock
from firststep.utils.extras import extra

ProgressCallback = Callable[[str, int, int], None]
"""Called with (task, done, total), counted in images, or in bytes for a download.

Examples:
    >>> from firststep.data import ProgressCallback
    >>> def show(what: str, done: int, total: int) -> None:
    ...     print(what, done, "of", total)
    >>> callback: ProgressCallback = show
"""

ENVIRONMENT = "FIRSTSTEP_CACHE"
FOLDER = ".firststep-cache"
BATCH = 256
"""Number of images that are decoded before they are written; bounds the memory."""


def user_cache() -> Path:
    """Return the folder that FIRSTSTEP_CACHE names, or the user's cache folder.

    Examples:
        >>> from firststep.data import user_cache
        >>> user_cache().is_absolute()
        True
    """
    if chosen := os.environ.get(ENVIRONMENT):
        return expanded(chosen)
    with extra("cli", "firststep.data"):
        import platformdirs

    return Path(platformdirs.user_cache_dir("firststep"))


def cache_root(data: Path | None, chosen: Path | None) -> Path:
    """Return where caches go: the chosen folder, else beside the data, else the user's cache folder."""
    if chosen is not None:
        return expanded(chosen)
    if data is None or os.environ.get(ENVIRONMENT):
        return user_cache()
    beside = (data if data.is_dir() else data.parent) / FOLDER
    return beside if _writable(beside) else user_cache()


def _writable(folder: Path) -> bool:
    """Try it: permission bits mislead on network drives and for the superuser."""
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@contextmanager
def only_builder(root: Path, key: str, progress: ProgressCallback | None) -> Iterator[None]:
    """Let one process at a time into the block; the others wait."""

    def on_wait() -> None:
        if progress:
            progress("waiting for another process that builds the same cache", 0, 0)

    with ExitStack() as held:
        try:
            root.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(root / f"{key}.lock", on_wait))
        except OSError as error:
            raise FirststepError(
                f"cannot write to the cache folder {root} ({error.strerror}); "
                f"choose another with `cache` or the environment variable {ENVIRONMENT}"
            ) from None
        yield


@contextmanager
def workspace(root: Path, key: str) -> Iterator[Path]:
    """Make a temporary folder beside the final one and remove it afterwards. Needs ``only_builder``."""
    remove_leftovers(root, key)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=root))
    except OSError as error:
        raise FirststepError(f"cannot make the cache in {root} ({error.strerror})") from None
    try:
        yield folder
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FirststepError(
                f"no space left in {root} for the cache; free some, or choose another folder with `cache`"
            ) from None
        where = f"{error.filename}: " if error.filename else ""
        raise FirststepError(f"cannot make the cache in {root} ({where}{error.strerror or error})") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(root: Path, key: str | None = None) -> None:
    """Remove the temporary folders of killed builds, of this cache and others. Running builds keep theirs.

    Args:
        key: name of the cache that this process is building.
    """
    for folder in root.glob(".*-*px-*.*"):
        other = folder.name[1:].rpartition(".")[0]
        if other == key:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        with suppress(OSError):  # a lock of another user
            if (lock := try_lock(root / f"{other}.lock")) is not None:
                with lock:
                    shutil.rmtree(folder, ignore_errors=True)


def write_splits(
    folder: Path,
    source: Source,
    preprocessing: Preprocessing,
    skip_broken: bool,
    progress: ProgressCallback | None,
) -> tuple[dict[str, SplitRecord], list[str]]:
    """Decode everything into ``folder``. Return what was written and the broken images that were left out."""
    total = image_count(source)
    done = 0
    splits: dict[str, SplitRecord] = {}
    broken: list[str] = []
    threads = min(8, available_cores()) if source.parallel else 1
    with quiet(), ThreadPoolExecutor(max_workers=threads) as pool:
        for split, classes in source.splits.items():
            counts = dict.fromkeys(classes, 0)
            digest, sums = hashlib.sha256(), []
            with open(folder / f"{split}.u8", "wb") as file:
                jobs = ((name, images, i) for name, images in classes.items() for i in range(len(images)))
                while batch := list(islice(jobs, BATCH)):
                    for (name, images, i), pixels in zip(
                        batch,
                        pool.map(lambda job: _pixels(job[1], job[2], preprocessing), batch),
                        strict=True,
                    ):
                        if isinstance(pixels, FirststepError):
                            if not skip_broken:
                                raise FirststepError(
                                    f"{pixels}; repair or remove it, or pass `skip_broken=True`"
                                )
                            broken.append(images.name(i))
                            continue
                        row = pixels.tobytes()
                        file.write(row)
                        digest.update(row)
                        sums.append(checksum(row))
                        counts[name] += 1
                    done += len(batch)
                    if progress:
                        progress(f"decoding {split}", done, total)
                file.flush()
                os.fsync(file.fileno())
            splits[split] = SplitRecord(
                classes=list(counts),
                counts=list(counts.values()),
                sha256=digest.hexdigest(),
                checks=write_checks(folder, split, np.array(sums, dtype="<u4")),
            )
    return splits, broken


def image_count(source: Source) -> int:
    return sum(len(images) for classes in source.splits.values() for images in classes.values())


def _pixels(images: ClassImages, index: int, preprocessing: Preprocessing) -> np.ndarray | FirststepError:
    """Return the error for a broken image, because raising it would stop the thread pool."""
    try:
        return images.pixels(index, preprocessing)
    except FirststepError as error:
        return error


def publish(folder: Path, final: Path, record: CacheRecord) -> None:
    """Give the finished folder its final name."""
    write_cache_record(folder, record)
    try:
        if os.path.lexists(final):  # damaged
            final.rename(folder.with_name("damaged"))
        folder.rename(final)
    except OSError as error:
        raise FirststepError(
            f"cannot replace the damaged cache {final} ({error.strerror}); delete it, or choose another "
            "folder with `cache`"
        ) from None
