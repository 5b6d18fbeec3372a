"""Rows of the Jacobian of a residual vector, in batches, and their Gram matrix in autograd's graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from firststep.conditioning.precision import in_float64
from firststep.conditioning.saved_memory import counting_saved
from firststep.conditioning.smaller_side import smaller_gram

# Operations whose batched backward pass in torch.func can be differentiated again. Only operations that were
# checked are listed, because others are wrong silently: the batched backward pass of F.batch_norm treats the
# batch's mean and variance as constants.
_BATCHABLE = frozenset({
    "Add", "Addmm", "Clamp", "Clone", "Convolution", "Div", "Exp", "Gather", "Logaddexp",
    "Logsumexp", "MaskedFill", "MaxPool2DWithIndices", "Mean", "Mul", "Relu", "Rsqrt", "Sqrt", "Squeeze",
    "Sub", "T", "ToCopy", "UnsafeView", "Unsqueeze", "View", "Where",
})  # fmt: skip

ResidualFunction = Callable[[dict[str, Tensor]], Tensor]


def evaluate(residuals: ResidualFunction, leaves: dict[str, Tensor]) -> tuple[Tensor, int]:
    """Return the residual vector with its graph, and the bytes that one backward pass touches."""
    with torch.enable_grad(), counting_saved() as saved:
        vector = residuals(dict(leaves))
    if not isinstance(vector, Tensor) or vector.dim() < 1 or vector.numel() == 0:
        raise ValueError("residuals must return a tensor [..., n] with at least one entry")
    _refuse_captured(vector, leaves)
    return vector, saved.bytes


def _nodes(vector: Tensor) -> Iterator[torch.autograd.graph.Node]:
    """Yield the nodes of autograd's graph behind a tensor, leaves included."""
    seen: set[torch.autograd.graph.Node] = set()
    stack = [vector.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            stack.extend(parent for parent, _ in node.next_functions)


def _refuse_captured(vector: Tensor, leaves: dict[str, Tensor]) -> None:
    """Refuse a tensor that requires grad but is not in ``params``: its gradient would be lost."""
    known = {id(leaf) for leaf in leaves.values()}
    for node in _nodes(vector):
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in known:
            raise ValueError(
                f"residuals uses a tensor of shape {tuple(variable.shape)} that requires grad but is not in "
                "params; pass it in params (and name ψ with wrt), or detach it"
            )


def batchable(vector: Tensor) -> bool:
    """Return whether the backward pass can be batched over many rows."""
    return all(_is_batchable(node) for node in _nodes(vector) if not hasattr(node, "variable"))


def _is_batchable(node: torch.autograd.graph.Node) -> bool:
    written_in_python = getattr(node, "_forward_cls", None)
    if written_in_python is not None:  # a Function declares it itself
        return bool(written_in_python.generate_vmap_rule)
    return node.name().rstrip("0123456789").removesuffix("Backward") in _BATCHABLE


def pull_rows(
    vector: Tensor, inputs: list[Tensor], cotangents: Tensor, create_graph: bool = False
) -> tuple[Tensor, ...]:
    """Return Jᵀ c for a batch of cotangents: one tensor [batch, *shape] per input."""
    reached: list[int] = []  # inputs that the vector depends on

    def pull(cotangent: Tensor) -> list[Tensor]:
        grads = torch.autograd.grad(
            vector, inputs, cotangent, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
        reached[:] = [number for number, grad in enumerate(grads) if grad is not None]
        return [grad for grad in grads if grad is not None]

    rows = [value.new_zeros(()).expand(len(cotangents), *value.shape) for value in inputs]
    if vector.requires_grad:
        if len(cotangents) > 1 and batchable(vector):
            pulled = list(torch.func.vmap(pull)(cotangents))
        else:
            pulled = [torch.stack(parts) for parts in zip(*map(pull, cotangents), strict=True)]
        for number, row in zip(reached, pulled, strict=True):
            rows[number] = row
    return tuple(rows)


def gram_in_graph(vector: Tensor, psi: list[Tensor], *, small: bool = False) -> Tensor:
    """Return G = J Jᵀ, float64 [n, n], of a residual vector [n] computed from ψ, in autograd's graph.

    With ``small`` it is JᵀJ.

    A compiler can record this graph together with the computation around it. :func:`jacobian_gram` bounds
    its memory, and runs the network again in its backward pass. If ψ is near the output, the rows' graph is
    small, and one backward pass serves the Gram matrix and the rest of the loss.
    """
    identity = torch.eye(len(vector), dtype=vector.dtype, device=vector.device)
    rows = pull_rows(vector, psi, identity, create_graph=True)
    if small:
        return smaller_gram(torch.cat([part.flatten(1) for part in rows], 1))
    return torch.stack([_OuterProduct.apply(_columns(part)) for part in rows]).sum(0)


class _OuterProduct(Function):
    """J Jᵀ with one product in its backward pass; autograd's own derivative takes two."""

    @staticmethod
    def forward(ctx: Any, j: Tensor) -> Tensor:
        ctx.save_for_backward(j)
        return j @ j.mT

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Tensor:
        (j,) = ctx.saved_tensors
        product: Tensor = (cotangent + cotangent.mT) @ j
        return product


def _columns(rows: Tensor) -> Tensor:
    """Return the rows as [n, parameters]; G does not depend on the order, so keep that of memory."""
    if rows.dim() == 5:  # [n, out, in, height, width], mostly channels last in memory
        rows = rows.permute(0, 1, 3, 4, 2)
    return in_float64(rows.reshape(len(rows), -1))
