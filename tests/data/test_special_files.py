"""Pipes, sockets, devices, links and undecodable names never cause a hang, and messages name them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import dataset_copies as copies
from firststep.data import load_image, open_dataset
from firststep.errors import FirststepError
from firststep.evaluation.image_folders import image_files

pytestmark = pytest.mark.timeout(60)


def make(kind: str, path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path must be short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.chdir(here)
    elif kind == "link to nothing":
        path.symlink_to(path.parent / "nothing")
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()


KINDS = ("pipe", "socket", "link to nothing", "link to itself", "device")


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_path_itself(kind: str, tmp_path: Path) -> None:
    for name in ("thing", "thing.zip", "thing.png"):
        make(kind, tmp_path / name)
        for action in (
            lambda path: open_dataset("folder", path),
            lambda path: open_dataset("cub", path),
            lambda path: load_image(path, 16),
            image_files,
        ):
            with pytest.raises(FirststepError, match=name):
                action(tmp_path / name)


@pytest.mark.parametrize("kind", KINDS)
def test_among_the_images_of_a_class(kind: str, tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    make(kind, tmp_path / "train" / "ant" / "odd.png")
    make(kind, tmp_path / "train" / "ant" / "odd.txt")
    make(kind, tmp_path / "train" / "loose")
    with pytest.raises(FirststepError, match=r"train/ant/odd\.png .*`skip_broken=True`"):
        open_dataset("folder", tmp_path)
    dataset = open_dataset("folder", tmp_path, skip_broken=True)
    assert dataset.split("train").counts == [3, 3, 3]
    assert [Path(name).name for name in dataset.record.broken] == ["odd.png"]
    assert {Path(name).name for name in dataset.record.ignored} == {"odd.txt", "loose"}


@pytest.mark.parametrize("kind", [*KINDS, "folder"])
@pytest.mark.parametrize(
    ("dataset", "write", "file"),
    [
        ("mini-imagenet", copies.mini_cache, "mini-imagenet-cache-val.pkl"),
        ("mini-imagenet", copies.mini_csv, "val.csv"),
        ("tiered-imagenet", copies.tiered_npz, "val_images.npz"),
    ],
)
def test_as_a_file_of_a_dataset(kind: str, dataset: str, write, file: str, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / file).unlink()
    make(kind, tmp_path / file)
    with pytest.raises(FirststepError, match=rf"{file}|no {dataset} found"):
        open_dataset(dataset, tmp_path, partial=True)


def test_folder_linked_into_itself(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    (tmp_path / "train" / "ant" / "again").symlink_to(tmp_path)
    assert open_dataset("folder", tmp_path).split("train").counts == [3, 3, 3]


def test_folder_that_may_not_be_read_is_not_left_out_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies.folder_with_splits(tmp_path)
    (tmp_path / "train" / "ant" / "more").mkdir()
    really = os.scandir

    def scandir(path: object) -> object:  # stands in for permission bits, which do not bind the superuser
        if str(path).endswith("more"):
            raise PermissionError(13, "Permission denied", str(path))
        return really(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(FirststepError, match=r"cannot read the folder .*more \(Permission denied\)"):
        open_dataset("folder", tmp_path)


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    for path in ("~nobody-of-that-name/data", "x" * 5000, "a\0b", tmp_path / "no" / "where"):
        with pytest.raises(FirststepError):
            open_dataset("folder", path)


def test_images_for_adapting(tmp_path: Path) -> None:
    copies.write_folder(tmp_path, ["ant"], 2)
    folder = tmp_path / "ant"
    (folder / ".hidden.png").write_bytes(b"")
    (folder / "sub.png").mkdir()
    assert [file.name for file in image_files(folder)] == ["ant_0000.png", "ant_0001.png"]
    with pytest.raises(FirststepError, match="has no images"):
        image_files(folder / "sub.png")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    copies.write_folder(tmp_path / "train", ["ant", odd], 3)
    (tmp_path / "train" / odd / os.fsdecode(b"\xff.png")).write_bytes(b"broken")
    (tmp_path / "train" / odd / os.fsdecode(b"\xff.txt")).write_bytes(b"odd")
    run = [sys.executable, "-m", "firststep", "data", "folder", str(tmp_path)]
    refused = subprocess.run(run, capture_output=True, timeout=240)
    assert refused.returncode == 2
    assert b"Traceback" not in refused.stderr
    assert b"is not an image" in refused.stderr
    shown = subprocess.run([*run, "--skip-broken"], capture_output=True, timeout=240)
    assert shown.returncode == 0, shown.stderr
    assert b"\xff.txt" in shown.stdout
    again = open_dataset("folder", tmp_path, skip_broken=True)
    assert again.split("train").classes == ["ant", odd]
