"""Unpack untrusted archives: inside the target folder, each file once, within bounds of size and number.

The data filter of ``tarfile`` is not enough here: it unpacks "/etc/x" as "etc/x" and keeps links, and
``zipfile`` has no filter. One stricter rule serves both: relative paths, regular files, nothing else.
"""

from __future__ import annotations

import errno
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from firststep.data.disk_space import free_space, readable
from firststep.data.regular_files import is_regular, require_regular
from firststep.errors import FirststepError

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")

MOST_MEMBERS = 4_000_000
"""ImageNet has 1.3 million images."""
MOST_GROWTH = 100
"""Largest ratio of unpacked to packed size; images hardly shrink at all."""
SMALL = 64 << 20
"""Bytes up to which an archive may grow by any factor."""
CHUNK = 1 << 20
LONGEST_HEADER = 1 << 20
"""Largest size in bytes of a tar header that tarfile reads into memory as a whole."""
IN_MEMORY = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
"""Types of these headers: attributes and long names."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


class _Member(NamedTuple):
    """One file of an archive."""

    name: str
    size: int
    """size in bytes that the archive declares; zipfile and tarfile give no more than that"""
    open: Callable[[], Any]


def is_archive(path: Path) -> bool:
    return is_regular(path) and path.name.lower().endswith(ENDINGS)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack into a folder that the caller deletes if this fails."""
    require_regular(archive)
    is_zip = archive.name.lower().endswith(".zip")
    if is_zip:  # The directory of a zip tells all sizes before anything is written.
        _require_room(archive, folder, sum(member.size for member in _zip_members(archive)), 0)
    written = 0
    for number, member in enumerate(_zip_members(archive) if is_zip else _tar_members(archive)):
        if number >= MOST_MEMBERS:
            raise FirststepError(f"{archive} is refused: it has more than {MOST_MEMBERS} members")
        target = _target(archive, folder, member.name)
        _require_room(archive, folder, written + member.size, written)
        _write(archive, member, target)
        written += member.size


def _require_room(archive: Path, folder: Path, total: int, written: int) -> None:
    allowed = max(SMALL, MOST_GROWTH * archive.stat().st_size)
    if total > allowed:
        raise FirststepError(
            f"{archive} is refused: it holds more than {readable(allowed)}, which is far too much for its "
            "size; if that is what you expect, unpack it yourself"
        )
    free = free_space(folder)
    if total - written > free:
        raise FirststepError(
            f"unpacking {archive} needs {readable(total - written)}, and the disk of the cache has "
            f"{readable(free)} free; free some, or choose another folder with `cache`"
        )


def _target(archive: Path, folder: Path, name: str) -> Path:
    parts = PurePosixPath(name.replace("\\", "/"))
    drive = PureWindowsPath(name).drive  # "C:" at the start, where Windows would go to that drive
    if parts.is_absolute() or ".." in parts.parts or drive or "\0" in name:
        raise FirststepError(f"{archive} is refused: its member {name!r} would be written outside the folder")
    if not parts.parts:
        raise FirststepError(f"{archive} is refused: it has a member without a name")
    return folder.joinpath(*parts.parts)


def _write(archive: Path, member: _Member, target: Path) -> None:
    """Write a new file: of two members with one name, one would be lost."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = open(target, "xb")  # noqa: SIM115 closed below
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        if isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError):
            reason = "is there twice, or as a file and as a folder"
        else:
            reason = f"cannot be written ({error.strerror})"
        shown = member.name if len(member.name) <= 100 else member.name[:100] + "..."
        raise FirststepError(f"{archive} is refused: its member {shown!r} {reason}") from None
    with file, _broken_if_raises(archive), member.open() as packed:
        while chunk := packed.read(CHUNK):
            file.write(chunk)


@contextmanager
def _broken_if_raises(archive: Path) -> Iterator[None]:
    """Translate the dozen kinds of exceptions that zipfile, tarfile and the decompressors raise."""
    try:
        yield
    except FirststepError:
        raise
    except Exception as error:  # BadZipFile, NotImplementedError, zlib.error, struct.error, UnicodeError ...
        number = getattr(error, "errno", None)  # None also for what gzip and bz2 raise on damaged files
        if number in (errno.ENOSPC, errno.EDQUOT):
            raise
        if isinstance(error, OSError) and number is not None:
            raise FirststepError(f"cannot unpack {archive} ({error.strerror})") from None
        # tarfile lists every compression that it tried, one per line.
        reason = str(error).splitlines()[0].rstrip(":") if str(error) else type(error).__name__
        raise FirststepError(f"{archive} is broken or incomplete ({reason}); get it again") from None


def _zip_members(archive: Path) -> Iterator[_Member]:
    with _broken_if_raises(archive), zipfile.ZipFile(archive) as content:
        for member in content.infolist():
            if member.is_dir():
                continue
            if member.flag_bits & 1 or member.compress_type not in METHODS:
                how = "encrypted" if member.flag_bits & 1 else f"compressed by method {member.compress_type}"
                raise FirststepError(
                    f"{archive} is refused: its member {member.filename!r} is {how}, which Python cannot "
                    "read; unpack it yourself"
                )
            yield _Member(member.filename, member.file_size, partial(content.open, member))


def _tar_members(archive: Path) -> Iterator[_Member]:
    block = b""

    class Header(tarfile.TarInfo):
        """Keep the last block: tarfile takes a damaged header, and a file that just stops, for the end."""

        @classmethod
        def frombuf(cls, buf: Any, encoding: str, errors: str) -> Any:
            nonlocal block
            block = bytes(buf)
            header = super().frombuf(buf, encoding, errors)
            if header.size < 0 or (header.type in IN_MEMORY and header.size > LONGEST_HEADER):
                raise FirststepError(f"{archive} is refused: it has a header of {header.size} bytes")
            return header

    with _broken_if_raises(archive), tarfile.open(archive, tarinfo=Header) as content:
        before = -1
        for member in content:
            if member.size < 0 or content.offset <= before:
                raise FirststepError(f"{archive} is refused: its member {member.name!r} leads backwards")
            before = content.offset
            if member.isdir():
                continue
            if not member.isreg():
                raise FirststepError(f"{archive} is refused: its member {member.name!r} is a link or device")
            yield _Member(member.name, member.size, partial(content.extractfile, member))
            content.members = []  # type: ignore[attr-defined]  # tarfile would remember all of them
        if block != bytes(tarfile.BLOCKSIZE):
            raise EOFError("it ends in the middle, or a header is damaged")
        rest: Any = content.fileobj
        while rest is not None and rest.read(CHUNK):
            pass  # The decompressor compares its checksum at the end of the file.
