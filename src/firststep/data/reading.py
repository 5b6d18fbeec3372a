"""Read a dataset from a path: recognise the layout, unpack archives, list the images."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from firststep.data.archives import is_archive, unpack
from firststep.data.dataset_info import DatasetInfo
from firststep.data.layouts.layout import Located, files_below, locate, subfolders
from firststep.data.regular_files import entries
from firststep.data.source import Source, with_rotations, with_seeded_split
from firststep.errors import FirststepError


@dataclass(frozen=True)
class ReadOptions:
    """Options that change how a dataset is read, part of the name of the cache."""

    seed: int = 0
    """seed of generated images, or of the split by class if there is none on disk"""
    rotations: bool = False
    """whether quarter turns make three more classes of each"""

    def __post_init__(self) -> None:
        if not -(2**63) <= self.seed < 2**64:
            raise FirststepError(f"the seed {self.seed} has more than 64 bits; choose a smaller one")


def find(info: DatasetInfo, path: Path) -> Located:
    """Find the dataset at a path, in some layout or as archives."""
    _require_readable(info, path)
    found = None if is_archive(path) else locate(path, info.layouts)
    found = found or _archives(info, path)
    if found is None:
        looked_for = "; ".join(layout.what for layout in info.layouts)
        if path.is_dir() and not entries(path):
            raise FirststepError(f"{path} is empty; looked for {info.name} as: {looked_for}")
        raise FirststepError(f"no {info.name} found in {path}; looked for: {looked_for}")
    return found


def _require_readable(info: DatasetInfo, path: Path) -> None:
    """Refuse anything but a folder or a regular file: reading a pipe could block for ever."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        lost = "is a link to something that does not exist" if path.is_symlink() else "does not exist"
        raise FirststepError(f"{path} {lost}; {how_to_get(info)}") from None
    except (OSError, ValueError) as error:
        raise FirststepError(f"{path} cannot be read ({getattr(error, 'strerror', error)})") from None
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise FirststepError(f"{path} is a pipe, socket or device, not a folder or file; {how_to_get(info)}")


def how_to_get(info: DatasetInfo) -> str:
    if any(file.url for file in info.files):
        return f"get {info.name} with: firststep data {info.name} PATH --download"
    if info.files:
        return f"{info.name} has no free direct download; get it from {info.home}"
    return f"give the folder that holds {' or '.join(layout.what for layout in info.layouts)}"


def _archives(info: DatasetInfo, path: Path) -> Located | None:
    """Return all published archives of the dataset in one folder, or the archive that was given."""
    folders = [path.parent] if path.is_file() else [path, *subfolders(path)]
    for folder in folders:
        archives = [folder / file.name for file in info.files]
        if archives and all(map(is_archive, archives)) and (path.is_dir() or path in archives):
            return Located(None, folder, tuple(archives))
    return Located(None, path.parent, (path,)) if is_archive(path) else None


def source_files(found: Located) -> list[tuple[str, int, int]]:
    """Return (name, size, modification time) of each file of the dataset."""
    files = []
    for part in found.parts:
        for file in files_below(part) if part.is_dir() else [part]:
            status = _status(file)
            files.append((str(file.relative_to(found.root)), status.st_size, status.st_mtime_ns))
    return files


def _status(file: Path) -> os.stat_result:
    """Return the status of a file, or of the link itself if it leads nowhere; decoding names it later."""
    try:
        return os.stat(file)
    except OSError:
        return os.lstat(file)


def read(info: DatasetInfo, found: Located, options: ReadOptions, workspace: Path) -> Source:
    """Read what was found. Archives are unpacked into the workspace first."""
    if found.layout is not None:
        source = found.layout.read(found.root)
    else:
        for archive in found.parts:
            unpack(archive, workspace)
        names = ", ".join(archive.name for archive in found.parts)
        inside = locate(workspace, info.layouts)
        if inside is None or inside.layout is None:
            looked_for = "; ".join(layout.what for layout in info.layouts)
            packed = next((file.name for file in files_below(workspace) if is_archive(file)), None)
            hint = f"; it holds the archive {packed}: unpack that yourself" if packed else ""
            raise FirststepError(f"no {info.name} found inside {names}; looked for: {looked_for}{hint}")
        source = inside.layout.read(inside.root)
        source = replace(source, layout=f"{names}: {source.layout}")
    if options.rotations:
        source = with_rotations(source)
    return with_seeded_split(source, options.seed)
