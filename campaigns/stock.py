"""Make what all cases start from, once, by the commands themselves: images, a trained run, its evaluation.

Cases copy what they change. The stock itself must stay as it is, which every case checks.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

from PIL import Image

from campaigns import warm
from campaigns.warm import Surroundings

CLASSES = {split: [f"{split}{letter}" for letter in "abcde"] for split in ("train", "val", "test")}
TASK = ["--shots", "2", "--queries", "2", "--image-size", "16"]
TINY = [
    *("--filters", "4", "--rate", "0.1", "--steps", "2", "--updates", "4", "--meta-batch", "2"),
    *("--validate-every", "2", "--validation-episodes", "2", "--threads", "1", "--device", "cpu", *TASK),
]
"""Training in a second: every part of it runs, the numbers mean nothing."""
QUICK_TEST = ["--episodes", "2", "--steps", "0", "1"]


@dataclass(frozen=True)
class Stock:
    folder: Path

    @property
    def pictures(self) -> Path:
        """Return a dataset of class folders in train, val and test."""
        return self.folder / "pictures"

    @property
    def support(self) -> Path:
        return self.folder / "support"

    @property
    def run(self) -> Path:
        """Return a run trained on the pictures, with an evaluation and a comparison's evaluation."""
        return self.folder / "run"

    @property
    def results(self) -> Path:
        """Return results that ``firststep paper show`` wrote."""
        return self.folder / "results"

    @property
    def data_flags(self) -> list[str]:
        return ["--data", "folder", "--data-path", str(self.pictures)]

    def environment(self, temporary: Path, home: Path) -> dict[str, str]:
        """Return an environment without the user's own settings, with the caches of the stock."""
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "FIRSTSTEP_CACHE": str(self.folder / "cache"),
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": str(self.folder / "matplotlib"),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_DIR": "/nowhere",  # results tell the commit, which may change while a campaign runs
        }

    def surroundings(self, cwd: Path) -> Surroundings:
        return Surroundings(cwd=cwd, environment=self.environment(self.folder / "tmp", self.folder / "home"))


def draw(path: Path, rng: Random, size: tuple[int, int] = (16, 16)) -> None:
    """Draw a small noisy image, the same for the same generator."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.frombytes("RGB", size, rng.randbytes(3 * size[0] * size[1])).save(path)


def make_stock(folder: Path) -> Stock:
    """Make it; what the commands import on the way is then imported here too."""
    stock = Stock(folder)
    for name in ("tmp", "home", "cache", "matplotlib"):
        (folder / name).mkdir(parents=True)
    rng = Random(0)
    for split, names in CLASSES.items():
        for name in names:
            for number in range(4):
                draw(stock.pictures / split / name / f"{number}.png", rng)
    for number in range(5):
        for index in range(2):
            draw(stock.support / f"class{number}" / f"{index}.png", rng)
    draw(folder / "query.png", rng)
    for arguments in (
        ["train", "demo", *TINY, *stock.data_flags, "--out", str(stock.run)],
        ["evaluate", str(stock.run), *QUICK_TEST],
        ["compare", str(stock.run), *QUICK_TEST, "--out", str(folder / "comparison")],
        ["adapt", str(stock.run), "--support", str(stock.support), "--query", str(folder / "query.png")]
        + ["--out", str(folder / "adapted")],
        ["diagnose", str(stock.run), "--tasks", "1", "--shots", "2", "--plot", str(folder / "plot.png")],
        ["paper", "show", "table1", "figure2", "--runs", str(folder / "none"), "--out", str(stock.results)],
        ["data", "folder", str(stock.pictures), "--sheet", str(folder / "sheet.png")],
        ["parameters", "--backbone", "conv4", "--filters", "4"],
    ):
        outcome = warm.import_what_a_child_needed(
            warm.command(arguments), stock.surroundings(folder), seconds=600
        )
        if outcome.status != 0:
            print(outcome.stderr, file=sys.stderr)
            raise RuntimeError(f"the stock cannot be made: firststep {' '.join(arguments)}")
    return stock
