"""The conditioning loss of a linear classifier in one call."""

from __future__ import annotations

from torch import Tensor

from firststep.conditioning._checks import require_finite
from firststep.conditioning.classifier import classifier_gram
from firststep.conditioning.registry import CONDITIONING_LOSSES, GramLoss, LastLayerLoss


def conditioning_loss(
    features: Tensor,
    logits: Tensor,
    labels: Tensor,
    *,
    bias: bool = True,
    loss: str | GramLoss = "variance",
    support_loss: LastLayerLoss | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Return the variance of the log-eigenvalues of the last layer's Gram matrix, float64 [...].

    In your own MAML loop, compute it on the *support* set at the parameters before each inner step. Add its
    mean over the steps, times gamma, to the outer loss (the paper uses gamma = 1)::

        features = body(support_x)
        logits = classifier(features)
        outer_loss = outer_loss + gamma / steps * conditioning_loss(features, logits, support_y)

    Args:
        features: the linear classifier's input on the support set, [..., n, d].
        logits: the classifier's output, [..., n, classes].
        labels: integers [..., n].
        bias: whether the classifier's bias is among the constrained parameters.
        loss: ``variance``, another name in ``CONDITIONING_LOSSES``, or any function of the Gram matrix.
        support_loss: the loss that the inner loop descends, such as ``fs.squared_error``, with ``logits`` the
            layer's output and ``labels`` the targets; default cross-entropy.
        check_finite: refuse NaN, infinities and labels out of range. Reading the values makes a GPU wait.
            Nothing is refused inside ``torch.vmap``, where values cannot be read.

    Examples:
        >>> features = torch.randn(10, 32)
        >>> logits = torch.nn.Linear(32, 5)(features)
        >>> loss = fs.conditioning_loss(features, logits, support_y)
        >>> loss.shape, loss.dtype, loss.requires_grad
        (torch.Size([]), torch.float64, True)
    """
    if support_loss is None:
        gram = classifier_gram(features, logits, labels, bias, check_finite=check_finite)
    else:
        gram = support_loss.gram(features, logits, labels, bias)
    if check_finite:
        require_finite("the Gram matrix of these features", gram)  # finite features can overflow in it
    return (CONDITIONING_LOSSES[loss] if isinstance(loss, str) else loss)(gram)
