"""The gradient of a convolution in its kernel by a C++ routine of our own (``kernel_gradient.cpp``).

oneDNN's routine, and matrix products of what it convolves, reach half the speed that the forward pass has on
the same processor, and they are a third of all convolutions (``benchmarks/convolutions.py``). Ours reads
images as they are, channels last. It is compiled once by the compiler that compiles the graphs, and is to
them an operator of which they know the result's shape alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from firststep.metagradient.compiler.routines import has_routines, load_routine

_WHOLE_VECTORS = 16  # output channels: a multiple of the longest vector
_FEW_CHANNELS = 4
_MOST_ENTRIES = 2**19  # of a kernel, so that its gradient stays in the cache


def has_direct_gradient(cotangent: Tensor, channels: int, size: list[int]) -> bool:
    """By shapes and the kind of processor, not by the clock: runs repeat bit for bit."""
    out = cotangent.shape[1]
    return (
        has_routines(cotangent)
        and out % _WHOLE_VECTORS == 0
        and out * channels * math.prod(size) <= _MOST_ENTRIES
    )


@cache
def load_direct_gradient(dtype: torch.dtype) -> Callable[..., None]:
    return load_routine(["kernel_gradient"], dtype, pointers=2, numbers=17)


def direct_gradient(
    cotangent: Tensor, images: Tensor, size: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """[kernel height, width, channels, output channels].

    Of few channels, the pixels that a row of the kernel sees are taken for the channels of one: they are side
    by side in memory, and as many sums can be taken at once. For that, images get their padding.
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


def _shape(cotangent: Tensor, images: Tensor, size: list[int], *_: Any) -> Tensor:
    return images.new_empty(*size, images.shape[1], cotangent.shape[1])


def _operator() -> torch.library.Library:
    library = torch.library.Library("firststep", "FRAGMENT")
    library.define(
        "direct_gradient(Tensor cotangent, Tensor images, int[] size, int[] stride, int[] padding) -> Tensor"
    )
    library.impl("direct_gradient", direct_gradient, "CPU")
    library.impl("direct_gradient", _shape, "Meta")
    return library


# A module that is loaded again finds its operator there: it can be defined once in a process.
_library = globals().get("_library") or _operator()
