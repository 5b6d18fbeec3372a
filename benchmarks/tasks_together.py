"""The convolutions of four tasks, whose kernels differ: in turn, as groups of one, or side by side.

python benchmarks/tasks_together.py "Conv4-32, 28 px"

*In turn*: each with all threads. *Groups*: one convolution of all tasks' channels with groups = tasks. *Side
by side*: each task on a thread of its own, as :mod:`firststep.network.task_threads` does. Milliseconds of all
four tasks, the best of several; a support set, channels last, freed memory kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from contenders import model_and_task
from convolution_forms import best_seconds, forms
from firststep.allocator import keep_freed_memory
from roofline import convolutions

TASKS = 4
FORMS = {"forward": "forward", "image_gradient": "image gradient", "kernel_gradient": "kernel gradient"}


def in_groups(layer: nn.Conv2d) -> nn.Conv2d:
    return nn.Conv2d(
        TASKS * layer.in_channels,
        TASKS * layer.out_channels,
        layer.kernel_size,  # type: ignore[arg-type]
        layer.stride,  # type: ignore[arg-type]
        layer.padding,  # type: ignore[arg-type]
        groups=TASKS,
    )


def side_by_side(computations: list[Callable[[], object]], pool: ThreadPoolExecutor) -> None:
    for done in [pool.submit(compute) for compute in computations]:
        done.result()


def main(network: str) -> None:
    keep_freed_memory()
    torch.set_grad_enabled(False)
    threads = torch.get_num_threads()
    print(
        f"| {network}, ms of {TASKS} tasks | form | in turn | groups | side by side |\n|---|---|---|---|---|"
    )
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for layer, shape, _ in convolutions(network, model_and_task(network)[1].support_x):
            apart = [forms(layer, shape) for _ in range(TASKS)]
            together = forms(in_groups(layer), (shape[0], TASKS * shape[1], *shape[2:]))
            for form, name in FORMS.items():
                each = [getattr(one, form) for one in apart]
                seconds = [
                    best_seconds(lambda: [compute() for compute in each]),  # noqa: B023
                    best_seconds(getattr(together, form)),
                    best_seconds(lambda: side_by_side(each, pool)),  # noqa: B023
                ]
                found = " | ".join(f"{1e3 * value:.2f}" for value in seconds)
                print(f"| {shape[1]} to {layer.out_channels}, {shape[2]} px | {name} | {found} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
