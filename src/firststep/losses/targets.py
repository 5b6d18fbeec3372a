"""Targets of any loss: a tensor, or a tuple or dict of tensors, with one entry per sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from firststep.task import Targets


def first_tensor(value: Any) -> Tensor:
    """Return the tensor, or the first one of a tuple or dict."""
    if isinstance(value, Tensor):
        return value
    parts = value.values() if isinstance(value, Mapping) else value
    for part in parts:
        if isinstance(part, Tensor):
            return part
    raise ValueError("expected a tensor, or a tuple or dict that holds one")


def as_numbers(target: object, name: str) -> Targets:
    """Return targets that are numbers; refuse empty ones, and parts that differ in the number of samples."""
    values: list[object] = [target]
    if isinstance(target, tuple | Mapping):
        values = list(target.values() if isinstance(target, Mapping) else target)
    if not values or not all(isinstance(value, Tensor) and value.dim() for value in values):
        found = ", ".join(dict.fromkeys(type(value).__name__ for value in values)) or "nothing"
        raise ValueError(
            f"{name} must be a tensor with one entry per sample, or a tuple or dict of them, not {found}"
        )
    sizes = {len(value) for value in values if isinstance(value, Tensor)}
    if sizes == {0}:
        raise ValueError(f"{name} has no samples")
    if len(sizes) > 1:
        raise ValueError(f"{name}: its tensors must have one entry per sample each, not {sorted(sizes)}")
    return target  # type: ignore[return-value]


def require_same_shape(loss: str, output: object, target: object) -> tuple[Tensor, Tensor]:
    """Return output and target as tensors of one shape: broadcasting [n, 1] with [n] would be silent."""
    if not isinstance(output, Tensor) or not output.is_floating_point():
        raise ValueError(f"loss {loss}: the network's output must be a tensor of floats, not {_form(output)}")
    if not isinstance(target, Tensor):
        raise ValueError(f"loss {loss}: the target must be a tensor, not {_form(target)}")
    if output.shape != target.shape:
        raise ValueError(
            f"loss {loss}: output and target must have one shape, not {list(output.shape)} and "
            f"{list(target.shape)}"
        )
    return output, target


def _form(value: object) -> str:
    return f"{value.dtype}".removeprefix("torch.") if isinstance(value, Tensor) else type(value).__name__
