"""Each convolution of a network alone, forward and both gradients, beside a matrix product: where time goes.

python benchmarks/convolutions.py "ResNet10, 84 px"

The second derivatives are made of the same three forms (see roofline.py), the image gradient as a transposed
convolution.
"""

from __future__ import annotations

import sys

import torch

from contenders import model_and_task
from convolution_forms import Compute, best_seconds, forms
from firststep.allocator import keep_freed_memory
from roofline import convolutions


def speed(operations: int, compute: Compute) -> str:
    """Return the best speed in GFLOPS."""
    return f"{operations / best_seconds(compute) / 1e9:.0f}"


def row(layer: torch.nn.Conv2d, shape: tuple[int, ...], operations: int) -> list[str]:
    size, stride = layer.kernel_size, layer.stride
    name = f"{shape[1]} to {layer.out_channels}, {size[0]}x{size[1]} / {stride[0]}, {shape[2]} px"
    return [name, f"{operations / 1e9:.2f}", *(speed(operations, form) for form in forms(layer, shape))]


def main(network: str) -> None:
    keep_freed_memory()
    torch.set_grad_enabled(False)
    square = torch.randn(1024, 1024)
    product = speed(2 * 1024**3, lambda: square @ square)
    print(
        f"| {network}; a product of matrices reaches {product} | GFLOP | forward | ours | image gradient "
        "| the same, transposed | ours | kernel gradient | ours |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for layer, shape, operations in convolutions(network, model_and_task(network)[1].support_x):
        print("| " + " | ".join(row(layer, shape, operations)) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
