"""The conditioning loss in one call, and the losses by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from firststep.conditioning._checks import require_finite
from firststep.conditioning.classifier import classifier_gram
from firststep.conditioning.spectrum import log_condition_number, log_eigenvalue_variance
from firststep.utils.registry import Registry

GramLoss = Callable[[Tensor], Tensor]
"""Gram matrix [..., n, n] → loss [...], float64 and differentiable.

Examples:
    >>> def spread(gram):
    ...     values = torch.linalg.eigvalsh(gram)
    ...     return values.std(-1) / values.mean(-1)
    >>> features = torch.randn(10, 32)
    >>> fs.conditioning_loss(features, torch.nn.Linear(32, 5)(features), support_y, loss=spread).shape
    torch.Size([])
"""

CONDITIONING_LOSSES: Registry[GramLoss] = Registry(
    "conditioning loss",
    **{
        "variance": partial(log_eigenvalue_variance, check_finite=False),
        "log-kappa": partial(log_condition_number, check_finite=False),
    },
)
"""Add your own with ``CONDITIONING_LOSSES.register("name", loss)``.

Examples:
    >>> list(fs.CONDITIONING_LOSSES)
    ['variance', 'log-kappa']
"""


def conditioning_loss(
    features: Tensor,
    logits: Tensor,
    labels: Tensor,
    *,
    bias: bool = True,
    loss: str | GramLoss = "variance",
    check_finite: bool = True,
) -> Tensor:
    """Variance of the log-eigenvalues of the classifier's Gram matrix, float64 [...].

    Add ``gamma * conditioning_loss(...)`` of the *support* set, at the parameters before each inner step,
    to the outer loss of your own MAML loop, averaged over the steps (the paper uses gamma = 1)::

        features = body(support_x)
        logits = classifier(features)
        outer_loss = outer_loss + gamma / steps * conditioning_loss(features, logits, support_y)

    Args:
        features: the linear classifier's input on the support set, [..., n, d].
        logits: its output, [..., n, classes].
        labels: integers [..., n].
        bias: whether the classifier's bias is among the constrained parameters.
        loss: ``variance``, another name in ``CONDITIONING_LOSSES``, or any function of the Gram matrix.
        check_finite: refuse NaN, infinities and labels out of range; reading the values makes a GPU wait.
            Inside ``torch.vmap``, where they cannot be read, nothing is refused.

    Examples:
        >>> features = torch.randn(10, 32)
        >>> logits = torch.nn.Linear(32, 5)(features)
        >>> loss = fs.conditioning_loss(features, logits, support_y)
        >>> loss.shape, loss.dtype, loss.requires_grad
        (torch.Size([]), torch.float64, True)
    """
    gram = classifier_gram(features, logits, labels, bias, check_finite=check_finite)
    if check_finite:
        require_finite("the Gram matrix of these features", gram)  # finite features may be too large for it
    return (CONDITIONING_LOSSES[loss] if isinstance(loss, str) else loss)(gram)
