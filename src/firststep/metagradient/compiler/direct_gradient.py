"""The gradient of a convolution in its kernel, in C++ (``kernel_gradient.cpp``).

Kernel gradients are a third of all convolutions. oneDNN's routine and matrix products of patches reach half
the speed of the forward pass (``benchmarks/convolutions.py``). Ours reads channels-last images in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from firststep.metagradient.compiler.operators import define_operator
from firststep.metagradient.compiler.routines import has_routines, load_routine

_WHOLE_VECTORS = 16  # output channels: a multiple of the longest vector
_FEW_CHANNELS = 4
_MOST_ENTRIES = 2**19  # kernel entries whose gradient stays in the cache


def has_direct_gradient(cotangent: Tensor, channels: int, size: list[int]) -> bool:
    """Return whether the routine applies. Depends on shapes and processor only, so runs repeat exactly."""
    out = cotangent.shape[1]
    return (
        has_routines(cotangent)
        and out % _WHOLE_VECTORS == 0
        and out * channels * math.prod(size) <= _MOST_ENTRIES
    )


@cache
def load_direct_gradient(dtype: torch.dtype) -> Callable[..., None]:
    """Compile the routine, or load it from the cache."""
    return load_routine(["products", "kernel_gradient"], dtype, pointers=2, numbers=17)


def direct_gradient(
    cotangent: Tensor, images: Tensor, size: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """Return the gradient as [kernel height, kernel width, channels, output channels].

    With few channels, fold one kernel row into the channel axis: its pixels are contiguous in padded images,
    so one tile takes the sums of the whole row.
    """
    x, g = (value.permute(0, 2, 3, 1).contiguous() for value in (images, cotangent))
    result = x.new_zeros(*size, x.shape[3], g.shape[3])
    if x.shape[3] <= _FEW_CHANNELS:
        rows, columns = padding
        x = torch.nn.functional.pad(x, (0, 0, columns, columns, rows, rows))
        width = (g.shape[2] - 1) * stride[1] + 1
        shape = (*x.shape[:2], width, size[1] * x.shape[3])
        size, padding = [size[0], 1], [0, 0]
    else:
        shape = tuple(x.shape)
    numbers = (*shape, *x.stride()[:3], *g.shape[1:], *size, *stride, *padding)
    load_direct_gradient(x.dtype)(x, g, result, *numbers, torch.get_num_threads())
    return result


def _empty_gradient(cotangent: Tensor, images: Tensor, size: list[int], *_: Any) -> Tensor:
    return images.new_empty(*size, images.shape[1], cotangent.shape[1])


define_operator(
    direct_gradient,
    "(Tensor cotangent, Tensor images, int[] size, int[] stride, int[] padding) -> Tensor",
    _empty_gradient,
)
