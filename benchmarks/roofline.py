"""The floor: the time of the convolutions alone.

One inner step and its exact way back are nine forward passes' worth of convolution, three of each form: the
step has one forward, one gradient in the images and one in the kernels, the second derivative two of each.
The first layer, whose images need no gradient, has two forward and two of the kernels. The query set adds one
of each.

Two floors: as if every convolution were as fast as the library's is for the network's largest one forward,
and with every convolution at the best that its own form and shape reach by themselves, by the library's
routines or by ours. The first counts sums of products; ours by Winograd take fewer multiplications, so that
it can be undercut.

Conditioning on all parameters adds, for every sample of every step, a backward pass (2) and its second
derivative against a fixed vector (4), of the first layer one of each: its images are constants. A loop over
the samples by plain autograd does the same convolutions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from contenders import model_and_task
from convolution_forms import best_seconds, forms
from firststep.allocator import keep_freed_memory

STEP, QUERY = 9, 3
Convolution = tuple[nn.Conv2d, tuple[int, ...], int]
ROW, ROW_OF_FIRST = 6, 2


def convolutions(network: str, images: Tensor) -> list[Convolution]:
    """Return each convolution of the network with its input shape and floating-point operations."""
    model, _ = model_and_task(network)
    found: list[Convolution] = []

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


def operations(support: list[Convolution], query: list[Convolution], steps: int, samples: int = 0) -> int:
    """Return the operations of all convolutions of a meta-gradient; ``samples``: with conditioning on all."""
    first, *others = (count for *_, count in support)
    row = ROW_OF_FIRST * first + ROW * sum(others)
    plain = STEP * steps * (first + sum(others)) + QUERY * sum(count for *_, count in query)
    return plain + steps * samples * row


def peak(found: list[Convolution]) -> float:
    """Return the best operations per second of the network's largest convolution, run alone."""
    layer, shape, count = max(found, key=lambda one: one[2])
    return count / best_seconds(forms(layer, shape).forward, repeats=30)


def own_seconds(found: list[Convolution], times: int) -> float:
    """Return the time of all convolutions at their own speeds; the first layer by the rule above."""
    total = 0.0
    for number, (layer, shape, _) in enumerate(found):
        each = forms(layer, shape)
        forward = min(best_seconds(each.forward), best_seconds(each.forward_ours))
        kernels = min(best_seconds(each.kernel_gradient), best_seconds(each.kernel_gradient_ours))
        images = min(
            best_seconds(each.image_gradient),
            best_seconds(each.image_gradient_transposed),
            best_seconds(each.image_gradient_ours),
        )
        if number:
            total += times * (forward + kernels + images)
        else:
            total += (times + 1) // 2 * (forward + kernels)  # 2 of 3 in a step, 1 of 1 in the query
    return total


@torch.no_grad()
def floors(network: str, steps: int) -> dict[str, float]:
    """Return seconds: plain, with conditioning on all, at own speeds; and the speed of the first two."""
    keep_freed_memory()
    _, task = model_and_task(network)
    support, query = convolutions(network, task.support_x), convolutions(network, task.query_x)
    speed = peak(support)
    return {
        "": operations(support, query, steps) / speed,
        "all": operations(support, query, steps, len(task.support_y)) / speed,
        "own speed": steps * own_seconds(support, 3) + own_seconds(query, 1),
        "operations a second": speed,
    }


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(floors(sys.argv[1], int(sys.argv[2]))))
