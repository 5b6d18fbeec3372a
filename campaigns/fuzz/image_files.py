"""A small image in every format that Pillow reads, written by Pillow, or by hand if Pillow only reads it."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from random import Random

from PIL import Image

SKIPPED = {
    "BUFR": "a stub: Pillow needs a handler that nobody has",
    "GRIB": "a stub: Pillow needs a handler that nobody has",
    "HDF5": "a stub: Pillow needs a handler that nobody has",
    "WMF": "drawn by Windows only",
    "EPS": "drawn by Ghostscript, an outside program",
    "MPEG": "Pillow reads its header only",
}
"""Formats of which only headers are tried, which must be refused."""


def _picture(rng: Random, mode: str) -> Image.Image:
    size = rng.choice(((16, 16), (1, 1), (7, 33), (40, 5), (64, 64)))
    picture = Image.frombytes("RGB", size, rng.randbytes(3 * size[0] * size[1]))
    if mode == "I;16":
        return Image.frombytes(mode, size, rng.randbytes(2 * size[0] * size[1]))
    return picture.convert(mode)


MODES = ("RGB", "L", "1", "P", "RGBA", "LA", "CMYK", "YCbCr", "I", "I;16", "F", "LAB", "HSV")


def by_pillow(kind: str, rng: Random) -> bytes:
    """Return an image in a random mode that the format supports."""
    for mode in (rng.choice(MODES), "RGB", "L", "1", "F"):
        file = io.BytesIO()
        try:
            picture = _picture(rng, mode)
            more = [picture.copy() for _ in range(rng.randrange(3))]
            several = kind in ("GIF", "TIFF", "WEBP", "PNG", "MPO") and more and rng.random() < 0.3
            picture.save(file, kind, **({"save_all": True, "append_images": more} if several else {}))
            return file.getvalue()
        except (OSError, ValueError, KeyError, struct.error):
            continue  # not a mode of this format
    return b""


def _xpm(rng: Random) -> bytes:
    rows = ",\n".join('"' + "".join(rng.choice("ab") for _ in range(8)) + '"' for _ in range(8))
    return (
        f'/* XPM */\nstatic char *x[] = {{\n"8 8 2 1",\n"a c #ff0000",\n"b c #0000ff",\n{rows}\n}};'.encode()
    )


def _sun(rng: Random) -> bytes:
    return struct.pack(">8I", 0x59A66A95, 8, 8, 24, 192, 1, 0, 0) + rng.randbytes(192)


def _psd(rng: Random) -> bytes:
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, 8, 8, 8, 3)
    return head + struct.pack(">III", 0, 0, 0) + struct.pack(">H", 0) + rng.randbytes(192)


def _dcx(rng: Random) -> bytes:
    return struct.pack("<III", 0x3ADE68B1, 12, 0) + by_pillow("PCX", rng)


def _cur(rng: Random) -> bytes:
    bitmap = by_pillow("DIB", rng)
    return (
        struct.pack("<HHH", 0, 2, 1) + struct.pack("<BBBBHHII", 16, 16, 0, 0, 0, 0, len(bitmap), 22) + bitmap
    )


def _gbr(rng: Random) -> bytes:
    name = b"brush\0"
    return struct.pack(">5I", 20 + len(name), 1, 8, 8, 1) + name + rng.randbytes(64)


def _ftex(rng: Random) -> bytes:
    head = struct.pack("<4s4s", b"FTEX", struct.pack("<I", 0x10000)) + struct.pack("<4i", 8, 8, 1, 1)
    return head + struct.pack("<2i", 1, 32) + struct.pack("<i", 192) + rng.randbytes(192)


def _fits(rng: Random) -> bytes:
    values = {"SIMPLE": "T", "BITPIX": 8, "NAXIS": 2, "NAXIS1": 8, "NAXIS2": 8}
    cards = [*(f"{name:<8}= {value:>20}" for name, value in values.items()), "END"]
    header = "".join(card.ljust(80) for card in cards).ljust(2880).encode()
    return header + rng.randbytes(64).ljust(2880, b"\0")


def _fli(rng: Random) -> bytes:
    head = struct.pack("<IHHHHHHI", 300, 0xAF11, 1, 8, 8, 8, 3, 5).ljust(128, b"\0")
    body = struct.pack("<IHH8x", 16 + 6 + 64, 0xF1FA, 1) + struct.pack("<IH", 6 + 64, 16) + rng.randbytes(64)
    return head + body


def _pixar(rng: Random) -> bytes:
    head = bytearray(1024)
    head[:4] = b"\200\350\000\000"
    head[416:420] = struct.pack("<HH", 8, 8)
    head[424:428] = struct.pack("<HH", 14, 2)
    return bytes(head) + rng.randbytes(192)


def _imt(rng: Random) -> bytes:
    return b"* image\nwidth 8\nheight 8\n\f" + rng.randbytes(64)


def _xv(rng: Random) -> bytes:
    return b"P7 332\n#XVVERSION:x\n#END_OF_COMMENTS\n8 8 255\n" + rng.randbytes(64)


def _mcidas(rng: Random) -> bytes:
    words = [0] * 65
    for place, value in {2: 4, 9: 8, 10: 8, 11: 1, 14: 1, 34: 256}.items():
        words[place] = value
    return struct.pack("!64i", *words[1:]) + rng.randbytes(64)


def _pcd(rng: Random) -> bytes:
    return (b"\0" * 2048 + b"PCD_").ljust(96 * 2048, b"\x10") + rng.randbytes(4096)


def _iptc(rng: Random) -> bytes:
    def entry(tag: tuple[int, int], data: bytes) -> bytes:
        return struct.pack(">BBBH", 0x1C, *tag, len(data)) + data

    head = entry((3, 20), struct.pack(">H", 8)) + entry((3, 30), struct.pack(">H", 8))
    head += entry((3, 60), b"\x01\x00") + entry((3, 120), b"\x01")
    return head + entry((8, 10), rng.randbytes(64))


BY_HAND: dict[str, Callable[[Random], bytes]] = {
    "XPM": _xpm,
    "SUN": _sun,
    "PSD": _psd,
    "DCX": _dcx,
    "CUR": _cur,
    "GBR": _gbr,
    "FTEX": _ftex,
    "FITS": _fits,
    "FLI": _fli,
    "PIXAR": _pixar,
    "IMT": _imt,
    "XVTHUMB": _xv,
    "MCIDAS": _mcidas,
    "PCD": _pcd,
    "IPTC": _iptc,
}


def formats() -> list[str]:
    """Return all formats that this Pillow can open."""
    Image.init()
    return sorted(set(Image.OPEN) | {"MPO"})


def image_file(kind: str, rng: Random) -> bytes:
    """Return the bytes of an image in this format, or for a stub those that a file starts with."""
    if kind in BY_HAND:
        return BY_HAND[kind](rng)
    magic = {"BUFR": b"BUFR", "GRIB": b"GRIB\0\0\0\1", "HDF5": b"\x89HDF\r\n\x1a\n", "MPEG": b"\0\0\1\xb3"}
    if kind == "WMF":
        return b"\xd7\xcd\xc6\x9a\x00\x00" + struct.pack("<4hH", 0, 0, 9, 9, 72) + rng.randbytes(64)
    if kind in magic:
        return magic[kind] + rng.randbytes(64)
    return by_pillow(kind, rng)
