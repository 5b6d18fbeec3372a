"""The members of zip and tar archives, one after the other, as an attacker may have made them."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from firststep.data.regular_files import require_regular
from firststep.errors import FirststepError

IN_MEMORY = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
"""Kinds of tar headers (long names, attributes) that tarfile reads as a whole."""
LONGEST_HEADER = 1 << 20
"""Bytes of such a header."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


@dataclass(frozen=True)
class Member:
    """One file of an archive."""

    name: str
    size: int
    """bytes, as the archive declares them"""
    open: Callable[[], IO[bytes]]


@contextmanager
def broken_if_raises(archive: Path) -> Iterator[None]:
    """Around calls that read the archive: zipfile, tarfile and the decompressors raise a dozen kinds."""
    try:
        yield
    except FirststepError:
        raise
    except OSError as error:
        if error.errno is None:  # gzip and bz2 say "not a gzipped file" this way
            raise _broken(archive, error) from None
        raise FirststepError(f"cannot read {archive} ({error.strerror})") from None
    except Exception as error:  # BadZipFile, NotImplementedError, zlib.error, struct.error, UnicodeError ...
        raise _broken(archive, error) from None


def _broken(archive: Path, error: Exception) -> FirststepError:
    # tarfile lists every compression it tried, a line each.
    reason = str(error).splitlines()[0].rstrip(":") if str(error) else type(error).__name__
    return FirststepError(f"{archive} is broken or incomplete ({reason}); get it again")


def zip_members(archive: Path) -> Iterator[Member]:
    require_regular(archive)
    with broken_if_raises(archive), zipfile.ZipFile(archive) as content:
        for member in content.infolist():
            if member.is_dir():
                continue
            if member.flag_bits & 1:
                raise FirststepError(
                    f"{archive} is refused: its member {member.filename!r} is encrypted; unpack it yourself"
                )
            if member.compress_type not in METHODS:
                raise FirststepError(
                    f"{archive} is refused: its member {member.filename!r} is compressed in a way that "
                    f"Python cannot read (method {member.compress_type}); unpack it yourself"
                )
            yield Member(member.filename, member.file_size, partial(content.open, member))


def tar_members(archive: Path) -> Iterator[Member]:
    require_regular(archive)
    block = b""

    class Header(tarfile.TarInfo):
        """Sees every header: tarfile takes a damaged one, and a file that just stops, for the end."""

        @classmethod
        def frombuf(cls, buf: Any, encoding: str, errors: str) -> Any:
            nonlocal block
            block = bytes(buf)
            header = super().frombuf(buf, encoding, errors)
            if header.size < 0 or (header.type in IN_MEMORY and header.size > LONGEST_HEADER):
                raise FirststepError(f"{archive} is refused: it has a header of {header.size} bytes")
            return header

    with broken_if_raises(archive), tarfile.open(archive, tarinfo=Header) as content:
        before = -1
        for member in content:
            if member.size < 0 or content.offset <= before:
                raise FirststepError(f"{archive} is refused: its member {member.name!r} leads backwards")
            before = content.offset
            if member.isdir():
                continue
            if not member.isreg():
                raise FirststepError(f"{archive} is refused: its member {member.name!r} is a link or device")
            yield Member(member.name, member.size, partial(_opened, content, member))
            content.members = []  # type: ignore[attr-defined]  # else it remembers all of them
        if block != bytes(tarfile.BLOCKSIZE):
            raise EOFError("it ends in the middle, or a header is damaged")
        rest = content.fileobj
        while rest is not None and rest.read(1 << 20):
            pass  # the decompressor compares its checksum at the end of the file


def _opened(content: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    packed = content.extractfile(member)
    assert packed is not None  # it is regular
    return packed
