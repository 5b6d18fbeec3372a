"""The outer loss: weights of the query losses, and the conditioning loss with its parameters and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from firststep.conditioning import CONDITIONING_LOSSES, GramLoss


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
    """γ."""
    loss: str | GramLoss = "variance"
    """``variance`` of the log-eigenvalues, the paper's; ``log-kappa``, its ablation; another name in
    ``CONDITIONING_LOSSES``; or any function of the Gram matrix."""
    step_weights: tuple[float, ...] | None = None
    """w_1..w_K, one for each inner step; default 1/K each."""

    def __post_init__(self) -> None:
        if isinstance(self.loss, str):
            CONDITIONING_LOSSES[self.loss]  # refuses an unknown name
        elif not callable(self.loss):
            raise ValueError(f"loss must be a name or a function of the Gram matrix, not {self.loss!r}")
        if not math.isfinite(self.weight) or self.weight < 0:
            raise ValueError(f"weight (γ) must be a number >= 0, not {self.weight}")

    def conditioning_loss(self, gram: Tensor) -> Tensor:
        """c(G) of one stage, float64."""
        loss = CONDITIONING_LOSSES[self.loss] if isinstance(self.loss, str) else self.loss
        return loss(gram)

    def weights(self, steps: int) -> tuple[float, ...]:
        """w_1..w_K."""
        if self.step_weights is None:
            return (1 / steps,) * steps if steps else ()
        if len(self.step_weights) != steps:
            raise ValueError(
                f"step_weights must be one weight for each of the {steps} steps, not {len(self.step_weights)}"
            )
        return self.step_weights


def check_query_weights(query_weights: Sequence[float] | None, steps: int) -> tuple[float, ...]:
    """Weights of the query losses after steps 1..K; None stands for that of the last step alone."""
    if query_weights is None:
        return (0.0,) * (steps - 1) + (1.0,)
    if len(query_weights) != steps or not all(math.isfinite(weight) for weight in query_weights):
        raise ValueError(
            f"query_weights must be one number for each of the {steps} steps, not {list(query_weights)}"
        )
    return tuple(query_weights)
