"""Features of image files by a network that adaptation does not change, each computed once and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import torch
from torch import Tensor, nn

from firststep.backbones import frozen_body
from firststep.data import FeatureStore, Preprocessing, user_cache
from firststep.deployment.image_classifier import ImageClassifier
from firststep.deployment.loading import Answers, one_thread
from firststep.evaluation._internal import frozen_network, logits_of
from firststep.meta_learner import MetaLearner, replace_module
from firststep.utils import available_cores

_LIBRARIES = ("firststep", "torch", "timm", "transformers")
"""Packages whose code decides the features besides the weights."""


class FixedFeatures:
    """Pixels → features, one image at a time: rounding depends on the size of a batch.

    Args:
        meta: learner whose features are fixed.
        preprocessing: how its images are normalised.
        kept: whether features are read from the user's cache folder and written there.
    """

    def __init__(self, meta: MetaLearner, preprocessing: Preprocessing, kept: bool = True) -> None:
        size = preprocessing.image_size
        blank = torch.zeros(1, preprocessing.channels, size, size, device=meta.device)
        network = frozen_network(meta, meta.functional.params(), blank)
        replace_module(network, meta.functional.classifier, nn.Identity())
        self._classifier = ImageClassifier(network, preprocessing).to(meta.device).eval()
        self._device = meta.device
        self._store = (
            FeatureStore(user_cache() / "features", _identity(meta, self._classifier)) if kept else None
        )

    def __call__(self, pixels: np.ndarray, progress: Callable[[str, int, int], None] | None = None) -> Tensor:
        """Return features [n, d] of images, uint8 [n, H, W, C]."""
        found: list[np.ndarray] = []
        with one_thread(), ThreadPoolExecutor(available_cores()) as pool:
            for features in pool.map(self._of_one, pixels):
                found.append(features)
                if progress is not None:
                    progress("computing features", len(found), len(pixels))
        return torch.from_numpy(np.stack(found)).to(self._device)

    def _of_one(self, image: np.ndarray) -> np.ndarray:
        stored = None if self._store is None else self._store.read(image)
        if stored is not None:
            return stored
        with torch.no_grad():
            inputs = self._classifier.normalised(torch.from_numpy(image[None].copy()).to(self._device))
            found: np.ndarray = logits_of(self._classifier.network, inputs)[0].cpu().numpy()
        if self._store is not None:
            self._store.write(image, found)
        return found


@torch.no_grad()
def answers_from_features(classifier: ImageClassifier, path: str, features: Tensor) -> Answers:
    """Return what a classifier on the CPU answers for images with these features.

    Args:
        classifier: its last layer is that of the adapted model.
        path: of that layer in the network.
        features: [n, d]
    """
    last = classifier.network.get_submodule(path)
    parts = []
    for row in features.cpu().split(1):
        outputs = classifier.answers(last(row))
        first, none = outputs if isinstance(outputs, tuple) else (outputs, None)
        parts.append(Answers(first.numpy(), None if none is None else none.numpy()))
    return Answers.joined(parts, parts[0].probabilities.shape[1])


def _identity(meta: MetaLearner, classifier: ImageClassifier) -> str:
    """Return a hash of all that decides the features of given pixels."""
    found = hashlib.sha256(repr([(name, _version(name)) for name in _LIBRARIES]).encode())
    body = frozen_body(meta.network)
    found.update(f"{type(meta.network).__name__} {getattr(body, 'digest', '')} {meta.device.type}".encode())
    for name, value in sorted(classifier.state_dict().items()):
        found.update(f"{name} {list(value.shape)} {value.dtype}".encode())
        found.update(
            value.cpu().contiguous().view(torch.uint8).numpy().data if value.dim() else repr(value).encode()
        )
    return found.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
