"""Cross-validate classifiers on a support set.

The support set is split into folds. Each fold is classified by what was fitted to the other folds, exactly as
a query would be: adapted parameters, probes and batch statistics all come from the other folds. Every sample
is held out once. All classifiers use the same folds, so their accuracies are comparable, and the number of
inner steps can be chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.adaptation import LONGEST_AUTO, MOST_FOLDS, StepChoice
from firststep.errors import FirststepError
from firststep.evaluation._few_shot import AVERAGE, PROBES
from firststep.evaluation._promise import Promise
from firststep.evaluation.frozen_network import features_of, frozen_network, logits_of
from firststep.evaluation.image_folders import ImageSupport, Progress
from firststep.meta_learner import MetaLearner

STEPS = "steps"
"""Name of the adapted network among the classifiers; the others are probes on its features."""
CLASSIFIERS = (STEPS, *PROBES, AVERAGE)
"""The adapted network (``steps``), the probes on its features, and their average: ``adapt --classifier``.

Examples:
    >>> from firststep.evaluation import CLASSIFIERS
    >>> CLASSIFIERS
    ('steps', 'nearest-means', 'ridge', 'logistic', 'average')
"""


@dataclass(frozen=True)
class CrossValidation:
    """Predictions of every classifier for support samples that it was not fitted to.

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
    """Classifier → log-probabilities of each sample when it is held out, [n, classes]."""
    choice: StepChoice
    """Number of steps of the adapted network, and the held-out losses that chose it."""

    def accuracy(self, classifier: str) -> float:
        """Return the held-out accuracy; outputs that are not finite count as wrong."""
        return self._right(classifier).double().mean().item()

    def promise(self, classifier: str | None = None) -> Promise:
        """Return the accuracy to expect of a classifier; None is the best one, chosen again for every fold.

        The best classifier of a fold is that of the other folds, so its choice does not flatter the accuracy.
        """
        right = {name: self._right(name) for name in self.log_probabilities}
        kept = 1 - 1 / self.folds
        if classifier is not None:
            return Promise(int(right[classifier].sum()), len(self.labels), kept)
        found = 0
        for held_out in stratified_folds(self.labels):
            best = max(right, key=lambda name: int(right[name][~held_out].sum()))
            found += int(right[best][held_out].sum())
        return Promise(found, len(self.labels), kept)

    def _right(self, classifier: str) -> Tensor:
        outputs = self.log_probabilities[classifier]
        return (outputs.argmax(1) == self.labels) & outputs.isfinite().all(1)

    @property
    def best(self) -> str:
        """Classifier with the highest accuracy; a tie goes to the adapted network, then to the simplest."""
        return max(self.log_probabilities, key=self.accuracy)  # max returns the first of equals


def stratified_folds(labels: Tensor) -> list[Tensor]:
    """Return masks of held-out samples: each sample once, every class in each fold.

    Return no mask if a class has only one sample.
    """
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
    """Cross-validate all classifiers; return None if a class has only one sample.

    Args:
        learner: learner to adapt, for the number of classes of the support set.
        support: labelled images.
        steps: inner steps of the adapted network; None chooses the number with the lowest held-out loss.
        probes: whether to cross-validate the probes too.
        progress: called after each fold.

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
            by_steps[place, rows] = logits.cpu().double().log_softmax(1)
        if probes:
            for name, probabilities in _probed(learner, images, labels, queries).items():
                outputs[name][rows] = probabilities.cpu().double().log()
        if progress is not None:
            progress("cross-validation", number, len(folds))
    expected = support.labels.cpu()
    losses = torch.stack([F.nll_loss(each, expected) for each in by_steps])
    if steps is None and not bool(losses[0].isfinite()):
        raise FirststepError(
            "cannot choose the number of steps: the loss of held-out samples is not finite before the first "
            "step; check the weights"
        )
    # argmin would pick NaN: never choose a number of steps at which adaptation has diverged.
    best = int(torch.where(losses.isfinite(), losses, torch.inf).argmin())
    shown = tuple(losses.tolist()) if steps is None else ()
    choice = StepChoice(lengths[best], shown, len(folds))
    return CrossValidation(len(folds), expected, {STEPS: by_steps[best], **outputs}, choice)


def _adapted_logits(
    learner: MetaLearner, images: Tensor, labels: Tensor, queries: Tensor, lengths: range | list[int]
) -> list[Tensor]:
    """Return the logits of the queries after each of the ascending numbers of steps."""
    found = []
    for taken, params in enumerate(learner.iterate_steps(images, labels)):
        if taken in lengths:
            with torch.no_grad():
                found.append(logits_of(frozen_network(learner, params, images), queries))
        if taken == lengths[-1]:
            break
    return found


def _probed(learner: MetaLearner, images: Tensor, labels: Tensor, queries: Tensor) -> dict[str, Tensor]:
    """Return the probabilities of the queries by every probe on the features before the first step."""
    start = next(learner.iterate_steps(images, labels))
    network = frozen_network(learner, start, images)
    path = learner.functional.classifier
    known, asked = features_of(network, path, images), features_of(network, path, queries)
    return {name: probe(known, labels)(asked) for name, probe in PROBES.items()}
