"""Averaged probes on fixed features: the formula of the head, honest held-out predictions, none of these."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.evaluation._few_shot import PROBES, UNCALIBRATED, fit_few_shot, folds_of
from firststep.evaluation._few_shot_head import NONE_LIMIT, HeadForm
from firststep.evaluation._promise import LEARNING, SPREAD, Promise


def blobs(
    counts: tuple[int, ...], spread: float = 0.5, seed: int = 0, size: int = 12
) -> tuple[Tensor, Tensor]:
    """Return rectified noise around one pattern per class."""
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(8, size, dtype=torch.float64, generator=torch.Generator().manual_seed(99))
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    noise = torch.randn(len(labels), size, dtype=torch.float64, generator=generator)
    return (patterns[labels] + spread * noise).relu(), labels


def unit(features: Tensor, centre: Tensor | float = 0.0) -> Tensor:
    root = features.sqrt()
    return F.normalize(F.normalize(root, dim=1) - centre, dim=1)


@pytest.mark.parametrize("with_background", [False, True])
def test_the_head_is_the_mean_of_the_calibrated_probes(with_background: bool) -> None:
    features, labels = blobs((7, 8, 9))
    queries, _ = blobs((5, 5, 5), seed=1)
    background = blobs((4, 4, 4, 4, 4, 4, 4, 4), spread=2.0, seed=2)[0] if with_background else None
    found = fit_few_shot(features, labels, background=background)
    assert found.temperatures is not None
    centre = 0.0 if background is None else F.normalize(background.sqrt(), dim=1).mean(0)
    expected = torch.zeros(15, 3, dtype=torch.float64)
    for name, probe in PROBES.items():
        logits = probe(unit(features, centre), labels)(unit(queries, centre)).log()
        expected += (logits / found.temperatures[name]).softmax(1) / 3
    outputs = found.head(queries)
    torch.testing.assert_close(outputs[:, :3].exp(), expected, rtol=1e-6, atol=1e-9)
    assert outputs.shape == (15, 4)
    assert fit_few_shot(features, labels, none=False).head(queries).shape == (15, 3)


def test_negative_features_keep_their_sign_and_power() -> None:
    features, labels = blobs((4, 4))
    found = fit_few_shot(features - 0.1, labels)
    assert found.head.form == HeadForm(members=3, has_none=True, power=1.0)


def test_held_out_predictions_do_not_depend_on_the_sample_or_on_temperatures_of_its_fold() -> None:
    features, labels = blobs((6, 6, 6), spread=1.5)
    found = fit_few_shot(features, labels).held_out
    assert found is not None
    fold = folds_of(labels)[2]
    probes = {name: probe(unit(features[~fold]), labels[~fold]) for name, probe in PROBES.items()}
    for name, predict in probes.items():
        torch.testing.assert_close(found.by_probe[name][fold], predict(unit(features[fold])))
    # 18 samples are held out in all, 15 of them in other folds: too few for a temperature.
    expected = sum((output[fold].log() / UNCALIBRATED).softmax(1) / 3 for output in found.by_probe.values())
    torch.testing.assert_close(found.probabilities[fold], expected)
    assert found.promise.right == int((found.probabilities.argmax(1) == labels).sum())


def test_folds_leave_one_sample_of_every_class_and_never_hold_out_a_single_one() -> None:
    labels = torch.tensor([0, 1, 1, 2, 2, 2, 2, 2, 2, 2])
    folds = folds_of(labels)
    assert len(folds) == 5
    held = torch.stack(folds).sum(0)
    assert held.tolist() == [0] + [1] * 9
    for fold in folds:
        assert set(labels[~fold].tolist()) == {0, 1, 2}
    assert folds_of(torch.tensor([0, 1, 2])) == []
    assert fit_few_shot(*blobs((1, 1, 1))).held_out is None


def test_a_class_with_many_samples_does_not_swallow_the_others() -> None:
    queries, _ = blobs((40, 40, 40), spread=1.0, seed=100)
    shares = []
    for seed in range(8):
        features, labels = blobs((200, 3, 3), spread=1.0, seed=seed)
        answers = fit_few_shot(features, labels).head(queries)[:, :3].argmax(1)
        shares.append(float((answers == 0).double().mean()))
    assert np.mean(shares) < 0.45  # a third of the queries belong to it


def test_the_promise_is_wilsons_interval_for_fewer_samples() -> None:
    """Its ends are the shares p at which the deviation is 1.96 standard errors √(p (1 - p) / n)."""
    promise = Promise(22, 25, kept=0.8)
    assert promise.accuracy == 0.88
    assert promise.expected == pytest.approx(1 - 0.12 * 0.8**LEARNING)
    for end in promise.interval:
        deviation = abs(promise.expected - end)
        assert deviation == pytest.approx(1.96 * math.sqrt(end * (1 - end) * SPREAD / 25))
    assert Promise(25, 25).interval[1] == 1.0
    assert Promise(0, 4).interval[0] == 0.0


def test_the_promise_knows_how_many_samples_the_folds_kept() -> None:
    features, labels = blobs((2, 5, 10))
    held_out = fit_few_shot(features, labels).held_out
    assert held_out is not None
    assert held_out.promise.kept == pytest.approx((2 * 1 / 2 + 5 * 4 / 5 + 10 * 8 / 10) / 17)


def test_the_promise_covers_the_accuracy_that_is_found() -> None:
    queries, asked = blobs((100, 100, 100), spread=1.2, seed=1000)
    covered = []
    for seed in range(40):
        features, labels = blobs((4, 4, 4), spread=1.2, seed=seed)
        fitted = fit_few_shot(features, labels, none=False)
        accuracy = (fitted.head(queries).argmax(1) == asked).double().mean().item()
        assert fitted.held_out is not None
        low, high = fitted.held_out.promise.interval
        covered.append(low <= accuracy <= high)
    assert np.mean(covered) >= 0.9


def test_about_five_per_cent_of_the_classes_are_refused_and_most_of_the_others() -> None:
    kept, accepted = [], []
    for seed in range(10):
        features, labels = blobs((10, 10, 10), spread=0.4, seed=seed)
        head = fit_few_shot(features, labels).head
        queries, _ = blobs((30, 30, 30), spread=0.4, seed=100 + seed)
        strangers, of = blobs((0, 0, 0, 30, 30, 30), spread=0.4, seed=200 + seed)
        assert set(of.tolist()) == {3, 4, 5}
        kept.append((head(queries)[:, -1] <= NONE_LIMIT).double().mean().item())
        accepted.append((head(strangers)[:, -1] <= NONE_LIMIT).double().mean().item())
    assert 0.9 < np.mean(kept) < 0.99
    assert np.mean(accepted) < 0.3


def test_one_sample_per_class_needs_a_background_to_refuse() -> None:
    features, labels = blobs((1, 1, 1), spread=0.2)
    assert not fit_few_shot(features, labels).head.form.has_none
    background = blobs((0, 0, 0, 20, 20, 20, 20, 20), spread=0.4, seed=3)[0]
    found = fit_few_shot(features, labels, background=background)
    own, strange = (found.head(rows)[:, -1] for rows in (features, background))
    assert float(own.max()) < NONE_LIMIT
    assert float((strange > NONE_LIMIT).double().mean()) == pytest.approx(0.3, abs=0.02)


def test_the_score_is_the_normal_distribution_of_the_two_cosines() -> None:
    features, labels = blobs((5, 5, 5))
    head = fit_few_shot(features, labels).head
    queries, _ = blobs((2, 2, 2), seed=4)
    assert head.none is not None
    root = F.normalize(features.sqrt(), dim=1)
    means = torch.stack([root[labels == label].mean(0) for label in range(3)])
    centre = means.mean(0)
    centred = torch.stack([F.normalize(root - centre, dim=1)[labels == label].mean(0) for label in range(3)])
    for query, found in zip(F.normalize(queries.sqrt(), dim=1), head(queries)[:, -1], strict=True):
        plain = max(float(F.cosine_similarity(query, mean, dim=0)) for mean in means)
        shifted = max(float(F.cosine_similarity(query - centre, mean, dim=0)) for mean in centred)
        distance = (float(head.none.location) - plain - shifted) / float(head.none.scale)
        assert float(found) == pytest.approx(0.5 * math.erfc(-distance / math.sqrt(2)), abs=1e-7)
