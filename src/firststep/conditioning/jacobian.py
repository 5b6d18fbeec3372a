"""The Gram matrix of any residual vector and any parameters, from batched vector-Jacobian products.

Batch norm on batch statistics couples the samples, so methods that take each sample's gradient alone are
wrong. Here row i of J is the vector-Jacobian product of the whole residual vector with the unit vector i.

Memory is bounded twice. Rows are computed ``chunk_size`` at a time, because each needs its own cotangents in
the network. Parameters are processed in groups, top layers first: G is the sum of the groups' Gram matrices,
so only one group of J's columns is held at a time.

The gradient is written by hand, in the same chunks, so that the graph of all rows is never held at once. For
a cotangent W of G, with S = W + Wᵀ,

    d Σ_ij W_ij J_i·J_j = Σ_i (Σ_j S_ij J_j) · dJ_i,

so row i of J is differentiated once, against the constant vector Jᵀ S_i. J is saved for this if it fits in
memory; otherwise Jᵀ S_i is one more vector-Jacobian product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from firststep.conditioning._checks import require_finite
from firststep.conditioning.jacobian_rows import ResidualFunction, evaluate, pull_rows
from firststep.conditioning.precision import back_to, float64_device, in_float64
from firststep.conditioning.smaller_side import rotation, smaller_gram

JACOBIAN_MEMORY = 2**29  # bytes for J's columns, and again for the rows' cotangents
# A GPU is fastest with as many rows at once as fit in memory; a CPU gains little beyond this size.
_CPU_CHUNK = 2**28
# A row that is differentiated again keeps its backward graph: about this many times the forward graph.
_SECOND_ORDER_COST = 3


def jacobian_gram(
    residuals: ResidualFunction,
    params: Mapping[str, Tensor],
    *,
    wrt: Iterable[str] | None = None,
    chunk_size: int | None = None,
    memory: int = JACOBIAN_MEMORY,
    check_finite: bool = True,
    small: bool = False,
) -> Tensor:
    """Return G = J Jᵀ with J = ∂residuals/∂ψ, float64 [..., n, n]; once differentiable in ``params``.

    Args:
        residuals: a function of the parameter dict that returns the residual vector [..., n], such as
            ``lambda p: cross_entropy_residuals(functional_call(model, p, (images,)), labels)``. Every tensor
            that requires grad must come in through ``params``. Closing over another one is refused, because
            its gradient would be lost silently.
        params: every parameter that the residuals depend on, by name.
        wrt: names of the parameters in ψ; default all.
        chunk_size: number of rows of J computed at once; default as many as fit in ``memory``.
        memory: bytes for J's columns, and the same again for the rows' cotangents.
        check_finite: refuse parameters with NaN or infinities (reads the values).
        small: return JᵀJ, [..., p, p], if the residuals outnumber the p parameters in ψ: it has the same
            non-zero eigenvalues.

    Examples:
        >>> def residuals(params):
        ...     logits = torch.func.functional_call(network, params, (support_x,))
        ...     return fs.cross_entropy_residuals(logits, support_y)
        >>> weights = dict(network.named_parameters())
        >>> head = ["classifier.weight", "classifier.bias"]
        >>> by_autograd = fs.jacobian_gram(residuals, weights, wrt=head)
        >>> features = network.features(support_x)
        >>> closed_form = fs.classifier_gram(features, network.classifier(features), support_y)
        >>> torch.allclose(by_autograd, closed_form, rtol=1e-4)
        True
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
    plan = _Plan(residuals, names, psi, chunk_size, memory, small)
    gram: Tensor = _JacobianGram.apply(plan, *params.values())[0]
    return gram


@dataclass
class _Plan:
    residuals: ResidualFunction
    names: tuple[str, ...]
    psi: tuple[str, ...]
    chunk_size: int | None
    memory: int
    small: bool
    row_bytes: int = 0
    """Bytes that one row touches on its way back to ψ; measured when the rows are first computed."""

    def rows(self, vector: Tensor, cost: int = 1) -> Iterator[slice]:
        """Yield slices of the rows of J to process together; a row takes ``cost`` times its bytes."""
        bytes_per_row = cost * self.row_bytes
        budget = min(self.memory, _CPU_CHUNK) if vector.device.type == "cpu" else self.memory
        size = self.chunk_size or max(1, min(vector.numel(), budget // max(1, bytes_per_row)))
        for start in range(0, vector.numel(), size):
            yield slice(start, min(start + size, vector.numel()))

    def groups(self, vector: Tensor) -> Iterator[list[slice]]:
        """Yield groups of slices whose graphs fit in memory together, to differentiate at once."""
        chunks = list(self.rows(vector, _SECOND_ORDER_COST))
        chunk_bytes = _SECOND_ORDER_COST * self.row_bytes * (chunks[0].stop - chunks[0].start)
        together = max(1, self.memory // max(1, chunk_bytes))
        for start in range(0, len(chunks), together):
            yield chunks[start : start + together]

    def is_small(self, leaves: dict[str, Tensor], n: int) -> bool:
        """Return whether JᵀJ is asked for and smaller."""
        return self.small and n > sum(leaves[name].numel() for name in self.psi)

    def saves_jacobian(self, leaves: dict[str, Tensor], rows: int) -> bool:
        """Return whether four copies of J fit in memory: the backward pass holds it in several forms."""
        j_bytes = rows * sum(leaves[name].numel() * leaves[name].element_size() for name in self.psi)
        return 4 * j_bytes <= self.memory

    def column_groups(self, leaves: dict[str, Tensor], rows: int) -> Iterator[list[Tensor]]:
        """Yield groups of parameters whose columns of J fit in memory together, top layers first.

        A pass back to a top layer costs only the part of the network above it.
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
    """G and, if it fits in memory, J for the backward pass."""

    @staticmethod
    def forward(plan: _Plan, *values: Tensor) -> tuple[Tensor, ...]:
        leaves = {
            name: value.detach().requires_grad_(name in plan.psi)
            for name, value in zip(plan.names, values, strict=True)
        }
        # Only ψ requires grad, so the saved bytes are those that a row touches.
        vector, plan.row_bytes = evaluate(plan.residuals, leaves)
        rows, n = vector.numel(), vector.shape[-1]
        identity = torch.eye(rows, dtype=vector.dtype, device=vector.device).view(rows, *vector.shape)
        gram = vector.new_zeros(rows // n, n, n, dtype=torch.float64, device=float64_device(vector.device))
        saved: dict[Tensor, Tensor] = {}
        is_small = plan.is_small(leaves, n)
        save = is_small or plan.saves_jacobian(leaves, rows)
        for group in plan.column_groups(leaves, rows):
            parts: list[list[Tensor]] = [[] for _ in group]
            for chunk in plan.rows(vector):
                for part, rows_of_j in zip(parts, pull_rows(vector, group, identity[chunk]), strict=True):
                    part.append(rows_of_j)
            for leaf, part in zip(group, parts, strict=True):
                whole = torch.cat(part)
                part.clear()
                j = in_float64(whole.reshape(rows // n, n, -1))
                if not is_small:
                    gram = gram + j @ j.mT
                if save:
                    saved[leaf] = whole
        kept = [saved[leaves[name]] for name in plan.psi if save]
        if is_small:
            columns = torch.cat([j.reshape(rows // n, n, -1) for j in kept], -1)
            return smaller_gram(columns).view(*vector.shape[:-1], -1, columns.shape[-1]), *kept
        return gram.view(*vector.shape, n), *kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.plan = inputs[0]
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[1:], *output[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_gram: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        if grad_gram is None:
            return (None,) * (1 + len(plan.names))
        values, saved = ctx.saved_tensors[: len(plan.names)], ctx.saved_tensors[len(plan.names) :]
        needed = dict(zip(plan.names, ctx.needs_input_grad[1:], strict=True))
        leaves = {
            name: value.detach().requires_grad_(needed[name] or name in plan.psi)
            for name, value in zip(plan.names, values, strict=True)
        }
        vector = evaluate(plan.residuals, leaves)[0]
        rows, n = vector.numel(), vector.shape[-1]
        identity = torch.eye(rows, dtype=vector.dtype, device=vector.device).view(rows, *vector.shape)
        if plan.is_small(leaves, n):
            all_fixed = _fixed_of_small(grad_gram, saved, rows // n, n)
            cotangents = identity  # not used
        else:
            # Row (b, i) of the tasks' block-diagonal S = W + Wᵀ, as a cotangent of the residual vector.
            symmetric = back_to((grad_gram + grad_gram.mT).reshape(rows // n, n, n), vector)
            blocks = torch.block_diag(*symmetric)
            cotangents = blocks.view(rows, *vector.shape)
            all_fixed = [
                back_to(in_float64(blocks) @ in_float64(j.reshape(rows, -1)), j).view_as(j) for j in saved
            ]
        psi = [leaves[name] for name in plan.psi]
        targets = [leaf for name, leaf in leaves.items() if needed[name]]
        total = [torch.zeros_like(target) for target in targets]
        for chunks in plan.groups(vector):
            products: list[Tensor] = []
            for chunk in chunks:
                fixed = [f[chunk] for f in all_fixed] or pull_rows(vector, psi, cotangents[chunk])
                with torch.enable_grad():
                    rows_of_j = pull_rows(vector, psi, identity[chunk], create_graph=True)
                    products.extend((f * j).sum() for f, j in zip(fixed, rows_of_j, strict=True))
            with torch.enable_grad():
                product = torch.stack(products).sum()
            if not product.requires_grad:  # linear residuals: J is constant
                continue
            grads = torch.autograd.grad(product, targets, retain_graph=True, allow_unused=True)
            total = [t if g is None else t + g for t, g in zip(total, grads, strict=True)]
            del products, product, rows_of_j  # frees this group's graphs
        remaining = iter(total)
        return None, *(next(remaining) if needed[name] else None for name in plan.names)


def _fixed_of_small(grad_gram: Tensor, saved: Sequence[Tensor], tasks: int, n: int) -> list[Tensor]:
    """Return the cotangents of J's columns for a cotangent W of (J V)ᵀ (J V): J V (W + Wᵀ) Vᵀ."""
    columns = in_float64(torch.cat([j.reshape(tasks, n, -1) for j in saved], -1))
    size = columns.shape[-1]
    turn = rotation(size, columns.device)
    symmetric = (grad_gram + grad_gram.mT).reshape(tasks, size, size)
    parts = (columns @ turn @ symmetric @ turn.mT).split([j.numel() // (tasks * n) for j in saved], -1)
    return [back_to(part.reshape_as(j), j) for part, j in zip(parts, saved, strict=True)]
