"""Damaged and hostile archives: one line that names the archive, and nothing is kept."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

import dataset_copies as copies
from firststep.data import open_dataset
from firststep.errors import FirststepError
from refusals import refused

ENDINGS = ("zip", "tar", "tar.gz", "tgz", "tar.bz2", "tar.xz")


def unpacking_is_refused(path: Path, dataset: str = "folder") -> str:
    message = refused(dataset, path)
    assert path.name in message
    assert not list((path.parent / ".firststep-cache").glob(".*"))
    return message


def pack(path: Path, members: list[tuple[str, bytes]]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return path
    kind = {".gz": "w:gz", ".tgz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, kind) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def pictures(count: int = 12) -> list[tuple[str, bytes]]:
    return [
        (f"{split}/{split}-{name}/{i}.bmp", copies.encoded(split + name, i, 16, "BMP"))
        for split in ("train", "test")
        for name in "ab"
        for i in range(count // 4)
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncated_anywhere(ending: str, tmp_path: Path) -> None:
    path = pack(tmp_path / f"mine.{ending}", pictures())
    whole = path.read_bytes()
    assert len(open_dataset("folder", path).split("train").images) == 6
    # The padding at the end of a tar may be lost.
    content = sum(512 + -(-len(c) // 512) * 512 for _, c in pictures()) if ending == "tar" else len(whole)
    for part in range(1, 10):
        path.write_bytes(whole[: content * part // 10])
        assert "is broken or incomplete" in unpacking_is_refused(path)
    # A tar that ends between two members looks complete to tarfile.
    if ending == "tar":
        path.write_bytes(whole[: 4 * (512 + 1024)])
        assert "is broken or incomplete" in unpacking_is_refused(path)


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
def test_flipped_bits(ending: str, tmp_path: Path) -> None:
    """The checksums are compared: whatever is unpacked is what was packed."""
    path = pack(tmp_path / f"mine.{ending}", pictures())
    whole = path.read_bytes()
    expected = open_dataset("folder", path).fingerprint
    for place in range(40, len(whole) - 4, max(1, len(whole) // 25)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            found = open_dataset("folder", path)
        except FirststepError:
            continue
        assert found.fingerprint == expected  # a date or a comment


def patched(path: Path, local: int, central: int, value: int) -> None:
    """Change two bytes of the first member's header, in both places where a zip has it."""
    content = bytearray(path.read_bytes())
    content[local : local + 2] = struct.pack("<H", value)
    place = content.index(b"PK\x01\x02") + central
    content[place : place + 2] = struct.pack("<H", value)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("local", "central", "value", "says"),
    [(6, 8, 1, "is encrypted, which Python cannot read"), (8, 10, 99, "is compressed by method 99, which")],
)
def test_member_that_python_cannot_read(
    local: int, central: int, value: int, says: str, tmp_path: Path
) -> None:
    patched(pack(tmp_path / "mine.zip", pictures()), local, central, value)
    assert f"'train/train-a/0.bmp' {says}" in unpacking_is_refused(tmp_path / "mine.zip")


@pytest.mark.parametrize("ending", ["zip", "tar"])
@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a/" + "x" * 300 + ".png"], "cannot be written (File name too long)"),
        (["/".join(["deep" * 50] * 40) + "/a.png"], "cannot be written (File name too long)"),
        (["a/1.png", "a/1.png"], "'a/1.png' is there twice"),
        (["a/1.png", "a/1.png/2.png"], "'a/1.png/2.png' is there twice, or as a file and as a folder"),
        (["a/1.png/2.png", "a/1.png"], "'a/1.png' is there twice, or as a file and as a folder"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_cannot_all_be_written(names: list[str], says: str, ending: str, tmp_path: Path) -> None:
    path = pack(tmp_path / f"mine.{ending}", [(name, b"content") for name in names])
    assert says in unpacking_is_refused(path)


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
def test_bomb(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if ending == "zip":
        monkeypatch.setattr("firststep.data.archives._write", None)  # writing anything would fail
    path = pack(tmp_path / f"mine.{ending}", [(f"a/{i}.bmp", bytes(1 << 24)) for i in range(6)])
    assert "it holds more than 67.1 MB, which is far too much for its size" in unpacking_is_refused(path)


@pytest.mark.parametrize(
    "member",
    ["../outside.txt", "a/../../outside.txt", "/tmp/outside.txt", "..\\outside.txt", "C:/outside.txt"],
)
@pytest.mark.parametrize(("dataset", "file"), [("folder", "mine.zip"), ("cub", "CUB_200_2011.tgz")])
def test_member_that_reaches_outside(dataset: str, file: str, member: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = pack(tmp_path / "data" / file, [(member, b"harm")])
    assert f"{file} is refused" in unpacking_is_refused(path, dataset)
    assert not list(tmp_path.rglob("*outside*"))


def test_link(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "mine.tgz", "w:gz") as archive:
        info = tarfile.TarInfo("images/001.A/a.jpg")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    assert "is a link or device" in unpacking_is_refused(tmp_path / "mine.tgz")


def test_tar_header_made_to_fill_the_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    (tmp_path / "mine.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    assert "it has a header of 1099511627776 bytes" in unpacking_is_refused(tmp_path / "mine.tar")


def test_tar_that_leads_backwards(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "mine.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a", "b"):
            info = tarfile.TarInfo(name)
            info.pax_headers = {"size": "-4096"}
            archive.addfile(info)
    unpacking_is_refused(tmp_path / "mine.tar")


def test_more_than_the_disk_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pack(tmp_path / "mine.tar", pictures())
    monkeypatch.setattr("firststep.data.archives.free_space", lambda folder: 500)
    message = unpacking_is_refused(path)
    assert "and the disk of the cache has 0 kB free" in message
    assert "`cache`" in message


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firststep.data.archives.MOST_MEMBERS", 5)
    assert "more than 5 members" in unpacking_is_refused(pack(tmp_path / "mine.zip", pictures()))


def test_archive_of_something_else(tmp_path: Path) -> None:
    path = pack(tmp_path / "CUB_200_2011.tgz", [("readme.txt", b"birds")])
    assert "no cub found inside CUB_200_2011.tgz; looked for" in unpacking_is_refused(path, "cub")


def test_archive_within_an_archive(tmp_path: Path) -> None:
    inner = pack(tmp_path / "inner.zip", pictures()).read_bytes()
    message = unpacking_is_refused(pack(tmp_path / "mine.zip", [("inner.zip", inner)]))
    assert "it holds the archive inner.zip: unpack that yourself" in message
