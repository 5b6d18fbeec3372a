"""The outer loss: query losses and their weights, and the conditioning loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from firststep.adaptation import Learner
from firststep.conditioning import CONDITIONING_LOSSES, GramLoss, float64_device, in_float64
from firststep.losses import Loss, ResidualKind, Residuals, cross_entropy, first_tensor
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Targets, Task


@dataclass(frozen=True)
class Losses:
    """The loss of the inner steps, and the loss of the query set."""

    support: Loss = cross_entropy
    query: Loss = cross_entropy

    def labels(self, support_y: Targets, query_y: Targets) -> tuple[Tensor, ...]:
        """Return the targets that are classes."""
        return (*self.support.labels(support_y), *self.query.labels(query_y))

    def accuracy(self, output: Any, query_y: Targets) -> Tensor:
        """Return the share of queries that are classified correctly; NaN unless the targets are classes."""
        for labels in self.query.labels(query_y):
            return in_float64(output.detach().argmax(-1) == labels).mean()
        device = float64_device(first_tensor(query_y).device)
        return torch.full((), math.nan, dtype=torch.float64, device=device)


@dataclass(frozen=True, kw_only=True)
class Conditioning:
    """γ Σ_k w_k c(G(θ(k-1))), added to each task's query loss.

    Examples:
        >>> conditioning = fs.Conditioning(subset="cls+emb", weight=0.5)
        >>> fs.MetaLearner(network, conditioning=conditioning).conditioning.subset
        'cls+emb'
    """

    subset: str | tuple[str, ...] = "cls"
    """The constrained parameters ψ, as :meth:`firststep.functional.FunctionalModule.subset` takes them."""
    weight: float = 1.0
    """Weight γ."""
    loss: str | GramLoss = "variance"
    """``variance`` of the log-eigenvalues, the paper's; ``log-kappa``, its ablation; another name in
    ``CONDITIONING_LOSSES``; or any function of the Gram matrix."""
    step_weights: tuple[float, ...] | None = None
    """Weights w_1..w_K, one per inner step; default 1/K each."""
    residuals: ResidualKind | None = None
    """Kind of residuals. ``samples``: r_i = sqrt(ℓ_i / n) for any loss. ``outputs``: one per entry of the
    output's error, for squared error only, where it is the default."""
    rows: int | None = None
    """Number of samples whose residuals are used, drawn once at random and the same at every stage; None for
    all. The eigenvalues of fewer rows lie between those of all, so the condition number is smaller."""

    def __post_init__(self) -> None:
        if isinstance(self.loss, str):
            CONDITIONING_LOSSES[self.loss]  # refuses an unknown name
        elif not callable(self.loss):
            raise ValueError(f"loss must be a name or a function of the Gram matrix, not {self.loss!r}")
        if not math.isfinite(self.weight) or self.weight < 0:
            raise ValueError(f"weight (γ) must be a number >= 0, not {self.weight}")
        if self.residuals not in (None, "samples", "outputs"):
            raise ValueError(f"residuals must be 'samples' or 'outputs', not {self.residuals!r}")
        if self.rows is not None and self.rows < 2:
            raise ValueError(f"rows must be at least 2, not {self.rows}: one eigenvalue has no variance")

    @property
    def chosen_residuals(self) -> Residuals:
        """Return the residuals of the Gram matrix."""
        return Residuals(kind=self.residuals, rows=self.rows)

    def conditioning_loss(self, gram: Tensor) -> Tensor:
        """Return c(G) of one stage, float64."""
        loss = CONDITIONING_LOSSES[self.loss] if isinstance(self.loss, str) else self.loss
        return loss(gram)

    def weights(self, steps: int) -> tuple[float, ...]:
        """Return w_1..w_K."""
        if self.step_weights is None:
            return (1 / steps,) * steps if steps else ()
        if len(self.step_weights) != steps:
            raise ValueError(
                f"step_weights must be one weight for each of the {steps} steps, not {len(self.step_weights)}"
            )
        return self.step_weights


class Start(NamedTuple):
    """A task and the parameters from which its inner loop starts."""

    params: Params
    """θ(0)."""
    task: Task


@dataclass(frozen=True)
class Objective:
    """The outer loss of a task, which the engines differentiate in parameters of network and rule."""

    model: FunctionalModule
    rule: Rule
    steps: int = 5
    conditioning: Conditioning | None = None
    losses: Losses = Losses()

    def learner(self, params: Params, rule_params: Params) -> Learner:
        """Return the learner at these parameters."""
        return Learner(self.model, self.rule, params, rule_params, loss=self.losses.support)

    def start(self, params: Params, task: Task) -> Start:
        """Return a task with its θ(0)."""
        labels = self.losses.labels(task.support_y, task.query_y)
        return Start(self.model.initial_params(params, *labels, support=task.support_x), task)

    @property
    def gram(self) -> dict[str, Any]:
        """Return the options of inner steps that request the conditioning loss's Gram matrix, if any."""
        if self.conditioning is None:
            return {}
        return {"subset": self.conditioning.subset, "residuals": self.conditioning.chosen_residuals}


def check_query_weights(query_weights: Sequence[float] | None, steps: int) -> tuple[float, ...]:
    """Return the weights of the query losses after steps 1..K; None means only the last step."""
    if query_weights is None:
        return (0.0,) * (steps - 1) + (1.0,)
    if len(query_weights) != steps or not all(math.isfinite(weight) for weight in query_weights):
        raise ValueError(
            f"query_weights must be one number for each of the {steps} steps, not {list(query_weights)}"
        )
    return tuple(query_weights)
