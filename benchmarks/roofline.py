"""The floor: the time of the convolutions alone, at the speed that the machine gives such a convolution.

One inner step and its exact way back are nine forward passes' worth of convolution: the step 3 (forward, and
backward in the images and the kernels), the second derivative 6. The query set adds 3 of its own.

Conditioning on all parameters adds, for every sample of every step, a backward pass (2) and its second
derivative against a fixed vector (4), of the first layer one of each: its images are constants. A loop over
the samples by plain autograd does the same convolutions.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contenders import model_and_task

STEP, QUERY = 9, 3
ROW, ROW_OF_FIRST = 6, 2


def convolutions(network: str, images: Tensor) -> list[tuple[nn.Conv2d, tuple[int, ...], int]]:
    """Each convolution of the network with the shape it is given and its floating-point operations."""
    model, _ = model_and_task(network)
    found: list[tuple[nn.Conv2d, tuple[int, ...], int]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(layer, nn.Conv2d)
        kernel = layer.weight[0].numel()
        found.append((layer, tuple(inputs[0].shape), 2 * output.numel() * kernel))

    hooks = [m.register_forward_hook(note) for m in model.module.modules() if isinstance(m, nn.Conv2d)]
    with torch.no_grad():
        model.module(images)
    for hook in hooks:
        hook.remove()
    return found


def peak(network: str, images: Tensor, seconds: float = 1.0) -> float:
    """Operations a second of the network's largest convolution, run alone again and again, at its best."""
    layer, shape, operations = max(convolutions(network, images), key=lambda one: one[2])
    x = torch.randn(shape).contiguous(memory_format=torch.channels_last)
    weight = layer.weight.detach().contiguous(memory_format=torch.channels_last)
    best, start = float("inf"), time.perf_counter()
    with torch.no_grad():
        while time.perf_counter() - start < seconds:
            before = time.perf_counter()
            F.conv2d(x, weight, None, layer.stride, layer.padding)
            best = min(best, time.perf_counter() - before)
    return operations / best


def floor(network: str, steps: int) -> tuple[float, float, float]:
    """Seconds of the floor; with conditioning on all parameters; the operations a second they rest on."""
    _, task = model_and_task(network)
    first, *others = (operations for *_, operations in convolutions(network, task.support_x))
    support, rows = first + sum(others), len(task.support_y) * (ROW_OF_FIRST * first + ROW * sum(others))
    query = sum(operations for *_, operations in convolutions(network, task.query_x))
    speed = peak(network, task.support_x)
    plain = STEP * steps * support + QUERY * query
    return plain / speed, (plain + steps * rows) / speed, speed


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(floor(sys.argv[1], int(sys.argv[2]))))
