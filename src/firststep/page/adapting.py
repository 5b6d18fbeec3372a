"""Adapt a model step by step and report its predictions and its spectrum after every step.

The predictions after k steps equal those of ``firststep adapt --steps k``: the network with the parameters of
that step and the batch statistics of the support set, applied to one query at a time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from firststep.adaptation import StepChoice
from firststep.backbones import body_features
from firststep.conditioning import eigenvalues
from firststep.data import Preprocessing
from firststep.errors import FirststepError
from firststep.evaluation import METRICS, AdaptationState, AdaptedModel, ImageSupport, cross_validate
from firststep.evaluation._internal import STEPS, check_independent, frozen_network
from firststep.meta_learner import MetaLearner
from firststep.network import Params
from firststep.page.turns import check
from firststep.task import Task
from firststep.utils import counted


@dataclass(frozen=True)
class Lesson:
    """The examples with their classes, and the queries with their classes where known.

    Pictures are uint8 [n, H, W, C].
    """

    classes: list[str]
    examples: np.ndarray
    labels: list[int]
    queries: np.ndarray
    expected: list[int | None]

    def support(self, meta: MetaLearner, preprocessing: Preprocessing) -> ImageSupport:
        return ImageSupport(
            self.classes,
            _images(self.examples, preprocessing, meta),
            torch.tensor(self.labels, device=meta.device),
        )


def learner_for(meta: MetaLearner, classes: int) -> MetaLearner:
    try:
        return meta.for_classes(classes)
    except ValueError as error:
        raise FirststepError(str(error)) from None


def step_events(
    meta: MetaLearner,
    preprocessing: Preprocessing,
    lesson: Lesson,
    *,
    steps: int,
    rate: float | None,
    stop: threading.Event,
) -> Iterator[dict[str, Any]]:
    """Yield a ``step`` event for each of the steps 0..steps.

    Args:
        meta: the learner; no other thread may use it meanwhile.
        preprocessing: of its images.
        lesson: the examples to adapt to and the queries to classify.
        steps: number of inner steps.
        rate: α, reported beside the curvature.
        stop: set when the client has gone.
    """
    learner = learner_for(meta, len(lesson.classes))
    support = _fitted(meta, preprocessing, lesson)
    queries = _images(lesson.queries, preprocessing, meta)
    with torch.no_grad():  # compute the frozen part once; queries one by one, as they are classified
        alone = [body_features(meta.network, query[None]) for query in queries]
    asked = torch.cat(alone) if alone else queries
    trajectory = learner.iterate_steps(support.images, support.labels)
    for taken, params in enumerate(islice(trajectory, steps + 1)):
        check(stop)
        yield {
            "type": "step",
            "step": taken,
            **_answers(learner, support, params, taken, asked, lesson.expected),
            **_spectrum(learner, support, params, taken),
            "rate": rate,
        }


def auto_event(
    meta: MetaLearner, preprocessing: Preprocessing, lesson: Lesson, stop: threading.Event
) -> dict[str, Any]:
    """Return the ``auto`` event: the number of steps that ``firststep adapt`` would choose."""
    learner = learner_for(meta, len(lesson.classes))
    support = _fitted(meta, preprocessing, lesson)
    validation = cross_validate(learner, support, probes=False, progress=partial(check, stop))
    if validation is None:
        why = f"a class has one example, so none can be held out: {learner.steps} steps, as in training"
        return {"type": "auto", "steps": learner.steps, "losses": [], "why": why}
    why = f"lowest loss on held-out examples in {validation.folds}-fold cross-validation"
    losses = [_finite(loss) for loss in validation.choice.losses]
    return {"type": "auto", "steps": validation.choice.steps, "losses": losses, "why": why}


def _answers(
    learner: MetaLearner,
    support: ImageSupport,
    params: Params,
    taken: int,
    queries: Tensor,
    expected: Sequence[int | None],
) -> dict[str, Any]:
    if not all(bool(value.isfinite().all()) for value in params.values()):
        raise FirststepError(
            f"after {counted(taken, 'step')} the weights are not finite: the steps are too long for these "
            "examples"
        )
    network = frozen_network(learner, params, support.images)
    if taken == 0:
        check_independent(network, support.images)
    if not len(queries):
        return {"probabilities": [], "accuracy": None, "largest_share": None}
    adapted = AdaptedModel(learner, support, STEPS, params, StepChoice(taken, (), 0), network)
    probabilities = adapted.probabilities(queries)
    answers = probabilities.argmax(1).tolist()
    known = [answer == label for answer, label in zip(answers, expected, strict=True) if label is not None]
    return {
        "probabilities": probabilities.tolist(),
        "accuracy": sum(known) / len(known) if known else None,
        "largest_share": max(map(answers.count, answers)) / len(answers),
    }


@torch.no_grad()
def _spectrum(learner: MetaLearner, support: ImageSupport, params: Params, taken: int) -> dict[str, Any]:
    """Return the spectrum of the classifier's Gram matrix on the support set, and the support loss."""
    task = Task(support.images, support.labels, support.images, support.labels)
    state = AdaptationState(learner.functional, params, task, taken, "cls")
    values = eigenvalues(state.gram, check_finite=False).flip(-1).clamp_min(0.0).tolist()
    found = {
        name: METRICS[name].compute(state).item() for name in ("support_loss", "condition_number", "rank")
    }
    logarithm = found["condition_number"]
    return {
        "support_loss": _finite(found["support_loss"]),
        "condition_number": _finite(10.0**logarithm),
        "rank": _finite(found["rank"]),
        "eigenvalues": [_finite(value) for value in values],
        # The mean loss is Σ r², so its Gauss-Newton matrix is 2 JᵀJ, with the eigenvalues of 2 JJᵀ.
        "largest_curvature": _finite(2 * values[0]),
    }


def _fitted(meta: MetaLearner, preprocessing: Preprocessing, lesson: Lesson) -> ImageSupport:
    """Return the support set for the inner loop, with the frozen part of the network applied once."""
    support = lesson.support(meta, preprocessing)
    with torch.no_grad():
        return replace(support, images=body_features(meta.network, support.images))


def _images(pixels: np.ndarray, preprocessing: Preprocessing, meta: MetaLearner) -> Tensor:
    return torch.from_numpy(preprocessing.normalise(pixels)).to(meta.device)


def _finite(value: float) -> float | None:
    """Return None for NaN and infinity, which JSON does not have."""
    return value if math.isfinite(value) else None
