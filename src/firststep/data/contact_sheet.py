"""Contact sheets: an episode or many classes as one PNG."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from PIL import Image

from firststep.data.dataset import Split
from firststep.data.episodes import Episodes
from firststep.errors import FirststepError
from firststep.utils.files import replacing

GAP = 2
BREAK = 10
"""Pixels between support and query images."""


def write_episode_sheet(episodes: Episodes, index: int, path: Path | str, queries: int = 8) -> None:
    """Write one row per class: its support images, a wider gap, then some of its query images.

    Examples:
        >>> from firststep.data import write_episode_sheet
        >>> write_episode_sheet(episodes, 0, "episode.png")
        >>> Path("episode.png").is_file()
        True
    """
    if index < 0:
        raise FirststepError(f"episodes are numbered from 0, not {index}")
    rows = episodes.rows(index)
    support = [episodes.split.pixels(row) for row in rows.support]
    query = [episodes.split.pixels(row) for row in rows.query[:, :queries]]
    _save(_grid(support, query), path, episodes.split)


def write_class_sheet(split: Split, path: Path | str, rows: int = 12, columns: int = 20) -> None:
    """Write one row per class with its first images, for classes evenly spread over the split.

    Examples:
        >>> from firststep.data import write_class_sheet
        >>> write_class_sheet(dataset.split("test"), "classes.png", rows=2, columns=3)
        >>> Path("classes.png").is_file()
        True
    """
    rows = min(rows, len(split.classes))
    starts = split.starts()
    chosen = [i * len(split.classes) // rows for i in range(rows)]
    columns = min([columns, *(split.counts[i] for i in chosen)])
    shown = [split.pixels(np.arange(starts[i], starts[i] + columns)) for i in chosen]
    _save(_grid(shown, []), path, split)


def _grid(left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
    """Return rows of images [n, H, W, C] on grey, which shows where dark and light ones end."""
    height, width, channels = left[0].shape[1:]
    columns = len(left[0]) + (len(right[0]) if right else 0)
    total = (columns * (width + GAP) + GAP + (BREAK if right else 0), len(left) * (height + GAP) + GAP)
    sheet = np.full((total[1], total[0], channels), 128, dtype=np.uint8)
    for row, groups in enumerate(zip(left, right, strict=True) if right else zip(left, strict=True)):
        x, y = GAP, GAP + row * (height + GAP)
        for group in groups:
            for image in group:
                sheet[y : y + height, x : x + width] = image
                x += width + GAP
            x += BREAK
    return sheet


def _save(sheet: np.ndarray, path: Path | str, split: Split) -> None:
    path = Path(path)
    require_png(path)
    # Small images are hard to judge at their own size, so enlarge them.
    zoom = max(1, math.ceil(48 / split.preprocessing.image_size))
    image = Image.fromarray(sheet if sheet.shape[-1] == 3 else sheet[:, :, 0])
    image = image.resize((image.width * zoom, image.height * zoom), Image.Resampling.NEAREST)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            image.save(temporary, format="PNG", optimize=True)
    except OSError as error:
        raise FirststepError(f"cannot write {path} ({error.strerror or error})") from None


def require_png(path: Path) -> None:
    """Raise ``FirststepError`` if the name is not that of a PNG."""
    if path.suffix.lower() != ".png":
        raise FirststepError(f"a contact sheet is a PNG: name it {path.parent / path.stem}.png, not {path}")
