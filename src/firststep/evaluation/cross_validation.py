"""What classifiers of a support set say of samples that they were not fitted to.

The support set is cut into folds; each is classified by what was fitted to the others, exactly as a query
would be: adapted parameters, probes and batch statistics all come from the other folds alone. Every sample is
held out once. All classifiers see the same folds, so that they can be compared, and the number of inner steps
be chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation import LONGEST_AUTO, MOST_FOLDS, StepChoice
from firststep.errors import FirststepError
from firststep.evaluation.frozen_network import features_of, frozen_network, logits_of
from firststep.evaluation.image_folders import ImageSupport, Progress
from firststep.evaluation.probes import Predict, logistic, nearest_means, ridge
from firststep.meta_learner import MetaLearner

STEPS = "steps"
"""The adapted network, as against the probes on its features."""
PROBES: dict[str, Callable[[Tensor, Tensor], Predict]] = {
    "nearest-means": nearest_means,
    "ridge": ridge,
    "logistic": logistic,
}
CLASSIFIERS = (STEPS, *PROBES)
"""The adapted network (``steps``) and the probes on its features, by the names of ``adapt --classifier``.

Examples:
    >>> from firststep.evaluation import CLASSIFIERS
    >>> CLASSIFIERS
    ('steps', 'nearest-means', 'ridge', 'logistic')
"""


@dataclass(frozen=True)
class CrossValidation:
    """What every classifier says of the support samples that it has not seen.

    Examples:
        >>> from firststep.evaluation import ImageSupport, cross_validate
        >>> support = ImageSupport(list("abcde"), glyph_task.support_x, glyph_task.support_y)
        >>> validation = cross_validate(trained.meta, support, steps=1)
        >>> validation.folds, sorted(validation.log_probabilities)
        (2, ['logistic', 'nearest-means', 'ridge', 'steps'])
    """

    folds: int
    labels: Tensor
    log_probabilities: dict[str, Tensor]
    """Classifier → what it says of each sample when that is held out, [n, classes]."""
    choice: StepChoice
    """Of the adapted network: how many steps it takes, and the held-out losses that chose them."""

    def accuracy(self, classifier: str) -> float:
        """Outputs that are not finite count as wrong."""
        outputs = self.log_probabilities[classifier]
        right = (outputs.argmax(1) == self.labels) & outputs.isfinite().all(1)
        return right.double().mean().item()

    @property
    def best(self) -> str:
        """The classifier with the highest accuracy; among equals the adapted network, then the simplest."""
        return max(self.log_probabilities, key=self.accuracy)  # the first of equals


def stratified_folds(labels: Tensor) -> list[Tensor]:
    """Masks of samples to hold out, each sample once, all classes in each; none if a class has one sample."""
    place = torch.zeros_like(labels)
    fewest = len(labels)
    for label in labels.unique():
        rows = torch.nonzero(labels == label).flatten()
        fewest = min(fewest, len(rows))
        place[rows] = torch.arange(len(rows), device=labels.device)
    count = min(fewest, MOST_FOLDS)
    return [place % count == fold for fold in range(count)] if count > 1 else []


def cross_validate(
    learner: MetaLearner,
    support: ImageSupport,
    *,
    steps: int | None = None,
    probes: bool = True,
    progress: Progress | None = None,
) -> CrossValidation | None:
    """All classifiers on held-out folds; None where a class has one sample and nothing can be held out.

    Args:
        learner: to adapt, for as many classes as the support set has.
        support: the labelled images.
        steps: inner steps of the adapted network; None chooses the number with the lowest held-out loss.
        probes: the probes too, not only the adapted network.
        progress: told which fold is done.

    Examples:
        >>> from firststep.evaluation import ImageSupport, cross_validate
        >>> support = ImageSupport(list("abcde"), glyph_task.support_x, glyph_task.support_y)
        >>> validation = cross_validate(trained.meta, support, steps=1)
        >>> 0 <= validation.accuracy("ridge") <= 1
        True
    """
    folds = stratified_folds(support.labels)
    if not folds:
        return None
    lengths = range(LONGEST_AUTO + 1) if steps is None else [steps]
    shape = len(support.labels), len(support.classes)
    by_steps = torch.full((len(lengths), *shape), torch.nan, dtype=torch.float64)
    names = PROBES if probes else ()
    outputs = {name: torch.full(shape, torch.nan, dtype=torch.float64) for name in names}
    for number, held_out in enumerate(folds, 1):
        rows = held_out.cpu()
        images, labels = support.images[~held_out], support.labels[~held_out]
        queries = support.images[held_out]
        for place, logits in enumerate(_adapted_logits(learner, images, labels, queries, lengths)):
            by_steps[place, rows] = logits.double().log_softmax(1).cpu()
        if probes:
            for name, probabilities in _probed(learner, images, labels, queries).items():
                outputs[name][rows] = probabilities.double().log().cpu()
        if progress is not None:
            progress("cross-validation", number, len(folds))
    expected = support.labels.cpu()
    losses = torch.stack([F.nll_loss(each, expected) for each in by_steps])
    if steps is None and not bool(losses[0].isfinite()):
        raise FirststepError(
            "cannot choose the number of steps: the loss of held-out samples is not finite before the first "
            "step; are the weights damaged?"
        )
    # NaN would count as the smallest: a number of steps at which adaptation has diverged is never chosen.
    best = int(torch.where(losses.isfinite(), losses, torch.inf).argmin())
    shown = tuple(losses.tolist()) if steps is None else ()
    choice = StepChoice(lengths[best], shown, len(folds))
    return CrossValidation(len(folds), expected, {STEPS: by_steps[best], **outputs}, choice)


def _adapted_logits(
    learner: MetaLearner, images: Tensor, labels: Tensor, queries: Tensor, lengths: range | list[int]
) -> list[Tensor]:
    """Of the queries after each of these numbers of steps, ascending."""
    found = []
    for taken, params in enumerate(learner.iterate_steps(images, labels)):
        if taken in lengths:
            with torch.no_grad():
                found.append(logits_of(frozen_network(learner, params, images), queries))
        if taken == lengths[-1]:
            break
    return found


def _probed(learner: MetaLearner, images: Tensor, labels: Tensor, queries: Tensor) -> dict[str, Tensor]:
    """Probabilities of the queries by every probe on the features before the first step."""
    start = next(learner.iterate_steps(images, labels))
    network = frozen_network(learner, start, images)
    path = learner.functional.classifier
    known, asked = features_of(network, path, images), features_of(network, path, queries)
    return {name: probe(known, labels)(asked) for name, probe in PROBES.items()}
