"""Archives with hostile members: climbing out, clashing, oddly named, nested, huge, encrypted."""

from __future__ import annotations

import io
import struct
import tarfile
import warnings
import zipfile
from random import Random

from campaigns.fuzz.case import Expected
from campaigns.fuzz.damage import ODD_NAMES
from campaigns.fuzz.mutate import damaged
from campaigns.fuzz.pictures import png

Members = list[tuple[str, bytes]]
KINDS = ("zip", "zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tgz")
OUTSIDE = (
    *("../escaped.png", "own/../../escaped.png", "..\\escaped.png", "own/train/../../../x.png"),
    *("/tmp/firststep-escaped.png", "//tmp/firststep-escaped.png"),
)
CLASHES = (
    *(["own/train/a"], ["own/train/a/0.png/x.png"], ["own/train/a/0.png"], ["own/train/A/0.png"]),
    ["own/train/é/0.png", "own/train/e\u0301/0.png"],
)
"""Names that are both file and folder, occur twice, or differ in case or accents alone."""
NAMES = (
    "own/train/" + "d/" * 300 + "0.png",
    "own/train/a/\x01\n.png",
    ".",
    "",
    "own/train/\ud800/0.png",
    "C:x",
)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def archive(rng: Random) -> tuple[str, bytes, str, Expected]:
    """Return the kind and content of an archive, what is wrong with it, and whether it must be read."""
    splits = (("train", "ab"), ("val", "cd"), ("test", "ef"))
    names = [f"own/{split}/{name}/{i}.png" for split, classes in splits for name in classes for i in range(2)]
    members = [(name, png(rng)) for name in names]
    way = rng.choice(WAYS)
    kind = "zip" if way == "fields" else rng.choice(KINDS)
    expected: Expected = "any"
    if way in HOSTILE:
        members += [(name, content or png(rng)) for name, content in HOSTILE[way](rng)]
        expected = "bad" if way == "outside" else "any"
        rng.shuffle(members)
    elif way == "nothing":
        members = rng.choice(([], [("readme.txt", b"hello")], [(name, b"") for name in names]))
    content = _zip(rng, members) if kind == "zip" else _tar(rng, members, kind)
    if way == "bytes":
        cut = rng.random() < 0.3
        content = content[: rng.randrange(len(content))] if cut else damaged(rng, content)
    elif way == "fields":
        field = rng.choice(tuple(FIELDS))
        content, expected = _patched(rng, content, field), "bad" if field == "encrypted" else "any"
    elif way == "whole":
        expected = "good" if kind == "zip" else "any"  # a tar may contain a link; then it is refused
    return kind, content, way, expected


HOSTILE = {
    "outside": lambda rng: [(rng.choice(OUTSIDE), b"escaped")],
    "clash": lambda rng: [(name, b"") for name in rng.choice(CLASHES)],
    "name": lambda rng: [(rng.choice((*NAMES, *(_text(name) for name in ODD_NAMES))), b"")],
    "many": lambda rng: [(f"own/train/c{i % 50}/{i}.png", b"0") for i in range(1500)],
    "nested": lambda rng: [("inner.zip", _zip(rng, [("own/train/a/0.png", png(rng))]))],
    "bomb": lambda rng: [("own/train/a/big.png", b"\0" * (64 << 20))],
}
"""Members beside the right ones; an empty content becomes a picture."""


WAYS = (
    *("whole", "nothing", "bytes", "bytes", "fields", "fields", "outside", "outside", "clash", "clash"),
    *("name", "name", "many", "nested", "bomb"),
)


def _text(name: bytes) -> str:
    return "own/train/" + name.decode("utf-8", "surrogateescape")


def _zip(rng: Random, members: Members) -> bytes:
    file, method = io.BytesIO(), rng.choice(METHODS)
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as packed:
        warnings.simplefilter("ignore")  # names that occur twice are intended
        for name, content in members:
            packed.writestr(zipfile.ZipInfo(name.encode("utf-8", "replace").decode()), content, method)
    return file.getvalue()


def _tar(rng: Random, members: Members, kind: str) -> bytes:
    mode = "w:" + {"tgz": "gz"}.get(kind, kind.partition(".")[2])
    form = rng.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    if any(not name.isascii() for name, _ in members):
        form = tarfile.GNU_FORMAT  # PAX cannot write half a character
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode, format=form, errors="surrogatepass") as packed:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
        if rng.random() < 0.15:
            link = tarfile.TarInfo("own/train/a/link.png")
            link.type = rng.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE))
            link.linkname = rng.choice(("/etc/passwd", "../../../../x", "0.png"))
            packed.addfile(link)
    return file.getvalue()


FIELDS = {"encrypted": (6, 8), "method": (8, 10), "size": (18, 20)}
"""Field: its place in the header of a member and in the directory of a zip."""


def _patched(rng: Random, content: bytes, field: str) -> bytes:
    """Change a field of all members."""
    data = bytearray(content)
    method = struct.pack("<H", rng.choice((1, 5, 9, 14, 20, 93, 95, 97, 98, 99, 65535)))
    for signature, place in zip((b"PK\x03\x04", b"PK\x01\x02"), FIELDS[field], strict=True):
        at = data.find(signature)
        while at >= 0:
            if field == "encrypted":
                data[at + place] |= 1
            elif field == "method":
                data[at + place : at + place + 2] = method
            elif rng.random() < 0.3:
                data[at + place : at + place + 8] = rng.choice((rng.randbytes(8), b"\xff" * 8, b"\0" * 8))
            at = data.find(signature, at + 4)
    return bytes(data)
