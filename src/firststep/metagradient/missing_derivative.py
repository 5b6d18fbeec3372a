"""Explain networks that torch cannot differentiate twice: name the layer and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from firststep.errors import FirststepError
from firststep.network import FunctionalModule, Params, layer_with_operation, missing_derivative
from firststep.task import Inputs


@contextmanager
def explained(model: FunctionalModule, params: Params, x: Inputs) -> Iterator[None]:
    """Turn torch's error about a missing second derivative into a :class:`FirststepError`."""
    try:
        yield
    except RuntimeError as error:
        operation = missing_derivative(error)
        if operation is None:
            raise
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        with torch.enable_grad():
            where = layer_with_operation(model.module, lambda: model(theta, x), operation)
        raise FirststepError(
            f"{where} uses {operation}, which torch cannot differentiate twice: use `rule=fomaml()`, whose "
            "gradient is of first order, or `rule=anil()`, which moves the classifier alone"
        ) from error
