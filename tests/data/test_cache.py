"""Caches: complete or absent, named after their sources, placed where writing is allowed, built once."""

from __future__ import annotations

import builtins
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataset_copies as copies
from firststep.data import open_dataset
from firststep.errors import FirststepError
from peaks import PEAK


def caches(root: Path) -> list[str]:
    return sorted(p.name for p in root.iterdir() if p.suffix != ".lock")


def test_beside_the_data_and_instant_the_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies.folder_with_splits(tmp_path)
    dataset = open_dataset("folder", tmp_path)
    assert dataset.folder.parent == tmp_path / ".firststep-cache"
    monkeypatch.setattr("firststep.data.opening.write_splits", None)  # a second build would fail
    again = open_dataset("folder", tmp_path)
    np.testing.assert_array_equal(again.split("train").images, dataset.split("train").images)
    assert isinstance(again.split("train").images, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        again.split("train").images[0] = 0


def test_chosen_folder_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies.folder_with_splits(tmp_path / "data")
    monkeypatch.setenv("FIRSTSTEP_CACHE", str(tmp_path / "environment"))
    assert open_dataset("folder", tmp_path / "data").folder.parent == tmp_path / "environment"
    chosen = open_dataset("folder", tmp_path / "data", cache=tmp_path / "chosen")
    assert chosen.folder.parent == tmp_path / "chosen"
    assert not (tmp_path / "data" / ".firststep-cache").exists()


def test_read_only_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        copies.folder_with_splits(root / "data")
        (root / "cache").mkdir()
        monkeypatch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        for folder in (root, root / "cache"):
            folder.chmod(0o777)
        (root / "data").chmod(0o555)
        superuser = os.geteuid() == 0
        if superuser:  # permission bits do not bind the superuser
            os.seteuid(65534)
        try:
            dataset = open_dataset("folder", root / "data")
            assert dataset.folder.parent == root / "cache" / "firststep"
            assert dataset.split("train").images.shape[0] == 9
        finally:
            if superuser:
                os.seteuid(0)
            (root / "data").chmod(0o755)
        assert not (root / "data" / ".firststep-cache").exists()


def test_nowhere_to_write(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path / "data")
    (tmp_path / "file").write_text("")
    with pytest.raises(
        FirststepError, match=r"cannot write to the cache folder .*`cache` or .* FIRSTSTEP_CACHE"
    ):
        open_dataset("folder", tmp_path / "data", cache=tmp_path / "file" / "cache")


def test_fingerprint_follows_content_and_recipe(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    first = open_dataset("folder", tmp_path)
    assert open_dataset("folder", tmp_path, image_size=32).fingerprint != first.fingerprint
    image = next((tmp_path / "train" / "ant").iterdir())
    os.utime(image, ns=(1, 1))  # touched, not changed: made again, but the same data
    touched = open_dataset("folder", tmp_path)
    assert touched.folder != first.folder
    assert touched.fingerprint == first.fingerprint
    image.write_bytes(copies.encoded("another", 0, 12))
    assert open_dataset("folder", tmp_path).fingerprint != first.fingerprint
    (tmp_path / "train" / "ant").rename(tmp_path / "train" / "aunt")
    assert open_dataset("folder", tmp_path).split("train").classes == ["aunt", "bee", "cat"]


def test_same_pixels_in_two_layouts_have_one_fingerprint(tmp_path: Path) -> None:
    for name, write in (("a", copies.mini_cache), ("b", copies.mini_category_split)):
        (tmp_path / name).mkdir()
        write(tmp_path / name)
    fingerprints = {open_dataset("mini-imagenet", tmp_path / x, partial=True).fingerprint for x in "ab"}
    assert len(fingerprints) == 1


def test_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes go to a device that is always full, which raises a real ENOSPC."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    copies.folder_with_splits(tmp_path)
    really_open = builtins.open

    def full(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        return really_open(
            "/dev/full" if str(file).endswith(".u8") and "w" in mode else file, mode, *rest, **options
        )

    monkeypatch.setattr("firststep.data.cache.open", full, raising=False)
    with pytest.raises(FirststepError, match=r"no space left in .*`cache`"):
        open_dataset("folder", tmp_path)
    assert caches(tmp_path / ".firststep-cache") == []
    monkeypatch.undo()
    assert len(open_dataset("folder", tmp_path).split("train").images) == 9


PROGRAM = """
import sys, time, pathlib
import firststep.data.cache as cache
from firststep.data import open_dataset
real, log = cache._pixels, pathlib.Path(sys.argv[2])
def slow(*job):
    with log.open("a") as file:
        file.write("x")
    time.sleep(0.02)
    return real(*job)
cache._pixels = slow
print(open_dataset("folder", sys.argv[1]).fingerprint)
"""


def build(tmp_path: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path / "data"), str(tmp_path / "log")]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_two_processes_build_once(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path / "data")
    both = [build(tmp_path), build(tmp_path)]
    results = {process.communicate(timeout=240)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(results) == 1
    assert (tmp_path / "log").read_text() == "x" * 21  # each of the 21 images decoded once
    assert len(caches(tmp_path / "data" / ".firststep-cache")) == 1


def test_killed_build_leaves_nothing_half_made(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path / "data")
    process = build(tmp_path)
    deadline = time.monotonic() + 240
    while not (tmp_path / "log").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=240)
    root = tmp_path / "data" / ".firststep-cache"
    assert [name for name in caches(root) if not name.startswith(".")] == []
    dataset = open_dataset("folder", tmp_path / "data")
    assert len(dataset.split("train").images) == 9
    assert caches(root) == [dataset.folder.name]  # what the killed build left is gone


def test_memory_does_not_grow_with_the_split(tmp_path: Path) -> None:
    """600 images of 224 px are 90 MB, and building their cache must not hold them all."""
    (tmp_path / "data" / "train" / "noise").mkdir(parents=True)
    for i in range(3):
        (tmp_path / "data" / "train" / "noise" / f"{i}.png").write_bytes(copies.encoded("noise", i, 224))
    for i in range(3, 600):
        os.link(
            tmp_path / "data" / "train" / "noise" / f"{i % 3}.png",
            tmp_path / "data" / "train" / "noise" / f"{i}.png",
        )
    program = (
        f"{PEAK}\n"
        "import sys; from firststep.data import open_dataset\n"
        "before = peak()\n"
        "d = open_dataset('folder', sys.argv[1], image_size=224)\n"
        "assert len(d.split('train').images) == 600\n"
        "print((peak() - before) // 1024)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "data")], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 70
