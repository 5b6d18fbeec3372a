"""Each convolution of a network alone, forward and both gradients, beside a matrix product: where time goes.

python benchmarks/convolutions.py "ResNet10, 84 px"

The second derivatives are made of the same three forms (see roofline.py), the image gradient as a transposed
convolution.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F

import firststep.metagradient.compiler.kernel_gradients  # noqa: F401  (defines the operator)
from contenders import model_and_task
from firststep.allocator import keep_freed_memory
from roofline import convolutions

aten = torch.ops.aten


def speed(operations: int, compute: Callable[[], object], repeats: int = 8) -> str:
    """GFLOPS at its best."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        compute()
        best = min(best, time.perf_counter() - start)
    return f"{operations / best / 1e9:.0f}"


def row(layer: torch.nn.Conv2d, shape: tuple[int, ...], operations: int) -> list[str]:
    kernel = layer.weight.detach()
    stride, padding, size = list(layer.stride), list(layer.padding), list(kernel.shape[2:])
    x = torch.randn(shape).to(memory_format=torch.channels_last)
    g = torch.randn_like(F.conv2d(x, kernel, None, stride, padding))
    rest = [x.shape[d] + 2 * padding[d - 2] - size[d - 2] - stride[d - 2] * (g.shape[d] - 1) for d in (2, 3)]

    def backward(*wanted: bool) -> object:
        return aten.convolution_backward(
            g, x, kernel, None, stride, padding, [1, 1], False, [0, 0], 1, [*wanted, False]
        )

    forms: list[Callable[[], object]] = [
        lambda: F.conv2d(x, kernel, None, stride, padding),
        lambda: backward(True, False),
        lambda: aten.convolution(g, kernel, None, stride, padding, [1, 1], True, rest, 1),
        lambda: backward(False, True),
        lambda: torch.ops.firststep.kernel_gradient(g, x, size, stride, padding),
    ]
    name = f"{shape[1]} to {len(kernel)}, {size[0]}x{size[1]} / {stride[0]}, {shape[2]} px"
    return [name, f"{operations / 1e9:.2f}", *(speed(operations, form) for form in forms)]


def main(network: str) -> None:
    keep_freed_memory()
    torch.set_grad_enabled(False)
    square = torch.randn(1024, 1024)
    product = speed(2 * 1024**3, lambda: square @ square)
    print(
        f"| {network}; a product of matrices reaches {product} | GFLOP | forward | image gradient "
        "| the same, transposed | kernel gradient | the same, product |"
    )
    print("|---|---|---|---|---|---|---|")
    for layer, shape, operations in convolutions(network, model_and_task(network)[1].support_x):
        print("| " + " | ".join(row(layer, shape, operations)) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
