"""Unpacking untrusted archives: nothing is written outside the target folder."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from firststep.errors import FirststepError

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def is_archive(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(ENDINGS)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack into a folder that the caller deletes if this fails."""
    try:
        if archive.name.lower().endswith(".zip"):
            _unpack_zip(archive, folder)
        else:
            _unpack_tar(archive, folder)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise FirststepError(f"{archive} is broken or incomplete ({_short(error)}); get it again") from None
    except OSError as error:
        if error.errno is None:  # gzip and bz2 say "not a gzipped file" this way
            raise FirststepError(f"{archive} is broken or incomplete ({error}); get it again") from None
        raise


def _short(error: Exception) -> str:
    """tarfile lists every compression it tried, a line each."""
    return str(error).splitlines()[0].rstrip(":") if str(error) else type(error).__name__


def _target(archive: Path, folder: Path, name: str) -> Path:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0:1]:
        raise FirststepError(f"{archive} is refused: its member {name!r} would be written outside the folder")
    return folder.joinpath(*parts.parts)


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as content:
        members = [m for m in content.infolist() if not m.is_dir()]
        targets = [_target(archive, folder, member.filename) for member in members]
        for member, target in zip(members, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            with content.open(member) as packed, open(target, "wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)


def _unpack_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as content:
        for member in content:
            target = _target(archive, folder, member.name)
            if member.isdir():
                continue
            if not member.isreg():
                raise FirststepError(f"{archive} is refused: its member {member.name!r} is a link or device")
            target.parent.mkdir(parents=True, exist_ok=True)
            packed = content.extractfile(member)
            assert packed is not None
            with packed, open(target, "wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
