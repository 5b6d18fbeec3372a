"""Place labels so that they cover neither each other nor the points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DIRECTIONS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
DISTANCES = np.array([5, 9, 14, 20, 27, 35])  # points, from the point to the nearest edge of its label
CLEARANCE = 3.5  # points around a mark that stay free
ALIGNED = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}
LEADER = {"arrowstyle": "-", "color": "#777777", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}

Boxes = np.ndarray
"""[n, 4]: left, bottom, right, top, in pixels"""


def place_labels(
    figure: Figure,
    axes: Axes,
    points: Sequence[tuple[float, float]],
    half_widths: Sequence[float],
    texts: Sequence[str],
    size: float,
) -> None:
    """Write each text at the nearest free place around its point; a distant label gets a line to it.

    Places are found in pixels, so the layout of the figure must be final. If no place is free, the label
    goes where it covers least.
    """
    renderer = FigureCanvasAgg(figure).get_renderer()
    unit = renderer.points_to_pixels(1.0)
    x, y = np.array(points, dtype=float).reshape(-1, 2).T
    half = np.nan_to_num(np.array(half_widths, dtype=float))
    pixels, low, high = (axes.transData.transform(np.column_stack([x, y + d])) for d in (0, -half, half))
    marks = np.hstack([pixels - CLEARANCE * unit, pixels + CLEARANCE * unit])
    taken = np.vstack([marks, np.hstack([low - unit, high + unit])])
    labels = np.empty((0, 4))
    # Every direction at the nearest distance, then at the next.
    distances = np.repeat(DISTANCES, len(DIRECTIONS))
    directions = np.tile(DIRECTIONS, (len(DISTANCES), 1))
    for point, pixel, text in zip(points, pixels, texts, strict=True):
        probe = axes.annotate(text, point, (0, 0), textcoords="offset points", fontsize=size)
        extent = np.array(probe.get_window_extent(renderer).size)
        probe.remove()
        anchors = pixel + unit * distances[:, None] * directions
        corners = anchors + (directions - 1) / 2 * extent  # the side that faces the point is at the anchor
        boxes = np.hstack([corners, corners + extent])
        frame = np.array([axes.get_window_extent(renderer).extents])
        cost = _shared(boxes, taken) + extent.prod() - _shared(boxes, frame)
        best = int(np.argmin(np.round(cost + _crossed(pixel, anchors, labels))))
        taken, labels = np.vstack([taken, boxes[best]]), np.vstack([labels, boxes[best]])
        dx, dy = (int(part) for part in directions[best])
        is_beside = distances[best] == DISTANCES[0] and not dy
        axes.annotate(
            text,
            point,
            (int(distances[best]) * dx, int(distances[best]) * dy),
            textcoords="offset points",
            fontsize=size,
            ha=ALIGNED[dx][0],
            va=ALIGNED[dy][1],
            arrowprops=None if is_beside else LEADER,
        ).set_in_layout(False)


def _shared(boxes: Boxes, others: Boxes) -> np.ndarray:
    """Return the area that each box shares with the others."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.clip(high - low, 0, None).prod(-1).sum(-1)


def _crossed(point: np.ndarray, anchors: np.ndarray, labels: Boxes) -> np.ndarray:
    """Return the cost of lines from the point to the anchors that cross other labels."""
    way = point + np.linspace(0, 1, 8)[:, None, None] * (anchors - point)  # [8, anchors, 2]
    inside = (way[:, :, None] >= labels[:, :2]) & (way[:, :, None] <= labels[:, 2:])
    return 100.0 * inside.all(-1).any(0).sum(-1)
