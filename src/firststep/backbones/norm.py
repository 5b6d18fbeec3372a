"""Batch normalisation that always uses the statistics of its batch; with derivatives written by hand.

A channel has N entries z with mean m. Let r = 1/√(variance + ε), x̂ = r (z - m) and y = γ x̂ + β. With a = γ
r and ⟨·⟩ the mean over the channel, an upstream gradient g of y gives the gradients

    z: a (g - ⟨g⟩ - x̂ ⟨g x̂⟩),      γ: N ⟨g x̂⟩,      β: N ⟨g⟩.

With upstream gradients u, p and q of these three, the second derivative is the gradient of

    Φ = N [a E + p ⟨g x̂⟩ + q ⟨g⟩]      with E = ⟨u g⟩ - ⟨u⟩⟨g⟩ - ⟨u x̂⟩⟨g x̂⟩.

With P = p - a ⟨u x̂⟩ it is

    g: a u + P x̂ + q - a ⟨u⟩,      γ: N r E,
    z: r [P g - a ⟨g x̂⟩ u - (⟨g⟩ P - a ⟨g x̂⟩⟨u⟩) - x̂ (⟨g x̂⟩ (P - a ⟨u x̂⟩) + a E)].

So each derivative is one pass of means and one of multiply-adds with a few numbers per channel. Autograd's
own derivative makes about three times as many passes over the images. Reading and writing the images is the
whole cost of normalisation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

_first_order: ContextVar[bool] = ContextVar("firststep_first_order", default=False)


@contextmanager
def first_derivatives_only() -> Iterator[None]:
    """Use torch's own normalisation inside the block: one operation each way, differentiable once."""
    token = _first_order.set(True)
    try:
        yield
    finally:
        _first_order.reset(token)


class BatchStatisticsNorm(nn.Module):
    """Batch norm without running statistics: training and evaluation are the same function.

    Few-shot learners normalise support and query set by separate statistics (the paper is transductive). So
    there are no statistics to keep between batches, and no mode to confuse.

    Examples:
        >>> from firststep.backbones import BatchStatisticsNorm
        >>> normalised = BatchStatisticsNorm(3)(torch.rand(8, 3, 5, 5))
        >>> normalised.mean().abs().item() < 1e-5
        True
    """

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, images: Tensor) -> Tensor:
        if not torch.compiler.is_dynamo_compiling() and _first_order.get():
            return torch.batch_norm(
                images, self.weight, self.bias, None, None, True, 0.0, self.eps, torch.backends.cudnn.enabled
            )
        # Means and variances are not for bfloat16, in which torch.autocast gives the images.
        images = images.to(self.weight.dtype)
        normalised, _, _ = BatchNorm.apply(images, self.weight, self.bias, self.eps)
        assert isinstance(normalised, Tensor)
        return normalised

    def extra_repr(self) -> str:
        return f"{self.weight.numel()}, eps={self.eps}"


class BatchNorm(Function):
    """(images, γ, β, ε) ↦ (y, m, r); m and r are constants for autograd."""

    generate_vmap_rule = True

    @staticmethod
    def forward(images: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        mean, inverse = _statistics(images, eps)
        return _wide(weight * inverse) * (images - _wide(mean)) + _wide(bias), mean, inverse

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        images, weight, _, ctx.eps = inputs
        _, mean, inverse = output
        ctx.mark_non_differentiable(mean, inverse)
        ctx.save_for_backward(images, weight, mean, inverse)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor, *_: Tensor) -> tuple[Any, ...]:
        images, weight, mean, inverse = ctx.saved_tensors
        return *BatchNormBackward.apply(images, weight, cotangent, mean, inverse, ctx.eps), None


class BatchNormBackward(Function):
    """The first derivative as a function of the images, γ and g, given m and r."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        images: Tensor, weight: Tensor, cotangent: Tensor, mean: Tensor, inverse: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        centred = images - _wide(mean)
        scale = weight * inverse
        g, gx = _mean(cotangent), _mean(cotangent * centred) * inverse
        of_images = _wide(scale) * cotangent - _wide(scale * inverse * gx) * centred - _wide(scale * g)
        return of_images, _count(images) * gx, _count(images) * g

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        images, weight, cotangent, mean, inverse, ctx.eps = inputs
        _, of_weight, of_bias = output
        ctx.save_for_backward(images, weight, cotangent, mean, inverse, of_weight, of_bias)

    @staticmethod
    def backward(ctx: Any, u: Tensor, p: Tensor, q: Tensor) -> tuple[Any, ...]:
        images, weight, cotangent, mean, inverse, of_weight, of_bias = ctx.saved_tensors
        count = _count(images)
        g, gx = of_bias / count, of_weight / count
        if torch.is_grad_enabled():  # for a third derivative: the means depend on their entries
            mean, inverse = _statistics(images, ctx.eps)
            g, gx = _mean(cotangent), _mean(cotangent * (images - _wide(mean))) * inverse
        centred = images - _wide(mean)
        scale = weight * inverse
        mean_u, ux = _mean(u), _mean(u * centred) * inverse
        e = _mean(u * cotangent) - mean_u * g - ux * gx
        rest = p - scale * ux
        of_cotangent = _wide(scale) * u + _wide(rest * inverse) * centred + _wide(q - scale * mean_u)
        of_images = (
            _wide(inverse * rest) * cotangent
            - _wide(inverse * scale * gx) * u
            - _wide(inverse * inverse * (gx * (rest - scale * ux) + scale * e)) * centred
            - _wide(inverse * (g * rest - scale * gx * mean_u))
        )
        return of_images, count * inverse * e, of_cotangent, None, None, None


def _statistics(images: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return m and r. (Not by ``torch.var_mean``, which torch.compile does not vectorise.)"""
    mean = _mean(images)
    centred = images - _wide(mean)
    return mean, torch.rsqrt(_mean(centred * centred) + eps)


def _mean(images: Tensor) -> Tensor:
    return images.mean((0, 2, 3))


def _wide(per_channel: Tensor) -> Tensor:
    return per_channel[:, None, None]


def _count(images: Tensor) -> int:
    return images.shape[0] * images.shape[2] * images.shape[3]
