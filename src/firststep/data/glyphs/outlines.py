"""Read outlines of characters from the DejaVu fonts that matplotlib ships, as exact integers.

Outlines are used instead of a font renderer's bitmaps because hinting and anti-aliasing change between
versions of FreeType. The control points in the font file do not.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from fontTools.pens.recordingPen import DecomposingRecordingPen  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

from firststep.errors import FirststepError

FACES = tuple(
    f"DejaVu{family}{style}"
    for family, styles in {
        "Sans": ("", "-Bold", "-Oblique", "-BoldOblique"),
        "SansMono": ("", "-Bold", "-Oblique", "-BoldOblique"),
        "Serif": ("", "-Bold", "-Italic", "-BoldItalic"),
    }.items()
    for style in styles
)

# A quadratic curve becomes CHORDS straight lines. Points are stored multiplied by CHORDS², so that points on
# the curve are integers too and nothing is rounded before the random transform.
CHORDS = 8
POINT_SCALE = CHORDS * CHORDS


class Outline(NamedTuple):
    """All closed contours of a character in one array."""

    points: np.ndarray
    """int64 [points, 2]: x right, y up, in font units / POINT_SCALE"""
    following: np.ndarray
    """index of the next point of the same contour"""
    low: np.ndarray
    """[x, y] of the lower corner of the bounding box"""
    high: np.ndarray


def font_file(face: str) -> Path:
    """Return the file of a face in matplotlib's data folder."""
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"
    if not path.is_file():
        raise FirststepError(f"glyphs: font file {path} is missing; reinstall matplotlib, which ships it")
    return path


@cache
def fonts_digest() -> str:
    """Return a hash of the twelve font files, on which the pixels depend."""
    digest = hashlib.sha256()
    for face in FACES:
        digest.update(font_file(face).read_bytes())
    return digest.hexdigest()


@cache
def _font(face: str) -> tuple[dict[int, str], Any]:
    font = TTFont(font_file(face), lazy=True)
    return font.getBestCmap(), font.getGlyphSet()


def has_character(character: str, face: str) -> bool:
    return ord(character) in _font(face)[0]


@cache
def outline(character: str, face: str) -> Outline:
    """Return the contours of a character: curves flattened, components of composite glyphs placed."""
    names, glyphs = _font(face)
    if ord(character) not in names:
        raise FirststepError(
            f"glyphs: {face} has no character U+{ord(character):04X}; install matplotlib's own DejaVu fonts"
        )
    pen = DecomposingRecordingPen(glyphs)
    glyphs[names[ord(character)]].draw(pen)
    contours: list[list[tuple[int, int]]] = []
    points: list[tuple[int, int]] = []
    for command, arguments in pen.value:
        corners = [(round(x), round(y)) for x, y in (a for a in arguments if a is not None)]
        if command == "moveTo":
            points = [_scaled(corners[0])]
        elif command == "lineTo":
            points.append(_scaled(corners[0]))
        elif command == "qCurveTo":
            # Without any on-curve point, TrueType implies one half-way between the first and last.
            if arguments[-1] is None:
                corners.append(_middle(corners[-1], corners[0]))
                points = [_scaled(corners[-1])]
            points.extend(_flatten(points[-1], corners))
        else:  # closePath; DejaVu is TrueType: no cubic curves
            contours.append(points)
    following: list[int] = []
    for contour in contours:
        first = len(following)
        following += [*range(first + 1, first + len(contour)), first]
    flat = [point for contour in contours for point in contour]
    array = np.array(flat, dtype=np.int64).reshape(-1, 2)
    low, high = (array.min(axis=0), array.max(axis=0)) if flat else (np.zeros(2, int), np.zeros(2, int))
    return Outline(array, np.array(following, dtype=np.int64), low, high)


def _scaled(point: tuple[int, int]) -> tuple[int, int]:
    return point[0] * POINT_SCALE, point[1] * POINT_SCALE


def _middle(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return (a[0] + b[0]) // 2, (a[1] + b[1]) // 2


def _flatten(start: tuple[int, int], corners: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the chords of a TrueType spline, which implies an on-curve point between two off-curve ones."""
    chords: list[tuple[int, int]] = []
    x0, y0 = start[0] // POINT_SCALE, start[1] // POINT_SCALE
    *controls, last = corners
    for index, (x1, y1) in enumerate(controls):
        end = last if index == len(controls) - 1 else _middle((x1, y1), controls[index + 1])
        for k in range(1, CHORDS + 1):
            a, b, c = (CHORDS - k) ** 2, 2 * k * (CHORDS - k), k * k
            chords.append((a * x0 + b * x1 + c * end[0], a * y0 + b * y1 + c * end[1]))
        x0, y0 = end
    return chords
