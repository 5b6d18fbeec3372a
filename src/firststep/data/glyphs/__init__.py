"""The images of glyphs: characters drawn from the fonts that matplotlib ships."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from firststep.data.draws import Draws
from firststep.data.glyphs.drawing import sample
from firststep.data.glyphs.outlines import FACES, fonts_digest
from firststep.data.preprocessing import Preprocessing
from firststep.data.source import Source

VERSION = 1
"""Part of the identity of every sample's draws and of the cache's name; raise it when the drawing changes."""

IMAGES_PER_CLASS = 40

Form = tuple[str, str]
"""(character, face)"""


@cache
def glyph_classes() -> dict[str, dict[str, tuple[Form, ...]]]:
    """Return {split: {class: forms}}. A class is named after its first character, such as "U+0041 A"."""
    catalogue = json.loads(resources.files(__name__).joinpath("catalogue.json").read_text("ascii"))
    return {
        split: {
            _class_name(next(iter(forms))): tuple(
                (character, FACES[face]) for character, faces in forms.items() for face in faces
            )
            for forms in classes
        }
        for split, classes in catalogue.items()
    }


def _class_name(character: str) -> str:
    return f"U+{ord(character):04X} {character}"


@dataclass(frozen=True)
class GlyphImages:
    """The samples of one class, drawn on demand from the seed and the class alone."""

    class_name: str
    forms: tuple[Form, ...]
    seed: int

    def __len__(self) -> int:
        return IMAGES_PER_CLASS

    def name(self, index: int) -> str:
        return f"sample {index} of {self.class_name}"

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        draws = Draws("glyph", VERSION, self.seed, self.class_name, index)
        return sample(draws, self.forms, preprocessing.image_size)[:, :, None]


def glyph_source(seed: int) -> Source:
    return Source(
        layout=f"drawn from the DejaVu fonts of matplotlib, seed {seed}",
        splits={
            split: {name: GlyphImages(name, forms, seed) for name, forms in classes.items()}
            for split, classes in glyph_classes().items()
        },
        parallel=False,
    )


def glyph_identity(seed: int) -> list[str]:
    """Return everything that the pixels depend on, for the name of the cache."""
    return [f"glyphs {VERSION}", f"seed {seed}", f"fonts {fonts_digest()}"]
