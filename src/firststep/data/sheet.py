"""Contact sheets: an episode, or many classes, as one PNG to look at."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from firststep.data.dataset import Split
from firststep.data.episodes import Episodes
from firststep.errors import FirststepError

GAP = 2
BREAK = 10
"""Pixels between support and query pictures."""


def write_episode_sheet(episodes: Episodes, index: int, path: Path | str, queries: int = 8) -> None:
    """One row a class: its support pictures, a wider gap, then some of its query pictures."""
    plan = episodes.plan(index)
    images = episodes.split.images
    shown = plan.query[:, :queries]
    _save(
        _grid([images[rows] for rows in plan.support], [images[rows] for rows in shown]), path, episodes.split
    )


def write_class_sheet(split: Split, path: Path | str, rows: int = 12, columns: int = 20) -> None:
    """One row a class, classes evenly spread over the split, each with its first pictures."""
    rows = min(rows, len(split.classes))
    starts = split.starts()
    chosen = [i * len(split.classes) // rows for i in range(rows)]
    columns = min([columns, *(split.counts[i] for i in chosen)])
    _save(_grid([split.images[starts[i] : starts[i] + columns] for i in chosen], []), path, split)


def _grid(left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
    """Rows of pictures [n, H, W, C], on grey so that one sees where dark and light ones end."""
    height, width, channels = left[0].shape[1:]
    columns = len(left[0]) + (len(right[0]) if right else 0)
    total = (columns * (width + GAP) + GAP + (BREAK if right else 0), len(left) * (height + GAP) + GAP)
    sheet = np.full((total[1], total[0], channels), 128, dtype=np.uint8)
    for row in range(len(left)):
        y = GAP + row * (height + GAP)
        x = GAP
        for group in [left[row], *([right[row]] if right else [])]:
            for picture in group:
                sheet[y : y + height, x : x + width] = picture
                x += width + GAP
            x += BREAK
    return sheet


def _save(sheet: np.ndarray, path: Path | str, split: Split) -> None:
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise FirststepError(f"a contact sheet is a PNG: name it {path.with_suffix('.png')}, not {path}")
    # Small pictures are hard to judge at their own size.
    zoom = max(1, math.ceil(48 / split.preprocessing.image_size))
    picture = Image.fromarray(sheet if sheet.shape[-1] == 3 else sheet[:, :, 0])
    picture = picture.resize((picture.width * zoom, picture.height * zoom), Image.Resampling.NEAREST)
    write_png(picture, path)


def write_png(picture: Image.Image, path: Path) -> None:
    """Under its final name only when complete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".png", delete=False) as file:
            picture.save(file, format="PNG", optimize=True)
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError as error:
        raise FirststepError(f"cannot write {path} ({error.strerror or error})") from None
