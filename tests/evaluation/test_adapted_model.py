"""Adapted classifiers: fixed batch statistics, folds, the choice of a classifier, calibration."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep import MetaLearner, build_backbone, maml
from firststep.errors import FirststepError
from firststep.evaluation import (
    ImageSupport,
    adapt_to_images,
    cross_validate,
    fit_temperature,
    logistic,
    nearest_means,
    ridge,
)
from firststep.evaluation._few_shot import affine
from firststep.evaluation._internal import frozen_network
from firststep.evaluation.cross_validation import stratified_folds


def learner(steps: int = 2) -> MetaLearner:
    return MetaLearner(
        build_backbone("conv4", ways=3, image_size=16, filters=4).double(), maml(0.1), steps=steps
    )


def support(counts: tuple[int, ...] = (3, 3, 3), noise: float = 0.5) -> ImageSupport:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    patterns = torch.randn(len(counts), 3, 16, 16, dtype=torch.float64, generator=generator)
    spread = torch.randn(len(labels), 3, 16, 16, dtype=torch.float64, generator=generator)
    return ImageSupport([f"c{i}" for i in range(len(counts))], patterns[labels] + noise * spread, labels)


def conv4_by_hand(params: dict[str, Tensor], images: Tensor, query: Tensor) -> Tensor:
    """Compute the logits of one query with the statistics of the images, layer by layer."""
    for block in range(4):
        weight, bias, gain, shift = (
            params[f"blocks.{block}.{name}"]
            for name in ("conv.weight", "conv.bias", "norm.weight", "norm.bias")
        )
        before = F.conv2d(images, weight, bias, padding=1)
        mean, variance = before.mean((0, 2, 3)), before.var((0, 2, 3), correction=0)

        def layer(
            x: Tensor,
            mean: Tensor = mean,
            variance: Tensor = variance,
            gain: Tensor = gain,
            shift: Tensor = shift,
        ) -> Tensor:
            scaled = (x - mean[:, None, None]) / (variance + 1e-5).sqrt()[:, None, None]
            return F.max_pool2d(F.relu(gain[:, None, None] * scaled + shift[:, None, None]), 2)

        images, query = layer(before), layer(F.conv2d(query, weight, bias, padding=1))
    return query.flatten(1) @ params["classifier.weight"].T + params["classifier.bias"]


def test_a_query_is_normalised_by_the_statistics_of_the_support_set() -> None:
    meta, known = learner(), support()
    adapted = adapt_to_images(meta, known, steps=2)
    query = support(noise=2.0).images[:1]
    params = meta.adapted_params(known.images, known.labels, steps=2)
    expected = conv4_by_hand(params, known.images, query)
    torch.testing.assert_close(adapted.probabilities(query), expected.softmax(1), rtol=1e-9, atol=1e-12)
    assert adapted.probabilities(torch.cat([query, query * 5]))[:1].equal(adapted.probabilities(query))


@pytest.mark.parametrize("track", [True, False])
def test_batch_norm_of_torch_is_fixed(track: bool) -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4, track_running_stats=track)
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.AvgPool2d(14), nn.Flatten(), nn.Linear(4, 3)
    )
    meta, known = MetaLearner(network.double(), maml(0.1), steps=1), support()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    frozen = frozen_network(meta, dict(network.named_parameters()), known.images)
    with torch.no_grad():
        torch.testing.assert_close(frozen(known.images), network.train()(known.images), rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(frozen(known.images)[:1], frozen(known.images[:1]), rtol=1e-9, atol=1e-12)
    assert set(before) == set(network.state_dict())


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(3, 3)

    def forward(self, images: Tensor) -> Tensor:
        features = images.mean((2, 3))
        logits: Tensor = self.classifier(features - features.mean(0))
        return logits


def test_a_network_that_mixes_the_images_of_a_batch_is_refused() -> None:
    meta = MetaLearner(Mixing().double(), maml(0.1), steps=1)
    with pytest.raises(FirststepError, match="Mixing gives different outputs for an image alone"):
        adapt_to_images(meta, support(), steps=1)


@pytest.mark.parametrize(
    ("counts", "folds"), [((3, 3, 3), 3), ((2, 7, 4), 2), ((9, 6, 12), 5), ((1, 8, 8), 0)]
)
def test_folds_hold_out_every_sample_once_and_no_whole_class(counts: tuple[int, ...], folds: int) -> None:
    labels = support(counts).labels
    masks = stratified_folds(labels)
    assert len(masks) == folds
    if masks:
        assert torch.stack(masks).sum(0).eq(1).all()
        for mask in masks:
            assert set(labels[~mask].tolist()) == set(labels[mask].tolist()) == {0, 1, 2}


def test_cross_validation_equals_adaptation_to_the_other_folds() -> None:
    meta, known = learner(), support((2, 4, 3))
    found = cross_validate(meta, known, steps=1)
    assert found is not None
    for held_out in stratified_folds(known.labels):
        rest = ImageSupport(known.classes, known.images[~held_out], known.labels[~held_out])
        for name in found.log_probabilities:
            fitted = adapt_to_images(meta, rest, steps=1, classifier=name)  # type: ignore[arg-type]
            expected = fitted.probabilities(known.images[held_out])
            torch.testing.assert_close(
                found.log_probabilities[name][held_out].exp(), expected, rtol=1e-5, atol=1e-7
            )
    chosen = cross_validate(meta, known)
    assert chosen is not None
    assert chosen.choice.steps == min(range(11), key=chosen.choice.losses.__getitem__)
    assert chosen.choice.losses[1] == pytest.approx(
        F.nll_loss(found.log_probabilities["steps"], known.labels).item()
    )


def test_auto_chooses_the_best_classifier_and_breaks_ties_for_the_adapted_network() -> None:
    meta = learner()
    # Tiny steps leave the network at its random classifier.
    hard = adapt_to_images(meta, support((5, 5, 5)), classifier="auto", rate_multiplier=1e-9)
    assert hard.validation is not None
    accuracies = {name: hard.validation.accuracy(name) for name in hard.validation.log_probabilities}
    assert accuracies[hard.classifier] == max(accuracies.values()) > accuracies["steps"]
    easy = adapt_to_images(meta, support((5, 5, 5), noise=0.0), classifier="auto")
    assert easy.validation is not None
    assert {easy.validation.accuracy(name) for name in accuracies} == {1.0}
    assert easy.classifier == "steps"
    single = adapt_to_images(meta, support((1, 5, 5)), classifier="auto")
    assert (single.classifier, single.choice.steps, single.validation) == ("steps", meta.steps, None)


@pytest.mark.parametrize("probe", [nearest_means, ridge, logistic])
def test_a_probe_is_affine_in_unit_features(probe) -> None:  # type: ignore[no-untyped-def]
    generator = torch.Generator().manual_seed(0)
    features, queries = torch.randn(2, 12, 7, generator=generator, dtype=torch.float64)
    predict = probe(features, torch.arange(3).repeat(4))
    weight, bias = affine(predict, 7)
    logits = F.normalize(queries, dim=1) @ weight.T + bias
    torch.testing.assert_close(logits.softmax(1), predict(queries), rtol=1e-7, atol=1e-9)


def test_the_temperature_has_the_lowest_held_out_loss() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (4000,), generator=generator)
    honest = 1.5 * F.one_hot(labels, 3) + torch.randn(4000, 3, generator=generator, dtype=torch.float64)
    posterior = (1.5 * honest).log_softmax(1)  # exact for this generative model
    assert fit_temperature(posterior, labels) == pytest.approx(1, abs=0.1)
    overconfident = (4 * 1.5 * honest).log_softmax(1)
    fitted = fit_temperature(overconfident, labels)
    assert fitted == pytest.approx(4, rel=0.1)
    assert fit_temperature(posterior[:19], labels[:19]) is None
    certain = (5.0 * F.one_hot(labels[:25], 3)).double().log_softmax(1)  # all correct
    temperature = fit_temperature(certain, labels[:25])
    assert temperature is not None
    assert 0.9 < (certain / temperature).softmax(1).amax() < 0.999
    certain[3] = torch.nan
    assert fit_temperature(certain, labels[:25]) is None
