"""Images of every format that Pillow reads, whole and damaged, as a query, in a support set, in a dataset."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from random import Random

from campaigns.fuzz.case import Case, Expected, Sandbox
from campaigns.fuzz.image_files import SKIPPED, formats, image_file
from campaigns.fuzz.mutate import damaged
from campaigns.stock import draw

WHOLE = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""Formats whose whole files must be accepted; of the rest Pillow itself may lack a decoder for a variant."""


def case(rng: Random, sandbox: Sandbox) -> Case:
    content, words, expected = _content(rng)
    ending = rng.choice(("png", "jpg", "tif", "gif", "bmp", "webp", "ppm"))
    where = rng.choice(("load", "load", "load", "query", "support", "dataset"))
    if where == "load":
        path = sandbox.work / f"image.{ending}"
        path.write_bytes(content)
        size, channels = rng.choice((16, 4, 84)), rng.choice((1, 3))
        ink = channels == 1 and rng.random() < 0.5
        return Case(
            what=f"load_image: {words}", expected=expected, call=lambda: _load(path, size, channels, ink)
        )
    if where == "dataset":
        folder = _dataset(rng, sandbox.work / "own")
        (folder / "train" / "train-b" / f"odd.{ending}").write_bytes(content)
        flags = ["--size", "16", "--cache", "cache", "--sheet", "sheet.png"]
        flags += ["--skip-broken"] if (skip := rng.random() < 0.5) else []
        arguments = ["data", "folder", "own", *flags]
        expected = "good" if skip else expected
        return Case(
            what=f"data folder: {words}",
            arguments=arguments,
            expected=expected,
            writes=("cache", "sheet.png"),
        )
    (sandbox.work / f"query.{ending}").write_bytes(content)
    support = sandbox.stock.support
    query = str(sandbox.work / f"query.{ending}")
    if where == "support":
        support, query = sandbox.work / "support", str(sandbox.stock.folder / "query.png")
        for number in range(5):
            draw(support / f"class{number}" / "0.png", rng)
        (support / "class3" / f"odd.{ending}").write_bytes(content)
    flags = ["--steps", "1", "--format", rng.choice(("table", "csv", "json"))]
    arguments = ["adapt", str(sandbox.stock.run), "--support", str(support), "--query", query, *flags]
    return Case(what=f"adapt {where}: {words}", arguments=arguments, expected=expected, writes=("adapted",))


def _content(rng: Random) -> tuple[bytes, str, Expected]:
    if rng.random() < 0.04:
        return _bomb(rng), "PNG that claims to be huge", "any"
    if rng.random() < 0.03:
        return rng.randbytes(rng.randrange(200)), "random bytes", "bad"
    kind = rng.choice(formats())
    content = image_file(kind, rng)
    if not content:
        return b"", "empty file", "bad"
    if rng.random() < 0.2:
        if kind in WHOLE and kind != "TIFF":  # which takes LAB and floats: those are refused by name
            return content, f"whole {kind}", "good"
        return content, f"whole {kind}", "bad" if kind in SKIPPED and kind != "EPS" else "any"
    return damaged(rng, content), f"damaged {kind}", "any"


def _bomb(rng: Random) -> bytes:
    """A few bytes that unpack to many: as wide and high as the header says, or more data than that."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    width, height = rng.choice(((30_000, 30_000), (10_000, 10_000), (2**31 - 1, 1), (1, 2**31 - 1), (0, 5)))
    data = zlib.compress(b"\0" * rng.choice((10, 1 << 20, 1 << 24)))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, rng.choice((0, 2, 6)), 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _load(path: Path, size: int, channels: int, ink: bool) -> object:
    from firststep.data import load_image

    pixels = load_image(path, size, channels, ink=ink)
    assert pixels.shape == (size, size, channels), pixels.shape
    assert pixels.dtype == "uint8", pixels.dtype
    return pixels


def _dataset(rng: Random, folder: Path) -> Path:
    for split in ("train", "val", "test"):
        for name in (f"{split}-a", f"{split}-b"):
            for number in range(2):
                draw(folder / split / name / f"{number}.png", rng)
    return folder
