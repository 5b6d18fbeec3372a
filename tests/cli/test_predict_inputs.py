"""What predict reads: patterns, standard input, and a folder that it watches."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firststep.cli import main
from runs import TINY_FLAGS
from striped import write_support_and_query

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an adapted model and images."""
    folder = tmp_path_factory.mktemp("predict")
    run = str(folder / "run")
    assert main(["train", "--head", "zero", *TINY_FLAGS, "--updates", "1", "--out", run]) == 0
    write_support_and_query(folder)
    command = ["adapt", run, "--support", str(folder / "support"), "--out", str(folder / "adapted")]
    assert main([*command, "--steps", "1"]) == 0
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_patterns_folders_and_lists_name_the_same_images(here: Path, capsys: Captured) -> None:
    images = sorted(Path("query").rglob("*.png"))
    Path("list.csv").write_text("image,label\n" + "".join(f"{path},x\n" for path in images))
    found = []
    for paths in (["query"], ["query/*/*.png"], ["query/**/*.png"], ["query/c?"], ["list.csv"]):
        capsys.readouterr()
        assert main(["predict", "adapted", *paths, "--format", "csv"]) == 0
        shown = capsys.readouterr()
        assert re.search(rf"{len(images)} images in [\d.]+ s \([\d.]+ per second\)", shown.err)
        found.append(
            sorted((Path(row["image"]).name, row["class"], row["probability"]) for row in rows(shown.out))
        )
    assert len(found[0]) == len(images)
    assert all(each == found[0] for each in found)
    assert main(["predict", "adapted", "query/*.gif"]) == 2
    assert "query/*.gif: no file has such a name" in capsys.readouterr().err


def test_an_image_on_standard_input(here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    image = next(Path("query").rglob("*.png"))
    assert main(["predict", "adapted", str(image), "--format", "json"]) == 0
    expected = json.loads(capsys.readouterr().out)[0]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(image.read_bytes())))
    assert main(["predict", "adapted", "-", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]
    assert found == {**expected, "image": "-"}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"no image")))
    assert main(["predict", "adapted", "-"]) == 2
    assert "standard input" in capsys.readouterr().err


def test_a_watched_folder_until_interrupted(here: Path, tmp_path: Path) -> None:
    (tmp_path / "old.png").write_bytes(next(Path("query").rglob("*.png")).read_bytes())
    command = [sys.executable, "-m", "firststep", "predict", "adapted", "--watch", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            new = []
            # Later ones come after the first look at the folder, whenever that is.
            for number, image in enumerate(sorted(Path("query").rglob("*.png")) * 40):
                (tmp_path / "broken.png").write_bytes(b"no image")
                shutil.copy(image, tmp_path / f"{number}.png")
                new.append(f"{number}.png")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
                if _has_line(process):
                    break
            head, first = process.stdout.readline(), process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130), errors
    found = rows(head + first + rest)
    assert {Path(row["image"]).name for row in found} <= set(new)
    assert all(0 < float(row["probability"]) <= 1 for row in found)


def _has_line(process: subprocess.Popen[str]) -> bool:
    import select

    return bool(select.select([process.stdout], [], [], 0)[0])
