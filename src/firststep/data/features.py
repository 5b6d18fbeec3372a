"""A dataset seen through a frozen network: its features, computed once, kept beside the cached pixels.

What never changes need not be computed in every step of every episode. A file of features is written whole
or not at all, is named by everything it depends on (the data's fingerprint, which has the preprocessing in
it, and the digest of the network's weights), and carries a digest that is compared whenever it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialise

from firststep.data.cache import ProgressCallback, only_builder
from firststep.data.dataset import Dataset, Split
from firststep.errors import FirststepError
from firststep.utils import replacing

FORMAT = "firststep-features-1"
BATCH = 64
"""Images between two reports of progress."""
_NAME = "features"


@dataclass(frozen=True)
class FrozenBody:
    """The part of a network that is never trained, as a function of arrays."""

    name: str
    """part of file names"""
    digest: str
    """of its weights"""
    features: int
    """how many it gives for each image"""
    compute: Callable[[np.ndarray], np.ndarray]
    """normalised images, float32 [n, C, H, W] → float32 [n, features]"""


@dataclass(frozen=True)
class FeatureSplit(Split):
    """A split of which a network gets features instead of images."""

    features: np.ndarray = field(kw_only=True, repr=False, compare=False)
    """float32 [N, d]"""

    def inputs(self, rows: np.ndarray) -> np.ndarray:
        """float32 [n, d]"""
        chosen: np.ndarray = self.features[rows]
        return chosen


@dataclass(frozen=True)
class FeatureDataset(Dataset):
    """A dataset whose splits are :class:`FeatureSplit`, each computed when it is first asked for."""

    body: FrozenBody = field(kw_only=True)
    progress: ProgressCallback | None = field(default=None, kw_only=True, repr=False, compare=False)

    @staticmethod
    def of(data: Dataset, body: FrozenBody, progress: ProgressCallback | None = None) -> FeatureDataset:
        return FeatureDataset(
            data.name,
            data.fingerprint,
            data.preprocessing,
            data.folder,
            data.record,
            body=body,
            progress=progress,
        )

    def split(self, name: str) -> FeatureSplit:
        images = super().split(name)
        path = self._path(name)
        shape = (len(images.images), self.body.features)
        features = _read(path, shape)
        if features is None:
            with only_builder(path.parent, path.name, self.progress):
                features = _read(path, shape)
                if features is None:
                    features = self._compute(images, shape)
                    _write(path, features)
        return FeatureSplit(**vars(images), features=features)

    def _path(self, split: str) -> Path:
        parts = [FORMAT, self.fingerprint, split, self.body.name, self.body.digest, self.body.features]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        return self.folder / f"{split}-{self.body.name}-{key}.safetensors"

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


def _read(path: Path, shape: tuple[int, int]) -> np.ndarray | None:
    """The features in a file; None if there is none or it is damaged: it is then made anew."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            digest = (file.metadata() or {}).get(FORMAT)
            features: np.ndarray = file.get_tensor(_NAME)
    except (SafetensorError, OSError, ValueError, TypeError):
        return None
    as_expected = features.shape == shape and features.dtype == np.float32
    return features if as_expected and digest == _digest(features) else None


def _write(path: Path, features: np.ndarray) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(serialise({_NAME: features}, {FORMAT: _digest(features)}))


def _digest(features: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(features).data).hexdigest()
