"""Unpacking untrusted archives: inside the target folder, each file once, no more than there is room for."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from firststep.data.archive_members import Member, broken_if_raises, tar_members, zip_members
from firststep.data.disk_space import free_space, readable
from firststep.data.regular_files import is_regular
from firststep.errors import FirststepError

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")

MOST_MEMBERS = 4_000_000
"""ImageNet has 1.3 million images."""
MOST_GROWTH = 100
"""Times its own size that an archive may unpack to; images hardly shrink at all."""
SMALL = 64 << 20
"""Bytes up to which an archive may grow by any factor."""
CHUNK = 1 << 20


def is_archive(path: Path) -> bool:
    return is_regular(path) and path.name.lower().endswith(ENDINGS)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack into a folder that the caller deletes if this fails."""
    room = _Room(archive, folder, max(SMALL, MOST_GROWTH * archive.stat().st_size))
    if archive.name.lower().endswith(".zip"):
        members = zip_members(archive)
        # The directory of a zip says at once what there is: nothing is written of one that is too large.
        room.require(sum(member.size for member in zip_members(archive)))
    else:
        members = tar_members(archive)
    for number, member in enumerate(members):
        if number >= MOST_MEMBERS:
            raise FirststepError(f"{archive} is refused: it has more than {MOST_MEMBERS} members")
        target = _target(archive, folder, member.name)
        room.take(member.size)
        _write(archive, member, target)


@dataclass
class _Room:
    """How much an archive may still write."""

    archive: Path
    folder: Path
    allowed: int
    written: int = 0

    def require(self, total: int) -> None:
        """``total`` bytes of the archive in all; the error says why that is too much."""
        if total > self.allowed:
            raise FirststepError(
                f"{self.archive} is refused: it holds more than {readable(self.allowed)}, which is far too "
                "much for its size; if that is what you expect, unpack it yourself"
            )
        free = free_space(self.folder)
        if total - self.written > free:
            raise FirststepError(
                f"unpacking {self.archive} needs {readable(total - self.written)}, and the disk of the cache "
                f"has {readable(free)} free; free some, or choose another folder with `cache`"
            )

    def take(self, size: int) -> None:
        self.require(self.written + size)
        self.written += size


def _target(archive: Path, folder: Path, name: str) -> Path:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0:1] or "\0" in name:
        raise FirststepError(f"{archive} is refused: its member {name!r} would be written outside the folder")
    if not parts.parts:
        raise FirststepError(f"{archive} is refused: it has a member without a name")
    return folder.joinpath(*parts.parts)


def _write(archive: Path, member: Member, target: Path) -> None:
    """As a new file: two members of one name, or a file where a folder is, would lose one of them."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as file:
            _copy(archive, member, file)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        if isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError):
            reason = "is there twice, or as a file and as a folder"
        else:
            reason = f"cannot be written ({error.strerror})"
        shown = member.name if len(member.name) <= 100 else member.name[:100] + "..."
        raise FirststepError(f"{archive} is refused: its member {shown!r} {reason}") from None


def _copy(archive: Path, member: Member, file: BinaryIO) -> None:
    left = member.size
    with broken_if_raises(archive):
        packed = member.open()
    with packed:
        while True:
            with broken_if_raises(archive):
                chunk = packed.read(CHUNK)
            if not chunk:
                return
            left -= len(chunk)
            if left < 0:
                raise FirststepError(f"{archive} is refused: {member.name!r} is longer than it says")
            file.write(chunk)
