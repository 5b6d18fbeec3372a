"""``firststep data`` as a user runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import dataset_copies as copies
from firststep.cli import main
from firststep.data import DATASETS
from warm_cli import WarmCommands

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(warm: WarmCommands) -> Run:
    def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return warm.run(arguments, env={**os.environ, **environment})

    return run


def test_list_describes_every_dataset(run: Run) -> None:
    shown = run("data", "list")
    assert shown.returncode == 0
    for name in DATASETS:
        assert f"\n{name}  " in "\n" + shown.stdout
    for text in (
        "64 / 16 / 20",
        "eb9058c3a382ffc7106e4002c42a8d85",
        "https://image-net.org",
        "licence",
        "MIT",
    ):
        assert text in shown.stdout


def test_what_was_found(run: Run, tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path / "data")
    (tmp_path / "data" / "train" / "cat" / "notes.txt").write_text("meow")
    shown = run("data", "folder", tmp_path / "data", "--size", "40", "--sheet", tmp_path / "sheet.png")
    assert shown.returncode == 0, shown.stderr
    for text in (
        "class folders in train, val, test",
        "40 x 40 px, RGB",
        "fingerprint",
        "notes.txt",
        "sheet.png",
    ):
        assert text in shown.stdout
    row = next(line for line in shown.stdout.splitlines() if "train" in line and "│" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["train", "3", "9", "3", "3"]
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 100


def test_differences_are_all_said(run: Run, tmp_path: Path) -> None:
    copies.cub(tmp_path)
    shown = run("data", "cub", tmp_path)
    assert shown.returncode == 2
    for text in (
        "train: 97 classes missing: 007",
        "val: 48 classes missing",
        "all: 21 images instead of 11788",
    ):
        assert text in shown.stderr
    assert (
        shown.stderr.strip().splitlines()[-1].startswith("firststep: cub (images/ of CUB_200_2011) differs")
    )
    accepted = run("data", "cub", tmp_path, "--partial")
    assert accepted.returncode == 0
    assert "train: 97 classes missing" in accepted.stdout


def test_glyphs_need_nothing(run: Run, glyph_cache: Path, glyphs: object) -> None:
    shown = run("data", "glyphs", FIRSTSTEP_CACHE=str(glyph_cache))
    assert shown.returncode == 0, shown.stderr
    assert "456" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "usage: firststep [--import MODULE] COMMAND"),
        (("dta",), "unknown command 'dta'; did you mean data?"),
        (("fly",), "unknown command 'fly'; there are: "),
        (("data",), "NAME"),
        (("data", "omniglott"), "unknown dataset 'omniglott'; did you mean omniglot?"),
        (("data", "glyphs", "--colour"), "unknown flag"),
        (("data", "glyphs", "--size", "big"), "--size"),
        (("data", "cub"), "cub needs the path"),
        (("data", "cub", "--download"), "--download needs a folder"),
        (("data", "cub", ".", "--download"), "no free direct download"),
        (("data", "list", "."), "takes no path"),
        (("data", "cub", "nowhere"), "nowhere does not exist"),
        (("data", "glyphs", "--episode", "-1"), "episodes are numbered from 0, not -1"),
        (("data", "glyphs", "--seed", str(2**64)), "has more than 64 bits"),
        (("data", "glyphs", "--size", "0"), "image size 0 is not in 4..4096"),
        (("data", "glyphs", "--size", "1000000000"), "is not in 4..4096"),
        (("data", "glyphs", "--sheet", "sheet.jpg"), "a contact sheet is a PNG: name it sheet.png"),
        (("data", "glyphs", "--classes-sheet", "/"), "a contact sheet is a PNG"),
        (("data", "glyphs", "--sheet", "/dev/null/sheet.png"), "cannot write to the folder /dev/null"),
        (("data", "glyphs", "--sheet", "a.png", "--classes-sheet", "./a.png"), "need two files"),
    ],
)
def test_mistakes_are_said_and_exit_with_2(
    arguments: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(list(arguments)) == 2
    shown = capsys.readouterr()
    assert says in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert list(tmp_path.rglob("*.u8")) == []  # refused before a cache is built


def test_a_mistake_is_one_line_and_status_2_for_the_shell(run: Run) -> None:
    shown = run("data", "cub", "nowhere")
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert shown.stderr.startswith("firststep: ")
    assert shown.stderr.count("\n") == 1


def test_debug_shows_where_an_error_came_from(run: Run) -> None:
    shown = run("data", "nothing", "--debug")
    assert shown.returncode != 0
    assert "Traceback" in shown.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("data", "--help"), ("--version",)])
def test_help_and_version(run: Run, arguments: tuple[str, ...]) -> None:
    shown = run(*arguments)
    assert shown.returncode == 0
    assert "firststep" in shown.stdout


def test_broken_images_are_counted(run: Run, tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    broken = tmp_path / "train" / "ant" / "ant_0000.png"
    broken.write_bytes(broken.read_bytes()[:40])
    refused = run("data", "folder", tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].startswith(f"firststep: {broken} is")
    skipped = run("data", "folder", tmp_path, "--skip-broken")
    assert skipped.returncode == 0
    assert "1 images left out" in skipped.stdout


def test_square_brackets_in_names_are_shown_as_they_are(run: Run, tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path / "[red]data")
    (tmp_path / "[red]data" / "train" / "cat" / "[bold]notes[red].txt").write_text("meow")
    shown = run("data", "folder", tmp_path / "[red]data")
    assert shown.returncode == 0, shown.stderr
    assert "[red]data/train/cat/[bold]notes[red].txt" in shown.stdout
