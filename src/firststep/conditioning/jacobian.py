"""The Gram matrix of any residual vector and any parameters, from batched vector-Jacobian products.

Batch norm on batch statistics couples the samples, so tricks that take each sample's gradient alone are
wrong. Here row i of J is the vector-Jacobian product of the whole residual vector with the unit vector i.

Memory is bounded twice. Rows are taken ``chunk_size`` at a time, because each carries its own cotangents
through the network. Parameters are taken in groups, top layers first, because G is the sum of the groups'
Gram matrices: only one group of J's columns exists at a time.

The gradient is written out by hand, in the same chunks, so that no graph of all rows is ever held. For a
cotangent W of G, with S = W + Wᵀ,

    d Σ_ij W_ij J_i·J_j = Σ_i (Σ_j S_ij J_j) · dJ_i,

so row i of J is differentiated once, against the fixed vector Jᵀ S_i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from firststep.conditioning._checks import require_finite

ResidualFunction = Callable[[dict[str, Tensor]], Tensor]

DEFAULT_MEMORY = 2**29  # bytes for J's columns, and again for the rows' cotangents
# A row that is differentiated again keeps its own backward graph: about this many times the forward's.
_SECOND_ORDER_COST = 3


def jacobian_gram(
    residuals: ResidualFunction,
    params: Mapping[str, Tensor],
    *,
    wrt: Iterable[str] | None = None,
    chunk_size: int | None = None,
    memory: int = DEFAULT_MEMORY,
    check_finite: bool = True,
) -> Tensor:
    """G = J Jᵀ with J = ∂residuals/∂ψ, float64 [..., n, n]; once differentiable in all of ``params``.

    Args:
        residuals: a function of the parameter dict that returns the residual vector [..., n], such as
            ``lambda p: cross_entropy_residuals(functional_call(model, p, (images,)), labels)``. Everything
            the gradient of G shall reach must come in through ``params``; closing over other tensors that
            require grad is refused, because their gradient would silently be lost.
        params: every parameter that the residuals depend on, by name.
        wrt: the names that make up ψ; default all.
        chunk_size: rows of J computed at once; default as many as fit in ``memory``.
        memory: bytes to spend on J's columns and, again, on the rows' cotangents.
        check_finite: refuse parameters with NaN or infinities (reads the values).
    """
    names = tuple(params)
    psi = names if wrt is None else tuple(wrt)
    unknown = [name for name in psi if name not in params]
    if unknown:
        raise ValueError(f"wrt names {unknown}, which params does not have; it has {list(names)}")
    if not psi:
        raise ValueError("wrt must name at least one parameter" if names else "params must not be empty")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    if check_finite:
        for name, value in params.items():
            require_finite(f"params[{name!r}]", value)
    plan = _Plan(residuals, names, psi, chunk_size, memory)
    gram: Tensor = _JacobianGram.apply(plan, *params.values())
    return gram


@dataclass(frozen=True)
class _Plan:
    residuals: ResidualFunction
    names: tuple[str, ...]
    psi: tuple[str, ...]
    chunk_size: int | None
    memory: int

    def rows(self, count: int, bytes_per_row: int) -> Iterator[slice]:
        """Slices over the rows of J that are processed together."""
        size = self.chunk_size or max(1, min(count, self.memory // max(1, bytes_per_row)))
        for start in range(0, count, size):
            yield slice(start, min(start + size, count))

    def column_groups(self, leaves: dict[str, Tensor], rows: int) -> Iterator[list[Tensor]]:
        """Parameters whose columns of J fit in memory together, the last layers first.

        Top first, since reaching a top layer costs only the part of the network above it.
        """
        group: list[Tensor] = []
        used = 0
        for name in reversed(self.psi):
            need = rows * leaves[name].numel() * leaves[name].element_size()
            if group and used + need > self.memory:
                yield group
                group, used = [], 0
            group.append(leaves[name])
            used += need
        yield group


class _JacobianGram(torch.autograd.Function):
    @staticmethod
    def forward(plan: _Plan, *values: Tensor) -> Tensor:
        leaves = {
            name: value.detach().requires_grad_(name in plan.psi)
            for name, value in zip(plan.names, values, strict=True)
        }
        vector, saved_bytes = _evaluate(plan, leaves)
        rows, n = vector.numel(), vector.shape[-1]
        identity = torch.eye(rows, dtype=vector.dtype, device=vector.device).view(rows, *vector.shape)
        gram = vector.new_zeros(rows // n, n, n, dtype=torch.float64)
        for group in plan.column_groups(leaves, rows):
            parts: list[list[Tensor]] = [[] for _ in group]
            for chunk in plan.rows(rows, saved_bytes):
                for part, rows_of_j in zip(parts, _pull_rows(vector, group, identity[chunk]), strict=True):
                    part.append(rows_of_j)
            for part in parts:
                j = torch.cat(part).reshape(rows // n, n, -1).double()
                gram = gram + j @ j.mT
        return gram.view(*vector.shape, n)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.plan = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_gram: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        wanted = dict(zip(plan.names, ctx.needs_input_grad[1:], strict=True))
        leaves = {
            name: value.detach().requires_grad_(wanted[name] or name in plan.psi)
            for name, value in zip(plan.names, ctx.saved_tensors, strict=True)
        }
        vector, saved_bytes = _evaluate(plan, leaves)
        rows, n = vector.numel(), vector.shape[-1]
        identity = torch.eye(rows, dtype=vector.dtype, device=vector.device).view(rows, *vector.shape)
        # Row (b, i) of the tasks' block-diagonal S = W + Wᵀ, as a cotangent of the residual vector.
        symmetric = (grad_gram + grad_gram.mT).reshape(rows // n, n, n).to(vector.dtype)
        cotangents = torch.block_diag(*symmetric).view(rows, *vector.shape)
        psi = [leaves[name] for name in plan.psi]
        targets = [leaf for name, leaf in leaves.items() if wanted[name]]
        total = [torch.zeros_like(target) for target in targets]
        for chunk in plan.rows(rows, _SECOND_ORDER_COST * saved_bytes):
            fixed = _pull_rows(vector, psi, cotangents[chunk])
            with torch.enable_grad():
                rows_of_j = _pull_rows(vector, psi, identity[chunk], create_graph=True)
                product = torch.stack([(f * j).sum() for f, j in zip(fixed, rows_of_j, strict=True)]).sum()
            if not product.requires_grad:  # J does not depend on any parameter: linear residuals
                continue
            grads = torch.autograd.grad(product, targets, retain_graph=True, allow_unused=True)
            total = [t if g is None else t + g for t, g in zip(total, grads, strict=True)]
        remaining = iter(total)
        return None, *(next(remaining) if wanted[name] else None for name in plan.names)


def _evaluate(plan: _Plan, leaves: dict[str, Tensor]) -> tuple[Tensor, int]:
    """The residual vector with its graph, and the bytes that one pass back through it touches."""
    saved: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage._cdata] = storage.nbytes()  # views of one storage count once
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        vector = plan.residuals(dict(leaves))
    if not isinstance(vector, Tensor) or vector.dim() < 1 or vector.numel() == 0:
        raise ValueError("residuals must return a tensor [..., n] with at least one entry")
    _refuse_captured(vector, leaves)
    return vector, sum(saved.values())


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


def _pull_rows(
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
