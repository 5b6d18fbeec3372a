"""Adapt a meta-learner to a support set of images: the chosen classifier and the reason for the choice.

Batch norm uses the statistics of the support set, fixed after adaptation. A prediction then depends only on
the support set and on its own image. ``transductive=True`` is the papers' protocol instead: all query images
form one batch, and each image slightly changes the predictions of the others.
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
)
from firststep.evaluation.image_folders import ImageSupport, Progress
from firststep.evaluation.probes import Predict
from firststep.meta_learner import MetaLearner, replace_module
from firststep.network import Params
from firststep.utils import counted


@dataclass(frozen=True)
class AdaptedModel:
    """A classifier of the user's images: how it was chosen, and the network that classifies.

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
    """``steps`` for the adapted network, or the name of a probe on its features."""
    params: Params
    """Parameters after the inner steps; for a probe, before them."""
    choice: StepChoice
    """Number of inner steps, and the losses that chose it."""
    network: nn.Module
    """Network ready for use: normalised images → logits, for any batch size."""
    validation: CrossValidation | None = None
    temperature: float | None = None
    """Temperature that calibrates the probabilities; None if there are too few images to fit one."""

    @torch.no_grad()
    def probabilities(self, queries: Tensor, transductive: bool = False) -> Tensor:
        """Return [queries, classes], each row summing to 1; not calibrated if ``transductive``."""
        if transductive:
            logits = self.meta.functional(self.params, queries).logits
        else:
            # One image at a time: rounding depends on the batch size.
            logits = torch.cat([logits_of(self.network, query[None]) for query in queries])
            logits = logits / (self.temperature or 1.0)
        if not bool(logits.isfinite().all()):
            steps = counted(self.choice.steps, "step")
            raise FirststepError(f"outputs are not finite after {steps}; use shorter inner steps")
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
        meta: learner to adapt.
        support: labelled images.
        steps: number of inner steps; None chooses it by cross-validation.
        classifier: ``steps`` for the adapted network; ``nearest-means``, ``ridge`` or ``logistic`` for a
            probe on its features before adaptation; ``auto`` for the best cross-validated accuracy, where a
            tie goes to the adapted network.
        validate: whether to cross-validate and calibrate even if there is nothing to choose. Default: only if
            there is.
        rate_multiplier: factor on the length of inner steps.
        progress: called after each fold of the cross-validation.

    Examples:
        >>> from firststep.evaluation import ImageSupport, adapt_to_images
        >>> support = ImageSupport(list("abcde"), glyph_task.support_x, glyph_task.support_y)
        >>> adapted = adapt_to_images(trained.meta, support, classifier="nearest-means")
        >>> adapted.probabilities(glyph_task.query_x).sum(-1).round().unique().tolist()
        [1.0]
    """
    if not 0 < rate_multiplier < float("inf"):
        raise FirststepError(f"`rate_multiplier` must be a positive number, got {rate_multiplier}")
    if steps is not None and steps < 0:
        raise FirststepError(f"`steps` must be an integer of at least 0, got {steps}")
    if classifier not in ("auto", STEPS, *PROBES):
        raise FirststepError(
            f"`classifier={classifier}` is unknown; choose from auto, {STEPS}, {', '.join(PROBES)}"
        )
    learner = meta.for_classes(len(support.classes)).scaled(rate_multiplier)
    with torch.no_grad():  # compute the frozen body once
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
            f"{broken} is not finite after {counted(choice.steps, 'step')} (rate_multiplier "
            f"{rate_multiplier:g}): check the weights, or use shorter inner steps"
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
    """Convert a probe to a network layer for features of the same size, dtype and device.

    The logits of every probe are affine in unit-length features: z(u) = W u + b, up to a constant shared by
    all classes, which softmax ignores. The unit vectors ± e_i therefore determine W and b:
    z(e_i) + z(-e_i) = 2 b and z(e_i) - z(-e_i) = 2 W e_i.
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
