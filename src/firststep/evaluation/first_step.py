"""Measure the first inner step of a meta-learner, and name the causes of a bad one.

Each cause has its own number, measured on the same tasks:

- **class offset**: the initial classifier prefers some classes on every sample. The test is to remove the
  offset: if subtracting the mean query logit raises the accuracy after the step, the features were right and
  the offset was the problem.
- **overshoot**: the step is longer than the curvature allows. Along an eigenvector of the Gauss-Newton matrix
  of the support loss, a gradient step multiplies the error by 1 - α λ, which grows if α λ > 2.
- **rank loss**: the Gram matrix has fewer directions than there are support samples. If the classifier has
  fewer parameters than samples, the cause is **too few features**.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from firststep.conditioning import eigenvalues, in_float64, numerical_rank
from firststep.evaluation.metrics import AdaptationState, accuracy, largest_share, support_loss
from firststep.meta_learner import MetaLearner
from firststep.task import Task

JUMP = 0.05
"""Gain in accuracy without the offset above which the offset is called a cause."""
UNSTABLE = 2.0
"""α λ_max above which a gradient step increases the error."""
FULL = 0.95
"""Fraction of the possible rank below which rank loss is reported."""


@dataclass(frozen=True, kw_only=True)
class FirstStep:
    """Means over tasks, before (0) and after (1) the first inner step.

    Examples:
        >>> from firststep.evaluation import measure_first_step
        >>> first = measure_first_step(trained.meta, [glyph_task])
        >>> before, after = first.support_loss
        >>> after < before
        True
    """

    classes: int
    support_loss: tuple[float, float]
    largest_share: tuple[float, float]
    """Fraction of query samples predicted as the most frequent class."""
    accuracy: tuple[float, float]
    centred_accuracy: float
    """Accuracy after the step with the mean query logit subtracted."""
    curvature: float | None
    """α λ_max of the classifier; None for a rule without a single rate α."""
    rank: float
    """Rank of the classifier's Gram matrix."""
    samples: int
    parameters: int
    """Number of parameters of the classifier."""

    def causes(self) -> list[str]:
        """Describe the causes of a bad first step, most important first; empty if none was found."""
        found = []
        gain = self.centred_accuracy - self.accuracy[1]
        if gain > JUMP:
            found.append(
                f"class offset: {100 * self.largest_share[1]:.0f} % of the queries are predicted as one of "
                f"{self.classes} classes after step 1 (support loss at step 0: {self.support_loss[0]:.2f}, "
                f"log {self.classes} is {np.log(self.classes):.2f}); without the mean logit, accuracy is "
                f"{100 * self.centred_accuracy:.1f} % instead of {100 * self.accuracy[1]:.1f} %"
            )
        if self.curvature is not None and self.curvature > UNSTABLE:
            found.append(
                f"overshoot: the step is too long for the curvature, α λ_max = {self.curvature:.2g} > 2 "
                f"(support loss {self.support_loss[0]:.2f} to {self.support_loss[1]:.2f})"
            )
        if self.parameters < self.samples:
            found.append(
                f"too few features: {self.parameters} parameters of the classifier for {self.samples} samples"
            )
        possible = min(self.samples, self.parameters)
        if self.rank < FULL * possible:
            found.append(f"rank loss: the Gram matrix has rank {self.rank:.1f} of {possible}")
        return found


def measure_first_step(meta: MetaLearner, tasks: Iterable[Task], rate: float | None = None) -> FirstStep:
    """Measure one inner step on each task, and average over tasks.

    Args:
        meta: learner to measure.
        tasks: tasks to adapt to and to test on.
        rate: inner learning rate α, if the rule has a single one.

    Examples:
        >>> from firststep.evaluation import measure_first_step
        >>> measure_first_step(trained.meta, [glyph_task]).samples
        10
    """
    rows = [_one_task(meta, task, rate) for task in tasks]
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return FirstStep(
        classes=int(mean["classes"]),
        support_loss=(mean["loss 0"], mean["loss 1"]),
        largest_share=(mean["share 0"], mean["share 1"]),
        accuracy=(mean["accuracy 0"], mean["accuracy 1"]),
        centred_accuracy=mean["centred"],
        curvature=None if rate is None else mean["curvature"],
        rank=mean["rank"],
        samples=int(mean["samples"]),
        parameters=int(mean["parameters"]),
    )


def _one_task(meta: MetaLearner, task: Task, rate: float | None) -> dict[str, float]:
    trajectory = meta.iterate_steps(task.support_x, task.support_y)
    model = meta.functional
    row: dict[str, float] = {}
    for step in (0, 1):
        params = next(trajectory)
        state = AdaptationState(model, params, task, step, "cls")
        with torch.no_grad():
            row[f"loss {step}"] = support_loss(state).item()
            row[f"share {step}"] = largest_share(state).item()
            row[f"accuracy {step}"] = accuracy(state).item()
            logits = state.query.logits
            if step == 0:
                gram = state.gram
                # The mean loss is the sum of squared residuals, so its Gauss-Newton matrix is 2 JᵀJ.
                row["curvature"] = 2 * (rate or 0.0) * eigenvalues(gram)[-1].item()
                row["rank"] = float(numerical_rank(gram))
                row["samples"] = len(gram)
                row["parameters"] = sum(params[name].numel() for name in model.subset("cls"))
                row["classes"] = logits.shape[-1]
            else:
                centred = logits - logits.mean(0)
                row["centred"] = in_float64(centred.argmax(-1) == task.query_y).mean().item()
    return row
