"""Classify by fixed features: averaged probes with calibrated probabilities and a "none of these" score.

Images, texts or anything else arrive as features [n, d] with labels [n]. :func:`fit_few_shot` returns a
:class:`FewShotHead`, a module that can be exported, and :class:`HeldOut`, the predictions of samples that
were left out. The accuracy of these predictions is the promise made to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.evaluation._few_shot_head import FewShotHead, HeadForm, NoneScore, normalised
from firststep.evaluation._promise import Promise
from firststep.evaluation.calibration import fit_temperature
from firststep.evaluation.probes import Predict, logistic, nearest_means, ridge

Probe = Callable[[Tensor, Tensor], Predict]
PROBES: dict[str, Probe] = {
    "nearest-means": nearest_means,
    "ridge": partial(ridge, strength=0.3),
    "logistic": logistic,
}
"""The probes by name."""
AVERAGE = "average"
"""Name of the mean of all probes' calibrated probabilities."""
MOST_FOLDS = 5
UNCALIBRATED = 0.4
"""Temperature with too few samples to fit one, below 1 because the probes themselves are too careful with one
and two shots. ``benchmarks/photo_choices.py`` compares it with others on validation classes."""
_FEWEST_FOR_NONE = 8
"""Smallest number of held-out samples whose scores are preferred to those of the background."""
_UNSEEN = 0.3
"""Quantile of the background's scores that serves as the limit where no sample can be held out."""
_NORMAL_LIMIT = 1.6449  # of the standard normal distribution at NONE_LIMIT


@dataclass(frozen=True)
class HeldOut:
    """Predictions of every support sample whose class has another one, by what was fitted without it.

    The temperatures of a fold come from the other folds, so the accuracy is not that of a choice made on the
    same samples.
    """

    folds: int
    rows: Tensor
    """Indices of the samples that were held out."""
    labels: Tensor
    """Their classes."""
    probabilities: Tensor
    """[rows, classes]"""
    by_probe: dict[str, Tensor]
    """Probe → its own probabilities, not calibrated."""
    none_scores: Tensor
    kept: float = 1.0
    """Share of a class's samples in the other folds, on average over the held-out samples."""

    @property
    def promise(self) -> Promise:
        right = int((self.probabilities.argmax(1) == self.labels).sum())
        return Promise(right, len(self.labels), self.kept)

    def doubtful(self, most: int = 3) -> list[int]:
        """Return the samples that the other folds contradict most, surest first."""
        own = self.probabilities.gather(1, self.labels[:, None])[:, 0]
        best = self.probabilities.amax(1)
        order = (own - best).argsort()
        return [int(self.rows[i]) for i in order if best[i] > 0.5 and own[i] < best[i] / 4][:most]


@dataclass(frozen=True)
class FewShot:
    head: FewShotHead
    held_out: HeldOut | None
    """None if every class has one sample."""
    temperatures: dict[str, float] | None
    """Probe → temperature that calibrates it; None if there are too few samples to fit one."""


def fit_few_shot(
    features: Tensor,
    labels: Tensor,
    *,
    probes: Mapping[str, Probe] = PROBES,
    background: Tensor | None = None,
    none: bool = True,
    power: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> FewShot:
    """Fit averaged probes to a support set and predict each of its samples from the others.

    Args:
        features: [n, d], of any device and floating dtype.
        labels: [n], 0, 1, 2, ..., at least one each; classes may have different numbers of samples.
        probes: members of the average.
        background: features [m, d] of samples that belong to no class. Their mean is subtracted from all
            features, and they help to tell "none of these".
        none: whether to score "none of these". Without background it takes a class with two samples.
        power: exponent of the features, see :class:`FewShotHead`; None takes ½ if no feature is negative,
            otherwise 1.
        progress: called after each fold with (activity, done, total).
    """
    if power is None:
        power = 0.5 if bool((features >= 0).all()) else 1.0
    base = normalised(features.detach().cpu().double(), power)
    known = labels.cpu()
    others = None if background is None else normalised(background.detach().cpu().double(), power)
    centre = torch.zeros_like(base[0]) if others is None else others.mean(0)
    unit = F.normalize(base - centre, dim=1)
    held_out = _hold_out(base, unit, known, probes, others, progress)
    fitted = {name: probe(unit, known) for name, probe in probes.items()}
    temperatures = None if held_out is None else _temperatures(held_out.by_probe, held_out.labels)
    score = None
    if none and (held_out is not None or others is not None):
        score = NoneScore.fit(base, known, others)
        enough = held_out is not None and (others is None or len(held_out.rows) >= _FEWEST_FOR_NONE)
        if held_out is not None and enough:
            score.calibrate(held_out.none_scores)
        elif others is not None:
            _calibrate_without_samples(score, others)
    form = HeadForm(members=len(probes), has_none=score is not None, power=power)
    head = form.build(unit.shape[1], int(known.max()) + 1)
    weights, biases = [], []
    for name, predict in fitted.items():
        weight, bias = affine(predict, unit.shape[1])
        temperature = UNCALIBRATED if temperatures is None else temperatures[name]
        weights.append(weight / temperature)
        biases.append(bias / temperature)
    head.centre, head.weight, head.bias = centre, torch.stack(weights), torch.stack(biases)
    head.none = score
    head = head.to(device=features.device, dtype=features.dtype)
    return FewShot(head.requires_grad_(False), held_out, temperatures)


def folds_of(labels: Tensor) -> list[Tensor]:
    """Return masks of held-out samples; those of a class with one sample are never held out."""
    place = torch.full_like(labels, -1)
    for label in labels.unique():
        rows = torch.nonzero(labels == label).flatten()
        if len(rows) > 1:
            place[rows] = torch.arange(len(rows)) % MOST_FOLDS
    return [place == fold for fold in range(int(place.max()) + 1)]


def affine(predict: Predict, size: int) -> tuple[Tensor, Tensor]:
    """Return W and b of a probe, whose logits are W u + b for unit features, up to a constant.

    The unit vectors ± e_i determine them: z(e_i) + z(-e_i) = 2 b and z(e_i) - z(-e_i) = 2 W e_i.
    """
    axes = torch.eye(size, dtype=torch.float64)
    ahead, behind = (_centred(predict(side)) for side in (axes, -axes))
    # Contiguous, as a loaded file is: rounding depends on the layout.
    return ((ahead - behind) / 2).T.contiguous(), ((ahead + behind) / 2).mean(0)


def _centred(probabilities: Tensor) -> Tensor:
    logits = probabilities.log()
    return logits - logits.mean(1, keepdim=True)


def _hold_out(
    base: Tensor,
    unit: Tensor,
    labels: Tensor,
    probes: Mapping[str, Probe],
    background: Tensor | None,
    progress: Callable[[str, int, int], None] | None,
) -> HeldOut | None:
    folds = folds_of(labels)
    if not folds:
        return None
    classes = int(labels.max()) + 1
    outputs = {name: torch.zeros(len(labels), classes, dtype=torch.float64) for name in probes}
    scores = torch.zeros(len(labels), dtype=torch.float64)
    for number, mask in enumerate(folds, 1):
        known, of = unit[~mask], labels[~mask]
        for name, probe in probes.items():
            outputs[name][mask] = probe(known, of)(unit[mask])
        score = NoneScore.fit(base[~mask], of, background)
        centred = F.normalize(base - score.centre, dim=1)
        gains = [_gain(rows, labels, labels[mask], of) for rows in (base, centred)]
        scores[mask] = (score.parts(base[mask]) * torch.stack(gains, 1)).sum(1)
        if progress is not None:
            progress("cross-validation", number, len(folds))
    every = torch.stack(folds).any(0)
    averaged = torch.zeros(len(labels), classes, dtype=torch.float64)
    for mask in folds:
        rest = every & ~mask
        temperatures = _temperatures({name: output[rest] for name, output in outputs.items()}, labels[rest])
        averaged[mask] = average({name: output[mask] for name, output in outputs.items()}, temperatures)
    return HeldOut(
        folds=len(folds),
        rows=torch.nonzero(every).flatten(),
        labels=labels[every],
        probabilities=averaged[every],
        by_probe={name: output[every] for name, output in outputs.items()},
        none_scores=scores[every],
        kept=_kept(labels, folds, every),
    )


def _kept(labels: Tensor, folds: list[Tensor], every: Tensor) -> float:
    counts = labels.bincount().double()
    shares = torch.ones(len(labels), dtype=torch.float64)
    for mask in folds:
        left = labels[~mask].bincount(minlength=len(counts)).double()
        shares[mask] = (left / counts)[labels[mask]]
    return float(shares[every].mean())


def _gain(rows: Tensor, labels: Tensor, held_out: Tensor, fitted: Tensor) -> Tensor:
    """Return the factor per held-out sample from its cosine to a mean of fewer samples to that of all.

    Unit vectors of a class with pairwise cosine ρ have the cosine ρ / √(1/k + (1 - 1/k) ρ) to the mean of k
    others.
    """
    same = (labels[:, None] == labels) & ~torch.eye(len(labels), dtype=torch.bool)
    rho = (rows @ rows.T)[same].mean().clamp(0.05, 1)
    counts = [of.bincount(minlength=int(labels.max()) + 1)[held_out].double() for of in (labels, fitted)]
    every, fewer = (rho / (1 / k + (1 - 1 / k) * rho).sqrt() for k in counts)
    return every / fewer


def average(by_probe: Mapping[str, Tensor], temperatures: Mapping[str, float] | None) -> Tensor:
    """Return the mean of the calibrated probabilities."""
    calibrated = [
        (output.clamp_min(1e-300).log() / (temperatures or {}).get(name, UNCALIBRATED)).softmax(1)
        for name, output in by_probe.items()
    ]
    return torch.stack(calibrated).mean(0)


def _temperatures(by_probe: Mapping[str, Tensor], labels: Tensor) -> dict[str, float] | None:
    found = {}
    for name, output in by_probe.items():
        temperature = fit_temperature(output.clamp_min(1e-300).log(), labels)
        if temperature is None:
            return None
        found[name] = temperature
    return found


def _calibrate_without_samples(score: NoneScore, background: Tensor) -> None:
    """Put the limit at a quantile of the background's scores, with their deviation."""
    unknown = score.parts(background).sum(1)
    score.scale = unknown.std().clamp_min(1e-6)
    score.location = unknown.quantile(_UNSEEN) + _NORMAL_LIMIT * score.scale
