"""A forward hook on the classifier: its input are the features, whatever the network around it is."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Captured(NamedTuple):
    """One call of a classifier."""

    module: nn.Module
    input: Tensor
    output: Tensor


capture_into: ContextVar[list[Captured] | None] = ContextVar("firststep_capture", default=None)
_REGISTERED = "_firststep_capture"


def _capture(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
    """The forward hook of a classifier: does nothing except inside a call of a FunctionalModule."""
    if torch.compiler.is_dynamo_compiling():  # the user's own torch.compile
        return
    captured = capture_into.get()
    if captured is not None:
        captured.append(Captured(module, inputs[0], output))


def register_capture(classifier: nn.Module) -> None:
    """Once for a layer. The mark is copied and pickled with the layer, as its hooks are."""
    if not getattr(classifier, _REGISTERED, False):
        classifier.register_forward_hook(_capture)
        setattr(classifier, _REGISTERED, True)
