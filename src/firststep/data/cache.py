"""Decoded pictures on disk: one uint8 file a split, made once, atomically, and mapped ever after.

A cache folder appears under its final name only when it is complete. Whoever holds the lock builds;
what a killed build left behind is removed by the next one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import platformdirs

from firststep.data.pictures import Pictures
from firststep.data.preprocessing import Preprocessing
from firststep.data.source import Source
from firststep.errors import FirststepError

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, pictures done, pictures in all)."""

ENVIRONMENT = "FIRSTSTEP_CACHE"
FOLDER = ".firststep-cache"
BATCH = 256
"""Pictures decoded before they are written: what bounds the memory."""


def user_cache() -> Path:
    """The user's cache folder, or the one that FIRSTSTEP_CACHE names."""
    chosen = os.environ.get(ENVIRONMENT)
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("firststep"))


def cache_root(data: Path | None, chosen: Path | None) -> Path:
    """Where caches go: as chosen, else next to the data, else (read-only, embedded) the user's folder."""
    if chosen is not None:
        return Path(chosen).expanduser()
    if data is None or os.environ.get(ENVIRONMENT):
        return user_cache()
    beside = (data if data.is_dir() else data.parent) / FOLDER
    return beside if _writable(beside) else user_cache()


def _writable(folder: Path) -> bool:
    """Try it: permission bits say little on network drives and for the superuser."""
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@contextmanager
def only_builder(root: Path, key: str, progress: Progress | None) -> Iterator[None]:
    """One process at a time past this point; the others wait."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(root / f"{key}.lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            if progress:
                progress("waiting for another process that builds the same cache", 0, 0)
            lock.acquire()
    except OSError as error:
        raise FirststepError(
            f"cannot write to the cache folder {root} ({error.strerror}); "
            f"choose another with --cache or {ENVIRONMENT}"
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def workspace(root: Path, key: str) -> Iterator[Path]:
    """A temporary folder beside the final one; gone afterwards. Call it only as the sole builder."""
    for left_behind in root.glob(f".{key}.*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=root))
    try:
        yield folder
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FirststepError(
                f"no space left in {root} for the cache; free some or choose another folder with --cache"
            ) from None
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_splits(
    folder: Path, source: Source, preprocessing: Preprocessing, skip_broken: bool, progress: Progress | None
) -> dict[str, Any]:
    """Decode everything into ``folder``; return what was written, with a hash of every split's pixels."""
    total = sum(len(pictures) for classes in source.splits.values() for pictures in classes.values())
    done = 0
    splits: dict[str, Any] = {}
    broken: list[str] = []
    threads = min(8, os.cpu_count() or 1) if source.parallel else 1
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for split, classes in source.splits.items():
            counts = dict.fromkeys(classes, 0)
            digest = hashlib.sha256()
            with open(folder / f"{split}.u8", "wb") as file:
                jobs = (
                    (name, pictures, i) for name, pictures in classes.items() for i in range(len(pictures))
                )
                while batch := list(islice(jobs, BATCH)):
                    for (name, pictures, i), pixels in zip(
                        batch,
                        pool.map(lambda job: _pixels(job[1], job[2], preprocessing), batch),
                        strict=True,
                    ):
                        if isinstance(pixels, FirststepError):
                            if not skip_broken:
                                raise FirststepError(f"{pixels}; repair or remove it, or pass --skip-broken")
                            broken.append(pictures.name(i))
                            continue
                        row = pixels.tobytes()
                        file.write(row)
                        digest.update(row)
                        counts[name] += 1
                    done += len(batch)
                    if progress:
                        progress(f"decoding {split}", done, total)
                file.flush()
                os.fsync(file.fileno())
            splits[split] = {
                "classes": list(counts),
                "counts": list(counts.values()),
                "sha256": digest.hexdigest(),
            }
    return {"splits": splits, "broken": broken}


def _pixels(pictures: Pictures, index: int, preprocessing: Preprocessing) -> np.ndarray | FirststepError:
    """A broken picture is a value here: the pool must not stop at the first one."""
    try:
        return pictures.pixels(index, preprocessing)
    except FirststepError as error:
        return error


def publish(folder: Path, final: Path, record: dict[str, Any]) -> None:
    """Give the finished folder its name: from now on it is a cache."""
    (folder / "dataset.json").write_text(
        json.dumps(record, indent=1, ensure_ascii=True) + "\n", encoding="ascii"
    )
    shutil.rmtree(final, ignore_errors=True)  # there only if it was damaged
    folder.rename(final)


def read_record(final: Path, bytes_per_picture: int) -> dict[str, Any] | None:
    """What a complete, undamaged cache says of itself, or None."""
    try:
        record: dict[str, Any] = json.loads((final / "dataset.json").read_text(encoding="ascii"))
        for split, facts in record["splits"].items():
            if (final / f"{split}.u8").stat().st_size != sum(facts["counts"]) * bytes_per_picture:
                return None
    except (OSError, ValueError, KeyError):
        return None
    return record
