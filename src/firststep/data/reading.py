"""From a path to a source: recognise the layout, unpack archives, read."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from firststep.data.archives import is_archive, unpack
from firststep.data.dataset_info import DatasetInfo
from firststep.data.layouts.layout import Located, files_below, locate
from firststep.data.source import Source, with_rotations, with_seeded_split
from firststep.errors import FirststepError


@dataclass(frozen=True)
class ReadOptions:
    """What changes how a dataset is read; part of the cache's key."""

    seed: int = 0
    """of generated images, and of the split by class where there is none on disk"""
    rotations: bool = False
    """four times the classes by quarter turns"""


def find(info: DatasetInfo, path: Path) -> Located:
    """The dataset at a path: unpacked in some layout, or as archives."""
    if not path.exists():
        raise FirststepError(f"{path} does not exist; {how_to_get(info)}")
    found = None if is_archive(path) else locate(path, info.layouts)
    found = found or _archives(info, path)
    if found is None:
        looked_for = "; ".join(layout.what for layout in info.layouts)
        if path.is_dir() and not any(path.iterdir()):
            raise FirststepError(f"{path} is empty; looked for {info.name} as: {looked_for}")
        raise FirststepError(f"no {info.name} found in {path}; looked for: {looked_for}")
    return found


def how_to_get(info: DatasetInfo) -> str:
    if any(file.url for file in info.files):
        return f"get {info.name} with: firststep data {info.name} PATH --download"
    if info.files:
        return f"{info.name} has no free direct download; get it from {info.home}"
    return f"give the folder that holds {' or '.join(layout.what for layout in info.layouts)}"


def _archives(info: DatasetInfo, path: Path) -> Located | None:
    """All published archives of the dataset in one folder, or any one archive that was given."""
    folders = [path.parent] if path.is_file() else [path, *(p for p in sorted(path.iterdir()) if p.is_dir())]
    for folder in folders:
        archives = [folder / file.name for file in info.files]
        if archives and all(map(is_archive, archives)) and (path.is_dir() or path in archives):
            return Located(None, folder, tuple(archives))
    return Located(None, path.parent, (path,)) if is_archive(path) else None


def source_files(found: Located) -> list[tuple[str, int, int]]:
    """(name, size, time of change) of every file that the dataset consists of."""
    files = []
    for part in found.parts:
        for file in [part] if part.is_file() else files_below(part):
            status = os.stat(file)
            files.append((str(file.relative_to(found.root)), status.st_size, status.st_mtime_ns))
    return files


def read(info: DatasetInfo, found: Located, options: ReadOptions, workspace: Path) -> Source:
    """The source of what was found; archives are unpacked into the workspace first."""
    if found.layout is not None:
        source = found.layout.read(found.root)
    else:
        for archive in found.parts:
            unpack(archive, workspace)
        names = ", ".join(archive.name for archive in found.parts)
        inside = locate(workspace, info.layouts)
        if inside is None or inside.layout is None:
            looked_for = "; ".join(layout.what for layout in info.layouts)
            raise FirststepError(f"no {info.name} found inside {names}; looked for: {looked_for}")
        source = inside.layout.read(inside.root)
        source = replace(source, layout=f"{names}: {source.layout}")
    if options.rotations:
        source = with_rotations(source)
    return with_seeded_split(source, options.seed)
