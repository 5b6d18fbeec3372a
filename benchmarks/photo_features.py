"""Features of CIFAR photographs for the benchmarks, computed once per network, split and view."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from firststep.backbones import BACKBONES
from firststep.data import Preprocessing, entries
from firststep.data.official_splits import shipped_split

IMAGES = 50
"""Images per class: the first of CIFAR-100's own test images."""
BATCH = 16
VIEWS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "whole": lambda image: image,
    "flip": ImageOps.mirror,
    "zoom": lambda image: image.crop([round(share * image.width) for share in (0.1, 0.1, 0.9, 0.9)]),
}
"""Views of a square photograph by name; ``zoom`` is the middle 80 % of each side."""


@dataclass(frozen=True)
class PhotoNetwork:
    """A network with fixed features and the size of its images."""

    backbone: str
    size: int

    @property
    def name(self) -> str:
        return f"{self.backbone} {self.size} px"


BEFORE, SMALL, NOW = (
    PhotoNetwork("efficientnet-lite0", 128),
    PhotoNetwork("efficientnet-lite0", 224),
    PhotoNetwork("efficientnet-lite2", 260),
)
BACKGROUND = {SMALL: "builtin:photos-small", NOW: "builtin:photos"}
"""Models whose background features belong to a network."""


@dataclass(frozen=True)
class Photos:
    """Folders with photographs, and a folder for their features."""

    data: Path
    cache: Path

    def classes(self, split: str) -> list[str]:
        """Return the classes of a CIFAR-FS split."""
        return list(shipped_split("cifar_fs")[split])

    def features(self, network: PhotoNetwork, split: str, view: str = "whole") -> np.ndarray:
        """Return features [classes, IMAGES, d] of a split of CIFAR-FS."""
        files = [file for name in self.classes(split) for file in entries(self.data / "test" / name)[:IMAGES]]
        make = partial(_opened, view=VIEWS[view])
        found = self.of(network, [partial(make, file) for file in files], f"{split}-{view}")
        return found.reshape(-1, IMAGES, found.shape[1])

    def of(self, network: PhotoNetwork, images: Sequence[Callable[[], Image.Image]], what: str) -> np.ndarray:
        """Return features [n, d] of images; ``what`` names their file in the cache."""
        key = hashlib.sha256(f"{network.name} {what} {len(images)} {self.data}".encode()).hexdigest()[:12]
        path = self.cache / f"{what}-{network.backbone}-{network.size}-{key}.npy"
        if path.is_file():
            stored: np.ndarray = np.load(path)
            return stored
        backbone = BACKBONES[network.backbone]
        assert backbone.body is not None
        body = backbone.body()
        recipe = Preprocessing(image_size=network.size, normalisation=backbone.normalisation)
        begun, parts = time.process_time(), []
        for start in range(0, len(images), BATCH):
            pixels = np.stack([recipe.pixels(make()) for make in images[start : start + BATCH]])
            parts.append(body(torch.from_numpy(recipe.normalise(pixels))).numpy())
        found = np.concatenate(parts)
        self.cache.mkdir(parents=True, exist_ok=True)
        np.save(path, found)
        seconds = time.process_time() - begun
        print(f"{what}, {network.name}: {1000 * seconds / len(images):.0f} ms CPU per image", flush=True)
        return found


def _opened(file: Path, view: Callable[[Image.Image], Image.Image]) -> Image.Image:
    with Image.open(file) as image:
        return view(image.convert("RGB"))
