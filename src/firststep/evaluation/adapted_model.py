"""A meta-learner adapted to a support set of images: the classifier that it chose, and why.

Batch norm normalises by the batch it sees, so it matters what else is in the batch. Here that is the support
set: its statistics are fixed after adaptation, and a query's answer depends on the support set and on itself
alone. ``transductive=True`` is the papers' protocol instead: all query images form one batch, and each
changes the others' answers a little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.adaptation import StepChoice
from firststep.backbones import body_features
from firststep.errors import FirststepError
from firststep.evaluation.calibration import fit_temperature
from firststep.evaluation.cross_validation import PROBES, STEPS, CrossValidation, cross_validate
from firststep.evaluation.frozen_network import (
    UnitLinear,
    check_independent,
    features_of,
    frozen_network,
    logits_of,
    replace_module,
)
from firststep.evaluation.image_folders import ImageSupport, Progress
from firststep.evaluation.probes import Predict
from firststep.meta_learner import MetaLearner
from firststep.network import Params


@dataclass(frozen=True)
class AdaptedModel:
    """A classifier of somebody's images: how it was chosen, and the network that classifies.

    Examples:
        >>> from firststep.evaluation import ImageSupport, adapt_to_images
        >>> support = ImageSupport(list("abcde"), glyph_task.support_x, glyph_task.support_y)
        >>> adapted = adapt_to_images(trained.meta, support, steps=2)
        >>> adapted.classifier, adapted.choice.steps, adapted.probabilities(glyph_task.query_x).shape
        ('steps', 2, torch.Size([15, 5]))
    """

    meta: MetaLearner
    support: ImageSupport
    classifier: str
    """``steps``, the adapted network, or the name of a probe on its features."""
    params: Params
    """After the inner steps; before them where the classifier is a probe."""
    choice: StepChoice
    """How many steps were taken, and why."""
    network: nn.Module
    """Ready for use: normalised images → logits, one image at a time or many."""
    validation: CrossValidation | None = None
    temperature: float | None = None
    """That calibrates the probabilities; None where there are too few images to tell."""

    @torch.no_grad()
    def probabilities(self, queries: Tensor, transductive: bool = False) -> Tensor:
        """[queries, classes], each row summing to 1. Transductive ones are not calibrated."""
        if transductive:
            logits = self.meta.functional(self.params, queries).logits
        else:
            # One by one: the last digits depend on the size of a batch.
            logits = torch.cat([logits_of(self.network, query[None]) for query in queries])
            logits = logits / (self.temperature or 1.0)
        if not bool(logits.isfinite().all()):
            raise FirststepError(f"the outputs are not finite after {self.choice.steps} steps")
        return logits.softmax(-1)


def adapt_to_images(
    meta: MetaLearner,
    support: ImageSupport,
    *,
    steps: int | None = None,
    classifier: Literal["auto", "steps", "nearest-means", "ridge", "logistic"] = "steps",
    validate: bool | None = None,
    rate_multiplier: float = 1.0,
    progress: Progress | None = None,
) -> AdaptedModel:
    """Adapt to a support set.

    Args:
        meta: the learner.
        support: the labelled images.
        steps: inner steps; None chooses the number by cross-validation.
        classifier: ``steps`` the adapted network; ``nearest-means``, ``ridge`` or ``logistic`` a probe on its
            features before adaptation; ``auto`` the one with the best cross-validated accuracy, the adapted
            network among equals.
        validate: cross-validate and calibrate also where nothing has to be chosen; by default only where
            something has.
        rate_multiplier: take inner steps so many times as long.
        progress: told which fold of the cross-validation is done.

    Examples:
        >>> from firststep.evaluation import ImageSupport, adapt_to_images
        >>> support = ImageSupport(list("abcde"), glyph_task.support_x, glyph_task.support_y)
        >>> adapted = adapt_to_images(trained.meta, support, classifier="nearest-means")
        >>> adapted.probabilities(glyph_task.query_x).sum(-1).round().unique().tolist()
        [1.0]
    """
    if not 0 < rate_multiplier < float("inf"):
        raise FirststepError(f"`rate_multiplier` must be a positive number, not {rate_multiplier}")
    if steps is not None and steps < 0:
        raise FirststepError(f"`steps` must not be negative, it is {steps}")
    if classifier not in ("auto", STEPS, *PROBES):
        raise FirststepError(
            f"`classifier={classifier}` is unknown; choose from auto, {STEPS}, {', '.join(PROBES)}"
        )
    learner = meta.for_classes(len(support.classes)).scaled(rate_multiplier)
    with torch.no_grad():  # what is frozen is computed once
        fitted = replace(support, images=body_features(meta.network, support.images))
    has_choice = classifier == "auto" or (classifier == STEPS and steps is None)
    validation = None
    if has_choice or validate:
        validation = cross_validate(learner, fitted, steps=steps, progress=progress)
    chosen: str = classifier
    if classifier == "auto":
        chosen = validation.best if validation is not None else STEPS
    if chosen != STEPS:
        choice = StepChoice(0, (), 0)
    elif validation is not None:
        choice = validation.choice
    else:
        choice = StepChoice(meta.steps if steps is None else steps, (), 0)
    params = learner.adapted_params(fitted.images, fitted.labels, steps=choice.steps)
    broken = next((name for name, value in params.items() if not bool(value.isfinite().all())), None)
    if broken is not None:
        raise FirststepError(
            f"{broken} is not finite after {choice.steps} steps: the weights are damaged, or the steps are "
            f"too long (rate_multiplier {rate_multiplier:g})"
        )
    network = frozen_network(learner, params, fitted.images)
    if chosen != STEPS:
        path = learner.functional.classifier
        features = features_of(network, path, fitted.images)
        linear = probe_layer(PROBES[chosen](features, fitted.labels), features)
        replace_module(network, path, linear)
        params = {**params, **{f"{path}.{name}": value for name, value in linear.state_dict().items()}}
    check_independent(network, fitted.images)
    temperature = None
    if validation is not None:
        temperature = fit_temperature(validation.log_probabilities[chosen], validation.labels)
    return AdaptedModel(learner, support, chosen, params, choice, network, validation, temperature)


def probe_layer(predict: Predict, features: Tensor) -> UnitLinear:
    """A probe as a layer of a network, for features like these.

    Every probe's logits are affine in the features of length one, z(u) = W u + b up to what all classes have
    in common, which softmax does not see; so the unit vectors ± e_i tell W and b: z(e_i) + z(-e_i) = 2 b and
    z(e_i) - z(-e_i) = 2 W e_i.
    """
    columns, biases = [], []
    size = features.shape[1]
    for rows in torch.arange(size).split(1024):
        axes = F.one_hot(rows, size).double().to(features.device)
        ahead, behind = (_centred_logits(predict(side)) for side in (axes, -axes))
        columns.append((ahead - behind) / 2)
        biases.append((ahead + behind) / 2)
    weight, bias = torch.cat(columns).T, torch.cat(biases).mean(0)
    layer = UnitLinear(size, len(bias), dtype=features.dtype, device=features.device)
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer.requires_grad_(False)


def _centred_logits(probabilities: Tensor) -> Tensor:
    logits = probabilities.log().cpu()
    return logits - logits.mean(1, keepdim=True)
