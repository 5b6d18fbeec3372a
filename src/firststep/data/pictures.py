"""Read image files of unknown origin: return what a viewer would show, or raise one line with the name.

Pillow reads some forty formats. Only those of photographs and drawings are tried here, because the others are
rarely tested, and one of them (EPS) runs a program.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError, _imaging

from firststep.data.regular_files import open_regular
from firststep.errors import FirststepError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "DIB", "PPM", "JPEG2000", "AVIF")

LARGEST_PICTURE = 89_478_485
"""Largest number of pixels: Pillow's own limit, a gigabyte of memory in four threads."""


def read_picture(
    file: Path | str | BinaryIO, name: str, mode: str, largest: int = LARGEST_PICTURE
) -> Image.Image:
    """Return the picture, upright.

    Args:
        file: a path or a binary stream.
        name: name of the picture in messages.
        mode: "L" or "RGB".
        largest: largest number of pixels; more are refused before they are decoded.
    """
    if isinstance(file, Path | str):
        with open_regular(file, name) as stream:
            return read_picture(stream, name, mode, largest)
    largest = min(largest, LARGEST_PICTURE)
    with _pillow(name), Image.open(file, formats=_formats()) as opened:
        _check_size(opened, name, largest)
        if opened.format == "TIFF":
            _silence_libtiff()
        opened.load()
        _check_size(opened, name, largest)  # some formats tell the true size only now
        upright = ImageOps.exif_transpose(opened)
    try:
        flat = eight_bit(upright)
    except FirststepError as error:
        raise FirststepError(f"{name} {error}") from None
    with _pillow(name):
        return plain(flat, mode)


@contextlib.contextmanager
def _pillow(name: str) -> Iterator[None]:
    """Translate the exceptions of Pillow, whose parsers raise anything on damaged files."""
    with quiet():
        try:
            yield
        except FirststepError:
            raise
        except UnidentifiedImageError:
            raise FirststepError(f"{name} is not an image ({', '.join(_formats())} are read)") from None
        except Image.DecompressionBombError:
            raise _too_large(name, LARGEST_PICTURE) from None
        except Exception as error:  # KeyError, struct.error, MemoryError, zlib.error: all have been seen
            lines = str(error).splitlines() or [type(error).__name__]
            raise FirststepError(f"{name} is a broken image ({lines[0]})") from None


def _check_size(image: Image.Image, name: str, largest: int) -> None:
    if min(image.size) < 1:
        raise FirststepError(f"{name} is a broken image (it has {image.width} x {image.height} pixels)")
    if image.width * image.height > largest:
        raise _too_large(name, largest, f"{image.width} x {image.height} pixels, ")


def _too_large(name: str, largest: int, size: str = "") -> FirststepError:
    limit = f"{largest // 10**6} million" if largest >= 10**6 else f"{largest}"
    return FirststepError(f"{name} is too large ({size}more than {limit} pixels); make it smaller")


def eight_bit(image: Image.Image) -> Image.Image:
    """Scale 16-bit grey to 8 bits. Pillow's own conversion would clip."""
    if image.mode in ("F", "LAB"):
        kind = "floating-point numbers" if image.mode == "F" else "LAB colours"
        raise FirststepError(f"holds {kind}, which have no one look on a screen; save it as RGB or grey")
    if not image.mode.startswith("I"):
        return image
    deep = np.asarray(image).astype(np.int64)
    if deep.min() < 0 or deep.max() > 65535:
        found = f"grey values from {deep.min()} to {deep.max()}"
        raise FirststepError(f"holds {found}, not in 0..65535; save it with 8 or 16 bits")
    return Image.fromarray((deep // 257).astype(np.uint8))


def plain(image: Image.Image, mode: str) -> Image.Image:
    """Convert any 8-bit mode of Pillow to "L" or "RGB" as a viewer would show it."""
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        see_through = image.convert("RGBA")
        paper = Image.new("RGBA", see_through.size, "white")
        image = Image.alpha_composite(paper, see_through)
    # Palette and CMYK images hold colours; grey is their luma.
    if image.mode not in ("L", "1", "RGB"):
        image = image.convert("RGB")
    return image.convert(mode)


@cache
def _formats() -> tuple[str, ...]:
    """Return the formats that this Pillow was built with."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


@cache
def _silence_libtiff() -> None:
    """Keep libtiff from printing to the terminal; Pillow raises an error anyway.

    Its symbols are found through Pillow's own module. If they are not, it keeps printing.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(_imaging.__file__)
        library.TIFFSetErrorHandler(None)
        library.TIFFSetWarningHandler(None)


# Without a handler Python prints what Pillow logs. Programs that set up logging still get it.
logging.getLogger("PIL").addHandler(logging.NullHandler())

_lock = threading.Lock()
_within = 0
_filters = warnings.catch_warnings()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings of Pillow; those that matter are errors here.

    Filters belong to the whole process, so the first thread sets them and the last one restores them.
    """
    global _within, _filters
    with _lock:
        if _within == 0:
            _filters = warnings.catch_warnings()
            _filters.__enter__()
            warnings.filterwarnings("ignore", module=r"PIL\b")
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if _within == 0:
                _filters.__exit__(None, None, None)
