"""A forward hook on the classifier, whose input are the features of any network."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Captured(NamedTuple):
    """The input and output of one call of a classifier."""

    module: nn.Module
    input: Tensor
    output: Tensor


capture_into: ContextVar[list[Captured] | None] = ContextVar("firststep_capture", default=None)
_REGISTERED = "_firststep_capture"


def _capture(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Record a call of a classifier inside a call of a FunctionalModule; do nothing elsewhere."""
    if torch.compiler.is_dynamo_compiling():  # inside the user's own torch.compile
        return
    captured = capture_into.get()
    if captured is not None:
        captured.append(Captured(module, inputs[0], output))


def register_capture(classifier: nn.Module) -> None:
    """Register the hook once per layer. The mark is copied and pickled with the layer, like its hooks."""
    if not getattr(classifier, _REGISTERED, False):
        classifier.register_forward_hook(_capture)
        setattr(classifier, _REGISTERED, True)
