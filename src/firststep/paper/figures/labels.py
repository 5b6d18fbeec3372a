"""Labels of points that cover neither each other nor the points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

DIRECTIONS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
DISTANCES = (5, 9, 14, 20, 27, 35)  # points, from the point to the nearest edge of its label
CLEARANCE = 3.5  # points around a mark that stay free
ALIGNED = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}


def place_labels(
    figure: Figure,
    axes: Axes,
    points: Sequence[tuple[float, float]],
    half_widths: Sequence[float],
    texts: Sequence[str],
    size: float,
) -> None:
    """Writes each text at the nearest free place around its point and interval; far ones get a line to it.

    The figure must be laid out for good, for places are found in its pixels. Where no place is free, the
    one that covers least is taken.
    """
    renderer = FigureCanvasAgg(figure).get_renderer()
    unit = renderer.points_to_pixels(1.0)
    frame = axes.get_window_extent(renderer)
    pixels = axes.transData.transform(np.array(points, dtype=float).reshape(-1, 2))
    taken = [Bbox.from_bounds(x, y, 0, 0).padded(CLEARANCE * unit) for x, y in pixels]
    for (x, y), half in zip(points, half_widths, strict=True):
        if half > 0:
            taken.append(Bbox(axes.transData.transform([(x, y - half), (x, y + half)])).padded(unit))
    labels: list[Bbox] = []
    for point, pixel, text in zip(points, pixels, texts, strict=True):
        note = axes.annotate(text, point, (0, 0), textcoords="offset points", fontsize=size)
        note.set_in_layout(False)
        extent = note.get_window_extent(renderer)
        _, distance, direction, box = min(
            (
                (_covered(box, taken, frame) + _crossed(pixel, anchor, labels), distance, index, box)
                for distance in DISTANCES
                for index, direction in enumerate(DIRECTIONS)
                for anchor in [pixel + unit * distance * direction]
                for box in [_box(anchor, direction, extent)]
            ),
            key=lambda candidate: candidate[:3],
        )
        taken.append(box)
        labels.append(box)
        dx, dy = DIRECTIONS[direction]
        note.remove()
        axes.annotate(
            text,
            point,
            (distance * dx, distance * dy),
            textcoords="offset points",
            fontsize=size,
            ha=ALIGNED[dx][0],
            va=ALIGNED[dy][1],
            arrowprops={"arrowstyle": "-", "color": "#777777", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
            if distance > DISTANCES[0] or dy
            else None,
        ).set_in_layout(False)


def _box(anchor: np.ndarray, direction: np.ndarray, extent: Bbox) -> Bbox:
    """Of a label whose side that faces the point is at ``anchor``."""
    left, bottom = anchor + (direction - 1) / 2 * np.array([extent.width, extent.height])
    return Bbox.from_bounds(left, bottom, extent.width, extent.height)


def _covered(box: Bbox, taken: Sequence[Bbox], frame: Bbox) -> float:
    """Area that the box shares with what is taken, and has outside of the frame; in whole pixels."""
    overlaps = [Bbox.intersection(box, other) for other in taken]
    inside = Bbox.intersection(box, frame)
    own, kept = box.width * box.height, 0.0 if inside is None else inside.width * inside.height
    return round(sum(each.width * each.height for each in overlaps if each is not None) + own - kept)


def _crossed(point: np.ndarray, anchor: np.ndarray, labels: Sequence[Bbox]) -> float:
    """What it costs, in pixels, that the line from the point to its label runs through other labels."""
    way = [point + part * (anchor - point) for part in np.linspace(0, 1, 8)]
    return 100.0 * sum(any(label.contains(*place) for place in way) for label in labels)
