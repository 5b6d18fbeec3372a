"""From a path to a source: recognise the layout, unpack archives, compare with the official facts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from firststep.data.archives import is_archive, unpack
from firststep.data.layouts.folder import with_seeded_split
from firststep.data.layouts.layout import Layout, Located, files_below, locate
from firststep.data.layouts.omniglot import with_rotations
from firststep.data.registry import Entry
from firststep.data.source import Source
from firststep.errors import FirststepError


@dataclass(frozen=True)
class Options:
    """What changes how a dataset is read; part of the cache's key."""

    seed: int = 0
    """glyphs: of the drawing; folder: of the split by class"""
    rotations: bool = False
    """omniglot: four times the classes by quarter turns"""


def find(entry: Entry, path: Path) -> Located:
    """The dataset at a path: unpacked in some layout, or as archives."""
    if not path.exists():
        raise FirststepError(f"{path} does not exist; {how_to_get(entry)}")
    found = None if is_archive(path) else locate(path, entry.layouts)
    found = found or _archives(entry, path)
    if found is None:
        looked_for = "; ".join(layout.what for layout in entry.layouts)
        if path.is_dir() and not any(path.iterdir()):
            raise FirststepError(f"{path} is empty; looked for {entry.name} as: {looked_for}")
        raise FirststepError(f"no {entry.name} found in {path}; looked for: {looked_for}")
    return found


def how_to_get(entry: Entry) -> str:
    if any(file.url for file in entry.files):
        return f"get {entry.name} with: firststep data {entry.name} PATH --download"
    if entry.files:
        return f"{entry.name} has no free direct download; get it from {entry.home}"
    return "give the folder that holds one folder of pictures a class"


def _archives(entry: Entry, path: Path) -> Located | None:
    """All published archives of the dataset in one folder, or any one archive that was given."""
    folders = [path.parent] if path.is_file() else [path, *(p for p in sorted(path.iterdir()) if p.is_dir())]
    for folder in folders:
        archives = [folder / file.name for file in entry.files]
        if archives and all(map(is_archive, archives)) and (path.is_dir() or path in archives):
            return Located(_packed(entry), folder, tuple(archives))
    return Located(_packed(entry), path.parent, (path,)) if is_archive(path) else None


def _packed(entry: Entry) -> Layout:
    def unreadable(root: Path) -> Source:
        raise AssertionError(f"unpack {entry.name} before reading it")

    return Layout("archives", lambda root: [], unreadable)


def source_files(found: Located) -> list[tuple[str, int, int]]:
    """(name, size, time of change) of every file that the dataset consists of."""
    facts = []
    for part in found.parts:
        for file in [part] if part.is_file() else files_below(part):
            status = os.stat(file)
            facts.append((str(file.relative_to(found.root)), status.st_size, status.st_mtime_ns))
    return facts


def read(entry: Entry, found: Located, options: Options, workspace: Path) -> Source:
    """The source of what was found; archives are unpacked into the workspace first."""
    packed = [part for part in found.parts if is_archive(part)] if found.layout.what == "archives" else []
    if packed:
        for archive in packed:
            unpack(archive, workspace)
        inside = locate(workspace, entry.layouts)
        names = ", ".join(archive.name for archive in packed)
        if inside is None:
            looked_for = "; ".join(layout.what for layout in entry.layouts)
            raise FirststepError(f"no {entry.name} found inside {names}; looked for: {looked_for}")
        source = inside.layout.read(inside.root)
        source = replace(source, layout=f"{names}: {source.layout}")
    else:
        source = found.layout.read(found.root)
    if options.rotations:
        source = with_rotations(source)
    return with_seeded_split(source, options.seed)
