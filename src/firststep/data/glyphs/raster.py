"""Fill contours with integer arithmetic alone, so that the pixels are the same on every machine."""

from __future__ import annotations

import numpy as np

SUBPIXELS = 4
"""Samples along each side of a pixel. Strokes are thickened and thinned in steps of one subpixel."""

FRACTION = 256
"""Contour points are integers in units of 1/FRACTION of a subpixel."""


# Darkness of a pixel by the number of its samples that are ink.
_SHADES = np.array(
    [(n * 510 + SUBPIXELS**2) // (2 * SUBPIXELS**2) for n in range(SUBPIXELS**2 + 1)], np.uint8
)


def fill(starts: np.ndarray, following: np.ndarray, side: int) -> np.ndarray:
    """Return the ink, where the winding number is not zero: bool [side, side] of subpixels, y down.

    Each edge adds its direction to the first subpixel right of where it crosses a row's centre. The running
    sum along the row is then the winding number.
    """
    ends = starts[following]
    direction = np.where(ends[:, 1] > starts[:, 1], 1, -1)
    low = np.where(direction[:, None] > 0, starts, ends)
    high = np.where(direction[:, None] > 0, ends, starts)
    # Rows whose centre (row + 1/2) lies in [low, high).
    half = FRACTION // 2
    first = np.clip(-((half - low[:, 1]) // FRACTION), 0, side)
    after = np.clip(-((half - high[:, 1]) // FRACTION), 0, side)
    rows_of_edge = after - first
    edge = np.repeat(np.arange(len(low)), rows_of_edge)
    row = np.arange(len(edge)) - np.repeat(np.cumsum(rows_of_edge) - rows_of_edge, rows_of_edge) + first[edge]
    rise = row * FRACTION + half - low[edge, 1]
    x = low[edge, 0] + rise * (high[edge, 0] - low[edge, 0]) // (high[edge, 1] - low[edge, 1])
    column = np.clip(-((half - x) // FRACTION), 0, side)
    crossings = np.zeros((side, side + 1), dtype=np.int8)
    np.add.at(crossings, (row, column), direction[edge].astype(np.int8))
    return np.cumsum(crossings[:, :side], axis=1, dtype=np.int8) != 0


def thicken(ink: np.ndarray, steps: int) -> np.ndarray:
    """Grow the ink by ``steps`` subpixels on every side, or shrink it if negative.

    Alternating diamonds and squares make an octagonal pen, close enough to a round one.
    """
    if steps < 0:
        return ~thicken(~ink, -steps)
    for step in range(steps):
        padded = np.pad(ink, 1, mode="edge")
        across = padded[:, 1:-1] | padded[:, :-2] | padded[:, 2:]
        if step % 2:
            ink = across[1:-1] | across[:-2] | across[2:]
        else:
            ink = across[1:-1] | padded[:-2, 1:-1] | padded[2:, 1:-1]
    return ink


def shrink(ink: np.ndarray) -> np.ndarray:
    """Return the uint8 image of some subpixels: 0 is paper, 255 is full ink."""
    covered = ink.view(np.uint8)
    for _ in range(2):  # sum groups of rows, then of columns; slices are far faster than .sum() here
        covered = np.add.reduce([covered[offset::SUBPIXELS] for offset in range(SUBPIXELS)], dtype=np.uint8).T
    return _SHADES[covered]
