"""The conditioning of a classifier in any training loop, by a forward hook on the layer."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from firststep.conditioning.classifier import classifier_gram
from firststep.conditioning.loss import conditioning_loss
from firststep.conditioning.registry import GramLoss, LastLayerLoss
from firststep.conditioning.spectrum import condition_number, numerical_rank


class Watch:
    """The conditioning of a layer at its last call; made by :func:`watch`.

    Examples:
        >>> with fs.watch(network.classifier) as watch:
        ...     logits = network(support_x)
        ...     gram = watch.gram(support_y)
        >>> gram.shape
        torch.Size([10, 10])
    """

    def __init__(self, layer: nn.Module, loss: LastLayerLoss | None = None) -> None:
        if not isinstance(layer, nn.Module):
            raise TypeError(
                f"watch takes the classifier, a module such as model.fc, not {type(layer).__name__}"
            )
        self._bias = getattr(layer, "bias", None) is not None
        self._call: tuple[Tensor, Tensor] | None = None
        self._loss = loss
        self._hook = layer.register_forward_hook(self._keep)

    def loss(
        self,
        labels: Tensor,
        *,
        bias: bool | None = None,
        loss: str | GramLoss = "variance",
        check_finite: bool = True,
    ) -> Tensor:
        """Return :func:`conditioning_loss` of the layer's last call, float64; differentiable as the call.

        Args:
            labels: labels of the samples of that call, the support set.
            bias: whether the layer's bias is among the constrained parameters; default whether it has one.
            loss: as in :func:`conditioning_loss`.
            check_finite: refuse NaN, infinities and labels out of range. Nothing is refused inside
                ``torch.vmap``, where values cannot be read.
        """
        features, logits = self._last_call()
        return conditioning_loss(
            features,
            logits,
            labels,
            bias=self._with_bias(bias),
            loss=loss,
            support_loss=self._loss,
            check_finite=check_finite,
        )

    def gram(self, labels: Tensor, *, bias: bool | None = None, check_finite: bool = True) -> Tensor:
        """Return :func:`classifier_gram` of the layer's last call, float64 [n, n]."""
        features, logits = self._last_call()
        if self._loss is not None:
            return self._loss.gram(features, logits, labels, self._with_bias(bias))
        return classifier_gram(features, logits, labels, self._with_bias(bias), check_finite=check_finite)

    @torch.no_grad()
    def condition_number(self, labels: Tensor, *, bias: bool | None = None) -> Tensor:
        """Return λ_max / λ_min of the Gram matrix of the layer's last call, detached."""
        return condition_number(self.gram(labels, bias=bias))

    @torch.no_grad()
    def rank(self, labels: Tensor, *, bias: bool | None = None) -> Tensor:
        """Return the :func:`numerical_rank` of that Gram matrix."""
        return numerical_rank(self.gram(labels, bias=bias))

    def close(self) -> None:
        """Remove the hook and drop the last call."""
        self._hook.remove()
        self._call = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        self._call = inputs[0], output

    def _last_call(self) -> tuple[Tensor, Tensor]:
        if self._call is None:
            raise ValueError(
                "the watched layer has not been called: run the network on the support set first"
            )
        return self._call

    def _with_bias(self, bias: bool | None) -> bool:
        return self._bias if bias is None else bias

    def __getstate__(self) -> dict[str, Any]:
        """Drop the last call: hooks are copied and pickled with their layer, but a graph cannot be."""
        return {**self.__dict__, "_call": None}


def watch(layer: nn.Module, loss: LastLayerLoss | None = None) -> Watch:
    """Watch a network's linear last layer, for the conditioning loss in your own training loop::

        with firststep.watch(model.fc) as classifier:
            for step in range(steps):
                loss = cross_entropy(model(support_x), support_y)
                conditioning_loss = conditioning_loss + classifier.loss(support_y) / steps
                ...  # an inner step
        outer_loss = query_loss + gamma * conditioning_loss

    The loss refers to the layer's last call, so compute it right after the forward pass of the support set.
    It works with plain autograd, ``torch.func`` (``grad``, ``vmap``) and TorchOpt. With higher, watch the
    layer of the patched module: ``watch(fast.fc)``.

    Args:
        layer: the linear layer that returns the logits or predictions.
        loss: the loss per sample, such as ``fs.squared_error``; its targets take the place of ``labels``.
            Default: cross-entropy.

    Examples:
        >>> watch = fs.watch(network.classifier)
        >>> logits = network(support_x)
        >>> watch.loss(support_y).requires_grad
        True
        >>> int(watch.rank(support_y))
        10
        >>> watch.close()
    """
    return Watch(layer, loss)
