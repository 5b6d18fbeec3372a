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

from firststep.adaptation import StepChoice
from firststep.backbones import body_features, frozen_body
from firststep.errors import FirststepError
from firststep.evaluation._few_shot import AVERAGE, PROBES, FewShot, affine, fit_few_shot
from firststep.evaluation._few_shot_head import FewShotHead, HeadForm
from firststep.evaluation._promise import Promise
from firststep.evaluation.calibration import fit_temperature
from firststep.evaluation.cross_validation import CLASSIFIERS, STEPS, CrossValidation, cross_validate
from firststep.evaluation.frozen_network import (
    check_independent,
    features_of,
    frozen_network,
    logits_of,
)
from firststep.evaluation.image_folders import ImageSupport, Progress
from firststep.meta_learner import MetaLearner, replace_module
from firststep.network import Params
from firststep.utils import counted

_AT_ONCE = 16
"""Number of images per forward pass."""


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
    """``steps`` for the adapted network, the name of a probe on its features, or ``average`` for the mean of
    all probes."""
    params: Params
    """Parameters after the inner steps; for a probe, before them."""
    choice: StepChoice
    """Number of inner steps, and the losses that chose it."""
    network: nn.Module
    """Network ready for use: normalised images → logits, for any batch size."""
    validation: CrossValidation | None = None
    temperature: float | None = None
    """Temperature that calibrates the probabilities; None if there are too few images to fit one."""
    few_shot: FewShot | None = None
    """The classifier of fixed features, with its held-out predictions; None for other networks."""
    chosen: bool = False
    """Whether cross-validation chose among several classifiers."""

    @property
    def head(self) -> HeadForm | None:
        """Form of the classifier's last layer; None for the network's own."""
        last = self.network.get_submodule(self.meta.functional.classifier)
        return last.form if isinstance(last, FewShotHead) else None

    @property
    def promise(self) -> Promise | None:
        """Accuracy to expect, from held-out support images; None if there are none."""
        if self.few_shot is not None:
            return None if self.few_shot.held_out is None else self.few_shot.held_out.promise
        if self.validation is None:
            return None
        return self.validation.promise(None if self.chosen else self.classifier)

    @property
    def is_calibrated(self) -> bool:
        return self.temperature is not None or (
            self.few_shot is not None and self.few_shot.temperatures is not None
        )

    @torch.no_grad()
    def probabilities(self, queries: Tensor, transductive: bool = False) -> Tensor:
        """Return [queries, classes], each row summing to 1; not calibrated if ``transductive``."""
        if transductive:
            logits = self.meta.functional(self.params, queries).logits
        else:
            # One image at a time: rounding depends on the batch size.
            logits = torch.cat([logits_of(self.network, query[None]) for query in queries])
            logits = logits[:, : len(self.support.classes)] / (self.temperature or 1.0)
        if not bool(logits.isfinite().all()):
            steps = counted(self.choice.steps, "step")
            raise FirststepError(f"outputs are not finite after {steps}; use shorter inner steps")
        return logits.softmax(-1)


def adapt_to_images(
    meta: MetaLearner,
    support: ImageSupport,
    *,
    steps: int | None = None,
    classifier: Literal["auto", "steps", "nearest-means", "ridge", "logistic", "average"] = "steps",
    validate: bool | None = None,
    rate_multiplier: float = 1.0,
    background: Tensor | None = None,
    none: bool = True,
    progress: Progress | None = None,
) -> AdaptedModel:
    """Adapt to a support set.

    Args:
        meta: learner to adapt.
        support: labelled images.
        steps: number of inner steps; None chooses it by cross-validation.
        classifier: ``steps`` for the adapted network; ``nearest-means``, ``ridge`` or ``logistic`` for a
            probe on its features before adaptation; ``average`` for the mean of their calibrated
            probabilities. ``auto`` is ``average`` for a network with fixed features, such as a pretrained
            one. For others it is the classifier with the best cross-validated accuracy, where a tie goes to
            the adapted network.
        validate: whether to cross-validate and calibrate even if there is nothing to choose. Default: only if
            there is.
        rate_multiplier: factor on the length of inner steps.
        background: features of a frozen body for images of no class, to tell "none of these" better.
        none: whether to score "none of these" where features are fixed and ``classifier`` is not ``steps``.
        progress: called with (activity, done, total).

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
    if classifier not in ("auto", *CLASSIFIERS):
        raise FirststepError(
            f"`classifier={classifier}` is unknown; choose from auto, {', '.join(CLASSIFIERS)}"
        )
    learner = meta.for_classes(len(support.classes)).scaled(rate_multiplier)
    fitted = replace(support, images=_body_features(meta, support, progress))
    if has_fixed_features(meta) and classifier != STEPS and not (classifier == "auto" and steps is not None):
        return _few_shot_model(learner, fitted, classifier, background, none, progress)
    if classifier == AVERAGE:
        raise FirststepError(f"`classifier={AVERAGE}` is for networks with fixed, pretrained features")
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
        replace_module(network, path, _probe_head(chosen, features, fitted.labels))
    check_independent(network, fitted.images)
    temperature = None
    if validation is not None:
        temperature = fit_temperature(validation.log_probabilities[chosen], validation.labels)
    auto = classifier == "auto"
    return AdaptedModel(
        learner, support, chosen, params, choice, network, validation, temperature, chosen=auto
    )


def has_fixed_features(meta: MetaLearner) -> bool:
    """Return whether features do not depend on the support set: a frozen body, or ``eval()`` mode."""
    return frozen_body(meta.network) is not None or not meta.network.training


@torch.no_grad()
def _body_features(meta: MetaLearner, support: ImageSupport, progress: Progress | None) -> Tensor:
    """Compute a frozen body once, in parts for the progress; without one, return the images."""
    images = support.images
    if frozen_body(meta.network) is None or images.dim() != 4:
        return images
    if support.features is not None:
        return support.features
    found: list[Tensor] = []
    for part in images.split(_AT_ONCE):
        found.append(body_features(meta.network, part))
        if progress is not None:
            progress("computing features", sum(map(len, found)), len(images))
    return torch.cat(found)


def _few_shot_model(
    learner: MetaLearner,
    support: ImageSupport,
    classifier: str,
    background: Tensor | None,
    none: bool,
    progress: Progress | None,
) -> AdaptedModel:
    chosen = AVERAGE if classifier == "auto" else classifier
    params = learner.functional.params()
    network = frozen_network(learner, params, support.images[:1])
    path = learner.functional.classifier

    def features(images: Tensor) -> Tensor:
        return torch.cat([features_of(network, path, part) for part in images.split(_AT_ONCE)])

    fitted = fit_few_shot(
        features(support.images) if support.features is None else support.features,
        support.labels,
        probes=PROBES if chosen == AVERAGE else {chosen: PROBES[chosen]},
        background=None if background is None else features(background.to(support.images)),
        none=none,
        progress=progress,
    )
    replace_module(network, path, fitted.head)
    check_independent(network, support.images[:_AT_ONCE])
    choice = StepChoice(0, (), 0)
    return AdaptedModel(learner, support, chosen, params, choice, network, few_shot=fitted)


def _probe_head(name: str, features: Tensor, labels: Tensor) -> FewShotHead:
    """Fit a probe and return it as a layer for features of the same size, dtype and device."""
    weight, bias = affine(PROBES[name](features, labels), features.shape[1])
    head = HeadForm().build(features.shape[1], len(bias))
    head.weight, head.bias = weight[None], bias[None]
    return head.to(features).requires_grad_(False)
