"""Rows of the Jacobian of a residual vector, any number at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from firststep.conditioning.saved_memory import counting_saved

ResidualFunction = Callable[[dict[str, Tensor]], Tensor]


def evaluate(residuals: ResidualFunction, leaves: dict[str, Tensor]) -> tuple[Tensor, int]:
    """The residual vector with its graph, and the bytes that one pass back through it touches."""
    with torch.enable_grad(), counting_saved() as saved:
        vector = residuals(dict(leaves))
    if not isinstance(vector, Tensor) or vector.dim() < 1 or vector.numel() == 0:
        raise ValueError("residuals must return a tensor [..., n] with at least one entry")
    _refuse_captured(vector, leaves)
    return vector, saved.bytes


def _refuse_captured(vector: Tensor, leaves: dict[str, Tensor]) -> None:
    """A tensor that requires grad but is not in ``params`` would lose its gradient: say so."""
    known = {id(leaf) for leaf in leaves.values()}
    seen: set[Any] = set()
    stack = [vector.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in known:
            raise ValueError(
                f"residuals uses a tensor of shape {tuple(variable.shape)} that requires grad but is not in "
                "params; pass it in params (and name ψ with wrt), or detach it"
            )
        stack.extend(parent for parent, _ in node.next_functions)


def pull_rows(
    vector: Tensor, inputs: list[Tensor], cotangents: Tensor, create_graph: bool = False
) -> tuple[Tensor, ...]:
    """Jᵀ c for a batch of cotangents: one [batch, *shape] tensor for each input."""
    rows: tuple[Tensor | None, ...] = (None,) * len(inputs)
    if vector.requires_grad:
        rows = torch.autograd.grad(
            vector,
            inputs,
            grad_outputs=cotangents,
            is_grads_batched=True,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    return tuple(
        value.new_zeros(len(cotangents), *value.shape) if row is None else row
        for row, value in zip(rows, inputs, strict=True)
    )
