"""Small labelled images on disk: stripes whose distance tells the classes apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def bars(path: Path, number: int, seed: int) -> None:
    """Write one image of the class ``number``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 60, (16, 16), dtype=np.uint8)
    pixels[:, :: 2 + 2 * number] += 180
    Image.fromarray(pixels).save(path)


def write_support_and_query(root: Path) -> None:
    """Write ``support`` with 3, 2 and 6 images of three classes, and ``query`` with 2, 1 and 1."""
    for folder, counts in (("support", (3, 2, 6)), ("query", (2, 1, 1))):
        for number, count in enumerate(counts):
            for index in range(count):
                bars(root / folder / f"c{number}" / f"{index}.png", number, seed=index + 10 * len(folder))
