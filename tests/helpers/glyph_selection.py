"""Choose the glyph classes; ``python tests/helpers/glyph_selection.py`` writes them again.

The choice is stored in ``catalogue.json``, so that another version of a font cannot silently change the
classes. A test compares the file with a fresh choice.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np

from firststep.data import glyphs
from firststep.data.glyphs.drawing import upright
from firststep.data.glyphs.outlines import FACES, has_character, outline
from firststep.utils.files import write_text

SCRIPTS = {
    # Latin, Greek and Cyrillic share shapes; Lisu, Coptic and Old Italic are built from theirs.
    "train": ("LATIN", "GREEK", "CYRILLIC", "COPTIC", "LISU", "OLD ITALIC", "ARMENIAN"),
    "val": ("GEORGIAN",),
    "test": ("HEBREW", "ARABIC", "LAO", "NKO", "TIFINAGH"),
}
"""Beginnings of Unicode names. Canadian syllabics are left out: they are rotations of one shape."""

SAME = 3.0
"""Pixels of unmatched ink, mean over the faces, up to which two characters look the same."""
ALIKE = 14.0
"""The same, up to which they are too similar to be two classes when samples are deformed."""

SIDE, SIZE = 32, 26
FEWEST_FACES = 2


def candidates(split: str) -> list[str]:
    """Return the letters of a split's scripts, without those that Unicode decomposes (é, ﬁ, 𝐀)."""
    letters = []
    for script in SCRIPTS[split]:
        for code in range(0x20, 0x20000):
            letter = chr(code)
            if (
                unicodedata.category(letter) in ("Lu", "Ll", "Lo")
                and unicodedata.name(letter, "").startswith(script + " ")
                and unicodedata.normalize("NFKD", letter) == letter
                and sum(has_character(letter, face) for face in FACES) >= FEWEST_FACES
            ):
                letters.append(letter)
    return letters


def unmatched_ink(letters: list[str]) -> np.ndarray:
    """Return [faces, letters, letters]: pixels of dark ink further than a pixel from the other's ink.

    It is the larger of both directions, and NaN if a face lacks one of the two letters. Unlike a correlation
    it penalises a missing dot or bar, and ignores the weight of strokes.
    """
    count = len(letters)
    unmatched = np.full((len(FACES), count, count), np.nan, dtype=np.float32)
    for number, face in enumerate(FACES):
        present = [
            i
            for i, letter in enumerate(letters)
            if has_character(letter, face) and len(outline(letter, face).points)
        ]
        images = np.stack([upright(letters[i], face, SIDE, SIZE) for i in present])
        dark = (images >= 170).reshape(len(present), -1).astype(np.float32)
        near = _spread(images >= 85).reshape(len(present), -1).astype(np.float32)
        apart = dark.sum(axis=1)[:, None] - dark @ near.T
        unmatched[number][np.ix_(present, present)] = np.maximum(apart, apart.T)
    return unmatched


def _spread(ink: np.ndarray) -> np.ndarray:
    """Return ink and its eight neighbours, for images [n, side, side]."""
    padded = np.pad(ink, ((0, 0), (1, 1), (1, 1)))
    rows = padded[:, 1:-1] | padded[:, :-2] | padded[:, 2:]
    spread: np.ndarray = rows[:, :, 1:-1] | rows[:, :, :-2] | rows[:, :, 2:]
    return spread


def choose() -> dict[str, list[dict[str, list[int]]]]:
    """Return {split: [{character: indices of its faces}, ...]}, one dictionary per class."""
    split_of = {letter: split for split in SCRIPTS for letter in candidates(split)}
    letters = list(split_of)
    by_face = unmatched_ink(letters)
    shared = (~np.isnan(by_face)).sum(axis=0)
    overall = np.where(shared > 0, np.nansum(by_face, axis=0) / np.maximum(shared, 1), np.inf)
    classes: list[list[int]] = []
    for letter in range(len(letters)):
        distances = overall[letter, [members[0] for members in classes]]
        nearest = int(distances.argmin()) if classes else -1
        if not classes or distances[nearest] > ALIKE:
            classes.append([letter])
        elif (
            distances[nearest] <= SAME and split_of[letters[classes[nearest][0]]] == split_of[letters[letter]]
        ):
            classes[nearest].append(letter)
        # Otherwise it is left out: indistinguishable within a split, a leak between two splits.
    catalogue: dict[str, list[dict[str, list[int]]]] = {split: [] for split in SCRIPTS}
    earlier: list[int] = []
    for members in classes:
        forms = {letters[m]: _own_faces(m, by_face, earlier) for m in members}
        forms = {letter: faces for letter, faces in forms.items() if faces}
        if sum(len(faces) for faces in forms.values()) >= FEWEST_FACES:
            catalogue[split_of[letters[members[0]]]].append(forms)
            earlier.extend(members)
    return catalogue


def _own_faces(letter: int, by_face: np.ndarray, earlier: list[int]) -> list[int]:
    """Return the faces in which a letter does not look like one of an earlier class (italic т is m)."""
    faces = []
    for number in range(len(FACES)):
        if np.isnan(by_face[number, letter, letter]):
            continue
        distances = by_face[number, letter, earlier]
        if not (distances <= SAME).any():
            faces.append(number)
    return faces


def write(path: Path) -> None:
    lines = ["{"]
    for split, classes in (catalogue := choose()).items():
        rows = [" " + json.dumps(forms, ensure_ascii=True) for forms in classes]
        lines += [f'"{split}": [', ",\n".join(rows), "]" if split == list(catalogue)[-1] else "],"]
    write_text(path, "\n".join([*lines, "}"]) + "\n")


if __name__ == "__main__":
    write(Path(glyphs.__file__).with_name("catalogue.json"))
