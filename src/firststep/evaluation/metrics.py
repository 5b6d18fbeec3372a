"""Metrics per inner step: each is one function, registered where it is defined.

Stored files, tables, reports, training logs, TensorBoard and the table in the documentation follow from the
registry. To add a metric::

    from firststep.evaluation import register_metric

    @register_metric("confidence")
    def confidence(state):
        return state.query.logits.softmax(-1).amax(-1).mean()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from firststep.adaptation import gram_of
from firststep.backbones import first_derivatives_only
from firststep.conditioning import in_float64, log_condition_number, numerical_rank
from firststep.errors import FirststepError
from firststep.losses import Kind, Loss, Residuals, cross_entropy, first_tensor
from firststep.network import FunctionalModule, Output, Params
from firststep.task import Targets, Task
from firststep.utils.registry import Registry

KINDS: tuple[Kind, ...] = get_args(Kind)


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
    loss: Loss = cross_entropy
    """Loss of the support set."""
    query_loss: Loss | None = None
    """Loss of the query set, if it is another."""
    residuals: Residuals | None = None
    """Residuals of the Gram matrix; default all."""

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
        return gram_of(
            self.model,
            support_x,
            support_y,
            self.params,
            self.subset,
            loss=self.loss,
            residuals=self.residuals,
            output=self.support,
        )


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
    kinds: tuple[Kind, ...] = ("classes",)
    """Kinds of problem that the metric is defined for."""
    higher_is_better: bool = True
    """Whether a model with a larger value is the better one."""
    on_request: bool = False
    """Whether the metric is measured only where it is named."""

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of [tasks, steps] over tasks."""
        mean: np.ndarray = values.mean(0)
        return np.power(10.0, mean) if self.log10 else mean


METRICS: Registry[Metric] = Registry("metric")
"""Metrics measured on every task after every step, by name; :func:`register_metric` adds one.

Examples:
    >>> from firststep.evaluation import METRICS, metrics_of
    >>> list(metrics_of("classes"))
    ['accuracy', 'condition_number', 'rank', 'support_loss', 'largest_share', 'class_offset']
    >>> list(metrics_of("regression"))
    ['mean_squared_error', 'condition_number', 'rank', 'support_loss', 'r_squared', 'query_loss']
    >>> METRICS["psnr"].on_request
    True
"""

MAIN: dict[Kind, str] = {
    "classes": "accuracy",
    "tokens": "token_accuracy",
    "labels": "label_accuracy",
    "regression": "mean_squared_error",
    "other": "query_loss",
}
"""The metric of each kind of problem that chooses the best model, and that tables and comparisons show."""


def metrics_of(kind: Kind, names: Iterable[str] | None = None) -> dict[str, Metric]:
    """Return the metrics of a kind of problem by name, or the named ones; refuse one that is not defined.

    Examples:
        >>> from firststep.evaluation import metrics_of
        >>> list(metrics_of("regression", ["psnr"]))
        ['psnr']
    """
    if names is None:
        main = MAIN[kind]
        return {main: METRICS[main]} | {
            name: metric for name, metric in METRICS.items() if kind in metric.kinds and not metric.on_request
        }
    chosen = {name: METRICS[name] for name in names}
    for name, metric in chosen.items():
        if kind not in metric.kinds:
            defined = ", ".join(metrics_of(kind))
            raise FirststepError(
                f"metric {name} is not defined for {kind} but for {' and '.join(metric.kinds)}; "
                f"there are: {defined}"
            )
    return chosen


def register_metric(
    title: str,
    *,
    percent: bool = False,
    log10: bool = False,
    interval: bool = True,
    before_step: bool = False,
    kinds: tuple[Kind, ...] = ("classes",),
    higher_is_better: bool = True,
    on_request: bool = False,
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
        kinds: kinds of problem that it is defined for: classes, tokens, labels, regression, other.
        higher_is_better: whether a larger value is better.
        on_request: whether it is measured only where it is named.

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
            kinds=kinds,
            higher_is_better=higher_is_better,
            on_request=on_request,
        )
        METRICS.register(compute.__name__, metric)
        return compute

    return register


@register_metric("accuracy", percent=True)
def accuracy(state: AdaptationState) -> Tensor:
    """Fraction of query samples that are classified correctly."""
    return in_float64(state.query.logits.argmax(-1) == state.task.query_y).mean()


@register_metric("condition number", log10=True, before_step=True, kinds=KINDS, higher_is_better=False)
def condition_number(state: AdaptationState) -> Tensor:
    """λ_max / λ_min of the Gram matrix on the support set; its mean over tasks is geometric."""
    return log_condition_number(state.gram, check_finite=False)


@register_metric("rank", interval=False, before_step=True, kinds=KINDS)
def rank(state: AdaptationState) -> Tensor:
    """Number of eigenvalues of the Gram matrix above rounding error: those the condition number covers."""
    return numerical_rank(state.gram, check_finite=False).double()


@register_metric("support loss", interval=False, kinds=KINDS, higher_is_better=False)
def support_loss(state: AdaptationState) -> Tensor:
    """Mean loss of the support set; log(number of classes) if a classifier prefers no class."""
    return _mean_loss(state.loss, state.support.logits, state.task.support_y)


@register_metric("largest class", percent=True, interval=False, higher_is_better=False)
def largest_share(state: AdaptationState) -> Tensor:
    """Fraction of query samples predicted as the most frequent class; 1 / number of classes if balanced."""
    logits = state.query.logits
    return in_float64(logits.argmax(-1).bincount(minlength=logits.shape[-1]).max()) / len(logits)


@register_metric("class offset", interval=False, higher_is_better=False)
def class_offset(state: AdaptationState) -> Tensor:
    """Norm of the mean query logit, centred over classes: the model's preference for classes on any sample.

    Centring removes the part that all classes share, which softmax ignores.
    """
    mean = in_float64(state.query.logits).mean(0)
    return (mean - mean.mean()).norm()


@register_metric("mean squared error", kinds=("regression",), higher_is_better=False)
def mean_squared_error(state: AdaptationState) -> Tensor:
    """Mean of (output - target)² over all entries of the query set."""
    output, target = _numbers(state)
    return (output - target).square().mean()


@register_metric("R²", kinds=("regression",), interval=False)
def r_squared(state: AdaptationState) -> Tensor:
    """1 - squared error / variance of the targets, over all entries of the query set; 0 predicts the mean.

    Targets that are all equal have no variance: R² is then 0.
    """
    output, target = _numbers(state)
    around = (target - target.mean(0)).square().sum()
    errors = (output - target).square().sum()
    return torch.where(around > 0, 1 - errors / torch.where(around > 0, around, 1.0), 0.0)


@register_metric("PSNR in dB", kinds=("regression",), on_request=True)
def psnr(state: AdaptationState) -> Tensor:
    """-10 log10 of the mean squared error, for images with values between 0 and 1."""
    return -10 * mean_squared_error(state).clamp_min(1e-12).log10()


@register_metric("accuracy per token", percent=True, kinds=("tokens",))
def token_accuracy(state: AdaptationState) -> Tensor:
    """Fraction of the tokens or pixels of the query set that count and are classified correctly."""
    loss = state.query_loss or state.loss
    options = dict(loss.options)
    labels = first_tensor(state.task.query_y)
    counts = labels != options.get("ignore_index", -100)
    right = state.query.logits.argmax(options.get("class_dim", -1)) == labels
    return in_float64(right & counts).sum() / in_float64(counts).sum().clamp_min(1)


@register_metric("accuracy per label", percent=True, kinds=("labels",))
def label_accuracy(state: AdaptationState) -> Tensor:
    """Fraction of the labels of all query samples that are predicted correctly, at probability one half."""
    return in_float64((state.query.logits > 0) == (first_tensor(state.task.query_y) > 0.5)).mean()


@register_metric(
    "query loss", kinds=("tokens", "labels", "regression", "other"), interval=True, higher_is_better=False
)
def query_loss(state: AdaptationState) -> Tensor:
    """Mean loss of the query set."""
    return _mean_loss(state.query_loss or state.loss, state.query.logits, state.task.query_y)


def _mean_loss(loss: Loss, output: Any, target: Targets) -> Tensor:
    return loss.mean(*loss.in_float64(output, target))


def _numbers(state: AdaptationState) -> tuple[Tensor, Tensor]:
    return in_float64(state.query.logits), in_float64(first_tensor(state.task.query_y))
