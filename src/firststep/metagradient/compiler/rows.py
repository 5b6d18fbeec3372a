"""The compiled conditioning loss of many parameters and its gradient, one Jacobian row at a time.

The method is that of :mod:`firststep.conditioning.jacobian`. First the rows J_i, then G = J Jᵀ, the loss and
its cotangent S of G. Then each row is differentiated once, against the fixed vector Jᵀ S_i.

All rows have the same shapes, so one compiled pair serves them: the row and its pull-back. Work shared by all
rows runs once: see :mod:`row_parts`. Rows save their results for the pull-back if all fit into the memory
budget; otherwise each row is computed twice. On a CPU several rows run at once, each on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from firststep.adaptation import gram_of
from firststep.conditioning import JACOBIAN_MEMORY, rotation, smaller_gram
from firststep.losses import Loss, cross_entropy
from firststep.metagradient.compiler.passes import REWRITE, apply
from firststep.metagradient.compiler.row_parts import row_parts
from firststep.metagradient.compiler.trace import (
    Function,
    compile_graph,
    flatten,
    storage_bytes,
    trace_graph,
)
from firststep.metagradient.objective import Conditioning
from firststep.network import FunctionalModule, Params, Sharing, in_order, share_threads, using_threads
from firststep.task import Inputs, Targets

LARGEST_JACOBIAN = JACOBIAN_MEMORY // 2  # bytes: several copies exist at a time


def reaches_deep(model: FunctionalModule, subset: str | tuple[str, ...]) -> bool:
    """Return whether the Jacobian rows of a subset reach below the last layers, so their graph is large."""
    shallow = {name for part in ("cls", "emb", "ebn") for name in _subset_if_any(model, part)}
    return not shallow.issuperset(model.subset(subset))


def _subset_if_any(model: FunctionalModule, part: str) -> tuple[str, ...]:
    try:
        return model.subset(part)
    except ValueError:  # this network has no such layer
        return ()


_Saved = list[Tensor] | None


class Conditioned(NamedTuple):
    """Conditioning loss of a stage, and its gradient to add to the step's pull-back."""

    params: Params
    conditioning_loss: Tensor
    gram: Tensor


class EagerRows:
    """Uncompiled rows for a Jacobian that does not fit into memory: layer by layer, see ``jacobian_gram``."""

    def __init__(self, model: FunctionalModule, conditioning: Conditioning, loss: Loss) -> None:
        self._model = model
        self._conditioning = conditioning
        self._loss = loss

    def __call__(self, params: Params, x: Inputs, y: Targets, weight: Tensor) -> Conditioned:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        subset = self._conditioning.subset
        with torch.enable_grad():
            residuals = self._conditioning.chosen_residuals
            gram = gram_of(self._model, x, y, theta, subset, loss=self._loss, residuals=residuals)
            conditioning_loss = self._conditioning.conditioning_loss(gram)
        grads = torch.autograd.grad(conditioning_loss, list(theta.values()), weight, materialize_grads=True)
        return Conditioned(dict(zip(params, grads, strict=True)), conditioning_loss.detach(), gram.detach())


def conditioning_by_rows(
    model: FunctionalModule,
    conditioning: Conditioning,
    loss: Loss,
    params: Params,
    x: Inputs,
    y: Targets,
) -> Callable[[Params, Inputs, Targets, Tensor], Conditioned]:
    """Return (parameters, inputs, targets, weight) ↦ the loss and ``weight`` times its gradient."""
    psi = [params[name] for name in model.subset(conditioning.subset)]
    with torch.no_grad():
        rows = conditioning.chosen_residuals.count(loss, model(params, x).logits, y)
    jacobian_bytes = rows * sum(value.numel() * value.element_size() for value in psi)
    if jacobian_bytes > LARGEST_JACOBIAN:
        return EagerRows(model, conditioning, loss)
    return CompiledRows(model, conditioning, loss, params, x, y, rows)


class CompiledRows:
    """Rows compiled at construction, for parameters and a support set of these shapes."""

    def __init__(
        self,
        model: FunctionalModule,
        conditioning: Conditioning,
        loss: Loss,
        params: Params,
        x: Inputs,
        y: Targets,
        rows: int,
    ) -> None:
        self._conditioning = conditioning
        self._psi = model.subset(conditioning.subset)
        device = next(iter(params.values())).device
        self._units = torch.eye(rows, dtype=torch.float64, device=device)
        size = sum(params[name].numel() for name in self._psi)
        self._small = loss is not cross_entropy and rows > size

        def row_and_pull_back(
            params: Params, x: Inputs, y: Targets, unit: Tensor, fixed: tuple[Tensor, ...]
        ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            theta = {name: value.detach().requires_grad_() for name, value in params.items()}
            psi = [theta[name] for name in self._psi]
            with torch.enable_grad():
                vector = conditioning.chosen_residuals.vector(loss, model(theta, x).logits, y)
                row = torch.autograd.grad(vector, psi, unit, create_graph=True, materialize_grads=True)
                reached = [(j, f) for j, f in zip(row, fixed, strict=True) if j.requires_grad]
                grads = torch.autograd.grad(
                    [j for j, _ in reached],
                    list(theta.values()),
                    [f for _, f in reached],
                    materialize_grads=True,
                )
            return tuple(part.detach() for part in row), grads

        fixed = tuple(
            torch.zeros_like(params[name], memory_format=torch.contiguous_format) for name in self._psi
        )
        arguments = (params, x, y, self._units[0], fixed)
        graph, _ = trace_graph(row_and_pull_back, arguments)
        apply(REWRITE, graph)
        support = flatten((params, x, y))
        parts = row_parts(graph, len(support), len(self._psi))
        self._totals = parts.totals
        self._shared: Function = compile_graph(parts.shared, support)
        with torch.no_grad():
            given = [*support, *self._shared(*support)]
        # A row's results take about the memory of its inputs, and its pull-back the same again.
        need = 3 * storage_bytes(given[len(support) :])
        on_cpu = device.type == "cpu"
        self._sharing = (
            share_threads(need, JACOBIAN_MEMORY) if on_cpu else Sharing(1, torch.get_num_threads())
        )
        # A fixed assignment of rows to workers, so that runs repeat exactly.
        workers = self._sharing.workers
        self._shares = [range(worker, rows, workers) for worker in range(workers)]
        totals = self._zeros()
        with using_threads(self._sharing.threads), torch.no_grad():
            self._row: Function = compile_graph(parts.row, [*given, self._units[0]])
            saved = self._row(*given, self._units[0])[len(self._psi) :]
            self._pull_back: Function = compile_graph(
                parts.pull_back, [*given, self._units[0], *fixed, *totals, *saved]
            )
        self._finish: Function = compile_graph(parts.finish, [*given, *totals])
        self._save = storage_bytes(saved) * rows <= JACOBIAN_MEMORY

    @torch.no_grad()
    def __call__(self, params: Params, x: Inputs, y: Targets, weight: Tensor) -> Conditioned:
        support = flatten((params, x, y))
        given = [*support, *self._shared(*support)]
        psi = [params[name] for name in self._psi]
        jacobian, saved = self._all_rows(given, psi)
        gram = self._gram(jacobian)
        with torch.enable_grad():
            conditioning_loss = self._conditioning.conditioning_loss(gram.requires_grad_())
        (cotangent,) = torch.autograd.grad(conditioning_loss, gram, weight)
        fixed = self._fixed(cotangent + cotangent.mT, jacobian, psi)
        del jacobian
        grads = self._finish(*given, *self._all_pulled_back(given, fixed, saved))
        return Conditioned(dict(zip(params, grads, strict=True)), conditioning_loss.detach(), gram.detach())

    def _gram(self, jacobian: list[Tensor]) -> Tensor:
        if self._small:
            return smaller_gram(torch.cat(jacobian, 1))
        return torch.stack([_outer_product(j) for j in jacobian]).sum(0)

    def _fixed(self, symmetric: Tensor, jacobian: list[Tensor], psi: list[Tensor]) -> list[Tensor]:
        """Return the vectors that the rows are differentiated against, [n, *shape] per parameter."""
        if self._small:
            whole = torch.cat(jacobian, 1).double()
            turn = rotation(whole.shape[1], whole.device)
            products = (whole @ turn @ symmetric @ turn.mT).split([j.shape[1] for j in jacobian], 1)
        else:
            products = tuple(symmetric @ j.double() for j in jacobian)
        return [
            product.to(value.dtype).view(-1, *value.shape)
            for product, value in zip(products, psi, strict=True)
        ]

    def _all_rows(self, given: list[Tensor], psi: list[Tensor]) -> tuple[list[Tensor], list[_Saved]]:
        """Return J as [n, entries] per parameter, and the saved tensors per row."""
        jacobian = [value.new_empty(len(self._units), value.numel()) for value in psi]
        saved: list[_Saved] = [None] * len(self._units)

        def compute(rows: range) -> None:
            for number in rows:
                results = self._row(*given, self._units[number])
                for j, part in zip(jacobian, results[: len(psi)], strict=True):
                    j[number] = part.flatten()
                if self._save:
                    saved[number] = results[len(psi) :]

        list(in_order(compute, self._shares, self._sharing))
        return jacobian, saved

    def _all_pulled_back(self, given: list[Tensor], fixed: list[Tensor], saved: list[_Saved]) -> list[Tensor]:
        """Return the totals over all rows."""

        def compute(rows: range) -> list[Tensor]:
            totals = self._zeros()
            for number in rows:
                values = saved[number]
                if values is None:
                    values = self._row(*given, self._units[number])[len(fixed) :]
                vector = [of_parameter[number] for of_parameter in fixed]
                self._pull_back(*given, self._units[number], *vector, *totals, *values)
                saved[number] = values = None  # free the memory
            return totals

        first, *others = in_order(compute, self._shares, self._sharing)
        for other in others:
            for total, value in zip(first, other, strict=True):
                total.add_(value)  # in place: keeps the strides that were compiled for
        return first

    def _zeros(self) -> list[Tensor]:
        device = self._units.device
        return [
            torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=device).zero_()
            for like in self._totals
        ]


def _outer_product(rows: Tensor) -> Tensor:
    exact = rows.double()
    return exact @ exact.mT
