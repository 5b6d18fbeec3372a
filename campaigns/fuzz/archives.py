"""Archives of datasets: damaged, hostile, encrypted, in unknown compressions, clashing, huge."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from random import Random

from campaigns.fuzz.case import Case, Expected, Sandbox
from campaigns.fuzz.mutate import damaged

Members = list[tuple[str, bytes]]


def case(rng: Random, sandbox: Sandbox) -> Case:
    members = _members(rng)
    hostile = rng.choice((None, None, *HOSTILE))
    words, expected = "whole", "good"
    if hostile is not None:
        members, words = hostile(rng, members), hostile.__name__.strip("_").replace("_", " ")
        expected = "bad" if hostile in (_climbs_out, _absolute) else "any"
    kind = rng.choice(("zip", "zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tgz"))
    content = _zip(rng, members) if kind == "zip" else _tar(rng, members, kind)
    if hostile is None:
        content, words, expected = _changed(rng, kind, content)
    name = f"own.{kind}"
    (sandbox.work / name).write_bytes(content)
    flags = ["--size", "16", "--cache", "cache", "--sheet", "sheet.png"]
    flags += rng.choice(([], [], ["--skip-broken"]))
    dataset = rng.choice(("folder", "folder", "folder", "omniglot", "cub", "mini-imagenet"))
    if dataset != "folder":
        flags, expected = [*flags, "--partial"], "any"
    return Case(
        what=f"data {dataset} {name}: {words}",
        arguments=["data", dataset, name, *flags],
        expected=expected,  # type: ignore[arg-type]
        writes=("cache", "sheet.png"),
    )


def _png(rng: Random) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.frombytes("RGB", (8, 8), rng.randbytes(192)).save(file, "PNG")
    return file.getvalue()


def _members(rng: Random) -> Members:
    return [
        (f"own/{split}/{name}/{number}.png", _png(rng))
        for split, names in (("train", "ab"), ("val", "cd"), ("test", "ef"))
        for name in names
        for number in range(2)
    ]


def _climbs_out(rng: Random, members: Members) -> Members:
    name = rng.choice(
        ("../escaped.png", "own/../../escaped.png", "..\\escaped.png", "own/train/../../../x.png")
    )
    return [*members, (name, b"escaped")]


def _absolute(rng: Random, members: Members) -> Members:
    return [*members, (rng.choice(("/tmp/firststep-escaped.png", "//tmp/firststep-escaped.png")), b"escaped")]


def _clash(rng: Random, members: Members) -> Members:
    """Add a name that is both file and folder, occurs twice, or differs in case or accents alone."""
    more = rng.choice(
        (
            [("own/train/a", b"a file where a folder is")],
            [("own/train/a/0.png/x.png", _png(rng))],
            [members[0]],
            [("own/train/A/0.png", _png(rng))],
            [("own/train/é/0.png", _png(rng)), ("own/train/e\u0301/0.png", _png(rng))],
        )
    )
    both = [*members, *more]
    rng.shuffle(both)
    return both


def _odd_names(rng: Random, members: Members) -> Members:
    name = rng.choice(
        (
            "own/train/" + "x" * 300 + "/0.png",
            "own/train/" + "d/" * 300 + "0.png",
            "own/train/a/\x01\n.png",
            ".",
            "",
        )
        + (
            "own/train/[red]a/0.png",
            "own/train/a/ .png",
            "own/train/\ud800/0.png",
            "own/train/C:/0.png",
            "C:x",
            "nul",
        )
    )
    return [*members, (name, _png(rng))]


def _many(rng: Random, members: Members) -> Members:
    return [*members, *((f"own/train/c{i % 50}/{i}.png", b"") for i in range(1500))]


def _nested(rng: Random, members: Members) -> Members:
    return [("inner.zip", _zip(rng, members))]


def _bomb(rng: Random, members: Members) -> Members:
    return [*members, ("own/train/a/big.png", b"\0" * (64 << 20))]


def _nothing(rng: Random, members: Members) -> Members:
    return rng.choice(([], [("readme.txt", b"hello")], [(name, b"") for name, _ in members]))


HOSTILE: tuple[Callable[[Random, Members], Members], ...] = (
    *(_climbs_out, _absolute, _clash, _clash, _odd_names, _odd_names, _many, _nested, _bomb, _nothing),
)


def _zip(rng: Random, members: Members) -> bytes:
    import warnings

    file = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # names that occur twice are intended
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name.encode("utf-8", "replace").decode()), content, method)
    return file.getvalue()


def _tar(rng: Random, members: Members, kind: str) -> bytes:
    mode = {"tar": "w", "tar.gz": "w:gz", "tgz": "w:gz", "tar.bz2": "w:bz2", "tar.xz": "w:xz"}[kind]
    file = io.BytesIO()
    form = rng.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    if any("\ud800" in name for name, _ in members):
        form = tarfile.GNU_FORMAT  # PAX cannot write it
    with tarfile.open(fileobj=file, mode=mode, format=form, errors="surrogatepass") as archive:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if rng.random() < 0.15:
            link = tarfile.TarInfo("own/train/a/link.png")
            link.type = rng.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE))
            link.linkname = rng.choice(("/etc/passwd", "../../../../x", "0.png"))
            archive.addfile(link)
    return file.getvalue()


def _changed(rng: Random, kind: str, content: bytes) -> tuple[bytes, str, Expected]:
    what = rng.choice(
        ("whole", "damaged", "damaged", "damaged", "encrypted", "method", "size", "cut", "wrong ending")
    )
    if what == "damaged":
        return damaged(rng, content), what, "any"
    if what == "cut":
        return content[: rng.randrange(len(content))], what, "any"
    if what == "wrong ending":
        return rng.choice((b"", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18, rng.randbytes(500))), what, "any"
    if kind == "zip" and what in ("encrypted", "method", "size"):
        return _patched(rng, content, what), what, "bad" if what == "encrypted" else "any"
    # A tar may contain a link; then it is refused.
    return content, "whole", "good" if kind == "zip" else "any"


def _patched(rng: Random, content: bytes, what: str) -> bytes:
    """Change the headers of all members: set the bit for encryption, another compression or other sizes."""
    data = bytearray(content)
    for signature, flags, method, sizes in ((b"PK\x03\x04", 6, 8, 18), (b"PK\x01\x02", 8, 10, 20)):
        at = data.find(signature)
        value = rng.choice((1, 5, 9, 14, 20, 93, 95, 97, 98, 99, 65535))
        while at >= 0:
            if what == "encrypted":
                data[at + flags] |= 1
            elif what == "method":
                data[at + method : at + method + 2] = struct.pack("<H", value)
            elif rng.random() < 0.3:
                data[at + sizes : at + sizes + 8] = rng.choice((rng.randbytes(8), b"\xff" * 8, b"\0" * 8))
            at = data.find(signature, at + 4)
    return bytes(data)
