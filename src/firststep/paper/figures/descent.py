"""Gradient descent on a quadratic in two dimensions, at a high and a low condition number."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from firststep.plotting import BLUE, VERMILION

DESCENT_STEPS = 10
RATE = 0.5
ANGLE = np.deg2rad(25)  # of the valley, so that neither axis is special
START = (1.0, 0.3)  # along the flat and the steep direction
Eigenvalues = tuple[float, float]
"""Eigenvalues of the Hessian in the flat and the steep direction, both below 2 / RATE for stability."""


def valley(eigenvalues: Eigenvalues) -> np.ndarray:
    """Return the Hessian A of f(x) = ½ xᵀ A x."""
    rotation = _rotation()
    return rotation @ np.diag(eigenvalues) @ rotation.T


def descend(hessian: np.ndarray, steps: int = DESCENT_STEPS) -> np.ndarray:
    """Return the points x(0) … x(steps) of x ← x - η A x; the start turns with the valley."""
    points = [_rotation() @ np.array(START)]
    for _ in range(steps):
        points.append(points[-1] - RATE * hessian @ points[-1])
    return np.stack(points)


def _rotation() -> np.ndarray:
    return np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])


def draw_descent(axes: Axes, eigenvalues: Eigenvalues, is_good: bool) -> None:
    """Draw the contours, the path, and its remaining distance to the minimum."""
    hessian = valley(eigenvalues)
    path = descend(hessian)
    x, y = np.meshgrid(np.linspace(-1.15, 1.15, 150), np.linspace(-0.85, 0.85, 120))
    height = 0.5 * (hessian[0, 0] * x**2 + 2 * hessian[0, 1] * x * y + hessian[1, 1] * y**2)
    # The square root spaces contour lines equally along straight lines to the minimum.
    axes.contour(x, y, np.sqrt(height), levels=9, colors="#999999", linewidths=0.6)
    colour, marker = (BLUE, "o") if is_good else (VERMILION, "s")
    axes.plot(path[:, 0], path[:, 1], color=colour, marker=marker, markersize=3.5, linewidth=1.3)
    axes.plot(0, 0, marker="+", color="black", markersize=8, linestyle="none")
    left = np.linalg.norm(path[-1]) / np.linalg.norm(path[0])
    kappa = eigenvalues[1] / eigenvalues[0]
    axes.set_title(f"κ = {kappa:.3g}: {100 * left:.2g} % of the way\nis left after {DESCENT_STEPS} steps")
    axes.set_aspect("equal")
    axes.set(xlabel="parameter 1", ylabel="parameter 2", xticks=[-1, 0, 1], yticks=[-0.5, 0, 0.5])
    axes.grid(visible=False)
