"""Features of a frozen network for a dataset, computed once and stored beside the cached pixels.

A file of features is written whole or not at all. Its name depends on everything the features depend on: the
fingerprint of the data, which covers the preprocessing, and the digest of the network's weights. A digest in
the file is compared whenever it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialise

from firststep.data.cache import ProgressCallback, only_builder
from firststep.data.dataset import CachedDataset, Dataset, Split
from firststep.errors import FirststepError
from firststep.utils import replacing

FORMAT = "firststep-features-1"
BATCH = 64
"""Number of images between two reports of progress."""
_NAME = "features"


@dataclass(frozen=True)
class FrozenBody:
    """The part of a network that is never trained, as a function of arrays."""

    name: str
    """part of file names"""
    digest: str
    """hash of the weights"""
    features: int
    """number of features per image"""
    compute: Callable[[np.ndarray], np.ndarray]
    """normalised images, float32 [n, C, H, W] → float32 [n, features]"""


class FeatureSplit(Split):
    """A split whose samples reach the network as features instead of images."""

    features: np.ndarray
    """float32 [N, d]"""

    def __init__(self, images: Split, features: np.ndarray) -> None:
        super().__init__(
            images.dataset,
            images.name,
            images.classes,
            images.counts,
            images.images,
            images.preprocessing,
            images.checks,
        )
        self.features = features

    def inputs(self, rows: np.ndarray) -> np.ndarray:
        """Return float32 [n, d]."""
        chosen: np.ndarray = self.features[rows]
        return chosen


class FeatureDataset(Dataset):
    """A dataset whose splits are :class:`FeatureSplit`, each computed when it is first opened."""

    def __init__(self, data: Dataset, body: FrozenBody, progress: ProgressCallback | None = None) -> None:
        super().__init__(data.name, data.fingerprint, data.preprocessing, data.splits)
        self.data, self.body, self.progress = data, body, progress
        self._in_memory: dict[str, FeatureSplit] = {}

    def _open(self, split: str) -> FeatureSplit:
        images = self.data.split(split)
        shape = (len(images.images), self.body.features)
        if not isinstance(self.data, CachedDataset):
            if split not in self._in_memory:
                self._in_memory[split] = FeatureSplit(images, self._compute(images, shape))
            return self._in_memory[split]
        path = self.data.folder / self._file_name(split)
        features = _read(path, shape)
        if features is None:
            with only_builder(path.parent, path.name, self.progress):
                features = _read(path, shape)
                if features is None:
                    features = self._compute(images, shape)
                    _write(path, features)
        return FeatureSplit(images, features)

    def _file_name(self, split: str) -> str:
        parts = [FORMAT, self.fingerprint, split, self.body.name, self.body.digest, self.body.features]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        return f"{split}-{self.body.name}-{key}.safetensors"

    def _compute(self, split: Split, shape: tuple[int, int]) -> np.ndarray:
        features = np.empty(shape, dtype=np.float32)
        for start in range(0, len(features), BATCH):
            rows = np.arange(start, min(start + BATCH, len(features)))
            features[rows] = self.body.compute(split.inputs(rows))
            if self.progress:
                self.progress(f"{self.body.name} on {split.name}", int(rows[-1]) + 1, len(features))
        if not np.isfinite(features).all():
            raise FirststepError(f"{self.body.name} gives features that are not finite on {split.name}")
        return features


class FeatureStore:
    """Features of single images, one file per content: the key is a hash of the pixels and of the network."""

    def __init__(self, folder: Path, network: str) -> None:
        self.folder, self.network = folder, network

    def read(self, pixels: np.ndarray) -> np.ndarray | None:
        """Return the features of an image, or None if they have to be computed."""
        return _read(self._path(pixels))

    def write(self, pixels: np.ndarray, features: np.ndarray) -> None:
        """Store features; leave it out where the folder cannot be written."""
        path = self._path(pixels)
        with suppress(FirststepError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, features)

    def _path(self, pixels: np.ndarray) -> Path:
        key = hashlib.sha256(json.dumps([FORMAT, self.network, pixels.shape, str(pixels.dtype)]).encode())
        key.update(np.ascontiguousarray(pixels).data)
        name = key.hexdigest()
        return self.folder / name[:2] / f"{name[2:40]}.safetensors"


def _read(path: Path, shape: tuple[int, ...] | None = None) -> np.ndarray | None:
    """Return the features in a file, or None if it is missing or damaged and has to be made."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            digest = (file.metadata() or {}).get(FORMAT)
            features: np.ndarray = file.get_tensor(_NAME)
    except (SafetensorError, OSError, ValueError, TypeError):
        return None
    as_expected = shape in (None, features.shape) and features.dtype == np.float32
    return features if as_expected and digest == _digest(features) else None


def _write(path: Path, features: np.ndarray) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(serialise({_NAME: features}, {FORMAT: _digest(features)}))


def _digest(features: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(features).data).hexdigest()
