"""Convert pictures between browser and network: a file as ``firststep adapt`` would read it, as PNG and back.

The browser keeps the pictures. The server makes them once, with the preprocessing of ``adapt``, and receives
them again with every request.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Iterable, Mapping
from typing import BinaryIO

import numpy as np
from PIL import Image

from firststep.data import Preprocessing, decode
from firststep.errors import FirststepError


def sees(preprocessing: Preprocessing) -> str:
    """Return a key of the preprocessing: two models with the same key see the same pixels of every file."""
    colours = "grey" if preprocessing.channels == 1 else "rgb"
    return f"{preprocessing.image_size}-{colours}{'-ink' if preprocessing.ink else ''}"


def distinct(all_preprocessing: Iterable[Preprocessing]) -> dict[str, Preprocessing]:
    return {sees(each): each for each in all_preprocessing}


def seen(file: BinaryIO, name: str, by: Mapping[str, Preprocessing], largest: int) -> dict[str, str]:
    """Preprocess a file with each preprocessing; raise ``FirststepError`` if it is not a picture."""
    found = {}
    for key, preprocessing in by.items():
        file.seek(0)
        found[key] = encoded(decode(file, name, preprocessing, largest=largest))
    return found


def reseen(pixels: np.ndarray, by: Mapping[str, Preprocessing], of: Preprocessing) -> dict[str, str]:
    """Preprocess a picture that has already been through the preprocessing ``of``."""
    own = sees(of)
    return {
        key: encoded(pixels if key == own else each.pixels(Image.fromarray(_flat(pixels))))
        for key, each in by.items()
    }


def encoded(pixels: np.ndarray) -> str:
    """Encode uint8 [H, W, C] as a base64 PNG, without loss."""
    stream = io.BytesIO()
    Image.fromarray(_flat(pixels)).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode("ascii")


def decoded(text: str, preprocessing: Preprocessing, what: str) -> np.ndarray:
    """Decode the result of :func:`encoded` to uint8 [H, W, C]; ``what`` names it in errors."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FirststepError(f"{what} is not base64") from None
    size = preprocessing.image_size
    array = decode(io.BytesIO(content), what, preprocessing, largest=size * size)
    with Image.open(io.BytesIO(content)) as image:
        is_ours = image.format == "PNG" and image.mode == preprocessing.mode and image.size == (size, size)
    if not is_ours:
        raise FirststepError(
            f"{what} is not a PNG of {size} x {size} pixels in the mode {preprocessing.mode}"
        )
    return array


def _flat(pixels: np.ndarray) -> np.ndarray:
    return pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
