"""The Gram matrix as a part of autograd's own graph: for a compiler that records it with what is around.

:func:`jacobian_gram` bounds its memory, and for that passes the network again on its way back. Where rows do
not reach deep, their graph is small: then one backward pass serves the Gram matrix and whatever else is
differentiated with it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from firststep.conditioning.jacobian_rows import pull_rows


def gram_in_graph(vector: Tensor, psi: list[Tensor]) -> Tensor:
    """G = J Jᵀ, float64 [n, n], of a residual vector [n] that was computed from ψ; differentiable."""
    identity = torch.eye(len(vector), dtype=vector.dtype, device=vector.device)
    rows = pull_rows(vector, psi, identity, create_graph=True)
    return torch.stack([_OuterProduct.apply(_columns(part)) for part in rows]).sum(0)


class _OuterProduct(Function):
    """J Jᵀ; autograd's own derivative of it takes two products with J instead of one."""

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
    """[n, parameters]; G does not depend on their order, so kernels' is the one they have in memory."""
    if rows.dim() == 5:  # [n, out, in, height, width], mostly with the channels innermost
        rows = rows.permute(0, 1, 3, 4, 2)
    return rows.reshape(len(rows), -1).double()
