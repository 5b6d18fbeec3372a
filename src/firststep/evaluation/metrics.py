"""Per-step metrics: one function each, registered by name.

Saving, loading, tables, reports, training logs and TensorBoard follow from the registry. To add a metric::

    from firststep.evaluation import METRICS, AdaptationState, Metric

    def confidence(state: AdaptationState) -> Tensor:
        return state.query.logits.softmax(-1).amax(-1).mean()

    METRICS.register("confidence", Metric(title="confidence", compute=confidence))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from firststep.adaptation import gram_of
from firststep.backbones import first_derivatives_only
from firststep.conditioning import log_condition_number, numerical_rank
from firststep.network import FunctionalModule, Output, Params
from firststep.task import Task
from firststep.utils.registry import Registry


@dataclass
class AdaptationState:
    """A task after a number of inner steps: what a metric is computed from. Outputs are computed once.

    Examples:
        >>> from firststep.evaluation import AdaptationState
        >>> network = trained.meta.functional
        >>> state = AdaptationState(network, network.params(), glyph_task, steps=0, subset="cls")
        >>> state.query.logits.shape, state.gram.shape
        (torch.Size([15, 5]), torch.Size([10, 10]))
    """

    model: FunctionalModule
    params: Params
    """After the steps taken so far."""
    task: Task
    steps: int
    subset: str
    """Parameters whose Gram matrix is asked for."""

    known_support: Output | None = None
    """The output for the support set, if the next inner step has computed it already."""

    @cached_property
    def query(self) -> Output:
        with first_derivatives_only():
            return self.model(self.params, self.task.query_x)

    @cached_property
    def support(self) -> Output:
        if self.known_support is not None:
            return self.known_support
        with first_derivatives_only():
            return self.model(self.params, self.task.support_x)

    @cached_property
    def gram(self) -> Tensor:
        """Of the support set, float64 [n, n]."""
        support_x, support_y, _, _ = self.task
        return gram_of(self.model, support_x, support_y, self.params, self.subset, output=self.support)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number for each task and step.

    Examples:
        >>> from firststep.evaluation import METRICS, Metric
        >>> def confidence(state):
        ...     return state.query.logits.softmax(-1).amax(-1).mean()
        >>> _ = METRICS.register("confidence", Metric(title="confidence", compute=confidence))
        >>> METRICS.unregister("confidence")
    """

    title: str
    """For tables and axes."""
    compute: Callable[[AdaptationState], Tensor]
    """A scalar tensor; called without gradients."""
    percent: bool = False
    """Shown times 100."""
    log10: bool = False
    """``compute`` gives log10 of the metric, whose geometric mean over tasks is shown."""
    interval: bool = True
    """Whether its mean is shown with a 95 % half-width; not where ``log10``."""
    before_step: bool = False
    """It belongs to the step that follows, as the condition number does: logs leave out the last stage."""

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Over the tasks of [tasks, steps]."""
        mean: np.ndarray = values.mean(0)
        return np.power(10.0, mean) if self.log10 else mean


METRICS: Registry[Metric] = Registry("metric")
"""What is measured on every task after every step. Add your own with ``METRICS.register("name", metric)``.

Examples:
    >>> from firststep.evaluation import METRICS
    >>> list(METRICS)
    ['accuracy', 'condition_number', 'rank', 'support_loss', 'largest_share', 'class_offset']
"""


def accuracy(state: AdaptationState) -> Tensor:
    """The share of query samples that are classified correctly."""
    return (state.query.logits.argmax(-1) == state.task.query_y).double().mean()


def log10_condition_number(state: AdaptationState) -> Tensor:
    """log10(λ_max / λ_min) of the Gram matrix; it spreads over orders of magnitude."""
    return log_condition_number(state.gram, check_finite=False)


def rank(state: AdaptationState) -> Tensor:
    """How many eigenvalues of the Gram matrix stand above rounding: what the condition number is about."""
    return numerical_rank(state.gram, check_finite=False).double()


def support_loss(state: AdaptationState) -> Tensor:
    """Mean cross-entropy of the support set; log(classes) where the model does not prefer any."""
    return F.cross_entropy(state.support.logits.double(), state.task.support_y)


def largest_share(state: AdaptationState) -> Tensor:
    """The share of query samples that fall into the class most of them fall into; 1 / classes if balanced."""
    logits = state.query.logits
    return logits.argmax(-1).bincount(minlength=logits.shape[-1]).max().double() / len(logits)


def class_offset(state: AdaptationState) -> Tensor:
    """The length of the mean query logit: what the model adds to a class whatever the sample.

    What all classes have in common does not matter to the softmax and is left out.
    """
    mean = state.query.logits.double().mean(0)
    return (mean - mean.mean()).norm()


METRICS.register("accuracy", Metric(title="accuracy", compute=accuracy, percent=True))
METRICS.register(
    "condition_number",
    Metric(title="condition number", compute=log10_condition_number, log10=True, before_step=True),
)
METRICS.register("rank", Metric(title="rank", compute=rank, interval=False, before_step=True))
METRICS.register("support_loss", Metric(title="support loss", compute=support_loss, interval=False))
METRICS.register(
    "largest_share", Metric(title="largest class", compute=largest_share, percent=True, interval=False)
)
METRICS.register("class_offset", Metric(title="class offset", compute=class_offset, interval=False))
