"""The conditioning losses by name. A loss registers itself at its definition."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from torch import Tensor

from firststep.utils.registry import Registry

GramLoss = Callable[[Tensor], Tensor]
"""A function Gram matrix [..., n, n] → loss [...], float64 and differentiable.

Examples:
    >>> def spread(gram):
    ...     values = torch.linalg.eigvalsh(gram)
    ...     return values.std(-1) / values.mean(-1)
    >>> features = torch.randn(10, 32)
    >>> fs.conditioning_loss(features, torch.nn.Linear(32, 5)(features), support_y, loss=spread).shape
    torch.Size([])
"""


class LastLayerLoss(Protocol):
    """A loss that has the Gram matrix of a linear last layer: those of ``firststep.LOSSES``."""

    def gram(self, features: Tensor, output: Tensor, target: Any, bias: bool = True) -> Tensor:
        """Return the Gram matrix in closed form."""
        ...


CONDITIONING_LOSSES: Registry[GramLoss] = Registry("conditioning loss")
"""The conditioning losses by name; add your own with ``CONDITIONING_LOSSES.register("name", loss)``.

Examples:
    >>> list(fs.CONDITIONING_LOSSES)
    ['variance', 'log-kappa']
"""

Loss = TypeVar("Loss", bound=Callable[..., Tensor])


def conditioning_loss_named(name: str) -> Callable[[Loss], Loss]:
    """Return a decorator that registers a function of the Gram matrix as the conditioning loss ``name``.

    Training calls it with ``check_finite=False``: reading values would make a GPU wait at every step.
    """

    def register(loss: Loss) -> Loss:
        CONDITIONING_LOSSES.register(name, partial(loss, check_finite=False))
        return loss

    return register
