"""The probes against dense versions of their formulas."""

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
    labels[-1] = 0  # classes of different sizes
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


def _weights(labels: Tensor) -> Tensor:
    """Weight per sample that gives every class the same total, as a column."""
    return torch.tensor(
        [[len(labels) / (3 * labels.tolist().count(label))] for label in labels.tolist()]
    ).double()


def test_ridge_solves_its_normal_equations() -> None:
    features, labels, queries = _data()
    found = ridge(features, labels, strength=0.4, temperature=0.2)(queries)
    ones = torch.ones(12, 1, dtype=torch.float64)
    design = torch.cat([F.normalize(features), ones], 1)
    penalty = 0.4 * torch.eye(41, dtype=torch.float64)
    penalty[-1, -1] = 0
    weighted = _weights(labels) * design
    solution = torch.linalg.solve(design.T @ weighted + penalty, weighted.T @ F.one_hot(labels).double())
    scores = torch.cat([F.normalize(queries), ones[:7]], 1) @ solution
    torch.testing.assert_close(found, (scores / 0.2).softmax(1))


def test_logistic_has_zero_gradient_at_its_solution() -> None:
    """Recover the weights over all 40 features from logits that are affine in the query."""
    features, labels, _ = _data()
    predict = logistic(features, labels, strength=0.05)
    # Unit queries along the coordinate axes, and the support samples.
    unit = F.normalize(features)
    logits = predict(torch.eye(40, dtype=torch.float64)).log()
    logits = logits - logits.mean(1, keepdim=True)
    at_support = predict(unit)
    # Stationarity: strength W = Xᵀ w (Y - P), and Σ w (Y - P) = 0 for the bias.
    residual = _weights(labels) * (F.one_hot(labels).double() - at_support)
    assert residual.sum(0).abs().max() < 1e-6
    weights = unit.T @ residual / 0.05
    differences = logits - logits[:1]
    torch.testing.assert_close(differences, weights - weights[:1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("probe", PROBES)
def test_separated_classes_are_classified_with_normalised_probabilities(probe) -> None:
    features, labels, _ = _data()
    predicted = probe(features.float(), labels)(features.float())
    torch.testing.assert_close(predicted.sum(1), torch.ones(12, dtype=torch.float64))
    assert torch.equal(predicted.argmax(1), labels)


@pytest.mark.parametrize("probe", PROBES)
def test_probes_ignore_the_length_of_features_and_take_one_sample_per_class(probe) -> None:
    features, _, queries = _data()
    labels = torch.arange(3)
    found = probe(features[:3], labels)(queries)
    torch.testing.assert_close(probe(5 * features[:3], labels)(3 * queries), found, atol=1e-6, rtol=1e-6)
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("probe", PROBES)
def test_invalid_input_is_refused(probe) -> None:
    features, labels, _ = _data()
    with pytest.raises(FirststepError, match="features \\[n, d\\]"):
        probe(features, labels[:-1])
    with pytest.raises(FirststepError, match="at least one sample each"):
        probe(features, labels + 1)
    with pytest.raises(FirststepError, match="finite"):
        probe(features * float("nan"), labels)
    with pytest.raises(FirststepError, match="must be a positive number"):
        probe(features, labels, **{"temperature" if probe is nearest_means else "strength": 0.0})
