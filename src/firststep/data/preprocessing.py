"""From any image to the pixels a model sees: one fixed recipe, written down with every result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageOps

from firststep.data.pictures import LARGEST_PICTURE, eight_bit, plain, read_picture
from firststep.errors import FirststepError, unknown

VERSION = 1
"""Raised when the same image would come out with other pixels: caches are then made again."""

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GREY_MEAN, GREY_STD = (0.449,), (0.226,)
# Ink is 1 and paper 0, as it is: the zeros that a convolution pads with are then paper.
INK_MEAN, INK_STD = (0.0,), (1.0,)
# (pixel - 127) / 128: how Google's EfficientNet-Lite were trained
SYMMETRIC_MEAN, SYMMETRIC_STD = 127 / 255, 128 / 255

NORMALISATIONS = ("usual", "symmetric")
"""``usual``: by ImageNet's mean and deviation, drawings as they are. ``symmetric``: (pixel - 127) / 128.

Examples:
    >>> from firststep.data import NORMALISATIONS
    >>> NORMALISATIONS
    ('usual', 'symmetric')
"""

LARGEST_SIDE = 4096


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How images become arrays: turned upright, made RGB or grey, shorter side fitted, centre cut.

    Examples:
        >>> from firststep.data import Preprocessing
        >>> pixels = np.full((1, 8, 8, 3), 127, dtype=np.uint8)
        >>> Preprocessing(image_size=8, normalisation="symmetric").normalise(pixels).shape
        (1, 3, 8, 8)
    """

    image_size: int
    """side of the square images, in pixels"""
    channels: int = 3
    """3 for RGB, 1 for grey"""
    ink: bool = False
    """drawings: bright ink on black paper; an image with a light border is turned into that"""
    normalisation: str = "usual"
    """of :data:`NORMALISATIONS`: what a network's pretrained weights expect"""

    def __post_init__(self) -> None:
        if not 4 <= self.image_size <= LARGEST_SIDE:
            raise FirststepError(f"image size {self.image_size} is not in 4..{LARGEST_SIDE}")
        if self.channels not in (1, 3) or (self.ink and self.channels != 1):
            raise FirststepError(f"channels must be 1 (grey) or 3 (RGB), not {self.channels}")
        if self.normalisation not in NORMALISATIONS:
            raise unknown("normalisation", self.normalisation, NORMALISATIONS)

    @property
    def mode(self) -> str:
        """Pillow's name for such images"""
        return "L" if self.channels == 1 else "RGB"

    @property
    def mean(self) -> tuple[float, ...]:
        if self.normalisation == "symmetric":
            return (SYMMETRIC_MEAN,) * self.channels
        return INK_MEAN if self.ink else (GREY_MEAN if self.channels == 1 else IMAGENET_MEAN)

    @property
    def std(self) -> tuple[float, ...]:
        if self.normalisation == "symmetric":
            return (SYMMETRIC_STD,) * self.channels
        return INK_STD if self.ink else (GREY_STD if self.channels == 1 else IMAGENET_STD)

    def describe(self) -> dict[str, Any]:
        """Plain values for fingerprints and result files; ``Preprocessing(**fields)`` reads them back.

        The usual normalisation is not among them: fingerprints from before there was another stay the same.
        """
        fields = asdict(self)
        if self.normalisation == "usual":
            del fields["normalisation"]
        return fields

    def pixels(self, image: Image.Image) -> np.ndarray:
        """Any image as uint8 [image_size, image_size, channels]."""
        return self.fitted(plain(eight_bit(ImageOps.exif_transpose(image)), self.mode))

    def fitted(self, image: Image.Image) -> np.ndarray:
        """The same of an upright image in the mode that ``mode`` names."""
        size = (self.image_size, self.image_size)
        if image.size != size:
            image = ImageOps.fit(image, size, method=Image.Resampling.BILINEAR)
        array = np.array(image, dtype=np.uint8).reshape(*size, self.channels)
        if self.ink and _border_is_light(array):
            array = 255 - array
        return array

    def normalise(self, pixels: np.ndarray) -> np.ndarray:
        """uint8 [..., H, W, C] to float32 [..., C, H, W]: (pixel / 255 - mean) / std."""
        scale = np.array([1 / (255 * s) for s in self.std], dtype=np.float32)
        normalised = np.moveaxis(pixels, -1, -3).astype(np.float32, order="C")
        normalised *= scale[:, None, None]
        if any(self.mean):
            offset = [-m / s for m, s in zip(self.mean, self.std, strict=True)]
            normalised += np.array(offset, dtype=np.float32)[:, None, None]
        return normalised


def _border_is_light(array: np.ndarray) -> bool:
    border = np.concatenate([array[0], array[-1], array[:, 0], array[:, -1]])
    return bool(2 * np.count_nonzero(border > 127) > border.size)


def decode(
    file: Path | str | BinaryIO, name: str, preprocessing: Preprocessing, *, largest: int = LARGEST_PICTURE
) -> np.ndarray:
    """Pixels of an image file (path or binary stream).

    ``name`` is what an error calls it; more than ``largest`` pixels are refused before they are decoded.
    """
    return preprocessing.fitted(read_picture(file, name, preprocessing.mode, largest))


def load_image(path: Path | str, image_size: int, channels: int = 3, *, ink: bool = False) -> np.ndarray:
    """Any image file as a dataset would hold it: uint8 [image_size, image_size, channels].

    ``Preprocessing.normalise`` makes it a model's input; ``dataset.preprocessing`` has the same
    settings as the data a model was trained on.

    Examples:
        >>> from PIL import Image
        >>> from firststep.data import load_image
        >>> Image.new("RGB", (40, 30)).save("x.png")
        >>> load_image("x.png", image_size=16).shape
        (16, 16, 3)
    """
    preprocessing = Preprocessing(image_size=image_size, channels=channels, ink=ink)
    if Path(path).is_dir():
        raise FirststepError(f"{path} is a folder, not an image")
    return decode(Path(path), str(path), preprocessing)
