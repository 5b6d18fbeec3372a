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


def logits_of(result: object) -> object:
    """Return the logits in a network's output: a tensor, or a dict or object that has ``logits``."""
    if isinstance(result, Mapping):
        return result.get("logits")
    return result if isinstance(result, Tensor) else getattr(result, "logits", None)
