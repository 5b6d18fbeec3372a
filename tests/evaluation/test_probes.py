"""The probes against their formulas, written out densely."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.errors import FirststepError
from firststep.evaluation import logistic, nearest_means, ridge

PROBES = [nearest_means, ridge, logistic]


def _data(classes: int = 3, samples: int = 12, size: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(samples) % classes
    labels[-1] = 0  # unequal classes
    centres = 2 * torch.randn(classes, size, generator=generator, dtype=torch.float64)
    features = centres[labels] + torch.randn(samples, size, generator=generator, dtype=torch.float64)
    queries = torch.randn(7, size, generator=generator, dtype=torch.float64)
    return features, labels, queries


def test_nearest_means_is_a_softmax_of_squared_distances() -> None:
    features, labels, queries = _data()
    found = nearest_means(features, labels, temperature=0.3)(queries)
    unit = features / features.norm(dim=1, keepdim=True)
    scores = torch.empty(7, 3, dtype=torch.float64)
    for i, query in enumerate(queries / queries.norm(dim=1, keepdim=True)):
        for label in range(3):
            scores[i, label] = -((query - unit[labels == label].mean(0)) ** 2).sum() / 0.6
    torch.testing.assert_close(found, scores.softmax(1))


def test_ridge_solves_its_normal_equations() -> None:
    features, labels, queries = _data()
    found = ridge(features, labels, strength=0.4, temperature=0.2)(queries)
    ones = torch.ones(12, 1, dtype=torch.float64)
    design = torch.cat([F.normalize(features), ones], 1)
    penalty = 0.4 * torch.eye(41, dtype=torch.float64)
    penalty[-1, -1] = 0
    solution = torch.linalg.solve(design.T @ design + penalty, design.T @ F.one_hot(labels).double())
    scores = torch.cat([F.normalize(queries), ones[:7]], 1) @ solution
    torch.testing.assert_close(found, (scores / 0.2).softmax(1))


def test_logistic_is_where_the_full_gradient_vanishes() -> None:
    """The minimum over all 40 features, recovered from predictions that are linear in the query."""
    features, labels, _ = _data()
    predict = logistic(features, labels, strength=0.05)
    # Queries of length one at the axes of an orthonormal basis and the support itself.
    unit = F.normalize(features)
    logits = predict(torch.eye(40, dtype=torch.float64)).log()
    logits = logits - logits.mean(1, keepdim=True)
    at_support = predict(unit)
    # Stationarity: strength W = Xᵀ (Y - P), with W's columns centred because the gradient's are, and
    # Σ (Y - P) = 0 for the bias.
    residual = F.one_hot(labels).double() - at_support
    assert residual.sum(0).abs().max() < 1e-5
    weights = unit.T @ residual / 0.05
    differences = logits - logits[:1]
    torch.testing.assert_close(differences, weights - weights[:1], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("probe", PROBES)
def test_separated_classes_are_told_apart_with_probabilities(probe) -> None:
    features, labels, _ = _data()
    predicted = probe(features.float(), labels)(features.float())
    torch.testing.assert_close(predicted.sum(1), torch.ones(12, dtype=torch.float64))
    assert torch.equal(predicted.argmax(1), labels)


@pytest.mark.parametrize("probe", PROBES)
def test_the_length_of_features_does_not_matter_and_one_sample_a_class_is_enough(probe) -> None:
    features, _, queries = _data()
    labels = torch.arange(3)
    found = probe(features[:3], labels)(queries)
    torch.testing.assert_close(probe(5 * features[:3], labels)(3 * queries), found, atol=1e-4, rtol=1e-4)
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("probe", PROBES)
def test_what_cannot_be_fitted_is_refused(probe) -> None:
    features, labels, _ = _data()
    with pytest.raises(FirststepError, match="features \\[n, d\\]"):
        probe(features, labels[:-1])
    with pytest.raises(FirststepError, match="each with a sample"):
        probe(features, labels + 1)
    with pytest.raises(FirststepError, match="finite"):
        probe(features * float("nan"), labels)
    with pytest.raises(FirststepError, match="must be a positive number"):
        probe(features, labels, **{"temperature" if probe is nearest_means else "strength": 0.0})
