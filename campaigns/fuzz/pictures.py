"""The content of picture files: every format that Pillow writes, heads of those it only reads, bombs."""

from __future__ import annotations

import io
import struct
import zlib
from random import Random

from PIL import Image

from campaigns.fuzz.case import Expected
from campaigns.fuzz.mutate import damaged
from firststep.data.pictures import FORMATS

ALWAYS_READ = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM")
"""Whole files must be accepted; Pillow may lack a variant of the others, and TIFF holds LAB and floats."""
MODES = ("RGB", "L", "1", "P", "RGBA", "LA", "CMYK", "YCbCr", "I", "I;16", "F", "LAB", "HSV")
SIZES = ((16, 16), (1, 1), (7, 33), (40, 5), (64, 64))
HEADS = (
    *(b"BUFR", b"GRIB\0\0\0\1", b"\x89HDF\r\n\x1a\n", b"\0\0\1\xb3", b"\xd7\xcd\xc6\x9a\0\0", b"%!PS-A"),
    *(b"8BPS\0\1\0\0\0\0\0\0\0\3", b"SIMPLE  =", b"/* XPM */\n", b"\x59\xa6\x6a\x95", b"P7 332\n#XVV"),
)  # fmt: skip
"""First bytes of formats that Pillow cannot write."""


def picture(rng: Random) -> tuple[bytes, str, Expected]:
    """Return the content of a file, what it is, and whether it must be read."""
    chance = rng.random()
    if chance < 0.04:
        return _bomb(rng), "PNG that claims to be huge", "any"
    Image.init()
    kind = rng.choice(sorted(set(Image.OPEN) & set(Image.SAVE)))
    content = written(rng, kind)
    if chance < 0.08 or not content:
        return rng.choice((b"", *HEADS)) + rng.randbytes(rng.randrange(200)), "head and random bytes", "bad"
    if rng.random() < 0.75:
        return damaged(rng, content), f"damaged {kind}", "any"
    refused = kind not in (*FORMATS, "MPO")  # which Pillow opens as a JPEG
    return content, f"whole {kind}", "good" if kind in ALWAYS_READ else "bad" if refused else "any"


def written(rng: Random, kind: str) -> bytes:
    """Return a picture in a random mode that the format has, or nothing if Pillow only has a stub of it."""
    for mode in (rng.choice(MODES), "RGB", "L", "1", "F"):
        size, file = rng.choice(SIZES), io.BytesIO()
        pixels = rng.randbytes(3 * size[0] * size[1])
        try:
            image = Image.frombytes("I;16" if mode == "I;16" else "RGB", size, pixels)
            image = image if mode == "I;16" else image.convert(mode)
            frames = kind in ("GIF", "TIFF", "WEBP", "PNG", "MPO") and rng.random() < 0.2
            image.save(file, kind, **({"save_all": True, "append_images": [image.copy()]} if frames else {}))
            return file.getvalue()
        except (OSError, ValueError, KeyError, struct.error):
            continue  # not a mode of this format
    return b""


def png(rng: Random, side: int = 8) -> bytes:
    """Return a small noisy PNG."""
    file = io.BytesIO()
    Image.frombytes("RGB", (side, side), rng.randbytes(3 * side * side)).save(file, "PNG")
    return file.getvalue()


def _bomb(rng: Random) -> bytes:
    """Return a few bytes that unpack to many: as wide and high as the header says, or more data than that."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    width, height = rng.choice(((30_000, 30_000), (10_000, 10_000), (2**31 - 1, 1), (1, 2**31 - 1), (0, 5)))
    data = zlib.compress(b"\0" * rng.choice((10, 1 << 20, 1 << 24)))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, rng.choice((0, 2, 6)), 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", data) + chunk(b"IEND", b"")
