"""The inputs and outputs of a network's ``forward``, in their usual forms."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from firststep.task import Inputs


def as_arguments(inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments of the network."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (inputs if isinstance(inputs, tuple) else (inputs,)), {}


def check_inputs(module: nn.Module, inputs: Inputs) -> None:
    """Refuse inputs that do not match the arguments of the network's ``forward``."""
    arguments, keywords = as_arguments(inputs)
    try:
        inspect.signature(module.forward).bind(*arguments, **keywords)
    except TypeError as error:
        raise ValueError(
            f"{type(module).__name__}.forward does not take these inputs ({error}): pass a tensor, "
            "a tuple of its positional arguments or a dict of its keyword arguments"
        ) from None


def output_of(result: object) -> object:
    """Return what a loss takes of a network's output: its ``logits`` if it has some, otherwise all of it.

    Raises:
        ValueError: it is neither a tensor nor a tuple or dict of them.
    """
    if isinstance(result, Tensor):
        return result
    if isinstance(result, Mapping) and "logits" in result:
        return result["logits"]
    if isinstance(getattr(result, "logits", None), Tensor):
        return getattr(result, "logits")  # noqa: B009 an object of any kind
    parts = list(result.values()) if isinstance(result, Mapping) else result
    if isinstance(parts, tuple | list) and parts and all(isinstance(part, Tensor) for part in parts):
        return dict(result) if isinstance(result, Mapping) else tuple(parts)
    raise ValueError(
        f"the network returned a {type(result).__name__}: expected a tensor, an object with logits, or a "
        "tuple or dict of tensors"
    )
