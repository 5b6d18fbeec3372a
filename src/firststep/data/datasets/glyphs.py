"""glyphs: characters drawn from the fonts of matplotlib. The drawing is in ``firststep.data.glyphs``."""

from __future__ import annotations

from firststep.data.dataset_info import DatasetInfo, GeneratedImages, register_dataset
from firststep.data.source import Source
from firststep.utils.extras import extra


def _source(seed: int) -> Source:
    with extra("cli", "glyphs"):
        from firststep.data.glyphs import glyph_source  # imports matplotlib and fontTools

    return glyph_source(seed)


def _identity(seed: int) -> list[str]:
    with extra("cli", "glyphs"):
        from firststep.data.glyphs import glyph_identity

    return glyph_identity(seed)


register_dataset(
    DatasetInfo(
        name="glyphs",
        about="characters of 13 scripts drawn from matplotlib's fonts, 40 a class; needs no files",
        splits="456 / 81 / 145, split by script",
        home="embedded: drawn on first use",
        licence="fonts: DejaVu (free)",
        image_size=32,
        channels=1,
        ink=True,
        generated=GeneratedImages(source=_source, identity=_identity),
        options=("seed",),
    )
)
