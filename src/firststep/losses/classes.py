"""Losses of classes: one label per sample, one per token or pixel, or several at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.conditioning import cross_entropy_residuals, scaled_errors
from firststep.losses.loss import register_loss
from firststep.losses.targets import require_same_shape


def _check_logits(output: object) -> None:
    if not isinstance(output, Tensor) or output.dim() != 2:
        form = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"loss cross_entropy: the network's output must be logits [n, classes], not {form}; for a label "
            "per token or pixel use token_cross_entropy"
        )


def _mean_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    _check_logits(output)
    return F.cross_entropy(output, target)


@register_loss(
    kind="classes",
    mean_of=_mean_cross_entropy,
    residual_vector=cross_entropy_residuals,
    scaled_errors=scaled_errors,
    non_negative=True,
)
def cross_entropy(
    output: Tensor,
    target: Tensor,
    *,
    label_smoothing: float = 0.0,
    class_weights: Sequence[float] | Tensor | None = None,
) -> Tensor:
    """Softmax cross-entropy of logits [n, classes] and integer labels [n]; the default.

    Options: ``label_smoothing``, and ``class_weights``, which multiply the loss of a sample by the weight of
    its class. The mean divides by n, not by the sum of the weights.

    Examples:
        >>> fs.cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
        tensor([1.3863, 1.3863])
        >>> smooth = fs.cross_entropy.configure(label_smoothing=0.1)
        >>> fs.MetaLearner(network, loss=smooth).loss.name
        'cross_entropy(label_smoothing=0.1)'
    """
    _check_logits(output)
    weights = None if class_weights is None else torch.as_tensor(class_weights).to(output)
    return F.cross_entropy(output, target, weights, reduction="none", label_smoothing=label_smoothing)


@register_loss(kind="tokens", non_negative=True)
def token_cross_entropy(
    output: Tensor, target: Tensor, *, ignore_index: int = -100, class_dim: int = -1
) -> Tensor:
    """Mean cross-entropy over the tokens or pixels of a sample: logits [n, ..., classes], labels [n, ...].

    Positions with the label ``ignore_index`` do not count; a sample without any other has loss 0.
    ``class_dim`` is the dimension of the classes: 1 for segmentation networks, [n, classes, height, width].

    Examples:
        >>> labels = torch.tensor([[0, 1, -100], [2, -100, -100]])
        >>> fs.token_cross_entropy(torch.zeros(2, 3, 4), labels)
        tensor([1.3863, 1.3863])
    """
    if not isinstance(output, Tensor) or not isinstance(target, Tensor):
        raise ValueError("loss token_cross_entropy: output and target must be tensors")
    if output.dim() != target.dim() + 1 or target.is_floating_point():
        raise ValueError(
            "loss token_cross_entropy: expected logits with one dimension more than the integer labels, not "
            f"{list(output.shape)} and {list(target.shape)} of {str(target.dtype).removeprefix('torch.')}"
        )
    logits = output.movedim(class_dim, -1)
    if logits.shape[:-1] != target.shape:
        raise ValueError(
            f"loss token_cross_entropy: labels must have the shape of the logits without the class "
            f"dimension, {list(logits.shape[:-1])}, not {list(target.shape)}"
        )
    counts = target != ignore_index
    right = logits.gather(-1, target.masked_fill(~counts, 0).long().unsqueeze(-1)).squeeze(-1)
    losses = (logits.logsumexp(-1) - right).masked_fill(~counts, 0.0)
    return losses.flatten(1).sum(1) / counts.flatten(1).sum(1).clamp_min(1)


@register_loss(kind="labels", non_negative=True)
def binary_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Sum of the binary cross-entropies of a sample's outputs: logits and targets 0..1, both [n, ...].

    Examples:
        >>> fs.binary_cross_entropy(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
        tensor([1.3863])
    """
    logits, labels = require_same_shape("binary_cross_entropy", output, target)
    losses = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
    return losses.reshape(len(losses), -1).sum(1)
