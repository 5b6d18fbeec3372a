"""Random changes of training images, drawn from the seed of the episode."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageEnhance

from firststep.data.draws import Draws
from firststep.errors import FirststepError


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Random resized crop, colour jitter and horizontal flip, with the usual strengths.

    Examples:
        >>> from firststep.data import Augmentation
        >>> unflipped = Augmentation(flip=False)
        >>> augmented = Episodes(dataset.split("train"), shots=1, queries=1, augment=unflipped)
        >>> augmented[0].support_x.shape
        (5, 1, 16, 16)
    """

    smallest_crop: float = 0.4
    """smallest part of the area that a crop keeps; 1 turns cropping off"""
    aspect: float = 4 / 3
    """largest ratio of the longer to the shorter side of a crop"""
    jitter: float = 0.4
    """largest relative change of brightness, contrast and (RGB) saturation; 0 turns it off"""
    flip: bool = True
    """whether to mirror every second image; turn it off if left and right matter, as in characters"""

    def __post_init__(self) -> None:
        if not (0 < self.smallest_crop <= 1 and self.aspect >= 1 and 0 <= self.jitter < 1):
            raise FirststepError(
                "augmentation needs 0 < smallest_crop <= 1, aspect >= 1 and 0 <= jitter < 1, not "
                f"{self.smallest_crop}, {self.aspect} and {self.jitter}"
            )

    def __call__(self, images: np.ndarray, draws: Draws) -> np.ndarray:
        """Return changed images: uint8 [n, H, W, C] → uint8 [n, H, W, C]."""
        return np.stack([self._changed(image, draws) for image in images])

    def _changed(self, image: np.ndarray, draws: Draws) -> np.ndarray:
        height, width, channels = image.shape
        # The number of draws is fixed, so that turning one change off leaves the others alone.
        area, shape, left, top, mirror, *factors = draws.uniform(8).tolist()
        changed = Image.fromarray(image if channels == 3 else image[:, :, 0])
        if self.smallest_crop < 1:
            scale = math.sqrt(self.smallest_crop + (1 - self.smallest_crop) * area)
            stretch = self.aspect ** (shape - 0.5)
            w, h = min(1.0, scale * stretch) * width, min(1.0, scale / stretch) * height
            box = (left * (width - w), top * (height - h))
            changed = changed.resize(
                (width, height), Image.Resampling.BILINEAR, box=(*box, box[0] + w, box[1] + h)
            )
        if self.flip and mirror < 0.5:
            changed = changed.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if self.jitter:
            changes = [ImageEnhance.Brightness, ImageEnhance.Contrast]
            if channels == 3:
                changes.append(ImageEnhance.Color)
            for change, factor in zip(changes, factors, strict=False):
                changed = change(changed).enhance(1 + self.jitter * (2 * factor - 1))
        return np.array(changed, dtype=np.uint8).reshape(height, width, channels)
