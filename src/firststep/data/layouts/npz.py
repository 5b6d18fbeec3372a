"""Map arrays of an uncompressed npz, as ``numpy.savez`` writes it, without reading them into memory."""

from __future__ import annotations

import math
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from firststep.data.regular_files import require_regular
from firststep.errors import FirststepError


def array_in_npz(path: Path, name: str) -> np.ndarray:
    """Return a memory map of one array, after one pass over the file to compare the checksum."""
    require_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if member.filename == f"{name}.npy"]
            if len(members) != 1:
                raise FirststepError(f"{path} has {len(members)} arrays called {name!r}, not one")
            if members[0].flag_bits & 1:
                raise FirststepError(f"{path}: {name!r} is encrypted")
            if members[0].compress_type != zipfile.ZIP_STORED:
                raise FirststepError(
                    f"{path} is compressed; save it again with numpy.savez, which does not compress"
                )
            with archive.open(members[0]) as file:
                shape, fortran, dtype = _header(file)
                header_length = file.tell()
                while file.read(1 << 20):
                    pass  # zipfile compares the checksum at the end of the member
        if dtype.hasobject:
            raise FirststepError(f"{path}: {name} holds objects, not images")
        size = header_length + math.prod(shape) * dtype.itemsize
        if size != members[0].file_size or min(shape, default=0) < 0:
            raise FirststepError(f"{path}: {name} has not the size that its shape {shape} needs")
        with open(path, "rb") as file:
            # The extra field of the local header may differ from that of the directory.
            file.seek(members[0].header_offset + 26)
            lengths = np.frombuffer(file.read(4), "<u2")
        offset = members[0].header_offset + 30 + int(lengths.sum()) + header_length
        if not math.prod(shape):
            return np.empty(shape, dtype)  # an empty array cannot be mapped
        return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")
    except FirststepError:
        raise
    except OSError as error:
        raise FirststepError(f"{path} cannot be read ({error.strerror or error})") from None
    except Exception as error:  # zipfile and numpy raise whatever their parsers run into
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FirststepError(f"{path} is not a complete npz with {name!r} ({reason})") from None


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read: Any = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of files that Python 2 wrote
        shape, fortran, dtype = read(file)
    return shape, fortran, dtype
