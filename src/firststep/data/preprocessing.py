"""The way from any image to the pixels that a model sees, stored with every result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageOps

from firststep.data.pictures import LARGEST_PICTURE, eight_bit, plain, read_picture
from firststep.errors import FirststepError, unknown

VERSION = 1
"""Raise it when the same image gives other pixels, to renew the caches."""

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GREY_MEAN, GREY_STD = (0.449,), (0.226,)
# Ink is 1 and paper 0, so that the zero padding of a convolution is paper.
INK_MEAN, INK_STD = (0.0,), (1.0,)
# (pixel - 127) / 128, as Google trained EfficientNet-Lite
SYMMETRIC_MEAN, SYMMETRIC_STD = 127 / 255, 128 / 255

NORMALISATIONS = ("usual", "symmetric")
"""``usual``: ImageNet's mean and standard deviation, none for drawings. ``symmetric``: (pixel - 127) / 128.

Examples:
    >>> from firststep.data import NORMALISATIONS
    >>> NORMALISATIONS
    ('usual', 'symmetric')
"""

LARGEST_SIDE = 4096


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """The conversion of images to arrays: upright, RGB or grey, shorter side resized, centre cropped.

    Examples:
        >>> from firststep.data import Preprocessing
        >>> pixels = np.full((1, 8, 8, 3), 127, dtype=np.uint8)
        >>> Preprocessing(image_size=8, normalisation="symmetric").normalise(pixels).shape
        (1, 3, 8, 8)
    """

    image_size: int
    """side of the square images in pixels"""
    channels: int = 3
    """3 for RGB, 1 for grey"""
    ink: bool = False
    """whether images are drawings: bright ink on black paper; those with a light border are inverted"""
    normalisation: str = "usual"
    """one of :data:`NORMALISATIONS`, as the pretrained weights of a network expect"""

    def __post_init__(self) -> None:
        if not 4 <= self.image_size <= LARGEST_SIDE:
            raise FirststepError(f"image size {self.image_size} is not in 4..{LARGEST_SIDE}")
        if self.channels not in (1, 3) or (self.ink and self.channels != 1):
            raise FirststepError(f"channels must be 1 (grey) or 3 (RGB), not {self.channels}")
        if self.normalisation not in NORMALISATIONS:
            raise unknown("normalisation", self.normalisation, NORMALISATIONS)

    @property
    def mode(self) -> str:
        """Mode of such images in Pillow."""
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
        """Return plain values for fingerprints and result files; ``Preprocessing(**fields)`` reads them back.

        The usual normalisation is left out, so that fingerprints from before there was another stay the same.
        """
        fields = asdict(self)
        if self.normalisation == "usual":
            del fields["normalisation"]
        return fields

    def pixels(self, image: Image.Image) -> np.ndarray:
        """Return any image as uint8 [image_size, image_size, channels]."""
        return self.fitted(plain(eight_bit(ImageOps.exif_transpose(image)), self.mode))

    def fitted(self, image: Image.Image) -> np.ndarray:
        """Return an upright image in the mode ``self.mode`` as uint8 [image_size, image_size, channels]."""
        size = (self.image_size, self.image_size)
        if image.size != size:
            image = ImageOps.fit(image, size, method=Image.Resampling.BILINEAR)
        array = np.array(image, dtype=np.uint8).reshape(*size, self.channels)
        if self.ink and _border_is_light(array):
            array = 255 - array
        return array

    def normalise(self, pixels: np.ndarray) -> np.ndarray:
        """Return (pixel / 255 - mean) / std: uint8 [..., H, W, C] → float32 [..., C, H, W]."""
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
    """Return the pixels of an image file (path or binary stream).

    Messages call it ``name``. More than ``largest`` pixels are refused before they are decoded.
    """
    return preprocessing.fitted(read_picture(file, name, preprocessing.mode, largest))


def load_image(path: Path | str, image_size: int, channels: int = 3, *, ink: bool = False) -> np.ndarray:
    """Return an image file as a dataset would hold it: uint8 [image_size, image_size, channels].

    ``Preprocessing.normalise`` turns it into the input of a model. ``dataset.preprocessing`` has the settings
    of the data that a model was trained on.

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
