"""A few-shot task: support and query set as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

Inputs = Tensor | tuple[Any, ...] | Mapping[str, Any]
"""A batch for a network: a tensor, or the tensors of its positional (tuple) or keyword (dict) arguments.

Examples:
    >>> words, mask = torch.zeros(4, 8).long(), torch.ones(4, 8)
    >>> texts: functional.Inputs = {"input_ids": words, "attention_mask": mask}
"""


Targets = Inputs
"""The targets of a batch: a tensor, or a tuple or dict of tensors, with one entry per sample each."""

AsTarget = Callable[[object, str], Targets]
"""(targets, their name in errors) → the targets as a loss takes them; refuses others."""


def map_inputs(function: Callable[[Tensor], Tensor], inputs: Any) -> Any:
    """Apply a function to every tensor of the inputs; leave other entries unchanged."""

    def apply(part: Any) -> Any:
        return function(part) if isinstance(part, Tensor) else part

    if isinstance(inputs, tuple):
        return tuple(apply(part) for part in inputs)
    if isinstance(inputs, Mapping):
        return {name: apply(part) for name, part in inputs.items()}
    return apply(inputs)


_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def as_labels(labels: object, name: str = "labels") -> Tensor:
    """Return labels as int64, the dtype of torch's losses; refuse all but one integer per sample."""
    if not isinstance(labels, Tensor) or labels.dim() != 1 or labels.dtype not in _INTEGERS:
        found = type(labels).__name__
        if isinstance(labels, Tensor):
            found = f"shape {list(labels.shape)} of {str(labels.dtype).removeprefix('torch.')}"
            if labels.is_floating_point():
                found += "; for targets that are numbers use loss='squared_error'"
        raise ValueError(f"{name} must be a tensor of integers, one label per sample, not {found}")
    if not len(labels):
        raise ValueError(f"{name} has no labels")
    return labels.to(torch.int64)


_BOUNDS = "_firststep_bounds"


def label_bounds(*labels: Tensor) -> list[tuple[int, int]]:
    """Return the smallest and largest label per tensor, with at most one transfer from an accelerator.

    Those of an accelerator's labels are remembered: :meth:`firststep.Task.to` brings them along from the CPU.
    """
    known = [bounds for part in labels if (bounds := known_bounds(part)) is not None]
    if len(known) == len(labels):
        return known
    read = torch.stack([bound for part in labels for bound in part.aminmax()]).tolist()
    found = list(zip(read[::2], read[1::2], strict=True))
    for part, bounds in zip(labels, found, strict=True):
        _remember_bounds(part, bounds)
    return found


def known_bounds(labels: Tensor) -> tuple[int, int] | None:
    """Return the smallest and largest of labels on an accelerator, if they can be told without a transfer."""
    version, bounds = getattr(labels, _BOUNDS, (None, None))
    return bounds if bounds is not None and version == labels._version else None


def _remember_bounds(labels: Tensor, bounds: tuple[int, int]) -> None:
    # On a CPU reading is free, and numpy may write to the labels unseen.
    if labels.device.type != "cpu" and not labels.is_inference():
        setattr(labels, _BOUNDS, (labels._version, bounds))


def _with_bounds(moved: Tensor, source: Tensor) -> Tensor:
    """Return labels that were moved to an accelerator with the bounds that they had before."""
    is_labels = source.dim() == 1 and source.dtype in _INTEGERS and len(source) > 0
    if moved.device.type != "cpu" and is_labels:
        bounds = label_bounds(source)[0] if source.device.type == "cpu" else known_bounds(source)
        if bounds is not None:
            _remember_bounds(moved, bounds)
    return moved


def check_differentiable(*inputs: Inputs) -> None:
    """Refuse ``torch.inference_mode()`` and tensors created in it: autograd cannot use them."""
    if torch.is_inference_mode_enabled():
        raise ValueError(
            "inner steps take gradients, which torch.inference_mode() forbids: use torch.no_grad() instead"
        )

    def check(part: Tensor) -> Tensor:
        if part.is_inference():
            raise ValueError(
                "an input was made in torch.inference_mode(), and no gradient can be taken through it: "
                "make it in torch.no_grad() instead, or pass its clone()"
            )
        return part

    for part in inputs:
        map_inputs(check, part)


def as_samples(x: Inputs, y: object, name: str = "labels", as_target: AsTarget = as_labels) -> Any:
    """Return the targets of inputs for inner steps, converted by ``as_target``."""
    targets = as_target(y, name)
    check_differentiable(x, targets)
    return targets


def to_channels_last(values: Tensor) -> Tensor:
    """Convert images to channels-last format, which layers then keep.

    Convolutions then need no reordering, and per-channel operations (batch norm, pooling) are vectorised.
    Other tensors are returned unchanged.
    """
    if values.dim() != 4:
        return values
    values = values.contiguous(memory_format=torch.channels_last)
    if values.shape[1] == 1:
        # One channel has both formats at once; the strides tell the layers which one is meant.
        values = values.as_strided(values.shape, (values[0].numel(), 1, values.shape[3], 1))
    return values


class Task(NamedTuple):
    """A support set to adapt to and a query set to test on.

    Class labels are 0..ways-1. Other losses take other targets: see :class:`firststep.Loss`.

    Examples:
        >>> task = fs.Task(support_x, support_y, query_x, query_y)
        >>> task.support_x.shape, task.query_y.tolist()
        (torch.Size([10, 1, 16, 16]), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    """

    support_x: Inputs
    support_y: Any
    query_x: Inputs
    query_y: Any

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Task:
        """Return the task on another device, or with floating-point tensors in another dtype."""

        # Copies from pinned memory do not wait. Others to cuda do as before; those back must.
        to_cuda = device is not None and torch.device(device).type == "cuda"

        def moved(part: Tensor) -> Tensor:
            floats = part.is_floating_point()
            found = part.to(device=device, dtype=dtype if floats else None, non_blocking=to_cuda)
            return found if floats else _with_bounds(found, part)

        return Task(*(map_inputs(moved, part) for part in self))


def as_task(
    task: Task | tuple[Any, ...], as_target: AsTarget = as_labels, as_query: AsTarget | None = None
) -> Task:
    """Return a task from a Task or a plain tuple ``(support_x, support_y, query_x, query_y)``.

    Args:
        task: the task.
        as_target: checks and converts the targets of the support set; default class labels.
        as_query: the same for the query set, if its loss differs.

    Examples:
        >>> functional.as_task((support_x, support_y, query_x, query_y)).query_x.shape
        torch.Size([15, 1, 16, 16])
    """
    if not isinstance(task, tuple | list) or len(task) != 4:
        kind = type(task).__name__
        what = f"a {kind} of {len(task)}" if isinstance(task, tuple | list) else f"a {kind}"
        raise ValueError(
            f"a task is a Task or a tuple (support_x, support_y, query_x, query_y), not {what}; "
            "tasks is a sequence of them"
        )
    support_x, support_y, query_x, query_y = task
    found = Task(_plain(support_x), _plain(support_y), _plain(query_x), _plain(query_y))
    if as_target is as_labels and _is_stacked(support_y) and _is_stacked(query_y):
        raise ValueError(_STACKED)
    for name in ("support_x", "query_x"):
        inputs = getattr(found, name)
        if not isinstance(inputs, Tensor | tuple | Mapping):
            raise ValueError(
                f"{name} must be a tensor, or a tuple or dict of them, not {type(inputs).__name__}"
            )
    return found._replace(
        support_y=as_samples(found.support_x, found.support_y, "support_y", as_target),
        query_y=as_samples(found.query_x, found.query_y, "query_y", as_query or as_target),
    )


_STACKED = (
    "these tasks are stacked into one, as DataLoader does by default: make it with "
    "DataLoader(dataset, batch_size=4, collate_fn=list)"
)


def as_tasks(
    tasks: Task | Iterable[Task | tuple[Any, ...]],
    as_target: AsTarget = as_labels,
    as_query: AsTarget | None = None,
) -> list[Task]:
    """Return a meta-batch as a list of tasks; a single task is one too. Arguments as :func:`as_task`."""
    if isinstance(tasks, Task):
        return [as_task(tasks, as_target, as_query)]
    if not isinstance(tasks, Iterable):
        raise TypeError(f"tasks must be a list of tasks, not {type(tasks).__name__}")
    found = list(tasks)
    if as_target is as_labels and len(found) == 4 and _is_stacked(found[1]) and _is_stacked(found[3]):
        raise ValueError(_STACKED)
    if not found:
        raise ValueError("tasks must not be empty")
    return [as_task(task, as_target, as_query) for task in found]


def _is_stacked(labels: Any) -> bool:
    return isinstance(labels, Tensor) and labels.dim() == 2 and labels.dtype in _INTEGERS


def _plain(inputs: Any) -> Any:
    """Convert other mappings, such as a tokenizer's, to a dict."""
    return dict(inputs) if isinstance(inputs, Mapping) else inputs
