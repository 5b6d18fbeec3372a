"""Which residuals the Jacobian has rows for: the kind, and a random subset of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from firststep.losses.loss import Loss, ResidualKind
from firststep.losses.targets import first_tensor
from firststep.task import Targets, map_inputs


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """The rows of the Jacobian.

    Examples:
        >>> net = functional.FunctionalModule(torch.nn.Linear(3, 2))
        >>> x, y = torch.randn(6, 3), torch.randn(6, 2)
        >>> few = functional.Residuals(rows=2)
        >>> functional.support_gram(net, x, y, loss=fs.squared_error, residuals=few).shape
        torch.Size([4, 4])
    """

    kind: ResidualKind | None = None
    """``samples`` or ``outputs``; None for the loss's own."""
    rows: int | None = None
    """Number of samples that count, drawn once at random; None for all."""

    def chosen(self, target: Targets) -> Tensor | None:
        """Return the numbers of the samples that count, ascending; None for all.

        They depend on the number of samples alone, so that a step that is computed again sees the same ones.
        """
        samples = len(first_tensor(target))
        if self.rows is None or self.rows >= samples:
            return None
        order = torch.randperm(samples, generator=torch.Generator().manual_seed(samples))
        return order[: self.rows].sort().values.to(first_tensor(target).device)

    def vector(self, loss: Loss, output: Any, target: Targets, *, check_finite: bool = False) -> Tensor:
        """Return the residual vector."""
        chosen = self.chosen(target)
        if chosen is not None:
            output, target = (map_inputs(lambda part: part[chosen], each) for each in (output, target))
        return loss.residuals(output, target, kind=self.kind, check_finite=check_finite)

    def count(self, loss: Loss, output: Any, target: Targets) -> int:
        """Return the number of residuals."""
        chosen = self.chosen(target)
        samples = len(first_tensor(target)) if chosen is None else len(chosen)
        if loss.residual_kind(self.kind) == "outputs":
            return samples * first_tensor(output)[0].numel()
        return samples

    def gram(
        self, loss: Loss, features: Tensor, output: Tensor, target: Targets, bias: bool, *, small: bool = True
    ) -> Tensor:
        """Return :meth:`Loss.gram` of these residuals."""
        chosen = self.chosen(target)
        if chosen is not None:
            features, output = features[chosen], output[chosen]
            target = map_inputs(lambda part: part[chosen], target)
        return loss.gram(features, output, target, bias, kind=self.kind, small=small)
