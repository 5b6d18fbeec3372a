"""Metrics per inner step: each is one function, registered where it is defined.

Stored files, tables, reports, training logs, TensorBoard and the table in the documentation follow from the
registry. To add a metric::

    from firststep.evaluation import register_metric

    @register_metric("confidence")
    def confidence(state):
        return state.query.logits.softmax(-1).amax(-1).mean()
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
    """A task after a number of inner steps: the input of a metric. Outputs are computed once.

    Examples:
        >>> from firststep.evaluation import AdaptationState
        >>> network = trained.meta.functional
        >>> state = AdaptationState(network, network.params(), glyph_task, steps=0, subset="cls")
        >>> state.query.logits.shape, state.gram.shape
        (torch.Size([15, 5]), torch.Size([10, 10]))
    """

    model: FunctionalModule
    params: Params
    """Parameters after ``steps`` inner steps."""
    task: Task
    steps: int
    subset: str
    """Parameter subset of the Gram matrix."""

    known_support: Output | None = None
    """Output for the support set, if the next inner step has computed it already."""

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
        """Gram matrix of the support set, float64 [n, n]."""
        support_x, support_y, _, _ = self.task
        return gram_of(self.model, support_x, support_y, self.params, self.subset, output=self.support)


Compute = Callable[[AdaptationState], Tensor]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number per task and step, and how it is shown.

    Examples:
        >>> from firststep.evaluation import METRICS
        >>> METRICS["accuracy"].title, METRICS["accuracy"].percent
        ('accuracy', True)
    """

    title: str
    """Title in tables and on axes."""
    compute: Compute
    """Function that returns a scalar tensor; called without gradients."""
    percent: bool = False
    """Whether tables show the value times 100."""
    log10: bool = False
    """Whether ``compute`` returns log10 of the metric; tables then show its geometric mean over tasks."""
    interval: bool = True
    """Whether the mean is shown with a 95 % half-width; ignored if ``log10``."""
    before_step: bool = False
    """Whether the metric belongs to the step that follows, as the condition number does. Training logs then
    leave out the last stage."""

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of [tasks, steps] over tasks."""
        mean: np.ndarray = values.mean(0)
        return np.power(10.0, mean) if self.log10 else mean


METRICS: Registry[Metric] = Registry("metric")
"""Metrics measured on every task after every step, by name; :func:`register_metric` adds one.

Examples:
    >>> from firststep.evaluation import METRICS
    >>> list(METRICS)
    ['accuracy', 'condition_number', 'rank', 'support_loss', 'largest_share', 'class_offset']
"""


def register_metric(
    title: str,
    *,
    percent: bool = False,
    log10: bool = False,
    interval: bool = True,
    before_step: bool = False,
) -> Callable[[Compute], Compute]:
    """Register the decorated function in :data:`METRICS` under its own name.

    Its name becomes the column in files and logs. The first line of its docstring becomes its entry in the
    documentation.

    Args:
        title: title in tables and on axes.
        percent: see :class:`Metric`, as the other options.
        log10: whether the function returns log10 of the metric.
        interval: whether the mean is shown with a 95 % half-width.
        before_step: whether the metric belongs to the step that follows.

    Examples:
        >>> from firststep.evaluation import METRICS, register_metric
        >>> @register_metric("confidence")
        ... def confidence(state):
        ...     return state.query.logits.softmax(-1).amax(-1).mean()
        >>> METRICS["confidence"].title
        'confidence'
        >>> METRICS.unregister("confidence")
    """

    def register(compute: Compute) -> Compute:
        metric = Metric(
            title=title,
            compute=compute,
            percent=percent,
            log10=log10,
            interval=interval,
            before_step=before_step,
        )
        METRICS.register(compute.__name__, metric)
        return compute

    return register


@register_metric("accuracy", percent=True)
def accuracy(state: AdaptationState) -> Tensor:
    """Fraction of query samples that are classified correctly."""
    return (state.query.logits.argmax(-1) == state.task.query_y).double().mean()


@register_metric("condition number", log10=True, before_step=True)
def condition_number(state: AdaptationState) -> Tensor:
    """λ_max / λ_min of the Gram matrix on the support set; its mean over tasks is geometric."""
    return log_condition_number(state.gram, check_finite=False)


@register_metric("rank", interval=False, before_step=True)
def rank(state: AdaptationState) -> Tensor:
    """Number of eigenvalues of the Gram matrix above rounding error: those the condition number covers."""
    return numerical_rank(state.gram, check_finite=False).double()


@register_metric("support loss", interval=False)
def support_loss(state: AdaptationState) -> Tensor:
    """Mean cross-entropy of the support set; log(number of classes) if the model prefers no class."""
    return F.cross_entropy(state.support.logits.double(), state.task.support_y)


@register_metric("largest class", percent=True, interval=False)
def largest_share(state: AdaptationState) -> Tensor:
    """Fraction of query samples predicted as the most frequent class; 1 / number of classes if balanced."""
    logits = state.query.logits
    return logits.argmax(-1).bincount(minlength=logits.shape[-1]).max().double() / len(logits)


@register_metric("class offset", interval=False)
def class_offset(state: AdaptationState) -> Tensor:
    """Norm of the mean query logit, centred over classes: the model's preference for classes on any sample.

    Centring removes the part that all classes share, which softmax ignores.
    """
    mean = state.query.logits.double().mean(0)
    return (mean - mean.mean()).norm()
